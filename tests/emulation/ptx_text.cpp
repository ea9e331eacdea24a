#include "tests/emulation/ptx_text.h"

#include <bit>
#include <cctype>
#include <charconv>

namespace tiny::emulation {

Refused::Refused(uint32_t line, const std::string& what)
    : std::runtime_error("ptx line " + std::to_string(line) + ": " + what), line_(line) {
}

namespace {

bool begins_word(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' ||
         c == '.';
}

bool is_in_word(char c) {
  return begins_word(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  std::vector<Token> split() {
    std::vector<Token> tokens;
    while (skip_space()) tokens.push_back(next());
    tokens.push_back({TokenKind::End, {}, line_});
    return tokens;
  }

 private:
  bool is_at(std::string_view what) const { return text_.substr(at_, what.size()) == what; }

  // Past spaces and comments; false at the end.
  bool skip_space() {
    while (at_ < text_.size()) {
      if (is_at("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (is_at("/*")) {
        const size_t end = text_.find("*/", at_);
        if (end == std::string_view::npos) throw Refused(line_, "a comment without an end");
        for (; at_ < end + 2; ++at_) line_ += text_[at_] == '\n' ? 1 : 0;
      } else if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        line_ += text_[at_++] == '\n' ? 1 : 0;
      } else {
        return true;
      }
    }
    return false;
  }

  Token next() {
    const char c = text_[at_];
    if (begins_word(c)) return word();
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) return number();
    if (c == '"') {
      const size_t end = text_.find('"', at_ + 1);
      if (end == std::string_view::npos) throw Refused(line_, "text without an end");
      return taken(TokenKind::Text, end + 1 - at_);
    }
    return taken(TokenKind::Mark, 1);
  }

  Token taken(TokenKind kind, size_t length) {
    const Token token{kind, text_.substr(at_, length), line_};
    at_ += length;
    return token;
  }

  // Two colons are of a word where one goes on behind them: "shared::cta".
  Token word() {
    size_t end = at_;
    while (end < text_.size()) {
      if (is_in_word(text_[end]))
        ++end;
      else if (text_.substr(end, 2) == "::" && end + 2 < text_.size() && is_in_word(text_[end + 2]))
        end += 2;
      else
        break;
    }
    return taken(TokenKind::Word, end - at_);
  }

  Token number() {
    size_t end = at_;
    while (end < text_.size() && is_in_word(text_[end])) ++end;
    // "1.5e-3"
    const std::string_view so_far = text_.substr(at_, end - at_);
    const bool is_hex = so_far.size() > 1 && std::isalpha(static_cast<unsigned char>(so_far[1]));
    if (!is_hex && (so_far.back() == 'e' || so_far.back() == 'E') && end < text_.size() &&
        (text_[end] == '-' || text_[end] == '+')) {
      ++end;
      while (end < text_.size() && is_in_word(text_[end])) ++end;
    }
    Token token = taken(TokenKind::Number, end - at_);
    read(token);
    return token;
  }

  static void read(Token& token) {
    std::string_view digits = token.text;
    int base = 10;
    if (digits.size() > 2 && digits[0] == '0') {
      const char mark = digits[1];
      if (mark == 'x' || mark == 'X') base = 16;
      if (mark == 'b' || mark == 'B') base = 2;
      if (mark == 'f' || mark == 'F') token.as = Token::As::Single;
      if (mark == 'd' || mark == 'D') token.as = Token::As::Double;
      if (token.as != Token::As::Integer) base = 16;
      if (base != 10) digits.remove_prefix(2);
    }
    if (base != 16 && digits.ends_with('U')) digits.remove_suffix(1);
    const char* end = digits.data() + digits.size();
    if (base == 10 && digits.find_first_of(".eE") != std::string_view::npos) {
      double value = 0;
      if (std::from_chars(digits.data(), end, value).ptr != end)
        throw Refused(token.line, "no number: " + std::string(token.text));
      token.as = Token::As::Double;
      token.bits = std::bit_cast<uint64_t>(value);
      return;
    }
    if (std::from_chars(digits.data(), end, token.bits, base).ptr != end || digits.empty())
      throw Refused(token.line, "no number: " + std::string(token.text));
  }

  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
};

}  // namespace

std::vector<Token> split_tokens(std::string_view text) {
  return Splitter(text).split();
}

}  // namespace tiny::emulation
