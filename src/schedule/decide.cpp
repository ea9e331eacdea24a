#include "schedule/decide.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "base/error.h"
#include "schedule/narrow_operands.h"
#include "schedule/schedule.h"
#include "schedule/users.h"
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
  Decider(std::span<const UOp> outputs, const Target& target)
      : target_(target),
        decision_(of_order(topological(outputs, has_memory))),
        users_(decision_.order),
        cones_(decision_.order.size()),
        forced_(decision_.order.size()),
        words_(decision_.order.size()),
        meetings_(decision_.order.size()) {
    if (decision_.order.empty()) return;
    decision_.stored.resize(decision_.order.front().graph().id_limit());
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
  static Decision of_order(std::vector<UOp> order) {
    Decision decision;
    decision.order = std::move(order);
    return decision;
  }

  // One node stands for each memory that is written, whoever else has it.
  void find_slots() {
    const auto is_write = [](const UOp& u) { return u.op() == Op::After && !has_memory(u); };
    if (std::none_of(decision_.order.begin(), decision_.order.end(), is_write)) return;
    std::unordered_map<const RefCounted*, UOp> by_memory;
    for (const UOp& u : decision_.order) {
      if (is_write(u))
        decision_.slots[u.node()] = UOp(decision_.slot(u.src(0)));
      else if (has_memory(u))
        decision_.slots[u.node()] = by_memory.try_emplace(memory_of(u), u).first->second;
    }
  }

  // The target multiplies bytes in words only where it reads them: what computing them on the way
  // costs their product.
  void find_words(const UOp& u) {
    const auto kind = has_memory(u) ? std::nullopt : dot_kind_of(u, target_);
    if (!kind) return;
    const double lost = size_of(u.src(0)) * (1 - 1 / static_cast<double>(dot_steps(*kind)));
    for (const UOp& factor : u.src(0).src()) {
      const UOp cast = moved(factor);
      if (!has_memory(cast)) words_[users_.number(moved(cast.src(0)))] += lost;
    }
  }

  // What a value is made of by movement, as far as the walk goes.
  static UOp moved(const UOp& value) {
    UOp node = value;
    while (has(node.op(), kMovement) && !has_memory(node)) node = UOp(node.src(0));
    return node;
  }

  // What must have memory for `out` to have a value somewhere.
  void force_base(const UOp& out) {
    UOp base = out;
    while (!has_memory(base) && has(base.op(), kMovement) && base.op() != Op::Pad &&
           base.op() != Op::Expand)
      base = UOp(base.src(0));
    // A chain that is no view of its base (a reshape that copies) is stored itself.
    uint8_t& stored = decision_.stored[base.id()];
    stored = 1;
    forced(as_view(out, decision_.stored) ? base : out) = 1;
    stored = 0;
  }

  // Each part of a concatenation is stored into its slice, if it is nobody else's memory.
  void place_parts(const UOp& concat) {
    forced(concat) = 1;
    for (const UOp& part : concat.src()) {
      if (has_memory(part) || part.op() == Op::Const || has(part.op(), kMovement)) continue;
      if (part.op() == Op::Concat || part.op() == Op::After || is_forced(part)) continue;
      if (std::count(concat.src().begin(), concat.src().end(), part) != 1) continue;
      if (users_.of(part).size() != 1) continue;
      decision_.slices[part.node()] = concat;
    }
  }

  uint8_t& forced(const UOp& u) { return forced_[users_.number(u)]; }
  // Whether it has a buffer whatever is below it.
  bool is_forced(const UOp& u) const {
    return forced_[users_.number(u)] || decision_.slice(u) != nullptr;
  }
  const Cone& cone(const UOp& u) const { return cones_[users_.number(u)]; }

  void store(const UOp& u) {
    decision_.stored[u.id()] = 1;
    Cone cone;
    cone.inputs = {u.id()};
    cones_[users_.number(u)] = std::move(cone);
  }

  Cone cone_of(const UOp& u) {
    Cone cone;
    for (const UOp& s : u.src()) {
      const Cone& below = this->cone(s);
      cone.weight += below.weight;
      cone.ops += below.ops;
      cone.transcendental |= below.transcendental;
      cone.reduces |= below.reduces;
      add_inputs(cone, s);
    }
    cone.ops += 1;
    if (cone.ops >= target_.ops_max && u.src().size() > 1) cone.ops = distinct_ops(u);
    if (has(u.op(), kElementwise)) {
      cone.weight += op_weight(u.op());
      cone.transcendental |= has(u.op(), kTranscendental);
    }
    return cone;
  }

  // Adds what the cone of a source reads, which nobody asks for after the last of its users.
  void add_inputs(Cone& cone, const UOp& source) {
    std::vector<uint32_t>& below = cones_[users_.number(source)].inputs;
    if (cone.inputs.empty()) {
      if (users_.of(source).size() == 1)
        cone.inputs = std::move(below);
      else
        cone.inputs = below;
    } else if (!std::ranges::includes(cone.inputs, below)) {
      std::vector<uint32_t> both;
      both.reserve(cone.inputs.size() + below.size());
      std::ranges::set_union(cone.inputs, below, std::back_inserter(both));
      cone.inputs = std::move(both);
    }
  }

  // The nodes below `u` down to buffers, each once, and `u`.
  int64_t distinct_ops(const UOp& u) {
    const uint64_t visit = u.graph().next_visit();
    std::vector<const UOp*> stack{&u};
    int64_t ops = 0;
    while (!stack.empty()) {
      const UOp& node = *stack.back();
      stack.pop_back();
      ++ops;
      for (const UOp& s : node.src()) {
        if (decision_.stored[s.id()] || std::exchange(s.node()->visit, visit) == visit) continue;
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
      const auto users = users_.of(value);
      if (users.size() != 1 || is_forced(value)) return false;
      const UOp& user = *users.front();
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
      if (!(s == operand) && cone(s).reduces && !decision_.stored[s.id()]) return false;
    return true;
  }

  // Where all uses of a value meet again, each at the value's own index: the nearest elementwise
  // node through which all of them go, or a concatenation of values of one shape, which one kernel
  // stores side by side.
  void find_meetings() {
    for (size_t i = decision_.order.size(); i-- > 0;) {
      const UOp& u = decision_.order[i];
      const auto users = users_.of(u);
      if (const UOp* concat = decision_.slice(u); concat && has_parts_alike(*concat))
        meetings_[i] = {concat, 1};
      if (has_memory(u) || users.empty() || is_forced(u)) continue;
      if (!has(u.op(), kElementwise)) continue;
      const UOp* meeting = users.front();
      for (const UOp* user : users) {
        const bool same = has(user->op(), kElementwise) && !has_memory(*user);
        meeting = same ? common_meeting(meeting, user) : nullptr;
        if (!meeting) break;
      }
      if (meeting) meetings_[i] = {meeting, this->meeting(*meeting).depth + 1};
    }
  }

  static bool has_parts_alike(const UOp& concat) {
    return std::ranges::all_of(concat.src(), [&](const UOp& part) {
      return has(part.op(), kElementwise) && shape_of(part) == shape_of(concat.src(0));
    });
  }

  // The first that both are or meet at; null if there is none.
  const UOp* common_meeting(const UOp* a, const UOp* b) const {
    while (a && b && !(*a == *b)) {
      const UOp*& deeper = meeting(*a).depth >= meeting(*b).depth ? a : b;
      deeper = meeting(*deeper).node;
    }
    return a && b ? a : nullptr;
  }

  // How often an element of `u` would be computed if it had no buffer.
  double evaluations(const UOp& u) {
    double sum = 0;
    std::vector<std::pair<const UOp*, double>> stack;
    for (const UOp* user : users_.of(u)) stack.emplace_back(user, size_of(u));
    double own = std::max(size_of(u), 1.0);
    while (!stack.empty()) {
      const auto [at, n] = stack.back();
      const UOp& user = *at;
      stack.pop_back();
      if (has(user.op(), kMovement)) {
        const double grown =
            user.op() == Op::Expand ? n * size_of(user) / std::max(size_of(user.src(0)), 1.0) : n;
        for (const UOp* next : users_.of(user)) stack.emplace_back(next, grown);
        if (users_.of(user).empty()) sum += grown;
      } else {
        sum += user.op() == Op::Gather ? size_of(user) : n;
      }
    }
    return sum / own;
  }

  // Whether a value is repeated and then reduced: an operand of a product.
  bool is_contracted(const UOp& u) {
    const uint64_t visit = u.graph().next_visit();
    std::vector<std::pair<const UOp*, bool>> stack;  // and whether it was repeated on the way
    for (const UOp* user : users_.of(u)) stack.emplace_back(user, false);
    while (!stack.empty()) {
      const auto [user, repeated] = stack.back();
      stack.pop_back();
      if (user->op() == Op::ReduceAxis && repeated) return true;
      const bool goes_on =
          has(user->op(), kMovement) || (repeated && has(user->op(), kElementwise));
      if (!goes_on || has_memory(*user) || std::exchange(user->node()->visit, visit) == visit)
        continue;
      const bool grows = user->op() == Op::Expand && size_of(*user) > size_of(user->src(0));
      for (const UOp* next : users_.of(*user)) stack.emplace_back(next, repeated || grows);
    }
    return false;
  }

  // A product reads its operands tile by tile, and what it reads by an index is none: it is stored
  // where the product takes longer than that.
  bool hinders_product(const UOp& u) {
    if (!is_contracted(u)) return false;
    const double bytes = size_of(u) * static_cast<double>(u.dtype().bytes());
    return evaluations(u) * size_of(u) / target_.fma_rate > saved_seconds(bytes, target_);
  }

  bool worth_storing(const UOp& u, const Cone& cone) {
    const double saved =
        saved_seconds(size_of(u) * static_cast<double>(u.dtype().bytes()), target_);
    if (words_[users_.number(u)] / target_.fma_rate > saved) return true;
    if (cone.weight == 0 || meeting(u).node) return false;
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
    bool needed = is_forced(u) || u.op() == Op::Contiguous || u.op() == Op::Copy ||
                  u.op() == Op::After || u.op() == Op::Assign || u.op() == Op::Call;
    if (u.op() == Op::ReduceAxis) {
      cone.reduces = true;
      cone.weight = 0;
      needed |= !continues_into_user(u);
    } else if (has(u.op(), kElementwise)) {
      const bool continues =
          cone.reduces && words_[users_.number(u)] == 0 && continues_into_user(u);
      needed |= too_large || (cone.reduces ? !continues : worth_storing(u, cone));
    } else if (has(u.op(), kMovement)) {
      // What is reduced stops here, unless its only user goes on with it.
      needed |= (cone.reduces && !continues_into_user(u)) || too_large;
    } else if (u.op() == Op::Gather) {
      needed |= too_large || hinders_product(u);
    }
    if (needed) return store(u);
    cones_[users_.number(u)] = std::move(cone);
  }

  struct Meeting {
    const UOp* node = nullptr;
    int64_t depth = 0;  // how many follow
  };
  const Meeting& meeting(const UOp& u) const { return meetings_[users_.number(u)]; }

  const Target& target_;
  Decision decision_;
  Users users_;
  // By the numbers of users_.
  std::vector<Cone> cones_;
  std::vector<uint8_t> forced_;
  std::vector<double> words_;  // multiply-adds that are lost if it has no memory
  std::vector<Meeting> meetings_;
};

}  // namespace

Decision decide_stored(std::span<const UOp> outputs, const Target& target) {
  return Decider(outputs, target).run();
}

}  // namespace tiny
