// Every operation of tiny.h gives the same, whatever its operands are when it is called: values
// that were not computed yet, ones that were computed the moment before, or inputs of a program.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "tiny.h"

namespace {

using Ints = std::vector<int64_t>;
using Outputs = std::vector<tiny_tensor*>;

enum class State { Lazy, Realised, Placeholder };

// Makes the operands of one call, each in the state that is tried; keeps all handles.
class Operands {
 public:
  explicit Operands(State state) : state_(state) {
    tiny_options* options = nullptr;
    check(tiny_options_create(&options));
    check(tiny_options_set_string(options, "device", "interp"));
    check(tiny_options_set_int(options, "cache", 0));
    check(tiny_context_create(options, &context));
    tiny_options_release(options);
  }
  ~Operands() {
    for (tiny_tensor* t : handles_) tiny_tensor_release(t);
    tiny_context_release(context);
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  static void check(tiny_status status) { ASSERT_EQ(status, TINY_OK) << tiny_last_error(); }
  tiny_tensor* keep(tiny_status status, tiny_tensor* tensor) {
    check(status);
    handles_.push_back(tensor);
    return tensor;
  }

  // first, first + step, ..
  tiny_tensor* operand(tiny_dtype dtype, const Ints& dims, double first, double step) {
    tiny_tensor* value = count(dtype, dims, first, step);
    if (state_ == State::Realised) check(tiny_realize(&value, 1));
    if (state_ != State::Placeholder) return value;
    given_.push_back(value);
    tiny_tensor* out = nullptr;
    const tiny_status status = tiny_input(context, dtype, dims.data(), dims.size(), &out);
    inputs_.push_back(keep(status, out));
    return out;
  }
  tiny_tensor* floats(const Ints& dims) { return operand(TINY_FLOAT32, dims, 0.25, 0.5); }
  // 0, 1, .. as positions.
  tiny_tensor* key() { return operand(TINY_UINT32, {2}, 3, 1); }
  tiny_tensor* positions(const Ints& dims) { return operand(TINY_INT64, dims, 0, 1); }

  // The bytes of the values, by a program where operands are its inputs.
  std::vector<std::string> read(const Outputs& outputs) {
    return inputs_.empty() ? read_values(outputs) : read_run(outputs);
  }

  tiny_context* context = nullptr;

 private:
  // Lazy: numbers from one on, stretched and moved, with the dtype in the end.
  tiny_tensor* count(tiny_dtype dtype, const Ints& dims, double first, double step) {
    const int64_t n = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
    tiny_tensor* out = nullptr;
    tiny_status status = tiny_arange(context, TINY_FLOAT32, n, &out);
    tiny_tensor* value = keep(status, out);
    for (const auto& [op, number] : {std::pair{TINY_MUL, step}, std::pair{TINY_ADD, first}}) {
      status = tiny_scalar_float(context, number, &out);
      const tiny_tensor* scalar = keep(status, out);
      status = tiny_binary(op, value, scalar, &out);
      value = keep(status, out);
    }
    status = tiny_cast(value, dtype, &out);
    value = keep(status, out);
    status = tiny_reshape(value, dims.data(), dims.size(), &out);
    return keep(status, out);
  }
  static size_t bytes_of(const tiny_tensor* tensor) {
    int64_t n = 0;
    tiny_dtype dtype = 0;
    check(tiny_tensor_numel(tensor, &n));
    check(tiny_tensor_dtype(tensor, &dtype));
    return static_cast<size_t>(n) * tiny_dtype_size(dtype);
  }
  static std::vector<std::string> read_values(const Outputs& outputs) {
    std::vector<std::string> values;
    for (const tiny_tensor* t : outputs) {
      values.emplace_back(bytes_of(t), '\0');
      check(tiny_tensor_read(t, values.back().data(), values.back().size()));
    }
    return values;
  }
  std::vector<std::string> read_run(const Outputs& outputs) {
    tiny_program* program = nullptr;
    tiny_run* run = nullptr;
    check(tiny_program_compile(inputs_.data(), inputs_.size(), outputs.data(), outputs.size(),
                               &program));
    check(tiny_run_create(program, &run));
    for (size_t i = 0; i < given_.size(); ++i) check(tiny_run_set_input(run, i, given_[i]));
    check(tiny_run_execute(run));
    std::vector<std::string> values;
    for (size_t i = 0; i < outputs.size(); ++i) {
      values.emplace_back(bytes_of(outputs[i]), '\0');
      check(tiny_run_read_output(run, i, values.back().data(), values.back().size()));
    }
    tiny_run_release(run);
    tiny_program_release(program);
    return values;
  }

  State state_;
  Outputs handles_;
  Outputs given_;
  Outputs inputs_;
};

// What a case does: calls its function once on operands that it asks for.
using Call = Outputs (*)(Operands&);

// The result of `function` with these arguments before its last, the out-parameter.
#define MADE(function, ...)                                   \
  [&]() -> Outputs {                                          \
    tiny_tensor* out_ = nullptr;                              \
    const tiny_status status_ = function(__VA_ARGS__, &out_); \
    return {o.keep(status_, out_)};                           \
  }()

constexpr int64_t kOnes[] = {1, 1};
constexpr int64_t kTwos[] = {2, 2};
constexpr int64_t kZeros[] = {0, 0};

Outputs case_tensor_from_data(Operands& o) {
  const float data[] = {1, 2};
  return MADE(tiny_tensor_from_data, o.context, TINY_FLOAT32, kTwos, 1, data, sizeof data);
}
Outputs case_tensor_wrap(Operands& o) {
  static float data[] = {1, 2};
  return MADE(tiny_tensor_wrap, o.context, TINY_FLOAT32, kTwos, nullptr, 1, data, sizeof data, 0, 0,
              nullptr, nullptr);
}
Outputs case_scalar_float(Operands& o) {
  return MADE(tiny_scalar_float, o.context, 0.5);
}
Outputs case_scalar_int(Operands& o) {
  return MADE(tiny_scalar_int, o.context, 7);
}
Outputs case_full(Operands& o) {
  return MADE(tiny_full, o.context, TINY_FLOAT32, kTwos, 2, 0.5);
}
Outputs case_arange(Operands& o) {
  return MADE(tiny_arange, o.context, TINY_INT32, 5);
}
Outputs case_reshape(Operands& o) {
  const int64_t dims[] = {3, -1};
  return MADE(tiny_reshape, o.floats({2, 3}), dims, 2);
}
Outputs case_permute(Operands& o) {
  const int64_t axes[] = {1, 0};
  return MADE(tiny_permute, o.floats({2, 3}), axes, 2);
}
Outputs case_expand(Operands& o) {
  const int64_t dims[] = {2, -1, 3};
  return MADE(tiny_expand, o.floats({2, 1}), dims, 3);
}
Outputs case_flip(Operands& o) {
  return MADE(tiny_flip, o.floats({2, 3}), kOnes, 1);
}
Outputs case_pad(Operands& o) {
  return MADE(tiny_pad, o.floats({2, 3}), kOnes, kTwos, 2, 0.5);
}
Outputs case_slice(Operands& o) {
  const int64_t end[] = {2, 3};
  return MADE(tiny_slice, o.floats({2, 3}), kZeros, end, kTwos, 2);
}
Outputs case_as_strided(Operands& o) {
  return MADE(tiny_as_strided, o.floats({2, 3}), kTwos, kOnes, 2, 1);
}
Outputs case_empty_strided(Operands& o) {
  const int64_t dims[] = {2, 3};
  const int64_t strides[] = {-1, 4};
  tiny_tensor* made = nullptr;
  const tiny_status status = tiny_empty_strided(o.context, TINY_FLOAT32, dims, strides, 2, &made);
  o.keep(status, made);
  Operands::check(tiny_assign(made, o.floats({2, 3})));
  return {made};
}
Outputs case_apply_movement_op(Operands& o) {
  const int64_t steps[] = {-1, 2};
  return MADE(tiny_apply_movement_op, o.floats({2, 3}), TINY_MOVEMENT_STRIDE, steps, 2);
}
Outputs case_cast(Operands& o) {
  return MADE(tiny_cast, o.floats({2, 3}), TINY_INT32);
}
Outputs case_bitcast(Operands& o) {
  return MADE(tiny_bitcast, o.floats({2, 3}), TINY_INT32);
}
Outputs case_where(Operands& o) {
  return MADE(tiny_where, o.operand(TINY_BOOL, {2, 3}, -2, 1), o.floats({2, 3}), o.floats({3}));
}
Outputs case_contiguous(Operands& o) {
  return MADE(tiny_contiguous, o.floats({2, 3}));
}
Outputs case_concat(Operands& o) {
  tiny_tensor* parts[] = {o.floats({2, 3}), o.floats({2, 1})};
  return MADE(tiny_concat, parts, 2, -1);
}
Outputs case_matmul(Operands& o) {
  return MADE(tiny_matmul, o.floats({2, 3}), o.floats({3, 2}));
}
Outputs case_squeeze(Operands& o) {
  return MADE(tiny_squeeze, o.floats({2, 1, 3}), nullptr, 0);
}
Outputs case_unsqueeze(Operands& o) {
  return MADE(tiny_unsqueeze, o.floats({2, 3}), kOnes, 1);
}
Outputs case_tile(Operands& o) {
  return MADE(tiny_tile, o.floats({2, 3}), kTwos, 2);
}
Outputs case_stack(Operands& o) {
  tiny_tensor* parts[] = {o.floats({2, 3}), o.floats({2, 3})};
  return MADE(tiny_stack, parts, 2, 1);
}
Outputs case_split(Operands& o) {
  const int64_t sizes[] = {1, 2};
  Outputs parts(2);
  const tiny_status status = tiny_split(o.floats({2, 3}), 1, sizes, 2, parts.data(), 2);
  for (tiny_tensor* part : parts) o.keep(status, part);
  return parts;
}
Outputs case_depth_to_space(Operands& o) {
  return MADE(tiny_depth_to_space, o.floats({1, 4, 2, 2}), 2, TINY_FLAG_COLUMNS_FIRST);
}
Outputs case_space_to_depth(Operands& o) {
  return MADE(tiny_space_to_depth, o.floats({1, 2, 2, 4}), 2);
}
Outputs case_gather(Operands& o) {
  return MADE(tiny_gather, o.floats({4, 2}), o.positions({3}), 0);
}
Outputs case_take_along_axis(Operands& o) {
  return MADE(tiny_take_along_axis, o.floats({2, 4}), o.positions({1, 4}), 1);
}
Outputs case_gather_nd(Operands& o) {
  return MADE(tiny_gather_nd, o.floats({3, 4}), o.positions({1, 2}), 0);
}
Outputs case_one_hot(Operands& o) {
  return MADE(tiny_one_hot, o.positions({3}), 4, o.floats({}), o.floats({}), -1);
}
Outputs case_argmax(Operands& o) {
  return MADE(tiny_argmax, o.floats({2, 3}), 1, 0);
}
Outputs case_argmin(Operands& o) {
  return MADE(tiny_argmin, o.floats({2, 3}), 1, TINY_FLAG_KEEPDIMS | TINY_FLAG_LAST);
}
Outputs case_cumsum(Operands& o) {
  return MADE(tiny_cumsum, o.floats({2, 3}), 1, TINY_FLAG_REVERSE);
}
Outputs case_triu(Operands& o) {
  return MADE(tiny_triu, o.floats({3, 3}), 1);
}
Outputs case_tril(Operands& o) {
  return MADE(tiny_tril, o.floats({3, 3}), -1);
}
Outputs case_gelu(Operands& o) {
  return MADE(tiny_gelu, o.floats({2, 3}), TINY_FLAG_APPROXIMATE);
}
Outputs case_elu(Operands& o) {
  return MADE(tiny_elu, o.operand(TINY_FLOAT32, {4}, -2, 1), 0.5);
}
Outputs case_leaky_relu(Operands& o) {
  return MADE(tiny_leaky_relu, o.operand(TINY_FLOAT32, {4}, -2, 1), 0.5);
}
Outputs case_hard_sigmoid(Operands& o) {
  return MADE(tiny_hard_sigmoid, o.operand(TINY_FLOAT32, {4}, -2, 1), 0.2, 0.5);
}
Outputs case_clip(Operands& o) {
  return MADE(tiny_clip, o.floats({2, 3}), o.floats({3}), o.floats({2, 1}));
}
Outputs case_softmax(Operands& o) {
  return MADE(tiny_softmax, o.floats({2, 3}), 1);
}
Outputs case_log_softmax(Operands& o) {
  return MADE(tiny_log_softmax, o.floats({2, 3}), 0);
}
Outputs case_variance(Operands& o) {
  return MADE(tiny_variance, o.floats({2, 3}), kOnes, 1, 1, TINY_FLAG_KEEPDIMS);
}
// Of two by two elements, two apart, with all else that a window can say, but for its layout.
class Windows {
 public:
  Windows() {
    Operands::check(tiny_window_create(2, &window));
    Operands::check(tiny_window_set_kernel(window, kTwos, 2));
    Operands::check(tiny_window_set_strides(window, kTwos, 2));
    Operands::check(tiny_window_set_dilations(window, kOnes, 2));
    Operands::check(tiny_window_set_padding(window, kOnes, kZeros, 2));
    Operands::check(tiny_window_set_output_padding(window, kOnes, 2));
    Operands::check(tiny_window_set_flags(window, TINY_FLAG_CEIL_MODE));
  }
  ~Windows() { tiny_window_release(window); }
  Windows(const Windows&) = delete;
  Windows& operator=(const Windows&) = delete;

  tiny_window* window = nullptr;
};

Outputs case_conv(Operands& o) {
  const Windows w;
  return MADE(tiny_conv, o.floats({1, 2, 4, 4}), o.floats({2, 2, 2, 2}), o.floats({2}), w.window);
}
Outputs case_conv_transpose(Operands& o) {
  const Windows w;
  return MADE(tiny_conv_transpose, o.floats({1, 2, 3, 3}), o.floats({2, 2, 2, 2}), o.floats({2}),
              w.window);
}
Outputs case_windows(Operands& o) {
  const Windows w;
  return MADE(tiny_windows, o.floats({1, 2, 4, 4}), w.window);
}
Outputs case_max_pool(Operands& o) {
  const Windows w;
  return MADE(tiny_max_pool, o.floats({1, 2, 4, 4}), w.window);
}
Outputs case_max_pool_indices(Operands& o) {
  const Windows w;
  return MADE(tiny_max_pool_indices, o.floats({1, 2, 4, 4}), w.window);
}
Outputs case_avg_pool(Operands& o) {
  const Windows w;
  return MADE(tiny_avg_pool, o.floats({1, 2, 4, 4}), w.window);
}
Outputs case_batch_norm(Operands& o) {
  return MADE(tiny_batch_norm, o.floats({2, 3, 2}), o.floats({3}), o.floats({3}), o.floats({3}),
              o.floats({3}), 0.5);
}
Outputs case_layer_norm(Operands& o) {
  return MADE(tiny_layer_norm, o.floats({2, 3}), o.floats({3}), o.floats({3}), -1, 0.5);
}
Outputs case_rms_norm(Operands& o) {
  return MADE(tiny_rms_norm, o.floats({2, 3}), o.floats({3}), -1, 0.5);
}
Outputs case_group_norm(Operands& o) {
  return MADE(tiny_group_norm, o.floats({2, 4, 2}), 2, o.floats({4}), o.floats({4}), 0.5);
}
Outputs case_instance_norm(Operands& o) {
  return MADE(tiny_instance_norm, o.floats({2, 3, 2}), o.floats({3}), o.floats({3}), 0.5);
}
Outputs case_lrn(Operands& o) {
  return MADE(tiny_lrn, o.floats({2, 5, 3}), 3, 0.5, 0.75, 2);
}

Outputs case_cross_entropy(Operands& o) {
  return MADE(tiny_cross_entropy, o.floats({2, 3}), o.positions({2}), o.floats({3}), 1, 0.25,
              TINY_REDUCTION_MEAN);
}
Outputs case_nll_loss(Operands& o) {
  return MADE(tiny_nll_loss, o.floats({2, 3}), o.positions({2}), nullptr, -100,
              TINY_REDUCTION_NONE);
}
Outputs case_ctc_loss(Operands& o) {
  return MADE(tiny_ctc_loss, o.floats({3, 2, 4}), o.positions({2, 2}), o.positions({2}),
              o.positions({2}), 0, TINY_REDUCTION_NONE, TINY_FLAG_ZERO_INFINITY);
}
Outputs case_mse_loss(Operands& o) {
  return MADE(tiny_mse_loss, o.floats({2, 3}), o.floats({3}), TINY_REDUCTION_SUM);
}
Outputs case_l1_loss(Operands& o) {
  return MADE(tiny_l1_loss, o.floats({2, 3}), o.floats({3}), TINY_REDUCTION_NONE);
}
Outputs case_smooth_l1_loss(Operands& o) {
  return MADE(tiny_smooth_l1_loss, o.floats({2, 3}), o.floats({3}), 0.5, TINY_REDUCTION_NONE);
}
Outputs case_huber_loss(Operands& o) {
  return MADE(tiny_huber_loss, o.floats({2, 3}), o.floats({3}), 0.5, TINY_REDUCTION_NONE);
}
Outputs case_binary_cross_entropy(Operands& o) {
  return MADE(tiny_binary_cross_entropy, o.operand(TINY_FLOAT32, {2, 3}, 0.125, 0.125),
              o.floats({3}), TINY_REDUCTION_NONE);
}
Outputs case_binary_cross_entropy_with_logits(Operands& o) {
  return MADE(tiny_binary_cross_entropy_with_logits, o.floats({2, 3}), o.floats({3}), o.floats({3}),
              TINY_REDUCTION_NONE);
}
Outputs case_kl_div(Operands& o) {
  return MADE(tiny_kl_div, o.floats({2, 3}), o.floats({3}), 1, TINY_REDUCTION_NONE);
}

Outputs case_initialize(Operands& o) {
  return MADE(tiny_initialize, o.key(), TINY_INITIAL_UNIFORM, -1, 1, TINY_FLOAT32, kTwos, 2);
}
Outputs case_random_key(Operands& o) {
  return MADE(tiny_random_key, o.context, 7);
}
Outputs case_random_split(Operands& o) {
  return MADE(tiny_random_split, o.key(), 2);
}
Outputs case_random_bits(Operands& o) {
  return MADE(tiny_random_bits, o.key(), 5);
}
Outputs case_random_at(Operands& o) {
  return MADE(tiny_random_at, o.key(), o.key());
}
Outputs case_random_uniform(Operands& o) {
  return MADE(tiny_random_uniform, o.key(), TINY_FLOAT32, kTwos, 2);
}
Outputs case_random_normal(Operands& o) {
  return MADE(tiny_random_normal, o.key(), TINY_FLOAT32, kTwos, 2);
}
Outputs case_random_integers(Operands& o) {
  return MADE(tiny_random_integers, o.key(), TINY_INT32, kTwos, 2, -3, 9);
}
Outputs case_random_permutation(Operands& o) {
  return MADE(tiny_random_permutation, o.key(), 6);
}
Outputs case_random_bernoulli(Operands& o) {
  return MADE(tiny_random_bernoulli, o.key(), o.floats({2, 3}));
}
Outputs case_random_truncated_normal(Operands& o) {
  return MADE(tiny_random_truncated_normal, o.key(), TINY_FLOAT32, kTwos, 2, -1, 2);
}
Outputs case_random_multinomial(Operands& o) {
  return MADE(tiny_random_multinomial, o.key(), o.operand(TINY_FLOAT32, {2, 4}, 1, 1), 3, 1);
}
Outputs case_dropout(Operands& o) {
  return MADE(tiny_dropout, o.key(), o.floats({2, 3}), 0.25);
}
Outputs case_detach(Operands& o) {
  return MADE(tiny_detach, o.floats({2, 3}));
}
Outputs case_clone(Operands& o) {
  return MADE(tiny_clone, o.floats({2, 3}));
}
Outputs case_recompute(Operands& o) {
  tiny_tensor* kept[] = {o.floats({2, 3})};
  return MADE(tiny_recompute, kept[0], kept, 1);
}

bool is_of_integers(tiny_binary_op op) {
  return op == TINY_AND || op == TINY_OR || op == TINY_XOR || op == TINY_SHL || op == TINY_SHR;
}

// A row of functions.def without a case does not compile.
const std::map<std::string, Call>& cases() {
  static const auto& all = *new std::map<std::string, Call>{
#define FUNCTION(name, parameters, meaning) {#name, case_##name},
#include "api/functions.def"
#define UNARY(name, function)                                                                   \
  {"unary_" #name, [](Operands& o) {                                                            \
     return MADE(tiny_unary, TINY_##name,                                                       \
                 o.operand(TINY_##name == TINY_NOT ? TINY_INT32 : TINY_FLOAT32, {2, 3}, 1, 1)); \
   }},
#define BINARY(name, function)                                                         \
  {"binary_" #name, [](Operands& o) {                                                  \
     const tiny_dtype dtype = is_of_integers(TINY_##name) ? TINY_INT32 : TINY_FLOAT32; \
     return MADE(tiny_binary, TINY_##name, o.operand(dtype, {2, 3}, 1, 1),             \
                 o.operand(dtype, {3}, 1, 1));                                         \
   }},
#define COMPARE(name, function) \
  {"compare_" #name,            \
   [](Operands& o) { return MADE(tiny_compare, TINY_##name, o.floats({2, 3}), o.floats({3})); }},
#define REDUCE(name, function)                                                              \
  {"reduce_" #name, [](Operands& o) {                                                       \
     return MADE(tiny_reduce, TINY_##name, o.operand(TINY_FLOAT32, {2, 3}, 1, 1), kOnes, 1, \
                 TINY_FLAG_KEEPDIMS);                                                       \
   }},
#include "api/families.def"
  };
  return all;
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, call] : cases()) all.push_back(name);
  return all;
}

class Operation : public ::testing::TestWithParam<std::string> {
 protected:
  static std::vector<std::string> values(State state) {
    Operands operands(state);
    const Outputs outputs = cases().at(GetParam())(operands);
    if (HasFailure()) return {};
    return operands.read(outputs);
  }
};

TEST_P(Operation, TakesValuesThatWereJustComputed) {
  EXPECT_EQ(values(State::Realised), values(State::Lazy));
}

TEST_P(Operation, TakesInputsOfPrograms) {
  EXPECT_EQ(values(State::Placeholder), values(State::Lazy));
}

INSTANTIATE_TEST_SUITE_P(All, Operation, ::testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

}  // namespace
