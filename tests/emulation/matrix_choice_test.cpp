// When products of matrices are chosen: by what they are estimated to take on machines that have
// them, of float32 where that is allowed alone; every list that is proposed computes the product.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codegen/choose/strategies.h"
#include "codegen/options/options.h"
#include "cost/group_machines.h"
#include "tests/emulation/matrix_kernels.h"

namespace tiny::emulation {
namespace {

tiny::Machine machine_like(const std::string& name, bool may_round_float = false) {
  const GroupMachine& described = *find_group_machine(name);
  tiny::Machine machine(generic_target(described.limits.access_bytes));
  imitate(described, machine);
  machine.name = name;
  machine.group.argument_alignment = 256;
  machine.group.matrices = matrices_of(described.compute, may_round_float);
  return machine;
}

std::string chosen(const Product& p, const tiny::Machine& machine) {
  Graph graph;
  return to_text(choose_options(prepare_kernel(kernel_of(graph, p), machine), machine));
}

bool multiplies_matrices(const std::string& options) {
  return options.find("; TC ") != std::string::npos;
}

TEST(MatrixChoice, LargeProductsOfNarrowTypesAreMatrices) {
  for (const char* name : {"h100", "a100"})
    for (const DType dtype : {kFloat16, kBFloat16}) {
      const std::string options = chosen({4096, 4096, 4096, dtype}, machine_like(name));
      EXPECT_TRUE(multiplies_matrices(options)) << name << ": " << options;
      EXPECT_NE(options.find("PIPELINE"), std::string::npos) << options;
      EXPECT_NE(options.find("swizzle"), std::string::npos) << options;
    }
  EXPECT_FALSE(multiplies_matrices(chosen({4096, 4096, 4096, kFloat16}, machine_like("pocl"))));
}

TEST(MatrixChoice, Float32IsRoundedWhereThatIsAllowedAlone) {
  const Product p{4096, 4096, 4096, kFloat32};
  EXPECT_FALSE(multiplies_matrices(chosen(p, machine_like("a100"))));
  EXPECT_TRUE(multiplies_matrices(chosen(p, machine_like("a100", true))));
}

TEST(MatrixChoice, WhatIsProposedComputesTheProduct) {
  const tiny::Machine machine = machine_like("a100", true);
  for (const Product& p : std::vector<Product>{{130, 100, 136, kFloat16},
                                               {136, 96, 130, kBFloat16, false, true},
                                               {130, 72, 136, kFloat32, true, false}}) {
    Graph graph;
    const Kernel kernel = prepare_kernel(kernel_of(graph, p), machine);
    int tried = 0;
    for (const Proposal& proposal : all_proposals(Seen(kernel, machine, 1))) {
      if (proposal.strategy != "matrices") continue;
      const std::string options = to_text(proposal.made.options);
      const Generated g = generated(p, options);
      EXPECT_TRUE(interprets(g, p)) << options;
      if (tried++ % 8 == 0) {
        EXPECT_EQ(emulation_fails(g, p, 1), "") << options;
      }
    }
    EXPECT_GT(tried, 10);
  }
}

}  // namespace
}  // namespace tiny::emulation
