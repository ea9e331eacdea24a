#include "codegen/choose/fills.h"

#include <algorithm>
#include <iterator>

#include "ir/affine.h"

namespace tiny {

namespace {

constexpr int64_t kFactorPadding = 16;  // elements: rows of a power of two would share sets

// The number of the range of a stage that steps through it one by one, if it is as long as a vector
// of lanes that turn; -1 if it is not.
int64_t place_across(const Editor& edit, const UOp& stage) {
  if (edit.table().widest_bytes != 4) return -1;
  const Ints strides = stage.stage_arg().strides;
  for (size_t i = 0; i < strides.size(); ++i) {
    const UOp& r = stage.src(1 + i);
    if (strides[i] == 1 && r.op() == Op::Range && r.src(0).is_const_int(edit.lanes()))
      return r.int_arg();
  }
  return -1;
}

// What a stage copies, where it copies: around what is padded it has zeros.
const UOp& loaded(const UOp& value) {
  return value.op() == Op::Where ? value.src(1) : value;
}

// What is read as another type is not; what is computed and widened then is.
bool is_computed(UOp value) {
  while (value.op() == Op::Cast) value = UOp(value.src(0));
  return has(value.op(), kElementwise) || value.op() == Op::Reduce;
}

}  // namespace

bool lanes_would_meet(const Editor& edit, size_t range) {
  RangeSet lanes = 0;
  for (size_t i = 0; i < edit.now().ranges.size(); ++i)
    if (edit.now().ranges[i].kind == RangeKind::Vec) lanes |= bit(i);
  const AccessTable table = access_table(edit.now());
  return std::ranges::any_of(table.closures, [&](const ClosureInfo& c) {
    return (c.below & bit(range)) && (c.below & lanes);
  });
}

void fill_with_lanes(Editor& edit, const UOp& stage) {
  size_t at = stage.src().size() - 1;
  if (edit.now().ranges[edit.now().position(stage.src(at))].kind == RangeKind::Dot) --at;
  const UOp& range = stage.src(at);
  const int64_t copy = range.int_arg();
  if (!edit.is_loop(copy)) return;  // a few registers' steps
  // The range may be another sum's too, of columns that have lanes.
  if (lanes_would_meet(edit, edit.now().position(range))) return;
  const bool is_one_vector = range.src(0).is_const_int(edit.lanes());
  edit.kind(OptionKind::Vec, is_one_vector ? copy : edit.tile(copy, edit.lanes()));
}

void fill_along(Editor& edit, const Option& stage) {
  edit.apply(stage);
  for (const UOp& u : topological(edit.now().roots)) {
    if (u.op() != Op::Stage) continue;
    const UOp& load = loaded(u.src(0));
    if (load.op() != Op::Load || load.src(0).int_arg() != stage.amount) continue;
    const ViewArg& view = load.view_arg();
    for (size_t i = 0; i < view.shape.size(); ++i) {
      const auto sum = affine(load.src(1 + i));
      if (view.strides[i] != 1 || !sum) continue;
      for (const UOp& r : u.src().subspan(1)) {
        if (sum->coefficient(r) != 1 || !r.src(0).is_const() || r.src(0).const_int() < edit.lanes())
          continue;
        const int64_t inner = r.src(0).const_int() == edit.lanes()
                                  ? r.int_arg()
                                  : edit.tile(r.int_arg(), edit.lanes());
        const int64_t across = place_across(edit, u);
        edit.kind(OptionKind::Vec, inner);
        if (across >= 0 && across != inner) edit.kind(OptionKind::Upcast, across);
        return;
      }
    }
    // Rows that are shorter than a vector: elements of as many of them, one by one.
    if (const int64_t across = place_across(edit, u); across >= 0)
      edit.kind(OptionKind::Vec, across);
    return;
  }
}

std::optional<Factor> computed_factor(const UOp& reduce, const std::vector<int64_t>& columns,
                                      const std::vector<int64_t>& steps, int64_t row) {
  const UOp product = reduce.src(0);
  if (product.op() != Op::Mul) return std::nullopt;
  for (const UOp& factor : product.src()) {
    if (!is_computed(factor)) continue;
    std::vector<int64_t> below;
    for (const UOp& u : topological({&factor, 1}))
      if (u.op() == Op::Range) below.push_back(u.int_arg());
    const auto depends = [&](int64_t range) { return std::ranges::count(below, range) > 0; };
    std::vector<int64_t> walked;
    std::ranges::copy_if(steps, std::back_inserter(walked), depends);
    if (std::ranges::any_of(columns, depends) || walked.size() != 1 || !depends(row)) continue;
    return Factor{factor, walked[0]};
  }
  return std::nullopt;
}

UOp stage_factor(Editor& edit, const UOp& reduce, const std::vector<int64_t>& columns,
                 const std::vector<int64_t>& steps, int64_t outer_row, int64_t inner_row) {
  const std::vector<UOp> order = topological(edit.now().roots);
  const std::optional<Factor> factor = computed_factor(reduce, columns, steps, inner_row);
  if (!factor) return {};
  const int64_t number = std::ranges::find(order, factor->value) - order.begin();
  return edit.new_stage(
      {OptionKind::Stage, outer_row, number, {inner_row, factor->walked}, kFactorPadding, true});
}

UOp computed_lanes(const Editor& edit, int64_t lane, const std::vector<int64_t>& rows) {
  const std::vector<UOp> nodes = topological(edit.now().roots);
  const auto sum = std::ranges::find_if(nodes, [](const UOp& u) { return u.op() == Op::Reduce; });
  if (sum == nodes.end() || sum->src(0).op() != Op::Mul) return {};
  for (const UOp& factor : sum->src(0).src()) {
    if (!is_computed(factor) || factor.op() == Op::Reduce) continue;
    const std::vector<UOp> below = topological({&factor, 1});
    const auto depends = [&](int64_t range) {
      return std::ranges::any_of(
          below, [&](const UOp& u) { return u.op() == Op::Range && u.int_arg() == range; });
    };
    if (depends(lane) && std::ranges::none_of(rows, depends)) return factor;
  }
  return {};
}

}  // namespace tiny
