// A program's optimisations are what the text says that an earlier run has told.
#include "engine/option_lists.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "engine/kernel_cache.h"
#include "engine/observe.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tensor/window.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

std::string told;
void listen(void*, const char* text) {
  told += text;
}

// Kernels of several kinds, two of one shape among them.
Tensor network(const Ref<Context>& context) {
  const auto values = [&](const Ints& shape) {
    int64_t count = 1;
    for (int64_t n : shape) count *= n;
    testing::Floats data(static_cast<size_t>(count));
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i * 7 % 17) - 8;
    return testing::floats(context, data, shape);
  };
  Window window;
  window.before = window.after = {1, 1};
  const Tensor image = relu(conv(values({1, 8, 12, 20}), values({24, 8, 3, 3}), Tensor(), window));
  const Tensor rows = softmax(matmul(reshape(image, to_shape({24, 240})), values({240, 50})), 1);
  const Tensor hidden = relu(matmul(rows, values({50, 50})));
  return matmul(relu(matmul(hidden, values({50, 50}))), values({50, 50}));
}

void realize_network(const Ref<Context>& context) {
  Tensor result = network(context);
  Tensor* all[] = {&result};
  realize(all);
}

class OptionListsTest : public ::testing::Test {
 protected:
  Flags flags(const std::string& opts, bool optimise) const {
    Flags f = testing::flags_for("null", "avx512");
    f.processor = "zen5";
    f.threads = 2;
    f.opts = opts;
    f.noopt = optimise ? 0 : 1;
    f.debug = 4;
    f.log = {listen, nullptr};
    return f;
  }
  // What is told of the network's kernels, down to their source.
  std::string log_of(const Flags& f) const {
    told.clear();
    const Ref<Context> context = make_ref<Context>(f);
    realize_network(context);
    const std::string kernels =
        told.substr(told.find("kernel "), told.find("program of ") - told.find("kernel "));
    // What was proposed is told only where something was.
    return std::regex_replace(kernels, std::regex("  (taken from|proposed by) .*\n"), "");
  }
  std::string write(const std::string& text) const {
    std::ofstream(folder_ / "log") << text;
    return "@" + (folder_ / "log").string();
  }

  testing::TemporaryFolder folder_;
};

TEST_F(OptionListsTest, WhatIsToldOfAProgramGivesTheSameCode) {
  const std::string chosen = log_of(flags("", true));
  const std::string plain = log_of(flags("", false));
  ASSERT_NE(chosen, plain);
  EXPECT_EQ(log_of(flags(write(chosen), false)), chosen);
  EXPECT_EQ(log_of(flags(write(plain), true)), plain);
}

TEST_F(OptionListsTest, KernelsThatAreNotNamedKeepTheChosenList) {
  const std::string chosen = log_of(flags("", true));
  const size_t name = chosen.find("  options r_24_12_20") + 10;
  ASSERT_LT(name, chosen.size());
  const std::string one = chosen.substr(name, chosen.find(':', name) - name);
  const std::string got = log_of(flags(one + ": TILE r0 4; UPCAST r6", true));
  EXPECT_NE(got, chosen);
  EXPECT_NE(got.find("  options " + one + ": TILE r0 4; UPCAST r6\n"), std::string::npos) << got;
  const size_t next = chosen.find("\nkernel ", name);
  const size_t end = chosen.find("\nvoid ", name);  // sources follow
  ASSERT_LT(next, end);
  EXPECT_NE(got.find(chosen.substr(next, end - next)), std::string::npos) << "all others";
}

TEST_F(OptionListsTest, TheNameOfTheLoopsStandsForEveryStructure) {
  const std::string got = log_of(flags("r_24_50_50: TILE r1 10\nTILE r0 2", true));
  size_t named = 0, others = 0;
  for (size_t at = 0; (at = got.find("\n  options ", at)) != std::string::npos; ++at) {
    const std::string line = got.substr(at + 11, got.find('\n', at + 1) - at - 11);
    const bool is_named = line.starts_with("r_24_50_50.");
    ++(is_named ? named : others);
    EXPECT_TRUE(line.ends_with(is_named ? ": TILE r1 10" : ": TILE r0 2")) << line;
  }
  EXPECT_EQ(named, 2U) << got;
  EXPECT_GT(others, 0U);
}

TEST_F(OptionListsTest, AListThatIsWrongNamesItsKernelAndTheOption) {
  const auto failure = [&](const std::string& opts) {
    return testing::failure_of([&] { log_of(flags(opts, true)); });
  };
  testing::expect_failure(failure("r_24_50_50: TILE r9 4"), Status::InvalidArgument,
                          {"kernel r_24_50_50.", "option TILE r9 4", "no range r9"});
  testing::expect_failure(failure("TILE r9 4"), Status::InvalidArgument,
                          {"kernel r_", "option TILE r9 4"});
  testing::expect_failure(failure("r_1: PILE r0 4"), Status::InvalidArgument,
                          {"kernel r_1", "\"PILE\"", "TILE"});
  testing::expect_failure(failure("r_1: TILE r0 4\nr_1: TILE r0 8"), Status::InvalidArgument,
                          {"two lists for kernel r_1", "\"TILE r0 4\"", "\"TILE r0 8\""});
  testing::expect_failure(failure("a kernel: TILE r0 4"), Status::InvalidArgument,
                          {"\"a kernel: TILE r0 4\"", "a colon"});
  testing::expect_failure(failure("@" + (folder_ / "none").string()), Status::Io,
                          {"none", "cannot be read"});
  testing::expect_failure(failure(write("options\nof no kernel\n")), Status::InvalidArgument,
                          {"no line \"options NAME"});
}

TEST_F(OptionListsTest, NamesThatNoKernelHasAreTold) {
  told.clear();
  const Ref<Context> context = make_ref<Context>(flags("r_7_7: none\nr_24_50_50: none", true));
  realize_network(context);
  context->observer().finish();
  EXPECT_NE(told.find("no kernel was named r_7_7, "), std::string::npos);
  EXPECT_EQ(told.find("no kernel was named r_24_50_50"), std::string::npos);
}

}  // namespace
}  // namespace tiny
