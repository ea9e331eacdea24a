#include "codegen/options/prefetch_access.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "ir/bounds.h"
#include "ir/build.h"

namespace tiny {

namespace {

// How often the reduction's step runs in one step of the option's loop.
double steps_of(const PrefetchRequest& request, const PrefetchLoop& loop, const UOp& reduce) {
  double steps = 1;
  const RangeSet inside = request.free_of(reduce.src(0));
  const std::vector<KernelRange>& ranges = request.kernel.ranges;
  for (size_t i = loop.place + 1; i < ranges.size(); ++i)
    if ((inside >> i & 1) && ranges[i].kind == RangeKind::Loop)
      steps *= static_cast<double>(bounds(ranges[i].range.src(0)).hi);
  return steps;
}

// Of several loads that of the last reduction: when it runs, the block is in the cache.
void find_op(const PrefetchRequest& request, const PrefetchLoop& loop, std::span<const UOp> order,
             PrefetchAccess& out) {
  std::vector<UOp> loads;
  const int64_t parameter = request.option.amount;
  for (const UOp& u : order) {
    if (u.op() == Op::Load && u.src(0).int_arg() == parameter) loads.push_back(u);
    if (u.op() == Op::Reduce &&
        (!out.longest_reduce ||
         steps_of(request, loop, u) >= steps_of(request, loop, out.longest_reduce)))
      out.longest_reduce = u;
  }
  if (loads.size() == 1) out.op = loads.front();
  for (const UOp& u : order) {
    if (u.op() == Op::Store && loads.empty() && u.src(0).int_arg() == parameter) out.op = u;
    if (loads.size() < 2 || u.op() != Op::Reduce) continue;
    for (const UOp& load : loads)
      if (depends_on_any(load, u.src().subspan(1))) out.op = load;
  }
  if (!out.op)
    request.refuse(loads.empty() ? "it has no such parameter"
                                 : "the parameter is read twice, and not for a reduction");
}

// What surrounds the access: not what a stage above it closes.
void find_surrounding(const PrefetchRequest& request, const PrefetchLoop& loop,
                      std::span<const UOp> order, PrefetchAccess& out) {
  out.surrounding = (RangeSet{1} << loop.place) | ((RangeSet{1} << loop.place) - 1);
  for (const UOp& u : order) {
    if (u.op() != Op::Stage) continue;
    const std::vector<UOp> below = topological({&u, 1});
    if (std::ranges::find(below, out.op) == below.end()) continue;
    out.surrounding &= request.free_of(u);
    out.is_staged = true;
  }
}

void find_place(const PrefetchRequest& request, const PrefetchLoop& loop, PrefetchAccess& out) {
  const UOp& access = out.op;
  const ViewArg& view = access.view_arg();
  const size_t first = out.is_store ? 2 : 1;
  size_t symbolic = first + view.shape.size();
  for (int64_t n : view.shape) symbolic += n == kSymbolicDim ? 1 : 0;
  bool has_sizes_of_run = false;
  const auto number = [&](int64_t v) {
    has_sizes_of_run |= v == kSymbolicDim;
    return v == kSymbolicDim ? UOp(access.src(symbolic++)) : request.graph.integer(v);
  };
  UOp place = request.graph.integer(0);
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.strides[i] < 0 && view.strides[i] != kSymbolicDim)
      request.refuse("what it reads has no known place");
    place = add(place, mul(access.src(first + i), number(view.strides[i])));
    has_sizes_of_run |= view.shape[i] == kSymbolicDim;
    if (!has_sizes_of_run) out.elements += (view.shape[i] - 1) * view.strides[i];
  }
  const std::optional<Affine> sum = affine(add(place, number(view.offset)));
  // Of blocks it is told where the last ends.
  if (!sum || (has_sizes_of_run && !loop.is_closed))
    request.refuse("what it reads has no known place");
  out.place = *sum;
}

}  // namespace

PrefetchRequest::PrefetchRequest(const Kernel& for_kernel, const Option& wanted)
    : kernel(for_kernel), option(wanted), graph(for_kernel.roots.front().graph()) {
  add_free_ranges(kernel, kernel.roots, free);
}

void PrefetchRequest::refuse(const char* why) const {
  throw_error(Status::InvalidArgument, "option ", to_text({&option, 1}),
              " does not fit the kernel: ", why);
}

PrefetchLoop find_prefetch_loop(const PrefetchRequest& request) {
  PrefetchLoop loop;
  loop.place = request.kernel.find_range(request.option.range);
  if (loop.place == request.kernel.ranges.size()) request.refuse("it has no such range");
  const KernelRange& range = request.kernel.ranges[loop.place];
  loop.range = range.range;
  if (range.kind != RangeKind::Loop) request.refuse("the range is no loop");
  for (const UOp& u : topological(request.kernel.roots))
    if (u.op() == Op::Reduce || u.op() == Op::Stage)
      loop.is_closed =
          loop.is_closed || std::ranges::find(u.src().subspan(1), loop.range) != u.src().end();
  return loop;
}

PrefetchAccess find_prefetch_access(const PrefetchRequest& request, const PrefetchLoop& loop) {
  PrefetchAccess out;
  const std::vector<UOp> order = topological(request.kernel.roots);
  find_op(request, loop, order, out);
  const std::span<const UOp> indices = out.op.src().subspan(out.op.op() == Op::Store ? 2 : 1);
  if (std::ranges::any_of(out.op.src(), [](const UOp& u) { return u.op() == Op::Place; }) ||
      std::ranges::any_of(topological(indices), [](const UOp& u) { return u.op() == Op::Reduce; }))
    request.refuse("data says which elements it wants");
  out.is_store = out.op.op() == Op::Store;
  out.element = out.is_store ? out.op.src(1).dtype() : out.op.dtype();
  if (kPrefetchedBytes % out.element.bytes() != 0)
    request.refuse("its elements do not fill a line");
  find_surrounding(request, loop, order, out);
  find_place(request, loop, out);
  return out;
}

bool depends_on_any(const UOp& value, std::span<const UOp> ranges) {
  const std::vector<UOp> below = topological({&value, 1});
  return std::ranges::any_of(
      ranges, [&](const UOp& r) { return std::ranges::find(below, r) != below.end(); });
}

}  // namespace tiny
