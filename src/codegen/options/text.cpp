#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/matrix.h"
#include "base/text.h"
#include "codegen/options/options.h"

namespace tiny {

namespace {

constexpr const char* kNames[] = {"TILE",    "VEC",    "UPCAST",   "UNROLL", "THREAD",
                                  "ORDER",   "STAGE",  "PREFETCH", "BYPASS", "DOT",
                                  "OVERLAP", "STREAM", "LOCAL",    "TC",     "PIPELINE"};

std::string range_text(int64_t number) {
  return number < 0 ? std::string("all") : cat("r", number);
}

bool has_size(OptionKind kind) {
  return kind == OptionKind::Tile || kind == OptionKind::Stream || kind == OptionKind::Local ||
         kind == OptionKind::Pipeline;
}

std::string to_text(const Option& option) {
  std::string text = kNames[static_cast<size_t>(option.kind)];
  if (option.kind == OptionKind::Order || option.kind == OptionKind::Matrix) {
    for (int64_t r : option.list) text += " " + range_text(r);
    if (option.kind == OptionKind::Matrix)
      text += cat(" ", kMatrixRows[static_cast<size_t>(option.amount)].name);
    return text;
  }
  if (option.kind == OptionKind::Stage) {
    text += cat(option.by_number ? " v" : " p", option.amount, " ", range_text(option.range));
    for (int64_t r : option.list) text += " " + range_text(r);
    if (option.padding) text += cat(" pad ", option.padding);
    if (option.is_shared) text += " shared";
    return option.swizzle ? cat(text, " swizzle ", option.swizzle) : text;
  }
  if (option.kind == OptionKind::Bypass) return text + cat(" p", option.amount);
  if (option.kind == OptionKind::Prefetch) text += cat(" p", option.amount);
  text += " " + range_text(option.range);
  return has_size(option.kind) ? cat(text, " ", option.amount) : text;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<Option> run() {
    std::vector<Option> out;
    while (true) {
      const std::string_view word = next();
      if (word.empty()) return out;
      if (word == ";") continue;
      out.push_back(option(word));
    }
  }

 private:
  [[noreturn]] void fail(std::string_view got, const char* wanted) const {
    throw_error(Status::InvalidArgument, "options: got \"", got, "\" where ", wanted,
                " was expected, in \"", text_, "\"");
  }

  std::string_view next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n'))
      ++at_;
    const size_t start = at_;
    if (at_ < text_.size() && text_[at_] == ';') return text_.substr(at_++, 1);
    while (at_ < text_.size() && text_[at_] != ' ' && text_[at_] != ';' && text_[at_] != '\t' &&
           text_[at_] != '\n')
      ++at_;
    return text_.substr(start, at_ - start);
  }

  bool more() {
    const size_t saved = at_;
    const std::string_view word = next();
    at_ = saved;
    return !word.empty() && word != ";";
  }

  int64_t number(std::string_view word, const char* wanted) const {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < 0) fail(word, wanted);
    return value;
  }

  int64_t range(std::string_view word) const {
    if (word.empty() || word[0] != 'r') fail(word, "a range such as r0");
    return number(word.substr(1), "a range such as r0");
  }

  Option option(std::string_view name) {
    const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
    if (found == std::end(kNames))
      fail(name,
           "TILE, VEC, UPCAST, UNROLL, THREAD, ORDER, STAGE, PREFETCH, BYPASS, DOT, OVERLAP, "
           "STREAM, LOCAL, TC or PIPELINE");
    Option o;
    o.kind = static_cast<OptionKind>(found - std::begin(kNames));
    if (o.kind == OptionKind::Order) {
      while (more()) o.list.push_back(range(next()));
      return o;
    }
    if (o.kind == OptionKind::Matrix) {
      for (int n = 0; n < 3; ++n) o.list.push_back(range(next()));
      const std::string_view row = next();
      o.amount = find_matrix_row(row);
      if (o.amount < 0) fail(row, "a row of the matrix table such as m16n8k16_f16");
      if (more()) fail(next(), "; or the end");
      return o;
    }
    if (o.kind == OptionKind::Stage) {
      const std::string_view what = next();
      const char* wanted = "a parameter such as p1, or a value such as v9,";
      if (what.empty() || (what[0] != 'p' && what[0] != 'v')) fail(what, wanted);
      o.by_number = what[0] == 'v';
      o.amount = number(what.substr(1), wanted);
      const std::string_view place = next();
      o.range = place == "all" ? -1 : range(place);
      while (more()) {
        const std::string_view word = next();
        if (word == "pad")
          o.padding = number(next(), "a number of elements");
        else if (word == "shared")
          o.is_shared = true;
        else if (word == "swizzle")
          o.swizzle = number(next(), "a number of bits");
        else
          o.list.push_back(range(word));
      }
      return o;
    }
    if (o.kind == OptionKind::Prefetch || o.kind == OptionKind::Bypass) {
      const std::string_view what = next();
      if (what.empty() || what[0] != 'p') fail(what, "a parameter such as p1");
      o.amount = number(what.substr(1), "a parameter such as p1");
    }
    if (o.kind != OptionKind::Bypass) o.range = range(next());
    if (has_size(o.kind)) o.amount = number(next(), "a size");
    if (more()) fail(next(), "; or the end");
    return o;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string to_text(std::span<const Option> options) {
  std::vector<std::string> parts;
  for (const Option& o : options) parts.push_back(to_text(o));
  return join(parts, "; ");
}

std::vector<Option> parse_options(std::string_view text) {
  return Parser(text).run();
}

}  // namespace tiny
