// The ranges of a kernel that is being lowered: over what its first store writes, over what it
// reduces, and where the values of other stores and reductions run beside them.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/kernel.h"
#include "ir/node_map.h"
#include "ir/uop.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

class KernelRanges {
 public:
  // Whether the kernel reads a value from memory, so that what is below it is not computed here.
  using InMemory = std::function<bool(const UOp&)>;

  // The kernel, which gets the ranges, and the graph must outlive it.
  KernelRanges(Kernel& kernel, Graph& graph, bool has_several_stores, InMemory in_memory)
      : kernel_(kernel),
        graph_(graph),
        has_several_stores_(has_several_stores),
        in_memory_(std::move(in_memory)) {}

  // Makes the ranges of the first store, which writes `value` at `view`: the value's index.
  const std::vector<UOp>& make_output(const UOp& value, const View& view);
  // How many ranges are those of the first store: the first so many.
  size_t outputs() const { return outputs_; }

  // Where a later store's value is stored as the ranges run that the first store runs over: at one
  // of the indices where it was needed already (`known`), if that is one element of it for each;
  // else its axes are those of the first.
  std::optional<std::vector<UOp>> index_beside(
      const UOp& value, std::span<const std::vector<UOp>* const> known) const;

  // What a reduction at `index` runs over, one for each of its axes: a Range, or 0 for one element.
  const std::vector<UOp>& reduced(const UOp& node, const std::vector<UOp>& index);

 private:
  // A reduction, and the ranges that it is in.
  struct Reduction {
    UOp node;
    std::vector<UOp> outer;
  };

  UOp make(const Dim& size, bool reduced);
  bool is_output_index(const std::vector<UOp>& index, const Shape& shape) const;
  std::vector<UOp> reduced_beside(const UOp& node, const std::vector<UOp>& index) const;
  bool needs(const UOp& user, const UOp& node) const;

  Kernel& kernel_;
  Graph& graph_;
  bool has_several_stores_;
  InMemory in_memory_;
  size_t outputs_ = 0;
  std::vector<UOp> first_;                    // the index of the first store
  Shape first_shape_;                         // and its value's shape
  std::vector<Reduction> reductions_;         // of a kernel with several stores
  NodeTable<std::vector<UOp>> reduced_over_;  // by reduction
};

}  // namespace tiny
