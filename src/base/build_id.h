// Which build this is.
#pragma once

#include <string>

namespace tiny {

// The identity that the linker gave the library (or the program that holds this code): different
// for any other code.  Empty if it gave none.
std::string build_id();

}  // namespace tiny
