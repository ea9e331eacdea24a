#include "engine/observe.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "base/error.h"
#include "base/json.h"
#include "engine/backend.h"
#include "engine/draw.h"
#include "engine/option_lists.h"
#include "engine/program.h"
#include "engine/recorder.h"
#include "ir/nest.h"
#include "ir/tree.h"
#include "render/c/c.h"
#include "schedule/join.h"
#include "schedule/pipeline.h"
#include "schedule/schedule.h"
#include "shape/shape.h"

namespace tiny {

namespace {

// A trace of more is of no use to any viewer.
constexpr size_t kSpansMax = 1 << 20;
// And a page that shows them wants fewer.
constexpr size_t kSpansShown = 1 << 15;
// The values of the setting `profile`.
constexpr int64_t kTrace = 1, kTimes = 2;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

double rate(double amount, double seconds) {
  return seconds > 0 ? amount / seconds / 1e9 : 0;
}

std::string indented(const std::string& text, const char* by) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += by + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

const char* slot_name(SlotKind kind) {
  static constexpr const char* kNames[] = {"weights", "input", "output", "arena", "part"};
  return kNames[static_cast<size_t>(kind)];
}

std::string moving_text(const Motion& motion) {
  std::string text = cat(" of buffer ", motion.base);
  if (motion.after_last) return text + ", of the last step";
  text += motion.before ? ", of the step before" : ", of this step";
  return motion.before ? cat(text, "; at first buffer ", motion.first) : text;
}

// The C rendering without the helpers that it calls, which are long and always the same; of a
// program that C has no words for, its ops.
std::string c_function(const LinearProgram& program) {
  if (program.grouped) return to_string(program);
  const std::string text = render_c(program).text;
  const size_t at = text.find("\nvoid " + program.name);
  return at == std::string::npos ? text : text.substr(at + 1);
}

}  // namespace

Observer::Observer(const Flags& flags) : flags_(flags), begin_(seconds_now()) {
  watch_.count = flags.track_match_stats != 0;
  if (flags.viz != 0) recorder_ = std::make_unique<Recorder>();
  set_level(flags.debug);
}

Observer::~Observer() = default;

void Observer::set_level(int64_t level) {
  level_.store(level, std::memory_order_relaxed);
  watch_.trace = {};
  if (!tells(7) && !recorder_) return;
  watch_.trace = [this](const RewriteStep& step) {
    if (tells(7)) tell("rewrite " + to_string(step) + "\n");
    if (recorder_) recorder_->rewrite(step);
  };
}

void Observer::tell(const std::string& text) const {
  flags_.log.tell(text);
}

double Observer::now() const {
  return seconds_now() - begin_;
}

RewriteWatch* Observer::watch() {
  return watch_.trace || watch_.count ? &watch_ : nullptr;
}

void Observer::opened(Backend& backend) const {
  if (!tells(1)) return;
  std::string text = "devices:\n";
  for (const BackendInfo& info : known_backends(Drivers::LeaveClosed))
    text += format("  %-7s%s%s%s%s\n", info.name.c_str(), info.description.c_str(),
                   info.isas.empty() ? "" : ", ", join(info.isas, " ").c_str(),
                   info.available ? "" : (" (not available: " + info.reason + ")").c_str());
  const Machine& t = backend.machine();
  const int threads = backend.threads();
  text += cat("chosen: ", backend.device().name(), " (TINY_DEVICE=", flags_.device, "), code for ",
              t.name, " (TINY_ISA=", flags_.isa, "), ", t.vector_bytes, "-byte vectors, ",
              t.vector_registers, " of them, ");
  text += cat(threads, threads == 1 ? " thread" : " threads", " (TINY_THREADS=", flags_.threads,
              "), L1 ", t.l1_bytes >> 10, " KB, L2 ", t.l2_bytes >> 10, " KB, L3 ",
              t.l3_bytes >> 10, " KB\n");
  text += cat(
      format("assumed (TINY_PROCESSOR=%s): %.0f GFMA/s a core; L2 %.0f, L3 %.0f, memory %.0f GB/s",
             flags_.processor.c_str(), t.fma_rate / 1e9, t.l2_bandwidth / 1e9, t.l3_bandwidth / 1e9,
             t.memory_bandwidth / 1e9),
      t.bypass_bytes == 0
          ? std::string("; no stores past the caches")
          : cat("; stores past the caches from more than ", t.bypass_bytes >> 10, " KB"),
      "\n");
  const auto kind_of = [](const std::string& device) { return device.substr(0, device.find(':')); };
  if (kind_of(backend.device().name()) != kind_of(flags_.device))
    text += cat("device ", flags_.device, " cannot run here: every kernel is interpreted\n");
  tell(text);
}

void Observer::passed(const GraphPassNote& note) {
  pass_seconds_.add(note.name, note.seconds);
  if (recorder_) recorder_->graph_pass(note);
  if (!tells(3) || (!note.changed && !tells(5))) return;
  const std::string time = tells(5) ? format(" %8.1f us,", note.seconds * 1e6) : "";
  tell(cat(format("graph pass %-20s", note.name), time,
           note.changed ? cat(" now ", topological(note.roots, has_memory).size(), " nodes\n")
                        : std::string(" nothing changed\n")));
}

void Observer::joined(std::span<const JoinTrial> trials) const {
  if (!tells(5)) return;
  for (const JoinTrial& t : trials) {
    std::string parts;
    for (size_t i = 0; i < kJoinParts; ++i)
      if (const double us = t.cost.seconds[i] * 1e6; std::abs(us) >= 0.005)
        parts += format("%s%s %.2f", parts.empty() ? "" : ", ",
                        std::string(name_of(static_cast<JoinPart>(i))).c_str(), us);
    tell(cat("join ", t.number, ": ", info(t.value.op()).name, " ", to_string(shape_of(t.value)),
             format(", saves %.2f us, pays %.2f us: ", t.cost.saved() * 1e6, t.cost.paid() * 1e6),
             t.joined ? "joined (" : "apart (", parts, ")\n"));
  }
}

void Observer::lowering(const Kernel& kernel) {
  if (recorder_) recorder_->begin_kernel(kernel);
  if (tells(5))
    tell(cat("kernel ", kernel.name, " from the scheduler:\n", indented(uops_text(kernel), "  ")));
}

void Observer::watch_passes(PipelineOptions& options) {
  if (!tells(5) && !recorder_) return;
  options.after_pass = [this, last = std::string()](
                           const PassTime& pass, const std::function<std::string()>& text) mutable {
    std::string now = text();
    if (recorder_) recorder_->pass(pass, now);
    if (!tells(5)) return;
    const bool same = now == last;
    tell(cat(format("  pass %-12s %8.1f us", pass.name, pass.seconds * 1e6),
             same ? ", nothing changed\n" : "\n", same ? "" : indented(now, "    ")));
    last = std::move(now);
  };
}

void PassSeconds::add(const char* pass, double seconds) {
  const auto at = std::ranges::find_if(entries_, [&](const Entry& entry) {
    const char* known = entry.pass.load(std::memory_order_relaxed);
    return !known || known == pass || std::string_view(known) == pass;
  });
  invariant(at != entries_.end(), "there is room for every pass");
  at->seconds += seconds;
  at->pass.store(pass, std::memory_order_release);
}

std::map<std::string, double> PassSeconds::all() const {
  std::map<std::string, double> found;
  for (const Entry& entry : entries_)
    if (const char* pass = entry.pass.load(std::memory_order_acquire))
      found.emplace(pass, entry.seconds);
  return found;
}

void Observer::lowered(const Kernel& kernel, const CodegenResult& result) {
  for (const PassTime& pass : result.passes) pass_seconds_.add(pass.name, pass.seconds);
  if (recorder_) recorder_->lowered(kernel, result);
  if (tells(3)) {
    std::string proposed;
    for (const ProposalNote& p : result.proposed)
      proposed += cat(p.is_taken ? "  taken from " : "  proposed by ", p.strategy, ", ",
                      text_of(p.cost), ": ", to_text(p.options), "\n");
    tell(cat("kernel ", result.program.name, "\n", tree_text(kernel.roots, {}, 2), proposed,
             "  options ", structure_name(kernel), ": ",
             result.options.empty() ? "none" : result.options, "\n", nest_text(result.program, 2)));
  }
  if (flags_.graphuops != 0)
    write_file("uops", "svg", draw_uops(result.kernel.roots, result.program.name));
}

void Observer::rendered(const LinearProgram& program, Backend& backend, bool interpreted) const {
  if (interpreted && tells(1) && backend.is_fast())
    tell(cat("kernel ", program.name, " is interpreted: machine code could not be had\n"));
  if (recorder_) recorder_->rendered(program, c_function(program), backend.listing(program));
  const bool is_source = backend.lists_source();
  if (tells(4)) tell(cat(is_source ? backend.listing(program) : c_function(program), "\n"));
  if (tells(6) && !is_source) tell(backend.listing(program) + "\n");
}

void Observer::planned(const Plan& plan) const {
  if (recorder_) recorder_->program(plan);
  if (!tells(3)) return;
  std::string text =
      cat("program of ", plan.tape.size(), " kernels, arena ", plan.arena_bytes, " bytes\n");
  for (size_t i = 0; i < plan.slots.size(); ++i) {
    const Slot& slot = plan.slots[i];
    text += cat("  buffer ", i, ": ", slot_name(slot.kind), " ", slot.bytes, " bytes");
    if (slot.kind == SlotKind::Arena) text += cat(" at ", slot.arena_offset);
    if (slot.kind == SlotKind::Moving) text += moving_text(slot.motion);
    if (slot.kind == SlotKind::Input || slot.kind == SlotKind::Output)
      text += cat(", number ", slot.number);
    text += "\n";
  }
  for (size_t i = 0; i < plan.tape.size(); ++i) {
    const TapeEntry& entry = plan.tape[i];
    for (const TapeLoop& loop : plan.loops)
      if (loop.first == i)
        text += cat("  ",
                    loop.is_counted()       ? cat("as many as buffer ", loop.counted, " says,")
                    : loop.count.is_const() ? std::to_string(loop.count.value({}))
                                            : "n",
                    " steps of ", loop.end - loop.first, " kernels",
                    loop.beside ? ", beside the steps before\n" : "\n");
    text += "  " + entry.info.name;
    for (size_t p = 0; p < entry.slots.size(); ++p) {
      const KernelParam& param = entry.info.params[p];
      text += cat(p ? ", " : " ", param.written ? (param.read ? "updates " : "writes ") : "reads ",
                  "buffer ", entry.slots[p], " (", to_string(param.element), ")");
    }
    text += "\n";
  }
  tell(text);
}

void Observer::drawn(std::span<const UOp> outputs) {
  if (recorder_) recorder_->graph(outputs);
  if (flags_.graph != 0) write_file("graph", "svg", draw_tensors(outputs));
}

void Observer::span(const char* category, std::string name, double start, double end,
                    std::string arguments) {
  if (flags_.profile != kTrace && !recorder_) return;
  const std::lock_guard lock(mutex_);
  if (spans_.size() >= (flags_.profile == kTrace ? kSpansMax : kSpansShown)) {
    ++spans_left_out_;
    return;
  }
  spans_.push_back({category, std::move(name), start, end, gettid(), std::move(arguments)});
}

void Observer::launched(const KernelInfo& kernel, const std::vector<std::string>& computes,
                        std::span<const int64_t> variables, const std::string& device, double start,
                        double end) {
  const auto [operations, bytes] = launch_figures(kernel, variables);
  if (flags_.profile == kTimes) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = kernel_places_.try_emplace(kernel.name, kernels_.size());
    if (is_new) kernels_.push_back({kernel.name, kernel.options, computes, kernel.scalar});
    KernelTime& kept = kernels_[at->second];
    ++kept.launches;
    kept.seconds += end - start;
    kept.operations += operations;
    kept.bytes += bytes;
  }
  if (flags_.profile == kTrace || recorder_) {
    JsonWriter json;
    json.begin_object().key("operations").real(operations).key("bytes").real(bytes);
    json.key("gflops").real(rate(operations, end - start));
    json.key("gbps").real(rate(bytes, end - start));
    json.key("options").text(kernel.options).key("computes").begin_array();
    for (const std::string& name : computes) json.text(name);
    json.end_array().end_object();
    span("launch", kernel.name, start, end, json.result());
  }
  if (!tells(2)) return;
  const double seconds = end - start;
  const std::lock_guard lock(mutex_);
  ++told_.launches;
  told_.seconds += seconds;
  told_.operations += operations;
  told_.bytes += bytes;
  const std::string names = computed_text(computes);
  std::string line = format(
      "*** %s %6lld %-32s arg %2zu mem %8.3f MB tm %10.2f us/%10.2f ms "
      "(%8.2f GFLOPS %7.2f GB/s)%s",
      device.c_str(), static_cast<long long>(told_.launches), kernel.name.c_str(),
      kernel.params.size(), bytes / 1e6, seconds * 1e6, told_.seconds * 1e3,
      rate(operations, seconds), rate(bytes, seconds),
      kernel.interpreted ? " interpreted"
      : kernel.scalar    ? " scalar"
                         : "");
  if (!names.empty()) line += "  " + names;
  tell(line + "\n");
}

void Observer::put_profile(JsonWriter& json) {
  if (flags_.profile != kTimes) return;
  const std::lock_guard lock(mutex_);
  json.key("profile").begin_array();
  for (const KernelTime& kernel : kernels_) {
    json.begin_object().key("name").text(kernel.name).key("launches").integer(kernel.launches);
    json.key("seconds").real(kernel.seconds).key("operations").real(kernel.operations);
    json.key("bytes").real(kernel.bytes).key("options").text(kernel.options);
    json.key("scalar").boolean(kernel.scalar).key("computes").begin_array();
    for (const std::string& node : kernel.computes) json.text(node);
    json.end_array().end_object();
  }
  json.end_array();
}

std::string Observer::averages() const {
  return format("avg: %8.2f GFLOPS %8.2f GB/s   total: %lld kernels %8.3f GOPS %8.3f GB %8.2f ms\n",
                rate(told_.operations, told_.seconds), rate(told_.bytes, told_.seconds),
                static_cast<long long>(told_.launches), told_.operations / 1e9, told_.bytes / 1e9,
                told_.seconds * 1e3);
}

void Observer::put_spans(JsonWriter& json) const {
  json.key("traceEvents").begin_array();
  for (const Span& s : spans_) {
    json.begin_object().key("name").text(s.name).key("cat").text(s.category);
    json.key("ph").text("X").key("ts").real(s.start * 1e6).key("dur").real((s.end - s.start) * 1e6);
    json.key("pid").integer(getpid()).key("tid").integer(s.thread);
    if (!s.arguments.empty()) json.key("args").raw(s.arguments);
    json.end_object();
  }
  json.end_array().key("spans_left_out").integer(spans_left_out_);
}

std::string Observer::trace_json() const {
  JsonWriter json;
  json.begin_object().key("displayTimeUnit").text("ms");
  put_spans(json);
  return json.end_object().result();
}

std::string Observer::record() const {
  require(recorder_ != nullptr, Status::InvalidArgument,
          "nothing was kept: the context was made without the option viz = 1");
  JsonWriter json;
  json.begin_object();
  recorder_->put(json);
  const std::lock_guard lock(mutex_);
  put_spans(json);
  return json.end_object().result();
}

// A new file, never one that is there: the folder may be everybody's.
void Observer::write_file(const char* what, const char* ending, const std::string& text) const {
  for (int number = 1; number < 100000; ++number) {
    const std::string path =
        cat(flags_.out_dir, "/tiny-", getpid(), "-", what, "-", number, ".", ending);
    std::FILE* file = std::fopen(path.c_str(), "wx");
    if (!file && errno == EEXIST) continue;
    bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (file) written = std::fclose(file) == 0 && written;
    tell(written ? cat("tiny: wrote ", path, "\n") : cat("tiny: cannot write ", path, "\n"));
    return;
  }
}

void Observer::finish() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(finished_, true)) return;
  if (tells(2) && told_.launches > 0) tell(averages());
  if (tells(1) && compiles_.on_disk == 0)  // whose structure nobody has seen
    for (const std::string& name : compiles_.lists_left)
      tell(cat("tiny: no kernel was named ", name, ", for which opts has a list\n"));
  if (const auto passes = pass_seconds_.all(); tells(5) && !passes.empty()) {
    std::string text = cat("compiled ", int64_t{compiles_.compiled}, " kernels:");
    for (const auto& [name, seconds] : passes)
      text += format(" %s %.3f ms", name.c_str(), seconds * 1e3);
    tell(text + format(" load %.3f ms\n", compiles_.load * 1e3));
  }
  if (watch_.count) {
    std::string text;
    for (const auto& [rules, stats] : watch_.stats) {
      std::string tables;
      for (const char* table : rules->tables())
        if (tables.find(table) == std::string::npos)
          tables += cat(tables.empty() ? "" : ", ", table);
      text += cat("rules of ", tables, ": ", to_string(stats));
    }
    tell(text);
  }
  if (flags_.profile == kTrace) write_file("trace", "json", trace_json());
}

}  // namespace tiny
