#include "ir/nest.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/error.h"

namespace tiny {

namespace {

constexpr size_t kLineMax = 96;

// A loop, an If, or the whole program.
struct Block {
  std::string head;  // "loop i0 16"
  struct Item {
    std::string what;  // "fma"; empty: a block
    int64_t count = 0;
    size_t block = 0;
  };
  std::vector<Item> items;
  std::string extent;        // of a loop: "[16]"
  bool accumulates = false;  // it, or a block in it
};

class NestReader {
 public:
  explicit NestReader(const LinearProgram& program) : program_(program) {
    for (const LinearOp& op : program.ops)
      if (op.op == Op::Scratch) scratch_.emplace(op.imm, 0);
    int64_t next = 0;
    for (auto& [offset, number] : scratch_) number = next++;
    leave_out_polls();
  }

  std::vector<Block> run() {
    blocks_.emplace_back();
    std::vector<size_t> open{0};
    for (LinearId id = 0; id < program_.ops.size(); ++id) {
      const LinearOp& op = program_.ops[id];
      if (left_out_.contains(id)) continue;
      switch (op.op) {
        case Op::Loop:
        case Op::If:
          blocks_[open.back()].items.push_back({"", 1, blocks_.size()});
          blocks_.push_back(op.op == Op::Loop ? loop(id) : Block{"if", {}, "", false});
          open.push_back(blocks_.size() - 1);
          break;
        case Op::EndLoop:
        case Op::EndIf: {
          const bool accumulates = blocks_[open.back()].accumulates;
          open.pop_back();
          blocks_[open.back()].accumulates |= accumulates;
          break;
        }
        default:
          if (op.op == Op::Set) blocks_[open.back()].accumulates = true;
          if (const std::string what = statement(op); !what.empty())
            count(blocks_[open.back()], what);
      }
    }
    return std::move(blocks_);
  }

 private:
  // A poll, the branch that it is alone in with its counter's Set, and all that counts.
  void leave_out_polls() {
    std::set<LinearId> counters;
    for (LinearId id = 1; id + 2 < program_.ops.size(); ++id) {
      const bool is_alone = program_.ops[id - 1].op == Op::If &&
                            program_.ops[id + 1].op == Op::Set &&
                            program_.ops[id + 2].op == Op::EndIf;
      if (program_.ops[id].op != Op::Poll || !is_alone) continue;
      left_out_.insert({id - 1, id, id + 1, id + 2});
      counters.insert(program_.ops[id + 1].src[0]);
    }
    for (LinearId id = 0; id < program_.ops.size(); ++id)
      if (counters.contains(id) ||
          (program_.ops[id].op == Op::Set && counters.contains(program_.ops[id].src[0])))
        left_out_.insert(id);
  }

  Block loop(LinearId id) {
    const LinearOp& op = program_.ops[id];
    const LinearOp& begin = program_.ops[op.src[0]];
    const LinearOp& end = program_.ops[op.src[1]];
    const std::string name = cat("i", loops_.size());
    loops_.emplace(id, name);
    Block block;
    if (begin.op == Op::LaunchArg && end.op == Op::LaunchArg) {
      block.head = "threads " + name;
      return block;
    }
    const std::string bounds = begin.op == Op::Const && begin.imm == 0
                                   ? expression(op.src[1])
                                   : expression(op.src[0]) + ".." + expression(op.src[1]);
    block.head = cat("loop ", name, " ", bounds);
    if (op.imm != 1) block.head += cat(" step ", op.imm);
    block.extent = "[" + bounds + "]";
    return block;
  }

  // An index as text; cut off where it is deep.
  std::string expression(LinearId id, int depth = 6) const {
    const LinearOp& op = program_.ops[id];
    if (const auto loop = loops_.find(id); loop != loops_.end()) return loop->second;
    if (op.op == Op::Const) return std::to_string(op.imm);
    if (op.op == Op::Variable) return program_.variables.at(static_cast<size_t>(op.imm)).name;
    if (op.op == Op::LaunchArg) {
      if (program_.grouped) return op.imm == 0 ? "group" : cat("thread", op.imm - 3);
      return op.imm == 0 ? "begin" : op.imm == 1 ? "end" : "worker";
    }
    if (depth == 0 || op.op == Op::Load || op.op == Op::Accumulator) return "..";
    const auto part = [&](size_t i) { return expression(op.src[i], depth - 1); };
    if (op.op == Op::Max || op.op == Op::Min)
      return cat(info(op.op).symbol, "(", part(0), ", ", part(1), ")");
    if (op.count == 2) return cat("(", part(0), " ", info(op.op).symbol, " ", part(1), ")");
    std::vector<std::string> parts;
    for (size_t i = 0; i < op.count; ++i) parts.push_back(part(i));
    return cat(info(op.op).symbol, "(", join(parts, ", "), ")");
  }

  // "p2" or "s0": the memory that an address lies in.
  std::string memory(LinearId address) const {
    const LinearOp* op = &program_.ops[address];
    while (op->op == Op::Address) op = &program_.ops[op->src[0]];
    if (op->op == Op::Shared) return cat("shared+", op->imm);
    return op->op == Op::Scratch ? cat("s", scratch_.at(op->imm)) : cat("p", op->imm);
  }

  // What an op is in a nest; empty: part of an address or a condition.
  std::string statement(const LinearOp& op) const {
    switch (op.op) {
      case Op::Load:
        return "load " + memory(op.src[0]);
      case Op::Store: {
        const std::string place = memory(op.src[0]);
        return (place[0] == 's' ? "fill " : "store ") + place;
      }
      case Op::Accumulator:
        return "acc";
      case Op::Fold:
        return cat("fold ", info(static_cast<Op>(op.aux)).symbol);
      case Op::GroupFold:
        return cat("fold over threads ", info(static_cast<Op>(op.aux)).symbol);
      case Op::Barrier:
        return "barrier";
      case Op::CopyAsync:
        return cat("copy ", memory(op.src[1]), " to ", memory(op.src[0]));
      case Op::Commit:
        return "commit";
      case Op::WaitCopies:
        return cat("wait for all but ", op.imm);
      case Op::Mma:
        return "mma";
      case Op::Fence:
        return op.imm == 0 ? "fence of memory" : "fence of sums";
      case Op::CommitMmas:
        return "commit products";
      case Op::WaitMmas:
        return cat("wait for all products but ", op.imm);
      case Op::LoadMatrix:
        return "load matrices of " + memory(op.src[0]);
      case Op::Prefetch:
        return "prefetch " + memory(op.src[0]);
      case Op::Check:
        return "check";
      default:
        break;
    }
    const bool index = op.dtype.element() == kInt64 || op.dtype.is_bool();
    return (has(op.op, kElementwise) || op.op == Op::Dot) && !index ? info(op.op).symbol : "";
  }

  // Equal statements of a run are one: "fma x28".
  static void count(Block& block, const std::string& what) {
    for (size_t i = block.items.size(); i > 0 && !block.items[i - 1].what.empty(); --i)
      if (block.items[i - 1].what == what) {
        ++block.items[i - 1].count;
        return;
      }
    block.items.push_back({what, 1, 0});
  }

  const LinearProgram& program_;
  std::vector<Block> blocks_;
  std::map<LinearId, std::string> loops_;
  std::map<int64_t, int64_t> scratch_;  // byte offset to number
  std::set<LinearId> left_out_;
};

std::string item_text(const Block::Item& item) {
  return item.count == 1 ? item.what : cat(item.what, " x", item.count);
}

// Loops one in the other that do nothing but fill one piece of scratch, as "fill s0 [8][256] x2".
std::string fill_text(const std::vector<Block>& blocks, size_t at) {
  std::string extents;
  while (true) {
    const Block& block = blocks[at];
    if (block.extent.empty() || block.accumulates || block.items.empty()) return "";
    extents += block.extent;
    if (block.items.size() > 1 || !block.items.front().what.empty()) break;
    at = block.items.front().block;
  }
  std::string fill;
  std::string from;
  for (const Block::Item& item : blocks[at].items) {
    if (item.what.empty() || item.what.starts_with("store") || item.what == "check") return "";
    if (item.what.starts_with("fill")) {
      if (!fill.empty()) return "";
      fill = cat(item.what, " ", extents, item.count > 1 ? cat(" x", item.count) : "");
    } else if (item.what.starts_with("load")) {
      from += (from.empty() ? " of " : ", ") + item.what.substr(5);
    } else {
      from += (from.empty() ? " of " : ", ") + item_text(item);
    }
  }
  return fill.empty() ? "" : fill + from;
}

}  // namespace

std::string nest_text(const LinearProgram& program, int indent) {
  const std::vector<Block> blocks = NestReader(program).run();
  std::string out;
  struct Cursor {
    size_t block;
    size_t item = 0;
  };
  std::vector<Cursor> stack{{0, 0}};
  const auto pad = [&] {
    return std::string(static_cast<size_t>(indent) + 2 * (stack.size() - 1), ' ');
  };
  while (!stack.empty()) {
    Cursor& top = stack.back();
    const Block& block = blocks[top.block];
    if (top.item == block.items.size()) {
      stack.pop_back();
      if (!stack.empty()) out += pad() + "}\n";
      continue;
    }
    const Block::Item& item = block.items[top.item++];
    if (item.what.empty()) {
      const Block& inner = blocks[item.block];
      if (const std::string fill = fill_text(blocks, item.block); !fill.empty()) {
        out += pad() + fill + "\n";
        continue;
      }
      std::vector<std::string> parts;
      for (const Block::Item& i : inner.items)
        if (!i.what.empty()) parts.push_back(item_text(i));
      const std::string line = cat(pad(), inner.head, " { ", join(parts, "; "), " }\n");
      if (parts.size() == inner.items.size() && line.size() <= kLineMax) {
        out += line;
        continue;
      }
      out += pad() + inner.head + " {\n";
      stack.push_back({item.block, 0});
      continue;
    }
    // What stands before the next loop is one line, or a few.
    std::string line = pad() + item_text(item);
    while (top.item < block.items.size() && !block.items[top.item].what.empty()) {
      const std::string next = item_text(block.items[top.item++]);
      if (line.size() + next.size() + 2 > kLineMax) {
        out += line + "\n";
        line = pad() + next;
      } else {
        line += "; " + next;
      }
    }
    out += line + "\n";
  }
  return out;
}

}  // namespace tiny
