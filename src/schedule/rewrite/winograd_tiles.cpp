#include "schedule/rewrite/winograd_tiles.h"

#include "base/error.h"
#include "ir/build.h"
#include "shape/shape.h"

namespace tiny {

namespace {

UOp viewed(const UOp& x, const Shape& narrow, const Shape& shape) {
  return make_expand(make_reshape(x, narrow), shape);
}

// [n, rows, columns, c] with whole tiles along rows and columns apart.
UOp in_tiles(const UOp& x, int64_t outputs) {
  const Shape& size = shape_of(x);
  const auto rows = divide_exactly(size[1], outputs), columns = divide_exactly(size[2], outputs);
  invariant(rows && columns, "whole tiles");
  return make_reshape(x, {size[0], *rows, outputs, *columns, outputs, size[3]});
}

// The places of all tiles: [n, rows, columns, c].
UOp side_by_side(const UOp& tiles) {
  const Shape& size = shape_of(tiles);
  return make_reshape(tiles, {size[0], size[1] * size[2], size[3] * size[4], size[5]});
}

}  // namespace

UOp winograd_input(const UOp& x, WinogradTile tile) {
  return make_winograd(in_tiles(x, tile.outputs), WinogradPart::Input, tile);
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
  return side_by_side(make_winograd(m, WinogradPart::Output, tile));
}

UOp winograd_slopes(const UOp& y, WinogradTile tile) {
  return make_winograd(in_tiles(y, tile.outputs), WinogradPart::Slopes, tile);
}

UOp winograd_slope_product(const UOp& s, const UOp& v) {
  const Ints tiles = const_dims(shape_of(v));
  const int64_t p = tiles[0], count = tiles[2] * tiles[3] * tiles[4], in = tiles[5];
  const int64_t out = shape_of(s)[5].value();
  const Shape all{p, p, count, out, in};
  const UOp left = viewed(s, {p, p, count, out, 1}, all);
  const UOp right = viewed(v, {p, p, count, 1, in}, all);
  return make_reshape(make_reduce(mul(left, right), Op::Add, {2}), {p, p, out, in});
}

UOp winograd_input_slopes(const UOp& d, WinogradTile tile) {
  const Shape around{0, 0, 0, 1, 1, 0};
  return side_by_side(make_winograd(make_pad(d, around, around), WinogradPart::InputSlopes, tile));
}

UOp winograd_filter_slopes(const UOp& sums, WinogradTile tile) {
  return make_winograd(sums, WinogradPart::FilterSlopes, tile);
}

}  // namespace tiny
