// CUDA's driver as this library sees it: its own declarations of the few types and functions that
// it needs, as the driver's documented ABI has them.  Where a build finds NVIDIA's header,
// tests/runtime/cuda_declarations_test.cpp holds them against it.
#pragma once

#include <cstddef>
#include <cstdint>

// The driver's objects, by its own names.
struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUmod_st;
struct CUfunc_st;
struct CUlinkState_st;
struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;

namespace tiny::cuda {

// The enumerations that the driver takes are ints to its ABI.
using Result = int;
using Attribute = int;
using FunctionAttribute = int;
using LinkOption = int;
using LinkInput = int;
using Address = unsigned long long;

enum : Result {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinary = 209,
  kEccUncorrectable = 214,
  kInvalidPtx = 218,
  kNvlinkUncorrectable = 220,
  kUnsupportedPtxVersion = 222,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kOutOfResources = 701,
  kLaunchTimeout = 702,
  kPeerAccessAlreadyEnabled = 704,
  kContextIsDestroyed = 709,
  kAssert = 710,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
  kNotSupported = 801,
};

enum : Attribute {
  kMaxThreadsPerBlock = 1,
  kMaxSharedMemoryPerBlock = 8,
  kClockRate = 13,  // kHz
  kMultiprocessorCount = 16,
  kMemoryClockRate = 36,       // kHz
  kGlobalMemoryBusWidth = 37,  // bits
  kL2CacheSize = 38,           // bytes
  kMaxThreadsPerMultiprocessor = 39,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerMultiprocessor = 81,
  kMaxRegistersPerMultiprocessor = 82,
  kMaxSharedMemoryPerBlockOptin = 97,
  kMaxBlocksPerMultiprocessor = 106,
};

inline constexpr FunctionAttribute kMaxDynamicSharedSizeBytes = 8;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr LinkOption kErrorLogBuffer = 5;
inline constexpr LinkOption kErrorLogBufferSizeBytes = 6;
inline constexpr LinkInput kLinkInputPtx = 1;

// CUDA_KERNEL_NODE_PARAMS of the functions without _v2.
struct KernelNode {
  CUfunc_st* function;
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  void** parameters;
  void** extra;
};

struct Functions {
#define CUDA_FUNCTION(symbol, ...) Result (*symbol)(__VA_ARGS__) = nullptr;
#include "runtime/cuda/functions.def"
};

// Of CUDA 11.4, the first whose driver has all of them: 1000 * major + 10 * minor.
inline constexpr int kDriverVersionMin = 11040;

}  // namespace tiny::cuda
