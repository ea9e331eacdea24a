#include "codegen/prefetch_option.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "base/error.h"
#include "ir/affine.h"
#include "ir/build.h"

namespace tiny {

namespace {

constexpr int64_t kLineBytes = 64;
constexpr int64_t kLinesMax = 4;  // in a step of the innermost loop

class Prefetcher {
 public:
  Prefetcher(const Kernel& kernel, const Option& option)
      : kernel_(kernel), option_(option), graph_(kernel.roots.front().graph()) {}

  Kernel run() {
    find_loop();
    find_load();
    find_block();
    // Each step of the loop fetches its share; a step of the innermost loop a power of two of
    // elements, so that its address is formed by a shift.
    const int64_t line = kLineBytes / element_.bytes();
    const int64_t share = round_up(ceil_div(block_, rounds_), line);
    const int64_t step =
        static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(ceil_div(share, steps_))));
    if (step > kLinesMax * line) refuse("the block has too few steps");
    const int64_t reach = std::max(block_, share * (rounds_ - 1) + step * steps_);
    if (reach > elements_) refuse("the parameter is one block");
    const UOp next = minimum(add(to_uop(graph_, outside_), ahead_), elements_ - reach);
    const UOp done = rounds_ > 1 ? mul(loop_, share) : graph_.integer(0);
    const UOp index = add(add(next, done), mul(position_, step));
    Kernel out = kernel_;
    for (int64_t at = 0; at < step; at += line)
      out.prefetches.push_back({load_.src(0), add(index, at), element_});
    return out;
  }

 private:
  [[noreturn]] void refuse(const char* why) const {
    throw Error(Status::InvalidArgument,
                cat("option ", to_text({&option_, 1}), " does not fit the kernel: ", why));
  }

  void find_loop() {
    place_ = kernel_.find_range(option_.range);
    if (place_ == kernel_.ranges.size()) refuse("it has no such range");
    const KernelRange& range = kernel_.ranges[place_];
    loop_ = range.range;
    if (range.kind != RangeKind::Loop || range.reduced || !loop_.src(0).is_const())
      refuse("the range is no loop of known size over elements that are stored");
    rounds_ = loop_.src(0).const_int();
  }

  // Of several loads that of the last reduction: when it runs, the block is in the cache.
  void find_load() {
    const std::vector<UOp> order = topological(kernel_.roots);
    std::vector<UOp> loads;
    for (const UOp& u : order)
      if (u.op() == Op::Load && u.src(0).int_arg() == option_.amount) loads.push_back(u);
    if (loads.empty()) refuse("the parameter is not read");
    if (loads.size() == 1) load_ = loads.front();
    for (const UOp& u : order) {
      if (loads.size() == 1 || u.op() != Op::Reduce) continue;
      for (const UOp& load : loads)
        if (depends_on_any(load, u.src().subspan(1))) load_ = load;
    }
    if (!load_) refuse("the parameter is read twice, and not for a reduction");
    element_ = load_.dtype();
    if (kLineBytes % element_.bytes() != 0) refuse("its elements do not fill a line");
  }

  static bool depends_on_any(const UOp& load, std::span<const UOp> ranges) {
    const std::vector<UOp> below = topological({&load, 1});
    return std::ranges::any_of(
        ranges, [&](const UOp& r) { return std::ranges::find(below, r) != below.end(); });
  }

  // Where the load is, and the part of the sum that belongs to loops inside.
  void find_block() {
    const ViewArg& view = load_.view_arg();
    outside_.constant = view.offset;
    elements_ = 1;
    for (size_t i = 0; i < view.shape.size(); ++i) {
      const auto index = affine(load_.src(1 + i));
      if (!index || view.shape[i] == kSymbolicDim || view.strides[i] < 0 ||
          view.offset == kSymbolicDim)
        refuse("what it reads has no known place");
      const auto sum = add_scaled(outside_, *index, view.strides[i]);
      if (!sum) refuse("what it reads has no known place");
      outside_ = *sum;
      elements_ += (view.shape[i] - 1) * view.strides[i];
    }
    struct Part {
      int64_t stride;
      size_t at;
    };
    std::vector<Part> parts;
    for (size_t i = place_; i < kernel_.ranges.size(); ++i) {
      const UOp& r = kernel_.ranges[i].range;
      const int64_t stride = outside_.coefficient(r);
      if (stride == 0) continue;
      if (i == place_) {  // a block for each step: the next is fetched during this one
        if (stride < 0) refuse("the next block lies before this one");
        rounds_ = 1;
        ahead_ = stride;
        continue;
      }
      if (!r.src(0).is_const()) refuse("the block has no known size");
      parts.push_back({stride, i});
    }
    std::erase_if(outside_.terms, [&](const AffineTerm& term) {
      return std::ranges::any_of(
          parts, [&](const Part& p) { return kernel_.ranges[p.at].range == term.atom; });
    });
    std::ranges::sort(parts, {}, &Part::stride);
    position_ = graph_.integer(0);
    block_ = 1;
    for (const Part& p : parts) {
      const KernelRange& r = kernel_.ranges[p.at];
      if (p.stride != block_) refuse("the block is no run of memory");
      const int64_t size = r.range.src(0).const_int();
      if (r.kind == RangeKind::Loop) {
        position_ = add(position_, mul(r.range, steps_));
        steps_ *= size;
      } else if (steps_ > 1) {
        refuse("the block's loops are not its outermost");
      }
      block_ *= size;
    }
    if (steps_ < 2) refuse("the block has no loop");
    if (ahead_ == 0) ahead_ = block_;
  }

  const Kernel& kernel_;
  const Option& option_;
  Graph& graph_;
  size_t place_ = 0;
  UOp loop_;
  int64_t rounds_ = 1;  // of the loop
  UOp load_;
  DType element_;
  Affine outside_;
  UOp position_;       // in the block: a number of steps
  int64_t steps_ = 1;  // of the loops inside
  int64_t block_ = 1;  // elements
  int64_t ahead_ = 0;  // from a block to the next
  int64_t elements_ = 1;
};

}  // namespace

Kernel apply_prefetch(const Kernel& kernel, const Option& option) {
  return Prefetcher(kernel, option).run();
}

bool can_prefetch(const Kernel& kernel, const Option& option) {
  try {
    Prefetcher(kernel, option).run();
    return true;
  } catch (const Error& error) {
    if (error.status() != Status::InvalidArgument) throw;
    return false;
  }
}

}  // namespace tiny
