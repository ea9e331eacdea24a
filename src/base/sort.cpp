#include "base/sort.h"

#include <algorithm>
#include <numeric>

namespace tiny {

std::vector<uint32_t> sorted_places(size_t count, const void* items,
                                    bool (*is_before)(const void* items, uint32_t, uint32_t)) {
  std::vector<uint32_t> places(count);
  std::iota(places.begin(), places.end(), 0u);
  std::stable_sort(places.begin(), places.end(),
                   [&](uint32_t a, uint32_t b) { return is_before(items, a, b); });
  return places;
}

}  // namespace tiny
