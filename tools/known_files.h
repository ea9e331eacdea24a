// What a file is that was given for a model, by its first bytes.
#pragma once

#include <string>

namespace tiny::cli {

// "a PNG picture", "a text", "a folder", "an empty file"; "" for what is not recognised, models
// included.
std::string known_kind(const std::string& path);

}  // namespace tiny::cli
