#include "schedule/rewrite/requantized.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "ir/build.h"
#include "ir/fold.h"
#include "ir/node_map.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// Of one chain: twice what QuantizeLinear, DequantizeLinear and an activation between take.
constexpr size_t kStepsMax = 32;
constexpr int64_t kByteValues = 256;
constexpr int kNumberDepth = 4;  // the negative of a zero point that is cast

// An operation with one operand that varies.
struct Step {
  Op op;
  DType result, operand;
  size_t varying = 0;
  std::array<uint64_t, 3> bits{};  // of the others
};

bool is_byte(DType dtype) {
  return dtype == kUInt8 || dtype == kInt8;
}

// Movement that brings in zeros moves other zeros once the steps are gone.
bool keeps_elements(const UOp& movement) {
  return movement.op() != Op::Pad;
}

// The number that all elements are, of few operations on numbers; none if that does not show.
UOp number_of(const UOp& operand, int depth = kNumberDepth) {
  std::vector<UOp> moves;
  const UOp base = below_movement(operand, moves);
  if (!std::ranges::all_of(moves, keeps_elements)) return {};
  if (base.is_const()) return base;
  if (depth == 0 || has_memory(base) || !has(base.op(), kElementwise)) return {};
  std::vector<UOp> src;
  for (const UOp& s : base.src()) {
    src.push_back(number_of(s, depth - 1));
    if (!src.back()) return {};
  }
  return fold(base.op(), src, base.dtype()).value_or(UOp());
}

// The steps from a value down to the byte that it is computed from.
class Chain {
 public:
  static std::optional<Chain> of(const UOp& value) {
    Chain chain;
    chain.from_ = value;
    do {
      if (!chain.step()) return std::nullopt;
    } while (chain.from_.dtype() != value.dtype());
    std::ranges::reverse(chain.steps_);  // the order in which they are computed
    if (!std::ranges::all_of(chain.moves_, keeps_elements)) return std::nullopt;
    return chain;
  }

  // What the value is for a byte.
  uint64_t bits_for(uint64_t bits) const {
    for (const Step& step : steps_) {
      std::array<uint64_t, 3> src = step.bits;
      src[step.varying] = bits;
      bits = fold_bits(step.op, step.result, step.operand, src.data());
    }
    return bits;
  }

  UOp bytes() const { return moved(moves_, from_); }

 private:
  // One step further down; false if there is none.
  bool step() {
    if (steps_.size() == kStepsMax || has_memory(from_) || !has(from_.op(), kElementwise))
      return false;
    const UOp node = from_;
    Step step{node.op(), node.dtype(), node.src().back().dtype()};
    bool found = false;
    for (size_t i = 0; i < node.src().size(); ++i) {
      const UOp number = number_of(node.src(i));
      if (number) {
        step.bits[i] = number.const_bits();
        continue;
      }
      if (found) return false;
      found = true;
      step.varying = i;
    }
    if (!found) return false;
    steps_.push_back(step);
    from_ = node.src(step.varying);
    for (; has(from_.op(), kMovement) && !has_memory(from_); from_ = UOp(from_.src(0)))
      moves_.push_back(from_);
    return true;
  }

  UOp from_;
  std::vector<Step> steps_;
  std::vector<UOp> moves_;
};

// What the value is, if it is the bytes that it is computed from, or a clamp of them.
std::optional<UOp> clamped(const UOp& value) {
  const auto chain = Chain::of(value);
  if (!chain) return std::nullopt;
  Graph& graph = value.graph();
  const DType dtype = value.dtype();
  const auto first = static_cast<int64_t>(dtype.is_unsigned() ? 0 : INT8_MIN);
  const auto at = [&](int64_t x) {
    return graph.constant_bits(dtype, chain->bits_for(bits_of_int(dtype, x))).const_int();
  };
  const int64_t last = first + kByteValues - 1, low = at(first), high = at(last);
  for (int64_t x = first; x <= last; ++x)
    if (at(x) != std::clamp(x, low, std::max(low, high))) return std::nullopt;
  UOp out = chain->bytes();
  const Shape& shape = shape_of(out);
  const auto everywhere = [&](int64_t x) {
    return make_expand(make_reshape(graph.constant_int(dtype, x), Shape(shape.size(), 1)), shape);
  };
  if (low > first) out = maximum(out, everywhere(low));
  if (high < last) out = minimum(out, everywhere(high));
  return out;
}

}  // namespace

ChangedGraph drop_requantized(std::span<const UOp> roots) {
  NodeSet asked_for;
  for (const UOp& root : roots) asked_for.insert(below_movement(root).node());
  return rebuild_with_origins(roots, has_memory, [&](const UOp& node, const UOp& now) {
    const bool is_kept = has_memory(node) || asked_for.contains(node.node());
    if (is_kept || now.op() != Op::Cast || !is_byte(now.dtype())) return now;
    return clamped(now).value_or(now);
  });
}

}  // namespace tiny
