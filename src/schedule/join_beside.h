// Joins of kernels side by side: two that read the same value over the same ranges, or one that
// reads what the other stores, become one kernel with several stores.
//
// The order of the kernels is kept but for what has to wait for the joined one.  What is saved is a
// launch and reading again what both read; what is paid is work that is done twice.
#pragma once

#include <cstdint>

#include "ir/target.h"
#include "schedule/decide.h"
#include "schedule/join.h"
#include "schedule/schedule.h"

namespace tiny {

// `before`: what was decided before; the joins are numbered after those, by the kernel that comes
// second.
void join_beside(Schedule& schedule, const Decision& decision, const Target& target,
                 const JoinSettings& settings, const Joins& before);

}  // namespace tiny
