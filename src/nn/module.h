// A network's parameters and buffers, by the dotted names that PyTorch gives them.  They are made
// where a layer (layers.h) first asks for them, so that a network is a function of its input.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/ref.h"
#include "nn/generator.h"
#include "nn/initialize.h"
#include "tensor/tensor.h"

namespace tiny {

// A place in the tree of names; modules of one tree share what they hold.
class Module : public RefCounted {
 public:
  // The root of a tree, in training.
  Module(const Ref<Context>& context, uint64_t seed);
  // `name` below this.
  Ref<Module> child(std::string_view name) const;

  // What is there under the name, or what is made there: in memory, by a key of the seed and the
  // name, whatever was made before.  Error{Shape} if it is there with another shape.
  Tensor parameter(std::string_view name, const Ints& shape, const Initialization& how);
  // The same for what no optimiser changes: every element `value`, of `dtype`.
  Tensor& buffer(std::string_view name, const Ints& shape, DType dtype, double value);

  const Ref<Context>& context() const { return tree_->context; }
  // Of the whole tree: whether layers train, what parameters that are made from now on are of, and
  // where random numbers come from.
  bool is_training() const { return tree_->is_training; }
  void set_training(bool on) { tree_->is_training = on; }
  DType dtype() const { return tree_->dtype; }
  void set_dtype(DType dtype);
  Generator& generator() const { return *tree_->generator; }

  struct Entry {
    std::string name;  // from the root on
    Tensor value;
    bool is_parameter = false;
  };
  // At and below this place, in the order in which they were made.
  std::vector<const Entry*> entries(bool parameters_only) const;
  // How a name here is called from the root on.
  std::string full_name(std::string_view name) const;

 private:
  struct Tree : RefCounted {
    Ref<Context> context;
    Tensor key;
    Ref<Generator> generator;
    DType dtype = kFloat32;
    bool is_training = true;
    std::vector<std::unique_ptr<Entry>> entries;  // stay where they are
    std::map<std::string, Entry*, std::less<>> by_name;
  };

  Module(Ref<Tree> tree, std::string prefix);
  Entry& entry(std::string_view name, const Ints& shape, DType dtype, bool is_parameter,
               const Initialization& how);

  Ref<Tree> tree_;
  std::string prefix_;  // "" or with a dot at its end
};

}  // namespace tiny
