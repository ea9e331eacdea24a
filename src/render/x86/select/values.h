// Where the values of linear ops live, and how those that wait are made.
//
// One lane: integers, bools (0 or 1) and addresses in an integer register, 8- and 16-bit ones
// extended to 32 bits by their sign; bits above 32 of a 32-bit value are undefined.  Floats of one
// lane, and all vectors, in a vector register; lanes beyond the value's are undefined.  A vector of
// bools is a mask register (AVX-512; bits beyond its lanes undefined) or a vector of lanes 0 or -1
// (AVX2; bytes of a lane are kept with it, and converted where a user's lanes differ).
//
// A load with one user in the same block and no store between waits for that user, as its memory
// operand where the instruction has one.  Constants are made before the loop that uses them.
//
// reads: the linear program and its facts.
// makes: code for constants, waiting loads and addresses, by the emitter.
#pragma once

#include <vector>

#include "render/x86/select/emitter.h"
#include "render/x86/select/facts.h"
#include "render/x86/select/lane_places.h"
#include "render/x86/select/linear_view.h"

namespace tiny::x86 {

class Values : public LinearView {
 public:
  Values(const LinearProgram& program, Emitter& emitter);

  Emitter& emitter() { return e_; }
  const Facts& facts() const { return facts_; }
  const OpFacts& facts(LinearId id) const { return facts_[id]; }

  // The value of `id` in a register.
  VReg use(LinearId id);
  Operand use_operand(LinearId id);  // an immediate or memory where that is possible
  Operand use_vector_operand(LinearId id);
  VReg mask_in(LinearId id, int64_t lane);  // the mask in lanes of `lane` bytes
  // The lanes of a mask's value; 0: it has none, or is no mask.
  int64_t mask_lane(LinearId id) const;
  // The register of a value that is made; not for use.
  VReg made(LinearId id) const { return values_[id].reg; }

  void set(LinearId id, VReg reg, int64_t lane = 0);
  // The value of `id` is in `reg`.  If `reg` may be an operand's own register, an accumulator's is
  // copied: its value would change under the new name.
  void define(LinearId id, VReg reg, bool may_alias);
  // The register of the accumulator that the value is computed in, if there is one.
  VReg target_of(LinearId id) const;

  // A value that its user makes.
  void defer(LinearId id) { values_[id].deferred = true; }
  bool is_deferred(LinearId id) const { return values_[id].deferred; }
  void load_now(LinearId id);

  // The value is read from a slot of the frame, a whole register, at each use.
  void set_slot(LinearId id, uint32_t slot) { values_[id].slot = slot; }

  // An address is its register and a displacement.
  void set_address(LinearId id, VReg reg, int64_t disp);
  int64_t displacement(LinearId id) const { return values_[id].disp; }
  // Where element `index` of `size` bytes and `imm` bytes more lie.
  Mem address(LinearId base, LinearId index, int64_t size, int64_t imm);
  // Where the lanes that a load or store accesses lie.
  LanePlaces places(const LinearOp& o, DType dtype);

 private:
  struct Value {
    VReg reg = kNoReg;
    uint8_t lane = 0;  // AVX2 masks: bytes of a lane
    bool deferred = false;
    uint32_t slot = kNoReg;  // kNoReg: none
    int64_t disp = 0;
  };

  Emitter& e_;
  Facts facts_;
  std::vector<Value> values_;
};

}  // namespace tiny::x86
