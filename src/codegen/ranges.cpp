#include "codegen/ranges.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "codegen/options/options.h"
#include "ir/build.h"
#include "rules/split_ranges.h"

namespace tiny {

namespace {

size_t first_index_of(const UOp& access) {
  return access.op() == Op::Store ? 2 : 1;
}

bool is_access(const UOp& u) {
  return u.op() == Op::Load || u.op() == Op::Store;
}

bool is_reduced(const Kernel& kernel, const UOp& range) {
  return kernel.ranges[kernel.position(range)].reduced;
}

// Divisors up to this may leave a rest, and so many may.
constexpr int64_t kTileMax = 8;
constexpr int kRestsMax = 8;

// Whether a load has the quotient and the remainder of `r` by `c` as indices: it lies in panels,
// the last of which may be a part of one, or the first.
bool is_read_in_panels(std::span<const UOp> order, const UOp& r, int64_t c) {
  const auto is = [&](const UOp& u, Op op) {
    return u.op() == op && u.src(0) == r && u.src(1).is_const_int(c);
  };
  return std::ranges::any_of(order, [&](const UOp& u) {
    if (u.op() != Op::Load) return false;
    const auto has_index = [&](Op op) {
      return std::ranges::any_of(u.src(), [&](const UOp& index) { return is(index, op); });
    };
    return has_index(Op::FloorDiv) && has_index(Op::FloorMod);
  });
}

// A range and the divisor at which to split it, though that leaves a rest: a short one by whose
// remainder values are chosen, or the width of panels.
std::optional<std::pair<UOp, int64_t>> find_divisor(const Kernel& kernel) {
  const std::vector<UOp> order = topological(kernel.roots);
  const auto chooses = [&](const UOp& remainder) {
    return std::any_of(order.begin(), order.end(), [&](const UOp& u) {
      return u.op() == Op::Where && u.src(0).op() == Op::Less && u.src(0).src(0) == remainder;
    });
  };
  for (const UOp& u : order) {
    const auto divided = divided_range(u);
    if (!divided || runs_along(order, divided->range)) continue;
    const auto& [r, c] = *divided;
    const bool tiles = c <= kTileMax && u.op() == Op::FloorMod && !is_reduced(kernel, r);
    if ((tiles && chooses(u)) || is_read_in_panels(order, u.src(0), c)) return std::pair(r, c);
  }
  return std::nullopt;
}

}  // namespace

Kernel split_at_divisors(const Kernel& kernel) {
  Kernel out = split_at_exact_divisors(kernel);
  for (int splits = 0; splits < kRestsMax; ++splits) {
    const auto found = find_divisor(out);
    if (!found) break;
    out = apply_option(out, {OptionKind::Tile, found->first.int_arg(), found->second, {}, 0});
    simplify_indices(out);
    out = split_at_exact_divisors(out);
  }
  return out;
}

namespace {

// Where `a` and `b` stand as whole indices of an access, if they stand nowhere else in it.
struct AxisPair {
  size_t a = 0;
  size_t b = 0;
};

enum class Use : uint8_t { None, Pair, Other };

Use use_of(const UOp& access, const UOp& a, const UOp& b, AxisPair* axes) {
  const ViewArg& view = access.view_arg();
  const size_t first = first_index_of(access);
  // The value stored may be a range itself.
  if (access.op() == Op::Store && (access.src(1) == a || access.src(1) == b)) return Use::Other;
  int uses_a = 0;
  int uses_b = 0;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    const UOp& e = access.src(first + i);
    if (e == a) {
      ++uses_a;
      axes->a = i;
    } else if (e == b) {
      ++uses_b;
      axes->b = i;
    } else if (reaches(e, a) || reaches(e, b)) {
      return Use::Other;
    }
  }
  for (size_t i = first + view.shape.size(); i < access.src().size(); ++i)
    if (reaches(access.src(i), a) || reaches(access.src(i), b)) return Use::Other;
  if (uses_a == 0 && uses_b == 0) return Use::None;
  if (uses_a != 1 || uses_b != 1) return Use::Other;
  const int64_t size_a = a.src(0).const_int();
  const int64_t size_b = b.src(0).const_int();
  const bool whole = view.shape[axes->a] == size_a && view.shape[axes->b] == size_b;
  const bool run = view.strides[axes->b] != kSymbolicDim &&
                   view.strides[axes->a] == view.strides[axes->b] * size_b;
  return whole && run ? Use::Pair : Use::Other;
}

// `order`: the kernel's nodes.
bool can_merge(const Kernel& kernel, const std::vector<UOp>& order, const UOp& a, const UOp& b) {
  if (!a.src(0).is_const() || !b.src(0).is_const()) return false;
  for (const UOp& fact : kernel.facts)
    if (reaches(fact, a) || reaches(fact, b)) return false;
  for (const UOp& u : order) {
    if (is_access(u)) {
      AxisPair axes;
      if (use_of(u, a, b, &axes) == Use::Other) return false;
      continue;
    }
    const bool has_a = std::find(u.src().begin(), u.src().end(), a) != u.src().end();
    const bool has_b = std::find(u.src().begin(), u.src().end(), b) != u.src().end();
    if (!has_a && !has_b) continue;
    if (u.op() == Op::Reduce && has_a && has_b) continue;
    return false;
  }
  return true;
}

void merge(Kernel& kernel, size_t at_a, size_t at_b) {
  const UOp a = kernel.ranges[at_a].range;
  const UOp b = kernel.ranges[at_b].range;
  Graph& graph = a.graph();
  const int64_t size_b = b.src(0).const_int();
  const UOp whole =
      graph.make(Op::Range, {graph.integer(a.src(0).const_int() * size_b)}, a.int_arg());
  map_kernel(kernel, [&](const UOp& u, std::vector<UOp>& src) {
    if (u == a || u == b) return whole;
    if (u.op() == Op::Reduce) {
      std::vector<UOp> unique{src[0]};
      for (size_t i = 1; i < src.size(); ++i)
        if (std::find(unique.begin() + 1, unique.end(), src[i]) == unique.end())
          unique.push_back(src[i]);
      return graph.make(Op::Reduce, std::move(unique), u.arg());
    }
    AxisPair axes;
    if (!is_access(u) || use_of(u, a, b, &axes) != Use::Pair) return u.with_src(src);
    ViewArg view = u.view_arg();
    view.shape[axes.b] *= view.shape[axes.a];
    const auto gone = static_cast<int64_t>(axes.a);
    view.shape.erase(view.shape.begin() + gone);
    view.strides.erase(view.strides.begin() + gone);
    src.erase(src.begin() + static_cast<int64_t>(first_index_of(u)) + gone);
    return graph.make(u.op(), src, std::move(view), u.dtype());
  });
  kernel.ranges[at_b].range = whole;
  kernel.ranges.erase(kernel.ranges.begin() + static_cast<int64_t>(at_a));
}

}  // namespace

Kernel merge_ranges(Kernel kernel) {
  const std::vector<KernelRange>& ranges = kernel.ranges;
  bool changed = true;
  while (changed && ranges.size() > 1) {
    changed = false;
    const std::vector<UOp> order = topological(kernel.roots);
    for (size_t i = 0; i < ranges.size() && !changed; ++i)
      for (size_t k = 0; k < ranges.size() && !changed; ++k) {
        if (i == k || ranges[i].reduced != ranges[k].reduced) continue;
        if (ranges[i].kind != RangeKind::Loop || ranges[k].kind != RangeKind::Loop) continue;
        if (!can_merge(kernel, order, ranges[i].range, ranges[k].range)) continue;
        merge(kernel, i, k);
        changed = true;
      }
  }
  return kernel;
}

}  // namespace tiny
