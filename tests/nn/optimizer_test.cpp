// Optimisers take the steps that their definitions say, in programs and one by one.
#include "nn/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/program.h"
#include "tensor/run.h"
#include "tensor/value.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

using Doubles = std::vector<double>;
using Settings = std::map<std::string, double>;

double norm(const Doubles& v) {
  return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
}

// One matrix [3, 2] in float64, a step at a time, as the papers and PyTorch's pages have it.
class Definition {
 public:
  Definition(OptimizerKind kind, Settings settings) : kind_(kind), s_(std::move(settings)) {}

  void step(Doubles& w, Doubles g) {
    ++t_;
    if (s_["maximize"] != 0)
      for (double& x : g) x = -x;
    switch (kind_) {
      case OptimizerKind::Sgd:
        return sgd(w, g);
      case OptimizerKind::Adam:
      case OptimizerKind::AdamW:
      case OptimizerKind::Lamb:
        return adam(w, g);
      case OptimizerKind::Lars:
        return lars(w, g);
      case OptimizerKind::Muon:
        return muon(w, g);
      case OptimizerKind::RmsProp:
        return rmsprop(w, g);
      case OptimizerKind::Adagrad:
        return adagrad(w, g);
    }
  }

 private:
  static Doubles& sized(Doubles& v, const Doubles& like, double value = 0) {
    if (v.empty()) v.assign(like.size(), value);
    return v;
  }
  void sgd(Doubles& w, Doubles& g) {
    for (size_t i = 0; i < w.size(); ++i) {
      const double before = s_["classic"] != 0 ? s_["lr"] : 1;
      double d = before * (g[i] + s_["weight_decay"] * w[i]);
      if (s_["momentum"] != 0) {
        double& b = sized(a_, w)[i];
        b = t_ == 1 ? d : s_["momentum"] * b + (1 - s_["dampening"]) * d;
        d = s_["nesterov"] != 0 ? d + s_["momentum"] * b : b;
      }
      w[i] -= s_["lr"] / before * d;
    }
  }
  void adam(Doubles& w, Doubles& g) {
    Doubles step(w.size());
    const double size = norm(w);
    for (size_t i = 0; i < w.size(); ++i) {
      double d = g[i];
      if (kind_ == OptimizerKind::Adam) d += s_["weight_decay"] * w[i];
      if (kind_ == OptimizerKind::AdamW) w[i] *= 1 - s_["lr"] * s_["weight_decay"];
      double &m = sized(a_, w)[i], &v = sized(b_, w)[i], &most = sized(c_, w)[i];
      m = s_["beta1"] * m + (1 - s_["beta1"]) * d;
      v = s_["beta2"] * v + (1 - s_["beta2"]) * d * d;
      most = std::max(most, v);
      const double mean = m / (1 - std::pow(s_["beta1"], t_));
      const double squares = (s_["amsgrad"] != 0 ? most : v) / (1 - std::pow(s_["beta2"], t_));
      step[i] = mean / (std::sqrt(squares) + s_["eps"]);
      if (kind_ == OptimizerKind::Lamb) step[i] += s_["weight_decay"] * w[i];
    }
    const double trust =
        kind_ == OptimizerKind::Lamb && size > 0 && norm(step) > 0 ? size / norm(step) : 1;
    for (size_t i = 0; i < w.size(); ++i) w[i] -= s_["lr"] * trust * step[i];
  }
  void lars(Doubles& w, Doubles& g) {
    const double size = norm(w), slope = norm(g);
    const double local =
        size > 0 && slope > 0 ? s_["trust"] * size / (slope + s_["weight_decay"] * size) : 1;
    for (size_t i = 0; i < w.size(); ++i) {
      const double rate = s_["lr"] * local, before = s_["classic"] != 0 ? rate : 1;
      const double d = before * (g[i] + s_["weight_decay"] * w[i]);
      double& b = sized(a_, w)[i];
      b = s_["momentum"] * b + d;
      w[i] -= rate / before * (s_["nesterov"] != 0 ? d + s_["momentum"] * b : b);
    }
  }
  // The matrix is [3, 2]: its transpose goes through the iteration.
  void muon(Doubles& w, Doubles& g) {
    std::array<std::array<double, 3>, 2> x{};
    for (size_t i = 0; i < w.size(); ++i) {
      double& b = sized(a_, w)[i];
      b += (g[i] - b) * (1 - s_["momentum"]);
      x[i % 2][i / 2] = s_["nesterov"] != 0 ? g[i] + (b - g[i]) * s_["momentum"] : b;
    }
    double size = 0;
    for (const auto& row : x)
      for (const double e : row) size += e * e;
    for (auto& row : x)
      for (double& e : row) e /= std::max(std::sqrt(size), s_["eps"]);
    for (int round = 0; round < s_["ns_steps"]; ++round) {
      double a[2][2]{}, b[2][2]{};
      for (size_t i = 0; i < 2; ++i)
        for (size_t j = 0; j < 2; ++j)
          for (size_t k = 0; k < 3; ++k) a[i][j] += x[i][k] * x[j][k];
      for (size_t i = 0; i < 2; ++i)
        for (size_t j = 0; j < 2; ++j)
          b[i][j] = s_["ns_b"] * a[i][j] + s_["ns_c"] * (a[i][0] * a[0][j] + a[i][1] * a[1][j]);
      auto next = x;
      for (size_t i = 0; i < 2; ++i)
        for (size_t k = 0; k < 3; ++k)
          next[i][k] = s_["ns_a"] * x[i][k] + b[i][0] * x[0][k] + b[i][1] * x[1][k];
      x = next;
    }
    for (size_t i = 0; i < w.size(); ++i)
      w[i] =
          w[i] * (1 - s_["lr"] * s_["weight_decay"]) - s_["lr"] * std::sqrt(1.5) * x[i % 2][i / 2];
  }
  void rmsprop(Doubles& w, Doubles& g) {
    for (size_t i = 0; i < w.size(); ++i) {
      const double d = g[i] + s_["weight_decay"] * w[i];
      double &v = sized(a_, w)[i], &m = sized(b_, w)[i], &b = sized(c_, w)[i];
      v = s_["alpha"] * v + (1 - s_["alpha"]) * d * d;
      m = s_["alpha"] * m + (1 - s_["alpha"]) * d;
      const double squares = s_["centered"] != 0 ? v - m * m : v;
      b = s_["momentum"] * b + d / (std::sqrt(squares) + s_["eps"]);
      w[i] -= s_["lr"] * b;
    }
  }
  void adagrad(Doubles& w, Doubles& g) {
    const double rate = s_["lr"] / (1 + (t_ - 1) * s_["lr_decay"]);
    for (size_t i = 0; i < w.size(); ++i) {
      const double d = g[i] + s_["weight_decay"] * w[i];
      double& sum = sized(a_, w, s_["initial_accumulator_value"])[i];
      sum += d * d;
      w[i] -= rate * d / (std::sqrt(sum) + s_["eps"]);
    }
  }

  OptimizerKind kind_;
  Settings s_;
  int t_ = 0;
  Doubles a_, b_, c_;
};

class OptimizerTest : public ::testing::Test {
 protected:
  Tensor tensor(const Doubles& values, DType dtype = kFloat32) {
    const Tensor wide = from_data(context_, kFloat64, {3, 2}, values.data(), 48);
    return contiguous(cast(wide, dtype));
  }
  static Doubles values(const Tensor& t) {
    Tensor wide = cast(t, kFloat64);
    Doubles out(static_cast<size_t>(element_count(wide)));
    read(wide, out.data(), std::ssize(out) * 8);
    return out;
  }
  static Doubles slope(int step) {
    Doubles g(6);
    for (size_t i = 0; i < g.size(); ++i)
      g[i] = std::sin(1.7 * step + 0.9 * static_cast<double>(i)) + 0.2;
    return g;
  }
  static Settings all(const Optimizer& o, OptimizerKind kind) {
    Settings found;
    for (const OptimizerSetting& s : optimizer_rule(kind).settings)
      found[std::string(s.name)] = o.get(0, s.name);
    return found;
  }

  const Ref<Context> context_ = testing::new_context("cpu");
  const Doubles start_{0.5, -1, 2, 0.25, -0.75, 1.5};
};

struct Trial {
  OptimizerKind kind;
  Settings set;
};
const Trial kTrials[] = {
    {OptimizerKind::Sgd, {{"lr", 0.05}}},
    {OptimizerKind::Sgd, {{"lr", 0.05}, {"momentum", 0.9}, {"weight_decay", 0.1}, {"nesterov", 1}}},
    {OptimizerKind::Sgd, {{"momentum", 0.8}, {"dampening", 0.3}, {"maximize", 1}}},
    {OptimizerKind::Sgd, {{"momentum", 0.8}, {"classic", 1}, {"nesterov", 1}}},
    {OptimizerKind::Adam, {{"lr", 0.02}, {"weight_decay", 0.1}}},
    {OptimizerKind::Adam, {{"amsgrad", 1}, {"beta1", 0.8}, {"beta2", 0.95}}},
    {OptimizerKind::AdamW, {{"lr", 0.02}}},
    {OptimizerKind::Lamb, {{"lr", 0.02}, {"weight_decay", 0.1}}},
    {OptimizerKind::Lars, {{"lr", 2}}},
    {OptimizerKind::Lars, {{"lr", 2}, {"nesterov", 1}, {"momentum", 0.5}}},
    {OptimizerKind::Lars, {{"lr", 2}, {"classic", 0}}},
    {OptimizerKind::Muon, {{"lr", 0.02}}},
    {OptimizerKind::Muon, {{"ns_a", 2}, {"ns_b", -1.5}, {"ns_c", 0.5}}},
    {OptimizerKind::Muon, {{"nesterov", 0}, {"ns_steps", 3}}},
    {OptimizerKind::RmsProp, {{"lr", 0.02}, {"weight_decay", 0.1}}},
    {OptimizerKind::RmsProp, {{"centered", 1}, {"momentum", 0.9}}},
    {OptimizerKind::Adagrad, {{"lr_decay", 0.1}, {"initial_accumulator_value", 0.2}}},
};

// Over 100 steps of a program, and the same bits without one.
TEST_F(OptimizerTest, StepsAreThoseOfTheDefinitions) {
  for (const Trial& trial : kTrials) {
    SCOPED_TRACE(optimizer_rule(trial.kind).name);
    Optimizer captured(context_, trial.kind), single(context_, trial.kind);
    Tensor w = tensor(start_), v = tensor(start_);
    captured.add_group({w});
    single.add_group({v});
    for (const auto& [name, value] : trial.set) {
      captured.set(0, name, value);
      single.set(0, name, value);
    }
    const Tensor input = make_placeholder(context_, kFloat32, {3, 2});
    captured.step(std::vector{input});
    const Tensor inputs[] = {input}, outputs[] = {w};
    TensorRun run(context_, compile_tensors(context_, inputs, outputs));
    Definition definition(trial.kind, all(captured, trial.kind));
    Doubles want = start_;
    for (int i = 0; i < 100; ++i) {
      Tensor g = tensor(slope(i));
      run.set_input(0, g);
      run.execute();
      if (i < 10) {
        single.step(std::vector{g});
        ASSERT_EQ(values(w), values(v)) << "step " << i;
      }
      definition.step(want, slope(i));
    }
    const Doubles got = values(w);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5 * norm(want));
  }
}

// The rate is a tensor that programs read; other settings stand once a step is made of them.
TEST_F(OptimizerTest, TheRateCanChange) {
  Optimizer o(context_, OptimizerKind::Sgd);
  Tensor w = tensor(start_);
  o.add_group({w});
  const Tensor input = make_placeholder(context_, kFloat32, {3, 2});
  o.set(0, "lr", 0.5);
  o.step(std::vector{input});
  TensorRun run(context_, compile_tensors(context_, {{input}}, {{w}}));
  Tensor g = tensor({1, 1, 1, 1, 1, 1});
  run.set_input(0, g);
  run.execute();
  EXPECT_EQ(values(w)[0], 0);
  o.set(0, "lr", 0.25);
  EXPECT_EQ(o.get(0, "lr"), 0.25);
  run.execute();
  EXPECT_EQ(values(w)[0], -0.25);
  Tensor rate = o.rate(0);
  assign(rate, full(context_, kFloat32, {}, 1));
  Tensor* const one[] = {&rate};
  realize(one);
  run.execute();
  EXPECT_EQ(values(w)[0], -1.25);
  testing::expect_failure(testing::failure_of([&] { o.set(0, "momentum", 0.9); }),
                          Status::InvalidArgument, {"momentum", "first step"});
  testing::expect_failure(testing::failure_of([&] { o.add_group({tensor(start_)}); }),
                          Status::InvalidArgument, {"after the first step"});
}

TEST_F(OptimizerTest, GroupsHaveSettingsOfTheirOwn) {
  Optimizer o(context_, OptimizerKind::Sgd);
  Tensor a = tensor(start_), b = tensor(start_), c = tensor(start_);
  EXPECT_EQ(o.add_group({a, b}), 0U);
  EXPECT_EQ(o.add_group({c}), 1U);
  o.set(0, "lr", 0.5);
  o.set(1, "lr", 1);
  o.set(1, "momentum", 0.9);
  const Tensor g = tensor({1, 1, 1, 1, 1, 1});
  o.step(std::vector{g, Tensor(), g});  // nothing for b
  EXPECT_EQ(values(a)[0], 0);
  EXPECT_EQ(values(b), start_);
  EXPECT_EQ(values(c)[0], -0.5);
  std::vector<std::string> names;
  for (const Optimizer::State& s : o.state()) names.push_back(s.name);
  EXPECT_EQ(names, (std::vector<std::string>{"lr.0", "lr.1", "momentum_buffer.2"}));
}

// What steps keep is written with the parameters: nothing piles up, and nothing is copied for it.
TEST_F(OptimizerTest, StepsOneByOneLeaveNothingPending) {
  for (const OptimizerKind kind : {OptimizerKind::Sgd, OptimizerKind::AdamW}) {
    Optimizer o(context_, kind);
    Tensor w = tensor(start_);
    o.add_group({w});
    if (kind == OptimizerKind::Sgd) o.set(0, "momentum", 0.9);
    size_t nodes = 0;
    for (int i = 0; i < 20; ++i) {
      o.step(std::vector{w * w});
      Tensor* const one[] = {&w};
      realize(one);
      if (i == 4) nodes = context_->graph().size();
    }
    EXPECT_EQ(context_->graph().size(), nodes);
    EXPECT_EQ(context_->counters().copies, 0);
  }
}

// Sixteen bits do not hold a small step; their float32 copy does.
TEST_F(OptimizerTest, ParametersOfSixteenBitsHaveAMaster) {
  for (const DType dtype : {kBFloat16, kFloat16}) {
    Optimizer o(context_, OptimizerKind::Sgd);
    Tensor w = tensor({1, 1, 1, 1, 1, 1}, dtype);
    o.add_group({w});
    o.set(0, "lr", 1);
    const Tensor g = tensor({1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4}, dtype);
    for (int i = 0; i < 100; ++i) o.step(std::vector{g});
    EXPECT_EQ(o.state().back().name, "master.0");
    EXPECT_NEAR(values(o.state().back().value)[3], 0.99, 1e-4);
    EXPECT_NEAR(values(w)[3], 0.99, 4e-3);
  }
}

TEST_F(OptimizerTest, AStepCanBeSkipped) {
  Optimizer o(context_, OptimizerKind::Adam);
  Tensor w = tensor(start_);
  o.add_group({w});
  const Tensor g = tensor(slope(0));
  o.step(std::vector{g}, full(context_, kBool, {}, 1));
  EXPECT_EQ(values(w), start_);
  EXPECT_EQ(o.state()[1].name, "step");
  EXPECT_EQ(values(o.state()[1].value)[0], 0);
  o.step(std::vector{g}, full(context_, kBool, {}, 0));
  EXPECT_NE(values(w), start_);
  EXPECT_EQ(values(o.state()[1].value)[0], 1);
}

TEST_F(OptimizerTest, MistakesAreNamed) {
  Optimizer o(context_, OptimizerKind::AdamW);
  const Tensor w = tensor(start_);
  o.add_group({w});
  testing::expect_failure(testing::failure_of([&] { o.set(0, "weight_deca", 1); }),
                          Status::InvalidArgument, {"AdamW", "weight_decay"});
  testing::expect_failure(testing::failure_of([&] { o.set(1, "lr", 1); }), Status::InvalidArgument,
                          {"group 1 of 1"});
  testing::expect_failure(testing::failure_of([&] { o.add_group({w}); }), Status::InvalidArgument,
                          {"another group"});
  testing::expect_failure(testing::failure_of([&] { o.step({}); }), Status::InvalidArgument,
                          {"0 gradients for 1"});
  const Tensor wrong = full(context_, kFloat32, {6}, 0);
  testing::expect_failure(testing::failure_of([&] { o.step(std::vector{wrong}); }), Status::Shape,
                          {"[6]", "[3, 2]"});
  const Tensor whole = full(context_, kInt32, {3, 2}, 1);
  testing::expect_failure(testing::failure_of([&] { o.step(std::vector{whole}); }), Status::DType,
                          {"gradient 0 of int32", "wanted floats"});
  const Tensor right = full(context_, kFloat32, {3, 2}, 0);
  testing::expect_failure(testing::failure_of([&] { o.step(std::vector{right}, right); }),
                          Status::InvalidArgument, {"skip of float32", "bool scalar"});
  Optimizer muon(context_, OptimizerKind::Muon);
  const Tensor v = full(context_, kFloat32, {6}, 0);
  muon.add_group({v});
  testing::expect_failure(testing::failure_of([&] { muon.step(std::vector{v}); }), Status::Shape,
                          {"matrices", "[6]"});
}

}  // namespace
}  // namespace tiny
