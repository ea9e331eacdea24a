#include "base/error.h"

#include <cstring>

namespace tiny {

const char* status_name(Status status) {
  switch (status) {
#define STATUS(name, c_name, value, meaning) \
  case Status::name:                         \
    return #c_name;
#include "base/status.def"
  }
  return "UNKNOWN";
}

void fail_invariant(const char* what, const char* file, int line) {
  const char* slash = std::strrchr(file, '/');
  throw Error(Status::Internal, cat("internal error (a bug in libtiny): ", what, " at ",
                                    slash ? slash + 1 : file, ":", line));
}

}  // namespace tiny
