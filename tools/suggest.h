// "did you mean": the known name that was most likely meant by a mistyped one.
#pragma once

#include <string>
#include <vector>

namespace tiny::cli {

// "; did you mean 'input'?", or "" if no known name is near.
std::string did_you_mean(const std::string& given, const std::vector<std::string>& known);

}  // namespace tiny::cli
