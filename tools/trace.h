// A trace in Chrome's JSON object format, which Perfetto opens.
#pragma once

#include <string>

#include "session.h"

namespace tiny::cli {

// Writes the phases one after the other, as they came, and after them the kernels of one timed
// execution.
void write_trace(const std::string& path, Session& session, double load_ms, double first_run_ms);

}  // namespace tiny::cli
