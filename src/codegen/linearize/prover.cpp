#include "codegen/linearize/prover.h"

#include <algorithm>
#include <utility>

namespace tiny {

namespace {

constexpr uint64_t kImpossibleUse = UINT64_MAX;  // of a proof: that it is negative

}  // namespace

// Instances of the same coordinates ask under the same facts.
std::optional<size_t> Prover::proven(const UOp& e) {
  InstanceKey key = nest_.key_of(e);
  std::optional<size_t> depth;
  const auto remembered = [&](const auto& prove) {
    if (const int64_t* found = proofs_.find(key)) {
      if (*found >= 0) depth = static_cast<size_t>(*found);
      return;
    }
    depth = prove();
    proofs_.insert(key, depth ? static_cast<int64_t>(*depth) : -1);
  };
  remembered([&]() -> std::optional<size_t> {
    const std::optional<Affine> sum = forms_.fixed(e);
    return sum && prove_nonnegative(*sum, {}, bounds_) ? std::optional<size_t>(0) : std::nullopt;
  });
  if (depth || known_.empty()) return depth;
  key.use = known_.back().number;
  remembered([&] { return prove_by_facts(e); });
  return depth;
}

std::optional<size_t> Prover::prove_by_facts(const UOp& e) {
  const std::optional<Affine> sum = forms_.fixed(e);
  if (!sum) return std::nullopt;
  std::vector<Affine> facts;
  size_t depth = 0;
  for (const Known& known : known_) {
    if (auto fact = forms_.fixed(known.fact)) facts.push_back(std::move(*fact));
    depth = std::max(depth, known.depth);
  }
  // Mostly the innermost fact and something that is not negative.
  for (size_t i = facts.size(); i-- > 0;)
    if (const auto rest = add_scaled(*sum, facts[i], -1); rest && bounds_.of(*rest).lo >= 0)
      return depth;
  if (!facts.empty() && prove_nonnegative(*sum, facts, bounds_)) return depth;
  return std::nullopt;
}

bool Prover::impossible(const UOp& e) {
  InstanceKey key = nest_.key_of(e);
  key.use = kImpossibleUse;
  if (const int64_t* found = proofs_.find(key)) return *found != 0;
  const std::optional<Affine> sum = forms_.fixed(e);
  const bool is_negative = sum && bounds_.of(*sum).hi < 0;
  proofs_.insert(key, is_negative ? 1 : 0);
  return is_negative;
}

bool Prover::follows_from_kernel(const UOp& e) {
  const std::vector<UOp>& all = nest_.kernel().facts;
  if (std::ranges::find(all, e) != all.end()) return false;
  std::vector<Affine> facts;
  for (const UOp& fact : all)
    if (auto sum = forms_.fixed(fact)) facts.push_back(std::move(*sum));
  const std::optional<Affine> sum = forms_.fixed(e);
  return sum && !facts.empty() && prove_nonnegative(*sum, facts, bounds_);
}

}  // namespace tiny
