// Mixtures of experts (com.microsoft): of each token the router chooses k networks out of many. One
// program serves all choices: which expert it is, or how many tokens an expert has, is a size that
// the run computes, so that the weights of experts that nobody chose are not read.
#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/selection.h"
#include "onnx/import/table.h"
#include "tensor/activation.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/indexing.h"
#include "tensor/joining.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/quantization.h"
#include "tensor/reduce.h"
#include "tensor/scatter.h"
#include "tensor/top_k.h"

namespace tiny::onnx {

namespace {

// What is an expert's own [..] of what all have [experts, ..].
using OneExpert = std::function<Tensor(const Tensor& all)>;

// One product of all experts: weights [experts, columns, rows], or such of few bits.
class Projection {
 public:
  // Inputs from `first` on: weights, a bias [experts, columns].
  static Projection of_floats(const Call& c, size_t first) {
    Projection made;
    made.weights_ = of_rank(c, first, 3);
    made.rows_ = made.weights_.shape()[2];
    made.set_bias(c, first + 1);
    return made;
  }

  // Inputs from `first` on: packed weights, scales [experts, columns, blocks], a bias; and `zero`.
  // Without a `block` a column has one scale.
  static Projection of_few_bits(const Call& c, size_t first, size_t zero, const char* own_bits) {
    Projection made;
    made.weights_ = of_rank(c, first, 3);
    const int64_t bits = c.attr(own_bits, c.attr("expert_weight_bits", 4));
    if (bits != 2 && bits != 4 && bits != 8) c.unsupported("weights of ", bits, " bits");
    if (made.weights_.dtype() != kUInt8) c.unsupported("weights of ", made.weights_.dtype());
    made.bits_ = bits;
    const int64_t rows = dim_of(made.weights_, 2) * 8 / bits;
    made.rows_ = rows;
    const int64_t block = c.attr("block_size", 0);
    const bool is_in_blocks = block > 0;
    c.check(block >= 0 && (!is_in_blocks || rows % block == 0), "the attribute block_size is ",
            block, " for ", rows, " rows");
    made.block_ = is_in_blocks ? block : rows;
    const int64_t rank = is_in_blocks ? 3 : 2;
    made.scale_ = with_blocks(of_rank(c, first + 1, rank));
    c.check(decide_equal(made.scale_.shape()[0], made.experts()) &&
                decide_equal(made.scale_.shape()[1], made.columns()) &&
                made.scale_.shape()[2].is(rows / made.block_),
            "scales of shape ", made.scale_.shape(), " for weights of shape ",
            made.weights_.shape(), " in blocks of ", made.block_);
    if (c.has(zero)) {
      const Tensor bytes = of_rank(c, zero, rank);
      c.check(decide_equal(bytes.shape()[0], made.experts()), "zeros of shape ", bytes.shape(),
              " for weights of shape ", made.weights_.shape());
      made.zero_ = unpacked_zero(made, bytes, bits, is_in_blocks);
    }
    // Level 4 allows products of int8 (as MatMulNBits has it).
    made.is_integer_ = is_in_blocks && c.attr("accuracy_level", 0) == 4;
    made.set_bias(c, first + 2);
    return made;
  }

  tiny::Dim experts() const { return weights_.shape()[0]; }
  tiny::Dim columns() const { return weights_.shape()[1]; }
  const tiny::Dim& rows() const { return rows_; }

  // x [n, rows] by an expert's weights: [n, columns].
  Tensor of(const Tensor& x, const OneExpert& one) const {
    const Tensor y = product_of(x, one);
    return bias_ ? y + one(bias_) : y;
  }

 private:
  static Tensor of_rank(const Call& c, size_t i, int64_t rank) {
    const Tensor& t = c.in(i);
    c.check(t.rank() == rank, "input ", i, " has shape ", t.shape(), "; wanted ", rank, " axes");
    return t;
  }
  static Tensor with_blocks(const Tensor& t) { return t.rank() == 3 ? t : unsqueeze(t, {2}); }

  // Numbers [experts, columns, blocks] of bytes that are packed along the last axis.
  static Tensor unpacked_zero(const Projection& p, const Tensor& bytes, int64_t bits,
                              bool is_in_blocks) {
    const tiny::Dim size = is_in_blocks ? p.scale_.shape()[2] : p.columns();
    const int64_t last = bytes.rank() - 1;
    return with_blocks(slice_axis(unpack_bits(bytes, bits), last, 0, size));
  }

  void set_bias(const Call& c, size_t i) {
    if (!c.has(i)) return;
    bias_ = of_rank(c, i, 2);
    c.check(decide_equal(bias_.shape()[0], experts()) && decide_equal(bias_.shape()[1], columns()),
            "a bias of shape ", bias_.shape(), " for weights of shape ", weights_.shape());
  }

  Tensor product_of(const Tensor& x, const OneExpert& one) const {
    if (bits_ == 0) return matmul(x, transpose(one(weights_), 0, 1));
    const Tensor packed = one(weights_), scale = one(scale_);
    const Tensor zero = zero_ ? one(zero_) : Tensor();
    if (is_integer_) {
      const Shape by_block{columns(), scale.shape()[1], tiny::Dim(block_ * bits_ / 8)};
      return matmul_packed(x, reshape(packed, by_block), bits_, scale, zero);
    }
    const Tensor w = dequantize_packed(packed, bits_, scale,
                                       zero ? cast(zero, scale.dtype()) : Tensor(), block_);
    return matmul(x, transpose(cast(w, x.dtype()), 0, 1));
  }

  Tensor weights_, scale_, zero_, bias_;
  tiny::Dim rows_ = 0;
  int64_t bits_ = 0;  // 0: floats
  int64_t block_ = 0;
  bool is_integer_ = false;
};

// The network that each expert is: y = second(f(first(x))), of which `gate` is a factor.
struct Network {
  Projection first, second;
  std::optional<Projection> gate;
};

enum class Activation { Relu, Gelu, Silu, SwiGlu, Identity };
constexpr std::array kActivations = {
    Named<Activation>{"relu", Activation::Relu}, Named<Activation>{"gelu", Activation::Gelu},
    Named<Activation>{"silu", Activation::Silu}, Named<Activation>{"swiglu", Activation::SwiGlu},
    Named<Activation>{"identity", Activation::Identity}};

// How two columns that are a gate and what it lets through stand in the first product.
enum class Fusion { None, Interleaved, Halves };

class Activated {
 public:
  explicit Activated(const Call& c, bool has_gate)
      : kind_(named_attr(c, "activation_type", "relu",
                         std::span<const Named<Activation>>(kActivations))),
        alpha_(c.real_attr("activation_alpha", 1)),
        beta_(c.real_attr("activation_beta", 0)),
        context_(c.context()) {
    const int64_t fusion = c.attr("swiglu_fusion", 0);
    if (c.has_attribute("swiglu_limit")) limit_ = c.real_attr("swiglu_limit", 0);
    c.check(fusion >= 0 && fusion <= 2, "the attribute swiglu_fusion is ", fusion,
            "; wanted 0, 1 or 2");
    if (kind_ == Activation::SwiGlu) {
      fusion_ = static_cast<Fusion>(fusion);
      c.check((fusion_ == Fusion::None) == has_gate,
              "swiglu takes its two products from one (swiglu_fusion) or from two inputs");
    }
  }

  int64_t columns_of_one() const { return fusion_ == Fusion::None ? 1 : 2; }

  // Of the first product [n, columns], and the gate's, if there is one.
  Tensor of(const Tensor& x, const Tensor& gate) const {
    switch (kind_) {
      case Activation::Relu:
        return times(relu(x), gate);
      case Activation::Gelu:
        return times(gelu(x, GeluKind::Tanh), gate);
      case Activation::Silu:
        return times(silu(x), gate);
      case Activation::Identity:
        return times(x, gate);
      case Activation::SwiGlu:
        break;
    }
    if (gate) return swiglu(x, gate);
    const tiny::Dim half = floor_div(x.shape()[1], 2);
    if (fusion_ == Fusion::Halves)
      return swiglu(slice_axis(x, 1, 0, half), slice_axis(x, 1, half, x.shape()[1]));
    const Tensor pairs = reshape(x, Shape{x.shape()[0], half, 2});
    const auto one = [&](int64_t i) { return squeeze(slice_axis(pairs, 2, i, i + 1), {2}); };
    return swiglu(one(0), one(1));
  }

 private:
  static Tensor times(const Tensor& x, const Tensor& gate) { return gate ? x * gate : x; }
  Tensor swiglu(Tensor x, Tensor linear) const {
    if (limit_) {
      const Tensor high = Tensor::weak_float(context_, *limit_);
      const Tensor low = Tensor::weak_float(context_, -*limit_);
      x = minimum(x, high);
      linear = maximum(minimum(linear, high), low);
    }
    if (beta_ != 0) linear = linear + Tensor::weak_float(context_, beta_);
    return swish(x, alpha_) * linear;
  }

  Activation kind_;
  Fusion fusion_ = Fusion::None;
  double alpha_, beta_;
  std::optional<double> limit_;
  Ref<Context> context_;
};

// Which experts each token has, and by what their results are multiplied: both [tokens, k].
struct Routing {
  Tensor experts, weights;
};

class Mixture {
 public:
  Mixture(Call& c, Network network)
      : c_(c), network_(std::move(network)), activated_(c, network_.gate.has_value()) {
    c.check(decide_equal(network_.first.columns(), network_.second.rows() * columns_of_one()) &&
                decide_equal(network_.first.experts(), network_.second.experts()) &&
                decide_equal(network_.first.rows(), network_.second.columns()),
            "its second product has ", network_.second.experts(), " experts of ",
            network_.second.rows(), " rows and ", network_.second.columns(), " columns, its first ",
            network_.first.experts(), " of ", network_.first.rows(), " and ",
            network_.first.columns());
    if (network_.gate)
      c.check(decide_equal(network_.gate->columns(), network_.second.rows()) &&
                  decide_equal(network_.gate->rows(), network_.first.rows()) &&
                  decide_equal(network_.gate->experts(), network_.first.experts()),
              "its third product has ", network_.gate->experts(), " experts of ",
              network_.gate->rows(), " rows and ", network_.gate->columns(), " columns");
  }

  // x [tokens, rows]: the sums of what its experts make.
  Tensor of(const Tensor& x, const Routing& routing) const {
    const tiny::Dim& tokens = x.shape()[0];
    const int64_t chosen = routing.experts.shape()[1].value();
    // As many copies of the network as are chosen, or as there are.
    const bool is_few =
        tokens.is_const() && tokens.value() * chosen <= network_.first.experts().value();
    return is_few ? by_choice(x, routing) : by_expert(x, routing);
  }

 private:
  int64_t columns_of_one() const { return activated_.columns_of_one(); }

  Tensor one_of(const Tensor& x, const OneExpert& one) const {
    const Tensor gate = network_.gate ? network_.gate->of(x, one) : Tensor();
    return network_.second.of(activated_.of(network_.first.of(x, one), gate), one);
  }

  // The number of elements that `count` will say; none where there can be no such size.
  std::optional<tiny::Dim> size_found(const Tensor& count, const tiny::Dim& most) const {
    std::optional<tiny::Dim> found;
    std::string failure;
    c_.importer().attempt([&] { found = c_.importer().computed_size(count, most, c_.node()); },
                          failure);
    return found;
  }

  // The weights of one that a run finds: from where it says, in place.
  OneExpert expert_at(const Tensor& number) const {
    const auto found = size_found(number, network_.first.experts() - 1);
    return [found, number](const Tensor& all) {
      const Tensor one =
          found ? slice_axis(all, 0, *found, *found + 1) : gather(all, reshape(number, {1}), 0);
      return squeeze(one, {0});
    };
  }

  Tensor by_choice(const Tensor& x, const Routing& routing) const {
    const int64_t tokens = x.shape()[0].value(), chosen = routing.experts.shape()[1].value();
    const auto at = [](const Tensor& all, int64_t token, int64_t choice) {
      return slice_axis(slice_axis(all, 0, token, token + 1), 1, choice, choice + 1);
    };
    Tensors rows;
    for (int64_t token = 0; token < tokens; ++token) {
      const Tensor row = slice_axis(x, 0, token, token + 1);
      Tensor total;
      for (int64_t choice = 0; choice < chosen; ++choice) {
        const OneExpert one = expert_at(reshape(at(routing.experts, token, choice), Shape()));
        const Tensor y = one_of(row, one) * at(routing.weights, token, choice);
        total = total ? total + y : y;
      }
      rows.push_back(total);
    }
    return rows.size() == 1 ? rows[0] : concat(rows, 0);
  }

  Tensor by_expert(const Tensor& x, const Routing& routing) const {
    const int64_t experts = network_.first.experts().value();
    Tensor total = full_bits(c_.context(), x.dtype(), x.shape(), 0);
    for (int64_t e = 0; e < experts; ++e) {
      const OneExpert one = [e](const Tensor& all) {
        return squeeze(slice_axis(all, 0, e, e + 1), {0});
      };
      const Tensor is_chosen = equal(routing.experts, number_int(c_, e));  // [tokens, k]
      const Tensor nothing = Tensor::weak_float(c_.context(), 0);
      const Tensor weight = sum(where(is_chosen, routing.weights, nothing), {1}, true);
      const Chosen chosen = chosen_places(any(is_chosen, {1}));
      const auto count = size_found(chosen.count, x.shape()[0]);
      if (!count) {
        total = total + one_of(x, one) * weight;
        continue;
      }
      const Tensor places = first_elements(chosen.places, *count);
      const Tensor y = one_of(gather(x, places, 0), one) * gather(weight, places, 0);
      total = scatter_nd(total, unsqueeze(places, {1}), y, Fold::Add);
    }
    return total;
  }

  Call& c_;
  Network network_;
  Activated activated_;
};

// x [.., rows] and the router's numbers [tokens, experts], of which the greatest k are chosen;
// `is_normalized`: what is multiplied with sums to 1.
Tensor mixed(Call& c, Network network, const Tensor& given_weights, bool is_normalized) {
  const Tensor &x = c.in(0), &router = c.in(1);
  const int64_t k = c.attr("k", 1);
  c.check(x.rank() >= 2 && decide_equal(x.shape().back(), network.first.rows()),
          "input 0 of shape ", x.shape(), " for experts of ", network.first.rows(), " rows");
  const Tensor rows = flatten(x, 0, x.rank() - 1);
  c.check(router.rank() == 2 && decide_equal(router.shape()[0], rows.shape()[0]) &&
              decide_equal(router.shape()[1], network.first.experts()),
          "input 1 of shape ", router.shape(), " for ", rows.shape()[0], " tokens and ",
          network.first.experts(), " experts");
  c.check(k > 0 && k <= dim_of(router, 1), "the attribute k is ", k, " of ", dim_of(router, 1),
          " experts");
  if (rows.shape()[0].is(0)) return x;
  const TopK best = top_k(router, k, 1, true);
  Tensor weights =
      take_along_axis(given_weights ? given_weights : softmax(router, 1), best.indices, 1);
  if (is_normalized) weights = weights / sum(weights, {1}, true);
  const Mixture mixture(c, std::move(network));
  return reshape(mixture.of(rows, {best.indices, cast(weights, x.dtype())}), x.shape());
}

// Inputs: x, the router's numbers; weights and a bias of the first product, the second and a gate.
Tensors import_experts(Call& c) {
  c.pass_over({"use_sparse_mixer"});
  Network network{Projection::of_floats(c, 2), Projection::of_floats(c, 4), {}};
  if (c.has(6)) network.gate = Projection::of_floats(c, 6);
  return {mixed(c, std::move(network), {}, c.flag("normalize_routing_weights", false))};
}

// Inputs: x, the router's numbers; weights, scales and a bias of the three products; their zeros;
// what results are multiplied by instead of what the router says.
Tensors import_quantized_experts(Call& c) {
  c.pass_over({"use_sparse_mixer", "weights_prepacked"});
  const std::string kind = c.text_attr("quant_type", "int");
  if (kind != "int") c.unsupported("weights of the kind \"", kind, "\"");
  Network network{Projection::of_few_bits(c, 2, 11, "fc1_expert_weight_bits"),
                  Projection::of_few_bits(c, 5, 12, "fc2_expert_weight_bits"),
                  {}};
  if (c.has(8)) network.gate = Projection::of_few_bits(c, 8, 13, "fc3_expert_weight_bits");
  const Tensor weights = c.in_or(14, Tensor());
  // Without weights of their own onnxruntime's always sum to 1.
  const bool is_normalized = !weights || c.flag("normalize_routing_weights", false);
  return {mixed(c, std::move(network), weights, is_normalized)};
}

// clang-format off
constexpr Row kRows[] = {
    {"MoE",  1, 1, import_experts, 0, nullptr, kContributed},
    {"QMoE", 1, 1, import_quantized_experts, 0, nullptr, kContributed},
};
// clang-format on

}  // namespace

std::span<const Row> contributed_expert_rows() {
  return kRows;
}

}  // namespace tiny::onnx
