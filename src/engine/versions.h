// What a schedule's writes in place mean for the values that are alive.
//
// Before it: an old version that something not yet computed still reads is copied, in its needed
// part.  After it: the last version written names the memory from then on, older ones do not.
#pragma once

#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/context.h"
#include "ir/uop.h"

namespace tiny {

// The memory that a version's writes go to.
const UOp& memory_below(const UOp& version);
// The versions below `roots` that are yet to be written, older ones first.
std::vector<UOp> pending_below(std::span<const UOp> roots);
// Where something below `outputs` is yet to be written, a step is done as a whole: writes to other
// tensors that are read for it, and those that depend on `inputs`, the newest version of each.
std::vector<UOp> writes_beside(const Context& context, std::span<const UOp> outputs,
                               std::span<const UOp> inputs);

// Makes pending versions of the writes along with what `roots` are made of (Cell::Along), for the
// schedule that computes these; what was to be written before one of them, and is not, never will.
std::vector<UOp> begin_writes_along(Context& context, std::span<const UOp> roots);

class Versions {
 public:
  // For a schedule that computes `outputs`.
  Versions(Context& context, std::span<const UOp> outputs);

  bool any() const { return !last_.empty(); }
  // Copies to be computed along with the outputs, in memory of their own.
  const std::vector<UOp>& copies() const { return copies_; }
  int64_t copied_bytes() const { return copied_bytes_; }
  bool is_copy(const UOp& node) const { return copied_.contains(node.node()); }
  // Memory for a node, if it is one of the copies.
  Ref<Storage> memory_for(const UOp& copy) const;
  // Once every copy is realised and the run is about to start: the versions take their memory.
  void settle();

 private:
  struct Old {
    UOp version;
    int64_t first = 0;  // elements that are read
    int64_t last = -1;
    UOp copy = {};

    bool is_read() const { return first <= last; }
  };

  void find_writes(std::span<const UOp> outputs);
  void find_readers(std::span<const UOp> outputs);
  bool is_lost(const UOp& node) const;
  bool reads_lost(const UOp& node);
  void make_copies();
  void forget_old_memory();

  Context& context_;
  std::vector<uint8_t> written_;  // by id: versions that the schedule makes
  std::vector<uint8_t> is_last_;  // by id: the last of their memory
  std::vector<UOp> last_;
  std::unordered_set<const RefCounted*> memories_;  // that are written
  std::vector<Old> old_;
  std::unordered_map<const Node*, size_t> index_;   // of a version in old_
  std::unordered_map<const Node*, size_t> copied_;  // of its copy
  std::vector<uint8_t> flags_;
  std::vector<UOp> copies_;
  int64_t copied_bytes_ = 0;
};

// Gives cells memory of their own that have their elements in such memory, which another cell owns:
// equal values that were computed together share it.  For writes that no schedule knows of.
void part_equals(Context& context, const std::unordered_set<const RefCounted*>& written);
// The memories that these versions write to.
std::unordered_set<const RefCounted*> memories_written(std::span<const UOp> versions);

// Turns cells whose last version has memory into that memory, so that what computed it can go.
void rebind_cells(Context& context);

}  // namespace tiny
