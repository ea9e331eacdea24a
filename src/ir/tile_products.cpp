#include "ir/tile_products.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace tiny {

namespace {

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

  std::optional<Term> term_of(const LinearOp& set) const {
    const LinearOp& dot = ops_[set.src[1]];
    if (!is_sum(ops_[set.src[0]]) || dot.op != Op::Dot || dot.src[2] != set.src[0])
      return std::nullopt;
    const bool is_first = ops_[dot.src[0]].op == Op::Broadcast;
    const LinearOp& shared = ops_[dot.src[is_first ? 0 : 1]];
    const LinearId vector = dot.src[is_first ? 1 : 0];
    if (shared.op != Op::Broadcast || !is_word_load(ops_[shared.src[0]], 1) ||
        !is_word_load(ops_[vector], kTileLanes))
      return std::nullopt;
    return Term{set.src[0], shared.src[0], vector};
  }

  // The loads' displacements, if all have one address and each the same distance from the last.
  std::optional<std::vector<int64_t>> places(const std::vector<LinearId>& loads) const {
    std::vector<int64_t> at;
    for (const LinearId load : loads) {
      const LinearOp& first = ops_[loads.front()];
      if (ops_[load].src[0] != first.src[0] || ops_[load].src[1] != first.src[1])
        return std::nullopt;
      at.push_back(ops_[load].imm);
    }
    std::ranges::sort(at);
    at.erase(std::ranges::unique(at).begin(), at.end());
    for (size_t i = 2; i < at.size(); ++i)
      if (at[i] - at[i - 1] != at[1] - at[0]) return std::nullopt;
    return at;
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

  void add_loop(const Block& block) {
    std::vector<Term> terms;
    std::vector<LinearId> loads[2];
    bool is_whole = true;
    int32_t kind = -1;
    bool has_shared_first = false;
    for (LinearId i = block.begin + 1; i < block.end; ++i) {
      const LinearOp& o = ops_[i];
      if (o.op == Op::Dot) {
        const bool is_first = ops_[o.src[0]].op == Op::Broadcast;
        is_whole = is_whole && (kind < 0 || (kind == o.aux && has_shared_first == is_first));
        kind = o.aux, has_shared_first = is_first;
      }
      if (o.op != Op::Set) {
        is_whole = is_whole && o.op != Op::Store && o.op != Op::Check && o.op != Op::Prefetch;
        continue;
      }
      const std::optional<Term> term = term_of(o);
      if (!term) return give_up(o.src[0]);
      terms.push_back(*term);
      loads[0].push_back(term->row);
      loads[1].push_back(term->vector);
    }
    if (terms.empty()) return;
    const auto give_all_up = [&] {
      for (const Term& t : terms) give_up(t.sum);
    };
    const LinearOp& loop = ops_[block.begin];
    const auto rows = places(loads[0]), vectors = places(loads[1]);
    const int64_t steps = steps_of(loop);
    if (!is_whole || !rows || !vectors || steps == 0 || loop.imm != 1 ||
        (kinds_ & dot_bit(static_cast<DotKind>(kind))) == 0 ||
        static_cast<DotKind>(kind) == DotKind::Bf16)
      return give_all_up();
    TileProduct product;
    product.rows = static_cast<int64_t>(rows->size());
    product.vectors = static_cast<int64_t>(vectors->size());
    product.sums.assign(static_cast<size_t>(product.rows * product.vectors), 0);
    TileLoop tiles{block.begin, block.end, 0, 0, 0, 0, 0};
    for (const Term& t : terms) {
      const auto r = std::ranges::find(*rows, ops_[t.row].imm) - rows->begin();
      const auto v = std::ranges::find(*vectors, ops_[t.vector].imm) - vectors->begin();
      LinearId& sum = product.sums[static_cast<size_t>(r * product.vectors + v)];
      if (sum != 0) return give_all_up();
      sum = t.sum;
      if (r == 0) tiles.row = t.row;
      if (v == 0) tiles.vector = t.vector;
    }
    if (terms.size() != product.sums.size()) return give_all_up();
    const std::optional<int64_t> of_row = step_of_load(tiles.row, block.begin);
    const std::optional<int64_t> of_vector = step_of_load(tiles.vector, block.begin);
    if (of_row != kWordBytes || !of_vector) return give_all_up();
    tiles.step_bytes = *of_vector;
    tiles.row_bytes = rows->size() > 1 ? (*rows)[1] - (*rows)[0] : 0;
    tiles.vector_bytes = vectors->size() > 1 ? (*vectors)[1] - (*vectors)[0] : 0;
    product.steps = steps;
    const bool is_unsigned = kind == static_cast<int32_t>(DotKind::U8U8);
    const bool is_signed = kind == static_cast<int32_t>(DotKind::S8S8);
    product.has_signed_rows = is_signed || (!is_unsigned && !has_shared_first);
    product.has_signed_vectors = is_signed || (!is_unsigned && has_shared_first);
    product.loops.push_back(tiles);
    if (product.rows < 2 || product.vectors > kTileVectorsMax ||
        product.rows > tile_rows_max(product.vectors))
      return give_all_up();
    add(std::move(product));
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
    int64_t steps = std::min(product.steps, kTileSteps);
    while (product.steps % steps != 0) --steps;
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
