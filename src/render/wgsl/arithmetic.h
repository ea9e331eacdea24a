// One lane of an op as an expression of WGSL, and the functions that such expressions call.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "ir/dtype.h"
#include "ir/op.h"

namespace tiny::wgsl {

// Of a value: integers of 8 and 16 bits are kept as 32, halves as their bits.
const char* type_of(DType dtype);

class Functions {
 public:
  // All definitions so far.
  const std::string& text() const { return text_; }

  std::string literal(DType dtype, uint64_t bits);
  // Other than Where, Cast and Bitcast.
  std::string arithmetic(Op op, DType operand, const std::string& a, const std::string& b,
                         const std::string& c);
  std::string cast(DType from, DType to, const std::string& x);
  std::string bitcast(DType from, DType to, const std::string& x);
  // A word of memory as the value, which begins at such a byte address of it; and back, without
  // what stands beside it in the word.
  std::string of_word(DType dtype, const std::string& word, const std::string& address);
  std::string to_word(DType dtype, const std::string& x);
  std::string group_fold(Op op, DType dtype);  // (value, thread, apart, size)
  std::string check();                         // (bool, number, position)
  std::string first_bytes();                   // (word, how many)

 private:
  // The name; defined if it was not.
  std::string define(std::string_view name, std::string_view definition);

  std::set<std::string> known_;
  std::string text_;
};

}  // namespace tiny::wgsl
