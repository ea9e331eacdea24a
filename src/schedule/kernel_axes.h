// Axes of the nodes of a kernel, followed to the stored values that it reads, and what its
// contractions have along them.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "ir/dot.h"
#include "schedule/decide.h"
#include "schedule/schedule.h"

namespace tiny {

using Axis = std::optional<size_t>;

struct AxisOfNode {
  UOp node;
  Axis axis;
};

// The length of an axis; 0 where a run says: rows of such a size begin anywhere, and their last
// vector is a part.
int64_t extent(const UOp& u, size_t axis);

class KernelAxes {
 public:
  // A shorter axis is not worth an order of its own.
  static constexpr int64_t kExtentMin = 8;
  // Of floats; bytes are multiplied in words, which an axis is to fill.
  static int64_t extent_min(const UOp& u) { return u.dtype().is_float() ? kExtentMin : kWordBytes; }

  explicit KernelAxes(const Decision& decision) : decision_(decision) {}

  bool is_buffer(const UOp& u) const {
    return has_memory(u) || decision_.stored[u.id()] || decision_.slice(u);
  }
  // The sources that hold elements: the others of a movement are sizes.
  static size_t sources(const UOp& u) { return has(u.op(), kMovement) ? 1 : u.src().size(); }
  // Where an axis of a node's result is in one of its sources.
  static AxisOfNode below(const AxisOfNode& at, size_t source);

  // Of a contraction, the operand that is not computed here while the other is; null if it has
  // none.
  const UOp* weights_of(const UOp& reduce) const;
  // The axis of `u` along which the columns of the contraction run that its kernel ends with.
  Axis columns_of(const UOp& u) const;
  // Whether a value is movement of memory that the graph was given and has its last axis as
  // innermost one.
  bool are_given_rows(const UOp& u) const;
  // Of a product that is summed over positions, images and their pixels, as the gradient of weights
  // is (A^T B), for each factor that is computed the longest axis of its own: each step reads
  // along it anew.
  std::array<Axis, 2> columns_of_gradient(const UOp& reduce) const;

 private:
  bool are_columns(AxisOfNode from) const;
  double distance_along(AxisOfNode at) const;
  bool is_contraction(const UOp& reduce) const;
  bool is_summed_over_positions(const UOp& reduce) const;

  const Decision& decision_;
};

}  // namespace tiny
