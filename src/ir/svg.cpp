#include "ir/svg.h"

#include <algorithm>
#include <cmath>

#include "base/sort.h"
#include "base/text.h"

namespace tiny {

namespace {

constexpr double kLetter = 6.7;  // pixels, of the font below
constexpr double kHeight = 34;
constexpr double kLayerStep = 74;
constexpr double kGap = 14;
constexpr int kSweeps = 3;

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (static_cast<unsigned char>(c) >= 0x20)
      out += c;
  }
  return out;
}

class Layout {
 public:
  explicit Layout(const std::vector<SvgNode>& nodes)
      : nodes_(nodes), users_(nodes.size()), layer_(nodes.size()), x_(nodes.size()) {
    for (size_t n = 0; n < nodes.size(); ++n) {
      for (size_t s : nodes[n].sources) users_[s].push_back(n);
      for (size_t s : nodes[n].sources) layer_[n] = std::max(layer_[n], layer_[s] + 1);
    }
    depth_ = layer_;
    // As near to its users as they let it.
    for (size_t n = nodes.size(); n-- > 0;) {
      size_t first = SIZE_MAX;
      for (size_t u : users_[n]) first = std::min(first, layer_[u]);
      if (!users_[n].empty()) layer_[n] = first - 1;
    }
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (layers_.size() <= layer_[n]) layers_.resize(layer_[n] + 1);
      layers_[layer_[n]].push_back(n);
    }
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      for (auto& layer : layers_) move_below_sources(layer);
      for (size_t i = layers_.size(); i-- > 0;) move_above_users(layers_[i]);
    }
    const double left = nodes.empty() ? 0 : *std::min_element(x_.begin(), x_.end());
    for (size_t n = 0; n < nodes.size(); ++n) {
      x_[n] += kGap - left;
      width_ = std::max(width_, x_[n] + node_width(n) + kGap);
    }
  }

  double node_width(size_t n) const {
    const size_t letters = std::max(nodes_[n].title.size(), nodes_[n].detail.size());
    return kLetter * static_cast<double>(letters) + 12;
  }
  double x(size_t n) const { return x_[n]; }
  double centre(size_t n) const { return x_[n] + node_width(n) / 2; }
  double y(size_t n) const { return 40 + kLayerStep * static_cast<double>(layer_[n]); }
  double width() const { return width_; }
  double height() const { return 40 + kLayerStep * static_cast<double>(layers_.size()); }

 private:
  // Puts a layer's nodes in the order of their places, none left of where it wants to be, without
  // overlap.
  void settle(std::vector<size_t>& layer) {
    sort_stable(layer, [&](size_t a, size_t b) { return x_[a] < x_[b]; });
    for (size_t i = 1; i < layer.size(); ++i)
      x_[layer[i]] = std::max(x_[layer[i]], x_[layer[i - 1]] + node_width(layer[i - 1]) + kGap);
  }

  // The source at the end of the longest path: below it a node stands, so that what a network does
  // is a straight line; what feeds it from the side stands to its right.
  size_t main_source(size_t n) const {
    size_t best = nodes_[n].sources.front();
    for (size_t s : nodes_[n].sources)
      if (depth_[s] > depth_[best]) best = s;
    return best;
  }

  void move_below_sources(std::vector<size_t>& layer) {
    for (size_t n : layer)
      if (!nodes_[n].sources.empty()) x_[n] = centre(main_source(n)) - node_width(n) / 2;
    settle(layer);
  }

  void move_above_users(std::vector<size_t>& layer) {
    for (size_t n : layer) {
      if (users_[n].empty()) continue;
      const size_t user = users_[n].front();
      x_[n] = main_source(user) == n ? centre(user) - node_width(n) / 2
                                     : x_[user] + node_width(user) + kGap;
    }
    settle(layer);
  }

  const std::vector<SvgNode>& nodes_;
  std::vector<std::vector<size_t>> users_;
  std::vector<size_t> layer_;
  std::vector<size_t> depth_;  // the longest path from a leaf
  std::vector<double> x_;
  std::vector<std::vector<size_t>> layers_;
  double width_ = 200;
};

std::string number(double value) {
  return std::to_string(std::lround(value));
}

}  // namespace

std::string layered_svg(const std::vector<SvgNode>& nodes, const std::string& title) {
  const Layout layout(nodes);
  const std::string size =
      cat("width=\"", number(std::max(layout.width(), kLetter * static_cast<double>(title.size()))),
          "\" height=\"", number(layout.height()), "\"");
  std::string out = cat("<svg xmlns=\"http://www.w3.org/2000/svg\" ", size,
                        " font-family=\"monospace\" font-size=\"11\">\n"
                        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
                        "<text x=\"8\" y=\"20\" font-weight=\"bold\">",
                        escaped(title), "</text>\n<g fill=\"none\" stroke=\"#8a8f98\">\n");
  for (size_t n = 0; n < nodes.size(); ++n)
    for (size_t s : nodes[n].sources) {
      const std::string from = number(layout.centre(s));
      const std::string to = number(layout.centre(n));
      const double top = layout.y(s) + kHeight;
      const double middle = (top + layout.y(n)) / 2;
      out += cat("<path d=\"M", from, " ", number(top));
      out += cat("C", from, " ", number(middle), " ", to, " ", number(middle), " ", to, " ",
                 number(layout.y(n)), "\"/>\n");
    }
  out += "</g>\n";
  for (size_t n = 0; n < nodes.size(); ++n) {
    const SvgNode& node = nodes[n];
    const std::string x = number(layout.x(n));
    const std::string text_x = number(layout.x(n) + 6);
    out += cat("<g id=\"n", n, "\"><rect x=\"", x, "\" y=\"", number(layout.y(n)));
    out += cat("\" width=\"", number(layout.node_width(n)), "\" height=\"", number(kHeight),
               "\" rx=\"4\" fill=\"", node.colour, "\" stroke=\"#444444\"/>");
    out += cat("<text x=\"", text_x, "\" y=\"", number(layout.y(n) + 14), "\">",
               escaped(node.title), "</text>");
    out += cat("<text x=\"", text_x, "\" y=\"", number(layout.y(n) + 27), "\" fill=\"#555555\">",
               escaped(node.detail), "</text></g>\n");
  }
  return out + "</svg>\n";
}

}  // namespace tiny
