// What the accesses of a warp ask of memory, counted while a kernel runs: a GPU moves 32 bytes of
// global memory at a time, and of shared memory one word of each bank in a turn (CUDA C++
// Programming Guide, "Device Memory Accesses" and "Shared Memory").  What a thread does the n-th
// time at a line of the code, its warp does together.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/emulation/ptx_program.h"

namespace tiny::emulation {

class AccessCounts {
 public:
  // Of one line of the code, or of several: what was asked for, and what it would be if the bytes
  // of each access lay side by side.
  struct Totals {
    uint64_t accesses = 0;  // of warps
    uint64_t asked = 0, least = 0;
    Totals& operator+=(const Totals& other) {
      accesses += other.accesses, asked += other.asked, least += other.least;
      return *this;
    }
  };

  void add(const Instruction& i, uint32_t thread, bool is_shared, uint64_t address, uint32_t bytes);
  void end_group();  // the next threads are another group's

  Totals sectors() const { return total(false); }      // of global memory, of 32 bytes
  Totals shared_turns() const { return total(true); }  // of shared memory
  // "line 12: 4 for 1", those that ask for more than the least, the most first.
  std::string wasteful(bool is_shared) const;

 private:
  struct Lane {
    uint64_t address = 0;
    uint32_t lane = 0, bytes = 0;
  };
  // A warp's access: is_shared, line, warp, and how often before.
  using Key = std::tuple<bool, uint32_t, uint32_t, uint32_t>;
  Totals total(bool is_shared) const;

  std::map<Key, std::vector<Lane>> accesses_;                       // of the group
  std::map<std::tuple<bool, uint32_t, uint32_t>, uint32_t> times_;  // by line and thread
  std::map<std::pair<bool, uint32_t>, Totals> lines_;
};

}  // namespace tiny::emulation
