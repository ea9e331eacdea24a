#include "ir/uop.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <ranges>
#include <type_traits>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "ir/node_map.h"

namespace tiny {

int64_t UOp::int_arg() const {
  const auto* v = std::get_if<int64_t>(&node_->arg);
  invariant(v != nullptr, "the argument is an integer");
  return *v;
}
const Ints& UOp::ints() const {
  const auto* v = std::get_if<Ints>(&node_->arg);
  invariant(v != nullptr, "the argument is a list of integers");
  return *v;
}
const ReduceArg& UOp::reduce_arg() const {
  const auto* v = std::get_if<ReduceArg>(&node_->arg);
  invariant(v != nullptr, "the argument is a reduction");
  return *v;
}
const StageArg& UOp::stage_arg() const {
  const auto* v = std::get_if<StageArg>(&node_->arg);
  invariant(v != nullptr, "the argument is a stage's");
  return *v;
}
const VariableArg& UOp::variable_arg() const {
  const auto* v = std::get_if<VariableArg>(&node_->arg);
  invariant(v != nullptr, "the argument is a variable");
  return *v;
}
const ViewArg& UOp::view_arg() const {
  const auto* v = std::get_if<ViewArg>(&node_->arg);
  invariant(v != nullptr, "the argument is a view");
  return *v;
}
uint64_t UOp::const_bits() const {
  const auto* v = std::get_if<ConstArg>(&node_->arg);
  invariant(v != nullptr && node_->op == Op::Const, "the node is a constant");
  return v->bits;
}
int64_t UOp::const_int() const {
  return int_of(dtype(), const_bits());
}

namespace {

uint64_t hash_ints(const Ints& values, uint64_t seed) {
  for (int64_t v : values) seed = hash_mix(seed, static_cast<uint64_t>(v));
  return hash_mix(seed, values.size());
}

}  // namespace

namespace {

constexpr size_t kConstIndex = 2;  // of the argument's alternatives
static_assert(std::is_same_v<std::variant_alternative_t<kConstIndex, Arg>, ConstArg>);

uint64_t hash_of_bits(uint64_t bits) {
  return hash_mix(kConstIndex, bits);
}

// Of a node without its sources.
uint64_t hash_of_own(Op op, DType dtype, uint64_t of_arg) {
  return hash_mix(
      static_cast<uint64_t>(op) << 32 | static_cast<uint64_t>(dtype.scalar) << 16 | dtype.lanes,
      of_arg);
}

}  // namespace

uint64_t hash_of(const Arg& arg) {
  const uint64_t seed = arg.index();
  if (const auto* i = std::get_if<int64_t>(&arg)) return hash_mix(seed, static_cast<uint64_t>(*i));
  if (const auto* c = std::get_if<ConstArg>(&arg)) return hash_of_bits(c->bits);
  if (const auto* v = std::get_if<Ints>(&arg)) return hash_ints(*v, seed);
  if (const auto* v = std::get_if<VariableArg>(&arg))
    return hash_mix(hash_mix(hash_bytes(v->name, seed), static_cast<uint64_t>(v->min)),
                    static_cast<uint64_t>(v->max));
  if (const auto* r = std::get_if<ReduceArg>(&arg))
    return hash_ints(r->axes, hash_mix(seed, static_cast<uint64_t>(r->op)));
  if (const auto* v = std::get_if<ViewArg>(&arg))
    return hash_ints(v->strides,
                     hash_ints(v->shape, hash_mix(seed, static_cast<uint64_t>(v->offset))));
  if (const auto* s = std::get_if<StageArg>(&arg))
    return hash_ints(s->strides, hash_mix(seed, s->is_shared + 2u * s->swizzle));
  if (const auto* o = std::get_if<Ref<RefCounted>>(&arg))
    return hash_mix(seed, std::bit_cast<uintptr_t>(o->get()));
  return seed;
}

namespace {

DType result_dtype(Op op, std::span<const UOp> src, DType declared) {
  switch (info(op).result) {
    case OpResult::Declared:
      return declared;
    case OpResult::First:
      return src.front().dtype();
    case OpResult::Last:
      return src.back().dtype();
    case OpResult::Bool:
      return kBool.with_lanes(src.front().dtype().lanes);
    case OpResult::Void:
      return kVoid;
  }
  return kVoid;
}

// What address sanitizers watch has memory of its own.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kPooled = false;
#elif defined(__has_feature)
constexpr bool kPooled = !__has_feature(address_sanitizer);
#else
constexpr bool kPooled = true;
#endif

// Memory for nodes with their sources: blocks by the number of sources, cut from chunks, and back
// into a list of their own when they are free.  Nodes with many sources have memory of their own.
class NodePool {
 public:
  void* take(size_t sources) {
    const size_t bytes = sizeof(Node) + sources * sizeof(UOp);
    if (!kPooled || sources > kSourcesMax) return ::operator new(bytes);
    if (Free* block = free_[sources]) {
      free_[sources] = block->next;
      return block;
    }
    if (left_ < bytes) {
      chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(chunk_bytes_));
      at_ = chunks_.back().get();
      left_ = std::exchange(chunk_bytes_, std::min(2 * chunk_bytes_, kChunkMax));
    }
    left_ -= bytes;
    return std::exchange(at_, at_ + bytes);
  }

  void give(void* block, size_t sources) {
    if (!kPooled || sources > kSourcesMax) return ::operator delete(block);
    free_[sources] = new (block) Free{free_[sources]};
  }

 private:
  static constexpr size_t kSourcesMax = 8;
  static constexpr size_t kChunkMax = 64 << 10;
  struct Free {
    Free* next;
  };
  std::array<Free*, kSourcesMax + 1> free_{};
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* at_ = nullptr;  // the rest of the last chunk
  size_t left_ = 0;
  size_t chunk_bytes_ = 4 << 10;  // of the next
};

}  // namespace

namespace {

struct WalkFrame {
  WalkFrame(const UOp* of, const UOp* first, const UOp* last) : node(of), next(first), end(last) {}
  const UOp* node;  // null: the roots stand below
  const UOp* next;  // the first of the nodes below that was not looked at
  const UOp* end;
};

}  // namespace

// Open addressing with linear probing over the nodes' hashes, which stand beside them: a node that
// is passed by is not read.  Deletion shifts back.
struct Graph::Table : RefCounted {
  struct Slot {
    const Node* node = nullptr;
    uint64_t hash = 0;
  };
  std::vector<Slot> slots = std::vector<Slot>(64);
  std::vector<uint32_t> free_ids;
  size_t count = 0;
  uint32_t next_id = 0;
  NodePool pool;
  // What a walk needs, kept for the next: walks are many, and most of them short.
  struct Walk {
    std::vector<WalkFrame> stack;
    std::vector<const UOp*> order;  // with room for all nodes
  };
  Walk walk;

  size_t home(uint64_t hash) const { return hash & (slots.size() - 1); }
  size_t next(size_t i) const { return (i + 1) & (slots.size() - 1); }

  // Room for one more.  What comes after needs no memory, and nor does a release.
  void reserve() {
    if (free_ids.empty() && free_ids.capacity() <= next_id)
      free_ids.reserve(2 * size_t{next_id} + 64);
    if ((count + 1) * 2 <= slots.size()) return;
    std::vector<Slot> old(slots.size() * 2);
    old.swap(slots);
    for (const Slot& slot : old)
      if (slot.node) place(slot);
  }
  void insert(const Node* node) {
    place({node, node->hash});
    ++count;
  }
  void place(const Slot& slot) {
    size_t i = home(slot.hash);
    while (slots[i].node) i = next(i);
    slots[i] = slot;
  }
  void erase(const Node* node) {
    size_t hole = home(node->hash);
    while (slots[hole].node != node) hole = next(hole);
    for (size_t i = next(hole); slots[i].node; i = next(i)) {
      const size_t distance = (i - home(slots[i].hash)) & (slots.size() - 1);
      if (distance >= ((i - hole) & (slots.size() - 1))) {
        slots[hole] = slots[i];
        hole = i;
      }
    }
    slots[hole] = {};
    --count;
  }
};

Graph::Graph() : table_(make_ref<Table>()) {
}
Graph::~Graph() = default;
size_t Graph::size() const {
  return table_->count;
}
size_t Graph::id_limit() const {
  return table_->next_id;
}

UOp Graph::intern(Op op, std::span<const UOp> src, DType declared, const Arg& arg, Arg* own) {
  look();
  invariant(info(op).arity == kVariadic || static_cast<size_t>(info(op).arity) == src.size(),
            "the number of sources is the op's arity");
  invariant(
      info(op).result != OpResult::First && info(op).result != OpResult::Last ? true : !src.empty(),
      "an op whose dtype is a source's has a source");
  for (const UOp& s : src)
    invariant(static_cast<bool>(s) && &s.graph() == this, "sources belong to the graph");
  const DType dtype = result_dtype(op, src, declared);
  uint64_t hash = hash_of_own(op, dtype, hash_of(arg));
  for (const UOp& s : src) hash = hash_mix(hash, s.hash());
  Table& t = *table_;
  for (size_t i = t.home(hash); t.slots[i].node; i = t.next(i)) {
    if (t.slots[i].hash != hash) continue;
    const Node* n = t.slots[i].node;
    if (n->op == op && n->dtype == dtype && std::ranges::equal(n->src(), src) && n->arg == arg) {
      if (origin_ != n->origin && n->src_count > 0) n->origin = origins_.merged(n->origin, origin_);
      return UOp(n);
    }
  }
  t.reserve();
  // A copy may fail, and takes no place then; a move does not.
  Arg copy;
  if (!own) own = &(copy = arg);
  Node* node = new (t.pool.take(src.size())) Node{std::move(*own),
                                                  {},
                                                  {},
                                                  this,
                                                  hash,
                                                  0,
                                                  0,
                                                  0,
                                                  origin_,
                                                  dtype,
                                                  op,
                                                  static_cast<uint32_t>(src.size())};
  std::uninitialized_copy(src.begin(), src.end(), reinterpret_cast<UOp*>(node + 1));
  t.insert(node);
  if (t.free_ids.empty()) {
    node->id = t.next_id++;
  } else {
    node->id = t.free_ids.back();
    t.free_ids.pop_back();
  }
  return UOp(node);
}

UOp UOp::with_src(std::span<const UOp> src) const {
  if (std::ranges::equal(src, this->src())) return *this;
  const OriginScope scope(*this);
  return node_->graph->intern(op(), src, dtype(), arg(), nullptr);
}

UOp Graph::constant_bits(DType dtype, uint64_t bits) {
  // A third of all nodes that are asked for are constants: one that is there is found with less.
  const uint64_t hash = hash_of_own(Op::Const, dtype, hash_of_bits(bits));
  const Table& t = *table_;
  for (size_t i = t.home(hash); t.slots[i].node; i = t.next(i)) {
    if (t.slots[i].hash != hash) continue;
    const Node* n = t.slots[i].node;
    if (n->op != Op::Const || !(n->dtype == dtype)) continue;
    if (!(std::get<ConstArg>(n->arg) == ConstArg{bits})) continue;
    look();
    return UOp(n);
  }
  return make(Op::Const, {}, ConstArg{bits}, dtype);
}

UOp Graph::variable(std::string name, int64_t min, int64_t max) {
  return make(Op::Variable, {}, VariableArg{std::move(name), min, max}, kInt64);
}

void UOp::destroy(const Node* node) {
  node->graph->release(node);
}

// Frees `node` and whatever only it kept alive.  A dead node is in no table, so its hash can hold
// the next one to free: a chain of a million needs neither stack nor memory.
void Graph::release(const Node* node) {
  Node* dead = nullptr;
  const auto bury = [&](const Node* n) {
    auto* owned = const_cast<Node*>(n);
    table_->erase(owned);
    table_->free_ids.push_back(owned->id);
    owned->hash = std::bit_cast<uintptr_t>(dead);
    dead = owned;
  };
  bury(node);
  while (dead) {
    Node* current = dead;
    dead = std::bit_cast<Node*>(static_cast<uintptr_t>(current->hash));
    for (const UOp& s : current->src())
      if (--s.node_->references == 0) bury(s.node_);
    const size_t sources = current->src_count;
    current->~Node();
    table_->pool.give(current, sources);
  }
}

std::vector<UOp> topological(std::span<const UOp> roots, bool (*stop)(const UOp&)) {
  if (roots.empty()) return {};
  Graph& graph = roots.front().graph();
  const uint64_t visit = graph.next_visit();
  // The roots, and then what they refer to, keep alive what is on the stack.
  auto& [stack, order] = graph.table_->walk;
  stack.clear();
  if (order.size() < graph.size()) order.resize(graph.table_->slots.size());
  const UOp** last = order.data();
  // The frame on top is in registers: this is the innermost loop of most passes.
  WalkFrame top{nullptr, roots.data(), roots.data() + roots.size()};
  while (true) {
    if (top.next == top.end) {
      if (!top.node) break;
      *last++ = top.node;
      top = stack.back();
      stack.pop_back();
      continue;
    }
    const UOp* node = top.next++;
    if (std::exchange(node->node()->visit, visit) == visit) continue;
    const std::span<const UOp> src = node->src();
    if (src.empty() || (stop && stop(*node))) {
      *last++ = node;
    } else {
      stack.emplace_back(top.node, top.next, top.end);
      top.node = node;
      top.next = src.data();
      top.end = src.data() + src.size();
    }
  }
  const auto nodes = std::span(order.data(), last) |
                     std::views::transform([](const UOp* node) -> const UOp& { return *node; });
  return {nodes.begin(), nodes.end()};
}

bool reaches(const UOp& root, const UOp& node) {
  if (root == node) return true;
  const uint64_t visit = root.graph().next_visit();
  std::vector<const Node*> stack{root.node()};
  while (!stack.empty()) {
    const Node* top = stack.back();
    stack.pop_back();
    for (const UOp& s : top->src()) {
      if (s == node) return true;
      if (std::exchange(s.node()->visit, visit) != visit && !s.src().empty())
        stack.push_back(s.node());
    }
  }
  return false;
}

UOp substitute(const UOp& root, const std::vector<std::pair<UOp, UOp>>& replacements) {
  const std::vector<UOp> order = topological({&root, 1});
  NodeTable<UOp> changed;  // nodes that are not there stay as they are
  for (const auto& [from, to] : replacements) changed.emplace(from.node(), to);
  const auto now = [&](const UOp& u) {
    const UOp* other = changed.find(u.node());
    return other ? *other : u;
  };
  std::vector<UOp> src;
  for (const UOp& u : order) {
    const auto is_changed = [&](const UOp& s) { return changed.contains(s.node()); };
    if (is_changed(u) || std::ranges::none_of(u.src(), is_changed)) continue;
    src.clear();
    for (const UOp& s : u.src()) src.push_back(now(s));
    changed.emplace(u.node(), u.with_src(src));
  }
  return now(root);
}

std::string arg_text(const UOp& node) {
  const Arg& arg = node.arg();
  if (const auto* i = std::get_if<int64_t>(&arg)) return std::to_string(*i);
  if (const auto* c = std::get_if<ConstArg>(&arg)) {
    if (!node.dtype().is_float()) return std::to_string(int_of(node.dtype(), c->bits));
    return cat(double_of(node.dtype(), c->bits));
  }
  if (const auto* v = std::get_if<Ints>(&arg)) return list_text(*v);
  if (const auto* s = std::get_if<StageArg>(&arg))
    return cat(list_text(s->strides), s->is_shared ? " shared" : "",
               s->swizzle != 0 ? cat(" swizzle ", s->swizzle) : "");
  if (const auto* v = std::get_if<VariableArg>(&arg))
    return cat(v->name, " ", v->min, "..", v->max);
  if (const auto* r = std::get_if<ReduceArg>(&arg))
    return cat(info(r->op).name, r->axes.empty() ? "" : " ",
               r->axes.empty() ? std::string() : list_text(r->axes));
  if (const auto* v = std::get_if<ViewArg>(&arg))
    return cat(list_text(v->shape), " strides ", list_text(v->strides), " offset ", v->offset);
  return "";
}

std::string to_string(const UOp& root) {
  return to_string(std::span(&root, 1));
}

std::string to_string(std::span<const UOp> roots) {
  const std::vector<UOp> order = topological(roots);
  std::unordered_map<const Node*, size_t> number;
  std::string out;
  for (const UOp& u : order) {
    const size_t n = number.size();
    number.emplace(u.node(), n);
    out += cat("%", n, " = ", to_string(u.dtype()), " ", info(u.op()).name);
    for (const UOp& s : u.src()) out += cat(" %", number.at(s.node()));
    const std::string arg = arg_text(u);
    out += arg.empty() ? "\n" : " {" + arg + "}\n";
  }
  return out;
}

std::string expression_text(const UOp& root) {
  switch (root.op()) {
    case Op::Const:
      return arg_text(root);
    case Op::Variable:
      return root.variable_arg().name;
    case Op::Range:
      return cat("r", root.int_arg());
    default:
      break;
  }
  const OpInfo& op = info(root.op());
  if (op.arity == 2 && op.traits & kElementwise)
    return cat("(", expression_text(root.src(0)), " ", op.symbol, " ", expression_text(root.src(1)),
               ")");
  std::vector<std::string> parts;
  for (const UOp& s : root.src()) parts.push_back(expression_text(s));
  return cat(op.symbol, "(", join(parts, ", "), ")");
}

}  // namespace tiny
