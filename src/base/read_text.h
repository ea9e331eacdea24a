// The text of small files that the system keeps, without the weight of a stream library.
#pragma once

#include <string>

namespace tiny {

// The first `bytes_max` bytes of the file; "" if it cannot be read.
std::string read_text(const std::string& path, size_t bytes_max = 4096);

}  // namespace tiny
