// Products of words by the matrix unit (ir/tile_products.h): the sums of such a loop are tiles from
// where they are declared to where the last loop has added to them, and then lie in the frame.
//
// reads: values.
// makes: instructions for tiles, by the emitter.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/tile_products.h"
#include "render/x86/select/values.h"

namespace tiny::x86 {

class Tiles {
 public:
  // `kinds`: of products that the target has tiles for.
  Tiles(const LinearProgram& program, Values& values, DotSet kinds);

  // What tiles do instead: a sum that is one, and what is loaded for it and added to it.
  bool has(LinearId id) const { return !is_tiled_.empty() && is_tiled_[id] != 0; }
  // Before the op: tiles get the sizes of a product as far outside of it as no other wants others,
  // and begin at zero where its first sum is declared.
  void begin(LinearId id);
  // Before the end of a loop: a tile's steps of products.  How many steps of the loop these are; 1
  // of another loop.
  int64_t multiply(LinearId end_loop);
  // Behind it: sums that are done are stored.
  void store(LinearId end_loop);
  // Behind the program.
  void end();

 private:
  int64_t sum_tile(const TileProduct& p, int64_t row, int64_t vector) const {
    return row * p.vectors + vector;
  }
  int64_t row_tile(const TileProduct& p, int64_t row) const {
    return p.row_tiles() * p.vectors + row;
  }
  int64_t vector_tile(const TileProduct& p, int64_t vector) const {
    return p.row_tiles() * p.vectors + p.row_tiles() + vector;
  }
  void place_configurations(const LinearProgram& program);
  void configure(const TileProduct& p);
  void load(int64_t tile, Mem at, VReg stride);
  VReg address_of(LinearId load);
  void copy_rows(const TileProduct& p, const TileLoop& l, VReg rows);

  Values& v_;
  Emitter& e_;
  std::vector<TileProduct> products_;
  std::vector<LinearId> configured_;  // before this op, for each product
  std::vector<uint8_t> is_tiled_;     // by op; empty: there are no products
  // The first of the frame's slots: for rows of sums, and of factors that are copied.
  uint32_t sum_slots_ = 0;
  uint32_t row_slots_ = 0;
};

}  // namespace tiny::x86
