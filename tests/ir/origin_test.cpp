#include "ir/origin.h"

#include <gtest/gtest.h>

#include "ir/rebuild.h"
#include "ir/uop.h"

namespace tiny {
namespace {

TEST(Origins, have_the_texts_that_they_were_given) {
  Origins origins;
  const Origin first = origins.add({"conv1", "relu1"});
  const Origin given = origins.named("layer");
  EXPECT_EQ(origins.text(first), "conv1");
  EXPECT_EQ(origins.text(first + 1), "relu1");
  EXPECT_EQ(origins.text(given), "layer");
  EXPECT_EQ(origins.named("layer"), given);
  EXPECT_EQ(origins.add({"conv1", "relu1"}), first) << "the same model, loaded again";
  EXPECT_EQ(origins.text(kNobody), "");
  EXPECT_EQ(origins.text(kSeveral), "");
  EXPECT_EQ(origins.text(given + 1), "");
}

TEST(Origins, of_two_models_are_nobodys) {
  Origins origins;
  const Origin a = origins.add({"a1", "a2"}), b = origins.add({"b1"}), given = origins.named("x");
  EXPECT_EQ(origins.merged(a, a + 1), a);
  EXPECT_EQ(origins.merged(a, b), kSeveral);
  EXPECT_EQ(origins.merged(kSeveral, b), kSeveral);
  EXPECT_EQ(origins.merged(kNobody, b), b);
  EXPECT_EQ(origins.merged(b, kNobody), b);
  EXPECT_EQ(origins.merged(given, a), given);
  EXPECT_EQ(origins.merged(a, given), a);
}

TEST(Origins, of_operators_give_way_to_names) {
  Origins origins;
  const Origin model = origins.add({"a1"}), given = origins.named("x");
  const Origin softmax = origins.of_operator("Softmax"), relu = origins.of_operator("Relu");
  EXPECT_EQ(origins.of_operator("Softmax"), softmax);
  EXPECT_EQ(origins.text(softmax), "Softmax");
  EXPECT_EQ(origins.text(relu), "Relu");
  EXPECT_TRUE(is_operator(relu) && !is_operator(given) && !is_operator(kSeveral));
  for (const Origin name : {model, given}) {
    EXPECT_EQ(origins.merged(softmax, name), name);
    EXPECT_EQ(origins.merged(name, softmax), name);
  }
  EXPECT_EQ(origins.merged(softmax, relu), relu);
}

class OriginOfNodes : public ::testing::Test {
 protected:
  UOp neg(const UOp& x, Origin origin) {
    const OriginScope scope(graph_, origin);
    return graph_.make(Op::Neg, {x});
  }
  Graph graph_;
  UOp x_ = graph_.variable("x", 0, 9), y_ = graph_.variable("y", 0, 9);
  Origin first_ = graph_.origins().add({"one", "two"});
};

TEST_F(OriginOfNodes, is_that_of_the_scope) {
  const UOp one = neg(x_, first_);
  EXPECT_EQ(one.node()->origin, first_);
  EXPECT_EQ(graph_.origin(), kNobody);
  EXPECT_EQ(neg(x_, first_ + 1), one);
  EXPECT_EQ(one.node()->origin, first_) << "the same work in one model: the first stays";
  const Origin other = graph_.origins().add({"other model's"});
  neg(x_, other);
  EXPECT_EQ(one.node()->origin, kSeveral);
}

TEST_F(OriginOfNodes, that_were_nobodys_is_who_wants_them_first) {
  const UOp plain = neg(x_, kNobody);
  EXPECT_EQ(plain.node()->origin, kNobody);
  neg(x_, first_ + 1);
  EXPECT_EQ(plain.node()->origin, first_ + 1);
}

TEST_F(OriginOfNodes, goes_to_what_takes_their_place) {
  const UOp one = neg(x_, first_), two = neg(one, first_ + 1);
  const UOp other = two.with_src(std::vector<UOp>{y_});
  EXPECT_EQ(other.node()->origin, first_ + 1);
  // Every x becomes x * y: the product does the work of whoever read the x.
  const std::vector<UOp> roots = rebuild({&two, 1}, nullptr, [&](const UOp& node, const UOp& now) {
    return node == one ? graph_.make(Op::Mul, {x_, y_}) : now;
  });
  EXPECT_EQ(roots[0].node()->origin, first_ + 1);
  EXPECT_EQ(roots[0].src(0).op(), Op::Mul);
  EXPECT_EQ(roots[0].src(0).node()->origin, first_);
}

}  // namespace
}  // namespace tiny
