#include "onnx/pattern.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "onnx/utf8.h"

namespace tiny::onnx {

namespace {

using State = Pattern::State;
using Set = Pattern::Set;

constexpr uint32_t kNowhere = UINT32_MAX;
constexpr size_t kStatesMax = 10000;   // of a pattern with its repetitions
constexpr size_t kBytesMax = 4096;     // of its text: parts call each other as deep
constexpr int kDepthMax = 200;         // of groups in groups
constexpr int64_t kRepeatsMax = 1000;  // RE2's own limit
constexpr char32_t kLast = 0x10FFFF;

bool is_word(char32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Builds the automaton from its end: what reads a part is told what follows it.
class Compiler {
 public:
  Compiler(std::string_view text, std::vector<Set>& sets, std::vector<State>& states)
      : text_(text), sets_(sets), states_(states) {}

  // The first state; `ignores_case` is what the pattern says of it.
  uint32_t compile(bool& ignores_case) {
    require(text_.size() <= kBytesMax, Status::Limit, "a pattern of ", text_.size(),
            " bytes; more than ", kBytesMax, " are not supported");
    read_flags();
    ignores_case = ignores_case_;
    const Part all = alternatives(0);
    check(text_.empty(), "a ) that closes nothing");
    return all(add({State::Kind::Accept}));
  }

 private:
  // A part of the pattern: the state that reads it and goes on to the one given.
  using Part = std::function<uint32_t(uint32_t)>;

  void check(bool ok, const char* what) const {
    require(ok, Status::Unsupported, "the pattern has ", what);
  }
  uint32_t add(State state) {
    require(states_.size() < kStatesMax, Status::Limit, "the pattern has more than ", kStatesMax,
            " states");
    states_.push_back(state);
    return static_cast<uint32_t>(states_.size() - 1);
  }
  bool take(std::string_view wanted) {
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(wanted.size());
    return true;
  }
  char32_t take_character() {
    check(!text_.empty(), "an end where something is wanted");
    const Utf8Character c = first_character(text_);
    text_.remove_prefix(c.bytes);
    return c.code;
  }

  void read_flags() {
    while (text_.starts_with("(?") && text_.size() > 3 && text_[2] != ':' && text_[2] != 'P' &&
           text_[2] != '<') {
      text_.remove_prefix(2);
      while (!take(")")) {
        const char32_t flag = take_character();
        check(flag == 'i' || flag == 's', "a flag other than i and s");
        (flag == 'i' ? ignores_case_ : dot_is_all_) = true;
      }
    }
  }

  Part alternatives(int depth) {
    check(depth < kDepthMax, "groups that are too deep");
    std::vector<Part> all{sequence(depth)};
    while (take("|")) all.push_back(sequence(depth));
    return [this, all](uint32_t next) {
      uint32_t first = all.back()(next);
      for (size_t i = all.size() - 1; i-- > 0;)
        first = add({State::Kind::Fork, 0, all[i](next), first});
      return first;
    };
  }

  Part sequence(int depth) {
    std::vector<Part> parts;
    while (!text_.empty() && text_[0] != '|' && text_[0] != ')') parts.push_back(repeated(depth));
    return [parts](uint32_t next) {
      for (size_t i = parts.size(); i-- > 0;) next = parts[i](next);
      return next;
    };
  }

  Part repeated(int depth) {
    Part part = atom(depth);
    while (true) {
      int64_t least = 0, most = -1;
      if (take("*")) {
      } else if (take("+")) {
        least = 1;
      } else if (take("?")) {
        most = 1;
      } else if (!read_counts(least, most)) {
        return part;
      }
      take("?");  // as few as possible: the same in a whole match
      part = [this, part, least, most](uint32_t next) { return repeat(part, least, most, next); };
    }
  }

  // {2}, {2,} or {2,5}; anything else is the character {.
  bool read_counts(int64_t& least, int64_t& most) {
    const std::string_view before = text_;
    const auto number = [&](int64_t& value) {
      value = 0;
      const size_t size = text_.size();
      while (!text_.empty() && text_[0] >= '0' && text_[0] <= '9' && value <= kRepeatsMax) {
        value = value * 10 + (text_[0] - '0');
        text_.remove_prefix(1);
      }
      return text_.size() < size;
    };
    if (take("{") && number(least)) {
      most = least;
      if (take(",") && !number(most)) most = -1;
      if (take("}")) {
        check(least <= kRepeatsMax && most <= kRepeatsMax && (most < 0 || least <= most),
              "a repetition that is too large");
        return true;
      }
    }
    text_ = before;
    return false;
  }

  uint32_t repeat(const Part& part, int64_t least, int64_t most, uint32_t next) {
    // What is repeated may be nothing, which makes no states.
    work_ += static_cast<size_t>(std::max(least, most)) + 1;
    require(work_ < kStatesMax, Status::Limit, "the pattern repeats more than ", kStatesMax,
            " times");
    uint32_t first = next;
    if (most < 0) {
      first = add({State::Kind::Fork, 0, kNowhere, next});
      const uint32_t again = part(first);
      states_[first].next = again;
    }
    for (int64_t i = least; i < most; ++i) first = add({State::Kind::Fork, 0, part(first), next});
    for (int64_t i = 0; i < least; ++i) first = part(first);
    return first;
  }

  Part of_set(Set set) {
    sets_.push_back(std::move(set));
    const auto at = static_cast<uint32_t>(sets_.size() - 1);
    return [this, at](uint32_t next) { return add({State::Kind::Set, at, next, 0}); };
  }
  Part of_place(State::Kind kind) {
    return [this, kind](uint32_t next) { return add({kind, 0, next, 0}); };
  }

  Part atom(int depth) {
    if (take("(")) {
      if (take("?")) {
        const bool is_named = take("P<") || take("<");
        check(is_named || take(":"), "a group of a kind that is not known");
        while (is_named && !take(">")) take_character();
      }
      Part part = alternatives(depth + 1);
      check(take(")"), "a ( that nothing closes");
      return part;
    }
    if (take("[")) return of_set(set_in_brackets());
    if (take(".")) return of_set(dot_is_all_ ? Set{{}, true} : Set{{{'\n', '\n'}}, true});
    if (take("^") || take("\\A")) return of_place(State::Kind::Begin);
    if (take("$") || take("\\z")) return of_place(State::Kind::End);
    if (take("\\b")) return of_place(State::Kind::Word);
    if (take("\\B")) return of_place(State::Kind::NoWord);
    if (take("\\")) return of_set(escaped());
    const char32_t c = take_character();
    check(c != '*' && c != '+' && c != '?', "a repetition of nothing");
    return of_set({{{c, c}}, false});
  }

  // What stands behind a backslash.
  Set escaped() {
    const char32_t c = take_character();
    if (c == 'x') {
      const char32_t code = hexadecimal();
      return {{{code, code}}, false};
    }
    if (Set set = class_named(c); !set.ranges.empty()) return set;
    constexpr std::pair<char32_t, char32_t> kControls[] = {{'n', '\n'}, {'t', '\t'}, {'r', '\r'},
                                                           {'f', '\f'}, {'v', '\v'}, {'a', '\a'}};
    for (const auto& [name, code] : kControls)
      if (c == name) return {{{code, code}}, false};
    check(!is_word(c), "an escape that is not known");
    return {{{c, c}}, false};
  }

  char32_t hexadecimal() {
    const bool is_long = take("{");
    char32_t code = 0;
    for (int i = 0; is_long ? !take("}") : i < 2; ++i) {
      const char32_t c = take_character();
      const char32_t digit = c >= '0' && c <= '9'   ? c - '0'
                             : c >= 'a' && c <= 'f' ? c - 'a' + 10
                             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                    : 16;
      check(digit < 16 && code <= kLast, "a number of a character that is none");
      code = code * 16 + digit;
    }
    return code;
  }

  // \d, \w, \s and their opposites; no ranges for another name.
  static Set class_named(char32_t name) {
    switch (name) {
      case 'd':
      case 'D':
        return {{{'0', '9'}}, name == 'D'};
      case 'w':
      case 'W':
        return {{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, name == 'W'};
      case 's':
      case 'S':
        return {{{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}, name == 'S'};
      default:
        return {};
    }
  }

  // All that a set leaves out.
  static Set opposite(Set set) {
    std::ranges::sort(set.ranges);
    Set out;
    char32_t from = 0;
    for (const auto& [first, last] : set.ranges) {
      if (first > from) out.ranges.emplace_back(from, static_cast<char32_t>(first - 1));
      from = std::max(from, static_cast<char32_t>(last + 1));
    }
    if (from <= kLast) out.ranges.emplace_back(from, kLast);
    return out;
  }

  Set set_in_brackets() {
    Set out;
    out.is_negated = take("^");
    bool is_first = true;
    while (is_first || !take("]")) {
      is_first = false;
      if (take("[:")) {
        add_named(out);
        continue;
      }
      Set one = member();
      if (one.is_negated) one = opposite(one);
      const bool is_range = text_.size() > 1 && text_[0] == '-' && text_[1] != ']';
      if (!is_range) {
        out.ranges.insert(out.ranges.end(), one.ranges.begin(), one.ranges.end());
        continue;
      }
      text_.remove_prefix(1);
      const Set last = member();
      check(one.ranges.size() == 1 && last.ranges.size() == 1 &&
                one.ranges[0].first <= last.ranges[0].first,
            "a range of characters that is none");
      out.ranges.emplace_back(one.ranges[0].first, last.ranges[0].first);
    }
    return out;
  }

  Set member() {
    if (take("\\")) return escaped();
    const char32_t c = take_character();
    return {{{c, c}}, false};
  }

  void add_named(Set& out) {
    struct Named {
      std::string_view name;
      std::vector<std::pair<char32_t, char32_t>> ranges;
    };
    const Named known[] = {{"alpha:]", {{'A', 'Z'}, {'a', 'z'}}},
                           {"digit:]", {{'0', '9'}}},
                           {"alnum:]", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
                           {"upper:]", {{'A', 'Z'}}},
                           {"lower:]", {{'a', 'z'}}},
                           {"space:]", {{'\t', '\r'}, {' ', ' '}}},
                           {"punct:]", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
                           {"xdigit:]", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}}};
    for (const Named& one : known)
      if (take(one.name)) {
        out.ranges.insert(out.ranges.end(), one.ranges.begin(), one.ranges.end());
        return;
      }
    check(false, "a class of characters that is not known");
  }

  std::string_view text_;
  std::vector<Set>& sets_;
  std::vector<State>& states_;
  size_t work_ = 0;
  bool ignores_case_ = false;
  bool dot_is_all_ = false;
};

// The states in which the automaton may be, each once: that of the match which began first, if
// those are added first.
class Threads {
 public:
  explicit Threads(size_t count) : is_in_(count) {}
  struct Thread {
    uint32_t state;
    size_t begin;  // of its match
  };
  void clear() {
    for (const Thread& thread : list_) is_in_[thread.state] = false;
    list_.clear();
  }
  bool add(uint32_t state, size_t begin) {
    if (is_in_[state]) return false;
    is_in_[state] = true;
    list_.push_back({state, begin});
    return true;
  }
  const std::vector<Thread>& list() const { return list_; }

 private:
  std::vector<bool> is_in_;
  std::vector<Thread> list_;
};

char32_t other_case(char32_t c) {
  if (c >= 'a' && c <= 'z') return c - ('a' - 'A');
  return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

}  // namespace

bool Pattern::Set::has(char32_t c) const {
  const bool is_in = std::ranges::any_of(
      ranges, [&](const auto& range) { return range.first <= c && c <= range.second; });
  return is_in != is_negated;
}

Pattern::Pattern(std::string_view text) {
  start_ = Compiler(text, sets_, states_).compile(ignores_case_);
}

bool Pattern::reads(const State& state, char32_t c) const {
  const Set& set = sets_[state.set];
  if (!ignores_case_) return set.has(c);
  const bool has_other = set.has(other_case(c));
  return set.is_negated ? set.has(c) && has_other : set.has(c) || has_other;
}

std::optional<Pattern::Match> Pattern::search(std::string_view text, size_t from, bool is_whole,
                                              const KernelPoll& poll) const {
  constexpr size_t kStepsBetweenPolls = size_t{1} << 16;
  size_t steps = 0;
  Threads now(states_.size()), next(states_.size());
  std::vector<uint32_t> open;
  std::optional<Match> best;
  size_t at = from;
  const auto ends_word = [&] {
    return at > 0 && is_word(static_cast<unsigned char>(text[at - 1]));
  };
  const auto begins_word = [&] {
    return at < text.size() && is_word(static_cast<unsigned char>(text[at]));
  };
  // Follows what reads nothing, at this place between two characters.
  const auto follow = [&](uint32_t state, size_t begin, Threads& into) {
    open.push_back(state);
    while (!open.empty()) {
      const uint32_t one = open.back();
      open.pop_back();
      if (!into.add(one, begin)) continue;
      const State& s = states_[one];
      if (s.kind == State::Kind::Fork) {
        open.push_back(s.next);
        open.push_back(s.other);
      }
      const bool is_passed = (s.kind == State::Kind::Begin && at == 0) ||
                             (s.kind == State::Kind::End && at == text.size()) ||
                             (s.kind == State::Kind::Word && ends_word() != begins_word()) ||
                             (s.kind == State::Kind::NoWord && ends_word() == begins_word());
      if (is_passed) open.push_back(s.next);
    }
  };
  while (true) {
    const bool is_end = at == text.size();
    if (!best && (!is_whole || at == from)) follow(start_, at, now);
    for (const Threads::Thread& t : now.list()) {
      const bool is_match = states_[t.state].kind == State::Kind::Accept && (!is_whole || is_end);
      if (is_match && (!best || t.begin <= best->begin)) best = {t.begin, at - t.begin};
    }
    if (is_end || (now.list().empty() && (best || is_whole))) return best;
    const Utf8Character c = first_character(text.substr(at));
    at += c.bytes;
    next.clear();
    for (const Threads::Thread& t : now.list()) {
      const State& s = states_[t.state];
      const bool may_win = !best || t.begin <= best->begin;
      if (may_win && s.kind == State::Kind::Set && reads(s, c.code)) follow(s.next, t.begin, next);
    }
    steps += now.list().size() + 1;
    if (steps > kStepsBetweenPolls) {
      if (poll.ask(&poll)) return std::nullopt;
      steps = 0;
    }
    std::swap(now, next);
  }
}

bool Pattern::matches(std::string_view text, const KernelPoll& poll) const {
  return search(text, 0, true, poll).has_value();
}

std::optional<Pattern::Match> Pattern::find(std::string_view text, size_t from,
                                            const KernelPoll& poll) const {
  if (from > text.size()) return std::nullopt;
  return search(text, from, false, poll);
}

}  // namespace tiny::onnx
