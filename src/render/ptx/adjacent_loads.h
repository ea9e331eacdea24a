// Loads of one element each whose elements lie side by side: a thread takes them at once, by one
// instruction of up to 16 bytes, where the address is known to be a multiple of that.
//
// They come of ranges that are repeated (a tile of registers reads an operand's rows), for which a
// linear program has no lanes; the assembler joins none.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/linear.h"
#include "render/access_alignment.h"

namespace tiny::ptx {

class AdjacentLoads {
 public:
  AdjacentLoads(const LinearProgram& program, const AccessAlignment& alignment);

  // The loads that are taken at once where `at`, the first of them in the program, stands: in the
  // order of their addresses.  Empty: it is a load by itself, or none.
  const std::vector<LinearId>& together(LinearId at) const {
    return sets_[first_[at] == at ? set_[at] : 0];
  }
  // Whether a load before it takes it along.
  bool is_taken(LinearId at) const { return set_[at] != 0 && first_[at] != at; }

 private:
  void scan();
  void join(const std::vector<LinearId>& loads);

  const LinearProgram& program_;
  const AccessAlignment& alignment_;
  std::vector<LinearId> first_;              // by load: the first of its set in the program
  std::vector<size_t> set_;                  // by load: which; 0: none
  std::vector<std::vector<LinearId>> sets_;  // the first is empty
};

}  // namespace tiny::ptx
