// Text for messages: `cat("dim ", 3, " of ", shape)` concatenates anything that streams.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tiny {

// The parts, streamed one after the other.
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  out.exceptions(std::ios::badbit);  // text is whole, or there is no memory for it
  (out << ... << parts);
  return out.str();
}

// "[2, 3, 4]".
std::string list_text(const std::vector<int64_t>& values);

// `items` joined by `separator`.
std::string join(const std::vector<std::string>& items, std::string_view separator);

}  // namespace tiny
