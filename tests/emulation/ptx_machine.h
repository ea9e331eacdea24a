// Executes a kernel of a parsed module: group after group in a random order, the threads of a group
// by turns.  A thread is a position in the code and its slots; it goes on until it waits for
// others, ends, or has had its turn, and then the next one does.  The order of warps and the
// lengths of turns come from a seed.
//
// What PTX leaves undefined and a kernel of ours must not do is a Fault: accesses outside of memory
// and not aligned, races in shared memory, a barrier that threads of one warp reach at different
// places or that one of them never reaches, a shuffle of threads that do not come.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "tests/emulation/access_counts.h"
#include "tests/emulation/memory_model.h"
#include "tests/emulation/ptx_program.h"

namespace tiny::emulation {

// Generic addresses of shared and of local memory begin there; all below are of global memory.
inline constexpr uint64_t kSharedWindow = uint64_t{1} << 62;
inline constexpr uint64_t kLocalWindow = kSharedWindow + (uint64_t{1} << 61);

inline constexpr uint32_t kWarp = 32;

// `mode` of a Barrier: it waits; only counts as come; waits and gives how many had the predicate,
// whether all had, whether any had.
enum : uint8_t { kWaits, kArrives, kCounts, kAll, kAny };
// `mode` of a WarpSync that is a barrier.
inline constexpr uint8_t kOrdersMemory = 0xFF;

struct KernelLaunch {
  const Entry* entry = nullptr;
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  uint32_t dynamic_shared = 0;
  std::vector<std::byte> parameters;
};

class Machine;

struct Thread {
  enum class State : uint8_t { Ready, AtBarrier, AtWarp, Ended };
  Machine* machine = nullptr;
  uint64_t* slots = nullptr;
  std::byte* local = nullptr;
  uint32_t index = 0;
  uint32_t pc = 0;
  State state = State::Ready;
  // Copies that it has begun and not waited for, oldest first; the groups that it has committed.
  struct Copied {
    uint64_t to = 0, from = 0;
    uint32_t bytes = 0, valid = 0;
    uint64_t group = 0;
    const Instruction* at = nullptr;
  };
  std::vector<Copied> copies;
  uint64_t groups = 0;
  // Of its warp, of whose threads the first one has them: products that have begun, whose groups
  // have not been waited for; what sums were before, or are so far, by slot and lane; the groups.
  struct Product {
    uint64_t a = 0, b = 0;
    bool adds = false;
    uint64_t group = 0;
    const Instruction* at = nullptr;
  };
  std::vector<Product> products;
  std::map<uint32_t, std::array<uint64_t, kWarp>> sums;
  uint64_t product_groups = 0, products_begun = 0;
  bool may_change_sums = false;
  inline const std::vector<uint32_t>& lists() const;
};

class Machine {
 public:
  Machine(GlobalMemory& memory, int device, uint64_t seed)
      : global(memory), device_(device), random_(seed) {}
  // Throws a Fault.
  void run(const KernelLaunch& launch);
  uint64_t instructions() const { return instructions_; }
  // Of one launch; beyond it is a Fault.
  void set_most_instructions(uint64_t most) { instructions_most_ = most; }
  // Accesses to global and shared memory from now on are counted there.
  void set_counts(AccessCounts* counts) { counts_ = counts; }

  // Where an access goes; throws a Fault.
  std::byte* resolve(const Instruction& i, uint64_t address, uint32_t bytes, Access how,
                     const Thread& thread);
  void begin_copy(const Instruction& i, const Thread::Copied& copy, Thread& thread);
  // All of its copies but those of the last `most` groups.
  void end_copies(Thread& thread, uint64_t most);
  // Pieces of shared memory that a product reads which runs beside the threads.
  void begin_product(uint64_t address, uint32_t bytes, Place place) {
    shared_.begin_product(address, bytes, place);
  }
  void end_product(uint64_t address, uint32_t bytes) { shared_.end_product(address, bytes); }
  const std::byte* shared_at(uint64_t address) const { return shared_.at(address); }
  void fence_shared(const Thread& thread) { shared_.fence(thread.index); }
  // All warps of four name the same.
  void check_same_operands(Thread& first, const Thread::Product& product);
  const Entry& entry() const { return *launch_->entry; }
  std::span<const std::byte> parameters() const { return launch_->parameters; }

  GlobalMemory& global;

 private:
  void begin_launch();
  void begin_group(uint64_t number);
  void run_group();
  bool run_warp(uint32_t warp);
  void run_thread(Thread& thread);
  bool meet_in_warp(uint32_t warp);
  bool release_barriers();
  void release(std::span<Thread* const> waiting, const Instruction& at);
  void check_warps(std::span<Thread* const> waiting) const;
  [[noreturn]] void stuck() const;
  std::string places() const;
  std::span<Thread> lanes(uint32_t warp);
  const Instruction& at(const Thread& thread) const { return launch_->entry->code[thread.pc]; }

  const int device_;
  std::mt19937_64 random_;
  const KernelLaunch* launch_ = nullptr;
  AccessCounts* counts_ = nullptr;
  SharedMemory shared_;
  std::vector<Thread> threads_;
  std::vector<uint64_t> slots_;
  std::vector<std::byte> local_;
  std::vector<uint32_t> warps_;  // in the order of the round
  std::array<uint32_t, 16> arrived_{};
  std::map<uint32_t, std::vector<std::pair<uint64_t, uint64_t>>> operands_;  // by four warps
  uint32_t ended_ = 0;
  uint64_t instructions_ = 0, instructions_begin_ = 0;
  uint64_t instructions_most_ = uint64_t{20'000'000'000};
};

inline const std::vector<uint32_t>& Thread::lists() const {
  return machine->entry().lists;
}

}  // namespace tiny::emulation
