// The operations, read from ops.def.
#pragma once

#include <cstdint>
#include <iterator>

namespace tiny {

enum class Op : uint8_t {
#define OP(name, arity, symbol, result, weight, traits, stages) name,
#include "ir/ops.def"
};

enum class OpResult : uint8_t { Declared, First, Last, Bool, Void };

enum OpTraits : uint16_t {
  kNoTraits = 0,
  kElementwise = 1,
  kCommutative = 2,
  kAssociative = 4,
  kFloatOperands = 8,
  kIntOperands = 16,
  kLogicOperands = 32,
  kMovement = 64,
  kEffect = 128,
  kTranscendental = 256,
};

enum OpStages : uint8_t { kTensorStage = 1, kKernelStage = 2, kLinearStage = 4 };

inline constexpr int8_t kVariadic = -1;

struct OpInfo {
  char name[12];  // in place: a pointer is a relocation, larger than the name
  char symbol[12];
  int8_t arity;
  OpResult result;
  uint8_t weight;
  uint16_t traits;
  uint8_t stages;
};

namespace op_table {
inline constexpr int8_t V = kVariadic;
inline constexpr uint16_t None = kNoTraits, Elementwise = kElementwise, Commutative = kCommutative,
                          Associative = kAssociative, Float = kFloatOperands, Int = kIntOperands,
                          Logic = kLogicOperands, Movement = kMovement, Effect = kEffect,
                          Transcendental = kTranscendental;
inline constexpr uint8_t T = kTensorStage, K = kKernelStage, L = kLinearStage;
inline constexpr OpInfo kOps[] = {
#define OP(name, arity, symbol, result, weight, traits, stages) \
  {#name, symbol, arity, OpResult::result, weight, traits, stages},
#include "ir/ops.def"
};
}  // namespace op_table

inline constexpr size_t kOpCount = std::size(op_table::kOps);

constexpr const OpInfo& info(Op op) {
  return op_table::kOps[static_cast<size_t>(op)];
}
constexpr bool has(Op op, OpTraits trait) {
  return (info(op).traits & trait) != 0;
}
constexpr bool legal_in(Op op, OpStages stage) {
  return (info(op).stages & stage) != 0;
}

// What computing one element costs, in operations of one instruction.
constexpr double op_weight(Op op) {
  return info(op).weight;
}

// The laws of the table.
static_assert(
    [] {
      for (const OpInfo& op : op_table::kOps)
        if ((op.traits & kCommutative) && op.arity != 2) return false;
      return true;
    }(),
    "only binary ops commute");
static_assert(
    [] {
      for (const OpInfo& op : op_table::kOps)
        if ((op.traits & kElementwise) && (op.arity < 1 || op.result == OpResult::Void))
          return false;
      return true;
    }(),
    "an elementwise op has operands and a value");
static_assert(
    [] {
      for (const OpInfo& op : op_table::kOps)
        if ((op.traits & kTranscendental) && (op.stages & kLinearStage)) return false;
      return true;
    }(),
    "transcendentals are decomposed before the linear program");

}  // namespace tiny
