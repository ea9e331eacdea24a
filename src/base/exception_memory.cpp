// Memory for exceptions in flight, in place of the C++ run time's: its reserve for the case that
// memory has run out is taken from the heap when a library is loaded and not given back when it is
// unloaded.  Here the reserve is part of the library: blocks of one size, taken by setting a bit.
#include <cxxabi.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>

namespace {

// What stands before an exception in memory, by the Itanium C++ ABI with the run time's count.
constexpr size_t kHeader = sizeof(void*) == 8 ? 128 : 80;
constexpr size_t kBlock = 512;
constexpr size_t kBlocks = 64;

struct alignas(16) Block {
  std::byte bytes[kBlock];
};
Block reserve[kBlocks];
std::atomic<uint64_t> taken{0};

void* from_reserve(size_t size) {
  if (size > kBlock) return nullptr;
  uint64_t before = taken.load(std::memory_order_relaxed);
  while (~before != 0) {
    const int free = std::countr_one(before);
    if (taken.compare_exchange_weak(before, before | uint64_t{1} << free, std::memory_order_acquire,
                                    std::memory_order_relaxed))
      return &reserve[free];
  }
  return nullptr;
}

void* allocate(size_t size) {
  void* memory = std::malloc(size);
  if (!memory) memory = from_reserve(size);
  if (!memory) std::terminate();  // as the ABI has it
  return memory;
}

void give_back(void* memory) {
  auto* block = static_cast<Block*>(memory);
  if (std::less_equal<>()(&reserve[0], block) && std::less<>()(block, reserve + kBlocks))
    taken.fetch_and(~(uint64_t{1} << (block - reserve)), std::memory_order_release);
  else
    std::free(memory);
}

}  // namespace

namespace __cxxabiv1 {

extern "C" {

void* __cxa_allocate_exception(size_t thrown_size) noexcept {
  auto* memory = static_cast<std::byte*>(allocate(thrown_size + kHeader));
  std::memset(memory, 0, kHeader);
  return memory + kHeader;
}

void __cxa_free_exception(void* thrown) noexcept {
  give_back(static_cast<std::byte*>(thrown) - kHeader);
}

__cxa_dependent_exception* __cxa_allocate_dependent_exception() noexcept {
  return static_cast<__cxa_dependent_exception*>(std::memset(allocate(kHeader), 0, kHeader));
}

void __cxa_free_dependent_exception(__cxa_dependent_exception* exception) noexcept {
  give_back(exception);
}
}

}  // namespace __cxxabiv1

// What the run time does where nobody catches: its own would name the exception's type, by a
// demangler of 40 KB.
namespace __gnu_cxx {
void __verbose_terminate_handler();   // NOLINT: the run time's name
void __verbose_terminate_handler() {  // NOLINT
  std::abort();
}
}  // namespace __gnu_cxx
