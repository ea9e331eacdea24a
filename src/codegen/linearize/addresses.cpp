#include "codegen/linearize/addresses.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "ir/dot.h"

namespace tiny {

namespace {

// What is asked for outside, of what may be read, is much.
constexpr double kFarShare = 0.125;
// Bytes from the base on that its page has, but for the smallest buffers.
constexpr int64_t kNearBytes = 1024;

// Of the elements that a Load may read, in its buffer; none where sizes are no numbers.
std::optional<Interval> elements_of(const UOp& load) {
  const ViewArg& view = load.view_arg();
  Interval all{view.offset, view.offset};
  if (view.offset == kSymbolicDim) return std::nullopt;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] == kSymbolicDim || view.strides[i] == kSymbolicDim) return std::nullopt;
    const int64_t along = (view.shape[i] - 1) * view.strides[i];
    (along < 0 ? all.lo : all.hi) += along;
  }
  return all;
}

}  // namespace

size_t Addresses::depth_of(const Place& p) const {
  return std::max(emit_.depth_of(p.address), emit_.depth_of(p.index));
}

// What belongs to the innermost loop is the index, what is outside of it the address, so that the
// loop adds nothing that it need not.
Place Addresses::place(LinearId base, const UOp& flat, int64_t element_bytes) {
  Place p;
  const IndexForm& form = forms_.form_of(flat);
  if (form.vector_atom) return {base, values_.value_of(flat), 0, 0};
  p.displacement = checked_mul(form.constant, element_bytes, "a displacement");
  p.lane_stride = static_cast<int32_t>(form.lane);
  if (p.displacement != static_cast<int32_t>(p.displacement) || form.lane != p.lane_stride) {
    const LinearId index = values_.scalar_of(form);
    require(form.lane == p.lane_stride, Status::Limit, "a stride is beyond 2^31 elements");
    return {base, index, 0, p.lane_stride};
  }
  if (form.terms.empty()) return {base, emit_.index_constant(0), p.displacement, p.lane_stride};
  p.address = base;
  p.index = values_.value_of(form.inner);
  if (!form.outer) return p;
  InstanceKey key = nest_.key_of(form.outer);
  key.use = (uint64_t{base} + 1) << 8 | static_cast<uint64_t>(element_bytes);
  if (const LinearId* known = emit_.find(key)) {
    p.address = *known;
    return p;
  }
  const LinearId offset = values_.value_of(form.outer);
  const size_t depth = std::max(emit_.depth_of(offset), emit_.depth_of(base));
  p.address = emit_.add(depth, Op::Address, kAddress, {base, offset}, element_bytes);
  emit_.remember(key, p.address, emit_.relied_on());
  return p;
}

Place Addresses::place_where(LinearId holds, LinearId base, const UOp& flat,
                             int64_t element_bytes) {
  const IndexForm& form = forms_.form_of(flat);
  const int64_t displacement = checked_mul(form.constant, element_bytes, "a displacement");
  if (form.vector_atom || form.lane != static_cast<int32_t>(form.lane))
    return place(base, flat, element_bytes);
  const auto lane_stride = static_cast<int32_t>(form.lane);
  const bool is_near = 0 <= displacement && displacement <= kNearBytes;
  const LinearId index =
      is_near ? values_.value_of(forms_.sum_of(form.terms)) : values_.scalar_of(form);
  const LinearId safe =
      emit_.elementwise(Op::Where, kInt64, {holds, index, emit_.index_constant(0)});
  return {base, safe, is_near ? displacement : 0, lane_stride};
}

bool Addresses::is_far_outside(const UOp& load) {
  const auto [at, is_new] = are_far_outside_.try_emplace(load.node());
  if (!is_new || load.op() != Op::Load) return at->second;
  const std::optional<Interval> all = elements_of(load);
  if (!all) return false;
  const Interval asked = prover_.bounds_of(forms_.flat_index(load));
  const auto beyond = [](int64_t from, int64_t to) {
    return std::max(static_cast<double>(to) - static_cast<double>(from), 0.0);
  };
  const double outside = beyond(asked.lo, all->lo) + beyond(all->hi, asked.hi);
  at->second = outside > kFarShare * (beyond(all->lo, all->hi) + 1);
  return at->second;
}

std::optional<Place> Addresses::word_place(LinearId base, const UOp& flat, size_t position,
                                           int64_t bytes) {
  const UOp& r = nest_.range(position);
  const int64_t steps = nest_.extent(position);
  const std::optional<Affine> sum = affine(flat);
  if (!sum || sum->coefficient(r) != 1) return std::nullopt;
  Affine elements{sum->constant, {}};
  Affine words{0, {}};
  bool is_whole = true;
  for (const AffineTerm& term : sum->terms) {
    if (term.atom == r) continue;
    if (nest_.free_of(term.atom) & bit(position)) return std::nullopt;
    is_whole = is_whole && term.coefficient % steps == 0;
    elements.terms.push_back(term);
    words.terms.push_back({term.atom, term.coefficient / steps});
  }
  const IndexForm form = forms_.form_of(to_uop(flat.graph(), elements));
  if (form.vector_atom || form.lane % steps != 0) return std::nullopt;
  const int64_t displaced = checked_mul(sum->constant, bytes, "a displacement");
  // Threads of a group read words at multiples of their size alone.
  if (nest_.is_grouped() && (!is_whole || displaced % kWordBytes != 0)) return std::nullopt;
  if (is_whole && displaced == static_cast<int32_t>(displaced)) {
    Place p = place(base, to_uop(flat.graph(), words), kWordBytes);
    const int64_t whole = p.displacement + displaced;
    if (whole == static_cast<int32_t>(whole)) {
      p.displacement = whole;
      return p;
    }
  }
  // Rows that are no whole words long: the address is that of a byte.
  const LinearId offset = values_.scalar_of(form);
  const size_t depth = std::max(emit_.depth_of(offset), emit_.depth_of(base));
  const LinearId address = emit_.add(depth, Op::Address, kAddress, {base, offset}, bytes);
  return Place{address, emit_.index_constant(0), 0, static_cast<int32_t>(form.lane / steps)};
}

LinearId Addresses::lanes_of_index(const UOp& expression, int64_t lanes) {
  const IndexForm& form = forms_.form_of(expression);
  if (form.vector_atom) return emit_.widened(values_.value_of(expression), lanes);
  const int64_t step = form.lane;
  const LinearId base = values_.scalar_of(form);
  if (step == 0) return emit_.widened(base, lanes);
  return emit_.add(emit_.depth(), Op::Ramp, kInt64.with_lanes(lanes), {base}, step);
}

LinearId Addresses::cast_index(const UOp& cast) {
  const UOp& index = cast.src(0);
  const DType dtype = cast.dtype();
  const IndexForm& form = forms_.form_of(index);
  invariant(!form.vector_atom, "an index made of ranges has no vector atom");
  const int64_t step = form.lane;
  const int64_t lanes = nest_.lanes_of(cast);
  const Interval values = prover_.bounds_of(index);
  const bool narrow = dtype != kInt64 && dtype != kUInt64 && dtype != kFloat64 &&
                      values.lo >= INT32_MIN && values.hi <= INT32_MAX;
  LinearId base = values_.scalar_of(form);
  const DType ramp = narrow ? kInt32 : kInt64;
  if (narrow) base = emit_.elementwise(Op::Cast, kInt32, {base});
  const LinearId wide =
      emit_.add(emit_.depth_of(base), Op::Ramp, ramp.with_lanes(lanes), {base}, step);
  return dtype == ramp ? wide : emit_.elementwise(Op::Cast, dtype, {wide});
}

}  // namespace tiny
