#include "codegen/options/prefetch.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "ir/affine.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "rules/symbolic.h"

namespace tiny {

namespace {

constexpr int64_t kLineBytes = 64;
constexpr int64_t kRoundsUnknown = 2;  // share a block where a run says how many there are
constexpr int64_t kLinesAlong = 64;    // that a step of a reduction's loop fetches
constexpr int64_t kBytesAhead = 16384;
constexpr int64_t kLinesOfStep = 4;  // so that fetching does not hold up what else a step does

class Prefetcher {
 public:
  Prefetcher(const Kernel& kernel, const Option& option)
      : kernel_(kernel), option_(option), graph_(kernel.roots.front().graph()) {
    add_free_ranges(kernel, kernel.roots, free_);
  }

  // What is fetched; an error if the option does not fit the kernel.
  void find() {
    find_loop();
    find_access();
    find_place();
    if (is_closed_) {
      find_steps();
    } else {
      find_next();
      find_lines();
      find_shares();
    }
  }

  Kernel run() {
    find();
    Kernel out = kernel_;
    if (is_closed_)
      fetch_along(out);
    else
      fetch(out);
    return out;
  }

 private:
  // Lines, or what is made of them, that lie evenly apart.
  struct Dimension {
    int64_t stride;  // elements
    int64_t size;
  };

  [[noreturn]] void refuse(const char* why) const {
    throw Error(Status::InvalidArgument,
                cat("option ", to_text({&option_, 1}), " does not fit the kernel: ", why));
  }

  RangeSet free_of(const UOp& u) const { return free_.at(u.node()); }

  void find_loop() {
    place_ = kernel_.find_range(option_.range);
    if (place_ == kernel_.ranges.size()) refuse("it has no such range");
    const KernelRange& range = kernel_.ranges[place_];
    loop_ = range.range;
    if (range.kind != RangeKind::Loop) refuse("the range is no loop");
    for (const UOp& u : topological(kernel_.roots))
      if (u.op() == Op::Reduce || u.op() == Op::Stage)
        is_closed_ = is_closed_ || std::ranges::find(u.src().subspan(1), loop_) != u.src().end();
  }

  // A loop of one value's: each of its steps fetches all that one some steps later reads.
  void find_steps() {
    const int64_t moves = outside_.coefficient(loop_);
    if (moves <= 0 || is_store_) refuse("its steps read no blocks one after the other");
    surrounding_ = (RangeSet{2} << place_) - 1;
    find_lines();
    int64_t lines = 1;
    for (const Dimension& d : lattice_) lines = checked_mul(lines, d.size, "lines of a block");
    if (lines > kLinesAlong) refuse("a step reads too much");
    const int64_t steps = ceil_div(kBytesAhead, moves * element_.bytes());
    ahead_ = checked_mul(moves, steps, "a place");
  }

  void fetch_along(Kernel& out) const {
    std::vector<int64_t> sizes;
    for (const Dimension& d : lattice_) sizes.push_back(d.size);
    fetch_lines(out, add(to_uop(graph_, outside_), ahead_), sizes);
  }

  // So many lines of each dimension, from a place on.
  void fetch_lines(Kernel& out, const UOp& from, std::span<const int64_t> sizes) const {
    const UOp place = simplify_index(from);
    std::vector<int64_t> offsets{0};
    for (size_t i = 0; i < lattice_.size(); ++i) {
      std::vector<int64_t> more;
      for (int64_t n = 0; n < sizes[i]; ++n)
        for (const int64_t offset : offsets) more.push_back(offset + n * lattice_[i].stride);
      offsets = std::move(more);
    }
    for (const int64_t offset : offsets)
      out.prefetches.push_back({access_.src(0), add(place, offset), element_});
  }

  // Of several loads that of the last reduction: when it runs, the block is in the cache.
  void find_access() {
    const std::vector<UOp> order = topological(kernel_.roots);
    std::vector<UOp> loads;
    for (const UOp& u : order) {
      if (u.op() == Op::Load && u.src(0).int_arg() == option_.amount) loads.push_back(u);
      if (u.op() == Op::Reduce && (!longest_reduce_ || steps_of(u) >= steps_of(longest_reduce_)))
        longest_reduce_ = u;
    }
    if (loads.size() == 1) access_ = loads.front();
    for (const UOp& u : order) {
      if (u.op() == Op::Store && loads.empty() && u.src(0).int_arg() == option_.amount) access_ = u;
      if (loads.size() < 2 || u.op() != Op::Reduce) continue;
      for (const UOp& load : loads)
        if (depends_on_any(load, u.src().subspan(1))) access_ = load;
    }
    if (!access_)
      refuse(loads.empty() ? "it has no such parameter"
                           : "the parameter is read twice, and not for a reduction");
    if (std::ranges::any_of(access_.src(), [](const UOp& u) { return u.op() == Op::Place; }))
      refuse("data says which elements it wants");
    is_store_ = access_.op() == Op::Store;
    element_ = is_store_ ? access_.src(1).dtype() : access_.dtype();
    if (kLineBytes % element_.bytes() != 0) refuse("its elements do not fill a line");
    // What surrounds the access: not what a stage above it closes.
    surrounding_ = (RangeSet{1} << place_) | ((RangeSet{1} << place_) - 1);
    for (const UOp& u : order) {
      if (u.op() != Op::Stage) continue;
      const std::vector<UOp> below = topological({&u, 1});
      if (std::ranges::find(below, access_) == below.end()) continue;
      surrounding_ &= free_of(u);
      is_staged_ = true;
    }
  }

  // How often the reduction's step runs in one step of the option's loop.
  double steps_of(const UOp& reduce) const {
    double steps = 1;
    const RangeSet inside = free_of(reduce.src(0));
    for (size_t i = place_ + 1; i < kernel_.ranges.size(); ++i)
      if ((inside >> i & 1) && kernel_.ranges[i].kind == RangeKind::Loop)
        steps *= static_cast<double>(bounds(kernel_.ranges[i].range.src(0)).hi);
    return steps;
  }

  static bool depends_on_any(const UOp& load, std::span<const UOp> ranges) {
    const std::vector<UOp> below = topological({&load, 1});
    return std::ranges::any_of(
        ranges, [&](const UOp& r) { return std::ranges::find(below, r) != below.end(); });
  }

  void find_place() {
    const ViewArg& view = access_.view_arg();
    const size_t first = is_store_ ? 2 : 1;
    size_t symbolic = first + view.shape.size();
    for (int64_t n : view.shape) symbolic += n == kSymbolicDim ? 1 : 0;
    const auto number = [&](int64_t v) {
      has_sizes_of_run_ |= v == kSymbolicDim;
      return v == kSymbolicDim ? UOp(access_.src(symbolic++)) : graph_.integer(v);
    };
    UOp place = graph_.integer(0);
    for (size_t i = 0; i < view.shape.size(); ++i) {
      if (view.strides[i] < 0 && view.strides[i] != kSymbolicDim)
        refuse("what it reads has no known place");
      place = add(place, mul(access_.src(first + i), number(view.strides[i])));
      has_sizes_of_run_ |= view.shape[i] == kSymbolicDim;
      if (!has_sizes_of_run_) elements_ += (view.shape[i] - 1) * view.strides[i];
    }
    const std::optional<Affine> sum = affine(add(place, number(view.offset)));
    // Of blocks it is told where the last ends.
    if (!sum || (has_sizes_of_run_ && !is_closed_)) refuse("what it reads has no known place");
    outside_ = *sum;
  }

  bool surrounds(size_t i) const {
    const RangeKind kind = kernel_.ranges[i].kind;
    return (surrounding_ >> i & 1) && (kind == RangeKind::Loop || kind == RangeKind::Thread);
  }

  // How far the next block is: a step of the innermost loop outside whose steps are blocks.  What
  // is stored is wanted in the same step.
  void find_next() {
    const int64_t moves = surrounds(place_) ? outside_.coefficient(loop_) : 0;
    if (is_store_ && moves == 0) refuse("each of its steps stores the same block");
    if (moves != 0) {
      ahead_ = is_store_ ? 0 : moves;
    } else {
      rounds_ = loop_.src(0).is_const() ? loop_.src(0).const_int() : kRoundsUnknown;
      for (size_t i = 0; i < place_; ++i)
        if (const int64_t stride = outside_.coefficient(kernel_.ranges[i].range);
            surrounds(i) && stride != 0)
          ahead_ = stride;
      if (ahead_ == 0) refuse("the parameter is one block");
    }
    if (ahead_ < 0) refuse("the next block lies before this one");
  }

  // The block's lines, as a lattice: a run of memory, repeated.
  void find_lines() {
    std::vector<Dimension> parts;
    for (const AffineTerm& term : outside_.terms) {
      FreeRanges free;
      add_free_ranges(kernel_, {&term.atom, 1}, free);
      if (term.atom.op() != Op::Range && (free.at(term.atom.node()) & ~surrounding_))
        refuse("what it reads has no known place");
    }
    for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
      const UOp& r = kernel_.ranges[i].range;
      const int64_t stride = outside_.coefficient(r);
      if (stride == 0 || surrounds(i)) continue;
      if (!r.src(0).is_const()) refuse("the block has no known size");
      if (stride < 0) refuse("the block is walked backwards");
      parts.push_back({stride, r.src(0).const_int()});
      std::erase_if(outside_.terms, [&](const AffineTerm& term) { return term.atom == r; });
    }
    std::ranges::sort(parts, {}, &Dimension::stride);
    const int64_t line = kLineBytes / element_.bytes();
    int64_t run = 1;
    for (const Dimension& p : parts) {
      if (p.stride <= std::max(run, line)) {
        run = std::max(run, p.stride * (p.size - 1) + run);
      } else if (!lattice_.empty() && p.stride % lattice_.back().stride == 0 &&
                 p.stride / lattice_.back().stride <= lattice_.back().size) {
        lattice_.back().size += p.stride / lattice_.back().stride * (p.size - 1);
      } else {
        lattice_.push_back(p);
      }
    }
    // Steps of a window: what this block has of the next one is there already.
    for (Dimension& d : lattice_)
      if (const int64_t fresh = ahead_ / d.stride;
          ahead_ % d.stride == 0 && ahead_ > 0 && fresh < d.size) {
        outside_.constant += (d.size - fresh) * d.stride;
        d.size = fresh;
      }
    if (ahead_ > 0 && ahead_ < run) {
      outside_.constant += run - ahead_;
      run = ahead_;
    }
    lattice_.push_back({line, ceil_div(run, line)});
    reach_ = 1;
    for (const Dimension& d : lattice_) reach_ += d.stride * (d.size - 1);
  }

  // The loops inside of the loop that the longest reduction runs in: of those that read the
  // parameter itself, the last.
  std::vector<UOp> loops_inside() const {
    UOp reduce = longest_reduce_;
    if (!is_store_ && !is_staged_)
      for (const UOp& u : topological(kernel_.roots))
        if (u.op() == Op::Reduce && depends_on_any(access_, u.src().subspan(1))) reduce = u;
    if (!reduce) refuse("the kernel has no reduction");
    const RangeSet inside = free_of(reduce.src(0));
    std::vector<UOp> loops;
    for (size_t i = place_ + 1; i < kernel_.ranges.size(); ++i) {
      const KernelRange& r = kernel_.ranges[i];
      if (!(inside >> i & 1) || r.kind != RangeKind::Loop) continue;
      if (!r.range.src(0).is_const()) refuse("a loop inside has no known size");
      loops.push_back(r.range);
    }
    if (loops.empty()) refuse("the block has no loop");
    return loops;
  }

  // The loops are taken from outside until a step of them fetches few lines.
  void find_shares() {
    step_ = graph_.integer(0);
    for (const UOp& loop : loops_inside()) {
      const int64_t size = loop.src(0).const_int();
      step_ = add(mul(step_, size), loop);
      steps_ = checked_mul(steps_, size, "the steps of a loop");
      if (divide()) return;
    }
    refuse("the block has too few steps");
  }

  // Rounds share the lines of one dimension, and steps those of one, perhaps the same; a step
  // fetches all of the others.  Each index is a multiple of a loop, so that nothing is divided.
  bool divide() {
    int64_t fewest = kLinesOfStep + 1;
    for (size_t round = 0; round < lattice_.size(); ++round) {
      for (size_t step = 0; step < lattice_.size(); ++step) {
        int64_t count = 1;
        int64_t of_round = 1;
        int64_t of_step = 1;
        for (size_t i = 0; i < lattice_.size(); ++i) {
          int64_t size = lattice_[i].size;
          if (i == round) size = of_round = ceil_div(size, rounds_);
          if (i == step) size = of_step = ceil_div(size, steps_);
          count = count > kLinesOfStep ? count : checked_mul(count, size, "the lines of a block");
        }
        if (count >= fewest) continue;
        fewest = count;
        shares_ = {round, step, of_round, of_step};
      }
    }
    return fewest <= kLinesOfStep;
  }

  void fetch(Kernel& out) const {
    const auto& [round, step, of_round, of_step] = shares_;
    const int64_t walked = round == step ? of_round : lattice_[step].size;
    // More steps than lines: several for each, so that a round's lines are spread over it.
    int64_t steps_of_line = 1;
    while (of_step == 1 && steps_ >= 2 * steps_of_line * walked) steps_of_line *= 2;
    UOp place = add(to_uop(graph_, outside_), ahead_);
    if (elements_ > reach_) place = minimum(place, elements_ - reach_);
    if (rounds_ > 1)
      place = add(place, mul(minimum(mul(loop_, of_round), lattice_[round].size - of_round),
                             lattice_[round].stride));
    const UOp number = mul(floor_div(step_, steps_of_line), of_step);
    place = add(place, mul(minimum(number, walked - of_step), lattice_[step].stride));
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < lattice_.size(); ++i)
      sizes.push_back(i == step ? of_step : i == round ? of_round : lattice_[i].size);
    fetch_lines(out, place, sizes);
    // Where there turns out to be one round it fetches what another would have fetched.
    if (!loop_.src(0).is_const() && rounds_ > 1)
      fetch_lines(out,
                  add(place, mul(maximum(sub(graph_.integer(rounds_), loop_.src(0)), 0),
                                 of_round * lattice_[round].stride)),
                  sizes);
  }

  const Kernel& kernel_;
  const Option& option_;
  Graph& graph_;
  FreeRanges free_;
  size_t place_ = 0;
  UOp loop_;
  bool is_closed_ = false;  // the loop, by a reduction or a stage
  UOp longest_reduce_;
  UOp access_;
  bool is_store_ = false;
  bool is_staged_ = false;
  RangeSet surrounding_ = 0;
  DType element_;
  Affine outside_;
  int64_t elements_ = 1;
  bool has_sizes_of_run_ = false;
  int64_t ahead_ = 0;   // from a block to the next
  int64_t rounds_ = 1;  // of the loop, all of which have one block
  std::vector<Dimension> lattice_;
  int64_t reach_ = 1;  // elements from a block's first to its last line
  struct Shares {
    size_t round, step;  // the dimensions that they share
    int64_t of_round, of_step;
  };
  Shares shares_{};
  UOp step_;  // of loops inside: its number
  int64_t steps_ = 1;
};

}  // namespace

Kernel apply_prefetch(const Kernel& kernel, const Option& option) {
  return Prefetcher(kernel, option).run();
}

bool can_prefetch(const Kernel& kernel, const Option& option) {
  try {
    Prefetcher(kernel, option).find();
    return true;
  } catch (const Error& error) {
    if (error.status() != Status::InvalidArgument) throw;
    return false;
  }
}

}  // namespace tiny
