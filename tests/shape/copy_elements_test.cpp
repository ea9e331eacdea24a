// Elements of views, put in order, against an index for each.
#include "shape/copy_elements.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace tiny {
namespace {

using Numbers = std::vector<int64_t>;

template <class T>
void expect_copied(const Numbers& dims, const Numbers& strides, int64_t first) {
  std::vector<T> from(400);
  std::iota(from.begin(), from.end(), T{1});
  std::vector<T> want;
  Numbers at(dims.size());
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = first;
    for (size_t axis = 0; axis < dims.size(); ++axis) place += at[axis] * strides[axis];
    want.push_back(from[static_cast<size_t>(place)]);
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++at[axis] < dims[axis]) break;
      at[axis] = 0;
    }
  }
  std::vector<T> got(want.size());
  copy_elements(reinterpret_cast<std::byte*>(got.data()),
                reinterpret_cast<const std::byte*>(from.data() + first), sizeof(T), dims, strides);
  EXPECT_EQ(got, want) << ::testing::PrintToString(dims) << ::testing::PrintToString(strides);
}

template <class T>
void expect_all_copied() {
  expect_copied<T>({}, {}, 3);
  expect_copied<T>({5}, {1}, 0);
  expect_copied<T>({5}, {0}, 2);
  expect_copied<T>({4, 3}, {3, 1}, 1);
  expect_copied<T>({4, 3}, {1, 4}, 0);
  expect_copied<T>({4, 3}, {-3, -1}, 11);
  expect_copied<T>({2, 3, 4}, {12, 4, 1}, 5);
  expect_copied<T>({2, 3, 4}, {1, 8, 2}, 0);
  expect_copied<T>({2, 1, 4}, {100, 77, 3}, 0);
  expect_copied<T>({3, 1, 1}, {7, 5, 9}, 0);
  expect_copied<T>({2, 3, 4}, {0, 0, 1}, 2);
  expect_copied<T>({2, 0, 4}, {4, 4, 1}, 0);
  expect_copied<T>({2, 5, 3, 2}, {60, 6, 2, 1}, 0);
}

TEST(CopyElements, OfEverySize) {
  expect_all_copied<uint8_t>();
  expect_all_copied<uint16_t>();
  expect_all_copied<float>();
  expect_all_copied<double>();
}

TEST(CopyElements, RowMajorIsTold) {
  const Numbers dims{2, 1, 3};
  EXPECT_TRUE(is_row_major(dims, Numbers{3, 99, 1}));
  EXPECT_FALSE(is_row_major(dims, Numbers{4, 3, 1}));
  EXPECT_FALSE(is_row_major(dims, Numbers{3, 3, -1}));
  EXPECT_TRUE(is_row_major(Numbers{}, Numbers{}));
}

}  // namespace
}  // namespace tiny
