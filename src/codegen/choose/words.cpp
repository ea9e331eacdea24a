#include "codegen/choose/words.h"

#include <algorithm>
#include <optional>

#include "codegen/choose/strategies.h"
#include "ir/dot.h"

namespace tiny {

namespace {

// The reduced range whose steps make words: one along which both operands lie side by side, else
// one of them; of equals the longest.
std::optional<size_t> word_range(const Editor& edit, const UOp& reduce, int64_t steps) {
  std::optional<size_t> best;
  int64_t best_worth = 0;
  for (size_t i = 0; i < edit.kernel().ranges.size(); ++i) {
    const int64_t n = edit.const_extent(i);
    const std::span<const UOp> closed = reduce.src().subspan(1);
    if (std::ranges::find(closed, edit.kernel().ranges[i].range) == closed.end() || n < steps)
      continue;
    int64_t beside = 0;
    bool fits = true;
    for (const AccessInfo& a : edit.table().accesses) {
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
UOp count_in_words(Editor& edit, int64_t word, int64_t steps) {
  UOp scattered;
  const size_t at = edit.kernel().find_range(word);
  for (size_t k = 0; k < edit.table().accesses.size(); ++k) {
    const AccessInfo& a = edit.table().accesses[k];
    if (!a.inside_reduction) continue;
    if (a.strides[at] != 1) scattered = UOp(a.node.src(0));
    const bool is_whole = a.strides[at] == 1 && std::ranges::all_of(a.strides, [&](int64_t s) {
                            return s == 1 || s == kOpaqueStride || s % steps == 0;
                          });
    std::vector<int64_t> strides = a.strides;
    strides[at] = 0;
    for (int64_t& s : strides)
      if (is_whole && s != kOpaqueStride) s /= steps;
    edit.set_strides(k, std::move(strides));
  }
  edit.forget_range(at);
  return scattered;
}

}  // namespace

Words form_words(Editor& edit, const UOp& reduce) {
  Words words;
  const std::optional<DotProduct> product = dot_product(reduce);
  if (!product || !edit.machine().has_dot(product->kind) || edit.lanes() < 2) return words;
  for (const UOp& operand : {product->a, product->b})
    if (read_by_words(operand).op() != Op::Load) return words;
  const int64_t steps = dot_steps(product->kind);
  const std::optional<size_t> range = word_range(edit, reduce, steps);
  if (!range) return words;
  words.range = edit.number(*range);
  if (edit.const_extent(*range) != steps) words.range = edit.tile(words.range, steps);
  edit.kind(OptionKind::Dot, words.range);
  edit.restart();
  words.scattered_operand = count_in_words(edit, words.range, steps);
  words.is_scattered = static_cast<bool>(words.scattered_operand);
  return words;
}

Editor with_words(const Seen& seen) {
  Editor edit(seen.kernel, seen.machine, seen.table);
  if (seen.reductions.size() != 1) return edit;
  const Words words = form_words(edit, seen.reductions.front()->node);
  return words.is_scattered ? Editor(seen.kernel, seen.machine, seen.table) : edit;
}

}  // namespace tiny
