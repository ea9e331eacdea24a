#include "codegen/linear/merge_barriers.h"

#include <set>
#include <utility>
#include <vector>

#include "codegen/linear/group_products.h"

namespace tiny {

namespace {

// Which pieces of shared memory are read and written, by offset.
struct Accesses {
  std::set<int64_t> read, written;
  bool are_any = false;  // of all pieces: what another trip of a loop does, or what stands around

  bool empty() const { return !are_any && read.empty() && written.empty(); }
  // Whether an access of one must not change places with one of the other.
  bool conflict_with(const Accesses& other) const {
    if (empty() || other.empty()) return false;
    if (are_any || other.are_any) return true;
    const auto meet = [](const std::set<int64_t>& a, const std::set<int64_t>& b) {
      for (const int64_t piece : a)
        if (b.contains(piece)) return true;
      return false;
    };
    return meet(written, other.written) || meet(written, other.read) || meet(read, other.written);
  }
};

class Merger {
 public:
  explicit Merger(LinearProgram& program) : program_(program), meets_(program.ops.size()) {
    std::vector<LinearId> open;
    for (LinearId i = 0; i < program.ops.size(); ++i) {
      const LinearOp& op = program.ops[i];
      if (op.op == Op::Barrier)
        for (const LinearId head : open) meets_[head] = true;
      if (op.op == Op::Loop || op.op == Op::If) open.push_back(i);
      if (op.op == Op::EndLoop || op.op == Op::EndIf) open.pop_back();
    }
  }

  void run() {
    std::vector<bool> goes(program_.ops.size());
    Accesses before;
    for (LinearId i = 0; i < program_.ops.size(); ++i) {
      if (program_.ops[i].op != Op::Barrier) {
        add(i, before);
      } else if (before.conflict_with(until_next(i + 1))) {
        before = {};
      } else {
        goes[i] = true;
      }
    }
    remove(goes);
  }

 private:
  // Whether the op begins or ends a block in which threads meet.
  bool is_edge(LinearId at) const {
    const LinearOp& op = program_.ops[at];
    if (op.op == Op::Loop || op.op == Op::If) return meets_[at];
    return (op.op == Op::EndLoop || op.op == Op::EndIf) && meets_[op.src[0]];
  }

  LinearId root(LinearId address) const {
    while (program_.ops[address].op == Op::Address) address = program_.ops[address].src[0];
    return address;
  }

  void add(LinearId at, Accesses& to) const {
    const LinearOp& op = program_.ops[at];
    if (is_edge(at)) to.are_any = true;
    if (multiplies_shared(op))
      for (size_t s = 0; s < 2; ++s) to.read.insert(program_.ops[root(op.src[s])].imm);
    if (op.op != Op::Load && op.op != Op::Store && op.op != Op::LoadMatrix &&
        op.op != Op::CopyAsync)
      return;
    const LinearId memory = root(op.src[0]);
    if (program_.ops[memory].op != Op::Shared) return;
    (op.op == Op::Store || op.op == Op::CopyAsync ? to.written : to.read)
        .insert(program_.ops[memory].imm);
  }

  Accesses until_next(LinearId at) const {
    Accesses after;
    for (; at < program_.ops.size() && program_.ops[at].op != Op::Barrier && !after.are_any; ++at)
      add(at, after);
    return after;
  }

  void remove(const std::vector<bool>& goes) {
    std::vector<LinearId> place(program_.ops.size());
    std::vector<LinearOp> kept;
    for (LinearId i = 0; i < program_.ops.size(); ++i) {
      if (goes[i]) continue;
      LinearOp op = program_.ops[i];
      for (size_t s = 0; s < op.count; ++s) op.src[s] = place[op.src[s]];
      place[i] = static_cast<LinearId>(kept.size());
      kept.push_back(op);
    }
    program_.ops = std::move(kept);
  }

  LinearProgram& program_;
  std::vector<bool> meets_;  // by head: whether a barrier stands in the block
};

}  // namespace

void merge_barriers(LinearProgram& program) {
  Merger(program).run();
}

}  // namespace tiny
