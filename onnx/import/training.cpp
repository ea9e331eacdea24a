// Training: ai.onnx.preview.training has a step of an optimiser, and gradients.
#include "autograd/gradient.h"
#include "base/error.h"
#include "onnx/import/functions.h"
#include "onnx/import/import.h"
#include "onnx/import/table.h"
#include "tensor/create.h"
#include "tensor/optimizer.h"

namespace tiny::onnx {

namespace {

constexpr const char* kDomain = "ai.onnx.preview.training";

// Inputs: the rate, the count, then `kinds` lists of tensors, each as long as there are tensors to
// optimise: the values, their gradients, what is kept.  Outputs: the values, then what is kept.
class Lists {
 public:
  Lists(const Call& c, size_t kinds) : call_(c), count_((c.inputs() - 2) / kinds) {
    c.check(c.inputs() > 2 && (c.inputs() - 2) % kinds == 0, "it has ", c.inputs(),
            " inputs; wanted 2 and ", kinds, " for each tensor");
    outputs_.resize((kinds - 1) * count_);
  }
  size_t count() const { return count_; }
  const Tensor& in(size_t kind, size_t i) const { return call_.in(2 + kind * count_ + i); }
  Tensor& out(size_t kind, size_t i) { return outputs_[kind * count_ + i]; }
  Tensors outputs() const { return outputs_; }

 private:
  const Call& call_;
  size_t count_;
  Tensors outputs_;
};

Tensors import_adagrad(Call& c) {
  const AdagradOptions options{.decay_factor = c.real_attr("decay_factor", 0),
                               .epsilon = c.real_attr("epsilon", 0),
                               .weight_decay = c.real_attr("norm_coefficient", 0)};
  Lists lists(c, 3);
  for (size_t i = 0; i < lists.count(); ++i) {
    const Adagrad next =
        adagrad({lists.in(0, i), lists.in(2, i)}, lists.in(1, i), c.in(0), c.in(1), options);
    lists.out(0, i) = next.value;
    lists.out(1, i) = next.squares;
  }
  return lists.outputs();
}

Tensors import_adam(Call& c) {
  const AdamOptions options{.alpha = c.real_attr("alpha", 0.9f),
                            .beta = c.real_attr("beta", 0.999f),
                            .epsilon = c.real_attr("epsilon", 0),
                            .weight_decay = c.real_attr("norm_coefficient", 0),
                            .weight_decay_after = c.real_attr("norm_coefficient_post", 0)};
  Lists lists(c, 4);
  for (size_t i = 0; i < lists.count(); ++i) {
    const Adam next = adam({lists.in(0, i), lists.in(2, i), lists.in(3, i)}, lists.in(1, i),
                           c.in(0), c.in(1), options);
    lists.out(0, i) = next.value;
    lists.out(1, i) = next.mean;
    lists.out(2, i) = next.squares;
  }
  return lists.outputs();
}

constexpr Named<bool> kMomentumModes[] = {{"standard", false}, {"nesterov", true}};

Tensors import_momentum(Call& c) {
  const MomentumOptions options{.alpha = c.real_attr("alpha", 0),
                                .beta = c.real_attr("beta", 1),
                                .weight_decay = c.real_attr("norm_coefficient", 0),
                                .nesterov = named_attr<bool>(c, "mode", "", kMomentumModes)};
  Lists lists(c, 3);
  for (size_t i = 0; i < lists.count(); ++i) {
    const Momentum next =
        momentum({lists.in(0, i), lists.in(2, i)}, lists.in(1, i), c.in(0), c.in(1), options);
    lists.out(0, i) = next.value;
    lists.out(1, i) = next.momentum;
  }
  return lists.outputs();
}

// The tensor of this name in the graph around.
Tensor tensor_named(Call& c, const std::string& name) {
  const Value* value = c.importer().find(name);
  if (!value || !value->is_plain())
    c.unsupported("\"", name, "\" is no tensor that is made before it");
  return value->tensor;
}

// What the value that the attribute y names changes by for each of those that xs name, which are
// its inputs; zs are held.
Tensors import_gradient(Call& c) {
  const auto names = c.strings_attr("xs");
  c.check(names && !names->empty(), "it needs the attribute xs");
  const std::vector<std::string> held = c.strings_attr("zs").value_or(std::vector<std::string>());
  std::vector<std::string> all = *names;
  all.insert(all.end(), held.begin(), held.end());
  c.check(all.size() == c.inputs(), "it has ", c.inputs(), " inputs for ", all.size(), " names");
  for (size_t i = 0; i < all.size(); ++i)
    if (!(tensor_named(c, all[i]).node() == c.in(i).node()))
      c.unsupported("its input ", i, " is another value than \"", all[i], "\"");
  const Tensor y = tensor_named(c, c.text_attr("y", ""));
  Tensors xs;
  for (size_t i = 0; i < names->size(); ++i) xs.push_back(c.in(i));
  for (size_t i = xs.size(); i < all.size(); ++i)
    if (!made_of(c.in(i), xs).empty()) c.unsupported("a held value that depends on the others");
  const Tensor ones = full(c.context(), y.dtype(), y.shape(), 1);
  return gradients(std::vector{y}, std::vector{ones}, xs);
}

// clang-format off
constexpr Row kRows[] = {
    {"Adagrad",  1, 1, import_adagrad,  0, nullptr, kDomain},
    {"Adam",     1, 1, import_adam,     0, nullptr, kDomain},
    {"Gradient", 1, 1, import_gradient, 0, nullptr, kDomain},
    {"Momentum", 1, 1, import_momentum, 0, nullptr, kDomain},
};
// clang-format on

}  // namespace

std::span<const Row> training_rows() {
  return kRows;
}

}  // namespace tiny::onnx
