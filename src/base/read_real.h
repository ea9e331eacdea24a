// Reads floating-point numbers from text, the same in every locale.
#pragma once

#include <optional>
#include <string>

namespace tiny {

// The float or double next to the number that all of `text` is, in strtod's spellings: an infinity
// where it is beyond all of them, 0 where it is below.
template <class F>
std::optional<F> read_real(const std::string& text);

}  // namespace tiny
