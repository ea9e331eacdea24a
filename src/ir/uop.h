// The one node type of the IR, and the graph that interns it.
//
//   Interned   within one Graph, equal (op, dtype, argument, sources) is the same node: equality is
//              identity, and common subexpressions cannot exist.  Constants compare by their bits.
//   Immutable  a pass never edits a node; it builds new ones.
//   Acyclic    a node is made after its sources.
//   Counted    a UOp is a counted reference; a node dies with its last one, without recursion.  Ids
//              are dense and reused, so that passes use vectors as side tables.
//   One thread at a time uses a Graph and its UOps.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/ref.h"
#include "base/stop.h"
#include "ir/dtype.h"
#include "ir/op.h"
#include "ir/origin.h"

namespace tiny {

class Graph;
class UOp;
struct IndexMemo;
struct RewriteWatch;
using Ints = std::vector<int64_t>;

// A constant's value, as bits of its dtype.
struct ConstArg {
  uint64_t bits = 0;
  bool operator==(const ConstArg&) const = default;
};
// An integer bound when a program runs, min <= value <= max.
struct VariableArg {
  std::string name;
  int64_t min = 0;
  int64_t max = 0;
  bool operator==(const VariableArg&) const = default;
};
// What a reduction folds with, and (in the tensor graph) over which axes.
struct ReduceArg {
  Op op = Op::Add;
  Ints axes;
  bool operator==(const ReduceArg&) const = default;
};
// An alias of memory: strides in elements, any sign, 0 for broadcast.
struct ViewArg {
  Ints shape;
  Ints strides;
  int64_t offset = 0;
  bool operator==(const ViewArg&) const = default;
};

// Of a Stage: a stride for each of its ranges; whether a group of threads fills and reads it; how
// many bits of a piece's number change by its line's (rules/symbolic.h, swizzled).
struct StageArg {
  Ints strides;
  bool is_shared = false;
  uint8_t swizzle = 0;
  bool operator==(const StageArg&) const = default;
};

using Arg = std::variant<std::monostate, int64_t, ConstArg, Ints, VariableArg, ReduceArg, ViewArg,
                         Ref<RefCounted>, StageArg>;
uint64_t hash_of(const Arg& arg);

// A dimension that the graph gives for kSymbolicDim in an argument stands among the sources.
inline constexpr int64_t kSymbolicDim = INT64_MIN;

// A node's fields, and behind them its sources: what walks touch lies together.
struct Node {
  Arg arg;
  // What others attach to a node, dying with it: its shape (src/shape) and the buffer that holds
  // its value once realised (src/engine).
  mutable Ref<RefCounted> shape;
  mutable Ref<RefCounted> realized;
  Graph* graph = nullptr;
  uint64_t hash = 0;           // structural: the same in every process for graphs without buffers
  mutable uint64_t visit = 0;  // the last walk that came here
  mutable uint32_t references = 0;
  uint32_t id = 0;
  mutable Origin origin = kNobody;
  DType dtype;
  Op op = Op::Const;
  uint32_t src_count = 0;

  std::span<const UOp> src() const;
};

class UOp {
 public:
  UOp() = default;  // no node
  UOp(const UOp& other) : node_(other.node_) {
    if (node_) ++node_->references;
  }
  UOp(UOp&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  UOp& operator=(UOp other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~UOp() {
    if (node_ && --node_->references == 0) destroy(node_);
  }

  Op op() const { return node_->op; }
  DType dtype() const { return node_->dtype; }
  const Arg& arg() const { return node_->arg; }
  std::span<const UOp> src() const { return node_->src(); }
  const UOp& src(size_t i) const { return node_->src()[i]; }
  uint32_t id() const { return node_->id; }
  uint64_t hash() const { return node_->hash; }
  Graph& graph() const { return *node_->graph; }
  const Node* node() const { return node_; }
  uint32_t references() const { return node_->references; }
  explicit operator bool() const { return node_ != nullptr; }
  bool operator==(const UOp& other) const { return node_ == other.node_; }

  // The node with other sources and all else the same.
  UOp with_src(std::span<const UOp> src) const;

  // The argument as what it must be; Error{Internal} if it is something else.
  int64_t int_arg() const;
  const Ints& ints() const;
  const ReduceArg& reduce_arg() const;
  const StageArg& stage_arg() const;
  const VariableArg& variable_arg() const;
  const ViewArg& view_arg() const;

  bool is_const() const { return node_ && node_->op == Op::Const; }
  uint64_t const_bits() const;  // of a Const
  int64_t const_int() const;    // of an integer or bool Const
  bool is_const_int(int64_t value) const {
    return is_const() && (dtype().is_int() || dtype().is_bool()) && const_int() == value;
  }

 private:
  friend class Graph;
  explicit UOp(const Node* node) : node_(node) { ++node_->references; }
  static void destroy(const Node* node);
  const Node* node_ = nullptr;
};

inline std::span<const UOp> Node::src() const {
  return {std::launder(reinterpret_cast<const UOp*>(this + 1)), src_count};
}

class Graph {
 public:
  Graph();
  ~Graph();  // every UOp of it must be gone
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // The node with exactly these fields, made on first request.  The dtype is inferred from the op
  // table; `declared` is for ops whose result is Declared.  Error{Internal} for a wrong arity.
  UOp make(Op op, std::span<const UOp> src, Arg arg = {}, DType declared = kVoid) {
    return intern(op, src, declared, arg, &arg);
  }
  UOp make(Op op, std::initializer_list<UOp> src, Arg arg = {}, DType declared = kVoid) {
    return intern(op, std::span(src.begin(), src.size()), declared, arg, &arg);
  }

  UOp constant(DType dtype, double value) { return constant_bits(dtype, bits_of(dtype, value)); }
  UOp constant_int(DType dtype, int64_t value) {
    return constant_bits(dtype, bits_of_int(dtype, value));
  }
  UOp constant_bits(DType dtype, uint64_t bits);
  UOp integer(int64_t value) { return constant_int(kInt64, value); }  // an index
  UOp boolean(bool value) { return constant_int(kBool, value); }
  UOp variable(std::string name, int64_t min, int64_t max);

  // Who is told of every rewriting of these nodes (ir/rewrite.h); null: nobody.  Outlives its use.
  void set_watch(RewriteWatch* watch) { watch_ = watch; }
  RewriteWatch* watch() const { return watch_; }

  // What remembers what is found of index expressions (ir/index_memo.h); null: nothing.
  void set_index_memo(IndexMemo* memo) { index_memo_ = memo; }
  IndexMemo* index_memo() const { return index_memo_; }

  // Who ends work on these nodes early: making and rewriting them throws what the signal says;
  // null: nobody.  For graphs that go with what is thrown: others may be in the middle of a change.
  void set_stop(const StopSignal* stop) { stop_ = stop; }
  const StopSignal* stop() const { return stop_; }
  // A step of such work, of about a microsecond.
  void look() {
    if (stop_ && (++looks_ & (kLooksPerCheck - 1)) == 0) stop_->check();
  }

  // Whose work the nodes do that are made now: see OriginScope.
  Origin origin() const { return origin_; }
  void set_origin(Origin origin) { origin_ = origin; }
  Origins& origins() { return origins_; }

  // A number for one walk, which marks nodes with it (Node::visit).  Walks do not interleave.
  uint64_t next_visit() { return ++visits_; }

  size_t size() const;      // nodes alive
  size_t id_limit() const;  // every id is below this

 private:
  friend class UOp;
  friend std::vector<UOp> topological(std::span<const UOp> roots, bool (*stop)(const UOp&));
  struct Table;
  // A new node takes its argument out of `own`, which is `arg`; a copy if that is null.
  UOp intern(Op op, std::span<const UOp> src, DType declared, const Arg& arg, Arg* own);
  void release(const Node* node);
  Ref<Table> table_;
  static constexpr uint32_t kLooksPerCheck = 1 << 9;
  RewriteWatch* watch_ = nullptr;
  IndexMemo* index_memo_ = nullptr;
  const StopSignal* stop_ = nullptr;
  uint32_t looks_ = 0;
  uint64_t visits_ = 0;
  Origin origin_ = kNobody;
  Origins origins_;
};

// While it lives, nodes of the graph are made for this origin.
class OriginScope {
 public:
  OriginScope(Graph& graph, Origin origin) : graph_(graph), outer_(graph.origin()) {
    graph.set_origin(origin);
  }
  // For what takes the place of a node, or is made of it: its origin, if it has one.
  explicit OriginScope(const UOp& node)
      : OriginScope(node.graph(),
                    node.node()->origin != kNobody ? node.node()->origin : node.graph().origin()) {}
  ~OriginScope() { graph_.set_origin(outer_); }
  OriginScope(const OriginScope&) = delete;
  OriginScope& operator=(const OriginScope&) = delete;

 private:
  Graph& graph_;
  Origin outer_;
};

// Every node that `roots` reach, sources before users, each once.  Without recursion.  Nothing
// below a node of which `stop` says true is visited; the node itself is.  `stop` walks no graph.
std::vector<UOp> topological(std::span<const UOp> roots, bool (*stop)(const UOp&) = nullptr);

// Whether `node` is `root` or below it.
bool reaches(const UOp& root, const UOp& node);

// `root` with every node that `map` knows replaced (map[id] of a node, empty if none); nodes above
// are rebuilt.
UOp substitute(const UOp& root, const std::vector<std::pair<UOp, UOp>>& replacements);

// One node a line, sources by number.
std::string to_string(const UOp& root);
std::string to_string(std::span<const UOp> roots);
std::string expression_text(const UOp& root);  // infix, for index expressions
std::string arg_text(const UOp& node);

}  // namespace tiny
