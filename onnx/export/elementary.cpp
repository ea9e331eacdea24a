// Elementary operators: one of ONNX's, or a few, for each operation of the tensor graph.
#include <algorithm>
#include <optional>

#include "base/error.h"
#include "onnx/export/emitter.h"

namespace tiny::onnx {

namespace {

using Names = Emitter::Names;

struct Row {
  Op op;
  const char* numbers;  // null: several operators
  const char* bools = nullptr;
};

// clang-format off
constexpr Row kRows[] = {
    {Op::Neg,          "Neg"},
    {Op::Abs,          "Abs"},
    {Op::Not,          "BitwiseNot",     "Not"},
    {Op::Sqrt,         "Sqrt"},
    {Op::Floor,        "Floor"},
    {Op::Ceil,         "Ceil"},
    {Op::Round,        "Round"},
    {Op::Exp,          "Exp"},
    {Op::Log,          "Log"},
    {Op::Sin,          "Sin"},
    {Op::Cos,          "Cos"},
    {Op::Tanh,         "Tanh"},
    {Op::Erf,          "Erf"},
    {Op::Add,          "Add",            "Or"},
    {Op::Mul,          "Mul",            "And"},
    {Op::Div,          "Div"},
    {Op::TruncDiv,     "Div"},
    {Op::Pow,          "Pow"},
    {Op::Max,          "Max",            "Or"},
    {Op::Min,          "Min",            "And"},
    {Op::And,          "BitwiseAnd",     "And"},
    {Op::Or,           "BitwiseOr",      "Or"},
    {Op::Xor,          "BitwiseXor",     "Xor"},
    {Op::Less,         "Less"},
    {Op::LessEqual,    "LessOrEqual"},
    {Op::Equal,        "Equal",          "Equal"},
    {Op::Where,        "Where",          "Where"},
};
// clang-format on

[[noreturn]] void refuse(const UOp& node, std::string_view why) {
  throw_error(Status::Unsupported, "no operator of ONNX does ", info(node.op()).name, " of ",
              node.dtype(), " ", shape_of(node), why);
}

// Integers of 8 and 16 bits, which many operators do not take: they are computed in 32 and wrap.
bool is_narrow(DType dtype) {
  return dtype.is_int() && dtype.bits() < 32;
}

// ---- Broadcasting.

// The shape that values of these shapes broadcast to; none if that cannot be told.
std::optional<Shape> broadcast(const std::vector<UOp>& operands) {
  Shape out;
  for (const UOp& u : operands) {
    const Shape& shape = shape_of(u);
    if (shape.size() > out.size()) out.insert(out.begin(), shape.size() - out.size(), tiny::Dim(1));
    for (size_t i = 0; i < shape.size(); ++i) {
      tiny::Dim& to = out[out.size() - shape.size() + i];
      if (to.is(1))
        to = shape[i];
      else if (!shape[i].is(1) && !(shape[i] == to))
        return std::nullopt;
    }
  }
  return out;
}

// What the operand repeats, with the same elements where it broadcasts.
UOp without_repeats(UOp operand) {
  while (true) {
    if (operand.op() == Op::Expand) {
      operand = operand.src(0);
      continue;
    }
    // Leading axes of size 1 are there in any case.
    const bool is_reshape = operand.op() == Op::Reshape;
    if (!is_reshape) return operand;
    const Shape &to = shape_of(operand), &from = shape_of(operand.src(0));
    if (from.size() >= to.size()) return operand;
    const size_t lead = to.size() - from.size();
    const bool adds_ones =
        std::all_of(to.begin(), to.begin() + static_cast<ptrdiff_t>(lead),
                    [](const tiny::Dim& d) { return d.is(1); }) &&
        std::equal(from.begin(), from.end(), to.begin() + static_cast<ptrdiff_t>(lead));
    if (!adds_ones) return operand;
    operand = operand.src(0);
  }
}

// Whether a sum adds the negative of its second operand.
bool subtracts(const UOp& node) {
  return node.op() == Op::Add && node.src(1).op() == Op::Neg;
}

std::vector<UOp> broadcast_operands(const UOp& node) {
  std::vector<UOp> given(node.src().begin(), node.src().end());
  if (subtracts(node)) given[1] = given[1].src(0);
  std::vector<UOp> operands;
  for (const UOp& u : given) operands.push_back(without_repeats(u));
  // One operand has to be as large as the result.
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto shape = broadcast(operands);
    if (shape && *shape == shape_of(node)) return operands;
    operands[i] = given[i];
  }
  return given;
}

// ---- One elementwise node.

class Elementwise {
 public:
  Elementwise(Emitter& e, const UOp& node, const std::vector<UOp>& operands) : e_(e), node_(node) {
    for (const UOp& operand : operands) in_.push_back(e.name(operand));
  }

  std::string emit() {
    const DType operand = node_.src(node_.src().size() - 1).dtype();
    switch (node_.op()) {
      case Op::Cast:
        return e_.cast(in_[0], node_.dtype());
      case Op::Bitcast:
        return bitcast(operand);
      case Op::Trunc:
        return e_.node("Where", {e_.node("Less", {in_[0], number(0)}), e_.node("Ceil", {in_[0]}),
                                 e_.node("Floor", {in_[0]})});
      case Op::NotEqual:
        return e_.node("Not", {e_.node("Equal", in_)});
      case Op::Fma:
        return e_.node("Add", {e_.node("Mul", {in_[0], in_[1]}), in_[2]});
      case Op::FloorMod:
        return narrowly(operand, [&] { return e_.node("Mod", in_); });
      case Op::TruncMod:
        return narrowly(operand, [&] { return e_.node("Mod", in_, {int_attribute("fmod", 1)}); });
      case Op::FloorDiv:
        return narrowly(operand, [&] { return floor_div(in_[0], in_[1]); });
      case Op::Shl:
      case Op::Shr:
        return shift(operand);
      case Op::Add:
        if (subtracts(node_)) return narrowly(operand, [&] { return e_.node("Sub", in_); });
        break;
      case Op::Neg:
        if (operand.is_unsigned())
          return narrowly(operand,
                          [&] { return e_.node("Sub", {e_.number(wide(operand), 0), in_[0]}); });
        break;
      default:
        break;
    }
    const char* name = elementwise_operator(node_.op(), operand);
    if (!name) refuse(node_, "");
    if (node_.op() == Op::Where) return choice();
    return narrowly(operand, [&] { return e_.node(name, in_); });
  }

 private:
  std::string number(double value) {
    const DType dtype = node_.dtype();
    return e_.number(dtype, bits_of(dtype, value));
  }
  static DType wide(DType dtype) { return is_narrow(dtype) ? DType(kInt32) : dtype; }

  template <class Make>
  std::string narrowly(DType operand, Make make) {
    if (!is_narrow(operand)) return make();
    for (std::string& name : in_) name = e_.cast(name, kInt32);
    const std::string made = make();
    return node_.dtype().is_bool() ? made : e_.cast(made, node_.dtype());
  }

  // Where exists in onnxruntime for few types: others go through one that holds their bits.
  std::string choice() {
    const DType dtype = node_.dtype();
    DType through = dtype;
    if (dtype.is_bool())
      through = kUInt8;
    else if (dtype == kUInt32 || dtype == kUInt64)
      through = kInt64;
    else if (is_narrow(dtype))
      through = kInt32;
    if (through == dtype) return e_.node("Where", in_);
    return e_.cast(e_.node("Where", {in_[0], e_.cast(in_[1], through), e_.cast(in_[2], through)}),
                   dtype);
  }

  // Floor division is exact on what the floor remainder leaves.
  std::string floor_div(const std::string& a, const std::string& b) {
    return e_.node("Div", {e_.node("Sub", {a, e_.node("Mod", {a, b})}), b});
  }

  std::string bitcast(DType operand) {
    const DType result = node_.dtype();
    if (operand.is_float() || result.is_float()) return e_.bit_cast(in_[0], result);
    return e_.cast(in_[0], result);  // integers wrap
  }

  // BitShift takes unsigned integers alone, and fewer places than they have bits: more leave zeros,
  // or the sign.
  std::string shift(DType operand) {
    const DType bits = operand.bits() == 64 ? kUInt64 : kUInt32;
    const bool keeps_sign = node_.op() == Op::Shr && operand.is_signed();
    const auto limit = static_cast<uint64_t>(operand.bits() - (keeps_sign ? 1 : 0));
    const UOp places = without_repeats(node_.src(1));
    const bool is_inside = places.is_const() && places.const_bits() < limit;
    std::string by = e_.cast(in_[1], bits), inside;
    if (!is_inside) {
      inside = e_.node("Less", {by, e_.number(bits, limit)});
      by = e_.cast(e_.node("Where", {inside, e_.cast(by, kInt64), e_.integer(0)}), bits);
    }
    Attribute direction;
    direction.name = "direction";
    direction.type = AttributeType::String;
    direction.s = node_.op() == Op::Shl || keeps_sign ? "LEFT" : "RIGHT";
    const std::string value = e_.cast(in_[0], keeps_sign ? DType(kInt64) : bits);
    const std::string shifted = keeps_sign ? e_.number(bits, 1) : value;
    std::string made = e_.cast(e_.node("BitShift", {shifted, by}, {direction}), kInt64);
    if (keeps_sign) made = floor_div(value, made);
    if (!is_inside) {
      const std::string zero = e_.integer(0);
      const std::string minus_one = e_.integer(-1);
      const std::string rest =
          keeps_sign ? e_.node("Where", {e_.node("Less", {value, zero}), minus_one, zero}) : zero;
      made = e_.node("Where", {inside, made, rest});
    }
    return e_.cast(made, operand);
  }

  Emitter& e_;
  const UOp& node_;
  Names in_;
};

// ---- Movement.

// The shape of a reshape: one size that is not known needs no computing.
std::string reshape_sizes(Emitter& e, const Shape& shape) {
  Ints dims;
  size_t unknown = 0;
  bool has_zero = false;
  for (const tiny::Dim& d : shape) {
    dims.push_back(d.is_const() ? d.value() : -1);
    unknown += d.is_const() ? 0 : 1;
    has_zero = has_zero || d.is(0);
  }
  return unknown <= 1 && !has_zero ? e.ints(dims) : e.sizes(shape);
}

std::vector<Attribute> allow_zero(const Shape& shape) {
  for (const tiny::Dim& d : shape)
    if (d.is(0)) return {int_attribute("allowzero", 1)};
  return {};
}

std::string reshape(Emitter& e, const std::string& x, const Shape& shape) {
  return e.node("Reshape", {x, reshape_sizes(e, shape)}, allow_zero(shape));
}

std::string shrink(Emitter& e, const UOp& node) {
  const Shape sizes = movement_dims(node);
  const Shape& x = shape_of(node.src(0));
  Shape begin, end;
  Ints axes;
  for (size_t i = 0; i < x.size(); ++i) {
    if (sizes[i].is(0) && sizes[x.size() + i] == x[i]) continue;
    begin.push_back(sizes[i]);
    end.push_back(sizes[x.size() + i]);
    axes.push_back(static_cast<int64_t>(i));
  }
  return e.node("Slice", {e.name(node.src(0)), e.sizes(begin), e.sizes(end), e.ints(axes)});
}

std::string pad(Emitter& e, const UOp& node) {
  return e.node("Pad",
                {e.name(node.src(0)), e.sizes(movement_dims(node)), e.number(node.dtype(), 0)});
}

std::string flip(Emitter& e, const UOp& node) {
  const Ints& axes = node.ints();
  const size_t n = axes.size();
  return e.node("Slice", {e.name(node.src(0)), e.ints(Ints(n, -1)), e.ints(Ints(n, INT64_MIN)),
                          e.ints(axes), e.ints(Ints(n, -1))});
}

// 0, step, 2 * step, .. as int64.
std::string steps(Emitter& e, const tiny::Dim& count, int64_t step) {
  if (count.is_const() && count.value() <= (1 << 12)) {
    Ints values;
    for (int64_t i = 0; i < count.value(); ++i) values.push_back(i * step);
    return e.ints(values);
  }
  const std::string range = e.node("Range", {e.integer(0), e.size(count), e.integer(1)});
  return step == 1 ? range : e.node("Mul", {range, e.integer(step)});
}

// Windows: what lies in them is gathered along each axis, and their places go before it.
std::string unfold(Emitter& e, const UOp& node) {
  const Unfolding windows = unfolding(node);
  const auto n = std::ssize(windows.along);
  const int64_t rank = std::ssize(shape_of(node.src(0)));
  std::string value = e.name(node.src(0));
  for (int64_t i = n; i-- > 0;) {
    const Unfolding::Along& w = windows.along[static_cast<size_t>(i)];
    const std::string places = e.node("Unsqueeze", {steps(e, w.count, w.stride), e.ints({1})});
    const std::string index = e.node("Add", {places, steps(e, w.kernel, w.dilation)});
    value = e.node("Gather", {value, index}, {int_attribute("axis", windows.axis + i)});
  }
  Ints order;
  for (int64_t i = 0; i < windows.axis; ++i) order.push_back(i);
  for (const int64_t part : {0, 1})
    for (int64_t i = 0; i < n; ++i) order.push_back(windows.axis + 2 * i + part);
  for (int64_t i = windows.axis + n; i < rank; ++i) order.push_back(i + n);
  return n == 1 ? value : e.node("Transpose", {value}, {ints_attribute("perm", order)});
}

std::string as_strided(Emitter& e, const UOp& node) {
  const ViewArg& view = node.view_arg();
  const std::string flat = e.node("Reshape", {e.name(node.src(0)), e.ints({-1})});
  std::string index = e.ints({view.offset});
  const size_t rank = view.shape.size();
  for (size_t i = 0; i < rank; ++i) {
    Ints column(rank, 1);
    column[i] = view.shape[i];
    index = e.node(
        "Add",
        {index, e.node("Reshape", {steps(e, view.shape[i], view.strides[i]), e.ints(column)})});
  }
  if (rank == 0) index = e.integer(view.offset);
  return e.node("Gather", {flat, index}, {int_attribute("axis", 0)});
}

std::string movement(Emitter& e, const UOp& node) {
  switch (node.op()) {
    case Op::Permute:
      return e.node("Transpose", {e.name(node.src(0))}, {ints_attribute("perm", node.ints())});
    case Op::Expand:
      return e.node("Expand", {e.name(node.src(0)), e.sizes(shape_of(node))});
    case Op::Pad:
      return pad(e, node);
    case Op::Shrink:
      return shrink(e, node);
    case Op::Flip:
      return flip(e, node);
    case Op::Unfold:
      return unfold(e, node);
    case Op::AsStrided:
      return as_strided(e, node);
    case Op::Alias:
      return e.node("Identity", {e.name(node.src(0))});
    default:
      refuse(node, "");
  }
}

// ---- The rest.

std::string reduce(Emitter& e, const UOp& node) {
  const ReduceArg& fold = node.reduce_arg();
  const DType dtype = node.dtype();
  const bool is_sum = fold.op == Op::Add;
  const char* name = nullptr;
  DType wide = dtype;
  if (is_sum || (fold.op == Op::Mul && !dtype.is_bool()))
    name = is_sum ? "ReduceSum" : "ReduceProd";
  else if (fold.op == Op::Max || (fold.op == Op::Or && dtype.is_bool()))
    name = "ReduceMax";
  else if (fold.op == Op::Min || (dtype.is_bool() && (fold.op == Op::And || fold.op == Op::Mul)))
    name = "ReduceMin";
  if (!name) refuse(node, cat(" by ", info(fold.op).name));
  if (dtype.is_bool() || is_narrow(dtype)) wide = kInt32;
  std::string value = e.name(node.src(0));
  if (!(wide == dtype)) value = e.cast(value, wide);
  value = e.node(name, {value, e.ints(fold.axes)}, {int_attribute("keepdims", 1)});
  return wide == dtype ? value : e.cast(value, dtype);
}

// Places outside of the axis take nothing: they are sent to one behind it, which is cut off.
std::string scatter(Emitter& e, const UOp& node) {
  const Op fold = node.reduce_arg().op;
  const int64_t axis = node.reduce_arg().axes.front();
  const char* reduction = fold == Op::Assign ? "none"
                          : fold == Op::Add  ? "add"
                          : fold == Op::Mul  ? "mul"
                          : fold == Op::Max  ? "max"
                          : fold == Op::Min  ? "min"
                                             : nullptr;
  if (!reduction) refuse(node, cat(" by ", info(fold).name));
  const Shape& shape = shape_of(node);
  const std::string count = e.size(shape[static_cast<size_t>(axis)]);
  const std::string index = e.cast(e.name(node.src(1)), kInt64);
  const std::string is_inside = e.node(
      "And", {e.node("GreaterOrEqual", {index, e.integer(0)}), e.node("Less", {index, count})});
  const std::string place = e.node("Where", {is_inside, index, count});
  Ints more(2 * shape.size(), 0);
  more[shape.size() + static_cast<size_t>(axis)] = 1;
  const std::string longer =
      e.node("Pad", {e.name(node.src(0)), e.ints(more), e.number(node.dtype(), 0)});
  Attribute how;
  how.name = "reduction";
  how.type = AttributeType::String;
  how.s = reduction;
  const std::string all = e.node("ScatterElements", {longer, place, e.name(node.src(2))},
                                 {int_attribute("axis", axis), how});
  return e.node("Slice", {all, e.ints({0}), e.ints({-1}), e.ints({axis})});
}

}  // namespace

const char* elementwise_operator(Op op, DType operand) {
  for (const Row& row : kRows)
    if (row.op == op) return operand.is_bool() ? row.bools : row.numbers;
  return nullptr;
}

std::vector<UOp> operands_of(const UOp& node) {
  const Op op = node.op();
  if (has(op, kElementwise)) return broadcast_operands(node);
  switch (op) {
    case Op::Const:
    case Op::Variable:
    case Op::Iota:
      return {};
    case Op::Concat:
    case Op::Gather:
    case Op::Scatter:
    case Op::Call:
      return {node.src().begin(), node.src().end()};
    default:
      return {node.src(0)};
  }
}

void emit_elementary(Emitter& e, const UOp& node, const std::vector<UOp>& operands) {
  const Op op = node.op();
  std::string name;
  if (has(op, kElementwise)) {
    name = Elementwise(e, node, operands).emit();
  } else if (op == Op::Reshape) {
    name = reshape(e, e.name(operands[0]), shape_of(node));
  } else if (has(op, kMovement)) {
    name = movement(e, node);
  } else if (op == Op::Const) {
    name = e.number(node.dtype(), node.const_bits());
  } else if (op == Op::Variable) {
    name = e.size(tiny::Dim(node));
  } else if (op == Op::Iota) {
    const std::string range = steps(e, shape_of(node)[0], 1);
    name = node.dtype() == kInt64 ? range : e.cast(range, node.dtype());
  } else if (op == Op::Contiguous || op == Op::Copy) {
    name = e.name(node.src(0));
  } else if (op == Op::ReduceAxis) {
    name = reduce(e, node);
  } else if (op == Op::Gather) {
    const DType places = node.src(1).dtype();
    const std::string at = e.name(node.src(1));
    const bool is_index = places == kInt64 || places == kInt32;  // of ONNX
    name = e.node("Gather", {e.name(node.src(0)), is_index ? at : e.cast(at, kInt64)},
                  {int_attribute("axis", node.int_arg())});
  } else if (op == Op::Scatter) {
    name = scatter(e, node);
  } else if (op == Op::Concat) {
    Names parts;
    for (const UOp& part : node.src()) parts.push_back(e.name(part));
    name = e.node("Concat", std::move(parts), {int_attribute("axis", node.int_arg())});
  } else {
    refuse(node, "");
  }
  e.set_name(node, std::move(name));
}

}  // namespace tiny::onnx
