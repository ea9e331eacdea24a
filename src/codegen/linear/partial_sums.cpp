#include "codegen/linear/partial_sums.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/look_often.h"
#include "ir/dot.h"
#include "ir/fold.h"

namespace tiny {

namespace {

constexpr int64_t kManySteps = int64_t{1} << 31;  // of a loop whose bounds say nothing
constexpr int64_t kLine = 64;                     // bytes

// Between which numbers an integer of the program lies, as far as that is known.
struct Values {
  double low = -HUGE_VAL;
  double high = HUGE_VAL;
};

Values values_of_product(const Values& a, const Values& b) {
  const double corners[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  if (std::ranges::any_of(corners, [](double c) { return std::isnan(c); })) return {};
  const auto [low, high] = std::ranges::minmax(corners);
  return {low, high};
}

Values values_of(const LinearProgram& program, const std::vector<Values>& known,
                 const LinearOp& op) {
  const auto src = [&](size_t i) { return known[op.src[i]]; };
  switch (op.op) {
    case Op::Const:
      return {static_cast<double>(op.imm), static_cast<double>(op.imm)};
    case Op::Variable: {
      const LinearVariable& v = program.variables[static_cast<size_t>(op.imm)];
      return {static_cast<double>(v.min), static_cast<double>(v.max)};
    }
    case Op::Loop:
      return {src(0).low, src(1).high};
    case Op::Add:
      return {src(0).low + src(1).low, src(0).high + src(1).high};
    case Op::Neg:
      return {-src(0).high, -src(0).low};
    case Op::Mul:
      return values_of_product(src(0), src(1));
    case Op::FloorDiv:
      if (src(1).low != src(1).high || src(1).low <= 0) return {};
      return {std::floor(src(0).low / src(1).low), std::floor(src(0).high / src(1).low)};
    case Op::FloorMod:
      return src(1).low > 0 ? Values{0, src(1).high - 1} : Values{};
    case Op::Min:
      return {std::min(src(0).low, src(1).low), std::min(src(0).high, src(1).high)};
    case Op::Max:
      return {std::max(src(0).low, src(1).low), std::max(src(0).high, src(1).high)};
    case Op::Where:
      return {std::min(src(1).low, src(2).low), std::max(src(1).high, src(2).high)};
    default:
      return {};
  }
}

// What a loop, or what stands in a block without loops, adds to an accumulator from outside.
struct Additions {
  int64_t steps = 0;
  bool is_sum = true;  // it is not read or set otherwise
};
using Sums = std::map<LinearId, Additions>;

// How a loop is cut.
struct Parts {
  std::vector<LinearId> sums;  // accumulators
  std::vector<int64_t> steps;  // of the loop, in a part, in a part of parts ..
  bool divides = false;        // the first, the loop's steps
};

class Finder {
 public:
  explicit Finder(const LinearProgram& program)
      : program_(program),
        values_(program.ops.size()),
        uses_(program.ops.size()),
        user_(program.ops.size()) {}

  void run() {
    for (LinearId i = 0; i < ops().size(); ++i)
      for (size_t s = 0; s < ops()[i].count; ++s) {
        ++uses_[ops()[i].src[s]];
        user_[ops()[i].src[s]] = i;
      }
    blocks_.push_back({});
    for (LinearId i = 0; i < ops().size(); ++i) {
      look_often(program_.stop, i);
      look_at(i);
    }
    find_runs(blocks_.back());
  }

  std::unordered_map<LinearId, Parts> parts;    // by loop
  std::unordered_map<LinearId, LinearId> runs;  // of a long run without loops: each Set, the last

 private:
  struct Block {
    LinearId head = 0;
    Sums direct;  // of its own Sets
    std::map<LinearId, std::vector<LinearId>> sets;
    Sums all;  // and those of the blocks in it
  };

  const std::vector<LinearOp>& ops() const { return program_.ops; }

  void look_at(LinearId i) {
    const LinearOp& op = ops()[i];
    if (op.dtype == kInt64) values_[i] = values_of(program_, values_, op);
    if (op.op == Op::Loop || op.op == Op::If) blocks_.push_back({i, {}, {}, {}});
    if (op.op == Op::EndLoop || op.op == Op::EndIf) return close();
    if (op.op == Op::Set && is_addition(op)) {
      const int64_t steps = ops()[op.src[1]].op == Op::Dot ? 2 : 1;
      Block& block = blocks_.back();
      block.sets[op.src[0]].push_back(i);
      for (Sums* sums : {&block.direct, &block.all}) (*sums)[op.src[0]].steps += steps;
      return;
    }
    if (is_added(i)) return;
    for (size_t s = 0; s < op.count; ++s)
      if (is_float_sum(op.src[s]))
        for (Sums* sums : {&blocks_.back().direct, &blocks_.back().all})
          (*sums)[op.src[s]].is_sum = false;
  }

  bool is_float_sum(LinearId id) const {
    return ops()[id].op == Op::Accumulator && ops()[id].dtype.is_float();
  }

  // Whether an accumulator is set to itself and something else.
  bool is_addition(const LinearOp& set) const {
    const LinearOp& sum = ops()[set.src[1]];
    if (!is_float_sum(set.src[0]) || uses_[set.src[1]] != 1) return false;
    const auto reads = std::count(sum.src.begin(), sum.src.begin() + sum.count, set.src[0]);
    if (reads != 1) return false;
    if (sum.op == Op::Fma || sum.op == Op::Dot) return sum.src[2] == set.src[0];
    return sum.op == Op::Add;
  }
  // Whether all that reads an op is a Set of the accumulator that it adds to.
  bool is_added(LinearId i) const {
    return uses_[i] == 1 && ops()[user_[i]].op == Op::Set && ops()[user_[i]].src[1] == i &&
           is_addition(ops()[user_[i]]);
  }

  void close() {
    Block block = std::move(blocks_.back());
    blocks_.pop_back();
    find_runs(block);
    const bool is_loop = ops()[block.head].op == Op::Loop;
    if (is_loop) cut(block);
    for (const auto& [sum, inside] : block.all) {
      if (sum > block.head) continue;
      Additions& around = blocks_.back().all[sum];
      around.steps = std::min(around.steps + inside.steps, kManySteps);
      around.is_sum = around.is_sum && inside.is_sum;
      blocks_.back().direct[sum].is_sum = false;  // a run does not go on behind a block
    }
  }

  // Cuts the loop if it adds up much; what it adds counts as so many steps outside.
  void cut(Block& block) {
    const int64_t trips = trips_of(ops()[block.head]);
    Parts made;
    int64_t most = 1;
    for (auto& [sum, inside] : block.all) {
      const int64_t each = std::max<int64_t>(inside.steps, 1);
      inside.steps = std::min(each * trips, kManySteps);
      if (sum > block.head || !inside.is_sum || inside.steps <= kPartSteps) continue;
      made.sums.push_back(sum);
      most = std::max(most, each);
    }
    if (made.sums.empty()) return;
    int64_t steps = std::max<int64_t>(kPartSteps / most, 1);
    steps = ceil_div(trips, ceil_div(trips, steps));  // parts of about one length
    for (int64_t s = steps; s >= steps - steps / 4 && !made.divides; --s) {
      made.divides = trips % s == 0 && is_exact(ops()[block.head]);
      if (made.divides) steps = s;
    }
    made.steps.push_back(steps);
    while (ceil_div(trips, made.steps.back()) > kPartSteps)
      made.steps.push_back(made.steps.back() * kPartSteps);
    for (const LinearId sum : made.sums) block.all[sum].steps = ceil_div(trips, made.steps.back());
    parts.emplace(block.head, std::move(made));
  }

  int64_t trips_of(const LinearOp& loop) const {
    const Values& begin = values_[loop.src[0]];
    const Values& end = values_[loop.src[1]];
    const double steps = std::ceil((end.high - begin.low) / static_cast<double>(loop.imm));
    return steps < static_cast<double>(kManySteps) ? std::max<int64_t>(std::llround(steps), 1)
                                                   : kManySteps;
  }
  bool is_exact(const LinearOp& loop) const {
    return ops()[loop.src[0]].op == Op::Const && ops()[loop.src[1]].op == Op::Const;
  }

  void find_runs(const Block& block) {
    for (const auto& [sum, sets] : block.sets) {
      const Additions& direct = block.direct.at(sum);
      if (!direct.is_sum || direct.steps <= kPartSteps) continue;
      for (const LinearId set : sets) runs.emplace(set, sets.back());
    }
  }

  const LinearProgram& program_;
  std::vector<Values> values_;
  std::vector<uint32_t> uses_;
  std::vector<LinearId> user_;  // the last
  std::vector<Block> blocks_;   // that are open
};

class Writer {
 public:
  Writer(LinearProgram& program, const Finder& found)
      : program_(program), found_(found), place_(program.ops.size()) {}

  void run() {
    std::vector<LinearOp> old = std::move(program_.ops);
    program_.ops.clear();
    for (LinearId i = 0; i < old.size(); ++i) {
      LinearOp op = old[i];
      const LinearId head = op.src[0];
      for (size_t s = 0; s < op.count; ++s) op.src[s] = place_[op.src[s]];
      const bool is_loop = op.op == Op::Loop && found_.parts.contains(i);
      const bool ends = op.op == Op::EndLoop && found_.parts.contains(head);
      if (is_loop) begin(found_.parts.at(i), op);
      if (ends && found_.parts.at(head).steps[0] == 1) end_part(0);
      place_[i] = static_cast<LinearId>(program_.ops.size());
      program_.ops.push_back(op);
      if (ends) end(found_.parts.at(head));
      if (op.op == Op::Set && found_.runs.contains(i)) step(op.src[0], found_.runs.at(i) == i);
    }
  }

 private:
  struct Sum {
    LinearId accumulator = 0;
    DType dtype;
    std::vector<LinearId> places;  // in scratch: of parts, of parts of parts ..
  };
  struct Open {
    std::vector<Sum> sums;
    std::vector<LinearId> loops;  // outer to inner
  };

  LinearId add(Op op, DType dtype, std::initializer_list<LinearId> src = {}, int64_t imm = 0,
               int32_t aux = 0) {
    return program_.add(op, dtype, src, imm, aux);
  }
  LinearId number(int64_t n) { return add(Op::Const, kInt64, {}, n); }
  LinearId nothing(DType dtype) {
    return add(Op::Const, dtype, {}, static_cast<int64_t>(identity_bits(Op::Add, dtype.element())));
  }

  LinearId new_place(DType dtype) {
    const int64_t offset = round_up(program_.scratch_bytes, kLine);
    program_.scratch_bytes = offset + round_up(dtype.bytes() * dtype.lanes, kLine);
    return add(Op::Scratch, kAddress, {}, offset);
  }
  LinearId load(LinearId place, DType dtype) {
    return add(Op::Load, dtype, {place, number(0)}, 0, dtype.lanes > 1 ? 1 : 0);
  }
  void store(LinearId place, LinearId value) {
    const int32_t stride = program_.ops[value].dtype.lanes > 1 ? 1 : 0;
    add(Op::Store, kVoid, {place, number(0), value}, 0, stride);
  }
  void begin_anew(LinearId accumulator, DType dtype) {
    add(Op::Set, kVoid, {accumulator, nothing(dtype)});
  }

  // Before a loop: what was summed so far waits outside; then the loops over its parts.
  void begin(const Parts& parts, LinearOp& loop) {
    Open& open = open_.emplace_back();
    for (const LinearId sum : parts.sums) {
      const LinearId accumulator = place_[sum];
      const DType dtype = program_.ops[accumulator].dtype;
      Sum& made = open.sums.emplace_back(Sum{accumulator, dtype, {}});
      for (size_t k = 0; k < parts.steps.size(); ++k) {
        made.places.push_back(new_place(dtype));
        const bool is_last = k + 1 == parts.steps.size();
        store(made.places[k], is_last ? accumulator : nothing(dtype));
      }
      begin_anew(accumulator, dtype);
    }
    for (size_t k = parts.steps.size(); k-- > 0;) {
      if (parts.steps[k] == 1) continue;
      const int64_t apart = parts.steps[k] * loop.imm;
      const LinearId outer = add(Op::Loop, kInt64, {loop.src[0], loop.src[1]}, apart);
      open.loops.push_back(outer);
      const LinearId next = add(Op::Add, kInt64, {outer, number(apart)});
      const bool divides = k == 0 && parts.divides;
      loop.src = {outer, divides ? next : add(Op::Min, kInt64, {next, loop.src[1]})};
    }
  }

  // Adds what a part has summed to the sum of parts, and begins the next.
  void end_part(size_t level) {
    for (const Sum& sum : open_.back().sums) {
      const LinearId place = sum.places[level];
      const LinearId part = level == 0 ? sum.accumulator : load(sum.places[level - 1], sum.dtype);
      store(place, add(Op::Add, sum.dtype, {load(place, sum.dtype), part}));
      if (level == 0)
        begin_anew(sum.accumulator, sum.dtype);
      else
        store(sum.places[level - 1], nothing(sum.dtype));
    }
  }

  // Behind the loop: the loops over its parts end, and the accumulator is the whole sum.
  void end(const Parts& parts) {
    const Open open = open_.back();
    size_t level = parts.steps[0] == 1 ? 1 : 0;
    for (size_t k = open.loops.size(); k-- > 0; ++level) {
      end_part(level);
      add(Op::EndLoop, kVoid, {open.loops[k]});
    }
    open_.pop_back();
    for (const Sum& sum : open.sums)
      add(Op::Set, kVoid, {sum.accumulator, load(sum.places.back(), sum.dtype)});
  }

  // A step of a long run without loops.
  void step(LinearId accumulator, bool is_last) {
    Run& run = runs_[accumulator];
    const DType dtype = program_.ops[accumulator].dtype;
    if (!is_last && ++run.steps < kPartSteps) return;
    const auto whole = [&] { return add(Op::Add, dtype, {load(run.place, dtype), accumulator}); };
    if (is_last) {
      if (run.has_parts) add(Op::Set, kVoid, {accumulator, whole()});
      runs_.erase(accumulator);
      return;
    }
    if (!run.has_parts) run.place = new_place(dtype);
    store(run.place, run.has_parts ? whole() : accumulator);
    begin_anew(accumulator, dtype);
    run.has_parts = true;
    run.steps = 0;
  }

  struct Run {
    int64_t steps = 0;
    bool has_parts = false;
    LinearId place = 0;
  };

  LinearProgram& program_;
  const Finder& found_;
  std::vector<LinearId> place_;
  std::vector<Open> open_;
  std::unordered_map<LinearId, Run> runs_;  // by accumulator
};

}  // namespace

void sum_in_parts(LinearProgram& program) {
  Finder found(program);
  found.run();
  if (!found.parts.empty() || !found.runs.empty()) Writer(program, found).run();
}

}  // namespace tiny
