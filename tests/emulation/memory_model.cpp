#include "tests/emulation/memory_model.h"

#include <algorithm>
#include <cstring>

namespace tiny::emulation {

namespace {

// What nobody has written: a NaN of every float, and no index of anything.
constexpr int kUnwritten = 0xFF;

std::string where(Place place) {
  return "line " + std::to_string(place.line) + ", thread " + std::to_string(place.thread);
}

}  // namespace

uint64_t GlobalMemory::allocate(uint64_t bytes, int device, uint64_t limit) {
  if (bytes > kOffsetMask || used(device) + bytes > limit) return 0;
  Block block;
  block.data = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::memset(block.data.get(), kUnwritten, bytes);
  block.bytes = bytes;
  block.device = device;
  blocks_.push_back(std::move(block));
  return (blocks_.size() - 1) << kOffsetBits;
}

bool GlobalMemory::release(uint64_t address) {
  const uint64_t number = address >> kOffsetBits;
  if ((address & kOffsetMask) != 0 || number >= blocks_.size() || !blocks_[number].data)
    return false;
  blocks_[number] = {};  // its number is never given again: what uses it later is found
  return true;
}

uint64_t GlobalMemory::used(int device) const {
  uint64_t sum = 0;
  for (const Block& block : blocks_)
    if (block.data && block.device == device) sum += block.bytes;
  return sum;
}

uint64_t GlobalMemory::allocations() const {
  return static_cast<uint64_t>(
      std::ranges::count_if(blocks_, [](const Block& block) { return block.data != nullptr; }));
}

void SharedMemory::begin(uint32_t bytes, uint32_t threads, bool is_precise) {
  bytes_.assign(bytes, static_cast<std::byte>(kUnwritten));
  shadows_.resize(bytes);
  copies_.assign(bytes, 0);
  products_.assign(bytes, 0);
  fences_.assign(threads, 0);
  threads_ = threads;
  is_precise_ = is_precise;
  if (is_precise_) clocks_.assign(threads_, 0);
  meet_all();
  group_floor_ = floor_;
}

void SharedMemory::meet_all() {
  floor_ = ++tick_;
  if (!is_precise_) return;
  std::ranges::fill(clocks_, floor_);
  known_.assign(size_t{threads_} * threads_, 0);
  readers_.clear();
}

void SharedMemory::meet(std::span<const uint32_t> threads) {
  if (!is_precise_) return;
  std::vector<uint32_t> joined(threads_);
  for (const uint32_t t : threads) {
    for (uint32_t other = 0; other < threads_; ++other)
      joined[other] = std::max(joined[other], known_[size_t{t} * threads_ + other]);
    joined[t] = std::max(joined[t], clocks_[t]);
  }
  ++tick_;
  for (const uint32_t t : threads) {
    std::ranges::copy(joined, known_.begin() + static_cast<std::ptrdiff_t>(size_t{t} * threads_));
    clocks_[t] = tick_;
  }
}

bool SharedMemory::is_before(const Last& last, uint32_t thread) const {
  if (last.clock < floor_ || last.thread == thread) return true;
  return is_precise_ && last.thread != kMany &&
         last.clock <= known_[size_t{thread} * threads_ + last.thread];
}

void SharedMemory::check(uint32_t at, const Last& last, const char* did, Access how,
                         Place place) const {
  if (is_before(last, place.thread) || (last.is_atomic && how == Access::Atomic)) return;
  const std::string who = last.thread == kMany
                              ? "several threads, first at line " + std::to_string(last.line)
                              : where({last.thread, last.line});
  throw Fault(Fault::Of::Race, std::string("a race: shared byte ") + std::to_string(at) + " is " +
                                   (how == Access::Read ? "read" : "written") + " at " +
                                   where(place) + ", and was " + did + " at " + who +
                                   ", with no barrier between them");
}

void SharedMemory::check_readers(uint32_t at, Access how, Place place) const {
  const auto found = readers_.find(at);
  if (found == readers_.end()) return;
  for (const Last& reader : found->second) check(at, reader, "read", how, place);
}

void SharedMemory::note_read(uint32_t at, Place place) {
  const uint32_t clock = is_precise_ ? clocks_[place.thread] : floor_;
  if (is_precise_) {
    readers_[at].push_back({clock, place.thread, place.line});
    return;
  }
  Last& read = shadows_[at].read;
  if (read.clock < floor_)
    read = {clock, place.thread, place.line};
  else if (read.thread != place.thread)
    read.thread = kMany;
}

std::byte* SharedMemory::access(uint64_t address, uint32_t bytes, Access how, Place place) {
  if (address > bytes_.size() || bytes > bytes_.size() - address)
    throw Fault(Fault::Of::Address, "shared bytes " +
                                        std::to_string(static_cast<int64_t>(address)) + " to + " +
                                        std::to_string(bytes) + " of " +
                                        std::to_string(bytes_.size()) + " at " + where(place));
  const auto begin = static_cast<uint32_t>(address);
  for (uint32_t at = begin; at < begin + bytes; ++at) {
    if (copies_[at] != 0)
      throw Fault(Fault::Of::Race, "a race: shared byte " + std::to_string(at) +
                                       " is accessed at " + where(place) +
                                       " while a copy to it is under way, begun at " +
                                       where({shadows_[at].write.thread, shadows_[at].write.line}));
    check(at, shadows_[at].write, "written", how, place);
    if (how == Access::Read) {
      note_read(at, place);
      continue;
    }
    if (products_[at] != 0)
      throw Fault(Fault::Of::Race, "a race: shared byte " + std::to_string(at) + " is written at " +
                                       where(place) +
                                       " while a product that reads it is under way");
    if (is_precise_) {
      check_readers(at, how, place);
      readers_.erase(at);
    } else {
      check(at, shadows_[at].read, "read", how, place);
    }
    shadows_[at].write = {is_precise_ ? clocks_[place.thread] : floor_, place.thread, place.line,
                          how == Access::Atomic, fences_[place.thread]};
  }
  return bytes_.data() + begin;
}

void SharedMemory::begin_copy(uint64_t address, uint32_t bytes, Place place) {
  access(address, bytes, Access::Write, place);
  for (uint32_t n = 0; n < bytes; ++n) ++copies_[static_cast<uint32_t>(address) + n];
}

std::byte* SharedMemory::end_copy(uint64_t address, uint32_t bytes) {
  for (uint32_t n = 0; n < bytes; ++n) {
    --copies_[static_cast<uint32_t>(address) + n];
    Last& write = shadows_[static_cast<uint32_t>(address) + n].write;
    write.fences = fences_[write.thread];
  }
  return bytes_.data() + address;
}

void SharedMemory::begin_product(uint64_t address, uint32_t bytes, Place place) {
  access(address, bytes, Access::Read, place);
  for (auto at = static_cast<uint32_t>(address); at < address + bytes; ++at) {
    const Last& write = shadows_[at].write;
    if (write.clock >= group_floor_ && write.fences == fences_[write.thread])
      throw Fault(Fault::Of::Race, "a race: shared byte " + std::to_string(at) +
                                       " is read by a product at " + where(place) +
                                       ", and was written at " + where({write.thread, write.line}) +
                                       ", with no fence.proxy.async behind it");
    ++products_[at];
  }
}

void SharedMemory::end_product(uint64_t address, uint32_t bytes) {
  for (uint32_t n = 0; n < bytes; ++n) --products_[static_cast<uint32_t>(address) + n];
}

}  // namespace tiny::emulation
