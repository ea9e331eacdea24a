// The static functions and type definitions that a translation unit needs, written when first asked
// for.  Each method returns the name of a function that does the op on such operands;
// docs/semantics.md says what they compute.
#pragma once

#include <set>
#include <string>

#include "ir/dot.h"
#include "ir/dtype.h"
#include "ir/op.h"

namespace tiny::c {

class Helpers {
 public:
  bool defines(const std::string& name) const { return known_.contains(name); }

  // All definitions so far, in an order in which each comes before its users.
  const std::string& text() const { return text_; }

  // The name of the type, defined if it is a vector.
  std::string type(DType dtype);

  // The expression of an elementwise op other than Where, Cast and Bitcast.
  std::string arithmetic(Op op, DType operand, const std::string& a, const std::string& b = "",
                         const std::string& c = "");
  std::string dot(DotKind kind, DType sum);   // (words, words, sum)
  std::string where(DType dtype);             // (condition, a, b)
  std::string cast(DType from, DType to);     // (x)
  std::string bitcast(DType from, DType to);  // (x)
  std::string splat(DType dtype);             // (x)
  std::string ramp(DType dtype);              // (first, step)
  std::string lane_range(DType dtype);        // (low, high)
  std::string fold(Op op, DType dtype);       // (vector)
  std::string check(DType condition);         // (status word, condition, number, position)
  // A constant, with what it needs.
  std::string constant(DType dtype, uint64_t bits);

  // (address [, stride in bytes] [, mask]), (address, indices [, mask]), and for stores the value
  // after the address.
  std::string load(DType dtype, bool strided, bool masked);
  std::string store(DType dtype, bool strided, bool masked);
  std::string gather(DType dtype, bool masked);
  std::string scatter(DType dtype, bool masked);

 private:
  // True the first time: the caller then writes the definition.
  bool first(const std::string& name) { return known_.insert(name).second; }
  void write(const std::string& definition) { text_ += definition + "\n"; }

  std::string scalar_function(Op op, DType dtype);
  std::string flip_sign(DType dtype);
  std::string scalar_cast(DType from, DType to);
  std::string half_cast(DType from, DType to);
  void bits_of_float();
  std::string vector_function(Op op, DType dtype);
  std::string vector_shift(Op op, DType dtype);
  // A function whose result's lane l is the expression `lane`, where `condition` holds, else 0.
  std::string by_lane(const std::string& name, DType result, const std::string& parameters,
                      const std::string& lane, const std::string& condition = "",
                      const std::string& before = "");
  std::string each_lane(const std::string& name, DType dtype, int operands,
                        const std::string& function);
  std::string lane_access(const std::string& name, DType dtype, const std::string& value,
                          const std::string& where, const std::string& place, bool masked);
  std::string load_now(DType dtype);
  std::string comparison(Op op, DType operand);
  std::string mask_expression(Op op, const std::string& a, const std::string& b);

  std::set<std::string> known_;
  std::string text_;
};

}  // namespace tiny::c
