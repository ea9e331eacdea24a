#include "engine/measure_speeds.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/text.h"
#include "codegen/pipeline.h"
#include "engine/disk_cache.h"
#include "engine/kernel_key.h"
#include "engine/trial.h"
#include "ir/build.h"
#include "schedule/schedule.h"
#include "shape/shape.h"

namespace tiny {

namespace {

constexpr int kRunsMin = 4;
constexpr double kSeconds = 1e-3;  // of each measurement's runs, about
constexpr int64_t kRow = 1024;     // elements of a row that is summed
// Rows, columns and inner extent of a product whose operands stay in the second-level cache.
constexpr int64_t kM = 96, kN = 256, kK = 192;
constexpr int64_t kCopiedMax = 64 << 20;
// Less of a difference is what neighbours make.
constexpr int kConfirmations = 3;
constexpr double kClearLoss = 1.15, kClearGain = 1.25;
// Where vectors of half the width compute more than this of what wide ones do, a unit has that
// half.
constexpr double kOfHalves = 0.75;

class Speeds {
 public:
  Speeds(Backend& backend, Machine machine, const StopSignal& stop)
      : backend_(backend), machine_(std::move(machine)), stop_(stop) {
    machine_.cores = 1;
    graph_.set_stop(&stop);
  }

  Rates measure();

 private:
  UOp buffer(const Ints& shape);
  double seconds(const UOp& value, const Machine& machine);
  double seconds(const UOp& value) { return seconds(value, machine_); }
  double reading_rate(int64_t bytes);
  CopyingRates copying_rates(int64_t bytes);
  double fma_rate(const Machine& machine);
  int32_t unit_bytes(double fma_rate);

  Graph graph_;
  Backend& backend_;
  Machine machine_;
  const StopSignal& stop_;
};

// The least of some launches of the kernel that computes `value`.
double Speeds::seconds(const UOp& value, const Machine& machine) {
  const UOp stored = graph_.make(Op::Contiguous, {value});
  const Schedule schedule = make_schedule({&stored, 1}, machine);
  const Kernel& kernel = schedule.kernels.front().kernel;
  const CodegenResult made = generate(kernel, machine, {});
  const std::vector<Code> codes = backend_.render({&made.program, 1}, Backend::Form::Best);
  const std::vector<LoadedKernel> loaded = backend_.load(codes, stop_);
  Trial trial(backend_.device(), kernel, stop_);
  double best = 0, sum = 0;
  for (int i = 0; i < kRunsMin || sum < kSeconds; ++i) {
    const double once = trial.run(*loaded.front().executable, SizeExpression(0, {}));
    if (i == 0) continue;  // for the caches
    best = i == 1 ? once : std::min(best, once);
    sum += once;
  }
  return best;
}

// Buffers of equal size are one.
UOp Speeds::buffer(const Ints& shape) {
  int64_t elements = 1;
  for (int64_t n : shape) elements *= n;
  return make_reshape(make_buffer(graph_, {}, kFloat32, elements),
                      Shape(shape.begin(), shape.end()));
}

// Bytes a second of sums of rows: each vector is read and added.
double Speeds::reading_rate(int64_t bytes) {
  const int64_t rows = std::max<int64_t>(bytes / (kRow * 4), 1);
  const UOp sum = make_reduce(buffer({rows, kRow}), Op::Add, {1});
  return static_cast<double>(rows * kRow * 4) / seconds(sum);
}

// Bytes a second, those read and those written.
CopyingRates Speeds::copying_rates(int64_t bytes) {
  const UOp copy = neg(buffer({bytes / 4}));
  Machine through = machine_, past = machine_;
  through.bypass_bytes = 0;
  past.bypass_bytes = 1;
  const double moved = 2 * static_cast<double>(bytes);
  return {moved / seconds(copy, through), moved / seconds(copy, past)};
}

// Multiply-adds a second of a product of matrices.
double Speeds::fma_rate(const Machine& machine) {
  const Shape all{kM, kN, kK};
  const UOp a = make_reshape(buffer({kM, kK}), {kM, 1, kK});
  const UOp b = make_reshape(make_permute(buffer({kK, kN}), {1, 0}), {1, kN, kK});
  const UOp sum = make_reduce(mul(make_expand(a, all), make_expand(b, all)), Op::Add, {2});
  return static_cast<double>(kM * kN * kK) / seconds(sum, machine);
}

int32_t Speeds::unit_bytes(double fma_rate) {
  Machine narrow = machine_;
  narrow.vector_bytes /= 2;
  const bool computes_halves = this->fma_rate(narrow) > fma_rate * kOfHalves;
  return computes_halves ? narrow.vector_bytes : machine_.vector_bytes;
}

Rates Speeds::measure() {
  Rates found = machine_;
  found.l2_bandwidth = reading_rate(machine_.l2_bytes / 2);
  found.l3_bandwidth = reading_rate(machine_.l3_bytes / 4);
  const int64_t large_bytes = std::min(2 * machine_.l3_bytes, kCopiedMax),
                half = machine_.l3_bytes / 2;
  const int64_t usual = machine_.bypass_bytes;
  const CopyingRates large = copying_rates(large_bytes);
  found.bypass_bytes = bypass_threshold(usual, large, copying_rates(half));
  // What is out of the ordinary has to be found every time.
  for (int i = 0; i < kConfirmations && found.bypass_bytes != usual; ++i)
    if (bypass_threshold(usual, copying_rates(large_bytes), copying_rates(half)) !=
        found.bypass_bytes)
      found.bypass_bytes = usual;
  found.memory_bandwidth = found.bypass_bytes != 0 ? large.past : large.through;
  found.fma_rate = fma_rate(machine_);
  found.unit_bytes = unit_bytes(found.fma_rate);
  return found;
}

// `rates` with what the cache keeps; none if it is not what it should be.
std::optional<Rates> read_speeds(std::string_view kept, Rates rates) {
  ByteReader in(kept);
  for (double* rate :
       {&rates.l2_bandwidth, &rates.l3_bandwidth, &rates.memory_bandwidth, &rates.fma_rate}) {
    *rate = in.number<double>();
    if (!(*rate > 0)) return std::nullopt;
  }
  rates.unit_bytes = in.number<int32_t>();
  rates.bypass_bytes = in.number<int64_t>();
  if (rates.unit_bytes <= 0 || rates.bypass_bytes < 0) return std::nullopt;
  return in.at_end() ? std::optional(rates) : std::nullopt;
}

std::string written_speeds(const Rates& rates) {
  return ByteWriter()
      .number(rates.l2_bandwidth)
      .number(rates.l3_bandwidth)
      .number(rates.memory_bandwidth)
      .number(rates.fma_rate)
      .number(rates.unit_bytes)
      .number(rates.bypass_bytes)
      .result();
}

}  // namespace

int64_t bypass_threshold(int64_t usual, const CopyingRates& large, const CopyingRates& half) {
  if (large.through > large.past * kClearLoss) return 0;
  if (half.past > half.through * kClearGain && large.past > large.through * kClearGain)
    return usual / 2;
  return usual;
}

Rates measure_speeds(Backend& backend, Machine machine, const StopSignal& stop) {
  return Speeds(backend, std::move(machine), stop).measure();
}

Rates cached_speeds(Backend& backend, const Machine& machine, std::string_view processor,
                    const Flags& flags) {
  Flags wanted = flags;  // what is watched and how kernels are made does not change the processor
  wanted.spec = wanted.graphuops = wanted.track_match_stats = 0;
  wanted.debug = std::min<int64_t>(wanted.debug, 1);
  wanted.noopt = wanted.beam = 0;
  wanted.fusion = 1;
  wanted.opts = wanted.flip_joins = "";
  DiskCache disk(wanted, "speeds");
  const std::string key = cat(processor, " ", machine_key(machine));
  if (const auto kept = disk.find(key))
    if (const auto known = read_speeds(kept->view(), machine)) return *known;
  if (!disk.enabled()) return machine;
  StopSignal stop;
  stop.set_poll(flags.poll);
  stop.begin(flags.time_limit);
  try {
    const Rates found = measure_speeds(backend, machine, stop);
    disk.store(key, written_speeds(found));
    return found;
  } catch (const Error& e) {
    if (e.status() == Status::Cancelled) throw;
    if (flags.debug >= 1)
      flags.log.tell(cat("tiny: the processor's speed is not measured: ", e.message(), "\n"));
    return machine;
  }
}

}  // namespace tiny
