// What is the same in all steps of a loop, and how what reaches it is summed over the steps.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "autograd/adjoint.h"
#include "autograd/backward.h"
#include "ir/uop.h"
#include "tensor/tensor.h"

namespace tiny {

// A sum of products (a weight's, of what came and what went in) is one product after the loop,
// where its factors take less than the sum: the steps keep these.  Another sum is a state.
class SharedAdjoints {
 public:
  void add(UOp node) { sums_.push_back({.node = std::move(node), .product = {}, .outputs = {}}); }

  // Decides, by what reached the nodes in a step; until then all are states.
  void plan(const Backward& step);

  size_t size() const { return sums_.size(); }
  bool is_empty() const { return sums_.empty(); }
  const UOp& node(size_t i) const { return sums_[i].node; }
  bool is_state(size_t i) const { return !sums_[i].is_after; }
  // How many outputs keep() adds in all.
  size_t kept() const { return kept_; }

  // A step keeps the factors of what is no state, as outputs behind those that it has.
  void keep(const Backward& step, std::vector<Tensor>& outputs);
  // The sum of what is no state, from the outputs of all steps.
  Adjoint after(size_t i, const std::vector<Tensor>& outputs) const;

 private:
  struct Sum {
    UOp node;
    bool is_after = false;
    Adjoint product;              // of a step
    std::vector<size_t> outputs;  // its factors
  };

  std::vector<Sum> sums_;
  size_t kept_ = 0;
};

}  // namespace tiny
