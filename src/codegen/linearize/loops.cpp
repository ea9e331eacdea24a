// The loops of the lineariser: whole, split, peeled, and over balanced tiles.
#include <algorithm>

#include "codegen/linearize/lineariser.h"

namespace tiny {

void Lineariser::emit_loop(const Group& group, size_t range, const LoopBounds& limits) {
  Emitter& emit = make_.emit;
  const LinearOp& begin = emit.op(limits.begin);
  const LinearOp& end = emit.op(limits.end);
  if (begin.op == Op::Const && end.op == Op::Const && begin.imm >= end.imm) return;
  const LinearId loop = emit.open(Op::Loop, kInt64, {limits.begin, limits.end}, 1);
  if (at_.nest.at(range).overlaps) emit.set_mark(loop, 1);
  if (at_.nest.at(range).rooms > 1) emit.set_mark(loop, at_.nest.at(range).rooms);
  at_.nest.open_loop(range, loop, emit.depth());
  const size_t known_before = at_.prover.known();
  for (const UOp& fact : limits.facts) at_.prover.know(fact, emit.depth());
  close_inside(group, range);
  at_.prover.forget_beyond(known_before);
  at_.nest.close(range);
  emit.close();
}

// Whether a range is no loop of its own: a thread of a group, or a digit of what is launched.
bool Lineariser::is_coordinate(size_t range) const {
  const KernelRange& r = at_.nest.at(range);
  if (r.kind == RangeKind::Local) return true;
  if (r.kind != RangeKind::Thread) return false;
  const bool is_first_open = range == 0 || (at_.nest.open() & 1) != 0;
  return is_first_open && (at_.nest.is_grouped() || thread_ranges(at_.nest.kernel()) > 1);
}

// Of several ranges that are launched as one, the last is the fastest.
LinearId Lineariser::digit_of_launch(LinearId number, size_t range) {
  Emitter& emit = make_.emit;
  const size_t count = thread_ranges(at_.nest.kernel());
  const auto size_of = [&](size_t i) {
    return make_.values.scalar_index(UOp(at_.nest.range(i).src(0)));
  };
  for (size_t i = range + 1; i < count; ++i)
    number = emit.elementwise(Op::FloorDiv, kInt64, {number, size_of(i)});
  return range == 0 ? number : emit.elementwise(Op::FloorMod, kInt64, {number, size_of(range)});
}

void Lineariser::emit_coordinate(const Group& group, size_t range) {
  Emitter& emit = make_.emit;
  const KernelRange& r = at_.nest.at(range);
  const bool opens_loop = r.kind == RangeKind::Thread && range == 0 && !at_.nest.is_grouped();
  if (opens_loop) {
    const LinearId begin = emit.add(0, Op::LaunchArg, kInt64, {}, 0);
    const LinearId end = emit.add(0, Op::LaunchArg, kInt64, {}, 1);
    launched_ = emit.open(Op::Loop, kInt64, {begin, end}, 1);
  } else if (range == 0 && r.kind == RangeKind::Thread) {
    launched_ = emit.add(0, Op::LaunchArg, kInt64, {}, 0);
  }
  const LinearId value = r.kind == RangeKind::Thread
                             ? digit_of_launch(launched_, range)
                             : emit.add(0, Op::LaunchArg, kInt64, {}, 3 + r.axis);
  // The variable of a loop belongs to the block that it heads.
  at_.nest.open_loop(range, value, opens_loop ? emit.depth() : emit.depth_of(value));
  close_inside(group, range);
  at_.nest.close(range);
  if (opens_loop) emit.close();
}

// Steps that need guards before those that need none, and after.
void Lineariser::emit_split(const Group& group, size_t range, LoopBounds limits,
                            const Split& split) {
  const LinearId end = limits.end;
  const auto cut = [&](const UOp& at) {
    const LinearId least =
        make_.emit.elementwise(Op::Min, kInt64, {end, make_.values.scalar_index(at)});
    return make_.emit.elementwise(Op::Max, kInt64, {limits.begin, least});
  };
  if (split.first) {
    limits.end = cut(split.first);
    emit_loop(group, range, limits);
    limits.begin = limits.end;
  }
  LoopBounds whole = limits;
  whole.end = split.last ? cut(split.last) : end;
  whole.facts.insert(whole.facts.end(), split.facts.begin(), split.facts.end());
  emit_loop(group, range, whole);
  if (!split.last) return;
  limits.begin = whole.end;
  limits.end = end;
  emit_loop(group, range, limits);
}

void Lineariser::emit_peeled(const Group& group, size_t range, const LoopBounds& limits,
                             const Peel& peel, int64_t end) {
  Emitter& emit = make_.emit;
  const int64_t size = at_.nest.extent(range);
  for (int64_t i = 0; i < peel.first; ++i) emit_iteration(group, range, i);
  LoopBounds middle = limits;
  const LinearId first = emit.index_constant(peel.first);
  const LinearId last = emit.index_constant(peel.last);
  middle.begin = emit.elementwise(Op::Max, kInt64, {limits.begin, first});
  middle.end = emit.elementwise(Op::Min, kInt64, {limits.end, last});
  middle.facts.insert(middle.facts.end(), peel.facts.begin(), peel.facts.end());
  if (peel.first < peel.last) emit_loop(group, range, middle);
  // An iteration is known by its distance from either end of the range, which a loop that ends
  // before it does not have.
  LoopBounds after = limits;
  after.begin = middle.end;
  if (end < size) emit_loop(group, range, after);
  for (int64_t i = peel.last; end == size && i < size; ++i)
    emit_last_iteration(group, range, i, after.end);
}

// One iteration of a loop with its range as a constant: conditions fold, instances die.
void Lineariser::emit_iteration(const Group& group, size_t range, int64_t value) {
  Emitter& emit = make_.emit;
  const bool threaded = at_.nest.at(range).kind == RangeKind::Thread;
  if (threaded) {
    const LinearId at = emit.index_constant(value);
    const LinearId begin = emit.add(0, Op::LaunchArg, kInt64, {}, 0);
    const LinearId end = emit.add(0, Op::LaunchArg, kInt64, {}, 1);
    const LinearId is_begun = emit.elementwise(Op::LessEqual, kBool, {begin, at});
    const LinearId is_before_end = emit.elementwise(Op::Less, kBool, {at, end});
    emit.open(Op::If, kVoid, {emit.elementwise(Op::And, kBool, {is_begun, is_before_end})});
  }
  at_.nest.open_iteration(range, value);
  close_inside(group, range);
  at_.nest.close(range);
  if (threaded) emit.close();
}

// The same of one that the loop may end before.
void Lineariser::emit_last_iteration(const Group& group, size_t range, int64_t value,
                                     LinearId end) {
  Emitter& emit = make_.emit;
  const LinearId at = emit.index_constant(value);
  const bool is_sure = !make_.running.may_end_before(range);
  if (!is_sure) emit.open(Op::If, kVoid, {emit.elementwise(Op::Less, kBool, {at, end})});
  emit_iteration(group, range, value);
  if (!is_sure) emit.close();
}

// Tiles of so many steps among the given numbers, which begin at one of these elements.
void Lineariser::emit_tiles(const Group& group, size_t range, const LoopBounds& numbers,
                            const LoopBounds& elements, const Tiles& tiles) {
  Emitter& emit = make_.emit;
  const BalancedTile& tile = *balanced_.tiles[range];
  const auto number_at = [&](LinearId element) {
    const LinearId before = emit.elementwise(Op::Neg, kInt64, {tiles.first});
    const LinearId from_first = emit.elementwise(Op::Add, kInt64, {element, before});
    const LinearId up =
        emit.elementwise(Op::Add, kInt64, {from_first, emit.index_constant(tiles.apart - 1)});
    return emit.elementwise(Op::FloorDiv, kInt64, {up, emit.index_constant(tiles.apart)});
  };
  LinearId begin = emit.elementwise(Op::Max, kInt64, {numbers.begin, tiles.begin});
  if (elements.begin != emit.index_constant(0))
    begin = emit.elementwise(Op::Max, kInt64, {begin, number_at(elements.begin)});
  LinearId end = emit.elementwise(Op::Min, kInt64, {numbers.end, tiles.end});
  if (elements.end != make_.values.scalar_index(tile.size))
    end = emit.elementwise(Op::Min, kInt64, {end, number_at(elements.end)});
  const LinearId loop = emit.open(Op::Loop, kInt64, {begin, end}, 1);
  const LinearId walked =
      emit.elementwise(Op::Mul, kInt64, {loop, emit.index_constant(tiles.apart)});
  if (at_.nest.at(range).overlaps) emit.set_mark(loop, 1);
  const LinearId start = emit.elementwise(Op::Add, kInt64, {walked, tiles.first});
  at_.nest.open_loop(range, start, emit.depth_of(start));
  at_.nest.set_limit(tile.steps_in, tiles.steps);
  const size_t known_before = at_.prover.known();
  for (const UOp& fact : elements.facts) at_.prover.know(fact, emit.depth());
  at_.prover.know(tiles.fact, emit.depth());
  close_inside(group, range);
  at_.prover.forget_beyond(known_before);
  at_.nest.set_limit(tile.steps_in, 0);
  at_.nest.close(range);
  emit.close();
}

void Lineariser::emit_balanced(const Group& group, size_t range) {
  const BalancedTile& tile = *balanced_.tiles[range];
  const LoopBounds elements = limits_.elements_of(group, range);
  LoopBounds numbers;
  if (at_.nest.at(range).kind == RangeKind::Thread)
    numbers = limits_.launched();
  else
    numbers = {make_.emit.index_constant(0), make_.values.scalar_index(tile.count), {}};
  const int64_t scratch = program_.scratch_bytes;  // tiles of different sizes share it
  int64_t most = scratch;
  for (const Tiles& tiles : cuts_.tiles_of(tile, at_.nest.range(range))) {
    program_.scratch_bytes = scratch;
    emit_tiles(group, range, numbers, elements, tiles);
    most = std::max(most, program_.scratch_bytes);
  }
  program_.scratch_bytes = most;
}

}  // namespace tiny
