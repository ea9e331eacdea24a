#include "ir/tile_products.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace tiny {

namespace {

constexpr int64_t kApartMax = 1 << 24;  // bytes between rows: displacements have 32 bits

struct Block {
  LinearId begin = 0;  // Loop or If; 0 is outside of all
  LinearId end = 0;
  size_t outer = 0;
  bool is_innermost = true;
};

struct Term {
  LinearId sum = 0;
  LinearId row = 0;  // loads
  LinearId vector = 0;
};

class TileFinder {
 public:
  TileFinder(const LinearProgram& program, DotSet kinds) : ops_(program.ops), kinds_(kinds) {}

  std::vector<TileProduct> run() {
    find_blocks();
    for (size_t b = 1; b < blocks_.size(); ++b)
      if (blocks_[b].is_innermost && ops_[blocks_[b].begin].op == Op::Loop) add_loop(blocks_[b]);
    std::vector<TileProduct> found;
    LinearId last = 0;
    for (auto& [sum, product] : products_) {
      if (!product || sum < last || !ends(*product) || !is_read_behind(*product)) continue;
      last = product->end;
      found.push_back(std::move(*product));
    }
    return found;
  }

 private:
  void find_blocks() {
    blocks_.push_back({0, static_cast<LinearId>(ops_.size()), 0, false});
    block_of_.resize(ops_.size());
    size_t open = 0;
    for (LinearId i = 0; i < ops_.size(); ++i) {
      const Op op = ops_[i].op;
      if (op == Op::EndLoop || op == Op::EndIf) {
        blocks_[open].end = i;
        open = blocks_[open].outer;
      }
      block_of_[i] = open;
      if (op != Op::Loop && op != Op::If) continue;
      blocks_[open].is_innermost = false;
      blocks_.push_back({i, 0, open, true});
      open = blocks_.size() - 1;
    }
  }

  bool is_zero(LinearId id) const {
    const LinearOp& o = ops_[id];
    return o.op == Op::Broadcast ? is_zero(o.src[0]) : o.op == Op::Const && o.imm == 0;
  }
  bool is_sum(const LinearOp& o) const {
    return o.op == Op::Accumulator && o.dtype == kInt32.with_lanes(kTileLanes) && is_zero(o.src[0]);
  }
  bool is_word_load(const LinearOp& o, int64_t lanes) const {
    return o.op == Op::Load && o.count == 2 && o.dtype == kUInt32.with_lanes(lanes) &&
           ops_[o.src[1]].dtype.lanes == 1 && (lanes == 1 || o.aux == 1);
  }

  // Bytes, or elements, that a value is farther in each step of the loop; none: not always as many.
  std::optional<int64_t> step_of(LinearId id, LinearId loop) const {
    if (id == loop) return 1;
    if (id < loop) return ops_[id].op == Op::Accumulator ? std::nullopt : std::optional<int64_t>(0);
    const LinearOp& o = ops_[id];
    const auto part = [&](size_t s) { return step_of(o.src[s], loop); };
    if (o.op == Op::Const) return 0;
    if (o.op != Op::Add && o.op != Op::Mul && o.op != Op::Address) return std::nullopt;
    const std::optional<int64_t> a = part(0), b = part(1);
    if (!a || !b) return std::nullopt;
    if (o.op == Op::Add) return *a + *b;
    if (o.op == Op::Address) return *a + *b * o.imm;
    if (*a == 0 && *b == 0) return 0;
    const size_t constant = *a == 0 ? 0 : 1;
    if (ops_[o.src[constant]].op != Op::Const) return std::nullopt;
    return (*a + *b) * ops_[o.src[constant]].imm;
  }
  std::optional<int64_t> step_of_load(LinearId load, LinearId loop) const {
    const std::optional<int64_t> base = step_of(ops_[load].src[0], loop);
    const std::optional<int64_t> index = step_of(ops_[load].src[1], loop);
    if (!base || !index) return std::nullopt;
    return *base + *index * kWordBytes;
  }

  // A value that all lanes share.
  bool is_shared(LinearId id) const {
    return ops_[id].op == Op::Broadcast || ops_[id].op == Op::Const;
  }
  LinearId word_of(LinearId shared) const {
    return ops_[shared].op == Op::Broadcast ? ops_[shared].src[0] : shared;
  }

  std::optional<Term> term_of(const LinearOp& set) const {
    const LinearOp& dot = ops_[set.src[1]];
    if (!is_sum(ops_[set.src[0]]) || dot.op != Op::Dot || dot.src[2] != set.src[0])
      return std::nullopt;
    const size_t shared = is_shared(dot.src[0]) ? 0 : 1;
    if (!is_shared(dot.src[shared]) || !is_word_load(ops_[dot.src[1 - shared]], kTileLanes))
      return std::nullopt;
    const LinearId word = word_of(dot.src[shared]);
    if (ops_[word].op != Op::Const && !is_word_load(ops_[word], 1)) return std::nullopt;
    return Term{set.src[0], word, dot.src[1 - shared]};
  }

  bool have_one_address(LinearId a, LinearId b) const {
    return ops_[a].src[0] == ops_[b].src[0] && ops_[a].src[1] == ops_[b].src[1];
  }

  // Vectors of a step: their displacements, each the same distance from the last.
  std::optional<std::vector<int64_t>> vectors_of(const std::vector<Term>& terms) const {
    std::vector<int64_t> at;
    for (const Term& t : terms) {
      if (!have_one_address(t.vector, terms.front().vector)) return std::nullopt;
      at.push_back(ops_[t.vector].imm);
    }
    std::ranges::sort(at);
    at.erase(std::ranges::unique(at).begin(), at.end());
    for (size_t i = 2; i < at.size(); ++i)
      if (at[i] - at[i - 1] != at[1] - at[0]) return std::nullopt;
    return at;
  }

  // Rows of a step: loads with one address and displacements the same distance from each other, or
  // constants.
  bool set_rows(const std::vector<LinearId>& words, TileLoop& tiles) const {
    std::optional<int64_t> first, second;
    for (size_t r = 0; r < words.size(); ++r) {
      const LinearOp& word = ops_[words[r]];
      const bool is_loaded = word.op == Op::Load;
      tiles.words.push_back(is_loaded ? TileLoop::kLoaded
                                      : static_cast<int64_t>(static_cast<uint32_t>(word.imm)));
      if (!is_loaded) continue;
      const auto at = static_cast<int64_t>(r);
      if (!first) {
        first = at, tiles.row = words[r], tiles.first_row = at;
        continue;
      }
      const int64_t distance = word.imm - ops_[tiles.row].imm;
      if (!second) second = at, tiles.row_bytes = distance / (at - *first);
      if (!have_one_address(words[r], tiles.row) || distance != tiles.row_bytes * (at - *first))
        return false;
    }
    const auto is_loaded = [](int64_t word) { return word == TileLoop::kLoaded; };
    if (std::ranges::all_of(tiles.words, is_loaded)) tiles.words.clear();
    return first.has_value();
  }

  // A number that the steps of the loop are a multiple of; 0: not known.  Loops stand in parts
  // where polls are between them.
  int64_t steps_of(const LinearOp& loop) const {
    const LinearOp &begin = ops_[loop.src[0]], &end = ops_[loop.src[1]];
    if (begin.op == Op::Const)
      return end.op == Op::Const ? std::max<int64_t>(end.imm - begin.imm, 0) : 0;
    if (begin.op != Op::Loop || end.op != Op::Min || ops_[begin.src[0]].op != Op::Const) return 0;
    const LinearOp &next = ops_[end.src[0]], &last = ops_[end.src[1]];
    const bool is_part = next.op == Op::Add && next.src[0] == loop.src[0] &&
                         ops_[next.src[1]].op == Op::Const && ops_[next.src[1]].imm == begin.imm;
    if (!is_part || last.op != Op::Const) return 0;
    return std::gcd(begin.imm, last.imm - ops_[begin.src[0]].imm);
  }

  // The terms of a loop that does nothing else, in the order of their sums; empty: it does.
  std::vector<Term> terms_of(const Block& block) {
    std::vector<Term> terms;
    bool is_alone = true;
    for (LinearId i = block.begin + 1; i < block.end; ++i) {
      const LinearOp& o = ops_[i];
      is_alone = is_alone && o.op != Op::Store && o.op != Op::Check && o.op != Op::Prefetch;
      if (o.op != Op::Set) continue;
      if (const std::optional<Term> term = term_of(o)) {
        terms.push_back(*term);
        continue;
      }
      give_up(o.src[0]);
      is_alone = false;
    }
    if (!is_alone) {
      for (const Term& t : terms) give_up(t.sum);
      return {};
    }
    std::ranges::sort(terms, {}, &Term::sum);
    return terms;
  }

  // The kind that all its products have, and whether the first factor is that of the rows.
  std::optional<std::pair<DotKind, bool>> kind_of(const Block& block) const {
    std::optional<std::pair<DotKind, bool>> kind;
    for (LinearId i = block.begin + 1; i < block.end; ++i) {
      if (ops_[i].op != Op::Dot) continue;
      const std::pair here{static_cast<DotKind>(ops_[i].aux), is_shared(ops_[i].src[0])};
      if (kind && *kind != here) return std::nullopt;
      kind = here;
    }
    return kind;
  }

  void add_loop(const Block& block) {
    const std::vector<Term> terms = terms_of(block);
    if (terms.empty()) return;
    if (std::optional<TileProduct> product = product_of(block, terms)) return add(*product);
    for (const Term& t : terms) give_up(t.sum);
  }

  std::optional<TileProduct> product_of(const Block& block, const std::vector<Term>& terms) const {
    const LinearOp& loop = ops_[block.begin];
    const auto vectors = vectors_of(terms);
    const auto kind = kind_of(block);
    TileProduct product;
    product.steps = steps_of(loop);
    if (!vectors || !kind || product.steps == 0 || loop.imm != 1 ||
        (kinds_ & kIntegerDots & dot_bit(kind->first)) == 0)
      return std::nullopt;
    const size_t width = vectors->size();
    product.vectors = static_cast<int64_t>(width);
    product.rows = static_cast<int64_t>(terms.size() / width);
    if (terms.size() % width != 0 || product.rows < 2 || product.vectors > kTileVectorsMax ||
        product.rows > tile_rows_max(product.vectors))
      return std::nullopt;
    TileLoop tiles;
    tiles.loop = block.begin, tiles.end = block.end, tiles.vector = terms.front().vector;
    std::vector<LinearId> words;
    for (size_t i = 0; i < terms.size(); ++i) {
      if (ops_[terms[i].vector].imm != (*vectors)[i % width]) return std::nullopt;
      if (i % width == 0) words.push_back(terms[i].row);
      const LinearOp &word = ops_[words.back()], &own = ops_[terms[i].row];
      if (word.op != own.op || word.src != own.src || word.imm != own.imm) return std::nullopt;
      product.sums.push_back(terms[i].sum);
    }
    if (!set_rows(words, tiles)) return std::nullopt;
    const std::optional<int64_t> of_vector = step_of_load(tiles.vector, block.begin);
    if (step_of_load(tiles.row, block.begin) != kWordBytes || !of_vector ||
        std::abs(tiles.row_bytes) > kApartMax)
      return std::nullopt;
    tiles.step_bytes = *of_vector;
    tiles.vector_bytes = width > 1 ? (*vectors)[1] - (*vectors)[0] : 0;
    product.loops.push_back(std::move(tiles));
    const auto& [of_words, are_rows_first] = *kind;
    const bool is_mixed = of_words == DotKind::U8S8, is_signed = of_words == DotKind::S8S8;
    product.has_signed_rows = is_signed || (is_mixed && !are_rows_first);
    product.has_signed_vectors = is_signed || (is_mixed && are_rows_first);
    return product;
  }

  // Several loops may add to the same sums.
  void add(TileProduct product) {
    const LinearId first = *std::ranges::min_element(product.sums);
    const auto [at, is_new] = products_.try_emplace(first, product);
    if (is_new) {
      for (const LinearId sum : product.sums) owner_[sum] = first;
      return;
    }
    if (!at->second || at->second->sums != product.sums ||
        at->second->has_signed_rows != product.has_signed_rows ||
        at->second->has_signed_vectors != product.has_signed_vectors) {
      for (const LinearId sum : product.sums) give_up(sum);
      return;
    }
    at->second->steps = std::gcd(at->second->steps, product.steps);
    at->second->loops.push_back(product.loops.front());
  }
  void give_up(LinearId sum) {
    const auto owner = owner_.find(sum);
    products_[owner == owner_.end() ? sum : owner->second].reset();
  }

  // Where the sums are done: in the block that declares them, behind the last loop that adds.
  bool ends(TileProduct& product) const {
    const size_t outer = block_of_[product.sums.front()];
    for (const LinearId sum : product.sums)
      if (block_of_[sum] != outer) return false;
    for (const TileLoop& loop : product.loops) {
      size_t at = block_of_[loop.loop + 1 < loop.end ? loop.loop + 1 : loop.loop];
      while (at != 0 && blocks_[at].outer != outer) at = blocks_[at].outer;
      if (at == 0) return false;
      product.end = std::max(product.end, blocks_[at].end);
    }
    // Constants are stored beside what is loaded, a register for each row.
    const bool has_constants =
        std::ranges::any_of(product.loops, [](const TileLoop& l) { return !l.words.empty(); });
    int64_t steps = std::min(product.steps, kTileSteps);
    while (product.steps % steps != 0 ||
           (has_constants && !std::has_single_bit(static_cast<uint64_t>(steps))))
      --steps;
    product.steps = steps;
    return steps >= kTileStepsMin;
  }

  bool is_read_behind(const TileProduct& product) const {
    std::vector<uint8_t> is_own(ops_.size()), is_inside(ops_.size());
    for (const LinearId sum : product.sums) is_own[sum] = 1;
    for (const TileLoop& l : product.loops)
      std::fill(is_inside.begin() + l.loop, is_inside.begin() + l.end, uint8_t{1});
    for (LinearId i = 0; i < ops_.size(); ++i) {
      if (is_inside[i]) continue;
      const LinearOp& o = ops_[i];
      for (size_t s = 0; s < o.count; ++s)
        if (is_own[o.src[s]] && (i < product.end || o.op == Op::Set)) return false;
    }
    return true;
  }

  const std::vector<LinearOp>& ops_;
  const DotSet kinds_;
  std::vector<Block> blocks_;
  std::vector<size_t> block_of_;
  std::map<LinearId, std::optional<TileProduct>> products_;  // by the first of their sums
  std::map<LinearId, LinearId> owner_;                       // that first one, by any
};

}  // namespace

std::vector<TileProduct> find_tile_products(const LinearProgram& program, DotSet kinds) {
  const bool has_words =
      std::ranges::any_of(program.ops, [](const LinearOp& o) { return o.op == Op::Dot; });
  if (kinds == 0 || !has_words) return {};
  return TileFinder(program, kinds).run();
}

bool multiplies_tiles_alone(const LinearProgram& program, DotSet kinds) {
  const std::vector<TileProduct> products = find_tile_products(program, kinds);
  const auto is_tiled = [&](LinearId id) {
    return std::ranges::any_of(products, [&](const TileProduct& p) {
      return std::ranges::any_of(p.loops,
                                 [&](const TileLoop& l) { return l.loop < id && id < l.end; });
    });
  };
  for (LinearId i = 0; i < program.ops.size(); ++i)
    if (program.ops[i].op == Op::Dot && !is_tiled(i)) return false;
  return !products.empty();
}

}  // namespace tiny
