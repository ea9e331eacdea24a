// Products of matrices as kernels, lists of options by which warps form them, and their programs on
// the interpreter and on the emulated machine.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/half.h"
#include "base/matrix.h"
#include "codegen/pipeline.h"
#include "cost/machine.h"
#include "ir/build.h"
#include "render/bytecode.h"
#include "runtime/host.h"
#include "runtime/interp/interp.h"
#include "tests/emulation/launched.h"

namespace tiny::emulation {

// batch x (m x k times k x n); `turned` operands lie the other way round.
struct Product {
  int64_t m = 0, k = 0, n = 0;
  DType dtype = kFloat16;
  bool turned_a = false, turned_b = false;
  int64_t batch = 0;      // 0: no such axis
  bool has_bias = false;  // added to the columns, and what is negative becomes 0
  DType result = kFloat32;

  int64_t batches() const { return std::max<int64_t>(batch, 1); }
};

// Small whole numbers, without a pattern: products and sums are exact in any order, and in 10 bits.
inline float number_at(int64_t i, uint32_t of) {
  uint32_t bits = (static_cast<uint32_t>(i) + 1) * 0x9E3779B1u * of;
  bits ^= bits >> 15;
  return static_cast<float>(static_cast<int32_t>(bits % 17) - 8);
}
inline float a_at(const Product& p, int64_t b, int64_t m, int64_t k) {
  return number_at((b * p.m + m) * p.k + k, 7);
}
inline float b_at(const Product& p, int64_t b, int64_t k, int64_t n) {
  return number_at((b * p.k + k) * p.n + n, 5);
}

inline tiny::Machine matrix_machine() {
  tiny::Machine machine(generic_target(16));
  machine.name = "warps";
  machine.group.threads = 1024;
  machine.group.shared_bytes = 227 << 10;  // an H100's
  machine.group.argument_alignment = 256;
  machine.group.matrices = matrices_of(90, true);
  return machine;
}

// r0 m, r1 n, r2 k, r3 the batch, outermost; p0 a, p1 b, [p2 the bias,] the last the result.
inline Kernel kernel_of(Graph& g, const Product& p) {
  Kernel kernel;
  kernel.name = "product";
  const auto range = [&](int64_t size, int64_t number) {
    return g.make(Op::Range, {g.integer(size)}, number);
  };
  const UOp m = range(p.m, 0), n = range(p.n, 1), k = range(p.k, 2);
  const UOp batch = p.batch > 0 ? range(p.batch, 3) : g.integer(0);
  if (p.batch > 0) kernel.ranges.push_back({batch});
  kernel.ranges.push_back({m});
  kernel.ranges.push_back({n});
  kernel.ranges.push_back({k, RangeKind::Loop, true});
  const auto param = [&](DType dtype, bool is_written) {
    kernel.params.push_back({dtype, !is_written, is_written});
    return g.make(Op::Param, {}, std::ssize(kernel.params) - 1, dtype);
  };
  // Rows by columns, in memory so or turned.
  const auto view = [&](int64_t rows, int64_t columns, bool is_turned) {
    return ViewArg{{p.batches(), rows, columns},
                   {rows * columns, is_turned ? 1 : columns, is_turned ? rows : 1},
                   0};
  };
  const UOp pa = param(p.dtype, false), pb = param(p.dtype, false);
  UOp a = g.make(Op::Load, {pa, batch, m, k}, view(p.m, p.k, p.turned_a), p.dtype);
  UOp b = g.make(Op::Load, {pb, batch, k, n}, view(p.k, p.n, p.turned_b), p.dtype);
  if (p.dtype != kFloat32) a = cast(a, kFloat32), b = cast(b, kFloat32);
  UOp value = g.make(Op::Reduce, {mul(a, b), k}, ReduceArg{Op::Add, {}});
  if (p.has_bias) {
    const UOp bias =
        g.make(Op::Load, {param(kFloat32, false), n}, ViewArg{{p.n}, {1}, 0}, kFloat32);
    value = maximum(add(value, bias), g.constant(kFloat32, 0));
  }
  if (p.result != kFloat32) value = cast(value, p.result);
  const UOp out = param(p.result, true);
  kernel.roots.push_back(g.make(Op::Store, {out, value, batch, m, n}, view(p.m, p.n, false)));
  return kernel;
}

inline std::vector<std::byte> bytes_of(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(dtype.bytes()));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t bits = dtype == kFloat16    ? half_from_float(values[i])
                          : dtype == kBFloat16 ? bfloat_from_float(values[i])
                                               : std::bit_cast<uint32_t>(values[i]);
    std::memcpy(&bytes[i * static_cast<size_t>(dtype.bytes())], &bits,
                static_cast<size_t>(dtype.bytes()));
  }
  return bytes;
}

// The buffers of a launch; nothing lies behind them.
struct Buffers {
  std::vector<std::vector<std::byte>> of;
  std::vector<std::byte> wanted;  // what the last shall be

  explicit Buffers(const Product& p) {
    std::vector<float> a, b, bias, out;
    for (int64_t batch = 0; batch < p.batches(); ++batch) {
      for (int64_t i = 0; i < p.m * p.k; ++i)
        a.push_back(p.turned_a ? a_at(p, batch, i % p.m, i / p.m)
                               : a_at(p, batch, i / p.k, i % p.k));
      for (int64_t i = 0; i < p.k * p.n; ++i)
        b.push_back(p.turned_b ? b_at(p, batch, i % p.k, i / p.k)
                               : b_at(p, batch, i / p.n, i % p.n));
      for (int64_t i = 0; i < p.m; ++i)
        for (int64_t j = 0; j < p.n; ++j) {
          float sum = 0;
          for (int64_t k = 0; k < p.k; ++k) sum += a_at(p, batch, i, k) * b_at(p, batch, k, j);
          out.push_back(p.has_bias ? std::max(sum + number_at(j, 3), 0.0F) : sum);
        }
    }
    for (int64_t j = 0; j < p.n; ++j) bias.push_back(number_at(j, 3));
    of = {bytes_of(p.dtype, a), bytes_of(p.dtype, b)};
    if (p.has_bias) of.push_back(bytes_of(kFloat32, bias));
    wanted = bytes_of(p.result, out);
    of.emplace_back(wanted.size(), std::byte{0xEE});
  }
  bool are_right() const { return of.back() == wanted; }
};

struct Generated {
  LinearProgram program;
  int64_t groups = 1;
};

inline Generated generated(const Product& p, const std::string& options) {
  Graph graph;
  PipelineOptions pipeline;
  pipeline.verify = true;
  pipeline.options_text = options;
  const CodegenResult made = generate(kernel_of(graph, p), matrix_machine(), pipeline);
  // What is not dealt out is one group's.
  const bool is_const = made.threads_extent.is_const();
  return {made.program, is_const ? std::max<int64_t>(made.threads_extent.value(), 1) : 1};
}

// Whether the interpreter computes the product.
inline bool interprets(const Generated& g, const Product& p) {
  Buffers buffers(p);
  std::vector<void*> pointers;
  for (auto& b : buffers.of) pointers.push_back(b.data());
  const Code code = render_bytecode(g.program);
  const AlignedMemory scratch(code.scratch_bytes);
  int64_t status = 0;
  run_bytecode(*load_bytecode(code),
               {pointers.data(), nullptr, scratch.data, 0, g.groups, 0, &status});
  return buffers.are_right();
}

// What is wrong with the product that the emulated machine computes: the words of a fault, or that
// it has other values; empty: nothing.
inline std::string emulation_fails(const Generated& g, const Product& p, uint64_t seed,
                                   const std::string& target = "sm_80",
                                   const Launched::Edit& edit = {}) {
  Buffers buffers(p);
  try {
    Launched launched(g.program, target, edit);
    for (auto& b : buffers.of) launched.add_buffer(b.data(), std::ssize(b));
    launched.run(0, g.groups, 1, static_cast<uint32_t>(g.groups), seed);
  } catch (const Fault& fault) {
    return fault.what();
  }
  return buffers.are_right() ? "" : "other values";
}

// A list of options as it grows: ranges that options make are numbered one after the other.
class OptionWriter {
 public:
  explicit OptionWriter(const Product& p) : next_(p.batch > 0 ? 4 : 3) {}

  void add(const std::string& option) { text_ += cat(text_.empty() ? "" : "; ", option); }
  int64_t tile(int64_t range, int64_t size) {
    add(cat("TILE r", range, " ", size));
    return next_++;
  }
  int64_t number() { return next_++; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int64_t next_;
};

inline std::string row_of(DType dtype) {
  return dtype == kFloat16 ? "m16n8k16_f16" : dtype == kBFloat16 ? "m16n8k16_bf16" : "m16n8k8_tf32";
}
inline int64_t steps_of(DType dtype) {
  return dtype == kFloat32 ? 8 : 16;
}

// A warp a group, which forms one product at a time of what lies in memory.
inline std::string one_product(const Product& p) {
  OptionWriter w(p);
  const int64_t m = w.tile(0, 16), n = w.tile(1, 8), k = w.tile(2, steps_of(p.dtype));
  const std::string batch = p.batch > 0 ? "r3 " : "";
  w.add(cat("ORDER ", batch, "r0 r1 r2 r", m, " r", n, " r", k));
  w.add(cat("TC r", m, " r", n, " r", k, " ", row_of(p.dtype)));
  if (p.batch > 0) w.add("THREAD r3");
  w.add("THREAD r0; THREAD r1");
  return w.text();
}

struct Staging {
  bool turned_a = false;  // the rows of A lie side by side, not the steps
  bool turned_b = false;  // the steps of B lie side by side, not the columns
  int64_t swizzle = 0;
  int64_t rooms = 1;
  bool is_dealt = true;  // threads fill what they share with 16 bytes each
};

// Four warps of 16 rows each and 32 columns; of 32 steps at a time both operands are shared.
inline std::string staged(const Product& p, const Staging& s = {}) {
  constexpr int64_t kRows = 64, kColumns = 32, kSteps = 32;
  OptionWriter w(p);
  const int64_t m = w.tile(0, kRows), n = w.tile(1, kColumns), k = w.tile(2, kSteps);
  const std::string batch = p.batch > 0 ? "r3 " : "";
  w.add(cat("ORDER ", batch, "r0 r1 r2 r", m, " r", n, " r", k));
  const auto stage = [&](int64_t param, int64_t first, int64_t second) {
    w.add(cat("STAGE p", param, " r2 r", first, " r", second, " shared",
              s.swizzle > 0 ? cat(" swizzle ", s.swizzle) : ""));
  };
  s.turned_a ? stage(0, k, m) : stage(0, m, k);
  const int64_t rows_of_a = w.number(), steps_of_a = w.number();
  s.turned_b ? stage(1, n, k) : stage(1, k, n);
  const int64_t columns_of_b = w.number(), steps_of_b = w.number();
  const int64_t row = w.tile(m, 16), column = w.tile(n, 8), step = w.tile(k, steps_of(p.dtype));
  w.add(cat("TC r", row, " r", column, " r", step, " ", row_of(p.dtype)));
  for (int made = 0; made < (p.dtype == kFloat32 ? 4 : 5); ++made) w.number();
  w.add(cat("LOCAL r", m, " 2; UPCAST r", n, "; UNROLL r", k));
  if (p.batch > 0) w.add("THREAD r3");
  w.add("THREAD r0; THREAD r1");
  // 16 bytes of a line by each of four threads, lines by the others.
  const auto deal = [&](int64_t line, int64_t along) {
    const int64_t lanes = 16 / p.dtype.bytes();
    const int64_t of_threads =
        p.dtype == kFloat32 || along == rows_of_a ? w.tile(along, 4 * lanes) : along;
    const int64_t lane = w.tile(of_threads, lanes);
    w.add(cat("VEC r", lane, "; LOCAL r", of_threads, " 0"));
    const int64_t in_warp = w.tile(line, 8);
    w.add(cat("LOCAL r", in_warp, " 1"));
    if (line == rows_of_a) {
      const int64_t warp = w.tile(line, 4);
      w.add(cat("LOCAL r", warp, " 2"));
    } else {
      w.add(cat("LOCAL r", line, " 2"));
    }
  };
  if (s.is_dealt) {
    s.turned_a ? deal(steps_of_a, rows_of_a) : deal(rows_of_a, steps_of_a);
    s.turned_b ? deal(columns_of_b, steps_of_b) : deal(steps_of_b, columns_of_b);
  }
  if (s.rooms > 1) w.add(cat("PIPELINE r2 ", s.rooms));
  return w.text();
}

// Four warps of 16 rows each, which form one product of so many columns at a time of what they
// share: 64 steps.  Steps of B that do not lie side by side have 64 columns.
inline std::string wide(const Product& p, int64_t columns, const Staging& s = {}) {
  constexpr int64_t kRows = 64, kSteps = 64;
  OptionWriter w(p);
  const int64_t m = w.tile(0, kRows), n = w.tile(1, columns), k = w.tile(2, kSteps);
  const std::string batch = p.batch > 0 ? "r3 " : "";
  w.add(cat("ORDER ", batch, "r0 r1 r2 r", m, " r", n, " r", k));
  const auto stage = [&](int64_t param, int64_t line, int64_t along) {
    w.add(cat("STAGE p", param, " r2 r", line, " r", along, " shared swizzle 3"));
    const int64_t first = w.number();
    return std::pair(first, w.number());
  };
  const auto a = s.turned_a ? stage(0, k, m) : stage(0, m, k);
  const auto b = s.turned_b ? stage(1, n, k) : stage(1, k, n);
  const int64_t row = w.tile(m, 16), step = w.tile(k, 16);
  w.add(cat("TC r", row, " r", n, " r", step, " m64n", columns,
            p.dtype == kFloat16 ? "k16_f16" : "k16_bf16"));
  for (int made = 0; made < 7; ++made) w.number();
  w.add(cat("LOCAL r", m, " 2; UNROLL r", k));
  if (p.batch > 0) w.add("THREAD r3");
  w.add("THREAD r0; THREAD r1");
  for (const auto& [line, along] : {a, b}) {
    const int64_t of_threads = w.tile(along, 32), lane = w.tile(of_threads, 8);
    w.add(cat("VEC r", lane, "; LOCAL r", of_threads, " 0"));
    const int64_t in_warp = w.tile(line, 8);
    w.add(cat("LOCAL r", in_warp, " 1"));
    const int64_t warp = w.tile(line, 4);
    w.add(cat("LOCAL r", warp, " 2"));
  }
  if (s.rooms > 1) w.add(cat("PIPELINE r2 ", s.rooms));
  return w.text();
}

}  // namespace tiny::emulation
