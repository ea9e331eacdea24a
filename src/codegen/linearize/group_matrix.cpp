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
constexpr size_t kBlocksOfB = 3;  // of columns, where operands are shared
constexpr size_t kBlocksOfResult = 6;

const MatrixRow& row_of(const UOp& sum) {
  return kMatrixRows[static_cast<size_t>(sum.src(0).int_arg())];
}

}  // namespace

RangeSet Matrices::elements_of(const UOp& node) const {
  if (!is_matrix_sum(node)) return 0;
  const Kernel& kernel = nest_.kernel();
  const UOp& term = node.src(0);
  RangeSet elements = bit(kernel.position(term.src(kHalvesOfRows))) |
                      bit(kernel.position(term.src(kHalvesOfSteps)));
  if (row_of(node).shares_operands())
    elements |= bit(kernel.position(term.src(kBlocksOfB))) |
                bit(kernel.position(term.src(kBlocksOfResult)));
  return elements;
}

DType Matrices::dtype_of(const UOp& sum) {
  return sum.dtype().with_lanes(row_of(sum).c.elements);
}

void Matrices::accumulate(const Task& task, LinearId accumulator) {
  const UOp& term = task.node.src(0);
  if (row_of(task.node).shares_operands()) return accumulate_shared(term, accumulator);
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
    if (r.kind == RangeKind::Local && r.axis == 2) spread.warp = r.range;
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
  const UOp& term = sum.src(0);
  const size_t rows = nest_.kernel().position(term.src(kHalvesOfRows));
  const int64_t halves = nest_.extent(rows), all = emit_.op(value).dtype.lanes;
  const bool has_blocks = row_of(sum).shares_operands();
  const size_t blocks = has_blocks ? nest_.kernel().position(term.src(kBlocksOfResult)) : rows;
  const int64_t count = has_blocks ? nest_.extent(blocks) : 1;
  const int64_t lanes = all / halves / count;
  for (int64_t part = 0; part < halves * count; ++part) {
    if (has_blocks) nest_.fix(blocks, part / halves);
    nest_.fix(rows, part % halves);
    const LinearId value_of_part =
        emit_.add(emit_.depth(), Op::Part, sum.dtype().with_lanes(lanes), {value}, part * lanes);
    emit_.remember(nest_.key_of(sum), value_of_part);
    nest_.release(rows);
    if (has_blocks) nest_.release(blocks);
  }
}

void Matrices::accumulate_shared(const UOp& term, LinearId accumulator) {
  const InLines a = in_lines(term.src(0), term, true), b = in_lines(term.src(1), term, false);
  const size_t here = emit_.depth();
  const LinearId sum =
      emit_.add(here, Op::Mma, emit_.op(accumulator).dtype, {a.begin, b.begin, accumulator},
                (a.is_turned ? kTurnedA : 0) | (b.is_turned ? kTurnedB : 0),
                static_cast<int32_t>(term.int_arg()));
  emit_.add(here, Op::Set, kVoid, {accumulator, sum});
}

// Where the operand of all warps begins: the element of the first row or column, and step.
Matrices::InLines Matrices::in_lines(const UOp& value, const UOp& term, bool has_rows) {
  const MatrixRow& row = kMatrixRows[static_cast<size_t>(term.int_arg())];
  Spread spread = spread_of(value, term, has_rows);
  if (!has_rows) spread.columns = term.src(kBlocksOfB);
  const auto refuse = [&](const char* why) {
    throw_error(Status::InvalidArgument, "option TC of ", row.name, ": the ",
                has_rows ? "first" : "second", " operand ", why);
  };
  const std::optional<Affine> flat = affine(plain_stage_index(value));
  if (!flat) refuse("lies anywhere");
  const bool is_turned = flat->coefficient(spread.group) == 1;
  const int64_t side = is_turned ? 1 : kLineElements, step = is_turned ? kLineElements : 1;
  const auto is = [&](const UOp& range, int64_t coefficient) {
    return !range || flat->coefficient(range) == coefficient;
  };
  if (!is(spread.group, side) || !is(spread.rows, side * kLaneRows) ||
      !is(spread.columns, side * kLaneRows) || !is(spread.step, step) ||
      !is(spread.thread, step * row.steps) || !is(spread.steps, step * row.steps * kLaneColumns) ||
      !is(has_rows ? spread.warp : UOp(), side * row.m))
    refuse("does not lie in lines of 64 elements");
  const UOp zero = value.graph().integer(0);
  std::vector<std::pair<UOp, UOp>> named;
  for (const UOp& r :
       {spread.group, spread.rows, spread.columns, spread.step, spread.thread, spread.steps})
    if (r) named.emplace_back(r, zero);
  if (has_rows && spread.warp)
    named.emplace_back(spread.warp, mul(floor_div(spread.warp, row.warps), row.warps));
  const UOp begin = simplify_index(substitute(plain_stage_index(value), named));
  // Whole blocks of lines, or of a line that lies along the steps whole products.
  const std::optional<Affine> terms = affine(begin);
  const auto is_whole = [&](int64_t n) {
    const int64_t in_block = n % (kLineElements * kLinesOfBlock);
    return in_block == 0 || (!is_turned && in_block < kLineElements && in_block % row.k == 0);
  };
  if (!terms || !is_whole(terms->constant) ||
      !std::ranges::all_of(terms->terms,
                           [&](const AffineTerm& t) { return is_whole(t.coefficient); }))
    refuse("does not begin with a line");
  const int64_t bytes = value.dtype().bytes();
  const Place p = addresses_.place(accesses_.base_of(value.src(0)), begin, bytes);
  const size_t here = emit_.depth();
  LinearId at = emit_.add(here, Op::Address, kAddress, {p.address, p.index}, bytes);
  if (p.displacement != 0)
    at = emit_.add(here, Op::Address, kAddress, {at, emit_.index_constant(p.displacement)}, 1);
  return {at, is_turned};
}

}  // namespace tiny
