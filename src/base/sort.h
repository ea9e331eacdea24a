// Sorting by one body for every type, for lists that are sorted now and then: the standard
// library's is compiled anew for each type and each order.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

namespace tiny {

// The places of `count` items in their order, equal ones as they stand; `is_before` says of two
// places whether the item at the first comes before the one at the second.
std::vector<uint32_t> sorted_places(size_t count, const void* items,
                                    bool (*is_before)(const void* items, uint32_t, uint32_t));

// As std::ranges::stable_sort.  What is sorted for every node or every candidate takes the standard
// library's.
template <class Items, class Less = std::less<>, class Key = std::identity>
void sort_stable(Items&& items, Less less = {}, Key key = {}) {
  auto* const first = std::data(items);
  const auto is_before = [&](uint32_t a, uint32_t b) -> bool {
    return std::invoke(less, std::invoke(key, first[a]), std::invoke(key, first[b]));
  };
  std::vector<uint32_t> place =
      sorted_places(std::size(items), &is_before, [](const void* compare, uint32_t a, uint32_t b) {
        return (*static_cast<const decltype(is_before)*>(compare))(a, b);
      });
  // Along each cycle of the places, an item changes with the one that belongs there.
  for (uint32_t i = 0; i < place.size(); ++i) {
    uint32_t at = i;
    for (; place[at] != i; at = std::exchange(place[at], at))
      std::swap(first[at], first[place[at]]);
    place[at] = at;
  }
}

}  // namespace tiny
