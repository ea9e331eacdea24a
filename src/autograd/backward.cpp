#include "autograd/backward.h"

#include "autograd/loop_rule.h"
#include "autograd/rules.h"
#include "base/error.h"
#include "ir/build.h"
#include "shape/shape.h"

namespace tiny {

namespace {

bool is_of_loop(Op op) {
  return op == Op::Scan || op == Op::ScanStore || op == Op::ScanStep;
}

}  // namespace

Backward::Backward(const Ref<Context>& context, std::span<const UOp> losses,
                   std::span<const UOp> targets)
    : context_(context),
      order_(topological(losses)),
      depends_(context->graph().id_limit()),
      reached_(depends_.size()) {
  for (const UOp& t : targets) depends_[t.id()] = true;
  for (const UOp& u : order_) {
    if (!gradient_rule(u.op()).apply && !is_of_loop(u.op())) continue;
    for (const UOp& s : u.src()) depends_[u.id()] = depends_[u.id()] || changes(s);
  }
}

void Backward::reach(const UOp& node, Adjoint adjoint) {
  Adjoint& here = reached_[node.id()];
  here = here ? Adjoint(add(here.total(), adjoint.total())) : std::move(adjoint);
}

UOp Backward::of(const UOp& target) const {
  if (target.id() >= reached_.size() || !reached_[target.id()]) return UOp();
  return reached_[target.id()].total();
}

// Every user of a node comes before it: what reaches it is complete.
void Backward::run() {
  for (size_t i = order_.size(); i-- > 0;) {
    const UOp& node = order_[i];
    if (node.op() == Op::ScanStore) leave_loop(node);
    if (!depends_[node.id()] || !reached_[node.id()]) continue;
    const OriginScope origin(node);
    if (node.op() == Op::Scan)
      note_scan(node);
    else
      go_down(node);
  }
}

void Backward::go_down(const UOp& node) {
  const GradientRule& rule = gradient_rule(node.op());
  if (!rule.apply) return;
  std::vector<bool> wanted;
  bool any = false;
  for (const UOp& s : node.src()) {
    wanted.push_back(changes(s));
    any |= wanted.back();
  }
  if (!any) return;
  Step step(node, reached_[node.id()], wanted);
  rule.apply(step);
  for (size_t s = 0; s < wanted.size(); ++s)
    if (wanted[s] && step.given(s)) reach(node.src(s), step.given(s));
}

void Backward::note_scan(const UOp& scan) {
  const ScanPart& part = scan_part(scan);
  Loop& loop = loops_[part.loop.get()];
  loop.scan = scan;
  loop.outputs.resize(part.loop->outputs);
  loop.states.resize(part.loop->states);
  auto& list = part.kind == ScanPart::Kind::Last ? loop.states : loop.outputs;
  list[part.index] = reached_[scan.id()].total();
}

// All results of its loop come behind a store.
void Backward::leave_loop(const UOp& store) {
  const auto found = loops_.find(scan_part(store).loop.get());
  if (found == loops_.end()) return;
  const Loop loop = std::move(found->second);
  loops_.erase(found);
  const OriginScope origin(loop.scan);
  const LoopAdjoints upstream{loop.outputs, loop.states};
  const auto changes_here = [&](const UOp& u) { return changes(u); };
  for (auto& [source, adjoint] : loop_adjoints(context_, loop.scan, upstream, changes_here))
    reach(source, Adjoint(adjoint));
}

}  // namespace tiny
