#include "codegen/choose/shared_values.h"

#include <optional>
#include <utility>
#include <vector>

#include "codegen/options/stage.h"
#include "ir/shared_value.h"

namespace tiny {

namespace {

constexpr int kSharedMax = 4;  // values of a row that are kept

// The numbers of the ranges inside a place that are registers and lanes of a value: those last, so
// that they lie side by side where it is kept.
std::vector<int64_t> lanes_of_value(const Editor& edit, int64_t value, size_t place) {
  FreeRanges free;
  add_free_ranges(edit.now(), edit.now().roots, free);
  const RangeSet own =
      free.at(topological(edit.now().roots).at(static_cast<size_t>(value)).node()) >> place
                                                                                          << place;
  std::vector<int64_t> list;
  for (const RangeKind kind : {RangeKind::Upcast, RangeKind::Vec})
    for (size_t i = place; i < edit.now().ranges.size(); ++i)
      if ((own & bit(i)) && edit.now().ranges[i].kind == kind)
        list.push_back(edit.now().ranges[i].range.int_arg());
  return list;
}

}  // namespace

void share_values(Editor& edit) {
  size_t place = 0;
  const size_t common = common_outer_ranges(edit.now());
  while (place < common && edit.now().ranges[place].kind == RangeKind::Loop) ++place;
  if (place == 0) return;
  for (int count = 0; count < kSharedMax; ++count) {
    const std::optional<SharedValue> shared =
        find_shared_value(edit.now(), place, kWorkWorthKeeping);
    if (!shared) return;
    Option option{OptionKind::Stage,
                  edit.now().ranges[place - 1].range.int_arg(),
                  shared->number,
                  lanes_of_value(edit, shared->number, place),
                  0,
                  true};
    const Kernel staged = apply_option(edit.now(), option);
    if (staged_bytes(staged) > edit.machine().l2_bytes / 2) return;
    edit.apply(std::move(option));
  }
}

}  // namespace tiny
