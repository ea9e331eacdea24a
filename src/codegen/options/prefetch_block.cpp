#include "codegen/options/prefetch_block.h"

#include <algorithm>

#include "base/checked.h"
#include "base/sort.h"

namespace tiny {

namespace {

using Dimension = PrefetchBlock::Dimension;

constexpr int64_t kRoundsUnknown = 2;  // share a block where a run says how many there are
constexpr int64_t kLinesAlong = 64;    // that a step of a reduction's loop fetches
constexpr int64_t kBytesAhead = 16384;

bool surrounds(const PrefetchRequest& request, RangeSet surrounding, size_t i) {
  const RangeKind kind = request.kernel.ranges[i].kind;
  return (surrounding >> i & 1) && (kind == RangeKind::Loop || kind == RangeKind::Thread);
}

void find_next(const PrefetchRequest& request, const PrefetchLoop& loop,
               const PrefetchAccess& access, PrefetchBlock& out) {
  const auto around = [&](size_t i) { return surrounds(request, access.surrounding, i); };
  const int64_t moves = around(loop.place) ? out.first.coefficient(loop.range) : 0;
  if (access.is_store && moves == 0) request.refuse("each of its steps stores the same block");
  if (moves != 0) {
    out.ahead = access.is_store ? 0 : moves;
  } else {
    const UOp& size = loop.range.src(0);
    out.rounds = size.is_const() ? size.const_int() : kRoundsUnknown;
    for (size_t i = 0; i < loop.place; ++i)
      if (const int64_t stride = out.first.coefficient(request.kernel.ranges[i].range);
          around(i) && stride != 0)
        out.ahead = stride;
    if (out.ahead == 0) request.refuse("the parameter is one block");
  }
  if (out.ahead < 0) request.refuse("the next block lies before this one");
}

// The ranges that walk a block, by stride; its first element is without them.
std::vector<Dimension> take_walks(const PrefetchRequest& request, RangeSet surrounding,
                                  PrefetchBlock& out) {
  const Kernel& kernel = request.kernel;
  for (const AffineTerm& term : out.first.terms) {
    FreeRanges free;
    add_free_ranges(kernel, {&term.atom, 1}, free);
    if (term.atom.op() != Op::Range && (free.at(term.atom.node()) & ~surrounding))
      request.refuse("what it reads has no known place");
  }
  std::vector<Dimension> parts;
  for (size_t i = 0; i < kernel.ranges.size(); ++i) {
    const UOp& r = kernel.ranges[i].range;
    const int64_t stride = out.first.coefficient(r);
    if (stride == 0 || surrounds(request, surrounding, i)) continue;
    if (!r.src(0).is_const()) request.refuse("the block has no known size");
    if (stride < 0) request.refuse("the block is walked backwards");
    parts.push_back({stride, r.src(0).const_int()});
    std::erase_if(out.first.terms, [&](const AffineTerm& term) { return term.atom == r; });
  }
  sort_stable(parts, {}, &Dimension::stride);
  return parts;
}

void find_lines(const PrefetchRequest& request, const PrefetchAccess& access, RangeSet surrounding,
                PrefetchBlock& out) {
  const int64_t line = kPrefetchedBytes / access.element.bytes();
  int64_t run = 1;
  for (const Dimension& p : take_walks(request, surrounding, out)) {
    if (p.stride <= std::max(run, line)) {
      run = std::max(run, p.stride * (p.size - 1) + run);
    } else if (!out.lattice.empty() && p.stride % out.lattice.back().stride == 0 &&
               p.stride / out.lattice.back().stride <= out.lattice.back().size) {
      out.lattice.back().size += p.stride / out.lattice.back().stride * (p.size - 1);
    } else {
      out.lattice.push_back(p);
    }
  }
  // Steps of a window: what this block has of the next one is there already.
  for (Dimension& d : out.lattice)
    if (const int64_t fresh = out.ahead / d.stride;
        out.ahead % d.stride == 0 && out.ahead > 0 && fresh < d.size) {
      out.first.constant += (d.size - fresh) * d.stride;
      d.size = fresh;
    }
  if (out.ahead > 0 && out.ahead < run) {
    out.first.constant += run - out.ahead;
    run = out.ahead;
  }
  out.lattice.push_back({line, ceil_div(run, line)});
  for (const Dimension& d : out.lattice) out.reach += d.stride * (d.size - 1);
}

}  // namespace

PrefetchBlock find_prefetch_block(const PrefetchRequest& request, const PrefetchLoop& loop,
                                  const PrefetchAccess& access) {
  PrefetchBlock block;
  block.first = access.place;
  find_next(request, loop, access, block);
  find_lines(request, access, access.surrounding, block);
  return block;
}

PrefetchBlock find_prefetch_step(const PrefetchRequest& request, const PrefetchLoop& loop,
                                 const PrefetchAccess& access) {
  PrefetchBlock block;
  block.first = access.place;
  const int64_t moves = block.first.coefficient(loop.range);
  if (moves <= 0 || access.is_store) request.refuse("its steps read no blocks one after the other");
  find_lines(request, access, (RangeSet{2} << loop.place) - 1, block);
  int64_t lines = 1;
  for (const Dimension& d : block.lattice) lines = checked_mul(lines, d.size, "lines of a block");
  if (lines > kLinesAlong) request.refuse("a step reads too much");
  const int64_t steps = ceil_div(kBytesAhead, moves * access.element.bytes());
  block.ahead = checked_mul(moves, steps, "a place");
  return block;
}

}  // namespace tiny
