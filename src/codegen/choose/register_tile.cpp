#include "codegen/choose/register_tile.h"

#include <algorithm>
#include <cmath>

namespace tiny {

namespace {

// So many sums hide the latency of an addition: four cycles, two or three begun in each.
constexpr double kBusySums = 12;
constexpr double kLoadsHidden = 4;  // loads that cost as much as the products beside them
constexpr double kFarLoad = 4;      // of the second level of cache, in those of the first

}  // namespace

RegisterTile register_tile(const Editor& edit, double m, double n, const TileCost& cost) {
  RegisterTile best;
  const auto lanes = static_cast<double>(edit.lanes());
  for (int64_t vectors = 1; vectors <= cost.vectors_max; ++vectors) {
    if (vectors > 1 && static_cast<double>(vectors - 1) * lanes >= n) break;
    const bool is_far = static_cast<double>(vectors) * cost.vector_bytes >
                        static_cast<double>(edit.machine().l1_bytes);
    for (int64_t rows = 1; rows * vectors + vectors + 1 <= edit.machine().vector_registers - 1;
         ++rows) {
      if (static_cast<double>(rows) > m) break;
      const auto r = static_cast<double>(rows);
      const auto v = static_cast<double>(vectors);
      const double use_m = m / (std::ceil(m / r) * r);
      const double use_n = n / (std::ceil(n / (v * lanes)) * v * lanes);
      const double busy = std::min(1.0, r * v / kBusySums);
      const double loads = (r + v * (is_far ? kFarLoad : 1)) / (r * v);
      const double score = use_m * use_n * busy / (1 + loads / kLoadsHidden);
      if (score > best.score * 1.0001) best = {rows, vectors, score};
    }
  }
  // As many tiles, of nearly equal size: a last one of a row or two would wait for its sums.
  const double tiles = std::ceil(m / static_cast<double>(best.rows));
  best.rows = std::max<int64_t>(static_cast<int64_t>(std::ceil(m / tiles)), 1);
  return best;
}

}  // namespace tiny
