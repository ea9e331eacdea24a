#include "codegen/choose/choose.h"

namespace tiny {

bool vectorises(const Kernel& kernel, const Target& target) {
  for (const UOp& u : topological(kernel.roots)) {
    if (!has(u.op(), kElementwise) || u.dtype() == kInt64 || u.src().empty()) continue;
    if (u.op() == Op::Less || u.op() == Op::LessEqual || u.op() == Op::Equal ||
        u.op() == Op::NotEqual) {
      if (u.src(0).dtype() == kInt64) continue;
    }
    if (!target.vectorises(u.op(), u.src(u.src().size() - 1).dtype())) return false;
    if (u.op() == Op::Cast && !target.vectorises(u.op(), u.dtype())) return false;
  }
  return true;
}

}  // namespace tiny
