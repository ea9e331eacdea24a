// Reductions of what stands up to each element: where(k <= r, v[k], nothing) over k is, at step r,
// what it was at the step before and v[r], so that a value that runs along r (Running) takes its
// place, and n steps that of n * n.
#pragma once

#include "ir/kernel.h"

namespace tiny {

// Of a kernel that has no options yet, and no other reductions: those want loops of their own.  A
// range along which they run from its end is turned.
void run_reductions(Kernel& of);

}  // namespace tiny
