#include "schedule/decide.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "schedule/narrow_operands.h"
#include "schedule/schedule.h"
#include "shape/movement_axis.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

bool has_memory(const UOp& node) {
  return node.op() == Op::Buffer || static_cast<bool>(node.node()->realized);
}

const RefCounted* memory_of(const UOp& node) {
  if (node.node()->realized || node.op() != Op::Buffer) return node.node()->realized.get();
  return std::get<Ref<RefCounted>>(node.arg()).get();
}

double bandwidth_of(double bytes, const Target& target) {
  if (bytes <= static_cast<double>(target.l2_bytes) / 2) return target.l2_bandwidth;
  return bytes <= static_cast<double>(target.l3_bytes) / 2 ? target.l3_bandwidth
                                                           : target.memory_bandwidth;
}

double saved_seconds(double bytes, const Target& target) {
  return target.launch_seconds + 2 * bytes / bandwidth_of(bytes, target);
}

namespace {

// What is made of positions by so many operations costs no more than reading it would.
constexpr int64_t kLightOps = 8;

double size_of(const UOp& node) {
  double n = 1;
  for (const Dim& d : shape_of(node))
    n *= static_cast<double>(std::max<int64_t>(upper_bound(d), 1));
  return n;
}

// What is known of a value that has no buffer (yet): the work below it down to the next buffers.
struct Cone {
  double weight = 0;  // per element
  bool transcendental = false;
  bool reduces = false;          // a reduction that is not stored
  std::vector<uint32_t> inputs;  // ids of buffers read, sorted
  int64_t ops = 0;
};

class Decider {
 public:
  Decider(std::span<const UOp> outputs, const Target& target) : target_(target) {
    decision_.order = topological(outputs, has_memory);
    if (decision_.order.empty()) return;
    const size_t limit = decision_.order.front().graph().id_limit();
    decision_.stored.resize(limit);
    decision_.slice_of.resize(limit);
    decision_.slot_of.resize(limit);
    cones_.resize(limit);
    users_.resize(limit);
    forced_.resize(limit);
    words_.resize(limit);
    for (const UOp& u : decision_.order) {
      if (has_memory(u)) continue;
      for (const UOp& s : u.src()) users_[s.id()].push_back(u);
    }
    find_slots();
    for (const UOp& u : decision_.order) find_words(u);
    for (const UOp& out : outputs) force_base(out);
    for (const UOp& u : decision_.order)
      if (u.op() == Op::Concat && !has_memory(u)) place_parts(u);
    find_meetings();
  }

  Decision run() {
    for (const UOp& u : decision_.order) visit(u);
    return std::move(decision_);
  }

 private:
  // One node stands for each memory that is written, whoever else has it.
  void find_slots() {
    const auto is_write = [](const UOp& u) { return u.op() == Op::After && !has_memory(u); };
    if (std::none_of(decision_.order.begin(), decision_.order.end(), is_write)) return;
    std::unordered_map<const RefCounted*, UOp> by_memory;
    for (const UOp& u : decision_.order) {
      if (is_write(u))
        decision_.slot_of[u.id()] = decision_.slot(u.src(0));
      else if (has_memory(u))
        decision_.slot_of[u.id()] = by_memory.try_emplace(memory_of(u), u).first->second;
    }
  }

  // The target multiplies bytes in words only where it reads them: what computing them on the way
  // costs their product.
  void find_words(const UOp& u) {
    const auto kind = has_memory(u) ? std::nullopt : dot_kind_of(u, target_);
    if (!kind) return;
    const double lost = size_of(u.src(0)) * (1 - 1 / static_cast<double>(dot_steps(*kind)));
    for (const UOp& factor : u.src(0).src())
      words_[below_movement(below_movement(factor).src(0)).id()] += lost;
  }

  // What must have memory for `out` to have a value somewhere.
  void force_base(const UOp& out) {
    UOp base = out;
    while (!has_memory(base) && has(base.op(), kMovement) && base.op() != Op::Pad &&
           base.op() != Op::Expand)
      base = UOp(base.src(0));
    // A chain that is no view of its base (a reshape that copies) is stored itself.
    std::vector<uint8_t> stored(decision_.stored.size());
    stored[base.id()] = 1;
    forced_[as_view(out, stored) ? base.id() : out.id()] = 1;
  }

  // Each part of a concatenation is stored into its slice, if it is nobody else's memory.
  void place_parts(const UOp& concat) {
    forced_[concat.id()] = 1;
    for (const UOp& part : concat.src()) {
      if (has_memory(part) || part.op() == Op::Const || has(part.op(), kMovement)) continue;
      if (part.op() == Op::Concat || part.op() == Op::After || decision_.slice_of[part.id()] ||
          forced_[part.id()])
        continue;
      if (std::count(concat.src().begin(), concat.src().end(), part) != 1) continue;
      if (users_[part.id()].size() != 1) continue;
      decision_.slice_of[part.id()] = concat;
    }
  }

  void store(const UOp& u) {
    decision_.stored[u.id()] = 1;
    Cone cone;
    cone.inputs = {u.id()};
    cones_[u.id()] = std::move(cone);
  }

  Cone cone_of(const UOp& u) {
    Cone cone;
    for (const UOp& s : u.src()) {
      const Cone& below = cones_[s.id()];
      cone.weight += below.weight;
      cone.ops += below.ops;
      cone.transcendental |= below.transcendental;
      cone.reduces |= below.reduces;
      std::vector<uint32_t> both;
      std::set_union(cone.inputs.begin(), cone.inputs.end(), below.inputs.begin(),
                     below.inputs.end(), std::back_inserter(both));
      cone.inputs = std::move(both);
    }
    cone.ops += 1;
    if (cone.ops >= target_.ops_max && u.src().size() > 1) cone.ops = distinct_ops(u);
    if (has(u.op(), kElementwise)) {
      cone.weight += op_weight(u.op());
      cone.transcendental |= has(u.op(), kTranscendental);
    }
    return cone;
  }

  // The nodes below `u` down to buffers, each once, and `u`.
  int64_t distinct_ops(const UOp& u) {
    ++visit_;
    visited_.resize(decision_.stored.size());
    std::vector<const UOp*> stack{&u};
    int64_t ops = 0;
    while (!stack.empty()) {
      const UOp& node = *stack.back();
      stack.pop_back();
      ++ops;
      for (const UOp& s : node.src()) {
        if (decision_.stored[s.id()] || visited_[s.id()] == visit_) continue;
        visited_[s.id()] = visit_;
        stack.push_back(&s);
      }
    }
    return ops;
  }

  // A reduction is followed by elementwise work of its own size that nothing else reads.  Movement
  // in between is passed over, but nothing is stored behind it: the value keeps its own layout.
  bool continues_into_user(const UOp& u) {
    UOp value = u;
    while (true) {
      const auto& users = users_[value.id()];
      if (users.size() != 1 || forced_[value.id()] || decision_.slice_of[value.id()]) return false;
      const UOp& user = users.front();
      if (size_of(user) != size_of(u)) return false;
      if (user.op() == Op::Contiguous || user.op() == Op::Assign) return true;
      if (has(user.op(), kElementwise)) return carries_alone(user, value);
      const bool moves = has(user.op(), kMovement) && user.op() != Op::Expand &&
                         user.op() != Op::Pad && user.op() != Op::AsStrided;
      if (!moves) return false;
      value = user;
    }
  }

  // Only one operand of an elementwise op may carry a reduction: the first that was reached.
  bool carries_alone(const UOp& user, const UOp& operand) const {
    for (const UOp& s : user.src())
      if (!(s == operand) && cones_[s.id()].reduces && !decision_.stored[s.id()]) return false;
    return true;
  }

  // Where all uses of a value meet again, each at the value's own index: the nearest elementwise
  // node through which all of them go.
  void find_meetings() {
    meetings_.resize(users_.size());
    for (size_t i = decision_.order.size(); i-- > 0;) {
      const UOp& u = decision_.order[i];
      const auto& users = users_[u.id()];
      if (has_memory(u) || users.empty() || forced_[u.id()] || decision_.slice_of[u.id()]) continue;
      if (!has(u.op(), kElementwise)) continue;
      const UOp* meeting = &users.front();
      for (const UOp& user : users) {
        const bool same = has(user.op(), kElementwise) && !has_memory(user);
        meeting = same ? common_meeting(meeting, &user) : nullptr;
        if (!meeting) break;
      }
      if (meeting) meetings_[u.id()] = {meeting, meetings_[meeting->id()].depth + 1};
    }
  }

  // The first that both are or meet at; null if there is none.
  const UOp* common_meeting(const UOp* a, const UOp* b) const {
    while (a && b && !(*a == *b)) {
      const UOp*& deeper = meetings_[a->id()].depth >= meetings_[b->id()].depth ? a : b;
      deeper = meetings_[deeper->id()].node;
    }
    return a && b ? a : nullptr;
  }

  // How often an element of `u` would be computed if it had no buffer.
  double evaluations(const UOp& u) {
    double sum = 0;
    std::vector<std::pair<UOp, double>> stack;
    for (const UOp& user : users_[u.id()]) stack.emplace_back(user, size_of(u));
    double own = std::max(size_of(u), 1.0);
    while (!stack.empty()) {
      auto [user, n] = stack.back();
      stack.pop_back();
      if (has(user.op(), kMovement)) {
        const double grown =
            user.op() == Op::Expand ? n * size_of(user) / std::max(size_of(user.src(0)), 1.0) : n;
        for (const UOp& next : users_[user.id()]) stack.emplace_back(next, grown);
        if (users_[user.id()].empty()) sum += grown;
      } else {
        sum += user.op() == Op::Gather ? size_of(user) : n;
      }
    }
    return sum / own;
  }

  bool worth_storing(const UOp& u, const Cone& cone) {
    const double saved =
        saved_seconds(size_of(u) * static_cast<double>(u.dtype().bytes()), target_);
    if (words_[u.id()] / target_.fma_rate > saved) return true;
    if (cone.weight == 0 || meetings_[u.id()].node) return false;
    if (cone.inputs.empty() && cone.ops <= kLightOps) return false;
    const double n = evaluations(u);
    if (n <= 1.001) return false;
    if (cone.transcendental) return true;
    return cone.weight * size_of(u) * (n - 1) / target_.fma_rate > saved;
  }

  void visit(const UOp& u) {
    if (has_memory(u)) return store(u);
    Cone cone = cone_of(u);
    const bool too_large = static_cast<int64_t>(cone.inputs.size()) >= target_.inputs_max - 1 ||
                           cone.ops >= target_.ops_max;
    bool needed = forced_[u.id()] || decision_.slice_of[u.id()] || u.op() == Op::Contiguous ||
                  u.op() == Op::Copy || u.op() == Op::After || u.op() == Op::Assign;
    if (u.op() == Op::ReduceAxis) {
      cone.reduces = true;
      cone.weight = 0;
      needed |= !continues_into_user(u);
    } else if (has(u.op(), kElementwise)) {
      const bool continues = cone.reduces && words_[u.id()] == 0 && continues_into_user(u);
      needed |= too_large || (cone.reduces ? !continues : worth_storing(u, cone));
    } else if (has(u.op(), kMovement)) {
      // What is reduced stops here, unless its only user goes on with it.
      needed |= (cone.reduces && !continues_into_user(u)) || too_large;
    } else if (u.op() == Op::Gather) {
      needed |= too_large;
    }
    if (needed) return store(u);
    cones_[u.id()] = std::move(cone);
  }

  const Target& target_;
  Decision decision_;
  std::vector<Cone> cones_;
  std::vector<std::vector<UOp>> users_;
  std::vector<uint8_t> forced_;
  std::vector<double> words_;  // by id: multiply-adds that are lost if it has no memory
  struct Meeting {
    const UOp* node = nullptr;
    int64_t depth = 0;  // how many follow
  };
  std::vector<Meeting> meetings_;  // by id
  std::vector<int64_t> visited_;   // by id: the walk that was there last
  int64_t visit_ = 0;
};

}  // namespace

Decision decide_stored(std::span<const UOp> outputs, const Target& target) {
  return Decider(outputs, target).run();
}

}  // namespace tiny
