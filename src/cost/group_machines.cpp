#include "cost/group_machines.h"

namespace tiny {

namespace {

constexpr GroupMachine kGroupMachines[] = {
    // NVIDIA H100 Tensor Core GPU Architecture (white paper), SXM5: 132 multiprocessors of 128
    // lanes of float32 at 1.98 GHz (67 TFLOPS), 65,536 registers, 228 KB of shared memory of which
    // a group may have 227, 50 MB of second-level cache, 3.35 TB/s.  CUDA C++
    // Programming Guide, compute capability 9.0: 2048 threads and 32 groups of a multiprocessor, 32
    // banks.  A100 Tensor Core GPU Architecture: 5,120 bytes a cycle from the second level, of
    // which the H100's paper says no other.  Z. Jia et al., Dissecting the NVIDIA Volta GPU
    // Architecture via Microbenchmarking, and H. Abdelkhalik et al. for Ampere: some 500 cycles to
    // memory and 20 for a barrier.  A launch inside of a graph takes a microsecond or two (NVIDIA's
    // developer blog, Constant Time Launch for Straight-Line CUDA Graphs).  Products of matrices:
    // 989 TFLOPS of 16 bits, of which those that are made for Ampere reach 65% (fast.cu's ladder).
    {.name = "h100",
     .limits = {.threads = 1024,
                .shared_bytes = 227 << 10,
                .warp = 32,
                .access_bytes = 16,
                .banks = 32,
                .private_bytes = 1 << 10},
     .processors = 132,
     .compute = 90,
     .l2_bytes = 50 << 20,
     .rates = {.launch_seconds = 1.5e-6,
               .serial_launch_seconds = 1.5e-6,
               .l2_bandwidth = 8.7e12,
               .l3_bandwidth = 8.7e12,
               .memory_bandwidth = 3.35e12,
               .fma_rate = 33.5e12,
               .of_groups = {.threads = 2048,
                             .groups = 32,
                             .registers = 65536,
                             .shared_bytes = 228 << 10,
                             .clock = 1.98e9,
                             .issued = 128,
                             .shared_words = 32,
                             .matrix_rate = 0.65 * 494.5e12,
                             .wide_matrix_rate = 494.5e12,
                             .memory_seconds = 250e-9,
                             .barrier_seconds = 10e-9}}},
    // NVIDIA A100 Tensor Core GPU Architecture (white paper), SXM4 with 40 GB: 108 multiprocessors
    // of 64 lanes of float32 at 1.41 GHz (19.5 TFLOPS), 312 TFLOPS in products of matrices of 16
    // bits, 164 KB of shared memory (a group's 163), 40 MB of second-level cache of 5,120 bytes a
    // cycle, 1.555
    // TB/s.
    // The rest as above.
    {.name = "a100",
     .limits = {.threads = 1024,
                .shared_bytes = 163 << 10,
                .warp = 32,
                .access_bytes = 16,
                .banks = 32,
                .private_bytes = 1 << 10},
     .processors = 108,
     .compute = 80,
     .l2_bytes = 40 << 20,
     .rates = {.launch_seconds = 1.5e-6,
               .serial_launch_seconds = 1.5e-6,
               .l2_bandwidth = 7.2e12,
               .l3_bandwidth = 7.2e12,
               .memory_bandwidth = 1.555e12,
               .fma_rate = 9.75e12,
               .of_groups = {.threads = 2048,
                             .groups = 32,
                             .registers = 65536,
                             .shared_bytes = 164 << 10,
                             .clock = 1.41e9,
                             .issued = 64,
                             .shared_words = 32,
                             .matrix_rate = 156e12,
                             .memory_seconds = 350e-9,
                             .barrier_seconds = 14e-9}}},
    // OpenCL on processors (PoCL): a group runs on one core, its threads as the lanes of its
    // vectors between barriers, where all their values are put into memory; what a core is, is
    // Zen 5's of cost/processors.cpp with vectors of 256 bits, 8 of them.  "Shared" memory is its
    // cache.  A barrier: 0.3 to 4 GFLOPS with them, 20 to 64 without (measured with PoCL 3.1).
    {.name = "pocl",
     .limits = {.threads = 1024,
                .shared_bytes = 48 << 10,
                .warp = 8,
                .access_bytes = 16,
                .banks = 8,
                .private_bytes = 1 << 10},
     .processors = 8,
     .l2_bytes = 32 << 20,
     .rates = {.launch_seconds = 20e-6,
               .serial_launch_seconds = 20e-6,
               .l2_bandwidth = 8 * 116e9,
               .l3_bandwidth = 8 * 116e9,
               .memory_bandwidth = 42e9,
               .fma_rate = 8 * 66e9,
               .of_groups = {.threads = 1024,
                             .groups = 1,
                             .registers = 1 << 20,
                             .shared_bytes = 48 << 10,
                             .clock = 4e9,
                             .issued = 16,
                             .shared_words = 16,
                             .memory_seconds = 20e-9,
                             .barrier_seconds = 1e-6}}},
};

}  // namespace

std::span<const GroupMachine> known_group_machines() {
  return kGroupMachines;
}

const GroupMachine* find_group_machine(std::string_view name) {
  for (const GroupMachine& m : kGroupMachines)
    if (m.name == name) return &m;
  return nullptr;
}

void imitate(const GroupMachine& described, Machine& machine) {
  machine.group = described.limits;
  machine.cores = described.processors;
  machine.vector_bytes = described.limits.access_bytes;
  machine.l1_bytes = described.rates.of_groups.shared_bytes;
  machine.l2_bytes = machine.l3_bytes = described.l2_bytes;
  machine.dots = 0;
  machine.scales = false;
  static_cast<Rates&>(machine) = described.rates;
}

}  // namespace tiny
