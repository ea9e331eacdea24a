#include "engine/lowering.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "codegen/figures.h"
#include "codegen/options/actions.h"

namespace tiny {

namespace {

uint64_t hash_of(const LinearProgram& program, uint64_t seed) {
  uint64_t h = hash_mix(seed, static_cast<uint64_t>(program.scratch_bytes));
  h = hash_mix(h, program.threaded);
  for (const LinearOp& op : program.ops) {
    h = hash_mix(h, static_cast<uint64_t>(op.op) << 32 | op.count);
    h = hash_mix(h, static_cast<uint64_t>(op.dtype.scalar) << 16 | op.dtype.lanes);
    for (size_t i = 0; i < op.count; ++i) h = hash_mix(h, op.src[i]);
    h = hash_mix(h, static_cast<uint64_t>(op.imm));
    h = hash_mix(h, static_cast<uint64_t>(static_cast<int64_t>(op.aux)));
  }
  return h;
}

}  // namespace

// The kernel, as one thread may work on it.
struct Lowering::Lane {
  Lane(const Kernel& kernel, const Target& target, const StopSignal& stop)
      : kernel(copy_kernel(kernel, graph)), prepared(prepare_kernel(this->kernel, target)) {
    graph.set_stop(&stop);
  }
  Graph graph;
  Kernel kernel;
  Kernel prepared;
};

Lowering::Lowering(const Kernel& kernel, Backend& backend, const PipelineOptions& base,
                   const Trial& trial, const StopSignal& stop)
    : backend_(backend), trial_(trial), stop_(stop) {
  pipeline_.verify = base.verify;
  pipeline_.optimise = false;
  const ThreadPool* threads = backend.device().threads();
  for (int i = 0; i < (threads ? threads->workers() : 1); ++i)
    lanes_.push_back(std::make_unique<Lane>(kernel, backend.target(), stop));
}

Lowering::~Lowering() = default;

const Kernel& Lowering::prepared() const {
  return lanes_.front()->prepared;
}

std::optional<Lowered> Lowering::lower_one(const Lane& lane, const std::vector<Option>& list,
                                           const Wish& wish, LinearProgram& program) const {
  const Machine& target = backend_.machine();
  try {
    if (wish.must_fit && !fits_target(apply_options(lane.prepared, list), target))
      return std::nullopt;
    PipelineOptions options = pipeline_;
    options.options_text = to_text(list);
    CodegenResult made = generate(lane.kernel, target, options);
    if (std::ssize(made.program.ops) > target.most.linear_ops) return std::nullopt;
    const ProgramHash hash{hash_of(made.program, 1), hash_of(made.program, 2)};
    if (wish.seen->contains(hash)) return std::nullopt;
    const SizeExpression extent(made.threads_extent, lane.kernel.variables);
    const double executed = count_executed(made.program, trial_.value(extent));
    if (wish.executed_max > 0 && executed > wish.executed_max) return std::nullopt;
    program = std::move(made.program);
    return Lowered{list, program.name, extent, executed, hash, {}};
  } catch (const Error& e) {
    if (e.status() == Status::InvalidArgument || e.status() == Status::Unsupported ||
        e.status() == Status::Limit)
      return std::nullopt;
    throw_error(e.status(), e.message(), ", with the options \"", to_text(list), "\"");
  }
}

// Every list that is this lane's, rendered together: a device may compile them as one.
void Lowering::lower_share(size_t share, std::span<const std::vector<Option>> lists,
                           const Wish& wish, std::vector<std::optional<Lowered>>& made) const {
  std::vector<LinearProgram> programs;
  std::vector<size_t> places;
  for (size_t i = share; i < lists.size(); i += lanes_.size()) {
    LinearProgram program;
    stop_.check();
    made[i] = lower_one(*lanes_[share], lists[i], wish, program);
    if (!made[i] || !wish.with_code) continue;
    programs.push_back(std::move(program));
    places.push_back(i);
  }
  if (programs.empty()) return;
  // What loops are called says nothing of what lists differ in, and a unit has each name once.
  for (size_t k = 0; k < programs.size(); ++k) programs[k].name += cat("_", k);
  std::vector<Code> codes = backend_.render(programs, Backend::Form::Best);
  for (size_t k = 0; k < places.size(); ++k) made[places[k]]->code = std::move(codes[k]);
}

std::vector<std::optional<Lowered>> Lowering::lower(std::span<const std::vector<Option>> lists,
                                                    const Wish& wish) {
  std::vector<std::optional<Lowered>> made(lists.size());
  for_each_piece(backend_.device().threads(), std::ssize(lanes_), stop_, [&](int64_t share, int) {
    lower_share(static_cast<size_t>(share), lists, wish, made);
  });
  return made;
}

}  // namespace tiny
