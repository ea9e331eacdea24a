// Words for a sum of products of narrow values, where the target multiplies and adds them at once:
// the steps of one reduced range.  What is chosen afterwards sees words for elements.
#include <algorithm>

#include "codegen/choose/chooser.h"
#include "ir/dot.h"

namespace tiny {

// The reduced range whose steps make words: one along which both operands lie side by side, else
// one of them; of equals the longest.
std::optional<size_t> Chooser::word_range(const UOp& reduce, int64_t steps) const {
  std::optional<size_t> best;
  int64_t best_worth = 0;
  for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
    const int64_t n = const_extent(i);
    const std::span<const UOp> closed = reduce.src().subspan(1);
    if (std::ranges::find(closed, kernel_.ranges[i].range) == closed.end() || n < steps) continue;
    int64_t beside = 0;
    bool fits = true;
    for (const AccessInfo& a : table_.accesses) {
      if (!a.inside_reduction) continue;
      fits = fits && a.strides[i] != 0 && a.strides[i] != kOpaqueStride;
      beside += a.strides[i] == 1 ? 1 : 0;
    }
    // A range of just a word was laid out as one.
    const int64_t worth =
        beside << 32 | (n == steps ? int64_t{1} << 31 : std::min<int64_t>(n, 1 << 30));
    if (fits && beside > 0 && worth > best_worth) best = i, best_worth = worth;
  }
  return best;
}

// Strides of the operands in words; an operand whose steps lie apart keeps its own, since a panel
// of it will hold words.
void Chooser::count_in_words(int64_t steps) {
  const size_t at = kernel_.find_range(word_);
  for (AccessInfo& a : table_.accesses) {
    if (!a.inside_reduction) continue;
    if (a.strides[at] != 1) scattered_operand_ = UOp(a.node.src(0));
    const bool is_whole = a.strides[at] == 1 && std::ranges::all_of(a.strides, [&](int64_t s) {
                            return s == 1 || s == kOpaqueStride || s % steps == 0;
                          });
    a.strides[at] = 0;
    if (!is_whole) continue;
    for (int64_t& s : a.strides)
      if (s != kOpaqueStride) s /= steps;
  }
  for (ClosureInfo& c : table_.closures) {
    c.own &= ~bit(at);
    c.below &= ~bit(at);
  }
  table_.extents[at] = 1;
}

void Chooser::form_words(const UOp& reduce) {
  const std::optional<DotProduct> product = dot_product(reduce);
  if (!use_dots_ || !product || !target_.has_dot(product->kind) || lanes_ < 2) return;
  if (product->a.op() != Op::Load || product->b.op() != Op::Load) return;
  const int64_t steps = dot_steps(product->kind);
  const std::optional<size_t> range = word_range(reduce, steps);
  if (!range) return;
  word_ = number(*range);
  if (const_extent(*range) != steps) word_ = tile(word_, steps);
  kind(OptionKind::Dot, word_);
  kernel_ = current_;
  table_ = access_table(kernel_);
  count_in_words(steps);
  scattered_ = static_cast<bool>(scattered_operand_);
}

}  // namespace tiny
