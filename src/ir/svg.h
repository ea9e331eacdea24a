// A graph as an SVG picture, laid out in layers: sources above their users.  No other program is
// needed, neither to draw it nor to lay it out; any browser shows it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tiny {

struct SvgNode {
  std::string title;   // first line
  std::string detail;  // second line; may be empty
  const char* colour = "#ffffff";
  std::vector<size_t> sources;  // numbers of nodes that stand before this one
};

// The picture's text.  `title` stands above it.
std::string layered_svg(const std::vector<SvgNode>& nodes, const std::string& title);

}  // namespace tiny
