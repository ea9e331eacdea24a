#include "value.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>

#include <c10/util/Exception.h>

#include "variables.h"

namespace tiny_torch {

namespace {

// Numbers with at most so many significant bits are part of kernels: 0.5, 3, 1024, but not 0.001.
constexpr int kConstantBitsMax = 8;
// Numbers kept in memory, by type and value; then all are dropped, and made again when needed.
constexpr size_t kNumbersMax = 4096;
constexpr double kExactMax = 9007199254740992.0;  // 2^53: doubles are exact to whole numbers below

bool is_short(double value) {
  if (value == 0 || !std::isfinite(value)) return true;
  int exponent = 0;
  const double scaled = std::ldexp(std::frexp(value, &exponent), kConstantBitsMax);
  return scaled == std::trunc(scaled);
}

template <class Call>
Value made(const Call& call) {
  tiny_tensor* out = nullptr;
  check(call(&out));
  return Value(out);
}

std::vector<tiny_tensor*> handles_of(std::span<const Value> values) {
  std::vector<tiny_tensor*> handles;
  handles.reserve(values.size());
  for (const Value& value : values) handles.push_back(value.handle());
  return handles;
}

// Sizes and positions as the engine takes them: dimensions, while a program is recorded.
class Dimensions {
 public:
  explicit Dimensions(SizesRef sizes) : sizes_(sizes) {
    Recording* const current = recording();
    if (!current) return;
    for (const int64_t size : sizes) made_.push_back(current->dimension(size));
    sizes_ = made_;
  }
  const int64_t* data() const { return sizes_.data(); }
  size_t size() const { return sizes_.size(); }

 private:
  SizesRef sizes_;
  Sizes made_;
};
int64_t dimension(int64_t size) {
  Recording* const current = recording();
  return current ? current->dimension(size) : size;
}

Sizes axes_up_to(int64_t rank) {
  Sizes axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return axes;
}

}  // namespace

tiny_context* context() {
  static tiny_context* const made = [] {
    tiny_context* out = nullptr;
    check(tiny_context_create(nullptr, &out));
    return out;
  }();
  return made;
}

void check(tiny_status status) {
  if (status == TINY_OK) return;
  const std::string message = tiny_last_error();
  if (status == TINY_ERROR_INDEX) C10_THROW_ERROR(IndexError, message);
  // An operator that is not for a dtype is not implemented for it, as PyTorch's kernels say.
  if (status == TINY_ERROR_UNSUPPORTED || status == TINY_ERROR_DTYPE)
    C10_THROW_ERROR(NotImplementedError, message);
  if (status == TINY_ERROR_OUT_OF_MEMORY || status == TINY_ERROR_LIMIT)
    C10_THROW_ERROR(OutOfMemoryError, message);
  C10_THROW_ERROR(Error, message);
}

tiny_dtype Value::dtype() const {
  tiny_dtype out = 0;
  check(tiny_tensor_dtype(handle_, &out));
  return out;
}

size_t Value::shape(int64_t (&sizes)[TINY_RANK_MAX]) const {
  size_t rank = 0;
  check(tiny_tensor_shape(handle_, sizes, TINY_RANK_MAX, &rank));
  if (Recording* const current = recording())
    for (size_t i = 0; i < rank; ++i) sizes[i] = current->size(sizes[i]);
  return rank;
}

Sizes Value::shape() const {
  int64_t sizes[TINY_RANK_MAX];
  const size_t rank = shape(sizes);
  return Sizes(sizes, sizes + rank);
}

int64_t Value::rank() const {
  size_t rank = 0;
  check(tiny_tensor_rank(handle_, &rank));
  return static_cast<int64_t>(rank);
}

int64_t Value::size(int64_t axis) const {
  const Sizes sizes = shape();
  return sizes.at(static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(sizes.size()) : axis));
}

int64_t Value::numel() const {
  if (recording()) {
    const Sizes sizes = shape();
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  }
  int64_t out = 0;
  check(tiny_tensor_numel(handle_, &out));
  return out;
}

bool Value::is_float() const {
  const tiny_dtype type = dtype();
  return type >= TINY_FLOAT16 && type <= TINY_FLOAT8_E5M2FNUZ;
}

Value from_data(tiny_dtype dtype, SizesRef sizes, const void* data, size_t bytes) {
  if (Recording* const current = recording()) return current->elements(dtype, sizes, data, bytes);
  return made([&](tiny_tensor** out) {
    return tiny_tensor_from_data(context(), dtype, sizes.data(), sizes.size(), data, bytes, out);
  });
}

Value full(tiny_dtype dtype, SizesRef sizes, double value) {
  const Dimensions dims(sizes);
  return made([&](tiny_tensor** out) {
    return tiny_full(context(), dtype, dims.data(), dims.size(), value, out);
  });
}

namespace {

// Numbers by type and value: what is made of one that is there costs a look.
template <class Make>
Value kept(std::map<std::pair<tiny_dtype, uint64_t>, Value>& numbers, tiny_dtype dtype,
           double value, const Make& make) {
  static std::mutex lock;
  const std::lock_guard guard(lock);
  if (numbers.size() >= kNumbersMax) numbers.clear();
  Value& entry = numbers[{dtype, std::bit_cast<uint64_t>(value)}];
  if (!entry) entry = make();
  return entry;
}

// A whole number that depends on variables while a program is recorded, else no value.
Value size_number(tiny_dtype dtype, double value) {
  if (!recording() || value != std::trunc(value) || std::abs(value) > kExactMax) return {};
  const auto size = static_cast<int64_t>(value);
  const int64_t found = dimension(size);
  if (found == size) return {};
  return cast(made([&](tiny_tensor** out) { return tiny_scalar_int(context(), found, out); }),
              dtype);
}

}  // namespace

Value constant(tiny_dtype dtype, double value) {
  if (Value size = size_number(dtype, value)) return size;
  static auto& known = *new std::map<std::pair<tiny_dtype, uint64_t>, Value>;
  return kept(known, dtype, value, [&] { return full(dtype, {}, value); });
}

Value number(tiny_dtype dtype, double value) {
  if (Value size = size_number(dtype, value)) return size;
  if (is_short(value) || dtype < TINY_FLOAT16) return constant(dtype, value);
  static auto& known = *new std::map<std::pair<tiny_dtype, uint64_t>, Value>;
  return kept(known, dtype, value, [&] {
    const Value exact = from_data(TINY_FLOAT64, {}, &value, sizeof value);
    const Value made = cast(exact, dtype);
    tiny_tensor* handle = made.handle();
    realize({&handle, 1});
    return made;
  });
}

Value integer(tiny_dtype dtype, int64_t value) {
  constexpr auto kExact = static_cast<int64_t>(kExactMax);
  if (value > -kExact && value < kExact) return constant(dtype, static_cast<double>(value));
  return cast(from_data(TINY_INT64, {}, &value, sizeof value), dtype);
}

Value arange(tiny_dtype dtype, int64_t count) {
  const int64_t size = dimension(count);
  return made([&](tiny_tensor** out) { return tiny_arange(context(), dtype, size, out); });
}

Value list_of(SizesRef numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  return from_data(TINY_INT64, {&count, 1}, numbers.data(), numbers.size() * sizeof(int64_t));
}

Value clone(const Value& a) {
  return made([&](tiny_tensor** out) { return tiny_clone(a.handle(), out); });
}

Value reshape(const Value& a, SizesRef sizes) {
  const Dimensions dims(sizes);
  return made(
      [&](tiny_tensor** out) { return tiny_reshape(a.handle(), dims.data(), dims.size(), out); });
}

Value permute(const Value& a, SizesRef axes) {
  return made(
      [&](tiny_tensor** out) { return tiny_permute(a.handle(), axes.data(), axes.size(), out); });
}

Value expand(const Value& a, SizesRef sizes) {
  const Dimensions dims(sizes);
  return made(
      [&](tiny_tensor** out) { return tiny_expand(a.handle(), dims.data(), dims.size(), out); });
}

Value flip(const Value& a, SizesRef axes) {
  if (axes.empty()) return a;
  return made(
      [&](tiny_tensor** out) { return tiny_flip(a.handle(), axes.data(), axes.size(), out); });
}

Value slice(const Value& a, SizesRef begin, SizesRef end, SizesRef step) {
  const Dimensions first(begin);
  const Dimensions last(end);
  return made([&](tiny_tensor** out) {
    return tiny_slice(a.handle(), first.data(), last.data(), step.empty() ? nullptr : step.data(),
                      begin.size(), out);
  });
}

Value slice_axis(const Value& a, int64_t axis, int64_t begin, int64_t end) {
  Sizes last = a.shape();
  Sizes first(last.size(), 0);
  const auto at = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(last.size()) : axis);
  first.at(at) = begin;
  last.at(at) = end;
  return slice(a, first, last, {});
}

Value pad(const Value& a, SizesRef before, SizesRef after, double value) {
  const Dimensions first(before);
  const Dimensions last(after);
  return made([&](tiny_tensor** out) {
    return tiny_pad(a.handle(), first.data(), last.data(), first.size(), value, out);
  });
}

Value as_strided(const Value& a, SizesRef sizes, SizesRef strides, int64_t offset) {
  const Dimensions dims(sizes);
  const Dimensions steps(strides);
  const int64_t first = dimension(offset);
  return made([&](tiny_tensor** out) {
    return tiny_as_strided(a.handle(), dims.data(), steps.data(), dims.size(), first, out);
  });
}

Value concat(std::span<const Value> parts, int64_t axis) {
  const auto handles = handles_of(parts);
  return made(
      [&](tiny_tensor** out) { return tiny_concat(handles.data(), handles.size(), axis, out); });
}

Value unsqueeze(const Value& a, int64_t axis) {
  return made([&](tiny_tensor** out) { return tiny_unsqueeze(a.handle(), &axis, 1, out); });
}

Value squeeze(const Value& a, int64_t axis) {
  return made([&](tiny_tensor** out) { return tiny_squeeze(a.handle(), &axis, 1, out); });
}

Value transpose(const Value& a, int64_t first, int64_t second) {
  const int64_t rank = a.rank();
  Sizes axes = axes_up_to(rank);
  const auto place = [&](int64_t axis) {
    return static_cast<size_t>(axis < 0 ? axis + rank : axis);
  };
  std::swap(axes.at(place(first)), axes.at(place(second)));
  return permute(a, axes);
}

namespace {

// What PyTorch's floats of 8 bits have beyond their greatest number, where the engine has another.
struct Beyond {
  tiny_dtype dtype;
  double limit, becomes;  // from where on; what, with a number's sign
};
constexpr Beyond kBeyond[] = {
    {TINY_FLOAT8_E4M3FN, INFINITY, 448},
    {TINY_FLOAT8_E4M3FNUZ, 248, NAN},
    {TINY_FLOAT8_E5M2, 61440, INFINITY},
    {TINY_FLOAT8_E5M2FNUZ, 61440, NAN},
};

Value bounded(const Value& a, tiny_dtype dtype) {
  const auto* const row = std::ranges::find(kBeyond, dtype, &Beyond::dtype);
  if (row == std::end(kBeyond) || !a.is_float()) return a;
  const Value beyond = where(compare(TINY_LT, a, 0), constant(a.dtype(), -row->becomes),
                             constant(a.dtype(), row->becomes));
  return where(compare(TINY_GE, unary(TINY_ABS, a), row->limit), beyond, a);
}

}  // namespace

Value cast(const Value& a, tiny_dtype dtype) {
  if (a.dtype() == dtype) return a;
  if (dtype >= TINY_FLOAT8_E4M3FN) {
    const Value given = bounded(a, dtype);
    return made([&](tiny_tensor** out) { return tiny_cast(given.handle(), dtype, out); });
  }
  return made([&](tiny_tensor** out) { return tiny_cast(a.handle(), dtype, out); });
}

Value bitcast(const Value& a, tiny_dtype dtype) {
  if (a.dtype() == dtype) return a;
  return made([&](tiny_tensor** out) { return tiny_bitcast(a.handle(), dtype, out); });
}

namespace {

tiny_dtype word_of(size_t bytes) {
  switch (bytes) {
    case 1:
      return TINY_UINT8;
    case 2:
      return TINY_UINT16;
    case 4:
      return TINY_UINT32;
    default:
      return TINY_UINT64;
  }
}

// 0, 8 * bytes, .. for `count` parts of a word.
Value shifts(tiny_dtype word, size_t count, size_t bytes) {
  return arange(word, static_cast<int64_t>(count)) * static_cast<double>(8 * bytes);
}

}  // namespace

Value recut(const Value& a, tiny_dtype dtype) {
  if (a.dtype() == TINY_BOOL) return recut(cast(a, TINY_UINT8), dtype);
  if (dtype == TINY_BOOL) return compare(TINY_NE, recut(a, TINY_UINT8), 0);
  const size_t held = tiny_dtype_size(a.dtype());
  const size_t wanted = tiny_dtype_size(dtype);
  if (held == wanted) return bitcast(a, dtype);
  const Value words = bitcast(a, word_of(held));
  const int64_t count = a.numel() * static_cast<int64_t>(held) / static_cast<int64_t>(wanted);
  if (held > wanted) {
    const int64_t column[] = {a.numel(), 1};
    const Value moved =
        binary(TINY_SHR, reshape(words, column), shifts(word_of(held), held / wanted, wanted));
    const Value parts =
        binary(TINY_AND, moved,
               constant(word_of(held), std::ldexp(1.0, static_cast<int>(8 * wanted)) - 1));
    return bitcast(reshape(cast(parts, word_of(wanted)), {&count, 1}), dtype);
  }
  const int64_t rows[] = {count, static_cast<int64_t>(wanted / held)};
  const Value parts = binary(TINY_SHL, cast(reshape(words, rows), word_of(wanted)),
                             shifts(word_of(wanted), wanted / held, held));
  return bitcast(cast(reduce(TINY_SUM, parts, Sizes{1}, false), word_of(wanted)), dtype);
}

Value unary(tiny_unary_op op, const Value& a) {
  return made([&](tiny_tensor** out) { return tiny_unary(op, a.handle(), out); });
}

Value binary(tiny_binary_op op, const Value& a, const Value& b) {
  return made([&](tiny_tensor** out) { return tiny_binary(op, a.handle(), b.handle(), out); });
}

Value compare(tiny_compare_op op, const Value& a, const Value& b) {
  return made([&](tiny_tensor** out) { return tiny_compare(op, a.handle(), b.handle(), out); });
}

Value compare(tiny_compare_op op, const Value& a, double b) {
  return compare(op, a, constant(a.dtype(), b));
}

Value where(const Value& condition, const Value& a, const Value& b) {
  return made([&](tiny_tensor** out) {
    return tiny_where(condition.handle(), a.handle(), b.handle(), out);
  });
}

Value reduce(tiny_reduce_op op, const Value& a, SizesRef axes, bool keepdims) {
  if (axes.empty()) return a;
  return made([&](tiny_tensor** out) {
    return tiny_reduce(op, a.handle(), axes.data(), axes.size(), keepdims ? TINY_FLAG_KEEPDIMS : 0,
                       out);
  });
}

Value matmul(const Value& a, const Value& b) {
  return made([&](tiny_tensor** out) { return tiny_matmul(a.handle(), b.handle(), out); });
}

Value gather(const Value& a, const Value& index, int64_t axis) {
  return made(
      [&](tiny_tensor** out) { return tiny_gather(a.handle(), index.handle(), axis, out); });
}

Value take_along_axis(const Value& a, const Value& index, int64_t axis) {
  return made([&](tiny_tensor** out) {
    return tiny_take_along_axis(a.handle(), index.handle(), axis, out);
  });
}

Value batch_norm(const Value& x, const Value& scale, const Value& bias, const Value& mean,
                 const Value& variance, double epsilon) {
  return made([&](tiny_tensor** out) {
    return tiny_batch_norm(x.handle(), scale.handle(), bias.handle(), mean.handle(),
                           variance.handle(), epsilon, out);
  });
}

Value layer_norm(const Value& x, const Value& scale, const Value& bias, int64_t axis,
                 double epsilon) {
  return made([&](tiny_tensor** out) {
    return tiny_layer_norm(x.handle(), scale.handle(), bias.handle(), axis, epsilon, out);
  });
}

Value group_norm(const Value& x, int64_t groups, const Value& scale, const Value& bias,
                 double epsilon) {
  return made([&](tiny_tensor** out) {
    return tiny_group_norm(x.handle(), groups, scale.handle(), bias.handle(), epsilon, out);
  });
}

std::vector<Value> onnx(const char* name, std::span<const Value> inputs, const char* attributes,
                        size_t outputs) {
  const auto handles = handles_of(inputs);
  std::vector<tiny_tensor*> results(outputs, nullptr);
  check(tiny_op(context(), nullptr, name, 0, handles.data(), handles.size(), attributes,
                results.data(), outputs));
  return std::vector<Value>(results.begin(), results.end());
}

Value onnx(const char* name, std::initializer_list<Value> inputs, const char* attributes) {
  return onnx(name, std::span(inputs.begin(), inputs.size()), attributes, 1)[0];
}

Value operator+(const Value& a, const Value& b) {
  return binary(TINY_ADD, a, b);
}
Value operator-(const Value& a, const Value& b) {
  return binary(TINY_SUB, a, b);
}
Value operator*(const Value& a, const Value& b) {
  return binary(TINY_MUL, a, b);
}
Value operator/(const Value& a, const Value& b) {
  return binary(TINY_DIV, a, b);
}
Value operator-(const Value& a) {
  return unary(TINY_NEG, a);
}
Value operator+(const Value& a, double b) {
  return a + constant(a.dtype(), b);
}
Value operator-(const Value& a, double b) {
  return a - constant(a.dtype(), b);
}
Value operator*(const Value& a, double b) {
  return a * constant(a.dtype(), b);
}
Value operator/(const Value& a, double b) {
  return a / constant(a.dtype(), b);
}
Value operator-(double a, const Value& b) {
  return constant(b.dtype(), a) - b;
}
Value operator/(double a, const Value& b) {
  return constant(b.dtype(), a) / b;
}
Value logical_and(const Value& a, const Value& b) {
  return binary(TINY_AND, a, b);
}

Value detach(const Value& a) {
  return made([&](tiny_tensor** out) { return tiny_detach(a.handle(), out); });
}

std::vector<Value> gradients(const Value& output, const Value& upstream,
                             std::span<const Value> wrt) {
  tiny_tensor* const loss = output.handle();
  tiny_tensor* const weight = upstream.handle();
  const auto handles = handles_of(wrt);
  std::vector<tiny_tensor*> results(wrt.size(), nullptr);
  check(tiny_gradient(&loss, 1, handles.data(), handles.size(), &weight, 1, TINY_FLAG_ALLOW_UNUSED,
                      results.data(), results.size()));
  return std::vector<Value>(results.begin(), results.end());
}

void assign(const Value& target, const Value& value) {
  check(tiny_assign(target.handle(), value.handle()));
}

void realize(std::span<tiny_tensor* const> handles) {
  check(tiny_realize(handles.data(), handles.size()));
}

void read(const Value& value, void* data, size_t bytes) {
  check(tiny_tensor_read(value.handle(), data, bytes));
}

}  // namespace tiny_torch
