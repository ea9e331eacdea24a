#include "tensor/dependence.h"

#include <algorithm>
#include <utility>

#include "engine/compile.h"
#include "schedule/schedule.h"

namespace tiny {

Dependence Dependences::made_of(const UOp& node) const {
  Dependence out;
  out.on_input = is_input(node);
  out.on_variable = node.op() == Op::Variable;
  if (has_memory(node)) return out;
  const auto add = [&](const ScanLoop* loop) {
    if (!std::ranges::count(out.on_steps, loop)) out.on_steps.push_back(loop);
  };
  for (const UOp& s : node.src()) {
    const Dependence& source = *known_.find(s);
    out.on_input |= source.on_input;
    out.on_variable |= source.on_variable;
    out.on_elements |= source.on_elements;
    std::ranges::for_each(source.on_steps, add);
  }
  if (node.op() == Op::ScanStep) {
    add(scan_part(node).loop.get());
    out.on_elements = true;
  }
  if (out.on_variable && node.op() == Op::Variable)
    for (const auto& [variable, loop] : opened_)
      if (variable == node) add(loop);
  if (node.op() == Op::Scan) {
    std::erase(out.on_steps, scan_part(node).loop.get());
    out.on_elements &= !out.on_steps.empty();
  }
  return out;
}

const Dependence& Dependences::of(const UOp& root) {
  std::vector<UOp> waiting{root};
  while (!waiting.empty()) {
    const UOp node = waiting.back();
    const size_t before = waiting.size();
    if (!has_memory(node) && !known_.contains(node))
      for (const UOp& s : node.src())
        if (!known_.contains(s)) waiting.push_back(s);
    if (waiting.size() > before) continue;
    waiting.pop_back();
    if (!known_.contains(node)) known_.insert(node, made_of(node));
  }
  return *known_.find(root);
}

}  // namespace tiny
