#include "engine/records.h"

#include <unistd.h>

#include <map>
#include <unordered_map>

#include "base/json.h"
#include "base/text.h"
#include "codegen/pipeline.h"
#include "engine/backend.h"
#include "engine/custom_op.h"
#include "engine/graph_passes.h"
#include "engine/kernel_cache.h"
#include "engine/plan.h"
#include "engine/plan_cache.h"
#include "engine/plan_graph.h"
#include "engine/versions.h"
#include "schedule/kernel_origins.h"
#include "schedule/schedule.h"

namespace tiny {

namespace {

const char* access_name(const KernelParam& param) {
  return !param.written ? "read" : param.read ? "update" : "write";
}

const char* kind_name(SlotKind kind) {
  static constexpr const char* kNames[] = {"weights", "input", "output", "temporary", "part"};
  return kNames[static_cast<size_t>(kind)];
}

struct BufferRecord {
  size_t number = 0;  // in its schedule or program
  const char* kind = "";
  int64_t bytes = 0;
};

void put_buffer(JsonWriter& json, const KernelParam& param, const BufferRecord& buffer) {
  json.begin_object().key("access").text(access_name(param));
  json.key("dtype").text(to_string(param.element)).key("bytes").integer(buffer.bytes);
  json.key("buffer").integer(static_cast<int64_t>(buffer.number));
  json.key("kind").text(buffer.kind).end_object();
}

void put_figures(JsonWriter& json, const std::string& options, double operations, double bytes) {
  json.key("options").text(options).key("operations").real(operations);
  json.key("bytes").real(bytes);
}

void put_computes(JsonWriter& json, const std::vector<std::string>& names) {
  json.key("computes").begin_array();
  for (const std::string& name : names) json.text(name);
  json.end_array();
}

void put_ranges(JsonWriter& json, const Kernel& kernel) {
  json.key("ranges").begin_array();
  for (const KernelRange& r : kernel.ranges) {
    const UOp& size = r.range.src(0);
    json.begin_object().key("range").text(cat("r", r.range.int_arg())).key("size");
    size.is_const() ? json.integer(size.const_int()) : json.text(expression_text(size));
    json.key("kind").text(name_of(r.kind));
    json.key("reduced").boolean(r.reduced).end_object();
  }
  json.end_array();
}

// Without those whose names are gone.
std::vector<std::string> named(std::vector<std::string> texts) {
  std::erase(texts, std::string());
  return texts;
}

// The buffers of a schedule, numbered as its kernels name them.
class ScheduleBuffers {
 public:
  ScheduleBuffers(const Schedule& schedule, std::span<const UOp> outputs) : schedule_(schedule) {
    for (const UOp& out : outputs) {
      UOp base = out;
      while (!has_memory(base) && has(base.op(), kMovement)) base = UOp(base.src(0));
      outputs_[base.node()] = true;
    }
  }
  BufferRecord of(const UOp& value) {
    const size_t number = numbers_.try_emplace(value.node(), numbers_.size()).first->second;
    const char* kind = has_memory(value)              ? "memory"
                       : outputs_.count(value.node()) ? "output"
                                                      : "temporary";
    return {number, kind, bytes_of(value, schedule_)};
  }

 private:
  const Schedule& schedule_;
  std::unordered_map<const Node*, size_t> numbers_;
  std::unordered_map<const Node*, bool> outputs_;
};

}  // namespace

namespace {

// What realising outputs would do now, and what its nodes need.
struct Planned {
  Planned(Context& context, std::span<const UOp> outputs) : versions(context, outputs) {
    std::vector<UOp> wanted(outputs.begin(), outputs.end());
    wanted.insert(wanted.end(), versions.copies().begin(), versions.copies().end());
    const Machine& machine = context.backend().machine();
    GraphPassContext passes = graph_pass_context(context);
    passes.noted = nullptr;  // nothing is computed, and counted
    whole = run_graph_passes(wanted, GraphStage::Graph, passes);
    graph = run_graph_passes(whole.roots, GraphStage::Kernels, passes);
    schedule = make_schedule(graph.roots, machine, context.flags().fusion != 0,
                             {parse_joins(context.flags().flip_joins), nullptr, nullptr});
  }
  const Versions versions;
  ChangedGraph whole, graph;
  Schedule schedule;
};

}  // namespace

UOp scheduled_store(Context& context, std::span<const UOp> outputs, size_t kernel, size_t store) {
  const Planned planned(context, outputs);
  const std::vector<ScheduledKernel>& kernels = planned.schedule.kernels;
  require(kernel < kernels.size(), Status::InvalidArgument, "there are ", kernels.size(),
          " kernels; there is no kernel ", kernel);
  const std::vector<UOp>& roots = kernels[kernel].kernel.roots;
  require(store < roots.size(), Status::InvalidArgument, "kernel ", kernel, " has ", roots.size(),
          " stores; there is no store ", store);
  return roots[store];
}

std::string schedule_json(Context& context, std::span<const UOp> outputs) {
  const Planned planned(context, outputs);
  const ChangedGraph& graph = planned.graph;
  const Schedule& schedule = planned.schedule;
  ScheduleBuffers buffers(schedule, std::span(graph.roots).first(outputs.size()));
  std::map<std::string, int64_t> names;
  JsonWriter json;
  json.begin_object().key("kernels").begin_array();
  const std::vector<std::vector<Origin>> origins = kernel_origins(schedule, graph.roots);
  for (size_t i = 0; i < schedule.kernels.size(); ++i) {
    const ScheduledKernel& scheduled = schedule.kernels[i];
    const auto put_names = [&] { put_computes(json, named(origin_texts(context, origins[i]))); };
    if (scheduled.call) {
      json.begin_object().key("name").text(call_entry(context, scheduled).info.name);
      put_names();
      put_ranges(json, scheduled.kernel);
      put_figures(json, "", 0, 0);
    } else {
      Graph own;
      const CodegenResult result = context.kernels().lower(scheduled.kernel, own);
      json.begin_object().key("name").text(result.program.name);
      put_names();
      put_ranges(json, result.kernel);
      put_figures(json, result.options, result.operations, result.bytes);
    }
    json.key("stores").integer(std::ssize(scheduled.kernel.roots));
    json.key("buffers").begin_array();
    for (size_t p = 0; p < scheduled.values.size(); ++p)
      put_buffer(json, scheduled.kernel.params[p], buffers.of(scheduled.values[p]));
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return json.result();
}

std::string kernels_json(const Program& program) {
  JsonWriter json;
  json.begin_array();
  for (size_t i = 0; i < program.tape.size(); ++i) {
    const TapeEntry& entry = program.tape[i];
    const KernelInfo& info = entry.info;
    const int64_t launches = program.launches ? program.launches->steps[i] : 0;
    const auto times = static_cast<double>(std::max<int64_t>(launches, 1));
    json.begin_object().key("name").text(info.name);
    put_computes(json, computed_names(program, entry));
    put_figures(json, info.options, info.operations * times, info.bytes * times);
    json.key("launches");
    launches > 0 ? json.integer(launches) : json.null();
    json.key("interpreted")
        .boolean(info.interpreted)
        .key("cached")
        .boolean(info.cached)
        .key("scalar")
        .boolean(info.scalar);
    json.key("buffers").begin_array();
    for (size_t p = 0; p < entry.slots.size(); ++p) {
      const Slot& slot = program.slots[entry.slots[p]];
      put_buffer(json, info.params[p], {entry.slots[p], kind_name(slot.kind), slot.bytes});
    }
    json.end_array().end_object();
  }
  json.end_array();
  return json.result();
}

std::string trace_json(const Run& run) {
  constexpr double kMicroseconds = 1e6;  // in a second: the format's unit
  const Program& program = run.program();
  JsonWriter json;
  json.begin_object().key("displayTimeUnit").text("ms").key("traceEvents").begin_array();
  for (const Run::Timed& launch : run.timed_launches()) {
    const TapeEntry& entry = program.tape[launch.entry];
    const double seconds = launch.seconds;
    const auto [operations, bytes] = launch_figures(entry.info, run.variables(launch.entry));
    const auto billions = [&](double amount) { return seconds > 0 ? amount / seconds / 1e9 : 0; };
    json.begin_object().key("name").text(entry.info.name).key("cat").text("kernel");
    json.key("ph").text("X").key("ts").real(launch.start * kMicroseconds);
    json.key("dur").real(seconds * kMicroseconds).key("pid").integer(getpid());
    json.key("tid").integer(gettid()).key("args").begin_object();
    put_computes(json, computed_names(program, entry));
    json.key("gflops").real(billions(operations)).key("gbps").real(billions(bytes));
    put_figures(json, entry.info.options, operations, bytes);
    json.key("interpreted").boolean(entry.info.interpreted).end_object().end_object();
  }
  json.end_array().end_object();
  return json.result();
}

std::string counters_json(Context& context) {
  const CompileCounts& compiles = context.observer().compiles();
  DeviceCounts& device = context.device().counts();
  JsonWriter json;
  json.begin_object().key("kernels").begin_object();
  json.key("launched").integer(device.launches.load()).key("compiled").integer(compiles.compiled);
  json.key("cached").integer(compiles.cached);
  json.key("interpreted").integer(compiles.interpreted);
  json.key("launched_interpreted").integer(device.interpreted.load());
  json.key("on_disk").integer(compiles.on_disk).end_object();
  json.key("plans").begin_object().key("kept").integer(context.plans().size());
  json.key("cached").integer(compiles.plans_cached);
  json.key("on_disk").integer(compiles.plans_on_disk);
  json.key("programs_on_disk").integer(compiles.programs_on_disk).end_object();
  json.key("memory").begin_object().key("allocations").integer(device.allocations.load());
  json.key("allocated_bytes").integer(device.allocated_bytes.load()).end_object();
  json.key("copies").begin_object().key("count").integer(device.copies.load());
  json.key("bytes").integer(device.copied_bytes.load()).end_object();
  const Counters& realized = context.counters();
  json.key("realized").begin_object().key("launches").integer(realized.launches);
  json.key("copies").integer(realized.copies);
  json.key("copied_bytes").integer(realized.copied_bytes).end_object();
  context.observer().put_profile(json);
  json.key("compile_seconds").begin_object().key("schedule").real(compiles.schedule);
  json.key("lower").real(compiles.lower);
  json.key("load").real(compiles.load).key("passes").begin_object();
  for (const auto& [name, seconds] : context.observer().pass_seconds().all())
    json.key(name).real(seconds);
  json.end_object().end_object().end_object();
  return json.result();
}

}  // namespace tiny
