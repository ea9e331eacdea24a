#include "codegen/linearize/tiles.h"

#include "ir/build.h"
#include "rules/symbolic.h"

namespace tiny {

std::vector<Tiles> TileCuts::tiles_of(const BalancedTile& tile, const UOp& start) {
  return tile.unit == 1 ? balanced(tile, start) : of_lanes(tile, start);
}

// As few tiles as there must be, whose steps differ by one at most: the first of them have one
// more.
std::vector<Tiles> TileCuts::balanced(const BalancedTile& tile, const UOp& start) {
  const UOp some = maximum(tile.count, 1);
  const UOp least_of = floor_div(tile.size, some);
  const LinearId zero = emit_.index_constant(0);
  const LinearId count = values_.scalar_index(tile.count);
  const LinearId least = values_.scalar_index(least_of);
  const LinearId larger =
      values_.scalar_index(sub(tile.size, mul(least_of, some)));  // so many tiles
  std::vector<Tiles> all;
  for (const int64_t t : tile_steps(tile)) {
    const LinearId is_least = emit_.equals(least, t);
    const LinearId begin = choose(is_least, larger, zero);
    const LinearId end = choose(is_least, count, choose(emit_.equals(least, t - 1), larger, zero));
    all.push_back({t, t, begin, end, begin, sub(sub(tile.size, start), t)});
  }
  return all;
}

// Whole tiles, then the vectors that are left, the last of which may be a part.
std::vector<Tiles> TileCuts::of_lanes(const BalancedTile& tile, const UOp& start) {
  const UOp room = sub(tile.size, start);
  const int64_t elements = tile.steps * tile.unit;
  const UOp whole = floor_div(tile.size, elements);
  const UOp rest = simplify_index(floor_mod(tile.size, elements));
  const LinearId zero = emit_.index_constant(0);
  const LinearId last = values_.scalar_index(whole);
  std::vector<Tiles> all{{tile.steps, elements, zero, last, zero, sub(room, elements)}};
  if (rest.is_const_int(0)) return all;
  const LinearId vectors = values_.scalar_index(floor_div(add(rest, tile.unit - 1), tile.unit));
  const LinearId count = values_.scalar_index(tile.count);
  for (int64_t t = tile.steps; t > 0; --t)
    all.push_back({t, elements, last, choose(emit_.equals(vectors, t), count, zero), zero,
                   sub(room, (t - 1) * tile.unit + 1)});
  return all;
}

}  // namespace tiny
