// How every kernel on a host processor is called, generated code and interpreted code alike.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tiny {

// What a kernel that takes long asks now and then (ir/linear.h, Poll): whether it is to leave
// early. Its results are void then.  Any worker may ask.
struct KernelPoll {
  int32_t (*ask)(const KernelPoll* poll) noexcept;  // not 0: leave
};
inline constexpr KernelPoll kStay{[](const KernelPoll*) noexcept -> int32_t { return 0; }};

// One call of a kernel by one worker.  Offsets and field order are part of the contract between
// render/ and runtime/: machine code reads these fields by displacement.
struct KernelArgs {
  void* const* buffers;      // one address per parameter slot, byte offset already added
  const int64_t* variables;  // one value per variable of the program
  std::byte* scratch;        // this worker's scratch, 64-byte aligned; null if none is needed
  int64_t begin;             // the part of the THREAD range to run: begin <= i < end
  int64_t end;
  int64_t worker;
  int64_t* status;  // the run's status word: 0, or the first failed Check
  const KernelPoll* poll = &kStay;
};
static_assert(offsetof(KernelArgs, poll) == 56);

using KernelFunction = void (*)(const KernelArgs*);

// The status word of a failed Check: which one (16 bits, never 0) and the position (47 bits).
constexpr int64_t check_status(int64_t check, int64_t position) {
  return ((check + 1) << 47) | (position & ((int64_t{1} << 47) - 1));
}
constexpr int64_t check_id(int64_t status) {
  return (status >> 47) - 1;
}
constexpr int64_t check_position(int64_t status) {
  return status & ((int64_t{1} << 47) - 1);
}

}  // namespace tiny
