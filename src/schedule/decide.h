// Which values of a tensor graph become buffers.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cost/machine.h"
#include "ir/node_map.h"
#include "ir/uop.h"
#include "schedule/scans.h"
#include "shape/view.h"

namespace tiny {

struct Decision {
  std::vector<UOp> order;  // every node reached, sources first
  ScanBodies bodies;
  std::vector<uint8_t> stored;  // by node id: has a buffer, now or after its kernel
  NodeTable<UOp> slices;        // the concatenations whose slices nodes are stored into
  Layouts layouts;              // of buffers that are not row-major
  BufferSizes elements;         // of buffers with gaps between rows
  NodeTable<UOp> slots;         // of versions, what holds the memory that they share
  NodeTable<UOp> updates;       // of writes, the scatters into the very memory that they write
  // Of what is stored for products in words: the multiply-adds that computing it on the way costs.
  NodeTable<double> words;
  // Reads of a version by the kernel of a node that go to a copy of its elements from `first` on.
  struct VersionCopy {
    UOp node;
    int64_t first = 0;
  };
  std::map<std::pair<const Node*, const Node*>, VersionCopy> copies;  // by (kernel, version)

  // Where the elements of a stored node are in its buffer.
  View view_of(const UOp& node) const {
    const auto at = layouts.find(node.node());
    return at == layouts.end() ? row_major(shape_of(node)) : at->second;
  }
  // What holds the memory of `base`: itself, but for a version.
  const UOp& slot(const UOp& base) const {
    const UOp* other = slots.find(base.node());
    return other ? *other : base;
  }
  // What stores by index in the kernel of `node`: itself, or what it writes; null if nothing does.
  const UOp* scatter_of(const UOp& node) const {
    return node.op() == Op::Scatter ? &node : updates.find(node.node());
  }
  // The concatenation whose slice the node is stored into; null if there is none.
  const UOp* slice(const UOp& node) const { return slices.find(node.node()); }
  // Whether what is stored to `destination` is read from the value's own buffer: a part of a
  // concatenation that others read as well.
  bool is_copied(const UOp& value, const UOp& destination) const;
};

// What computing one element costs, in operations of one instruction: of casts what widens floats.
double work_weight(const UOp& u);

// What not storing and reading a buffer of this size saves, with its launch.
double saved_seconds(double bytes, const Machine& machine);

// The elements that a write goes to, in the shape of its value before that was reshaped to them.
std::optional<StoredView> written_as(const UOp& assign, const UOp& value);

// The value that a scatter updates, before it was reshaped: what has its elements in their order.
UOp scattered_into(const UOp& scatter);

Decision decide_stored(std::span<const UOp> outputs, const Machine& machine);

}  // namespace tiny
