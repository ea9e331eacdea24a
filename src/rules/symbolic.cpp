#include "rules/symbolic.h"

#include <algorithm>

#include "ir/build.h"
#include "ir/index_memo.h"
#include "rules/identities.h"

namespace tiny {

namespace {

std::vector<Affine> sums(std::span<const UOp> facts) {
  std::vector<Affine> found;
  for (const UOp& f : facts)
    if (auto a = affine(f)) found.push_back(std::move(*a));
  return found;
}

Rewriter::Options index_options(std::span<const Affine> facts, RewriteStats* stats,
                                const Trace* trace) {
  Rewriter::Options options;
  options.stats = stats;
  options.trace = trace;
  options.facts = facts;
  options.only_elementwise = true;
  return options;
}

}  // namespace

const RuleSet& index_simplify_rules() {
  static const RuleSet set{identities(), integer_rules(), index_rules()};
  return set;
}

IndexSimplifier::IndexSimplifier(std::span<const UOp> facts, RewriteStats* stats,
                                 const Trace* trace)
    : facts_(sums(facts)), rewriter_(index_simplify_rules(), index_options(facts_, stats, trace)) {
}

UOp simplify_index(const UOp& u, std::span<const UOp> facts) {
  IndexMemo* const memo = facts.empty() ? u.graph().index_memo() : nullptr;
  if (!memo) return IndexSimplifier(facts)(u);
  if (const UOp* known = memo->simplified.find(u)) return *known;
  return memo->simplified.insert(u, IndexSimplifier()(u));
}

UOp plain_stage_index(const UOp& index) {
  const UOp& stage = index.src(0);
  UOp flat = index.graph().integer(0);
  for (size_t i = 1; i < index.src().size(); ++i)
    flat = add(flat, mul(index.src(i), stage.stage_arg().strides[i - 1]));
  return simplify_index(flat);
}

UOp flat_stage_index(const UOp& index) {
  return swizzled(plain_stage_index(index), index.src(0));
}

UOp swizzled(const UOp& flat, const UOp& stage) {
  const int64_t bits = stage.stage_arg().swizzle;
  if (bits == 0) return flat;
  const int64_t side = std::max<int64_t>(kSwizzledPiece / stage.dtype().bytes(), 1);
  const UOp piece = simplify_index(floor_div(flat, side));
  const UOp line = simplify_index(floor_div(flat, side * kSwizzledPieces));
  const UOp changed = simplify_index(floor_mod(line, int64_t{1} << bits));
  return add(mul(elementwise(Op::Xor, {piece, changed}), side),
             simplify_index(floor_mod(flat, side)));
}

}  // namespace tiny
