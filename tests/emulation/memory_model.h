// Memory as the emulated device has it: every access is checked.
//
//   Global   an address names an allocation and an offset in it, and is no address of the host:
//   what
//            lies outside of an allocation, or in one that is gone, is a fault.
//   Shared   two accesses of different threads to one byte, one of them a write, are a fault unless
//   a
//            barrier that both have passed stands between them; in whatever order they happened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tiny::emulation {

class Fault : public std::runtime_error {
 public:
  enum class Of : uint8_t { Address, Misaligned, Race, Barrier, Trap, Time };
  Fault(Of of, const std::string& what) : std::runtime_error(what), of_(of) {}
  Of of() const { return of_; }

 private:
  Of of_;
};

// Who accesses, for messages.
struct Place {
  uint32_t thread = 0;
  uint32_t line = 0;
};

class GlobalMemory {
 public:
  // 0 if `limit` bytes of that device would be exceeded.
  uint64_t allocate(uint64_t bytes, int device, uint64_t limit);
  // False if no allocation begins there.
  bool release(uint64_t address);
  // Where the host has those bytes; null if they are not all in one allocation of the device, or of
  // any for device -1.
  std::byte* find(uint64_t address, uint64_t bytes, int device) const {
    const uint64_t number = address >> kOffsetBits, offset = address & kOffsetMask;
    if (number >= blocks_.size()) return nullptr;
    const Block& block = blocks_[number];
    if (offset > block.bytes || bytes > block.bytes - offset || !block.data) return nullptr;
    if (device >= 0 && block.device != device) return nullptr;
    return block.data.get() + offset;
  }
  uint64_t used(int device) const;
  uint64_t allocations() const;  // that live

 private:
  static constexpr int kOffsetBits = 36;
  static constexpr uint64_t kOffsetMask = (uint64_t{1} << kOffsetBits) - 1;
  struct Block {
    std::unique_ptr<std::byte[]> data;
    uint64_t bytes = 0;
    int device = 0;
  };
  std::vector<Block> blocks_{1};  // the first is no memory: address 0
};

enum class Access : uint8_t { Read, Write, Atomic };

class SharedMemory {
 public:
  // For a new group.  `is_precise`: barriers of a part of the threads are told from those of all.
  void begin(uint32_t bytes, uint32_t threads, bool is_precise);
  uint32_t size() const { return static_cast<uint32_t>(bytes_.size()); }
  // The bytes, once they are known to be there and no race.
  std::byte* access(uint64_t address, uint32_t bytes, Access how, Place place);
  // A copy to these bytes begins, and ends: between, nobody may access them.
  void begin_copy(uint64_t address, uint32_t bytes, Place place);
  std::byte* end_copy(uint64_t address, uint32_t bytes);
  // A product reads these bytes from now on: nobody may write them until it ends.  They are there
  // for it if who wrote them has made a fence since.
  void begin_product(uint64_t address, uint32_t bytes, Place place);
  void end_product(uint64_t address, uint32_t bytes);
  void fence(uint32_t thread) { ++fences_[thread]; }
  const std::byte* at(uint64_t address) const { return bytes_.data() + address; }
  // All threads have come.
  void meet_all();
  void meet(std::span<const uint32_t> threads);

 private:
  struct Last {
    uint32_t clock = 0;
    uint32_t thread = 0;
    uint32_t line = 0;
    bool is_atomic = false;
    uint32_t fences = 0;  // that the thread had made before
  };
  struct Shadow {
    Last write, read;
  };
  bool is_before(const Last& last, uint32_t thread) const;
  void check(uint32_t at, const Last& last, const char* did, Access how, Place place) const;
  void note_read(uint32_t at, Place place);
  void check_readers(uint32_t at, Access how, Place place) const;

  static constexpr uint32_t kMany = ~uint32_t{0};
  std::vector<std::byte> bytes_;
  std::vector<Shadow> shadows_;
  std::vector<uint8_t> copies_;     // under way, by byte
  std::vector<uint16_t> products_;  // the same
  std::vector<uint32_t> fences_;    // by thread
  uint32_t threads_ = 0;
  bool is_precise_ = false;
  uint32_t tick_ = 0;         // of all groups: what lies before a group is before `floor_`
  uint32_t floor_ = 0;        // what has a lower clock is before all
  uint32_t group_floor_ = 0;  // what has a lower clock was another group's
  std::vector<uint32_t> clocks_;
  std::vector<uint32_t> known_;  // threads_ * threads_: the clocks of others that are before one
  std::unordered_map<uint32_t, std::vector<Last>> readers_;  // since the last write
};

}  // namespace tiny::emulation
