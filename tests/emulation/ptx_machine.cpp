#include "tests/emulation/ptx_machine.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tiny::emulation {

namespace {

constexpr uint32_t kTurn = 4096;  // instructions at most before the next thread has its turn
constexpr uint32_t kBarriers = 16;

uint32_t product(const std::array<uint32_t, 3>& of) {
  return of[0] * of[1] * of[2];
}

std::string place_of(const Instruction& i, const Thread& thread) {
  return "line " + std::to_string(i.line) + ", thread " + std::to_string(thread.index);
}

}  // namespace

void Machine::run(const KernelLaunch& launch) {
  launch_ = &launch;
  begin_launch();
  // All groups, each once, in steps that have no divisor in common with their count.
  const uint64_t groups = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  uint64_t step = groups > 1 ? random_() % groups : 1;
  while (groups > 1 && std::gcd(step, groups) != 1) step = (step + 1) % groups;
  uint64_t number = random_() % groups;
  for (uint64_t done = 0; done < groups; ++done) {
    begin_group(number);
    run_group();
    number = (number + step) % groups;
  }
}

void Machine::begin_launch() {
  const uint32_t threads = product(launch_->block);
  threads_.assign(threads, {});
  slots_.assign(size_t{threads} * entry().slots, 0xBAD0BAD0BAD0BAD0u);
  local_.assign(size_t{threads} * entry().local_bytes, std::byte{0xFF});
  for (uint32_t t = 0; t < threads; ++t) {
    threads_[t].machine = this;
    threads_[t].index = t;
    threads_[t].slots = slots_.data() + size_t{t} * entry().slots;
    threads_[t].local = local_.data() + size_t{t} * entry().local_bytes;
  }
  warps_.resize((threads + kWarp - 1) / kWarp);
  std::iota(warps_.begin(), warps_.end(), 0u);
  instructions_begin_ = instructions_;
}

void Machine::begin_group(uint64_t number) {
  const auto& grid = launch_->grid;
  const auto& block = launch_->block;
  const auto put = [](Thread& t, Special s, uint64_t value) { t.slots[slot_of(s)] = value; };
  for (Thread& t : threads_) {
    t.pc = 0;
    t.state = Thread::State::Ready;
    t.copies.clear();
    t.groups = 0;
    t.products.clear();
    t.sums.clear();
    t.product_groups = t.products_begun = 0;
    t.may_change_sums = false;
    t.slots[kTrueSlot] = 1;
    const uint32_t lane = t.index % kWarp;
    put(t, Special::TidX, t.index % block[0]);
    put(t, Special::TidY, t.index / block[0] % block[1]);
    put(t, Special::TidZ, t.index / block[0] / block[1]);
    put(t, Special::CtaidX, number % grid[0]);
    put(t, Special::CtaidY, number / grid[0] % grid[1]);
    put(t, Special::CtaidZ, number / grid[0] / grid[1]);
    for (uint32_t axis = 0; axis < 3; ++axis) {
      t.slots[slot_of(Special::NtidX) + axis] = block[axis];
      t.slots[slot_of(Special::NctaidX) + axis] = grid[axis];
    }
    put(t, Special::Laneid, lane);
    put(t, Special::Warpid, t.index / kWarp);
    put(t, Special::Nwarpid, warps_.size());
    put(t, Special::LanemaskEq, 1u << lane);
    put(t, Special::LanemaskLt, (1u << lane) - 1);
    put(t, Special::LanemaskLe, (2u << lane) - 1);
    put(t, Special::LanemaskGt, ~((2u << lane) - 1));
    put(t, Special::LanemaskGe, ~((1u << lane) - 1));
    for (const auto& [slot, value] : entry().constants) t.slots[slot] = value;
  }
  uint32_t shared = entry().shared_bytes;
  if (launch_->dynamic_shared > 0) {
    const uint32_t alignment = entry().shared_alignment;
    shared = (shared + alignment - 1) / alignment * alignment + launch_->dynamic_shared;
  }
  shared_.begin(shared, static_cast<uint32_t>(threads_.size()), entry().has_partial_barriers);
  arrived_.fill(0);
  operands_.clear();
  ended_ = 0;
}

void Machine::check_same_operands(Thread& first, const Thread::Product& product) {
  constexpr uint32_t kThreads = 4 * kWarp;
  if (threads_.size() % kThreads != 0)
    throw Fault(Fault::Of::Barrier,
                "products of four warps, of which there are " + std::to_string(warps_.size()));
  auto& known = operands_[first.index / kThreads];
  const size_t number = first.products_begun++;
  if (number == known.size()) known.emplace_back(product.a, product.b);
  if (known[number] != std::pair(product.a, product.b))
    throw Fault(Fault::Of::Barrier,
                "four warps name other operands, at " + place_of(*product.at, first));
}

std::span<Thread> Machine::lanes(uint32_t warp) {
  const size_t first = size_t{warp} * kWarp;
  return std::span(threads_).subspan(first, std::min<size_t>(kWarp, threads_.size() - first));
}

void Machine::run_group() {
  while (ended_ < threads_.size()) {
    if (warps_.size() > 1) std::ranges::shuffle(warps_, random_);
    bool has_moved = false;
    for (const uint32_t warp : warps_) has_moved |= run_warp(warp);
    has_moved |= release_barriers();
    if (!has_moved) stuck();
    if (instructions_ - instructions_begin_ > instructions_most_)
      throw Fault(Fault::Of::Time, "the kernel " + entry().name + " does not come to its end");
  }
  if (counts_) counts_->end_group();
}

// One turn for each thread, and mostly some more: warps run at different speeds.
bool Machine::run_warp(uint32_t warp) {
  const std::span<Thread> all = lanes(warp);
  bool has_moved = false, goes_on = true;
  while (goes_on) {
    bool moved_now = false;
    const size_t first = all.size() > 1 ? random_() % all.size() : 0;
    for (size_t n = 0; n < all.size(); ++n) {
      Thread& thread = all[(first + n) % all.size()];
      if (thread.state != Thread::State::Ready) continue;
      run_thread(thread);
      moved_now = true;
    }
    moved_now |= meet_in_warp(warp);
    has_moved |= moved_now;
    goes_on = moved_now && (random_() & 3) != 0;
  }
  return has_moved;
}

void Machine::run_thread(Thread& thread) {
  const Instruction* code = entry().code.data();
  uint64_t* slots = thread.slots;
  uint32_t pc = thread.pc;
  uint32_t left = kTurn;
  for (; left > 0; --left) {
    const Instruction& i = code[pc];
    if ((slots[i.guard] != 0) == i.guard_is_negated) {
      ++pc;
    } else if (i.step == Step::Plain) {
      i.run(i, slots, thread);
      ++pc;
    } else if (i.step == Step::Branch) {
      pc = i.target;
    } else {
      break;
    }
  }
  instructions_ += kTurn - left + 1;
  thread.pc = pc;
  if (left == 0) return;
  const Instruction& i = code[pc];
  switch (i.step) {
    case Step::End:
      thread.state = Thread::State::Ended;
      ++ended_;
      return;
    case Step::Trap:
      throw Fault(Fault::Of::Trap, "trap at " + place_of(i, thread));
    case Step::Barrier:
      if (i.mode == kArrives) {
        if (slots[i.a] < kBarriers) ++arrived_[slots[i.a]];
        ++thread.pc;
        return;
      }
      thread.state = Thread::State::AtBarrier;
      return;
    default:
      thread.state = Thread::State::AtWarp;
  }
}

// Lets those go on of whom all that are meant have come.
bool Machine::meet_in_warp(uint32_t warp) {
  const std::span<Thread> all = lanes(warp);
  bool has_moved = false;
  for (Thread& first : all) {
    if (first.state != Thread::State::AtWarp) continue;
    const Instruction& i = at(first);
    const auto members = static_cast<uint32_t>(first.slots[i.members]);
    if (((members >> (first.index % kWarp)) & 1) == 0)
      throw Fault(Fault::Of::Barrier,
                  "a thread that is not among those it names, at " + place_of(i, first));
    std::array<Thread*, kWarp> meant{};
    bool have_come = true;
    for (uint32_t lane = 0; lane < kWarp && have_come; ++lane) {
      if (((members >> lane) & 1) == 0) continue;
      if (lane >= all.size())
        throw Fault(Fault::Of::Barrier,
                    "names threads that there are not, at " + place_of(i, first));
      Thread& other = all[lane];
      meant[lane] = &other;
      have_come = other.state == Thread::State::AtWarp && other.pc == first.pc &&
                  static_cast<uint32_t>(other.slots[i.members]) == members;
    }
    if (!have_come) continue;
    i.run_warp(i, meant.data());
    std::vector<uint32_t> met;
    for (Thread* one : meant) {
      if (!one) continue;
      met.push_back(one->index);
      one->state = Thread::State::Ready;
      ++one->pc;
    }
    if (i.mode == kOrdersMemory) shared_.meet(met);
    has_moved = true;
  }
  return has_moved;
}

// The threads of one warp wait for the same instruction.
void Machine::check_warps(std::span<Thread* const> waiting) const {
  for (const Thread* thread : waiting) {
    const Thread& first = threads_[thread->index / kWarp * kWarp];
    for (uint32_t n = first.index; n < first.index + kWarp && n < threads_.size(); ++n) {
      const Thread& other = threads_[n];
      if (other.state == Thread::State::AtBarrier && other.pc == thread->pc) continue;
      if (other.state == Thread::State::Ended || other.state == Thread::State::AtBarrier)
        throw Fault(Fault::Of::Barrier,
                    "threads of one warp diverge at a barrier: " + place_of(at(*thread), *thread) +
                        " waits, " + place_of(at(other), other) +
                        (other.state == Thread::State::Ended ? " has ended" : " waits elsewhere"));
    }
  }
}

void Machine::release(std::span<Thread* const> waiting, const Instruction& i) {
  check_warps(waiting);
  uint64_t count = 0;
  std::vector<uint32_t> met;
  for (Thread* thread : waiting) {
    const Instruction& own = at(*thread);
    if (own.mode != i.mode)
      throw Fault(Fault::Of::Barrier,
                  "barriers of different kinds meet at " + place_of(own, *thread));
    const bool is_negated = own.imm != 0;
    count += (thread->slots[own.c] != 0) != is_negated ? 1 : 0;
    met.push_back(thread->index);
  }
  for (Thread* thread : waiting) {
    const Instruction& own = at(*thread);
    if (own.mode == kCounts) thread->slots[own.d] = count;
    if (own.mode == kAll) thread->slots[own.d] = count == waiting.size() ? 1 : 0;
    if (own.mode == kAny) thread->slots[own.d] = count > 0 ? 1 : 0;
    thread->state = Thread::State::Ready;
    ++thread->pc;
  }
  if (met.size() == threads_.size())
    shared_.meet_all();
  else
    shared_.meet(met);
}

bool Machine::release_barriers() {
  std::array<std::vector<Thread*>, kBarriers> waiting;
  for (Thread& thread : threads_) {
    if (thread.state != Thread::State::AtBarrier) continue;
    const uint64_t barrier = thread.slots[at(thread).a];
    if (barrier >= kBarriers)
      throw Fault(Fault::Of::Barrier,
                  "no barrier " + std::to_string(barrier) + ", at " + place_of(at(thread), thread));
    waiting[barrier].push_back(&thread);
  }
  bool has_moved = false;
  for (uint32_t barrier = 0; barrier < kBarriers; ++barrier) {
    const std::vector<Thread*>& here = waiting[barrier];
    if (here.empty()) continue;
    const Instruction& i = at(*here.front());
    uint64_t wanted = threads_.size();
    if (i.count != 0) {
      wanted = here.front()->slots[i.b];
      if (wanted == 0 || wanted % kWarp != 0 || here.size() + arrived_[barrier] > wanted)
        throw Fault(Fault::Of::Barrier, "a barrier of " + std::to_string(wanted) +
                                            " threads with " + std::to_string(here.size()) +
                                            " waiting, at " + place_of(i, *here.front()));
    }
    if (here.size() + arrived_[barrier] < wanted) continue;
    release(here, i);
    arrived_[barrier] = 0;
    has_moved = true;
  }
  return has_moved;
}

std::string Machine::places() const {
  std::string text;
  std::vector<std::pair<uint32_t, Thread::State>> told;
  for (const Thread& thread : threads_) {
    const auto key = std::pair(thread.pc, thread.state);
    if (std::ranges::find(told, key) != told.end() || told.size() > 4) continue;
    told.push_back(key);
    text += "; " + place_of(at(thread), thread) +
            (thread.state == Thread::State::Ended       ? " has ended"
             : thread.state == Thread::State::AtBarrier ? " waits at a barrier"
                                                        : " waits for its warp");
  }
  return text;
}

void Machine::stuck() const {
  throw Fault(Fault::Of::Barrier,
              "the threads of " + entry().name + " wait for each other for ever" + places());
}

void Machine::begin_copy(const Instruction& i, const Thread::Copied& copy, Thread& thread) {
  if (copy.to % copy.bytes != 0 || copy.from % copy.bytes != 0)
    throw Fault(Fault::Of::Misaligned,
                "a copy that is not aligned to its bytes, at " + place_of(i, thread));
  shared_.begin_copy(copy.to, copy.bytes, {thread.index, i.line});
  if (counts_) {
    counts_->add(i, thread.index, true, copy.to, copy.bytes);
    counts_->add(i, thread.index, false, copy.from, copy.valid);
  }
  thread.copies.push_back(copy);
}

// What is read is what is there now: the latest that a copy may be.
void Machine::end_copies(Thread& thread, uint64_t most) {
  std::erase_if(thread.copies, [&](const Thread::Copied& copy) {
    if (copy.group + most >= thread.groups) return false;
    std::byte* to = shared_.end_copy(copy.to, copy.bytes);
    std::memset(to, 0, copy.bytes);
    if (copy.valid == 0) return true;
    const std::byte* from = global.find(copy.from, copy.valid, device_);
    if (!from)
      throw Fault(Fault::Of::Address, "a copy reads " + std::to_string(copy.valid) +
                                          " bytes that are in no allocation, at " +
                                          place_of(*copy.at, thread));
    std::memcpy(to, from, copy.valid);
    return true;
  });
}

std::byte* Machine::resolve(const Instruction& i, uint64_t address, uint32_t bytes, Access how,
                            const Thread& thread) {
  if (address % bytes != 0)
    throw Fault(Fault::Of::Misaligned, "address " + std::to_string(address) +
                                           " is not aligned to " + std::to_string(bytes) + ", at " +
                                           place_of(i, thread));
  Space space = i.space;
  if (space == Space::Generic) {
    space = address >= kLocalWindow    ? Space::Local
            : address >= kSharedWindow ? Space::Shared
                                       : Space::Global;
    if (space == Space::Local) address -= kLocalWindow;
    if (space == Space::Shared) address -= kSharedWindow;
  }
  if (counts_ && space != Space::Local)
    counts_->add(i, thread.index, space == Space::Shared, address, bytes);
  if (space == Space::Shared) return shared_.access(address, bytes, how, {thread.index, i.line});
  if (space == Space::Local) {
    if (address <= entry().local_bytes && bytes <= entry().local_bytes - address)
      return thread.local + address;
    throw Fault(Fault::Of::Address, "local byte " + std::to_string(static_cast<int64_t>(address)) +
                                        " of " + std::to_string(entry().local_bytes) + " at " +
                                        place_of(i, thread));
  }
  std::byte* found = global.find(address, bytes, device_);
  if (found) return found;
  throw Fault(Fault::Of::Address,
              std::to_string(bytes) + " bytes at address " + std::to_string(address) +
                  " are in no allocation of the device, at " + place_of(i, thread));
}

}  // namespace tiny::emulation
