// A program: an immutable tape of launches, the buffers they name and an arena plan.  It holds no
// UOps, so that any thread may run it; each run has its own arena.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "base/stop.h"
#include "engine/launches.h"
#include "engine/size.h"
#include "engine/storage.h"
#include "ir/kernel.h"
#include "ir/target.h"
#include "runtime/device.h"
#include "runtime/in_flight.h"

namespace tiny {

// Where a slot's memory is.
enum class SlotKind : uint8_t { Captured, Input, Output, Arena, Moving };

// Memory that is another part of a slot in each step of a scan (ScanLoop, shape/shape.h).
struct Motion {
  uint32_t base = 0;
  uint32_t first = kNone;   // the slot of what is there before the first step
  SizeExpression stride;    // bytes from step to step
  uint32_t loop = 0;        // which of the plan's
  bool before = false;      // what the step before this one has left
  bool after_last = false;  // what the last step has left, whoever asks
  bool alternates = false;  // between two parts: only the newest is wanted
  bool reverse = false;     // the first step has the last part
  static constexpr uint32_t kNone = UINT32_MAX;
};

struct Slot {
  SlotKind kind = SlotKind::Arena;
  Ref<Storage> storage;      // Captured
  int64_t number = 0;        // Input, Output: which; Captured: which of the graph's leaves
  int64_t arena_offset = 0;  // Arena, in a program whose sizes are known
  // Of an Arena or Output slot: 0, or how many open sizes are known once its own is: the last one
  // that it depends on, and those before.
  uint32_t open_sizes = 0;
  int64_t bytes = 0;    // at the most
  SizeExpression size;  // bytes, by the variables
  int64_t first = 0;    // the entries of the tape between which it holds a value
  int64_t last = 0;
  bool is_written = false;  // of captured memory: a kernel stores to it
  Motion motion = {};       // Moving
};

class Observer;

struct KernelInfo {
  std::string name;     // by shape; no other kernel of the context has it
  std::string options;  // the optimisations applied, as text
  int64_t linear_ops = 0;
  double operations = 0;  // arithmetic operations of one launch
  double bytes = 0;       // least traffic of one launch
  struct OfSizes {        // the same by the kernel's variables
    SizeExpression operations, bytes;
  };
  std::optional<OfSizes> of_sizes;  // of a kernel that has some
  bool interpreted = false;
  bool scalar = false;  // loops without any vector
  bool checks = false;  // an index of the data: whether it is in range, the run says
  bool cached = false;  // compiled before this program was
  std::vector<KernelParam> params;
  std::string file;  // its name in the disk cache; empty: it has none
};

// What one launch does, for these values of the kernel's variables.
struct LaunchFigures {
  double operations = 0;
  double bytes = 0;
};
LaunchFigures launch_figures(const KernelInfo& kernel, std::span<const int64_t> variables);

struct TapeEntry {
  Ref<Executable> executable;
  std::vector<uint32_t> slots;      // per parameter
  std::vector<uint32_t> variables;  // per variable of the kernel: which of the program's
  SizeExpression threads_extent;    // of the THREAD range, by the kernel's variables; 0: none
  std::vector<uint32_t> computes;   // which of the plan's names, in the order of the data's flow
  KernelInfo info;
};

inline constexpr uint32_t kNoSlot = UINT32_MAX;

// A segment of the tape that is executed step by step.  One whose steps the run counts may have
// others inside, which stand behind it; a branch is such a segment of one step at most.
struct TapeLoop {
  uint32_t first = 0;  // entries [first, end)
  uint32_t end = 0;
  SizeExpression count;  // of steps, by the program's variables; at the most, if the run counts
  bool beside = false;   // step by step with the segment before it, which ends where it begins
  uint32_t counted = kNoSlot;  // what the run reads before the first step: how many there are
  uint32_t again = kNoSlot;    // after each step: whether another follows
  // Which of the program's variables is `from` in the first step, one more in each other.
  uint32_t induction_variable = kNoSlot;
  SizeExpression from = 0;

  bool is_counted() const { return counted != kNoSlot; }
};

struct ProgramVariable {
  std::string name;
  int64_t min = 0;
  int64_t max = 0;
  bool is_computed = false;  // by the run, instead of given to it
  bool is_open = false;      // such a one for which memory is made when it is known
};

// A variable whose value the run computes, and reads before this entry of the tape.
struct ComputedSize {
  uint32_t variable = 0;  // of the plan's
  uint32_t slot = 0;
  uint32_t entry = 0;
  uint32_t open_sizes = 0;  // of an open one: itself and those that are read before; else 0
};

// What a program does, step by step.  Without the memory of captured slots it fits every graph of
// one structure.
struct Plan {
  std::vector<Slot> slots;
  std::vector<TapeEntry> tape;
  std::vector<TapeLoop> loops;  // in the order of their entries
  std::vector<ProgramVariable> variables;
  std::vector<ComputedSize> sizes;  // in the order of their entries
  std::vector<std::string> names;   // whose work its kernels do
  int64_t arena_bytes = 0;  // with every variable at its greatest value, without open sizes' slots
  int64_t live_bytes_max = 0;  // the largest sum of arena values alive at once
  int64_t inputs = 0;
  int64_t outputs = 0;
  // Whether captured memory is written: then one run at a time.
  bool is_exclusive = false;
  bool has_writes = false;  // of tensors, whose versions share memory

  // Whether all sizes are known: no variable may have two values.
  bool has_known_sizes() const;
};

// Whose work a kernel of the plan does; and that for people: "conv1 + relu1 + 3 more".
std::vector<std::string> computed_names(const Plan& plan, const TapeEntry& entry);
std::string computed_text(const std::vector<std::string>& names);

class Program : public RefCounted, public Plan {
 public:
  Program() = default;
  explicit Program(Plan plan);

  Device* device = nullptr;
  Observer* observer = nullptr;          // of the owner
  Ref<RefCounted> owner;                 // what keeps the device alive
  std::atomic<bool> is_running = false;  // only of an exclusive program
  int64_t time_limit = 0;                // milliseconds of an execution; 0: none
  Poll poll;                             // asked during an execution
  ArenaLayout layout;                    // of the values between kernels
  // What an execution launches; nothing where the variables' values decide that.
  std::optional<LaunchList> launches;
  std::vector<std::vector<uint32_t>> movers;  // by slot: those that are a part of it in each step
  std::vector<std::vector<uint32_t>> moved;   // by loop: those that move in it
  std::vector<uint32_t> input_slots;          // by number; of an input that nothing reads: kNoSlot
  std::vector<uint32_t> output_slots;         // by number
  std::vector<uint32_t> written_slots;        // captured memory that the program writes
  // Whether a run reads something on its way: a status, a count, a size.  A late device has any
  // other one in flight when it returns.
  bool is_asked = false;
};

// Whether the first bytes of two pieces of memory meet.
bool overlap(const Storage& a, int64_t a_bytes, const Storage& b, int64_t b_bytes);

// One execution: bindings and arena.  One thread at a time uses a run.
class Run : public RefCounted {
 public:
  // What is executed once need not be prepared for the next time.
  explicit Run(Ref<Program> program, bool is_once = false);

  void bind_input(int64_t number, Ref<Storage> storage);
  // Error{InvalidArgument} if the program writes to memory that the input would have.
  void require_not_written(int64_t number, const Storage& storage) const;
  // `is_tensors`: the memory is that of a tensor, which is to know that runs write it.
  void bind_output(int64_t number, Ref<Storage> storage, bool is_tensors = false);
  // The first slot that the kernels read, bound or captured, whose memory overlaps these bytes;
  // null if none does.  Outputs are not looked at.
  const Slot* find_overlap(const Storage& storage, int64_t bytes) const;
  // Error{InvalidArgument} for a value outside of the variable's bounds.
  void bind_variable(int64_t number, int64_t value);
  // The value of a variable; of one that executions compute, the last one's.
  int64_t variable(int64_t number) const { return values_.of_program[static_cast<size_t>(number)]; }
  // Whether executions make the memory of the output: its size is open.
  bool makes_output(int64_t number) const;
  // That memory, of the last execution.
  const Ref<Storage>& made_output(int64_t number) const;
  void let_go_output(int64_t number);  // the next execution makes another
  // Launches the tape.  Error{Busy}, before anything is done, while another run of an exclusive
  // program executes.  Error{InvalidArgument} if something is not bound or too small for the
  // variables; Error{Index} if a Check failed; Error{Cancelled} or Error{Limit} if it was to end
  // early: then what it writes has any values, and it can be executed again.  Allocates nothing
  // once everything is bound, but for the arena, which is laid out anew when variables have
  // changed.
  // The limit of time counts from `since` on.
  void execute(StopSignal::Since since = {});
  // The same as part of a call, whose signal ends it instead of the run's own.
  void execute(const StopSignal& stop);
  // Ends an execution when it is set (may be null).
  void set_cancel(Ref<CancelToken> token) { stop_.set_token(std::move(token)); }
  // Lets go of the memory of inputs and outputs.
  void unbind();
  // Seconds of each entry of the last execution with `timed`, of all its launches; empty otherwise.
  void set_timed(bool timed) { timing_.is_on = timed; }
  const std::vector<double>& seconds() const { return timing_.seconds; }
  // Its launches, with their begin in seconds from the execution's.
  struct Timed {
    uint32_t entry = 0;
    double start = 0;
    double seconds = 0;
  };
  const std::vector<Timed>& timed_launches() const { return timing_.launches; }
  // The values of an entry's variables.
  std::span<const int64_t> variables(size_t entry) const {
    return std::span(values_.of_entries)
        .subspan(values_.begins[entry], values_.begins[entry + 1] - values_.begins[entry]);
  }
  const Program& program() const { return *program_; }
  // Of one execution, for the values that the variables have.
  int64_t launch_count() const { return std::ssize(launches_); }

 private:
  void bind(uint32_t slot, const Ref<Storage>& storage);
  void unbind(uint32_t slot);
  void set_argument(size_t slot, Argument argument);
  void move(size_t slot);
  void move_to(size_t slot, int64_t step);
  Argument part_of(const Motion& motion, int64_t count, int64_t step) const;
  bool is_used(size_t slot) const;
  void fit_to_variables();
  std::vector<int64_t> greatest_values() const;
  void lay_out(uint32_t open_sizes);
  void require_room();
  void make_launches(std::optional<LaunchList> list);
  const LaunchList& list() const { return own_list_ ? *own_list_ : *program_->launches; }
  template <class Part>
  void execute_parts(const StopSignal& stop, const Part& execute);
  template <class Part>
  void execute_loop(const LaunchPart& part, const StopSignal& stop, const Part& execute);
  std::span<const Launch> launches_of(const LaunchPart& part) const {
    return std::span(launches_).subspan(part.first, part.end - part.first);
  }
  void execute_part(size_t part, const Queue& queue, const StopSignal& stop);
  void give(const StopSignal& stop);
  Ref<const Needs> needs();
  void count_launches(const LaunchPart& part);
  void read_sizes(uint32_t entry, size_t& next);
  void require_in_range() const;
  void use_variables();
  template <class T>
  T value_in(uint32_t slot) const;
  void execute_timed(size_t first, size_t end, const Event& begin, const StopSignal& stop);

  // Of variables.
  struct Values {
    std::vector<int64_t> of_program;
    std::vector<int64_t> of_entries;  // of all entries, one after the other
    std::vector<size_t> begins;       // by entry: where its own begin; and their end
  };
  // Launches as the device has them.
  struct Given {
    bool is_once = false;
    std::vector<Ref<Prepared>> parts;  // of the list; none of what is executed once
    bool has_changed = false;          // since they were last executed
    Ref<const Needs> needs;            // of all; null: as yet unknown
  };
  struct Timing {
    bool is_on = false;
    std::vector<double> seconds;
    std::vector<Timed> launches;
  };

  Ref<Program> program_;
  std::vector<Ref<Buffer>> arenas_;  // by how many open sizes decide about what lies there
  std::vector<Ref<Storage>> bound_;  // by slot
  std::vector<uint8_t> is_tensors_;  // by slot: an output whose memory a tensor has
  std::vector<Argument> slots_;      // where each is; nowhere: moving ones
  std::vector<Argument> arguments_;  // of all launches, one after the other
  Values values_;
  bool has_room_ = true;                // so has what is bound, as far as its size is no number
  bool fits_ = false;                   // extents and arena are those of the variables' values
  std::optional<LaunchList> own_list_;  // where variables decide
  std::vector<Launch> launches_;
  Given given_;
  Ref<Queue> queue_;  // of executions that are waited for; null before the first
  StopSignal stop_;
  Timing timing_;
};

}  // namespace tiny
