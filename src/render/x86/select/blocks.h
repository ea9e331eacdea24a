// Loops and ifs.
//
// reads: values.
// makes: jumps and labels, by the emitter.
#pragma once

#include <vector>

#include "render/x86/select/addresses.h"
#include "render/x86/select/values.h"

namespace tiny::x86 {

class Blocks {
 public:
  Blocks(Values& values, Addresses& addresses)
      : v_(values), addresses_(addresses), e_(values.emitter()) {}

  void select_loop(LinearId id);
  // `steps`: of the loop that each turn of it takes.
  void select_end_loop(LinearId id, int64_t steps);
  void select_if(LinearId id);
  void select_end_if();
  // An accumulator of the open block, in a vector register.
  void hold(LinearId accumulator) { held_.back().push_back(accumulator); }

 private:
  struct Block {
    uint32_t outer = 0;  // the loop around it
    uint32_t top = 0;    // labels
    uint32_t exit = 0;
    VReg index = kNoReg;
    Operand end{kNoReg};
  };
  void find_end(LinearId id, Block& block);
  void open(const Block& block);
  void close();
  void rename_held(LinearId end);

  Values& v_;
  Addresses& addresses_;
  Emitter& e_;
  std::vector<Block> blocks_;
  std::vector<std::vector<LinearId>> held_{1};  // in each open block, and outside of all
};

}  // namespace tiny::x86
