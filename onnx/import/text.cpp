// Functions that look into texts.  A tensor of texts carries their numbers (onnx/texts.h): these
// are functions of the host, which a run calls with the address of its texts; whatever else there
// is for texts is the same as for numbers.
#include <algorithm>

#include "base/error.h"
#include "engine/custom_op.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "onnx/import/text_function.h"
#include "onnx/pattern.h"
#include "tensor/create.h"
#include "tensor/custom.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

using Value = HostCall::Value;

// Of texts, element by element: all inputs have the output's shape.
class Elementwise : public TextFunction {
 public:
  using Function = std::function<void(Texts&, std::span<const int64_t>, void* out, size_t at)>;
  Elementwise(const char* name, DType dtype, Function function)
      : TextFunction(name), dtype_(dtype), function_(std::move(function)) {}
  std::vector<Value> infer(const std::string&, std::span<const Value> inputs,
                           size_t) const override {
    return {{dtype_, inputs[1].shape, -1}};
  }
  void compute(Texts& texts, const RunningCall& call) const override {
    const size_t count = count_of(call.outputs[0]);
    std::vector<int64_t> numbers(call.inputs.size() - 1);
    for (size_t i = 0; i < count; ++i) {
      for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = numbers_of(call.inputs[k + 1])[i];
      function_(texts, numbers, call.outputs[0].data, i);
    }
  }

 private:
  DType dtype_;
  Function function_;
};

Tensors import_concat(Call& c) {
  const Shape shape = broadcast_shape(c.in(0).shape(), c.in(1).shape());
  const auto join = [](Texts& texts, std::span<const int64_t> numbers, void* out, size_t at) {
    static_cast<int64_t*>(out)[at] =
        texts.number_of(texts.text(numbers[0]) + texts.text(numbers[1]));
  };
  c.set_narrow(0, kTextType);
  return call_texts(c, make_ref<Elementwise>("StringConcat", kInt64, join),
                    {expand(c.in(0), shape), expand(c.in(1), shape)}, 1);
}

Tensors import_full_match(Call& c) {
  const auto pattern = std::make_shared<const Pattern>(c.text_attr("pattern", ""));
  const auto match = [pattern](Texts& texts, std::span<const int64_t> numbers, void* out,
                               size_t at) {
    static_cast<uint8_t*>(out)[at] = pattern->matches(texts.text(numbers[0])) ? 1 : 0;
  };
  return call_texts(c, make_ref<Elementwise>("RegexFullMatch", kBool, match), {c.in(0)}, 1);
}

// ---- Splitting.

// The parts between delimiters; of no delimiter, between white space.  The last has the rest after
// `most` parts (< 0: as many as there are).
std::vector<std::string_view> parts_of(std::string_view text, std::string_view delimiter,
                                       int64_t most) {
  constexpr std::string_view kSpaces = " \t\n\r\f\v";
  std::vector<std::string_view> parts;
  const auto is_last = [&] { return most >= 0 && std::ssize(parts) + 1 >= most; };
  if (delimiter.empty()) {
    while (true) {
      const size_t begin = text.find_first_not_of(kSpaces);
      if (begin == text.npos) return parts;
      text.remove_prefix(begin);
      const size_t end = is_last() ? text.npos : text.find_first_of(kSpaces);
      parts.push_back(text.substr(0, end));
      if (end == text.npos) break;
      text.remove_prefix(end);
    }
    return parts;
  }
  if (text.empty()) return parts;
  while (true) {
    const size_t end = is_last() ? text.npos : text.find(delimiter);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + delimiter.size());
  }
}

class Splitting : public TextFunction {
 public:
  Splitting(std::string delimiter, int64_t most, int64_t room)
      : TextFunction("StringSplit"), delimiter_(std::move(delimiter)), most_(most), room_(room) {}
  // Parts by their numbers, "" (number 0) behind the last, and how many there are.
  std::vector<Value> infer(const std::string&, std::span<const Value> inputs,
                           size_t) const override {
    Shape parts = inputs[1].shape;
    parts.emplace_back(room_);
    return {{kInt64, parts, -1}, {kInt64, inputs[1].shape, -1}};
  }
  void compute(Texts& texts, const RunningCall& call) const override {
    auto* out = static_cast<int64_t*>(call.outputs[0].data);
    auto* counts = static_cast<int64_t*>(call.outputs[1].data);
    const int64_t* numbers = numbers_of(call.inputs[1]);
    const size_t count = count_of(call.outputs[1]);
    int64_t longest = 0;
    for (size_t i = 0; i < count; ++i) {
      const auto parts = parts_of(texts.text(numbers[i]), delimiter_, most_);
      require(std::ssize(parts) <= room_, Status::Limit, "a text has ", parts.size(),
              " parts; more than ", room_, " are not supported without the attribute maxsplit");
      int64_t* row = out + static_cast<int64_t>(i) * room_;
      for (size_t k = 0; k < parts.size(); ++k) row[k] = texts.number_of(parts[k]);
      counts[i] = std::ssize(parts);
      longest = std::max(longest, counts[i]);
    }
    // Nobody looks behind the longest.
    for (size_t i = 0; i < count; ++i, out += room_) std::fill(out + counts[i], out + longest, 0);
  }

 private:
  std::string delimiter_;
  int64_t most_, room_;
};

Tensors import_split(Call& c) {
  // Parts of one text where the model says no number: memory is for as many.
  constexpr int64_t kPartsMax = 1024;
  const Tensor& x = c.in(0);
  const int64_t splits = c.attr("maxsplit", -1);
  const int64_t most = splits < 0 ? -1 : std::min(splits, kPartsMax - 1) + 1;
  c.check(splits < kPartsMax || splits < 0, "maxsplit is ", splits);
  const Tensors made = call_texts(
      c, make_ref<Splitting>(c.text_attr("delimiter", ""), most, most < 0 ? kPartsMax : most), {x},
      2);
  const Tensor longest = maximum(max(flatten(made[1]), {0}), number_int(c, 0));  // of none: 0
  const tiny::Dim room = made[0].shape().back();
  const tiny::Dim size = c.importer().computed_size(longest, room, c.node());
  Shape shape = made[0].shape();
  shape.back() = size;
  c.set_narrow(0, kTextType);
  return {shrink(made[0], Shape(shape.size(), 0), shape), made[1]};
}

// ---- Normalizing.

enum class CaseChange : uint8_t { None, Lower, Upper };
constexpr Named<CaseChange> kCaseChanges[] = {
    {"NONE", CaseChange::None}, {"LOWER", CaseChange::Lower}, {"UPPER", CaseChange::Upper}};

struct Normalization {
  CaseChange change = CaseChange::None;
  std::vector<std::string> left_out;  // in the case in which they are compared
  bool is_case_sensitive = false;
};

// Rows without the words that are left out: as many as the longest has.
class Normalizing : public TextFunction {
 public:
  explicit Normalizing(Normalization n) : TextFunction("StringNormalizer"), how_(std::move(n)) {}
  std::vector<Value> infer(const std::string&, std::span<const Value> inputs,
                           size_t) const override {
    return {{kInt64, inputs[1].shape, -1}, {kInt64, {}, -1}};
  }
  void compute(Texts& texts, const RunningCall& call) const override {
    const LetterCase letters;
    const auto changed = [&](const std::string& text) {
      return how_.change == CaseChange::Lower   ? letters.lower(text)
             : how_.change == CaseChange::Upper ? letters.upper(text)
                                                : text;
    };
    std::vector<std::string> kept;
    for (size_t i = 0; i < count_of(call.outputs[0]); ++i) {
      const std::string& text = texts.text(numbers_of(call.inputs[1])[i]);
      const std::string& compared = how_.is_case_sensitive ? text : letters.lower(text);
      if (std::ranges::count(how_.left_out, compared) == 0) kept.push_back(changed(text));
    }
    // Of nothing one empty text is left.
    if (kept.empty()) kept.emplace_back();
    auto* out = static_cast<int64_t*>(call.outputs[0].data);
    for (size_t i = 0; i < count_of(call.outputs[0]); ++i)
      out[i] = i < kept.size() ? texts.number_of(kept[i]) : 0;
    *static_cast<int64_t*>(call.outputs[1].data) = std::ssize(kept);
  }

 private:
  Normalization how_;
};

Tensors import_normalizer(Call& c) {
  const Tensor& x = c.in(0);
  c.check(x.rank() == 1 || (x.rank() == 2 && dim_of(x, 0) == 1), "it takes one row; got shape ",
          x.shape());
  c.pass_over({"locale"});
  Normalization how{.change = named_attr<CaseChange>(c, "case_change_action", "NONE", kCaseChanges),
                    .left_out = c.strings_attr("stopwords").value_or(std::vector<std::string>()),
                    .is_case_sensitive = c.flag("is_case_sensitive", false)};
  const LetterCase letters;
  if (!how.is_case_sensitive)
    for (std::string& word : how.left_out) word = letters.lower(word);
  const bool keeps_all = how.left_out.empty();
  const tiny::Dim n = x.shape().back();
  c.set_narrow(0, kTextType);
  const Tensors made = call_texts(c, make_ref<Normalizing>(std::move(how)), {x}, 2);
  if (keeps_all) return {made[0]};
  const tiny::Dim count = c.importer().computed_size(made[1], n, c.node());
  Shape shape = x.shape();
  shape.back() = count;
  return {shrink(made[0], Shape(shape.size(), 0), shape)};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"RegexFullMatch",   20, kNow, import_full_match},
    {"StringConcat",     20, kNow, import_concat},
    {"StringNormalizer", 10, kNow, import_normalizer},
    {"StringSplit",      20, kNow, import_split},
};
// clang-format on

}  // namespace

std::span<const Row> text_rows() {
  return kRows;
}

}  // namespace tiny::onnx
