#include "tensor/einsum.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/movement.h"
#include "tensor/reduce.h"

namespace tiny {

namespace {

// Of one operand or of the result: letters, and negative numbers for axes of the ellipsis, counted
// from its end: -1 is the last.
using Labels = std::vector<int>;

struct Equation {
  std::vector<std::string> terms;
  std::string result;
  bool has_result = false;
};

Equation parse(std::string_view text, size_t operands) {
  Equation out;
  std::string clean;
  for (char ch : text)
    if (ch != ' ') clean += ch;
  const size_t arrow = clean.find("->");
  out.has_result = arrow != std::string::npos;
  if (out.has_result) out.result = clean.substr(arrow + 2);
  const std::string left = clean.substr(0, arrow);
  for (size_t at = 0; at <= left.size();) {
    const size_t comma = std::min(left.find(',', at), left.size());
    out.terms.push_back(left.substr(at, comma - at));
    at = comma + 1;
  }
  require(out.terms.size() == operands, Status::InvalidArgument, "einsum: the equation \"", text,
          "\" has ", out.terms.size(), " terms for ", operands, " operands; wanted one for each");
  return out;
}

// `ellipsis` is how many axes "..." stands for; negative where the term may not have it.
Labels labels_of(const std::string& term, int64_t ellipsis) {
  Labels out;
  bool is_open = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == '.') {
      require(term.compare(i, 3, "...") == 0 && ellipsis >= 0 && !is_open, Status::InvalidArgument,
              "einsum: a term \"", term, "\"; wanted letters, and one \"...\" at most");
      is_open = true;
      for (int64_t k = ellipsis; k > 0; --k) out.push_back(static_cast<int>(-k));
      i += 2;
      continue;
    }
    require(std::isalpha(static_cast<unsigned char>(term[i])) != 0, Status::InvalidArgument,
            "einsum: a term \"", term, "\"; wanted letters, and one \"...\" at most");
    out.push_back(term[i]);
  }
  return out;
}

// Repeated labels become one, taken along their diagonal.
Tensor diagonal(Tensor x, Labels* labels) {
  for (size_t i = 0; i < labels->size(); ++i)
    for (size_t k = labels->size() - 1; k > i; --k) {
      if ((*labels)[k] != (*labels)[i]) continue;
      const auto a = static_cast<int64_t>(i), b = static_cast<int64_t>(k);
      const TensorShape shape = x.shape();
      const Dim n = shape[i];
      require(decide_equal(shape[k], n), Status::Shape, "einsum: a repeated label has sizes ", n,
              " and ", shape[k], " in a tensor of shape ", shape);
      const Tensor on = equal(positions(x.context_ref(), kInt64, n, a, x.rank()),
                              positions(x.context_ref(), kInt64, n, b, x.rank()));
      x = reduce_as_is(where(on, x, number_int(x, 0)), Op::Add, {b}, false);
      labels->erase(labels->begin() + b);
    }
  return x;
}

// The operand with one axis for each of `order`, of size 1 where it lacks the label.
Tensor arranged(const Tensor& operand, Labels labels, const Labels& order) {
  const Tensor x = diagonal(operand, &labels);
  Ints axes, missing;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto at = std::find(labels.begin(), labels.end(), order[i]);
    if (at == labels.end())
      missing.push_back(static_cast<int64_t>(i));
    else
      axes.push_back(at - labels.begin());
  }
  return unsqueeze(permute(x, axes), missing);
}

struct Terms {
  std::vector<Labels> labels;
  int64_t ellipsis = 0;  // axes of the longest
};

Terms terms_of(const Equation& equation, std::span<const Tensor> operands) {
  Terms out;
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string& term = equation.terms[i];
    const auto letters = std::count_if(term.begin(), term.end(), [](char ch) { return ch != '.'; });
    const bool open = static_cast<size_t>(letters) != term.size();
    const int64_t rest = operands[i].rank() - letters;
    require(open ? rest >= 0 : rest == 0, Status::Shape, "einsum: the term \"", term,
            "\" for a tensor with ", operands[i].rank(), " axes; wanted a letter for each");
    out.labels.push_back(labels_of(term, open ? rest : -1));
    out.ellipsis = std::max(out.ellipsis, rest);
  }
  return out;
}

}  // namespace

Tensor einsum(std::string_view text, std::span<const Tensor> operands) {
  require(!operands.empty(), Status::InvalidArgument, "einsum of no tensors");
  const Equation equation = parse(text, operands.size());
  const Terms terms = terms_of(equation, operands);
  // How often each label stands: those of the ellipsis come first, then letters in order.
  std::map<int, int> uses;
  for (const Labels& term : terms.labels)
    for (int label : term) ++uses[label];
  Labels order;
  if (equation.has_result) {
    order = labels_of(equation.result, terms.ellipsis);
  } else {
    for (const auto& [label, count] : uses)
      if (label < 0 || count == 1) order.push_back(label);
  }
  const auto kept = static_cast<int64_t>(order.size());
  for (int label : order)
    require(uses.contains(label), Status::InvalidArgument, "einsum: the result of \"", text,
            "\" has what no term has");
  for (const auto& [label, count] : uses)
    if (std::find(order.begin(), order.end(), label) == order.end()) order.push_back(label);
  Tensor out;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor x = arranged(operands[i], terms.labels[i], order);
    out = out ? out * x : x;
    // What no later operand has is summed at once: a chain of products is one after the other.
    const std::span<const Labels> later = std::span(terms.labels).subspan(i + 1);
    Ints done;
    for (int64_t k = kept; k < out.rank(); ++k) {
      const int label = order[static_cast<size_t>(k)];
      const bool is_left = std::ranges::any_of(
          later, [&](const Labels& term) { return std::ranges::count(term, label) > 0; });
      if (!is_left && !out.shape()[static_cast<size_t>(k)].is(1)) done.push_back(k);
    }
    if (!later.empty() && !done.empty()) out = sum_in_dtype(out, done, true);
  }
  Ints summed;
  for (int64_t i = kept; i < out.rank(); ++i) summed.push_back(i);
  return sum_in_dtype(out, summed, false);
}

}  // namespace tiny
