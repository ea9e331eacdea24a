// Calls over tensors of several contexts: now, or in every run of a program (joint.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "api/boundary.h"

namespace tiny {

// Has contexts for one call; what was entered last is left first, also where one cannot be had.
struct Entered {
  Entered(std::unique_ptr<Entered> b, tiny_context& context)
      : before(std::move(b)), building(context) {}

  std::unique_ptr<Entered> before;
  Building building;
};

// Each once, in the order of their addresses, so that two such calls do not wait for each other.
std::unique_ptr<Entered> enter_all(std::vector<tiny_context*> contexts);

// What the call does with tensors that have elements; their contexts and those of the results are
// entered.
using Together = std::function<std::vector<Tensor>(std::span<Tensor* const>)>;

struct ResultOf {
  tiny_context* context;  // that of an operand, or one that lives as long as one of these
  DType dtype;
  Ints shape;
};

// Whether one of them has no value but in runs of a program; Error{Unsupported} if sizes of these
// are variables'.
bool is_of_program(std::span<tiny_tensor* const> tensors);

// Stand-ins for the results, for the graphs of programs.
std::vector<Tensor> exchanged(std::span<tiny_tensor* const> operands, std::vector<ResultOf> results,
                              Together together);

}  // namespace tiny
