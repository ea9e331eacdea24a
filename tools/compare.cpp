#include "compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "files.h"

namespace tiny::cli {
namespace {

bool close(long double got, long double want, Tolerance tolerance) {
  if (got == want) return true;
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  if (std::isinf(got) || std::isinf(want)) return false;
  return std::fabs(got - want) <=
         tolerance.absolute + static_cast<long double>(tolerance.relative) * std::fabs(want);
}

}  // namespace

Json Comparison::json() const {
  Json object = Json::object();
  object.set("file", file).set("pass", pass).set("max_abs", max_abs).set("max_rel", max_rel);
  object.set("mismatched", mismatched).set("total", total);
  Json place;
  if (first) place.set("index", *first).set("got", got).set("want", want);
  object.set("first", place);
  if (!reason.empty()) object.set("reason", reason);
  return object;
}

std::string Comparison::text() const {
  if (!reason.empty()) return reason;
  if (pass) return "equal within the tolerance";
  return std::to_string(mismatched) + " of " + std::to_string(total) +
         " elements differ, the first at " + std::to_string(*first) + ": got " + got.text() +
         ", wanted " + want.text();
}

Comparison compare(const Array& got, const Array& want, const std::string& file,
                   Tolerance tolerance) {
  Comparison result;
  result.file = file;
  result.total = want.count();
  if (got.dtype != want.dtype || got.shape != want.shape) {
    result.pass = false;
    result.mismatched = result.total;
    result.reason =
        "got " + describe(got.dtype, got.shape) + ", wanted " + describe(want.dtype, want.shape);
    return result;
  }
  for (size_t i = 0; i < got.count(); ++i) {
    const long double a = got.at(i), b = want.at(i);
    if (std::isfinite(a) && std::isfinite(b)) {
      const long double difference = std::fabs(a - b);
      result.max_abs = std::max(result.max_abs, static_cast<double>(difference));
      if (b != 0)
        result.max_rel = std::max(result.max_rel, static_cast<double>(difference / std::fabs(b)));
    }
    if (close(a, b, tolerance)) continue;
    if (result.mismatched++ == 0) {
      result.first = i;
      result.got = element(got, i);
      result.want = element(want, i);
    }
  }
  result.pass = result.mismatched == 0;
  return result;
}

Json element(const Array& array, size_t i) {
  const long double value = array.at(i);
  switch (array.dtype) {
    case TINY_BOOL:
      return Json(value != 0);
    case TINY_FLOAT64:
      return Json(static_cast<double>(value));
    case TINY_FLOAT16:
    case TINY_BFLOAT16:
    case TINY_FLOAT32:
      return Json(static_cast<float>(value));
    case TINY_UINT64:
      return Json(static_cast<uint64_t>(value));
    default:
      return Json(static_cast<int64_t>(value));
  }
}

namespace {

// `value_of(i)` is element i as a Value, which holds all of the dtype's.
template <class Value, class ValueOf>
Statistics statistics_of(const Array& array, const ValueOf& value_of) {
  Statistics result;
  const size_t count = array.count();
  std::optional<size_t> low, high;
  Value least = 0, most = 0, sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const Value value = value_of(i);
    if (std::isnan(value)) {
      ++result.nan;
      continue;
    }
    result.inf += std::isinf(value);
    sum += value;
    if (!low || value < least) {
      low = i;
      least = value;
    }
    if (!high || value > most) {
      high = i;
      most = value;
    }
  }
  if (!low) return result;
  result.min = element(array, *low);
  result.max = element(array, *high);
  result.mean = static_cast<double>(sum / static_cast<Value>(count - result.nan));
  return result;
}

}  // namespace

Statistics statistics(const Array& array) {
  // What most outputs are goes without long doubles, which take ten times as long.
  if (array.dtype == TINY_FLOAT32)
    return statistics_of<double>(array, [&](size_t i) {
      float value;
      std::memcpy(&value, array.bytes.data() + i * sizeof(value), sizeof(value));
      return static_cast<double>(value);
    });
  return statistics_of<long double>(array, [&](size_t i) { return array.at(i); });
}

std::vector<Ranked> top(const Array& array, size_t k, const std::vector<std::string>& labels) {
  std::vector<size_t> order;
  for (size_t i = 0; i < array.count(); ++i)
    if (!std::isnan(array.at(i))) order.push_back(i);
  k = std::min(k, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(k), order.end(),
                    [&](size_t a, size_t b) {
                      const long double x = array.at(a), y = array.at(b);
                      return x != y ? x > y : a < b;
                    });
  std::vector<Ranked> ranked;
  for (size_t i = 0; i < k; ++i)
    ranked.push_back(
        {order[i], order[i] < labels.size() ? labels[order[i]] : "", element(array, order[i])});
  return ranked;
}

std::optional<Probabilities> probabilities(const Array& array) {
  constexpr double kRounding = 1e-2;  // of a sum of a thousand float16
  const auto longest = std::max_element(array.shape.begin(), array.shape.end());
  if (!is_float(array.dtype) || array.count() < 2 ||
      *longest != static_cast<int64_t>(array.count()))
    return std::nullopt;
  Probabilities result{false, {}};
  double sum = 0, low = HUGE_VAL, high = -HUGE_VAL;
  for (size_t i = 0; i < array.count(); ++i) {
    const double value = result.values.emplace_back(static_cast<double>(array.at(i)));
    if (!std::isfinite(value)) return std::nullopt;
    sum += value;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low >= 0 && high <= 1) {
    if (std::fabs(sum - 1) > kRounding) return std::nullopt;
    return result;
  }
  result.is_softmax = true;
  sum = 0;
  for (double& value : result.values) sum += value = std::exp(value - high);
  for (double& value : result.values) value /= sum;
  return result;
}

std::vector<std::string> read_labels(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  std::vector<std::string> lines(1);
  for (const std::byte byte : bytes) {
    const char c = static_cast<char>(byte);
    if (c == '\n')
      lines.emplace_back();
    else if (c != '\r')
      lines.back() += c;
  }
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace tiny::cli
