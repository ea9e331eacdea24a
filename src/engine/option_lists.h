// The setting `opts`: which optimisations are applied instead of those that the cost model chooses.
//
//   "TILE r0 8; VEC r3"         for every kernel that is not named
//   "NAME: TILE r0 8; VEC r3"   for the kernels of this name; "NAME: none": none are applied
//   "@FILE"                     what TINY_DEBUG=3 has told: its lines "options NAME: .." count
//
// Entries are lines.  A name is that of the loops as the scheduler made them, r_64_55_55_3_3, with
// or without a point and the hash of the kernel's structure; the one with the hash comes first.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel.h"

namespace tiny {

// The name by which a list belongs to one structure: r_64_55_55_3_3.0f3a9c41.
std::string structure_name(const Kernel& kernel);

// The text of the setting; of "@FILE" the lists of the file.  Error{Io} if it cannot be read,
// Error{InvalidArgument} if it has none.
std::string option_text(const std::string& setting);

class OptionLists {
 public:
  // Error{InvalidArgument} that names the entry, and what is wrong with it.
  explicit OptionLists(std::string_view text);

  bool empty() const { return lists_.empty(); }
  // The list for a kernel; null: none is given.
  const std::string* find(const Kernel& kernel);
  // The names that no kernel had so far.
  std::vector<std::string> unused() const;

 private:
  void add(std::string_view name, std::string_view list);

  std::map<std::string, std::string, std::less<>> lists_;  // "": those that have no name
  std::set<std::string> used_;
};

}  // namespace tiny
