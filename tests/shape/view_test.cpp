// Views, axes and indices say the same of every chain of movement.
#include "shape/view.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "rules/symbolic.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"

namespace tiny {
namespace {

class Memory : public RefCounted {};

class ViewTest : public ::testing::Test {
 protected:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  UOp buffer(const Ints& shape) {
    int64_t count = 1;
    for (int64_t d : shape) count *= d;
    return make_reshape(make_buffer(graph_, make_ref<Memory>(), kFloat32, count), to_shape(shape));
  }

  // One step further; the node itself where the step would do nothing.
  UOp step(const UOp& x) {
    const Ints shape = const_dims(shape_of(x));
    const auto axis = static_cast<size_t>(below(std::ssize(shape)));
    Ints order(shape.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    Shape begin(shape.size(), 0);
    Shape end = to_shape(shape);
    Ints next = shape;
    switch (below(7)) {
      case 0:
        std::shuffle(order.begin(), order.end(), random_);
        return make_permute(x, order);
      case 1:
        return make_flip(x, {static_cast<int64_t>(axis)});
      case 2:
        begin[axis] = below(shape[axis]);
        end[axis] = begin[axis].value() + 1 + below(shape[axis] - begin[axis].value());
        return make_shrink(x, begin, end);
      case 3:
        if (shape[axis] != 1) return x;
        next[axis] = 1 + below(4);
        return make_expand(x, to_shape(next));
      case 4:  // two axes become one
        if (axis + 1 == shape.size()) return x;
        next[axis] *= next[axis + 1];
        next.erase(next.begin() + static_cast<int64_t>(axis) + 1);
        return make_reshape(x, to_shape(next));
      case 5: {  // windows
        Unfolding windows{static_cast<int64_t>(axis), {}};
        for (size_t i = axis; i < std::min(axis + 1 + static_cast<size_t>(below(2)), shape.size());
             ++i) {
          const int64_t kernel = 1 + below(shape[i]);
          const int64_t dilation = 1 + below(2);
          const int64_t rest = shape[i] - 1 - (kernel - 1) * dilation;
          if (rest < 0 || shape.size() > 5) return x;
          const int64_t stride = 1 + below(3);
          windows.along.push_back({rest / stride + 1, kernel, stride, dilation});
        }
        return make_unfold(x, windows);
      }
      default:  // one becomes two
        for (const int64_t d : {int64_t{2}, int64_t{3}, int64_t{1}}) {
          if (shape[axis] % d != 0) continue;
          next[axis] /= d;
          next.insert(next.begin() + static_cast<int64_t>(axis) + 1, d);
          return make_reshape(x, to_shape(next));
        }
        return x;
    }
  }

  // Every index of a shape, the last axis fastest.
  static std::vector<Ints> indices(const Ints& shape) {
    std::vector<Ints> all{{}};
    for (const int64_t d : shape) {
      std::vector<Ints> longer;
      for (const Ints& index : all)
        for (int64_t i = 0; i < d; ++i) {
          longer.push_back(index);
          longer.back().push_back(i);
        }
      all = std::move(longer);
    }
    return all;
  }

  // The index into the source of a movement.
  Ints source_index(const UOp& movement, const Ints& index) {
    std::vector<UOp> at;
    std::vector<UOp> conditions;
    for (const int64_t i : index) at.push_back(graph_.integer(i));
    Ints out;
    for (const UOp& e : apply_movement_op(movement, at, conditions))
      out.push_back(simplify_index(e).const_int());
    return out;
  }

  // The element of the buffer, found step by step.
  int64_t element(UOp node, Ints index) {
    while (node.op() != Op::Buffer) {
      index = source_index(node, index);
      node = UOp(node.src(0));
    }
    return index[0];
  }

  Graph graph_;
  std::mt19937_64 random_{1};
};

TEST_F(ViewTest, AViewFindsTheElementsThatTheStepsFind) {
  int views = 0;
  for (int chain = 0; chain < 300; ++chain) {
    UOp node = buffer({1 + below(4), 1 + below(3), 1 + below(6)});
    for (int64_t steps = below(7); steps > 0; --steps) node = step(node);
    const auto stored = as_view(node);
    if (!stored) continue;
    ++views;
    ASSERT_EQ(stored->view.shape, shape_of(node));
    for (const Ints& index : indices(const_dims(shape_of(node)))) {
      int64_t at = stored->view.offset.value();
      for (size_t i = 0; i < index.size(); ++i) at += index[i] * stored->view.strides[i].value();
      ASSERT_EQ(at, element(node, index)) << to_string(node);
    }
  }
  EXPECT_GT(views, 200);
}

TEST_F(ViewTest, AnAxisBelowIsTheOneThatMoves) {
  int found = 0;
  for (int chain = 0; chain < 600; ++chain) {
    UOp node = buffer({1 + below(4), 1 + below(3), 1 + below(6)});
    for (int64_t steps = 1 + below(5); steps > 0; --steps) node = step(node);
    const Ints shape = const_dims(shape_of(node));
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const std::optional<size_t> below_axis = axis_below(node, axis);
      if (!below_axis || shape[axis] < 2) continue;
      ++found;
      Ints index(shape.size());
      for (size_t i = 0; i < shape.size(); ++i) index[i] = i == axis ? 0 : below(shape[i]);
      const Ints from = source_index(node, index);
      ++index[axis];
      const Ints to = source_index(node, index);
      for (size_t k = 0; k < from.size(); ++k)
        ASSERT_EQ(std::abs(to[k] - from[k]), k == *below_axis ? 1 : 0) << to_string(node);
    }
  }
  EXPECT_GT(found, 300);
}

TEST_F(ViewTest, WhatRepeatsIsOneElement) {
  int found = 0;
  for (int chain = 0; chain < 600; ++chain) {
    UOp node = make_reshape(buffer({3, 4}), {3, 1, 4, 1});
    for (int64_t steps = 1 + below(6); steps > 0; --steps) node = step(node);
    const Ints shape = const_dims(shape_of(node));
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (!repeats(node, axis)) continue;
      ++found;
      for (Ints index : indices(shape)) {
        const int64_t here = element(node, index);
        index[axis] = 0;
        ASSERT_EQ(here, element(node, index)) << to_string(node);
      }
    }
  }
  EXPECT_GT(found, 50);
}

TEST_F(ViewTest, WhatRepeatsElementsHasOneTwice) {
  int repeated = 0;
  for (int chain = 0; chain < 600; ++chain) {
    UOp node = buffer({1 + below(4), 1 + below(3), 1 + below(6)});
    for (int64_t steps = 1 + below(5); steps > 0; --steps) node = step(node);
    if (!has(node.op(), kMovement)) continue;
    std::vector<Ints> found;
    for (const Ints& index : indices(const_dims(shape_of(node))))
      found.push_back(source_index(node, index));
    std::ranges::sort(found);
    const bool twice = std::ranges::adjacent_find(found) != found.end();
    repeated += twice ? 1 : 0;
    ASSERT_TRUE(!twice || repeats_elements(node)) << to_string(node);
  }
  EXPECT_GT(repeated, 20);
}

TEST_F(ViewTest, ALayoutIsWhereTheElementsOfItsNodeAre) {
  const UOp stored = graph_.make(Op::Contiguous, {buffer({2, 3, 5})});
  std::vector<uint8_t> flags(graph_.id_limit());
  flags[stored.id()] = 1;
  const Layouts layouts{{stored.node(), View{{2, 3, 5}, {15, 1, 3}, 0}}};
  const UOp moved = make_permute(make_shrink(stored, {0, 1, 0}, {2, 3, 5}), {2, 0, 1});
  const auto view = as_view(moved, flags, layouts);
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->view, (View{{5, 2, 2}, {3, 15, 1}, 1}));
  EXPECT_FALSE(as_view(make_reshape(stored, {2, 15}), flags, layouts)) << "it would need a copy";
  EXPECT_TRUE(as_view(make_reshape(stored, {2, 15}), flags));
}

}  // namespace
}  // namespace tiny
