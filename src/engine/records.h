// What was decided and done, as JSON, for tools and tests.
#pragma once

#include <span>
#include <string>

#include "engine/context.h"
#include "engine/program.h"
#include "ir/uop.h"

namespace tiny {

// {"kernels": [..]}: the kernels that realising `outputs` would launch now, in order, each with its
// name, ranges, options, operations, bytes, and the buffers that it reads and writes.  Nothing
// runs.  "computes" lists the ONNX nodes and named tensors that a kernel computes, or a part of.
std::string schedule_json(Context& context, std::span<const UOp> outputs);

// Store `store` of kernel `kernel` of that schedule, as the scheduler made it;
// Error{InvalidArgument} for one that is not there.
UOp scheduled_store(Context& context, std::span<const UOp> outputs, size_t kernel, size_t store);

// A list of the tape's kernels, as those of schedule_json but for the ranges.
std::string kernels_json(const Program& program);

// The run's last timed execution as a trace in Chrome's JSON object format: a complete event for
// each kernel.
std::string trace_json(const Run& run);

// What the context compiled, launched, allocated and copied since it began.  For any thread.
std::string counters_json(Context& context);

}  // namespace tiny
