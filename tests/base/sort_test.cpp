#include "base/sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace tiny {
namespace {

using Item = std::pair<int, std::string>;

TEST(Sort, IsTheStandardLibrarysStableOne) {
  std::mt19937 random(3);
  for (size_t count = 0; count < 60; ++count) {
    std::vector<Item> items;
    for (size_t i = 0; i < count; ++i)
      items.emplace_back(random() % 10, std::to_string(i) + " beyond the short texts");
    std::vector<Item> up = items, down = items, wanted = items;
    sort_stable(up, {}, &Item::first);
    std::ranges::stable_sort(wanted, {}, &Item::first);
    EXPECT_EQ(up, wanted);
    sort_stable(down, [](const Item& a, const Item& b) { return a.first > b.first; });
    std::ranges::stable_sort(items, std::greater<>(), &Item::first);
    EXPECT_EQ(down, items);
  }
}

}  // namespace
}  // namespace tiny
