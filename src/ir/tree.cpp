#include "ir/tree.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/text.h"

namespace tiny {

namespace {

// An integer made of ranges, variables and constants.
bool is_index(const UOp& u) {
  if (u.dtype() != kInt64) return false;
  for (const UOp& below : topological({&u, 1}))
    if (!below.is_const() && below.op() != Op::Range && below.op() != Op::Variable &&
        !has(below.op(), kElementwise))
      return false;
  return true;
}

constexpr size_t kExpressionMax = 200;

// `u` in infix; "(..)" where it is long: a graph may hold more expression than can be printed.
std::string index_text(const UOp& u) {
  return topological({&u, 1}).size() > 40 ? "(..)" : expression_text(u);
}

class TreePrinter {
 public:
  TreePrinter(std::span<const UOp> roots, const std::function<std::string(const UOp&)>& note)
      : note_(note) {
    for (const UOp& u : topological(roots))
      for (const UOp& s : u.src()) ++users_[s.node()];
  }

  std::string run(std::span<const UOp> roots, int indent, size_t lines_max) {
    struct Frame {
      UOp node;
      int column;
    };
    std::vector<Frame> stack;
    for (size_t i = roots.size(); i-- > 0;) stack.push_back({roots[i], indent});
    std::string out;
    size_t lines = 0;
    while (!stack.empty()) {
      const Frame top = stack.back();
      stack.pop_back();
      if (++lines > lines_max)
        return out + cat(std::string(static_cast<size_t>(top.column), ' '), "..\n");
      out += std::string(static_cast<size_t>(top.column), ' ');
      const auto known = number_.find(top.node.node());
      if (known != number_.end()) {
        out += cat("%", known->second, "\n");
        continue;
      }
      out += line(top.node) + "\n";
      const std::vector<UOp> below = children(top.node);
      for (size_t i = below.size(); i-- > 0;) stack.push_back({below[i], top.column + 2});
    }
    return out;
  }

 private:
  // The sources that get lines of their own.
  static std::vector<UOp> children(const UOp& u) {
    switch (u.op()) {
      case Op::Load: {
        std::vector<UOp> out;  // an index that is data
        for (const UOp& s : u.src())
          if (s.op() != Op::Param && index_text(s) == "(..)") out.push_back(s);
        return out;
      }
      case Op::Store:
        return {u.src(1)};
      case Op::Reduce:
      case Op::Stage:
      case Op::Index:
        return {u.src(0)};
      case Op::Range:
        return {};
      default:
        break;
    }
    std::vector<UOp> out;
    if (is_index(u)) return out;
    for (const UOp& s : u.src())
      if (!is_index(s) || !short_enough(s)) out.push_back(s);
    return out;
  }

  static bool short_enough(const UOp& u) { return index_text(u).size() <= kExpressionMax; }

  static std::string list(const UOp& u, size_t from, size_t count) {
    std::vector<std::string> parts;
    for (size_t i = from; i < u.src().size() && i < from + count; ++i)
      parts.push_back(index_text(u.src(i)));
    return join(parts, ", ");
  }

  std::string line(const UOp& u) {
    std::string out;
    if (users_[u.node()] > 1 && !u.src().empty() && !is_index(u)) {
      const size_t n = number_.size();
      number_.emplace(u.node(), n);
      out = cat("%", n, " = ");
    }
    out += text(u);
    if (note_) out += note_(u);
    return out;
  }

  static std::string text(const UOp& u) {
    const char* symbol = info(u.op()).symbol;
    if (is_index(u)) return index_text(u);
    switch (u.op()) {
      case Op::Load:
        return cat("load p", u.src(0).int_arg(), "[", list(u, 1, u.view_arg().shape.size()), "] ",
                   to_string(u.dtype()));
      case Op::Store:
        return cat("store p", u.src(0).int_arg(), "[", list(u, 2, u.view_arg().shape.size()), "] ",
                   to_string(u.src(1).dtype()));
      case Op::Reduce:
        return cat("reduce ", info(u.reduce_arg().op).symbol, " over ", list(u, 1, 64));
      case Op::Stage:
        return cat("stage over ", list(u, 1, 64));
      case Op::Index:
        return cat("index [", list(u, 1, 64), "]");
      default:
        break;
    }
    std::string out = symbol;
    if (u.op() == Op::Cast || u.op() == Op::Bitcast) out += cat(" ", to_string(u.dtype()));
    if (u.op() == Op::Const) return cat(arg_text(u), " ", to_string(u.dtype()));
    const std::string arg = arg_text(u);
    if (!arg.empty()) out += " " + arg;
    for (const UOp& s : u.src())
      if (is_index(s) && short_enough(s)) out += " " + index_text(s);
    return out;
  }

  const std::function<std::string(const UOp&)>& note_;
  std::unordered_map<const Node*, size_t> users_;
  std::unordered_map<const Node*, size_t> number_;
};

}  // namespace

std::string tree_text(std::span<const UOp> roots,
                      const std::function<std::string(const UOp&)>& note, int indent,
                      size_t lines_max) {
  return TreePrinter(roots, note).run(roots, indent, lines_max);
}

}  // namespace tiny
