// Linear models and support vectors of ai.onnx.ml.
#include <numeric>

#include "base/checked.h"
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/ml.h"
#include "onnx/import/table.h"
#include "tensor/activation.h"
#include "tensor/control.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

// Rows of features as float32; one row may come without its axis.
Tensor rows_of(const Call& c) {
  const Tensor& x = c.in(0);
  c.check(x.rank() == 1 || x.rank() == 2, "it takes rows of features; got shape ", x.shape());
  const Tensor real = cast(x, kFloat32);
  return x.rank() == 1 ? unsqueeze(real, {0}) : real;
}

// Numbers of an attribute as rows of so many columns.
Tensor rows_attr(const Call& c, const Tensor& like, const char* name, int64_t columns) {
  const std::vector<double> values = reals_attr(c, name);
  const auto count = static_cast<int64_t>(values.size());
  c.check(columns > 0 && count > 0 && count % columns == 0, "the attribute ", name, " has ", count,
          " numbers for rows of ", columns);
  return real_constant(like, kFloat32, {count / columns, columns}, values);
}

// x times the coefficients of each target, and the intercepts.
Tensor linear_scores(const Call& c, const Tensor& x) {
  const Tensor coefficients = rows_attr(c, x, "coefficients", dim_of(x, 1));
  const Tensor y = matmul(x, transpose(coefficients, 0, 1));
  const std::vector<double> intercepts = reals_attr(c, "intercepts");
  if (intercepts.empty()) return y;
  c.check(std::ssize(intercepts) == dim_of(coefficients, 0), intercepts.size(), " intercepts for ",
          dim_of(coefficients, 0), " targets");
  return y + real_constant(x, kFloat32, {std::ssize(intercepts)}, intercepts);
}

Tensors import_linear_regressor(Call& c) {
  const Tensor y = linear_scores(c, rows_of(c));
  const int64_t targets = c.attr("targets", 1);
  c.check(targets == dim_of(y, 1), "the attribute targets is ", targets, " for coefficients of ",
          dim_of(y, 1));
  return {post_transformed(c, y)};
}

Tensors import_linear_classifier(Call& c) {
  c.pass_over({"multi_class"});
  const ClassLabels labels(c, "classlabels_ints", "classlabels_strings");
  const Tensor scores = linear_scores(c, rows_of(c));
  if (dim_of(scores, 1) > 1) return labels.of(scores, post_transformed(c, scores));
  return labels.of_two(scores, 0, both_scores(c, scores, true));
}

// ---- Support vectors.

enum class Kernel : uint8_t { Linear, Poly, Rbf, Sigmoid };
constexpr Named<Kernel> kKernels[] = {{"LINEAR", Kernel::Linear},
                                      {"POLY", Kernel::Poly},
                                      {"RBF", Kernel::Rbf},
                                      {"SIGMOID", Kernel::Sigmoid}};

// How alike rows of x and vectors are: [rows, vectors].
Tensor kernel_of(const Call& c, const Tensor& x, const Tensor& vectors) {
  const auto kernel = named_attr<Kernel>(c, "kernel_type", "LINEAR", kKernels);
  const std::vector<float> given = c.floats_attr("kernel_params");
  c.check(given.empty() || given.size() == 3, "the attribute kernel_params has ", given.size(),
          " numbers and needs 3");
  const auto parameter = [&](size_t i) {
    return number(x, given.empty() ? 0 : static_cast<double>(given[i]));
  };
  if (kernel == Kernel::Rbf) {
    const Tensor apart = square(unsqueeze(x, {1}) - unsqueeze(vectors, {0}));
    return exp(neg(parameter(0)) * sum(apart, {2}));
  }
  const Tensor product = matmul(x, transpose(vectors, 0, 1));
  if (kernel == Kernel::Linear) return product;
  const Tensor moved = parameter(0) * product + parameter(1);
  return kernel == Kernel::Poly ? pow(moved, parameter(2)) : tanh(moved);
}

Tensors import_svm_regressor(Call& c) {
  const Tensor x = rows_of(c);
  const int64_t vectors = c.attr("n_supports", 0);
  const std::vector<double> rho = reals_attr(c, "rho");
  c.check(!rho.empty(), "it needs the attribute rho");
  Tensor seen = x;
  if (vectors > 0) {
    const Tensor support = rows_attr(c, x, "support_vectors", dim_of(x, 1));
    c.check(dim_of(support, 0) == vectors, dim_of(support, 0), " support vectors, not ", vectors);
    seen = kernel_of(c, x, support);
  } else {
    c.pass_over({"kernel_type", "kernel_params", "support_vectors"});
  }
  const Tensor coefficients = rows_attr(c, x, "coefficients", dim_of(seen, 1));
  c.check(dim_of(coefficients, 0) == 1, "coefficients of ", dim_of(coefficients, 0), " results");
  const Tensor y = matmul(seen, transpose(coefficients, 0, 1)) + number(x, rho[0]);
  if (!c.flag("one_class", false)) return {post_transformed(c, y)};
  return {where(greater(y, number(y, 0)), number(y, 1), number(y, -1))};
}

// The probabilities of classes from those of one of each two, r [rows, classes, classes] (Wu, Lin
// and Weng 2004, the second method, as libsvm goes about it).
Tensor coupled(Call& c, const Tensor& r, int64_t classes) {
  const Ref<Context>& context = r.context_ref();
  const Tensor one = eye(context, r.dtype(), classes, classes);
  const Tensor others = number(r, 1) - one;
  const Tensor from = transpose(r, 1, 2);  // [row, i, j] is that of j against i
  const Tensor squares = sum(square(from) * others, {2}, true);
  // q[i][i] = sum of r[j][i]^2, q[i][j] = -r[j][i] r[i][j].
  const Tensor q = squares * one - from * r * others;
  const Tensor start = full(context, r.dtype(), {r.shape()[0], tiny::Dim(classes), 1},
                            1.0 / static_cast<double>(classes));
  if (r.shape()[0].is(0)) return squeeze(start, {2});
  constexpr int64_t kRounds = 100;
  const double bound = 0.005 / static_cast<double>(classes);
  // Few rounds are enough; a row that is done stays as it is until all are.
  const auto round = [&](const Tensor&, const Tensors& state) {
    Tensor p = state[0];
    Tensor qp = matmul(q, p);
    Tensor pqp = sum(p * qp, {1}, true);
    const Tensor is_done = less(max(abs(qp - pqp), {1}, true), number(p, bound));
    const auto at = [](const Tensor& t, int64_t i) { return slice_axis(t, 1, i, i + 1); };
    for (int64_t i = 0; i < classes; ++i) {
      const Tensor column = slice_axis(q, 2, i, i + 1);
      const Tensor own = at(column, i);
      const Tensor step = (pqp - at(qp, i)) / own;
      const Tensor scale = number(p, 1) + step;
      pqp = (pqp + step * (step * own + number(p, 2) * at(qp, i))) / (scale * scale);
      qp = (qp + step * column) / scale;
      p = (p + step * slice_axis(unsqueeze(one, {0}), 2, i, i + 1)) / scale;
    }
    return Round{{where(is_done, state[0], p)}, invert(all(is_done, {0, 1, 2}))};
  };
  const Tensors made =
      repeat(full(context, kInt64, {}, kRounds), {start}, c.importer().dependences(), round);
  return squeeze(made[0], {2});
}

// The classes' shares of the pairs' scores, in the order (0, 1), (0, 2), .., (1, 2), ..
Tensor pair_probabilities(Call& c, const Tensors& scores, int64_t classes) {
  const std::vector<double> a = reals_attr(c, "prob_a"), b = reals_attr(c, "prob_b");
  c.check(a.size() == scores.size() && b.size() == scores.size(), "prob_a and prob_b of ", a.size(),
          " and ", b.size(), " numbers for ", scores.size(), " pairs");
  const Tensor none = number(scores[0], 0) * scores[0];
  std::vector<Tensors> rows(static_cast<size_t>(classes),
                            Tensors(static_cast<size_t>(classes), none));
  size_t pair = 0;
  for (size_t i = 0; i < static_cast<size_t>(classes); ++i)
    for (size_t j = i + 1; j < static_cast<size_t>(classes); ++j, ++pair) {
      const auto n = [&](double v) { return number(none, v); };
      const Tensor share = sigmoid(neg(scores[pair] * n(a[pair]) + n(b[pair])));
      rows[i][j] = minimum(maximum(share, n(1e-7)), n(1 - 1e-7));
      rows[j][i] = n(1) - rows[i][j];
    }
  Tensors all;
  for (const Tensors& row : rows) all.push_back(concat(row, 1));
  return coupled(c, stack(all, 1), classes);
}

// The score of each two classes, [rows, 1] each.
Tensors pair_scores(const Call& c, const Tensor& seen, const Ints& counts) {
  const auto classes = counts.size();
  const int64_t vectors = dim_of(seen, 1);
  const std::vector<double> coefficients = reals_attr(c, "coefficients"),
                            rho = reals_attr(c, "rho");
  c.check(
      std::ssize(coefficients) == checked_mul(vectors, std::ssize(counts) - 1, "coefficients") &&
          rho.size() == classes * (classes - 1) / 2,
      coefficients.size(), " coefficients and ", rho.size(), " numbers rho for ", vectors,
      " vectors of ", classes, " classes");
  std::vector<int64_t> first(classes, 0);
  std::partial_sum(counts.begin(), counts.end() - 1, first.begin() + 1);
  const auto part = [&](size_t of, size_t row) {
    const auto begin = coefficients.begin() + static_cast<int64_t>(row) * vectors + first[of];
    const std::vector<double> values(begin, begin + counts[of]);
    const Tensor weights = real_constant(seen, kFloat32, {counts[of], 1}, values);
    return matmul(slice_axis(seen, 1, first[of], first[of] + counts[of]), weights);
  };
  Tensors scores;
  for (size_t i = 0; i < classes; ++i)
    for (size_t j = i + 1; j < classes; ++j)
      scores.push_back(part(i, j - 1) + part(j, i) + number(seen, rho[scores.size()]));
  return scores;
}

// Each pair votes for one of its two classes: [rows, classes].
Tensor votes(const Tensors& scores, int64_t classes) {
  Tensors counts(static_cast<size_t>(classes));
  const auto add = [&](size_t to, const Tensor& vote) {
    counts[to] = counts[to] ? counts[to] + vote : vote;
  };
  size_t pair = 0;
  for (size_t i = 0; i < counts.size(); ++i)
    for (size_t j = i + 1; j < counts.size(); ++j, ++pair) {
      const Tensor is_first = greater(scores[pair], number(scores[pair], 0));
      add(i, cast(is_first, kInt32));
      add(j, cast(invert(is_first), kInt32));
    }
  return concat(counts, 1);
}

Tensors import_svm_classifier(Call& c) {
  const ClassLabels labels(c, "classlabels_ints", "classlabels_strings");
  const Tensor x = rows_of(c);
  const Ints counts = c.ints_attr("vectors_per_class", {});
  const int64_t classes = counts.empty() ? labels.count() : std::ssize(counts);
  if (counts.empty()) {
    c.pass_over({"kernel_type", "kernel_params", "support_vectors", "prob_a", "prob_b"});
    const std::vector<double> rho = reals_attr(c, "rho");
    const Tensor y = matmul(x, transpose(rows_attr(c, x, "coefficients", dim_of(x, 1)), 0, 1));
    const Tensor scores = rho.empty() ? y : y + number(y, rho[0]);
    return labels.of(scores, post_transformed(c, scores));
  }
  const Tensor support = rows_attr(c, x, "support_vectors", dim_of(x, 1));
  int64_t vectors = 0;
  for (const int64_t count : counts) {
    c.check(count >= 0 && count <= dim_of(support, 0), "a class of ", count, " vectors");
    vectors += count;
  }
  constexpr int64_t kClassesMax = 256;
  c.check(classes >= 2 && vectors == dim_of(support, 0), dim_of(support, 0), " vectors for ",
          vectors, " in ", classes, " classes");
  if (classes > kClassesMax) c.unsupported("support vectors of ", classes, " classes");
  const Tensors scores = pair_scores(c, kernel_of(c, x, support), counts);
  if (c.has_attribute("prob_a") && !reals_attr(c, "prob_a").empty()) {
    const Tensor shares = pair_probabilities(c, scores, classes);
    return labels.of(votes(scores, classes), post_transformed(c, shares));
  }
  // Of two classes shares are what a softmax asks for, in onnxruntime.
  const std::string transform = c.text_attr("post_transform", "NONE");
  const Tensor shown = classes == 2 ? both_scores(c, scores[0], transform.starts_with("SOFTMAX"))
                                    : post_transformed(c, concat(scores, 1));
  return labels.of(votes(scores, classes), shown);
}

// clang-format off
constexpr Row kRows[] = {
    {"LinearRegressor",  1, kNewestMl, import_linear_regressor, 0, nullptr, kMl},
    {"LinearClassifier", 1, kNewestMl, import_linear_classifier, 0, nullptr, kMl},
    {"SVMRegressor",     1, kNewestMl, import_svm_regressor, 0, nullptr, kMl},
    {"SVMClassifier",    1, kNewestMl, import_svm_classifier, 0, nullptr, kMl},
};
// clang-format on

}  // namespace

std::span<const Row> ml_linear_rows() {
  return kRows;
}

}  // namespace tiny::onnx
