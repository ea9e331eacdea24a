// Products of matrices, and sums of products in general.
#include <algorithm>
#include <cctype>
#include <map>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/quantization.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

namespace {

Tensors import_matmul(Call& c) {
  return {matmul(c.in(0), c.in(1))};
}

Tensors import_gemm(Call& c) {
  const auto operand = [&](size_t i, const char* turned) {
    c.check(c.in(i).rank() == 2, "input ", i, " has ", c.in(i).rank(), " axes and must have 2");
    return c.flag(turned, false) ? transpose(c.in(i), 0, 1) : c.in(i);
  };
  Tensor out = matmul(operand(0, "transA"), operand(1, "transB"));
  const auto scaled = [&](const Tensor& x, const char* name) {
    const float by = c.real_attr(name, 1.0f);
    if (by == 1) return x;
    if (x.dtype().is_float()) return x * number(x, by);
    return cast(cast(x, kFloat64) * number(cast(x, kFloat64), by), x.dtype());
  };
  out = scaled(out, "alpha");
  if (!c.has(2) || c.real_attr("beta", 1.0f) == 0) return {out};
  const Tensor rest = scaled(c.in(2), "beta");
  c.check(broadcast_shape(rest.shape(), out.shape()) == out.shape(), "C has the shape ",
          rest.shape(), ", the product ", out.shape());
  return {out + rest};
}

Tensors import_matmul_integer(Call& c) {
  return {matmul_integer(c.in(0), c.in_or(2, Tensor()), c.in(1), c.in_or(3, Tensor()))};
}

// ---- Einsum.

// Labels of one operand or of the result: letters, and 0 for an axis of the ellipsis counted from
// its end: -1 is the last.
using Labels = std::vector<int>;

struct Equation {
  std::vector<std::string> terms;
  std::string result;
  bool has_result = false;
};

Equation parse(const Call& c, const std::string& text) {
  Equation out;
  std::string clean;
  for (char ch : text)
    if (ch != ' ') clean += ch;
  const size_t arrow = clean.find("->");
  out.has_result = arrow != std::string::npos;
  if (out.has_result) out.result = clean.substr(arrow + 2);
  std::string left = clean.substr(0, arrow);
  for (size_t at = 0; at <= left.size();) {
    const size_t comma = std::min(left.find(',', at), left.size());
    out.terms.push_back(left.substr(at, comma - at));
    at = comma + 1;
  }
  c.check(out.terms.size() == c.inputs(), "the equation \"", text, "\" has ", out.terms.size(),
          " terms for ", c.inputs(), " inputs");
  return out;
}

Labels labels_of(const Call& c, const std::string& term, int64_t ellipsis) {
  Labels out;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == '.') {
      c.check(term.compare(i, 3, "...") == 0 && ellipsis >= 0, "a term \"", term, "\"");
      for (int64_t k = ellipsis; k > 0; --k) out.push_back(static_cast<int>(-k));
      i += 2;
      continue;
    }
    c.check(std::isalpha(static_cast<unsigned char>(term[i])) != 0, "a term \"", term, "\"");
    out.push_back(term[i]);
  }
  return out;
}

// The operand with one axis for each of `order`, of size 1 where it lacks the label; repeated
// labels are taken along their diagonal.
Tensor arranged(const Call& c, Tensor x, Labels labels, const Labels& order) {
  for (size_t i = 0; i < labels.size(); ++i)
    for (size_t k = labels.size() - 1; k > i; --k) {
      if (labels[k] != labels[i]) continue;
      const auto a = static_cast<int64_t>(i), b = static_cast<int64_t>(k);
      const tiny::Dim n = size_of(x, a);
      c.check(decide_equal(size_of(x, b), n), "a repeated label has two sizes");
      const Tensor on = equal(positions(c.context(), kInt64, n, a, x.rank()),
                              positions(c.context(), kInt64, n, b, x.rank()));
      x = reduce_as_is(where(on, x, number_int(x, 0)), Op::Add, {b}, false);
      labels.erase(labels.begin() + b);
    }
  Ints axes;
  for (int label : order)
    if (const auto at = std::find(labels.begin(), labels.end(), label); at != labels.end())
      axes.push_back(at - labels.begin());
  x = permute(x, axes);
  Ints missing;
  for (size_t i = 0; i < order.size(); ++i)
    if (std::find(labels.begin(), labels.end(), order[i]) == labels.end())
      missing.push_back(static_cast<int64_t>(i));
  return unsqueeze(x, missing);
}

Tensors import_einsum(Call& c) {
  const std::string text = c.text_attr("equation", "");
  const Equation equation = parse(c, text);
  std::vector<Labels> terms;
  int64_t widest = 0;
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    const std::string& term = equation.terms[i];
    const auto letters = std::count_if(term.begin(), term.end(), [](char ch) { return ch != '.'; });
    const bool open = static_cast<size_t>(letters) != term.size();
    const int64_t rest = c.in(i).rank() - letters;
    c.check(open ? rest >= 0 : rest == 0, "the term \"", term, "\" for a tensor with ",
            c.in(i).rank(), " axes");
    terms.push_back(labels_of(c, term, open ? rest : -1));
    widest = std::max(widest, rest);
  }
  // Without a result: the ellipsis, then the letters that stand once, in order.
  std::map<int, int> uses;
  for (const Labels& term : terms)
    for (int label : term) ++uses[label];
  Labels order;
  if (equation.has_result) {
    order = labels_of(c, equation.result, widest);
  } else {
    for (const auto& [label, count] : uses)
      if (label < 0 || count == 1) order.push_back(label);
  }
  const auto kept = static_cast<int64_t>(order.size());
  for (int label : order) c.check(uses.contains(label), "the result of \"", text, "\"");
  for (const auto& [label, count] : uses)
    if (std::find(order.begin(), order.end(), label) == order.end()) order.push_back(label);
  Tensor out;
  for (size_t i = 0; i < terms.size(); ++i) {
    const Tensor x = arranged(c, c.in(i), terms[i], order);
    out = out ? out * x : x;
  }
  Ints summed;
  for (int64_t i = kept; i < out.rank(); ++i) summed.push_back(i);
  return {sum_same(out, summed, false)};
}

constexpr int64_t kNow = kNewestOpset;

// clang-format off
constexpr Row kRows[] = {
    {"MatMul",        1,  kNow, import_matmul},
    {"MatMulInteger", 10, kNow, import_matmul_integer},
    {"Gemm",          1,  kNow, import_gemm},
    {"Einsum",        12, kNow, import_einsum},
};
// clang-format on

}  // namespace

std::span<const Row> contraction_rows() {
  return kRows;
}

}  // namespace tiny::onnx
