#include "codegen/linearize/block.h"

#include <algorithm>

#include "base/error.h"

namespace tiny {

LinearId BlockTree::store(size_t depth, Op op, DType dtype, std::initializer_list<LinearId> src,
                          int64_t imm, int32_t aux) {
  LinearOp o;
  o.op = op;
  o.dtype = dtype;
  o.count = static_cast<uint8_t>(src.size());
  size_t i = 0;
  for (LinearId s : src) {
    invariant(depths_[s] <= depth, "sources are visible where an op is placed");
    o.src[i++] = s;
  }
  o.imm = imm;
  o.aux = aux;
  ops_.push_back(o);
  depths_.push_back(depth);
  return static_cast<LinearId>(ops_.size() - 1);
}

LinearId BlockTree::add(size_t depth, Op op, DType dtype, std::initializer_list<LinearId> src,
                        int64_t imm, int32_t aux) {
  const LinearId id = store(depth, op, dtype, src, imm, aux);
  blocks_[current(depth)].items.push_back({id, 0});
  return id;
}

LinearId BlockTree::open(Op op, DType dtype, std::initializer_list<LinearId> src, int64_t imm) {
  const LinearId head = store(depth(), op, dtype, src, imm, 0);
  blocks_.emplace_back();
  blocks_.back().head = head;
  open_.push_back(blocks_.size() - 1);
  depths_[head] = depth();  // the variable belongs to the block
  return head;
}

void BlockTree::close() {
  const size_t done = open_.back();
  const LinearId head = blocks_[done].head;
  open_.pop_back();
  blocks_[done].open = false;
  blocks_[current(depth())].items.push_back({0, done});
  depths_[head] = depth();
  add(depth(), ops_[head].op == Op::Loop ? Op::EndLoop : Op::EndIf, kVoid, {head});
}

void BlockTree::remember(const InstanceKey& key, LinearId id, size_t relies_on) {
  const size_t depth = std::max(depths_[id], std::min(relies_on, open_.size()));
  instances_.insert(key, {id, static_cast<uint32_t>(current(depth)), depth});
}

void BlockTree::flatten() const {
  std::vector<LinearId> place(ops_.size());
  const auto write = [&](LinearId id) {
    LinearOp op = ops_[id];
    for (size_t i = 0; i < op.count; ++i) op.src[i] = place[op.src[i]];
    place[id] = static_cast<LinearId>(program_->ops.size());
    program_->ops.push_back(op);
  };
  struct Cursor {
    size_t block;
    size_t item;
  };
  std::vector<Cursor> stack{{0, 0}};
  while (!stack.empty()) {
    Cursor& top = stack.back();
    const Block& block = blocks_[top.block];
    if (top.item == block.items.size()) {
      stack.pop_back();
      continue;
    }
    const Item item = block.items[top.item++];
    if (item.block == 0) {
      write(item.op);
      continue;
    }
    write(blocks_[item.block].head);
    stack.push_back({item.block, 0});
  }
}

}  // namespace tiny
