// tiny bench: how long a model takes, with each number of threads that is asked for.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <numeric>
#include <thread>

#include "allocations.h"
#include "commands.h"
#include "process.h"
#include "trace.h"

namespace tiny::cli {
namespace {

constexpr int64_t kCountedRuns = 5;  // for the figures that one run each is not enough for
constexpr size_t kSamplesMax = 1 << 20;

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const size_t at = line.find(": "); at != std::string::npos) return line.substr(at + 2);
  return "";
}

int64_t usable_cores() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 0;
}

// Between the samples that lie nearest, as numpy.percentile does.
double percentile(const std::vector<double>& sorted, double percent) {
  const double at = percent / 100 * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

// The milliseconds of runs.  Of more than kSamplesMax only every second, fourth, .. is kept.
struct Samples {
  std::vector<double> kept;
  size_t runs = 0;
  size_t stride = 1;

  void add(double ms) {
    if (runs++ % stride == 0) kept.push_back(ms);
    if (kept.size() < kSamplesMax) return;
    for (size_t i = 0; 2 * i < kept.size(); ++i) kept[i] = kept[2 * i];
    kept.resize((kept.size() + 1) / 2);
    stride *= 2;
  }
};

Json summary(const std::vector<double>& samples) {
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<double>(sorted.size());
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count;
  double squares = 0;
  for (const double sample : sorted) squares += (sample - mean) * (sample - mean);
  Json ms = Json::object();
  ms.set("min", sorted.front()).set("mean", mean);
  ms.set("stddev", count > 1 ? std::sqrt(squares / (count - 1)) : 0.0);
  ms.set("p50", percentile(sorted, 50)).set("p90", percentile(sorted, 90));
  return ms.set("p99", percentile(sorted, 99)).set("max", sorted.back());
}

struct Measured {
  std::vector<double> samples;
  size_t runs = 0;
  double seconds = 0;  // from the first start to the last end
};

// True while another run is wanted: by number, or by time but at least one.
bool goes_on(const BenchFlags& flags, size_t done, Clock::time_point start) {
  if (flags.runs) return done < static_cast<size_t>(*flags.runs);
  return done == 0 || ms_since(start) < flags.duration * 1e3;
}

// `first_ms`: of a run that has been made, and counts.
Measured measure_alone(Session& session, const BenchFlags& flags, std::optional<double> first_ms,
                       std::atomic<int64_t>& done) {
  Samples samples;
  if (first_ms) samples.add(*first_ms);
  const auto start = Clock::now();
  while (goes_on(flags, samples.runs, start)) {
    const auto begin = Clock::now();
    session.execute();
    samples.add(ms_since(begin));
    done.store(static_cast<int64_t>(samples.runs), std::memory_order_relaxed);
  }
  return {std::move(samples.kept), samples.runs, (ms_since(start) + first_ms.value_or(0)) / 1e3};
}

// Several threads, each with its own run of the one program; the first says how many are done.
Measured measure_together(const Session& session, const BenchFlags& flags,
                          std::atomic<int64_t>& done) {
  struct Worker {
    Run run;
    Samples samples;
    std::optional<Failure> failure;
  };
  std::vector<Worker> workers(static_cast<size_t>(flags.concurrency));
  for (Worker& worker : workers) worker.run = session.another_run();
  std::atomic<bool> started = false;
  Clock::time_point start;
  const auto work = [&](Worker& worker) {
    started.wait(false);
    while (!worker.failure && goes_on(flags, worker.samples.runs, start)) {
      const auto begin = Clock::now();
      const tiny_status status = session.execute(worker.run.get());
      if (status != TINY_OK) worker.failure = last_failure(status, flags.model);
      worker.samples.add(ms_since(begin));
      if (&worker == workers.data())
        done.store(static_cast<int64_t>(worker.samples.runs), std::memory_order_relaxed);
    }
  };
  std::vector<std::thread> threads;
  for (Worker& worker : workers) threads.emplace_back(work, std::ref(worker));
  start = Clock::now();
  started = true;
  started.notify_all();
  for (std::thread& thread : threads) thread.join();
  Measured measured;
  measured.seconds = ms_since(start) / 1e3;
  for (const Worker& worker : workers) {
    if (worker.failure) throw *worker.failure;
    const std::vector<double>& kept = worker.samples.kept;
    measured.samples.insert(measured.samples.end(), kept.begin(), kept.end());
    measured.runs += worker.samples.runs;
  }
  return measured;
}

// Runs beside those that were asked for: few, none where one run alone was wanted.
int64_t counted_runs(const BenchFlags& flags, const Measured& measured) {
  const auto made = static_cast<int64_t>(measured.runs);
  return std::min(kCountedRuns, flags.runs ? *flags.runs - 1 : made);
}

Json allocations_per_run(Session& session, int64_t runs) {
  if (runs == 0) return Json();
  const auto before = allocations();
  for (int64_t i = 0; i < runs; ++i) session.execute();
  const auto after = allocations();
  if (!before || !after) return Json();
  return static_cast<double>(*after - *before) / static_cast<double>(runs);
}

Json parsed(const Report& report, const char* name) {
  auto json = Json::parse(tiny_report_text(report.get()));
  if (!json) throw Failure(Exit::Internal, "INTERNAL", std::string(name) + " gave no JSON");
  return *json;
}

// Executes a few times with the kernels timed: what each took on average, and the least time per
// kernel that a run took beside them.
struct Profile {
  int64_t runs = 0;
  Json kernels = Json::array();  // as the library reports them, in order
  std::vector<double> seconds;   // of each, in one run
  Json overhead_us;
};
Profile profile(Session& session, int64_t runs) {
  Profile result;
  if (!session.run()) return result;
  Report report;
  check(tiny_program_kernels(session.program(), out(report)));
  result.kernels = parsed(report, "tiny_program_kernels");
  if (runs == 0) return result;
  result.runs = runs;
  size_t count = 0;
  check(tiny_program_kernel_count(session.program(), &count));
  check(tiny_run_set_timed(session.run(), 1));
  result.seconds.assign(count, 0);
  std::vector<double> seconds(count);
  double least = HUGE_VAL;
  for (int64_t i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    session.execute();
    const double wall = ms_since(start) / 1e3;
    check(tiny_run_kernel_seconds(session.run(), seconds.data(), seconds.size(), &count));
    least = std::min(least, wall - std::accumulate(seconds.begin(), seconds.end(), 0.0));
    for (size_t k = 0; k < seconds.size(); ++k)
      result.seconds[k] += seconds[k] / static_cast<double>(runs);
  }
  check(tiny_run_set_timed(session.run(), 0));
  if (count > 0) result.overhead_us = std::max(0.0, least) * 1e6 / static_cast<double>(count);
  return result;
}

Json context_profile(const Context& context) {
  Report report;
  check(tiny_context_counters(context.get(), out(report)));
  const Json counters = parsed(report, "tiny_context_counters");
  const Json* kernels = counters.find("profile");
  return kernels ? *kernels : Json::array();
}

// The kernels of a model that has no program: those that a context launches while the model runs.
// The first run, which may compute constants on the way, does not count.
Profile profile_without_program(const BenchFlags& flags, CommonFlags common, int64_t runs) {
  common.options.emplace_back("profile=2");
  const Context context = open_context(common);
  LoadedModel model(context, flags.model);
  model.read_ports();
  std::vector<Input> inputs = read_inputs(context, model, flags.input, common);
  Session session(context, model, arrays_of(inputs));
  session.first_run();
  const Json first = context_profile(context);
  Profile result;
  result.runs = runs;
  for (int64_t i = 0; i < runs; ++i) session.execute();
  const Json all = context_profile(context);
  for (size_t i = 0; i < all.items().size(); ++i) {
    Json kernel = all.items()[i];
    // Kernels keep their places in the list.
    const Json* before = i < first.items().size() ? &first.items()[i] : nullptr;
    const auto in_a_run = [&](const char* key) {
      const double start = before ? before->find(key)->number() : 0;
      return (kernel.find(key)->number() - start) / static_cast<double>(runs);
    };
    if (in_a_run("launches") <= 0) continue;
    result.seconds.push_back(in_a_run("seconds"));
    kernel.set("operations", in_a_run("operations")).set("bytes", in_a_run("bytes"));
    result.kernels.push(std::move(kernel));
  }
  return result;
}

// How many kernels are loops without any vector.
int64_t scalar_kernels(const Json& kernels) {
  return std::count_if(kernels.items().begin(), kernels.items().end(), [](const Json& kernel) {
    const Json* scalar = kernel.find("scalar");
    return scalar && scalar->truth();
  });
}

// The slowest first; "index" is the place in the program's order, "share" that of all kernels'
// time.
Json kernels_json(const Profile& profile) {
  Json list = Json::array();
  std::vector<Json> rows;
  const std::vector<double>& seconds = profile.seconds;
  const double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  for (size_t i = 0; i < profile.kernels.items().size() && i < seconds.size(); ++i) {
    const Json& kernel = profile.kernels.items()[i];
    const auto rate = [&](const char* key) {
      const Json* amount = kernel.find(key);
      return amount && seconds[i] > 0 ? amount->number() / seconds[i] / 1e9 : 0.0;
    };
    const auto copy = [&](const char* key) {
      const Json* value = kernel.find(key);
      return value ? *value : Json();
    };
    Json entry = Json::object();
    entry.set("name", copy("name")).set("runs", profile.runs).set("ms", seconds[i] * 1e3);
    entry.set("gflops", rate("operations")).set("gbps", rate("bytes"));
    entry.set("options", copy("options")).set("computes", copy("computes")).set("index", i);
    entry.set("scalar", copy("scalar"));
    rows.push_back(entry.set("share", total > 0 ? seconds[i] / total : 0.0));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Json& a, const Json& b) {
    return a.find("ms")->number() > b.find("ms")->number();
  });
  for (Json& row : rows) list.push(std::move(row));
  return list;
}

// New processes that load, compile and run once, one after the other.
Json cold_starts(const BenchFlags& flags, int64_t threads) {
  const Phase phase("starting new processes");
  std::vector<std::string> arguments = flags.arguments;
  arguments.push_back("--one-run=" + std::to_string(threads));
  std::vector<double> samples;
  for (int64_t i = 0; i < flags.cold; ++i) {
    Children children;
    note_progress("processes", i, flags.cold);
    children.start(0, arguments, 3600);
    const Ended ended = children.wait().second;
    if (ended.exit_code != 0)
      throw Failure(Exit::Internal, "INTERNAL", "a new process failed: " + ended.err);
    samples.push_back(ended.ms);
  }
  std::sort(samples.begin(), samples.end());
  Json ms = Json::object();
  return ms.set("min", samples.front()).set("p50", percentile(samples, 50));
}

// Milliseconds of each pass of the compiler, over all kernels, and of rendering and loading.
Json compile_passes(const Context& context) {
  Report report;
  check(tiny_context_counters(context.get(), out(report)));
  const Json counters = parsed(report, "tiny_context_counters");
  const Json& seconds = *counters.find("compile_seconds");
  const Json& passes = *seconds.find("passes");
  Json ms = Json::object();
  for (size_t i = 0; i < passes.keys().size(); ++i)
    ms.set(passes.keys()[i], passes.items()[i].number() * 1e3);
  return ms.set("load", seconds.find("load")->number() * 1e3);
}

Json bench_with(int64_t threads, const BenchFlags& flags, CommonFlags common) {
  common.threads = threads;
  const Context context = open_context(common);
  LoadedModel model(context, flags.model);
  model.read_ports();
  std::vector<Input> inputs = read_inputs(context, model, flags.input, common);
  Session session(context, model, arrays_of(inputs));
  const double first_run_ms = session.first_run();
  Json result = Json::object();
  if (flags.one_run) return result;
  Measured measured;
  {
    for (int64_t i = 0; i < flags.warmup; ++i) session.execute();
    std::atomic<int64_t> done = 0;
    const auto first = flags.warmup == 0 ? std::optional(first_run_ms) : std::nullopt;
    const Phase phase("measuring with threads " + std::to_string(threads),
                      {&done, flags.runs.value_or(0), flags.duration});
    measured = flags.concurrency > 1 ? measure_together(session, flags, done)
                                     : measure_alone(session, flags, first, done);
  }
  result.set("threads", threads).set("concurrency", flags.concurrency);
  result.set("runs", measured.runs).set("ms", summary(measured.samples));
  result.set("per_second", static_cast<double>(measured.runs) / measured.seconds);
  result.set("load_ms", model.load_ms()).set("compile_ms", session.compile_ms());
  result.set("first_run_ms", first_run_ms);
  const Json counts = session.kernels();
  result.set("kernel_count", *counts.find("count"));
  result.set("interpreted", *counts.find("interpreted"));
  result.set("compile_passes_ms", compile_passes(context));
  const int64_t more = counted_runs(flags, measured);
  const int64_t profiled = flags.profile ? std::max<int64_t>(more, 1) : more;
  const bool in_context = !session.run() && flags.profile;
  const Profile kernels =
      in_context ? profile_without_program(flags, common, profiled) : profile(session, profiled);
  const bool is_known = session.run() || in_context;
  result.set("scalar_kernels", is_known ? Json(scalar_kernels(kernels.kernels)) : Json());
  result.set("overhead_us_per_kernel", kernels.overhead_us);
  result.set("allocations_per_run", allocations_per_run(session, more));
  if (flags.cold > 0) result.set("cold_ms", cold_starts(flags, threads));
  if (flags.samples) {
    Json samples = Json::array();
    for (const double sample : measured.samples) samples.push(sample);
    result.set("samples_ms", samples);
  }
  if (flags.profile) result.set("kernels", kernels_json(kernels));
  if (!flags.trace.empty()) write_trace(flags.trace, session, model.load_ms(), first_run_ms);
  return result;
}

std::string known_text(const Json& value) {
  return value.kind() == Json::Kind::Null ? "-" : value.text();
}

// "min .. max", each figure below its name.
std::string figures_text(const char* name, const Json& figures, int digits) {
  constexpr size_t kNameWidth = 9;
  std::vector<std::string> heads{left(name, kNameWidth)}, row{left("", kNameWidth)};
  for (size_t i = 0; i < figures.keys().size(); ++i) {
    heads.push_back(figures.keys()[i]);
    row.push_back(fixed(figures.items()[i].number(), digits));
  }
  return table({heads, row}, "  ");
}

// "conv1 + relu1 + 3 more": of long names, which are paths, the end.
std::string computes_text(const Json& computes) {
  constexpr size_t kShown = 3, kLength = 32;
  const std::vector<Json>& names = computes.items();
  const size_t shown = names.size() > kShown ? kShown - 1 : names.size();
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    const std::string& name = names[i].text();
    text += (i > 0 ? " + " : "") +
            (name.size() > kLength ? ".." + name.substr(name.size() - kLength + 2) : name);
  }
  if (shown < names.size()) text += " + " + std::to_string(names.size() - shown) + " more";
  return text.empty() ? "(no name)" : text;
}

std::string profile_text(const Json& kernels) {
  std::vector<std::vector<std::string>> rows{
      {"ms", "share", "so far", "GFLOPS", "GB/s", "kernel", "computes"}};
  double so_far = 0;
  for (const Json& kernel : kernels.items()) {
    const double share = kernel.find("share")->number();
    so_far += share;
    rows.push_back({fixed(kernel.find("ms")->number(), 4), fixed(share * 100, 1) + "%",
                    fixed(so_far * 100, 1) + "%", fixed(kernel.find("gflops")->number(), 1),
                    fixed(kernel.find("gbps")->number(), 1), kernel.find("name")->text(),
                    computes_text(*kernel.find("computes"))});
  }
  return table(rows, "  ");
}

std::string result_text(const Json& result) {
  std::string text = "threads " + result.find("threads")->text();
  if (result.find("concurrency")->number() > 1)
    text += ", concurrency " + result.find("concurrency")->text();
  text += ": " + result.find("runs")->text() + " runs, " +
          fixed(result.find("per_second")->number(), 1) + " per second\n";
  text += figures_text("ms", *result.find("ms"), 3);
  Json start = Json::object();
  start.set("load", *result.find("load_ms")).set("compile", *result.find("compile_ms"));
  start.set("first run", *result.find("first_run_ms"));
  if (const Json* cold = result.find("cold_ms"))
    start.set("cold min", *cold->find("min")).set("cold p50", *cold->find("p50"));
  text += figures_text("start ms", start, 2);
  text += figures_text("passes ms", *result.find("compile_passes_ms"), 2);
  const Json& overhead = *result.find("overhead_us_per_kernel");
  text += "  per run kernels " + result.find("kernel_count")->text() + ", interpreted " +
          result.find("interpreted")->text() + ", scalar " +
          known_text(*result.find("scalar_kernels")) + ", allocations " +
          known_text(*result.find("allocations_per_run")) + ", overhead per kernel " +
          (overhead.kind() == Json::Kind::Null ? "-" : fixed(overhead.number(), 2) + " us") + "\n";
  if (const Json* kernels = result.find("kernels")) text += profile_text(*kernels);
  return text;
}

}  // namespace

Outcome bench_command(const BenchFlags& flags, const CommonFlags& common) {
  Outcome outcome;
  if (flags.one_run) {
    end_with_parent();
    bench_with(*flags.one_run, flags, common);
    outcome.printed = true;
    return outcome;
  }
  const Place place = place_of(open_context(common));
  Json cpu = Json::object();
  cpu.set("model", cpu_model()).set("isa", place.isa).set("cores", usable_cores());
  outcome.text = flags.model + " on " + place.device + (place.isa.empty() ? "" : " " + place.isa) +
                 ", " + cpu.find("model")->text() + "\n";
  Json results = Json::array();
  std::vector<int64_t> threads = flags.threads;
  if (threads.empty()) threads.push_back(place.threads);
  for (const int64_t count : threads) {
    results.push(bench_with(count, flags, common));
    outcome.text += result_text(results.items().back());
  }
  outcome.body.set("cpu", cpu).set("device", place.device);
  outcome.body.set("model", Json::object().set("path", flags.model)).set("results", results);
  return outcome;
}

}  // namespace tiny::cli
