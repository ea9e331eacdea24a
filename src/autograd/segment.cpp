#include "autograd/segment.h"

#include <algorithm>

#include "ir/node_map.h"
#include "schedule/scans.h"
#include "schedule/schedule.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// What has no value of its own to be kept.
bool is_free(const UOp& node) {
  return node.op() == Op::Const || node.op() == Op::Variable || node.op() == Op::Iota;
}

bool is_kept(const UOp& node) {
  if (has_memory(node) || is_of_scan(node)) return true;
  switch (node.op()) {
    case Op::After:
    case Op::Assign:
    case Op::Call:
    case Op::Copy:
      return true;
    case Op::Alias:
      return alias_kind(node) == AliasKind::Recomputed || alias_kind(node) == AliasKind::Later;
    default:
      return false;
  }
}

}  // namespace

Segment computed_again(const UOp& alias, const UOp& after,
                       const std::function<bool(const UOp&)>& is_begin) {
  const std::span<const UOp> own = alias.src().subspan(1);
  const auto begins = [&](const UOp& u) {
    return is_kept(u) || is_begin(u) || std::ranges::find(own, u) != own.end();
  };
  Segment out;
  NodeTable<UOp> made;
  struct Frame {
    UOp node;
    size_t next = 0;
  };
  // The alias is of stored memory, which the value made again needs not.
  const UOp root = alias.src(0).op() == Op::Contiguous ? alias.src(0).src(0) : alias.src(0);
  std::vector<Frame> stack{{root}};
  std::vector<UOp> src;
  while (!stack.empty()) {
    Frame& top = stack.back();
    const UOp node = top.node;
    if (made.find(node.node())) {
      stack.pop_back();
      continue;
    }
    if (is_free(node)) {
      made.emplace(node.node(), node);
      continue;
    }
    if (begins(node)) {
      const UOp later = make_alias(node, AliasKind::Later, {&after, 1});
      made.emplace(node.node(), later);
      out.begins.push_back({node, later});
      continue;
    }
    if (top.next < node.src().size()) {
      const UOp& source = node.src(top.next++);
      stack.push_back({source});
      continue;
    }
    src.clear();
    for (const UOp& s : node.src()) src.push_back(made.at(s.node()));
    const OriginScope scope(node);
    made.emplace(node.node(), node.with_src(src));
  }
  out.value = made.at(root.node());
  return out;
}

}  // namespace tiny
