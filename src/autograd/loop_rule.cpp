#include "autograd/loop_rule.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <unordered_set>
#include <utility>

#include "autograd/backward.h"
#include "autograd/shared_adjoints.h"
#include "base/error.h"
#include "base/sort.h"
#include "ir/build.h"
#include "ir/node_map.h"
#include "shape/shape.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/joining.h"
#include "tensor/movement.h"
#include "tensor/recurrence.h"

namespace tiny {

namespace {

using Changes = std::function<bool(const UOp&)>;
using Kind = ScanPart::Kind;

// Products of a sum from which on it takes longer to form it again than to store it and to read it:
// 8 bytes at some 10 GB/s against as many multiply-adds at some 80 a nanosecond.
constexpr int64_t kSumOfKept = 64;

bool is_long_sum(const UOp& u) {
  if (u.op() != Op::ReduceAxis || u.reduce_arg().op != Op::Add || u.src(0).op() != Op::Mul ||
      !u.dtype().is_float())
    return false;
  const Shape& shape = shape_of(u.src(0));
  int64_t products = 1;
  for (const int64_t axis : u.reduce_arg().axes)
    products *= lower_bound(shape[static_cast<size_t>(axis)]);
  return products >= kSumOfKept;
}

// What a step sees and makes.
class Body {
 public:
  explicit Body(const UOp& scan) : loop_(scan_part(scan).loop) {
    const size_t stores = loop_->stores();
    stores_.assign(scan.src().begin(), scan.src().begin() + static_cast<ptrdiff_t>(stores));
    for (const UOp& store : stores_) values_.push_back(store.src(0));
    std::unordered_set<const Node*> inside, found;
    for (const UOp& u : topological(values_)) {
      if (u.op() == Op::ScanStep && scan_part(u).loop == loop_) {
        steps_.push_back(u);
        inside.insert(u.node());
        continue;
      }
      if (std::ranges::none_of(u.src(), [&](const UOp& s) { return inside.contains(s.node()); }))
        continue;
      inside.insert(u.node());
      inside_.push_back(u);
      for (const UOp& s : u.src())
        if (!inside.contains(s.node()) && found.insert(s.node()).second) outside_.push_back(s);
    }
    // A value that no step changes, given as it is.
    for (const UOp& v : values_)
      if (!inside.contains(v.node()) && found.insert(v.node()).second) outside_.push_back(v);
  }

  const ScanLoop& loop() const { return *loop_; }
  const std::vector<UOp>& steps() const { return steps_; }      // ScanSteps
  const std::vector<UOp>& inside() const { return inside_; }    // made of those, in order
  const std::vector<UOp>& outside() const { return outside_; }  // what is the same in all steps
  const UOp& store(size_t i) const { return stores_[i]; }
  const UOp& value(size_t i) const { return values_[i]; }

  // The values, then `others` of the steps' nodes, with other nodes in the place of steps().
  std::vector<UOp> again(const std::vector<Tensor>& seen, const std::vector<UOp>& others) const {
    std::vector<std::pair<UOp, UOp>> replaced;
    for (size_t i = 0; i < steps_.size(); ++i) replaced.emplace_back(steps_[i], seen[i].node());
    std::vector<UOp> out;
    for (const UOp& v : values_) out.push_back(substitute(v, replaced));
    for (const UOp& u : others) out.push_back(substitute(u, replaced));
    return out;
  }
  // The result of all steps of an output.
  UOp result(size_t output) const { return make_scan(stores_, {loop_, Kind::Output, output}); }

 private:
  Ref<const ScanLoop> loop_;
  std::vector<UOp> stores_;
  std::vector<UOp> values_;
  std::vector<UOp> steps_;
  std::vector<UOp> inside_;
  std::vector<UOp> outside_;
};

class LoopRule {
 public:
  LoopRule(const Ref<Context>& context, const UOp& scan, const LoopAdjoints& reached,
           const Changes& changes)
      : context_(context), body_(scan), reached_(reached), changes_(changes) {
    for (const UOp& u : body_.outside())
      if (changes_(u)) shared_.add(u);
    find_changing_steps();
    find_unread_states();
  }

  std::vector<std::pair<UOp, Adjoint>> run() {
    find_history();
    for (size_t i = 0; i < body_.loop().outputs; ++i)
      if (reached_.outputs[i]) upstream_.push_back(i);
    std::ranges::copy_if(body_.inside(), std::back_inserter(long_sums_), is_long_sum);
    const auto step = [&](const RecurrenceStep& now) { return step_back(now); };
    if (!shared_.is_empty() || !long_sums_.empty()) recur_as_loop(context_, steps_back(), step);
    is_planned_ = true;
    if (!sums_.empty()) find_history();
    const RecurrenceResult made = recur(context_, steps_back(), step);
    std::vector<std::pair<UOp, Adjoint>> given;
    size_t output = 0, state = 0;
    for (const UOp& step : body_.steps()) {
      if (!is_changing(step)) continue;
      const Tensor& all =
          scan_part(step).kind == Kind::State ? made.state[state++] : made.outputs[output++];
      given.emplace_back(step.src(0), make_reshape(all.node(), shape_of(step.src(0))));
    }
    for (size_t i = 0; i < shared_.size(); ++i)
      given.emplace_back(shared_.node(i), shared_.is_state(i) ? Adjoint(made.state[state++].node())
                                                              : shared_.after(i, made.outputs));
    return given;
  }

 private:
  // The loop, from the last step on.
  Recurrence steps_back() const {
    const ScanLoop& loop = body_.loop();
    Recurrence r;
    r.steps = loop.count;
    for (const UOp& step : body_.steps()) r.sequences.push_back(seen_by(step));
    for (const size_t i : upstream_)
      r.sequences.push_back({tensor(reached_.outputs[i]), 0, !scan_part(body_.store(i)).reverse});
    r.sequences.insert(r.sequences.end(), sums_of_steps_.begin(), sums_of_steps_.end());
    for (const UOp& step : body_.steps()) {
      if (!is_changing(step)) continue;
      if (scan_part(step).kind == Kind::State)
        r.state.push_back(last_of(step));
      else
        r.is_backwards.push_back(scan_part(step).reverse ? 0 : 1);
    }
    r.is_backwards.resize(r.is_backwards.size() + shared_.kept());
    for (size_t i = 0; i < shared_.size(); ++i)
      if (shared_.is_state(i)) r.state.push_back(zeros_of(shared_.node(i)));
    for (const size_t k : unread_) r.state.push_back(tensor(reached_.states[k]));
    return r;
  }

  // A state changes if what it begins with does, or what a step makes of it: by what the step sees,
  // by other states too, however many steps later.
  void find_changing_steps() {
    for (const UOp& step : body_.steps())
      if (changes_(step)) changing_.insert(step.node());
    for (bool grows = true; std::exchange(grows, false);) {
      NodeSet moved;
      const auto moves = [&](const UOp& u) {
        return moved.contains(u.node()) || changing_.contains(u.node());
      };
      for (size_t i = 0; i < shared_.size(); ++i) moved.insert(shared_.node(i).node());
      for (const UOp& u : body_.inside())
        if (u.dtype().is_float() && std::ranges::any_of(u.src(), moves)) moved.insert(u.node());
      for (const UOp& step : body_.steps()) {
        const ScanPart& part = scan_part(step);
        if (part.kind != Kind::State || !step.dtype().is_float()) continue;
        if (moves(body_.value(body_.loop().outputs + part.index)))
          grows |= changing_.insert(step.node());
      }
    }
  }
  bool is_changing(const UOp& step) const { return changing_.contains(step.node()); }

  // States that no step reads: what reached the last one is the last step's alone.
  void find_unread_states() {
    for (size_t k = 0; k < body_.loop().states; ++k) {
      const bool is_read = std::ranges::any_of(body_.steps(), [&](const UOp& step) {
        return scan_part(step).kind == Kind::State && scan_part(step).index == k;
      });
      if (!is_read && reached_.states[k]) unread_.push_back(k);
    }
  }

  Tensor tensor(const UOp& node) const { return Tensor(context_, node); }
  Tensor zeros_of(const UOp& u) const { return full(context_, u.dtype(), shape_of(u), 0); }
  Tensor last_of(const UOp& step) const {
    const UOp& last = reached_.states[scan_part(step).index];
    return last ? tensor(last) : zeros_of(step);
  }
  Tensor first_of(const UOp& step) const {
    return tensor(make_reshape(step.src(0), shape_of(step)));
  }

  // What a step saw, in the order from the last step on.
  Sequence seen_by(const UOp& step) const {
    const ScanPart& part = scan_part(step);
    if (part.kind == Kind::State) return history_[part.index];
    Shape all = shape_of(step);
    all.insert(all.begin(), body_.loop().count);
    return {tensor(make_reshape(step.src(0), all)), 0, !part.reverse};
  }

  // The states before each step, what is an output anyway and else by the same steps again; these
  // keep sums_, too.
  void find_history() {
    const ScanLoop& loop = body_.loop();
    history_.assign(loop.states, {});
    std::vector<const UOp*> states;  // that steps read, by index: as the loop itself has them
    for (const UOp& step : body_.steps())
      if (scan_part(step).kind == Kind::State) states.push_back(&step);
    sort_stable(states, {}, [](const UOp* step) { return scan_part(*step).index; });
    std::vector<size_t> missing;  // of these
    for (size_t k = 0; k < states.size(); ++k) {
      Sequence& found = history_[scan_part(*states[k]).index];
      for (size_t i = 0; i < loop.outputs && !found.tensor; ++i)
        if (body_.value(i) == body_.value(loop.outputs + scan_part(*states[k]).index))
          found = before_each(*states[k], i);
      if (!found.tensor) missing.push_back(k);
    }
    if (missing.empty() && sums_.empty()) return;
    Recurrence again;
    again.steps = loop.count;
    for (const UOp* state : states) again.state.push_back(first_of(*state));
    for (const UOp& step : body_.steps()) {
      if (scan_part(step).kind == Kind::State) continue;
      Sequence s = seen_by(step);
      s.reverse = scan_part(step).reverse;
      again.sequences.push_back(std::move(s));
    }
    const RecurrenceResult made = recur(context_, again, [&](const RecurrenceStep& now) {
      std::vector<Tensor> seen;
      size_t input = 0;
      for (const UOp& step : body_.steps()) {
        const auto state = std::ranges::find(states, &step);
        seen.push_back(state == states.end()
                           ? now.inputs[input++]
                           : now.state[static_cast<size_t>(state - states.begin())]);
      }
      RecurrenceResult out;
      for (const size_t k : missing) out.outputs.push_back(now.state[k]);
      const std::vector<UOp> values = body_.again(seen, sums_);
      for (const UOp* state : states)
        out.state.push_back(tensor(values[loop.outputs + scan_part(*state).index]));
      for (size_t i = loop.stores(); i < values.size(); ++i)
        out.outputs.push_back(tensor(values[i]));
      return out;
    });
    for (size_t i = 0; i < made.outputs.size(); ++i) {
      const Sequence all{made.outputs[i], 0, true};
      if (i < missing.size())
        history_[scan_part(*states[missing[i]]).index] = all;
      else
        sums_of_steps_.push_back(all);
    }
  }

  // Of a state that is an output after each step.
  Sequence before_each(const UOp& step, size_t output) const {
    const Tensor after = tensor(body_.result(output));
    const Dim count = body_.loop().count;
    const Tensor first = unsqueeze(first_of(step), {0});
    if (scan_part(body_.store(output)).reverse)
      return {concat(std::vector{slice_axis(after, 0, 1, count), first}, 0), 0, false};
    return {concat(std::vector{first, slice_axis(after, 0, 0, count - 1)}, 0), 0, true};
  }

  RecurrenceResult step_back(const RecurrenceStep& now) {
    const ScanLoop& loop = body_.loop();
    const size_t steps = body_.steps().size();
    const std::vector<Tensor> seen(now.inputs.begin(),
                                   now.inputs.begin() + static_cast<ptrdiff_t>(steps));
    const std::vector<UOp> values = body_.again(seen, is_planned_ ? sums_ : long_sums_);
    std::vector<UOp> targets;
    for (size_t i = 0; i < steps; ++i)
      if (is_changing(body_.steps()[i])) targets.push_back(seen[i].node());
    size_t states = 0;  // of sums
    for (size_t i = 0; i < shared_.size(); ++i) {
      targets.push_back(shared_.node(i));
      states += shared_.is_state(i) ? 1 : 0;
    }
    Backward backward(context_, values, targets, Backward::Reach::ToTargets);
    for (size_t i = 0; i < upstream_.size(); ++i)
      backward.reach(values[upstream_[i]], Adjoint(now.inputs[steps + i].node()));
    size_t state = 0;
    for (const UOp& step : body_.steps())
      if (is_changing(step) && scan_part(step).kind == Kind::State)
        backward.reach(values[loop.outputs + scan_part(step).index],
                       Adjoint(now.state[state++].node()));
    for (size_t i = 0; i < unread_.size(); ++i)
      backward.reach(values[loop.outputs + unread_[i]],
                     Adjoint(now.state[state + states + i].node()));
    backward.run();
    RecurrenceResult out;
    for (size_t i = 0; i < steps; ++i) {
      const UOp& step = body_.steps()[i];
      if (!is_changing(step)) continue;
      const UOp slope = backward.of(seen[i].node());
      auto& list = scan_part(step).kind == Kind::State ? out.state : out.outputs;
      list.push_back(slope ? tensor(slope) : zeros_of(step));
    }
    for (size_t i = 0; i < shared_.size(); ++i) {
      if (!shared_.is_state(i)) continue;
      const UOp slope = backward.of(shared_.node(i));
      const Tensor& sum = now.state[state++];
      out.state.push_back(slope ? add(sum, tensor(slope)) : sum);
    }
    const auto sums = std::span(values).subspan(loop.stores());
    if (is_planned_) {
      shared_.keep(backward, out.outputs);
      read_sums(sums, std::span(now.inputs).subspan(steps + upstream_.size()), out);
    } else {
      shared_.plan(backward);
      find_read_sums(sums, out);
    }
    for (; state < now.state.size(); ++state)  // the steps before have none of it
      out.state.push_back(zeros_of(now.state[state].node()));
    return out;
  }

  // Which of the long sums, as they are in a step, its results are made of.
  void find_read_sums(std::span<const UOp> sums, const RecurrenceResult& results) {
    NodeSet found, wanted;
    for (const UOp& sum : sums) wanted.insert(sum.node());
    std::vector<UOp> left;
    for (const Tensor& t : results.outputs) left.push_back(t.node());
    for (const Tensor& t : results.state) left.push_back(t.node());
    while (!left.empty()) {
      const UOp u = std::move(left.back());
      left.pop_back();
      if (!found.insert(u.node()) || wanted.contains(u.node()) || u.op() == Op::ScanStep) continue;
      left.insert(left.end(), u.src().begin(), u.src().end());
    }
    for (size_t i = 0; i < sums.size(); ++i)
      if (found.contains(sums[i].node())) sums_.push_back(long_sums_[i]);
  }

  // The results read the sums of the steps instead of forming them again.
  void read_sums(std::span<const UOp> sums, std::span<const Tensor> kept,
                 RecurrenceResult& results) const {
    if (sums.empty()) return;
    std::vector<std::pair<UOp, UOp>> read;
    for (size_t i = 0; i < sums.size(); ++i) read.emplace_back(sums[i], kept[i].node());
    for (std::vector<Tensor>* list : {&results.outputs, &results.state})
      for (Tensor& t : *list) t = tensor(substitute(t.node(), read));
  }

  Ref<Context> context_;
  Body body_;
  const LoopAdjoints& reached_;
  const Changes& changes_;
  SharedAdjoints shared_;  // outside of the steps, of what is asked for
  bool is_planned_ = false;
  NodeSet changing_;            // of the body's steps
  std::vector<size_t> unread_;  // states of which something reached the last
  std::vector<Sequence> history_;
  std::vector<UOp> long_sums_;           // nodes of the body,
  std::vector<UOp> sums_;                // those that the adjoints of a step read,
  std::vector<Sequence> sums_of_steps_;  // and what they are in each
  std::vector<size_t> upstream_;         // outputs that something reached
};

}  // namespace

std::vector<std::pair<UOp, Adjoint>> loop_adjoints(const Ref<Context>& context, const UOp& scan,
                                                   const LoopAdjoints& reached,
                                                   const Changes& changes) {
  const ScanLoop& loop = *scan_part(scan).loop;
  require(!loop.is_counted && !loop.is_branch, Status::Unsupported, "a gradient through ",
          loop.is_branch ? "a branch" : "a loop whose steps are counted", " by the run");
  return LoopRule(context, scan, reached, changes).run();
}

}  // namespace tiny
