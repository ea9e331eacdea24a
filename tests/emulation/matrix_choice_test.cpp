// When products of matrices are chosen: by what they are estimated to take on machines that have
// them, of float32 where that is allowed alone; every list that is proposed computes the product.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "codegen/choose/strategies.h"
#include "codegen/options/actions.h"
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

// Tiles whose operands are copied ahead, and whose rows a thread reads at once.
TEST(MatrixChoice, TilesOfFloat32AreCopiedAheadAndComputeTheProduct) {
  const tiny::Machine machine = machine_like("a100");
  const Product p{70, 100, 50, kFloat32};
  Graph graph;
  const Kernel kernel = prepare_kernel(kernel_of(graph, p), machine);
  int tried = 0;
  std::set<std::string> rooms;
  for (const Proposal& proposal : all_proposals(Seen(kernel, machine, 1))) {
    if (proposal.strategy != "shared tiles") continue;
    const std::string options = to_text(proposal.made.options);
    const size_t at = options.find("PIPELINE");
    rooms.insert(at == std::string::npos ? "" : options.substr(options.rfind(' ')));
    const Generated g = generated(p, options);
    EXPECT_TRUE(interprets(g, p)) << options;
    if (tried++ % 4 == 0) {
      EXPECT_EQ(emulation_fails(g, p, 1), "") << options;
    }
  }
  EXPECT_GT(tried, 8);
  EXPECT_EQ(rooms, (std::set<std::string>{"", " 2", " 3"}));
}

// What a search tries from a list with a product of matrices: other numbers of rooms, from one (no
// PIPELINE) on, and other orders of pieces in the lines that are shared.
TEST(MatrixChoice, ASearchTriesOtherRoomsAndSwizzles) {
  const tiny::Machine machine = machine_like("a100");
  const Product p{66, 40, 136, kFloat16};
  Graph graph;
  const Kernel kernel = prepare_kernel(kernel_of(graph, p), machine);
  std::set<int64_t> rooms, swizzles;
  const auto is_matrices = [](const Proposal& one) { return one.strategy == "matrices"; };
  std::vector<Proposal> proposals = all_proposals(Seen(kernel, machine, 1));
  std::erase_if(proposals, [&](const Proposal& one) { return !is_matrices(one); });
  ASSERT_GT(proposals.size(), 4u);
  int tried = 0;
  for (const size_t at : {size_t{0}, size_t{2}}) {  // one room, and three
    const std::vector<Option>& list = proposals[at].made.options;
    std::vector<std::vector<Option>> lists = changed_lists(kernel, list);
    for (const Action& action : possible_actions(apply_options(kernel, list), machine)) {
      lists.push_back(list);
      lists.back().insert(lists.back().end(), action.begin(), action.end());
    }
    for (const std::vector<Option>& next : lists) {
      try {
        if (!fits_target(apply_options(kernel, next), machine)) continue;
      } catch (const Error&) {
        continue;
      }
      int64_t has_rooms = 1;
      bool is_near = next.size() != list.size();
      for (size_t i = 0; i < next.size(); ++i) {
        if (next[i].kind == OptionKind::Pipeline) has_rooms = next[i].amount;
        if (next[i].is_shared) swizzles.insert(next[i].swizzle);
        is_near |= i < list.size() && !(next[i] == list[i]) &&
                   (next[i].is_shared || next[i].kind == OptionKind::Pipeline);
      }
      rooms.insert(has_rooms);
      if (!is_near) continue;
      if (tried++ % 2 == 0) {
        EXPECT_TRUE(interprets(generated(p, to_text(next)), p)) << to_text(next);
      }
    }
  }
  EXPECT_EQ(rooms, (std::set<int64_t>{1, 2, 3, 4}));
  EXPECT_GT(swizzles.size(), 2u);
  EXPECT_GT(tried, 6);
}

}  // namespace
}  // namespace tiny::emulation
