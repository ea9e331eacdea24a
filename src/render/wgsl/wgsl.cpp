#include "render/wgsl/wgsl.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/look_often.h"
#include "base/text.h"
#include "render/c/dialect.h"
#include "render/c/types.h"
#include "render/index_width.h"
#include "render/wgsl/arithmetic.h"

namespace tiny {
namespace {

using c::fill;

constexpr int64_t kThreads = 64;  // of a group, where the program has none
constexpr int64_t kWordBytes = 4;

// The memory that an address points into: an array of words.
struct Area {
  std::string name;
  bool is_shared_word = false;  // threads store parts of a word: each is atomic
};

class Kernel {
 public:
  explicit Kernel(const LinearProgram& program)
      : program_(program),
        width_(program),
        buffers_(program.params.size()),
        areas_(program.ops.size()),
        lanes_(program.ops.size()) {}

  std::string text() {
    invariant(c::is_identifier(program_.name), "a kernel's name is an identifier of WGSL");
    check_types();
    find_areas();
    for (LinearId at = 0; at < program_.ops.size(); ++at) {
      look_often(program_.stop, at);
      statement(at);
    }
    const std::string head = heading();
    return fill("/* $0, made by tiny. */\n$1$2$3$4}\n",
                {program_.name, bindings(), functions_.text(), head, body_});
  }

 private:
  using Names = std::vector<std::string>;  // of a value, by lane

  const LinearOp& source(const LinearOp& op, size_t i) const { return program_.ops[op.src[i]]; }
  const std::string& name(const LinearOp& op, size_t i, size_t lane = 0) const {
    return lanes_[op.src[i]][lane];
  }

  void check_types() const {
    for (LinearId at = 0; at < program_.ops.size(); ++at) {
      const DType dtype = program_.ops[at].dtype.element();
      const bool is_wide = dtype.bits() == 64 && dtype != kAddress && dtype != kVoid;
      require(!is_wide || (dtype == kInt64 && width_.fits_32(at)), Status::Unsupported, "kernel ",
              program_.name, " computes with ", dtype,
              dtype == kInt64 ? " that 32 bits may not hold" : "", ", which WGSL has not");
    }
  }

  // Where each address points, and where threads store less than a word.
  void find_areas() {
    for (LinearId at = 0; at < program_.ops.size(); ++at) {
      const LinearOp& op = program_.ops[at];
      if (op.op == Op::Param) areas_[at] = &buffers_[static_cast<size_t>(op.imm)];
      if (op.op == Op::Shared) areas_[at] = &shared_;
      if (op.op == Op::Scratch) areas_[at] = &scratch_;
      if (op.op == Op::Address) areas_[at] = areas_[op.src[0]];
      if (op.op == Op::Store && source(op, 2).dtype.element().bytes() < kWordBytes)
        areas_[op.src[0]]->is_shared_word = true;
    }
    for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].name = cat("buffer", i);
    scratch_.is_shared_word = false;
  }

  void say(std::string_view pattern, std::initializer_list<std::string_view> values) {
    line(fill(pattern, values));
  }
  void line(const std::string& text) { body_ += std::string(2 * depth_, ' ') + text + "\n"; }

  // The value's lanes, each of which is such an expression.
  void define(LinearId at, const char* prefix, const Names& expressions) {
    for (size_t lane = 0; lane < expressions.size(); ++lane) {
      lanes_[at].push_back(lane_name(at, prefix, lane, expressions.size()));
      define_as("let ", lanes_[at].back(), expressions[lane]);
    }
  }
  void open_if(const std::string& condition) {
    say("if ($0) {", {condition});
    ++depth_;
  }
  void define_as(const char* how, const std::string& name, const std::string& expression) {
    line(fill("$0$1 = $2;", {how, name, expression}));
  }
  static std::string lane_name(LinearId at, const char* prefix, size_t lane, size_t count) {
    return count == 1 ? cat(prefix, at) : cat(prefix, at, "_", lane);
  }

  void statement(LinearId at) {
    const LinearOp& op = program_.ops[at];
    switch (op.op) {
      case Op::Loop:
        return loop(at, op);
      case Op::If:
        return open_if(name(op, 0));
      case Op::EndLoop:
      case Op::EndIf:
        --depth_;
        return line("}");
      case Op::Accumulator:
        for (size_t lane = 0; lane < static_cast<size_t>(op.dtype.lanes); ++lane) {
          lanes_[at].push_back(lane_name(at, "acc", lane, static_cast<size_t>(op.dtype.lanes)));
          define_as("var ", lanes_[at].back(), name(op, 0, lane));
        }
        return;
      case Op::Set:
        return set(op);
      case Op::Store:
        return store(at, op);
      case Op::CopyAsync:
        return copy(op);
      case Op::Barrier:
        return line("workgroupBarrier();");
      case Op::Check: {
        const std::string function = functions_.check();
        for (const std::string& holds : lanes_[op.src[0]])
          line(fill("$0($1, $2, $3);", {function, holds, std::to_string(op.aux), name(op, 1)}));
        return;
      }
      case Op::Prefetch:
      case Op::Poll:
      case Op::Commit:
      case Op::WaitCopies:
      case Op::Fence:
      case Op::CommitMmas:
      case Op::WaitMmas:
        return;
      default:
        return value(at, op);
    }
  }

  void set(const LinearOp& op) {
    const Names& from = lanes_[op.src[1]];
    for (size_t lane = 0; lane < from.size(); ++lane) define_as("", name(op, 0, lane), from[lane]);
  }

  // Both ends are read once, on entry.
  void loop(LinearId at, const LinearOp& op) {
    std::string end = name(op, 1);
    const int64_t last = width_.interval(op.src[1]).hi;
    require(last <= INT32_MAX - op.imm, Status::Unsupported, "kernel ", program_.name,
            " counts beyond 32 bits, which WGSL has not");
    if (source(op, 1).op == Op::Accumulator) {
      const std::string read = cat("end", at);
      define_as("let ", read, end);
      end = read;
    }
    const std::string i = cat("k", at);
    lanes_[at] = {i};
    line(fill("for (var $0 = $1; $0 < $2; $0 += $3) {",
              {i, name(op, 0), end, std::to_string(op.imm)}));
    ++depth_;
  }

  void value(LinearId at, const LinearOp& op) {
    const auto lanes = static_cast<size_t>(op.dtype.lanes);
    switch (op.op) {
      case Op::Const:
        // With a name it is no constant to the compiler, which would refuse to compute what
        // overflows.
        define(at, "c", {functions_.literal(op.dtype.element(), static_cast<uint64_t>(op.imm))});
        return lanes_[at].resize(lanes, std::string(lanes_[at][0]));
      case Op::Scratch:
      case Op::Shared:
        return define(at, "s", {unsigned_text(op.imm)});
      case Op::Param:
        return define(at, "p", {fill("u32($0)", {number(op.imm)})});
      case Op::Address:
        return define(at, "p", {fill("$0 + $1", {name(op, 0), offset(op.src[1], 0, op.imm)})});
      case Op::Variable:
        return define(at, "n", {number(static_cast<int64_t>(buffers_.size()) + op.imm)});
      case Op::LaunchArg:
        return define(at, "n", {launched(op.imm)});
      case Op::Broadcast:
        return define(at, "v", Names(lanes, name(op, 0)));
      case Op::Load:
        return load(at, op);
      case Op::Fold:
        return fold(at, op);
      default: {
        Names values;
        for (size_t lane = 0; lane < lanes; ++lane) values.push_back(expression(op, lane));
        return define(at, "v", values);
      }
    }
  }

  static std::string number(int64_t at) { return cat("numbers[", at, "]"); }

  std::string launched(int64_t argument) {
    constexpr const char* kAxes = "xyz";
    if (argument >= 3) return cat("i32(local.", kAxes[argument - 3], ")");
    return argument == 0 ? "piece" : argument == 1 ? "piece + 1" : "0";
  }

  // Modulo 2^32, as addresses are computed.
  static std::string unsigned_text(int64_t bytes) {
    return cat(static_cast<uint32_t>(static_cast<uint64_t>(bytes)), "u");
  }

  // So many bytes for each of an index.  What the compiler would compute and refuse, since it
  // wraps, is computed here.
  std::string offset(LinearId index, size_t lane, int64_t bytes) const {
    const LinearOp& op = program_.ops[index];
    if (op.op == Op::Const)
      return unsigned_text(
          static_cast<int64_t>(static_cast<uint64_t>(op.imm) * static_cast<uint64_t>(bytes)));
    return fill("u32($0) * $1", {lanes_[index][lane], unsigned_text(bytes)});
  }

  static std::string chosen(const std::string& otherwise, const std::string& value,
                            const std::string& condition) {
    return fill("select($0, $1, $2)", {otherwise, value, condition});
  }

  std::string expression(const LinearOp& op, size_t lane) {
    const DType from = source(op, 0).dtype.element(), to = op.dtype.element();
    const std::string a = name(op, 0, lane < lanes_[op.src[0]].size() ? lane : 0);
    const auto of = [&](size_t i) { return op.count > i ? name(op, i, lane) : std::string(); };
    switch (op.op) {
      case Op::Where:
        return chosen(of(2), of(1), a);
      case Op::Cast:
        return functions_.cast(from, to, a);
      case Op::Bitcast:
        return functions_.bitcast(from, to, a);
      case Op::Ramp:
        return ramp(op, lane);
      case Op::LaneRange:
        return fill("$0 <= $1 && $1 < $2", {name(op, 0), std::to_string(lane), name(op, 1)});
      case Op::GroupFold:
        return group_fold(op, a);
      default:
        require(has(op.op, kElementwise), Status::Unsupported, "kernel ", program_.name,
                " has the op ", c::word_of(op.op), ", which WGSL has not");
        return functions_.arithmetic(op.op, from, a, of(1), of(2));
    }
  }

  std::string ramp(const LinearOp& op, size_t lane) {
    const DType dtype = op.dtype.element();
    const auto apart = static_cast<uint64_t>(op.imm) * lane;
    if (apart == 0) return name(op, 0);
    return functions_.arithmetic(
        Op::Add, dtype, name(op, 0),
        functions_.literal(dtype, bits_of_int(dtype, static_cast<int64_t>(apart))), "");
  }

  // Halves are combined, to the last.
  void fold(LinearId at, const LinearOp& op) {
    const DType dtype = op.dtype.element();
    Names names = lanes_[op.src[0]];
    for (int step = 0; names.size() > 1; ++step) {
      const size_t half = names.size() / 2;
      Names next;
      for (size_t lane = 0; lane < half; ++lane) {
        next.push_back(half == 1 ? cat("v", at) : cat("v", at, "_", step, "_", lane));
        define_as("let ", next.back(),
                  functions_.arithmetic(static_cast<Op>(op.aux), dtype, names[lane],
                                        names[lane + half], ""));
      }
      names = std::move(next);
    }
    lanes_[at] = names;
  }

  // Axis by axis: of threads in the order of their numbers, those that are `apart`.
  std::string group_fold(const LinearOp& op, std::string value) {
    has_folds_ = true;
    const std::string function = functions_.group_fold(static_cast<Op>(op.aux), op.dtype.element());
    int64_t apart = 1;
    for (size_t axis = 0; axis < program_.group.size(); ++axis) {
      const int64_t size = program_.group[axis];
      if (op.imm >> axis & 1)
        value = fill("$0($1, thread, $2u, $3u)",
                     {function, value, std::to_string(apart), std::to_string(size)});
      apart *= size;
    }
    return value;
  }

  // The byte address of a lane of an access, as an operand.
  std::string place(const LinearOp& op, DType dtype, size_t lane, const std::string& first) {
    const int64_t bytes = dtype.element().bytes();
    if (source(op, 1).dtype.lanes > 1)
      return fill("($0 + $1)", {first, offset(op.src[1], lane, bytes)});
    const int64_t apart = static_cast<int64_t>(lane) * op.aux * bytes;
    return apart == 0 ? first : fill("($0 + $1)", {first, unsigned_text(apart)});
  }
  // That of its first lane, or what the indices of lanes are relative to; defined.
  std::string first_place(LinearId at, const LinearOp& op, DType dtype) {
    std::string text = name(op, 0);
    if (source(op, 1).dtype.lanes == 1)
      text = fill("$0 + $1", {text, offset(op.src[1], 0, dtype.element().bytes())});
    if (op.imm != 0) text = fill("$0 + $1", {text, unsigned_text(op.imm)});
    const std::string called = cat("a", at);
    define_as("let ", called, text);
    return called;
  }

  static std::string word_at(const Area& area, const std::string& address) {
    return fill(area.is_shared_word ? "atomicLoad(&$0[$1 >> 2u])" : "$0[$1 >> 2u]",
                {area.name, address});
  }

  // What lies outside of a buffer may be read: it is not where it seems.
  void load(LinearId at, const LinearOp& op) {
    const Area& area = *areas_[op.src[0]];
    const DType dtype = op.dtype.element();
    const std::string first = first_place(at, op, op.dtype);
    Names values;
    for (size_t lane = 0; lane < static_cast<size_t>(op.dtype.lanes); ++lane) {
      const std::string address = place(op, op.dtype, lane, first);
      std::string value = functions_.of_word(dtype, word_at(area, address), address);
      if (op.count > 2) value = chosen(functions_.literal(dtype, 0), value, name(op, 2, lane));
      values.push_back(std::move(value));
    }
    define(at, "v", values);
  }

  void store(LinearId at, const LinearOp& op) {
    const Area& area = *areas_[op.src[0]];
    const DType dtype = source(op, 2).dtype;
    const std::string first = first_place(at, op, dtype);
    for (size_t lane = 0; lane < static_cast<size_t>(dtype.lanes); ++lane) {
      if (op.count > 3) {
        open_if(name(op, 3, lane));
      }
      put(area, place(op, dtype, lane, first), dtype.element(),
          functions_.to_word(dtype.element(), name(op, 2, lane)));
      if (op.count > 3) {
        --depth_;
        line("}");
      }
    }
  }

  // Of a word that others may store parts of, the own part alone.
  void put(const Area& area, const std::string& address, DType dtype, const std::string& word) {
    const bool is_atomic = area.is_shared_word, is_byte = dtype.bytes() == 1;
    const char* text = dtype.bytes() == kWordBytes
                           ? is_atomic ? "atomicStore(&$0[$1 >> 2u], $2);" : "$0[$1 >> 2u] = $2;"
                       : is_atomic
                           ? "atomicAnd(&$0[$1 >> 2u], ~($3u << (($1 & $4u) * 8u))); "
                             "atomicOr(&$0[$1 >> 2u], $2 << (($1 & $4u) * 8u));"
                           : "$0[$1 >> 2u] = ($0[$1 >> 2u] & ~($3u << (($1 & $4u) * 8u))) | ($2 << "
                             "(($1 & $4u) * 8u));";
    say(text, {area.name, address, word, is_byte ? "255" : "65535", is_byte ? "3" : "2"});
  }

  // At once; of the bytes behind those that are there, zeros.
  void copy(const LinearOp& op) {
    const std::string function = functions_.first_bytes();
    for (int64_t at = 0; at < op.aux; at += kWordBytes) {
      const std::string apart = unsigned_text(at);
      const std::string word = word_at(*areas_[op.src[1]], fill("($0 + $1)", {name(op, 1), apart}));
      put(*areas_[op.src[0]], fill("($0 + $1)", {name(op, 0), apart}), kUInt32,
          fill("$0($1, $2 - $3)", {function, word, name(op, 2), std::to_string(at)}));
    }
  }

  static std::string area_text(const char* space, const Area& area, int64_t bytes) {
    if (bytes == 0) return "";
    return fill("var<$0> $1: array<$2, $3>;\n",
                {space, area.name, area.is_shared_word ? "atomic<u32>" : "u32",
                 std::to_string((bytes + kWordBytes - 1) / kWordBytes)});
  }

  static std::string binding(size_t at, bool is_written, std::string_view name, const char* one) {
    return fill("@group(0) @binding($0) var<storage, $1> $2: array<$3>;\n",
                {std::to_string(at), is_written ? "read_write" : "read", name, one});
  }

  std::string bindings() const {
    const size_t count = buffers_.size();
    std::string out;
    for (size_t i = 0; i < count; ++i)
      out += binding(i, program_.params[i].written, buffers_[i].name,
                     buffers_[i].is_shared_word ? "atomic<u32>" : "u32");
    out += binding(count, false, "numbers", "i32");
    out += binding(count + 1, true, "status", "atomic<i32>");
    out += area_text("workgroup", shared_, program_.shared_bytes);
    out += area_text("private", scratch_, program_.scratch_bytes);
    if (has_folds_) out += area_text("workgroup", {"folds"}, program_.group_threads() * kWordBytes);
    return out;
  }

  std::string heading() const {
    const bool is_alone = !program_.grouped && program_.threaded;
    const int64_t x = is_alone ? kThreads : program_.group[0];
    const auto numbers = static_cast<int64_t>(buffers_.size() + program_.variables.size());
    const std::string sizes[] = {std::to_string(x), std::to_string(program_.group[1]),
                                 std::to_string(program_.group[2])};
    return fill(
        "\n@compute @workgroup_size($1, $2, $3)\n"
        "fn $0(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: "
        "vec3<u32>, "
        "@builtin(local_invocation_id) local: vec3<u32>) {\n"
        "  let number = group.x + groups.x * group.y;\n"
        "  let piece = $4 + i32(number$6);\n"
        "  if (piece >= $5) { return; }\n"
        "$7",
        {program_.name, sizes[0], sizes[1], sizes[2], number(numbers), number(numbers + 1),
         is_alone ? " * 64u + local.x" : "",
         has_folds_ ? fill("  let thread = local.x + $0u * (local.y + $1u * local.z);\n",
                           {sizes[0], sizes[1]})
                    : ""});
  }
  static_assert(kThreads == 64, "the heading has it in words");

  const LinearProgram& program_;
  IndexWidth width_;
  wgsl::Functions functions_;
  std::vector<Area> buffers_;
  Area shared_{"shared_words"}, scratch_{"scratch"};
  std::vector<Area*> areas_;  // of addresses
  std::vector<Names> lanes_;
  std::string body_;
  bool has_folds_ = false;
  size_t depth_ = 1;
};

}  // namespace

bool has_wgsl_renderer() {
  return true;
}

std::string render_wgsl(const LinearProgram& program) {
  return Kernel(program).text();
}

}  // namespace tiny
