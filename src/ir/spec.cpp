#include "ir/spec.h"

#include <algorithm>

#include "base/error.h"
#include "base/matrix.h"
#include "base/sort.h"

namespace tiny {

namespace {

bool is_value_type(DType t) {
  return t.is_bool() || t.is_int() || t.is_float();
}

bool are_distinct_axes(Ints axes) {
  std::sort(axes.begin(), axes.end());
  return (axes.empty() || axes[0] >= 0) &&
         std::adjacent_find(axes.begin(), axes.end()) == axes.end();
}

bool is_reduction(Op op, DType t) {
  switch (op) {
    case Op::Add:
    case Op::Mul:
    case Op::Max:
    case Op::Min:
      return true;
    case Op::And:
    case Op::Or:
    case Op::Xor:
      return !t.is_float();
    default:
      return false;
  }
}

class Spec {
 public:
  explicit Spec(const char* pass) : pass_(pass) {}

  void check(const UOp& u, OpStages stage) {
    node_ = &u;
    const OpInfo& op = info(u.op());
    law(legal_in(u.op(), stage), "the op is legal in this stage");
    for (const UOp& s : u.src()) law(s.dtype() != kVoid, "sources have values");
    law(u.dtype().lanes == 1, "there is one lane before the linear program");
    law(u.dtype() == kVoid ? op.result == OpResult::Void : is_value_type(u.dtype()),
        "a value is a number or a bool, a statement has none");
    if (has(u.op(), kElementwise)) return elementwise();
    if (stage == kTensorStage) {
      tensor();
    } else {
      kernel();
    }
  }

  void root_of_kernel(const UOp& u) {
    node_ = &u;
    law(u.op() == Op::Store || u.op() == Op::Check, "the roots of a kernel are stores and checks");
  }

  void decomposed(const UOp& u) {
    node_ = &u;
    if (!has(u.op(), kElementwise)) return;
    law(!has(u.op(), kTranscendental), "transcendental ops are decomposed");
    const DType operand = u.src().back().dtype();
    if (u.op() == Op::Bitcast) return;
    if (u.op() == Op::Cast) {
      law(!u.dtype().is_bool(), "a cast to bool is a comparison");
      law(!u.dtype().is_narrow_float() || operand == u.dtype().computed(),
          "16-bit floats are made from float32");
      law(!operand.is_narrow_float() || u.dtype() == operand.computed(),
          "16-bit floats are converted to float32");
      return;
    }
    if (u.op() == Op::Where && !operand.is_float()) return;  // a choice of any integers
    law(!operand.is_computed_wider(), "arithmetic is on 32 bits or more");
  }

  // Ranges are told apart by their numbers.
  void distinct_ranges(const std::vector<UOp>& order) {
    std::vector<UOp> ranges;
    for (const UOp& u : order)
      if (u.op() == Op::Range) ranges.push_back(u);
    sort_stable(ranges, [](const UOp& a, const UOp& b) { return a.int_arg() < b.int_arg(); });
    for (size_t i = 1; i < ranges.size(); ++i) {
      node_ = &ranges[i];
      law(ranges[i].int_arg() != ranges[i - 1].int_arg(), "range numbers are unique");
    }
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    const UOp& u = *node_;
    const std::string arg = arg_text(u);
    std::string text = cat("after pass ", pass_, ": ", what, ": ", to_string(u.dtype()), " ",
                           info(u.op()).name, arg.empty() ? "" : " {" + arg + "}", " of (");
    for (size_t i = 0; i < u.src().size(); ++i)
      text += cat(i ? ", " : "", to_string(u.src(i).dtype()), " ", info(u.src(i).op()).name);
    throw_error(Status::Internal, text + ")");
  }
  void law(bool holds, const char* what) const {
    if (!holds) [[unlikely]]
      fail(what);
  }
  template <class T>
  const T& argument(const char* what) const {
    const T* arg = std::get_if<T>(&node_->arg());
    law(arg != nullptr, what);
    return *arg;
  }
  bool is_index(size_t i) const { return node_->src(i).dtype() == kInt64; }
  void indices_from(size_t first) const {
    for (size_t i = first; i < node_->src().size(); ++i)
      law(is_index(i), "indices and sizes are int64");
  }

  void elementwise() const {
    const UOp& u = *node_;
    const OpInfo& op = info(u.op());
    law(std::holds_alternative<std::monostate>(u.arg()), "an elementwise op has no argument");
    const size_t first = u.op() == Op::Where ? 1 : 0;
    if (first) law(u.src(0).dtype().is_bool(), "a choice is made by a bool");
    const DType operand = u.src(first).dtype();
    for (size_t i = first; i < u.src().size(); ++i) {
      law(is_value_type(u.src(i).dtype()), "operands are numbers or bools");
      law(u.src(i).dtype() == operand, "operand dtypes agree");
    }
    if (u.op() == Op::Bitcast)
      law(u.dtype().bits() == operand.bits() && !u.dtype().is_bool() && !operand.is_bool(),
          "a bitcast is between numbers of one size");
    if (op.traits & (kFloatOperands | kIntOperands | kLogicOperands))
      law((op.traits & kFloatOperands && operand.is_float()) ||
              (op.traits & kIntOperands && operand.is_int()) ||
              (op.traits & kLogicOperands && operand.is_bool()),
          "the op takes operands of this kind");
  }

  void constant() const {
    const uint64_t bits = argument<ConstArg>("a constant has its bits").bits;
    const DType t = node_->dtype();
    law(t.bits() == 64 || bits >> t.bits() == 0, "a constant's bits are those of its dtype");
    law(!t.is_bool() || bits <= 1, "a bool is 0 or 1");
  }

  void variable() const {
    const auto& arg = argument<VariableArg>("a variable has a name and bounds");
    law(node_->dtype() == kInt64, "a variable is int64");
    law(!arg.name.empty(), "a variable has a name");
    law(arg.min <= arg.max, "a variable has a value");
  }

  // A list of numbers, of which the symbolic ones follow source 0.
  const Ints& parameters(const char* what) const {
    const Ints& list = argument<Ints>(what);
    const auto symbolic = std::count(list.begin(), list.end(), kSymbolicDim);
    law(node_->src().size() == 1 + static_cast<size_t>(symbolic),
        "symbolic parameters follow as sources");
    indices_from(1);
    return list;
  }
  void not_negative(const Ints& list, const char* what) const {
    for (int64_t v : list) law(v >= 0 || v == kSymbolicDim, what);
  }

  void movement() const {
    switch (node_->op()) {
      case Op::Reshape:
      case Op::Expand:
        return not_negative(parameters("a shape is a list of sizes"), "sizes are not negative");
      case Op::Permute: {
        Ints axes = argument<Ints>("a permutation is a list of axes");
        std::sort(axes.begin(), axes.end());
        for (size_t i = 0; i < axes.size(); ++i)
          law(axes[i] == static_cast<int64_t>(i), "a permutation names every axis once");
        return;
      }
      case Op::Flip:
        return law(are_distinct_axes(argument<Ints>("a flip is a list of axes")),
                   "flipped axes exist, each once");
      case Op::Alias: {
        constexpr int64_t kApart = 2, kLast = 5;  // as AliasKind and the kinds of bounds have them
        const Ints& list = argument<Ints>("an alias has its kind");
        return law(!list.empty() && list[0] >= 0 && list[0] <= kLast && !node_->src().empty() &&
                       list.size() == (list[0] == kApart ? 2U : 1U),
                   "an alias has its kind, and a number if it is apart");
      }
      case Op::Unfold: {
        const Ints& list = parameters("an unfolding is an axis and four numbers for each");
        law(list.size() % 4 == 1 && list.size() > 1 && list[0] >= 0,
            "an unfolding is an axis and four numbers for each");
        for (size_t i = 1; i < list.size(); ++i)
          if (i % 4 == 1)
            law(list[i] >= 0 || list[i] == kSymbolicDim, "there are some windows, or none");
          else
            law(list[i] >= 1, "a kernel, a stride and a dilation are at least one");
        return;
      }
      case Op::Pad: {
        const Ints& list = parameters("a pad is its befores, then its afters");
        law(list.size() % 2 == 0, "a pad has a before and an after for each axis");
        return not_negative(list, "a pad adds elements");
      }
      case Op::Shrink: {
        const Ints& list = parameters("a shrink is its begins, then its ends");
        law(list.size() % 2 == 0, "a shrink has a begin and an end for each axis");
        not_negative(list, "a shrink begins inside");
        for (size_t i = 0, n = list.size() / 2; i < n; ++i)
          law(list[i] <= list[n + i] || list[n + i] == kSymbolicDim,
              "a shrink ends after it begins");
        return;
      }
      default:
        return view_of_sources(1, false);
    }
  }

  // The ViewArg and the sources that it calls for: indices if `indexed`, then what is symbolic.
  void view_of_sources(size_t first, bool indexed) const {
    const auto& view = argument<ViewArg>("memory is looked at through a view");
    law(view.shape.size() == view.strides.size(), "a view has a stride for each axis");
    for (int64_t n : view.shape) law(n >= 0 || n == kSymbolicDim, "sizes are not negative");
    auto count = std::count(view.shape.begin(), view.shape.end(), kSymbolicDim) +
                 std::count(view.strides.begin(), view.strides.end(), kSymbolicDim) +
                 (view.offset == kSymbolicDim ? 1 : 0);
    if (indexed) count += static_cast<int64_t>(view.shape.size());
    law(node_->src().size() == first + static_cast<size_t>(count),
        "there is an index for each axis and a source for what is symbolic");
    indices_from(first);
  }

  void axis_argument() const {
    law(argument<int64_t>("the argument is an axis") >= 0, "the axis exists");
  }

  void tensor() const {
    const UOp& u = *node_;
    if (has(u.op(), kMovement)) return movement();
    switch (u.op()) {
      case Op::Const:
        return constant();
      case Op::Variable:
        return variable();
      case Op::Buffer:
        law(u.src().size() <= 1, "a buffer has at most a size");
        return indices_from(0);
      case Op::Iota:
        law(u.src().size() == 1, "an iota has a size");
        return indices_from(0);
      case Op::ReduceAxis: {
        const auto& arg = argument<ReduceArg>("a reduction has an op and axes");
        law(is_reduction(arg.op, u.dtype()), "the op reduces this dtype");
        law(!arg.axes.empty() && are_distinct_axes(arg.axes) &&
                std::is_sorted(arg.axes.begin(), arg.axes.end()),
            "reduced axes exist, in order, each once");
        return;
      }
      case Op::Winograd: {
        const Ints& arg = argument<Ints>("a transform has its part, results and taps of a tile");
        law(arg.size() == 3 && arg[0] >= 0 && arg[0] <= 5, "the transform is a known part");
        return law((arg[2] == 3 && (arg[1] == 2 || arg[1] == 4)) || (arg[2] == 5 && arg[1] == 4),
                   "tiles are of F(2, 3), F(4, 3) or F(4, 5)");
      }
      case Op::Gather:
        law(u.src(1).dtype().is_int(), "an index is an integer");
        return axis_argument();
      case Op::Scatter: {
        const auto& arg = argument<ReduceArg>("a scatter has an op and an axis");
        law(arg.op == Op::Assign || is_reduction(arg.op, u.dtype()), "the op folds this dtype");
        law(arg.axes.size() == 1 && arg.axes.front() >= 0, "the axis exists");
        law(u.src(1).dtype().is_int(), "a place is an integer");
        return law(u.src(2).dtype() == u.dtype(), "updates have the dtype of the data");
      }
      case Op::Concat:
        law(!u.src().empty(), "a concatenation has parts");
        for (const UOp& s : u.src()) law(s.dtype() == u.dtype(), "parts have one dtype");
        return axis_argument();
      case Op::Call:
        argument<Ref<RefCounted>>("a call says what it calls");
        return;
      case Op::Scan:
      case Op::ScanStep:
      case Op::ScanStore:
        argument<Ref<RefCounted>>("what a scan sees and leaves says of which scan it is");
        return;
      case Op::Assign:
        argument<int64_t>("a write has a version");
        return law(u.src(0).dtype() == u.src(1).dtype(), "what is assigned has the target's dtype");
      case Op::After:
        argument<int64_t>("what follows a write has its version");
        return law(u.src().size() == 2 && u.src(1).op() == Op::Assign,
                   "a version is an older one after a write");
      default:
        return;
    }
  }

  void kernel() const {
    const UOp& u = *node_;
    for (const UOp& s : u.src()) law(!has(s.op(), kEffect), "stores and checks are roots");
    switch (u.op()) {
      case Op::Const:
        return constant();
      case Op::Variable:
        return variable();
      case Op::Param:
        return law(argument<int64_t>("a parameter has a slot") >= 0, "the slot exists");
      case Op::Range:
        law(is_index(0), "indices and sizes are int64");
        return law(argument<int64_t>("a range has a number") >= 0,
                   "a range's number is not negative");
      case Op::Load:
        law(!u.src().empty() && u.src(0).op() == Op::Param && u.src(0).dtype() == u.dtype(),
            "a load is from a parameter of its dtype");
        return view_of_sources(1, true);
      case Op::Store:
        law(u.src().size() >= 2 && u.src(0).op() == Op::Param &&
                u.src(0).dtype() == u.src(1).dtype(),
            "a store is to a parameter of the value's dtype");
        return view_of_sources(2, true);
      case Op::Place:
        return law(is_index(0) && is_index(1), "a place and its step are int64");
      case Op::Reduce: {
        const auto& arg = argument<ReduceArg>("a reduction has an op");
        law(is_reduction(arg.op, u.dtype()) && arg.axes.empty(), "the op reduces this dtype");
        return bound_ranges();
      }
      case Op::MatrixTerm:
        law(has_matrix_row(argument<int64_t>("a product of matrices is a row of the table")),
            "the row exists");
        law(u.dtype() == kFloat32 && is_index(2), "products are float32, a column is int64");
        for (size_t i = 3; i < u.src().size(); ++i)
          law(u.src(i).op() == Op::Range, "what an operand is spread over is a range");
        return;
      case Op::Stage:
        bound_ranges();
        return law(argument<StageArg>("a stage has strides").strides.size() + 1 == u.src().size(),
                   "a stage has a stride for each range");
      case Op::Index:
        law(!u.src().empty() && u.src(0).op() == Op::Stage &&
                u.src().size() == u.src(0).src().size(),
            "a stage is indexed for each range");
        return indices_from(1);
      case Op::Running: {
        const auto& arg = argument<ReduceArg>("a running value has an op");
        law(is_reduction(arg.op, u.dtype()) && arg.axes.empty(), "the op folds this dtype");
        law(u.src().size() == 3 || u.src().size() == 4, "a value runs along one range");
        law(u.src(1).op() == Op::Range && is_index(2), "a value runs along a range, as needed");
        return law(u.src().size() == 3 || (arg.op == Op::Add && u.src(3).dtype() == u.dtype()),
                   "what is scaled is a sum, by a factor of its dtype");
      }
      case Op::Before:
        return law(u.src(0).op() == Op::Running, "what was before is of a running value");
      case Op::Last:
        law(u.src(0).op() == Op::Running && u.src(0).src(1) == u.src(1),
            "what is last is of a running value, along its range");
        return bound_ranges();
      case Op::Check:
        law(u.src(0).dtype() == kBool && is_index(1), "a check is a bool and a position");
        return law(argument<int64_t>("a check has a number") >= 0, "a check's number exists");
      default:
        return;
    }
  }

  void bound_ranges() const {
    const auto src = node_->src();
    law(src.size() >= 2, "at least one range is bound");
    for (size_t i = 1; i < src.size(); ++i) {
      law(src[i].op() == Op::Range, "what is bound is a range");
      for (size_t j = 1; j < i; ++j) law(!(src[i] == src[j]), "a range is bound once");
    }
  }

  const char* pass_;
  const UOp* node_ = nullptr;
};

}  // namespace

void verify_tensor(std::span<const UOp> roots, const char* pass) {
  Spec spec(pass);
  for (const UOp& u : topological(roots)) spec.check(u, kTensorStage);
}

void verify_tensor(const UOp& root, const char* pass) {
  verify_tensor({&root, 1}, pass);
}

void verify_kernel(std::span<const UOp> roots, const char* pass) {
  Spec spec(pass);
  for (const UOp& u : roots) spec.root_of_kernel(u);
  const std::vector<UOp> order = topological(roots);
  for (const UOp& u : order) spec.check(u, kKernelStage);
  spec.distinct_ranges(order);
}

void verify_decomposed(std::span<const UOp> roots, const char* pass) {
  verify_kernel(roots, pass);
  Spec spec(pass);
  for (const UOp& u : topological(roots)) spec.decomposed(u);
}

}  // namespace tiny
