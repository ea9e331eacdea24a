#include "codegen/choose/register_tile.h"

#include <algorithm>
#include <cmath>

namespace tiny {

namespace {

// So many sums hide the latency of an addition: four cycles, two or three begun in each.
constexpr double kBusySums = 12;
constexpr double kLoadsHidden = 4;  // loads that cost as much as the products beside them
constexpr double kFarLoad = 4;      // of the second level of cache, in those of the first
// Products that take as long as a row's value that is loaded into all lanes: more than they can
// hide.  On a Zen 4, 2026-11-29: of 117 GFLOPS tiles of one vector reach 85 with any number of
// rows.
constexpr double kSharedTakes = 1.3;
// The share that a tile of what is left loses of what it has less to do: code of its own is entered
// for it.  On a Zen 4, 2026-11-29: 1024 rows in tiles of 14 (two are left) take 1.02 of tiles
// of 13.
constexpr double kLastLoses = 0.5;

// What a step of a tile takes, in products of a vector: of what is left of rows or vectors, too.
double step_of(double rows, double vectors, double vector_loads) {
  const double sums = rows * vectors;
  if (sums == 0) return 0;
  return std::max({sums, kBusySums, kSharedTakes * rows}) +
         (rows + vectors * vector_loads) / kLoadsHidden;
}

}  // namespace

RegisterTile register_tile(const Editor& edit, double m, double n, const TileCost& cost) {
  RegisterTile best;
  const auto lanes = static_cast<double>(edit.lanes());
  const double all_vectors = std::ceil(n / lanes);
  const Machine& machine = edit.machine();
  // Of equals the one of more vectors, whose products share what is loaded of a row.
  for (int64_t vectors = cost.vectors_max; vectors > 0; --vectors) {
    const auto v = static_cast<double>(vectors);
    if (vectors > 1 && v > all_vectors) continue;
    const bool is_far = v * cost.vector_bytes > static_cast<double>(machine.l1_bytes);
    const double vector_loads = cost.vector_loads * (is_far ? kFarLoad : 1);
    for (int64_t rows = 1; rows * vectors + vectors + 1 <= machine.vector_registers - 1; ++rows) {
      const auto r = static_cast<double>(rows);
      if (r > m) break;
      // As many tiles, of nearly equal size: a last one of a row or two would wait for its sums.
      if (r > 1 && std::ceil(m / std::ceil(m / r)) != r) continue;
      const double last_rows = std::fmod(m, r), last_vectors = std::fmod(all_vectors, v);
      const double whole = step_of(r, v, vector_loads);
      const auto step = [&](double of_rows, double of_vectors) {
        const double own = step_of(of_rows, of_vectors, vector_loads);
        return own == 0 ? 0 : own + kLastLoses * std::max(whole - own, 0.0);
      };
      const double tiles = std::floor(m / r), columns = std::floor(all_vectors / v);
      const double taken = columns * (tiles * whole + step(last_rows, v)) +
                           tiles * step(r, last_vectors) + step(last_rows, last_vectors);
      const double score = m * n / lanes / (taken * (r < m ? 1 + cost.cut_rows : 1));
      if (score > best.score * 1.0001) best = {rows, vectors, score};
    }
  }
  return best;
}

}  // namespace tiny
