// The least that a kernel can take on one core of a target: what its arithmetic takes in full
// vectors, or what it reads and writes once, from the cache that holds all of it.
#pragma once

#include "cost/access_table.h"
#include "cost/machine.h"

namespace tiny {

double limit_seconds(const AccessTable& table, const Machine& target);

}  // namespace tiny
