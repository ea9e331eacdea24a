// A build for another processor: x86-64 machine code is not made, so backends take what any
// processor can run.
#include "base/error.h"
#include "render/x86/x86.h"

namespace tiny {
namespace {

[[noreturn]] void refuse() {
  throw_error(Status::Unsupported, "this build of the library makes no x86-64 machine code");
}

}  // namespace

Code render_x86(const LinearProgram&, const Target&) {
  refuse();
}

std::string x86_listing(const LinearProgram&, const Target&) {
  refuse();
}

}  // namespace tiny
