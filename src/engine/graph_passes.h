// What the engine tells the passes over graphs (schedule/pipeline.h), and whom they tell.
#pragma once

#include "engine/context.h"
#include "schedule/pipeline.h"

namespace tiny {

// For a graph that runs once.
GraphPassContext graph_pass_context(Context& context);

}  // namespace tiny
