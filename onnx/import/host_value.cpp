#include "onnx/import/host_value.h"

#include <cstring>
#include <unordered_map>

#include "base/error.h"
#include "engine/realize.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/fold.h"
#include "shape/shape.h"

namespace tiny::onnx {

namespace {

using Bits = std::vector<uint64_t>;

bool has_memory(const UOp& node) {
  return node.op() == Op::Buffer || static_cast<bool>(node.node()->realized);
}

int64_t count_of(const Ints& shape) {
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  return count;
}

Ints strides_for(const Ints& shape) {
  Ints strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

// Calls visit(position) for every index of `shape` in row-major order, where position is
// offset + sum(index * strides).
template <class Visit>
void walk(const Ints& shape, const Ints& strides, int64_t offset, Visit visit) {
  const int64_t count = count_of(shape);
  Ints index(shape.size());
  int64_t position = offset;
  for (int64_t n = 0; n < count; ++n) {
    visit(position);
    for (size_t axis = shape.size(); axis-- > 0;) {
      position += strides[axis];
      if (++index[axis] < shape[axis]) break;
      position -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

Bits load_bits(const std::byte* data, DType dtype, int64_t count) {
  Bits bits(static_cast<size_t>(count));
  const auto width = static_cast<size_t>(dtype.bytes());
  for (size_t i = 0; i < bits.size(); ++i) std::memcpy(&bits[i], data + i * width, width);
  return bits;
}

// What elements are: bits, or expressions of the graph.
struct AsBits {
  static constexpr bool kInPart = false;
  using Element = uint64_t;
  static Element make(const UOp&, DType, uint64_t bits) { return bits; }
  static Element apply(Op op, DType result, DType operand, const Element* src, size_t) {
    return fold_bits(op, result, operand, src);
  }
  static std::optional<int64_t> integer(DType dtype, Element bits) { return int_of(dtype, bits); }
  static bool variable(const UOp&, Element&) { return false; }
};

struct AsExpressions {
  static constexpr bool kInPart = true;  // a null element is not known
  using Element = UOp;
  static Element make(const UOp& node, DType dtype, uint64_t bits) {
    return node.graph().constant_bits(dtype, bits);
  }
  static Element apply(Op op, DType result, DType, const Element* src, size_t count) {
    for (size_t i = 0; i < count; ++i)
      if (!src[i]) return {};
    UOp e = narrow(op, result, {src, count});
    if (!e && count == 2 && result == kInt64) e = divided(op, src[0], src[1]);
    if (!e) e = elementwise(op, {src, src + count}, result);
    if (e.is_const() || e.dtype().is_float()) return e;
    if (e.dtype() == kInt64) e = tiny::Dim(e).uop(e.graph());  // sums in one form
    const Interval range = bounds(e);
    return range.is_single() ? e.graph().constant_int(e.dtype(), range.lo) : e;
  }
  static std::optional<int64_t> integer(DType, const Element& e) {
    return e && e.is_const() ? std::optional(e.const_int()) : std::nullopt;
  }
  static bool variable(const UOp& node, Element& out) {
    out = node;
    return true;
  }

 private:
  // An int64 that is equal to an integer of fewer bits; null if none is known.
  static UOp widened(const UOp& e) {
    if (e.is_const()) return e.graph().constant_int(kInt64, e.const_int());
    const bool is_cast = e.op() == Op::Cast && e.src(0).dtype() == kInt64;
    return is_cast && bounds(e) == bounds(e.src(0)) ? UOp(e.src(0)) : UOp();
  }

  // A quotient in the form that sizes have, and a rest as what it leaves, so that equal ones are
  // one expression; of what is not negative both kinds of division are one.  Null for anything
  // else.
  static UOp divided(Op op, const UOp& a, const UOp& b) {
    const bool is_trunc = op == Op::TruncDiv || op == Op::TruncMod;
    const bool is_floor = op == Op::FloorDiv || op == Op::FloorMod;
    if (!(is_trunc || is_floor) || !b.is_const() || b.const_int() <= 0) return {};
    if (is_trunc && !prove_nonnegative(a)) return {};
    const tiny::Dim from(a), by(b.const_int()), quotient = floor_div(from, by);
    const bool is_rest = op == Op::TruncMod || op == Op::FloorMod;
    return (is_rest ? from - quotient * by : quotient).uop(a.graph());
  }
  // Integers of fewer bits are computed as int64, which sizes are, where nothing wraps; null
  // elsewhere.
  static UOp narrow(Op op, DType result, std::span<const UOp> src) {
    std::vector<UOp> wide;
    for (const UOp& e : src) {
      const bool is_narrow = e.dtype().is_int() && e.dtype().bits() < 64;
      if (!is_narrow || !wide.emplace_back(widened(e))) return {};
    }
    if (op == Op::Cast) return cast(tiny::Dim(wide[0]).uop(wide[0].graph()), result);
    if (!result.is_int()) return elementwise(op, wide, result);
    UOp e = wide.size() == 2 ? divided(op, wide[0], wide[1]) : UOp();
    if (!e) e = elementwise(op, wide, kInt64);
    const UOp made = cast(tiny::Dim(e).uop(e.graph()), result);
    return bounds(made) == bounds(e) ? made : UOp();
  }
};

// One node, given the elements of its sources.
template <class Kind>
class Step {
 public:
  using Element = typename Kind::Element;
  using Elements = std::vector<Element>;
  Step(const UOp& node, std::vector<const Elements*> src)
      : node_(node), src_(std::move(src)), shape_(const_dims(shape_of(node))) {
    out_.reserve(static_cast<size_t>(count_of(shape_)));
  }

  std::optional<Elements> run() {
    const Op op = node_.op();
    if (has_memory(node_)) return memory();
    if (has(op, kElementwise)) return elementwise();
    if (has(op, kMovement)) return move();
    switch (op) {
      case Op::Const:
        return Elements{Kind::make(node_, node_.dtype(), node_.const_bits())};
      case Op::Variable:
        out_.resize(1);
        return Kind::variable(node_, out_[0]) ? std::optional(out_) : std::nullopt;
      case Op::Iota:
        for (int64_t i = 0; i < count_of(shape_); ++i)
          out_.push_back(Kind::make(node_, node_.dtype(), bits_of_int(node_.dtype(), i)));
        return out_;
      case Op::Contiguous:
        return *src_[0];
      case Op::ReduceAxis:
        return reduce();
      case Op::Gather:
        return gather();
      case Op::Scatter:
        return scatter();
      case Op::Concat:
        return concat();
      default:
        return std::nullopt;
    }
  }

 private:
  std::optional<Elements> memory() {
    const Ref<Storage> storage = storage_of(node_);
    if (!storage || !storage->has_memory()) return std::nullopt;
    if (!has_elements(*storage)) return std::nullopt;
    const int64_t count = count_of(shape_);
    std::vector<std::byte> bytes(static_cast<size_t>(count * node_.dtype().bytes()));
    copy_to_host(*storage, bytes.data(), std::ssize(bytes));
    for (uint64_t bits : load_bits(bytes.data(), node_.dtype(), count))
      out_.push_back(Kind::make(node_, node_.dtype(), bits));
    return out_;
  }

  Elements elementwise() {
    for (size_t i = 0; i < src_[0]->size(); ++i) {
      Element operands[3] = {};
      for (size_t k = 0; k < src_.size(); ++k) operands[k] = (*src_[k])[i];
      out_.push_back(Kind::apply(node_.op(), node_.dtype(), node_.src(src_.size() - 1).dtype(),
                                 operands, src_.size()));
    }
    return out_;
  }

  void take(const Ints& strides, int64_t offset) {
    walk(shape_, strides, offset,
         [&](int64_t at) { out_.push_back((*src_[0])[static_cast<size_t>(at)]); });
  }

  Elements move() {
    const Ints from = const_dims(shape_of(node_.src(0)));
    Ints strides = strides_for(from);
    int64_t offset = 0;
    switch (node_.op()) {
      case Op::Reshape:
      case Op::Alias:
        return *src_[0];
      case Op::Permute:
        for (size_t i = 0; i < from.size(); ++i)
          strides[i] = strides_for(from)[static_cast<size_t>(node_.ints()[i])];
        break;
      case Op::Expand:
        for (size_t i = 0; i < from.size(); ++i)
          if (from[i] == 1) strides[i] = 0;
        break;
      case Op::Shrink:
        for (size_t i = 0; i < from.size(); ++i) offset += node_.ints()[i] * strides[i];
        break;
      case Op::Flip:
        for (int64_t a : node_.ints()) {
          const auto axis = static_cast<size_t>(a);
          offset += (from[axis] - 1) * strides[axis];
          strides[axis] = -strides[axis];
        }
        break;
      case Op::Unfold: {
        const Ints& p = node_.ints();
        const size_t n = p.size() / 4;
        const auto first = static_cast<size_t>(p[0]);
        strides.insert(strides.begin() + static_cast<ptrdiff_t>(first + n), n, 0);
        for (size_t i = 0; i < n; ++i) {
          strides[first + n + i] = strides[first + i] * p[4 + 4 * i];
          strides[first + i] *= p[3 + 4 * i];
        }
        break;
      }
      case Op::AsStrided:
        strides = node_.view_arg().strides;
        offset = node_.view_arg().offset;
        break;
      default:
        return pad(from);
    }
    take(strides, offset);
    return out_;
  }

  Elements pad(const Ints& from) {
    out_.assign(static_cast<size_t>(count_of(shape_)), Kind::make(node_, node_.dtype(), 0));
    const Ints strides = strides_for(shape_);
    int64_t offset = 0;
    for (size_t i = 0; i < from.size(); ++i) offset += node_.ints()[i] * strides[i];
    size_t next = 0;
    walk(from, strides, offset,
         [&](int64_t at) { out_[static_cast<size_t>(at)] = (*src_[0])[next++]; });
    return out_;
  }

  Elements reduce() {
    const DType dtype = node_.dtype();
    const Op op = node_.reduce_arg().op;
    const uint64_t start =
        op == Op::Max   ? lowest_bits(dtype)
        : op == Op::Min ? highest_bits(dtype)
        : op == Op::Mul || op == Op::And
            ? (op == Op::And && dtype.is_int() ? bits_of_int(dtype, -1) : bits_of_int(dtype, 1))
            : bits_of_int(dtype, 0);
    out_.assign(static_cast<size_t>(count_of(shape_)), Kind::make(node_, dtype, start));
    const Ints from = const_dims(shape_of(node_.src(0)));
    Ints strides = strides_for(shape_);
    for (int64_t axis : node_.reduce_arg().axes) strides[static_cast<size_t>(axis)] = 0;
    size_t next = 0;
    walk(from, strides, 0, [&](int64_t at) {
      const Element operands[] = {out_[static_cast<size_t>(at)], (*src_[0])[next++]};
      out_[static_cast<size_t>(at)] = Kind::apply(op, dtype, dtype, operands, 2);
    });
    return out_;
  }

  std::optional<Elements> gather() {
    const Ints data = const_dims(shape_of(node_.src(0)));
    const auto axis = static_cast<size_t>(node_.int_arg());
    const DType dtype = node_.src(1).dtype();
    int64_t inner = 1;
    for (size_t i = axis + 1; i < data.size(); ++i) inner *= data[i];
    int64_t outer = 1;
    for (size_t i = 0; i < axis; ++i) outer *= data[i];
    for (int64_t o = 0; o < outer; ++o)
      for (const Element& raw : *src_[1]) {
        const std::optional<int64_t> known = Kind::integer(dtype, raw);
        if (!known) return std::nullopt;
        const int64_t index = *known;
        require(index >= 0 && index < data[axis], Status::Index, "index ", index,
                " is out of range for an axis of ", data[axis], " elements");
        for (int64_t i = 0; i < inner; ++i)
          out_.push_back((*src_[0])[static_cast<size_t>((o * data[axis] + index) * inner + i)]);
      }
    return out_;
  }

  std::optional<Elements> scatter() {
    const Op fold = node_.reduce_arg().op;
    const auto axis = static_cast<size_t>(node_.reduce_arg().axes.front());
    const DType dtype = node_.dtype();
    // Where each update would be with a place of 0, and how far places are apart.
    Ints strides = strides_for(shape_);
    const int64_t step = strides[axis];
    strides[axis] = 0;
    out_ = *src_[0];
    bool is_known = true;
    size_t next = 0;
    walk(const_dims(shape_of(node_.src(2))), strides, 0, [&](int64_t at) {
      const Element& update = (*src_[2])[next];
      const std::optional<int64_t> place = Kind::integer(node_.src(1).dtype(), (*src_[1])[next++]);
      is_known = is_known && place;
      if (!place || *place < 0 || *place >= shape_[axis]) return;
      Element& to = out_[static_cast<size_t>(at + *place * step)];
      const Element operands[] = {to, update};
      to = fold == Op::Assign ? update : Kind::apply(fold, dtype, dtype, operands, 2);
    });
    return is_known ? std::optional(std::move(out_)) : std::nullopt;
  }

  Elements concat() {
    const auto axis = static_cast<size_t>(node_.int_arg());
    int64_t outer = 1;
    for (size_t i = 0; i < axis; ++i) outer *= shape_[i];
    for (int64_t o = 0; o < outer; ++o)
      for (const Elements* part : src_) {
        const auto run = static_cast<int64_t>(part->size()) / outer;
        out_.insert(out_.end(), part->begin() + o * run, part->begin() + (o + 1) * run);
      }
    return out_;
  }

  const UOp& node_;
  std::vector<const Elements*> src_;
  Ints shape_;
  Elements out_;
};

template <class Kind>
std::optional<std::vector<typename Kind::Element>> evaluated(const UOp& root,
                                                             int64_t elements_max) {
  using Elements = std::vector<typename Kind::Element>;
  // Of a value that is looked at; none if that one has too many, or nobody knows how many.
  std::unordered_map<uint32_t, std::optional<Elements>> values;
  std::vector<UOp> waiting{root};
  while (!waiting.empty()) {
    const UOp node = waiting.back();
    const Shape& shape = shape_of(node);
    const bool is_small = all_const(shape) && product(shape).value() <= elements_max;
    if (!is_small && !Kind::kInPart) return std::nullopt;
    const std::span<const UOp> sources =
        node.src().first(is_small && !has_memory(node) ? node.src().size() : 0);
    const size_t before = waiting.size();
    for (const UOp& s : sources)
      if (!values.contains(s.id())) waiting.push_back(s);
    if (waiting.size() > before) continue;
    waiting.pop_back();
    std::optional<Elements>& elements = values[node.id()];
    if (elements || !is_small) continue;
    std::vector<const Elements*> src;
    for (const UOp& s : sources)
      if (const auto& known = values[s.id()]) src.push_back(&*known);
    if (src.size() == sources.size()) elements = Step<Kind>(node, std::move(src)).run();
    if (!elements && !Kind::kInPart) return std::nullopt;
    if (!elements) elements = Elements(static_cast<size_t>(product(shape).value()));
  }
  return std::move(values[root.id()]);
}

HostTensor packed(DType dtype, Ints shape, const Bits& bits) {
  const auto width = static_cast<size_t>(dtype.bytes());
  std::vector<std::byte> bytes(bits.size() * width);
  for (size_t i = 0; i < bits.size(); ++i) std::memcpy(bytes.data() + i * width, &bits[i], width);
  return HostTensor{dtype, std::move(shape), SharedBytes::own(std::move(bytes))};
}

}  // namespace

std::optional<HostTensor> host_value(const UOp& root, int64_t elements_max) {
  const auto bits = evaluated<AsBits>(root, elements_max);
  if (!bits) return std::nullopt;
  return packed(root.dtype(), const_dims(shape_of(root)), *bits);
}

std::optional<std::vector<UOp>> host_expressions(const UOp& root, int64_t elements_max) {
  return evaluated<AsExpressions>(root, elements_max);
}

std::optional<HostTensor> numbers_of(const std::vector<UOp>& elements, const Tensor& like) {
  Bits bits;
  for (const UOp& e : elements) {
    if (!e || !e.is_const()) return std::nullopt;
    bits.push_back(e.const_bits());
  }
  return packed(like.dtype(), const_dims(like.shape()), bits);
}

Ints integers_of(const HostTensor& tensor) {
  const int64_t count = element_count(tensor.shape, "a shape operand");
  Ints out;
  for (uint64_t bits : load_bits(tensor.bytes.data(), tensor.dtype, count))
    out.push_back(tensor.dtype.is_float()
                      ? int_of(kInt64, bits_of(kInt64, double_of(tensor.dtype, bits)))
                      : int_of(tensor.dtype, bits));
  return out;
}

std::vector<double> reals_of(const HostTensor& tensor) {
  const int64_t count = element_count(tensor.shape, "a shape operand");
  std::vector<double> out;
  for (uint64_t bits : load_bits(tensor.bytes.data(), tensor.dtype, count))
    out.push_back(double_of(tensor.dtype, bits));
  return out;
}

}  // namespace tiny::onnx
