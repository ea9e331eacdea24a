// What a kernel is called with: buffers, variables, scratch memory, and where failures are told.
//
// reads: values.
// makes: values of Param, Scratch, Variable and LaunchArg, checks and polls, by the emitter.
#pragma once

#include "render/x86/select/values.h"

namespace tiny::x86 {

class Entry {
 public:
  explicit Entry(Values& values);

  void select_value(LinearId id);
  void select_check(LinearId id);
  void select_poll();
  // Where polls leave to: behind all other code.
  void end();

 private:
  VReg args_field(int64_t offset);
  VReg entry_pointer(VReg& cache, int64_t offset);

  Values& v_;
  Emitter& e_;
  VReg args_ = kNoReg;
  // Loaded where they are first wanted.
  VReg buffers_ = kNoReg;
  VReg variables_ = kNoReg;
  VReg scratch_ = kNoReg;
  VReg poll_ = kNoReg;
  uint32_t left_ = 0;  // the label where polls leave to, if there are any
};

}  // namespace tiny::x86
