#include "schedule/join.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/sort.h"
#include "codegen/choose/choose.h"
#include "codegen/pipeline.h"
#include "ir/bounds.h"
#include "rules/split_ranges.h"
#include "schedule/decide.h"
#include "schedule/kernel_loops.h"
#include "schedule/lower_once.h"
#include "schedule/lower_winograd.h"
#include "schedule/operand_costs.h"
#include "schedule/row_costs.h"
#include "schedule/row_test.h"
#include "schedule/schedule.h"
#include "schedule/users.h"
#include "shape/shape.h"
#include "shape/view.h"

namespace tiny {

namespace {

constexpr size_t kAheadMax = 3;  // values that a join is tried with: a softmax's and its scores
constexpr int kRoundsMax = 8;    // over all values
constexpr size_t kRangesOfSet = std::numeric_limits<RangeSet>::digits;

class Joiner {
 public:
  Joiner(Decision& decision, LowerOnce& lowered, std::span<const UOp> outputs,
         const Machine& machine, const JoinSettings& settings)
      : decision_(decision),
        lowered_(lowered),
        machine_(machine),
        settings_(settings),
        users_(decision.order),
        fixed_(decision.order.size()),
        changes_(decision.order.size()) {
    for (const UOp& u : decision.order) {
      if (has_memory(u)) continue;
      const bool writes = u.op() == Op::Assign || u.op() == Op::After;
      if (u.op() == Op::Contiguous || writes || u.op() == Op::Concat || decision.slice(u)) fix(u);
      if (u.op() == Op::Call || u.op() == Op::Scatter || is_of_scan(u)) fix(u);
    }
    for (const UOp& out : outputs) {
      UOp base = out;
      fix(base);
      while (!decision.stored[base.id()] && has(base.op(), kMovement)) base = UOp(base.src(0));
      fix(base);
    }
  }

  Joins run() {
    std::vector<UOp> candidates;
    for (const UOp& u : decision_.order)
      if (decision_.stored[u.id()] && !has_memory(u) && !fixed_[users_.number(u)])
        candidates.push_back(u);
    sort_stable(candidates, std::greater<>(), elements_at_most);
    for (int round = 0; round < kRoundsMax; ++round) {
      bool changed = false;
      for (size_t i = 0; i < candidates.size(); ++i) {
        if (settings_.stop) settings_.stop->check();
        if (decision_.stored[candidates[i].id()])
          changed |= try_join(candidates[i], static_cast<int64_t>(i));
      }
      if (!changed) break;
    }
    const std::vector<uint8_t> none(decision_.stored.size());
    Joins joins{std::ssize(candidates), none, none};
    for (const UOp& u : candidates) {
      joins.inner[u.id()] = 1;
      joins.apart[u.id()] = decision_.stored[u.id()] && readers(u).size() == 1 ? 1 : 0;
    }
    return joins;
  }

 private:
  void fix(const UOp& u) { fixed_[users_.number(u)] = 1; }
  int64_t& changes(const UOp& u) { return changes_[users_.number(u)]; }

  // The stored values that would compute `u` if it had no buffer: at most two are looked for.
  std::vector<UOp> readers(const UOp& u) const {
    const uint64_t visit = u.graph().next_visit();
    std::vector<UOp> found;
    std::vector<const UOp*> stack{&u};
    while (!stack.empty() && found.size() < 2) {
      const UOp& node = *stack.back();
      stack.pop_back();
      for (const UOp* user : users_.of(node)) {
        if (std::exchange(user->node()->visit, visit) == visit) continue;
        if (decision_.stored[user->id()])
          found.push_back(*user);
        else
          stack.push_back(user);
      }
    }
    return found;
  }

  // Arithmetic of the kernel of `root`, as it is now, and seconds of it that staging saves.
  struct Work {
    int64_t changes = -1;  // of the kernel, when the work was found
    double work = 0;
    double kept = 0;
  };
  const Work& work_of(const UOp& root) {
    Work& known = work_[root.node()];
    if (known.changes == changes(root)) return known;
    known = {changes(root), 0, 0};
    const ScheduledKernel kernel = lowered_.value(root);
    if (kernel.kernel.ranges.size() > kRangesOfSet) return known;
    const Kernel split = split_at_exact_divisors(kernel.kernel);
    return known = work_in(KernelLoops(split), kernel.values, changes(root));
  }
  static double all_work(const RowCosts& costs, std::span<const UOp> values) {
    return costs.work() + costs.work_again(values) + costs.work_by_element(values);
  }
  Work work_in(const KernelLoops& loops, std::span<const UOp> values, int64_t changes) const {
    const RowCosts costs(loops, machine_);
    return {changes, all_work(costs, values), costs.staging_saves()};
  }

  // Whether these very kernels were found not to join before; notes that they are being tried.
  bool was_tried(const UOp& u, const UOp& root) {
    const Tried now{root.node(), changes(root), changes(u)};
    Tried& last = tried_[u.node()];
    if (last == now) return true;
    last = now;
    return false;
  }

  // Whether the kernels of `root` and of `u`, which it reads, are too large for one: known without
  // lowering them.
  bool too_many_ops(const UOp& root, const UOp& u) const {
    int64_t ops = 0;
    const uint64_t visit = u.graph().next_visit();
    root.node()->visit = u.node()->visit = visit;
    std::vector<const UOp*> stack{&root, &u};
    while (!stack.empty() && ops <= machine_.most.ops) {
      const UOp& node = *stack.back();
      stack.pop_back();
      if (has(node.op(), kElementwise) && node.dtype() != kInt64) ++ops;
      if (node.op() == Op::Winograd) ops += winograd_ops(winograd_transform(node));
      for (const UOp& s : node.src())
        if (!decision_.stored[s.id()] && std::exchange(s.node()->visit, visit) != visit)
          stack.push_back(&s);
    }
    return ops > machine_.most.ops;
  }

  // Whether the kernel of `root` chooses values by position, or reduces.
  struct Kind {
    bool chooses = false;
    bool reduces = false;
  };
  Kind kind_of(const UOp& root) const {
    Kind kind;
    const uint64_t visit = root.graph().next_visit();
    std::vector<const UOp*> stack{&root};
    while (!stack.empty()) {
      const UOp& node = *stack.back();
      stack.pop_back();
      kind.chooses |= is_choice(node) || node.op() == Op::Winograd;
      kind.reduces |= node.op() == Op::ReduceAxis && !(shape_of(node) == shape_of(node.src(0)));
      for (const UOp& s : node.src())
        if (!decision_.stored[s.id()] && std::exchange(s.node()->visit, visit) != visit)
          stack.push_back(&s);
    }
    return kind;
  }

  // The same before lowering: one of two values, by the position along a short axis.
  static bool is_choice(const UOp& u) {
    if (u.op() != Op::Where || u.src(0).op() != Op::Less) return false;
    UOp position = u.src(0).src(0);
    while (position.op() == Op::Expand || position.op() == Op::Reshape)
      position = UOp(position.src(0));
    return position.op() == Op::Iota && upper_bound(shape_of(position)[0]) <= kChoicesMax;
  }

  // What it costs to compute `u` in the kernel that reads it, beside the work of both kernels
  // apart; none if the joined kernel cannot run as loops.
  std::optional<JoinCost> cost_of(const KernelLoops& loops, std::span<const UOp> values,
                                  const UOp& u, const Work& own, const Work& reader) const {
    const RowTest test(loops, machine_);
    const RowCosts costs(loops, machine_);
    JoinCost cost;
    double by_element = 0;
    const size_t inputs = values.size();
    // Tiles of rows and operands that are computed are kept in a worker's scratch, of which threads
    // of a group have none; but products of products may run along blocks.
    if (machine_.computes_in_groups() && !test.passes(inputs)) {
      if (!test.runs_along_blocks(inputs)) return std::nullopt;
      cost.is_as_chosen = true;
      return cost;
    }
    const bool in_rows = test.passes(inputs);
    const bool in_tiles = !in_rows && test.passes_as_tiles(inputs);
    cost.in_tiles = in_tiles && !test.is_along_blocks_alone(inputs);
    if (!in_rows && !in_tiles) {
      const OperandCosts operands(loops, test, costs, machine_);
      if (const auto operand = operands.operand_seconds(inputs)) {
        cost[JoinPart::Operand] = *operand;
        cost.makes_operand = true;
      } else if (const auto rows = operands.computed_rows(values)) {
        cost[rows->is_filtered ? JoinPart::Convolved : JoinPart::Pooled] = rows->filled;
        cost[JoinPart::Panels] = rows->panels;
        by_element = rows->by_element;
      } else {
        return std::nullopt;
      }
    }
    const double bytes = elements_at_most(u) * static_cast<double>(u.dtype().bytes());
    // What computing words on the way costs is weighed with the launch that stores them; the
    // weights are of launches that cores share.
    const double* words = decision_.words.find(u.node());
    cost[JoinPart::Launch] = words ? launch_seconds_of(std::min(own.work, reader.work), machine_)
                                   : machine_.launch_seconds;
    cost[loops.has_product() ? JoinPart::Hidden : JoinPart::Traffic] =
        saved_seconds(bytes, machine_) - machine_.launch_seconds;
    const double work = all_work(costs, values);
    cost[JoinPart::Recomputed] =
        (work - own.work - reader.work + (words ? *words : 0)) / machine_.fma_rate + by_element;
    cost[JoinPart::Kept] = costs.staging_saves() - own.kept - reader.kept;
    return cost;
  }

  // What the kernel that makes an operand for itself takes more than both apart, each under the
  // options that it would get, if that is so many times more: its loops are not those of a product
  // alone.  On one core: the same for any number of threads.
  double operand_excess(const Kernel& joined, const Kernel& own, const Kernel& reader,
                        double clearly) {
    Machine one = machine_;
    one.cores = 1;
    const double both = estimated(own, one) + estimated(reader, one);
    const double excess = estimated(joined, one) - both;
    return excess > (clearly - 1) * both ? excess : 0;
  }

  double seconds_of(const UOp& value) { return estimated(lowered_.value(value).kernel, machine_); }

  // Layers of one form have the same kernels: options are chosen once for each.
  double estimated(const Kernel& kernel, const Machine& machine) {
    uint32_t& place = estimated_at_[kernel.roots.front().node()];
    if (place == 0) {
      estimated_.emplace_back();
      place = static_cast<uint32_t>(estimated_.size());
    }
    Estimated& known = estimated_[place - 1];
    const bool is_same = known.cores == machine.cores && known.kernel.roots == kernel.roots &&
                         std::ranges::equal(known.kernel.ranges, kernel.ranges, {},
                                            &KernelRange::range, &KernelRange::range);
    if (!is_same) known = {kernel, machine.cores, seconds_as_chosen(kernel, machine)};
    return known.seconds;
  }

  // What a join that the estimates of whole kernels decide saves, each under the options that it
  // would get: the kernels of `u` and of `root` as one.  Where that alone saves nothing, it may
  // with what the joined kernel alone reads: scores that are read again gain little, and all once
  // they are never stored.
  JoinCost as_chosen(const UOp& u, const UOp& root) {
    decision_.stored[u.id()] = 1;
    double apart = seconds_of(u) + seconds_of(root);
    decision_.stored[u.id()] = 0;
    double joined = seconds_of(root);
    std::vector<UOp> ahead;
    while (joined > apart && ahead.size() < kAheadMax) {
      const auto next = next_ahead(root);
      if (!next) break;
      apart += seconds_of(*next);
      decision_.stored[next->id()] = 0;
      ahead.push_back(*next);
      joined = seconds_of(root);
    }
    for (const UOp& v : ahead) decision_.stored[v.id()] = 1;
    JoinCost cost;
    cost.is_as_chosen = true;
    cost[joined > apart ? JoinPart::Recomputed : JoinPart::Kept] = std::abs(joined - apart);
    return cost;
  }
  // The first value that only `root` reads, and whose kernel and this may be one.
  std::optional<UOp> next_ahead(const UOp& root) {
    for (const UOp& v : lowered_.value(root).values) {
      if (has_memory(v) || !decision_.stored[v.id()] || fixed_[users_.number(v)]) continue;
      const std::vector<UOp> into = readers(v);
      if (into.size() != 1 || !(into.front() == root) || too_many_ops(root, v)) continue;
      decision_.stored[v.id()] = 0;
      const ScheduledKernel joined = lowered_.value(root);
      bool may_join = joined.kernel.ranges.size() <= kJoinedRangesMax;
      if (may_join) {
        const Kernel split = split_at_exact_divisors(joined.kernel);
        const KernelLoops loops(split);
        may_join = RowTest(loops, machine_).runs_along_blocks(joined.values.size());
      }
      decision_.stored[v.id()] = 1;
      if (may_join) return v;
    }
    return std::nullopt;
  }

  bool try_join(const UOp& u, int64_t number) {
    const std::vector<UOp> into = readers(u);
    if (into.size() != 1 || into.front().op() == Op::Concat || decision_.scatter_of(into.front()))
      return false;
    const UOp& root = into.front();
    if (decision_.bodies.of(u) != decision_.bodies.of(root)) return false;
    if (was_tried(u, root) || too_many_ops(root, u)) return false;
    const Kind own = kind_of(u);
    if (own.chooses || (own.reduces && kind_of(root).chooses)) return false;
    const Work alone = work_of(u);
    const Work reader = work_of(root);
    decision_.stored[u.id()] = 0;
    const ScheduledKernel joined = lowered_.value(root);
    if (joined.kernel.ranges.size() <= kJoinedRangesMax) {
      const Kernel split = split_at_exact_divisors(joined.kernel);
      const KernelLoops loops(split);
      auto cost = cost_of(loops, joined.values, u, alone, reader);
      if (cost && cost->is_as_chosen) cost = as_chosen(u, root);
      const RowCosts costs(loops, machine_);
      const bool has_other_loops =
          cost && (cost->makes_operand || (cost->in_tiles && costs.has_factor_of_sums()));
      const bool is_estimated =
          has_other_loops ||
          (cost && (costs.has_scattered_rows(joined.values) || costs.has_products_beside()));
      if (is_estimated && !cost->is_as_chosen && cost->paid() <= cost->saved()) {
        decision_.stored[u.id()] = 1;
        const ScheduledKernel own_kernel = lowered_.value(u), reader_kernel = lowered_.value(root);
        decision_.stored[u.id()] = 0;
        double& operand = (*cost)[JoinPart::Operand];
        operand =
            std::max(operand, operand_excess(joined.kernel, own_kernel.kernel, reader_kernel.kernel,
                                             has_other_loops ? kClearly : 1));
      }
      if (cost && decide_join({number, u, *cost, false}, settings_)) {
        ++changes(root);
        work_[root.node()] = work_in(loops, joined.values, changes(root));
        return true;
      }
    }
    decision_.stored[u.id()] = 1;
    return false;
  }

  Decision& decision_;
  LowerOnce& lowered_;
  const Machine& machine_;
  const JoinSettings& settings_;
  Users users_;
  // By the numbers of users_.
  std::vector<uint8_t> fixed_;
  std::vector<int64_t> changes_;  // values that were joined into its kernel
  std::unordered_map<const Node*, Work> work_;
  struct Tried {
    const Node* root = nullptr;
    int64_t root_changes = 0;
    int64_t own_changes = 0;
    bool operator==(const Tried&) const = default;
  };
  std::unordered_map<const Node*, Tried> tried_;  // the last time, by the value to join
  struct Estimated {
    Kernel kernel;  // whose nodes live as long as they are looked for
    int32_t cores = 0;
    double seconds = 0;
  };
  std::vector<Estimated> estimated_;
  NodeTable<uint32_t> estimated_at_;  // place + 1, by the first root
};

}  // namespace

bool decide_join(JoinTrial trial, const JoinSettings& settings) {
  trial.joined = (trial.cost.paid() <= trial.cost.saved()) !=
                 (std::ranges::count(settings.flipped, trial.number) > 0);
  if (settings.trials) {
    std::vector<JoinTrial>& trials = *settings.trials;
    const auto last = std::ranges::find(trials, trial.number, &JoinTrial::number);
    if (last == trials.end())
      trials.push_back(trial);
    else
      *last = trial;
  }
  return trial.joined;
}

std::vector<int64_t> parse_joins(std::string_view text) {
  std::vector<int64_t> numbers;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    int64_t number = -1;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), number);
    require(error == std::errc() && end == item.data() + item.size() && number >= 0,
            Status::InvalidArgument, "flip_joins \"", text, "\": numbers and commas are wanted");
    numbers.push_back(number);
    text.remove_prefix(std::min(item.size() + 1, text.size()));
  }
  return numbers;
}

Joins join_kernels(Decision& decision, LowerOnce& lowered, std::span<const UOp> outputs,
                   const Machine& machine, const JoinSettings& settings) {
  return decision.order.empty() ? Joins()
                                : Joiner(decision, lowered, outputs, machine, settings).run();
}

}  // namespace tiny
