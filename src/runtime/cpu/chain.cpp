#include "runtime/cpu/chain.h"

#include <algorithm>

namespace tiny {

namespace {

// A launch shorter than this is not cut; neither is a piece of another.
constexpr double kCutNanoseconds = 4000, kPieceNanoseconds = 1000;
// Short launches are one piece up to here.
constexpr double kTogetherNanoseconds = 8000;
// Whoever ends first waits for a piece of another's: in long launches they are no longer than this.
constexpr double kLongPieceNanoseconds = 20000;

int64_t pieces_of(double nanoseconds, int64_t workers) {
  const auto of_length = [&](double length, int64_t least, int64_t most) {
    const double count = nanoseconds / length;
    return count < static_cast<double>(most) ? std::max(least, static_cast<int64_t>(count)) : most;
  };
  return std::max(of_length(kPieceNanoseconds, workers, kPiecesPerWorker * workers),
                  of_length(kLongPieceNanoseconds, 0, kPiecesMost * workers));
}

}  // namespace

void Chain::begin(size_t number, int workers, const StopSignal& stop) {
  stop_ = &stop;
  number_ = number;
  workers_ = workers;
  pieces_ = 0;
  waited_ = 0;
  steps_.clear();
  unit_of_.clear();
  units_.clear();
}

void Chain::add(const Step& step) {
  const int64_t iterations = step.args.end - step.args.begin;
  int64_t pieces = 1;
  if (iterations > 1 && step.nanoseconds >= kCutNanoseconds)
    pieces = std::min(iterations, pieces_of(step.nanoseconds, workers_));
  const bool joins = pieces == 1 && !units_.empty() && units_.back().pieces == 1 &&
                     units_.back().nanoseconds + step.nanoseconds <= kTogetherNanoseconds &&
                     (units_.back().nanoseconds < kPieceNanoseconds || waits_for_last_unit(step));
  if (!joins) {
    units_.push_back({steps_.size(), 0, pieces_, pieces, 0});
    pieces_ += pieces;
  }
  ++units_.back().steps;
  units_.back().nanoseconds += step.nanoseconds;
  unit_of_.push_back(static_cast<uint32_t>(units_.size() - 1));
  steps_.push_back(step);
}

// Others may do what does not.
bool Chain::waits_for_last_unit(const Step& step) const {
  return std::ranges::any_of(
      step.after, [&](uint32_t launch) { return launch >= number_ + units_.back().first; });
}

ThreadPool::Share Chain::run(ThreadPool& pool, bool wake,
                             const std::unique_ptr<AlignedMemory>* scratch) {
  scratch_ = scratch;
  if (room_ < units_.size()) {
    room_ = std::max(units_.size(), 2 * room_);
    left_ = std::make_unique<Countdown[]>(room_);
  }
  const size_t shares = units_.size() * static_cast<size_t>(workers_);
  if (shares_ < shares) {
    shares_ = std::max(shares, 2 * shares_);
    taken_ = std::make_unique<std::atomic<int64_t>[]>(shares_);
  }
  for (size_t i = 0; i < units_.size(); ++i)
    left_[i].start(static_cast<uint32_t>(units_[i].pieces));
  for (size_t i = 0; i < shares; ++i) taken_[i].store(0, std::memory_order_relaxed);
  ThreadPool::Share share = pool.run(pieces_, run_piece, this, wake, stop_);
  share.waited = std::max(share.waited, waited_);
  return share;
}

// Whoever may take one of a unit's pieces finds one: no more may than it has, and a share in which
// none is left gets none.
int64_t Chain::take_piece(size_t at, int worker) {
  std::atomic<int64_t>* const taken = &taken_[at * static_cast<size_t>(workers_)];
  for (int owner = worker;; owner = (owner + 1) % workers_) {
    const int64_t begin = share_begin(units_[at], owner), end = share_begin(units_[at], owner + 1);
    if (taken[owner].load(std::memory_order_relaxed) >= end - begin) continue;
    const int64_t piece = begin + taken[owner].fetch_add(1, std::memory_order_relaxed);
    if (piece < end) return piece;
  }
}

void Chain::run_piece(void* context, int64_t number, int worker) noexcept {
  Chain& chain = *static_cast<Chain*>(context);
  const auto after = std::ranges::upper_bound(chain.units_, number, {}, &Unit::first_piece);
  const auto at = static_cast<size_t>(after - chain.units_.begin()) - 1;
  const Unit& unit = chain.units_[at];
  const int64_t piece = chain.take_piece(at, worker);
  for (size_t i = unit.first; i < unit.first + unit.steps; ++i)
    chain.wait_for(chain.steps_[i], at, worker);
  for (size_t i = unit.first; i < unit.first + unit.steps; ++i)
    chain.run_step(chain.steps_[i], piece, unit.pieces, worker);
  chain.left_[at].count();
}

void Chain::wait_for(const Step& step, size_t unit, int worker) {
  for (const uint32_t launch : step.after) {
    if (launch < number_) continue;  // of an earlier chain
    const uint32_t other = unit_of_[launch - number_];
    if (other == unit || left_[other].is_done()) continue;
    const int64_t start = worker == 0 ? nanoseconds_now() : 0;
    left_[other].wait(worker == 0 ? stop_ : nullptr);
    if (worker == 0) waited_ = std::max(waited_, nanoseconds_now() - start);
  }
}

void Chain::run_step(const Step& step, int64_t piece, int64_t pieces, int worker) const {
  if (stop_->is_known_over()) return;
  KernelArgs args = step.args;
  const int64_t n = args.end - args.begin;
  const auto cut = [&](int64_t i) { return step.args.begin + n * i / pieces; };
  args.begin = cut(piece);
  args.end = cut(piece + 1);
  args.worker = worker;
  if (worker > 0) args.scratch = scratch_[worker]->data;
  const int64_t start = worker == 0 ? nanoseconds_now() : 0;
  step.executable->run(args);
  if (worker == 0 && !stop_->is_known_over())
    step.executable->measured(nanoseconds_now() - start, args.end - args.begin);
}

}  // namespace tiny
