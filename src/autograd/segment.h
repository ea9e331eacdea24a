// A part of a graph whose values are not kept for the gradient, but computed a second time.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "ir/uop.h"

namespace tiny {

// What an Alias{Recomputed} is made of, as nodes apart from those of the forward pass.  They are
// made of aliases of what the segment begins at, which wait until `after` is stored: so no kernel
// of theirs runs before, nor is one taken for a kernel of the forward pass.
struct Segment {
  UOp value;
  struct Begin {
    UOp node;
    UOp alias;
  };
  std::vector<Begin> begins;
};
// It begins at memory, at what is written, at results of loops and of the host, at what other
// aliases say of recomputing, at the alias's own sources behind the value, and where `is_begin`
// holds.
Segment computed_again(const UOp& alias, const UOp& after,
                       const std::function<bool(const UOp&)>& is_begin);

}  // namespace tiny
