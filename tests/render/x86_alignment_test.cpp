// Machine code is the same wherever the heap has room for it while it is made.
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "ir/target.h"
#include "render/x86/x86.h"

namespace tiny {
namespace {

// A loop that adds a constant to vectors, which stands behind the code.
LinearProgram sum_with_constant() {
  LinearProgram p;
  p.name = "sum";
  p.params = {{kFloat32, true, true}};
  const DType v = kFloat32.with_lanes(16);
  const LinearId base = p.add(Op::Param, kAddress, {}, 0);
  const LinearId zero = p.add(Op::Const, kInt64, {}, 0);
  const LinearId end = p.add(Op::Const, kInt64, {}, 64);
  const LinearId by = p.add(Op::Const, v, {}, static_cast<int64_t>(bits_of(kFloat32, 1.5)));
  const LinearId i = p.add(Op::Loop, kInt64, {zero, end}, 16);
  const LinearId x = p.add(Op::Load, v, {base, i}, 0, 1);
  p.add(Op::Store, kVoid, {base, i, p.add(Op::Add, v, {x, by})}, 0, 1);
  p.add(Op::EndLoop, kVoid, {i});
  verify(p);
  return p;
}

TEST(X86Alignment, CodeDoesNotDependOnTheHeap) {
  const LinearProgram p = sum_with_constant();
  const std::vector<std::byte> first = render_x86(p, avx512_target()).bytes;
  std::vector<std::unique_ptr<std::byte[]>> held;  // so that each begins elsewhere
  for (size_t i = 1; i <= 8; ++i) {
    held.push_back(std::make_unique<std::byte[]>(i * 16 + 8));
    EXPECT_EQ(render_x86(p, avx512_target()).bytes, first) << i;
  }
}

}  // namespace
}  // namespace tiny
