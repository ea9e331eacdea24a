// Every op that a tensor graph may hold has a rule, or says why it needs none.
#include "autograd/rules.h"

#include <gtest/gtest.h>

namespace tiny {
namespace {

TEST(GradientRules, EveryOpOfTheTensorGraphHasOne) {
  for (size_t i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if ((info(op).stages & kTensorStage) == 0) {
      EXPECT_ANY_THROW(gradient_rule(op)) << info(op).name;
      continue;
    }
    const GradientRule& rule = gradient_rule(op);
    EXPECT_TRUE((rule.apply != nullptr) != (rule.none != nullptr)) << info(op).name;
  }
}

}  // namespace
}  // namespace tiny
