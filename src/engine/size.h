// A size of a program: a number, or a formula over the program's variables.  Holds no nodes of a
// graph, so that programs can keep it and any thread can evaluate it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "ir/uop.h"
#include "shape/shape.h"

namespace tiny {

class SizeExpression {
 public:
  SizeExpression(int64_t value = 0) : value_(value) {}  // NOLINT: a number is a size.
  // `variables` are the Variable nodes whose values `value` takes, in that order.
  SizeExpression(const Dim& dim, std::span<const UOp> variables);

  void write(ByteWriter& out) const;
  static SizeExpression read(ByteReader& in);  // 0 for what cannot be evaluated
  // Every variable of the size has a place below this.
  size_t variables_used() const;

  bool is_const() const { return steps_.empty(); }
  // A variable, so many times.
  struct Multiple {
    size_t variable;  // its place
    int64_t factor;
  };
  // The one that the size is; none for a number or another formula.
  std::optional<Multiple> multiple() const;
  // The size for these values; allocates nothing.
  int64_t value(std::span<const int64_t> variables) const;

  struct Step {  // in postfix order
    Op op;
    int64_t number;  // Const: its value; Variable: its place
  };
  // Of a formula; none of a number.
  std::span<const Step> steps() const { return steps_; }

 private:
  int64_t value_ = 0;
  std::vector<Step> steps_;
};

}  // namespace tiny
