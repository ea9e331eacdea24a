#include "codegen/choose/group_product.h"

#include <algorithm>

#include "codegen/choose/group_editor.h"

namespace tiny {

namespace {

constexpr double kSideMin = 16;  // of both sides of the result
constexpr double kStepsMin = 8;  // of the sum

class ProductFinder {
 public:
  explicit ProductFinder(const Seen& seen) : seen_(seen) {}

  std::optional<GroupProduct> run() const {
    const ClosureInfo* sum = largest();
    if (!sum) return std::nullopt;
    const RangeSet stored =
        stored_ranges(seen_.table) & seen_.table.free_of(sum->node) & ~ordered_ranges(seen_.kernel);
    const std::vector<double> bytes = bytes_beside(seen_.table);
    GroupProduct found;
    const auto column = longest(stored, [&](size_t i) { return is_column(i); });
    if (!column) return std::nullopt;
    found.column = *column;
    // What the row's operand reads, the column's does not, and the other way.
    const auto row = longest(stored & ~bit(*column), [&](size_t i) {
      return has_load([&](const AccessInfo& a) {
               return a.strides[i] != 0 && a.strides[*column] == 0;
             }) &&
             has_load(
                 [&](const AccessInfo& a) { return a.strides[i] == 0 && a.strides[*column] != 0; });
    });
    const auto step = longest(sum->own, [](size_t) { return true; });
    if (!row || !step) return std::nullopt;
    found.row = *row;
    found.step = *step;
    const auto& extents = seen_.table.extents;
    if (std::min(extents[found.row], extents[found.column]) < kSideMin) return std::nullopt;
    if (extents[found.step] < kStepsMin) return std::nullopt;
    for (const AccessInfo& a : seen_.table.accesses) {
      if (a.node.op() != Op::Load || a.strides[found.step] == 0) continue;
      const int64_t param = a.node.src(0).int_arg();
      if (std::ranges::find(found.params, param) == found.params.end())
        found.params.push_back(param);
    }
    return found;
  }

 private:
  const ClosureInfo* largest() const {
    const ClosureInfo* best = nullptr;
    for (const ClosureInfo* c : seen_.reductions)
      if (!best || steps_of(*c) > steps_of(*best)) best = c;
    return best;
  }
  double steps_of(const ClosureInfo& c) const {
    double n = 1;
    for (size_t i = 0; i < seen_.table.extents.size(); ++i)
      if (c.below & bit(i)) n *= seen_.table.extents[i];
    return n;
  }
  template <class Fits>
  std::optional<size_t> longest(RangeSet ranges, const Fits& fits) const {
    std::optional<size_t> best;
    for (size_t i = 0; i < seen_.table.extents.size(); ++i)
      if ((ranges & bit(i)) && fits(i) &&
          (!best || seen_.table.extents[i] > seen_.table.extents[*best]))
        best = i;
    return best;
  }
  // Stores lie side by side along it.
  bool is_column(size_t range) const {
    return std::ranges::any_of(seen_.table.accesses, [&](const AccessInfo& a) {
      return a.store && a.strides[range] == 1;
    });
  }
  template <class Fits>
  bool has_load(const Fits& fits) const {
    return std::ranges::any_of(seen_.table.accesses, [&](const AccessInfo& a) {
      return a.node.op() == Op::Load && a.inside_reduction && fits(a);
    });
  }

  const Seen& seen_;
};

}  // namespace

std::optional<GroupProduct> find_group_product(const Seen& seen) {
  if (seen.reductions.size() != 1) return std::nullopt;
  return ProductFinder(seen).run();
}

}  // namespace tiny
