// A number that an extremum is kept at: relu's 0, clip's ends.  It is an Alias of its own kinds, which
// gradients see and nothing else; the schedule drops it with the others.
#pragma once

#include "ir/uop.h"

namespace tiny {

// What the slope is where the value is equal to the number.
enum class Corner : uint8_t {
  Open,    // 0, as beyond it
  Closed,  // what it is within
};

UOp make_bound(const UOp& number, Corner corner);
bool is_bound(const UOp& node);
Corner corner_of(const UOp& bound);

}  // namespace tiny
