#include "codegen/linear/group_products.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tiny {

namespace {

constexpr int64_t kOfMemory = 0, kOfSums = 1;  // a Fence

class Orderer {
 public:
  explicit Orderer(LinearProgram& program)
      : program_(program), from_(std::move(program.ops)), place_(from_.size()) {
    program_.ops.clear();
  }

  void run() {
    const auto last = std::ranges::find_if(from_.rbegin(), from_.rend(), multiplies_shared);
    const auto behind = static_cast<size_t>(from_.rend() - last);
    for (LinearId i = 0; i < from_.size(); ++i) {
      LinearOp op = from_[i];
      if (is_open_ && ends_products(from_, op)) close();
      if (op.op == Op::CommitMmas) is_open_ = false;
      if (op.op == Op::Barrier && i < behind) program_.add(Op::Fence, kVoid, {}, kOfMemory);
      if (multiplies_shared(op) && !std::exchange(is_open_, true))
        program_.add(Op::Fence, kVoid, {}, kOfSums);
      for (size_t s = 0; s < op.count; ++s) op.src[s] = place_[op.src[s]];
      place_[i] = static_cast<LinearId>(program_.ops.size());
      program_.ops.push_back(op);
    }
  }

 private:
  void close() {
    program_.add(Op::CommitMmas, kVoid);
    program_.add(Op::WaitMmas, kVoid, {}, 0);
    is_open_ = false;
  }

  LinearProgram& program_;
  const std::vector<LinearOp> from_;
  std::vector<LinearId> place_;
  bool is_open_ = false;
};

}  // namespace

bool ends_products(std::span<const LinearOp> ops, const LinearOp& op) {
  switch (op.op) {
    case Op::Barrier:
    case Op::GroupFold:
    case Op::Loop:
    case Op::EndLoop:
    case Op::If:
    case Op::EndIf:
    case Op::Store:
    case Op::CopyAsync:
      return true;
    case Op::Mma:
    case Op::Set:
      return false;
    default:
      return std::any_of(op.src.begin(), op.src.begin() + op.count, [&](LinearId s) {
        return ops[s].op == Op::Accumulator || multiplies_shared(ops[s]);
      });
  }
}

void order_products(LinearProgram& program) {
  if (std::ranges::any_of(program.ops, multiplies_shared)) Orderer(program).run();
}

}  // namespace tiny
