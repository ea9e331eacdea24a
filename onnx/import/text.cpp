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
  using Function =
      std::function<void(Texts&, std::span<const int64_t>, const RunningCall&, size_t at)>;
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
      function_(texts, numbers, call, i);
    }
  }

 private:
  DType dtype_;
  Function function_;
};

Tensors import_concat(Call& c) {
  const Shape shape = broadcast_shape(c.in(0).shape(), c.in(1).shape());
  const auto join = [](Texts& texts, std::span<const int64_t> numbers, const RunningCall& call,
                       size_t at) {
    static_cast<int64_t*>(call.outputs[0].data)[at] =
        texts.number_of(texts.text(numbers[0]) + texts.text(numbers[1]));
  };
  c.set_carried(0, kTextType);
  return call_texts(c, make_ref<Elementwise>("StringConcat", kInt64, join),
                    {expand(c.in(0), shape), expand(c.in(1), shape)}, 1);
}

Tensors import_full_match(Call& c) {
  const auto pattern = std::make_shared<const Pattern>(c.text_attr("pattern", ""));
  const auto match = [pattern](Texts& texts, std::span<const int64_t> numbers,
                               const RunningCall& call, size_t at) {
    static_cast<uint8_t*>(call.outputs[0].data)[at] =
        pattern->matches(texts.text(numbers[0]), *call.poll) ? 1 : 0;
  };
  return call_texts(c, make_ref<Elementwise>("RegexFullMatch", kBool, match), {c.in(0)}, 1);
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
  c.set_carried(0, kTextType);
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
};
// clang-format on

}  // namespace

std::span<const Row> text_rows() {
  return kRows;
}

}  // namespace tiny::onnx
