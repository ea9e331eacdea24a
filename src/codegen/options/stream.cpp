#include "codegen/options/stream.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "codegen/linearize/needed_terms.h"
#include "ir/affine.h"
#include "ir/bounds.h"
#include "ir/build.h"
#include "ir/shared_value.h"
#include "rules/decompositions.h"

namespace tiny {

namespace {

using Renaming = std::vector<std::pair<UOp, UOp>>;

// A reduction that runs along the loop.
struct Member {
  UOp reduce;
  UOp running;
  UOp before;
  // What stands for it in exponents.
  UOp now_bounded;
  UOp before_bounded;
  UOp last_bounded;
  UOp last;  // the finished value
};

// new - old of an exponent: for each member its factor.
using Difference = std::vector<std::pair<const Member*, double>>;

// Which values of members a correction goes from and to.
enum class Step : uint8_t { BeforeToNow, BoundedToLast };

UOp bounded(const UOp& value, Op fold) {
  Graph& graph = value.graph();
  const double finite = value.dtype() == kFloat64 ? 0x1.fffffffffffffp+1023 : 0x1.fffffep+127;
  if (fold == Op::Max) return maximum(value, graph.constant(value.dtype(), -finite));
  return minimum(value, graph.constant(value.dtype(), finite));
}

bool is_extremum(const UOp& reduce) {
  const Op op = reduce.reduce_arg().op;
  const bool is_wide = reduce.dtype() == kFloat32 || reduce.dtype() == kFloat64;
  return (op == Op::Max || op == Op::Min) && is_wide;
}

class Streamer {
 public:
  Streamer(const Kernel& kernel, int64_t number, int64_t block)
      : kernel_(kernel), block_(block), order_(topological(kernel.roots)) {
    add_free_ranges(kernel, kernel.roots, free_);
    first_ = kernel.find_range(number);
  }

  // Why the kernel has nothing to stream; null if it has.
  const char* find_members() {
    if (first_ == kernel_.ranges.size()) return "it has no such range";
    const UOp size = kernel_.ranges[first_].range.src(0);
    if (bounds(size).lo < 1) return "the range may have no steps";
    if (block_ < 1 || bounds(size).hi <= block_) return "a block is a part of the range";
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if (kernel_.ranges[i].reduced) reduced_ |= bit(i);
    if (!kernel_.prefetches.empty()) return "something is prefetched";
    for (const UOp& u : order_) {
      if (u.op() == Op::Running) return "values run along a loop already";
      if (u.op() != Op::Reduce || u.src().size() != 2 || !(u.src(1).src(0) == size)) continue;
      if (free_.at(u.node()) & reduced_) continue;
      reductions_.push_back(u);
    }
    const UOp& range = kernel_.ranges[first_].range;
    if (std::ranges::none_of(reductions_, [&](const UOp& u) { return u.src(1) == range; }))
      return "no reduction of rows closes the range alone";
    for (const UOp& u : reductions_)
      for (const UOp& r : u.src().subspan(1)) {
        const size_t at = kernel_.position(r);
        if (kernel_.ranges[at].kind != RangeKind::Loop) return "a range has a kind already";
        ranges_ |= bit(at);
      }
    for (const UOp& u : order_)
      if (closes_ranges(u) && std::ranges::find(reductions_, u) == reductions_.end())
        for (const UOp& r : u.src().subspan(1))
          if (ranges_ & bit(kernel_.position(r))) return "something else closes such a range";
    for (const UOp& fact : kernel_.facts)
      if (free_of(fact) & ranges_) return "such a range is a part of another";
    return nullptr;
  }

  // With all members that the algebra allows; their number is that of members().
  Kernel run() {
    make_ranges();
    find_needed();
    members_.reserve(reductions_.size());
    Renaming finished;
    for (const UOp& u : reductions_)
      if (make_member(u)) finished.emplace_back(u, members_.back().last);
    Kernel out = kernel_;
    for (UOp& root : out.roots) root = substitute(root, finished);
    const UOp size = kernel_.ranges[first_].range.src(0);
    RangeSet streamed = 0;
    for (const Member& m : members_) streamed |= bit(kernel_.position(m.reduce.src(1)));
    RangeSet left = 0;  // what reductions that are none of them close
    for (const UOp& u : topological(out.roots))
      if (u.op() == Op::Reduce)
        for (const UOp& r : u.src().subspan(1))
          if (find(r) != kernel_.ranges.size()) left |= bit(find(r));
    std::vector<KernelRange> ranges;
    bool is_first = true;
    for (size_t i = 0; i < kernel_.ranges.size(); ++i) {
      if (!(streamed & bit(i)) || (left & bit(i))) ranges.push_back(kernel_.ranges[i]);
      if (!(streamed & bit(i))) continue;
      if (is_first) ranges.push_back({blocks_, RangeKind::Loop, true});
      is_first = false;
      const UOp& inner = inner_[i];
      ranges.push_back({inner, RangeKind::Loop, true});
      if (!size.is_const() || size.const_int() % block_ != 0)
        out.facts.push_back(add(sub(size, sum_of_block(inner)), -1));
    }
    out.ranges = std::move(ranges);
    return out;
  }

  const std::vector<Member>& members() const { return members_; }
  bool is_whole() const { return members_.size() == reductions_.size(); }
  // Whether blocks at the end may be left out, by what else the rows are.
  bool is_bounded() const { return !needed_.is_const(); }

 private:
  RangeSet free_of(const UOp& u) const {
    FreeRanges known;
    add_free_ranges(kernel_, {&u, 1}, known);
    return known.at(u.node());
  }
  size_t find(const UOp& range) const { return kernel_.find_range(range.int_arg()); }
  UOp sum_of_block(const UOp& inner) const { return add(mul(blocks_, block_), inner); }

  void make_ranges() {
    Graph& graph = kernel_.roots.front().graph();
    const UOp size = kernel_.ranges[first_].range.src(0);
    const UOp count = size.is_const() ? graph.integer(ceil_div(size.const_int(), block_))
                                      : floor_div(add(size, block_ - 1), block_);
    int64_t next = kernel_.next_range_number();
    blocks_ = graph.make(Op::Range, {count}, next++);
    inner_.resize(kernel_.ranges.size());
    for (size_t i = 0; i < kernel_.ranges.size(); ++i)
      if (ranges_ & bit(i)) inner_[i] = graph.make(Op::Range, {graph.integer(block_)}, next++);
  }

  // What is >= 0 for blocks that any reduction has terms in; a constant if that is not known.
  void find_needed() {
    needed_ = blocks_.graph().integer(0);
    const auto compares = [](const UOp& u) {
      return (u.op() == Op::Less || u.op() == Op::LessEqual) && u.src(0).dtype() == kInt64;
    };
    if (std::ranges::none_of(order_, compares)) return;
    std::vector<UOp> common;
    for (const UOp& u : reductions_) {
      const std::vector<UOp> own = needed_in_blocks(u);
      if (u == reductions_.front()) common = own;
      std::erase_if(common, [&](const UOp& e) { return std::ranges::find(own, e) == own.end(); });
    }
    if (!common.empty()) needed_ = common.front();
  }

  // Conditions that a block's first step meets if any of its steps does.
  std::vector<UOp> needed_in_blocks(const UOp& reduce) const {
    const UOp& range = reduce.src(1);
    std::vector<UOp> out;
    for (const UOp& e : needed_terms(reduce.src(0), reduce.reduce_arg().op))
      if (affine(e)->coefficient(range) < 0)
        out.push_back(substitute(e, {{range, mul(blocks_, block_)}}));
    return out;
  }

  const Member* member_of(const UOp& u) const {
    const auto is_it = [&](const Member& m) { return m.reduce == u; };
    const auto found = std::ranges::find_if(members_, is_it);
    return found == members_.end() ? nullptr : &*found;
  }
  // Whether a value is made of a member's.
  bool mentions(const UOp& u) const {
    return std::ranges::any_of(members_, [&](const Member& m) { return reaches(u, m.reduce); });
  }

  // A factor that was rounded to fewer bits (a weight of a product of matrices) is its own factors
  // where some of them leave the sum: what stays is rounded.
  template <class Leaves>
  void add_factors(const UOp& value, const Leaves& leaves, std::vector<UOp>& factors) const {
    std::vector<UOp> stack{value};
    while (!stack.empty()) {
      const UOp u = std::move(stack.back());
      stack.pop_back();
      if (is_rounding(u) && mentions(u)) {
        add_rounded(u, value.dtype(), leaves, factors);
        continue;
      }
      if (u.op() != Op::Mul || !mentions(u) || exponent_of(u)) {
        factors.push_back(u);
        continue;
      }
      stack.push_back(u.src(1));
      stack.push_back(u.src(0));
    }
  }
  static bool is_rounding(const UOp& u) {
    return u.op() == Op::Cast && u.dtype().is_float() && u.src(0).dtype().is_float();
  }
  template <class Leaves>
  void add_rounded(const UOp& rounded, DType dtype, const Leaves& leaves,
                   std::vector<UOp>& factors) const {
    UOp exact = rounded;
    while (is_rounding(exact)) exact = UOp(exact.src(0));
    std::vector<UOp> all, inside;
    if (exact.dtype() == dtype) add_factors(exact, leaves, all);
    for (const UOp& f : all)
      if (!leaves(f)) inside.push_back(f);
    if (inside.empty() || inside.size() == all.size()) {
      factors.push_back(rounded);
      return;
    }
    factors.push_back(substitute(rounded, {{exact, product_of(rounded.graph(), inside)}}));
    std::ranges::copy_if(all, std::back_inserter(factors), leaves);
  }

  // What of a sum's value depends on its range, and what is multiplied with the finished sum.
  struct Factors {
    UOp inside;
    UOp outside;  // no node if there is none
    UOp divisor;  // the same
  };
  Factors take_out(const UOp& reduce) const {
    Factors out{UOp(reduce.src(0)), {}, {}};
    if (reduce.reduce_arg().op != Op::Add || !reduce.dtype().is_float()) return out;
    const RangeSet own = bit(kernel_.position(reduce.src(1)));
    const auto leaves = [&](const UOp& f) { return !(free_of(f) & own) && mentions(f); };
    std::vector<UOp> factors;
    add_factors(reduce.src(0), leaves, factors);
    for (UOp& f : factors) {
      if (f.op() != Op::Div || !leaves(f.src(1)) || leaves(f)) continue;
      out.divisor = out.divisor ? mul(out.divisor, f.src(1)) : UOp(f.src(1));
      f = UOp(f.src(0));
    }
    if (out.divisor && std::ranges::none_of(factors, leaves)) {
      out.inside = product_of(reduce.graph(), factors);
      return out;
    }
    if (std::ranges::none_of(factors, leaves) || std::ranges::all_of(factors, leaves)) return out;
    out.inside = UOp();
    for (const UOp& f : factors) {
      UOp& side = leaves(f) ? out.outside : out.inside;
      side = side ? mul(side, f) : f;
    }
    return out;
  }

  // Adds a member for the reduction, if what it folds can be corrected.
  bool make_member(const UOp& reduce) {
    Graph& graph = reduce.graph();
    const Factors factors = take_out(reduce);
    const bool is_sum = reduce.reduce_arg().op == Op::Add;
    std::optional<UOp> scale = UOp();
    std::optional<UOp> last_scale = UOp();
    if (mentions(factors.inside)) {
      scale = is_sum ? ratio(factors.inside, Step::BeforeToNow) : std::nullopt;
      last_scale = is_sum ? ratio(factors.inside, Step::BoundedToLast) : std::nullopt;
      if (!scale || !last_scale) return false;
    }
    const size_t at = kernel_.position(reduce.src(1));
    Renaming to{{reduce.src(1), sum_of_block(inner_[at])}};
    for (const Member& m : members_) to.emplace_back(m.reduce, m.now_bounded);
    const UOp part =
        graph.make(Op::Reduce, {substitute(factors.inside, to), inner_[at]}, reduce.arg());
    std::vector<UOp> src{part, blocks_, needed_};
    if (*scale) src.push_back(*scale);
    Member m;
    m.reduce = reduce;
    m.running = graph.make(Op::Running, std::move(src), reduce.arg());
    m.before = graph.make(Op::Before, {m.running});
    m.last = graph.make(Op::Last, {m.running, blocks_});
    if (is_extremum(reduce)) {
      m.now_bounded = bounded(m.running, reduce.reduce_arg().op);
      m.before_bounded = bounded(m.before, reduce.reduce_arg().op);
      m.last_bounded = bounded(m.last, reduce.reduce_arg().op);
    }
    if (*last_scale) m.last = mul(m.last, *last_scale);
    if (factors.divisor) m.last = div(m.last, substitute(factors.divisor, finished()));
    if (factors.outside) m.last = mul(m.last, substitute(factors.outside, finished()));
    members_.push_back(std::move(m));
    return true;
  }

  Renaming finished() const {
    Renaming out;
    for (const Member& m : members_) out.emplace_back(m.reduce, m.last);
    return out;
  }

  // f(x, new) / f(x, old): no node if the value does not change, nothing if there is no such
  // factor.
  std::optional<UOp> ratio(const UOp& value, Step step) const {
    std::vector<UOp> stack{value};
    UOp product;
    while (!stack.empty()) {
      const UOp u = std::move(stack.back());
      stack.pop_back();
      if (!mentions(u)) continue;
      if (const std::optional<Exponent> exponent = exponent_of(u)) {
        const std::optional<UOp> h = exponential_of(exponent->x, step, exponent->scales);
        if (!h) return std::nullopt;
        product = product ? mul(product, *h) : *h;
      } else if (u.op() == Op::Mul) {
        stack.insert(stack.end(), u.src().begin(), u.src().end());
      } else if (u.op() == Op::Div && !mentions(u.src(1))) {
        stack.push_back(u.src(0));
      } else if (u.op() == Op::Neg || is_rounding(u)) {
        stack.push_back(u.src(0));
      } else if (u.op() == Op::Where && !mentions(u.src(0)) &&
                 (is_zero(u.src(1)) || is_zero(u.src(2)))) {
        stack.push_back(u.src(is_zero(u.src(1)) ? 2 : 1));
      } else {
        return std::nullopt;
      }
    }
    return product;
  }

  static bool is_zero(const UOp& u) {
    return u.is_const() && u.dtype().is_float() && double_of(u.dtype(), u.const_bits()) == 0;
  }

  // x where `u` is exp(x) in steps, of a value that members stand in.
  std::optional<Exponent> exponent_of(const UOp& u) const {
    return tiny::exponent_of(u, [this](const UOp& x) { return mentions(x); });
  }

  std::optional<UOp> exponential_of(const UOp& x, Step step, bool scales) const {
    const std::optional<Difference> difference = difference_of(x, 1);
    if (!difference) return std::nullopt;
    UOp sum;
    for (const auto& [m, factor] : *difference) {
      const bool is_max = m->reduce.reduce_arg().op == Op::Max;
      if (!m->now_bounded || (is_max ? factor >= 0 : factor <= 0)) return std::nullopt;
      const UOp& from = step == Step::BeforeToNow ? m->before_bounded : m->last_bounded;
      const UOp& to = step == Step::BeforeToNow ? m->now_bounded : m->last;
      const UOp term = factor == -1
                           ? add(from, neg(to))
                           : mul(add(to, neg(from)), x.graph().constant(x.dtype(), factor));
      sum = sum ? add(sum, term) : term;
    }
    if (!sum) return std::nullopt;
    return decompose(x.graph().make(Op::Exp, {sum}), scales);
  }

  std::optional<Difference> difference_of(const UOp& x, double factor) const {
    Difference sum;
    std::vector<std::pair<UOp, double>> stack{{x, factor}};
    while (!stack.empty()) {
      const auto [u, f] = std::move(stack.back());
      stack.pop_back();
      if (!mentions(u)) continue;
      if (const Member* m = member_of(u)) {
        const auto found = std::ranges::find(sum, m, &Difference::value_type::first);
        if (found == sum.end())
          sum.emplace_back(m, f);
        else
          found->second += f;
      } else if (u.op() == Op::Add) {
        stack.emplace_back(u.src(0), f);
        stack.emplace_back(u.src(1), f);
      } else if (u.op() == Op::Neg) {
        stack.emplace_back(u.src(0), -f);
      } else if (u.op() == Op::Fma && !mentions(u.src(0)) && !mentions(u.src(1))) {
        stack.emplace_back(u.src(2), f);
      } else if ((u.op() == Op::Mul || u.op() == Op::Fma) &&
                 (u.src(0).is_const() || u.src(1).is_const())) {
        if (u.op() == Op::Fma) stack.emplace_back(u.src(2), f);
        const size_t number = u.src(0).is_const() ? 0 : 1;
        const UOp& c = u.src(number);
        stack.emplace_back(u.src(1 - number), f * double_of(c.dtype(), c.const_bits()));
      } else {
        return std::nullopt;
      }
    }
    return sum;
  }

  const Kernel& kernel_;
  int64_t block_;
  std::vector<UOp> order_;
  FreeRanges free_;
  size_t first_ = 0;
  RangeSet reduced_ = 0;
  RangeSet ranges_ = 0;  // that the reductions close
  std::vector<UOp> reductions_;
  UOp blocks_;
  std::vector<UOp> inner_;  // by position
  UOp needed_;              // of Running
  std::vector<Member> members_;
};

// Whether the kernel streams whole along the range, with a product of columns among what it does.
bool streams_product(const Kernel& kernel, int64_t number) {
  Streamer streamer(kernel, number, 1);
  if (streamer.find_members()) return false;
  streamer.run();
  FreeRanges free;
  add_free_ranges(kernel, kernel.roots, free);
  const RangeSet common = bit(common_outer_ranges(kernel)) - 1;
  const auto& members = streamer.members();
  return members.size() > 1 && streamer.is_whole() &&
         std::ranges::any_of(
             members, [&](const Member& m) { return (free.at(m.reduce.node()) & ~common) != 0; });
}

}  // namespace

int64_t streamed_range(const Kernel& kernel) {
  for (const KernelRange& r : kernel.ranges)
    if (r.reduced && streams_product(kernel, r.range.int_arg())) return r.range.int_arg();
  return -1;
}

bool is_bounded_stream(const Kernel& kernel, int64_t number) {
  Streamer streamer(kernel, number, 1);
  if (streamer.find_members()) return false;
  streamer.run();
  return streamer.is_bounded();
}

Kernel apply_stream(const Kernel& kernel, const Option& option) {
  const auto refuse = [&](const char* why) {
    throw_error(Status::InvalidArgument, "option ", to_text({&option, 1}),
                " does not fit the kernel: ", why);
  };
  Streamer streamer(kernel, option.range, option.amount);
  if (const char* why = streamer.find_members()) refuse(why);
  Kernel out = streamer.run();
  const UOp& range = kernel.ranges[kernel.find_range(option.range)].range;
  if (std::ranges::none_of(streamer.members(),
                           [&](const Member& m) { return m.reduce.src(1) == range; }))
    refuse("its reduction depends on another in no way that can be corrected");
  return out;
}

}  // namespace tiny
