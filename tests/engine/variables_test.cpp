// Programs with variables: what they compute for each value of a variable is what a graph of
// numbers computes, on every device and at the edges of tiles.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "base/text.h"
#include "engine/compile.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/normalization.h"
#include "tensor/reduce.h"
#include "tensor/value.h"
#include "tensor/window.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

constexpr int64_t kMax = 100;

using testing::expect_failure;
using testing::failure_of;
using testing::new_context;

std::vector<float> random_floats(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(std::uniform_real_distribution<float>(-1, 1)(random));
  return values;
}

using Function = std::function<Tensor(const Tensor&, const Tensor&)>;
using ShapeOf = std::function<Shape(const Dim&)>;

struct Case {
  const char* name;
  ShapeOf x;
  ShapeOf y;
  Function function;
};

int64_t count_of(const Ints& shape) {
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  return count;
}

std::vector<Case> cases() {
  const auto rows = [](int64_t width) {
    return [width](const Dim& n) { return Shape{n, Dim(width)}; };
  };
  const auto columns = [](int64_t height) {
    return [height](const Dim& n) { return Shape{Dim(height), n}; };
  };
  return {
      {"rows of a product", rows(24), [](const Dim&) { return Shape{24, 40}; }, matmul},
      {"columns of a product", [](const Dim&) { return Shape{13, 24}; }, columns(24), matmul},
      {"a sum of products", columns(9), rows(33), matmul},
      {"both sides", rows(16), columns(16), matmul},
      {"both sides, turned", rows(48), rows(48),
       [](const Tensor& a, const Tensor& b) { return matmul(a, transpose(b, 0, 1)); }},
      {"a long product", [](const Dim& n) { return Shape{n, 700}; },
       [](const Dim& n) { return Shape{n, 700}; },
       [](const Tensor& a, const Tensor& b) { return matmul(a, transpose(b, 0, 1)); }},
      {"rows of a wide product", rows(70), [](const Dim&) { return Shape{70, 130}; },
       [](const Tensor& a, const Tensor& b) { return relu(matmul(a, b)); }},
      {"rows of a product in blocks", rows(800), [](const Dim&) { return Shape{800, 64}; }, matmul},
      {"rows of several products", [](const Dim& n) { return Shape{3, n, 20}; },
       [](const Dim&) { return Shape{3, 20, 48}; }, matmul},
      {"attention", [](const Dim& n) { return Shape{2, n, 40}; },
       [](const Dim& n) { return Shape{2, n, 40}; },
       [](const Tensor& a, const Tensor& b) {
         return matmul(softmax(matmul(a, transpose(b, 1, 2)), 2), b);
       }},
      {"elements", rows(7), rows(7), [](const Tensor& a, const Tensor& b) { return a * b + a; }},
      {"softmax of rows", columns(5), columns(5),
       [](const Tensor& a, const Tensor& b) { return softmax(a, 1) + b; }},
      {"softmax of columns", rows(19), rows(19),
       [](const Tensor& a, const Tensor& b) { return softmax(a, 0) * b; }},
      {"mean and variance", columns(3), columns(3),
       [](const Tensor& a, const Tensor& b) {
         return mean(a, {1}, true) * b + variance(a, {1}, 0, true);
       }},
      {"transposed", rows(6), columns(6),
       [](const Tensor& a, const Tensor& b) { return transpose(a, 0, 1) + b; }},
      {"flattened", rows(6), rows(6),
       [](const Tensor& a, const Tensor& b) { return flatten(transpose(a, 0, 1)) + flatten(b); }},
      {"padded and cut", rows(4), rows(4),
       [](const Tensor& a, const Tensor& b) {
         const Tensor wide = pad(a, {2, 1}, {3, 0}, 0.5);
         return slice_axis(wide, 0, 1, a.shape()[0] + 1) + pad(b, {0, 1}, {0, 0});
       }},
      {"joined", rows(4), rows(4),
       [](const Tensor& a, const Tensor& b) {
         const Tensor parts[] = {a, flip(b, {0}), a * b};
         return concat(parts, 0);
       }},
      {"positions", rows(4), rows(4),
       [](const Tensor& a, const Tensor& b) {
         const Tensor place = cast(arange(a.context_ref(), kInt64, a.shape()[0]), kFloat32);
         return a * unsqueeze(place, {1}) + tril(b, 1);
       }},
      {"triangles", columns(19), columns(19),
       [](const Tensor& a, const Tensor& b) { return tril(a, -1) + triu(b, 1); }},
      {"read by position", rows(4), rows(4),
       [](const Tensor& a, const Tensor& b) {
         const Tensor last = arange(a.context_ref(), kInt64, a.shape()[0]);
         return gather(a, neg(last) - number_int(last, 1), 0) + b;
       }},
      {"the greatest", rows(5), rows(5),
       [](const Tensor& a, const Tensor& b) {
         return cast(argmax(a, 0, true), kFloat32) + max(b, {0}, true);
       }},
      {"a convolution", [](const Dim& n) { return Shape{2, 3, n}; },
       [](const Dim&) { return Shape{4, 3, 3}; },
       [](const Tensor& a, const Tensor& b) {
         Window options;
         options.before = options.after = {1};
         return conv(a, b, Tensor(), options);
       }},
      {"a convolution by steps", [](const Dim& n) { return Shape{1, 2, n, 6}; },
       [](const Dim&) { return Shape{4, 2, 3, 3}; },
       [](const Tensor& a, const Tensor& b) {
         Window options;
         options.before = options.after = {1, 1};
         options.strides = {2, 1};
         return conv(a, b, Tensor(), options);
       }},
      {"a convolution over a batch", [](const Dim& n) { return Shape{n, 2, 5, 6}; },
       [](const Dim&) { return Shape{3, 2, 3, 3}; },
       [](const Tensor& a, const Tensor& b) { return conv(a, b, Tensor(), {}); }},
  };
}

// The program of a case, run for several values of its variable.
class VariableRun {
 public:
  // What is expected is computed in `other`.
  VariableRun(const Ref<Context>& context, const Ref<Context>& other, const Case& c)
      : context_(context), other_(other), case_(c) {
    const UOp n = context->graph().variable("n", 1, kMax);
    UOp inputs[2];
    Tensor tensors[2];
    for (size_t i = 0; i < 2; ++i) {
      const Shape shape = (i == 0 ? c.x : c.y)(Dim(n));
      inputs[i] = make_input(*context, kFloat32, product(shape));
      tensors[i] = Tensor(context, make_reshape(inputs[i], shape));
    }
    const UOp out = c.function(tensors[0], tensors[1]).node();
    program_ = compile_program(*context, {&out, 1}, inputs, {&n, 1}).program;
    run_ = make_ref<Run>(program_);
  }

  void expect_same(int64_t n) {
    std::vector<float> data[2];
    Tensor tensors[2];
    run_->bind_variable(0, n);
    for (size_t i = 0; i < 2; ++i) {
      const Ints shape = const_dims((i == 0 ? case_.x : case_.y)(Dim(n)));
      data[i] = random_floats(count_of(shape), static_cast<uint32_t>(n) * 2 + uint32_t(i));
      tensors[i] = from_data(other_, kFloat32, shape, data[i].data(), std::ssize(data[i]) * 4);
      run_->bind_input(static_cast<int64_t>(i),
                       context_->from_host(data[i].data(), std::ssize(data[i]) * 4));
    }
    Tensor want = case_.function(tensors[0], tensors[1]);
    std::vector<float> expected(static_cast<size_t>(element_count(want)));
    read(want, expected.data(), std::ssize(expected) * 4);
    // One element more, which nothing may touch.
    std::vector<float> got(expected.size() + 1, 77);
    const Ref<Storage> memory = context_->from_host(got.data(), std::ssize(got) * 4);
    run_->bind_output(0, memory);
    run_->execute();
    const Ref<Queue> queue = context_->device().make_queue();
    context_->device().copy_out(queue.get(), got.data(), memory->memory(), 0, std::ssize(got) * 4);
    context_->device().wait(queue.get());
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], 1e-4) << "n " << n << ", element " << i;
    EXPECT_EQ(got.back(), 77) << "n " << n;
  }

 private:
  Ref<Context> context_;
  Ref<Context> other_;
  const Case& case_;
  Ref<Program> program_;
  Ref<Run> run_;
};

// Of every so many cases one.
void expect_all_same(const Ref<Context>& context, const Ints& values, size_t every = 1) {
  const Ref<Context> other = new_context("cpu");
  const std::vector<Case> all = cases();
  for (size_t i = 0; i < all.size(); i += every) {
    const Case& c = all[i];
    SCOPED_TRACE(c.name);
    VariableRun run(context, other, c);
    for (int64_t n : values) run.expect_same(n);
  }
}

// All up to several tiles of every size, and some that have many.
Ints all_edges() {
  Ints values;
  for (int64_t n = 1; n <= kMax; n += n < 70 ? 1 : 10) values.push_back(n);
  return values;
}

TEST(Variables, MachineCodeFollowsEveryValue) {
  expect_all_same(new_context("cpu"), all_edges());
}

TEST(Variables, MachineCodeOfNarrowVectorsFollowsEveryValue) {
  expect_all_same(new_context("cpu", "avx2"), all_edges());
}

TEST(Variables, ThreadsFollowTheEdges) {
  Flags flags = testing::flags_for("cpu");
  flags.threads = 3;
  expect_all_same(make_ref<Context>(flags), {1, 2, 13, 14, 27, 28, 29, 31, 33, 64, 65, 99, kMax});
}

// Tiles of rows, of columns and of steps, which stages hold or threads share, and some whose
// indices do not let tiles begin anywhere.
TEST(Variables, ListsOfOptionsFollowEveryValue) {
  const auto rows = [](const Dim& n) { return Shape{n, Dim(24)}; };
  const auto columns = [](const Dim& n) { return Shape{Dim(24), n}; };
  const Case by_rows{"rows", rows, [](const Dim&) { return Shape{24, 40}; }, matmul};
  const Case by_columns{"columns", [](const Dim&) { return Shape{13, 24}; }, columns, matmul};
  const Case by_steps{"steps", columns, rows, matmul};
  const std::pair<const Case*, const char*> lists[] = {
      {&by_rows, "TILE r0 5; UPCAST r3"},
      {&by_rows, "TILE r0 6; UNROLL r3; ORDER r1 r0 r2 r3"},
      {&by_rows, "TILE r0 4; THREAD r0; UPCAST r3; TILE r1 8; VEC r4"},
      {&by_rows, "TILE r0 12; TILE r3 4; UPCAST r4"},
      {&by_rows, "TILE r0 7; UPCAST r3; STAGE p0 r0 r3 r2"},
      {&by_rows, "TILE r0 7; STAGE p0 r0 r3 r2; UPCAST r3"},
      {&by_rows, "TILE r0 9; UPCAST r3; TILE r2 8; ORDER r2 r0 r1 r4 r3"},
      {&by_rows, "TILE r0 32; TILE r3 8; UPCAST r3; VEC r4"},
      {&by_columns, "TILE r1 48; TILE r3 16; UPCAST r3; VEC r4; TILE r0 3; UPCAST r5"},
      {&by_columns, "TILE r1 32; TILE r3 8; VEC r4; UPCAST r3; ORDER r1 r0 r2 r3 r4"},
      {&by_columns, "TILE r1 16; VEC r3"},
      {&by_steps, "TILE r2 4; UPCAST r3"},
      {&by_steps, "TILE r2 32; TILE r3 8; VEC r4; UPCAST r3"},
      {&by_steps, "TILE r2 6; UNROLL r3; TILE r0 5; UPCAST r4"},
  };
  for (const auto& [subject, options] : lists) {
    SCOPED_TRACE(cat(subject->name, ": ", options));
    Flags flags = testing::flags_for("cpu");
    flags.opts = options;
    flags.threads = 2;
    VariableRun run(make_ref<Context>(flags), new_context("cpu"), *subject);
    for (int64_t n = 1; n <= 50; ++n) run.expect_same(n);
    run.expect_same(kMax);
  }
}

TEST(Variables, TheInterpreterFollowsTheEdges) {
  expect_all_same(new_context("interp"), {1, 3, 4, 15, 16, 17, 63, 64, 65, kMax});
}

TEST(Variables, CFollowsTheEdges) {
  expect_all_same(new_context("c"), {1, 5, 16, 65, kMax}, 4);
}

TEST(Variables, ARunRefusesWhatDoesNotFit) {
  const Ref<Context> context = new_context("cpu");
  const UOp n = context->graph().variable("n", 1, kMax);
  const UOp input = make_input(*context, kFloat32, Dim(n));
  const UOp out = neg(Tensor(context, input)).node();
  const Ref<Program> program = compile_program(*context, {&out, 1}, {&input, 1}, {&n, 1}).program;
  const Ref<tiny::Run> run = make_ref<tiny::Run>(program);
  expect_failure(failure_of([&] { run->bind_variable(0, kMax + 1); }), Status::InvalidArgument,
                 {"n is from 1 to 100; got 101"});
  expect_failure(failure_of([&] { run->bind_variable(0, 0); }), Status::InvalidArgument);
  const std::vector<float> data(8, 1.0f);
  run->bind_input(0, context->from_host(data.data(), 32));
  run->bind_output(0, context->from_host(data.data(), 32));
  run->bind_variable(0, 8);
  run->execute();
  run->bind_variable(0, 9);
  expect_failure(failure_of([&] { run->execute(); }), Status::InvalidArgument, {"32 bytes of 36"});
}

}  // namespace
}  // namespace tiny
