// What tiny.h promises about values: broadcasting, dtypes, weak numbers, wrapped memory, huge
// views.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tiny.h"

namespace {

class Values : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    tiny_options* options = nullptr;
    ASSERT_EQ(tiny_options_create(&options), TINY_OK);
    ASSERT_EQ(tiny_options_set_string(options, "device", GetParam()), TINY_OK);
    ASSERT_EQ(tiny_context_create(options, &context_), TINY_OK) << tiny_last_error();
    tiny_options_release(options);
  }
  void TearDown() override {
    for (tiny_tensor* t : all_) tiny_tensor_release(t);
    tiny_context_release(context_);
  }
  // What the call makes; released at the end.
  template <class Call>
  tiny_tensor* made(Call call) {
    tiny_tensor* t = nullptr;
    EXPECT_EQ(call(&t), TINY_OK) << tiny_last_error();
    all_.push_back(t);
    return t;
  }
  template <class T>
  tiny_tensor* data(tiny_dtype dtype, const std::vector<int64_t>& dims,
                    const std::vector<T>& values) {
    return made([&](tiny_tensor** o) {
      return tiny_tensor_from_data(context_, dtype, dims.data(), dims.size(), values.data(),
                                   values.size() * sizeof(T), o);
    });
  }
  tiny_tensor* scalar(double value) {
    return made([&](tiny_tensor** o) { return tiny_scalar_float(context_, value, o); });
  }
  tiny_tensor* integer(int64_t value) {
    return made([&](tiny_tensor** o) { return tiny_scalar_int(context_, value, o); });
  }
  tiny_tensor* binary(tiny_binary_op op, tiny_tensor* a, tiny_tensor* b) {
    return made([&](tiny_tensor** o) { return tiny_binary(op, a, b, o); });
  }
  tiny_tensor* unary(tiny_unary_op op, tiny_tensor* a) {
    return made([&](tiny_tensor** o) { return tiny_unary(op, a, o); });
  }
  tiny_tensor* reduce(tiny_reduce_op op, tiny_tensor* a) {
    return made([&](tiny_tensor** o) { return tiny_reduce(op, a, nullptr, 0, 0, o); });
  }
  static std::string dtype(tiny_tensor* t) {
    tiny_dtype d = 0;
    EXPECT_EQ(tiny_tensor_dtype(t, &d), TINY_OK);
    return tiny_dtype_name(d);
  }
  static std::vector<int64_t> shape(tiny_tensor* t) {
    std::vector<int64_t> dims(TINY_RANK_MAX);
    size_t rank = 0;
    EXPECT_EQ(tiny_tensor_shape(t, dims.data(), dims.size(), &rank), TINY_OK);
    dims.resize(rank);
    return dims;
  }
  static std::vector<int64_t> strides(tiny_tensor* t) {
    std::vector<int64_t> values(TINY_RANK_MAX);
    size_t rank = 0;
    EXPECT_EQ(tiny_tensor_strides(t, values.data(), values.size(), &rank), TINY_OK);
    values.resize(rank);
    return values;
  }
  template <class T>
  static std::vector<T> read(tiny_tensor* t) {
    int64_t count = 0;
    EXPECT_EQ(tiny_tensor_numel(t, &count), TINY_OK);
    std::vector<T> values(static_cast<size_t>(count));
    EXPECT_EQ(tiny_tensor_read(t, values.data(), values.size() * sizeof(T)), TINY_OK)
        << tiny_last_error();
    return values;
  }

  tiny_context* context_ = nullptr;
  std::vector<tiny_tensor*> all_;
};

TEST_P(Values, BroadcastAsNumpy) {
  tiny_tensor* a = data<float>(TINY_FLOAT32, {2, 1, 3}, {1, 2, 3, 4, 5, 6});
  tiny_tensor* b = data<float>(TINY_FLOAT32, {2, 1}, {10, 20});
  tiny_tensor* c = binary(TINY_ADD, a, b);
  EXPECT_EQ(shape(c), (std::vector<int64_t>{2, 2, 3}));
  EXPECT_EQ(read<float>(c), (std::vector<float>{11, 12, 13, 21, 22, 23, 14, 15, 16, 24, 25, 26}));
}

TEST_P(Values, WeakNumbersTakeTheDtypeTheyMeet) {
  tiny_tensor* bytes = data<uint8_t>(TINY_UINT8, {2}, {250, 3});
  EXPECT_EQ(dtype(binary(TINY_ADD, bytes, integer(10))), "uint8");
  EXPECT_EQ(read<uint8_t>(binary(TINY_ADD, bytes, integer(10))), (std::vector<uint8_t>{4, 13}));
  EXPECT_EQ(dtype(binary(TINY_MUL, bytes, scalar(0.5))), "float32");
  tiny_tensor* doubles = data<double>(TINY_FLOAT64, {1}, {1});
  // Unrounded: a tenth as a double, not as a float.
  EXPECT_EQ(read<double>(binary(TINY_MUL, doubles, scalar(0.1)))[0], 0.1);
  EXPECT_EQ(dtype(scalar(1)), "float32");
  EXPECT_EQ(dtype(integer(1)), "int64");
  EXPECT_EQ(dtype(binary(TINY_ADD, integer(1), scalar(1))), "float32");
  tiny_tensor* truth = data<uint8_t>(TINY_BOOL, {2}, {1, 0});
  EXPECT_EQ(dtype(binary(TINY_ADD, truth, integer(3))), "int64");
  EXPECT_EQ(read<int64_t>(binary(TINY_ADD, truth, integer(3))), (std::vector<int64_t>{4, 3}));
}

TEST_P(Values, StrongDtypesMeetInTheLattice) {
  const auto met = [&](tiny_dtype x, tiny_dtype y) {
    const int64_t dims[] = {1};

    tiny_tensor* a = made([&](tiny_tensor** o) { return tiny_full(context_, x, dims, 1, 1, o); });
    tiny_tensor* b = made([&](tiny_tensor** o) { return tiny_full(context_, y, dims, 1, 1, o); });
    return dtype(binary(TINY_ADD, a, b));
  };
  EXPECT_EQ(met(TINY_UINT8, TINY_INT8), "int16");
  EXPECT_EQ(met(TINY_UINT16, TINY_INT64), "int64");
  EXPECT_EQ(met(TINY_UINT32, TINY_INT32), "int64");
  EXPECT_EQ(met(TINY_UINT64, TINY_INT8), "float32");
  EXPECT_EQ(met(TINY_INT64, TINY_FLOAT16), "float16");
  EXPECT_EQ(met(TINY_BFLOAT16, TINY_FLOAT16), "float32");
  EXPECT_EQ(met(TINY_BOOL, TINY_UINT8), "uint8");
  EXPECT_EQ(met(TINY_FLOAT32, TINY_FLOAT64), "float64");
}

TEST_P(Values, IntegersWrapAndDivideAsDocumented) {
  tiny_tensor* a = data<int32_t>(TINY_INT32, {4}, {-7, 7, INT32_MIN, 5});
  tiny_tensor* b = data<int32_t>(TINY_INT32, {4}, {2, -2, -1, 0});
  EXPECT_EQ(read<int32_t>(binary(TINY_FLOOR_DIV, a, b)),
            (std::vector<int32_t>{-4, -4, INT32_MIN, 0}));
  EXPECT_EQ(read<int32_t>(binary(TINY_FLOOR_MOD, a, b)), (std::vector<int32_t>{1, -1, 0, 0}));
  EXPECT_EQ(read<int32_t>(binary(TINY_TRUNC_DIV, a, b)),
            (std::vector<int32_t>{-3, -3, INT32_MIN, 0}));
  EXPECT_EQ(read<int32_t>(binary(TINY_TRUNC_MOD, a, b)), (std::vector<int32_t>{-1, 1, 0, 0}));
  EXPECT_EQ(dtype(binary(TINY_DIV, a, b)), "float32");
  tiny_tensor* base = data<int32_t>(TINY_INT32, {5}, {3, -2, 2, -1, 7});
  tiny_tensor* exponent = data<int32_t>(TINY_INT32, {5}, {4, 3, -1, -3, 0});
  EXPECT_EQ(read<int32_t>(binary(TINY_POW, base, exponent)),
            (std::vector<int32_t>{81, -8, 0, -1, 1}));
}

TEST_P(Values, FloatRemaindersAreExact) {
  tiny_tensor* a = data<float>(TINY_FLOAT32, {5}, {5.5f, -5.5f, 1e7f, -3, INFINITY});
  tiny_tensor* b = data<float>(TINY_FLOAT32, {5}, {2, 2, 0.1f, INFINITY, 2});
  const std::vector<float> t = read<float>(binary(TINY_TRUNC_MOD, a, b));
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(t[i], std::fmod(read<float>(a)[i], read<float>(b)[i])) << i;
  EXPECT_TRUE(std::isnan(t[4]));
  EXPECT_EQ(read<float>(binary(TINY_FLOOR_MOD, a, b))[1], 0.5f);
  EXPECT_EQ(read<float>(binary(TINY_FLOOR_MOD, a, b))[3], INFINITY);
  EXPECT_EQ(read<float>(binary(TINY_FLOOR_DIV, a, b))[1], -3);
}

TEST_P(Values, ZerosSignsAndNansAreExact) {
  const int64_t dims[] = {2};
  tiny_tensor* t =
      made([&](tiny_tensor** o) { return tiny_full(context_, TINY_FLOAT32, dims, 1, -0.0, o); });
  EXPECT_TRUE(std::signbit(read<float>(t)[0]));
  const int64_t one[] = {1};
  tiny_tensor* padded = made([&](tiny_tensor** o) { return tiny_pad(t, one, one, 1, -0.0, o); });
  for (float v : read<float>(padded)) EXPECT_TRUE(std::signbit(v));
  tiny_tensor* nan = data<float>(TINY_FLOAT32, {3}, {1, NAN, -2});
  EXPECT_TRUE(std::isnan(read<float>(reduce(TINY_REDUCE_MAX, nan))[0]));
  EXPECT_TRUE(std::isnan(read<float>(unary(TINY_RELU, nan))[1]));
  EXPECT_TRUE(std::isnan(read<float>(unary(TINY_SIGN, nan))[1]));
  EXPECT_TRUE(std::isnan(read<float>(binary(TINY_MIN, nan, scalar(0)))[1]));
  EXPECT_EQ(read<uint8_t>(unary(TINY_IS_NAN, nan)), (std::vector<uint8_t>{0, 1, 0}));
}

TEST_P(Values, ReductionsHaveTheirDtypesAndTheirNothing) {
  tiny_tensor* bytes = data<int8_t>(TINY_INT8, {3}, {100, 100, 100});
  EXPECT_EQ(dtype(reduce(TINY_SUM, bytes)), "int64");
  EXPECT_EQ(read<int64_t>(reduce(TINY_SUM, bytes))[0], 300);
  EXPECT_EQ(dtype(reduce(TINY_REDUCE_MAX, bytes)), "int8");
  EXPECT_EQ(dtype(reduce(TINY_MEAN, bytes)), "float32");
  tiny_tensor* none = data<float>(TINY_FLOAT32, {0, 3}, {});
  EXPECT_EQ(read<float>(reduce(TINY_SUM, none))[0], 0);
  EXPECT_EQ(read<float>(reduce(TINY_PROD, none))[0], 1);
  EXPECT_EQ(read<float>(reduce(TINY_REDUCE_MAX, none))[0], -INFINITY);
  EXPECT_EQ(read<float>(reduce(TINY_REDUCE_MIN, none))[0], INFINITY);
  EXPECT_TRUE(std::isnan(read<float>(reduce(TINY_MEAN, none))[0]));
  EXPECT_EQ(read<uint8_t>(reduce(TINY_ANY, none))[0], 0);
  EXPECT_EQ(read<uint8_t>(reduce(TINY_ALL, none))[0], 1);
  // float16 itself would stop counting at 2048.
  const int64_t dims[] = {6000};
  tiny_tensor* ones =
      made([&](tiny_tensor** o) { return tiny_full(context_, TINY_FLOAT16, dims, 1, 1, o); });
  tiny_tensor* sum = reduce(TINY_SUM, ones);
  tiny_tensor* wide = made([&](tiny_tensor** o) { return tiny_cast(sum, TINY_FLOAT32, o); });
  EXPECT_EQ(dtype(sum), "float16");
  EXPECT_EQ(read<float>(wide)[0], 6000);
}

TEST_P(Values, WrappedMemoryMustHoldWhatItsStridesReach) {
  float memory[12] = {};
  const auto wrap = [&](std::vector<int64_t> dims, std::vector<int64_t> steps, size_t bytes,
                        int64_t offset, tiny_flags flags = 0) {
    tiny_tensor* t = nullptr;
    const tiny_status status = tiny_tensor_wrap(context_, TINY_FLOAT32, dims.data(),
                                                steps.empty() ? nullptr : steps.data(), dims.size(),
                                                memory, bytes, offset, flags, nullptr, nullptr, &t);
    tiny_tensor_release(t);
    return status;
  };
  const auto says = [](const std::string& part) {
    return std::string(tiny_last_error()).find(part) != std::string::npos;
  };
  EXPECT_EQ(wrap({3, 4}, {}, sizeof memory, 0), TINY_OK);
  EXPECT_EQ(wrap({12}, {-1}, sizeof memory, 11), TINY_OK);
  EXPECT_EQ(wrap({2, 3}, {-6, 2}, sizeof memory, 7), TINY_OK);
  EXPECT_EQ(wrap({}, {}, 4, 0), TINY_OK);
  EXPECT_EQ(wrap({0, 5}, {100, -100}, 0, 1000), TINY_OK);
  EXPECT_EQ(wrap({13}, {}, sizeof memory, 0), TINY_ERROR_SHAPE);
  EXPECT_TRUE(says("reaches elements 0 to 12 of memory that has 12")) << tiny_last_error();
  EXPECT_EQ(wrap({3, 4}, {}, sizeof memory - 1, 0), TINY_ERROR_SHAPE);
  EXPECT_EQ(wrap({12}, {-1}, sizeof memory, 10), TINY_ERROR_SHAPE);
  EXPECT_EQ(wrap({2}, {1}, sizeof memory, -1), TINY_ERROR_SHAPE);
  EXPECT_EQ(wrap({2, 2}, {INT64_MAX, INT64_MAX}, sizeof memory, 0), TINY_ERROR_LIMIT);
  EXPECT_EQ(wrap({1}, {}, sizeof memory, INT64_MAX), TINY_ERROR_SHAPE);
  EXPECT_EQ(wrap({1}, {}, 0, 0), TINY_ERROR_SHAPE);
  EXPECT_EQ(wrap({1}, {}, sizeof memory, 0, TINY_FLAG_LAST), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(says("TINY_FLAG_READ_ONLY (256)")) << tiny_last_error();
}

TEST_P(Values, MemoryThatIsReadOnlyIsNeverWritten) {
  static const float memory[4] = {1, 2, 3, 4};  // a write would end the process
  const int64_t dims[] = {4};
  tiny_tensor* t = made([&](tiny_tensor** o) {
    return tiny_tensor_wrap(context_, TINY_FLOAT32, dims, nullptr, 1, const_cast<float*>(memory),
                            sizeof memory, 0, TINY_FLAG_READ_ONLY, nullptr, nullptr, o);
  });
  const void* data = nullptr;
  ASSERT_EQ(tiny_tensor_data(t, &data), TINY_OK) << tiny_last_error();
  EXPECT_EQ(data, memory);
  const int64_t begin[] = {1}, end[] = {3};
  tiny_tensor* middle =
      made([&](tiny_tensor** o) { return tiny_slice(t, begin, end, nullptr, 1, o); });
  ASSERT_EQ(tiny_assign(middle, scalar(9)), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read<float>(t), (std::vector<float>{1, 9, 9, 4}));
  EXPECT_EQ(memory[1], 2);
}

int given_back = 0;

TEST_P(Values, WrappedMemoryIsSeenThroughItsStrides) {
  given_back = 0;
  float memory[12];
  for (int i = 0; i < 12; ++i) memory[i] = static_cast<float>(i);
  const int64_t dims[] = {3, 2, 2};
  const int64_t steps[] = {-4, 1, 0};
  tiny_tensor* t = nullptr;
  ASSERT_EQ(tiny_tensor_wrap(
                context_, TINY_FLOAT32, dims, steps, 3, memory, sizeof memory, 9, 0,
                [](void*) { ++given_back; }, nullptr, &t),
            TINY_OK);
  EXPECT_EQ(strides(t), (std::vector<int64_t>{-4, 1, 0}));
  EXPECT_EQ(read<float>(t), (std::vector<float>{9, 9, 10, 10, 5, 5, 6, 6, 1, 1, 2, 2}));
  // What runs later reads what the memory holds then.
  memory[9] = 90;
  tiny_tensor* twice = binary(TINY_MUL, t, integer(2));
  tiny_tensor_release(t);
  EXPECT_EQ(given_back, 0);
  EXPECT_EQ(read<float>(twice)[0], 180);
  // Computed: nothing needs the memory any more.
  EXPECT_EQ(given_back, 1);
}

TEST_P(Values, MovementOfMemoryIsAView) {
  tiny_tensor* a = data<float>(TINY_FLOAT32, {4, 6}, std::vector<float>(24));
  const int64_t begin[] = {3, 0};
  const int64_t end[] = {INT64_MIN, INT64_MAX};
  const int64_t step[] = {-1, 4};
  tiny_tensor* b = made([&](tiny_tensor** o) { return tiny_slice(a, begin, end, step, 2, o); });
  EXPECT_EQ(shape(b), (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(strides(b), (std::vector<int64_t>{-6, 4}));
}

TEST_P(Values, HugeViewsCostNothingUntilTheyAreRead) {
  tiny_tensor* one = data<float>(TINY_FLOAT32, {1}, {2});
  const int64_t dims[] = {INT64_C(3) << 31, 5};
  tiny_tensor* huge = made([&](tiny_tensor** o) { return tiny_expand(one, dims, 2, o); });
  EXPECT_EQ(shape(huge), (std::vector<int64_t>{INT64_C(3) << 31, 5}));
  EXPECT_EQ(strides(huge), (std::vector<int64_t>{0, 0}));
  const int64_t begin[] = {-2, 3};
  const int64_t end[] = {INT64_MAX, INT64_MAX};
  tiny_tensor* corner =
      made([&](tiny_tensor** o) { return tiny_slice(huge, begin, end, nullptr, 2, o); });
  EXPECT_EQ(read<float>(binary(TINY_ADD, corner, scalar(1))), (std::vector<float>{3, 3, 3, 3}));
  const int64_t counted[] = {INT64_C(5) << 31};
  const int64_t zero[] = {0};
  float memory[1] = {7};
  tiny_tensor* wrapped = made([&](tiny_tensor** o) {
    return tiny_tensor_wrap(context_, TINY_FLOAT32, counted, zero, 1, memory, sizeof memory, 0, 0,
                            nullptr, nullptr, o);
  });
  int64_t count = 0;
  EXPECT_EQ(tiny_tensor_numel(wrapped, &count), TINY_OK);
  EXPECT_EQ(count, INT64_C(5) << 31);
}

TEST_P(Values, RealizedTensorsKeepTheirValuesAndShedTheirGraphs) {
  tiny_tensor* x = data<float>(TINY_FLOAT32, {2}, {1, 1});
  tiny_tensor* step = data<float>(TINY_FLOAT32, {2}, {1, 2});
  // A chain that would be a million nodes long if handles kept what computed them.
  tiny_tensor_retain(x);
  tiny_tensor* now = x;
  for (int i = 0; i < 2000; ++i) {
    tiny_tensor* next = nullptr;
    ASSERT_EQ(tiny_binary(TINY_ADD, now, step, &next), TINY_OK);
    tiny_tensor_release(now);
    now = next;
    ASSERT_EQ(tiny_realize(&now, 1), TINY_OK) << tiny_last_error();
  }
  EXPECT_EQ(read<float>(now), (std::vector<float>{2001, 4001}));
  tiny_tensor_release(now);
}

TEST_P(Values, SeveralAreRealizedTogether) {
  tiny_tensor* a = data<float>(TINY_FLOAT32, {3}, {1, 2, 3});
  tiny_tensor* list[] = {binary(TINY_ADD, a, a), reduce(TINY_SUM, a), integer(4)};
  EXPECT_EQ(tiny_realize(list, 3), TINY_OK) << tiny_last_error();
  EXPECT_EQ(read<float>(list[0]), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(read<float>(list[1]), (std::vector<float>{6}));
  // A number is as weak as before.
  EXPECT_EQ(dtype(binary(TINY_ADD, a, list[2])), "float32");
  EXPECT_EQ(tiny_realize(nullptr, 0), TINY_OK);
}

// Equal values are computed once and share memory until one of them is written to: what was read of
// the other before the write is read again behind it.
TEST_P(Values, AWriteToOneOfTwoEqualTensorsLeavesTheOther) {
  tiny_tensor* x = data<float>(TINY_FLOAT32, {4}, {1, 2, 3, 4});
  tiny_tensor* both[] = {binary(TINY_MUL, x, x), binary(TINY_MUL, x, x)};
  const std::vector<float> squares{1, 4, 9, 16};
  for (const size_t written : {size_t{0}, size_t{1}}) {
    ASSERT_EQ(tiny_realize(both, 2), TINY_OK) << tiny_last_error();
    const std::vector<float> before = read<float>(both[1 - written]);
    const int64_t begin = 0, end = 2;
    tiny_tensor* part = made(
        [&](tiny_tensor** o) { return tiny_slice(both[written], &begin, &end, nullptr, 1, o); });
    ASSERT_EQ(tiny_assign(part, data<float>(TINY_FLOAT32, {2}, {-1, -2})), TINY_OK);
    EXPECT_EQ(read<float>(both[written]), (std::vector<float>{-1, -2, 9, 16}));
    EXPECT_EQ(read<float>(both[1 - written]), before);
  }
}

// The same of a program that writes to one of the two in each run.
TEST_P(Values, AProgramThatWritesOneOfTwoEqualTensorsLeavesTheOther) {
  tiny_tensor* x = data<float>(TINY_FLOAT32, {4}, {1, 2, 3, 4});
  const int64_t begin = 0, end = 2;
  for (const bool is_read_first : {false, true}) {
    tiny_tensor* both[] = {binary(TINY_MUL, x, x), binary(TINY_MUL, x, x)};
    ASSERT_EQ(tiny_realize(both, 2), TINY_OK) << tiny_last_error();
    if (is_read_first) {
      EXPECT_EQ(read<float>(both[1]), (std::vector<float>{1, 4, 9, 16}));
    }
    tiny_tensor* step =
        made([&](tiny_tensor** o) { return tiny_input(context_, TINY_FLOAT32, &end, 1, o); });
    tiny_tensor* part =
        made([&](tiny_tensor** o) { return tiny_slice(both[0], &begin, &end, nullptr, 1, o); });
    ASSERT_EQ(tiny_assign(part, binary(TINY_ADD, part, step)), TINY_OK) << tiny_last_error();
    tiny_program* program = nullptr;
    ASSERT_EQ(tiny_program_compile(&step, 1, both, 1, &program), TINY_OK) << tiny_last_error();
    tiny_run* run = nullptr;
    ASSERT_EQ(tiny_run_create(program, &run), TINY_OK) << tiny_last_error();
    for (const float times : {1.f, 2.f}) {
      ASSERT_EQ(tiny_run_set_input(run, 0, data<float>(TINY_FLOAT32, {2}, {10, 20})), TINY_OK);
      ASSERT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
      EXPECT_EQ(read<float>(both[0]), (std::vector<float>{1 + times * 10, 4 + times * 20, 9, 16}));
      EXPECT_EQ(read<float>(both[1]), (std::vector<float>{1, 4, 9, 16}));
    }
    tiny_run_release(run);
    tiny_program_release(program);
  }
}

// .. and of a run whose result goes to one of them.
TEST_P(Values, ARunWhoseOutputIsOneOfTwoEqualTensorsLeavesTheOther) {
  const int64_t size = 4;
  tiny_tensor* x = data<float>(TINY_FLOAT32, {size}, {1, 2, 3, 4});
  tiny_tensor* in =
      made([&](tiny_tensor** o) { return tiny_input(context_, TINY_FLOAT32, &size, 1, o); });
  tiny_tensor* negative = unary(TINY_NEG, in);
  tiny_program* program = nullptr;
  ASSERT_EQ(tiny_program_compile(&in, 1, &negative, 1, &program), TINY_OK) << tiny_last_error();
  for (const size_t given : {size_t{0}, size_t{1}}) {
    tiny_tensor* both[] = {binary(TINY_MUL, x, x), binary(TINY_MUL, x, x)};
    ASSERT_EQ(tiny_realize(both, 2), TINY_OK) << tiny_last_error();
    EXPECT_EQ(read<float>(both[1 - given]), (std::vector<float>{1, 4, 9, 16}));
    tiny_run* run = nullptr;
    ASSERT_EQ(tiny_run_create(program, &run), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_set_input(run, 0, x), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_set_output(run, 0, both[given]), TINY_OK) << tiny_last_error();
    ASSERT_EQ(tiny_run_execute(run), TINY_OK) << tiny_last_error();
    EXPECT_EQ(read<float>(both[given]), (std::vector<float>{-1, -2, -3, -4}));
    EXPECT_EQ(read<float>(both[1 - given]), (std::vector<float>{1, 4, 9, 16}));
    tiny_run_release(run);
  }
  tiny_program_release(program);
}

INSTANTIATE_TEST_SUITE_P(Devices, Values, ::testing::Values("interp", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

namespace lent {

tiny_context* new_context() {
  tiny_context* context = nullptr;
  EXPECT_EQ(tiny_context_create(nullptr, &context), TINY_OK);
  return context;
}

float at(const tiny_tensor* tensor, int64_t i, int64_t j) {
  const void* data = nullptr;
  int64_t strides[2] = {};
  size_t rank = 0;
  EXPECT_EQ(tiny_tensor_data(tensor, &data), TINY_OK) << tiny_last_error();
  EXPECT_EQ(tiny_tensor_strides(tensor, strides, 2, &rank), TINY_OK);
  return static_cast<const float*>(data)[i * strides[0] + j * strides[1]];
}

}  // namespace lent

TEST(LentMemory, IsTheTensorsWhateverItsStrides) {
  tiny_context* context = lent::new_context();
  float memory[6] = {0, 1, 2, 3, 4, 5};
  const int64_t dims[] = {2, 3}, strides[] = {-3, 1}, axes[] = {1, 0}, column[] = {3, 1};
  tiny_tensor* wrapped = nullptr;
  tiny_tensor* turned = nullptr;
  tiny_tensor* sum = nullptr;
  tiny_tensor* full = nullptr;
  tiny_tensor* repeated = nullptr;
  ASSERT_EQ(tiny_tensor_wrap(context, TINY_FLOAT32, dims, strides, 2, memory, sizeof memory, 3, 0,
                             nullptr, nullptr, &wrapped),
            TINY_OK);
  const void* data = nullptr;
  ASSERT_EQ(tiny_tensor_data(wrapped, &data), TINY_OK);
  EXPECT_EQ(data, memory + 3);
  int64_t offset = -1;
  EXPECT_EQ(tiny_tensor_offset(wrapped, &offset), TINY_OK);
  EXPECT_EQ(offset, 3);
  const char* device = nullptr;
  EXPECT_EQ(tiny_tensor_device(wrapped, &device), TINY_OK);
  EXPECT_STREQ(device, "cpu");
  ASSERT_EQ(tiny_permute(wrapped, axes, 2, &turned), TINY_OK);
  EXPECT_EQ(lent::at(turned, 2, 0), 5);
  EXPECT_EQ(lent::at(turned, 1, 1), 1);
  // Computed by the call; views of it, and a constant, which gets memory.
  ASSERT_EQ(tiny_binary(TINY_ADD, turned, turned, &sum), TINY_OK);
  EXPECT_EQ(lent::at(sum, 2, 0), 10);
  const int64_t reversed[] = {0};
  tiny_tensor* flipped = nullptr;
  ASSERT_EQ(tiny_flip(sum, reversed, 1, &flipped), TINY_OK);
  EXPECT_EQ(lent::at(flipped, 0, 0), 10);
  ASSERT_EQ(tiny_full(context, TINY_FLOAT32, column, 2, 7, &full), TINY_OK);
  EXPECT_EQ(lent::at(full, 2, 0), 7);
  ASSERT_EQ(tiny_expand(full, dims + 1, 1, &repeated), TINY_ERROR_SHAPE);
  const int64_t wide[] = {3, 4};
  ASSERT_EQ(tiny_expand(full, wide, 2, &repeated), TINY_OK);
  EXPECT_EQ(lent::at(repeated, 2, 3), 7);
  tiny_tensor* scalar = nullptr;
  ASSERT_EQ(tiny_scalar_float(context, 1, &scalar), TINY_OK);
  EXPECT_EQ(tiny_tensor_data(scalar, &data), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(data, nullptr);
  const int64_t none[] = {0};
  tiny_tensor* empty = nullptr;
  ASSERT_EQ(tiny_full(context, TINY_FLOAT32, none, 1, 0, &empty), TINY_OK);
  EXPECT_EQ(tiny_tensor_data(empty, &data), TINY_OK) << tiny_last_error();
  EXPECT_EQ(data, nullptr);
  for (tiny_tensor* t : {wrapped, turned, sum, flipped, full, repeated, scalar, empty})
    tiny_tensor_release(t);
  tiny_context_release(context);
}

}  // namespace
