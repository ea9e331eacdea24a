#include "codegen/linear/polls.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "codegen/linear/trips.h"
#include "ir/tile_products.h"

namespace tiny {
namespace {

// What stands for lanes that lie apart, each of which may wait for memory, and for a division.
constexpr double kOpsPerLaneApart = 4, kOpsPerDivision = 8;
constexpr int64_t kFractionBits = 6;  // of ops for each unit of a loop's counter

double ops_of(const LinearProgram& program, const LinearOp& op) {
  switch (op.op) {
    case Op::Const:
    case Op::Param:
    case Op::Scratch:
      return 0;
    case Op::Load:
      return op.dtype.lanes > 1 && op.aux != 1 ? kOpsPerLaneApart * op.dtype.lanes : 1;
    case Op::Store: {
      const int lanes = program.ops[op.src[2]].dtype.lanes;
      return lanes > 1 && op.aux != 1 ? kOpsPerLaneApart * lanes : 1;
    }
    case Op::Div:
    case Op::Sqrt:
    case Op::FloorDiv:
    case Op::FloorMod:
    case Op::TruncDiv:
    case Op::TruncMod:
      return kOpsPerDivision;
    default:
      return 1;
  }
}

// How a block's ops are counted.
enum class Count : uint8_t {
  Outside,   // with what is around it
  Once,      // at its end
  Trips,     // a loop: after it, by its trips
  EachTurn,  // a loop: at the end of each turn, with a question
  InParts,   // a loop: after parts of it, with a question
};

struct Decision {
  Count count = Count::Outside;
  double ops = 0;  // of the block, or of a turn
};

class PollPlacer {
 public:
  PollPlacer(LinearProgram& program, int64_t threads_extent, const PollSpacing& spacing)
      : program_(program),
        trips_(program, threads_extent),
        spacing_(spacing),
        decisions_(program.ops.size()),
        place_(program.ops.size()) {}

  void run() {
    const Cost all = decide();
    if (all.most > static_cast<double>(spacing_.between)) write();
  }

 private:
  struct Cost {
    double left = 0;  // ops that are not counted yet
    double most = 0;  // ops in all
    bool counts = false;
  };

  // From the innermost blocks on.
  Cost decide() {
    std::vector<std::pair<LinearId, Cost>> open{{0, {}}};
    for (LinearId i = 0; i < program_.ops.size(); ++i) {
      const LinearOp& op = program_.ops[i];
      if (op.op == Op::Loop || op.op == Op::If) {
        open.push_back({i, {}});
      } else if (op.op == Op::EndLoop || op.op == Op::EndIf) {
        const auto [head, body] = open.back();
        open.pop_back();
        const Cost cost = op.op == Op::EndLoop ? decide_loop(head, body) : decide_if(head, body);
        Cost& around = open.back().second;
        around.left += cost.left + 1;
        around.most += cost.most + 1;
        around.counts |= cost.counts;
      } else {
        open.back().second.left += ops_of(program_, op);
        open.back().second.most += ops_of(program_, op);
      }
    }
    return open.front().second;
  }

  Cost decide_if(LinearId head, const Cost& body) {
    if (body.left <= spacing_.uncertain) return body;
    decisions_[head] = {Count::Once, body.left};
    return {0, body.most, true};
  }

  Cost decide_loop(LinearId head, const Cost& body) {
    const double trips = trips_.most(head);
    const double turn = std::max(body.left, 1.0);
    const auto decided = [&](Count count) {
      decisions_[head] = {count, turn};
      return Cost{0, std::max(body.most, 1.0) * trips, true};
    };
    if (trips <= 1) return body;
    if (body.counts) return decided(Count::EachTurn);
    const double all = turn * trips;
    if (all > spacing_.part)
      return decided(turn >= spacing_.turn ? Count::EachTurn : Count::InParts);
    if (all > spacing_.uncertain && !trips_.is_exact(head)) return decided(Count::Trips);
    return {all, all, false};
  }

  // The program once more, with what was decided.
  void write() {
    old_ = std::exchange(program_.ops, {});
    full_ = number(spacing_.between);
    work_ = add(Op::Accumulator, kInt64, {full_});
    for (LinearId i = 0; i < old_.size(); ++i) {
      const LinearOp& op = old_[i];
      if (op.op == Op::Loop && decisions_[i].count == Count::InParts) {
        open_parts(i);
      } else if (op.op == Op::EndLoop || op.op == Op::EndIf) {
        close(i);
      } else {
        place_[i] = copy(op);
      }
    }
  }

  void open_parts(LinearId head) {
    const LinearOp& op = old_[head];
    // Whole tiles, where a matrix unit takes the steps.
    const int64_t turns =
        round_up(static_cast<int64_t>(std::ceil(spacing_.part / decisions_[head].ops)), kTileSteps);
    const LinearId length = number(op.imm * turns);
    LinearId end = place_[op.src[1]];
    // A loop reads its end once.
    if (old_[op.src[1]].op == Op::Accumulator) end = add(Op::Add, kInt64, {end, number(0)});
    const LinearId part = add(Op::Loop, kInt64, {place_[op.src[0]], end}, op.imm * turns);
    const LinearId stop = add(Op::Min, kInt64, {add(Op::Add, kInt64, {part, length}), end});
    place_[head] = program_.add(Op::Loop, kInt64, {part, stop}, op.imm, op.aux);
  }

  void close(LinearId end) {
    const LinearId head = old_[end].src[0];
    const Decision& decision = decisions_[head];
    const LinearId opened = place_[head];
    if (decision.count == Count::Once || decision.count == Count::EachTurn)
      use_up(number(static_cast<int64_t>(std::ceil(decision.ops))));
    if (decision.count == Count::EachTurn) ask();
    place_[end] = copy(old_[end]);
    if (decision.count == Count::Trips || decision.count == Count::InParts)
      use_up_trips(opened, decision.ops);
    if (decision.count != Count::InParts) return;
    ask();
    const LinearId part = program_.ops[opened].src[0];
    add(Op::EndLoop, kVoid, {part});
  }

  // What the loop at `opened` did, by what its counter went through.
  void use_up_trips(LinearId opened, double ops_of_turn) {
    const LinearOp loop = program_.ops[opened];
    const double ops = ops_of_turn / static_cast<double>(loop.imm);
    const double scaled = std::max(1.0, std::round(std::ldexp(ops, kFractionBits)));
    const LinearId length = add(Op::Sub, kInt64, {loop.src[1], loop.src[0]});
    const LinearId some = add(Op::Max, kInt64, {length, number(0)});
    const LinearId product = add(Op::Mul, kInt64, {some, number(static_cast<int64_t>(scaled))});
    use_up(add(Op::Shr, kInt64, {product, number(kFractionBits)}));
  }

  void use_up(LinearId ops) { add(Op::Set, kVoid, {work_, add(Op::Sub, kInt64, {work_, ops})}); }

  void ask() {
    const LinearId test = add(Op::If, kVoid, {add(Op::Less, kBool, {work_, number(0)})});
    add(Op::Poll, kVoid);
    add(Op::Set, kVoid, {work_, full_});
    add(Op::EndIf, kVoid, {test});
  }

  LinearId copy(LinearOp op) {
    for (size_t s = 0; s < op.count; ++s) op.src[s] = place_[op.src[s]];
    program_.ops.push_back(op);
    return static_cast<LinearId>(program_.ops.size() - 1);
  }
  LinearId add(Op op, DType dtype, std::initializer_list<LinearId> src = {}, int64_t imm = 0) {
    return program_.add(op, dtype, src, imm);
  }
  LinearId number(int64_t value) { return add(Op::Const, kInt64, {}, value); }

  LinearProgram& program_;
  const TripBounds trips_;
  const PollSpacing spacing_;
  std::vector<Decision> decisions_;  // by head
  std::vector<LinearOp> old_;
  std::vector<LinearId> place_;  // of the old ops
  LinearId full_ = 0, work_ = 0;
};

}  // namespace

void place_polls(LinearProgram& program, int64_t threads_extent, const PollSpacing& spacing) {
  PollPlacer(program, threads_extent, spacing).run();
}

}  // namespace tiny
