// Runs machine code and the evaluator on copies of the same buffers and compares every byte.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <random>

#include "engine/backend.h"
#include "render/x86/x86.h"
#include "runtime/cpu/cpuid.h"
#include "tests/render/naive_linear.h"

namespace tiny::test {

// Machine code, executable while this lives.
class LoadedCode {
 public:
  explicit LoadedCode(const Code& code) : size_(code.bytes.size()) {
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memcpy(memory_, code.bytes.data(), size_);
    mprotect(memory_, size_, PROT_READ | PROT_EXEC);
  }
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;
  ~LoadedCode() { munmap(memory_, size_); }
  KernelFunction function() const { return reinterpret_cast<KernelFunction>(memory_); }

 private:
  void* memory_ = nullptr;
  size_t size_ = 0;
};

inline bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512cd");
}

inline std::vector<Target> targets_here() {
  std::vector<Target> targets;
  if (__builtin_cpu_supports("avx2")) targets.push_back(avx2_target());
  if (has_avx512()) targets.push_back(avx512_target());
  const CpuFacts facts = cpu_facts();
  for (Target& target : targets) {
    const CpuIsa isa = target.isa == Isa::Avx512 ? CpuIsa::Avx512 : CpuIsa::Avx2;
    target.dots = dots_of(facts, isa);
    target.tiles = tiles_of(facts, isa);
  }
  return targets;
}

using Bytes = std::vector<std::byte>;

struct KernelCall {
  std::vector<Bytes> buffers;  // one a parameter
  std::vector<int64_t> variables;
  int64_t begin = 0, end = 1, worker = 0;
};

struct Outcome {
  std::vector<Bytes> buffers;
  int64_t status = 0;
};

// Buffers end where a page begins that may not be touched.
class GuardedBuffers {
 public:
  explicit GuardedBuffers(const std::vector<Bytes>& contents) {
    for (const Bytes& b : contents) {
      const size_t pages = (b.size() + 4095) / 4096 + 1;
      auto* base = static_cast<std::byte*>(mmap(nullptr, (pages + 1) * 4096, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      mprotect(base + pages * 4096, 4096, PROT_NONE);
      std::byte* data = base + pages * 4096 - b.size();
      if (!b.empty()) std::memcpy(data, b.data(), b.size());
      maps_.push_back({base, (pages + 1) * 4096});
      pointers_.push_back(data);
      sizes_.push_back(b.size());
    }
  }
  GuardedBuffers(const GuardedBuffers&) = delete;
  GuardedBuffers& operator=(const GuardedBuffers&) = delete;
  ~GuardedBuffers() {
    for (auto [base, size] : maps_) munmap(base, size);
  }
  void* const* pointers() const { return pointers_.data(); }
  std::vector<Bytes> contents() const {
    std::vector<Bytes> out;
    for (size_t i = 0; i < pointers_.size(); ++i) {
      const auto* p = static_cast<const std::byte*>(pointers_[i]);
      out.emplace_back(p, p + sizes_[i]);
    }
    return out;
  }

 private:
  std::vector<std::pair<void*, size_t>> maps_;
  std::vector<void*> pointers_;
  std::vector<size_t> sizes_;
};

template <class Call>
Outcome run_kernel(const LinearProgram& program, const KernelCall& launch, const Call& call) {
  GuardedBuffers buffers(launch.buffers);
  Bytes scratch(static_cast<size_t>(program.scratch_bytes) + 64);
  auto* aligned =
      reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
  Outcome out;
  const KernelArgs args{buffers.pointers(), launch.variables.data(), aligned,    launch.begin,
                        launch.end,         launch.worker,           &out.status};
  call(args);
  out.buffers = buffers.contents();
  return out;
}

inline Outcome evaluate(const LinearProgram& program, const KernelCall& launch) {
  return run_kernel(program, launch, [&](const KernelArgs& a) { naive::run(program, a); });
}

inline Outcome execute(const LinearProgram& program, const KernelCall& launch,
                       const Target& target) {
  const LoadedCode code(render_x86(program, target));
  return run_kernel(program, launch, [&](const KernelArgs& a) { code.function()(&a); });
}

// Bit for bit, but any NaN of an output of floats equals any other: which operand's NaN an
// operation hands on is not part of the contract.
inline std::string difference(const LinearProgram& program, const Outcome& want, const Outcome& got,
                              bool exact_nan = false) {
  if (want.status != got.status) return cat("status ", got.status, " instead of ", want.status);
  for (size_t b = 0; b < want.buffers.size(); ++b) {
    const DType d = program.params[b].element;
    const auto size = static_cast<size_t>(d.bytes());
    for (size_t i = 0; i + size <= want.buffers[b].size(); i += size) {
      uint64_t w = 0, g = 0;
      std::memcpy(&w, &want.buffers[b][i], size);
      std::memcpy(&g, &got.buffers[b][i], size);
      if (w == g) continue;
      if (d.is_float() && !exact_nan && std::isnan(double_of(d, w)) && std::isnan(double_of(d, g)))
        continue;
      return cat("buffer ", b, " element ", i / size, " has the bits ", g, " instead of ", w);
    }
  }
  return "";
}

// Runs `program` everywhere it can run and expects the evaluator's results.
inline void expect_same(const LinearProgram& program, const KernelCall& launch,
                        bool exact_nan = false) {
  verify(program);
  const Outcome want = evaluate(program, launch);
  for (const Target& target : targets_here()) {
    SCOPED_TRACE(target.name);
    const std::string wrong =
        difference(program, want, execute(program, launch, target), exact_nan);
    EXPECT_EQ(wrong, "") << to_string(program) << x86_listing(program, target);
    if (!wrong.empty()) return;
  }
}

// Values that tell apart what is easily confused, then random ones; bools are 0 or 1.
inline Bytes sample(DType element, size_t count, std::mt19937_64& random) {
  std::vector<uint64_t> special;
  if (element.is_float()) {
    for (double v : {0.0,
                     -0.0,
                     1.0,
                     -1.0,
                     0.5,
                     -0.5,
                     1.5,
                     2.5,
                     -2.5,
                     3.0,
                     127.5,
                     255.5,
                     256.0,
                     -129.0,
                     32767.5,
                     65519.0,
                     65520.0,
                     65536.0,
                     2147483520.0,
                     2147483647.0,
                     2147483648.0,
                     -2147483648.0,
                     -2147483904.0,
                     4294967040.0,
                     4294967295.0,
                     4294967296.0,
                     9.2233715e18,
                     9223372036854775808.0,
                     -9223372036854775808.0,
                     1.8446742e19,
                     18446744073709551616.0,
                     1e30,
                     -1e30,
                     1e-40,
                     -1e-40,
                     6e-8,
                     1e-5,
                     1.00390625,
                     1.01171875,
                     0x1p-1074,
                     1e300})
      special.push_back(bits_of(element, v));
    special.push_back(lowest_bits(element));
    special.push_back(highest_bits(element));
    special.push_back(bits_of(element, std::nan("")));
    special.push_back(bits_of(element, std::nan("")) | (uint64_t{1} << (element.bits() - 1)));
  } else if (element.is_int()) {
    for (int64_t v : {0,  1,  -1, 2,  3,   -3,  7,   8,    15,   16,    31,    32,
                      33, 63, 64, 65, 127, 128, 255, -128, -129, 32767, 32768, 65535})
      special.push_back(bits_of_int(element, v));
    special.push_back(lowest_bits(element));
    special.push_back(highest_bits(element));
    special.push_back(bits_of_int(element, int_of(element, lowest_bits(element)) + 1));
  }
  Bytes out(count * static_cast<size_t>(element.bytes()));
  for (size_t i = 0; i < count; ++i) {
    uint64_t v = random();
    const uint64_t kind = random() % 4;
    if (element.is_bool())
      v &= 1;
    else if (kind != 0)
      v = special[random() % special.size()];
    else if (element.is_float() && random() % 2)
      v = bits_of(element, static_cast<double>(static_cast<int64_t>(v)) * 1e-17);
    std::memcpy(&out[i * static_cast<size_t>(element.bytes())], &v,
                static_cast<size_t>(element.bytes()));
  }
  return out;
}

inline Bytes zeros(DType element, size_t count) {
  return Bytes(count * static_cast<size_t>(element.bytes()), std::byte{0});
}

}  // namespace tiny::test
