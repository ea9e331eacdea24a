// The rule of a function of the host: another one, which its operator has for that.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "engine/context.h"
#include "ir/uop.h"

namespace tiny {

// What the call of `result`, one of its results, gives to its sources; `reached` has what reached
// the call's outputs, no node where nothing did.  Error{Unsupported} if its operator has no
// gradient.
std::vector<std::pair<UOp, UOp>> call_adjoints(const Ref<Context>& context, const UOp& result,
                                               std::span<const UOp> reached);

}  // namespace tiny
