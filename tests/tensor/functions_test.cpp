// Every function of the library against its definition, through the oracle and through the engine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "engine/backend.h"
#include "engine/context.h"
#include "tests/reference/reference.h"
#include "tests/support/context.h"
#include "tests/tensor/function_cases/case.h"

namespace tiny {
namespace {

using function_cases::Case;
using function_cases::Maker;
using testing::new_context;
using Function = Case (*)(const Maker&);

const std::map<std::string, Function>& cases() {
  static const auto& all = *new std::map<std::string, Function>{
#define FUNCTION(name, parameters, meaning) {#name, function_cases::case_##name},
#include "api/functions.def"
  };
  return all;
}

class FunctionTest : public ::testing::TestWithParam<std::string> {};

void expect_definition(const Case& c) {
  ASSERT_EQ(to_string(c.got.shape()), to_string(to_shape(c.want.shape)));
  const reference::Values values = reference::evaluate(c.got.node());
  for (size_t i = 0; i < c.want.values.size(); ++i) {
    const double got =
        values.dtype.is_float() ? values.real[i] : static_cast<double>(values.whole[i]);
    const double want = c.want.values[i];
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << "element " << i;
    } else {
      EXPECT_NEAR(got, want, c.tolerance * std::max(1.0, std::abs(want))) << "element " << i;
    }
  }
}

TEST_P(FunctionTest, HasItsDefinitionsValues) {
  expect_definition(cases().at(GetParam())(Maker(new_context("interp"))));
}

TEST(Functions, LrnTakesAnyPower) {
  const Maker make(new_context("interp"));
  for (const double beta : {0.25, 0.5, 0.6, 1.0, 2.0})
    expect_definition(function_cases::lrn_with(make, beta));
}

TEST_P(FunctionTest, IsComputedAsTheOracleDoes) {
  for (const BackendInfo& backend : known_backends(Drivers::LeaveClosed)) {
    // The C compiler takes long; random graphs try it.
    if (!backend.available || (backend.name != "interp" && backend.name != "cpu")) continue;
    std::vector<std::string> isas = backend.isas;
    if (isas.empty()) isas.push_back("auto");
    for (const std::string& isa : isas) {
      const Maker make(new_context(backend.name, isa));
      Case c = cases().at(GetParam())(make);
      const reference::Values want = reference::evaluate(c.got.node());
      std::string bytes(static_cast<size_t>(element_count(c.got) * c.got.dtype().bytes()), '\0');
      read(c.got, bytes.data(), std::ssize(bytes));
      EXPECT_EQ(reference::difference(want, bytes.data()), "") << backend.name << " " << isa;
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, function] : cases()) all.push_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, FunctionTest, ::testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tiny
