#include "array.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <new>

#include "failure.h"

namespace tiny::cli {
namespace {

template <typename T>
T load(const Array& array, size_t i) {
  T value;
  std::memcpy(&value, array.bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(Array& array, size_t i, T value) {
  std::memcpy(array.bytes.data() + i * sizeof(T), &value, sizeof(T));
}

float half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

uint16_t half_bits(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double size = std::fabs(value);
  if (std::isnan(value)) return 0x7E00;
  if (size >= 65520) return sign | 0x7C00;
  int exponent;
  std::frexp(size, &exponent);
  // Units of the last place; rounding to nearest even may carry into the exponent, as it should.
  const int unit = std::max(exponent, -13) - 11;
  const auto units = static_cast<uint16_t>(std::nearbyint(std::ldexp(size, -unit)));
  const auto biased = static_cast<uint16_t>(unit + 24);
  return static_cast<uint16_t>(sign | (units < 1024 ? units : units + (biased << 10)));
}

uint16_t bfloat_bits(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return 0x7FC0;
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// Wraps modulo 2^64; what no integer holds is 0.
int64_t wrapped(double value) {
  const double whole = std::trunc(value);
  if (std::fabs(whole) < 0x1p63) return static_cast<int64_t>(whole);
  if (whole >= 0 && whole < 0x1p64) return static_cast<int64_t>(static_cast<uint64_t>(whole));
  return 0;
}

}  // namespace

long double Array::at(size_t i) const {
  switch (dtype) {
    case TINY_BOOL:
      return load<uint8_t>(*this, i) != 0;
    case TINY_INT8:
      return load<int8_t>(*this, i);
    case TINY_INT16:
      return load<int16_t>(*this, i);
    case TINY_INT32:
      return load<int32_t>(*this, i);
    case TINY_INT64:
      return static_cast<long double>(load<int64_t>(*this, i));
    case TINY_UINT8:
      return load<uint8_t>(*this, i);
    case TINY_UINT16:
      return load<uint16_t>(*this, i);
    case TINY_UINT32:
      return load<uint32_t>(*this, i);
    case TINY_UINT64:
      return static_cast<long double>(load<uint64_t>(*this, i));
    case TINY_FLOAT16:
      return half_value(load<uint16_t>(*this, i));
    case TINY_BFLOAT16:
      return std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(*this, i)) << 16);
    case TINY_FLOAT32:
      return load<float>(*this, i);
    default:
      return load<double>(*this, i);
  }
}

void Array::put(size_t i, double value) {
  switch (dtype) {
    case TINY_BOOL:
      return store<uint8_t>(*this, i, value != 0);
    case TINY_FLOAT16:
      return store(*this, i, half_bits(value));
    case TINY_BFLOAT16:
      return store(*this, i, bfloat_bits(value));
    case TINY_FLOAT32:
      return store(*this, i, static_cast<float>(value));
    case TINY_FLOAT64:
      return store(*this, i, value);
    default:
      break;
  }
  // The low bytes of a two's complement number are the narrower number.
  const int64_t whole = wrapped(value);
  const size_t size = tiny_dtype_size(dtype);
  std::memcpy(bytes.data() + i * size, &whole, size);
}

Array zeros(std::string name, tiny_dtype dtype, std::vector<int64_t> shape) {
  const int64_t count = element_count(shape);
  const auto size = static_cast<int64_t>(tiny_dtype_size(dtype));
  if (count < 0 || count > INT64_MAX / 8)
    throw Failure(Exit::Limit, "OUT_OF_MEMORY",
                  name + ": no memory holds " + describe(dtype, shape));
  Array made{std::move(name), dtype, std::move(shape), {}};
  try {
    made.bytes.resize(static_cast<size_t>(count * size));
  } catch (const std::bad_alloc&) {
    throw Failure(Exit::Limit, "OUT_OF_MEMORY",
                  made.name + ": no memory for " + describe(dtype, made.shape));
  }
  return made;
}

int64_t element_count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  bool overflows = false, empty = false;
  for (const int64_t dim : shape) {
    if (dim < 0) return -1;
    empty = empty || dim == 0;
    overflows = overflows || __builtin_mul_overflow(count, dim, &count);
  }
  return empty ? 0 : overflows ? -1 : count;
}

bool is_float(tiny_dtype dtype) {
  return dtype == TINY_FLOAT16 || dtype == TINY_BFLOAT16 || dtype == TINY_FLOAT32 ||
         dtype == TINY_FLOAT64;
}

tiny_dtype dtype_of(std::string_view name) {
  for (tiny_dtype dtype = 1; tiny_dtype_supported(dtype); ++dtype)
    if (name == tiny_dtype_name(dtype)) return dtype;
  return 0;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "," : "") + (shape[i] < 0 ? std::string("?") : std::to_string(shape[i]));
  return text + "]";
}

std::string describe(tiny_dtype dtype, const std::vector<int64_t>& shape) {
  const char* name = tiny_dtype_name(dtype);
  return std::string(name ? name : "unknown dtype") + " " + shape_text(shape);
}

Array read_tensor(const tiny_tensor* tensor, std::string name) {
  tiny_dtype dtype;
  size_t rank;
  std::vector<int64_t> shape(TINY_RANK_MAX);
  check(tiny_tensor_dtype(tensor, &dtype));
  check(tiny_tensor_shape(tensor, shape.data(), shape.size(), &rank));
  shape.resize(rank);
  Array array = zeros(std::move(name), dtype, std::move(shape));
  check(tiny_tensor_read(tensor, array.bytes.data(), array.bytes.size()));
  return array;
}

}  // namespace tiny::cli
