#include "codegen/linearize/group_matrix.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/error.h"
#include "base/matrix.h"
#include "ir/affine.h"
#include "ir/build.h"
#include "ir/dot.h"
#include "rules/symbolic.h"

namespace tiny {

namespace {

constexpr uint64_t kOperandUse = 2;  // of an instance: the words that a thread has of an operand
constexpr int64_t kRowBytes = 16;    // of a matrix that is loaded
constexpr size_t kHalvesOfRows = 4;  // sources of a term
constexpr size_t kHalvesOfSteps = 5;

const MatrixRow& row_of(const UOp& sum) {
  return kMatrixRows[static_cast<size_t>(sum.src(0).int_arg())];
}

}  // namespace

RangeSet Matrices::elements_of(const UOp& node) const {
  if (!is_matrix_sum(node)) return 0;
  const Kernel& kernel = nest_.kernel();
  return bit(kernel.position(node.src(0).src(kHalvesOfRows))) |
         bit(kernel.position(node.src(0).src(kHalvesOfSteps)));
}

DType Matrices::dtype_of(const UOp& sum) {
  return sum.dtype().with_lanes(row_of(sum).c.elements);
}

void Matrices::accumulate(const Task& task, LinearId accumulator) {
  const UOp& term = task.node.src(0);
  const LinearId a = operand(term.src(0), spread_of(term.src(0), term, true));
  const LinearId b = operand(term.src(1), spread_of(term.src(1), term, false));
  const size_t here = emit_.depth();
  const LinearId sum = emit_.add(here, Op::Mma, emit_.op(accumulator).dtype, {a, b, accumulator}, 0,
                                 static_cast<int32_t>(term.int_arg()));
  emit_.add(here, Op::Set, kVoid, {accumulator, sum});
}

Matrices::Spread Matrices::spread_of(const UOp& value, const UOp& term, bool has_rows) {
  Spread spread;
  for (RangeSet set = nest_.free_of(value); set; set &= set - 1) {
    const KernelRange& r = nest_.at(static_cast<size_t>(std::countr_zero(set)));
    if (r.kind == RangeKind::Dot) spread.step = r.range;
    if (r.kind == RangeKind::Local && r.axis == 0) spread.thread = r.range;
    if (r.kind == RangeKind::Local && r.axis == 1) spread.group = r.range;
  }
  if (has_rows) spread.rows = term.src(kHalvesOfRows);
  spread.steps = term.src(kHalvesOfSteps);
  return spread;
}

LinearId Matrices::operand(const UOp& value, const Spread& spread) {
  InstanceKey key = nest_.key_of(value);
  key.use = kOperandUse;
  if (const BlockTree::Remembered* known = emit_.recall(key)) {
    emit_.rely_on(known->depth);
    return known->id;
  }
  const size_t before = emit_.start_value();
  const std::optional<LinearId> loaded = load(value, spread);
  LinearId words = loaded ? *loaded : joined(value, spread);
  if (value.dtype() == kFloat32) words = rounded(words);
  emit_.remember(key, words, emit_.relied_on());
  emit_.rely_on(before);
  return words;
}

// Word w has half w % 2 of the rows of A, and the other halves count its steps.
LinearId Matrices::joined(const UOp& value, const Spread& spread) {
  const auto position = [&](const UOp& range) { return bit(nest_.kernel().position(range)); };
  std::vector<LinearId> words;
  nest_.for_each_instance(position(spread.steps), [&](size_t) {
    nest_.for_each_instance(spread.rows ? position(spread.rows) : 0, [&](size_t) {
      words.push_back(spread.step
                          ? words_.word_of(value, {})
                          : emit_.elementwise(Op::Bitcast, kUInt32, {values_.value_of(value)}));
    });
  });
  while (words.size() > 1) {
    std::vector<LinearId> pairs;
    for (size_t i = 0; i < words.size(); i += 2) {
      const DType dtype = emit_.op(words[i]).dtype;
      const size_t depth = std::max(emit_.depth_of(words[i]), emit_.depth_of(words[i + 1]));
      pairs.push_back(emit_.add(depth, Op::Join, dtype.with_lanes(2 * int64_t{dtype.lanes}),
                                {words[i], words[i + 1]}));
    }
    words = std::move(pairs);
  }
  return words.front();
}

// Whether a shared stage has rows of 16 bytes, at multiples of that, in which the steps lie side by
// side: no, or in which rows or columns do, of 16 bits: yes; nothing if it has neither.
std::optional<bool> Matrices::is_turned(const UOp& value, const Spread& spread) {
  if (value.op() != Op::Index || !value.src(0).stage_arg().is_shared) return std::nullopt;
  const std::optional<Affine> flat = affine(plain_stage_index(value));
  if (!flat || !spread.thread || !spread.group) return std::nullopt;
  const int64_t bytes = value.dtype().bytes(), side = kRowBytes / bytes, steps = kWordBytes / bytes;
  RangeSet spread_over = 0;
  for (const UOp& r : {spread.thread, spread.group, spread.rows, spread.steps, spread.step})
    if (r) spread_over |= bit(nest_.kernel().position(r));
  const bool has_steps = flat->coefficient(spread.thread) == steps &&
                         flat->coefficient(spread.steps) == steps * kLaneColumns &&
                         (!spread.step || flat->coefficient(spread.step) == 1);
  const bool has_others = steps == 2 && flat->coefficient(spread.group) == 1 &&
                          (!spread.rows || flat->coefficient(spread.rows) == kLaneRows);
  if (!has_steps && !has_others) return std::nullopt;
  const auto is_side = [&](const UOp& atom) {
    return has_steps ? atom == spread.thread || atom == spread.step : atom == spread.group;
  };
  if (flat->constant % side != 0) return std::nullopt;
  for (const AffineTerm& term : flat->terms) {
    if (is_side(term.atom)) continue;
    if (term.coefficient % side != 0) return std::nullopt;
    if (term.atom.op() != Op::Range && (nest_.free_of(term.atom) & spread_over))
      return std::nullopt;
  }
  return !has_steps;
}

// All words by one LoadMatrix: the thread's lane is 4 g + t, and it names row lane % 8 of matrix
// lane / 8, whose halves are those of the word with this number.
std::optional<LinearId> Matrices::load(const UOp& value, const Spread& spread) {
  const std::optional<bool> turned = is_turned(value, spread);
  if (!turned) return std::nullopt;
  const UOp row = add(spread.thread, mul(floor_mod(spread.group, 2), kLaneColumns));
  const UOp first = floor_mod(floor_div(spread.group, 2), 2), second = floor_div(spread.group, 4);
  const UOp zero = value.graph().integer(0);
  std::vector<std::pair<UOp, UOp>> named{{spread.steps, spread.rows ? second : first}};
  if (spread.rows) named.emplace_back(spread.rows, first);
  named.emplace_back(spread.group, *turned ? zero : row);
  named.emplace_back(spread.thread, *turned ? floor_div(row, 2) : zero);
  if (spread.step) named.emplace_back(spread.step, *turned ? floor_mod(row, 2) : zero);
  std::vector<UOp> src{value.src(0)};
  for (const UOp& index : value.src().subspan(1)) src.push_back(substitute(index, named));
  const UOp flat = flat_stage_index(value.graph().make(Op::Index, std::move(src)));
  const int64_t bytes = value.dtype().bytes();
  const Place p = addresses_.place(accesses_.base_of(value.src(0)), flat, bytes);
  const size_t here = emit_.depth();
  const LinearId address = emit_.add(here, Op::Address, kAddress, {p.address, p.index}, bytes);
  return emit_.add(here, Op::LoadMatrix, kUInt32.with_lanes(spread.rows ? 4 : 2), {address},
                   p.displacement, *turned ? 1 : 0);
}

// To the 10 bits that a product keeps of a float32's mantissa, halves away from zero.
LinearId Matrices::rounded(LinearId words) {
  constexpr uint32_t kDropped = 13;
  constexpr uint32_t kQuietNan = 0x7FC00000u;
  const auto constant = [&](uint32_t bits) { return emit_.constant(kUInt32, bits); };
  const LinearId value = emit_.elementwise(Op::Bitcast, kFloat32, {words});
  const LinearId half =
      emit_.elementwise(Op::Add, kUInt32, {words, constant(1u << (kDropped - 1))});
  const LinearId kept =
      emit_.elementwise(Op::And, kUInt32, {half, constant(~((1u << kDropped) - 1))});
  const LinearId is_nan = emit_.elementwise(Op::NotEqual, kBool, {value, value});
  return emit_.elementwise(Op::Where, kUInt32, {is_nan, constant(kQuietNan), kept});
}

void Matrices::remember_rows(const UOp& sum, LinearId value) {
  const size_t rows = nest_.kernel().position(sum.src(0).src(kHalvesOfRows));
  const int64_t halves = nest_.extent(rows);
  const int64_t lanes = emit_.op(value).dtype.lanes / halves;
  for (int64_t half = 0; half < halves; ++half) {
    nest_.fix(rows, half);
    const LinearId part =
        emit_.add(emit_.depth(), Op::Part, sum.dtype().with_lanes(lanes), {value}, half * lanes);
    emit_.remember(nest_.key_of(sum), part);
    nest_.release(rows);
  }
}

}  // namespace tiny
