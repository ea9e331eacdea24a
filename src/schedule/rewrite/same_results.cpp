#include "schedule/rewrite/same_results.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "schedule/schedule.h"
#include "shape/shape.h"

namespace tiny {

bool is_result_of_loop(const UOp& node) {
  return node.op() == Op::Scan && !has_memory(node);
}

ChangedGraph same_results(std::span<const UOp> roots) {
  std::map<std::tuple<const ScanLoop*, ScanPart::Kind, size_t>, UOp> first;
  return rebuild_with_origins(roots, has_memory, [&](const UOp& node, const UOp& now) {
    if (!is_result_of_loop(node)) return now;
    const ScanPart& part = scan_part(now);
    const UOp& known =
        first.try_emplace({part.loop.get(), part.kind, part.index}, now).first->second;
    // Of a loop that was made anew in between the sources are others.
    return std::ranges::equal(known.src(), now.src()) ? known : now;
  });
}

}  // namespace tiny
