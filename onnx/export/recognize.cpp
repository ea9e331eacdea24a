#include "onnx/export/recognize.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "onnx/export/export.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "shape/shape.h"
#include "tensor/create.h"

namespace tiny::onnx {

namespace {

// How far below a node its operands may be.
constexpr size_t kChainMax = 8;
constexpr size_t kBelowMax = 24;

using Guesses = std::vector<Recognized>;

bool is_passed(Op op) {
  return op == Op::Cast || op == Op::Contiguous || has(op, kMovement);
}

// The node, and what it is a view or a conversion of, outermost first.  Of two reshapes in a row
// the graph keeps the last: one that adds an axis hides what it was added to, which stands behind
// it here.
std::vector<UOp> chain(UOp node) {
  std::vector<UOp> nodes{node};
  for (size_t steps = 0; steps < kChainMax && is_passed(node.op()); ++steps) {
    if (node.op() == Op::AsStrided) break;
    if (node.op() == Op::Reshape) {
      const Shape shape = shape_of(node);
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (!shape[axis].is(1)) continue;
        Shape without = shape;
        without.erase(without.begin() + static_cast<ptrdiff_t>(axis));
        nodes.push_back(make_reshape(node, without));
      }
    }
    node = node.src(0);
    nodes.push_back(node);
  }
  return nodes;
}

UOp through(UOp node, std::initializer_list<Op> ops) {
  while (std::find(ops.begin(), ops.end(), node.op()) != ops.end()) node = node.src(0);
  return node;
}

// What `node` repeats: without the axes and the size that broadcasting gives it.
UOp unspread(const UOp& node) {
  return through(node, {Op::Expand, Op::Reshape});
}

// Nodes below, nearest first.
std::vector<UOp> below(const UOp& node, size_t most = kBelowMax) {
  std::vector<UOp> found{node};
  std::unordered_set<const tiny::Node*> seen{node.node()};
  for (size_t i = 0; i < found.size() && found.size() < most; ++i) {
    const UOp above = found[i];
    for (const UOp& s : above.src())
      if (seen.insert(s.node()).second) found.push_back(s);
  }
  return found;
}

std::optional<UOp> find_below(const UOp& node, Op op, std::optional<Op> fold = std::nullopt) {
  for (const UOp& u : below(node))
    if (u.op() == op && (!fold || u.reduce_arg().op == *fold)) return u;
  return std::nullopt;
}

bool same_kind(const UOp& a, const UOp& b) {
  return a.dtype() == b.dtype() && shape_of(a) == shape_of(b);
}

int64_t rank_of(const UOp& node) {
  return std::ssize(shape_of(node));
}

std::optional<float> real_constant(const UOp& node) {
  const UOp base = unspread(node);
  if (!base.is_const() || !base.dtype().is_float()) return std::nullopt;
  return static_cast<float>(double_of(base.dtype(), base.const_bits()));
}

// The sum or maximum that ends in `node`, behind views and conversions.
std::optional<UOp> reduction(const UOp& node, Op fold) {
  const UOp base = through(node, {Op::Cast, Op::Reshape, Op::Permute});
  if (base.op() != Op::ReduceAxis || base.reduce_arg().op != fold) return std::nullopt;
  return base;
}

// ---- Products.

// With the last two axes in the other order.
UOp turned(const UOp& node) {
  Ints order;
  for (int64_t i = 0; i < rank_of(node); ++i) order.push_back(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return make_permute(node, order);
}

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

// ---- Windows.

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
    if (rank_of(x) != static_cast<int64_t>(2 + spatial)) continue;
    cuts.push_back(cut);
    cuts.back().x = x;
    if (x.op() != Op::Pad) continue;
    const Shape sizes = movement_dims(x);
    const size_t rank = 2 + spatial;
    if (!all_const(sizes)) continue;
    cuts.push_back(cut);
    cuts.back().x = x.src(0);
    for (size_t i = 0; i < spatial; ++i) {
      cuts.back().before[i] = sizes[2 + i].value();
      cuts.back().after[i] = sizes[rank + 2 + i].value();
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

// ---- Means and normalisations.

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

void guess_layer_norm(const UOp& node, Guesses& out) {
  for (const Affine& affine : affines(node)) {
    const auto root = find_below(affine.normal, Op::Sqrt);
    if (!root || affine.normal.op() != Op::Mul) continue;
    const auto sum = find_below(affine.normal, Op::ReduceAxis, Op::Add);
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

// ---- Functions of one element, by the op that they end in.

struct Function {
  Op last;
  const char* op_type;
};
constexpr Function kFunctions[] = {
    {Op::Max, "Relu"},        {Op::Div, "Sigmoid"}, {Op::Mul, "Gelu"},     {Op::Mul, "HardSwish"},
    {Op::Add, "Softplus"},    {Op::Mul, "Mish"},    {Op::Div, "Softsign"}, {Op::Min, "HardSigmoid"},
    {Op::Where, "LeakyRelu"}, {Op::Where, "PRelu"},
};

void guess_function(const UOp& node, Guesses& out) {
  const UOp last = through(node, {Op::Cast});
  for (const Function& function : kFunctions) {
    if (function.last != last.op()) continue;
    const std::string name = function.op_type;
    for (const UOp& x : below(node)) {
      if (x == node || !same_kind(x, node) || unspread(x).is_const()) continue;
      Recognized guess{name, {x}, {}, {}};
      if (name == "LeakyRelu" || name == "HardSigmoid" || name == "PRelu") {
        const auto product = find_below(node, Op::Mul);
        if (!product) continue;
        for (const UOp& s : product->src()) {
          guess.attributes.clear();
          guess.inputs.resize(1);
          const auto slope = real_constant(s);
          if (name == "PRelu") {
            for (const UOp& slopes : chain(s)) {
              guess.inputs = {x, slopes};
              out.push_back(guess);
            }
            continue;
          }
          if (!slope) continue;
          guess.attributes.push_back(real_attribute("alpha", *slope));
          if (name == "HardSigmoid") {
            const auto sum = find_below(node, Op::Add);
            auto beta = sum ? real_constant(sum->src(1)) : std::nullopt;
            if (sum && !beta) beta = real_constant(sum->src(0));
            if (beta) guess.attributes.push_back(real_attribute("beta", *beta));
          }
          out.push_back(guess);
        }
        continue;
      }
      out.push_back(std::move(guess));
    }
  }
}

void guess_gather(const UOp& node, Guesses& out) {
  if (node.op() != Op::Gather) return;
  for (const UOp& index : below(node.src(1)))
    if (index.dtype().is_int() && shape_of(index) == shape_of(node.src(1)))
      out.push_back({"Gather", {node.src(0), index}, {int_attribute("axis", node.int_arg())}, {}});
}

// Powers by roots (src/tensor/normalization.cpp).
constexpr float kRootPowers[] = {0.75F, 0.5F, 0.25F};

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

// The places that a sort of floats by their bits ends in (src/tensor/top_k.cpp).
void guess_top_k(const UOp& node, Guesses& out) {
  constexpr size_t kSearchedMax = 1 << 13;  // a network of many steps
  if (node.dtype() != kInt64 || through(node, {Op::Permute}).op() != Op::Contiguous) return;
  for (const UOp& u : below(node, kSearchedMax)) {
    if (u.op() != Op::Bitcast || !u.src(0).dtype().is_float()) continue;
    for (const UOp& x : chain(u.src(0))) {
      const Shape &from = shape_of(x), &to = shape_of(node);
      if (from.size() != to.size() || !all_const(to)) continue;
      for (size_t axis = 0; axis < to.size(); ++axis)
        for (const int64_t largest : {1, 0}) {
          Shape same = from;
          same[axis] = to[axis];
          if (!(same == to)) continue;
          out.push_back({"TopK",
                         {x},
                         {int_attribute("axis", static_cast<int64_t>(axis)),
                          int_attribute("largest", largest)},
                         {to[axis].value()},
                         1});
        }
    }
    return;
  }
}

// ---- The table, larger operators first.

using Guess = void (*)(const UOp&, Guesses&);
constexpr Guess kRules[] = {guess_conv,       guess_gemm,       guess_matmul,  guess_max_pool,
                            guess_layer_norm, guess_batch_norm, guess_softmax, guess_average_pool,
                            guess_mean,       guess_function,   guess_gather,  guess_top_k,
                            guess_lrn};

// Whether the operator of the guess takes such elements: the importer takes more than ONNX allows.
bool takes(const std::string& op_type, DType dtype) {
  if (dtype.is_float() || op_type == "Gather" || op_type == "TopK") return true;
  if (op_type == "MatMul" || op_type == "Gemm") return dtype.is_int() && dtype.bits() >= 32;
  if (op_type == "MaxPool") return dtype.is_int() && dtype.bits() == 8;
  return op_type == "Relu" && dtype.is_signed();
}

// Whether the importer makes this very node of the guess.
bool makes(const Ref<Context>& context, const Recognized& guess, const UOp& node) {
  onnx::Node call;
  call.op_type = guess.op_type;
  call.version = kWrittenOpset;
  const Row* row = find_row("", guess.op_type, kWrittenOpset);
  invariant(row != nullptr, "the importer knows what is exported");
  std::vector<Value> inputs;
  for (const UOp& input : guess.inputs)
    inputs.push_back({input ? Tensor(context, input) : Tensor(), nullptr, nullptr});
  if (!guess.axes.empty())
    inputs.push_back({from_data(context, kInt64, {std::ssize(guess.axes)}, guess.axes.data(),
                                std::ssize(guess.axes) * int64_t{sizeof(int64_t)}),
                      nullptr, nullptr});
  for (size_t i = 0; i < inputs.size(); ++i) call.inputs.push_back(cat("i", i));
  for (size_t i = 0; i <= guess.output; ++i) call.outputs.push_back(cat("o", i));
  call.attributes = guess.attributes;
  try {
    Weights constants;
    const Tensors made = Importer(context, constants).apply(call, std::move(inputs));
    return made[guess.output].node() == node;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

Attribute int_attribute(std::string name, int64_t value) {
  Attribute a;
  a.name = std::move(name);
  a.type = AttributeType::Int;
  a.i = value;
  return a;
}

Attribute ints_attribute(std::string name, Ints values) {
  Attribute a;
  a.name = std::move(name);
  a.type = AttributeType::Ints;
  a.ints = std::move(values);
  return a;
}

Attribute real_attribute(std::string name, float value) {
  Attribute a;
  a.name = std::move(name);
  a.type = AttributeType::Float;
  a.f = value;
  return a;
}

std::vector<UOp> hidden_results(const UOp& node) {
  if (node.op() != Op::Reshape || node.src(0).op() != Op::ReduceAxis) return {};
  const UOp& fold = node.src(0);
  const Ints& axes = fold.reduce_arg().axes;
  Shape left;
  for (size_t i = 0; i < shape_of(fold).size(); ++i)
    if (std::ranges::find(axes, static_cast<int64_t>(i)) == axes.end())
      left.push_back(shape_of(fold)[i]);
  std::vector<UOp> results{make_reshape(fold, left)};
  if (left.size() < 3) return results;
  // A convolution has groups beside its channels.
  left[1] = left[1] * left[2];
  left.erase(left.begin() + 2);
  results.push_back(make_reshape(fold, left));
  return results;
}

std::optional<Recognized> recognize(const Ref<Context>& context, const UOp& node) {
  for (const Guess rule : kRules) {
    Guesses guesses;
    rule(node, guesses);
    for (Recognized& guess : guesses)
      if (std::ranges::find(guess.inputs, node) == guess.inputs.end() &&
          takes(guess.op_type, guess.inputs[0].dtype()) && makes(context, guess, node))
        return std::move(guess);
  }
  return std::nullopt;
}

}  // namespace tiny::onnx
