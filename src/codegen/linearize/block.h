// The linear program while it grows: a tree of blocks, so that a value can still be placed in an
// outer block, before the loop that is being written.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "codegen/linearize/instance_table.h"
#include "ir/linear.h"

namespace tiny {

class BlockTree {
 public:
  explicit BlockTree(LinearProgram& program) : program_(&program), blocks_(1) {}

  size_t depth() const { return open_.size(); }  // 0: the outermost block

  // Appends an op to the open block at `depth`, and says where it stands.
  LinearId add(size_t depth, Op op, DType dtype, std::initializer_list<LinearId> src = {},
               int64_t imm = 0, int32_t aux = 0);
  void set_bypass(LinearId store) { ops_[store].bypass = true; }
  void set_mark(LinearId loop, int32_t mark) { ops_[loop].aux = mark; }
  const LinearOp& op(LinearId id) const { return ops_[id]; }
  size_t depth_of(LinearId id) const { return depths_[id]; }

  // Opens a block headed by this Loop or If; a Loop's id is its variable.
  LinearId open(Op op, DType dtype, std::initializer_list<LinearId> src, int64_t imm = 0);
  void close();  // with its EndLoop or EndIf

  // Until the block of the op ends, or that of the facts at `relies_on` which the value holds by.
  void remember(const InstanceKey& key, LinearId id, size_t relies_on = 0);
  // What is made next under the key is another value.
  void forget(const InstanceKey& key) { instances_.insert(key, {0, kNoBlock, 0}); }
  struct Remembered {
    LinearId id = 0;
    uint32_t block = 0;  // in which it is remembered
    size_t depth = 0;    // of that block
  };
  // What is remembered under the key and visible here; null if there is nothing.
  const Remembered* recall(const InstanceKey& key) const {
    const Remembered* found = instances_.find(key);
    return found && found->block != kNoBlock && blocks_[found->block].open ? found : nullptr;
  }
  // The op that computes it.
  const LinearId* find(const InstanceKey& key) const {
    const Remembered* found = recall(key);
    return found ? &found->id : nullptr;
  }

  // Writes the ops in program order.
  void flatten() const;

 private:
  struct Item {
    LinearId op = 0;
    size_t block = 0;  // 0: an op; else that block stands here
  };
  struct Block {
    LinearId head = 0;  // written where the block begins, after all that was placed before it
    std::vector<Item> items;
    bool open = true;
  };
  static constexpr uint32_t kNoBlock = UINT32_MAX;

  size_t current(size_t depth) const { return depth == 0 ? 0 : open_[depth - 1]; }
  LinearId store(size_t depth, Op op, DType dtype, std::initializer_list<LinearId> src, int64_t imm,
                 int32_t aux);

  LinearProgram* program_;
  std::vector<LinearOp> ops_;
  std::vector<size_t> depths_;
  std::vector<Block> blocks_;
  std::vector<size_t> open_;  // blocks, outer to inner
  InstanceTable<Remembered> instances_;
};

}  // namespace tiny
