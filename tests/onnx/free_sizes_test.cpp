#include "onnx/free_sizes.h"

#include <gtest/gtest.h>

#include <tuple>

#include "base/text.h"
#include "tests/support/context.h"

namespace tiny::onnx {
namespace {

using tiny::testing::new_context;

ValueInfo floats_of(const std::string& name, const std::vector<std::string>& dims) {
  ValueInfo info;
  info.name = name;
  info.type.kind = ValueType::Kind::Tensor;
  info.type.has_rank = true;
  for (const std::string& dim : dims) {
    Dim& added = info.type.dims.emplace_back();
    added.name = dim;
  }
  return info;
}

// Sizes of runs, one after the other, and what programs would be for.
class Runs {
 public:
  explicit Runs(std::vector<ValueInfo> inputs) : free_(std::move(inputs)) {}

  std::string shapes(const std::vector<Ints>& shapes) {
    free_.learn(shapes);
    shapes_ = shapes;
    return chosen();
  }
  std::string chosen() {
    choice_ = free_.choose(context_->graph(), shapes_, {});
    std::string text;
    for (const Shape& shape : choice_.shapes) text += to_string(shape);
    return text;
  }
  // The least and the greatest value of each variable.
  std::vector<Ints> ranges() const {
    std::vector<Ints> out;
    for (const UOp& v : choice_.variables)
      out.push_back({v.variable_arg().min, v.variable_arg().max});
    return out;
  }
  FreeSizes::Answer ask(const std::vector<std::string>& names) {
    return free_.decide(FreeDimension("?", names), choice_, shapes_);
  }
  // Until there is nothing else to try.
  void ask_on(const std::vector<std::string>& names, const std::string& last) {
    constexpr int kMost = 9;
    int count = 0;
    while (count < kMost && asked(names) != last) ++count;
    EXPECT_LT(count, kMost);
  }
  std::string asked(const std::vector<std::string>& names) {
    EXPECT_NE(ask(names), FreeSizes::Answer::None);
    return chosen();
  }

 private:
  Ref<Context> context_ = new_context("interp");
  FreeSizes free_;
  FreeSizes::Choice choice_;
  std::vector<Ints> shapes_;
};

TEST(FreeSizes, NamesAreVariablesUntilTheyDiffer) {
  Runs runs({floats_of("x", {"N", "L"}), floats_of("y", {"L", ""})});
  EXPECT_EQ(runs.shapes({{1, 5}, {5, 7}}), "[1, L][L, y.1]");
  EXPECT_EQ(runs.shapes({{2, 0}, {3, 7}}), "[N, 0][y.0, y.1]");
  EXPECT_EQ(runs.shapes({{2, 5}, {5, 7}}), "[N, x.1][y.0, y.1]");
}

TEST(FreeSizes, WhatIsAskedAboutTogetherFollowsFromTheOthers) {
  Runs runs({floats_of("x", {"B", "S"}), floats_of("past", {"B", "P"}), floats_of("mask", {"T"})});
  EXPECT_EQ(runs.shapes({{1, 4}, {1, 9}, {13}}), "[1, S][1, P][T]");
  EXPECT_EQ(runs.asked({"S", "T"}), "[1, S][1, P][P + S]");
  EXPECT_EQ(runs.shapes({{1, 1}, {1, 20}, {21}}), "[1, 1][1, P][P + 1]");
  EXPECT_EQ(runs.shapes({{1, 4}, {1, 0}, {4}}), "[1, S][1, 0][S]");
  runs.ask_on({"S", "S/4"}, "[1, 4][1, 0][4]");
  EXPECT_EQ(runs.shapes({{1, 4}, {1, 3}, {7}}), "[1, S][1, P][P + S]");  // another question
}

TEST(FreeSizes, SizesComeNearerBeforeTheyAreNumbers) {
  Runs runs({floats_of("x", {"L"})});
  runs.shapes({{20}});
  using Ranges = std::vector<Ints>;
  EXPECT_EQ(runs.ranges(), (Ranges{{2, 256}}));
  EXPECT_EQ(runs.ask({"L"}), FreeSizes::Answer::Later);  // they may be the only ones
  for (const auto& [text, least, most] :
       {std::tuple("[L]", 2, 255), std::tuple("[L]", 4, 256), std::tuple("[L]", 16, 256),
        std::tuple("[L]", 16, 32), std::tuple("[4*L/4]", 1, 64), std::tuple("[4*L/4]", 4, 8),
        std::tuple("[L]", 16, 31)}) {
    EXPECT_EQ(runs.asked({"L", "L/4"}), text);
    EXPECT_EQ(runs.ranges(), (Ranges{{least, most}}));
  }
  runs.shapes({{32}});
  EXPECT_EQ(runs.ranges(), (Ranges{{32, 63}}));
  // Other sizes begin anew, until too many went wrong.
  for (const int64_t odd : {33, 35, 37}) {
    EXPECT_EQ(runs.shapes({{odd}}), "[L]");
    runs.ask_on({"L"}, cat("[", odd, "]"));
  }
  EXPECT_EQ(runs.shapes({{40}}), "[40]");
}

TEST(FreeSizes, ALengthGoesBeforeABatch) {
  Runs runs(
      {floats_of("x", {"B", "S"}), floats_of("past", {"B", "P"}), floats_of("mask", {"", "T"})});
  EXPECT_EQ(runs.shapes({{1, 1}, {1, 9}, {1, 10}}), "[1, 1][1, P][1, T]");
  EXPECT_EQ(runs.asked({"P", "T"}), "[1, 1][1, P][1, P + 1]");
  EXPECT_EQ(runs.shapes({{3, 2}, {3, 9}, {3, 11}}), "[B, S][B, P][mask.0, P + S]");
}

TEST(FreeSizes, WhatDoesNotLastIsANumberInTheEnd) {
  Runs runs({floats_of("x", {"N"}), floats_of("y", {"M"})});
  for (const int64_t n : {5, 6, 7}) {
    EXPECT_EQ(runs.shapes({{n}, {n}}), "[N][M]");
    EXPECT_EQ(runs.asked({"M", "N"}), "[N][N]");
    EXPECT_EQ(runs.shapes({{n}, {100}}), "[N][M]");
  }
  EXPECT_EQ(runs.shapes({{5}, {5}}), "[N][M]");
  EXPECT_EQ(runs.asked({"M", "N"}), "[M][M]");  // the other one has its turns
  for (const int64_t n : {50, 60}) {
    EXPECT_EQ(runs.shapes({{n}, {100}}), "[N][M]");
    EXPECT_EQ(runs.shapes({{n}, {n}}), "[N][M]");
    EXPECT_EQ(runs.asked({"M", "N"}), "[M][M]");
  }
  EXPECT_EQ(runs.shapes({{8}, {9}}), "[N][M]");
  runs.ask_on({"M", "N", "M/8", "N/8"}, "[8][9]");
}

TEST(FreeSizes, LengthsOutgrowAProgramTogether) {
  Runs runs({floats_of("past", {"P", "H"}), floats_of("mask", {"T"})});
  using Ranges = std::vector<Ints>;
  runs.shapes({{511, 7}, {512}});
  EXPECT_EQ(runs.ranges(), (Ranges{{2, 512}, {2, 512}, {2, 512}}));
  runs.shapes({{512, 7}, {513}});
  EXPECT_EQ(runs.ranges(), (Ranges{{2, 256}, {2, 1024}, {2, 1024}}));
}

TEST(FreeSizes, WhereElementsAreFoundOthersAreAsked) {
  FreeSizes free({floats_of("x", {"L"}), floats_of("n", {""})});
  const Ref<Context> context = new_context("interp");
  const std::vector<Ints> shapes{{8}, {1}};
  const FreeSizes::Choice told = free.choose(context->graph(), shapes, {false, true});
  for (int i = 0; i < 9; ++i) free.decide(FreeDimension("?", {"L"}), told, shapes);
  EXPECT_EQ(to_string(free.choose(context->graph(), shapes, {false, true}).shapes[0]), "[8]");
  EXPECT_EQ(to_string(free.choose(context->graph(), shapes, {false, false}).shapes[0]), "[L]");
}

TEST(FreeSizes, OthersVariablesAreNotDecided) {
  Runs runs({floats_of("x", {"N"})});
  EXPECT_EQ(runs.shapes({{5}}), "[N]");
  EXPECT_EQ(runs.ask({"computed"}), FreeSizes::Answer::None);
}

}  // namespace
}  // namespace tiny::onnx
