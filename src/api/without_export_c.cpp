// A build without the export to C: it answers that it is not there.
#include "api/boundary.h"

extern "C" {

tiny_status tiny_program_export_c(const tiny_program*, const char*, const char*) {
  return tiny::fail(__func__, tiny::Status::Unsupported,
                    "this build of the library does not export C (TINY_C was OFF)");
}

}  // extern "C"
