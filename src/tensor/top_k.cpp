#include "tensor/top_k.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/radix_sort.h"
#include "tensor/reduce.h"
#include "tensor/sort_network.h"

namespace tiny {

namespace {

// A key of 63 bits holds an element of 32 bits above the place from the end.
constexpr int64_t kPlaceBits = 31;
constexpr int64_t kLastPlace = (int64_t{1} << kPlaceBits) - 1;

// Integers in the order of the floats, of which a NaN is the greatest and both zeros are equal.
Tensor ordered_bits(const Tensor& a) {
  const bool wide = a.dtype() == kFloat64;
  const Tensor bits = bitcast(a, wide ? kInt64 : kInt32);
  const int64_t highest = wide ? INT64_MAX : INT32_MAX;
  const Tensor sign = shift_right(bits, number_int(bits, bits.dtype().bits() - 1));
  const Tensor order = bit_xor(bits, bit_and(sign, number_int(bits, highest)));
  const Tensor number = where(equal(a, tiny::number(a, 0)), number_int(bits, 0), order);
  return where(is_nan(a), number_int(bits, highest), number);
}

// In the order of the elements: uint64 if they or (`wide`) places need as many bits, else uint32.
Tensor ranks_of(const Tensor& a, bool wide) {
  Tensor order = a;
  if (a.dtype().is_float())
    order = ordered_bits(cast(a, a.dtype() == kFloat64 ? kFloat64 : kFloat32));
  const bool has_64 = wide || order.dtype().bits() == 64;
  const DType dtype = has_64 ? kUInt64 : kUInt32;
  if (order.dtype() == dtype) return order;
  const Tensor number = cast(order, has_64 ? kInt64 : kInt32);
  return bitcast(bit_xor(number, number_int(number, has_64 ? INT64_MIN : INT32_MIN)), dtype);
}

// Of elements at places along axis 0 (int32), in descending order of what is wanted first.
Tensor packed_keys(const Tensor& a, const Tensor& place, bool largest) {
  Tensor rank = ranks_of(a, false);
  if (!largest) rank = invert(rank);
  rank = cast(rank, kInt64);
  return bit_or(shift_left(rank, number_int(rank, kPlaceBits)),
                cast(sub(number_int(place, kLastPlace), place), kInt64));
}

// Of all elements along axis 0: packed, or ranks and what decides among those that are equal.
Keys keys_of(const Tensor& a, bool largest) {
  const int64_t n = upper_bound(a.shape()[0]);
  const bool is_packed = a.dtype().bits() < 64 && n <= kLastPlace;
  const Tensor place =
      positions(a.context_ref(), is_packed ? kInt32 : kInt64, a.shape()[0], 0, a.rank());
  if (is_packed) return {packed_keys(a, place, largest)};
  Tensor rank = ranks_of(a, true);
  if (!largest) rank = invert(rank);
  return {rank, expand(sub(number_int(place, n), place), rank.shape())};
}

// As many as there can be: those that are not there come last, and have no place.
Keys filled_up(Keys keys) {
  for (Tensor& key : keys) {
    Shape none(key.shape().size(), Dim(0)), more = none;
    more[0] = Dim(upper_bound(key.shape()[0])) - key.shape()[0];
    if (!more[0].is(0)) key = pad(key, none, more);
  }
  return keys;
}

Tensor packed_places(const Tensor& keys) {
  const Tensor last = number_int(keys, kLastPlace);
  return sub(last, bit_and(keys, last));
}
Tensor places_of(const Keys& keys, int64_t n) {
  return keys.size() == 1 ? packed_places(keys[0]) : sub(number_int(keys[1], n), keys[1]);
}

// Fewer elements, or fewer for each that is wanted, are sorted as soon as they are left out.
constexpr int64_t kGroupedMin = 512;
constexpr int64_t kGroupedShare = 16;
constexpr int64_t kGroupsStep = 16;  // whole vectors

// What comes last, as elements of a's type.
double last_of(const Tensor& a, bool largest) {
  if (a.dtype().is_float()) return largest ? -INFINITY : NAN;
  if (a.dtype() == kBool) return largest ? 0 : 1;
  const double values = std::ldexp(1, static_cast<int>(a.dtype().bits()));
  if (a.dtype().is_unsigned()) return largest ? 0 : values - 1;
  return largest ? -values / 2 : values / 2 - 1;
}

// The first of each group of `parts` [size, groups, ..]: the rows where they are, and they.
struct Firsts {
  Tensor row, element;
};
Firsts firsts_of(const Tensor& parts, bool largest) {
  const int64_t size = parts.shape()[0].value();
  const Tensor row = positions(parts.context_ref(), kInt32, Dim(size), 0, parts.rank());
  const Tensor beyond = number_int(row, size);
  const bool has_nan = parts.dtype().is_float();
  Tensor seen = parts;
  if (has_nan && !largest) seen = where(is_nan(parts), tiny::number(parts, INFINITY), parts);
  const Tensor best = reduce_as_is(seen, largest ? Op::Max : Op::Min, {0}, true);
  Tensor is_best = equal(parts, best);
  if (has_nan && largest) is_best = bit_or(is_best, is_nan(parts));
  const Tensor first = min(where(is_best, row, beyond), {0}, true);
  if (!has_nan || largest) return {first, best};
  // Nothing but NaN.
  const Tensor is_none = equal(first, beyond);
  return {where(is_none, number_int(first, 0), first),
          where(is_none, tiny::number(best, NAN), best)};
}

// The keys of those among which the k first are: the k groups whose first are the first, since each
// of these stands before all of any other group.  Groups are as large as leaves the fewest to sort.
// They lie across the elements, so that all of a row of them have lanes, of the elements' own type.
Tensor candidates(const Tensor& a, int64_t k, bool largest) {
  const int64_t n = upper_bound(a.shape()[0]);
  const auto least =
      static_cast<int64_t>(std::sqrt(static_cast<double>(n) / static_cast<double>(k)));
  const int64_t groups = round_up(ceil_div(n, least), kGroupsStep);
  const int64_t size = ceil_div(n, groups);
  Shape shape = a.shape();
  Shape more(shape.size(), Dim(0));
  const Shape none = more;
  more[0] = Dim(size * groups) - shape[0];
  shape[0] = groups;
  shape.insert(shape.begin(), Dim(size));
  // Less than a row is filled up: every group has elements.
  // What is computed is stored: groups lie across rows of what that is made of.
  const bool is_stored = has_memory(below_movement(a.node()));
  const Tensor filled = pad(is_stored ? a : contiguous(a), none, more, last_of(a, largest));
  const Firsts firsts = firsts_of(reshape(filled, shape), largest);
  const Ref<Context>& context = a.context_ref();
  const auto place_of = [&](const Tensor& row, const Tensor& group) {
    return add(mul(row, number_int(row, groups)), group);
  };
  const Tensor group = positions(context, kInt32, Dim(groups), 1, a.rank() + 1);
  const Tensor keys = packed_keys(firsts.element, place_of(firsts.row, group), largest);
  const Keys best = greatest_keys({contiguous(squeeze(keys, {0}))}, k);
  const Tensor place = cast(packed_places(best[0]), kInt32);
  // Stored, so that it is divided once.
  const Tensor chosen = unsqueeze(contiguous(floor_mod(place, number_int(place, groups))), {0});
  shape[1] = k;
  const Tensor row = positions(context, kInt32, Dim(size), 0, a.rank() + 1);
  const Tensor all = flatten(expand(place_of(row, chosen), shape), 0, 2);
  // Those that are not there have no place.
  const Tensor is_there = less(all, cast(size_tensor(context, a.shape()[0]), kInt32));
  const Tensor source = a.shape()[0].is_const() ? a : slice_axis(filled, 0, 0, n);
  const Tensor taken = take_along_axis(source, where(is_there, all, number_int(all, 0)), 0);
  const Tensor of_all = packed_keys(taken, all, largest);
  return contiguous(where(is_there, of_all, number_int(of_all, 0)));
}

// The keys of the first k along axis 0, in order.
Keys first_keys(const Tensor& a, int64_t k, bool largest) {
  const int64_t n = upper_bound(a.shape()[0]);
  const bool is_packed = a.dtype().bits() < 64 && n <= kLastPlace;
  if (is_packed && k > 1 && n >= kGroupedMin && n >= kGroupedShare * k)
    return greatest_keys({candidates(a, k, largest)}, k);
  const Keys keys = filled_up(keys_of(a, largest));
  if (is_packed && k == 1) return {reduce_as_is(keys[0], Op::Max, {0}, true)};
  return greatest_keys(keys, k);
}

// Of sizes that are no numbers as many are sorted by a network as there can be, if they are no more
// than these.
constexpr int64_t kNetworkMax = 1 << 20;

// The places of the first k along the last axis, by a sort of all that there are; one out of range
// where there are fewer.
Tensor first_places(const Tensor& a, const Dim& k, bool largest) {
  const Tensor rank = ranks_of(a, false);
  const Tensor all = ascending_places(unsqueeze(largest ? invert(rank) : rank, {0}));
  Shape shape = a.shape();
  const int64_t most = upper_bound(shape.back());
  Shape none(shape.size(), Dim(0)), more = none;
  more.back() = Dim(most) - shape.back();
  shape.back() = k;
  return shrink(pad(all, none, more, static_cast<double>(most)), none, shape);
}

}  // namespace

Tensor ascending_rows(const Tensor& rows) {
  return ascending_places(
      ranks_of(rows.rank() == 1 ? unsqueeze(rows, {0}) : transpose(rows, 0, 1), false));
}

TopK top_k(const Tensor& a, const Dim& wanted, int64_t axis, bool largest) {
  const int64_t along = checked_axis(axis, a.rank());
  const int64_t n = upper_bound(a.shape()[static_cast<size_t>(along)]);
  require(decide_less_equal(0, wanted) && (!wanted.is_const() || wanted.value() <= n),
          Status::InvalidArgument, "k = ", wanted, " of ", n, " elements; wanted 0 to as many");
  const int64_t k = std::min(upper_bound(wanted), n);
  Shape shape = a.shape();
  shape[static_cast<size_t>(along)] = wanted;
  if (k == 0)
    return {full(a.context_ref(), a.dtype(), shape, 0), full(a.context_ref(), kInt64, shape, 0)};
  if (!a.shape()[static_cast<size_t>(along)].is_const() && n > kNetworkMax) {
    const Tensor places = first_places(contiguous(transpose(a, along, -1)), wanted, largest);
    const Tensor index = transpose(places, along, -1);
    return {take_along_axis(a, index, along), index};
  }
  Ints front{along};
  Ints back;
  for (int64_t i = 0; i < a.rank(); ++i)
    if (i != along) front.push_back(i);
  for (int64_t i = 0; i < a.rank(); ++i) back.push_back(i == along ? 0 : i < along ? i + 1 : i);
  // Stored before it is permuted, so that nobody lays out the network's values like it.
  const Keys best = first_keys(permute(a, front), k, largest);
  const Tensor all = permute(contiguous(places_of(best, n)), back);
  const Tensor index = shrink(all, Shape(shape.size(), Dim(0)), shape);
  return {take_along_axis(a, index, along), index};
}

}  // namespace tiny
