// Operators that take texts apart.  One function of the host counts the parts of each text, from
// which follows the size of the last axis; another writes them.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "onnx/import/text_function.h"
#include "onnx/pattern.h"
#include "onnx/utf8.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

using Port = HostCall::Value;
using Parts = std::vector<std::string_view>;

// How texts are taken apart, and what a row of parts looks like.
class PartsOfText {
 public:
  virtual ~PartsOfText() = default;
  virtual Parts of(std::string_view text, const KernelPoll& poll) const = 0;
  // Around the parts of each text; and behind them up to the longest row's.
  virtual bool has_marks() const { return false; }
  virtual std::string_view filling() const { return {}; }
};
using Rule = std::shared_ptr<const PartsOfText>;

// How many parts each text has.
class Counting : public TextFunction {
 public:
  Counting(const std::string& name, Rule rule) : TextFunction(name), rule_(std::move(rule)) {}
  std::vector<Port> infer(const std::string&, std::span<const Port> inputs, size_t) const override {
    return {{kInt64, inputs[1].shape, -1}};
  }
  void compute(Texts& texts, const RunningCall& call) const override {
    const int64_t* numbers = numbers_of(call.inputs[1]);
    auto* counts = static_cast<int64_t*>(call.outputs[0].data);
    for (size_t i = 0; i < count_of(call.outputs[0]); ++i) {
      counts[i] = std::ssize(rule_->of(texts.text(numbers[i]), *call.poll));
      if (call.poll->ask(call.poll)) return;
    }
  }

 private:
  Rule rule_;
};

// The parts, a row for each text, as long as the last input is.
class Writing : public TextFunction {
 public:
  Writing(const std::string& name, Rule rule) : TextFunction(name), rule_(std::move(rule)) {}
  std::vector<Port> infer(const std::string&, std::span<const Port> inputs, size_t) const override {
    Shape shape = inputs[1].shape;
    shape.push_back(inputs[2].shape.at(0));
    return {{kInt64, shape, -1}};
  }
  void compute(Texts& texts, const RunningCall& call) const override {
    // Start and end of text (ISO 646).
    const int64_t start = texts.number_of("\x02"), end = texts.number_of("\x03");
    const int64_t filling = texts.number_of(rule_->filling());
    const int64_t* numbers = numbers_of(call.inputs[1]);
    const auto room = static_cast<size_t>(call.inputs[2].dims[0]);
    auto* out = static_cast<int64_t*>(call.outputs[0].data);
    std::vector<int64_t> row;
    for (size_t i = 0; i < count_of(call.inputs[1]) && room > 0; ++i, out += room) {
      row.clear();
      if (rule_->has_marks()) row.push_back(start);
      for (const std::string_view part : rule_->of(texts.text(numbers[i]), *call.poll))
        row.push_back(texts.number_of(part));
      if (rule_->has_marks()) row.push_back(end);
      if (call.poll->ask(call.poll)) return;
      invariant(row.size() <= room, "the longest row has room");
      row.resize(room, filling);
      std::ranges::copy(row, out);
    }
  }

 private:
  Rule rule_;
};

// The parts of each text along a new last axis, and how many there are.
Tensors taken_apart(Call& c, const Rule& rule) {
  const Tensor& x = c.in(0);
  const std::string& name = c.node().op_type;
  const Tensor counts = call_texts(c, make_ref<Counting>(name, rule), {x}, 1)[0];
  Tensor longest = maximum(max(flatten(counts), {0}), number_int(c, 0));  // of none: 0
  if (rule->has_marks())  // no parts are no marks either
    longest = where(greater(longest, number_int(c, 0)), longest + number_int(c, 2), longest);
  const Tensor row = full_bits(c.context(), kInt64, {c.importer().open_size(longest, c.node())}, 0);
  c.set_carried(0, kTextType);
  return {call_texts(c, make_ref<Writing>(name, rule), {x, row}, 1)[0], counts};
}

// ---- StringSplit.

// Between delimiters; of no delimiter, between white space.  The last has the rest after `most`
// parts (< 0: as many as there are).
class BetweenDelimiters : public PartsOfText {
 public:
  BetweenDelimiters(std::string delimiter, int64_t most)
      : delimiter_(std::move(delimiter)), most_(most) {}
  Parts of(std::string_view text, const KernelPoll&) const override {
    return delimiter_.empty() ? words_of(text) : parts_of(text);
  }

 private:
  bool is_last(const Parts& parts) const { return most_ >= 0 && std::ssize(parts) + 1 >= most_; }

  Parts words_of(std::string_view text) const {
    constexpr std::string_view kSpaces = " \t\n\r\f\v";
    Parts parts;
    while (true) {
      const size_t begin = text.find_first_not_of(kSpaces);
      if (begin == text.npos) return parts;
      text.remove_prefix(begin);
      const size_t end = is_last(parts) ? text.npos : text.find_first_of(kSpaces);
      parts.push_back(text.substr(0, end));
      if (end == text.npos) return parts;
      text.remove_prefix(end);
    }
  }
  Parts parts_of(std::string_view text) const {
    Parts parts;
    if (text.empty()) return parts;
    while (true) {
      const size_t end = is_last(parts) ? text.npos : text.find(delimiter_);
      parts.push_back(text.substr(0, end));
      if (end == text.npos) return parts;
      text.remove_prefix(end + delimiter_.size());
    }
  }

  std::string delimiter_;
  int64_t most_;
};

Tensors import_split(Call& c) {
  const int64_t splits = c.attr("maxsplit", -1);
  const int64_t most = splits < 0 || splits == INT64_MAX ? -1 : splits + 1;
  return taken_apart(c, std::make_shared<BetweenDelimiters>(c.text_attr("delimiter", ""), most));
}

// ---- Tokenizer.

// The characters of a text; Error{InvalidArgument} if it is none of UTF-8.
size_t characters_in(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); ++count) {
    const Utf8Character c = first_character(text);
    require(c.is_sound, Status::InvalidArgument, "a text is no UTF-8: the byte ",
            static_cast<int>(c.code), " belongs to no character");
    text.remove_prefix(c.bytes);
  }
  return count;
}

// As onnxruntime's Tokenizer does it: what lies between matches of one separator after the other,
// or the matches of an expression.
class Tokens : public PartsOfText {
 public:
  enum class Kind : uint8_t { Characters, BetweenMatches, Matches };
  struct Options {
    Kind kind = Kind::Characters;
    std::vector<Pattern> patterns = {};
    size_t least = 1;  // characters; shorter ones are left out
    bool has_marks = false;
    std::string filling = {};
  };
  explicit Tokens(Options options) : options_(std::move(options)) {}
  bool has_marks() const override { return options_.has_marks; }
  std::string_view filling() const override { return options_.filling; }

  Parts of(std::string_view text, const KernelPoll& poll) const override {
    characters_in(text);
    if (options_.kind == Kind::Characters) return characters(text);
    Parts parts{text};
    for (const Pattern& pattern : options_.patterns) {
      Parts next;
      for (const std::string_view part : parts) take_apart(part, pattern, next, poll);
      parts = std::move(next);
    }
    return parts;
  }

 private:
  static Parts characters(std::string_view text) {
    Parts parts;
    while (!text.empty()) {
      const size_t bytes = first_character(text).bytes;
      parts.push_back(text.substr(0, bytes));
      text.remove_prefix(bytes);
    }
    return parts;
  }

  void take_apart(std::string_view text, const Pattern& pattern, Parts& out,
                  const KernelPoll& poll) const {
    const auto add = [&](std::string_view token) {
      if (characters_in(token) >= options_.least) out.push_back(token);
    };
    const bool takes_matches = options_.kind == Kind::Matches;
    size_t at = 0;
    while (const auto match = pattern.find(text, at, poll)) {
      add(takes_matches ? text.substr(match->begin, match->size)
                        : text.substr(at, match->begin - at));
      at = match->begin + match->size;
      // Behind a match of nothing a character is passed over.
      if (match->size == 0) at += at < text.size() ? first_character(text.substr(at)).bytes : 1;
      if (poll.ask(&poll)) return;
    }
    if (!takes_matches && at < text.size()) add(text.substr(at));
  }

  Options options_;
};

Tensors import_tokenizer(Call& c) {
  const int64_t rank = c.in(0).rank();
  c.check(rank == 1 || rank == 2, "it takes texts of one or two axes; got shape ", c.in(0).shape());
  const int64_t least = c.attr("mincharnum");
  c.check(least > 0, "mincharnum is ", least);
  Tokens::Options how{.least = static_cast<size_t>(least),
                      .has_marks = c.attr("mark") != 0,
                      .filling = c.text_attr("pad_value", "")};
  c.check(c.has_attribute("pad_value"), "the attribute \"pad_value\" is missing");
  const auto separators = c.strings_attr("separators");
  const std::string expression = c.text_attr("tokenexp", "");
  c.check(separators.has_value() != c.has_attribute("tokenexp"),
          "it has one of the attributes separators and tokenexp");
  c.check(separators ? !separators->empty() : !expression.empty(), "an empty list of separators, ",
          "or an empty expression");
  // The expression of any character is one of all, also of those that end lines.
  const bool is_of_characters =
      separators ? separators->size() == 1 && separators->at(0).empty() : expression == ".";
  c.check(!is_of_characters || least == 1, "mincharnum is ", least, " of single characters");
  if (!is_of_characters) {
    how.kind = separators ? Tokens::Kind::BetweenMatches : Tokens::Kind::Matches;
    for (const std::string& pattern : separators ? *separators : std::vector{expression})
      how.patterns.emplace_back(pattern);
  }
  return {taken_apart(c, std::make_shared<Tokens>(std::move(how)))[0]};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"StringSplit", 20, kNow, import_split},
    {"Tokenizer",   1,  1,    import_tokenizer, 0, nullptr, kContributed},
};
// clang-format on

}  // namespace

std::span<const Row> text_part_rows() {
  return kRows;
}

}  // namespace tiny::onnx
