#include "codegen/options/prefetch.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "codegen/options/prefetch_access.h"
#include "codegen/options/prefetch_block.h"
#include "ir/build.h"
#include "rules/symbolic.h"

namespace tiny {

namespace {

using Dimension = PrefetchBlock::Dimension;

constexpr int64_t kLinesOfStep = 4;  // so that fetching does not hold up what else a step does

// The lines of a block, shared among the steps of the loops inside of the option's.
struct PrefetchShares {
  UOp step;             // of loops inside: its number
  int64_t steps = 1;    // of them
  size_t by_round = 0;  // the dimensions that rounds and steps share
  size_t by_step = 0;
  int64_t of_round = 0;  // lines of those
  int64_t of_step = 0;
};

// The loops inside of the option's that the longest reduction runs in: of those that read the
// parameter itself, the last.
std::vector<UOp> loops_inside(const PrefetchRequest& request, const PrefetchLoop& loop,
                              const PrefetchAccess& access) {
  const Kernel& kernel = request.kernel;
  UOp reduce = access.longest_reduce;
  if (!access.is_store && !access.is_staged)
    for (const UOp& u : topological(kernel.roots))
      if (u.op() == Op::Reduce && depends_on_any(access.op, u.src().subspan(1))) reduce = u;
  if (!reduce) request.refuse("the kernel has no reduction");
  const RangeSet inside = request.free_of(reduce.src(0));
  std::vector<UOp> loops;
  for (size_t i = loop.place + 1; i < kernel.ranges.size(); ++i) {
    const KernelRange& r = kernel.ranges[i];
    if (!(inside >> i & 1) || r.kind != RangeKind::Loop) continue;
    if (!r.range.src(0).is_const()) request.refuse("a loop inside has no known size");
    loops.push_back(r.range);
  }
  if (loops.empty()) request.refuse("the block has no loop");
  return loops;
}

// Rounds share the lines of one dimension, and steps those of one, perhaps the same; a step fetches
// all of the others.  Each index is a multiple of a loop, so that nothing is divided.
bool divide(const PrefetchBlock& block, PrefetchShares& shares) {
  const std::vector<Dimension>& lattice = block.lattice;
  int64_t fewest = kLinesOfStep + 1;
  for (size_t round = 0; round < lattice.size(); ++round) {
    for (size_t step = 0; step < lattice.size(); ++step) {
      int64_t count = 1;
      int64_t of_round = 1;
      int64_t of_step = 1;
      for (size_t i = 0; i < lattice.size(); ++i) {
        int64_t size = lattice[i].size;
        if (i == round) size = of_round = ceil_div(size, block.rounds);
        if (i == step) size = of_step = ceil_div(size, shares.steps);
        count = count > kLinesOfStep ? count : checked_mul(count, size, "the lines of a block");
      }
      if (count >= fewest) continue;
      fewest = count;
      shares.by_round = round;
      shares.by_step = step;
      shares.of_round = of_round;
      shares.of_step = of_step;
    }
  }
  return fewest <= kLinesOfStep;
}

// The loops are taken from outside until a step of them fetches few lines.
PrefetchShares find_shares(const PrefetchRequest& request, const PrefetchLoop& loop,
                           const PrefetchAccess& access, const PrefetchBlock& block) {
  PrefetchShares shares;
  shares.step = request.graph.integer(0);
  for (const UOp& inside : loops_inside(request, loop, access)) {
    const int64_t size = inside.src(0).const_int();
    shares.step = add(mul(shares.step, size), inside);
    shares.steps = checked_mul(shares.steps, size, "the steps of a loop");
    if (divide(block, shares)) return shares;
  }
  request.refuse("the block has too few steps");
}

class Prefetcher {
 public:
  // An error if the option does not fit the kernel.
  Prefetcher(const Kernel& kernel, const Option& option)
      : request_(kernel, option),
        loop_(find_prefetch_loop(request_)),
        access_(find_prefetch_access(request_, loop_)) {
    if (loop_.is_closed) {
      block_ = find_prefetch_step(request_, loop_, access_);
    } else {
      block_ = find_prefetch_block(request_, loop_, access_);
      shares_ = find_shares(request_, loop_, access_, block_);
    }
  }

  Kernel run() const {
    Kernel out = request_.kernel;
    if (loop_.is_closed)
      fetch_along(out);
    else
      fetch_share(out);
    return out;
  }

 private:
  UOp next_block() const { return add(to_uop(request_.graph, block_.first), block_.ahead); }

  void fetch_along(Kernel& out) const {
    std::vector<int64_t> sizes;
    for (const Dimension& d : block_.lattice) sizes.push_back(d.size);
    fetch_lines(out, next_block(), sizes);
  }

  // So many lines of each dimension, from a place on.
  void fetch_lines(Kernel& out, const UOp& from, std::span<const int64_t> sizes) const {
    const UOp place = simplify_index(from);
    std::vector<int64_t> offsets{0};
    for (size_t i = 0; i < block_.lattice.size(); ++i) {
      std::vector<int64_t> more;
      for (int64_t n = 0; n < sizes[i]; ++n)
        for (const int64_t offset : offsets) more.push_back(offset + n * block_.lattice[i].stride);
      offsets = std::move(more);
    }
    for (const int64_t offset : offsets)
      out.prefetches.push_back({access_.op.src(0), add(place, offset), access_.element});
  }

  void fetch_share(Kernel& out) const {
    const size_t round = shares_.by_round, step = shares_.by_step;
    const int64_t of_round = shares_.of_round, of_step = shares_.of_step;
    const std::vector<Dimension>& lattice = block_.lattice;
    const int64_t walked = round == step ? of_round : lattice[step].size;
    // More steps than lines: several for each, so that a round's lines are spread over it.
    int64_t steps_of_line = 1;
    while (of_step == 1 && shares_.steps >= 2 * steps_of_line * walked) steps_of_line *= 2;
    const UOp& loop = loop_.range;
    UOp place = next_block();
    if (access_.elements > block_.reach) place = minimum(place, access_.elements - block_.reach);
    if (block_.rounds > 1)
      place = add(place, mul(minimum(mul(loop, of_round), lattice[round].size - of_round),
                             lattice[round].stride));
    const UOp number = mul(floor_div(shares_.step, steps_of_line), of_step);
    place = add(place, mul(minimum(number, walked - of_step), lattice[step].stride));
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < lattice.size(); ++i)
      sizes.push_back(i == step ? of_step : i == round ? of_round : lattice[i].size);
    fetch_lines(out, place, sizes);
    // Where there turns out to be one round it fetches what another would have fetched.
    if (!loop.src(0).is_const() && block_.rounds > 1)
      fetch_lines(
          out,
          add(place, mul(maximum(sub(request_.graph.integer(block_.rounds), loop.src(0)), 0),
                         of_round * lattice[round].stride)),
          sizes);
  }

  PrefetchRequest request_;
  PrefetchLoop loop_;
  PrefetchAccess access_;
  PrefetchBlock block_;
  PrefetchShares shares_;
};

}  // namespace

Kernel apply_prefetch(const Kernel& kernel, const Option& option) {
  return Prefetcher(kernel, option).run();
}

bool can_prefetch(const Kernel& kernel, const Option& option) {
  try {
    const Prefetcher fits(kernel, option);
    return true;
  } catch (const Error& error) {
    if (error.status() != Status::InvalidArgument) throw;
    return false;
  }
}

}  // namespace tiny
