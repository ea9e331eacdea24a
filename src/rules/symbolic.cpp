#include "rules/symbolic.h"

#include "ir/build.h"

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
  return IndexSimplifier(facts)(u);
}

UOp flat_stage_index(const UOp& index) {
  const UOp& stage = index.src(0);
  UOp flat = index.graph().integer(0);
  for (size_t i = 1; i < index.src().size(); ++i)
    flat = add(flat, mul(index.src(i), stage.stage_arg().strides[i - 1]));
  return simplify_index(flat);
}

}  // namespace tiny
