#include "render/ptx/adjacent_loads.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/sort.h"

namespace tiny::ptx {

namespace {

constexpr int64_t kMostBytes = 16;  // of one access of a thread

// What is loaded after it may be another value than before it.
bool ends_a_stretch(Op op) {
  switch (op) {
    case Op::Store:
    case Op::CopyAsync:
    case Op::WaitCopies:
    case Op::WaitMmas:
    case Op::Barrier:
    case Op::GroupFold:
    case Op::Loop:
    case Op::EndLoop:
    case Op::If:
    case Op::EndIf:
      return true;
    default:
      return false;
  }
}

}  // namespace

AdjacentLoads::AdjacentLoads(const LinearProgram& program, const AccessAlignment& alignment)
    : program_(program),
      alignment_(alignment),
      first_(program.ops.size()),
      set_(program.ops.size()),
      sets_(1) {
  scan();
}

void AdjacentLoads::scan() {
  // By address, index and element.
  using Key = std::pair<std::pair<LinearId, LinearId>, ScalarType>;
  std::map<Key, std::vector<LinearId>> open;
  const auto end = [&] {
    for (const auto& [key, loads] : open) join(loads);
    open.clear();
  };
  for (LinearId at = 0; at < program_.ops.size(); ++at) {
    const LinearOp& op = program_.ops[at];
    if (ends_a_stretch(op.op)) end();
    const bool is_element = op.op == Op::Load && op.dtype.lanes == 1 && op.count == 2;
    // What an accumulator is may change between two loads.
    if (!is_element || program_.ops[op.src[1]].op == Op::Accumulator ||
        program_.ops[op.src[0]].op == Op::Accumulator || op.dtype.is_bool())
      continue;
    open[{{op.src[0], op.src[1]}, op.dtype.scalar}].push_back(at);
  }
  end();
}

void AdjacentLoads::join(const std::vector<LinearId>& loads) {
  if (loads.size() < 2) return;
  std::vector<LinearId> order = loads;
  const auto place = [&](LinearId at) { return program_.ops[at].imm; };
  sort_stable(order, [&](LinearId a, LinearId b) { return place(a) < place(b); });
  const int64_t size = program_.ops[order.front()].dtype.bytes();
  for (size_t i = 0; i < order.size();) {
    size_t run = 1;
    while (i + run < order.size() &&
           place(order[i + run]) == place(order[i]) + static_cast<int64_t>(run) * size)
      ++run;
    int64_t lanes = 1;
    while (2 * lanes <= static_cast<int64_t>(run) && 2 * lanes * size <= kMostBytes &&
           alignment_.of(order[i]) % (2 * lanes * size) == 0)
      lanes *= 2;
    if (lanes > 1) {
      const auto begin = order.begin() + static_cast<std::ptrdiff_t>(i);
      sets_.emplace_back(begin, begin + lanes);
      const LinearId first = *std::min_element(sets_.back().begin(), sets_.back().end());
      for (const LinearId one : sets_.back()) first_[one] = first, set_[one] = sets_.size() - 1;
    }
    i += static_cast<size_t>(lanes);
  }
}

}  // namespace tiny::ptx
