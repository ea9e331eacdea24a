// Kernels of stored values, lowered once for each structure.
//
// A model repeats its layers, and joins are tried again and again: what a value is made of, down to
// the buffers that it reads, is compared before it is lowered.  Values that agree in operations,
// arguments and shapes, in which buffers they read twice, and in where these lie, get the same
// nodes, each with the names of its own buffers.  Arithmetic on elements that lie in their order is
// the same whatever its sizes: its nodes are copied with the sizes in their places.  In a graph
// with writes it also counts which memory is one: there every kernel is lowered by itself.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "schedule/decide.h"
#include "schedule/schedule.h"

namespace tiny {

class LowerOnce {
 public:
  // The decision may change between calls; it must outlive this, and the nodes of its order stay.
  explicit LowerOnce(const Decision& decision) : decision_(decision) {}

  // lower_store and lower_value (schedule/lower.h).
  ScheduledKernel store(const UOp& node, const UOp& destination, const View& view);
  ScheduledKernel value(const UOp& node);

  int64_t lowered() const { return lowered_; }  // kernels that were not known

 private:
  // What a value is made of: nodes after their sources, which are given by their places.
  struct Structure {
    std::vector<const Node*> nodes;
    std::vector<uint32_t> sources;  // of all nodes that are computed, one after the other
    std::vector<UOp> leaves;        // of the nodes, those that are read
    std::vector<uint32_t> leaf_at;  // their places
    uint64_t hash = 0;
    uint64_t hash_without_sizes = 0;
    // Every node is arithmetic, or movement that keeps the order of a leaf's elements, or fills a
    // shape with a constant.
    bool is_elementwise = false;
  };
  struct Entry {
    Structure structure;
    std::vector<View> layouts;  // of the leaves
    View view;
    uint32_t destination = 0;
    ScheduledKernel kernel;
    std::vector<uint32_t> values;  // of the kernel: which leaf each is, or the destination
    std::vector<uint32_t> reads;   // the same of what is read
    bool fits_other_sizes = false;
  };

  bool is_leaf(const UOp& node, const UOp& root, const UOp& destination) const;
  // Valid until the next is asked for.
  Structure& structure_of(const UOp& root, const UOp& destination);
  bool is_same(const Entry& entry, const Structure& other, const View& view,
               uint32_t destination) const;
  void keep(const Structure& structure, const View& view, uint32_t destination,
            const ScheduledKernel& kernel);
  // Whether the kernel of such a structure is the same for other sizes.
  bool is_in_order(const Structure& structure, const View& view, uint32_t destination) const;
  // A kernel that is known, and differs in its sizes at most; null if there is none.
  const Entry* find_of_other_size(const Structure& structure, const View& view) const;
  static ScheduledKernel with_sizes(const Entry& entry, const View& view);

  const Decision& decision_;
  std::unordered_map<uint64_t, Entry> entries_;               // by hash
  std::unordered_map<uint64_t, const Entry*> of_other_size_;  // by hash without sizes
  Structure structure_;                                       // that was made last
  std::vector<uint32_t> places_;                              // by id, in that
  int64_t lowered_ = 0;
};

}  // namespace tiny
