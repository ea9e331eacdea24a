// Boxes that overlap a better one too much, left out (non-maximum suppression).
#pragma once

#include "tensor/dependence.h"
#include "tensor/tensor.h"

namespace tiny {

struct SuppressionOptions {
  bool is_centre = false;  // boxes are centre x, y, width, height; else two opposite corners y, x
  Dim rounds = 0;          // how many boxes of one class may be taken at the most
};
// For each picture and class the box with the greatest score is taken, then the greatest of those
// that overlap none taken before by more than the share `overlap` of their union, and so on, up to
// `most` boxes (int64, one element): positions [rounds, batch, classes], int64, -1 where there was
// no box left.  Boxes [batch, n, 4], scores [batch, classes, n]; only boxes that are `wanted`
// (bool, as the scores; none: all) are taken.  `known` as of `repeat` (tensor/control.h).
Tensor suppress_overlaps(const Tensor& boxes, const Tensor& scores, const Tensor& most,
                         const Tensor& overlap, const Tensor& wanted,
                         const SuppressionOptions& options, Dependences& known);

}  // namespace tiny
