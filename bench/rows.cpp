#include "rows.h"

#include <cmath>

#include "engine.h"

namespace tiny::bench {
namespace {

void add(Row& row, std::vector<Contender> contenders) {
  for (Contender& contender : contenders) row.contenders.push_back(std::move(contender));
}

// tiny in the setting's context, and on one thread too where that has more.
void add_tiny(const Setting& setting, Row& row,
              const std::function<Problem(tiny_context*)>& problem) {
  row.threads = setting.threads;
  row.contenders.push_back(tiny_contender(
      row, "tiny", "tiny", "threads " + std::to_string(setting.threads), problem(setting.context)));
  if (setting.single)
    row.contenders.push_back(
        tiny_contender(row, "tiny, one thread", "single", "threads 1", problem(setting.single)));
}

struct GemmDtypes {
  tiny_dtype a, b;
};

GemmDtypes dtypes_of(Elements elements) {
  if (elements == Elements::kBfloat16) return {TINY_BFLOAT16, TINY_BFLOAT16};
  if (elements == Elements::kInt8) return {TINY_UINT8, TINY_INT8};
  return {TINY_FLOAT32, TINY_FLOAT32};
}

// Values that narrow elements hold exactly; their sums of products fit into float's 24 bits.
void fill(Gemm& gemm) {
  gemm.a = random_values(static_cast<size_t>(gemm.m * gemm.k), 1);
  gemm.b = random_values(static_cast<size_t>(gemm.k * gemm.n), 2);
  if (gemm.elements == Elements::kFloat32) return;
  for (float& value : gemm.a) value = std::floor(std::fabs(value) * 63);
  for (float& value : gemm.b) value = std::floor(value * 31);
}

Problem constant_gemm_problem(tiny_context* context, const Gemm& gemm) {
  const GemmDtypes types = dtypes_of(gemm.elements);
  const bool is_int8 = gemm.elements == Elements::kInt8;
  Problem problem;
  problem.context = context;
  problem.model.nodes = {{is_int8 ? "MatMulInteger" : "MatMul", {"a", "b"}, "c"}};
  problem.model.constants = {{"b", types.b, {gemm.k, gemm.n}, gemm.b}};
  problem.model.input = {"a", types.a, {gemm.m, gemm.k}};
  problem.model.output = {"c", is_int8 ? TINY_INT32 : types.a, {gemm.m, gemm.n}};
  problem.values.push_back(constant_of(context, types.a, {gemm.m, gemm.k}, gemm.a));
  return problem;
}

Problem gemm_problem(tiny_context* context, const Gemm& gemm) {
  if (gemm.is_constant) return constant_gemm_problem(context, gemm);
  const Dims a_dims{gemm.m, gemm.k};
  const Dims b_dims{gemm.k, gemm.n};
  Problem problem;
  problem.inputs.push_back(input_of(context, TINY_FLOAT32, a_dims));
  problem.inputs.push_back(input_of(context, TINY_FLOAT32, b_dims));
  tiny_tensor* product = nullptr;
  check(tiny_matmul(problem.inputs[0].get(), problem.inputs[1].get(), &product));
  problem.output.reset(product);
  problem.values.push_back(constant_of(context, TINY_FLOAT32, a_dims, gemm.a));
  problem.values.push_back(constant_of(context, TINY_FLOAT32, b_dims, gemm.b));
  return problem;
}

// The order of axes that brings the channels of a result or an input to the end, or back.
Dims to_last(size_t spatial) {
  return spatial == 1 ? Dims{0, 2, 1} : Dims{0, 2, 3, 1};
}
Dims to_second(size_t spatial) {
  return spatial == 1 ? Dims{0, 2, 1} : Dims{0, 3, 1, 2};
}

Dims shape_of(int64_t channels, const Dims& spatial, bool is_last) {
  Dims dims{1};
  if (!is_last) dims.push_back(channels);
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  if (is_last) dims.push_back(channels);
  return dims;
}

// Matrix [rows, columns] to [columns, rows].
std::vector<float> transposed(const std::vector<float>& from, size_t rows, size_t columns) {
  std::vector<float> out(from.size());
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) out[c * rows + r] = from[r * columns + c];
  return out;
}

OnnxNode conv_node(const std::string& x, const std::string& weight, const std::string& y,
                   size_t spatial, int64_t stride, int64_t padding, int64_t groups) {
  return {"Conv",
          {x, weight},
          y,
          {{"strides", Dims(spatial, stride)}, {"pads", Dims(2 * spatial, padding)}},
          {{"group", groups}}};
}

Dims weight_dims(const Convolution& conv) {
  Dims dims{conv.filters, conv.channels / conv.groups};
  dims.insert(dims.end(), conv.size.size(), conv.kernel);
  return dims;
}

// `is_last`: input and output have their channels last, as oneDNN's have the format it likes.
Problem convolution_problem(tiny_context* context, const Convolution& conv, bool is_last) {
  const size_t spatial = conv.size.size();
  const int64_t last = conv.pointwise > 0 ? conv.pointwise : conv.filters;
  Problem problem;
  problem.context = context;
  OnnxGraph& model = problem.model;
  model.input = {is_last ? "x_last" : "x", TINY_FLOAT32,
                 shape_of(conv.channels, conv.size, is_last)};
  model.output = {is_last ? "y_last" : "y", TINY_FLOAT32, shape_of(last, conv.out_size(), is_last)};
  if (is_last)
    model.nodes.push_back({"Transpose", {"x_last"}, "x", {{"perm", to_second(spatial)}}});
  const bool has_second = conv.pointwise > 0;
  model.constants.push_back({"w", TINY_FLOAT32, weight_dims(conv), conv.weight});
  model.nodes.push_back(conv_node("x", "w", has_second ? "between" : "y", spatial, conv.stride,
                                  conv.padding(), conv.groups));
  if (has_second) {
    Dims ones{conv.pointwise, conv.filters};
    ones.insert(ones.end(), spatial, 1);
    model.constants.push_back({"p", TINY_FLOAT32, ones, conv.pointwise_weight});
    model.nodes.push_back(conv_node("between", "p", "y", spatial, 1, 0, 1));
  }
  if (is_last) model.nodes.push_back({"Transpose", {"y"}, "y_last", {{"perm", to_last(spatial)}}});
  const auto channels = static_cast<size_t>(conv.channels);
  problem.values.push_back(
      constant_of(context, TINY_FLOAT32, model.input.dims,
                  is_last ? transposed(conv.x, channels, count_of(conv.size)) : conv.x));
  if (!is_last)
    problem.arrange = [columns = count_of(conv.out_size()),
                       rows = static_cast<size_t>(last)](const std::vector<float>& values) {
      return transposed(values, rows, columns);
    };
  return problem;
}

Problem pass_problem(tiny_context* context, const Pass& pass) {
  const Dims dims{pass.rows, pass.columns};
  Problem problem;
  Tensor x = input_of(context, TINY_FLOAT32, dims);
  problem.values.push_back(constant_of(context, TINY_FLOAT32, dims, pass.x));
  tiny_tensor* made = nullptr;
  if (pass.kind == Bandwidth::kSoftmax) {
    check(tiny_softmax(x.get(), 1, &made));
  } else if (pass.kind == Bandwidth::kLayerNorm) {
    const Tensor scale = constant_of(context, TINY_FLOAT32, {pass.columns}, pass.scale);
    const Tensor shift = constant_of(context, TINY_FLOAT32, {pass.columns}, pass.shift);
    check(tiny_layer_norm(x.get(), scale.get(), shift.get(), 1, kEpsilon, &made));
  } else {
    const auto combined = [&](tiny_binary_op op, const Tensor& a, float value) {
      tiny_tensor* out = nullptr;
      check(tiny_scalar_float(context, value, &out));
      const Tensor scalar(out);
      check(tiny_binary(op, a.get(), scalar.get(), &out));
      return Tensor(out);
    };
    const Tensor sum = combined(TINY_ADD, combined(TINY_MUL, x, kFactor), kBefore);
    check(tiny_unary(TINY_RELU, sum.get(), &made));
    const Tensor positive(made);
    made = combined(TINY_ADD, positive, kAfter).release();
  }
  problem.output.reset(made);
  problem.inputs.push_back(std::move(x));
  return problem;
}

}  // namespace

Row gemm_row(const Setting& setting, const std::string& name, Gemm& gemm) {
  fill(gemm);
  const auto m = static_cast<double>(gemm.m);
  const auto n = static_cast<double>(gemm.n);
  const auto k = static_cast<double>(gemm.k);
  const double width = gemm.elements == Elements::kFloat32    ? 4
                       : gemm.elements == Elements::kBfloat16 ? 2
                                                              : 1;
  const double bytes = width * (m * k + k * n) + 4 * m * n;
  Row row{name, 2 * m * n * k, bytes};
  if (gemm.elements == Elements::kBfloat16) row.tolerance = 2e-2;
  add_tiny(setting, row, [&](tiny_context* context) { return gemm_problem(context, gemm); });
  add(row, gemm_peers(gemm));
  row.contenders.push_back(fma_limit(row.flops, setting.threads, setting.is_wide));
  if (gemm.m < 16) {  // bound by how fast B can be read, too
    row.flops = 0;
    row.contenders.back().kind = "work limit";
    if (setting.threads == 1)
      row.contenders.push_back(read_limit(bytes));
    else
      add(row, read_limits(bytes, setting.threads));
  }
  return row;
}

Row convolution_row(const Setting& setting, const std::string& name, Convolution& conv) {
  const auto x_count = count_of(shape_of(conv.channels, conv.size, true));
  const auto y_count = count_of(shape_of(conv.filters, conv.out_size(), true));
  conv.x = random_values(x_count, 3);
  conv.weight = random_values(count_of(weight_dims(conv)), 4);
  const auto second = static_cast<size_t>(conv.pointwise * conv.filters);
  conv.pointwise_weight = random_values(second, 5);
  const double products = static_cast<double>(y_count) * static_cast<double>(conv.weight.size()) /
                          static_cast<double>(conv.filters);
  const double points = static_cast<double>(count_of(conv.out_size()));
  Row row{name, 2 * (products + points * static_cast<double>(second)),
          4.0 * static_cast<double>(x_count + y_count + conv.weight.size() + second)};
  add_tiny(setting, row,
           [&](tiny_context* context) { return convolution_problem(context, conv, true); });
  row.contenders.push_back(tiny_contender(row, "tiny, channels second", "other", "NCHW in and out",
                                          convolution_problem(setting.context, conv, false)));
  add(row, convolution_peers(conv));
  row.contenders.push_back(fma_limit(row.flops, setting.threads, setting.is_wide));
  return row;
}

Row pass_row(const Setting& setting, const std::string& name, Pass& pass) {
  const auto count = static_cast<size_t>(pass.rows * pass.columns);
  pass.x = random_values(count, 6);
  pass.scale = random_values(static_cast<size_t>(pass.columns), 7);
  pass.shift = random_values(static_cast<size_t>(pass.columns), 8);
  Row row{name, 0, 8 * static_cast<double>(count)};
  add_tiny(setting, row, [&](tiny_context* context) { return pass_problem(context, pass); });
  add(row, pass_peers(pass));
  add(row, copy_limits(row.bytes));
  return row;
}

}  // namespace tiny::bench
