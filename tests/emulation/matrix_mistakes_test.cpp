// Mistakes planted in a product of matrices whose copies run ahead: each is noticed, by the
// emulated machine in one of eight orders of its threads, and where it is one of order by the
// checker of hazards too.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/text.h"
#include "codegen/linear/group_hazards.h"
#include "tests/emulation/matrix_kernels.h"

namespace tiny::emulation {
namespace {

constexpr uint64_t kSeeds = 8;
constexpr int64_t kRooms = 3;

// A program that is edited: its loop of steps, whose part that fills ends with a Commit.
class Edited {
 public:
  explicit Edited(LinearProgram& program) : p_(program) {
    for (LinearId i = 0; i < p_.ops.size(); ++i) {
      if (p_.ops[i].op == Op::WaitCopies) in_loop_ = i;
      if (p_.ops[i].op == Op::Commit) compute_ = i + 1;
    }
  }
  std::vector<LinearOp>& ops() { return p_.ops; }
  LinearId compute() const { return compute_; }

  // Those of a kind from a place on.
  std::vector<LinearId> all(Op op, LinearId from = 0) const {
    std::vector<LinearId> found;
    for (LinearId i = from; i < p_.ops.size(); ++i)
      if (p_.ops[i].op == op) found.push_back(i);
    return found;
  }
  std::vector<LinearId> in_loop(Op op) const { return all(op, in_loop_); }
  LinearId first(Op op, LinearId from = 0) const { return all(op, from).at(0); }

  // Nothing stands there any more.
  void remove(LinearId at) {
    p_.ops.erase(p_.ops.begin() + at);
    shift(at, -1);
  }
  // Before an op; the new one's number.
  LinearId insert(LinearId at, const LinearOp& op) {
    shift(at, 1);
    p_.ops.insert(p_.ops.begin() + at, op);
    return at;
  }
  LinearId insert_number(LinearId at, int64_t value) {
    LinearOp op;
    op.op = Op::Const;
    op.dtype = kInt64;
    op.imm = value;
    return insert(at, op);
  }
  // A source of an op is another number.
  void set_number(LinearId at, size_t source, int64_t value) {
    const LinearId number = insert_number(at, value);
    p_.ops[at + 1].src[source] = number;
  }

 private:
  void shift(LinearId from, int by) {
    for (LinearOp& op : p_.ops)
      for (size_t s = 0; s < op.count; ++s)
        if (op.src[s] >= from) op.src[s] += static_cast<LinearId>(by);
    if (compute_ > from) compute_ += static_cast<LinearId>(by);
    if (in_loop_ > from) in_loop_ += static_cast<LinearId>(by);
  }

  LinearProgram& p_;
  LinearId in_loop_ = 0, compute_ = 0;
};

// The remainders by which rooms are counted: of what is filled, then of what is computed from.
std::vector<LinearId> rooms(const Edited& e, const LinearProgram& p) {
  std::vector<LinearId> found;
  for (const LinearId i : e.in_loop(Op::FloorMod))
    if (p.ops[p.ops[i].src[1]].op == Op::Const && p.ops[p.ops[i].src[1]].imm == kRooms)
      found.push_back(i);
  return found;
}

// Whether a matrix is loaded from where the op says.
bool is_read(const LinearProgram& p, LinearId of) {
  std::vector<bool> depends(p.ops.size());
  depends[of] = true;
  for (LinearId i = of + 1; i < p.ops.size(); ++i) {
    for (size_t s = 0; s < p.ops[i].count; ++s) depends[i] = depends[i] || depends[p.ops[i].src[s]];
    if (depends[i] && p.ops[i].op == Op::LoadMatrix) return true;
  }
  return false;
}

struct Mistake {
  const char* what;
  bool is_hazard;  // of order, whatever the values
  std::function<void(LinearProgram&)> plant;
};

const std::vector<Mistake>& mistakes() {
  static const std::vector<Mistake> kMistakes = {
      {"no wait for copies", true,
       [](LinearProgram& p) {
         Edited e(p);
         e.remove(e.first(Op::WaitCopies));
       }},
      {"a wait that leaves one group more", true,
       [](LinearProgram& p) {
         Edited e(p);
         ++e.ops()[e.first(Op::WaitCopies)].imm;
       }},
      {"no barrier", true,
       [](LinearProgram& p) {
         Edited e(p);
         e.remove(e.in_loop(Op::Barrier).at(0));
       }},
      {"the barrier before the wait", true,
       [](LinearProgram& p) {
         Edited e(p);
         const LinearId wait = e.first(Op::WaitCopies), barrier = e.in_loop(Op::Barrier).at(0);
         std::swap(e.ops()[wait], e.ops()[barrier]);
       }},
      {"copies of a step that are no group", true,
       [](LinearProgram& p) {
         Edited e(p);
         e.remove(e.in_loop(Op::Commit).at(0));
       }},
      {"copies before the loop that are no group", true,
       [](LinearProgram& p) {
         Edited e(p);
         e.remove(e.first(Op::Commit));
       }},
      {"a room too few: one is filled that is computed from", true,
       [](LinearProgram& p) {
         Edited e(p);
         for (size_t i = 0; i < rooms(e, p).size(); ++i) e.set_number(rooms(e, p).at(i), 1, kRooms);
         for (const LinearId i : e.in_loop(Op::FloorMod))
           if (p.ops[p.ops[i].src[1]].imm == kRooms) p.ops[p.ops[i].src[1]].imm = kRooms - 1;
       }},
      {"the room that is computed from is filled", true,
       [](LinearProgram& p) {
         Edited e(p);
         p.ops[rooms(e, p).at(0)].src[0] = p.ops[rooms(e, p).at(1)].src[0];
       }},
      {"computed from the next room", true,
       [](LinearProgram& p) {
         Edited e(p);
         const LinearId room = rooms(e, p).at(1);
         LinearOp next = p.ops[room];
         next.op = Op::Add;
         const LinearId one = e.insert_number(room, 1);
         next.src[0] = p.ops[room + 1].src[0];
         next.src[1] = one;
         const LinearId sum = e.insert(room + 1, next);
         p.ops[room + 2].src[0] = sum;
       }},
      {"a step before the loop is not filled", true,
       [](LinearProgram& p) {
         Edited e(p);
         LinearOp never;
         never.op = Op::Const;
         never.dtype = kBool;
         const LinearId branch = e.all(Op::If).at(1);
         const LinearId no = e.insert(branch, never);
         p.ops[branch + 1].src[0] = no;
       }},
      {"half of each copy", true,
       [](LinearProgram& p) {
         for (LinearOp& op : p.ops)
           if (op.op == Op::CopyAsync) op.aux = 8;
       }},
      {"copies further ahead than there are rooms", true,
       [](LinearProgram& p) {
         Edited e(p);
         // The step that is filled is the first sum in the loop.
         e.set_number(e.in_loop(Op::Add).at(0), 1, kRooms);
       }},
      {"what is swizzled is read as if it were not", false,
       [](LinearProgram& p) {
         Edited e(p);
         for (const LinearId i : e.all(Op::Xor))
           if (is_read(p, i)) p.ops[i].op = Op::Or, p.ops[i].src[1] = p.ops[i].src[0];
       }},
      {"a swizzle of fewer bits", false,
       [](LinearProgram& p) {
         Edited e(p);
         for (size_t n = 0; n < e.all(Op::Xor).size(); ++n) {
           const LinearId at = e.all(Op::Xor).at(n);
           if (!is_read(p, at)) continue;
           const LinearId two = e.insert_number(at, 2);
           LinearOp rest = p.ops[at + 1];
           rest.op = Op::FloorMod;
           rest.src = {p.ops[at + 1].src[1], two};
           const LinearId changed = e.insert(at + 1, rest);
           p.ops[at + 2].src[1] = changed;
         }
       }},
      {"A's matrices turned", false,
       [](LinearProgram& p) {
         for (LinearOp& op : p.ops)
           if (op.op == Op::LoadMatrix && op.dtype.lanes == 4) op.aux ^= 1;
       }},
      {"B's matrices turned", false,
       [](LinearProgram& p) {
         for (LinearOp& op : p.ops)
           if (op.op == Op::LoadMatrix && op.dtype.lanes == 2) op.aux ^= 1;
       }},
      {"the result's rows exchanged", false,
       [](LinearProgram& p) {
         for (LinearOp& op : p.ops)
           if (op.op == Op::Part) op.imm ^= 2;
       }},
      {"the operands of another type", false,
       [](LinearProgram& p) {
         for (LinearOp& op : p.ops)
           if (op.op == Op::Mma) op.aux ^= 1;
       }},
      {"an accumulator that is another's", false,
       [](LinearProgram& p) {
         const Edited e(p);
         const std::vector<LinearId> products = e.all(Op::Mma);
         std::swap(p.ops[products.at(0)].src[2], p.ops[products.at(1)].src[2]);
       }},
  };
  return kMistakes;
}

TEST(MatrixMistakes, EachIsNoticed) {
  const Product p{128, 256, 64, kFloat16, false, true};
  const Generated whole =
      generated(p, staged(p, {.turned_b = true, .swizzle = 2, .rooms = kRooms}));
  ASSERT_EQ(find_hazard(whole.program), "");
  ASSERT_EQ(emulation_fails(whole, p, 0), "");
  EXPECT_GE(mistakes().size(), 17u);
  for (const Mistake& mistake : mistakes()) {
    Generated planted = whole;
    mistake.plant(planted.program);
    bool is_noticed = false;
    for (uint64_t seed = 0; seed < kSeeds && !is_noticed; ++seed)
      is_noticed = !emulation_fails(planted, p, seed).empty();
    EXPECT_TRUE(is_noticed) << mistake.what;
    EXPECT_EQ(!find_hazard(planted.program).empty(), mistake.is_hazard) << mistake.what;
  }
}

// Words that are joined in another order are other elements of the fragment.
TEST(MatrixMistakes, FragmentsOfOtherElementsAreNoticed) {
  for (const DType dtype : {kFloat16, kBFloat16, kFloat32}) {
    const Product p{64, 64, 64, dtype};
    const Generated whole = generated(p, one_product(p));
    size_t joins = 0;
    for (LinearId i = 0; i < whole.program.ops.size(); ++i) {
      if (whole.program.ops[i].op != Op::Join) continue;
      ++joins;
      Generated planted = whole;
      std::swap(planted.program.ops[i].src[0], planted.program.ops[i].src[1]);
      EXPECT_FALSE(interprets(planted, p)) << i;
      EXPECT_NE(emulation_fails(planted, p, 0), "") << i;
    }
    EXPECT_EQ(joins, 4u);
  }
}

}  // namespace
}  // namespace tiny::emulation
