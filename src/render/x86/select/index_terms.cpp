#include "render/x86/select/index_terms.h"

namespace tiny::x86 {

LinearId peel(const LinearView& ops, LinearId index, int64_t& constant) {
  for (;;) {
    const LinearOp& o = ops.op(index);
    if (o.op == Op::Const) {
      constant = wrapping_add_product(constant, o.imm, 1);
      return kNoIndex;
    }
    if (o.op != Op::Add && o.op != Op::Sub) return index;
    size_t term = 1;
    if (!ops.is_const(o.src[1])) {
      if (o.op == Op::Sub || !ops.is_const(o.src[0])) return index;
      term = 0;
    }
    // The other term is read here, later than the sum was made: it must not have changed.
    if (ops.source(o, 1 - term).op == Op::Accumulator) return index;
    constant = wrapping_add_product(constant, ops.op(o.src[term]).imm, o.op == Op::Sub ? -1 : 1);
    index = o.src[1 - term];
  }
}

}  // namespace tiny::x86
