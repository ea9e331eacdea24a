// Random numbers: functions of a key (tensor/random.h) that tells the execution, the rounds of the
// loops around the node, and either the node's own seed or the model's and the node's place.
#include "tensor/random.h"

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

// The key of what this node draws, other in each execution and round; by the attribute seed where
// it has one.
Tensor key_of(Call& c) {
  const Attribute* a = c.any_attribute("seed");
  if (!a) return c.importer().random_key(std::nullopt);
  const bool is_int = a->type == AttributeType::Int && !a->is_bare;
  return c.importer().random_key(is_int ? static_cast<double>(a->i)
                                        : static_cast<double>(c.real_attr("seed", 0)));
}

// What a node draws in: float32 where the dtype has no numbers of its own.
DType drawn_in(DType dtype) {
  return dtype.is_float() ? dtype : kFloat32;
}

// mean + scale * what is drawn.
Tensor normal_of(Call& c, DType dtype, const Shape& shape) {
  c.check(dtype.is_float(), "its dtype is ", dtype);
  const Tensor drawn = random_normal(key_of(c), dtype, shape);
  return drawn * number(drawn, static_cast<double>(c.real_attr("scale", 1))) +
         number(drawn, static_cast<double>(c.real_attr("mean", 0)));
}

// From `low` to below `high`.
Tensor uniform_of(Call& c, DType dtype, const Shape& shape) {
  c.check(dtype.is_float(), "its dtype is ", dtype);
  const auto low = static_cast<double>(c.real_attr("low", 0));
  const auto high = static_cast<double>(c.real_attr("high", 1));
  const Tensor drawn = random_uniform(key_of(c), dtype, shape);
  return drawn * number(drawn, high - low) + number(drawn, low);
}

Shape shape_attr(Call& c) {
  const auto shape = c.ints_attr("shape");
  c.check(shape.has_value(), "the attribute shape is missing");
  return to_shape(*shape);
}

Tensors import_normal(Call& c) {
  return {normal_of(c, c.dtype_attr("dtype", kFloat32), shape_attr(c))};
}

Tensors import_uniform(Call& c) {
  return {uniform_of(c, c.dtype_attr("dtype", kFloat32), shape_attr(c))};
}

Tensors import_normal_like(Call& c) {
  return {normal_of(c, c.dtype_attr("dtype", c.in(0).dtype()), c.in(0).shape())};
}

Tensors import_uniform_like(Call& c) {
  return {uniform_of(c, c.dtype_attr("dtype", c.in(0).dtype()), c.in(0).shape())};
}

Tensors import_bernoulli(Call& c) {
  const Tensor& p = c.in(0);
  const Tensor drawn = random_uniform(key_of(c), drawn_in(p.dtype()), p.shape());
  return {cast(less(drawn, p), c.dtype_attr("dtype", p.dtype()))};
}

// Of logarithms of what is proportional to probabilities.
Tensors import_multinomial(Call& c) {
  const Tensor& x = c.in(0);
  c.check(x.rank() == 2, "it takes rows of logarithms; got shape ", x.shape());
  const int64_t count = c.attr("sample_size", 1);
  c.check(count > 0, "sample_size is ", count);
  const Tensor weights = exp(x - max(x, {1}, true));
  return {cast(random_multinomial(key_of(c), weights, count, true), c.dtype_attr("dtype", kInt32))};
}

// ---- Dropout.

// x as training sees it, and which elements stay.
struct Dropped {
  Tensor x;
  Tensor is_kept;
};
Dropped dropped(Call& c, const Tensor& x, const Tensor& ratio) {
  const Tensor share = cast(ratio, kFloat32);
  const Tensor one = number(share, 1);
  const Tensor drawn = random_uniform(key_of(c), kFloat32, x.shape());
  const Tensor is_kept = less_equal(share, drawn);
  // A ratio of 1 keeps nothing, whatever it would be divided by.
  const Tensor scale = where(less(share, one), one / (one - share), number(share, 0));
  return {where(is_kept, x * cast(scale, x.dtype()), number(x, 0)), is_kept};
}

Dropped undropped(const Tensor& x) {
  return {x, full(x.context_ref(), kBool, x.shape(), 1)};
}

// By inputs that say the ratio and whether it trains.
Dropped dropped_if_training(Call& c, const Tensor& x, size_t ratio_input, size_t training_input) {
  const Dropped all{undropped(x)};
  const bool may_train =
      c.has(training_input) && (!c.known(training_input) || c.integer(training_input) != 0);
  const bool is_nothing = c.has(ratio_input) && c.known(ratio_input) && c.real(ratio_input) == 0;
  if (!may_train || is_nothing) {
    c.pass_over({"seed"});
    return all;
  }
  constexpr double kRatio = 0.5;
  const Tensor ratio = c.has(ratio_input) ? reshape(c.in(ratio_input), Shape())
                                          : full(c.context(), kFloat32, {}, kRatio);
  const Dropped some = dropped(c, x, ratio);
  if (c.known(training_input)) return some;
  const Tensor trains = cast(reshape(c.in(training_input), Shape()), kBool);
  return {where(trains, some.x, x), where(trains, some.is_kept, all.is_kept)};
}

Tensors import_dropout(Call& c) {
  const Dropped made = dropped_if_training(c, c.in(0), 1, 2);
  return {made.x, made.is_kept};
}

// Versions that train unless `is_test` is set, and whose mask has the type of x.
Tensors import_dropout_test(Call& c) {
  const Tensor& x = c.in(0);
  const float ratio = c.real_attr("ratio", 0.5f);
  const bool trains = !c.flag("is_test", false) && ratio != 0;
  const Dropped made =
      trains ? dropped(c, x, full(c.context(), kFloat32, {}, ratio)) : undropped(x);
  return {made.x, cast(made.is_kept, x.dtype())};
}

// Versions that never train.
Tensors import_dropout_attribute(Call& c) {
  c.pass_over({"ratio"});
  const Dropped made = undropped(c.in(0));
  return {made.x, c.version() < 10 ? cast(made.is_kept, made.x.dtype()) : made.is_kept};
}

// Inputs: x, a bias, what is added, a ratio, whether it trains.
Tensors import_bias_dropout(Call& c) {
  const Dropped made = dropped_if_training(c, c.in(0) + c.in(1), 3, 4);
  return {c.has(2) ? made.x + c.in(2) : made.x, made.is_kept};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"Bernoulli",         15, kNow, import_bernoulli},
    {"BiasDropout",       1,  1,    import_bias_dropout, operand(4), nullptr, kContributed},
    {"Dropout",           1,  6,    import_dropout_test},
    {"Dropout",           7,  11,   import_dropout_attribute},
    {"Dropout",           12, kNow, import_dropout, operand(1) | operand(2)},
    {"Multinomial",       7,  kNow, import_multinomial},
    {"RandomNormal",      1,  kNow, import_normal},
    {"RandomNormalLike",  1,  kNow, import_normal_like},
    {"RandomUniform",     1,  kNow, import_uniform},
    {"RandomUniformLike", 1,  kNow, import_uniform_like},
};
// clang-format on

}  // namespace

bool draws_numbers(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    const Row* row = find_row(node.domain, node.op_type, node.version);
    const bool is_one = row && std::ranges::any_of(kRows, [&](const Row& r) { return &r == row; });
    return is_one || std::ranges::any_of(node.attributes, [](const Attribute& a) {
             return std::ranges::any_of(a.graphs, draws_numbers);
           });
  });
}

std::span<const Row> random_rows() {
  return kRows;
}

}  // namespace tiny::onnx
