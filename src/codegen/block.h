// The linear program while it grows: a tree of blocks, so that a value can still be placed in an
// outer block, before the loop that is being written.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "ir/linear.h"
#include "ir/uop.h"

namespace tiny {

// What an instance of a node is remembered by: the node, and the coordinates of the unrolled ranges
// that it depends on.
struct InstanceKey {
  const Node* node = nullptr;
  std::array<uint64_t, 2> coordinates{};  // as two numbers
  uint64_t use = 0;                       // 0: the node's value; else what is made from it
  bool operator==(const InstanceKey&) const = default;
};

class BlockTree {
 public:
  explicit BlockTree(LinearProgram& program) : program_(&program) { blocks_.emplace_back(); }

  size_t depth() const { return open_.size(); }  // 0: the outermost block

  // Appends an op to the open block at `depth`, and says where it stands.
  LinearId add(size_t depth, Op op, DType dtype, std::initializer_list<LinearId> src = {},
               int64_t imm = 0, int32_t aux = 0);
  void set_bypass(LinearId store) { ops_[store].bypass = true; }
  void set_mark(LinearId loop) { ops_[loop].aux = 1; }
  const LinearOp& op(LinearId id) const { return ops_[id]; }
  size_t depth_of(LinearId id) const { return depths_[id]; }

  // Opens a block headed by this Loop or If; a Loop's id is its variable.
  LinearId open(Op op, DType dtype, std::initializer_list<LinearId> src, int64_t imm = 0);
  void close();  // with its EndLoop or EndIf

  // Until the block of the op ends, or that of the facts at `relies_on` which the value holds by.
  void remember(const InstanceKey& key, LinearId id, size_t relies_on = 0);
  // What is made next under the key is another value.
  void forget(const InstanceKey& key) { instances_.erase(key); }
  // The op that computes it and is visible here; none if there is none.
  const LinearId* find(const InstanceKey& key) const;
  // The depth of the block in which what find() gave for the key is remembered.
  size_t depth_of(const InstanceKey& key) const { return instances_.at(key).depth; }

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
    std::vector<InstanceKey> remembered;
  };
  struct KeyHash {
    size_t operator()(const InstanceKey& k) const {
      return hash_mix(hash_mix(hash_mix(reinterpret_cast<uintptr_t>(k.node), k.coordinates[0]),
                               k.coordinates[1]),
                      k.use);
    }
  };
  size_t current(size_t depth) const { return depth == 0 ? 0 : open_[depth - 1]; }
  LinearId store(size_t depth, Op op, DType dtype, std::initializer_list<LinearId> src, int64_t imm,
                 int32_t aux);

  LinearProgram* program_;
  std::vector<LinearOp> ops_;
  std::vector<size_t> depths_;
  std::vector<Block> blocks_;
  std::vector<size_t> open_;  // blocks, outer to inner
  struct Remembered {
    LinearId id = 0;
    size_t depth = 0;
  };
  std::unordered_map<InstanceKey, Remembered, KeyHash> instances_;
};

}  // namespace tiny
