#include "schedule/decide.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "base/error.h"
#include "schedule/lower_winograd.h"
#include "schedule/rewrite/narrow_operands.h"
#include "schedule/schedule.h"
#include "schedule/users.h"
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

bool Decision::is_copied(const UOp& value, const UOp& destination) const {
  return destination.op() == Op::Concat && !(value == destination) &&
         (has_memory(value) || stored[value.id()]);
}

// A float made wider, in op_weight's operations: a conversion and a move of its lanes.
constexpr double kWideningWeight = 2;

double work_weight(const UOp& u) {
  const bool widens = u.op() == Op::Cast && u.src(0).dtype().is_narrow_float();
  return widens && u.dtype().is_float() ? kWideningWeight : op_weight(u.op());
}

double saved_seconds(double bytes, const Machine& machine) {
  return machine.launch_seconds + 2 * bytes / bandwidth_of(bytes, machine);
}

namespace {

// What is made of positions by so many operations costs no more than reading it would.
constexpr double kLightWeight = 8;
// What an element that is read by an index costs, in multiply-adds: a lane takes two cycles, which
// a multiply-add of a whole vector shares among its lanes and two units (cost/estimate.cpp).
constexpr double kGatheredWeight = 64;

// What a node adds to a kernel.
int64_t ops_of(const UOp& node) {
  return node.op() == Op::Winograd ? winograd_ops(winograd_transform(node)) : 1;
}

double operands_of_tile(const UOp& node) {
  const auto along = static_cast<double>(winograd_transform(node).operands());
  return along * along;
}

// What is known of a value that has no buffer (yet): the work below it down to the next buffers.
struct Cone {
  double weight = 0;  // per element
  bool transcendental = false;
  bool reduces = false;          // a reduction that is not stored
  bool contracts = false;        // one of them is a product's
  bool gathers = false;          // elements are read by an index
  std::vector<uint32_t> inputs;  // ids of buffers read, sorted
  int64_t ops = 0;
};

// What a product in words loses if a factor has no memory.
struct Words {
  double lost = 0;      // multiply-adds
  double slowness = 0;  // times that computing the factor takes longer
};

class Decider {
 public:
  Decider(std::span<const UOp> outputs, const Machine& machine)
      : machine_(machine),
        decision_(of_order(bodies_together(topological(outputs, has_memory), outputs), outputs)),
        users_(decision_.order),
        cones_(decision_.order.size()),
        forced_(decision_.order.size()),
        invariant_(decision_.order.size()),
        words_(decision_.order.size()),
        meetings_(decision_.order.size()) {
    if (decision_.order.empty()) return;
    decision_.stored.resize(decision_.order.front().graph().id_limit());
    find_slots();
    for (const UOp& u : decision_.order) find_words(u);
    for (const UOp& out : outputs) force_base(out);
    if (!decision_.bodies.empty()) find_invariants();
    for (const UOp& u : decision_.order)
      if (u.op() == Op::Assign && !has_memory(u)) find_update(u);
    // From the last on: what is placed in another is not looked at before.
    for (size_t i = decision_.order.size(); i-- > 0;) {
      const UOp& u = decision_.order[i];
      if ((u.op() == Op::Concat || u.op() == Op::Scatter) && !has_memory(u) && !writes_memory(u))
        place_parts(u);
    }
    find_meetings();
  }

  Decision run() {
    for (const UOp& u : decision_.order) visit(u);
    return std::move(decision_);
  }

 private:
  static Decision of_order(std::vector<UOp> order, std::span<const UOp> outputs) {
    Decision decision;
    decision.order = std::move(order);
    decision.bodies = ScanBodies(decision.order, outputs);
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

  // The machine multiplies bytes in words only where it reads them: what computing them on the way
  // costs their product.
  void find_words(const UOp& u) {
    const auto kind = has_memory(u) ? std::nullopt : dot_kind_of(u, machine_);
    if (!kind) return;
    const double products = elements_at_most(u.src(0));
    const double lost = products * (1 - 1 / static_cast<double>(dot_steps(*kind)));
    const auto lanes = static_cast<double>(machine_.lanes(kFloat32));
    for (const UOp& factor : u.src(0).src()) {
      const UOp cast = moved(factor);
      if (has_memory(cast)) continue;
      if (are_bits_of_memory(cast.src(0))) continue;
      const UOp value = moved(cast.src(0));
      Words& words = words_[users_.number(value)];
      words.lost += lost;
      // Lanes lie along the rows that a factor is computed for, if these fill them.
      const double rows = elements_at_most(value) * elements_at_most(u) / products;
      if (rows < lanes) words.slowness = lanes;
    }
  }

  // What a value is made of by movement, as far as the walk goes.
  static UOp moved(const UOp& value) {
    UOp node = value;
    while (has(node.op(), kMovement) && !has_memory(node)) node = UOp(node.src(0));
    return node;
  }

  // What is the same in all steps of a scan is computed once, before it.
  void find_invariants() {
    for (const UOp& u : decision_.order) {
      const ScanLoop* body = decision_.bodies.of(u);
      if (!body || body->is_branch || is_of_scan(u)) continue;
      for (const UOp& s : u.src()) {
        if (decision_.bodies.of(s) == body) continue;
        UOp base = moved(s);
        while (base.op() == Op::Cast && !has_memory(base)) base = moved(base.src(0));
        if (has(base.op(), kElementwise) && !has_memory(base)) invariant_[users_.number(base)] = 1;
      }
    }
  }

  // What must have memory for `out` to have a value somewhere.
  void force_base(const UOp& out) {
    UOp base = out;
    while (!has_memory(base) && has(base.op(), kMovement) && base.op() != Op::Pad &&
           !repeats_elements(base))
      base = UOp(base.src(0));
    // A chain that is no view of its base (a reshape that copies) is stored itself.
    uint8_t& stored = decision_.stored[base.id()];
    stored = 1;
    forced(as_view(out, decision_.stored) ? base : out) = 1;
    stored = 0;
  }

  // A scatter into what a write overwrites with it alone need only store its updates.
  void find_update(const UOp& write) {
    UOp value = write.src(1);
    while (value.op() == Op::Reshape && !has_memory(value)) value = UOp(value.src(0));
    if (value.op() != Op::Scatter || has_memory(value) || is_forced(value)) return;
    if (!is_used_once(write.src(1), value)) return;
    const auto data = as_view(value.src(0));
    const auto target = written_as(write, value);
    if (!data || !target || !(data->base == target->base) || !(data->view == target->view)) return;
    decision_.updates[write.node()] = value;
    in_memory_.insert(value.node());
  }
  bool writes_memory(const UOp& scatter) const { return in_memory_.contains(scatter.node()); }

  // Each part of a concatenation is stored into its slice, if it is nobody else's memory, and the
  // data of a scatter where they are updated.
  void place_parts(const UOp& whole) {
    forced(whole) = 1;
    const bool is_scatter = whole.op() == Op::Scatter;
    for (const UOp& source : whole.src().first(is_scatter ? 1 : whole.src().size())) {
      const UOp part = is_scatter ? scattered_into(whole) : source;
      if (has_memory(part) || part.op() == Op::Const || has(part.op(), kMovement)) continue;
      if (part.op() == Op::Concat || part.op() == Op::After || part.op() == Op::Call) continue;
      if ((part.op() == Op::Scatter && !is_scatter) || is_forced(part)) continue;
      if (is_of_scan(part) || decision_.bodies.of(part) != decision_.bodies.of(whole)) continue;
      if (!is_used_once(source, part)) continue;
      decision_.slices[part.node()] = whole;
    }
  }
  // Whether nobody else has the value, or what it was before it was reshaped.
  bool is_used_once(const UOp& value, const UOp& before) const {
    const UOp* u = &value;
    while (users_.of(*u).size() == 1 && !(*u == before)) u = &u->src(0);
    return users_.of(*u).size() == 1 && *u == before;
  }

  uint8_t& forced(const UOp& u) { return forced_[users_.number(u)]; }
  // Whether it has a buffer whatever is below it.
  bool is_forced(const UOp& u) const {
    return forced_[users_.number(u)] || decision_.slice(u) != nullptr;
  }
  const Cone& cone(const UOp& u) const { return cones_[users_.number(u)]; }

  void store(const UOp& u) {
    decision_.stored[u.id()] = 1;
    read_stored(u, u);
  }

  Cone cone_of(const UOp& u) {
    Cone cone;
    for (const UOp& s : u.src()) {
      const Cone& below = this->cone(s);
      cone.weight += below.weight;
      cone.ops += below.ops;
      cone.transcendental |= below.transcendental;
      cone.reduces |= below.reduces;
      cone.contracts |= below.contracts;
      cone.gathers |= below.gathers;
      add_inputs(cone, s);
    }
    cone.ops += ops_of(u);
    if (cone.ops >= machine_.most.ops && u.src().size() > 1) cone.ops = distinct_ops(u);
    if (has(u.op(), kElementwise)) {
      cone.weight += work_weight(u);
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
      ops += ops_of(node);
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
      if (elements_at_most(user) != elements_at_most(u)) return false;
      if (user.op() == Op::Contiguous || user.op() == Op::Assign) return true;
      if (has(user.op(), kElementwise)) return carries_alone(user, value);
      const bool moves = has(user.op(), kMovement) && !repeats_elements(user) &&
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
        meetings_[i] = {concat, jump_over(*concat), 1};
      if (has_memory(u) || users.empty() || is_forced(u)) continue;
      if (!has(u.op(), kElementwise)) continue;
      const UOp* meeting = users.front();
      for (const UOp* user : users) {
        const bool same = has(user->op(), kElementwise) && !has_memory(*user);
        meeting = same ? common_meeting(meeting, user) : nullptr;
        if (!meeting) break;
      }
      if (meeting) meetings_[i] = {meeting, jump_over(*meeting), this->meeting(*meeting).depth + 1};
    }
  }

  // Where what meets at `u` jumps to: so that from anywhere a logarithm of the depth of jumps and
  // steps leads to any meeting that follows.
  const UOp* jump_over(const UOp& u) const {
    const Meeting& own = meeting(u);
    const UOp* next = own.jump ? meeting(*own.jump).jump : nullptr;
    const bool doubles = next && own.depth - meeting(*own.jump).depth ==
                                     meeting(*own.jump).depth - meeting(*next).depth;
    return doubles ? next : &u;
  }

  static bool has_parts_alike(const UOp& concat) {
    return concat.op() == Op::Concat && std::ranges::all_of(concat.src(), [&](const UOp& part) {
             return has(part.op(), kElementwise) && shape_of(part) == shape_of(concat.src(0));
           });
  }

  // The first that both are or meet at; null if there is none.
  const UOp* common_meeting(const UOp* a, const UOp* b) const {
    const int64_t depth = std::min(meeting(*a).depth, meeting(*b).depth);
    a = meeting_at(a, depth);
    b = meeting_at(b, depth);
    while (!(*a == *b)) {
      const Meeting& of_a = meeting(*a);
      const Meeting& of_b = meeting(*b);
      if (!of_a.node) return nullptr;
      const bool is_apart = !(*of_a.jump == *of_b.jump);
      a = is_apart ? of_a.jump : of_a.node;
      b = is_apart ? of_b.jump : of_b.node;
    }
    return a;
  }

  // Of `u` and the meetings that follow, the one of this depth.
  const UOp* meeting_at(const UOp* u, int64_t depth) const {
    while (meeting(*u).depth > depth) {
      const UOp* jump = meeting(*u).jump;
      u = meeting(*jump).depth >= depth ? jump : meeting(*u).node;
    }
    return u;
  }

  // How often an element of `u` would be computed if it had no buffer.
  double evaluations(const UOp& u) {
    double sum = 0;
    std::vector<std::pair<const UOp*, double>> stack;
    for (const UOp* user : users_.of(u)) stack.emplace_back(user, elements_at_most(u));
    double own = elements_at_most(u);
    while (!stack.empty()) {
      const auto [at, n] = stack.back();
      const UOp& user = *at;
      stack.pop_back();
      if (has(user.op(), kMovement)) {
        const double grown =
            repeats_elements(user) ? n * elements_at_most(user) / elements_at_most(user.src(0)) : n;
        for (const UOp* next : users_.of(user)) stack.emplace_back(next, grown);
        if (users_.of(user).empty()) sum += grown;
      } else {
        sum += user.op() == Op::Gather     ? elements_at_most(user)
               : user.op() == Op::Winograd ? elements_at_most(user) * operands_of_tile(user)
                                           : n;
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
      if (user->op() == Op::Winograd || (user->op() == Op::ReduceAxis && repeated)) return true;
      const bool goes_on =
          has(user->op(), kMovement) || (repeated && has(user->op(), kElementwise));
      if (!goes_on || has_memory(*user) || std::exchange(user->node()->visit, visit) == visit)
        continue;
      const bool grows =
          repeats_elements(*user) && elements_at_most(*user) > elements_at_most(user->src(0));
      for (const UOp* next : users_.of(*user)) stack.emplace_back(next, repeated || grows);
    }
    return false;
  }

  // A product reads its operands tile by tile, and what it reads by an index is none: it is stored
  // where the product takes longer than that.
  bool hinders_product(const UOp& u) {
    if (!is_contracted(u)) return false;
    const double bytes = elements_at_most(u) * static_cast<double>(u.dtype().bytes());
    return evaluations(u) * elements_at_most(u) / machine_.fma_rate >
           saved_seconds(bytes, machine_);
  }

  // Whether it is made of positions by a few operations.
  static bool is_light(const Cone& cone) {
    return cone.inputs.empty() && cone.weight <= kLightWeight;
  }

  // Whether a sum's factors are both smaller than their product: each is wanted again.
  static bool is_contraction(const UOp& reduce) {
    const UOp& product = reduce.src(0);
    if (reduce.reduce_arg().op != Op::Add || product.op() != Op::Mul) return false;
    return elements_at_most(moved(product.src(0))) < elements_at_most(product) &&
           elements_at_most(moved(product.src(1))) < elements_at_most(product);
  }

  // What is read by an index and then meets a product's result is computed in the lanes of the
  // product's tiles unless it is stored: a join says whether these may read it so.
  void store_gathered_beside_products(const UOp& u) {
    const auto contracts = [&](const UOp& s) { return cone(s).contracts; };
    if (std::ranges::none_of(u.src(), contracts)) return;
    for (const UOp& s : u.src()) {
      if (!cone(s).gathers || cone(s).reduces) continue;
      const UOp value = moved(s);
      for (UOp at = s; !(at == value); at = UOp(at.src(0))) read_stored(at, value);
      store(value);
    }
  }

  void read_stored(const UOp& u, const UOp& stored) {
    Cone cone;
    cone.inputs = {stored.id()};
    cones_[users_.number(u)] = std::move(cone);
  }

  // A scatter's steps go one after the other, on one core mostly, and have lanes only beside them:
  // what is computed in them takes so much longer.
  bool slows_scatter(const UOp& scatter, const UOp& value) const {
    const Shape& shape = shape_of(scatter.src(2));
    double beside = 1;
    for (size_t i = static_cast<size_t>(scatter.reduce_arg().axes.front()) + 1; i < shape.size();
         ++i)
      beside *= static_cast<double>(upper_bound(shape[i]));
    const double lanes = std::min(beside, static_cast<double>(machine_.lanes(value.dtype())));
    const double alone = cone(value).weight * elements_at_most(value) / machine_.fma_rate;
    const double slower = static_cast<double>(machine_.lanes(kFloat32)) / lanes;
    const double bytes = elements_at_most(value) * static_cast<double>(value.dtype().bytes());
    return alone * (slower - 1.0 / machine_.cores) > saved_seconds(bytes, machine_);
  }

  bool worth_storing(const UOp& u, const Cone& cone) {
    const double elements = elements_at_most(u);
    const double bytes = elements * static_cast<double>(u.dtype().bytes());
    const double saved = saved_seconds(bytes, machine_) - machine_.launch_seconds +
                         launch_seconds_of(elements, machine_);
    const Words& words = words_[users_.number(u)];
    const double lost = words.lost + words.slowness * cone.weight * elements;
    if (words.lost > 0 && lost / machine_.fma_rate > saved) {
      decision_.words[u.node()] = lost;
      return true;
    }
    if (cone.weight == 0 || meeting(u).node) return false;
    if (is_light(cone) || (cone.inputs.empty() && is_uniform(u))) return false;
    const double n = evaluations(u);
    if (n <= 1.001) return false;
    if (cone.transcendental) return true;
    return cone.weight * elements * (n - 1) / machine_.fma_rate > saved;
  }

  // The same, or by its operation.
  bool is_always_stored(const UOp& u) const {
    return has_memory(u) || is_forced(u) || u.op() == Op::Contiguous || u.op() == Op::Copy ||
           u.op() == Op::After || u.op() == Op::Assign || u.op() == Op::Call || is_of_scan(u);
  }

  bool is_too_large(const Cone& cone) const {
    return static_cast<int64_t>(cone.inputs.size()) >= machine_.most.inputs - 1 ||
           cone.ops >= machine_.most.ops;
  }

  void store_what_slows(const UOp& scatter) {
    const bool too_large = is_too_large(cone_of(scatter));
    for (const UOp& s : scatter.src().subspan(1)) {
      const UOp value = moved(s);
      if (has_memory(value) || decision_.stored[value.id()] || value.src().empty()) continue;
      // Places are a few operations on integers, beside waiting for what they name.
      if (too_large || (s == scatter.src(2) && slows_scatter(scatter, value))) store(value);
    }
  }

  void visit(const UOp& u) {
    if (!has_memory(u) && has(u.op(), kElementwise)) store_gathered_beside_products(u);
    if (!has_memory(u) && u.op() == Op::Scatter) {
      store_what_slows(u);
      if (writes_memory(u)) return;  // its write's kernel has it
    }
    if (is_always_stored(u)) return store(u);
    Cone cone = cone_of(u);
    const bool too_large = is_too_large(cone);
    bool needed = invariant_[users_.number(u)] != 0 && !is_light(cone);
    if (u.op() == Op::ReduceAxis) {
      cone.reduces = true;
      cone.contracts |= is_contraction(u);
      cone.weight = 0;
      needed |= !continues_into_user(u);
    } else if (has(u.op(), kElementwise)) {
      const bool continues =
          cone.reduces && words_[users_.number(u)].lost == 0 && continues_into_user(u);
      needed |= too_large || (cone.reduces ? !continues : worth_storing(u, cone));
    } else if (has(u.op(), kMovement)) {
      // What is reduced stops here, unless its only user goes on with it.
      needed |= (cone.reduces && !continues_into_user(u)) || too_large;
    } else if (u.op() == Op::Gather) {
      cone.gathers = true;
      cone.weight += kGatheredWeight;
      needed |= too_large || hinders_product(u);
    }
    if (needed) return store(u);
    cones_[users_.number(u)] = std::move(cone);
  }

  struct Meeting {
    const UOp* node = nullptr;
    const UOp* jump = nullptr;  // that node, or one further on
    int64_t depth = 0;          // how many follow
  };
  const Meeting& meeting(const UOp& u) const { return meetings_[users_.number(u)]; }

  const Machine& machine_;
  Decision decision_;
  Users users_;
  // By the numbers of users_.
  std::vector<Cone> cones_;
  std::vector<uint8_t> forced_;
  std::vector<uint8_t> invariant_;  // of a scan that reads it
  std::vector<Words> words_;
  NodeSet in_memory_;  // scatters that writes do
  std::vector<Meeting> meetings_;
};

}  // namespace

std::optional<StoredView> written_as(const UOp& assign, const UOp& value) {
  return as_view(make_reshape(assign.src(0), shape_of(value)));
}

UOp scattered_into(const UOp& scatter) {
  UOp data = scatter.src(0);
  while (data.op() == Op::Reshape && !has_memory(data)) data = UOp(data.src(0));
  return data;
}

Decision decide_stored(std::span<const UOp> outputs, const Machine& machine) {
  return Decider(outputs, machine).run();
}

}  // namespace tiny
