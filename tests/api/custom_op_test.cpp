// Operators of the caller's: in graphs, programs and models, on every device of the host's memory;
// what goes wrong in their functions, and how long their data lives.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/onnx/model_writer.h"
#include "tests/support/api_values.h"
#include "tests/support/temporary_folder.h"
#include "tiny.h"

namespace tiny {
namespace {

namespace w = onnx::testing;
using testing::Dims;
using testing::error_has;
using Floats = std::vector<float>;

// y = x sorted along the last axis, and how often the functions were called.
struct Sorter {
  std::atomic<int> infers{0}, runs{0}, deleted{0};
  std::atomic<tiny_status> fails{TINY_OK};
  tiny_dtype dtype = TINY_FLOAT32;
  bool sets_shape = true;
  std::string attributes;
};

tiny_status infer_sorted(void* user, tiny_custom_call* call) {
  auto& sorter = *static_cast<Sorter*>(user);
  ++sorter.infers;
  sorter.attributes = tiny_custom_call_attributes(call);
  size_t rank = 0;
  const int64_t* dims = tiny_custom_call_input_shape(call, 0, &rank);
  if (tiny_custom_call_input_count(call) == 0 || tiny_custom_call_input_dtype(call, 0) == 0) {
    tiny_custom_call_set_error(call, "it takes one input");
    return TINY_ERROR_SHAPE;
  }
  EXPECT_EQ(tiny_custom_call_input_data(call, 0), nullptr);
  if (!sorter.sets_shape) return TINY_OK;
  const tiny_status status = tiny_custom_call_set_output(call, 0, sorter.dtype, dims, rank);
  if (status != TINY_OK) tiny_custom_call_set_error(call, tiny_last_error());
  // The second output is the greatest of each row.
  if (tiny_custom_call_output_count(call) > 1 && status == TINY_OK)
    return tiny_custom_call_set_output(call, 1, TINY_FLOAT64, dims, rank - 1);
  return status;
}

tiny_status run_sorted(void* user, tiny_custom_call* call) {
  auto& sorter = *static_cast<Sorter*>(user);
  ++sorter.runs;
  if (sorter.fails != TINY_OK) {
    tiny_custom_call_set_error(call, "the sorter is tired");
    return sorter.fails;
  }
  size_t rank = 0;
  const int64_t* dims = tiny_custom_call_input_shape(call, 0, &rank);
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < rank; ++i) rows *= dims[i];
  const int64_t length = dims[rank - 1];
  const auto* x = static_cast<const float*>(tiny_custom_call_input_data(call, 0));
  auto* y = static_cast<float*>(tiny_custom_call_output_data(call, 0));
  auto* most = static_cast<double*>(tiny_custom_call_output_data(call, 1));
  for (int64_t r = 0; r < rows; ++r, x += length, y += length) {
    std::copy_n(x, length, y);
    std::sort(y, y + length);
    if (most) most[r] = y[length - 1];
  }
  return TINY_OK;
}

void count_deletion(void* user) {
  ++static_cast<Sorter*>(user)->deleted;
}

class CustomOp : public ::testing::TestWithParam<const char*>, protected testing::ApiValues {
 protected:
  void SetUp() override { open(GetParam()); }
  void TearDown() override { close(); }
  static tiny_status add(tiny_context* context, Sorter& sorter, const char* name = "Sort") {
    tiny_custom_op* op = nullptr;
    EXPECT_EQ(tiny_custom_op_create("com.example", name, &sorter, count_deletion, &op), TINY_OK);
    EXPECT_EQ(tiny_custom_op_set_infer(op, infer_sorted), TINY_OK);
    EXPECT_EQ(tiny_custom_op_set_run(op, run_sorted), TINY_OK);
    const tiny_status status = tiny_context_add_custom_op(context, op);
    tiny_custom_op_release(op);
    return status;
  }
  tiny_status apply(std::vector<tiny_tensor*> inputs, std::vector<tiny_tensor*>& out,
                    const char* attributes = nullptr) {
    return tiny_op(context_, "com.example", "Sort", 0, inputs.data(), inputs.size(), attributes,
                   out.data(), out.size());
  }
  tiny_tensor* sorted(tiny_tensor* x) {
    std::vector<tiny_tensor*> out(1);
    EXPECT_EQ(apply({x}, out), TINY_OK) << tiny_last_error();
    return keep(out[0]);
  }
  tiny_tensor* negated(tiny_tensor* x) {
    tiny_tensor* t = nullptr;
    EXPECT_EQ(tiny_unary(TINY_NEG, x, &t), TINY_OK);
    return keep(t);
  }
  tiny_run* compiled(tiny_tensor* x, tiny_tensor* y) {
    tiny_program* program = nullptr;
    tiny_run* run = nullptr;
    EXPECT_EQ(tiny_program_compile(&x, 1, &y, 1, &program), TINY_OK) << tiny_last_error();
    EXPECT_EQ(tiny_run_create(program, &run), TINY_OK);
    tiny_program_release(program);
    return run;
  }
  Floats execute(tiny_run* run, tiny_tensor* x) {
    EXPECT_EQ(tiny_run_set_input(run, 0, x), TINY_OK) << tiny_last_error();
    EXPECT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
    int64_t dims[4];
    size_t rank = 0;
    EXPECT_EQ(tiny_run_output_shape(run, 0, dims, 4, &rank), TINY_OK);
    size_t count = 1;
    for (size_t i = 0; i < rank; ++i) count *= static_cast<size_t>(dims[i]);
    Floats out(count);
    EXPECT_EQ(tiny_run_read_output(run, 0, out.data(), count * sizeof(float)), TINY_OK);
    return out;
  }
  Sorter sorter_;
};

INSTANTIATE_TEST_SUITE_P(Devices, CustomOp, ::testing::Values("cpu", "interp", "c"));

TEST_P(CustomOp, IsAStepBetweenKernels) {
  ASSERT_EQ(add(context_, sorter_), TINY_OK) << tiny_last_error();
  tiny_tensor* x = floats({2, 3}, {3, 1, 2, 4, 6, 5});
  tiny_tensor* y = negated(sorted(negated(x)));
  EXPECT_EQ(sorter_.runs, 0);
  EXPECT_EQ(read(y), (Floats{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(sorter_.runs, 1);
  // Of a view: its elements come row-major.
  const int64_t perm[] = {1, 0};
  tiny_tensor* turned = nullptr;
  ASSERT_EQ(tiny_permute(x, perm, 2, &turned), TINY_OK);
  EXPECT_EQ(read(sorted(keep(turned))), (Floats{3, 4, 1, 6, 2, 5}));
  // Of its own result, and of a number that is no buffer.
  EXPECT_EQ(read(sorted(sorted(x))), (Floats{1, 2, 3, 4, 5, 6}));
  tiny_tensor* sevens = nullptr;
  const int64_t two[] = {2};
  ASSERT_EQ(tiny_full(context_, TINY_FLOAT32, two, 1, 7, &sevens), TINY_OK);
  EXPECT_EQ(read(sorted(keep(sevens))), (Floats{7, 7}));
}

// Its row has a buffer of its own, which is copied into the whole.
TEST_P(CustomOp, IsAPartOfAConcatenation) {
  ASSERT_EQ(add(context_, sorter_), TINY_OK) << tiny_last_error();
  tiny_tensor* x = floats({3}, {3, 1, 2});
  tiny_tensor* parts[] = {sorted(x), negated(x)};
  tiny_tensor* whole = nullptr;
  ASSERT_EQ(tiny_concat(parts, 2, 0, &whole), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read(keep(whole)), (Floats{1, 2, 3, -3, -1, -2}));
}

TEST_P(CustomOp, HasSeveralOutputsAndAttributes) {
  ASSERT_EQ(add(context_, sorter_), TINY_OK);
  tiny_tensor* x = floats({2, 2}, {3, 1, 2, 4});
  std::vector<tiny_tensor*> out(2);
  ASSERT_EQ(apply({x}, out, R"({"by": "value", "axis": -1, "scale": 0.5})"), TINY_OK)
      << tiny_last_error();
  for (tiny_tensor* t : out) keep(t);
  EXPECT_EQ(sorter_.attributes, R"({"by":"value","axis":-1,"scale":0.5})");
  ASSERT_EQ(tiny_realize(out.data(), 2), TINY_OK) << tiny_last_error();
  EXPECT_EQ(sorter_.runs, 1);
  EXPECT_EQ(read(out[0]), (Floats{1, 3, 2, 4}));
  EXPECT_EQ(read<double>(out[1]), (std::vector<double>{3, 4}));
  // Only the second is read: the first is filled all the same.
  std::vector<tiny_tensor*> again(2);
  ASSERT_EQ(apply({x}, again), TINY_OK);
  for (tiny_tensor* t : again) keep(t);
  EXPECT_EQ(read<double>(again[1]), (std::vector<double>{3, 4}));
}

// What one call makes is there for all its outputs, whichever is wanted first.
TEST_P(CustomOp, RunsOnceForOutputsThatAreWantedApart) {
  ASSERT_EQ(add(context_, sorter_), TINY_OK);
  const Floats values{3, 1, 2, 4};
  for (const size_t first : {size_t{0}, size_t{1}})
    for (const bool below : {false, true}) {
      SCOPED_TRACE(first * 2 + (below ? 1 : 0));
      sorter_.runs = 0;
      tiny_tensor* x = floats({2, 2}, values);
      std::vector<tiny_tensor*> out(2);
      ASSERT_EQ(apply({below ? negated(negated(x)) : x}, out), TINY_OK) << tiny_last_error();
      for (tiny_tensor* t : out) keep(t);
      tiny_tensor* wanted = below ? negated(out[first]) : out[first];
      ASSERT_EQ(tiny_realize(&wanted, 1), TINY_OK) << tiny_last_error();
      EXPECT_EQ(read(out[0]), (Floats{1, 3, 2, 4}));
      EXPECT_EQ(read<double>(out[1]), (std::vector<double>{3, 4}));
      EXPECT_EQ(sorter_.runs, 1);
    }
  // An output that was given back is not computed for its own sake.
  std::vector<tiny_tensor*> out(2);
  ASSERT_EQ(apply({floats({2, 2}, values)}, out), TINY_OK);
  tiny_tensor_release(out[0]);
  EXPECT_EQ(read<double>(keep(out[1])), (std::vector<double>{3, 4}));
  EXPECT_EQ(sorter_.runs, 2);
}

TEST_P(CustomOp, RunsInProgramsAtEachExecution) {
  ASSERT_EQ(add(context_, sorter_), TINY_OK);
  tiny_tensor* x = input({4});
  tiny_run* run = compiled(x, negated(sorted(negated(x))));
  EXPECT_EQ(execute(run, floats({4}, {1, 3, 2, 4})), (Floats{4, 3, 2, 1}));
  EXPECT_EQ(execute(run, floats({4}, {8, 6, 7, 5})), (Floats{8, 7, 6, 5}));
  EXPECT_EQ(sorter_.runs, 2);
  sorter_.fails = TINY_ERROR_LIMIT;
  EXPECT_EQ(tiny_run_execute(run), TINY_ERROR_LIMIT);
  EXPECT_TRUE(error_has("com.example.Sort") && error_has("tired")) << tiny_last_error();
  sorter_.fails = TINY_OK;
  EXPECT_EQ(execute(run, floats({4}, {2, 1, 4, 3})), (Floats{4, 3, 2, 1}));
  tiny_run_release(run);
  // Of constants alone: at each execution too.
  const int before = sorter_.runs;
  tiny_run* constant = compiled(x, sorted(floats({2}, {2, 1})));
  EXPECT_EQ(execute(constant, floats({4}, {0, 0, 0, 0})), (Floats{1, 2}));
  EXPECT_EQ(execute(constant, floats({4}, {0, 0, 0, 0})), (Floats{1, 2}));
  EXPECT_EQ(sorter_.runs, before + 2);
  tiny_run_release(constant);
}

TEST_P(CustomOp, KnowsTheSizesOfARun) {
  ASSERT_EQ(add(context_, sorter_), TINY_OK);
  tiny_variable* n = nullptr;
  ASSERT_EQ(tiny_variable_create(context_, "n", 2, 50, &n), TINY_OK);
  int64_t dim = 0;
  ASSERT_EQ(tiny_variable_dim(n, &dim), TINY_OK);
  tiny_tensor* x = input({dim, 2});
  tiny_run* run = compiled(x, sorted(negated(x)));
  for (int64_t rows : {2, 50, 3}) {
    Floats values, wanted;
    for (int64_t i = 0; i < rows; ++i) {
      values.insert(values.end(), {float(i), float(i) + 1});
      wanted.insert(wanted.end(), {-float(i) - 1, -float(i)});
    }
    EXPECT_EQ(execute(run, floats({rows, 2}, values)), wanted);
  }
  tiny_run_release(run);
  tiny_variable_release(n);
}

TEST_P(CustomOp, ReadsWhatATensorHeldWhenItWasBuilt) {
  ASSERT_EQ(add(context_, sorter_), TINY_OK);
  tiny_tensor* x = floats({3}, {3, 2, 1});
  ASSERT_EQ(tiny_realize(&x, 1), TINY_OK);
  tiny_tensor* before = sorted(x);
  ASSERT_EQ(tiny_assign(x, floats({3}, {9, 8, 7})), TINY_OK);
  tiny_tensor* after = sorted(x);
  EXPECT_EQ(read(after), (Floats{7, 8, 9}));
  EXPECT_EQ(read(before), (Floats{1, 2, 3}));
  // And its result may be written to.
  ASSERT_EQ(tiny_assign(after, floats({3}, {0, 0, 0})), TINY_OK);
  EXPECT_EQ(read(after), (Floats{0, 0, 0}));
}

TEST_P(CustomOp, IsAnOperatorOfModels) {
  const w::Message message =
      w::model(w::typed_graph({w::with(w::node("Sort", {"x"}, {"s"}, "com.example"),
                                       w::int_attribute("axis", -1)),
                               w::node("Neg", {"s"}, {"y"})},
                              {w::floats("x", {w::dim("N"), w::dim(2)})}, {"y"}))
          .message(field::ModelProto::opset_import, w::opset("com.example", 3));
  testing::TemporaryFolder folder;
  const std::string path = folder / "sort.onnx";
  write_file(path, message.bytes());
  tiny_model* model = nullptr;
  ASSERT_EQ(tiny_model_load(context_, path.c_str(), &model), TINY_OK) << tiny_last_error();
  tiny_tensor* x = floats({2, 2}, {2, 1, 3, 4});
  tiny_tensor* y = nullptr;
  EXPECT_EQ(tiny_model_run(model, &x, 1, &y, 1), TINY_ERROR_UNSUPPORTED);
  EXPECT_TRUE(error_has("com.example.Sort-3")) << tiny_last_error();
  size_t rank = 0;
  int64_t dims[2] = {};
  EXPECT_EQ(tiny_model_output_shape(model, 0, dims, 2, &rank), TINY_ERROR_UNSUPPORTED);
  ASSERT_EQ(add(context_, sorter_), TINY_OK);
  EXPECT_EQ(tiny_model_output_shape(model, 0, dims, 2, &rank), TINY_OK) << tiny_last_error();
  EXPECT_TRUE(rank == 2 && dims[0] == TINY_DIM_FREE && dims[1] == 2);
  const char* name = "";
  EXPECT_EQ(tiny_model_output_dim_name(model, 0, 0, &name), TINY_OK) << tiny_last_error();
  EXPECT_STREQ(name, "N");
  for (int64_t rows : {1, 2, 5}) {
    Floats values;
    for (int64_t i = 0; i < rows; ++i) values.insert(values.end(), {2, 1});
    tiny_tensor* given = floats({rows, 2}, values);
    ASSERT_EQ(tiny_model_run(model, &given, 1, &y, 1), TINY_OK) << tiny_last_error();
    EXPECT_EQ(read(keep(y)).front(), -1);
    EXPECT_EQ(read(y).back(), -2);
  }
  EXPECT_EQ(sorter_.attributes, R"({"axis":-1})");
  tiny_report* report = nullptr;
  ASSERT_EQ(tiny_model_info(model, &report), TINY_OK);
  EXPECT_NE(std::strstr(tiny_report_text(report), "\"unsupported\":[]"), nullptr)
      << tiny_report_text(report);
  EXPECT_EQ(std::strstr(tiny_report_text(report), "\"supported\":false"), nullptr)
      << tiny_report_text(report);
  tiny_report_release(report);
  tiny_model_release(model);
}

// Compiling and executing are one call, with one limit of time; neither of them alone reaches it.
TEST(CustomOpLimit, IsThatOfTheWholeCall) {
  constexpr int64_t kLimit = 1600;  // milliseconds: a quarter is left for compiling, beside others
  struct Slow {
    bool is_asked = false;
    static void sleep() { std::this_thread::sleep_for(std::chrono::milliseconds(kLimit * 3 / 4)); }
  } slow;
  tiny_options* options = nullptr;
  tiny_context* context = nullptr;
  ASSERT_EQ(tiny_options_create(&options), TINY_OK);
  ASSERT_EQ(tiny_options_set_int(options, "cache", 0), TINY_OK);
  ASSERT_EQ(tiny_options_set_int(options, "time_limit", kLimit), TINY_OK);
  ASSERT_EQ(tiny_context_create(options, &context), TINY_OK);
  tiny_options_release(options);
  tiny_custom_op* op = nullptr;
  ASSERT_EQ(tiny_custom_op_create("com.example", "Slow", &slow, nullptr, &op), TINY_OK);
  ASSERT_EQ(tiny_custom_op_set_infer(op,
                                     [](void* user, tiny_custom_call* call) -> tiny_status {
                                       auto& self = *static_cast<Slow*>(user);
                                       if (!std::exchange(self.is_asked, true)) Slow::sleep();
                                       const int64_t two = 2;
                                       return tiny_custom_call_set_output(call, 0, TINY_FLOAT32,
                                                                          &two, 1);
                                     }),
            TINY_OK);
  ASSERT_EQ(tiny_custom_op_set_run(op,
                                   [](void*, tiny_custom_call* call) -> tiny_status {
                                     auto* y =
                                         static_cast<float*>(tiny_custom_call_output_data(call, 0));
                                     y[0] = y[1] = 1;
                                     Slow::sleep();
                                     return TINY_OK;
                                   }),
            TINY_OK);
  ASSERT_EQ(tiny_context_add_custom_op(context, op), TINY_OK);
  tiny_custom_op_release(op);
  testing::TemporaryFolder folder;
  const std::string path = folder / "slow.onnx";
  write_file(path, w::model(w::typed_graph({w::node("Slow", {"x"}, {"s"}, "com.example"),
                                            w::node("Neg", {"s"}, {"y"})},
                                           {w::floats("x", {w::dim(2)})}, {"y"}))
                       .message(field::ModelProto::opset_import, w::opset("com.example", 1))
                       .bytes());
  tiny_model* model = nullptr;
  ASSERT_EQ(tiny_model_load(context, path.c_str(), &model), TINY_OK) << tiny_last_error();
  const float values[] = {1, 2};
  const int64_t two = 2;
  tiny_tensor *x = nullptr, *y = nullptr;
  ASSERT_EQ(tiny_tensor_from_data(context, TINY_FLOAT32, &two, 1, values, sizeof values, &x),
            TINY_OK);
  EXPECT_EQ(tiny_model_run(model, &x, 1, &y, 1), TINY_ERROR_LIMIT);
  EXPECT_EQ(y, nullptr);
  tiny_tensor_release(y);
  EXPECT_EQ(tiny_model_run(model, &x, 1, &y, 1), TINY_OK) << tiny_last_error();  // compiled
  tiny_tensor_release(y);
  tiny_tensor_release(x);
  tiny_model_release(model);
  tiny_context_release(context);
}

// y = scale * x and, as a second output, the number of elements.
struct Scaler {
  tiny_custom_op* op = nullptr;
  bool was_left_out = false;

  Scaler() {
    EXPECT_EQ(tiny_custom_op_create("com.example", "Scale", this, nullptr, &op), TINY_OK);
    EXPECT_EQ(tiny_custom_op_set_infer(op, infer), TINY_OK);
    EXPECT_EQ(tiny_custom_op_set_run(op, run), TINY_OK);
  }
  ~Scaler() { tiny_custom_op_release(op); }
  Scaler(const Scaler&) = delete;
  Scaler& operator=(const Scaler&) = delete;

  static tiny_status infer(void*, tiny_custom_call* call) {
    size_t rank = 0;
    const int64_t* dims = tiny_custom_call_input_shape(call, 0, &rank);
    const tiny_status status = tiny_custom_call_set_output(call, 0, TINY_FLOAT32, dims, rank);
    return status != TINY_OK || tiny_custom_call_output_count(call) < 2
               ? status
               : tiny_custom_call_set_output(call, 1, TINY_FLOAT32, nullptr, 0);
  }
  static std::span<const float> input(tiny_custom_call* call, size_t i) {
    size_t rank = 0, count = 1;
    const int64_t* dims = tiny_custom_call_input_shape(call, i, &rank);
    for (size_t axis = 0; axis < rank; ++axis) count *= static_cast<size_t>(dims[axis]);
    return {static_cast<const float*>(tiny_custom_call_input_data(call, i)), count};
  }
  static tiny_status run(void*, tiny_custom_call* call) {
    auto* y = static_cast<float*>(tiny_custom_call_output_data(call, 0));
    const auto x = input(call, 0);
    const float scale = input(call, 1)[0];
    for (size_t i = 0; i < x.size(); ++i) y[i] = scale * x[i];
    if (auto* count = static_cast<float*>(tiny_custom_call_output_data(call, 1)))
      *count = static_cast<float>(x.size());
    return TINY_OK;
  }
  // Inputs: x, scale, places (integers), y, count, what reached y, and count.
  static tiny_status slopes(void* user, tiny_custom_call* call) {
    EXPECT_EQ(tiny_custom_call_input_count(call), 7u);
    EXPECT_EQ(tiny_custom_call_output_count(call), 2u);
    static_cast<Scaler*>(user)->was_left_out = tiny_custom_call_input_dtype(call, 6) == 0;
    const auto x = input(call, 0), y = input(call, 3), reached = input(call, 5);
    const float scale = input(call, 1)[0];
    auto* of_x = static_cast<float*>(tiny_custom_call_output_data(call, 0));
    auto* of_scale = static_cast<float*>(tiny_custom_call_output_data(call, 1));
    *of_scale = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_FLOAT_EQ(y[i], scale * x[i]);
      of_x[i] = scale * reached[i];
      *of_scale += x[i] * reached[i];
    }
    return TINY_OK;
  }
};

TEST_P(CustomOp, HasAGradientOfItsOwn) {
  Scaler scaler;
  ASSERT_EQ(tiny_custom_op_set_gradient(scaler.op, Scaler::slopes), TINY_OK);
  ASSERT_EQ(tiny_context_add_custom_op(context_, scaler.op), TINY_OK);
  tiny_tensor *x = floats({3}, {1, 2, 3}), *scale = floats({}, {4}),
              *weights = floats({3}, {1, 0, 5});
  tiny_tensor* places = nullptr;
  ASSERT_EQ(tiny_arange(context_, TINY_INT64, 3, &places), TINY_OK);
  tiny_tensor* inputs[] = {x, scale, keep(places)};
  tiny_tensor* outputs[2];
  ASSERT_EQ(tiny_op(context_, "com.example", "Scale", 0, inputs, 3, nullptr, outputs, 2), TINY_OK)
      << tiny_last_error();
  keep(outputs[1]);
  tiny_tensor* y = keep(outputs[0]);
  tiny_tensor* gradients[2];
  ASSERT_EQ(tiny_gradient(&y, 1, inputs, 2, &weights, 1, 0, gradients, 2), TINY_OK)
      << tiny_last_error();
  EXPECT_EQ(read(keep(gradients[0])), (Floats{4, 0, 20}));
  EXPECT_EQ(read(keep(gradients[1])), Floats{16});
  EXPECT_TRUE(scaler.was_left_out);
}

TEST_P(CustomOp, WithoutAGradientStopsOne) {
  Scaler scaler;
  ASSERT_EQ(tiny_custom_op_set_gradient(scaler.op, Scaler::slopes), TINY_OK);
  ASSERT_EQ(tiny_custom_op_set_gradient(scaler.op, nullptr), TINY_OK);
  EXPECT_EQ(tiny_custom_op_set_gradient(nullptr, Scaler::slopes), TINY_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(tiny_context_add_custom_op(context_, scaler.op), TINY_OK);
  tiny_tensor* inputs[] = {floats({1}, {1}), floats({}, {4})};
  tiny_tensor *y = nullptr, *gradient = inputs[0];
  ASSERT_EQ(tiny_op(context_, "com.example", "Scale", 0, inputs, 2, nullptr, &y, 1), TINY_OK);
  keep(y);
  EXPECT_EQ(tiny_gradient(&y, 1, inputs, 1, nullptr, 0, 0, &gradient, 1), TINY_ERROR_UNSUPPORTED);
  EXPECT_EQ(gradient, nullptr);
  EXPECT_TRUE(error_has("com.example.Scale has no gradient")) << tiny_last_error();
}

TEST_P(CustomOp, MistakesOfItsFunctionsAreNamed) {
  ASSERT_EQ(add(context_, sorter_), TINY_OK);
  tiny_tensor* x = floats({2}, {2, 1});
  std::vector<tiny_tensor*> out(1);
  EXPECT_EQ(apply({}, out), TINY_ERROR_SHAPE);
  EXPECT_TRUE(error_has("com.example.Sort: it takes one input")) << tiny_last_error();
  sorter_.sets_shape = false;
  EXPECT_EQ(apply({x}, out), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("output 0")) << tiny_last_error();
  sorter_.sets_shape = true;
  sorter_.dtype = 99;
  EXPECT_EQ(apply({x}, out), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("99")) << tiny_last_error();
  sorter_.dtype = TINY_FLOAT32;
  std::vector<tiny_tensor*> three(3);
  EXPECT_EQ(apply({x}, three), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("output 2")) << tiny_last_error();
  sorter_.fails = 99;
  float values[2];
  EXPECT_EQ(tiny_tensor_read(sorted(x), values, sizeof values), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("tired")) << tiny_last_error();
}

TEST_P(CustomOp, RegistrationIsChecked) {
  ASSERT_EQ(add(context_, sorter_), TINY_OK);
  EXPECT_EQ(add(context_, sorter_), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("com.example.Sort")) << tiny_last_error();
  EXPECT_EQ(sorter_.deleted, 1);
  tiny_custom_op* op = nullptr;
  EXPECT_EQ(tiny_custom_op_create("", "Sort", nullptr, nullptr, &op), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_custom_op_create("ai.onnx", "Sort", nullptr, nullptr, &op),
            TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_custom_op_create("com.example", nullptr, nullptr, nullptr, &op),
            TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(op, nullptr);
  ASSERT_EQ(tiny_custom_op_create("com.example", "Half", nullptr, nullptr, &op), TINY_OK);
  EXPECT_EQ(tiny_context_add_custom_op(context_, op), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("infer")) << tiny_last_error();
  tiny_custom_op_release(op);
  EXPECT_EQ(tiny_context_add_custom_op(context_, nullptr), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_custom_op_set_run(nullptr, run_sorted), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_custom_call_attributes(nullptr), nullptr);
  EXPECT_EQ(tiny_custom_call_set_output(nullptr, 0, TINY_INT8, nullptr, 0),
            TINY_ERROR_INVALID_ARGUMENT);
}

TEST_P(CustomOp, LivesAsLongAsItIsUsedInEachContext) {
  Sorter other;
  tiny_context* second = make_context(GetParam());
  ASSERT_EQ(add(context_, sorter_), TINY_OK);
  ASSERT_EQ(add(second, other), TINY_OK);
  tiny_context_release(second);
  EXPECT_EQ(other.deleted, 1);
  tiny_tensor* x = input({2});
  tiny_run* run = compiled(x, sorted(x));
  tiny_tensor* given = floats({2}, {2, 1});
  ASSERT_EQ(tiny_run_set_input(run, 0, given), TINY_OK);
  for (tiny_tensor* t : tensors_) tiny_tensor_release(t);
  tensors_.clear();
  tiny_context_release(std::exchange(context_, nullptr));
  std::thread([&] { EXPECT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error(); }).join();
  float out[2] = {};
  EXPECT_EQ(tiny_run_read_output(run, 0, out, sizeof out), TINY_OK);
  EXPECT_EQ(out[1], 2);
  EXPECT_EQ(sorter_.deleted, 0);
  tiny_run_release(run);
  EXPECT_EQ(sorter_.deleted, 1);
  EXPECT_EQ(other.runs, 0);
}

tiny_status run_doubled(void*, tiny_custom_call* call) {
  size_t rank = 0;
  const int64_t* dims = tiny_custom_call_output_shape(call, 0, &rank);
  const auto* x = static_cast<const float*>(tiny_custom_call_input_data(call, 0));
  auto* y = static_cast<float*>(tiny_custom_call_output_data(call, 0));
  for (int64_t i = 0; i < dims[0]; ++i) y[i] = 2 * x[i];
  return TINY_OK;
}

// Two functions of one name and one structure, with a disk cache that knows the other's graph.
TEST(CustomOpCache, FunctionsAreNotTakenForEachOther) {
  testing::TemporaryFolder folder;
  Sorter sorter;
  for (const bool doubles : {false, true, false}) {
    tiny_options* options = nullptr;
    tiny_context* context = nullptr;
    ASSERT_EQ(tiny_options_create(&options), TINY_OK);
    ASSERT_EQ(tiny_options_set_string(options, "cache_dir", (folder / "cache").c_str()), TINY_OK);
    ASSERT_EQ(tiny_context_create(options, &context), TINY_OK) << tiny_last_error();
    tiny_options_release(options);
    tiny_custom_op* op = nullptr;
    ASSERT_EQ(tiny_custom_op_create("com.example", "Any", &sorter, nullptr, &op), TINY_OK);
    ASSERT_EQ(tiny_custom_op_set_infer(op, infer_sorted), TINY_OK);
    ASSERT_EQ(tiny_custom_op_set_run(op, doubles ? run_doubled : run_sorted), TINY_OK);
    ASSERT_EQ(tiny_context_add_custom_op(context, op), TINY_OK);
    tiny_custom_op_release(op);
    const int64_t dims[] = {3};
    tiny_tensor *x = nullptr, *any = nullptr, *y = nullptr;
    ASSERT_EQ(tiny_input(context, TINY_FLOAT32, dims, 1, &x), TINY_OK);
    ASSERT_EQ(tiny_op(context, "com.example", "Any", 0, &x, 1, nullptr, &any, 1), TINY_OK);
    ASSERT_EQ(tiny_unary(TINY_NEG, any, &y), TINY_OK);
    tiny_program* program = nullptr;
    tiny_run* run = nullptr;
    ASSERT_EQ(tiny_program_compile(&x, 1, &y, 1, &program), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
    const float values[] = {3, 1, 2};
    tiny_tensor* given = nullptr;
    ASSERT_EQ(tiny_tensor_from_data(context, TINY_FLOAT32, dims, 1, values, sizeof values, &given),
              TINY_OK);
    ASSERT_EQ(tiny_run_set_input(run, 0, given), TINY_OK);
    ASSERT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
    float out[3] = {};
    ASSERT_EQ(tiny_run_read_output(run, 0, out, sizeof out), TINY_OK);
    EXPECT_EQ(Floats(out, out + 3), doubles ? (Floats{-6, -2, -4}) : (Floats{-1, -2, -3}));
    for (tiny_tensor* t : {x, any, y, given}) tiny_tensor_release(t);
    tiny_run_release(run);
    tiny_program_release(program);
    tiny_context_release(context);
  }
}

TEST_P(CustomOp, IsSeen) {
  ASSERT_EQ(add(context_, sorter_), TINY_OK);
  tiny_tensor* y = sorted(negated(floats({2}, {2, 1})));
  tiny_report* report = nullptr;
  ASSERT_EQ(tiny_schedule(&y, 1, &report), TINY_OK) << tiny_last_error();
  EXPECT_NE(std::strstr(tiny_report_text(report), "com.example.Sort"), nullptr)
      << tiny_report_text(report);
  tiny_report_release(report);
  tiny_tensor* x = input({2});
  tiny_tensor* z = sorted(x);
  tiny_program* program = nullptr;
  ASSERT_EQ(tiny_program_compile(&x, 1, &z, 1, &program), TINY_OK);
  ASSERT_EQ(tiny_program_kernels(program, &report), TINY_OK);
  EXPECT_NE(std::strstr(tiny_report_text(report), "com.example.Sort"), nullptr);
  tiny_report_release(report);
  EXPECT_EQ(tiny_program_kernel_source(program, 0, "c", &report), TINY_ERROR_UNSUPPORTED);
  tiny_program_release(program);
}

}  // namespace
}  // namespace tiny
