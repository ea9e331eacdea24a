// Convolutions with filters of 3x3 and 5x5 taps computed with fewer multiplications (Winograd), and
// the gradients of such filters.
//
// The output is cut into tiles of m x m; with r taps, p = m + r - 1, B, G and A the matrices of
// F(m, r):
//
//   V [p, p, tiles, channels in]     =  B^T d B    elementwise over views of the input
//   M [p, p, tiles, channels out]    =  V * U      a batch of matrix products, U = G g G^T
//   Y [tiles, m, m, channels out]    =  A^T M A    elementwise, with all that follows
//
// and where the sum is over places, of what reached them (y) with the input, by the same V:
//
//   S [p, p, tiles, channels out]    =  A y A^T    elementwise
//   D [p, p, channels out, in]       =  S^T V      a batch of matrix products
//   the filter's gradient            =  G^T D G
//
// and where all taps reach beyond the ends of the input, y here (of an input's gradient), so that
// the output has more tiles, by the same S:
//
//   N [p, p, tiles, channels out]    =  S * U      a batch of matrix products
//   Y [.., channels out]             =  B N B^T    of each tile, and of those that reach into it
//
// An input that is in memory with its channels apart is laid out with these innermost first: each
// of its elements is read for several tiles. A convolution is recognised by the indices of its
// operands, never by a name.  U of a constant filter is a constant; where the filter varies (a
// training step's weights), each run computes it, which then is a part of the cost.
// Batch, rows and columns may be what a run says.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cost/machine.h"
#include "ir/uop.h"
#include "schedule/rewrite/changed_graph.h"
#include "shape/winograd.h"

namespace tiny {

enum class WinogradUse : uint8_t { Never, WhereFaster, WhereLegal };

// "0", "auto" or "1"; Error{InvalidArgument} for other text.
WinogradUse winograd_use(std::string_view text);

// What decides about one convolution.
struct ConvolutionSize {
  int64_t batch = 1;
  int64_t rows = 1;  // of the output
  int64_t columns = 1;
  int64_t channels_in = 1;
  int64_t channels_out = 1;
  int64_t taps = 3;            // along both axes
  bool filter_varies = false;  // from run to run
};

// The tiles that are expected to be fastest on the target; none: the sum as it stands.
// `extra_seconds`: what tiles cost a run beyond the kernels' own time.
std::optional<WinogradTile> winograd_tile(const ConvolutionSize& size, const Machine& target,
                                          double extra_seconds = 0);

// `roots` with every sum of that kind replaced that `use` allows.  `is_constant` says by id which
// nodes with memory hold what never changes.
ChangedGraph rewrite_winograd(std::span<const UOp> roots, const Machine& target,
                              const std::vector<uint8_t>& is_constant, WinogradUse use,
                              double extra_seconds = 0);

}  // namespace tiny
