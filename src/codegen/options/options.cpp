#include "codegen/options/options.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "base/sort.h"
#include "codegen/options/group_matrix.h"
#include "codegen/options/prefetch.h"
#include "codegen/options/stage.h"
#include "codegen/options/stream.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/dot.h"

namespace tiny {

namespace {

[[noreturn]] void refuse(const Option& option, std::string_view why) {
  throw_error(Status::InvalidArgument, "option ", to_text({&option, 1}),
              " does not fit the kernel: ", why);
}

size_t find_range(const Kernel& kernel, const Option& option, int64_t number) {
  const size_t at = kernel.find_range(number);
  if (at == kernel.ranges.size()) refuse(option, cat("it has no range r", number));
  return at;
}

// The split of a range: its value, and the two ranges that the value is a sum of.
struct Split {
  UOp range;
  UOp sum;
  UOp outer;  // not a range if it would have one value
  UOp inner;
  int64_t size = 1;
};

// The position of `range` among those that a Reduce or Stage closes; 0 if it is not there.
size_t closed_at(const UOp& closer, const UOp& range) {
  for (size_t i = 1; i < closer.src().size(); ++i)
    if (closer.src(i) == range) return i;
  return 0;
}

// `u` over new sources.  What closes the range closes its two ranges; a Stage has a dimension for
// each, and is indexed by quotient and remainder.
UOp split_node(const UOp& u, std::vector<UOp>& src, const Split& split) {
  if (u == split.range) return split.sum;
  const bool indexes = u.op() == Op::Index;
  if (!indexes && u.op() != Op::Reduce && u.op() != Op::Stage) return u.with_src(src);
  const size_t at = closed_at(indexes ? u.src(0) : u, split.range);
  if (at == 0) return u.with_src(src);
  const auto place = src.begin() + static_cast<int64_t>(at);
  const bool two = split.outer.op() == Op::Range;
  if (indexes) {
    const UOp index = *place;
    if (two) *place = floor_mod(index, split.size);
    if (two) src.insert(place, floor_div(index, split.size));
    return u.graph().make(Op::Index, src);
  }
  *place = split.inner;
  if (two) src.insert(place, split.outer);
  if (u.op() == Op::Reduce) return u.with_src(src);
  StageArg arg = u.stage_arg();
  const auto stride = arg.strides.begin() + static_cast<int64_t>(at) - 1;
  if (two) arg.strides.insert(stride, checked_mul(*stride, split.size, "a stage's stride"));
  return u.graph().make(Op::Stage, src, std::move(arg));
}

// A loop that values run along is walked step by step, in order.
void refuse_running(std::span<const UOp> nodes, const Option& option, const UOp& range) {
  if (runs_along(nodes, range)) refuse(option, "values run along it");
}

// The order in which loops walk the steps of places.
void refuse_disorder(const Kernel& before, const Kernel& after, const Option& option) {
  const RangeSet ordered = ordered_ranges(before);
  size_t last = 0;
  for (size_t i = 0; i < before.ranges.size(); ++i) {
    if (!(ordered & bit(i))) continue;
    const size_t now = after.position(before.ranges[i].range);
    if (now < last) refuse(option, "the loops are of steps that go in their order");
    last = now;
  }
}

Kernel tile(const Kernel& kernel, const Option& option) {
  Kernel out = kernel;
  const size_t at = find_range(kernel, option, option.range);
  const UOp r = kernel.ranges[at].range;
  if (option.amount < 1) refuse(option, "a tile has at least one element");
  if (kernel.ranges[at].kind != RangeKind::Loop) refuse(option, "only a loop can be tiled");
  refuse_running(topological(kernel.roots), option, r);
  Graph& graph = r.graph();
  const UOp size = r.src(0);
  const UOp count = size.is_const() ? graph.integer(ceil_div(size.const_int(), option.amount))
                                    : floor_div(add(size, option.amount - 1), option.amount);
  const UOp outer = graph.make(Op::Range, {count}, r.int_arg());
  const UOp inner =
      graph.make(Op::Range, {graph.integer(option.amount)}, kernel.next_range_number());
  // An outer range of one value is no range.
  const UOp outer_value = count.is_const_int(1) ? graph.integer(0) : outer;
  const UOp sum = add(mul(outer_value, option.amount), inner);
  const Split split{r, sum, outer_value, inner, option.amount};
  map_kernel(out, [&](const UOp& u, std::vector<UOp>& src) { return split_node(u, src, split); });
  if (!size.is_const() || size.const_int() % option.amount != 0)
    out.facts.push_back(add(sub(size, sum), -1));
  KernelRange second = kernel.ranges[at];
  second.range = inner;
  second.overlaps = false;
  second.rooms = 1;
  out.ranges[at].range = outer;
  out.ranges.insert(out.ranges.begin() + static_cast<int64_t>(at) + 1, second);
  if (count.is_const_int(1)) out.ranges.erase(out.ranges.begin() + static_cast<int64_t>(at));
  return out;
}

Kernel set_kind(const Kernel& kernel, const Option& option, RangeKind kind) {
  Kernel out = kernel;
  const size_t at = find_range(kernel, option, option.range);
  KernelRange& r = out.ranges[at];
  if (r.kind != RangeKind::Loop) refuse(option, "the range has a kind already");
  const std::vector<UOp> nodes = topological(kernel.roots);
  refuse_running(nodes, option, r.range);
  if (ordered_ranges(kernel) & bit(at)) refuse(option, "its steps go one after the other");
  const UOp size = r.range.src(0);
  FreeRanges free;
  const auto depends = [&](const UOp& u) {
    add_free_ranges(kernel, {&u, 1}, free);
    return (free.at(u.node()) & (RangeSet{1} << at)) != 0;
  };
  if (kind == RangeKind::Thread) {
    if (at != thread_ranges(kernel)) refuse(option, "threads share the outermost loops");
    for (const UOp& root : kernel.roots)
      if (root.op() == Op::Store && !depends(root))
        refuse(option, "a store does not have the range");
    r.kind = kind;
    return out;
  }
  if (!size.is_const()) refuse(option, "its size is not a constant");
  if (kind == RangeKind::Vec &&
      (size.const_int() < 2 || (size.const_int() & (size.const_int() - 1)) != 0))
    refuse(option, "lanes are a power of two above one");
  for (const UOp& u : nodes)
    if (u.op() == Op::Stage && depends(u))
      refuse(option, "a stage is filled anew for each of its steps");
  r.kind = kind;
  return out;
}

// Why the nodes of a kernel cannot have a range among the threads of a group; empty: they can.
std::string why_not_local(const Kernel& kernel, size_t at, RangeSet same_axis) {
  FreeRanges free;
  add_free_ranges(kernel, kernel.roots, free);
  const UOp& range = kernel.ranges[at].range;
  const auto depends_on_it = [&](const UOp& fact) { return reaches(fact, range); };
  for (const UOp& u : topological(kernel.roots)) {
    RangeSet over = free.at(u.node());
    const bool depends = (over & bit(at)) != 0;
    for (size_t i = 1; closes_ranges(u) && i < u.src().size(); ++i)
      over |= bit(kernel.position(u.src(i)));
    if ((over & bit(at)) && std::popcount(over & same_axis) > 1)
      return "a value depends on another range of the axis";
    const bool is_shared = is_stage(u) && u.stage_arg().is_shared;
    if (is_shared && depends) return "a stage that the group shares is filled anew for each thread";
    if (closed_at(u, range) == 0) continue;
    if (is_matrix_sum(u) && std::ranges::any_of(kernel.facts, depends_on_it))
      return "threads would part at a product of matrices";
    if (u.op() == Op::Last) return "a value runs along it";
    if (is_stage(u) && !is_shared) return "a stage that it fills is of each thread";
    if (u.op() == Op::Reduce &&
        !std::has_single_bit(static_cast<uint64_t>(range.src(0).const_int())))
      return "so many threads that have parts of a sum are a power of two";
  }
  return {};
}

// Ranges of one axis are the same thread: they have one size, and no value is over two of them.
Kernel set_local(const Kernel& kernel, const Option& option) {
  Kernel out = kernel;
  const size_t at = find_range(kernel, option, option.range);
  KernelRange& r = out.ranges[at];
  if (r.kind != RangeKind::Loop) refuse(option, "the range has a kind already");
  if (option.amount >= static_cast<int64_t>(kGroupAxes))
    refuse(option, "a group has the axes 0 to 2");
  const UOp size = r.range.src(0);
  if (!size.is_const()) refuse(option, "its size is not a constant");
  refuse_running(topological(kernel.roots), option, r.range);
  if (ordered_ranges(kernel) & bit(at)) refuse(option, "its steps go one after the other");
  r.kind = RangeKind::Local;
  r.axis = static_cast<uint8_t>(option.amount);
  RangeSet same_axis = 0;
  for (size_t i = 0; i < out.ranges.size(); ++i) {
    if (out.ranges[i].kind != RangeKind::Local || out.ranges[i].axis != r.axis) continue;
    same_axis |= bit(i);
    if (!(out.ranges[i].range.src(0) == size)) refuse(option, "the axis has another size");
  }
  if (const std::string why = why_not_local(kernel, at, same_axis); !why.empty())
    refuse(option, why);
  return out;
}

// Every sum over the range is one of products whose factors have its steps; nothing else that is
// computed once for several steps stands between.
Kernel set_dot(const Kernel& kernel, const Option& option) {
  Kernel out = kernel;
  const size_t at = find_range(kernel, option, option.range);
  const UOp& r = kernel.ranges[at].range;
  if (kernel.ranges[at].kind != RangeKind::Loop) refuse(option, "the range has a kind already");
  FreeRanges free;
  add_free_ranges(kernel, kernel.roots, free);
  const auto depends = [&](const UOp& u) { return (free.at(u.node()) & (RangeSet{1} << at)) != 0; };
  bool any = false;
  for (const UOp& u : topological(kernel.roots)) {
    const bool closes = (u.op() == Op::Reduce || u.op() == Op::Stage) && closed_at(u, r) != 0;
    if (!closes) {
      if (depends(u) && (u.op() == Op::Reduce || u.op() == Op::Stage || u.op() == Op::Store))
        refuse(option, "a value depends on it that is no factor of a sum");
      continue;
    }
    const std::optional<DotProduct> product = dot_product(u);
    if (!product) refuse(option, "what it closes is no sum of products of narrow values");
    if (!r.src(0).is_const_int(dot_steps(product->kind)))
      refuse(option, cat("a word has ", dot_steps(product->kind), " steps"));
    if (!depends(product->a) || !depends(product->b))
      refuse(option, "a factor does not depend on it");
    for (const UOp& other : u.src().subspan(1))
      if (kernel.ranges[kernel.position(other)].kind == RangeKind::Dot)
        refuse(option, "its sum has a word already");
    any = true;
  }
  if (!any) refuse(option, "no sum closes it");
  out.ranges[at].kind = RangeKind::Dot;
  return out;
}

Kernel reorder(const Kernel& kernel, const Option& option) {
  Kernel out = kernel;
  std::vector<size_t> places;
  for (int64_t number : option.list) places.push_back(find_range(kernel, option, number));
  std::vector<size_t> sorted = places;
  sort_stable(sorted);
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    refuse(option, "a range is named twice");
  for (size_t i = 0; i < places.size(); ++i) out.ranges[sorted[i]] = kernel.ranges[places[i]];
  for (size_t i = 0; i < thread_ranges(kernel); ++i)
    if (!(out.ranges[i].range == kernel.ranges[i].range))
      refuse(option, "the loops that threads share stay outermost");
  refuse_disorder(kernel, out, option);
  return out;
}

Kernel bypass(const Kernel& kernel, const Option& option) {
  if (option.amount >= std::ssize(kernel.params)) refuse(option, "it has no such parameter");
  Kernel out = kernel;
  KernelParam& param = out.params[static_cast<size_t>(option.amount)];
  if (!param.written || param.read) refuse(option, "the parameter is not one that is only stored");
  if (param.bypass) refuse(option, "it is said already");
  param.bypass = true;
  return out;
}

Kernel overlap(const Kernel& kernel, const Option& option) {
  Kernel out = kernel;
  KernelRange& r = out.ranges[find_range(kernel, option, option.range)];
  if ((r.kind != RangeKind::Loop && r.kind != RangeKind::Thread) || r.reduced)
    refuse(option, "the range is no loop over elements that are stored");
  if (r.overlaps) refuse(option, "it is said already");
  if (stores_by_index(kernel)) refuse(option, "steps may read what others store");
  r.overlaps = true;
  return out;
}

Kernel run_ahead(const Kernel& kernel, const Option& option) {
  constexpr int64_t kRoomsMax = 8;
  Kernel out = kernel;
  const size_t at = find_range(kernel, option, option.range);
  KernelRange& r = out.ranges[at];
  if (r.kind != RangeKind::Loop || r.rooms > 1) refuse(option, "the range has a kind already");
  if (option.amount < 2 || option.amount > kRoomsMax) refuse(option, "there are 2 to 8 rooms");
  FreeRanges free;
  add_free_ranges(kernel, kernel.roots, free);
  const auto is_shared_inside = [&](const UOp& u) {
    return is_stage(u) && u.stage_arg().is_shared && (free.at(u.node()) & bit(at)) != 0;
  };
  if (std::ranges::none_of(topological(kernel.roots), is_shared_inside))
    refuse(option, "a group shares nothing that is filled in each of its steps");
  r.rooms = static_cast<uint8_t>(option.amount);
  return out;
}

}  // namespace

Kernel apply_option(const Kernel& kernel, const Option& option) {
  switch (option.kind) {
    case OptionKind::Tile:
      return tile(kernel, option);
    case OptionKind::Vec:
      return set_kind(kernel, option, RangeKind::Vec);
    case OptionKind::Upcast:
      return set_kind(kernel, option, RangeKind::Upcast);
    case OptionKind::Unroll:
      return set_kind(kernel, option, RangeKind::Unroll);
    case OptionKind::Thread:
      return set_kind(kernel, option, RangeKind::Thread);
    case OptionKind::Order:
      return reorder(kernel, option);
    case OptionKind::Dot:
      return set_dot(kernel, option);
    case OptionKind::Stage:
      return apply_stage(kernel, option);
    case OptionKind::Prefetch:
      return apply_prefetch(kernel, option);
    case OptionKind::Bypass:
      return bypass(kernel, option);
    case OptionKind::Overlap:
      return overlap(kernel, option);
    case OptionKind::Stream:
      return apply_stream(kernel, option);
    case OptionKind::Local:
      return set_local(kernel, option);
    case OptionKind::Pipeline:
      return run_ahead(kernel, option);
    case OptionKind::Matrix:
      return apply_matrix(kernel, option);
  }
  return kernel;
}

Kernel apply_options(const Kernel& kernel, std::span<const Option> options) {
  Kernel out = kernel;
  for (const Option& o : options) out = apply_option(out, o);
  return out;
}

}  // namespace tiny
