// Random linear programs, and guarded buffers to run them on: renderers are compared on them.
//
//   LinearProgram p = random_linear(seed, options);       // verified
//   LinearBuffers a(p, seed), b(p, seed);                  // equal contents
//   run_one(a.args()); run_other(b.args());
//   EXPECT_EQ(difference(p, a, b), "");
//
// Every storable dtype has one input parameter (kRandomInputs elements) and one output parameter
// (kRandomOutputs elements); most values are stored as soon as they exist.  Buffers end at an
// unreadable page, and masked accesses reach past the end with the dead lanes, so that an access to
// a dead lane faults.  What a NaN's payload is after arithmetic is nobody's business
// (docs/semantics.md): no program looks at it through Bitcast, and `difference` calls NaNs equal.
#pragma once

#include <sys/mman.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/kernel_abi.h"
#include "ir/dot.h"
#include "ir/linear.h"
#include "ir/target.h"

namespace tiny {

inline constexpr int64_t kRandomInputs = 1024;
inline constexpr int64_t kRandomOutputs = 8192;
inline constexpr int64_t kRandomScratch = 512;  // elements of each dtype

struct RandomLinearOptions {
  int steps = 60;          // about how many ops beside the loads, constants and stores they need
  int lanes_max = 16;      // 1: no vectors
  bool odd_lanes = false;  // lane counts that are not powers of two
  bool half_types = true;  // float16 and bfloat16 (moved and converted)
  bool small_ints = true;  // 8 and 16 bits
  bool float64 = true;
  bool int64 = true;    // and uint64; without: as indices, which 32 bits hold
  bool control = true;  // Loop, If, Accumulator
  bool scratch = true;  // stored to, and loaded from
  bool masks = true;    // masked loads and stores, LaneRange
  bool gathers = true;  // gathers and scatters
  bool checks = true;
  DotSet dots = kAllDots;
  bool clears_scratch = false;     // at first: for who does not get it as `LinearBuffers` has it
  bool scale = true;               // Scale, which AVX2 does not have
  const Target* target = nullptr;  // vector ops only where this target has them
};

// Bits of `dtype` that are likely to show a difference: the ends, zeros, NaN, halves, or anything.
inline uint64_t special_bits(DType dtype, std::mt19937_64& rng) {
  // clang-format off
  static constexpr double kReals[] = {
      0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3.25, -7.75, 1e-45, -1e-40, 6e-8, 5.96e-8,
      1e-310, 127.5, -128.7, 255.5, 256, 32767.9, 65504, 65519.99, 65520, 2147483647.0,
      2147483648.0, -2147483649.0, 4294967295.0, 4294967296.0, 9223372036854775807.0, -9.3e18,
      1.8446744073709552e19, 3.4028235e38, 1e300, -1e300, 0.333333333333, HUGE_VAL, -HUGE_VAL};
  // clang-format on
  const uint64_t raw = rng();
  const int64_t bits = dtype.bits();
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  if (dtype.is_bool()) return raw & 1;
  switch (raw % 8) {
    case 0:
      return rng() & mask;
    case 1:
    case 2:
    case 3:
      return bits_of(dtype, static_cast<double>(static_cast<int64_t>(rng() % 64)) - 20);
    default:
      break;
  }
  if (dtype.is_float()) {
    const size_t i = rng() % (std::size(kReals) + 8);  // NaN is likelier than each other one
    if (i < std::size(kReals)) return bits_of(dtype, kReals[i]);
    return bits_of(dtype, std::nan("")) | (i % 2 ? uint64_t{1} << (bits - 1) : rng() % 8);
  }
  const uint64_t ends[] = {0,
                           1,
                           mask,
                           mask - 1,
                           lowest_bits(dtype),
                           highest_bits(dtype),
                           static_cast<uint64_t>(bits),
                           static_cast<uint64_t>(bits - 1),
                           2,
                           7,
                           mask - 6};
  return ends[rng() % std::size(ends)] & mask;
}

class RandomLinear {
 public:
  RandomLinear(uint64_t seed, const RandomLinearOptions& options) : options_(options), rng_(seed) {
    p_.name = cat("random_", seed);
    for (size_t i = 1; i < std::size(kScalars); ++i) {
      const DType t(static_cast<ScalarType>(i));
      if (t == kAddress || t.is_float8()) continue;  // of which nothing is left in kernels
      types_.push_back(t);
      p_.params.push_back({t, true, false});
      p_.params.push_back({t, true, true});
    }
    cursor_.assign(types_.size(), 0);
    for (const DType& t : types_)
      scratch_at_.push_back(
          std::exchange(p_.scratch_bytes, p_.scratch_bytes + kRandomScratch * t.bytes()));
    p_.variables = {{"n", 1, 9}, {"m", -5, 40}};
    p_.threaded = chance(50);
    if (!options_.int64) p_.launch_max = kRandomOutputs;
  }

  LinearProgram make() {
    for (size_t i = 0; i < types_.size(); ++i) {
      inputs_.push_back(emit(Op::Param, kAddress, {}, static_cast<int64_t>(2 * i)));
      outputs_.push_back(emit(Op::Param, kAddress, {}, static_cast<int64_t>(2 * i + 1)));
      scratches_.push_back(emit(Op::Scratch, kAddress, {}, scratch_at_[i]));
    }
    if (options_.clears_scratch) clear_scratch();
    for (int64_t i = 0; i < 2; ++i) keep(emit(Op::Variable, kInt64, {}, i));
    const LinearId begin = emit(Op::LaunchArg, kInt64, {}, 0),
                   end = emit(Op::LaunchArg, kInt64, {}, 1);
    keep(begin);
    keep(end);
    keep(emit(Op::LaunchArg, kInt64, {}, 2));
    LinearId outer = 0;
    if (p_.threaded) {
      outer = emit(Op::Loop, kInt64, {begin, end}, 1);
      keep(outer);
    }
    for (int i = 0; i < options_.steps; ++i) step();
    while (!blocks_.empty()) close();
    if (p_.threaded) emit(Op::EndLoop, kVoid, {outer});
    verify(p_);
    return std::move(p_);
  }

 private:
  struct Value {
    LinearId id;
    DType dtype;
    bool clean;  // holds no NaN whose payload arithmetic made
  };
  struct Block {
    LinearId id;
    size_t values, accumulators;
  };

  void clear_scratch() {
    const DType word = options_.int64 ? kUInt64 : kUInt32;
    const LinearId base = emit(Op::Scratch, kAddress, {}, 0);
    const LinearId none = emit(Op::Const, word, {}, 0);
    const LinearId loop =
        emit(Op::Loop, kInt64, {int64(0), int64(p_.scratch_bytes / word.bytes())}, 1);
    emit(Op::Store, kVoid, {base, loop, none});
    emit(Op::EndLoop, kVoid, {loop});
  }

  uint64_t below(uint64_t n) { return rng_() % n; }
  bool chance(int percent) { return below(100) < static_cast<uint64_t>(percent); }

  LinearId emit(Op op, DType t, std::initializer_list<LinearId> src = {}, int64_t imm = 0,
                int32_t aux = 0) {
    return p_.add(op, t, src, imm, aux);
  }
  Value keep(LinearId id, bool clean = true) {
    values_.push_back({id, p_.ops[id].dtype, clean || !p_.ops[id].dtype.is_float()});
    return values_.back();
  }
  LinearId int64(int64_t v) { return emit(Op::Const, kInt64, {}, v); }

  size_t type_index(DType t) const { return static_cast<size_t>(t.scalar) - 1; }

  bool usable(DType t) const {
    if (!options_.half_types && t.is_float() && t.bits() == 16) return false;
    if (!options_.float64 && t.element() == kFloat64) return false;
    if (!options_.int64 && t.is_int() && t.bits() == 64) return false;
    return options_.small_ints || !t.is_int() || t.bits() >= 32;
  }
  DType any_type() {
    for (;;)
      if (const DType t = types_[below(types_.size())]; usable(t)) return t;
  }
  // A dtype that arithmetic takes; the four that matter most come most often.
  DType number_type() {
    static constexpr DType kUsual[] = {kFloat32, kFloat64, kInt32, kInt64};
    if (chance(55))
      if (const DType t = kUsual[below(4)]; usable(t)) return t;
    for (;;)
      if (const DType t = any_type(); !(t.is_float() && t.bits() == 16)) return t;
  }
  int64_t some_lanes() {
    if (options_.lanes_max <= 1 || chance(35)) return 1;
    if (options_.odd_lanes && chance(40))
      return 2 + static_cast<int64_t>(below(static_cast<uint64_t>(options_.lanes_max) - 1));
    int64_t n = 2;
    while (2 * n <= options_.lanes_max && chance(75)) n *= 2;
    return n;
  }
  bool vector_ok(Op op, DType t) const {
    return t.lanes == 1 || options_.target == nullptr ||
           options_.target->vectorises(op, t.element());
  }

  // An existing value of this dtype, or a new one.
  Value pick(DType t) {
    std::vector<const Value*> found;
    for (const Value& v : values_)
      if (v.dtype == t) found.push_back(&v);
    if (!found.empty() && chance(75)) {
      const size_t n = found.size();  // the newest are the likeliest
      return *found[n - 1 - (chance(60) ? below(std::min<size_t>(n, 4)) : below(n))];
    }
    return leaf(t);
  }
  Value leaf(DType t) {
    if (!options_.int64 && t.element() == kInt64)
      return keep(emit(Op::Cast, t, {pick(kInt32.with_lanes(t.lanes)).id}));
    if (t.lanes > 1 && chance(25)) {
      const Value one = pick(t.element());
      return keep(emit(Op::Broadcast, t, {one.id}), one.clean);
    }
    if (t.lanes > 1 && t.is_int() && chance(25))
      return keep(emit(Op::Ramp, t, {pick(t.element()).id}, static_cast<int64_t>(below(7)) - 3));
    if (chance(40))
      return keep(emit(Op::Const, t, {}, static_cast<int64_t>(special_bits(t.element(), rng_))));
    return load(t);
  }

  // An int64 in [0, 511] from any integer in sight.
  LinearId small_index() {
    if (chance(30)) return int64(static_cast<int64_t>(below(512)));
    const Value x = pick(kInt64);
    return emit(Op::And, kInt64, {x.id, int64(chance(50) ? 511 : 15)});
  }
  int32_t some_stride() {
    static constexpr int32_t kStrides[] = {1, 1, 1, 1, 2, 3, -1, -2};
    return kStrides[below(std::size(kStrides))];
  }
  LinearId mask_of(int64_t lanes) { return pick(kBool.with_lanes(lanes)).id; }

  Value load(DType t) {
    const size_t i = type_index(t);
    const int64_t size = t.bytes();
    // A question that is answered with no; it may stand anywhere.
    if (chance(5)) emit(Op::Poll, kVoid, {});
    // A hint may name any address, there or not.
    if (chance(5))
      emit(Op::Prefetch, kVoid, {inputs_[i], pick(kInt64).id}, size, static_cast<int32_t>(size));
    if (t.lanes == 1) {
      const LinearId index = emit(Op::Add, kInt64, {small_index(), int64(128)});
      return keep(
          emit(Op::Load, t, {inputs_[i], index}, size * (static_cast<int64_t>(below(17)) - 8)));
    }
    const uint64_t kind = below(10);
    if (options_.gathers && kind == 0) {
      const DType wide = kInt64.with_lanes(t.lanes);
      const LinearId mask = emit(Op::Const, wide, {}, 511);
      const LinearId index = emit(Op::And, wide, {pick(wide).id, mask});
      if (options_.masks && chance(50))
        return keep(emit(Op::Load, t, {inputs_[i], index, mask_of(t.lanes)}));
      return keep(emit(Op::Load, t, {inputs_[i], index}, size * 4));
    }
    if (options_.masks && kind == 1) {  // the live lanes end where the buffer ends
      const auto live = static_cast<int64_t>(below(t.lanes + 1u));
      const LinearId mask = emit(Op::LaneRange, kBool.with_lanes(t.lanes), {int64(0), int64(live)});
      return keep(emit(Op::Load, t, {inputs_[i], int64(kRandomInputs - live), mask}, 0, 1));
    }
    const LinearId index = emit(Op::Add, kInt64, {small_index(), int64(128)});
    const int32_t stride = some_stride();
    const int64_t displacement = size * (static_cast<int64_t>(below(17)) - 8);
    if (options_.masks && kind == 2)
      return keep(emit(Op::Load, t, {inputs_[i], index, mask_of(t.lanes)}, displacement, stride));
    return keep(emit(Op::Load, t, {inputs_[i], index}, displacement, stride));
  }

  // Stores the value where nothing else is stored, moving with the innermost loop.
  void observe(const Value& v) {
    const size_t i = type_index(v.dtype.element());
    int64_t& at = cursor_[i];
    if (at + 3 * v.dtype.lanes + 16 > kRandomOutputs - 64) return;
    LinearId index = int64(at);
    for (size_t b = blocks_.size(); b-- > 0;)
      if (p_.ops[blocks_[b].id].op == Op::Loop) {
        index = emit(Op::Add, kInt64, {index, blocks_[b].id});
        break;
      }
    if (v.dtype.lanes == 1) {
      emit(Op::Store, kVoid, {outputs_[i], index, v.id});
    } else if (options_.masks && chance(20)) {
      emit(Op::Store, kVoid, {outputs_[i], index, v.id, mask_of(v.dtype.lanes)}, 0, 1);
    } else {
      emit(Op::Store, kVoid, {outputs_[i], index, v.id}, 0, chance(80) ? 1 : 2);
    }
    at += 2 * v.dtype.lanes + 8;
  }
  void made(LinearId id, bool clean) {
    const Value v = keep(id, clean);
    if (chance(70)) observe(v);
  }

  // Words of any bits.
  void dot() {
    const auto kind = static_cast<DotKind>(below(kDotKinds));
    const int64_t lanes = some_lanes();
    const DType sum = kind == DotKind::Bf16 ? kFloat32 : chance(50) ? kInt32 : kUInt32;
    if (!(options_.dots & dot_bit(kind))) return elementwise();
    const DType words = kUInt32.with_lanes(lanes);
    made(emit(Op::Dot, sum.with_lanes(lanes),
              {pick(words).id, pick(words).id, pick(sum.with_lanes(lanes)).id}, 0,
              static_cast<int32_t>(kind)),
         !sum.is_float());
  }

  void step() {
    const uint64_t kind = below(100);
    if (chance(4)) return dot();
    if (kind < 48) return elementwise();
    if (kind < 56) return conversion();
    if (kind < 60) return choice();
    if (kind < 66) return memory();
    if (kind < 70 && options_.lanes_max > 1) return fold();
    if (kind < 72 && options_.lanes_max > 1 && options_.masks) {
      made(emit(Op::LaneRange, kBool.with_lanes(std::max<int64_t>(2, some_lanes())),
                {pick(kInt64).id, pick(kInt64).id}),
           true);
      return;
    }
    if (kind < 74 && options_.checks) {
      emit(Op::Check, kVoid, {pick(kBool.with_lanes(some_lanes())).id, pick(kInt64).id}, 0,
           static_cast<int32_t>(below(1000)));
      return;
    }
    if (!options_.control) return elementwise();
    if (kind < 80) return open();
    if (kind < 86) return blocks_.empty() ? open() : close();
    if (kind < 90) {
      const Value v = pick(number_type().with_lanes(some_lanes()));
      accumulators_.push_back(keep(emit(Op::Accumulator, v.dtype, {v.id}), false));
      return;
    }
    return accumulate();
  }

  void elementwise() {
    for (;;) {
      const Op op = static_cast<Op>(below(kOpCount));
      if (!has(op, kElementwise) || !legal_in(op, kLinearStage)) continue;
      if (op == Op::Cast || op == Op::Bitcast || op == Op::Where) continue;
      if (op == Op::Scale && !options_.scale) continue;
      const DType t = operand_type(op).with_lanes(some_lanes());
      if (!vector_ok(op, t)) continue;
      apply(op, t);
      return;
    }
  }
  DType operand_type(Op op) {
    const uint16_t traits = info(op).traits;
    for (;;) {
      const DType t = number_type();
      const bool any = (traits & (kFloatOperands | kIntOperands | kLogicOperands)) == 0;
      if (any || (t.is_float() && (traits & kFloatOperands)) ||
          (t.is_int() && (traits & kIntOperands)) || (t.is_bool() && (traits & kLogicOperands)))
        return t;
    }
  }
  Value apply(Op op, DType t) {
    const DType result = info(op).result == OpResult::Bool ? kBool.with_lanes(t.lanes) : t;
    const bool moves = op == Op::Neg || op == Op::Abs || op == Op::Max || op == Op::Min;
    const Value a = pick(t);
    if (info(op).arity == 1)
      return made(emit(op, result, {a.id}), moves && a.clean), values_.back();
    Value b = pick(t);
    if (op == Op::Scale)  // by what is not infinite
      for (const double limit : {-3000.0, 3000.0}) {
        const LinearId c =
            emit(Op::Const, t, {}, static_cast<int64_t>(bits_of(t.element(), limit)));
        b.id = emit(limit < 0 ? Op::Max : Op::Min, t, {b.id, c});
      }
    if (info(op).arity == 2)
      return made(emit(op, result, {a.id, b.id}), moves && a.clean && b.clean), values_.back();
    const Value c = pick(t);
    return made(emit(op, result, {a.id, b.id, c.id}), false), values_.back();
  }

  void conversion() {
    const int64_t lanes = some_lanes();
    const DType from = any_type().with_lanes(lanes), to = any_type().with_lanes(lanes);
    const Value x = pick(from);
    const bool numbers = !from.is_bool() && !to.is_bool();
    if (from.bits() == to.bits() && numbers && x.clean && chance(60)) {
      made(emit(Op::Bitcast, to, {x.id}), true);
    } else if (vector_ok(Op::Cast, from) && vector_ok(Op::Cast, to)) {
      made(emit(Op::Cast, to, {x.id}), false);
    }
  }
  void choice() {
    const DType t = any_type().with_lanes(some_lanes());
    const Value c = pick(kBool.with_lanes(t.lanes)), a = pick(t), b = pick(t);
    made(emit(Op::Where, t, {c.id, a.id, b.id}), a.clean && b.clean);
  }
  void fold() {
    static constexpr Op kFolds[] = {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or, Op::Xor};
    const Op op = kFolds[below(std::size(kFolds))];
    int64_t lanes = 2;
    while (2 * lanes <= options_.lanes_max && chance(70)) lanes *= 2;
    const DType t = operand_type(op).with_lanes(lanes);
    if (!vector_ok(op, t)) return;
    const Value v = pick(t);
    made(emit(Op::Fold, t.element(), {v.id}, 0, static_cast<int32_t>(op)),
         v.clean && (op == Op::Max || op == Op::Min));
  }

  // Scratch and outputs, written and read back; an address formed on the way.
  void memory() {
    if (!options_.scratch) return elementwise();
    const DType t = any_type().with_lanes(some_lanes());
    const size_t i = type_index(t.element());
    const LinearId index =
        emit(Op::Add, kInt64, {emit(Op::And, kInt64, {small_index(), int64(255)}), int64(128)});
    if (chance(40)) {
      const Value v = pick(t);
      const int32_t stride = t.lanes == 1 ? 0 : some_stride();
      if (t.lanes > 1 && options_.gathers && chance(20)) {
        const DType wide = kInt64.with_lanes(t.lanes);
        const LinearId where = emit(Op::And, wide, {pick(wide).id, emit(Op::Const, wide, {}, 255)});
        emit(Op::Store, kVoid, {scratches_[i], where, v.id});
      } else if (t.lanes > 1 && options_.masks && chance(30)) {
        emit(Op::Store, kVoid, {scratches_[i], index, v.id, mask_of(t.lanes)}, 0, stride);
      } else {
        emit(Op::Store, kVoid, {scratches_[i], index, v.id},
             t.bytes() * static_cast<int64_t>(below(8)), stride);
      }
      return;
    }
    const LinearId zero = int64(0);
    const LinearId base =
        emit(Op::Address, kAddress, {chance(70) ? scratches_[i] : outputs_[i], index}, t.bytes());
    made(emit(Op::Load, t, {base, zero}, 0, t.lanes == 1 ? 0 : some_stride()), false);
  }

  size_t loops() const {
    size_t n = 0;
    for (const Block& b : blocks_) n += p_.ops[b.id].op == Op::Loop;
    return n;
  }
  void open() {
    if (blocks_.size() >= 4) return close();
    const size_t values = values_.size(), accumulators = accumulators_.size();
    if (loops() < 3 && chance(65)) {
      const auto begin = static_cast<int64_t>(below(3));
      const LinearId low = int64(begin);
      const LinearId high = chance(30) ? emit(Op::And, kInt64, {pick(kInt64).id, int64(3)})
                                       : int64(begin + static_cast<int64_t>(below(5)));
      const LinearId loop = emit(Op::Loop, kInt64, {low, high}, 1 + static_cast<int64_t>(below(2)));
      blocks_.push_back({loop, values, accumulators});
      keep(loop);
      return;
    }
    blocks_.push_back({emit(Op::If, kVoid, {pick(kBool).id}), values, accumulators});
    // Values that `pick` made for the condition stand before the If and stay visible.
    blocks_.back().values = values_.size();
  }
  void close() {
    const Block block = blocks_.back();
    emit(p_.ops[block.id].op == Op::Loop ? Op::EndLoop : Op::EndIf, kVoid, {block.id});
    blocks_.pop_back();
    std::erase_if(values_, [&](const Value& v) { return v.id >= block.id; });
    std::erase_if(accumulators_, [&](const Value& v) { return v.id >= block.id; });
  }
  void accumulate() {
    if (accumulators_.empty()) return elementwise();
    const Value acc = accumulators_[below(accumulators_.size())];
    static constexpr Op kOps[] = {Op::Add, Op::Mul, Op::Max, Op::Min};
    const Op op = kOps[below(4)];
    if (!vector_ok(op, acc.dtype)) return;
    const Value x = pick(acc.dtype);
    LinearId next = emit(op, acc.dtype, {acc.id, x.id});
    if (acc.dtype.is_float() && chance(50)) next = emit(Op::Fma, acc.dtype, {x.id, x.id, acc.id});
    emit(Op::Set, kVoid, {acc.id, next});
    observe(acc);
  }

  RandomLinearOptions options_;
  std::mt19937_64 rng_;
  LinearProgram p_;
  std::vector<DType> types_;
  std::vector<int64_t> cursor_, scratch_at_;
  std::vector<LinearId> inputs_, outputs_, scratches_;
  std::vector<Value> values_, accumulators_;
  std::vector<Block> blocks_;
};

// A random program that the verifier accepts; the same for the same seed and options.
inline LinearProgram random_linear(uint64_t seed, const RandomLinearOptions& options = {}) {
  return RandomLinear(seed, options).make();
}

// Buffers, variables and scratch for one run of a program of `random_linear`.
class LinearBuffers {
 public:
  // `scratch_bytes`: of the rendered code, where that is more than the program's.
  LinearBuffers(const LinearProgram& program, uint64_t seed, int64_t scratch_bytes = 0) {
    std::mt19937_64 rng(seed * 31 + 7);
    for (size_t i = 0; i < program.params.size(); ++i) {
      const LinearParam& param = program.params[i];
      const int64_t count = param.written ? kRandomOutputs : kRandomInputs;
      Block& block = blocks_.emplace_back(count * param.element.bytes());
      addresses_.push_back(block.data());
      for (int64_t e = 0; e < count; ++e) {
        const uint64_t bits = param.written ? 0 : special_bits(param.element, rng);
        std::memcpy(block.data() + e * param.element.bytes(), &bits,
                    static_cast<size_t>(param.element.bytes()));
      }
    }
    scratch_ =
        &blocks_.emplace_back((std::max(program.scratch_bytes, scratch_bytes) + 63) / 64 * 64);
    std::memset(scratch_->data(), 0, static_cast<size_t>(scratch_->bytes));
    for (const LinearVariable& v : program.variables)
      variables_.push_back(v.min +
                           static_cast<int64_t>(rng() % static_cast<uint64_t>(v.max - v.min + 1)));
    begin_ = static_cast<int64_t>(rng() % 3);
    end_ = begin_ + static_cast<int64_t>(rng() % 3);
  }

  KernelArgs args() {
    return {addresses_.data(), variables_.data(), scratch_->data(), begin_, end_, 1, &status_};
  }
  int64_t status() const { return status_; }
  const std::byte* param(size_t slot) const {
    return static_cast<const std::byte*>(addresses_[slot]);
  }

 private:
  struct Block {
    explicit Block(int64_t n) : bytes(n), mapped((n + 4095) / 4096 * 4096 + 4096) {
      base =
          static_cast<std::byte*>(mmap(nullptr, static_cast<size_t>(mapped), PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      require(base != MAP_FAILED, Status::OutOfMemory, "mmap");
      mprotect(base + mapped - 4096, 4096, PROT_NONE);
    }
    Block(Block&& other) noexcept
        : bytes(other.bytes), mapped(other.mapped), base(std::exchange(other.base, nullptr)) {}
    Block& operator=(Block&&) = delete;
    ~Block() {
      if (base) munmap(base, static_cast<size_t>(mapped));
    }
    std::byte* data() const { return base + mapped - 4096 - bytes; }
    int64_t bytes, mapped;
    std::byte* base;
  };
  std::deque<Block> blocks_;
  Block* scratch_ = nullptr;
  std::vector<void*> addresses_;
  std::vector<int64_t> variables_;
  int64_t begin_ = 0, end_ = 0, status_ = 0;
};

inline bool is_nan_bits(DType t, uint64_t bits) {
  return t.is_float() && std::isnan(double_of(t, bits));
}

inline std::string hexadecimal(uint64_t bits) {
  std::array<char, 16> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  invariant(error == std::errc(), "16 digits hold 64 bits");
  return cat("0x", std::string(digits.data(), end));
}

// The first output element or status in which the two differ, in words; "" if none does.
inline std::string difference(const LinearProgram& program, const LinearBuffers& a,
                              const LinearBuffers& b) {
  if (a.status() != b.status()) return cat("status ", a.status(), " and ", b.status());
  for (size_t i = 0; i < program.params.size(); ++i) {
    if (!program.params[i].written) continue;
    const DType t = program.params[i].element;
    for (int64_t e = 0; e < kRandomOutputs; ++e) {
      uint64_t x = 0, y = 0;
      std::memcpy(&x, a.param(i) + e * t.bytes(), static_cast<size_t>(t.bytes()));
      std::memcpy(&y, b.param(i) + e * t.bytes(), static_cast<size_t>(t.bytes()));
      if (x != y && !(is_nan_bits(t, x) && is_nan_bits(t, y)))
        return cat(program.name, ": param ", i, " (", to_string(t), ") element ", e, ": ",
                   hexadecimal(x), " and ", hexadecimal(y));
    }
  }
  return "";
}

}  // namespace tiny
