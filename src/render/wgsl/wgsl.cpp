#include "render/wgsl/wgsl.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/look_often.h"
#include "base/text.h"
#include "render/c/dialect.h"
#include "render/index_width.h"
#include "render/wgsl/arithmetic.h"

namespace tiny {
namespace {

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
    return cat("/* ", program_.name, ", made by tiny. */\n", bindings(), functions_.text(), head,
               body_, "}\n");
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

  void line(const std::string& text) { body_ += std::string(2 * depth_, ' ') + text + "\n"; }

  // A value of so many lanes, each of which is defined by its expression.
  template <class Expression>
  void define(LinearId at, const char* prefix, Expression expression) {
    const auto count = static_cast<size_t>(program_.ops[at].dtype.lanes);
    for (size_t lane = 0; lane < count; ++lane) {
      const std::string value = expression(lane);
      lanes_[at].push_back(lane_name(at, prefix, lane, count));
      line(cat("let ", lanes_[at].back(), " = ", value, ";"));
    }
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
        line(cat("if (", name(op, 0), ") {"));
        ++depth_;
        return;
      case Op::EndLoop:
      case Op::EndIf:
        --depth_;
        return line("}");
      case Op::Accumulator:
        for (size_t lane = 0; lane < static_cast<size_t>(op.dtype.lanes); ++lane) {
          lanes_[at].push_back(lane_name(at, "acc", lane, static_cast<size_t>(op.dtype.lanes)));
          line(cat("var ", lanes_[at].back(), ": ", wgsl::type_of(op.dtype.element()), " = ",
                   name(op, 0, lane), ";"));
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
          line(cat(function, "(", holds, ", ", op.aux, ", ", name(op, 1), ");"));
        return;
      }
      case Op::Prefetch:
      case Op::Poll:
      case Op::Commit:
      case Op::WaitCopies:
        return;
      default:
        return value(at, op);
    }
  }

  void set(const LinearOp& op) {
    const Names& from = lanes_[op.src[1]];
    for (size_t lane = 0; lane < from.size(); ++lane)
      line(cat(name(op, 0, lane), " = ", from[lane], ";"));
  }

  // Both ends are read once, on entry.
  void loop(LinearId at, const LinearOp& op) {
    std::string end = name(op, 1);
    const int64_t last = width_.interval(op.src[1]).hi;
    require(last <= INT32_MAX - op.imm, Status::Unsupported, "kernel ", program_.name,
            " counts beyond 32 bits, which WGSL has not");
    if (source(op, 1).op == Op::Accumulator) {
      line(cat("let end", at, " = ", end, ";"));
      end = cat("end", at);
    }
    const std::string i = cat("k", at);
    lanes_[at] = {i};
    line(cat("for (var ", i, " = ", name(op, 0), "; ", i, " < ", end, "; ", i, " += ", op.imm,
             ") {"));
    ++depth_;
  }

  void value(LinearId at, const LinearOp& op) {
    const auto lanes = static_cast<size_t>(op.dtype.lanes);
    switch (op.op) {
      case Op::Const:
        lanes_[at].assign(lanes,
                          functions_.literal(op.dtype.element(), static_cast<uint64_t>(op.imm)));
        return;
      case Op::Param:
        return define(at, "p", [&](size_t) { return cat("u32(numbers[", op.imm, "])"); });
      case Op::Scratch:
      case Op::Shared:
        lanes_[at] = {unsigned_text(op.imm)};
        return;
      case Op::Address:
        return define(
            at, "p", [&](size_t) { return cat(name(op, 0), " + ", offset(op.src[1], 0, op.imm)); });
      case Op::Variable:
        return define(at, "n", [&](size_t) {
          return cat("numbers[", static_cast<int64_t>(buffers_.size()) + op.imm, "]");
        });
      case Op::LaunchArg:
        return define(at, "n", [&](size_t) { return launched(op.imm); });
      case Op::Broadcast:
        return define(at, "v", [&](size_t) { return name(op, 0); });
      case Op::Join: {
        const size_t half = lanes / 2;
        return define(at, "v", [&](size_t lane) {
          return lane < half ? name(op, 0, lane) : name(op, 1, lane - half);
        });
      }
      case Op::Part:
        return define(at, "v",
                      [&](size_t lane) { return name(op, 0, lane + static_cast<size_t>(op.aux)); });
      case Op::Load:
        return load(at, op);
      default:
        return computed(at, op);
    }
  }

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
    return cat("u32(", lanes_[index][lane], ") * ", unsigned_text(bytes));
  }

  // What has constants alone as operands is not the compiler's to compute: it refuses overflows and
  // NaN.  So they have names for this op.
  void computed(LinearId at, const LinearOp& op) {
    bool all_constant = true;
    for (size_t i = 0; i < op.count; ++i) all_constant &= source(op, i).op == Op::Const;
    std::vector<Names> literals;
    for (size_t i = 0; all_constant && i < op.count; ++i) {
      literals.push_back(lanes_[op.src[i]]);
      const std::string name = cat("c", at, "_", i);
      line(cat("let ", name, " = ", literals[i][0], ";"));
      for (std::string& lane : lanes_[op.src[i]]) lane = name;
    }
    if (op.op == Op::Fold)
      fold(at, op);
    else
      define(at, "v", [&](size_t lane) { return expression(op, lane); });
    for (size_t i = literals.size(); i-- > 0;) lanes_[op.src[i]] = std::move(literals[i]);
  }

  std::string expression(const LinearOp& op, size_t lane) {
    const DType from = source(op, 0).dtype.element(), to = op.dtype.element();
    const std::string a = name(op, 0, lane < lanes_[op.src[0]].size() ? lane : 0);
    const auto of = [&](size_t i) { return op.count > i ? name(op, i, lane) : std::string(); };
    switch (op.op) {
      case Op::Where:
        return cat("select(", of(2), ", ", of(1), ", ", a, ")");
      case Op::Cast:
        return functions_.cast(from, to, a);
      case Op::Bitcast:
        return functions_.bitcast(from, to, a);
      case Op::Ramp:
        return ramp(op, lane);
      case Op::LaneRange:
        return cat(name(op, 0), " <= ", lane, " && ", lane, " < ", name(op, 1));
      case Op::GroupFold:
        return group_fold(op, a);
      default:
        require(has(op.op, kElementwise), Status::Unsupported, "kernel ", program_.name,
                " has the op ", info(op.op).name, ", which WGSL has not");
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
        line(cat("let ", next.back(), " = ",
                 functions_.arithmetic(static_cast<Op>(op.aux), dtype, names[lane],
                                       names[lane + half], ""),
                 ";"));
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
        value = cat(function, "(", value, ", thread, ", apart, "u, ", size, "u)");
      apart *= size;
    }
    return value;
  }

  // The byte address of a lane of an access, as an operand.
  std::string place(const LinearOp& op, DType dtype, size_t lane, const std::string& first) {
    const int64_t bytes = dtype.element().bytes();
    if (source(op, 1).dtype.lanes > 1)
      return cat("(", first, " + ", offset(op.src[1], lane, bytes), ")");
    const int64_t apart = static_cast<int64_t>(lane) * op.aux * bytes;
    return apart == 0 ? first : cat("(", first, " + ", unsigned_text(apart), ")");
  }
  // That of its first lane, or what the indices of lanes are relative to; defined.
  std::string first_place(LinearId at, const LinearOp& op, DType dtype) {
    const bool each = source(op, 1).dtype.lanes > 1;
    const std::string displaced = op.imm == 0 ? "" : cat(" + ", unsigned_text(op.imm));
    const std::string name_of_it = cat("a", at);
    line(cat("let ", name_of_it, " = ", name(op, 0),
             each ? "" : cat(" + ", offset(op.src[1], 0, dtype.element().bytes())), displaced,
             ";"));
    return name_of_it;
  }

  static std::string word_at(const Area& area, const std::string& address) {
    const std::string word = cat(area.name, "[", address, " >> 2u]");
    return area.is_shared_word ? cat("atomicLoad(&", word, ")") : word;
  }

  // What lies outside of a buffer may be read: it is not where it seems.
  void load(LinearId at, const LinearOp& op) {
    const Area& area = *areas_[op.src[0]];
    const DType dtype = op.dtype.element();
    const std::string first = first_place(at, op, op.dtype);
    define(at, "v", [&](size_t lane) {
      const std::string address = place(op, op.dtype, lane, first);
      const std::string value = functions_.of_word(dtype, word_at(area, address), address);
      if (op.count <= 2) return value;
      return cat("select(", functions_.literal(dtype, 0), ", ", value, ", ", name(op, 2, lane),
                 ")");
    });
  }

  void store(LinearId at, const LinearOp& op) {
    const Area& area = *areas_[op.src[0]];
    const DType dtype = source(op, 2).dtype;
    const std::string first = first_place(at, op, dtype);
    for (size_t lane = 0; lane < static_cast<size_t>(dtype.lanes); ++lane) {
      if (op.count > 3) {
        line(cat("if (", name(op, 3, lane), ") {"));
        ++depth_;
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
    const std::string to = cat(area.name, "[", address, " >> 2u]");
    if (dtype.bytes() == kWordBytes)
      return line(area.is_shared_word ? cat("atomicStore(&", to, ", ", word, ");")
                                      : cat(to, " = ", word, ";"));
    const bool is_byte = dtype.bytes() == 1;
    const std::string shift = cat("((", address, is_byte ? " & 3u) * 8u)" : " & 2u) * 8u)");
    const std::string kept = cat("~(", is_byte ? "0xffu" : "0xffffu", " << ", shift, ")");
    const std::string part = cat("(", word, " << ", shift, ")");
    if (!area.is_shared_word) return line(cat(to, " = (", to, " & ", kept, ") | ", part, ";"));
    line(cat("atomicAnd(&", to, ", ", kept, ");"));
    line(cat("atomicOr(&", to, ", ", part, ");"));
  }

  // At once; of the bytes behind those that are there, zeros.
  void copy(const LinearOp& op) {
    const std::string function = functions_.first_bytes();
    for (int64_t at = 0; at < op.aux; at += kWordBytes) {
      const auto place = [&](size_t i) {
        return at == 0 ? name(op, i) : cat("(", name(op, i), " + ", at, "u)");
      };
      put(*areas_[op.src[0]], place(0), kUInt32,
          cat(function, "(", word_at(*areas_[op.src[1]], place(1)), ", ", name(op, 2), " - ", at,
              ")"));
    }
  }

  static std::string area_text(const char* space, const Area& area, int64_t bytes) {
    const int64_t words = (bytes + kWordBytes - 1) / kWordBytes;
    return bytes == 0 ? ""
                      : cat("var<", space, "> ", area.name, ": array<",
                            area.is_shared_word ? "atomic<u32>" : "u32", ", ", words, ">;\n");
  }

  std::string bindings() const {
    std::string out;
    const auto binding = [&](size_t at, const char* access, const std::string& name,
                             const char* one) {
      out += cat("@group(0) @binding(", at, ") var<storage, ", access, "> ", name, ": array<", one,
                 ">;\n");
    };
    for (size_t i = 0; i < buffers_.size(); ++i)
      binding(i, program_.params[i].written ? "read_write" : "read", buffers_[i].name,
              buffers_[i].is_shared_word ? "atomic<u32>" : "u32");
    binding(buffers_.size(), "read", "numbers", "i32");
    binding(buffers_.size() + 1, "read_write", "status", "atomic<i32>");
    out += area_text("workgroup", shared_, program_.shared_bytes);
    out += area_text("private", scratch_, program_.scratch_bytes);
    if (has_folds_) out += area_text("workgroup", {"folds"}, program_.group_threads() * kWordBytes);
    return out;
  }

  std::string heading() const {
    const std::array<int64_t, 3>& group = program_.group;
    const int64_t numbers = static_cast<int64_t>(buffers_.size() + program_.variables.size());
    std::string out = cat("\n@compute @workgroup_size(");
    out += program_.grouped ? cat(group[0], ", ", group[1], ", ", group[2])
                            : cat(program_.threaded ? kThreads : 1);
    out += cat(")\nfn ", program_.name,
               "(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: "
               "vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {\n",
               "  let number = group.x + groups.x * group.y;\n", "  let piece = numbers[", numbers,
               "] + i32(number",
               !program_.grouped && program_.threaded ? cat(" * ", kThreads, "u + local.x") : "",
               ");\n", "  if (piece >= numbers[", numbers + 1, "]) { return; }\n");
    if (has_folds_)
      out += cat("  let thread = local.x + ", group[0], "u * (local.y + ", group[1],
                 "u * local.z);\n");
    return out;
  }

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

std::string render_wgsl(const LinearProgram& program) {
  return Kernel(program).text();
}

}  // namespace tiny
