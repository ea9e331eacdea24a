#include "tests/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "base/error.h"
#include "engine/storage.h"
#include "schedule/scans.h"
#include "shape/shape.h"
#include "shape/winograd.h"

namespace tiny::reference {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();
constexpr int64_t kOutside = -1;

int64_t count_of(const Ints& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

Values make(DType dtype, const Ints& shape) {
  Values v{dtype, shape, {}, {}, {}};
  const auto n = static_cast<size_t>(count_of(shape));
  (dtype.is_float() ? v.real.resize(n) : v.whole.resize(n));
  v.error.resize(n);
  return v;
}

Lane get(const Values& v, size_t i) {
  return {v.dtype.is_float() ? v.real[i] : 0, v.dtype.is_float() ? 0 : v.whole[i], v.error[i]};
}

void put(Values& v, size_t i, const Lane& lane) {
  if (v.dtype.is_float())
    v.real[i] = lane.real;
  else
    v.whole[i] = lane.whole;
  v.error[i] = lane.error;
}

Lane from_bits(DType dtype, uint64_t bits) {
  return {dtype.is_float() ? double_of(dtype, bits) : 0, dtype.is_float() ? 0 : int_of(dtype, bits),
          0};
}

uint64_t load_bits(DType dtype, const std::byte* at) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<size_t>(dtype.bytes()));
  return bits;
}

// The position in row-major order, taken apart.
Ints unflattened(int64_t flat, const Ints& shape) {
  Ints index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return index;
}

int64_t flattened(const Ints& index, const Ints& shape) {
  int64_t flat = 0;
  for (size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
  return flat;
}

// Where an element of a movement's result comes from; kOutside for padding.
int64_t source_of(const UOp& node, const Ints& index, const Ints& from, int64_t flat) {
  if (node.op() == Op::Reshape || node.op() == Op::Alias) return flat;
  if (node.op() == Op::AsStrided) {
    const ViewArg& view = node.view_arg();
    int64_t at = view.offset;
    for (size_t i = 0; i < index.size(); ++i) at += index[i] * view.strides[i];
    return at;
  }
  const Ints& p = node.ints();
  Ints source(from.size());
  if (node.op() == Op::Unfold) {
    const size_t first = static_cast<size_t>(p[0]), n = p.size() / 4;
    for (size_t i = 0; i < from.size(); ++i) source[i] = index[i < first + n ? i : i + n];
    for (size_t i = 0; i < n; ++i)
      source[first + i] = source[first + i] * p[3 + 4 * i] + index[first + n + i] * p[4 + 4 * i];
    return flattened(source, from);
  }
  for (size_t i = 0; i < from.size(); ++i) {
    switch (node.op()) {
      case Op::Expand:
        source[i] = from[i] == 1 ? 0 : index[i];
        break;
      case Op::Permute:
        source[static_cast<size_t>(p[i])] = index[i];
        break;
      case Op::Flip:
        source[i] = std::count(p.begin(), p.end(), static_cast<int64_t>(i)) ? from[i] - 1 - index[i]
                                                                            : index[i];
        break;
      case Op::Shrink:
        source[i] = index[i] + p[i];
        break;
      case Op::Pad:
        source[i] = index[i] - p[i];
        if (source[i] < 0 || source[i] >= from[i]) return kOutside;
        break;
      default:
        throw Error(Status::Internal,
                    cat("the reference knows no movement ", info(node.op()).name));
    }
  }
  return flattened(source, from);
}

Values moved(const UOp& node, const Ints& shape, const Values& x) {
  Values out = make(x.dtype, shape);
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t flat = static_cast<int64_t>(i);
    const int64_t source = source_of(node, unflattened(flat, shape), x.shape, flat);
    put(out, i, source == kOutside ? Lane() : get(x, static_cast<size_t>(source)));
  }
  return out;
}

// Adds up floats whatever the order: exact if every partial sum must be.
struct Sum {
  double total = 0;
  double magnitude = 0;
  double error = 0;
  double grain = std::numeric_limits<double>::infinity();  // a power of two that divides all terms
  int64_t count = 0;

  void add(const Lane& x) {
    total += x.real;
    magnitude += std::abs(x.real);
    error += x.error;
    ++count;
    if (x.real == 0 || !std::isfinite(x.real)) return;
    int exponent = 0;
    auto mantissa = static_cast<int64_t>(std::ldexp(std::abs(std::frexp(x.real, &exponent)), 53));
    int zeros = 0;
    while (mantissa % 2 == 0) {
      mantissa /= 2;
      ++zeros;
    }
    grain = std::min(grain, std::ldexp(1.0, exponent - 53 + zeros));
  }
  Lane result(DType dtype) const {
    Lane out{round_to(dtype, total), 0, error};
    if (std::isnan(total)) out.error = kUnknown;  // a padded term may be skipped
    if (!std::isfinite(total) || count < 2) return out;
    const bool exact = magnitude / grain < 1 / spacing(dtype, 1);
    if (!exact || error > 0)
      out.error +=
          static_cast<double>(count) * (magnitude + error) * spacing(dtype, 1) + spacing(dtype, 0);
    // In some order a part is infinite.
    if (!std::isfinite(round_to(dtype, magnitude + error))) out.error = kUnknown;
    return out;
  }
};

struct Product {
  double total = 1;
  double largest = 1;  // with every factor at the far end of its error
  double above = 1;    // of the factors beyond one: no part of the product is larger in any order
  int64_t count = 0;

  void add(const Lane& x) {
    total *= x.real;
    largest *= std::abs(x.real) + x.error;
    above *= std::max(1.0, std::abs(x.real) + x.error);
    ++count;
  }
  Lane result(DType dtype) const {
    Lane out{round_to(dtype, total), 0, 0};
    if (count < 2 && largest == std::abs(total)) return out;
    out.error =
        largest - std::abs(total) + static_cast<double>(count) * largest * spacing(dtype, 1);
    // A part that is nearly nothing is rounded to what the rest may make large again; one that is
    // infinite in some order stays so, or is no number.
    out.error += static_cast<double>(count) * above * spacing(dtype, 0);
    if (std::isnan(out.error) || !std::isfinite(out.real) || !std::isfinite(round_to(dtype, above)))
      out.error = kUnknown;
    return out;
  }
};

Lane start_of(Op op, DType dtype) {
  switch (op) {
    case Op::Mul:
      return {1, 1, 0};
    case Op::And:
      return {0, dtype.is_bool() ? 1 : wrap_to(dtype, -1), 0};
    case Op::Max:
      return from_bits(dtype, lowest_bits(dtype));
    case Op::Min:
      return from_bits(dtype, highest_bits(dtype));
    default:
      return {};
  }
}

Values reduced(const UOp& node, const Ints& shape, const Values& x) {
  const ReduceArg& arg = node.reduce_arg();
  Values out = make(x.dtype, shape);
  const bool sums = x.dtype.is_float() && arg.op == Op::Add;
  const bool multiplies = x.dtype.is_float() && arg.op == Op::Mul;
  std::vector<Sum> totals(sums ? out.size() : 0);
  std::vector<Product> products(multiplies ? out.size() : 0);
  for (size_t i = 0; i < out.size(); ++i) put(out, i, start_of(arg.op, x.dtype));
  for (size_t i = 0; i < x.size(); ++i) {
    Ints index = unflattened(static_cast<int64_t>(i), x.shape);
    for (int64_t axis : arg.axes) index[static_cast<size_t>(axis)] = 0;
    const auto to = static_cast<size_t>(flattened(index, shape));
    if (sums) {
      totals[to].add(get(x, i));
    } else if (multiplies) {
      products[to].add(get(x, i));
    } else {
      const Lane both[] = {get(out, to), get(x, i)};
      put(out, to, apply(arg.op, x.dtype, x.dtype, both));
    }
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (sums) put(out, i, totals[i].result(x.dtype));
    if (multiplies) put(out, i, products[i].result(x.dtype));
    // The sign of a zero among extremes depends on the order.
    if (x.dtype.is_float() && out.real[i] == 0)
      out.error[i] = std::max(out.error[i], std::numeric_limits<double>::denorm_min());
  }
  return out;
}

// The matrices of Winograd's F(m, r), by what they transform: a row for each result.  By
// interpolation at 0, 1, -1, 2, -2, 1/2, -1/2, as many as there are points but one, and infinity.
using Matrix = std::vector<std::vector<double>>;

// [points, n]: the powers of each point, and at infinity the highest alone.
Matrix powers_of_points(size_t points, size_t n, const std::vector<double>& at) {
  Matrix out(points, std::vector<double>(n));
  for (size_t i = 0; i < points; ++i)
    for (size_t k = 0; k < n; ++k)
      out[i][k] = i + 1 < points ? std::pow(at[i], static_cast<double>(k)) : k + 1 == n ? 1 : 0;
  return out;
}

Matrix turned(const Matrix& m) {
  Matrix out(m.front().size(), std::vector<double>(m.size()));
  for (size_t i = 0; i < m.size(); ++i)
    for (size_t k = 0; k < m[i].size(); ++k) out[k][i] = m[i][k];
  return out;
}

Matrix matrix_of(const WinogradTransform& transform) {
  const auto points = static_cast<size_t>(transform.tile.points());
  std::vector<double> at{0, 1, -1, 2, -2, 0.5, -0.5};
  at.resize(points - 1);
  Matrix of_input(points, std::vector<double>(points));
  std::vector<double> scale(points, 1);  // what each row's polynomial is at its point
  for (size_t i = 0; i < points; ++i) {
    of_input[i][0] = 1;
    for (size_t l = 0; l < at.size(); ++l) {
      if (l == i) continue;
      for (size_t k = points; k-- > 0;)
        of_input[i][k] = (k > 0 ? of_input[i][k - 1] : 0) - at[l] * of_input[i][k];
      if (i < at.size()) scale[i] *= at[i] - at[l];
    }
  }
  const auto outputs = static_cast<size_t>(transform.tile.outputs);
  Matrix filter = powers_of_points(points, static_cast<size_t>(transform.tile.taps), at);
  for (size_t i = 0; i < points; ++i)
    for (double& f : filter[i]) f /= scale[i];
  switch (transform.part) {
    case WinogradPart::Input:
      return of_input;
    case WinogradPart::Filter:
      return filter;
    case WinogradPart::Output:
      return turned(powers_of_points(points, outputs, at));
    case WinogradPart::Slopes:
      return powers_of_points(points, outputs, at);
    case WinogradPart::FilterSlopes:
      return turned(filter);
    case WinogradPart::InputSlopes: {  // of the tile before, its last places
      Matrix out(outputs, std::vector<double>(2 * points));
      for (size_t i = 0; i < outputs; ++i)
        for (size_t q = 0; q < points; ++q) {
          out[i][points + q] = of_input[q][i];
          if (i + outputs < points) out[i][q] = of_input[q][i + outputs];
        }
      return out;
    }
  }
  return {};
}

// Where an operand of the tile is of which an element is a result.
Ints operand_place(const WinogradTransform& transform, const Ints& at, int64_t i, int64_t j) {
  const int64_t m = transform.tile.outputs, p = transform.tile.points();
  switch (transform.part) {
    case WinogradPart::Input:
    case WinogradPart::Slopes:
      return {at[2], at[3] + i / m, i % m, at[4] + j / m, j % m, at[5]};
    case WinogradPart::Filter:
    case WinogradPart::FilterSlopes:
      return {i, j, at[2], at[3]};
    default:
      return {i % p, j % p, at[0], at[1] + i / p, at[3] + j / p, at[5]};
  }
}

// M x M^T of each tile.
Values transformed(const UOp& node, const Ints& shape, const Values& x) {
  const WinogradTransform transform = winograd_transform(node);
  const Matrix matrix = matrix_of(transform);
  const bool is_output = transform.is_of_places();
  Values out = make(x.dtype, shape);
  for (size_t k = 0; k < out.size(); ++k) {
    const Ints at = unflattened(static_cast<int64_t>(k), shape);
    const auto& rows = matrix[static_cast<size_t>(at[is_output ? 2 : 0])];
    const auto& columns = matrix[static_cast<size_t>(at[is_output ? 4 : 1])];
    Sum total;
    for (size_t i = 0; i < rows.size(); ++i)
      for (size_t j = 0; j < columns.size(); ++j) {
        const double factor = rows[i] * columns[j];
        if (factor == 0) continue;
        const Ints place =
            operand_place(transform, at, static_cast<int64_t>(i), static_cast<int64_t>(j));
        const Lane x_ij = get(x, static_cast<size_t>(flattened(place, x.shape)));
        total.add({factor * x_ij.real, 0, std::abs(factor) * x_ij.error});
      }
    put(out, k, total.result(x.dtype));
  }
  return out;
}

Values gathered(const UOp& node, const Ints& shape, const Values& data, const Values& at) {
  const auto axis = static_cast<size_t>(node.int_arg());
  Values out = make(data.dtype, shape);
  for (size_t i = 0; i < out.size(); ++i) {
    const Ints index = unflattened(static_cast<int64_t>(i), shape);
    Ints position(index.begin() + static_cast<int64_t>(axis),
                  index.begin() + static_cast<int64_t>(axis + at.shape.size()));
    const auto k = static_cast<size_t>(flattened(position, at.shape));
    require(at.whole[k] >= 0 && at.whole[k] < data.shape[axis], Status::Index, "index ",
            at.whole[k], " of ", data.shape[axis]);
    Ints source(index.begin(), index.begin() + static_cast<int64_t>(axis));
    source.push_back(at.whole[k]);
    source.insert(source.end(), index.begin() + static_cast<int64_t>(axis + at.shape.size()),
                  index.end());
    Lane lane = get(data, static_cast<size_t>(flattened(source, data.shape)));
    if (at.error[k] > 0) lane.error = kUnknown;
    put(out, i, lane);
  }
  return out;
}

Values scattered(const UOp& node, const Values& data, const Values& places, const Values& updates) {
  const Op fold = node.reduce_arg().op;
  const auto axis = static_cast<size_t>(node.reduce_arg().axes.front());
  Values out = data;
  for (size_t i = 0; i < updates.size(); ++i) {
    Ints index = unflattened(static_cast<int64_t>(i), updates.shape);
    index[axis] = places.whole[i];
    if (places.error[i] > 0) {
      std::ranges::fill(out.error, kUnknown);
      return out;
    }
    if (index[axis] < 0 || index[axis] >= data.shape[axis]) continue;
    const auto to = static_cast<size_t>(flattened(index, data.shape));
    const Lane both[] = {get(out, to), get(updates, i)};
    put(out, to, fold == Op::Assign ? both[1] : apply(fold, data.dtype, data.dtype, both));
    // The sign of a zero among extremes depends on the order of the operands.
    const bool is_extreme = fold == Op::Max || fold == Op::Min;
    if (is_extreme && data.dtype.is_float() && out.real[to] == 0)
      out.error[to] = std::max(out.error[to], std::numeric_limits<double>::denorm_min());
  }
  return out;
}

Values joined(const UOp& node, const Ints& shape, const std::vector<const Values*>& parts) {
  const auto axis = static_cast<size_t>(node.int_arg());
  Values out = make(node.dtype(), shape);
  for (size_t i = 0; i < out.size(); ++i) {
    Ints index = unflattened(static_cast<int64_t>(i), shape);
    size_t part = 0;
    while (index[axis] >= parts[part]->shape[axis]) index[axis] -= parts[part++]->shape[axis];
    put(out, i, get(*parts[part], static_cast<size_t>(flattened(index, parts[part]->shape))));
  }
  return out;
}

Values stored(const UOp& node, const Ints& shape) {
  Values out = make(node.dtype(), shape);
  const auto& storage = static_cast<const Storage&>(*std::get<Ref<RefCounted>>(node.arg()));
  std::vector<std::byte> bytes(out.size() * static_cast<size_t>(node.dtype().bytes()));
  copy_to_host(storage, bytes.data(), std::ssize(bytes));
  const std::byte* data = bytes.data();
  for (size_t i = 0; i < out.size(); ++i)
    put(out, i,
        from_bits(node.dtype(),
                  load_bits(node.dtype(), data + static_cast<int64_t>(i) * node.dtype().bytes())));
  return out;
}

Values elementwise_values(const UOp& node, const Ints& shape,
                          const std::vector<const Values*>& src) {
  Values out = make(node.dtype(), shape);
  for (size_t i = 0; i < out.size(); ++i) {
    Lane lanes[3];
    for (size_t k = 0; k < src.size(); ++k) lanes[k] = get(*src[k], i);
    put(out, i, apply(node.op(), node.dtype(), src.back()->dtype, lanes));
  }
  return out;
}

// The elements of a flat buffer after a write: those that the target is a view of are the value's.
Values written(const UOp& after, const Values& before, const Values& value) {
  Values place = make(kInt64, before.shape);
  for (size_t i = 0; i < place.size(); ++i) place.whole[i] = static_cast<int64_t>(i);
  std::vector<UOp> chain;
  for (UOp u = after.src(1).src(0); !(u == after.src(0)); u = UOp(u.src(0))) chain.push_back(u);
  for (size_t i = chain.size(); i-- > 0;)
    place = moved(chain[i], const_dims(shape_of(chain[i])), place);
  Values out = before;
  for (size_t i = 0; i < place.size(); ++i)
    put(out, static_cast<size_t>(place.whole[i]), get(value, i));
  return out;
}

Values computed(const UOp& node, const std::vector<const Values*>& src) {
  const Ints shape = const_dims(shape_of(node));
  if (has(node.op(), kMovement)) return moved(node, shape, *src[0]);
  if (has(node.op(), kElementwise)) return elementwise_values(node, shape, src);
  switch (node.op()) {
    case Op::Const: {
      Values out = make(node.dtype(), shape);
      put(out, 0, from_bits(node.dtype(), node.const_bits()));
      return out;
    }
    case Op::Buffer:
      return stored(node, shape);
    case Op::Iota: {
      Values out = make(node.dtype(), shape);
      for (size_t i = 0; i < out.size(); ++i) {
        const Lane position{0, static_cast<int64_t>(i), 0};
        put(out, i, apply(Op::Cast, node.dtype(), kInt64, &position));
      }
      return out;
    }
    case Op::Contiguous:
    case Op::Copy:
      return *src[0];
    case Op::Assign:
      return *src[1];
    case Op::After:
      return written(node, *src[0], *src[1]);
    case Op::ReduceAxis:
      return reduced(node, shape, *src[0]);
    case Op::Winograd:
      return transformed(node, shape, *src[0]);
    case Op::Gather:
      return gathered(node, shape, *src[0], *src[1]);
    case Op::Scatter:
      return scattered(node, *src[0], *src[1], *src[2]);
    case Op::Concat:
      return joined(node, shape, src);
    default:
      throw Error(Status::Internal, cat("the reference knows no ", info(node.op()).name));
  }
}

using Known = std::unordered_map<const Node*, Values>;

void put_part(Values& out, int64_t part, const Values& from) {
  for (size_t i = 0; i < from.size(); ++i)
    put(out, static_cast<size_t>(part) * from.size() + i, get(from, i));
}

Values part_of(const Values& whole, int64_t part, const Ints& shape) {
  Values out = make(whole.dtype, shape);
  for (size_t i = 0; i < out.size(); ++i)
    put(out, i, get(whole, static_cast<size_t>(part) * out.size() + i));
  return out;
}

Values compute(const UOp& node, const Known& outer, const Known& inner) {
  std::vector<const Values*> src;
  for (const UOp& s : node.src()) {
    const auto at = inner.find(s.node());
    src.push_back(at == inner.end() ? &outer.at(s.node()) : &at->second);
  }
  return computed(node, src);
}

// One result of a scan whose body these nodes are, in order.
Values scanned(const UOp& scan, const std::vector<UOp>& body, const Known& outer) {
  using Kind = ScanPart::Kind;
  const ScanPart& result = scan_part(scan);
  const ScanLoop& loop = *result.loop;
  const auto given = [&](size_t behind) -> const Values& {
    return outer.at(scan.src(loop.stores() + behind).node());
  };
  int64_t count = loop.is_counted ? given(0).whole.at(0) : loop.count.value();
  if (loop.is_branch) count = std::min<int64_t>(count, 1);
  Values all = make(scan.dtype(), const_dims(shape_of(scan)));
  if (loop.is_branch && count < 1 && scan.src().size() > loop.stores() + 1) return given(1);
  std::vector<Values> state;
  for (size_t i = 0; loop.is_counted && i < loop.states; ++i) state.push_back(given(1 + i));
  for (int64_t n = 0; n < count; ++n) {
    const auto place = [&](bool reverse) { return reverse ? count - 1 - n : n; };
    Known inner;
    for (const UOp& node : body) {
      if (node.op() == Op::ScanStore) {
        inner.emplace(node.node(), inner.contains(node.src(0).node())
                                       ? inner.at(node.src(0).node())
                                       : outer.at(node.src(0).node()));
      } else if (node.op() != Op::ScanStep) {
        inner.emplace(node.node(), compute(node, outer, inner));
      } else {
        const ScanPart& part = scan_part(node);
        const bool is_state = part.kind == Kind::State;
        const Values& from = is_state && n > 0 ? state[part.index] : outer.at(node.src(0).node());
        inner.emplace(node.node(),
                      part_of(from, is_state ? 0 : place(part.reverse), const_dims(part.shape)));
      }
    }
    state.clear();
    for (size_t i = 0; i < loop.states; ++i)
      state.push_back(inner.at(scan.src(loop.outputs + i).node()));
    if (loop.asks && inner.at(scan.src(loop.stores() - 1).node()).whole.at(0) == 0) count = n + 1;
    if (result.kind != Kind::Output) continue;
    const UOp& store = scan.src(result.index);
    put_part(all, place(scan_part(store).reverse), inner.at(store.node()));
  }
  if (result.kind == Kind::Last) put_part(all, 0, state[result.index]);
  return all;
}

}  // namespace

Values evaluate(const UOp& root) {
  const std::vector<UOp> order = topological({&root, 1});
  const ScanBodies bodies(order, {&root, 1});
  std::unordered_map<const ScanLoop*, std::vector<UOp>> body_of;
  Known done;
  for (const UOp& node : order) {
    if (const ScanLoop* loop = bodies.of(node))
      body_of[loop].push_back(node);
    else if (node.op() == Op::Scan)
      done.emplace(node.node(), scanned(node, body_of[scan_part(node).loop.get()], done));
    else
      done.emplace(node.node(), compute(node, done, {}));
  }
  return std::move(done.at(root.node()));
}

std::string difference(const Values& want, const void* data) {
  const auto* bytes = static_cast<const std::byte*>(data);
  for (size_t i = 0; i < want.size(); ++i) {
    if (want.error[i] == kUnknown) continue;
    const Lane got = from_bits(
        want.dtype, load_bits(want.dtype, bytes + static_cast<int64_t>(i) * want.dtype.bytes()));
    bool same = false;
    if (want.dtype.is_float()) {
      const double w = want.real[i];
      same = got.real == w || (std::isnan(got.real) && std::isnan(w)) ||
             std::abs(got.real - w) <= want.error[i];
      // What is not exact may overflow on the way.
      if (want.error[i] > 0 && (std::isinf(got.real) || std::isinf(w))) same = true;
    } else {
      same = got.whole == want.whole[i];
    }
    if (!same)
      return cat("element ", i, " of ", list_text(want.shape), " ", to_string(want.dtype), ": got ",
                 want.dtype.is_float() ? cat(got.real) : cat(got.whole), ", want ",
                 want.dtype.is_float() ? cat(want.real[i]) : cat(want.whole[i]), " within ",
                 want.error[i]);
  }
  return "";
}

}  // namespace tiny::reference
