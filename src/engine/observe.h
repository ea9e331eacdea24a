// What a context tells of its work: the ladder of TINY_DEBUG, graphs as files, the trace, counts.
//
//   1 devices and the choice    2 each launch, timed    3 kernels: tree, options, loops; buffers
//   4 source    5 UOps and time of each pass    6 machine code    7 every rewrite
//
// Everything goes to the settings' log (stderr, if none was set) or to files, never to stdout, and
// nothing is told by destructors: the owner of the context calls finish() when it is released.
// Launches may be told by several threads at once; the rest belongs to the thread that builds.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/count.h"
#include "base/flags.h"
#include "codegen/pipeline.h"
#include "ir/kernel.h"
#include "ir/rewrite.h"
#include "ir/target.h"

namespace tiny {

class Backend;
struct Plan;
struct KernelInfo;
struct JoinTrial;
class JsonWriter;
class Recorder;
struct GraphPassNote;

// Seconds by the name of a pass, which is a literal.
class PassSeconds {
 public:
  void add(const char* pass, double seconds);
  std::map<std::string, double> all() const;

 private:
  struct Entry {
    std::atomic<const char*> pass{nullptr};
    Count<double> seconds;
  };
  static constexpr size_t kPassesMax = 64;
  std::array<Entry, kPassesMax> entries_;
};

// What was compiled since the context began: counted by the thread that builds, read by any but for
// the last.
struct CompileCounts {
  Count<int64_t> compiled;
  Count<int64_t> cached;                // kernels that were asked for again
  Count<int64_t> plans_cached;          // graphs that were asked for again
  Count<int64_t> plans_on_disk;         // for which an earlier process had made the plan
  Count<int64_t> programs_on_disk;      // made as an earlier process had made them
  Count<int64_t> on_disk;               // that an earlier process had compiled
  Count<int64_t> interpreted;           // of those compiled, because machine code could not be had
  Count<int64_t> searched;              // kernels whose optimisations were searched for
  Count<int64_t> candidates;            // that searches compiled
  Count<double> schedule;               // seconds from a graph to a list of kernels
  Count<double> lower;                  // seconds from a kernel to its linear program
  Count<double> load;                   // seconds of rendering and loading
  std::vector<std::string> lists_left;  // names in the setting `opts` that no kernel had so far
};

class Observer {
 public:
  explicit Observer(const Flags& flags);
  ~Observer();

  int64_t level() const { return level_.load(std::memory_order_relaxed); }
  bool tells(int least) const { return level() >= least; }
  // The setting `debug` has changed.
  void set_level(int64_t level);
  void tell(const std::string& text) const;  // in one piece
  // Seconds since the context began.
  double now() const;

  // The device that was chosen, and what else there is.
  void opened(Backend& backend) const;
  // Who is to be told of rewriting; null if nobody asks.
  RewriteWatch* watch();

  CompileCounts& compiles() { return compiles_; }
  const CompileCounts& compiles() const { return compiles_; }
  const PassSeconds& pass_seconds() const { return pass_seconds_; }
  // A pass over a graph.
  void passed(const GraphPassNote& note);
  // What was joined of a graph's kernels, and what was not.
  void joined(std::span<const JoinTrial> trials) const;
  // The beginning of a kernel's compilation: what the scheduler made.
  void lowering(const Kernel& kernel);
  // Whether somebody does, or follows rewriting: kernels are lowered one after the other then.
  bool follows_passes() { return tells(5) || watch() != nullptr || recorder_; }
  // What generate() is to report to.
  void watch_passes(PipelineOptions& options);
  void lowered(const Kernel& kernel, const CodegenResult& result);
  void rendered(const LinearProgram& program, Backend& backend, bool interpreted) const;
  void planned(const Plan& plan) const;
  void drawn(std::span<const UOp> outputs);  // a graph that is computed or compiled

  // A piece of work of the calling thread, for the trace.
  void span(const char* category, std::string name, double start, double end,
            std::string arguments = {});
  // Whether launches must be timed.
  bool times_launches() const { return tells(2) || flags_.profile != 0 || recorder_; }
  // `computes`: whose work it does.
  void launched(const KernelInfo& kernel, const std::vector<std::string>& computes,
                std::span<const int64_t> variables, const std::string& device, double start,
                double end);

  // "profile" of a JSON object, with the setting of this name at 2: what the launches of each
  // kernel took.
  void put_profile(JsonWriter& json);

  // What the setting `viz` has kept, as JSON; Error{InvalidArgument} without it.
  std::string record() const;

  // Tells what is told at the end, and writes the trace; does nothing the second time.
  void finish();

 private:
  struct Span {
    const char* category;
    std::string name;
    double start;
    double end;
    int64_t thread;
    std::string arguments;  // a JSON object, or empty
  };
  struct KernelTime {
    std::string name;
    std::string options;
    std::vector<std::string> computes;
    bool scalar = false;
    int64_t launches = 0;
    double seconds = 0;
    double operations = 0;
    double bytes = 0;
  };
  struct Totals {
    int64_t launches = 0;
    double seconds = 0;
    double operations = 0;
    double bytes = 0;
  };
  void put_spans(JsonWriter& json) const;
  void write_file(const char* what, const char* ending, const std::string& text) const;
  std::string trace_json() const;
  std::string averages() const;

  const Flags& flags_;
  std::atomic<int64_t> level_{0};  // read by runs while a building call changes it
  double begin_ = 0;
  RewriteWatch watch_;
  CompileCounts compiles_;
  PassSeconds pass_seconds_;
  bool finished_ = false;
  std::unique_ptr<Recorder> recorder_;  // null unless the setting `viz` asks

  mutable std::mutex mutex_;  // of what follows
  std::vector<Span> spans_;
  int64_t spans_left_out_ = 0;
  std::vector<KernelTime> kernels_;              // in the order of their first launches
  std::map<std::string, size_t> kernel_places_;  // by name
  Totals told_;                                  // of the launches that were told
};

}  // namespace tiny
