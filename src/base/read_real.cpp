#include "base/read_real.h"

#include <locale.h>
#include <stdlib.h>

namespace tiny {

namespace {

template <class F>
std::optional<F> read_all(const std::string& text, F (*read)(const char*, char**, locale_t)) {
  const locale_t plain = newlocale(LC_NUMERIC_MASK, "C", nullptr);
  char* end = nullptr;
  const F value = read(text.c_str(), &end, plain);
  freelocale(plain);
  if (text.empty() || end != text.c_str() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

template <>
std::optional<float> read_real(const std::string& text) {
  return read_all(text, strtof_l);
}

template <>
std::optional<double> read_real(const std::string& text) {
  return read_all(text, strtod_l);
}

}  // namespace tiny
