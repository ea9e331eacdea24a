#include "schedule/live_bytes.h"

#include <algorithm>
#include <utility>

#include "ir/node_map.h"
#include "schedule/kernel_memory.h"
#include "shape/shape.h"

namespace tiny {

LiveBytes::LiveBytes(const std::vector<ScheduledKernel>& kernels,
                     const std::vector<size_t>& unit_of, const Decision& decision,
                     std::span<const UOp> outputs)
    : units_(kernels.size()) {
  const NodeSet kept = outputs_and_bases(outputs);
  const auto note = [&](std::vector<const Node*>& list, const UOp& node) {
    const UOp& base = decision.slot(node);
    if (has_memory(base) || kept.contains(base.node())) return false;
    values_[base.node()].bytes = bytes_of(base);
    if (std::ranges::find(list, base.node()) != list.end()) return false;
    list.push_back(base.node());
    return true;
  };
  for (size_t k = 0; k < kernels.size(); ++k) {
    Unit& unit = units_[unit_of[k]];
    for (const ScheduledStore& s : kernels[k].stores) note(unit.makes, s.destination);
    for (const ScheduledKernel::Read& read : kernels[k].reads)
      if (note(unit.reads, read.base))
        values_.at(decision.slot(read.base).node()).readers.push_back(unit_of[k]);
  }
  for (auto& [node, value] : values_) value.left = value.readers.size();
}

double LiveBytes::growth(std::span<const size_t> units) const {
  double bytes = 0;
  std::vector<const Node*> seen;
  for (const size_t u : units) {
    for (const Node* made : units_[u].makes) bytes += values_.at(made).bytes;
    for (const Node* read : units_[u].reads) {
      if (std::ranges::find(seen, read) != seen.end()) continue;
      seen.push_back(read);
      const Value& value = values_.at(read);
      const auto among = std::ranges::count_if(
          value.readers, [&](size_t r) { return std::ranges::find(units, r) != units.end(); });
      if (std::cmp_equal(among, value.left)) bytes -= value.bytes;
    }
  }
  return bytes;
}

void LiveBytes::run(size_t unit) {
  for (const Node* read : units_[unit].reads) --values_.at(read).left;
}

size_t LiveBytes::only_reader(size_t unit) const {
  if (units_[unit].makes.size() != 1) return kNone;
  const Value& made = values_.at(units_[unit].makes.front());
  return made.readers.size() == 1 ? made.readers.front() : kNone;
}

}  // namespace tiny
