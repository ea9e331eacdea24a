#include "aot/export_c.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "aot/header.h"
#include "aot/memory.h"
#include "aot/names.h"
#include "aot/ports.h"
#include "aot/tape.h"
#include "base/error.h"
#include "base/text.h"
#include "engine/kernel_cache.h"
#include "engine/plan.h"
#include "io/file.h"
#include "render/c/c.h"

namespace tiny {
namespace {

using aot::CPort;

// Pieces of a kernel for each thread of the caller's: threads that begin late take fewer.
constexpr int64_t kPiecesPerThread = 4;

// What every unit has around its tape.
constexpr const char* kRuntime = R"(
typedef void Kernel(const struct KernelArgs *args);

struct Run {
  const struct $_threads *threads;
  char *scratch; /* of all workers */
  i64 status;    /* 0, or the first check that failed */
};

/* A kernel that threads of the caller's share. */
struct Work {
  Kernel *kernel;
  struct KernelArgs args;
  i64 extent;
  i64 pieces;
};

INLINE void launch_piece(void *of, int64_t i, int32_t worker) {
  const struct Work *work = (const struct Work *)of;
  struct KernelArgs args = work->args;
  args.scratch += worker * (i64)SCRATCH_BYTES;
  args.begin = work->extent * i / work->pieces;
  args.end = work->extent * (i + 1) / work->pieces;
  args.worker = worker;
  work->kernel(&args);
}

static void launch(struct Run *run, Kernel *kernel, void *const *buffers, const i64 *variables,
                   i64 extent, int is_shared) {
  struct Work work;
  if (extent <= 0) return;
  work.kernel = kernel;
  work.args.buffers = buffers;
  work.args.variables = variables;
  work.args.scratch = run->scratch;
  work.args.begin = 0;
  work.args.end = extent;
  work.args.worker = 0;
  work.args.status = &run->status;
  work.args.poll = 0;
  if (!run->threads || !is_shared || extent < 2) {
    kernel(&work.args);
    return;
  }
  work.extent = extent;
  work.pieces = run->threads->count * (i64)PIECES_PER_THREAD;
  if (work.pieces > extent) work.pieces = extent;
  run->threads->run(run->threads->pool, work.pieces, launch_piece, &work);
}

INLINE i64 size_max(i64 a, i64 b) { return a > b ? a : b; }
INLINE i64 size_min(i64 a, i64 b) { return a < b ? a : b; }
INLINE i64 size_div(i64 a, i64 b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
INLINE i64 size_mod(i64 a, i64 b) { return a - size_div(a, b) * b; }
INLINE i64 count_at(const char *p) {
  i64 count;
  memcpy(&count, p, sizeof count);
  return count;
}

/* The part of a sequence that belongs to a step; -1: what is there before the first. */
enum { FORWARD, ALTERNATES, REVERSE };
INLINE char *part_of(char *base, char *first, i64 stride, i64 part, i64 count, int order) {
  if (part < 0) return first;
  if (order == ALTERNATES) part %= 2;
  if (order == REVERSE) part = count - 1 - part;
  return base + part * stride;
}
)";

// The kernels of a tape, each once.
struct Kernels {
  std::vector<LinearProgram> programs;
  std::vector<aot::TapeKernel> of_entries;
  int64_t scratch_bytes = 0;
};

Kernels find_kernels(Context& context, const Plan& plan) {
  Kernels out;
  std::map<const Executable*, size_t> known;
  for (const TapeEntry& entry : plan.tape) {
    require(!entry.info.name.empty() && entry.info.linear_ops > 0, Status::Unsupported,
            "the program calls ", entry.info.name,
            ", a function of the host: C that stands alone cannot");
    const auto [at, is_new] = known.try_emplace(entry.executable.get(), out.programs.size());
    if (is_new) {
      LinearProgram program = context.kernels().linear_program(entry.executable.get());
      program.name = cat("kernel", out.programs.size(), "_", program.name);
      out.scratch_bytes = std::max(out.scratch_bytes, program.scratch_bytes);
      out.programs.push_back(std::move(program));
    }
    const LinearProgram& program = out.programs[at->second];
    out.of_entries.push_back({program.name, program.scratch_bytes, program.threaded});
  }
  out.scratch_bytes = (out.scratch_bytes + aot::kAlignment - 1) / aot::kAlignment * aot::kAlignment;
  return out;
}

class Unit {
 public:
  Unit(const TensorProgram& program, const std::string& name, const Plan& plan)
      : program_(program), name_(name), plan_(plan), captured_(aot::capture_memory(plan)) {
    ports_ = aot::make_ports(program, captured_);
  }

  CExport write(Context& context, const std::string& version) {
    for (const TapeLoop& loop : plan_.loops)
      require(loop.induction_variable == kNoSlot, Status::Unsupported,
              "a program whose loops have other sizes in each round is not exported as C");
    require(plan_.sizes.empty(), Status::Unsupported,
            "a program that computes sizes itself (the variable \"",
            plan_.sizes.empty() ? "" : plan_.variables[plan_.sizes.front().variable].name,
            "\") is not exported as C");
    const Kernels kernels = find_kernels(context, plan_);
    const CUnit unit = render_c_parts(kernels.programs, true);
    CExport out;
    const std::string title = cat(name_, ", made by tiny ", version);
    out.header = aot::header_text(name_, title, ports_, program_.variables,
                                  {captured_.weight_bytes, captured_.state_bytes});
    out.source = cat("/* ", title,
                     ".  Compile it as C11, with -O2 and for the processor that it is to run on",
                     ";\n   link with -lm. */\n", unit.beginning, "\n#include \"", name_, ".h\"\n");
    out.source += cat(unit.functions, "\nenum { SCRATCH_BYTES = ", kernels.scratch_bytes,
                      ", PIECES_PER_THREAD = ", kPiecesPerThread, " };\n",
                      aot::with_name(kRuntime, name_), "\n", functions(kernels));
    out.weights = std::move(captured_.content);
    return out;
  }

 private:
  // Addresses by the program's numbers; outputs of one value share its number, and the first has
  // it.
  static std::vector<std::string> places(const std::vector<CPort>& ports, int64_t count) {
    std::vector<std::string> out(static_cast<size_t>(count), "0");
    for (const CPort& port : ports)
      if (port.is_given && port.number >= 0 && out[static_cast<size_t>(port.number)] == "0")
        out[static_cast<size_t>(port.number)] = cat("(char *)arguments->", port.member);
    return out;
  }

  // The variables as an array, or a return with `failure`.
  std::string variables(const char* failure) const {
    if (program_.variables.empty()) return "";
    std::string text, members;
    for (size_t i = 0; i < program_.variables.size(); ++i) {
      const ProgramVariable& v = program_.variables[i];
      const std::string member = cat("arguments->", ports_.variables[i]);
      text += cat("  if (", member, " < ", v.min, " || ", member, " > ", v.max, ") return ",
                  failure, ";\n");
      members += cat(i > 0 ? ", " : "", member);
    }
    return cat(text, "  const i64 n[] = {", members, "};\n  (void)n;\n");
  }

  std::string offsets() const {
    return plan_.variables.empty() || plan_.slots.empty()
               ? std::string()
               : cat("  i64 offset[", plan_.slots.size(), "];\n");
  }

  std::string functions(const Kernels& kernels) {
    const std::vector<std::string> inputs = places(ports_.inputs, plan_.inputs);
    const std::vector<std::string> outputs = places(ports_.outputs, plan_.outputs);
    aot::TapeWriter tape(plan_, captured_, kernels.of_entries, inputs, outputs);
    const aot::TapeText body = tape.write();
    std::string text;
    if (captured_.state_bytes > 0)
      text += cat("void ", name_, "_begin(void *state, const void *weights) {\n  memcpy(state, ",
                  "(const char *)weights + ", captured_.weight_bytes, ", ", captured_.state_bytes,
                  ");\n}\n\n");
    text += cat("/* Of the values between kernels, or -1. */\nstatic i64 arena_bytes(const struct ",
                name_, "_arguments *arguments) {\n  i64 size;\n", offsets(), "  (void)arguments;\n",
                variables("-1"), plan_.variables.empty() ? "" : "  size = 0;\n", tape.arena_size(),
                "  return (size + 63) & ~(i64)63;\n}\n\n");
    text += cat(
        "size_t ", name_, "_memory_bytes(const struct ", name_,
        "_arguments *arguments) {\n"
        "  const i64 arena = arguments ? arena_bytes(arguments) : -1;\n"
        "  const i64 workers = arguments && arguments->threads ? arguments->threads->count : 1;\n"
        "  return arena < 0 || workers < 1 ? 0 : (size_t)(arena + workers * (i64)SCRATCH_BYTES + "
        "64);\n"
        "}\n\n");
    text += cat("int ", name_, "_run(const struct ", name_, "_arguments *arguments) {\n", checks(),
                "  struct Run of = {arguments->threads, 0, 0}, *run = &of;\n", pointers(),
                offsets(), "  char *s[", std::max<size_t>(plan_.slots.size(), 1), "];\n",
                body.slots, "  (void)s, (void)arena, (void)weights;\n", body.launches);
    text += cat("  if (of.status) return ", name_, "_BAD_INDEX;\n", copies(), "  return ", name_,
                "_OK;\n}\n");
    return text;
  }

  std::string checks() const {
    const std::string bad = cat(name_, "_BAD_ARGUMENT");
    std::string text = cat("  if (!arguments) return ", bad, ";\n", variables(bad.c_str()));
    text += cat("  const size_t needed = ", name_,
                "_memory_bytes(arguments);\n  if (needed == 0 || "
                "arguments->memory_bytes < needed || !arguments->memory) return ",
                bad, ";\n");
    if (captured_.weight_bytes + captured_.state_bytes > 0)
      text += cat("  if (!arguments->weights) return ", bad, ";\n");
    if (captured_.state_bytes > 0) text += cat("  if (!arguments->state) return ", bad, ";\n");
    for (const std::vector<CPort>* ports : {&ports_.inputs, &ports_.outputs})
      for (const CPort& port : *ports)
        if (port.is_given && !port.may_be_null)
          text += cat("  if (!arguments->", port.member, ") return ", bad, ";\n");
    return text;
  }

  // The memory begins where a line of a cache does.
  std::string pointers() const {
    std::string text =
        "  char *const arena = (char *)(((uintptr_t)arguments->memory + 63) & ~(uintptr_t)63);\n"
        "  char *const weights = (char *)(uintptr_t)arguments->weights;\n"
        "  of.scratch = arena + arena_bytes(arguments);\n";
    if (captured_.state_bytes > 0) text += "  char *const state = (char *)arguments->state;\n";
    return text;
  }

  // Outputs that are the same value.
  std::string copies() const {
    std::string text;
    for (size_t i = 0; i < ports_.outputs.size(); ++i) {
      const CPort& port = ports_.outputs[i];
      if (!port.is_given || port.number < 0) continue;
      const auto from = std::ranges::find_if(ports_.outputs, [&](const CPort& other) {
        return other.is_given && other.number == port.number;
      });
      if (from->member == port.member) continue;
      text += cat("  memcpy(arguments->", port.member, ", arguments->", from->member, ", (size_t)(",
                  port.elements, ") * sizeof(", port.type, "));\n");
    }
    return text;
  }

  const TensorProgram& program_;
  const std::string& name_;
  const Plan& plan_;
  aot::CapturedMemory captured_;
  aot::CPorts ports_;
};

}  // namespace

CExport export_c(Context& context, const TensorProgram& program, const std::string& name,
                 const std::string& version) {
  require(aot::is_usable(name), Status::InvalidArgument, "\"", name,
          "\" cannot name functions of C: it takes letters, digits and _, a letter first, and no "
          "keyword");
  const Plan nothing;
  const Plan& plan = program.compiled.program ? *program.compiled.program : nothing;
  return Unit(program, name, plan).write(context, version);
}

void write_c_export(const CExport& files, const std::string& folder, const std::string& name,
                    const StopSignal* stop) {
  require(mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST, Status::Io,
          "cannot make the folder ", folder, ": ", std::strerror(errno));
  const std::string path = cat(folder, "/", name);
  const std::string_view weights(reinterpret_cast<const char*>(files.weights.data()),
                                 files.weights.size());
  const auto write = [&](const char* ending, std::string_view content) {
    write_file(path + ending, {&content, 1}, stop);
  };
  write(".weights", weights);
  write(".c", files.source);
  write(".h", files.header);
}

}  // namespace tiny
