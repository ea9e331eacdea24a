// Our declarations of CUDA's driver against NVIDIA's own header, where the build has found that.
#include <gtest/gtest.h>

#include "runtime/cuda/functions.h"

#if __has_include(<cuda.h>)

// Declares every version of a function under its own name.
#define __CUDA_API_VERSION_INTERNAL  // NOLINT(bugprone-reserved-identifier): NVIDIA's
#include <cuda.h>

#include <cstddef>
#include <type_traits>

namespace tiny::cuda {
namespace {

// What an argument is to the ABI: an enumeration is an int, and a pointer to what we name otherwise
// is a pointer.
template <class T>
struct Passed {
  using Type = T;
};
template <class T>
  requires std::is_enum_v<T>
struct Passed<T> {
  using Type = int;
};
template <class T>
struct Passed<T*> {
  using Type = std::conditional_t<std::is_enum_v<T>, int, T>*;
};
template <>
struct Passed<const CUDA_KERNEL_NODE_PARAMS_v1*> {
  using Type = const KernelNode*;
};
template <class F>
struct AsPassed;
template <class R, class... Args>
struct AsPassed<R (*)(Args...)> {
  using Type = typename Passed<R>::Type (*)(typename Passed<Args>::Type...);
};

#define CUDA_FUNCTION(symbol, ...)                                                            \
  static_assert(std::is_same_v<AsPassed<decltype(&::symbol)>::Type, Result (*)(__VA_ARGS__)>, \
                #symbol " is declared otherwise in cuda.h");
#include "runtime/cuda/functions.def"

static_assert(sizeof(KernelNode) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1));
static_assert(offsetof(KernelNode, shared_bytes) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS_v1, sharedMemBytes));
static_assert(offsetof(KernelNode, parameters) ==
              offsetof(CUDA_KERNEL_NODE_PARAMS_v1, kernelParams));

TEST(CudaDeclarations, NumbersAreTheHeaders) {
  EXPECT_EQ(int{kOutOfMemory}, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(int{kDeviceUnavailable}, CUDA_ERROR_DEVICE_UNAVAILABLE);
  EXPECT_EQ(int{kEccUncorrectable}, CUDA_ERROR_ECC_UNCORRECTABLE);
  EXPECT_EQ(int{kNvlinkUncorrectable}, CUDA_ERROR_NVLINK_UNCORRECTABLE);
  EXPECT_EQ(int{kIllegalAddress}, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(int{kLaunchTimeout}, CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_EQ(int{kContextIsDestroyed}, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(int{kHardwareStackError}, CUDA_ERROR_HARDWARE_STACK_ERROR);
  EXPECT_EQ(int{kIllegalInstruction}, CUDA_ERROR_ILLEGAL_INSTRUCTION);
  EXPECT_EQ(int{kMisalignedAddress}, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(int{kInvalidAddressSpace}, CUDA_ERROR_INVALID_ADDRESS_SPACE);
  EXPECT_EQ(int{kInvalidPc}, CUDA_ERROR_INVALID_PC);
  EXPECT_EQ(int{kLaunchFailed}, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(int{kMaxThreadsPerBlock}, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  EXPECT_EQ(int{kMultiprocessorCount}, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(int{kL2CacheSize}, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  EXPECT_EQ(int{kMaxThreadsPerMultiprocessor}, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  EXPECT_EQ(int{kMaxBlocksPerMultiprocessor}, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  EXPECT_EQ(int{kMaxRegistersPerMultiprocessor},
            CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  EXPECT_EQ(int{kMaxSharedMemoryPerMultiprocessor},
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  EXPECT_EQ(int{kMemoryClockRate}, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  EXPECT_EQ(int{kGlobalMemoryBusWidth}, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  EXPECT_EQ(int{kComputeCapabilityMajor}, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(int{kComputeCapabilityMinor}, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(int{kMaxSharedMemoryPerBlockOptin},
            CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  EXPECT_EQ(kMaxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  EXPECT_EQ(kStreamNonBlocking, unsigned{CU_STREAM_NON_BLOCKING});
  EXPECT_EQ(kErrorLogBuffer, CU_JIT_ERROR_LOG_BUFFER);
  EXPECT_EQ(kErrorLogBufferSizeBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  EXPECT_EQ(kLinkInputPtx, CU_JIT_INPUT_PTX);
}

}  // namespace
}  // namespace tiny::cuda

#else

TEST(CudaDeclarations, NumbersAreTheHeaders) {
  GTEST_SKIP() << "the build has found no cuda.h";
}

#endif
