#include "ir/open_size.h"

#include "ir/bounds.h"
#include "ir/rebuild.h"

namespace tiny {

int64_t usual_most(const UOp& expression) {
  if (expression.is_const()) return expression.const_int();
  const auto usual = [](const UOp& node, const UOp& now) {
    if (node.op() != Op::Variable || node.variable_arg().max != kOpenSizeMax) return now;
    return node.graph().variable(node.variable_arg().name, node.variable_arg().min, kOpenSizeUsual);
  };
  return bounds(rebuild({&expression, 1}, nullptr, usual).front()).hi;
}

}  // namespace tiny
