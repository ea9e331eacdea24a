// A graph as an indented tree, for people: one node a line, what is used by several printed once.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "ir/uop.h"

namespace tiny {

// Below each root, its sources two columns to the right.  A node with several users has a number,
// "%3 =", and stands as "%3" after its first place; index expressions stand in the line of what
// they index.  `note` (may be empty) adds words to a line.  At most `lines_max` lines.
std::string tree_text(std::span<const UOp> roots,
                      const std::function<std::string(const UOp&)>& note = {}, int indent = 0,
                      size_t lines_max = 400);

}  // namespace tiny
