// From tensor-graph nodes to memory that holds their values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/context.h"
#include "engine/program.h"
#include "ir/uop.h"

namespace tiny {

// Where results lie: each in memory of its own, or all in one piece, which goes with the last of
// them: large pages serve many small ones.
enum class Placement : uint8_t { Apart, Together };

// By which plan results were made, and of which memory.
struct Realized {
  std::string plan;  // its key in the disk cache; empty: it has none, or nothing was to be done
  std::vector<Ref<Storage>> leaves;   // as the plan's captured slots number them
  std::vector<Ref<Storage>> results;  // by output of the plan
};

// Computes what `outputs` need, in one schedule.  Afterwards the base of every output is realised:
// as_view(output) finds its memory.  What was realised before is not computed again.
Realized realize(Context& context, std::span<const UOp> outputs, Placement = Placement::Apart);

// Runs a plan without inputs once; its outputs.
std::vector<Ref<Storage>> run_once(Context& context, Plan plan, Placement placement);

// Error{InvalidArgument} if something below `outputs` has no value to be computed from: an input of
// a program that is not one of `inputs`, a Variable that is not one of `variables`, or what a
// program has overwritten.
void require_values(std::span<const UOp> outputs, std::span<const UOp> inputs,
                    std::span<const UOp> variables = {});

// The memory of a Buffer node or of a realised node; null if it has none.
Ref<Storage> storage_of(const UOp& node);

// Where the elements of `node` lie, row-major: realised if need be, and not to be written to.
Ref<Storage> row_major_memory(Context& context, const UOp& node);

// Realises `node` if need be and copies its elements, row-major, to `data` (`bytes`: their size).
void read(Context& context, const UOp& node, void* data, int64_t bytes);

// The same to memory of another device, any one's.
Ref<Storage> copy_to(Device& device, Context& context, const UOp& node, int64_t bytes);

}  // namespace tiny
