#include "base/nearest.h"

#include <algorithm>

#include "base/text.h"

namespace tiny {
namespace {

// The least number of characters to be put in, left out or replaced.
size_t edits(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string did_you_mean(std::string_view given, const std::vector<std::string>& known) {
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
  return nearest == nullptr ? "" : cat("; did you mean \"", *nearest, "\"?");
}

}  // namespace tiny
