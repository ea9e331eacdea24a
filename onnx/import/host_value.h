// Small tensor-graph values computed on the host while a model is imported: shape arithmetic.
//
// Every op of the graph is understood, so that no importer needs a second definition of what its
// operator means: elementwise ops are those of ir/fold.h.
#pragma once

#include <optional>
#include <vector>

#include "io/host_tensor.h"
#include "ir/uop.h"
#include "tensor/tensor.h"

namespace tiny::onnx {

// The value of `root`, with float results rounded as in docs/semantics.md.  None if it depends on a
// program's input or a Variable, or if a value on the way has more than `elements_max` elements.
// Error{Index} if a gather reads outside its data.
std::optional<HostTensor> host_value(const UOp& root, int64_t elements_max);

// The same with expressions over Variables as elements, row-major, folded where that is possible;
// no UOp for one that depends on a program's input, or on a value whose shape is no list of
// numbers.
std::optional<std::vector<UOp>> host_expressions(const UOp& root, int64_t elements_max);
// The elements of a tensor of this dtype and shape as numbers; none unless all are.
std::optional<HostTensor> numbers_of(const std::vector<UOp>& elements, const Tensor& like);

// Elements as integers (bools as 0 and 1) or as floats.
Ints integers_of(const HostTensor& tensor);
std::vector<double> reals_of(const HostTensor& tensor);

}  // namespace tiny::onnx
