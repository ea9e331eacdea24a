#include "codegen/linearize/leaves.h"

namespace tiny {

bool KernelLeaves::leaf(const UOp& node, LinearId* out) {
  switch (node.op()) {
    case Op::Load:
    case Op::Index:
      *out = accesses_.read(node);
      return true;
    case Op::Before:
    case Op::Last:
      *out = running_.read(node);
      return true;
    case Op::Cast:
      return index_cast(node, out);
    case Op::Less:
    case Op::LessEqual:
      return index_comparison(node, out);
    default:
      return false;
  }
}

bool KernelLeaves::index_cast(const UOp& node, LinearId* out) {
  if (!is_index(node.src(0)) || !(nest_.free_of(node) & nest_.lanes())) return false;
  if (forms_.form_of(node.src(0)).vector_atom) return false;  // a product of lanes is no ramp
  *out = addresses_.cast_index(node);
  return true;
}

bool KernelLeaves::index_comparison(const UOp& node, LinearId* out) {
  if (!compares_indices(node)) return false;
  const UOp e = conditions_.slack(node);
  const int64_t lanes = nest_.lanes_of(node);
  // Across lanes they are ranges of lanes, not vectors of 64-bit integers.
  if (lanes == 1 && !prover_.proven(e) && !prover_.impossible(e)) return false;
  const Condition c = predicates_.condition(e, lanes);
  *out = predicates_.bool_of(c, lanes);
  emit_.rely_on(c.depth);
  return true;
}

}  // namespace tiny
