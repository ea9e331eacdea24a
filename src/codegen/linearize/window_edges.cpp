#include "codegen/linearize/window_edges.h"

#include <algorithm>
#include <ranges>

namespace tiny {

namespace {

constexpr size_t kJumpedMin = 5;  // instances, for which a branch costs less than masks

// A few go with those that some of their edges leave out, under masks for the others.
std::vector<size_t> hosts_of(const std::vector<WindowSide>& sides) {
  std::vector<size_t> hosts(sides.size());
  for (size_t s = 1; s < sides.size(); ++s) {
    const auto is_own = [&](const Edge& edge) {
      return std::ranges::find(sides[s].edges, edge) != sides[s].edges.end();
    };
    const auto takes = [&](const WindowSide& side) {
      return side.count >= kJumpedMin && std::ranges::all_of(side.edges, is_own);
    };
    const auto host = std::ranges::find_if(sides | std::views::drop(1), takes);
    if (host != sides.end()) hosts[s] = static_cast<size_t>(host - sides.begin());
  }
  return hosts;
}

}  // namespace

WindowSides sides_of_window(const std::vector<UOp>& conditions, const EachInstance& each,
                            IndexForms& forms, Prover& prover) {
  WindowSides out;
  out.sides.resize(1);
  each([&](size_t) {
    std::vector<Edge> edges;
    for (const UOp& e : conditions) {
      if (prover.proven(e) || prover.impossible(e)) continue;
      const IndexForm& form = forms.form_of(e);
      if (form.lane == 0 && !form.vector_atom) edges.push_back({e, form.constant});
    }
    const auto same = std::ranges::find(out.sides, edges, &WindowSide::edges);
    const auto side = static_cast<size_t>(same - out.sides.begin());
    if (same == out.sides.end()) out.sides.push_back({std::move(edges)});
    ++out.sides[side].count;
    out.side_of.push_back(side);
  });
  out.stand_with = hosts_of(out.sides);
  return out;
}

}  // namespace tiny
