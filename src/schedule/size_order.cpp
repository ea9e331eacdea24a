#include "schedule/size_order.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "schedule/scans.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// Kernels [first, end) that follow each other: those of one scan, or one.
struct Piece {
  size_t first = 0;
  size_t end = 0;
};

const ScanLoop* outermost(const ScheduledKernel& kernel) {
  return kernel.segment ? kernel.segment : kernel.scan;
}

std::vector<Piece> pieces_of(const std::vector<ScheduledKernel>& kernels) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const ScanLoop* loop = outermost(kernels[i]);
    if (i > 0 && loop && loop == outermost(kernels[i - 1]))
      pieces.back().end = i + 1;
    else
      pieces.push_back({i, i + 1});
  }
  return pieces;
}

using Places = std::vector<std::pair<const void*, bool>>;  // memory, and whether it is written

// The memory of a value; what moves in a scan, and the scan's results, count as the scan, which
// reads what its steps are made of.
void add_places(const UOp& value, bool is_written, Places& places) {
  if (!is_of_scan(value) || has_memory(value)) {
    const void* place =
        has_memory(value) ? static_cast<const void*>(memory_of(value)) : value.node();
    places.emplace_back(place, is_written);
    return;
  }
  places.emplace_back(scan_part(value).loop.get(), value.op() == Op::ScanStore);
  for (const UOp& source : value.src())
    if (value.op() != Op::ScanStore && source.op() != Op::ScanStore)
      add_places(source, false, places);
}

Places places_of(const ScheduledKernel& kernel, const std::vector<ScheduledScan>& scans) {
  Places places;
  for (size_t p = 0; p < kernel.values.size(); ++p)
    add_places(kernel.values[p], kernel.kernel.params[p].written, places);
  for (const ScheduledScan& scan : scans)
    if (scan.loop == kernel.scan || scan.loop == kernel.segment)
      for (const UOp& result : scan.results) add_places(result, true, places);
  return places;
}

// Whether two pieces may not change places: they touch the same memory, of which one writes it.
class Touched {
 public:
  void add(const Places& places) {
    for (const auto& [place, is_written] : places) {
      all_.insert(place);
      if (is_written) written_.insert(place);
    }
  }
  bool meets(const Places& places) const {
    return std::ranges::any_of(places, [&](const auto& one) {
      return written_.contains(one.first) || (one.second && all_.contains(one.first));
    });
  }

 private:
  std::unordered_set<const void*> all_, written_;
};

// Whether its kernel does, or there is memory of what it reads or stores once the size is known.
bool uses(const ScheduledKernel& kernel, const ComputedVariable& computed) {
  const auto is_of_size = [&](const UOp& value) {
    return depend_on(shape_of(value), computed.variable);
  };
  return std::ranges::count(kernel.kernel.variables, computed.variable) > 0 ||
         (computed.is_open && std::ranges::any_of(kernel.values, is_of_size));
}

void require_known_rounds(const ScheduledKernel& kernel, const UOp& variable) {
  for (const ScanLoop* loop : {kernel.scan, kernel.segment}) {
    if (!loop || loop->is_counted) continue;
    require(!depend_on({&loop->count, 1}, variable), Status::Unsupported,
            "a loop has as many rounds as \"", variable.variable_arg().name,
            "\", a size that the run computes");
  }
}

// The kernel that is the last to store the value; none if it has memory.
size_t storing(const std::vector<ScheduledKernel>& kernels, const UOp& value) {
  size_t found = SIZE_MAX;
  for (size_t i = 0; i < kernels.size(); ++i)
    for (const ScheduledStore& store : kernels[i].stores)
      if (store.destination == value) found = i;
  return found;
}

// Whether a kernel up to this one, or of the same scan, uses the variable.
bool is_used_until(const std::vector<ScheduledKernel>& kernels, size_t last,
                   const ComputedVariable& computed) {
  const ScanLoop* loop = outermost(kernels[last]);
  while (loop && last + 1 < kernels.size() && outermost(kernels[last + 1]) == loop) ++last;
  return std::any_of(kernels.begin(), kernels.begin() + static_cast<ptrdiff_t>(last) + 1,
                     [&](const ScheduledKernel& k) { return uses(k, computed); });
}

void order_by_size(Schedule& schedule, const ComputedVariable& computed) {
  std::vector<ScheduledKernel>& kernels = schedule.kernels;
  for (const ScheduledKernel& kernel : kernels) require_known_rounds(kernel, computed.variable);
  const size_t stores = storing(kernels, stored_value(computed));
  if (stores == SIZE_MAX || !is_used_until(kernels, stores, computed)) return;
  std::vector<ScheduledKernel> before, behind;
  Touched moved;
  for (const Piece& piece : pieces_of(kernels)) {
    const auto in_piece = [&](const auto& is) {
      return std::any_of(kernels.begin() + static_cast<ptrdiff_t>(piece.first),
                         kernels.begin() + static_cast<ptrdiff_t>(piece.end), is);
    };
    const bool is_moved = piece.first <= stores && in_piece([&](const ScheduledKernel& k) {
                            return uses(k, computed) || moved.meets(places_of(k, schedule.scans));
                          });
    require(!is_moved || stores >= piece.end, Status::Unsupported, "the size \"",
            computed.variable.variable_arg().name, "\" is found of what there is memory for once ",
            "it is known");
    const bool is_behind = piece.first > stores;
    // What was put off comes as soon as the size is there.
    if (is_behind && !behind.empty()) {
      std::ranges::move(behind, std::back_inserter(before));
      behind.clear();
    }
    for (size_t i = piece.first; i < piece.end; ++i) {
      if (is_moved) moved.add(places_of(kernels[i], schedule.scans));
      (is_moved ? behind : before).push_back(std::move(kernels[i]));
    }
  }
  std::ranges::move(behind, std::back_inserter(before));
  kernels = std::move(before);
}

}  // namespace

UOp stored_value(const ComputedVariable& computed) {
  UOp value = computed.value;
  while (has(value.op(), kMovement) && !has_memory(value)) value = UOp(value.src(0));
  return value;
}

void order_by_sizes(Schedule& schedule, std::span<const ComputedVariable> computed) {
  for (const ComputedVariable& one : computed) order_by_size(schedule, one);
}

}  // namespace tiny
