// What memory views need, and the movement that makes them of a row.
#include "shape/strides.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/build.h"

namespace tiny {
namespace {

struct Golden {
  View view;
  Mask mask;
  int64_t size;
};

// Of tinygrad's ShapeTracker, where that is right; what has no elements needs no memory, as in
// PyTorch.
const std::vector<Golden>& goldens() {
  static const auto& all = *new std::vector<Golden>{
      {{{2, 3}, {1, 2}, 0}, {}, 6},    {{{3}, {-1}, 2}, {}, 3},
      {{{3}, {-2}, 5}, {}, 6},         {{{2, 3}, {-3, 1}, 3}, {}, 6},
      {{{2, 2}, {3, 5}, 1}, {}, 10},   {{{4, 4}, {1, 1}, 0}, {}, 7},
      {{{4, 3}, {0, 1}, 0}, {}, 3},    {{{5}, {1}, -1}, {{1}, {4}}, 3},
      {{{5}, {-1}, 3}, {{1}, {4}}, 3}, {{{}, {}, 0}, {}, 1},
      {{{3}, {2}, 4}, {}, 9},          {{{0, 3}, {3, 1}, 7}, {}, 0},
      {{{5}, {1}, 3}, {{2}, {2}}, 0},
  };
  return all;
}

TEST(Strides, BufferSizes) {
  for (const Golden& golden : goldens())
    EXPECT_EQ(buffer_size(inside_mask(golden.view, golden.mask)).value(), golden.size)
        << to_string(golden.view.shape) << to_string(golden.view.strides);
}

TEST(Strides, WhatReachesBelowTheMemoryIsRefused) {
  EXPECT_THROW(buffer_size({{3}, {-1}, 1}), Error);
  EXPECT_THROW(buffer_size({{3, 2}, {1}, 0}), Error);
  EXPECT_THROW(inside_mask({{5}, {1}, 0}, {{3}, {2}}), Error);
  EXPECT_THROW(inside_mask({{5}, {1}, 0}, {{0}, {6}}), Error);
  EXPECT_THROW(inside_mask({{5, 2}, {2, 1}, 0}, {{0}, {5}}), Error);
}

TEST(Strides, RealViewsGoForwards) {
  EXPECT_EQ(real_view({{3}, {-2}, 5}), (View{{3}, {2}, 1}));
  EXPECT_EQ(real_view({{4, 3, 1}, {0, -1, 7}, 2}), (View{{3}, {1}, 0}));
  EXPECT_EQ(real_view({{2, 2}, {3, 5}, 1}), (View{{2, 2}, {3, 5}, 1}));
  EXPECT_EQ(real_view({{}, {}, 4}), (View{{}, {}, 4}));
  EXPECT_EQ(real_view({{2, 0}, {3, 5}, 1}), (View{{0}, {1}, 0}));
  EXPECT_EQ(real_view(inside_mask({{5}, {1}, -1}, {{1}, {4}})), (View{{3}, {1}, 0}));
}

TEST(Strides, ViewsThatAreApart) {
  const auto apart = [](const View& a, const View& b) {
    EXPECT_EQ(are_apart(a, b), are_apart(b, a));
    return are_apart(a, b);
  };
  EXPECT_TRUE(apart({{4}, {1}, 0}, {{4}, {1}, 4}));
  EXPECT_TRUE(apart({{4}, {2}, 0}, {{4}, {2}, 1}));  // even and odd
  EXPECT_TRUE(apart({{4}, {-2}, 6}, {{2, 2}, {4, 2}, 1}));
  EXPECT_TRUE(apart({{3, 2}, {5, 1}, 0}, {{3, 3}, {5, 1}, 2}));    // columns
  EXPECT_TRUE(apart({{3, 2}, {5, 1}, 3}, {{3, 3}, {-5, 1}, 10}));  // beside them, rows backwards
  EXPECT_TRUE(apart({{2, 0}, {1, 1}, 0}, {{9}, {1}, 0}));
  EXPECT_FALSE(apart({{3, 3}, {5, 1}, 0}, {{3, 3}, {5, 1}, 2}));
  EXPECT_FALSE(apart({{4}, {2}, 0}, {{4}, {3}, 3}));
  EXPECT_FALSE(apart({{}, {}, 3}, {{3}, {0}, 3}));
}

TEST(Strides, WhatIsApartHasNoElementInCommon) {
  constexpr int kPairs = 20000;
  std::mt19937 random(3);
  const auto between = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  const auto draw = [&] {
    View view;
    for (int64_t i = between(0, 3); i > 0; --i) {
      view.shape.emplace_back(between(1, 4));
      view.strides.emplace_back(between(-7, 7));
    }
    view.offset = between(0, 20);
    return view;
  };
  const auto elements = [](const View& view) {
    std::set<int64_t> found{view.offset.value()};
    for (size_t i = 0; i < view.shape.size(); ++i) {
      std::set<int64_t> more;
      for (const int64_t at : found)
        for (int64_t k = 0; k < view.shape[i].value(); ++k)
          more.insert(at + k * view.strides[i].value());
      found = std::move(more);
    }
    return found;
  };
  int shown = 0;
  for (int n = 0; n < kPairs; ++n) {
    const View a = draw(), b = draw();
    if (!are_apart(a, b)) continue;
    ++shown;
    const std::set<int64_t> of_b = elements(b);
    for (const int64_t at : elements(a))
      ASSERT_FALSE(of_b.contains(at))
          << to_string(a.shape) << to_string(a.strides) << to_string(a.offset) << " and "
          << to_string(b.shape) << to_string(b.strides) << to_string(b.offset);
  }
  EXPECT_GT(shown, kPairs / 10);
}

// As words and numbers: "shrink 0 6 reshape 2 3".
std::string text_of(const std::vector<MovementStep>& steps) {
  static constexpr const char* kNames[] = {"reshape", "permute", "expand", "pad",
                                           "shrink",  "flip",    "stride", "as_strided"};
  std::string text;
  for (const MovementStep& step : steps) {
    text += cat(text.empty() ? "" : ", ", kNames[static_cast<size_t>(step.movement)]);
    for (const Dim& number : step.numbers) text += cat(" ", number);
  }
  return text;
}

TEST(Strides, MovementOfArraysNeedsNoStrides) {
  EXPECT_EQ(text_of(to_movement_steps({{2, 3}, {3, 1}, 4})), "shrink 4 10, reshape 2 3");
  EXPECT_EQ(text_of(to_movement_steps({{2, 3}, {1, 2}, 0})),
            "shrink 0 6, reshape 3 2, permute 1 0");
  EXPECT_EQ(text_of(to_movement_steps({{4}, {3}, 0})), "shrink 0 10, stride 3");
  EXPECT_EQ(text_of(to_movement_steps({{4}, {-1}, 3})), "shrink 0 4, flip 0");
  EXPECT_EQ(text_of(to_movement_steps({{2, 3}, {5, -2}, 4})),
            "shrink 0 10, reshape 2 5, stride 1 2, flip 1");
  EXPECT_EQ(text_of(to_movement_steps({{4, 3}, {0, 1}, 0})), "shrink 0 3, reshape 1 3, expand 4 3");
  EXPECT_EQ(text_of(to_movement_steps({{}, {}, 2})), "shrink 2 3, reshape");
  EXPECT_EQ(text_of(to_movement_steps({{2, 0}, {9, 9}, 5})), "shrink 0 0, reshape 2 0");
}

TEST(Strides, OtherViewsAreStridedAndMasksPadded) {
  EXPECT_EQ(text_of(to_movement_steps({{3, 3}, {1, 1}, 2})), "as_strided 3 3 1 1 2");
  EXPECT_EQ(text_of(to_movement_steps({{2, 3}, {10, 2}, 0})), "as_strided 2 3 10 2 0");
  EXPECT_EQ(text_of(to_movement_steps({{5}, {1}, -1}, {{1}, {4}})), "shrink 0 3, pad 1 1");
  EXPECT_EQ(text_of(to_movement_steps({{5, 2}, {0, 1}, 0}, {{2, 0}, {5, 2}})),
            "shrink 0 2, reshape 1 2, expand 3 2, pad 2 0 0 0");
  EXPECT_EQ(text_of(to_movement_steps({{5}, {1}, 0}, {{2}, {2}})), "shrink 0 0, pad 2 3");
}

TEST(Strides, SizesThatRunsDecide) {
  Graph graph;
  const Dim n(graph.variable("n", 1, 8));
  const Dim empty(graph.variable("m", 0, 8));
  EXPECT_EQ(buffer_size({{n, 3}, {3, 1}, 2}), n * 3 + 2);
  EXPECT_EQ(buffer_size({{3, n}, {n, 1}, 0}), n * 3);
  EXPECT_EQ(real_view({{n, 3}, {-3, 1}, (n - 1) * 3}), (View{{n, 3}, {3, 1}, 0}));
  const auto steps = to_movement_steps({{3, n}, {n, 1}, 0});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].numbers, (Shape{0, n * 3}));
  EXPECT_EQ(steps[1].numbers, (Shape{3, n}));
  // Nobody knows whether there is an element.
  EXPECT_EQ(to_movement_steps({{empty}, {1}, 0}).front().movement, Movement::AsStrided);
  EXPECT_THROW(buffer_size({{empty}, {1}, 0}), FreeDimension);
}

}  // namespace
}  // namespace tiny
