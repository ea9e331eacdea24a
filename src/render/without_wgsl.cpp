// A build without the renderer of WGSL.
#include "base/error.h"
#include "render/wgsl/wgsl.h"

namespace tiny {

bool has_wgsl_renderer() {
  return false;
}

std::string render_wgsl(const LinearProgram&) {
  throw_error(Status::Unsupported, "this build of the library writes no WGSL");
}

}  // namespace tiny
