// The known name that was most likely meant by a mistyped one, for messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tiny {

// "; did you mean \"beam\"?", or "" if no known name is near.
std::string did_you_mean(std::string_view given, const std::vector<std::string>& known);

}  // namespace tiny
