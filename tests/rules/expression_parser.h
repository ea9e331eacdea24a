// Reads index expressions as text, for tables of cases: "(i*4 + j) // 8 < n".
//
// Precedence from loose to tight:  |   &   < <= > >= == !=   + -   * // % tdiv tmod   unary - !
// Calls: min(a, b) max(a, b) where(c, a, b) abs(a).  Symbols are given.  Nothing is folded: what is
// written is what is built, but for negative literals, a - b (a + -b), a > b (b < a) and a >= b.
#pragma once

#include <cctype>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "ir/uop.h"

namespace tiny {

class ExpressionParser {
 public:
  using Symbols = std::map<std::string, UOp>;
  ExpressionParser(Graph& graph, const Symbols& symbols) : graph_(graph), symbols_(symbols) {}

  UOp parse(const std::string& text) {
    text_ = text;
    at_ = 0;
    UOp u = disjunction();
    skip_blanks();
    if (at_ != text_.size()) fail("the end");
    return u;
  }

 private:
  [[noreturn]] void fail(const char* wanted) {
    throw std::runtime_error("expected " + std::string(wanted) + " at " + text_.substr(at_) +
                             " of " + text_);
  }
  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(const std::string& token) {
    skip_blanks();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  UOp make(Op op, UOp a, UOp b) { return graph_.make(op, {std::move(a), std::move(b)}); }

  UOp disjunction() {
    UOp a = conjunction();
    while (take("|")) a = make(Op::Or, a, conjunction());
    return a;
  }
  UOp conjunction() {
    UOp a = comparison();
    while (take("&")) a = make(Op::And, a, comparison());
    return a;
  }
  UOp comparison() {
    UOp a = sum();
    if (take("<<")) return make(Op::Shl, a, sum());
    if (take(">>")) return make(Op::Shr, a, sum());
    if (take("<=")) return make(Op::LessEqual, a, sum());
    if (take(">=")) return make(Op::LessEqual, sum(), a);
    if (take("<")) return make(Op::Less, a, sum());
    if (take(">")) return make(Op::Less, sum(), a);
    if (take("==")) return make(Op::Equal, a, sum());
    if (take("!=")) return make(Op::NotEqual, a, sum());
    return a;
  }
  UOp sum() {
    UOp a = product();
    while (true) {
      if (take("+")) {
        a = make(Op::Add, a, product());
      } else if (take("-")) {
        UOp b = product();
        b = b.is_const() ? graph_.integer(-b.const_int()) : graph_.make(Op::Neg, {b});
        a = make(Op::Add, a, b);
      } else {
        return a;
      }
    }
  }
  UOp product() {
    UOp a = unary();
    while (true) {
      if (take("//")) {
        a = make(Op::FloorDiv, a, unary());
      } else if (take("*")) {
        a = make(Op::Mul, a, unary());
      } else if (take("%")) {
        a = make(Op::FloorMod, a, unary());
      } else if (take("tdiv")) {
        a = make(Op::TruncDiv, a, unary());
      } else if (take("tmod")) {
        a = make(Op::TruncMod, a, unary());
      } else {
        return a;
      }
    }
  }
  UOp unary() {
    if (take("-")) {
      UOp a = unary();
      return a.is_const() ? graph_.integer(-a.const_int()) : graph_.make(Op::Neg, {a});
    }
    if (take("!")) return graph_.make(Op::Not, {unary()});
    return atom();
  }
  UOp call(Op op, size_t count) {
    if (!take("(")) fail("(");
    std::vector<UOp> src;
    for (size_t i = 0; i < count; ++i) {
      if (i && !take(",")) fail(",");
      src.push_back(disjunction());
    }
    if (!take(")")) fail(")");
    return graph_.make(op, std::move(src));
  }
  UOp atom() {
    skip_blanks();
    if (take("(")) {
      UOp a = disjunction();
      if (!take(")")) fail(")");
      return a;
    }
    size_t end = at_;
    while (end < text_.size() && std::isalnum(static_cast<unsigned char>(text_[end]))) ++end;
    const std::string word = text_.substr(at_, end - at_);
    if (word.empty()) fail("a value");
    at_ = end;
    if (std::isdigit(static_cast<unsigned char>(word[0]))) return graph_.integer(std::stoll(word));
    if (word == "true" || word == "false") return graph_.boolean(word == "true");
    if (word == "min") return call(Op::Min, 2);
    if (word == "max") return call(Op::Max, 2);
    if (word == "abs") return call(Op::Abs, 1);
    if (word == "where") return call(Op::Where, 3);
    const auto symbol = symbols_.find(word);
    if (symbol == symbols_.end()) fail("a known symbol");
    return symbol->second;
  }

  Graph& graph_;
  const Symbols& symbols_;
  std::string text_;
  size_t at_ = 0;
};

}  // namespace tiny
