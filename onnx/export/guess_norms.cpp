// Rules of means and normalisations.
#include <algorithm>
#include <string>

#include "onnx/export/guess.h"

namespace tiny::onnx {

void guess_mean(const UOp& node, Guesses& out) {
  const UOp quotient = through(node, {Op::Cast});
  if (quotient.op() != Op::Div) return;
  const auto sum = reduction(quotient.src(0), Op::Add);
  if (!sum) return;
  const bool keeps = rank_of(node) == rank_of(*sum);
  const Ints& axes = sum->reduce_arg().axes;
  for (const UOp& x : {through(sum->src(0), {Op::Cast}), sum->src(0)}) {
    if (keeps && rank_of(x) > 3 && axes.front() == 2 && std::ssize(axes) == rank_of(x) - 2)
      out.push_back({"GlobalAveragePool", {x}, {}, {}});
    out.push_back({"ReduceMean", {x}, {int_attribute("keepdims", keeps ? 1 : 0)}, axes});
  }
}

void guess_softmax(const UOp& node, Guesses& out) {
  const auto highest = find_below(node, Op::ReduceAxis, Op::Max);
  if (!highest) return;
  for (const UOp& x : {through(highest->src(0), {Op::Cast}), highest->src(0)})
    for (const char* name : {"Softmax", "LogSoftmax"})
      out.push_back({name, {x}, {int_attribute("axis", highest->reduce_arg().axes[0])}, {}});
}

namespace {

// Scales and terms that stand at the end of a normalisation.
struct Affine {
  UOp normal;
  std::vector<UOp> scales, terms;
};

std::vector<Affine> affines(const UOp& node) {
  std::vector<Affine> found;
  const UOp whole = through(node, {Op::Cast});
  if (whole.op() == Op::Add)
    for (const size_t t : {size_t{0}, size_t{1}}) {
      const UOp& scaled = whole.src(1 - t);
      if (scaled.op() != Op::Mul) continue;
      for (const size_t s : {size_t{0}, size_t{1}})
        found.push_back({scaled.src(1 - s), chain(scaled.src(s)), chain(whole.src(t))});
    }
  if (whole.op() == Op::Mul)
    for (const size_t s : {size_t{0}, size_t{1}})
      found.push_back({whole.src(1 - s), chain(whole.src(s)), {}});
  return found;
}

}  // namespace

void guess_layer_norm(const UOp& node, Guesses& out) {
  for (const Affine& affine : affines(node)) {
    const auto root = find_below(affine.normal, Op::Sqrt);
    if (!root || affine.normal.op() != Op::Mul) continue;
    // The variance's, not one of what is normalised: a product is a sum, too.
    const auto sum = find_below(root->src(0), Op::ReduceAxis, Op::Add);
    const UOp power = unspread(root->src(0));
    if (!sum || power.op() != Op::Add) continue;
    auto epsilon = real_constant(power.src(1));
    if (!epsilon) epsilon = real_constant(power.src(0));
    if (!epsilon) continue;
    const Ints& axes = sum->reduce_arg().axes;
    std::vector<UOp> values;
    for (const UOp& u : below(affine.normal))
      if (shape_of(u) == shape_of(node) && u.dtype().is_float() && u.op() != Op::Expand)
        values.push_back(u);
    const auto add = [&](const UOp& x, const UOp& scale, const UOp& term) {
      Recognized guess{"LayerNormalization",
                       {x, scale},
                       {int_attribute("axis", axes.front()), real_attribute("epsilon", *epsilon)},
                       {}};
      if (term) guess.inputs.push_back(term);
      if (rank_of(scale) == std::ssize(axes)) out.push_back(guess);
      guess.op_type = "InstanceNormalization";
      guess.attributes.erase(guess.attributes.begin());
      if (term && rank_of(scale) == 1 && rank_of(term) == 1 && rank_of(x) >= 3)
        out.push_back(std::move(guess));
    };
    for (const UOp& x : values)
      for (const UOp& scale : affine.scales) {
        if (rank_of(scale) == 0) continue;
        if (affine.terms.empty()) add(x, scale, UOp());
        for (const UOp& term : affine.terms)
          if (shape_of(term) == shape_of(scale)) add(x, scale, term);
      }
  }
}

void guess_batch_norm(const UOp& node, Guesses& out) {
  for (const Affine& affine : affines(node)) {
    if (affine.terms.empty()) continue;
    const UOp factor = affine.scales.back(), rest = affine.terms.back();
    if (factor.op() != Op::Div || rest.op() != Op::Add || factor.src(1).op() != Op::Sqrt) continue;
    const UOp& power = factor.src(1).src(0);
    if (power.op() != Op::Add) continue;
    for (const size_t e : {size_t{0}, size_t{1}})
      for (const size_t b : {size_t{0}, size_t{1}}) {
        const auto epsilon = real_constant(power.src(e));
        const UOp moved = through(rest.src(1 - b), {Op::Neg});
        if (!epsilon || moved.op() != Op::Mul) continue;
        for (const UOp& mean : moved.src())
          for (const UOp& x : chain(affine.normal))
            out.push_back({"BatchNormalization",
                           {x, through(factor.src(0), {Op::Cast}), through(rest.src(b), {Op::Cast}),
                            through(mean, {Op::Cast}), through(power.src(1 - e), {Op::Cast})},
                           {real_attribute("epsilon", *epsilon)},
                           {}});
      }
  }
}

namespace {

// Powers by roots (src/tensor/normalization.cpp).
constexpr float kRootPowers[] = {0.75F, 0.5F, 0.25F};

}  // namespace

void guess_lrn(const UOp& node, Guesses& out) {
  const UOp quotient = through(node, {Op::Cast});
  if (quotient.op() != Op::Div || rank_of(node) < 2) return;
  const auto windows = find_below(quotient.src(1), Op::Unfold);
  const auto sum = find_below(quotient.src(1), Op::Add);
  if (!windows || !sum) return;
  const int64_t size = unfolding(*windows).along[0].kernel;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const auto bias = real_constant(sum->src(side));
    const UOp& scaled = sum->src(1 - side);
    if (!bias || scaled.op() != Op::Mul) continue;
    for (const UOp& factor : scaled.src()) {
      const auto scale = real_constant(factor);
      if (!scale) continue;
      for (const float power : kRootPowers)
        out.push_back({"LRN",
                       {through(quotient.src(0), {Op::Cast})},
                       {int_attribute("size", size), real_attribute("bias", *bias),
                        real_attribute("beta", power),
                        real_attribute("alpha", *scale * static_cast<float>(size))},
                       {}});
    }
  }
}

}  // namespace tiny::onnx
