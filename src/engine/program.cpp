#include "engine/program.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/error.h"
#include "base/kernel_abi.h"
#include "engine/observe.h"

namespace tiny {

namespace {

// An exclusive program's one place to run, for one execution.
class Turn {
 public:
  explicit Turn(Program& program) : program_(program) {
    if (!program_.is_exclusive) return;
    require(!program_.is_running.exchange(true, std::memory_order_acquire), Status::Busy,
            "another run of this program is executing; it writes tensors, so one at a time may");
  }
  ~Turn() {
    if (!program_.is_exclusive) return;
    for (const Slot& slot : program_.slots)
      if (slot.is_written) slot.storage->count_run();
    program_.is_running.store(false, std::memory_order_release);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Program& program_;
};

bool overlap(const Storage& a, int64_t a_bytes, const Storage& b, int64_t b_bytes) {
  if (a.memory().host() && b.memory().host()) {
    const std::byte* from = a.memory().host() + a.byte_offset();
    const std::byte* other = b.memory().host() + b.byte_offset();
    return std::less<>()(from, other + b_bytes) && std::less<>()(other, from + a_bytes);
  }
  return &a.memory() == &b.memory() && a.byte_offset() < b.byte_offset() + b_bytes &&
         b.byte_offset() < a.byte_offset() + a_bytes;
}

}  // namespace

Run::Run(Ref<Program> program) : program_(std::move(program)) {
  const Program& p = *program_;
  // Values without elements need a place too.
  for (const Slot& slot : p.slots)
    if (slot.kind == SlotKind::Arena && !arena_) arena_ = p.device->allocate(p.arena_bytes);
  queue_ = p.device->make_queue();
  bound_.resize(p.slots.size());
  values_.resize(p.variables.size());
  for (const TapeEntry& entry : p.tape) {
    for (uint32_t slot : entry.slots) {
      const Slot& s = p.slots[slot];
      Argument argument;
      if (s.kind == SlotKind::Captured) argument = {&s.storage->memory(), s.storage->byte_offset()};
      if (s.kind == SlotKind::Arena) argument = {arena_.get(), s.arena_offset};
      arguments_.push_back(argument);
    }
    entry_values_.resize(entry_values_.size() + entry.variables.size());
  }
  seconds_.reserve(p.tape.size());
}

void Run::bind(SlotKind kind, int64_t number, const Ref<Storage>& storage) {
  const Program& p = *program_;
  bool found = false;
  for (size_t i = 0; i < p.slots.size(); ++i) {
    const Slot& slot = p.slots[i];
    if (slot.kind != kind || slot.number != number) continue;
    found = true;
    require(storage->memory().bytes() - storage->byte_offset() >= slot.bytes,
            Status::InvalidArgument, "the bound memory has ",
            storage->memory().bytes() - storage->byte_offset(), " bytes of ", slot.bytes);
    bound_[i] = storage;
    size_t at = 0;
    for (const TapeEntry& entry : p.tape)
      for (uint32_t s : entry.slots) {
        if (s == i) arguments_[at] = {&storage->memory(), storage->byte_offset()};
        ++at;
      }
  }
  (void)found;  // an input that nothing reads has no slot
}

void Run::unbind() {
  const Program& p = *program_;
  const auto is_bound = [&](uint32_t slot) {
    return p.slots[slot].kind == SlotKind::Input || p.slots[slot].kind == SlotKind::Output;
  };
  size_t at = 0;
  for (const TapeEntry& entry : p.tape)
    for (uint32_t slot : entry.slots) {
      if (is_bound(slot)) arguments_[at] = {};
      ++at;
    }
  for (size_t i = 0; i < p.slots.size(); ++i)
    if (is_bound(static_cast<uint32_t>(i))) bound_[i] = nullptr;
}

void Run::bind_input(int64_t number, Ref<Storage> storage) {
  for (const Slot& input : program_->slots) {
    if (input.kind != SlotKind::Input || input.number != number) continue;
    for (const Slot& slot : program_->slots)
      require(!slot.is_written || !overlap(*storage, input.bytes, *slot.storage, slot.bytes),
              Status::InvalidArgument,
              "the input's memory is that of a tensor which the program writes: pass a copy");
  }
  bind(SlotKind::Input, number, storage);
}
void Run::bind_output(int64_t number, Ref<Storage> storage) {
  bind(SlotKind::Output, number, storage);
}
void Run::bind_variable(int64_t number, int64_t value) {
  values_[static_cast<size_t>(number)] = value;
}

void Run::execute() {
  const Program& p = *program_;
  for (const Argument& argument : arguments_)
    require(argument.buffer != nullptr, Status::InvalidArgument, "an input or output is not bound");
  const Turn turn(*program_);
  p.device->counts().launches.fetch_add(std::ssize(p.tape), std::memory_order_relaxed);
  const bool observed = p.observer && p.observer->times_launches();
  const bool timed = timed_ || observed;
  stop_.begin(p.time_limit);
  int64_t status = 0;
  size_t argument = 0;
  size_t variable = 0;
  seconds_.clear();
  for (const TapeEntry& entry : p.tape) {
    stop_.check();
    for (size_t i = 0; i < entry.variables.size(); ++i)
      entry_values_[variable + i] = values_[entry.variables[i]];
    Launch launch;
    launch.executable = entry.executable.get();
    launch.arguments = std::span(arguments_).subspan(argument, entry.slots.size());
    launch.variables = std::span(entry_values_).subspan(variable, entry.variables.size());
    launch.end = entry.threads_extent > 0 ? entry.threads_extent : 1;
    launch.status = &status;
    const auto start =
        timed ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
    p.device->launch(queue_.get(), launch);
    if (timed) {
      p.device->wait(queue_.get());
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (timed_) seconds_.push_back(seconds);
      if (observed) {
        const double end = p.observer->now();
        p.observer->launched(entry.info, p.device->name(), end - seconds, end);
      }
    }
    argument += entry.slots.size();
    variable += entry.variables.size();
  }
  p.device->wait(queue_.get());
  if (status != 0)
    throw Error(Status::Index, cat("an index read from data is out of range, at position ",
                                   check_position(status), " of the index tensor"));
}

}  // namespace tiny
