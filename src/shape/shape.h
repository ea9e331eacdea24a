// Dimensions that are integers or index expressions, and the shapes of tensor-graph nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/uop.h"

namespace tiny {

// What needs a number, or a decision that holds for every value of a Variable, and has neither.
// Status Unsupported for callers; who made the Variables (a session of a model) may catch it and go
// on with numbers in the place of those that it names.
class FreeDimension : public Error {
 public:
  FreeDimension(std::string message, std::vector<std::string> variables)
      : Error(Status::Unsupported, std::move(message)), variables_(std::move(variables)) {}
  const std::vector<std::string>& variables() const { return variables_; }

 private:
  std::vector<std::string> variables_;
};
// Throws one that names the Variables of these expressions.
[[noreturn]] void throw_free(std::span<const UOp> expressions, const std::string& what);

// A dimension, stride or offset: a number, or an expression over Variables bound at run time.  Sums
// of products stand in one form, so that equal ones are one node.
class Dim {
 public:
  Dim(int64_t value = 0) : value_(value) {}  // NOLINT: a number is a dimension.
  explicit Dim(UOp expression);              // a Const becomes a number

  bool is_const() const { return !expression_; }
  int64_t value() const {  // FreeDimension unless it is a number
    if (!is_const()) throw_unknown();
    return value_;
  }
  bool is(int64_t value) const { return is_const() && value_ == value; }
  const UOp& expression() const { return expression_; }
  UOp uop(Graph& graph) const { return is_const() ? graph.integer(value_) : expression_; }
  bool operator==(const Dim&) const = default;

 private:
  [[noreturn]] void throw_unknown() const;

  int64_t value_ = 0;
  UOp expression_;
};

using Shape = std::vector<Dim>;

// Folding arithmetic on dimensions; numbers are checked for overflow (Error{Limit}).
Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
Dim floor_div(const Dim& a, const Dim& b);
Dim floor_mod(const Dim& a, const Dim& b);  // b > 0
Dim minimum(const Dim& a, const Dim& b);
Dim maximum(const Dim& a, const Dim& b);
// a / b where b divides a whatever the Variables are; b > 0.
std::optional<Dim> divide_exactly(const Dim& a, const Dim& b);

// Decisions that hold for all values of the Variables; FreeDimension where none does.
bool decide_equal(const Dim& a, const Dim& b);
bool decide_less_equal(const Dim& a, const Dim& b);

Dim product(const Shape& shape);
// Of a node, with variables at their greatest, open sizes as they usually are; of one without
// elements, as if they were one.
double elements_at_most(const UOp& node);
Shape row_major_strides(const Shape& shape);
bool all_const(const Shape& shape);
Ints const_dims(const Shape& shape);  // FreeDimension unless all are numbers
Shape to_shape(const Ints& dims);
// Whether the Variable is in any of them.
bool depend_on(std::span<const Dim> sizes, const UOp& variable);
std::string to_string(const Dim& dim);
std::string to_string(const Shape& shape);

// The largest and the lowest value that a dimension can take.
int64_t upper_bound(const Dim& dim);
int64_t lower_bound(const Dim& dim);

// The shape of a tensor-graph node; computed once and kept with the node.
const Shape& shape_of(const UOp& node);

// The parameters of a movement node, symbolic ones read from its sources.
Shape movement_dims(const UOp& node);

// Tensor-graph nodes with checked, folded arguments.  What does nothing returns its operand.
UOp make_reshape(const UOp& x, const Shape& shape);  // equal numbers of elements
UOp make_expand(const UOp& x, const Shape& shape);   // equal ranks; size 1 becomes any
UOp make_permute(const UOp& x, const Ints& axes);    // out axis k is x's axes[k]
UOp make_flip(const UOp& x, const Ints& axes);
UOp make_pad(const UOp& x, const Shape& before, const Shape& after);  // with zero bits
UOp make_shrink(const UOp& x, const Shape& begin, const Shape& end);
// Windows along neighbouring axes, the first of which is `axis`.  Their places are in the axes'
// own, and behind these is an axis for each with what lies in a window: element (o, k) is o *
// stride + k * dilation of the axis, all of them inside.
struct Unfolding {
  struct Along {
    Dim count;  // of windows
    int64_t kernel = 1;
    int64_t stride = 1;
    int64_t dilation = 1;
  };
  int64_t axis = 0;
  std::vector<Along> along;
};
UOp make_unfold(const UOp& x, const Unfolding& windows);
Unfolding unfolding(const UOp& node);
// The same elements under an identity of their own: a node apart from the value that it is of, and
// so is all that is made of it.
enum class AliasKind : uint8_t {
  Detached,    // no gradient goes through it
  Recomputed,  // its gradient computes again what it is made of, from the sources behind the value
  Apart,       // gradients go through it; a number tells it from every other
  Later,       // read when the sources behind the value have been stored
};
UOp make_alias(const UOp& x, AliasKind kind, std::span<const UOp> others = {});
UOp make_apart(const UOp& x, int64_t number);
AliasKind alias_kind(const UOp& node);
UOp make_iota(Graph& graph, const Dim& count, DType dtype);
UOp make_reduce(const UOp& x, Op op, const Ints& axes);  // keeps the axes, with size 1
UOp make_gather(const UOp& data, const UOp& index, int64_t axis);
// data with updates in places along an axis: out[.., places[.., j, ..], ..] = updates[.., j, ..],
// in the order of j, where the updates have one; what a place holds is folded with it, or replaced
// (Op::Assign).  A place outside of the axis takes nothing.
UOp make_scatter(const UOp& data, const UOp& places, const UOp& updates, Op fold, int64_t axis);
UOp make_concat(const std::vector<UOp>& parts, int64_t axis);
// The memory of `previous` (a Buffer, a version, or what was realised) once `value` is written to
// `target`, a view of it.  `version` tells this write from every other.
UOp make_version(const UOp& previous, const UOp& target, const UOp& value, int64_t version);
struct CallResult;
// What a Call computes: a function of the host (src/engine) of row-major values, whose results are
// a node each.  A value without elements is no source.
struct HostCall : RefCounted {
  struct Value {
    DType dtype;  // Void: left out
    Shape shape;
    int64_t source = -1;  // of an input: which of the node's; < 0: none
  };
  Ref<RefCounted> function;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
  mutable std::vector<CallResult*> alive;  // of the results that nodes have; on the graph's thread
};
// The argument of such a node.
struct CallResult : RefCounted {
  CallResult(Ref<const HostCall> c, size_t i) : call(std::move(c)), index(i) {
    call->alive.push_back(this);
  }
  ~CallResult() override { std::erase(call->alive, this); }
  Ref<const HostCall> call;
  size_t index;  // of the output
};
const CallResult& call_result(const UOp& node);
// The nodes of all results of a Call's call that are alive, itself among them.
std::vector<UOp> alive_results(const UOp& node);
// Output `index`, as one row.  Sources are stored row-major: Contiguous, Calls, inputs of programs.
UOp make_call(Graph& graph, const Ref<const HostCall>& call, std::vector<UOp> sources,
              size_t index);
// Steps that make a new state of the one before (a scan).  Nodes of one step, the body, stand in
// the graph once: they see the outside through ScanSteps or are made of what is the same in all
// steps, and end in ScanStores, which only Scans read; these are what the outside sees.
struct ScanLoop : RefCounted {
  Dim count;           // of steps, at least one
  size_t outputs = 0;  // of each step
  size_t states = 0;
  // The run counts its steps: a Scan has the most that there may be as a source behind the stores
  // (int64, of one element), then what its states are before the first step, and none may come.
  bool is_counted = false;
  bool asks =
      false;  // of such a one: a step says whether another follows, in a store behind theirs
  // One step at most, without states: the body is what nothing but its stores needs.  What an
  // output is without that step is a source behind the count; its memory is this one's.
  bool is_branch = false;

  // Of a counted one: the Variable that sizes in its body may have, `first` in the first step and
  // one more in each that follows; none: they have none.  A state after a step may have less along
  // its first axis then than there is memory for: what is behind is any.
  UOp induction_variable;
  Dim first = 0;

  size_t stores() const { return outputs + states + (asks ? 1 : 0); }
};
// What such a node is to its scan.
struct ScanPart {
  enum class Kind : uint8_t {
    Element,  // ScanStep: of the source along its first axis, what belongs to this step
    State,    // ScanStep: the state before this step; the source is that before the first
              // ScanStore: the state after it
    Output,   // ScanStore: of this step; Scan: of all, along a new first axis
    Last,     // Scan: the state after the last step
    Again,    // ScanStore: whether another step follows this one
  };
  Ref<const ScanLoop> loop;
  Kind kind = Kind::Element;
  size_t index = 0;      // of the state or output
  bool reverse = false;  // Element, the store of an Output: the last part belongs to the first step
  Shape shape = {};      // of a ScanStep
};
const ScanPart& scan_part(const UOp& node);
// The source is stored row-major, whatever its shape: Contiguous, what a Call or Scan makes, a
// program's input.
UOp make_scan_step(const UOp& source, ScanPart part);
UOp make_scan_store(const UOp& value, ScanPart part);
// `sources`: the stores of the outputs, then those of the states; behind them what ScanLoop says. A
// state may share the store of an output.
UOp make_scan(const std::vector<UOp>& sources, ScanPart part);
// What has the shape that a Scan's state has memory for.
UOp whole_state(const UOp& scan, size_t state);
// A Buffer of `count` elements; `storage` is what holds them (src/engine).
UOp make_buffer(Graph& graph, Ref<RefCounted> storage, DType dtype, const Dim& count);

}  // namespace tiny
