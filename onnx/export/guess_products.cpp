// Rules of products and windows: MatMul, Gemm, Conv, pools.
#include <algorithm>
#include <string>

#include "onnx/export/guess.h"

namespace tiny::onnx {

namespace {

// With the last two axes in the other order.
UOp turned(const UOp& node) {
  Ints order;
  for (int64_t i = 0; i < rank_of(node); ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return make_permute(node, order);
}

}  // namespace

void guess_matmul(const UOp& node, Guesses& out) {
  const auto sum = reduction(node, Op::Add);
  if (!sum || sum->reduce_arg().axes.size() != 1 || sum->src(0).op() != Op::Mul) return;
  const UOp& product = sum->src(0);
  const tiny::Dim& inner = shape_of(product)[static_cast<size_t>(sum->reduce_arg().axes[0])];
  const auto lefts = chain(product.src(0)), rights = chain(product.src(1));
  const auto try_all = [&](const std::vector<UOp>& as, const std::vector<UOp>& bs) {
    for (size_t i = as.size(); i-- > 0;)
      for (size_t k = bs.size(); k-- > 0;) {
        const Shape &a = shape_of(as[i]), &b = shape_of(bs[k]);
        if (a.empty() || b.empty() || !(a.back() == inner)) continue;
        if (as[i].dtype() != bs[k].dtype()) continue;
        if (b[b.size() == 1 ? 0 : b.size() - 2] == inner)
          out.push_back({"MatMul", {as[i], bs[k]}, {}, {}});
        // Of two permutations in a row the graph keeps none: the operand was turned.
        if (b.size() >= 2 && b.back() == inner)
          out.push_back({"MatMul", {as[i], turned(bs[k])}, {}, {}});
      }
  };
  try_all(lefts, rights);
  try_all(rights, lefts);
}

void guess_gemm(const UOp& node, Guesses& out) {
  if (node.op() != Op::Add || rank_of(node) != 2) return;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    Guesses products;
    guess_matmul(node.src(side), products);
    const UOp& rest = node.src(1 - side);
    const std::vector<UOp> thirds = chain(rest);
    for (const Recognized& product : products) {
      UOp a = product.inputs[0], b = product.inputs[1];
      if (rank_of(a) != 2 || rank_of(b) != 2) continue;
      std::vector<Attribute> attributes;
      if (b.op() == Op::Permute) {
        b = b.src(0);
        attributes.push_back(int_attribute("transB", 1));
      }
      for (size_t i = thirds.size(); i-- > 0;)
        if (rank_of(thirds[i]) <= 2) out.push_back({"Gemm", {a, b, thirds[i]}, attributes, {}});
    }
  }
}

namespace {

// Where windows were cut from what, and how.
struct Cut {
  UOp x;
  Ints kernel, strides, dilations, before, after;
};

// A convolution's operands as it sees them (src/tensor/conv.cpp), hidden by reshapes of theirs: x
// is [n, groups, 1, channels, sizes.., 1..] where windows are elements, the weight [1, groups,
// filters, 1.., channels, kernel..].
std::optional<UOp> hidden_x(const UOp& node, size_t spatial) {
  const Shape s = shape_of(node);
  if (node.op() != Op::Reshape || s.size() != 4 + 2 * spatial) return std::nullopt;
  Shape x{s[0], s[1] * s[3]};
  for (size_t i = 0; i < spatial; ++i) {
    x.push_back(s[4 + i]);
    if (!s[4 + spatial + i].is(1)) return std::nullopt;
  }
  return s[2].is(1) ? std::optional(make_reshape(node, x)) : std::nullopt;
}

std::optional<UOp> hidden_weight(const UOp& node, size_t spatial) {
  const Shape s = shape_of(node);
  if (node.op() != Op::Reshape || s.size() != 4 + 2 * spatial || !s[0].is(1)) return std::nullopt;
  Shape weight{s[1] * s[2]};
  for (size_t i = 0; i < spatial; ++i)
    if (!s[3 + i].is(1)) return std::nullopt;
  for (size_t i = 3 + spatial; i < s.size(); ++i) weight.push_back(s[i]);
  return make_reshape(node, weight);
}

// [n, channels, sizes..] of the same in groups, as windows that overlap are cut: [n, groups, 1,
// channels, sizes..].
std::optional<UOp> in_channels(const UOp& x, size_t spatial) {
  const Shape& s = shape_of(x);
  if (s.size() == 2 + spatial) return x;
  if (s.size() != 4 + spatial || !s[2].is(1)) return std::nullopt;
  Shape joined{s[0], s[1] * s[3]};
  joined.insert(joined.end(), s.begin() + 4, s.end());
  return make_reshape(x, joined);
}

// The windows that `node` is made of, with and without the padding below them.
std::vector<Cut> cuts_below(const UOp& node, size_t spatial) {
  std::vector<Cut> cuts;
  Cut cut{node,
          Ints(spatial, 1),
          Ints(spatial, 1),
          Ints(spatial, 1),
          Ints(spatial, 0),
          Ints(spatial, 0)};
  for (const UOp& u : chain(node)) {
    UOp x = u;
    if (u.op() == Op::Unfold) {
      const Unfolding windows = unfolding(u);
      if (windows.along.size() != spatial) continue;
      for (size_t i = 0; i < spatial; ++i) {
        cut.kernel[i] = windows.along[i].kernel;
        cut.strides[i] = windows.along[i].stride;
        cut.dilations[i] = windows.along[i].dilation;
      }
      continue;
    }
    if (const auto hidden = hidden_x(u, spatial)) {
      cuts.push_back(cut);
      cuts.back().x = *hidden;
    }
    // A pool's padding is the lowest value.
    if (u.op() == Op::Where && u.src(1).op() == Op::Pad) x = u.src(1);
    const auto seen = in_channels(x, spatial);
    if (!seen) continue;
    cuts.push_back(cut);
    cuts.back().x = *seen;
    if (x.op() != Op::Pad) continue;
    const Shape sizes = movement_dims(x);
    const size_t rank = shape_of(x).size(), first = rank - spatial;
    const auto below = in_channels(x.src(0), spatial);
    if (!below || !all_const(sizes)) continue;
    cuts.push_back(cut);
    cuts.back().x = *below;
    for (size_t i = 0; i < spatial; ++i) {
      cuts.back().before[i] = sizes[first + i].value();
      cuts.back().after[i] = sizes[rank + first + i].value();
    }
  }
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

std::vector<Attribute> window_attributes(const Cut& cut) {
  Ints pads = cut.before;
  pads.insert(pads.end(), cut.after.begin(), cut.after.end());
  return {ints_attribute("kernel_shape", cut.kernel), ints_attribute("strides", cut.strides),
          ints_attribute("dilations", cut.dilations), ints_attribute("pads", pads)};
}

void guess_conv_of(const UOp& node, const UOp& bias, Guesses& out) {
  const auto sum = reduction(node, Op::Add);
  if (!sum || sum->src(0).op() != Op::Mul) return;
  const auto rank = static_cast<size_t>(rank_of(node));
  if (rank < 3 || sum->reduce_arg().axes.size() != rank - 1) return;
  const UOp& product = sum->src(0);
  for (const size_t side : {size_t{0}, size_t{1}}) {
    std::vector<UOp> weights = chain(product.src(1 - side));
    for (const UOp& u : std::vector<UOp>(weights))
      if (const auto hidden = hidden_weight(u, rank - 2)) weights.push_back(*hidden);
    for (Cut& cut : cuts_below(product.src(side), rank - 2))
      for (size_t k = weights.size(); k-- > 0;) {
        const Shape &w = shape_of(weights[k]), &x = shape_of(cut.x);
        if (w.size() != rank || x.size() != rank || !all_const(w) || !x[1].is_const()) continue;
        if (w[1].is(0) || x[1].value() % w[1].value() != 0) continue;
        Cut whole = cut;
        whole.kernel = const_dims({w.begin() + 2, w.end()});
        std::vector<Attribute> attributes = window_attributes(whole);
        attributes.push_back(int_attribute("group", x[1].value() / w[1].value()));
        Recognized guess{"Conv", {cut.x, weights[k]}, std::move(attributes), {}};
        if (bias) guess.inputs.push_back(bias);
        out.push_back(std::move(guess));
      }
  }
}

}  // namespace

void guess_conv(const UOp& node, Guesses& out) {
  const UOp whole = through(node, {Op::Cast});
  if (whole.op() == Op::Add)
    for (const size_t side : {size_t{0}, size_t{1}})
      for (const UOp& bias : chain(whole.src(side)))
        if (rank_of(bias) == 1) guess_conv_of(whole.src(1 - side), bias, out);
  guess_conv_of(node, UOp(), out);
}

void guess_max_pool(const UOp& node, Guesses& out) {
  const auto highest = reduction(node, Op::Max);
  const auto rank = static_cast<size_t>(rank_of(node));
  if (!highest || rank < 3 || highest->reduce_arg().axes.size() != rank - 2) return;
  for (const Cut& cut : cuts_below(highest->src(0), rank - 2))
    out.push_back({"MaxPool", {cut.x}, window_attributes(cut), {}});
}

void guess_average_pool(const UOp& node, Guesses& out) {
  const UOp quotient = through(node, {Op::Cast});
  if (quotient.op() != Op::Div) return;
  const auto sum = reduction(quotient.src(0), Op::Add);
  const auto rank = static_cast<size_t>(rank_of(node));
  if (!sum || rank < 3 || sum->reduce_arg().axes.size() != rank - 2) return;
  for (const Cut& cut : cuts_below(sum->src(0), rank - 2)) {
    // Opset 19 added the dilations.
    for (const int64_t counts_padding : {0, 1}) {
      std::vector<Attribute> attributes = window_attributes(cut);
      attributes.push_back(int_attribute("count_include_pad", counts_padding));
      out.push_back({"AveragePool", {cut.x}, std::move(attributes), {}});
    }
  }
}

}  // namespace tiny::onnx
