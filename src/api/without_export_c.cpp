// A build without export_c.cpp: each of its functions answers that.  No handle of what they make
// exists, so calls that take one can only have got NULL.  Made by scripts/make-without.py.
#include "api/boundary.h"

namespace {

tiny_status refuse(const char* call) noexcept {
  return tiny::fail(call, tiny::Status::Unsupported,
                    "this build of the library does not export C (TINY_C was OFF)");
}

}  // namespace

extern "C" {

tiny_status tiny_program_export_c(const tiny_program*, const char*, const char*) {
  return refuse(__func__);
}

}  // extern "C"
