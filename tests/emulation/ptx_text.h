// The words of PTX text.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tiny::emulation {

// What the text has and this emulator does not know, or what PTX does not allow.
class Refused : public std::runtime_error {
 public:
  Refused(uint32_t line, const std::string& what);
  uint32_t line() const { return line_; }

 private:
  uint32_t line_;
};

enum class TokenKind : uint8_t { Word, Number, Text, Mark, End };

struct Token {
  TokenKind kind = TokenKind::End;
  std::string_view text;  // of the module's text, which outlives it
  uint32_t line = 0;
  // Of a Number: its bits. An integer's are those of 64 bits, 0f has 32, 0d and decimals 64.
  uint64_t bits = 0;
  enum class As : uint8_t { Integer, Single, Double } as = As::Integer;
};

// Words (names, directives, opcodes with their dots), numbers, text in quotes, marks of one
// character; then one End.
std::vector<Token> split_tokens(std::string_view text);

}  // namespace tiny::emulation
