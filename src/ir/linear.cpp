#include "ir/linear.h"

#include "base/error.h"
#include "base/matrix.h"
#include "ir/dot.h"

namespace tiny {

LinearId LinearProgram::add(Op op, DType dtype, std::initializer_list<LinearId> src, int64_t imm,
                            int32_t aux) {
  invariant(src.size() <= 4, "a linear op has at most four sources");
  LinearOp o;
  o.op = op;
  o.dtype = dtype;
  o.count = static_cast<uint8_t>(src.size());
  size_t i = 0;
  for (LinearId s : src) o.src[i++] = s;
  o.imm = imm;
  o.aux = aux;
  ops.push_back(o);
  return static_cast<LinearId>(ops.size() - 1);
}

namespace {

bool names_op(int32_t aux) {
  return aux >= 0 && static_cast<size_t>(aux) < kOpCount;
}

// What all threads of a group come to.
bool is_meeting(Op op) {
  return op == Op::Barrier || op == Op::GroupFold || op == Op::Mma || op == Op::LoadMatrix;
}

bool names_dot(int32_t aux) {
  return aux >= 0 && aux < kDotKinds;
}

}  // namespace

std::string to_string(const LinearProgram& program) {
  std::string out = cat("linear ", program.name, "(");
  for (size_t i = 0; i < program.params.size(); ++i) {
    const LinearParam& p = program.params[i];
    out +=
        cat(i ? ", " : "", to_string(p.element), p.written ? (p.read ? " inout" : " out") : " in");
  }
  out += cat(") scratch ", program.scratch_bytes, program.threaded ? " threaded" : "");
  if (program.grouped)
    out += cat(" group ", program.group[0], "x", program.group[1], "x", program.group[2],
               " shared ", program.shared_bytes);
  out += "\n";
  size_t depth = 1;
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const LinearOp& op = program.ops[i];
    if ((op.op == Op::EndLoop || op.op == Op::EndIf) && depth > 1) --depth;
    out += std::string(2 * depth, ' ');
    if (op.dtype != kVoid)
      out += cat("%", i, " = ", to_string(op.dtype), " ");
    else if (op.op == Op::If)
      out += cat("%", i, " = ");
    out += info(op.op).name;
    for (size_t s = 0; s < op.count; ++s) out += cat(" %", op.src[s]);
    if (op.op == Op::Const)
      out += op.dtype.is_float()
                 ? cat(" ", double_of(op.dtype.element(), static_cast<uint64_t>(op.imm)))
                 : cat(" ", int_of(op.dtype.element(), static_cast<uint64_t>(op.imm)));
    else if (op.imm)
      out += cat(" ", op.imm);
    if ((op.op == Op::Fold || op.op == Op::GroupFold) && names_op(op.aux))
      out += cat(" ", info(static_cast<Op>(op.aux)).name);
    else if (op.op == Op::Dot && names_dot(op.aux))
      out += cat(" ", to_string(static_cast<DotKind>(op.aux)));
    else if (op.op == Op::Mma && has_matrix_row(op.aux))
      out += cat(" ", kMatrixRows[op.aux].name);
    else if (op.aux)
      out += cat(" /", op.aux);
    out += op.bypass ? " bypass\n" : "\n";
    if (op.op == Op::Loop || op.op == Op::If) ++depth;
  }
  return out;
}

namespace {

class Verifier {
 public:
  explicit Verifier(const LinearProgram& program) : program_(program) {}

  void run() {
    end_of_.resize(program_.ops.size(), kOpen);
    for (const int64_t n : program_.group)
      law(n >= 1 && (program_.grouped || n == 1), "a group has threads, if there is one");
    law(program_.grouped || program_.shared_bytes == 0, "a group shares memory");
    for (at_ = 0; at_ < program_.ops.size(); ++at_) check(program_.ops[at_]);
    if (!blocks_.empty()) fail("a block is not closed");
    if (program_.grouped) check_meetings();
  }

 private:
  static constexpr size_t kOpen = SIZE_MAX;

  [[noreturn]] void fail(const char* law) const {
    throw_error(Status::Internal, "linear program ", program_.name, ", op %", at_, " ",
                at_ < program_.ops.size() ? info(program_.ops[at_].op).name : "", ": ", law, "\n",
                to_string(program_));
  }
  void law(bool holds, const char* what) const {
    if (!holds) fail(what);
  }
  const LinearOp& source(const LinearOp& op, size_t i) const { return program_.ops[op.src[i]]; }

  void check(const LinearOp& op) {
    law(legal_in(op.op, kLinearStage), "the op is legal in a linear program");
    for (size_t i = 0; i < op.count; ++i) {
      law(op.src[i] < at_, "sources come first");
      // A block's value ends with the block; what an enclosing block holds is visible.
      law(end_of_[op.src[i]] == kOpen, "sources are in an enclosing block");
    }
    for (size_t i = 0; i < op.count; ++i)
      law(source(op, i).dtype != kVoid || op.op == Op::EndIf, "sources have values");
    law(info(op.op).result != OpResult::Void || op.dtype == kVoid, "a statement has no value");
    check_shape(op);
    if (op.op == Op::Loop || op.op == Op::If) blocks_.push_back(at_);
    if (op.op == Op::EndLoop || op.op == Op::EndIf) close(op);
  }

  void close(const LinearOp& op) {
    law(!blocks_.empty() && blocks_.back() == op.src[0], "blocks nest");
    law(program_.ops[blocks_.back()].op == (op.op == Op::EndLoop ? Op::Loop : Op::If),
        "a block ends as it began");
    for (size_t i = blocks_.back(); i < at_; ++i) end_of_[i] = at_;
    blocks_.pop_back();
  }

  void index_law(const LinearOp& op, DType value, size_t mask_at) const {
    law(source(op, 0).dtype == kAddress, "the first source is an address");
    const DType index = source(op, 1).dtype;
    law(index.scalar == ScalarType::Int64 && (index.lanes == 1 || index.lanes == value.lanes),
        "the index is int64, of one lane or of the value's");
    law(op.aux != 0 || value.lanes == 1 || index.lanes > 1, "a vector access has a lane stride");
    if (op.count > mask_at)
      law(value.lanes > 1 && source(op, mask_at).dtype == kBool.with_lanes(value.lanes),
          "the mask is a bool with the lanes of the value");
  }

  void check_shape(const LinearOp& op) const {
    switch (op.op) {
      case Op::Const:
        return law(op.count == 0 && op.dtype != kVoid, "a constant has a dtype");
      case Op::Param:
        return law(op.dtype == kAddress && op.imm >= 0 &&
                       op.imm < static_cast<int64_t>(program_.params.size()),
                   "the slot exists");
      case Op::Scratch:
        return law(op.dtype == kAddress && op.imm >= 0 && op.imm < program_.scratch_bytes,
                   "the offset is in the scratch");
      case Op::Variable:
        return law(op.dtype == kInt64 && op.imm >= 0 &&
                       op.imm < static_cast<int64_t>(program_.variables.size()),
                   "the variable exists");
      case Op::LaunchArg:
        return law(op.dtype == kInt64 && op.imm >= 0 && op.imm < (program_.grouped ? 6 : 3),
                   "the launch argument exists");
      case Op::Shared:
        return law(program_.grouped && op.dtype == kAddress && op.imm >= 0 &&
                       op.imm < program_.shared_bytes,
                   "the offset is in the group's memory");
      case Op::Barrier:
        return law(program_.grouped && op.count == 0, "threads of a group meet");
      case Op::GroupFold:
        return group_fold_law(op);
      case Op::Address:
        return law(op.count == 2 && op.dtype == kAddress && source(op, 0).dtype == kAddress &&
                       source(op, 1).dtype == kInt64,
                   "an address is an address and an index");
      case Op::Load:
        law(op.count >= 2 && op.count <= 3 && op.dtype != kVoid, "load address, index [, mask]");
        return index_law(op, op.dtype, 2);
      case Op::Store:
        law(op.count >= 3 && op.count <= 4, "store address, index, value [, mask]");
        if (op.bypass)
          law(op.count == 3 && op.aux == 1 && source(op, 1).dtype.lanes == 1 &&
                  source(op, 2).dtype.lanes > 1,
              "what passes the caches is a vector of adjacent lanes without a mask");
        return index_law(op, source(op, 2).dtype, 3);
      case Op::Prefetch:
        return law(op.count == 2 && source(op, 0).dtype == kAddress &&
                       source(op, 1).dtype == kInt64 && op.aux > 0,
                   "prefetch address, index of one lane, in units");
      case Op::Loop:
        return law(op.count == 2 && op.dtype == kInt64 && source(op, 0).dtype == kInt64 &&
                       source(op, 1).dtype == kInt64 && op.imm > 0,
                   "loop begin, end: int64, step above 0");
      case Op::If:
        return law(op.count == 1 && source(op, 0).dtype == kBool, "if takes one bool");
      case Op::EndLoop:
      case Op::EndIf:
        return law(op.count == 1, "an end names its block");
      case Op::Poll:
        return law(op.count == 0, "a poll takes nothing");
      case Op::Accumulator:
        return law(op.count == 1 && op.dtype == source(op, 0).dtype,
                   "an accumulator has its value's dtype");
      case Op::Set:
        return law(op.count == 2 && source(op, 0).op == Op::Accumulator &&
                       source(op, 0).dtype == source(op, 1).dtype,
                   "set accumulator, value of its dtype");
      case Op::Broadcast:
        return law(op.count == 1 && source(op, 0).dtype.lanes == 1 && op.dtype.lanes > 1 &&
                       op.dtype.element() == source(op, 0).dtype,
                   "broadcast widens one lane");
      case Op::Ramp:
        return law(op.count == 1 && source(op, 0).dtype.is_int() &&
                       source(op, 0).dtype.lanes == 1 && op.dtype.element() == source(op, 0).dtype,
                   "ramp widens one integer lane");
      case Op::LaneRange:
        return law(op.count == 2 && op.dtype.scalar == ScalarType::Bool && op.dtype.lanes > 1 &&
                       source(op, 0).dtype == kInt64 && source(op, 1).dtype == kInt64,
                   "lanes low, high: int64");
      case Op::Fold: {
        const auto n = source(op, 0).dtype.lanes;
        return law(op.count == 1 && n > 1 && (n & (n - 1)) == 0 &&
                       op.dtype == source(op, 0).dtype.element() && names_op(op.aux) &&
                       has(static_cast<Op>(op.aux), kAssociative),
                   "fold takes a power of two of lanes to one");
      }
      case Op::Dot:
        return dot_law(op);
      case Op::Mma:
        return matrix_law(op);
      case Op::LoadMatrix:
        law(is_of_warps(), "a warp has its threads along axes 0 and 1");
        return law(op.count == 1 && source(op, 0).dtype == kAddress && is_shared(op.src[0]) &&
                       op.dtype.element() == kUInt32 &&
                       (op.dtype.lanes == 2 || op.dtype.lanes == 4) && (op.aux == 0 || op.aux == 1),
                   "words of two or four matrices come from the group's memory");
      case Op::CopyAsync:
        return law(op.count == 3 && source(op, 0).dtype == kAddress &&
                       source(op, 1).dtype == kAddress && source(op, 2).dtype == kInt64 &&
                       is_shared(op.src[0]) && !is_shared(op.src[1]) &&
                       (op.aux == 4 || op.aux == 8 || op.aux == 16),
                   "copied are 4, 8 or 16 bytes to the group's memory");
      case Op::Commit:
        return law(program_.grouped && op.count == 0, "threads of a group copy");
      case Op::WaitCopies:
        return law(program_.grouped && op.count == 0 && op.imm >= 0,
                   "some groups may be under way");
      case Op::Fence:
        return law(program_.grouped && op.count == 0 && (op.imm == 0 || op.imm == 1),
                   "a fence is of memory or of sums");
      case Op::CommitMmas:
        return law(program_.grouped && op.count == 0, "threads of a group form products");
      case Op::WaitMmas:
        return law(program_.grouped && op.count == 0 && op.imm >= 0,
                   "some groups may be under way");
      case Op::Join:
        return law(op.count == 2 && source(op, 0).dtype == source(op, 1).dtype &&
                       op.dtype == source(op, 0).dtype.with_lanes(2 * source(op, 0).dtype.lanes),
                   "joined are two values of one dtype");
      case Op::Part:
        return law(op.count == 1 && op.dtype.element() == source(op, 0).dtype.element() &&
                       op.imm >= 0 && op.imm + op.dtype.lanes <= source(op, 0).dtype.lanes,
                   "a part is lanes of its value");
      case Op::Check:
        return law(op.count == 2 && source(op, 0).dtype.scalar == ScalarType::Bool &&
                       source(op, 1).dtype == kInt64,
                   "check bool, position");
      default:
        return elementwise_law(op);
    }
  }

  void group_fold_law(const LinearOp& op) const {
    law(program_.grouped && op.count == 1 && op.dtype == source(op, 0).dtype,
        "a fold over threads of a group keeps the dtype");
    law(names_op(op.aux) && has(static_cast<Op>(op.aux), kAssociative),
        "a fold's op is associative");
    law(op.imm > 0 && op.imm < 8, "a fold over threads names its axes");
    for (size_t axis = 0; axis < 3; ++axis)
      law(!(op.imm >> axis & 1) || (program_.group[axis] & (program_.group[axis] - 1)) == 0,
          "a fold is over a power of two of threads");
  }

  // All threads of a group come to a Barrier or GroupFold: no block around one depends on a thread.
  // Along which axes the value of an op differs between threads, as bits; what a block holds that
  // only some threads enter differs too.  Accumulators are set behind their first reader.
  void check_meetings() {
    std::vector<uint8_t> differs(program_.ops.size());
    for (bool is_new = true; is_new;) {
      is_new = false;
      std::vector<uint8_t> around{0};
      for (at_ = 0; at_ < program_.ops.size(); ++at_) {
        const LinearOp& op = program_.ops[at_];
        if (op.op == Op::EndLoop || op.op == Op::EndIf) around.pop_back();
        const uint8_t axes = differing_axes(op, differs, around.back());
        const size_t of = op.op == Op::Set ? op.src[0] : at_;
        is_new |= (axes & ~differs[of]) != 0;
        differs[of] |= axes;
        if (op.op == Op::Loop || op.op == Op::If)
          around.push_back(static_cast<uint8_t>(around.back() | differs[at_]));
        if (is_meeting(op.op))
          law(around.back() == 0, "no block around a meeting depends on the thread");
      }
    }
  }

  uint8_t differing_axes(const LinearOp& op, const std::vector<uint8_t>& differs,
                         uint8_t around) const {
    constexpr uint8_t kAll = 7;
    if (op.op == Op::Scratch) return kAll;  // each thread has its own
    if (op.op == Op::LaunchArg && op.imm >= 3) {
      const auto axis = static_cast<size_t>(op.imm - 3);
      return static_cast<uint8_t>(program_.group[axis] > 1 ? 1 << axis : 0);
    }
    uint8_t axes = op.op == Op::Set ? around : 0;
    if (op.op == Op::Mma || op.op == Op::LoadMatrix)
      axes |= 3;  // each thread of a warp has its own elements
    for (size_t i = 0; i < op.count; ++i) axes |= differs[op.src[i]];
    return op.op == Op::GroupFold ? static_cast<uint8_t>(axes & ~op.imm) : axes;
  }

  void dot_law(const LinearOp& op) const {
    const DType words = kUInt32.with_lanes(op.dtype.lanes);
    law(op.count == 3 && source(op, 0).dtype == words && source(op, 1).dtype == words,
        "dot words, words, sum: uint32 of the sum's lanes");
    law(names_dot(op.aux) && op.dtype == source(op, 2).dtype, "the dtype is the sum's");
    const DType sum = op.dtype.element();
    law(static_cast<DotKind>(op.aux) == DotKind::Bf16 ? sum == kFloat32
                                                      : sum == kInt32 || sum == kUInt32,
        "the sum is float32 of bfloat16, else an integer of 32 bits");
  }

  bool is_of_warps() const {
    return program_.grouped && program_.group[0] == kLaneColumns && program_.group[1] == kLaneRows;
  }
  bool is_shared(LinearId address) const {
    while (program_.ops[address].op == Op::Address) address = program_.ops[address].src[0];
    return program_.ops[address].op == Op::Shared;
  }
  void matrix_law(const LinearOp& op) const {
    law(is_of_warps(), "a warp has its threads along axes 0 and 1");
    law(op.count == 3 && has_matrix_row(op.aux), "mma words, words, sum, of a row of the table");
    const MatrixRow& row = kMatrixRows[op.aux];
    if (row.shares_operands()) return shared_matrix_law(op, row);
    law(source(op, 0).dtype == kUInt32.with_lanes(words_of(row, row.a)) &&
            source(op, 1).dtype == kUInt32.with_lanes(words_of(row, row.b)),
        "the operands are the words of a thread");
    law(op.dtype == kFloat32.with_lanes(row.c.elements) && source(op, 2).dtype == op.dtype,
        "the sum is the elements of a thread");
  }

  void shared_matrix_law(const LinearOp& op, const MatrixRow& row) const {
    for (size_t i = 0; i < 2; ++i)
      law(source(op, i).dtype == kAddress && is_shared(op.src[i]),
          "the operands lie in the group's memory");
    law(program_.group[2] % row.warps == 0, "the row's warps are a part of the group's");
    law(op.imm >= 0 && op.imm <= (kTurnedA | kTurnedB), "an operand is turned or not");
    law(op.dtype == kFloat32.with_lanes(row.c.elements) && source(op, 2).dtype == op.dtype &&
            source(op, 2).op == Op::Accumulator,
        "the sum is an accumulator of the elements of a thread");
    const size_t next = at_ + 1;
    law(next < program_.ops.size() && program_.ops[next].op == Op::Set &&
            program_.ops[next].src[0] == op.src[2] && program_.ops[next].src[1] == at_,
        "the accumulator is set to the sum at once");
  }

  void elementwise_law(const LinearOp& op) const {
    const OpInfo& table = info(op.op);
    law(op.count == table.arity, "the number of sources is the arity");
    for (size_t i = 0; i < op.count; ++i)
      law(source(op, i).dtype.lanes == op.dtype.lanes, "lanes agree");
    const bool condition_first = op.op == Op::Where;
    if (condition_first) law(source(op, 0).dtype.is_bool(), "where takes a bool");
    const size_t first = condition_first ? 1 : 0;
    for (size_t i = first + 1; i < op.count; ++i)
      law(source(op, i).dtype == source(op, first).dtype, "operand dtypes agree");
    const DType operand = source(op, first).dtype;
    law(operand != kAddress && op.dtype != kAddress && op.dtype != kVoid,
        "operands and values are numbers or bools");
    if (table.result == OpResult::First || table.result == OpResult::Last)
      law(op.dtype == operand, "the dtype is the operands'");
    if (table.result == OpResult::Bool) law(op.dtype.is_bool(), "the dtype is bool");
    if (op.op == Op::Bitcast) law(op.dtype.bits() == operand.bits(), "a bitcast keeps the size");
    if (table.traits & (kFloatOperands | kIntOperands))
      law((table.traits & kFloatOperands && operand.is_float()) ||
              (table.traits & kIntOperands && operand.is_int()) ||
              (table.traits & kLogicOperands && operand.is_bool()),
          "the op takes operands of this kind");
  }

  const LinearProgram& program_;
  size_t at_ = 0;
  std::vector<size_t> blocks_;
  std::vector<size_t> end_of_;
};

}  // namespace

void verify(const LinearProgram& program) {
  Verifier(program).run();
}

}  // namespace tiny
