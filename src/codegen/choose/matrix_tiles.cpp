// Products of bytes that a matrix unit forms tile by tile (ir/tile_products.h), where all that a
// kernel multiplies lies as tiles are read.
#include <algorithm>

#include "codegen/choose/contraction.h"
#include "codegen/choose/shared_values.h"
#include "codegen/choose/strategies.h"
#include "codegen/linear/linear_passes.h"
#include "codegen/linearize/linearize.h"
#include "ir/dot.h"
#include "ir/tile_products.h"

namespace tiny {

namespace {

// Cycles that a product of two tiles takes whatever their sizes, and that a tile of sums takes to
// be stored and read again, by vectors: on an Emerald Rapids, 2026-12-01, `tdpbusd` of 16 or 4 rows
// and steps 5.1 to 6.2 ns, `tilestored` 6.0 ns, and `ldtilecfg` 75 ns.
constexpr double kProductCycles = 16;
constexpr double kStoreCycles = 32;
constexpr double kConfigCycles = 200;
constexpr double kDotCycles = 0.5;  // of a vector of words, by a core's own units
constexpr double kTileGain = 1.5;   // that is estimated at the least: less is none

struct Cycles {
  double tiles = kConfigCycles;
  double dots = 0;
};

double turns_of(const LinearProgram& program, LinearId loop) {
  const LinearOp &begin = program.ops[program.ops[loop].src[0]],
                 &end = program.ops[program.ops[loop].src[1]];
  return begin.op == Op::Const && end.op == Op::Const
             ? static_cast<double>(end.imm - begin.imm) / static_cast<double>(program.ops[loop].imm)
             : 1;
}

// Of all products, in the loops around them.
Cycles cycles_of(const LinearProgram& program, DotSet kinds) {
  const std::vector<TileProduct> products = find_tile_products(program, kinds);
  Cycles cycles;
  std::vector<double> turns{1};
  for (LinearId i = 0; i < program.ops.size(); ++i) {
    const Op op = program.ops[i].op;
    for (const TileProduct& p : products) {
      const auto sums = static_cast<double>(p.row_tiles() * p.vectors);
      if (p.sums.front() == i) cycles.tiles += turns.back() * sums * kStoreCycles;
      for (const TileLoop& l : p.loops) {
        if (l.loop != i) continue;
        const double steps = turns.back() * turns_of(program, i);
        cycles.tiles += steps / static_cast<double>(p.steps) * sums * kProductCycles;
        cycles.dots += steps * static_cast<double>(p.rows * p.vectors) * kDotCycles;
      }
    }
    if (op == Op::Loop) turns.push_back(turns.back() * turns_of(program, i));
    if (op == Op::If) turns.push_back(turns.back());
    if (op == Op::EndLoop || op == Op::EndIf) turns.pop_back();
  }
  return cycles;
}

std::optional<Proposal> made(const Seen& seen, std::optional<size_t> lanes,
                             std::optional<size_t>& of_panel) {
  Editor edit(seen.kernel, seen.machine, seen.table);
  Words words = form_words(edit, seen.reductions.front()->node);
  if (words.range < 0) return std::nullopt;
  const auto sum =
      std::ranges::find_if(edit.table().closures, [](const ClosureInfo& c) { return !c.store; });
  Contraction contraction(edit, words, *sum, lanes);
  if (words.scattered_operand) of_panel = lanes_of_panel(words.scattered_operand, edit);
  if (!contraction.pack_tiles() || words.is_scattered) return std::nullopt;
  share_values(edit);
  Proposal proposal{edit.take(), {}, {}, 1};
  LinearProgram program = linearize(proposal.made.kernel, seen.machine);
  merge_equal(program);
  if (!multiplies_tiles_alone(program, seen.machine.tiles)) return std::nullopt;
  const Cycles cycles = cycles_of(program, seen.machine.tiles);
  if (cycles.tiles * kTileGain > cycles.dots) return std::nullopt;
  proposal.share_of_products = cycles.tiles / cycles.dots;
  proposal.cost = cost_of(proposal, seen.machine);
  return proposal;
}

}  // namespace

bool has_matrix_tiles(const Seen& seen) {
  if (seen.machine.tiles == 0 || !is_contraction(seen)) return false;
  const std::optional<DotProduct> product = dot_product(seen.reductions.front()->node);
  return product && seen.machine.has_tiles(product->kind);
}

void propose_matrix_tiles(const Seen& seen, std::vector<Proposal>& to) {
  std::optional<size_t> of_panel, none;
  std::optional<Proposal> proposal = made(seen, {}, of_panel);
  if (!proposal && of_panel) proposal = made(seen, of_panel, none);
  if (proposal) to.push_back(std::move(*proposal));
}

}  // namespace tiny
