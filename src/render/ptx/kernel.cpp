#include "render/ptx/kernel.h"

#include <algorithm>
#include <bit>

#include "base/checked.h"
#include "base/error.h"
#include "base/look_often.h"
#include "base/text.h"
#include "render/ptx/alignment.h"
#include "render/ptx/arithmetic.h"
#include "render/ptx/groups.h"
#include "render/ptx/memory.h"

namespace tiny::ptx {
namespace {

constexpr const char* kCoordinates[] = {"%tid.x", "%tid.y", "%tid.z"};
constexpr int64_t kPositionOffset = 8;  // of the status

class Kernel {
 public:
  Kernel(const LinearProgram& program, const PtxTarget& target)
      : program_(program),
        zero_bits_(zero_bits(program, target.parameter_alignment)),
        values_(program.ops.size()),
        spaces_(program.ops.size()),
        labels_(program.ops.size()),
        own_shared_(round_up(program.shared_bytes, kMemoryAlignment)),
        shared_(own_shared_ + fold_bytes(program)) {}

  Entry entry() {
    begin();
    for (LinearId at = 0; at < program_.ops.size(); ++at) {
      look_often(program_.stop, at);
      statement(at, program_.ops[at]);
    }
    out_.line("ret");
    Entry entry;
    entry.name = cat("tiny_", program_.name);
    entry.dynamic_shared_bytes = is_dynamic() ? shared_ : 0;
    entry.text = cat(head(entry.name), "{\n", out_.declarations(), memories(), out_.body(), "}\n");
    return entry;
  }

 private:
  const LinearOp& source(const LinearOp& op, size_t i) const { return program_.ops[op.src[i]]; }
  const Value& value(const LinearOp& op, size_t i) const { return values_[op.src[i]]; }
  const Operand& lane(const LinearOp& op, size_t i, size_t l = 0) const { return value(op, i)[l]; }
  bool is_dynamic() const { return shared_ > kStaticSharedBytes; }

  // What is in registers from the start: the memory of folds, and the address of the status.
  void begin() {
    require(program_.scratch_bytes <= kLocalBytesMax, Status::Unsupported, "kernel ", program_.name,
            ": ", program_.scratch_bytes, " bytes of a thread's own memory, of which there are ",
            kLocalBytesMax);
    if (shared_ > own_shared_) fold_memory_ = memory_at(shared_name(), own_shared_);
    const auto is_check = [](const LinearOp& op) { return op.op == Op::Check; };
    if (std::ranges::any_of(program_.ops, is_check)) status_ = global_parameter("status");
  }

  std::string shared_name() const { return is_dynamic() ? kDynamicShared : "shared"; }

  std::string head(const std::string& name) const {
    std::string out = cat(".visible .entry ", name, "(\n");
    for (size_t i = 0; i < program_.params.size(); ++i) out += cat("  .param .u64 b", i, ",\n");
    for (size_t i = 0; i < program_.variables.size(); ++i) out += cat("  .param .s64 n", i, ",\n");
    out +=
        "  .param .s64 begin,\n  .param .s64 end,\n  .param .s64 piece,\n  .param .u64 status)\n";
    const auto& group = program_.group;
    return out + cat(".maxntid ", group[0], ", ", group[1], ", ", group[2], "\n");
  }

  std::string memories() const {
    std::string out;
    if (shared_ > 0 && !is_dynamic())
      out += cat("  .shared .align ", kMemoryAlignment, " .b8 shared[", shared_, "];\n");
    if (program_.scratch_bytes > 0)
      out += cat("  .local .align ", kMemoryAlignment, " .b8 scratch[", program_.scratch_bytes,
                 "];\n");
    return out;
  }

  // Into a register of 64 bits: "mov.u64", a name.
  Operand made(const std::string& opcode, const std::string& from) {
    const Operand result = out_.fresh(File::Double);
    out_.line(cat(opcode, " ", Writer::text(result, "b64"), ", ", from));
    return result;
  }
  Operand parameter(const std::string& name) { return made("ld.param.s64", cat("[", name, "]")); }
  Operand global_parameter(const std::string& name) {
    const Operand generic = made("ld.param.u64", cat("[", name, "]"));
    return made("cvta.to.global.u64", Writer::text(generic, "u64"));
  }
  Operand memory_at(const std::string& name, int64_t offset) {
    const Operand start = made("mov.u64", name);
    return offset == 0 ? start : out_.make("add", "s64", {start, number(offset)});
  }
  // A register of the machine, extended.
  Operand position(const char* name) {
    const Operand result = out_.fresh(File::Word);
    out_.line(cat("mov.u32 ", Writer::text(result, "u32"), ", ", name));
    return out_.convert("", "u64", "u32", result);
  }

  void statement(LinearId at, const LinearOp& op) {
    switch (op.op) {
      case Op::Loop:
        return open_loop(at, op);
      case Op::EndLoop:
        return close_loop(op.src[0]);
      case Op::If:
        labels_[at] = out_.fresh_label();
        return out_.line(cat("@!", Writer::text(lane(op, 0), "pred"), " bra ", labels_[at]));
      case Op::EndIf:
        return out_.label(labels_[op.src[0]]);
      case Op::Accumulator:
        return declare(at, op);
      case Op::Set:
        for (size_t l = 0; l < value(op, 0).size(); ++l)
          if (lane(op, 0, l) != lane(op, 1, l)) out_.move(lane(op, 0, l), lane(op, 1, l));
        return;
      case Op::Store:
        return store(out_, access_of(op, source(op, 2).dtype), value(op, 2),
                     op.count > 3 ? value(op, 3) : Value());
      case Op::Check:
        return check(op);
      case Op::Barrier:
        return out_.line("bar.sync 0");
      case Op::Poll:      // nobody asks a kernel of a graphics processor to leave
      case Op::Prefetch:  // what stalls a thread is hidden by others
        return;
      default:
        values_[at] = result(at, op);
        for (Operand& l : values_[at]) l = out_.fixed(l);
    }
  }

  // Both ends are read once, on entry.
  void open_loop(LinearId at, const LinearOp& op) {
    const Operand first = lane(op, 0), end = out_.fixed(lane(op, 1));
    const Operand i = out_.fresh(File::Double);
    out_.move(i, first);
    values_[at] = {i};
    ends_.push_back(end);
    labels_[at] = out_.fresh_label();
    const auto number_of = [](const Operand& o) { return static_cast<int64_t>(o.value); };
    if (!first.is_constant || !end.is_constant || number_of(first) >= number_of(end))
      out_.line(cat("@", Writer::text(out_.compare("ge", "s64", {i, end}), "pred"), " bra ",
                    labels_[at], "_end"));
    out_.label(labels_[at]);
  }
  void close_loop(LinearId at) {
    const Operand i = values_[at][0], end = ends_.back();
    ends_.pop_back();
    out_.into(i, "add", "s64", {i, number(program_.ops[at].imm)});
    out_.line(
        cat("@", Writer::text(out_.compare("lt", "s64", {i, end}), "pred"), " bra ", labels_[at]));
    out_.label(labels_[at] + "_end");
  }

  void declare(LinearId at, const LinearOp& op) {
    spaces_[at] = spaces_[op.src[0]];
    for (const Operand& from : value(op, 0)) {
      Operand to = out_.fresh(file_of(op.dtype));
      out_.move(to, from);
      to.changes = true;
      values_[at].push_back(to);
    }
  }

  // One thread is the first; it alone writes the position.
  void check(const LinearOp& op) {
    Operand holds = lane(op, 0);
    for (size_t l = 1; l < value(op, 0).size(); ++l)
      holds = out_.make("and", "pred", {holds, lane(op, 0, l)});
    const std::string after = out_.fresh_label(), status = Writer::text(status_, "u64");
    out_.line(cat("@", Writer::text(holds, "pred"), " bra ", after));
    const Operand before = out_.fresh(File::Word);
    out_.line(cat("atom.global.cas.b32 ", Writer::text(before, "b32"), ", [", status, "], 0, ",
                  op.aux + 1));
    const Operand is_late = out_.compare("ne", "u32", {before, word(0)});
    out_.line(cat("@", Writer::text(is_late, "pred"), " bra ", after));
    out_.line(cat("st.global.b64 [", status, "+", kPositionOffset, "], ",
                  Writer::text(out_.in_register(lane(op, 1)), "b64")));
    out_.label(after);
  }

  Value result(LinearId at, const LinearOp& op) {
    switch (op.op) {
      case Op::Const:
        return constants(op);
      case Op::Param:
        return {global_parameter(cat("b", op.imm))};
      case Op::Shared:
        spaces_[at] = Space::Shared;
        return {memory_at(shared_name(), op.imm)};
      case Op::Scratch:
        spaces_[at] = Space::Local;
        return {memory_at("scratch", op.imm)};
      case Op::Variable:
        return {parameter(cat("n", op.imm))};
      case Op::LaunchArg:
        return {launch_argument(op.imm)};
      case Op::Address:
        spaces_[at] = spaces_[op.src[0]];
        return {address_at(out_, lane(op, 0), lane(op, 1), op.imm)};
      case Op::Load:
        return load(out_, access_of(op, op.dtype), op.count > 2 ? value(op, 2) : Value());
      case Op::Broadcast:
        return Value(op.dtype.lanes, out_.fixed(lane(op, 0)));
      case Op::Ramp:
        return ramp(op);
      case Op::LaneRange:
        return lane_range(op);
      case Op::Fold:
        return {fold(op)};
      default:
        break;
    }
    Value lanes;
    for (size_t l = 0; l < op.dtype.lanes; ++l) lanes.push_back(lane_of(op, l));
    return lanes;
  }

  Operand lane_of(const LinearOp& op, size_t l) {
    const DType from = source(op, 0).dtype.element(), to = op.dtype.element();
    const Operand& a = lane(op, 0, l);
    switch (op.op) {
      case Op::Where:
        return out_.choose(to, a, lane(op, 1, l), lane(op, 2, l));
      case Op::Cast:
        return cast(out_, from, to, a);
      case Op::Bitcast:
        return bitcast(out_, from, to, a);
      case Op::Dot:
        return dot(out_, static_cast<DotKind>(op.aux), a, lane(op, 1, l), lane(op, 2, l));
      case Op::GroupFold:
        return GroupFolds(out_, program_, fold_memory_)
            .fold(static_cast<Op>(op.aux), to, static_cast<uint32_t>(op.imm), a);
      default:
        return arithmetic(out_, op.op, from, a, op.count > 1 ? lane(op, 1, l) : a,
                          op.count > 2 ? lane(op, 2, l) : a);
    }
  }

  Value constants(const LinearOp& op) {
    const auto bits = static_cast<uint64_t>(op.imm);
    Operand one = constant(op.dtype.element(), bits);
    if (op.dtype.is_bool()) one = out_.compare("ne", "u32", {word(bits != 0), word(0)});
    return Value(op.dtype.lanes, one);
  }

  // Of a grouped program the group's number; else the ends of this block's piece.
  Operand launch_argument(int64_t which) {
    if (which >= 3) {
      const auto axis = static_cast<size_t>(which - 3);
      return program_.group[axis] == 1 ? number(0) : position(kCoordinates[axis]);
    }
    const Operand block = position("%ctaid.x");
    if (which == 2) return block;
    const Operand begin = parameter("begin");
    if (program_.grouped) {
      const Operand group = out_.make("add", "s64", {begin, block});
      return which == 0 ? group : out_.make("add", "s64", {group, number(1)});
    }
    const Operand piece = parameter("piece");
    const Operand first = out_.make("mad.lo", "s64", {block, piece, begin});
    if (which == 0) return first;
    return out_.make("min", "s64", {out_.make("add", "s64", {first, piece}), parameter("end")});
  }

  Value ramp(const LinearOp& op) {
    const DType t = op.dtype.element();
    Value lanes;
    for (size_t l = 0; l < op.dtype.lanes; ++l) {
      const auto step = static_cast<uint64_t>(op.imm) * l;
      const Operand more = constant(t, bits_of_int(t, static_cast<int64_t>(step)));
      lanes.push_back(arithmetic(out_, Op::Add, t, lane(op, 0), more, more));
    }
    return lanes;
  }

  Value lane_range(const LinearOp& op) {
    Value lanes;
    for (int64_t l = 0; l < op.dtype.lanes; ++l) {
      const Operand is_low = out_.compare("le", "s64", {lane(op, 0), number(l)});
      lanes.push_back(out_.compare("gt.and", "s64", {lane(op, 1), number(l), is_low}));
    }
    return lanes;
  }

  Operand fold(const LinearOp& op) {
    Value lanes = value(op, 0);
    for (size_t half = lanes.size() / 2; half > 0; half /= 2)
      for (size_t l = 0; l < half; ++l)
        lanes[l] = arithmetic(out_, static_cast<Op>(op.aux), op.dtype, lanes[l], lanes[l + half],
                              lanes[l]);
    return lanes[0];
  }

  Access access_of(const LinearOp& op, DType dtype) const {
    Access access;
    access.address = {spaces_[op.src[0]], lane(op, 0)};
    access.index = value(op, 1);
    access.stride = op.aux;
    access.displacement = op.imm;
    access.dtype = dtype;
    access.passes_caches = op.bypass;
    const DType one = dtype.element();
    const int zeros =
        std::min({int{zero_bits_[op.src[0]]},
                  zero_bits_[op.src[1]] + std::countr_zero(static_cast<uint64_t>(one.bytes())),
                  std::countr_zero(static_cast<uint64_t>(op.imm))});
    access.alignment = int64_t{1} << std::min(zeros, kZerosThatCount);
    return access;
  }
  static constexpr int kZerosThatCount = 4;  // of 16 bytes, the most that one access takes

  const LinearProgram& program_;
  std::vector<uint8_t> zero_bits_;
  std::vector<Value> values_;
  std::vector<Space> spaces_;
  std::vector<std::string> labels_;  // of blocks
  std::vector<Operand> ends_;        // of the loops around
  int64_t own_shared_, shared_;      // bytes: of Shared, and with those of folds
  Operand fold_memory_, status_;
  Writer out_;
};

}  // namespace

Entry make_entry(const LinearProgram& program, const PtxTarget& target) {
  return Kernel(program, target).entry();
}

}  // namespace tiny::ptx
