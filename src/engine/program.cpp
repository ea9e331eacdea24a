#include "engine/program.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/kernel_abi.h"
#include "base/text.h"
#include "engine/dependencies.h"
#include "engine/observe.h"
#include "engine/plan.h"

namespace tiny {

namespace {

// An exclusive program's one place to run, for one execution.  At its end, also if that failed, the
// tensors that were written to know of it.
class Turn {
 public:
  Turn(Program& program, std::span<const Ref<Storage>> bound, std::span<const uint8_t> is_tensors)
      : program_(program), bound_(bound), is_tensors_(is_tensors) {
    if (!program_.is_exclusive) return;
    require(!program_.is_running.exchange(true, std::memory_order_acquire), Status::Busy,
            "another run of this program is executing; it writes tensors, so one at a time may");
  }
  ~Turn() {
    for (size_t i = 0; i < bound_.size(); ++i)
      if (is_tensors_[i]) bound_[i]->count_run();
    if (!program_.is_exclusive) return;
    for (const Slot& slot : program_.slots)
      if (slot.is_written) slot.storage->count_run();
    program_.is_running.store(false, std::memory_order_release);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Program& program_;
  std::span<const Ref<Storage>> bound_;
  std::span<const uint8_t> is_tensors_;
};

}  // namespace

Program::Program(Plan plan) : Plan(std::move(plan)) {
  if (has_one_list(*this)) launches = list_launches(*this, std::vector<int64_t>(variables.size()));
  movers.resize(slots.size());
  moved.resize(loops.size());
  input_slots.assign(static_cast<size_t>(inputs), kNoSlot);
  output_slots.assign(static_cast<size_t>(outputs), kNoSlot);
  for (uint32_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    if (slot.kind == SlotKind::Input) input_slots.at(static_cast<size_t>(slot.number)) = i;
    if (slot.kind == SlotKind::Output) output_slots.at(static_cast<size_t>(slot.number)) = i;
    if (slot.is_written) written_slots.push_back(i);
    if (slot.kind != SlotKind::Moving) continue;
    for (const uint32_t of : {slot.motion.base, slot.motion.first})
      if (of != Motion::kNone) movers[of].push_back(i);
    moved[slot.motion.loop].push_back(i);
  }
  is_asked = !sizes.empty() || std::ranges::any_of(loops, &TapeLoop::is_counted) ||
             std::ranges::any_of(tape, [](const TapeEntry& entry) { return entry.info.checks; });
}

bool Plan::has_known_sizes() const {
  return std::ranges::all_of(variables, [](const ProgramVariable& v) { return v.min == v.max; });
}

LaunchFigures launch_figures(const KernelInfo& kernel, std::span<const int64_t> variables) {
  const auto& of = kernel.of_sizes;
  if (!of) return {kernel.operations, kernel.bytes};
  return {static_cast<double>(of->operations.value(variables)),
          static_cast<double>(of->bytes.value(variables))};
}

std::vector<std::string> computed_names(const Plan& plan, const TapeEntry& entry) {
  std::vector<std::string> names;
  for (const uint32_t at : entry.computes)
    if (at < plan.names.size() && !plan.names[at].empty()) names.push_back(plan.names[at]);
  return names;
}

std::string computed_text(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3, kLength = 32;  // that a line of a profile has room for
  std::string text;
  const size_t shown = names.size() > kShown ? kShown - 1 : names.size();
  for (size_t i = 0; i < shown; ++i) {
    const std::string& name = names[i];
    // Of a path its end says the most.
    const bool is_long = name.size() > kLength;
    text += cat(i > 0 ? " + " : "", is_long ? ".." : "",
                is_long ? name.substr(name.size() - kLength + 2) : name);
  }
  return shown == names.size() ? text : cat(text, " + ", names.size() - shown, " more");
}

bool overlap(const Storage& a, int64_t a_bytes, const Storage& b, int64_t b_bytes) {
  if (a.memory().host() && b.memory().host()) {
    const std::byte* from = a.memory().host() + a.byte_offset();
    const std::byte* other = b.memory().host() + b.byte_offset();
    return std::less<>()(from, other + b_bytes) && std::less<>()(other, from + a_bytes);
  }
  return &a.memory() == &b.memory() && a.byte_offset() < b.byte_offset() + b_bytes &&
         b.byte_offset() < a.byte_offset() + a_bytes;
}

Run::Run(Ref<Program> program, bool is_once) : program_(std::move(program)) {
  const Program& p = *program_;
  given_.is_once = is_once;
  if (!p.device->is_late()) queue_ = p.device->make_queue();
  bound_.resize(p.slots.size());
  is_tensors_.resize(p.slots.size());
  slots_.resize(p.slots.size());
  for (const ProgramVariable& v : p.variables) values_.of_program.push_back(v.min);
  for (const TapeEntry& entry : p.tape) {
    values_.begins.push_back(values_.of_entries.size());
    values_.of_entries.resize(values_.of_entries.size() + entry.variables.size());
  }
  values_.begins.push_back(values_.of_entries.size());
  if (p.launches) make_launches({});
  for (size_t i = 0; i < p.slots.size(); ++i) {
    const Slot& s = p.slots[i];
    if (s.kind == SlotKind::Captured)
      set_argument(i, {&s.storage->memory(), s.storage->byte_offset()});
  }
  if (p.has_known_sizes()) fit_to_variables();
}

// Arguments and values of variables change in their place.
void Run::make_launches(std::optional<LaunchList> list) {
  own_list_ = std::move(list);
  const LaunchList& of = this->list();
  arguments_.assign(static_cast<size_t>(of.arguments), {});
  launches_.clear();
  std::span<const Argument> arguments = arguments_;
  for (size_t i = 0; i < of.order.size(); ++i) {
    const TapeEntry& entry = program_->tape[of.order[i].entry];
    Launch& launch = launches_.emplace_back();
    launch.executable = entry.executable.get();
    launch.arguments = arguments.first(entry.slots.size());
    launch.variables = variables(of.order[i].entry);
    launch.after = of.after[i];
    arguments = arguments.subspan(entry.slots.size());
  }
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].buffer) set_argument(i, slots_[i]);
  given_.parts.clear();
  given_.needs = nullptr;
  for (const LaunchPart& part : of.parts)
    if (!given_.is_once) given_.parts.push_back(program_->device->prepare(launches_of(part)));
  timing_.seconds.reserve(program_->tape.size());
  timing_.launches.reserve(launches_.size());
}

void Run::set_argument(size_t slot, Argument argument) {
  slots_[slot] = argument;
  given_.has_changed = true;
  given_.needs = nullptr;
  if (launches_.empty()) return;
  for (const SlotUse& use : list().uses[slot]) arguments_[use.argument] = argument;
  for (const uint32_t mover : program_->movers[slot]) move(mover);
}

// Where the part of a slot is that belongs to this step of so many.
Argument Run::part_of(const Motion& motion, int64_t count, int64_t step) const {
  int64_t part = motion.after_last ? count : step;
  if (motion.before || motion.after_last) --part;
  if (part < 0) return slots_[motion.first];
  if (motion.alternates)
    part %= 2;
  else if (motion.reverse)
    part = count - 1 - part;
  Argument argument = slots_[motion.base];
  argument.byte_offset += part * motion.stride.value(values_.of_program);
  return argument;
}

// Gives the launches the parts of a slot that belong to their steps, unless the run counts these.
void Run::move(size_t slot) {
  const Motion& motion = program_->slots[slot].motion;
  const TapeLoop& loop = program_->loops[motion.loop];
  if (loop.is_counted()) return;
  const int64_t count = loop.count.value(values_.of_program);
  for (const SlotUse& use : list().uses[slot])
    arguments_[use.argument] = part_of(motion, count, use.step);
}

// The same of a scan whose steps the run counts, before this step, or behind so many.
void Run::move_to(size_t slot, int64_t step) {
  given_.has_changed = true;
  const Argument argument = part_of(program_->slots[slot].motion, step, step);
  for (const SlotUse& use : list().uses[slot]) arguments_[use.argument] = argument;
}

// Small arenas have no margin.
constexpr int64_t kMarginFrom = 256 << 10;

// Where the arenas' values lie and what the tape's loops count, for the present values; the
// greatest of those that the run computes.
void Run::fit_to_variables() {
  const Program& p = *program_;
  for (const ComputedSize& size : p.sizes)
    values_.of_program[size.variable] = p.variables[size.variable].max;
  for (const TapeLoop& loop : p.loops)
    if (loop.induction_variable != kNoSlot)
      values_.of_program[loop.induction_variable] = p.variables[loop.induction_variable].max;
  if (!p.launches) make_launches(list_launches(p, values_.of_program));
  lay_out(0);
  use_variables();
  has_room_ = false;
  fits_ = true;
}

// Those of the variables, but for open ones the greatest where the run computes them.
std::vector<int64_t> Run::greatest_values() const {
  std::vector<int64_t> values = values_.of_program;
  for (const ComputedSize& size : program_->sizes)
    if (size.open_sizes == 0) values[size.variable] = program_->variables[size.variable].max;
  for (const TapeLoop& loop : program_->loops)
    if (loop.induction_variable != kNoSlot)
      values[loop.induction_variable] = program_->variables[loop.induction_variable].max;
  return values;
}

// The same of the slots that so many open sizes decide about, the last of which the run has read
// just now: none of them has a value yet.
void Run::lay_out(uint32_t open_sizes) {
  const Program& p = *program_;
  const std::vector<int64_t> values = greatest_values();
  std::vector<Lifetime> lives;
  std::vector<uint32_t> owners;
  for (uint32_t i = 0; i < p.slots.size(); ++i) {
    const Slot& slot = p.slots[i];
    if (slot.open_sizes != open_sizes) continue;
    if (slot.kind == SlotKind::Output && open_sizes > 0) {
      const int64_t bytes = std::max<int64_t>(slot.size.value(values), 1);
      if (bound_[i] && bound_[i]->memory().bytes() >= bytes) continue;
      unbind(i);
      bind(i, make_ref<Storage>(p.device->allocate(bytes), 0));
    }
    if (slot.kind != SlotKind::Arena) continue;
    lives.push_back(
        {std::max<int64_t>(slot.size.value(values), 0), slot.first, slot.last, slot.arena_offset});
    owners.push_back(i);
  }
  if (lives.empty()) return;
  const int64_t bytes = p.has_known_sizes() ? p.arena_bytes : place_lifetimes(lives, p.layout);
  const int64_t margin = bytes >= kMarginFrom ? p.layout.margin : 0;
  if (arenas_.size() <= open_sizes) arenas_.resize(open_sizes + 1);
  Ref<Buffer>& arena = arenas_[open_sizes];
  // Values without elements need a place too.
  if (!arena || arena->bytes() < bytes + 2 * margin) {
    for (const uint32_t owner : owners) set_argument(owner, {});
    arena = nullptr;  // the device may not have both
    arena = p.device->allocate(bytes + 2 * margin);
    const std::vector<std::byte> touched(static_cast<size_t>(margin));
    for (const int64_t at : {int64_t{0}, margin + bytes})
      if (margin > 0) p.device->copy_in(nullptr, *arena, at, touched.data(), margin);
  }
  for (size_t i = 0; i < lives.size(); ++i)
    set_argument(owners[i], {arena.get(), margin + lives[i].offset});
}

// What is bound has room for the greatest of the sizes that the run computes.
void Run::require_room() {
  const Program& p = *program_;
  const std::vector<int64_t> greatest = greatest_values();
  for (size_t i = 0; i < p.slots.size(); ++i) {
    if (!bound_[i] || p.slots[i].open_sizes > 0) continue;
    const int64_t room = bound_[i]->memory().bytes() - bound_[i]->byte_offset();
    const int64_t needed = p.slots[i].size.value(greatest);
    require(room >= needed, Status::InvalidArgument, "the bound memory has ", room, " bytes of ",
            needed);
  }
  has_room_ = true;
}

// Gives the launches the present values: those of their kernels, and the parts of what moves.
void Run::use_variables() {
  const Program& p = *program_;
  // What was bound before lies where it lay, but its parts do not.
  for (size_t i = 0; i < p.slots.size(); ++i)
    if (p.slots[i].kind == SlotKind::Moving) move(i);
  for (size_t i = 0; i < p.tape.size(); ++i)
    for (size_t k = 0; k < p.tape[i].variables.size(); ++k)
      values_.of_entries[values_.begins[i] + k] = values_.of_program[p.tape[i].variables[k]];
  for (size_t i = 0; i < launches_.size(); ++i) {
    const uint32_t entry = list().order[i].entry;
    const SizeExpression& extent = p.tape[entry].threads_extent;
    const int64_t threads = extent.value(variables(entry));
    launches_[i].end = extent.is_const() && threads == 0 ? 1 : threads;
  }
  given_.has_changed = true;
}

// The sizes that the run has computed before this entry, from `next` on.
void Run::read_sizes(uint32_t entry, size_t& next) {
  const Program& p = *program_;
  bool has_changed = false;
  for (; next < p.sizes.size() && p.sizes[next].entry <= entry; ++next) {
    const ComputedSize& size = p.sizes[next];
    const ProgramVariable& v = p.variables[size.variable];
    const auto value = value_in<int64_t>(size.slot);
    require_in_range();
    require(value >= v.min, Status::Limit, "the size \"", v.name, "\" is ", value,
            ": what data says does not fit");
    require(value <= v.max, Status::Limit, "the size \"", v.name, "\" is ", value, "; it may be ",
            v.min, " to ", v.max);
    has_changed |= std::exchange(values_.of_program[size.variable], value) != value;
    if (size.open_sizes > 0) lay_out(size.open_sizes);
  }
  if (has_changed) use_variables();
}

void Run::require_in_range() const {
  if (const int64_t status = program_->device->status(*queue_); status != 0)
    throw_error(Status::Index, "an index read from data is out of range, at position ",
                check_position(status), " of the index tensor");
}

bool Run::makes_output(int64_t number) const {
  const uint32_t at = program_->output_slots[static_cast<size_t>(number)];
  return at != kNoSlot && program_->slots[at].open_sizes > 0;
}

const Ref<Storage>& Run::made_output(int64_t number) const {
  return bound_[program_->output_slots[static_cast<size_t>(number)]];
}

void Run::bind(uint32_t at, const Ref<Storage>& storage) {
  const Slot& slot = program_->slots[at];
  const int64_t room = storage->memory().bytes() - storage->byte_offset();
  require(!slot.size.is_const() || room >= slot.bytes, Status::InvalidArgument,
          "the bound memory has ", room, " bytes of ", slot.bytes);
  if (!slot.size.is_const()) has_room_ = false;
  bound_[at] = storage;
  set_argument(at, {&storage->memory(), storage->byte_offset()});
}

void Run::unbind() {
  const Program& p = *program_;
  for (uint32_t i = 0; i < p.slots.size(); ++i) {
    if (p.slots[i].kind == SlotKind::Input || p.slots[i].kind == SlotKind::Output) unbind(i);
  }
}

void Run::unbind(uint32_t slot) {
  set_argument(slot, {});
  bound_[slot] = nullptr;
  is_tensors_[slot] = 0;
}

void Run::let_go_output(int64_t number) {
  unbind(program_->output_slots[static_cast<size_t>(number)]);
}

void Run::require_not_written(int64_t number, const Storage& storage) const {
  const uint32_t at = program_->input_slots[static_cast<size_t>(number)];
  if (at == kNoSlot) return;
  for (const uint32_t written : program_->written_slots) {
    const Slot& slot = program_->slots[written];
    require(!overlap(storage, program_->slots[at].bytes, *slot.storage, slot.bytes),
            Status::InvalidArgument,
            "the input's memory is that of a tensor which the program writes: pass a copy");
  }
}

void Run::bind_input(int64_t number, Ref<Storage> storage) {
  require_not_written(number, *storage);
  const uint32_t at = program_->input_slots[static_cast<size_t>(number)];
  if (at != kNoSlot) bind(at, storage);
}

void Run::bind_output(int64_t number, Ref<Storage> storage, bool is_tensors) {
  const uint32_t at = program_->output_slots[static_cast<size_t>(number)];
  if (at == kNoSlot) return;
  bind(at, storage);
  is_tensors_[at] = is_tensors ? 1 : 0;
}

bool Run::is_used(size_t slot) const {
  return !list().uses[slot].empty() || !program_->movers[slot].empty() ||
         std::ranges::any_of(program_->loops,
                             [&](const TapeLoop& loop) { return loop.counted == slot; }) ||
         std::ranges::count(program_->sizes, slot, &ComputedSize::slot) > 0;
}

const Slot* Run::find_overlap(const Storage& storage, int64_t bytes) const {
  for (size_t i = 0; i < bound_.size(); ++i) {
    const Slot& slot = program_->slots[i];
    if (slot.kind != SlotKind::Input && slot.kind != SlotKind::Captured) continue;
    const Ref<Storage>& other = slot.kind == SlotKind::Captured ? slot.storage : bound_[i];
    if (other && overlap(storage, bytes, *other, slot.size.value(values_.of_program))) return &slot;
  }
  return nullptr;
}

void Run::bind_variable(int64_t number, int64_t value) {
  const ProgramVariable& v = program_->variables[static_cast<size_t>(number)];
  require(value >= v.min && value <= v.max, Status::InvalidArgument, "the variable ", v.name,
          " is from ", v.min, " to ", v.max, "; got ", value);
  int64_t& known = values_.of_program[static_cast<size_t>(number)];
  if (known != value) fits_ = false;
  known = value;
}

void Run::execute(StopSignal::Since since) {
  stop_.set_poll(program_->poll);
  stop_.begin(program_->time_limit, since);
  execute(stop_);
}

void Run::execute(const StopSignal& stop) {
  const Program& p = *program_;
  if (!fits_) fit_to_variables();
  if (!has_room_) require_room();
  for (size_t i = 0; i < slots_.size(); ++i)
    require(slots_[i].buffer || p.slots[i].kind == SlotKind::Moving || p.slots[i].open_sizes > 0 ||
                !is_used(i),
            Status::InvalidArgument, "an input or output is not bound");
  const Turn turn(*program_, bound_, is_tensors_);
  p.device->counts().interpreted.fetch_add(list().interpreted, std::memory_order_relaxed);
  timing_.seconds.clear();
  timing_.launches.clear();
  const bool is_timed = timing_.is_on || (p.observer && p.observer->times_launches());
  if (p.device->is_late() && !p.is_asked && !is_timed) return give(stop);
  if (p.device->is_late()) p.device->in_flight().wait();  // this comes after
  if (!queue_) queue_ = p.device->make_queue();
  p.device->clear_status(*queue_);
  const Ref<Event> begin = is_timed ? p.device->record(*queue_) : nullptr;
  size_t sizes = 0;  // that are known
  execute_parts(stop, [&](const LaunchPart& part) {
    read_sizes(list().order[part.first].entry, sizes);
    count_launches(part);
    if (is_timed)
      execute_timed(part.first, part.end, *begin, stop);
    else
      execute_part(static_cast<size_t>(&part - list().parts.data()), *queue_, stop);
  });
  read_sizes(UINT32_MAX, sizes);
  if (timing_.is_on) {
    timing_.seconds.resize(p.tape.size());
    for (const Timed& launch : timing_.launches) timing_.seconds[launch.entry] += launch.seconds;
  }
  require_in_range();
}

void Run::execute_part(size_t part, const Queue& queue, const StopSignal& stop) {
  if (given_.is_once)
    return program_->device->launch_all(&queue, launches_of(list().parts[part]), stop);
  if (std::exchange(given_.has_changed, false))
    for (const Ref<Prepared>& prepared : given_.parts) prepared->changed();
  given_.parts[part]->run(&queue, stop);
}

// Gives the device all launches, and waits for none.
void Run::give(const StopSignal& stop) {
  InFlight& in_flight = program_->device->in_flight();
  stop.check();
  for (const LaunchPart& part : list().parts) count_launches(part);
  in_flight.give(needs(), [&](const Queue& queue) {
    const bool stays = program_->device->keeps_signals();
    for (size_t part = 0; part < list().parts.size(); ++part)
      execute_part(part, queue, stays ? in_flight.never() : stop);
  });
}

Ref<const Needs> Run::needs() {
  if (given_.needs) return given_.needs;
  std::vector<Ref<Buffer>> buffers;
  for (const Argument& slot : slots_)
    if (slot.buffer) buffers.emplace_back(slot.buffer);
  std::vector<Ref<RefCounted>> others(given_.parts.begin(), given_.parts.end());
  for (const TapeEntry& entry : program_->tape) others.emplace_back(entry.executable);
  return given_.needs = make_ref<const Needs>(std::move(buffers), std::move(others));
}

// In the device's counts, before they run.
void Run::count_launches(const LaunchPart& part) {
  const Program& p = *program_;
  double operations = 0, bytes = 0;
  for (size_t i = part.first; i < part.end; ++i) {
    const LaunchFigures of =
        launch_figures(p.tape[list().order[i].entry].info, launches_[i].variables);
    operations += of.operations;
    bytes += of.bytes;
  }
  DeviceCounts& counts = p.device->counts();
  const auto count = static_cast<int64_t>(part.end - part.first);
  counts.launches.fetch_add(count, std::memory_order_relaxed);
  counts.operations.fetch_add(operations, std::memory_order_relaxed);
  counts.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

template <class T>
T Run::value_in(uint32_t slot) const {
  const Argument& at = slots_[slot];
  T value{};
  program_->device->copy_out(queue_.get(), &value, *at.buffer, at.byte_offset, sizeof(T));
  program_->device->wait(queue_.get());
  return value;
}

template <class Part>
void Run::execute_parts(const StopSignal& stop, const Part& execute) {
  for (const LaunchPart& part : list().parts) {
    if (part.loop == LaunchPart::kOnce)
      execute(part);
    else
      execute_loop(part, stop, execute);
  }
}

// One part, as often as the run finds out, unless an index was out of range: then what it reads may
// be anything.
template <class Part>
void Run::execute_loop(const LaunchPart& part, const StopSignal& stop, const Part& execute) {
  const TapeLoop& loop = program_->loops[part.loop];
  const auto most = value_in<int64_t>(loop.counted);
  int64_t step = 0;
  const auto is_sound = [&] { return program_->device->status(*queue_) == 0; };
  for (bool goes_on = true; goes_on && step < most && is_sound(); ++step) {
    stop.check();
    if (loop.induction_variable != kNoSlot) {
      values_.of_program[loop.induction_variable] = loop.from.value(values_.of_program) + step;
      use_variables();
    }
    for (const uint32_t slot : program_->moved[part.loop]) move_to(slot, step);
    execute(part);
    if (loop.again != kNoSlot) goes_on = value_in<uint8_t>(loop.again) != 0;
  }
  for (const uint32_t slot : program_->moved[part.loop]) move_to(slot, step);
}

void Run::execute_timed(size_t first, size_t end, const Event& begin, const StopSignal& stop) {
  const Program& p = *program_;
  for (size_t i = first; i < end; ++i) {
    stop.check();
    const Ref<Event> start = p.device->record(*queue_);
    p.device->launch(queue_.get(), launches_[i], stop);
    const Ref<Event> done = p.device->record(*queue_);
    p.device->wait(queue_.get());
    stop.check_known();
    const double seconds = p.device->seconds(*start, *done);
    p.device->counts().seconds.fetch_add(seconds, std::memory_order_relaxed);
    const uint32_t entry = list().order[i].entry;
    if (timing_.is_on)
      timing_.launches.push_back({entry, p.device->seconds(begin, *start), seconds});
    if (!p.observer || !p.observer->times_launches()) continue;
    const double end_of = p.observer->now();
    p.observer->launched(p.tape[entry].info, computed_names(p, p.tape[entry]),
                         launches_[i].variables, p.device->name(), end_of - seconds, end_of);
  }
}

}  // namespace tiny
