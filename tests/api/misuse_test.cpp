// Every mistake a caller can make is a status and a message that names it; nothing is written,
// nothing crashes.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tiny.h"

namespace {

class Misuse : public ::testing::Test {
 protected:
  void SetUp() override {
    context_ = new_context();
    const int64_t dims[] = {2, 3};
    const float data[6] = {1, 2, 3, 4, 5, 6};
    ASSERT_EQ(tiny_tensor_from_data(context_, TINY_FLOAT32, dims, 2, data, sizeof data, &a_),
              TINY_OK);
    ASSERT_EQ(tiny_arange(context_, TINY_INT32, 4, &i_), TINY_OK);
  }
  void TearDown() override {
    tiny_tensor_release(a_);
    tiny_tensor_release(i_);
    tiny_context_release(context_);
  }
  static tiny_context* new_context() {
    tiny_options* options = nullptr;
    tiny_context* context = nullptr;
    EXPECT_EQ(tiny_options_create(&options), TINY_OK);
    EXPECT_EQ(tiny_options_set_string(options, "device", "interp"), TINY_OK);
    EXPECT_EQ(tiny_context_create(options, &context), TINY_OK);
    tiny_options_release(options);
    return context;
  }
  // The call fails with `status`, says `part`, and leaves NULL.
  static void expect(tiny_status status, const char* part,
                     const std::function<tiny_status(tiny_tensor**)>& call) {
    auto* out = reinterpret_cast<tiny_tensor*>(&status);
    EXPECT_EQ(call(&out), status) << tiny_last_error();
    EXPECT_EQ(out, nullptr);
    EXPECT_NE(std::string(tiny_last_error()).find(part), std::string::npos) << tiny_last_error();
  }

  tiny_context* context_ = nullptr;
  tiny_tensor* a_ = nullptr;  // [2, 3] float32
  tiny_tensor* i_ = nullptr;  // [4] int32
};

constexpr tiny_status kArgument = TINY_ERROR_INVALID_ARGUMENT;
constexpr tiny_status kShape = TINY_ERROR_SHAPE;
constexpr tiny_status kDType = TINY_ERROR_DTYPE;

TEST_F(Misuse, NullHandlesAreNamed) {
  expect(kArgument, "tiny_unary: a is NULL",
         [](tiny_tensor** o) { return tiny_unary(TINY_NEG, nullptr, o); });
  expect(kArgument, "tiny_binary: b is NULL",
         [&](tiny_tensor** o) { return tiny_binary(TINY_ADD, a_, nullptr, o); });
  expect(kArgument, "condition is NULL",
         [&](tiny_tensor** o) { return tiny_where(nullptr, a_, a_, o); });
  expect(kArgument, "context is NULL",
         [](tiny_tensor** o) { return tiny_scalar_int(nullptr, 1, o); });
  expect(kArgument, "tensors[1] is NULL", [&](tiny_tensor** o) {
    tiny_tensor* list[] = {a_, nullptr};
    return tiny_concat(list, 2, 0, o);
  });
  expect(kArgument, "tensors is NULL or empty",
         [](tiny_tensor** o) { return tiny_concat(nullptr, 0, 0, o); });
  EXPECT_EQ(tiny_unary(TINY_NEG, a_, nullptr), kArgument);
  EXPECT_STREQ(tiny_last_error(), "tiny_unary: out is NULL");
  EXPECT_EQ(tiny_tensor_dtype(nullptr, nullptr), kArgument);
  EXPECT_EQ(tiny_context_create(nullptr, nullptr), kArgument);
  EXPECT_EQ(tiny_options_set_int(nullptr, "threads", 1), kArgument);
  tiny_tensor_release(nullptr);
  tiny_tensor_retain(nullptr);
  tiny_context_release(nullptr);
  tiny_options_release(nullptr);
}

TEST_F(Misuse, WritesThatCannotBeAreRefusedAndChangeNothing) {
  const auto refuse = [&](tiny_status status, const char* part, tiny_tensor* to,
                          const tiny_tensor* value) {
    EXPECT_EQ(tiny_assign(to, value), status);
    EXPECT_NE(std::string(tiny_last_error()).find(part), std::string::npos) << tiny_last_error();
  };
  refuse(kArgument, "tiny_assign: value is NULL", a_, nullptr);
  refuse(kArgument, "target is NULL", nullptr, a_);
  refuse(kDType, "a value of float32 is assigned to a tensor of int32", i_, a_);
  refuse(kShape, "shapes [2, 3] and [4] do not broadcast", a_, i_);
  tiny_tensor* number = nullptr;
  ASSERT_EQ(tiny_scalar_int(context_, 1, &number), TINY_OK);
  refuse(kArgument, "a scalar is a number", number, number);
  const int64_t dims[] = {4, 2, 3};
  tiny_tensor* repeated = nullptr;
  ASSERT_EQ(tiny_expand(a_, dims, 3, &repeated), TINY_OK);
  refuse(kArgument,
         "unsupported operation: more than one element of the written-to tensor refers to a single "
         "memory location. Please clone() the tensor before performing the operation.",
         repeated, number);
  float values[6];
  EXPECT_EQ(tiny_tensor_read(a_, values, sizeof values), TINY_OK);
  EXPECT_EQ(values[5], 6);
  tiny_tensor_release(repeated);
  tiny_tensor_release(number);
}

// All that needs the memory of a tensor refuses one that has no value, and what is made from it.
TEST_F(Misuse, InputsOfProgramsHaveNoMemory) {
  const int64_t dims[] = {3, 2};
  tiny_tensor* x = nullptr;
  tiny_tensor* sum = nullptr;
  tiny_tensor* turned = nullptr;
  tiny_tensor* y = nullptr;
  ASSERT_EQ(tiny_input(context_, TINY_FLOAT32, dims, 2, &x), TINY_OK);
  ASSERT_EQ(tiny_binary(TINY_ADD, x, x, &sum), TINY_OK);
  const int64_t swapped[] = {1, 0};
  ASSERT_EQ(tiny_permute(x, swapped, 2, &turned), TINY_OK);
  ASSERT_EQ(tiny_reshape(x, dims + 1, 1, &y), TINY_ERROR_SHAPE);
  tiny_program* program = nullptr;
  tiny_run* run = nullptr;
  ASSERT_EQ(tiny_program_compile(&x, 1, &sum, 1, &program), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
  tiny_archive* archive = nullptr;
  ASSERT_EQ(tiny_archive_create(context_, &archive), TINY_OK);
  for (tiny_tensor* t : {x, sum, turned}) {
    float values[6];
    const void* data = nullptr;
    DLManagedTensorVersioned* managed = nullptr;
    const auto refuse = [](tiny_status status) {
      EXPECT_EQ(status, kArgument);
      EXPECT_NE(std::string(tiny_last_error()).find("depends on an input"), std::string::npos)
          << tiny_last_error();
    };
    refuse(tiny_tensor_read(t, values, sizeof values));
    refuse(tiny_tensor_data(t, &data));
    refuse(tiny_realize(&t, 1));
    refuse(tiny_tensor_to_dlpack(t, &managed));
    refuse(tiny_tensor_save(t, "/nowhere/x.npy", nullptr));
    ASSERT_EQ(tiny_archive_set(archive, "x", t), TINY_OK);
    refuse(tiny_archive_save(archive, "/nowhere/x.safetensors"));
    if (t == turned) continue;
    refuse(tiny_run_set_input(run, 0, t));
    refuse(tiny_run_set_output(run, 0, t));
  }
  // What it is stays known, and it can still be an input.
  size_t rank = 0;
  EXPECT_EQ(tiny_tensor_rank(turned, &rank), TINY_OK);
  EXPECT_EQ(rank, 2u);
  tiny_program_release(program);
  ASSERT_EQ(tiny_program_compile(&x, 1, &turned, 1, &program), TINY_OK) << tiny_last_error();
  tiny_archive_release(archive);
  tiny_run_release(run);
  tiny_program_release(program);
  for (tiny_tensor* t : {x, sum, turned}) tiny_tensor_release(t);
}

TEST_F(Misuse, ProgramsWithoutWhatTheyNeedAreRefused) {
  const int64_t dims[] = {2, 3};
  tiny_tensor* x = nullptr;
  tiny_tensor* y = nullptr;
  ASSERT_EQ(tiny_input(context_, TINY_FLOAT32, dims, 2, &x), TINY_OK);
  ASSERT_EQ(tiny_binary(TINY_ADD, x, a_, &y), TINY_OK);
  float values[6];
  EXPECT_EQ(tiny_tensor_read(y, values, sizeof values), kArgument);
  EXPECT_NE(std::string(tiny_last_error()).find("depends on an input"), std::string::npos);
  tiny_program* program = nullptr;
  EXPECT_EQ(tiny_program_compile(nullptr, 1, &y, 1, &program), kArgument);
  EXPECT_EQ(tiny_program_compile(&x, 1, nullptr, 0, &program), kArgument);
  EXPECT_EQ(tiny_program_compile(&a_, 1, &y, 1, &program), kArgument);
  EXPECT_NE(std::string(tiny_last_error()).find("an input is a placeholder"), std::string::npos);
  EXPECT_EQ(program, nullptr);
  ASSERT_EQ(tiny_program_compile(&x, 1, &y, 1, &program), TINY_OK) << tiny_last_error();
  tiny_run* run = nullptr;
  ASSERT_EQ(tiny_run_create(program, &run), TINY_OK);
  EXPECT_EQ(tiny_run_execute(run), kArgument);
  EXPECT_NE(std::string(tiny_last_error()).find("not set: \"inputs[0]\""), std::string::npos);
  EXPECT_EQ(tiny_run_set_input(run, 0, i_), kDType);
  tiny_tensor* out = nullptr;
  EXPECT_EQ(tiny_run_output_tensor(run, 1, &out), kArgument);
  EXPECT_EQ(tiny_run_output_tensor(nullptr, 0, &out), kArgument);
  ASSERT_EQ(tiny_run_set_input(run, 0, a_), TINY_OK) << tiny_last_error();
  ASSERT_EQ(tiny_run_execute(run), TINY_OK);
  ASSERT_EQ(tiny_run_output_tensor(run, 0, &out), TINY_OK);
  EXPECT_EQ(tiny_tensor_read(out, values, sizeof values), TINY_OK);
  EXPECT_EQ(values[5], 12);
  tiny_tensor_release(out);
  tiny_run_release(run);
  tiny_program_release(program);
  tiny_tensor_release(x);
  tiny_tensor_release(y);
}

TEST_F(Misuse, NullListsWithACountAreNamed) {
  expect(kArgument, "dims is NULL but has 2 values",
         [&](tiny_tensor** o) { return tiny_reshape(a_, nullptr, 2, o); });
  expect(kArgument, "axes is NULL but has 1 values",
         [&](tiny_tensor** o) { return tiny_reduce(TINY_SUM, a_, nullptr, 1, 0, o); });
  expect(kArgument, "data is NULL", [&](tiny_tensor** o) {
    const int64_t dims[] = {2};
    return tiny_tensor_from_data(context_, TINY_INT8, dims, 1, nullptr, 2, o);
  });
  expect(kArgument, "data is NULL", [&](tiny_tensor** o) {
    const int64_t dims[] = {2};
    return tiny_tensor_wrap(context_, TINY_INT8, dims, nullptr, 1, nullptr, 100, 0, 0, nullptr,
                            nullptr, o);
  });
  EXPECT_EQ(tiny_tensor_read(a_, nullptr, 24), kArgument);
  size_t rank = 7;
  EXPECT_EQ(tiny_tensor_shape(a_, nullptr, 2, &rank), kArgument);
  EXPECT_EQ(rank, 0u);
}

TEST_F(Misuse, UnknownEnumValuesListTheKnown) {
  expect(kArgument, "unknown unary operation -1; known: TINY_NEG (0), TINY_ABS (1)",
         [&](tiny_tensor** o) { return tiny_unary(-1, a_, o); });
  expect(kArgument, "unknown binary operation 99; known: TINY_ADD (0)",
         [&](tiny_tensor** o) { return tiny_binary(99, a_, a_, o); });
  expect(kArgument, "unknown comparison 6",
         [&](tiny_tensor** o) { return tiny_compare(6, a_, a_, o); });
  expect(kArgument, "unknown reduction 1000",
         [&](tiny_tensor** o) { return tiny_reduce(1000, a_, nullptr, 0, 0, o); });
  expect(kArgument, "unknown dtype 0; known: bool (1), int8 (2)",
         [&](tiny_tensor** o) { return tiny_cast(a_, 0, o); });
  // A type of the IR is no dtype of the interface.
  expect(kArgument, "unknown dtype 100", [&](tiny_tensor** o) { return tiny_cast(a_, 100, o); });
  EXPECT_EQ(tiny_dtype_name(0), nullptr);
  EXPECT_EQ(tiny_dtype_size(27), 0u);
  EXPECT_EQ(tiny_dtype_bits(27), 0u);
  EXPECT_EQ(tiny_dtype_supported(27), 0);
  EXPECT_STREQ(tiny_status_name(77), "UNKNOWN");
  EXPECT_STREQ(tiny_status_name(TINY_ERROR_BUSY), "BUSY");
}

TEST_F(Misuse, UnknownFlagsListTheKnown) {
  const std::vector<std::pair<const char*, std::function<tiny_status(tiny_flags, tiny_tensor**)>>>
      calls = {
          {"TINY_FLAG_KEEPDIMS (1)",
           [&](tiny_flags f, tiny_tensor** o) {
             return tiny_reduce(TINY_SUM, a_, nullptr, 0, f, o);
           }},
          {"TINY_FLAG_KEEPDIMS (1)",
           [&](tiny_flags f, tiny_tensor** o) { return tiny_variance(a_, nullptr, 0, 0, f, o); }},
          {"TINY_FLAG_KEEPDIMS (1), TINY_FLAG_LAST (2)",
           [&](tiny_flags f, tiny_tensor** o) { return tiny_argmax(a_, 0, f, o); }},
          {"TINY_FLAG_KEEPDIMS (1), TINY_FLAG_LAST (2)",
           [&](tiny_flags f, tiny_tensor** o) { return tiny_argmin(a_, 0, f, o); }},
          {"TINY_FLAG_EXCLUSIVE (4), TINY_FLAG_REVERSE (8)",
           [&](tiny_flags f, tiny_tensor** o) { return tiny_cumsum(a_, 0, f, o); }},
          {"TINY_FLAG_APPROXIMATE (16)",
           [&](tiny_flags f, tiny_tensor** o) { return tiny_gelu(a_, f, o); }},
          {"TINY_FLAG_COLUMNS_FIRST (32)",
           [&](tiny_flags f, tiny_tensor** o) { return tiny_depth_to_space(a_, 2, f, o); }},
      };
  for (const auto& [known, call] : calls) {
    const std::string message = std::string("flags is 1073741824; its bits may be ") + known;
    expect(kArgument, message.c_str(), [&](tiny_tensor** o) { return call(1U << 30, o); });
    // Every bit that is listed is taken, and no other.
    for (tiny_flags bit = 1; bit < 1U << 8; bit *= 2) {
      tiny_tensor* out = nullptr;
      const bool is_taken = call(bit, &out) == TINY_OK ||
                            std::string(tiny_last_error()).find("bits may be") == std::string::npos;
      EXPECT_EQ(is_taken, message.find("(" + std::to_string(bit) + ")") != std::string::npos)
          << bit << ": " << tiny_last_error();
      tiny_tensor_release(out);
    }
  }
}

TEST_F(Misuse, TypesThatAreKeptForLaterHaveNamesAndNoTensors) {
  for (tiny_dtype dtype = TINY_BOOL; tiny_dtype_name(dtype); ++dtype) {
    EXPECT_EQ(tiny_dtype_supported(dtype), dtype <= TINY_FLOAT8_E5M2FNUZ ? 1 : 0) << dtype;
    EXPECT_EQ(tiny_dtype_size(dtype), tiny_dtype_bits(dtype) / 8) << dtype;
  }
  EXPECT_STREQ(tiny_dtype_name(TINY_STRING), "string");
  EXPECT_EQ(tiny_dtype_bits(TINY_INT4), 4u);
  EXPECT_EQ(tiny_dtype_bits(TINY_BOOL), 8u);
  EXPECT_EQ(tiny_dtype_bits(TINY_STRING), 0u);
  expect(TINY_ERROR_UNSUPPORTED, "tensors of float8_e8m0 are not supported; known: bool (1)",
         [&](tiny_tensor** o) { return tiny_cast(a_, TINY_FLOAT8_E8M0, o); });
}

TEST_F(Misuse, UnknownOptionsListTheKnown) {
  tiny_options* options = nullptr;
  ASSERT_EQ(tiny_options_create(&options), TINY_OK);
  EXPECT_EQ(tiny_options_set_int(options, "treads", 2), kArgument);
  EXPECT_NE(std::string(tiny_last_error()).find("threads"), std::string::npos);
  EXPECT_EQ(tiny_options_set_string(options, "threads", "2"), kArgument);
  EXPECT_EQ(tiny_options_set_string(options, "device", nullptr), kArgument);
  EXPECT_EQ(tiny_options_set_string(options, "device", "tpu"), TINY_OK);
  tiny_context* context = nullptr;
  EXPECT_EQ(tiny_context_create(options, &context), kArgument);
  EXPECT_NE(std::string(tiny_last_error()).find("interp"), std::string::npos) << tiny_last_error();
  EXPECT_EQ(context, nullptr);
  tiny_options_release(options);
}

TEST_F(Misuse, DimensionsAreChecked) {
  const int64_t negative[] = {2, -3};
  const int64_t huge[] = {INT64_C(1) << 40, INT64_C(1) << 40};
  const int64_t huge_and_empty[] = {INT64_C(1) << 40, 0, INT64_C(1) << 40};
  const std::vector<int64_t> many(TINY_RANK_MAX + 1, 1);
  expect(kShape, "negative",
         [&](tiny_tensor** o) { return tiny_full(context_, TINY_INT8, negative, 2, 0, o); });
  expect(kShape, "more bytes than an int64 counts",
         [&](tiny_tensor** o) { return tiny_full(context_, TINY_INT8, huge, 2, 0, o); });
  expect(kShape, "more bytes than an int64 counts", [&](tiny_tensor** o) {
    return tiny_full(context_, TINY_FLOAT32, huge_and_empty, 3, 0, o);
  });
  expect(kShape, "at most 16", [&](tiny_tensor** o) {
    return tiny_full(context_, TINY_INT8, many.data(), many.size(), 0, o);
  });
  expect(kShape, "negative",
         [&](tiny_tensor** o) { return tiny_arange(context_, TINY_INT32, -1, o); });
  expect(kShape, "has 24 bytes; got 20", [&](tiny_tensor** o) {
    const int64_t dims[] = {2, 3};
    const float data[6] = {};
    return tiny_tensor_from_data(context_, TINY_FLOAT32, dims, 2, data, 20, o);
  });
  char buffer[32];
  EXPECT_EQ(tiny_tensor_read(a_, buffer, 25), kShape);
  EXPECT_NE(std::string(tiny_last_error()).find("has 24 bytes; got 25"), std::string::npos);
}

TEST_F(Misuse, ShapesThatDoNotFitAreShown) {
  expect(kShape, "shapes [2, 3] and [4] do not broadcast",
         [&](tiny_tensor** o) { return tiny_binary(TINY_ADD, a_, i_, o); });
  expect(kShape, "cannot reshape [2, 3] (6 elements) to [4]", [&](tiny_tensor** o) {
    const int64_t dims[] = {4};
    return tiny_reshape(a_, dims, 1, o);
  });
  expect(kShape, "more than one -1", [&](tiny_tensor** o) {
    const int64_t dims[] = {-1, -1};
    return tiny_reshape(a_, dims, 2, o);
  });
  expect(kShape, "axis 2 of a tensor with 2 dimensions", [&](tiny_tensor** o) {
    const int64_t axes[] = {2};
    return tiny_reduce(TINY_SUM, a_, axes, 1, 0, o);
  });
  expect(kShape, "named twice", [&](tiny_tensor** o) {
    const int64_t axes[] = {0, -2};
    return tiny_permute(a_, axes, 2, o);
  });
  expect(kShape, "cannot expand [2, 3] to [2, 4]", [&](tiny_tensor** o) {
    const int64_t dims[] = {2, 4};
    return tiny_expand(a_, dims, 2, o);
  });
  expect(kShape, "before has 1 values", [&](tiny_tensor** o) {
    const int64_t pads[] = {1};
    return tiny_pad(a_, pads, pads, 1, 0, o);
  });
  expect(kShape, "take away more", [&](tiny_tensor** o) {
    const int64_t pads[] = {-2, 0};
    return tiny_pad(a_, pads, pads, 2, 0, o);
  });
  expect(kShape, "inner sizes differ", [&](tiny_tensor** o) { return tiny_matmul(a_, a_, o); });
  expect(kShape, "concat along axis 0", [&](tiny_tensor** o) {
    tiny_tensor* list[] = {a_, i_};
    return tiny_concat(list, 2, 0, o);
  });
  expect(kShape, "reaches elements 0 to 6 of memory that has 6", [&](tiny_tensor** o) {
    const int64_t dims[] = {4};
    const int64_t strides[] = {2};
    return tiny_as_strided(a_, dims, strides, 1, 0, o);
  });
  expect(kShape, "argmax over nothing", [&](tiny_tensor** o) {
    const int64_t dims[] = {0};
    tiny_tensor* empty = nullptr;
    EXPECT_EQ(tiny_full(context_, TINY_INT8, dims, 1, 0, &empty), TINY_OK);
    const tiny_status status = tiny_argmax(empty, 0, 0, o);
    tiny_tensor_release(empty);
    return status;
  });
  expect(kArgument, "step is 0", [&](tiny_tensor** o) {
    const int64_t zeros[] = {0, 0};
    return tiny_slice(a_, zeros, zeros, zeros, 2, o);
  });
}

TEST_F(Misuse, NetworkFunctionsCheckTheirShapes) {
  expect(kShape, "conv of x [2, 3] with weight [4]",
         [&](tiny_tensor** o) { return tiny_conv(a_, i_, nullptr, nullptr, o); });
  const int64_t dims[] = {1, 2, 3, 3};
  const int64_t filter[] = {2, 2, 5, 5};
  tiny_tensor* x = nullptr;
  tiny_tensor* w = nullptr;
  ASSERT_EQ(tiny_full(context_, TINY_FLOAT32, dims, 4, 1, &x), TINY_OK);
  ASSERT_EQ(tiny_full(context_, TINY_FLOAT32, filter, 4, 1, &w), TINY_OK);
  expect(kShape, "kernel [5, 5] does not fit",
         [&](tiny_tensor** o) { return tiny_conv(x, w, nullptr, nullptr, o); });
  expect(kShape, "scale",
         [&](tiny_tensor** o) { return tiny_instance_norm(x, i_, nullptr, 1e-5, o); });
  tiny_tensor* parts[2] = {x, x};
  const int64_t sizes[] = {1, 2};
  EXPECT_EQ(tiny_split(x, 1, sizes, 2, parts, 2), kShape);
  EXPECT_EQ(parts[0], nullptr);
  EXPECT_EQ(parts[1], nullptr);
  tiny_tensor_release(x);
  tiny_tensor_release(w);
}

TEST_F(Misuse, WeightsOfClassesAreOneForEach) {
  const int64_t two[] = {2};
  tiny_tensor* classes = nullptr;
  tiny_tensor* one = nullptr;
  tiny_tensor* few = nullptr;
  ASSERT_EQ(tiny_full(context_, TINY_INT32, two, 1, 1, &classes), TINY_OK);
  ASSERT_EQ(tiny_full(context_, TINY_FLOAT32, nullptr, 0, 1, &one), TINY_OK);
  ASSERT_EQ(tiny_full(context_, TINY_FLOAT32, two, 1, 1, &few), TINY_OK);
  for (const tiny_tensor* weight : {one, few, a_}) {
    for (const tiny_tensor* target : {classes, a_})
      expect(kShape, "cross_entropy: weights of shape", [&](tiny_tensor** o) {
        return tiny_cross_entropy(a_, target, weight, -100, 0, TINY_REDUCTION_MEAN, o);
      });
    expect(kShape, "wanted [3], one for each class", [&](tiny_tensor** o) {
      return tiny_nll_loss(a_, classes, weight, -100, TINY_REDUCTION_MEAN, o);
    });
  }
  for (tiny_tensor* t : {classes, one, few}) tiny_tensor_release(t);
}

TEST_F(Misuse, DtypesThatAnOperationDoesNotTakeAreShown) {
  expect(kDType, "and takes integers or bools; got float32 and float32",
         [&](tiny_tensor** o) { return tiny_binary(TINY_AND, a_, a_, o); });
  expect(kDType, "float32", [&](tiny_tensor** o) { return tiny_unary(TINY_NOT, a_, o); });
  expect(kDType, "float32 to float64",
         [&](tiny_tensor** o) { return tiny_bitcast(a_, TINY_FLOAT64, o); });
  expect(kDType, "an index of float32", [&](tiny_tensor** o) { return tiny_gather(i_, a_, 0, o); });
}

TEST_F(Misuse, TensorsOfTwoContextsDoNotMeet) {
  tiny_context* other = new_context();
  tiny_tensor* b = nullptr;
  ASSERT_EQ(tiny_scalar_int(other, 1, &b), TINY_OK);
  expect(kArgument, "b comes from another context",
         [&](tiny_tensor** o) { return tiny_binary(TINY_ADD, a_, b, o); });
  tiny_context_release(other);
  // The tensor keeps its context.
  int64_t value = 0;
  EXPECT_EQ(tiny_tensor_read(b, &value, sizeof value), TINY_OK);
  EXPECT_EQ(value, 1);
  tiny_tensor_release(b);
}

TEST_F(Misuse, MisalignedMemoryIsRefused) {
  alignas(8) static char memory[32];
  const int64_t dims[] = {2};
  expect(kArgument, "not aligned", [&](tiny_tensor** o) {
    return tiny_tensor_wrap(context_, TINY_FLOAT32, dims, nullptr, 1, memory + 1, sizeof memory - 1,
                            0, 0, nullptr, nullptr, o);
  });
}

TEST_F(Misuse, ADeleterIsNotCalledByAFailedWrap) {
  static int calls = 0;
  const int64_t dims[] = {-1};
  float memory[1] = {};
  expect(kShape, "negative", [&](tiny_tensor** o) {
    return tiny_tensor_wrap(
        context_, TINY_FLOAT32, dims, nullptr, 1, memory, sizeof memory, 0, 0,
        [](void*) { ++calls; }, nullptr, o);
  });
  EXPECT_EQ(calls, 0);
}

TEST_F(Misuse, IndicesOutOfRangeEndTheRunWithIndex) {
  const int64_t dims[] = {2};
  const int64_t bad[] = {1, 9};
  tiny_tensor* index = nullptr;
  tiny_tensor* out = nullptr;
  ASSERT_EQ(tiny_tensor_from_data(context_, TINY_INT64, dims, 1, bad, sizeof bad, &index), TINY_OK);
  ASSERT_EQ(tiny_gather(i_, index, 0, &out), TINY_OK);
  int32_t values[2];
  EXPECT_EQ(tiny_tensor_read(out, values, sizeof values), TINY_ERROR_INDEX);
  EXPECT_NE(std::string(tiny_last_error()).find("position 1"), std::string::npos)
      << tiny_last_error();
  tiny_tensor_release(out);
  tiny_tensor_release(index);
}

TEST_F(Misuse, SettingsHaveRangesAndDevicesNumbers) {
  tiny_options* options = nullptr;
  ASSERT_EQ(tiny_options_create(&options), TINY_OK);
  for (const int64_t threads : {int64_t{1} << 40, int64_t{20000}, int64_t{-5}}) {
    EXPECT_EQ(tiny_options_set_int(options, "threads", threads), kArgument);
    EXPECT_EQ(tiny_last_error(),
              "tiny_options_set_int: option \"threads\" wants from 0 to 1024; got " +
                  std::to_string(threads));
  }
  const std::pair<const char*, tiny_status> wanted[] = {
      {"null:0", TINY_OK},  {"null:3", TINY_ERROR_DEVICE}, {"interp:00", TINY_OK},
      {"null:", kArgument}, {"null:-1", kArgument},        {":0", kArgument}};
  for (const auto& [device, status] : wanted) {
    ASSERT_EQ(tiny_options_set_string(options, "device", device), TINY_OK);
    tiny_context* context = nullptr;
    EXPECT_EQ(tiny_context_create(options, &context), status) << device << tiny_last_error();
    tiny_context_release(context);
  }
  tiny_options_release(options);
}

TEST_F(Misuse, AnErrorAboutAFileNamesIt) {
  tiny_model* model = nullptr;
  EXPECT_EQ(tiny_model_load(context_, "no/such.onnx", &model), TINY_ERROR_IO);
  EXPECT_NE(std::string(tiny_last_error_json()).find("\"file\":\"no/such.onnx\""),
            std::string::npos)
      << tiny_last_error_json();
  tiny_tensor* tensor = nullptr;
  EXPECT_EQ(tiny_unary(TINY_NEG, nullptr, &tensor), kArgument);
  EXPECT_EQ(std::string(tiny_last_error_json()).find("file"), std::string::npos);
}

TEST_F(Misuse, ErrorsAreOnePerThreadAndJsonSaysTheSame) {
  EXPECT_EQ(tiny_unary(99, a_, &i_), kArgument);
  i_ = nullptr;
  const std::string json = tiny_last_error_json();
  EXPECT_EQ(
      json.find(
          "{\"status\":\"INVALID_ARGUMENT\",\"call\":\"tiny_unary\",\"message\":\"unknown unary"),
      0u)
      << json;
  EXPECT_EQ(json.back(), '}');
  std::thread([] {
    EXPECT_STREQ(tiny_last_error(), "");
    EXPECT_STREQ(tiny_last_error_json(), "{}");
  }).join();
  tiny_options* options = nullptr;
  ASSERT_EQ(tiny_options_create(&options), TINY_OK);
  // Quotes, control characters and cut characters.
  EXPECT_EQ(tiny_options_set_int(options, "a\"b\\c\nd", 1), kArgument);
  EXPECT_NE(std::string(tiny_last_error_json()).find("a\\\"b\\\\c\\u000ad"), std::string::npos)
      << tiny_last_error_json();
  std::string longest = "x";
  for (int i = 0; i < 2000; ++i) longest += "\xC3\xA9";
  EXPECT_EQ(tiny_options_set_int(options, longest.c_str(), 1), kArgument);
  const std::string message = tiny_last_error();
  EXPECT_LT(message.size(), 1024u);
  EXPECT_EQ(message.substr(message.size() - 2), "\xC3\xA9");
  tiny_options_release(options);
}

// A deleter runs inside of a call; what it does to the context's tensors waits or is refused.
TEST_F(Misuse, CallsFromADeleterAreBusyAndReleasesWait) {
  struct Inner {
    tiny_tensor* tensor;
    tiny_status status;
  };
  static float memory[1] = {3};
  Inner inner{nullptr, TINY_OK};
  ASSERT_EQ(tiny_scalar_int(context_, 5, &inner.tensor), TINY_OK);
  tiny_tensor* wrapped = nullptr;
  ASSERT_EQ(tiny_tensor_wrap(
                context_, TINY_FLOAT32, nullptr, nullptr, 0, memory, sizeof(float), 0, 0,
                [](void* user) {
                  auto* i = static_cast<Inner*>(user);
                  tiny_tensor* out = nullptr;
                  i->status = tiny_unary(TINY_NEG, i->tensor, &out);
                  tiny_tensor_release(i->tensor);
                },
                &inner, &wrapped),
            TINY_OK);
  tiny_tensor_release(wrapped);
  EXPECT_EQ(inner.status, TINY_ERROR_BUSY);
}

}  // namespace
