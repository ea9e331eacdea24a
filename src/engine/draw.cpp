#include "engine/draw.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "ir/svg.h"
#include "schedule/schedule.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// More nodes than this are no picture; the last ones, nearest to the outputs, are drawn.
constexpr size_t kNodesMax = 1500;

const char* colour_of(const UOp& u) {
  if (u.op() == Op::Buffer || u.op() == Op::Param || u.op() == Op::Load) return "#cfe3ff";
  if (u.op() == Op::Store || u.op() == Op::Assign) return "#ffd9a8";
  if (u.op() == Op::Reduce || u.op() == Op::ReduceAxis) return "#ffc7c7";
  if (u.op() == Op::Range || u.op() == Op::Variable) return "#e6d5ff";
  if (has(u.op(), kMovement)) return "#e4e4e4";
  if (has(u.op(), kElementwise)) return "#d8f2d0";
  return "#fff4c2";
}

bool in_label(const UOp& u) {
  return u.is_const();
}

// Constants stand in the lines of their users: as nodes they would tie the whole graph together.
std::string title_of(const UOp& u) {
  std::string title = info(u.op()).name;
  if (const std::string arg = arg_text(u); !arg.empty() && u.op() != Op::Load)
    title += " " + arg.substr(0, 48);
  for (const UOp& s : u.src())
    if (in_label(s)) title += " " + arg_text(s);
  return title;
}

template <class Detail>
std::string draw(std::span<const UOp> roots, bool (*stop)(const UOp&), const std::string& name,
                 Detail detail) {
  std::vector<UOp> order = topological(roots, stop);
  std::erase_if(order, [&](const UOp& u) {
    return in_label(u) && std::find(roots.begin(), roots.end(), u) == roots.end();
  });
  std::string title = cat(name, ": ", order.size(), " nodes");
  if (order.size() > kNodesMax) {
    title += cat(", the last ", kNodesMax, " of them");
    order.erase(order.begin(), order.end() - static_cast<std::ptrdiff_t>(kNodesMax));
  }
  std::unordered_map<const Node*, size_t> numbers;
  std::vector<SvgNode> nodes;
  for (const UOp& u : order) {
    SvgNode node{title_of(u), detail(u), colour_of(u), {}};
    if (!stop || !stop(u))
      for (const UOp& s : u.src())
        if (const auto at = numbers.find(s.node()); at != numbers.end())
          node.sources.push_back(at->second);
    numbers.emplace(u.node(), nodes.size());
    nodes.push_back(std::move(node));
  }
  return layered_svg(nodes, title);
}

}  // namespace

std::string draw_tensors(std::span<const UOp> outputs) {
  return draw(outputs, has_memory, "tensor graph", [](const UOp& u) {
    return cat(to_string(u.dtype()), " ", to_string(shape_of(u)),
               u.op() != Op::Buffer && has_memory(u) ? " in memory" : "");
  });
}

std::string draw_uops(std::span<const UOp> roots, const std::string& name) {
  return draw(roots, nullptr, name, [](const UOp& u) { return to_string(u.dtype()); });
}

}  // namespace tiny
