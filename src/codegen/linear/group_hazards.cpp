#include "codegen/linear/group_hazards.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/matrix.h"
#include "codegen/linear/group_products.h"
#include "ir/fold.h"

namespace tiny {

namespace {

constexpr int64_t kStepsMost = 10'000'000;  // ops of all threads: some tenth of a second
constexpr int64_t kPeriodMost = 64;         // steps of a loop after which remainders come again
constexpr LinearId kNone = UINT32_MAX;

// What is known of a value: a number, or an address so far from where its memory begins.
struct Known {
  int64_t number = 0;
  LinearId memory = kNone;  // Shared, of an address
  bool is_known = false;
};

struct Byte {
  int64_t written = -1, read = -1;  // the numbers of barriers passed; -1: never
  int32_t writer = 0, reader = 0;   // threads; a reader of -1: several
  int32_t copies = 0;               // under way
  int32_t products = 0;             // that read it and are under way
  bool is_fenced = false;           // what was written is there for products
};

struct OpenLoop {
  LinearId head = 0;
  int64_t at = 0, end = 0, skip_from = 0, skip_to = 0;
};

struct Copy {
  int64_t begin = 0, bytes = 0;
  int64_t group = 0;
};

// The bytes that a product reads, pieces of 16.
struct Product {
  std::vector<int64_t> pieces;
  int64_t group = 0;
};

struct Walker {
  std::vector<Known> values;
  std::vector<OpenLoop> loops;
  std::vector<Copy> copies;
  int64_t groups = 0;  // of copies that it has committed
  std::vector<Product> products;
  int64_t product_groups = 0;
  bool may_change_sums = false;                      // behind a fence of them
  std::vector<LinearId> sums;                        // of products under way
  std::vector<std::pair<int64_t, int64_t>> written;  // since its last fence of memory: begin, bytes
  LinearId at = 0;
  std::array<int64_t, 3> coordinates{};
};

bool is_meeting(Op op) {
  return op == Op::Barrier || op == Op::GroupFold || op == Op::Mma || op == Op::LoadMatrix;
}

class Checker {
 public:
  explicit Checker(const LinearProgram& program)
      : program_(program),
        ends_(program.ops.size()),
        periods_(program.ops.size(), 1),
        has_barrier_(program.ops.size()),
        has_products_(std::ranges::any_of(program.ops, multiplies_shared)),
        bytes_(static_cast<size_t>(program.shared_bytes)),
        walkers_(static_cast<size_t>(program.group_threads())) {
    std::vector<LinearId> open;
    for (LinearId i = 0; i < program.ops.size(); ++i) {
      const LinearOp& op = program.ops[i];
      if (op.op == Op::Loop || op.op == Op::If) open.push_back(i);
      if (op.op == Op::Barrier)
        for (const LinearId head : open) has_barrier_[head] = true;
      if (op.op == Op::FloorMod && program.ops[op.src[1]].op == Op::Const)
        for (const LinearId head : open) add_period(head, program.ops[op.src[1]].imm);
      if (op.op != Op::EndLoop && op.op != Op::EndIf) continue;
      ends_[open.back()] = i;
      open.pop_back();
    }
    for (size_t t = 0; t < walkers_.size(); ++t) {
      auto left = static_cast<int64_t>(t);
      walkers_[t].values.resize(program.ops.size());
      for (size_t axis = 0; axis < 3; ++axis) {
        walkers_[t].coordinates[axis] = left % program.group[axis];
        left /= program.group[axis];
      }
    }
  }

  std::string run() {
    while (found_.empty() && steps_ < kStepsMost) {
      for (size_t t = 0; t < walkers_.size() && found_.empty(); ++t) walk(t);
      const LinearId meeting = walkers_.front().at;
      if (!found_.empty() || meeting >= program_.ops.size()) break;
      const LinearOp& op = program_.ops[meeting];
      if (op.op == Op::Barrier) ++barriers_;
      if (op.op == Op::LoadMatrix) load_matrices(op);
      if (multiplies_shared(op)) multiply(meeting, op);
      for (Walker& w : walkers_) ++w.at;
    }
    return found_;
  }

 private:
  void add_period(LinearId head, int64_t divisor) {
    if (divisor <= 0 || divisor > kPeriodMost) return;
    periods_[head] = std::min(std::lcm(periods_[head], divisor), kPeriodMost);
  }

  const LinearOp& op_of(LinearId id) const { return program_.ops[id]; }

  // To the next meeting, or the end.
  void walk(size_t thread) {
    Walker& w = walkers_[thread];
    for (; w.at < program_.ops.size() && found_.empty(); ++steps_) {
      const LinearOp& op = op_of(w.at);
      if (is_meeting(op.op)) return;
      step(w, thread, op);
    }
  }

  void step(Walker& w, size_t thread, const LinearOp& op) {
    const LinearId here = w.at++;
    if (!w.sums.empty() && op.op != Op::Set)
      for (size_t s = 0; s < op.count; ++s)
        if (std::ranges::find(w.sums, op.src[s]) != w.sums.end())
          return fail(here, thread, 0, "products of the sum are under way");
    switch (op.op) {
      case Op::Loop:
        return open_loop(w, here, op);
      case Op::EndLoop:
        return close_loop(w, op);
      case Op::If:
        if (const Known& c = w.values[op.src[0]]; c.is_known && c.number == 0)
          w.at = ends_[here] + 1;
        return;
      case Op::Load:
        return access(w, thread, here, op.dtype, 2, false);
      case Op::Store:
        return access(w, thread, here, op_of(op.src[2]).dtype, 3, true);
      case Op::CopyAsync:
        return begin_copy(w, thread, here);
      case Op::Commit:
        ++w.groups;
        return;
      case Op::WaitCopies:
        return end_copies(w, thread, op.imm);
      case Op::Fence:
        return fence(w, thread, op.imm);
      case Op::CommitMmas:
        ++w.product_groups;
        return;
      case Op::WaitMmas:
        return end_products(w, op.imm);
      default:
        w.values[here] = value(w, op);
    }
  }

  Known value(const Walker& w, const LinearOp& op) const {
    const auto number = [](int64_t n) { return Known{n, kNone, true}; };
    switch (op.op) {
      case Op::Const:
        return op.dtype == kInt64 || op.dtype == kBool ? number(op.imm) : Known{};
      case Op::Variable:
        return number(program_.variables[static_cast<size_t>(op.imm)].max);
      case Op::LaunchArg:
        return number(op.imm >= 3 ? w.coordinates[static_cast<size_t>(op.imm - 3)] : op.imm == 1);
      case Op::Shared:
        return {op.imm, static_cast<LinearId>(&op - program_.ops.data()), true};
      case Op::Address: {
        Known base = w.values[op.src[0]];
        const Known& index = w.values[op.src[1]];
        base.is_known = base.is_known && index.is_known;
        base.number += index.number * op.imm;
        return base;
      }
      default:
        break;
    }
    if (!has(op.op, kElementwise) || (op.dtype != kInt64 && op.dtype != kBool)) return {};
    std::array<uint64_t, 3> bits{};
    for (size_t i = 0; i < op.count; ++i) {
      const DType dtype = op_of(op.src[i]).dtype;
      if (!w.values[op.src[i]].is_known || (dtype != kInt64 && dtype != kBool)) return {};
      bits[i] = static_cast<uint64_t>(w.values[op.src[i]].number);
    }
    const DType operand = op_of(op.src[op.count - 1]).dtype;
    return number(int_of(op.dtype, fold_bits(op.op, op.dtype, operand, bits.data())));
  }

  // Where the end is not known there are a few steps.
  void open_loop(Walker& w, LinearId here, const LinearOp& op) {
    const Known &begin = w.values[op.src[0]], &end = w.values[op.src[1]];
    const int64_t few = 2 * periods_[here] + 2;
    OpenLoop loop{here, begin.number, end.is_known ? end.number : begin.number + few * op.imm, 0,
                  0};
    const int64_t count = (loop.end - loop.at + op.imm - 1) / op.imm;
    const int64_t skipped = (count - 2 * few) / periods_[here] * periods_[here];
    if (skipped > 0 && has_barrier_[here]) {
      loop.skip_from = loop.at + few * op.imm;
      loop.skip_to = loop.skip_from + skipped * op.imm;
    }
    if (loop.at >= loop.end) {
      w.at = ends_[here] + 1;
      return;
    }
    w.values[here] = {loop.at, kNone, begin.is_known};
    w.loops.push_back(loop);
  }
  void close_loop(Walker& w, const LinearOp& op) {
    OpenLoop& loop = w.loops.back();
    loop.at += op_of(op.src[0]).imm;
    if (loop.skip_to > 0 && loop.at == loop.skip_from) loop.at = loop.skip_to;
    if (loop.at >= loop.end) {
      w.loops.pop_back();
      return;
    }
    w.values[loop.head].number = loop.at;
    w.at = loop.head + 1;
  }

  void fail(LinearId at, size_t thread, int64_t byte, const char* what) {
    if (found_.empty())
      found_ = cat("op %", at, " ", info(op_of(at).op).name, ", thread ", thread, ", byte ", byte,
                   ": ", what);
  }

  void read(LinearId at, size_t thread, int64_t first, int64_t bytes) {
    if (!is_inside(at, thread, first, bytes)) return;
    const auto own = static_cast<int32_t>(thread);
    for (int64_t i = first; i < first + bytes; ++i) {
      Byte& b = bytes_[static_cast<size_t>(i)];
      if (b.copies > 0) return fail(at, thread, i, "a copy to it is under way");
      // A thread beside the edge reads what it does not use.
      if (b.written < 0 && (op_of(at).op == Op::LoadMatrix || op_of(at).op == Op::Mma))
        return fail(at, thread, i, "nobody has written what is read");
      if (b.written == barriers_ && b.writer != own)
        return fail(at, thread, i, "no barrier between another thread's write and the read");
      b.reader = b.read == barriers_ && b.reader != own ? -1 : own;
      b.read = barriers_;
    }
  }
  // `is_sure`: all of these bytes are written.
  void write(LinearId at, size_t thread, int64_t first, int64_t bytes, bool is_sure) {
    if (!is_inside(at, thread, first, bytes)) return;
    const auto own = static_cast<int32_t>(thread);
    for (int64_t i = first; i < first + bytes; ++i) {
      Byte& b = bytes_[static_cast<size_t>(i)];
      if (is_sure && b.copies > 0) return fail(at, thread, i, "a copy to it is under way");
      if (is_sure && b.products > 0)
        return fail(at, thread, i, "a product that reads it is under way");
      if (is_sure && b.written == barriers_ && b.writer != own)
        return fail(at, thread, i, "no barrier between the writes of two threads");
      if (is_sure && b.read == barriers_ && b.reader != own)
        return fail(at, thread, i, "no barrier between another thread's read and the write");
      b.written = barriers_;
      b.writer = own;
      b.is_fenced = false;
    }
    if (has_products_) walkers_[thread].written.emplace_back(first, bytes);
  }
  bool is_inside(LinearId at, size_t thread, int64_t first, int64_t bytes) {
    const bool is = first >= 0 && first + bytes <= std::ssize(bytes_);
    if (!is) fail(at, thread, first, "it is outside of the group's memory");
    return is;
  }

  // Of memory that may be anywhere in a piece, all counts as written.
  void write_somewhere() {
    for (Byte& b : bytes_) b.written = std::max<int64_t>(b.written, 0), b.is_fenced = true;
  }

  void access(Walker& w, size_t thread, LinearId here, DType dtype, size_t mask_at, bool writes) {
    const LinearOp& op = op_of(here);
    const Known& base = w.values[op.src[0]];
    if (base.memory == kNone) return;
    const Known& index = w.values[op.src[1]];
    if (!base.is_known || !index.is_known) return writes ? write_somewhere() : void();
    const int64_t size = dtype.element().bytes();
    for (int64_t lane = 0; lane < dtype.lanes; ++lane) {
      const int64_t first = base.number + (index.number + lane * op.aux) * size + op.imm;
      if (writes)
        write(here, thread, first, size, op.count == mask_at);
      else if (op.count == mask_at)
        read(here, thread, first, size);
    }
  }

  void begin_copy(Walker& w, size_t thread, LinearId here) {
    const LinearOp& op = op_of(here);
    const Known& to = w.values[op.src[0]];
    if (!to.is_known) return write_somewhere();
    write(here, thread, to.number, op.aux, true);
    if (!found_.empty()) return;
    for (int64_t i = 0; i < op.aux; ++i) ++bytes_[static_cast<size_t>(to.number + i)].copies;
    w.copies.push_back({to.number, op.aux, w.groups});
  }
  void end_copies(Walker& w, size_t thread, int64_t most) {
    std::erase_if(w.copies, [&](const Copy& copy) {
      if (copy.group + most >= w.groups) return false;
      for (int64_t i = copy.begin; i < copy.begin + copy.bytes; ++i) {
        Byte& b = bytes_[static_cast<size_t>(i)];
        --b.copies;
        b.written = barriers_;
        b.writer = static_cast<int32_t>(thread);
        b.is_fenced = false;
      }
      if (has_products_) w.written.emplace_back(copy.begin, copy.bytes);
      return true;
    });
  }

  void fence(Walker& w, size_t thread, int64_t of_sums) {
    if (of_sums != 0) {
      w.may_change_sums = true;
      return;
    }
    for (const auto& [begin, bytes] : w.written)
      for (int64_t i = begin; i < begin + bytes; ++i)
        if (Byte& b = bytes_[static_cast<size_t>(i)]; b.writer == static_cast<int32_t>(thread))
          b.is_fenced = true;
    w.written.clear();
  }

  // Of each row of warps the first thread stands for all: they have the same addresses.
  void multiply(LinearId at, const LinearOp& op) {
    const MatrixRow& row = kMatrixRows[op.aux];
    const auto step = static_cast<size_t>(kWarpThreads * row.warps);
    for (size_t t = 0; t < walkers_.size() && found_.empty(); t += step) {
      Walker& w = walkers_[t];
      if (!w.may_change_sums) return fail(at, t, 0, "no fence of sums before the product");
      w.products.push_back({{}, w.product_groups});
      if (std::ranges::find(w.sums, op.src[2]) == w.sums.end()) w.sums.push_back(op.src[2]);
      read_operand(at, t, w.values[op.src[0]], row.m * row.warps, (op.imm & kTurnedA) != 0);
      read_operand(at, t, w.values[op.src[1]], row.n, (op.imm & kTurnedB) != 0);
    }
  }
  void read_operand(LinearId at, size_t thread, const Known& begin, int64_t sides, bool is_turned) {
    constexpr int64_t kPiece = 8, kPieceBytes = 16, kSteps = 16;
    if (!begin.is_known) return;
    if (begin.memory == kNone || begin.number % kPieceBytes != 0)
      return fail(at, thread, begin.number, "no operand begins there");
    const int64_t lines = is_turned ? kSteps : sides, along = is_turned ? sides : kSteps;
    for (int64_t line = 0; line < lines; ++line)
      for (int64_t piece = 0; piece < along && found_.empty(); piece += kPiece) {
        const int64_t first = is_turned ? place_in_lines(begin.number, piece, line, true)
                                        : place_in_lines(begin.number, line, piece, false);
        read(at, thread, first, kPieceBytes);
        for (int64_t i = first; i < first + kPieceBytes && found_.empty(); ++i) {
          Byte& b = bytes_[static_cast<size_t>(i)];
          if (!b.is_fenced) return fail(at, thread, i, "no fence between a write and the product");
          ++b.products;
        }
        walkers_[thread].products.back().pieces.push_back(first);
      }
  }
  void end_products(Walker& w, int64_t most) {
    std::erase_if(w.products, [&](const Product& product) {
      if (product.group + most >= w.product_groups) return false;
      for (const int64_t piece : product.pieces)
        for (int64_t i = piece; i < piece + 16; ++i) --bytes_[static_cast<size_t>(i)].products;
      return true;
    });
    if (!w.products.empty()) return;
    w.may_change_sums = false;
    w.sums.clear();
  }

  void load_matrices(const LinearOp& op) {
    constexpr int64_t kRows = 8, kRowBytes = 16;
    for (size_t t = 0; t < walkers_.size() && found_.empty(); ++t) {
      const Known& at = walkers_[t].values[op.src[0]];
      if (!at.is_known || static_cast<int64_t>(t) % kWarpThreads >= kRows * op.dtype.lanes)
        continue;
      read(walkers_[t].at, t, at.number + op.imm, kRowBytes);
    }
  }

  const LinearProgram& program_;
  std::vector<LinearId> ends_;  // of blocks, by head
  std::vector<int64_t> periods_;
  std::vector<bool> has_barrier_;
  bool has_products_;
  std::vector<Byte> bytes_;
  std::vector<Walker> walkers_;
  int64_t barriers_ = 0, steps_ = 0;
  std::string found_;
};

}  // namespace

std::string find_hazard(const LinearProgram& program) {
  if (!program.grouped || program.shared_bytes == 0) return {};
  return Checker(program).run();
}

void verify_hazards(const LinearProgram& program) {
  const std::string found = find_hazard(program);
  require(found.empty(), Status::Internal, "linear program ", program.name, ": a hazard: ", found,
          "\n", to_string(program));
}

}  // namespace tiny
