// Loads and stores: what cannot be proven in range is guarded.
//
// reads: the conditions that accesses ask for, what of them is decided, and places.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/linearize/addresses.h"
#include "codegen/linearize/conditions.h"
#include "codegen/linearize/lanes_apart.h"
#include "codegen/linearize/predicates.h"

namespace tiny {

class Accesses {
 public:
  // `are_final`: what Stores store is not read again by this kernel.
  Accesses(Emitter& emit, LoopNest& nest, IndexForms& forms, Values& values, Conditions& conditions,
           Predicates& predicates, Addresses& addresses, LanesApart& apart, bool are_final)
      : emit_(emit),
        nest_(nest),
        forms_(forms),
        values_(values),
        conditions_(conditions),
        predicates_(predicates),
        addresses_(addresses),
        apart_(apart),
        are_final_(are_final) {}

  // What a Load reads, or an Index of its stage; zero where of_read says that it is outside.
  LinearId read(const UOp& node);
  // Where a stage that is filled lies.
  LinearId base_of(const UOp& stage);
  // By a Store, Stage or Running.
  void store(const UOp& node, LinearId base, const UOp& flat, LinearId value,
             std::optional<LinearId> mask, int64_t lanes);
  // What a Store's place holds; zero in lanes that are masked.
  LinearId load_destination(const UOp& node, std::optional<LinearId> mask, int64_t lanes);
  LinearId load_at(const Place& p, size_t depth, DType dtype, std::optional<LinearId> mask);

 private:
  LinearId memory_of(const UOp& node);
  // `whole`: a bool of one lane; no lane is read where it is false.
  LinearId masked_load(const UOp& node, const Guards& guards, int64_t lanes,
                       std::optional<LinearId> whole = std::nullopt);
  LinearId chosen_load(const UOp& node, const Guards& guards);

  Emitter& emit_;
  LoopNest& nest_;
  IndexForms& forms_;
  Values& values_;
  Conditions& conditions_;
  Predicates& predicates_;
  Addresses& addresses_;
  LanesApart& apart_;
  bool are_final_;
};

}  // namespace tiny
