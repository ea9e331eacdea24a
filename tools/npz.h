// NumPy's archives: a zip file whose members are .npy files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "array.h"

namespace tiny::cli {

// Every array of the archive, under its member's name without ".npy".
std::vector<Array> read_npz(const std::string& path);
// Writes the arrays, deflated, under their names; bfloat16 is refused before.
void write_npz(const std::string& path, std::span<const Array> arrays);

// The array that a .npy file's bytes describe; `what` names it in messages.
Array parse_npy(std::span<const std::byte> file, const std::string& path, const std::string& what);
std::vector<std::byte> format_npy(const Array& array);

}  // namespace tiny::cli
