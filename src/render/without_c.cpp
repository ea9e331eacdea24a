// A build without the renderer of C.
#include "base/error.h"
#include "render/c/c.h"

namespace tiny {
namespace {

[[noreturn]] void refuse() {
  throw_error(Status::Unsupported, "this build of the library writes no C (TINY_C was OFF)");
}

}  // namespace

bool has_c_renderer() {
  return false;
}

Code render_c(const LinearProgram&) {
  refuse();
}

std::string render_c_unit(std::span<const LinearProgram>) {
  refuse();
}

CUnit render_c_parts(std::span<const LinearProgram>, bool) {
  refuse();
}

}  // namespace tiny
