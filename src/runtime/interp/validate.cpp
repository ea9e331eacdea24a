#include "runtime/interp/validate.h"

#include <vector>

#include "base/error.h"
#include "base/matrix.h"
#include "runtime/interp/step.h"

namespace tiny::interp {
namespace {

struct Operand {
  BytecodeType type;
  int64_t lanes;
};

bool index_by_lane(BytecodeOp op) {
  return op == BytecodeOp::Gather || op == BytecodeOp::GatherMasked || op == BytecodeOp::Scatter ||
         op == BytecodeOp::ScatterMasked;
}

// What the op reads as its source `s`.
Operand operand(const BytecodeInstruction& i, size_t s) {
  constexpr Operand kPosition{BytecodeType::Int64, 1};
  switch (i.op) {
    case BytecodeOp::Broadcast:
    case BytecodeOp::Ramp:
      return {i.type, 1};
    case BytecodeOp::LaneRange:
    case BytecodeOp::Address:
    case BytecodeOp::Loop:
      return kPosition;
    case BytecodeOp::Fold:
    case BytecodeOp::Part:
      return {i.type, i.aux};
    case BytecodeOp::Join:
      return {i.type, i.lanes / 2};
    case BytecodeOp::Mma:
      if (s == 2 || !has_matrix_row(i.aux)) break;
      if (kMatrixRows[i.aux].shares_operands()) return kPosition;
      return {BytecodeType::UInt32,
              words_of(kMatrixRows[i.aux], s == 0 ? kMatrixRows[i.aux].a : kMatrixRows[i.aux].b)};
    case BytecodeOp::Where:
      return {s == 0 ? BytecodeType::Bool : i.type, i.lanes};
    case BytecodeOp::LoadMatrix:
    case BytecodeOp::CopyAsync:
      return kPosition;
    case BytecodeOp::If:
      return {BytecodeType::Bool, 1};
    case BytecodeOp::Check:
      return s == 0 ? Operand{BytecodeType::Bool, i.lanes} : kPosition;
    default:
      break;
  }
  if (i.op < BytecodeOp::Load || i.op > BytecodeOp::ScatterMasked) return {i.type, i.lanes};
  if (s == 0) return kPosition;
  if (s == 1) return {BytecodeType::Int64, index_by_lane(i.op) ? i.lanes : 1};
  const bool store = i.op >= BytecodeOp::Store;
  return {store && s == 2 ? i.type : BytecodeType::Bool, i.lanes};
}

class Validator {
 public:
  Validator(const std::string& name, const BytecodeHeader& header,
            std::span<const BytecodeInstruction> code)
      : name_(name), header_(header), code_(code), written_(header.frame_bytes / kUnit) {}

  void run() {
    law(!code_.empty() && code_.back().op == BytecodeOp::End, "the last op is End");
    law((header_.group[0] != 0) == (header_.group[1] != 0) &&
            (header_.group[0] != 0) == (header_.group[2] != 0),
        "a group has threads along every axis");
    law(is_grouped() || header_.shared_bytes == 0, "a group shares memory");
    for (at_ = 0; at_ < code_.size(); ++at_) check(code_[at_]);
    law(blocks_.empty(), "blocks are closed");
  }

 private:
  static constexpr uint32_t kUnit = 8;  // slots are multiples of it

  struct Block {
    size_t at;
    size_t written;  // how much of the log was there before
  };

  void law(bool holds, const char* what) const {
    if (holds) return;
    const char* op = "";
    if (at_ < code_.size() && static_cast<size_t>(code_[at_].op) < kBytecodeOpCount)
      op = info(code_[at_].op).name;
    throw_error(Status::Device, "bytecode of ", name_, ", op ", at_, " ", op, ": ", what);
  }

  void slot(uint32_t offset, Operand value) const {
    const int64_t align = value.lanes == 1 ? kUnit : kBytecodeVectorAlignment;
    law(offset % align == 0 &&
            offset + bytecode_slot_bytes(value.type, value.lanes) <= int64_t{header_.frame_bytes},
        "slots are aligned and in the frame");
  }
  void read(uint32_t offset, Operand value) const {
    slot(offset, value);
    const int64_t end = offset + bytecode_slot_bytes(value.type, value.lanes);
    for (int64_t b = offset; b < end; b += kUnit)
      law(written_[static_cast<size_t>(b) / kUnit], "operands are written before they are read");
  }
  void write(uint32_t offset, int64_t bytes) {
    for (size_t u = offset / kUnit; u < (offset + static_cast<size_t>(bytes)) / kUnit; ++u) {
      if (written_[u]) continue;
      written_[u] = true;
      log_.push_back(u);
    }
  }

  void check(const BytecodeInstruction& i) {
    law(static_cast<size_t>(i.op) < kBytecodeOpCount, "the op exists");
    law(static_cast<size_t>(i.type) < kBytecodeTypeCount &&
            static_cast<size_t>(i.to) < kBytecodeTypeCount,
        "the types exist");
    law(i.lanes > 0, "there is a lane");
    const BytecodeOpInfo& table = info(i.op);
    if (i.op == BytecodeOp::Part)
      law(i.imm >= 0 && i.aux <= UINT16_MAX && i.imm + i.lanes <= i.aux, "a part is of its value");
    if (i.op == BytecodeOp::Fold)
      law(i.aux > 1 && i.aux <= UINT16_MAX && (i.aux & (i.aux - 1)) == 0 && i.lanes == 1,
          "fold takes a power of two of lanes to one");
    for (size_t s = 0; s < table.sources; ++s) read(i.source[s], operand(i, s));
    check_numbers(i);
    law(find_handler_baseline(i) != nullptr, "the op takes these types and lanes");
    if (i.op == BytecodeOp::EndLoop || i.op == BytecodeOp::EndIf) close(i);
    if (table.result != BytecodeResult::None) result(i, table);
    if (i.op == BytecodeOp::Loop || i.op == BytecodeOp::If) open(i);
  }

  void result(const BytecodeInstruction& i, const BytecodeOpInfo& table) {
    Operand value{i.type, i.lanes};
    if (table.result == BytecodeResult::To) value.type = i.to;
    if (table.result == BytecodeResult::Bool) value.type = BytecodeType::Bool;
    if (table.result == BytecodeResult::Address) value.type = BytecodeType::Int64;
    slot(i.result, value);
    int64_t bytes = bytecode_slot_bytes(value.type, value.lanes);
    if (i.op == BytecodeOp::Loop) bytes = 16;
    if (i.op == BytecodeOp::Fold) bytes = bytecode_slot_bytes(i.type, i.aux / 2);
    law(i.result + bytes <= int64_t{header_.frame_bytes}, "slots are aligned and in the frame");
    for (size_t s = 0; s < table.sources; ++s) {
      const Operand source = operand(i, s);
      const bool apart = i.result >= i.source[s] + bytecode_slot_bytes(source.type, source.lanes) ||
                         i.source[s] >= i.result + bytes;
      law(apart || (i.op == BytecodeOp::Copy && i.result == i.source[s]),
          "the result does not overlap an operand");
    }
    write(i.result, bytes);
  }

  void check_numbers(const BytecodeInstruction& i) const {
    const auto below = [&](int64_t limit) { return i.imm >= 0 && i.imm < limit; };
    switch (i.op) {
      case BytecodeOp::Param:
        return law(i.lanes == 1 && below(header_.params), "the slot exists");
      case BytecodeOp::Scratch:
        return law(i.lanes == 1 && below(header_.program_scratch_bytes),
                   "the offset is in the scratch");
      case BytecodeOp::Variable:
        return law(is_position(i) && below(header_.variables), "the variable exists");
      case BytecodeOp::LaunchArg:
        return law(is_position(i) && below(3), "the launch argument exists");
      case BytecodeOp::Shared:
        return law(i.lanes == 1 && below(header_.shared_bytes),
                   "the offset is in the group's memory");
      case BytecodeOp::ThreadIndex:
        return law(is_grouped() && is_position(i) && below(3), "a group has the axis");
      case BytecodeOp::Barrier:
        return law(is_grouped(), "threads of a group wait for each other");
      case BytecodeOp::GroupFold:
        return law(
            is_grouped() && below(static_cast<int64_t>(kBytecodeOpCount)) && i.aux > 0 && i.aux < 8,
            "a fold over threads has its op and axes");
      case BytecodeOp::LoadMatrix:
        return law(is_of_warps() && (i.lanes == 2 || i.lanes == 4) && (i.aux == 0 || i.aux == 1),
                   "words are of two or four matrices, of whole warps");
      case BytecodeOp::Mma:
        return law(is_of_warps() && has_matrix_row(i.aux) &&
                       i.lanes == kMatrixRows[i.aux].c.elements &&
                       header_.group[2] % kMatrixRows[i.aux].warps == 0 &&
                       below((kTurnedA | kTurnedB) + 1),
                   "a product of matrices is a row of the table, of whole warps");
      case BytecodeOp::CopyAsync:
        return law(is_grouped() && is_position(i) && i.aux > 0 && i.aux <= 16,
                   "a thread copies up to 16 bytes");
      case BytecodeOp::Join:
        return law(i.lanes % 2 == 0, "joined are two values");
      case BytecodeOp::Loop:
        return law(is_position(i) && i.imm > 0, "a loop counts up in int64");
      case BytecodeOp::Address:
        return law(i.lanes == 1, "an address has one lane");
      case BytecodeOp::Check:
        return law(i.aux >= 0 && i.aux < 0xFFFF, "the check's number has 16 bits");
      case BytecodeOp::Fold:
        return law(i.imm >= 0 && i.imm < static_cast<int64_t>(kBytecodeOpCount),
                   "the fold's op exists");
      case BytecodeOp::End:
        return law(at_ + 1 == code_.size(), "End is the last op");
      default:
        return;
    }
  }
  bool is_grouped() const { return header_.group[0] != 0; }
  bool is_of_warps() const {
    return header_.group[0] == kLaneColumns && header_.group[1] == kLaneRows;
  }
  static bool is_position(const BytecodeInstruction& i) {
    return i.type == BytecodeType::Int64 && i.lanes == 1;
  }

  void open(const BytecodeInstruction& i) {
    const auto end = static_cast<size_t>(i.aux);
    law(i.aux > 0 && end > at_ && end < code_.size(), "a block ends after it began");
    law(code_[end].op == (i.op == BytecodeOp::Loop ? BytecodeOp::EndLoop : BytecodeOp::EndIf) &&
            code_[end].aux == static_cast<int64_t>(at_),
        "a block ends as it began");
    blocks_.push_back({at_, log_.size()});
  }
  // What was first written in a block that may not have run is unwritten after it.
  void close(const BytecodeInstruction& i) {
    law(!blocks_.empty() && static_cast<int64_t>(blocks_.back().at) == i.aux &&
            code_[blocks_.back().at].aux == static_cast<int64_t>(at_),
        "blocks nest");
    for (; log_.size() > blocks_.back().written; log_.pop_back()) written_[log_.back()] = false;
    blocks_.pop_back();
  }

  const std::string& name_;
  const BytecodeHeader& header_;
  std::span<const BytecodeInstruction> code_;
  std::vector<bool> written_;
  std::vector<size_t> log_;  // units of the frame in the order in which they were first written
  std::vector<Block> blocks_;
  size_t at_ = 0;
};

}  // namespace

void validate(const std::string& name, const BytecodeHeader& header,
              std::span<const BytecodeInstruction> code) {
  Validator(name, header, code).run();
}

}  // namespace tiny::interp
