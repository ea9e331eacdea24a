#include "suggest.h"

#include <algorithm>
#include <cctype>

namespace tiny::cli {
namespace {

// The least number of characters to be put in, left out, replaced or swapped with their neighbour;
// capitals are no mistake.
size_t edits(const std::string& a, const std::string& b) {
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  };
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + !same(a[i - 1], b[j - 1])});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

}  // namespace

std::string did_you_mean(const std::string& given, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 200;  // the work grows as the square
  const std::string* nearest = nullptr;
  size_t least = given.size() / 3 + 2;  // one edit in three characters, and one more, is too many
  for (const std::string& name : known) {
    if (std::max(given.size(), name.size()) > kLongest) continue;
    const size_t distance = edits(given, name);
    if (distance >= least || distance >= name.size()) continue;
    least = distance;
    nearest = &name;
  }
  return nearest == nullptr ? "" : "; did you mean '" + *nearest + "'?";
}

}  // namespace tiny::cli
