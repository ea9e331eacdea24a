#include "render/bytecode.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string_view>
#include <tuple>

#include "base/bytecode.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/look_often.h"

namespace tiny {
namespace {

constexpr LinearId kNone = UINT32_MAX;

BytecodeType type_of(DType dtype) {
  switch (dtype.scalar) {
#define BYTECODE_TYPE(name, bytes, storage) \
  case ScalarType::name:                    \
    return BytecodeType::name;
#include "base/bytecode.def"
    case ScalarType::Address:
      return BytecodeType::Int64;
    case ScalarType::Float8E4M3FN:
    case ScalarType::Float8E4M3FNUZ:
    case ScalarType::Float8E5M2:
    case ScalarType::Float8E5M2FNUZ:
    case ScalarType::Void:
      break;
  }
  invariant(false, "a value in bytecode has a number type");
  return BytecodeType::Int64;
}

// The opcode of the same name, for what acts lane by lane; End if there is none.
constexpr auto kSameName = [] {
  std::array<BytecodeOp, kOpCount> table{};
  for (size_t i = 0; i < kOpCount; ++i) {
    table[i] = BytecodeOp::End;
    const Op op = static_cast<Op>(i);
    if (!has(op, kElementwise) || !legal_in(op, kLinearStage)) continue;
    for (size_t j = 0; j < kBytecodeOpCount; ++j)
      if (std::string_view(info(op).name) == kBytecodeOps[j].name)
        table[i] = static_cast<BytecodeOp>(j);
  }
  return table;
}();

BytecodeOp arithmetic_op(Op op) {
  const BytecodeOp same = kSameName[static_cast<size_t>(op)];
  invariant(same != BytecodeOp::End, "bytecode has each elementwise op of the linear program");
  return same;
}

// An interpreter has nothing to gain from a prefetch; it copies and multiplies at once.
bool is_nothing(Op op) {
  return op == Op::Prefetch || op == Op::Commit || op == Op::WaitCopies || op == Op::Fence ||
         op == Op::CommitMmas || op == Op::WaitMmas;
}

bool is_leaf(Op op) {
  return op == Op::Const || op == Op::Param || op == Op::Scratch || op == Op::Shared ||
         op == Op::Variable || op == Op::LaunchArg;
}

// Frame slots: an offset is free again after the last use of its value.
class Frame {
 public:
  uint32_t allocate(int64_t bytes) {
    std::vector<uint32_t>& free = free_[bytes];
    if (!free.empty()) {
      const uint32_t at = free.back();
      free.pop_back();
      return at;
    }
    const int64_t align = bytes < kBytecodeVectorAlignment ? 8 : kBytecodeVectorAlignment;
    const int64_t at = round_up(end_, align);
    end_ = checked_add(at, bytes, "the frame of the bytecode");
    require(end_ < INT32_MAX, Status::Limit, "the frame of the bytecode exceeds 2 GB");
    return static_cast<uint32_t>(at);
  }
  void release(uint32_t at, int64_t bytes) { free_[bytes].push_back(at); }
  int64_t bytes() const { return round_up(end_, 64); }

 private:
  std::map<int64_t, std::vector<uint32_t>> free_;
  int64_t end_ = 0;
};

class Renderer {
 public:
  explicit Renderer(const LinearProgram& program) : program_(program), slots_(program.ops.size()) {}

  Code render() {
    find_last_uses();
    for (LinearId at = 0; at < ops().size(); ++at)
      if (is_leaf(ops()[at].op)) leaf(at);
    for (LinearId at = 0; at < ops().size(); ++at) {
      look_often(program_.stop, at);
      if (!is_leaf(ops()[at].op) && !is_nothing(ops()[at].op)) instruction(at);
      for (LinearId dead : dies_[at]) frame_.release(slots_[dead], slot_bytes(dead));
    }
    add({.op = BytecodeOp::End});
    return pack();
  }

 private:
  const std::vector<LinearOp>& ops() const { return program_.ops; }

  int64_t slot_bytes(LinearId id) const {
    const LinearOp& op = ops()[id];
    if (op.op == Op::Loop) return 16;
    if (op.op == Op::Fold)  // where the halves are combined
      return bytecode_slot_bytes(type_of(op.dtype), source(op, 0).lanes / 2);
    return bytecode_slot_bytes(type_of(op.dtype), op.dtype.lanes);
  }

  // A use inside a loop of a value from outside lasts until the end of the outermost such loop.
  void find_last_uses() {
    dies_.resize(ops().size());
    std::vector<LinearId> end_of(ops().size(), kNone), last(ops().size(), kNone), loops;
    for (LinearId at = 0; at < ops().size(); ++at)
      if (ops()[at].op == Op::EndLoop) end_of[ops()[at].src[0]] = at;
    for (LinearId at = 0; at < ops().size(); ++at) {
      const LinearOp& op = ops()[at];
      if (op.op == Op::EndLoop) loops.pop_back();
      for (size_t s = 0; s < op.count; ++s) {
        LinearId until = at;
        for (LinearId loop : loops)
          if (loop > op.src[s]) {
            until = end_of[loop];
            break;
          }
        LinearId& known = last[op.src[s]];
        known = known == kNone ? until : std::max(known, until);
      }
      if (op.op == Op::Loop) loops.push_back(at);
    }
    for (LinearId at = 0; at < ops().size(); ++at) {
      const LinearOp& op = ops()[at];
      if (op.dtype == kVoid || is_leaf(op.op)) continue;
      dies_[last[at] == kNone ? at : last[at]].push_back(at);
    }
  }

  void add(const BytecodeInstruction& instruction) { code_.push_back(instruction); }

  // Leaves are executed once, before everything else; equal ones share a slot that is never freed.
  void leaf(LinearId at) {
    const LinearOp& op = ops()[at];
    BytecodeInstruction i;
    i.type = type_of(op.dtype);
    i.lanes = op.dtype.lanes;
    i.imm = op.imm;
    switch (op.op) {
      case Op::Const:
        i.op = BytecodeOp::Constant;
        break;
      case Op::Param:
        i.op = BytecodeOp::Param;
        break;
      case Op::Scratch:
        i.op = BytecodeOp::Scratch;
        break;
      case Op::Variable:
        i.op = BytecodeOp::Variable;
        break;
      case Op::Shared:
        i.op = BytecodeOp::Shared;
        break;
      default:
        i.op = op.imm < 3 ? BytecodeOp::LaunchArg : BytecodeOp::ThreadIndex;
        if (op.imm >= 3) i.imm = op.imm - 3;
    }
    const auto [known, is_new] = leaves_.try_emplace({i.op, i.type, i.lanes, i.imm}, uint32_t{0});
    if (is_new) {
      known->second = i.result = frame_.allocate(bytecode_slot_bytes(i.type, i.lanes));
      add(i);
    }
    slots_[at] = known->second;
  }

  void instruction(LinearId at) {
    const LinearOp& op = ops()[at];
    BytecodeInstruction i;
    if (op.dtype != kVoid) {
      i.type = type_of(op.dtype);
      i.lanes = op.dtype.lanes;
      i.result = slots_[at] = frame_.allocate(slot_bytes(at));
    }
    for (size_t s = 0; s < op.count; ++s) i.source[s] = slots_[op.src[s]];
    i.imm = op.imm;
    i.aux = op.aux;
    fill(op, i);
    add(i);
  }

  void fill(const LinearOp& op, BytecodeInstruction& i) {
    switch (op.op) {
      case Op::Address:
        i.op = BytecodeOp::Address;
        return;
      case Op::Load:
      case Op::Store:
        return memory(op, i);
      case Op::Loop:
      case Op::If:
        opened_.push_back(static_cast<uint32_t>(code_.size()));
        i.op = op.op == Op::If ? BytecodeOp::If : BytecodeOp::Loop;
        return;
      case Op::EndLoop:
      case Op::EndIf:
        i.op = op.op == Op::EndIf ? BytecodeOp::EndIf : BytecodeOp::EndLoop;
        i.source[0] = 0;
        i.aux = static_cast<int32_t>(opened_.back());
        code_[opened_.back()].aux = static_cast<int32_t>(code_.size());
        opened_.pop_back();
        return;
      case Op::Accumulator:
        i.op = BytecodeOp::Copy;
        return;
      case Op::Set:
        i.op = BytecodeOp::Copy;
        i.type = type_of(source(op, 1));
        i.lanes = source(op, 1).lanes;
        i.result = i.source[0];
        i.source[0] = i.source[1];
        i.source[1] = 0;
        return;
      case Op::Poll:
        i.op = BytecodeOp::Poll;
        return;
      case Op::Barrier:
        i.op = BytecodeOp::Barrier;
        return;
      case Op::CopyAsync:
        i.op = BytecodeOp::CopyAsync;
        return;
      case Op::Check:
        i.op = BytecodeOp::Check;
        i.type = BytecodeType::Bool;
        i.lanes = source(op, 0).lanes;
        return;
      default:
        return value(op, i);
    }
  }

  void value(const LinearOp& op, BytecodeInstruction& i) {
    switch (op.op) {
      case Op::Broadcast:
        i.op = BytecodeOp::Broadcast;
        return;
      case Op::Ramp:
        i.op = BytecodeOp::Ramp;
        return;
      case Op::LaneRange:
        i.op = BytecodeOp::LaneRange;
        return;
      case Op::Fold:
        i.op = BytecodeOp::Fold;
        i.imm = static_cast<int64_t>(arithmetic_op(static_cast<Op>(op.aux)));
        i.aux = source(op, 0).lanes;
        break;
      case Op::GroupFold:
        i.op = BytecodeOp::GroupFold;
        i.imm = static_cast<int64_t>(arithmetic_op(static_cast<Op>(op.aux)));
        i.aux = static_cast<int32_t>(op.imm);
        break;
      case Op::Bitcast:
        i.op = BytecodeOp::Copy;
        return;
      case Op::Cast:
        i.op = BytecodeOp::Cast;
        i.to = i.type;
        i.type = type_of(source(op, 0));
        if (i.to == i.type) i.op = BytecodeOp::Copy;
        return;
      case Op::Where:
        i.op = BytecodeOp::Where;
        return;
      case Op::Dot:
        i.op = BytecodeOp::Dot;
        return;
      case Op::Mma:
        i.op = BytecodeOp::Mma;
        return;
      case Op::LoadMatrix:
        i.op = BytecodeOp::LoadMatrix;
        return;
      case Op::Join:
        i.op = BytecodeOp::Join;
        return;
      case Op::Part:
        i.op = BytecodeOp::Part;
        i.aux = source(op, 0).lanes;
        return;
      default:
        i.op = arithmetic_op(op.op);
        i.type = type_of(source(op, 0));
    }
    invariant(i.type != BytecodeType::Float16 && i.type != BytecodeType::BFloat16,
              "half types are not computed with in a linear program");
  }

  void memory(const LinearOp& op, BytecodeInstruction& i) {
    const bool load = op.op == Op::Load;
    const DType dtype = load ? op.dtype : source(op, 2);
    const bool masked = op.count == (load ? 3 : 4);
    const bool lane_index = source(op, 1).lanes > 1;
    i.type = type_of(dtype);
    i.lanes = dtype.lanes;
    const BytecodeOp first = load ? (lane_index ? BytecodeOp::Gather : BytecodeOp::Load)
                                  : (lane_index ? BytecodeOp::Scatter : BytecodeOp::Store);
    i.op = static_cast<BytecodeOp>(static_cast<uint8_t>(first) + (masked ? 1 : 0));
  }

  DType source(const LinearOp& op, size_t s) const { return ops()[op.src[s]].dtype; }

  Code pack() const {
    BytecodeHeader header;
    header.ops = static_cast<uint32_t>(code_.size());
    header.params = static_cast<uint32_t>(program_.params.size());
    header.variables = static_cast<uint32_t>(program_.variables.size());
    header.frame_bytes = static_cast<uint32_t>(frame_.bytes());
    header.program_scratch_bytes = round_up(program_.scratch_bytes, 64);
    Code out{CodeKind::Bytecode, program_.name, "", {}, "", 0};
    out.scratch_bytes = header.program_scratch_bytes + header.frame_bytes;
    if (program_.grouped) {
      for (size_t axis = 0; axis < 3; ++axis)
        header.group[axis] = static_cast<uint32_t>(program_.group[axis]);
      header.shared_bytes = static_cast<uint32_t>(round_up(program_.shared_bytes, 64));
      out.scratch_bytes = out.scratch_bytes * program_.group_threads() + header.shared_bytes;
    }
    out.bytes.resize(sizeof header + code_.size() * sizeof code_[0]);
    std::memcpy(out.bytes.data(), &header, sizeof header);
    std::memcpy(out.bytes.data() + sizeof header, code_.data(), code_.size() * sizeof code_[0]);
    return out;
  }

  const LinearProgram& program_;
  Frame frame_;
  std::vector<uint32_t> slots_;
  std::vector<std::vector<LinearId>> dies_;  // the values whose last use is an op
  std::vector<BytecodeInstruction> code_;
  std::vector<uint32_t> opened_;
  std::map<std::tuple<BytecodeOp, BytecodeType, uint16_t, int64_t>, uint32_t> leaves_;
};

}  // namespace

Code render_bytecode(const LinearProgram& program) {
  return Renderer(program).render();
}

}  // namespace tiny
