#include "codegen/linear/masked_factors.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "ir/fold.h"

namespace tiny {

namespace {

constexpr int64_t kMaskedBytes = 4;  // of an element: AVX2 masks loads of no smaller ones

// What is zero where all of its operands are, but for constants that a product has.
bool keeps_zero(Op op) {
  switch (op) {
    case Op::Mul:
    case Op::Fma:
    case Op::Add:
    case Op::Sub:
    case Op::Neg:
    case Op::Abs:
    case Op::Max:
    case Op::Min:
    case Op::Cast:
      return true;
    default:
      return false;
  }
}

class Factors {
 public:
  explicit Factors(LinearProgram& program)
      : ops_(program.ops), uses_(ops_.size()), asked_(ops_.size()) {}

  void run(LinearProgram& program) {
    find_sums();
    if (choices_.empty()) return;
    ask();
    decide();
    if (std::ranges::none_of(masks_, &Mask::is_left_out)) return;
    program.ops = masked();
  }

 private:
  // Of lanes that sums leave out.
  struct Mask {
    LinearId id = 0;
    bool is_left_out = true;  // all that is chosen by it is zero outside, or can be
  };
  // By how many of its users, so far, a value is asked to be zero outside of a mask.
  struct Asked {
    LinearId mask = 0;
    uint32_t count = 0;
  };

  bool is_zero(LinearId id) const {
    const LinearOp& op = ops_[id];
    return op.op == Op::Broadcast ? is_zero(op.src[0]) : op.op == Op::Const && op.imm == 0;
  }
  bool is_same(LinearId a, LinearId b) const {
    return a == b || (ops_[a].op == Op::LaneRange && ops_[b].op == Op::LaneRange &&
                      ops_[a].src == ops_[b].src && ops_[a].dtype == ops_[b].dtype);
  }
  // Whether nothing outside of the other mask is in this one.
  bool is_within(LinearId mask, LinearId other) const {
    const LinearOp& op = ops_[mask];
    return is_same(mask, other) ||
           (op.op == Op::And && (is_within(op.src[0], other) || is_within(op.src[1], other)));
  }

  // What is added to a sum in some lanes alone.
  void find_sums() {
    for (const LinearOp& op : ops_)
      for (size_t s = 0; s < op.count; ++s) ++uses_[op.src[s]];
    for (const LinearOp& set : ops_) {
      if (set.op != Op::Set || uses_[set.src[1]] != 1) continue;
      const LinearOp& sum = ops_[set.src[1]];
      if (sum.op != Op::Add) continue;
      for (const LinearId term : {sum.src[0], sum.src[1]})
        if (ops_[term].op == Op::Where && uses_[term] == 1 && is_zero(ops_[term].src[2]))
          choices_.push_back(term);
    }
    std::ranges::sort(choices_);
    for (const LinearId choice : choices_)
      if (!find_mask(ops_[choice].src[0])) masks_.push_back({ops_[choice].src[0]});
  }
  Mask* find_mask(LinearId id) {
    const auto found =
        std::ranges::find_if(masks_, [&](const Mask& m) { return is_same(m.id, id); });
    return found == masks_.end() ? nullptr : &*found;
  }
  bool is_left_out(LinearId choice) {
    return std::ranges::binary_search(choices_, choice) &&
           find_mask(ops_[choice].src[0])->is_left_out;
  }

  // From users to sources: who is asked by all of its users, of one mask, asks its operands.
  void ask() {
    size_t left = choices_.size();
    for (LinearId i = static_cast<LinearId>(ops_.size()); i-- > 0;) {
      const LinearOp& op = ops_[i];
      if (left > 0 && choices_[left - 1] == i) {
        --left;
        ask(op.src[1], find_mask(op.src[0])->id);
      } else if (is_asked(i) && keeps_zero(op.op)) {
        for (size_t s = 0; s < op.count; ++s) ask(op.src[s], asked_[i].mask);
      }
    }
  }
  void ask(LinearId id, LinearId mask) {
    Asked& asked = asked_[id];
    if (asked.count > 0 && asked.mask != mask) return;
    asked.mask = mask;
    ++asked.count;
  }
  bool is_asked(LinearId id) const { return uses_[id] > 0 && asked_[id].count == uses_[id]; }

  bool can_be_masked(LinearId id) const {
    const LinearOp& op = ops_[id];
    if (op.op != Op::Load || op.dtype.lanes == 1 || !is_asked(id) || asked_[id].mask > id)
      return false;
    return op.dtype.bytes() >= kMaskedBytes || op.count > 2;
  }

  // From sources to users: whether all sums under a mask can do without the choice.
  void decide() {
    std::vector<uint8_t> vanishes(ops_.size());
    for (LinearId i = 0; i < ops_.size(); ++i) {
      const LinearOp& op = ops_[i];
      if (!is_asked(i)) continue;
      vanishes[i] = can_be_masked(i) || (keeps_zero(op.op) && operands_vanish(op, vanishes));
    }
    for (const LinearId choice : choices_) {
      Mask& mask = *find_mask(ops_[choice].src[0]);
      mask.is_left_out = mask.is_left_out && vanishes[ops_[choice].src[1]];
    }
  }
  bool operands_vanish(const LinearOp& op, const std::vector<uint8_t>& vanishes) const {
    size_t constants = 0;
    for (size_t s = 0; s < op.count; ++s) {
      if (vanishes[op.src[s]]) continue;
      if (op.op != Op::Mul || !is_finite(op.src[s])) return false;
      ++constants;
    }
    return constants < op.count;
  }
  bool is_finite(LinearId id) const {
    const LinearOp& op = ops_[id].op == Op::Broadcast ? ops_[ops_[id].src[0]] : ops_[id];
    if (op.op != Op::Const) return false;
    const DType dtype = op.dtype.element();
    const uint64_t by_zero[] = {static_cast<uint64_t>(op.imm), 0};
    const uint64_t product[] = {fold_bits(Op::Mul, dtype, dtype, by_zero), 0};
    return fold_bits(Op::Equal, kBool, dtype, product) != 0;
  }

  // The ops with loads under their masks.  Both masks of a load stand before it: what is in both is
  // made behind the later.
  std::vector<LinearOp> masked() {
    std::vector<LinearOp> out;
    std::vector<LinearId> place(ops_.size());
    std::unordered_map<uint64_t, LinearId> both;  // by the two masks
    std::unordered_map<LinearId, std::vector<LinearId>> behind = pairs();
    for (LinearId i = 0; i < ops_.size(); ++i) {
      LinearOp op = ops_[i];
      for (size_t s = 0; s < op.count; ++s) op.src[s] = place[op.src[s]];
      if (is_left_out(i)) {  // what it chose from is added
        place[i] = op.src[1];
        continue;
      }
      if (is_masked(i)) {
        const LinearId mask = asked_[i].mask;
        if (op.count == 2)
          op.src[op.count++] = place[mask];
        else
          op.src[2] = both.at(pair(ops_[i].src[2], mask));
      }
      place[i] = static_cast<LinearId>(out.size());
      out.push_back(op);
      if (const auto found = behind.find(i); found != behind.end())
        for (const LinearId other : found->second) {
          LinearOp in_both;
          in_both.op = Op::And;
          in_both.dtype = op.dtype;
          in_both.count = 2;
          in_both.src = {place[i], place[other]};
          both[pair(i, other)] = static_cast<LinearId>(out.size());
          out.push_back(in_both);
        }
    }
    return out;
  }
  // Whether a load is under its mask from here on, and was not.
  bool is_masked(LinearId id) {
    if (!can_be_masked(id) || !find_mask(asked_[id].mask)->is_left_out) return false;
    return ops_[id].count == 2 || !is_within(ops_[id].src[2], asked_[id].mask);
  }
  static uint64_t pair(LinearId a, LinearId b) {
    return uint64_t{std::max(a, b)} << 32 | std::min(a, b);
  }
  // Of each mask, those before it that some load is under too.
  std::unordered_map<LinearId, std::vector<LinearId>> pairs() {
    std::unordered_map<LinearId, std::vector<LinearId>> out;
    for (LinearId i = 0; i < ops_.size(); ++i) {
      if (!is_masked(i) || ops_[i].count < 3) continue;
      const LinearId own = ops_[i].src[2], mask = asked_[i].mask;
      std::vector<LinearId>& others = out[std::max(own, mask)];
      const LinearId other = std::min(own, mask);
      if (std::ranges::find(others, other) == others.end()) others.push_back(other);
    }
    return out;
  }

  const std::vector<LinearOp>& ops_;
  std::vector<uint32_t> uses_;
  std::vector<Asked> asked_;
  std::vector<LinearId> choices_;  // in order
  std::vector<Mask> masks_;        // by which they choose
};

}  // namespace

void mask_factors(LinearProgram& program) {
  Factors(program).run(program);
}

}  // namespace tiny
