// Values that need no operand, or only its shape.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "ir/fold.h"
#include "onnx/import/functions.h"
#include "onnx/import/host_value.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "onnx/import/text_function.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"

namespace tiny::onnx {

namespace {

template <class T>
Tensor listed(Call& c, DType dtype, const Ints& shape, const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return c.constant(HostTensor{dtype, shape, SharedBytes::own(std::move(bytes))});
}

Tensors import_constant(Call& c) {
  const auto list = [](const auto& values) { return Ints{static_cast<int64_t>(values.size())}; };
  for (const Attribute& a : c.attributes()) {
    if (a.name == "value" || a.name == "sparse_value") {
      c.check(a.tensors.size() == 1, "the attribute ", a.name, " holds no tensor");
      return {c.constant_of(a.tensors.front())};
    }
    if (a.name == "value_float") return {listed<float>(c, kFloat32, {}, {a.f})};
    if (a.name == "value_int") return {listed<int64_t>(c, kInt64, {}, {a.i})};
    if (a.name == "value_floats") return {listed(c, kFloat32, list(a.floats), a.floats)};
    if (a.name == "value_ints") return {listed(c, kInt64, list(a.ints), a.ints)};
    if (a.name == "value_string" || a.name == "value_strings") {
      c.set_carried(0, kTextType);
      const Tensor texts =
          text_constant(c, a.name == "value_string" ? std::vector{a.s} : a.strings);
      return {a.name == "value_string" ? reshape(texts, {}) : texts};
    }
  }
  c.check(false, "it has no value");
  return {};
}

Tensors import_constant_of_shape(Call& c) {
  const Shape shape = c.sizes(0);
  for (const tiny::Dim& d : shape)
    c.check(decide_less_equal(0, d), "a shape ", tiny::to_string(shape));
  if (!c.has_attribute("value")) return {full(c.context(), kFloat32, shape, 0)};
  const HostTensor value = to_host_tensor(c.tensor_attr("value"));
  c.check(element_count(value.shape, "a value") == 1, "its value has not one element");
  uint64_t bits = 0;
  std::memcpy(&bits, value.bytes.data(), static_cast<size_t>(value.dtype.bytes()));
  return {full_bits(c.context(), value.dtype, shape, bits)};
}

Tensors import_shape(Call& c) {
  const TensorShape dims = c.in(0).shape();
  const auto rank = static_cast<int64_t>(dims.size());
  const auto place = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t begin = place(c.attr("start", 0));
  const int64_t end = place(c.attr("end", rank));
  if (begin >= end) return {c.constant(Ints{})};
  return {c.constant(Shape(dims.begin() + begin, dims.begin() + end))};
}

Tensors import_size(Call& c) {
  return {reshape(c.constant(Shape{product(c.in(0).shape())}), {})};
}

// As many as data says, in steps of `delta`, none of which is 0.
Tensor found_count(const Tensor& start, const Tensor& limit, const Tensor& delta) {
  if (start.dtype().is_float()) {
    const Tensor steps =
        div(sub(cast(limit, kFloat64), cast(start, kFloat64)), cast(delta, kFloat64));
    return cast(maximum(ceil(steps), tiny::number(steps, 0)), kInt64);
  }
  const Tensor step = cast(delta, kInt64);
  const Tensor none = tiny::number_int(step, 0);
  const Tensor divisor = where(not_equal(step, none), step, tiny::number_int(step, 1));
  const Tensor less = floor_div(sub(cast(start, kInt64), cast(limit, kInt64)), divisor);
  return maximum(sub(none, less), none);
}

// The operand as an integer, also if its type is a float: a number, or a size of which it was made.
std::optional<tiny::Dim> whole(Call& c, size_t i) {
  if (!c.in(i).dtype().is_float()) return c.size(i);
  constexpr int64_t kMost = 1024;  // elements of a shape of which it is made
  const auto elements = host_expressions(c.in(i).node(), kMost);
  if (!elements || elements->empty() || !elements->front()) return std::nullopt;
  const UOp& e = elements->front();
  if (e.op() == Op::Cast && e.src(0).dtype() == kInt64) return tiny::Dim(UOp(e.src(0)));
  if (!e.is_const()) return std::nullopt;
  const double value = double_of(e.dtype(), e.const_bits());
  const bool is_whole = value == std::floor(value) && std::fabs(value) < kOpenSizeMax;
  return is_whole ? std::optional<tiny::Dim>(static_cast<int64_t>(value)) : std::nullopt;
}

Tensors import_range(Call& c) {
  c.pass_over({"stash_type"});
  const Tensor start = reshape(c.in(0), {}), delta = reshape(c.in(2), {});
  const auto is_on_data = [&](size_t i) { return c.importer().dependence(c.in(i)).on_data(); };
  const auto made = [&](const tiny::Dim& count) { return Tensors{range(start, delta, count)}; };
  if (!is_on_data(0) && !is_on_data(1) && !is_on_data(2)) {
    const auto first = whole(c, 0), limit = whole(c, 1), step = whole(c, 2);
    if (first && limit && step && step->is_const()) {
      c.check(!step->is(0), "delta is 0");
      return made(range_count(*first, *limit, step->value()));
    }
    if (c.known(0) && c.known(1) && c.known(2)) {
      c.check(c.real(2) != 0, "delta is 0");
      return made(range_count(c.real(0), c.real(1), c.real(2)));
    }
  }
  const Tensor count = found_count(start, reshape(c.in(1), {}), delta);
  return made(c.importer().open_size(count, c.node()));
}

// By steps of 1 where it says nothing else.
Tensors import_contributed_range(Call& c) {
  Values inputs{c.input(0), c.input(1), c.input(2)};
  const Tensor one = full(c.context(), c.in(0).dtype(), {}, 1);
  if (!c.has(2)) inputs[2] = c.importer().constant(c.importer().host_value_of(one, "a step"));
  Call whole(c.importer(), c.node(), std::move(inputs));
  return import_range(whole);
}

Tensors import_eye_like(Call& c) {
  const Tensor& x = c.in(0);
  c.check(x.rank() == 2, "it takes two axes; got ", x.rank());
  return {eye(c.context(), c.dtype_attr("dtype", x.dtype()), size_of(x, 0), size_of(x, 1),
              c.attr("k", 0))};
}

Tensors import_trilu(Call& c) {
  const Tensor& x = c.in(0);
  c.check(x.rank() >= 2, "it takes two axes or more; got ", x.rank());
  // Beyond the matrix, all k mean the same.
  const int64_t most = std::max(upper_bound(size_of(x, -1)), upper_bound(size_of(x, -2)));
  const int64_t k = std::clamp<int64_t>(c.has(1) ? c.integer(1) : 0, -most - 1, most + 1);
  return {c.flag("upper", true) ? triu(x, k) : tril(x, k)};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"Constant",        1,  kNow, import_constant},
    {"ConstantOfShape", 9,  kNow, import_constant_of_shape, operand(0)},
    {"Shape",           1,  kNow, import_shape},
    {"Size",            1,  kNow, import_size},
    {"Range",           11, kNow, import_range, kEveryOperand},
    {"Range",           1,  1,    import_contributed_range, kEveryOperand, nullptr, kContributed},
    {"EyeLike",         9,  kNow, import_eye_like},
    {"Trilu",           14, kNow, import_trilu, operand(1)},
    {"Trilu",           1,  1,    import_trilu, operand(1), nullptr, kContributed},
};
// clang-format on

}  // namespace

std::span<const Row> constant_rows() {
  return kRows;
}

}  // namespace tiny::onnx
