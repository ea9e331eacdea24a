// Launches that follow each other as one job of a thread pool, without a barrier between them.
//
// Each is cut into pieces; short ones that follow each other are a piece together.  Launches are
// claimed in order, and a piece begins when the launches are done that its own must come after.
// Among the pieces that were claimed and are not done, the first waits for nobody, so that all end.
// Of each launch a worker takes the same share of the range first, and then what others left: what
// it wrote in one launch lies in its cache when the next one reads it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/kernel_abi.h"
#include "base/stop.h"
#include "base/thread_pool.h"
#include "base/wait.h"
#include "runtime/cpu/executable.h"

namespace tiny {

// Pieces of a launch for each worker: at most, unless they would be long; and of the longest.
inline constexpr int64_t kPiecesPerWorker = 6, kPiecesMost = 64;

class Chain {
 public:
  struct Step {
    const CpuExecutable* executable = nullptr;
    KernelArgs args{};                // of the whole range, with the caller's scratch
    double nanoseconds = 0;           // expected of one thread
    std::span<const uint32_t> after;  // launches, by their number
  };

  // Steps of earlier chains are gone; the first to be added is the launch of this number.  Once
  // `stop` is over, which must outlive run(), what has not begun is left out.
  void begin(size_t number, int workers, const StopSignal& stop);
  void add(const Step& step);
  int64_t pieces() const { return pieces_; }
  // Needs what the pool's run() needs.  `scratch`: of each worker but the caller.
  ThreadPool::Share run(ThreadPool& pool, bool wake, const std::unique_ptr<AlignedMemory>* scratch);

 private:
  // Steps that are one piece, or one step of several.
  struct Unit {
    size_t first = 0;
    size_t steps = 0;
    int64_t first_piece = 0;
    int64_t pieces = 1;
    double nanoseconds = 0;
  };

  // Where a worker's share of a unit's pieces begins.
  int64_t share_begin(const Unit& unit, int worker) const {
    return unit.pieces * worker / workers_;
  }

  bool waits_for_last_unit(const Step& step) const;
  static void run_piece(void* chain, int64_t number, int worker) noexcept;
  int64_t take_piece(size_t unit, int worker);
  void wait_for(const Step& step, size_t unit, int worker);
  void run_step(const Step& step, int64_t piece, int64_t pieces, int worker) const;

  const StopSignal* stop_ = nullptr;
  size_t number_ = 0;
  int workers_ = 1;
  int64_t pieces_ = 0;
  std::vector<Step> steps_;
  std::vector<uint32_t> unit_of_;  // by step
  std::vector<Unit> units_;
  std::unique_ptr<Countdown[]> left_;              // by unit
  size_t room_ = 0;                                // of left_
  std::unique_ptr<std::atomic<int64_t>[]> taken_;  // pieces of each share, by unit and worker
  size_t shares_ = 0;                              // of taken_
  const std::unique_ptr<AlignedMemory>* scratch_ = nullptr;
  int64_t waited_ = 0;  // nanoseconds, by the caller: the longest of its waits
};

}  // namespace tiny
