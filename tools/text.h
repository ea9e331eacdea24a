// Text for people: numbers, sizes and columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tiny::cli {

// "12.34", of milliseconds and the like.
std::string fixed(double value, int digits);
// The value in six digits or fewer: "0.485", "114".
std::string short_text(double value);
// "1.5 MiB".
std::string bytes_text(double bytes);
// The characters of a UTF-8 text.
size_t width_of(std::string_view text);
// Pads with spaces on the right, or on the left, to so many characters of UTF-8.
std::string left(std::string text, size_t width);
std::string right(std::string text, size_t width);
// Rows of cells as lines that begin with `indent`: every column as wide as its widest cell, two
// spaces apart, and to the right where the last row has a number in it.
std::string table(const std::vector<std::vector<std::string>>& rows, const std::string& indent);

}  // namespace tiny::cli
