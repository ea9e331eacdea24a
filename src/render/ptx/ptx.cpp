#include "render/ptx/ptx.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/matrix.h"
#include "base/text.h"
#include "render/access_alignment.h"
#include "render/ptx/kernel.h"

namespace tiny {
namespace {

struct KnownTarget {
  const char* name;
  int compute;
  int version;  // the lowest that knows it (PTX ISA, "Release Notes"): major * 10 + minor
};

// Those with a letter have instructions that no later device has: they are asked for by name.
constexpr KnownTarget kTargets[] = {
    {"sm_75", 75, 63},    {"sm_80", 80, 70},   {"sm_86", 86, 71},    {"sm_87", 87, 74},
    {"sm_89", 89, 78},    {"sm_90", 90, 78},   {"sm_90a", 90, 80},   {"sm_100", 100, 86},
    {"sm_100a", 100, 86}, {"sm_103", 103, 88}, {"sm_103a", 103, 88}, {"sm_120", 120, 87},
    {"sm_120a", 120, 87}, {"sm_121", 121, 88}, {"sm_121a", 121, 88},
};

PtxTarget made(const KnownTarget& known) {
  PtxTarget target;
  target.name = known.name;
  target.version = cat(known.version / 10, ".", known.version % 10);
  target.compute = known.compute;
  return target;
}

LinearProgram aligned(const LinearProgram& program, int64_t alignment) {
  LinearProgram out = program;
  for (LinearParam& param : out.params) param.alignment = std::max(param.alignment, alignment);
  return out;
}

// Of devices that copy beside their threads (PTX ISA, "cp.async").
constexpr int kComputeOfCopies = 80;

void require_matrices(const LinearProgram& program, const PtxTarget& target) {
  for (const LinearOp& op : program.ops)
    require(op.op != Op::Mma || has_compute(kMatrixRows[op.aux], target.compute),
            Status::Unsupported, "kernel ", program.name, ": ", kMatrixRows[op.aux].name, " on ",
            target.name, ", which has no such instruction");
}

}  // namespace

bool has_ptx_renderer() {
  return true;
}

PtxTarget ptx_target(int compute, int version) {
  const KnownTarget* best = nullptr;
  for (const KnownTarget& known : kTargets)
    if (known.compute <= compute && known.version <= version &&
        (!best || known.compute > best->compute))
      best = &known;
  require(best != nullptr, Status::Unsupported, "a device of compute capability ", compute / 10,
          ".", compute % 10, ": kernels need 7.5");
  PtxTarget target = made(*best);
  target.has_own =
      best->compute == compute && std::ranges::any_of(kTargets, [&](const auto& known) {
        return known.name == target.name + "a" && known.version <= version;
      });
  return target;
}

PtxTarget ptx_target(const std::string& name) {
  std::string names;
  for (const KnownTarget& known : kTargets) {
    if (name == known.name) return made(known);
    names += cat(names.empty() ? "" : ", ", known.name);
  }
  throw_error(Status::InvalidArgument, "PTX for \"", name, "\": known are ", names);
}

MatrixSet matrices_of(const PtxTarget& target, bool may_round_float) {
  MatrixSet set = 0;
  for (int64_t i = 0; i < kMatrixRowCount; ++i)
    if (target.has_own || kMatrixRows[i].compute_most != target.compute) set |= matrix_bit(i);
  return set & matrices_of(target.compute, may_round_float);
}

namespace {

// What the devices of one compute capability alone have is asked for by a letter.
PtxTarget lettered(std::span<const LinearProgram> programs, const PtxTarget& target) {
  const auto is_own = [&](const LinearOp& op) {
    return op.op == Op::Mma && kMatrixRows[op.aux].compute_most == target.compute;
  };
  const bool has_own = std::ranges::any_of(
      programs, [&](const LinearProgram& p) { return std::ranges::any_of(p.ops, is_own); });
  if (!has_own || target.name.ends_with('a')) return target;
  PtxTarget own = ptx_target(target.name + "a");
  own.parameter_alignment = target.parameter_alignment;
  return own;
}

}  // namespace

std::vector<Code> render_ptx_unit(std::span<const LinearProgram> programs,
                                  const PtxTarget& of_device) {
  const PtxTarget target = lettered(programs, of_device);
  std::vector<Code> codes;
  std::string entries;
  std::set<std::string> names;
  int64_t dynamic_alignment = 0;
  for (const LinearProgram& program : programs) {
    invariant(names.insert(program.name).second, "kernels of one unit have their own names");
    require_matrices(program, target);
    const ptx::Entry entry = ptx::make_entry(aligned(program, target.parameter_alignment),
                                             target.compute >= kComputeOfCopies);
    Code code;
    code.kind = CodeKind::Ptx;
    code.name = program.name;
    code.entry = entry.name;
    if (program.grouped) code.group = entry.block;
    code.shared_bytes = entry.dynamic_shared_bytes;
    codes.push_back(std::move(code));
    entries += "\n" + entry.text;
    if (entry.dynamic_shared_bytes > 0)
      dynamic_alignment = std::max(dynamic_alignment, entry.shared_alignment);
  }
  if (codes.empty()) return codes;
  codes[0].text =
      cat(".version ", target.version, "\n.target ", target.name, "\n.address_size 64\n");
  if (dynamic_alignment > 0)
    codes[0].text +=
        cat(".extern .shared .align ", dynamic_alignment, " .b8 ", ptx::kDynamicShared, "[];\n");
  codes[0].text += entries;
  return codes;
}

Code render_ptx(const LinearProgram& program, const PtxTarget& target) {
  return render_ptx_unit({&program, 1}, target)[0];
}

}  // namespace tiny
