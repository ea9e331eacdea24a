// Whose work the kernels of a schedule do: which ONNX nodes, or named tensors, they compute.
#pragma once

#include <span>
#include <vector>

#include "ir/origin.h"
#include "schedule/schedule.h"

namespace tiny {

// For each kernel the origins of the nodes between what it reads and what it stores, in the order
// of the data's flow.  What has no name does the work of what alone it is computed for, or of the
// operator that it was made by.  `roots` are what the schedule was made for.
std::vector<std::vector<Origin>> kernel_origins(const Schedule& schedule,
                                                std::span<const UOp> roots);

}  // namespace tiny
