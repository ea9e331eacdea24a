// A build without the renderer of PTX.
#include "base/error.h"
#include "render/ptx/ptx.h"

namespace tiny {
namespace {

[[noreturn]] void refuse() {
  throw_error(Status::Unsupported, "this build of the library writes no PTX (TINY_CUDA was OFF)");
}

}  // namespace

bool has_ptx_renderer() {
  return false;
}

PtxTarget ptx_target(int, int) {
  refuse();
}

PtxTarget ptx_target(const std::string&) {
  refuse();
}

MatrixSet matrices_of(const PtxTarget&, bool) {
  refuse();
}

Code render_ptx(const LinearProgram&, const PtxTarget&) {
  refuse();
}

std::vector<Code> render_ptx_unit(std::span<const LinearProgram>, const PtxTarget&) {
  refuse();
}

}  // namespace tiny
