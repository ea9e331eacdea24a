#include "render/ptx/kernel.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "base/look_often.h"
#include "base/matrix.h"
#include "base/text.h"
#include "render/access_alignment.h"
#include "render/index_width.h"
#include "render/ptx/adjacent_loads.h"
#include "render/ptx/arithmetic.h"
#include "render/ptx/groups.h"
#include "render/ptx/memory.h"
#include "render/ptx/ptx.h"

namespace tiny::ptx {
namespace {

constexpr int64_t kPositionOffset = 8;  // of the status
constexpr size_t kOpsToUnroll = 64;     // with these a thread's registers have room for four steps

class Kernel {
 public:
  Kernel(const LinearProgram& program, bool has_copies)
      : program_(program),
        has_copies_(has_copies),
        alignment_(program),
        adjacent_(program, alignment_),
        width_(program),
        values_(program.ops.size()),
        spaces_(program.ops.size()),
        labels_(program.ops.size()),
        own_shared_(round_up(program.shared_bytes, kLocalAlignment)),
        shared_(own_shared_ + fold_bytes(program)),
        shared_alignment_(std::ranges::any_of(program.ops, is_shared_product) ? kMatrixBlock
                                                                              : kLocalAlignment) {
    out_.has_bfloat = has_copies;  // both came with sm_80
  }

  Entry entry() {
    begin();
    for (LinearId at = 0; at < program_.ops.size(); ++at) {
      look_often(program_.stop, at);
      statement(at, program_.ops[at]);
    }
    out_.line("ret");
    Entry entry;
    entry.name = cat("tiny_", program_.name);
    entry.block = block_of(program_);
    entry.shared_alignment = shared_alignment_;
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
    const std::array<int64_t, 3> group = block_of(program_);
    // Registers of one group may fill a multiprocessor: they are not to be saved by spilling.
    return out + cat(".maxntid ", group[0], ", ", group[1], ", ", group[2], "\n.minnctapersm 1\n");
  }

  std::string memories() const {
    std::string out;
    if (shared_ > 0 && !is_dynamic())
      out += cat("  .shared .align ", shared_alignment_, " .b8 shared[", shared_, "];\n");
    if (program_.scratch_bytes > 0)
      out +=
          cat("  .local .align ", kLocalAlignment, " .b8 scratch[", program_.scratch_bytes, "];\n");
    return out;
  }

  // Into a register of 64 bits: "mov.u64", a name.
  Operand made(std::string_view opcode, std::string_view from) {
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
  // The number of this block, which has 31 bits.
  Operand block() {
    const Operand result = out_.fresh(File::Word);
    out_.line(cat("mov.u32 ", Writer::text(result, "u32"), ", %ctaid.x"));
    return widened(result);
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
        return set(op);
      case Op::Store:
        return store(out_, access_of(at, source(op, 2).dtype), wide_lanes(op, 2),
                     op.count > 3 ? value(op, 3) : Value());
      case Op::Check:
        return check(op);
      case Op::Barrier:
        return out_.line("bar.sync 0");
      case Op::CopyAsync:
        return copy_to_shared(out_, copy_of(at, op));
      case Op::Commit:
        if (has_copies_) out_.line("cp.async.commit_group");
        return;
      case Op::WaitCopies:
        if (has_copies_) out_.line(cat("cp.async.wait_group ", op.imm));
        return;
      case Op::Mma:
        if (!is_shared_product(op)) break;
        values_[at] = value(op, 2);
        return multiply_shared(op);
      case Op::Fence:
        return out_.line(op.imm == 0 ? "fence.proxy.async.shared::cta"
                                     : "wgmma.fence.sync.aligned");
      case Op::CommitMmas:
        return out_.line("wgmma.commit_group.sync.aligned");
      case Op::WaitMmas:
        return out_.line(cat("wgmma.wait_group.sync.aligned ", op.imm));
      case Op::Poll:      // nobody asks a kernel of a graphics processor to leave
      case Op::Prefetch:  // what stalls a thread is hidden by others
        return;
      default:
        break;
    }
    if (adjacent_.is_taken(at)) return;
    if (const std::vector<LinearId>& loads = adjacent_.together(at); !loads.empty())
      return load_together(loads);
    values_[at] = result(at, op);
    settle(at);
  }
  void settle(LinearId at) {
    for (Operand& l : values_[at]) l = settled(at, out_.fixed(l));
  }

  // Elements that lie side by side, by one access.
  void load_together(const std::vector<LinearId>& loads) {
    const DType element = program_.ops[loads.front()].dtype;
    Access access = access_of(loads.front(), element.with_lanes(std::ssize(loads)));
    access.stride = 1;
    const Value lanes = load(out_, access, Value());
    for (size_t l = 0; l < loads.size(); ++l) {
      values_[loads[l]] = {lanes[l]};
      settle(loads[l]);
    }
  }

  // Whether the counter, and where it stops, are numbers of 32 bits.
  bool counts_in_32(LinearId at, const LinearOp& op) const {
    return width_.fits_32(at) && is_short(lane(op, 0)) && is_short(lane(op, 1)) &&
           width_.interval(op.src[1]).hi <= INT32_MAX - op.imm;
  }

  // Both ends are read once, on entry.
  void open_loop(LinearId at, const LinearOp& op) {
    const bool in_32 = counts_in_32(at, op);
    const Operand first = in_32 ? shortened(lane(op, 0)) : widened(lane(op, 0));
    const Operand end = out_.fixed(in_32 ? shortened(lane(op, 1)) : widened(lane(op, 1)));
    const Operand i = out_.fresh(in_32 ? File::Word : File::Double);
    out_.move(i, first);
    loops_.push_back({i, end});
    labels_[at] = out_.fresh_label();
    const auto number_of = [&](size_t s) { return static_cast<int64_t>(lane(op, s).value); };
    if (!lane(op, 0).is_constant || !lane(op, 1).is_constant || number_of(0) >= number_of(1))
      branch_if("ge", labels_[at] + "_end");
    out_.label(labels_[at]);
    if (!may_unroll(at)) out_.line(".pragma \"nounroll\"");
    values_[at] = {settled(at, i)};
  }
  // Whether the assembler may make one step of several: not of a loop that holds another, nor of a
  // long one, whose values would take more registers than there are.
  bool may_unroll(LinearId at) const {
    for (size_t i = at + 1; i <= at + kOpsToUnroll; ++i)
      if (const Op op = program_.ops[i].op; op == Op::Loop || op == Op::EndLoop)
        return op == Op::EndLoop;
    return false;
  }
  void close_loop(LinearId at) {
    const auto [i, end] = loops_.back();
    const bool in_32 = i.file == File::Word;
    const Operand step = number(program_.ops[at].imm);
    out_.into(i, "add", in_32 ? "s32" : "s64", {i, in_32 ? shortened(step) : step});
    branch_if("lt", labels_[at]);
    out_.label(labels_[at] + "_end");
    loops_.pop_back();
  }
  // Where the innermost loop's counter compares so with its end.
  void branch_if(const char* how, std::string_view label) {
    const auto [i, end] = loops_.back();
    const Operand holds = out_.compare(how, i.file == File::Word ? "s32" : "s64", {i, end});
    out_.line(cat("@", Writer::text(holds, "pred"), " bra ", label));
  }

  // Of int64: those that are known to fit are in registers of 32 bits, and are extended by their
  // sign where they meet others.
  static bool is_short(const Operand& x) {
    if (!x.is_constant) return x.file == File::Word;
    const auto value = static_cast<int64_t>(x.value);
    return value == static_cast<int32_t>(value);
  }
  Operand shortened(const Operand& x) {
    if (x.file == File::Word) return x;
    if (x.is_constant) return word(static_cast<uint32_t>(x.value));
    return out_.convert("", "u32", "u64", x);
  }
  Operand widened(const Operand& x) {
    return x.file == File::Word ? out_.convert("", "s64", "s32", x) : x;
  }
  Value wide_lanes(const LinearOp& op, size_t i) {
    Value lanes = value(op, i);
    if (source(op, i).dtype.scalar == ScalarType::Int64)
      for (Operand& l : lanes) l = widened(l);
    return lanes;
  }
  // As users of the op expect it: constants of int64 have 64 bits.
  Operand settled(LinearId at, const Operand& x) {
    if (program_.ops[at].dtype.scalar != ScalarType::Int64) return x;
    if (x.is_constant) return x.file == File::Word ? number(static_cast<int32_t>(x.value)) : x;
    return width_.fits_32(at) ? shortened(x) : x;
  }

  void declare(LinearId at, const LinearOp& op) {
    spaces_[at] = spaces_[op.src[0]];
    for (const Operand& from : wide_lanes(op, 0)) {
      Operand to = out_.fresh(file_of(op.dtype));
      out_.move(to, from);
      to.changes = true;
      values_[at].push_back(to);
    }
  }

  void set(const LinearOp& op) {
    const Value to = value(op, 0), from = wide_lanes(op, 1);
    for (size_t l = 0; l < to.size(); ++l)
      if (to[l] != from[l]) out_.move(to[l], from[l]);
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
                  Writer::text(out_.in_register(widened(lane(op, 1))), "b64")));
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
        return load(out_, access_of(at, op.dtype), op.count > 2 ? value(op, 2) : Value());
      case Op::Broadcast:
        return Value(op.dtype.lanes, out_.fixed(lane(op, 0)));
      case Op::Ramp:
        return ramp(at, op);
      case Op::LaneRange:
        return lane_range(op);
      case Op::Fold:
        return {fold(op)};
      case Op::Mma:
        return mma(op);
      case Op::LoadMatrix:
        return load_matrix(op);
      case Op::Join:
        return joined(op);
      case Op::Part:
        return {value(op, 0).begin() + op.imm, value(op, 0).begin() + op.imm + op.dtype.lanes};
      default:
        break;
    }
    Value lanes;
    for (size_t l = 0; l < op.dtype.lanes; ++l) lanes.push_back(lane_of(at, op, l));
    return lanes;
  }

  // Whether the op, on sources that fit, gives in 32 bits what it would in 64.
  bool is_narrow(LinearId at, const LinearOp& op, size_t l) const {
    if (op.op == Op::Bitcast) return false;
    if (op.dtype.scalar == ScalarType::Int64 && !width_.fits_32(at)) return false;
    for (size_t i = 0; i < op.count; ++i)
      if (source(op, i).dtype.scalar == ScalarType::Int64 && !is_short(lane(op, i, l)))
        return false;
    return true;
  }

  Operand lane_of(LinearId at, const LinearOp& op, size_t l) {
    const bool narrow = is_narrow(at, op, l);
    const auto used = [&](DType t) {
      return narrow && t.scalar == ScalarType::Int64 ? kInt32 : t.element();
    };
    Operand x[3];
    for (size_t i = 0; i < op.count; ++i) {
      x[i] = lane(op, i, l);
      if (source(op, i).dtype.scalar == ScalarType::Int64)
        x[i] = narrow ? shortened(x[i]) : widened(x[i]);
    }
    const DType from = used(source(op, 0).dtype), to = used(op.dtype);
    switch (op.op) {
      case Op::Where:
        return out_.choose(to, x[0], x[1], x[2]);
      case Op::Cast:
        return cast(out_, from, to, x[0]);
      case Op::Bitcast:
        return bitcast(out_, from, to, x[0]);
      case Op::Dot:
        return dot(out_, static_cast<DotKind>(op.aux), x[0], x[1], x[2]);
      case Op::GroupFold:
        return GroupFolds(out_, program_, fold_memory_)
            .fold(static_cast<Op>(op.aux), to, static_cast<uint32_t>(op.imm), x[0]);
      default:
        if (divides_positive(op))
          return arithmetic(out_, op.op, narrow ? kUInt32 : kUInt64, x[0], x[1], x[2]);
        return arithmetic(out_, op.op, from, x[0], x[1], x[2]);
    }
  }

  // Whether an index that is not negative is divided by one that is positive: by the shorter steps
  // of unsigned numbers, whose quotients and remainders are the same.
  bool divides_positive(const LinearOp& op) const {
    const bool is_division = op.op == Op::FloorDiv || op.op == Op::FloorMod ||
                             op.op == Op::TruncDiv || op.op == Op::TruncMod;
    return is_division && op.dtype.scalar == ScalarType::Int64 && op.dtype.lanes == 1 &&
           width_.interval(op.src[0]).lo >= 0 && width_.interval(op.src[1]).lo > 0;
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
      return program_.group[axis] == 1 ? number(0) : coordinate(out_, program_, axis);
    }
    const Operand number_of_block = block();
    if (which == 2) return number_of_block;
    const Operand begin = parameter("begin");
    if (program_.grouped) {
      const Operand group = out_.make("add", "s64", {begin, number_of_block});
      return which == 0 ? group : out_.make("add", "s64", {group, number(1)});
    }
    const Operand piece = parameter("piece");
    const Operand first = out_.make("mad.lo", "s64", {number_of_block, piece, begin});
    if (which == 0) return first;
    return out_.make("min", "s64", {out_.make("add", "s64", {first, piece}), parameter("end")});
  }

  Value ramp(LinearId at, const LinearOp& op) {
    const bool narrow = is_narrow(at, op, 0);
    const DType own = op.dtype.element(), t = own == kInt64 && narrow ? kInt32 : own;
    Operand first = lane(op, 0);
    if (own == kInt64) first = narrow ? shortened(first) : widened(first);
    Value lanes;
    for (size_t l = 0; l < op.dtype.lanes; ++l) {
      const auto step = static_cast<uint64_t>(op.imm) * l;
      const Operand more = constant(t, bits_of_int(t, static_cast<int64_t>(step)));
      lanes.push_back(arithmetic(out_, Op::Add, t, first, more, more));
    }
    return lanes;
  }

  Value lane_range(const LinearOp& op) {
    const bool narrow = is_short(lane(op, 0)) && is_short(lane(op, 1));
    const auto end = [&](size_t i) {
      return narrow ? shortened(lane(op, i)) : widened(lane(op, i));
    };
    const Operand low = end(0), high = end(1);
    const std::string_view type = narrow ? "s32" : "s64";
    // Where both ends are multiples of the lanes, all of these are there or none.
    const auto is_whole = [&](size_t i) {
      return alignment_.factor(op.src[i]) % op.dtype.lanes == 0;
    };
    const int64_t different = is_whole(0) && is_whole(1) ? 1 : op.dtype.lanes;
    Value lanes;
    for (int64_t l = 0; l < different; ++l) {
      const Operand is_low = out_.compare("le", type, {low, number(l)});
      lanes.push_back(out_.compare("gt.and", type, {high, number(l), is_low}));
    }
    lanes.resize(op.dtype.lanes, lanes.front());
    return lanes;
  }

  Operand fold(const LinearOp& op) {
    Value lanes = wide_lanes(op, 0);
    for (size_t half = lanes.size() / 2; half > 0; half /= 2)
      for (size_t l = 0; l < half; ++l)
        lanes[l] = arithmetic(out_, static_cast<Op>(op.aux), op.dtype, lanes[l], lanes[l + half],
                              lanes[l]);
    return lanes[0];
  }

  Value joined(const LinearOp& op) {
    Value lanes = value(op, 0);
    lanes.insert(lanes.end(), value(op, 1).begin(), value(op, 1).end());
    return lanes;
  }

  // All threads of the warp are here (ir/linear.h).
  Value mma(const LinearOp& op) {
    Value sum;
    for (size_t l = 0; l < op.dtype.lanes; ++l) sum.push_back(out_.fresh(File::Word));
    std::string line = cat(kMatrixRows[op.aux].ptx, " ", braced(sum));
    for (size_t i = 0; i < op.count; ++i) {
      Value lanes = value(op, i);
      for (Operand& l : lanes)
        if (l.is_constant) l = out_.in_register(l);
      line += ", " + braced(lanes);
    }
    out_.line(line);
    return sum;
  }
  static bool is_shared_product(const LinearOp& op) {
    return op.op == Op::Mma && kMatrixRows[op.aux].shares_operands();
  }
  // In the accumulator's registers, which nothing else has while the product is under way.
  void multiply_shared(const LinearOp& op) {
    const Operand adds = out_.compare("ne", "u32", {word(1), word(0)});
    const auto turned = [&](int64_t bit) { return (op.imm & bit) != 0 ? 1 : 0; };
    out_.line(cat(kMatrixRows[op.aux].ptx, " ", braced(value(op, 2)), ", ",
                  Writer::text(descriptor(lane(op, 0)), "b64"), ", ",
                  Writer::text(descriptor(lane(op, 1)), "b64"), ", ", Writer::text(adds, "pred"),
                  ", 1, 1, ", turned(kTurnedA), ", ", turned(kTurnedB)));
  }
  // PTX ISA, "Matrix Descriptor Format": where it begins, the distance of its blocks, in 16 bytes,
  // and that lines of 128 bytes are swizzled.
  Operand descriptor(const Operand& address) {
    constexpr uint64_t kUnits = 0x3FFF, kUnused = uint64_t{1} << 16, kSwizzled = uint64_t{1} << 62;
    constexpr uint64_t kBlocks = static_cast<uint64_t>(kMatrixBlock / 16) << 32;
    const Operand begin = out_.make("shr", "u64", {address, word(4)});
    const auto bits = [](uint64_t of) { return number(static_cast<int64_t>(of)); };
    const Operand place = out_.make("and", "b64", {begin, bits(kUnits)});
    return out_.make("or", "b64", {place, bits(kUnused | kBlocks | kSwizzled)});
  }

  Value load_matrix(const LinearOp& op) {
    Value words;
    for (size_t l = 0; l < op.dtype.lanes; ++l) words.push_back(out_.fresh(File::Word));
    out_.line(cat("ldmatrix.sync.aligned.m8n8.x", op.dtype.lanes, op.aux != 0 ? ".trans" : "",
                  ".shared.b16 ", braced(words), ", [", Writer::text(lane(op, 0), "u64"),
                  op.imm != 0 ? cat("+", op.imm) : "", "]"));
    return words;
  }
  static std::string braced(const Value& registers) {
    std::vector<std::string> names;
    for (const Operand& r : registers) names.push_back(Writer::text(r, "b32"));
    return cat("{", join(names, ", "), "}");
  }

  Access access_of(LinearId at, DType dtype) const {
    const LinearOp& op = program_.ops[at];
    Access access;
    access.address = {spaces_[op.src[0]], lane(op, 0)};
    access.index = value(op, 1);
    access.stride = op.aux;
    access.displacement = op.imm;
    access.dtype = dtype;
    access.passes_caches = op.bypass;
    access.alignment = alignment_.of(at);
    const size_t mask = op.op == Op::Store ? 3 : 2;
    access.is_run = op.count > mask && source(op, mask).op == Op::LaneRange;
    return access;
  }

  Copy copy_of(LinearId at, const LinearOp& op) {
    Copy copy;
    copy.to = lane(op, 0);
    copy.from = {spaces_[op.src[1]], lane(op, 1)};
    copy.valid = shortened(lane(op, 2));
    copy.bytes = op.aux;
    copy.element_bytes = op.imm;
    copy.alignment = alignment_.of(at);
    copy.runs_beside = has_copies_;
    return copy;
  }

  const LinearProgram& program_;
  const bool has_copies_;  // that run beside the thread
  AccessAlignment alignment_;
  AdjacentLoads adjacent_;
  IndexWidth width_;
  std::vector<Value> values_;
  std::vector<Space> spaces_;
  std::vector<std::string> labels_;  // of blocks
  struct OpenLoop {
    Operand counter, end;
  };
  std::vector<OpenLoop> loops_;
  int64_t own_shared_, shared_;  // bytes: of Shared, and with those of folds
  int64_t shared_alignment_;
  Operand fold_memory_, status_;
  Writer out_;
};

}  // namespace

Entry make_entry(const LinearProgram& program, bool has_copies) {
  return Kernel(program, has_copies).entry();
}

}  // namespace tiny::ptx
