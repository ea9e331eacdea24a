#include "render/c/function.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/look_often.h"
#include "base/text.h"
#include "render/c/types.h"

namespace tiny::c {
namespace {

// The body of one function.
class Function {
 public:
  Function(const LinearProgram& program, Helpers& helpers, bool is_part)
      : program_(program),
        helpers_(helpers),
        dialect_(helpers.dialect()),
        is_part_(is_part),
        names_(program.ops.size()),
        types_(program.ops.size()),
        spaces_(program.ops.size()) {}

  std::string text() {
    invariant(is_identifier(program_.name), "a kernel's name is an identifier of C");
    find_used();
    find_wanted_masks();
    for (LinearId at = 0; at < program_.ops.size(); ++at) {
      look_often(program_.stop, at);
      if (!is_used_[at]) continue;
      types_[at] = type_of(at);
      statement(at);
    }
    return cat(dialect_.opening(program_, is_part_, fold_bytes_), body_, "}\n");
  }

 private:
  const LinearOp& source(const LinearOp& op, size_t i) const { return program_.ops[op.src[i]]; }
  const std::string& name(const LinearOp& op, size_t i) const { return names_[op.src[i]]; }
  DType type(const LinearOp& op, size_t i) const { return types_[op.src[i]]; }
  static bool is_mask(DType dtype) { return dtype.is_bool() && dtype.lanes > 1; }

  // The source as a mask for such lanes.
  std::string mask(const LinearOp& op, size_t i, DType wanted) {
    const std::string resize = helpers_.resize_mask(type(op, i), wanted);
    return resize.empty() ? name(op, i) : cat(resize, "(", name(op, i), ")");
  }

  // What nothing uses would be warned of.  What sets an accumulator is used if the accumulator is,
  // which may be read before, in the next turn of a loop.
  void find_used() {
    is_used_.assign(program_.ops.size(), false);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t at = program_.ops.size(); at-- > 0;) {
        const LinearOp& op = program_.ops[at];
        const bool is_set = op.op == Op::Set;
        if (is_set ? !is_used_[op.src[0]] : op.dtype != kVoid && op.op != Op::Loop && !is_used_[at])
          continue;
        is_used_[at] = true;
        for (size_t i = is_set ? 1 : 0; i < op.count; ++i) {
          changed |= !is_used_[op.src[i]] && source(op, i).op == Op::Accumulator;
          is_used_[op.src[i]] = true;
        }
      }
    }
  }

  // As which masks the bools are used first: what makes one without comparing makes that.
  void find_wanted_masks() {
    for (size_t at = program_.ops.size(); at-- > 0;) {
      const LinearOp& op = program_.ops[at];
      for (size_t i = 0; i < op.count; ++i) {
        if (!is_mask(source(op, i).dtype)) continue;
        DType wanted = types_[at];
        const bool is_store = op.op == Op::Store;
        if (op.op == Op::Where && !op.dtype.is_bool()) wanted = mask_of(op.dtype);
        if (op.op == Op::Load || is_store)
          wanted = mask_of(is_store ? source(op, 2).dtype : op.dtype);
        types_[op.src[i]] = wanted;
      }
    }
  }

  // What the value is in C: bools of several lanes are masks.
  DType type_of(LinearId at) const {
    const LinearOp& op = program_.ops[at];
    if (!is_mask(op.dtype)) return op.dtype;
    const DType wanted = is_mask(types_[at]) || types_[at].lanes != op.dtype.lanes
                             ? kInt32.with_lanes(op.dtype.lanes)
                             : types_[at];
    switch (op.op) {
      case Op::Load:
        return mask_of(op.dtype);
      case Op::LaneRange:
      case Op::Broadcast:
      case Op::Const:
        return wanted;
      case Op::Where:
        return type(op, 1);
      default:
        if (op.count == 0) return wanted;
        return is_mask(source(op, 0).dtype) ? type(op, 0) : mask_of(source(op, 0).dtype);
    }
  }

  void line(const std::string& text) { body_ += std::string(2 * depth_, ' ') + text + "\n"; }

  void define(LinearId at, const char* prefix, const std::string& expression) {
    names_[at] = cat(prefix, at);
    line(cat("const ", helpers_.type(types_[at]), " ", names_[at], " = ", expression, ";"));
  }
  void address(LinearId at, const char* prefix, Space space, const std::string& expression) {
    names_[at] = cat(prefix, at);
    spaces_[at] = space;
    line(cat(dialect_.pointer(space).constant, names_[at], " = ", expression, ";"));
  }
  std::string call(const std::string& function, const LinearOp& op) const {
    std::string arguments;
    for (size_t i = 0; i < op.count; ++i) arguments += cat(i ? ", " : "", name(op, i));
    return cat(function, "(", arguments, ")");
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
        names_[at] = cat("acc", at);
        return line(cat(helpers_.type(types_[at]), " ", names_[at], " = ", name(op, 0), ";"));
      case Op::Set:
        return line(cat(name(op, 0), " = ",
                        is_mask(source(op, 0).dtype) ? mask(op, 1, type(op, 0)) : name(op, 1),
                        ";"));
      case Op::Store:
        return store(op);
      case Op::Prefetch:
        if (!dialect_.prefetch) return;
        return line(cat(dialect_.prefetch, "(", name(op, 0), " + ", term(name(op, 1), op.aux),
                        displaced(op.imm, dialect_), ");"));
      case Op::Poll:
        if (is_part_ || !dialect_.poll) return;  // nobody asks
        return line(dialect_.poll);
      case Op::Barrier:
        return line(dialect_.barrier);
      case Op::CopyAsync:  // at once
        return line(cat("for (int c = 0; c < ", op.aux, "; ++c) ", name(op, 0), "[c] = c < ",
                        name(op, 2), " ? ", name(op, 1), "[c] : 0;"));
      case Op::Commit:
      case Op::WaitCopies:
      case Op::Fence:
      case Op::CommitMmas:
      case Op::WaitMmas:
        return;
      case Op::Check:
        return line(cat(
            is_mask(source(op, 0).dtype) ? helpers_.check_of_mask(type(op, 0)) : helpers_.check(),
            "(", dialect_.status_value, ", ", name(op, 0), ", ", op.aux, ", ", name(op, 1), ");"));
      default:
        return value(at, op);
    }
  }

  // Both ends are read once, on entry: an accumulator may change in the loop.
  void loop(LinearId at, const LinearOp& op) {
    std::string end = name(op, 1);
    if (source(op, 1).op == Op::Accumulator) {
      line(cat("const i64 end", at, " = ", end, ";"));
      end = cat("end", at);
    }
    const std::string& i = names_[at] = cat("k", at);  // i64 is a type
    const std::string step =
        op.imm == 1 ? cat("++", i)
                    : cat(i, " += ", op.imm, op.imm > INT32_MAX ? dialect_.long_suffix : "");
    line(cat("for (i64 ", i, " = ", name(op, 0), "; ", i, " < ", end, "; ", step, ") {"));
    ++depth_;
  }

  void value(LinearId at, const LinearOp& op) {
    switch (op.op) {
      case Op::Const:
        if (is_mask(op.dtype))
          return define(at, "v", cat(helpers_.splat(types_[at]), "(", bits(op) ? "-1" : "0", ")"));
        if (op.dtype.lanes > 1) return define(at, "v", helpers_.constant(op.dtype, bits(op)));
        names_[at] = helpers_.constant(op.dtype, bits(op));
        return;
      case Op::Param:
        return address(at, "p", Space::Global, dialect_.leaf(program_, op));
      case Op::Scratch:
        return address(at, "s", Space::Thread, dialect_.leaf(program_, op));
      case Op::Shared:
        return address(at, "s", Space::Shared, dialect_.leaf(program_, op));
      case Op::Variable:
      case Op::LaunchArg:
        return define(at, "n", dialect_.leaf(program_, op));
      case Op::Address:
        return address(at, "p", spaces_[op.src[0]],
                       cat(name(op, 0), " + ", term(name(op, 1), op.imm)));
      default:
        return define(at, "v", expression(at, op));
    }
  }

  static uint64_t bits(const LinearOp& op) { return static_cast<uint64_t>(op.imm); }

  // So many bytes for each of an index.
  std::string term(const std::string& index, int64_t bytes) const {
    if (bytes == 1) return cat("(address)", index);
    return cat("(address)", index, " * ",
               bytes >= 0 && bytes <= INT32_MAX
                   ? std::to_string(bytes)
                   : cat("(address)", literal(dialect_, kInt64, static_cast<uint64_t>(bytes))));
  }

  std::string expression(LinearId at, const LinearOp& op) {
    const DType from = op.count > 0 ? type(op, 0) : op.dtype;
    const bool of_masks = op.count > 0 && is_mask(source(op, 0).dtype);
    switch (op.op) {
      case Op::Load:
        return load(op);
      case Op::Broadcast:
        return cat(helpers_.splat(types_[at]), "(", op.dtype.is_bool() ? "-" : "", name(op, 0),
                   ")");
      case Op::Ramp:
        return ramp(op);
      case Op::LaneRange:
        return call(helpers_.lane_range(types_[at]), op);
      case Op::Fold: {
        const auto with = static_cast<Op>(op.aux);
        return call(of_masks ? helpers_.fold_of_mask(with, from) : helpers_.fold(with, from), op);
      }
      case Op::GroupFold:
        return group_fold(op, from, of_masks);
      case Op::Dot:
        return call(helpers_.dot(static_cast<DotKind>(op.aux), op.dtype), op);
      case Op::Where:
        return where(at, op);
      case Op::Cast:
      case Op::Bitcast:
        return converted(op, from, of_masks);
      default:
        if (!of_masks)
          return helpers_.arithmetic(op.op, from, name(op, 0), op.count > 1 ? name(op, 1) : "",
                                     op.count > 2 ? name(op, 2) : "");
        return helpers_.mask_arithmetic(op.op, from, name(op, 0),
                                        op.count > 1 ? mask(op, 1, from) : "");
    }
  }

  // Axis by axis: of threads in the order of their numbers, those that are `apart`.
  std::string group_fold(const LinearOp& op, DType dtype, bool of_masks) {
    const std::string function =
        helpers_.group_fold(static_cast<Op>(op.aux), dtype, of_masks || dtype.is_bool());
    fold_bytes_ = std::max(
        fold_bytes_, program_.group_threads() * padded_lanes(dtype) * dtype.element().bytes());
    std::string value = name(op, 0);
    int64_t apart = 1;
    for (size_t axis = 0; axis < program_.group.size(); ++axis) {
      const int64_t size = program_.group[axis];
      if (op.imm >> axis & 1)
        value = cat(function, "(", value, ", folds, self, ", apart, ", ", size, ")");
      apart *= size;
    }
    return value;
  }

  std::string where(LinearId at, const LinearOp& op) {
    if (op.dtype.lanes == 1) return cat(name(op, 0), " ? ", name(op, 1), " : ", name(op, 2));
    const DType dtype = types_[at];
    const std::string otherwise = is_mask(op.dtype) ? mask(op, 2, dtype) : name(op, 2);
    return cat(helpers_.where(dtype), "(", mask(op, 0, mask_of(dtype)), ", ", name(op, 1), ", ",
               otherwise, ")");
  }

  std::string converted(const LinearOp& op, DType from, bool of_masks) {
    if (of_masks && is_mask(op.dtype)) return name(op, 0);
    if (of_masks) return call(helpers_.cast_of_mask(from, op.dtype), op);
    if (op.op == Op::Cast || op.dtype.is_bool()) return call(helpers_.cast(from, op.dtype), op);
    return call(helpers_.bitcast(from, op.dtype), op);
  }

  std::string ramp(const LinearOp& op) {
    const DType lane = op.dtype.element();
    if (op.dtype.lanes == 1) return name(op, 0);
    return cat(helpers_.ramp(op.dtype), "(", name(op, 0), ", ",
               literal(dialect_, lane, bits_of_int(lane, op.imm)), ")");
  }

  // Where lane 0 is, or, with an index for each lane, what the indices are relative to.
  std::string place(const LinearOp& op, DType dtype) const {
    if (source(op, 1).dtype.lanes > 1) return cat(name(op, 0), displaced(op.imm, dialect_));
    if (source(op, 1).op == Op::Const) {
      const auto index = static_cast<uint64_t>(source(op, 1).imm);
      return cat(
          name(op, 0),
          displaced(static_cast<int64_t>(index * static_cast<uint64_t>(dtype.bytes()) + bits(op)),
                    dialect_));
    }
    return cat(name(op, 0), " + ", term(name(op, 1), dtype.bytes()), displaced(op.imm, dialect_));
  }

  // ", stride" and ", mask", where the access has them.
  std::string tail(const LinearOp& op, DType dtype, bool strided, size_t mask_at) {
    const bool masked = op.count > mask_at;
    std::string out;
    if (source(op, 1).dtype.lanes > 1)
      out += cat(", ", name(op, 1));
    else if (strided)
      out += cat(", ", op.aux * dtype.bytes());
    return masked ? cat(out, ", ", mask(op, mask_at, mask_of(dtype))) : out;
  }

  std::string load(const LinearOp& op) {
    const bool masked = op.count > 2, lane_index = source(op, 1).dtype.lanes > 1;
    bool strided = op.dtype.lanes > 1 && op.aux != 1;
    const Space space = spaces_[op.src[0]];
    std::string function;
    if (lane_index) {
      function = helpers_.gather(op.dtype, masked, space);
    } else if (strided && op.aux == 2 && helpers_.has_second_lanes(op.dtype, masked)) {
      function = helpers_.load_second_lanes(op.dtype, masked);
      strided = false;
    } else if (masked && !strided) {
      function = helpers_.adjacent_masked(true, op.dtype, space);
    } else {
      function = helpers_.load(op.dtype, strided, masked, space);
    }
    return cat(function, "(", place(op, op.dtype), tail(op, op.dtype, strided, 2), ")");
  }
  void store(const LinearOp& op) {
    const DType dtype = source(op, 2).dtype;
    const bool masked = op.count > 3, strided = dtype.lanes > 1 && op.aux != 1;
    const bool lane_index = source(op, 1).dtype.lanes > 1;
    const Space space = spaces_[op.src[0]];
    const std::string function = lane_index ? helpers_.scatter(dtype, masked, space)
                                 : masked && !strided
                                     ? helpers_.adjacent_masked(false, dtype, space)
                                     : helpers_.store(dtype, strided, masked, space);
    const std::string value = is_mask(dtype) ? mask(op, 2, mask_of(dtype)) : name(op, 2);
    line(cat(function, "(", place(op, dtype), ", ", value, tail(op, dtype, strided, 3), ");"));
  }

  const LinearProgram& program_;
  Helpers& helpers_;
  const Dialect& dialect_;
  bool is_part_;
  std::vector<std::string> names_;
  std::vector<bool> is_used_;
  std::vector<DType> types_;   // at first: the masks that users want
  std::vector<Space> spaces_;  // of addresses
  std::string body_;
  int64_t fold_bytes_ = 0;  // of a group, for the widest GroupFold
  size_t depth_ = 1;
};

}  // namespace

bool is_identifier(const std::string& name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (char ch : name) {
    const bool letter = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
    if (!letter && !(ch >= '0' && ch <= '9')) return false;
  }
  return true;
}

std::string displaced(int64_t bytes, const Dialect& dialect) {
  if (bytes == 0) return "";
  if (bytes == INT64_MIN) return cat(" + (-9223372036854775807", dialect.long_suffix, " - 1)");
  return bytes > 0 ? cat(" + ", bytes) : cat(" - ", -bytes);
}

std::string functions_text(std::span<const LinearProgram> programs, Helpers& helpers,
                           bool is_part) {
  std::string functions;
  std::set<std::string> names;
  for (const LinearProgram& program : programs) {
    invariant(names.insert(program.name).second,
              "kernels of one translation unit have their own names");
    functions += "\n" + Function(program, helpers, is_part).text();
  }
  for (const std::string& name : names)
    invariant(!helpers.defines(name), "kernels have other names than what they call");
  return functions;
}

}  // namespace tiny::c
