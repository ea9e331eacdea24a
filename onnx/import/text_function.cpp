#include "onnx/import/text_function.h"

#include <wctype.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/read_real.h"
#include "base/text.h"
#include "onnx/import/import.h"
#include "onnx/utf8.h"
#include "tensor/custom.h"
#include "tensor/elementwise.h"

namespace tiny::onnx {

void TextFunction::run(const RunningCall& call) const {
  uint64_t address = 0;
  std::memcpy(&address, call.inputs[0].data, sizeof address);
  compute(*reinterpret_cast<Texts*>(address), call);
}

size_t TextFunction::count_of(const RunningCall::Value& value) {
  size_t count = 1;
  for (const int64_t d : value.dims) count *= static_cast<size_t>(d);
  return count;
}

// ---- Letters.

LetterCase::LetterCase() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
}

LetterCase::~LetterCase() {
  if (locale_) freelocale(locale_);
}

namespace {

// Each character that is one of UTF-8 by `change`; bytes that are none stay.
template <class Change>
std::string changed(const std::string& text, Change change) {
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    const Utf8Character c = first_character(rest);
    if (c.is_sound)
      append_utf8(out, change(c.code));
    else
      out += rest.substr(0, c.bytes);
    rest.remove_prefix(c.bytes);
  }
  return out;
}

}  // namespace

// Without the system's table of letters, those of ASCII.
std::string LetterCase::lower(const std::string& text) const {
  return changed(text, [&](char32_t c) -> char32_t {
    if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
    return locale_ ? static_cast<char32_t>(towlower_l(static_cast<wint_t>(c), locale_)) : c;
  });
}

std::string LetterCase::upper(const std::string& text) const {
  return changed(text, [&](char32_t c) -> char32_t {
    if (c < 0x80) return c >= 'a' && c <= 'z' ? c - ('a' - 'A') : c;
    return locale_ ? static_cast<char32_t>(towupper_l(static_cast<wint_t>(c), locale_)) : c;
  });
}

// ---- Numbers as texts.

namespace {

// What the host's functions have of a dtype: its own type, or one that holds all of it.
DType host_type(DType dtype) {
  if (dtype == kFloat32 || dtype == kFloat64 || dtype == kUInt64) return dtype;
  return dtype.is_float() ? kFloat32 : kInt64;
}

// Calls `fill` with a value of the type that host_type() gave.
template <class Fill>
void as_host_type(DType dtype, const Fill& fill) {
  if (dtype == kFloat32) return fill(float{});
  if (dtype == kFloat64) return fill(double{});
  if (dtype == kUInt64) return fill(uint64_t{});
  fill(int64_t{});
}

template <class T>
std::string text_of(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
    return shortest(value);
  } else {
    return std::to_string(value);
  }
}

class TextOfNumbers : public TextFunction {
 public:
  explicit TextOfNumbers(DType dtype) : TextFunction("Cast"), dtype_(dtype) {}
  std::vector<HostCall::Value> infer(const std::string&, std::span<const HostCall::Value> inputs,
                                     size_t) const override {
    return {{kInt64, inputs[1].shape, -1}};
  }
  void compute(Texts& texts, const RunningCall& call) const override {
    as_host_type(dtype_, [&]<class T>(T) {
      const T* values = static_cast<const T*>(call.inputs[1].data);
      for (size_t i = 0; i < count_of(call.outputs[0]); ++i)
        static_cast<int64_t*>(call.outputs[0].data)[i] = texts.number_of(text_of(values[i]));
    });
  }

 private:
  DType dtype_;
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\r\f\v";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == text.npos) return {};
  text = text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

// What all of `text` is as a T; a real one in its decimal spelling alone.
template <class T>
std::optional<T> read_number(std::string_view text) {
  if constexpr (std::is_floating_point_v<T>) {
    if (text.empty() || text[0] == '+' || text.find_first_of("xX") != text.npos) return {};
    return read_real<T>(std::string(text));
  } else {
    T value{};
    const char* const begin = text.data();  // NOLINT(bugprone-suspicious-stringview-data-usage)
    const char* const end = begin + text.size();
    const auto read = std::from_chars(begin, end, value);
    if (read.ptr != end || read.ec != std::errc()) return {};
    return value;
  }
}

template <class T>
T number_in(std::string_view text) {
  const std::optional<T> value = read_number<T>(trimmed(text));
  require(value.has_value(), Status::InvalidArgument, "the text \"",
          std::string(text.substr(0, 40)), "\" is no number of the wanted type");
  return *value;
}

class NumbersOfText : public TextFunction {
 public:
  explicit NumbersOfText(DType dtype) : TextFunction("Cast"), dtype_(dtype) {}
  std::vector<HostCall::Value> infer(const std::string&, std::span<const HostCall::Value> inputs,
                                     size_t) const override {
    return {{dtype_, inputs[1].shape, -1}};
  }
  void compute(Texts& texts, const RunningCall& call) const override {
    as_host_type(dtype_, [&]<class T>(T) {
      for (size_t i = 0; i < count_of(call.outputs[0]); ++i)
        static_cast<T*>(call.outputs[0].data)[i] =
            number_in<T>(texts.text(numbers_of(call.inputs[1])[i]));
    });
  }

 private:
  DType dtype_;
};

class Ranking : public TextFunction {
 public:
  Ranking() : TextFunction("Unique") {}
  std::vector<HostCall::Value> infer(const std::string&, std::span<const HostCall::Value> inputs,
                                     size_t) const override {
    return {{kInt64, inputs[1].shape, -1}};
  }
  void compute(Texts& texts, const RunningCall& call) const override {
    const std::span<const int64_t> numbers(numbers_of(call.inputs[1]), count_of(call.outputs[0]));
    std::map<std::string_view, int64_t> ranks;
    for (const int64_t number : numbers) ranks[texts.text(number)] = 0;
    int64_t next = 0;
    for (auto& [text, rank] : ranks) rank = next++;
    for (size_t i = 0; i < numbers.size(); ++i)
      static_cast<int64_t*>(call.outputs[0].data)[i] = ranks[texts.text(numbers[i])];
  }
};

}  // namespace

Tensor text_ranks(const Call& c, const Tensor& x) {
  return call_texts(c, make_ref<Ranking>(), {x}, 1)[0];
}

Tensor text_constant(const Call& c, const std::vector<std::string>& texts) {
  Ints numbers;
  for (const std::string& text : texts) numbers.push_back(c.importer().texts().number_of(text));
  return c.constant(numbers);
}

Tensors call_texts(const Call& c, const Ref<const CustomOp>& function, const Tensors& inputs,
                   size_t outputs) {
  Tensors all{c.importer().text_table()};
  all.insert(all.end(), inputs.begin(), inputs.end());
  return call_custom(c.context(), function, "{}", all, outputs);
}

Tensor text_of_numbers(const Call& c, const Tensor& x) {
  const DType wide = host_type(x.dtype());
  return call_texts(c, make_ref<TextOfNumbers>(wide), {cast(x, wide)}, 1)[0];
}

Tensor numbers_of_text(const Call& c, const Tensor& x, DType dtype) {
  const DType wide = host_type(dtype);
  return cast(call_texts(c, make_ref<NumbersOfText>(wide), {x}, 1)[0], dtype);
}

}  // namespace tiny::onnx
