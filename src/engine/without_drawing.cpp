// A build that shows no nodes neither draws graphs nor keeps what a page would show of them.
#include "base/error.h"
#include "engine/draw.h"
#include "engine/recorder.h"

namespace tiny {

namespace {

[[noreturn]] void refuse(const char* what) {
  throw_error(Status::Unsupported, "this build of the library ", what, " (TINY_NODES was OFF)");
}

}  // namespace

std::string draw_tensors(std::span<const UOp>) {
  refuse("draws no graphs");
}

std::string draw_uops(std::span<const UOp>, const std::string&) {
  refuse("draws no graphs");
}

void Recorder::graph(std::span<const UOp>) {
}

void Recorder::graph_pass(const GraphPassNote&) {
}

void Recorder::begin_kernel(const Kernel&) {
}

void Recorder::pass(const PassTime&, const std::string&) {
}

void Recorder::rewrite(const RewriteStep&) {
}

void Recorder::lowered(const Kernel&, const CodegenResult&) {
}

void Recorder::rendered(const LinearProgram&, const std::string&, const std::string&) {
}

void Recorder::program(const Plan&) {
}

void Recorder::put(JsonWriter&) const {
  refuse("keeps no record");
}

}  // namespace tiny
