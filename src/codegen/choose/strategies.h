// How options come about: strategies propose complete lists, the estimate decides.
//
// A strategy is a row of the table in strategies.cpp and a file.  The first row proposes what the
// families of kernels with a form of their own want (choose.cpp); what another row proposes is
// taken where it is estimated to take clearly less.
#pragma once

#include <string_view>
#include <vector>

#include "codegen/choose/proposal.h"
#include "cost/machine.h"
#include "ir/kernel.h"

namespace tiny {

struct Strategy {
  std::string_view name;
  std::string_view why;
  // Adds to `to`, which holds what the rows before proposed.
  void (*propose)(const Kernel& kernel, const Machine& target, double runs,
                  std::vector<Proposal>& to);
};

std::span<const Strategy> strategies();

// generic.cpp
void propose_generic(const Kernel& kernel, const Machine& target, double runs,
                     std::vector<Proposal>& to);

}  // namespace tiny
