// Functions of angles, arcs and the hyperbola against the C library, and the dtypes they take.
#include "tensor/trigonometry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/value.h"
#include "tests/support/context.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

using testing::Floats;
using testing::floats;
using testing::floats_of;

struct Case {
  const char* name;
  Tensor (*ours)(const Tensor&);
  double (*exact)(double);
  Floats at;
};

const Floats kEverywhere = {-30.f, -2.5f, -1.f, -0.3f, -1e-4f, 0.f,
                            1e-6f, 0.02f, 0.7f, 1.f,   3.f,    40.f};
const Floats kInside = {-1.f,  -0.999999f, -0.99f, -0.5f,     -1e-3f, 0.f,
                        1e-6f, 0.3f,       0.9f,   0.999999f, 1.f};
const Floats kOpen = {-0.999999f, -0.99f, -0.5f, -1e-3f, 0.f, 1e-6f, 0.3f, 0.9f, 0.999999f};
const Floats kAboveOne = {1.f, 1.001f, 1.5f, 2.f, 10.f, 1e9f, 1e30f};

const Case kCases[] = {
    {"tan", tan, std::tan, {-1.2f, -0.3f, 0.f, 1e-5f, 0.5f, 1.4f, 2.f}},
    {"asin", asin, std::asin, kInside},
    {"acos", acos, std::acos, kInside},
    {"atan", atan, std::atan, kEverywhere},
    {"sinh", sinh, std::sinh, kEverywhere},
    {"cosh", cosh, std::cosh, kEverywhere},
    {"asinh", asinh, std::asinh, kEverywhere},
    {"acosh", acosh, std::acosh, kAboveOne},
    {"atanh", atanh, std::atanh, kOpen},
};

TEST(Trigonometry, AgreesWithTheCLibrary) {
  for (const std::string& device : testing::computing_devices()) {
    const Ref<Context> context = testing::new_context(device);
    for (const Case& c : kCases) {
      const Floats got = floats_of(c.ours(floats(context, c.at)));
      for (size_t i = 0; i < got.size(); ++i) {
        const double want = c.exact(static_cast<double>(c.at[i]));
        EXPECT_NEAR(got[i], want, 4e-6 * std::max(std::fabs(want), 1e-3))
            << device << " " << c.name << " of " << c.at[i];
      }
    }
  }
}

TEST(Trigonometry, NarrowFloatsAreRoundedOnce) {
  const Ref<Context> context = testing::new_context("interp");
  const Floats at = {-0.875f, 0.25f, 0.5f};
  for (const Case& c : kCases) {
    if (c.ours == acosh) continue;
    const Tensor narrow = c.ours(cast(floats(context, at), kFloat16));
    EXPECT_EQ(narrow.dtype(), kFloat16) << c.name;
    EXPECT_EQ(floats_of(cast(narrow, kFloat32)),
              floats_of(cast(cast(c.ours(floats(context, at)), kFloat16), kFloat32)))
        << c.name;
  }
}

TEST(Trigonometry, IntegersAreFloats) {
  const Ref<Context> context = testing::new_context("interp");
  const int64_t values[] = {0, 1};
  const Tensor t = atan(from_data(context, kInt64, {2}, values, sizeof values));
  EXPECT_EQ(t.dtype(), kFloat32);
  EXPECT_EQ(floats_of(t)[0], 0);
  EXPECT_NEAR(floats_of(t)[1], std::atan(1.0), 1e-6);
}

}  // namespace
}  // namespace tiny
