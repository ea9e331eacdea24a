// Blocks of memory that a piece of work gave back, kept for what it asks for next.
//
// A kernel's compilation asks for some hundred blocks, and gives nearly all of them back before it
// ends: a list for each size serves them with a tenth of the instructions of the heap, whose own
// lists are short.  Blocks come from the heap one by one, so that what outlives the work, or dies
// on another thread, is the heap's like any other; at its end the work gives back what it kept.
// Work that comes again and again, as small graphs do, begins with some that the last left.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace tiny {

class KeptBlocks {
 public:
  KeptBlocks() = default;
  KeptBlocks(const KeptBlocks&) = delete;
  KeptBlocks& operator=(const KeptBlocks&) = delete;
  ~KeptBlocks();

  // Gives the largest back until no more than so many bytes are left.
  void shrink(size_t bytes_max);
  size_t bytes() const { return bytes_; }

  // While it lives, what this thread gives back is kept in `blocks`, which is nobody else's then,
  // unless the thread has such a scope already: then there it is kept on.  At its end `blocks`
  // gives back what is more than `rest_bytes_max`.
  class Scope {
   public:
    explicit Scope(KeptBlocks& blocks, size_t rest_bytes_max = SIZE_MAX);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    KeptBlocks* outer_;
    KeptBlocks& blocks_;
    size_t rest_bytes_max_;
  };

  // What the operators of heap_operators.cpp do: null if the heap has no memory.
  static void* take(size_t bytes);
  static void give(void* block, size_t bytes) noexcept;

 private:
  struct Free {
    Free* next;
  };
  // Sizes step by 16 bytes, then by a quarter of the power of two below.
  static constexpr size_t kStep = 16;
  static constexpr size_t kSmallMax = 512;
  static constexpr size_t kStepsOfDouble = 4;
  static constexpr size_t kLargeMax = size_t{256} << 10;
  static constexpr size_t kSizes = kSmallMax / kStep + 9 * kStepsOfDouble + 1;
  static constexpr size_t kBytesMax = size_t{4} << 20;  // kept at a time

  struct Size {
    size_t number;
    size_t bytes;  // that its blocks have
  };
  static Size size_of(size_t bytes) {
    if (bytes <= kSmallMax) {
      const size_t steps = (bytes + kStep - 1) / kStep;
      return {steps, steps * kStep};
    }
    // Between two powers of two there are kStepsOfDouble sizes.
    const size_t doubles = static_cast<size_t>(std::bit_width((bytes - 1) / kSmallMax)) - 1;
    const size_t step = (kSmallMax / kStepsOfDouble) << doubles;
    const size_t steps = (bytes - 1) / step + 1;  // kStepsOfDouble + 1 to twice that
    return {kSmallMax / kStep + doubles * kStepsOfDouble + steps - kStepsOfDouble, steps * step};
  }

  static size_t bytes_of(size_t number) {
    if (number <= kSmallMax / kStep) return number * kStep;
    const size_t above = number - kSmallMax / kStep - 1;
    const size_t step = (kSmallMax / kStepsOfDouble) << (above / kStepsOfDouble);
    return (kStepsOfDouble + above % kStepsOfDouble + 1) * step;
  }

  std::array<Free*, kSizes> free_{};
  size_t bytes_ = 0;
};

}  // namespace tiny
