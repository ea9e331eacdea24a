#include "schedule/rewrite/winograd_tiles.h"

#include "base/error.h"
#include "ir/build.h"
#include "shape/shape.h"

namespace tiny {

namespace {

UOp viewed(const UOp& x, const Shape& narrow, const Shape& shape) {
  return make_expand(make_reshape(x, narrow), shape);
}

}  // namespace

UOp winograd_input(const UOp& x, WinogradTile tile) {
  const Ints size = const_dims(shape_of(x));
  const int64_t m = tile.outputs;
  invariant(size[1] % m == 0 && size[2] % m == 0, "whole tiles");
  const UOp tiles = make_reshape(x, {size[0], size[1] / m, m, size[2] / m, m, size[3]});
  return make_winograd(tiles, WinogradPart::Input, tile);
}

UOp winograd_filter(const UOp& w, WinogradTile tile) {
  return make_winograd(w, WinogradPart::Filter, tile);
}

UOp winograd_product(const UOp& v, const UOp& u) {
  const Shape& tiles = shape_of(v);
  const Shape& filter = shape_of(u);
  const Shape all{tiles[0], tiles[1], tiles[2], tiles[3], tiles[4], filter[2], filter[3]};
  const UOp left = viewed(v, {tiles[0], tiles[1], tiles[2], tiles[3], tiles[4], 1, tiles[5]}, all);
  const UOp right = viewed(u, {filter[0], filter[1], 1, 1, 1, filter[2], filter[3]}, all);
  const UOp sum = make_reduce(mul(left, right), Op::Add, {6});
  return make_reshape(sum, {tiles[0], tiles[1], tiles[2], tiles[3], tiles[4], filter[2]});
}

UOp winograd_output(const UOp& m, WinogradTile tile) {
  const Ints size = const_dims(shape_of(m));
  const int64_t n = tile.outputs;
  return make_reshape(make_winograd(m, WinogradPart::Output, tile),
                      {size[2], size[3] * n, size[4] * n, size[5]});
}

}  // namespace tiny
