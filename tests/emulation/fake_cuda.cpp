// The functions of libcuda.so.1: devices, contexts, memory, streams and events.  Kernels and graphs
// are fake_cuda_kernels.cpp's.
#include "tests/emulation/fake_cuda.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/emulation/fake_call.h"

using namespace tiny::emulation;  // NOLINT(google-build-using-namespace): all is of the emulator
using namespace tiny::cuda;       // NOLINT(google-build-using-namespace)

namespace {

struct NamedResult {
  Result result;
  const char* name;
  const char* text;
};
constexpr NamedResult kResults[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {kNoBinary, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution"},
    {kInvalidPtx, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {kUnsupportedPtxVersion, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kLaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {kIllegalInstruction, "CUDA_ERROR_ILLEGAL_INSTRUCTION",
     "an illegal instruction was encountered"},
    {kMisalignedAddress, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const NamedResult* find_result(Result result) {
  const auto* found = std::ranges::find(kResults, result, &NamedResult::result);
  return found == std::end(kResults) ? nullptr : found;
}

constexpr int64_t kDefaultVersion = 12080, kDefaultCompute = 90;
constexpr int64_t kDefaultMemory = int64_t{2} << 30;

int device_count() {
  return static_cast<int>(setting("FAKE_CUDA_DEVICES", 1));
}

bool is_device(int device) {
  return device >= 0 && device < std::min(device_count(), 8);
}

uint64_t memory_of_device() {
  return static_cast<uint64_t>(setting("FAKE_CUDA_MEMORY", kDefaultMemory));
}

// Of products, by compute capability, as their drivers say: T4, A100, A10, L4, H200, B200, and an
// RTX 5090.
struct Attributes {
  int compute, multiprocessors, shared_optin, shared, threads, groups, l2_bytes, kilohertz,
      memory_kilohertz, bus_bits;
};
constexpr Attributes kProducts[] = {
    {75, 40, 64 << 10, 64 << 10, 1024, 16, 4 << 20, 1590000, 5001000, 256},
    {80, 108, 163 << 10, 164 << 10, 2048, 32, 40 << 20, 1410000, 1215000, 5120},
    {86, 72, 99 << 10, 100 << 10, 1536, 16, 6 << 20, 1695000, 6251000, 384},
    {89, 58, 99 << 10, 100 << 10, 1536, 24, 48 << 20, 2040000, 6251000, 192},
    {90, 132, 227 << 10, 228 << 10, 2048, 32, 50 << 20, 1980000, 3201000, 6144},
    {100, 148, 227 << 10, 228 << 10, 2048, 32, 126 << 20, 1965000, 3996000, 8192},
    {120, 170, 99 << 10, 100 << 10, 1536, 24, 96 << 20, 2407000, 14001000, 512},
};

int compute_of_device() {
  return static_cast<int>(setting("FAKE_CUDA_COMPUTE", kDefaultCompute));
}
// The nearest that is not newer.
const Attributes& attributes() {
  const Attributes* found = &kProducts[0];
  for (const Attributes& product : kProducts)
    if (product.compute <= compute_of_device()) found = &product;
  return *found;
}

}  // namespace

int tiny::emulation::attribute_of(Attribute which) {
  const Attributes& of = attributes();
  switch (which) {
    case kMaxThreadsPerBlock:
      return 1024;
    case kMaxSharedMemoryPerBlock:
      return 48 << 10;
    case kMaxSharedMemoryPerBlockOptin:
      return of.shared_optin;
    case kMaxSharedMemoryPerMultiprocessor:
      return of.shared;
    case kMultiprocessorCount:
      return of.multiprocessors;
    case kL2CacheSize:
      return of.l2_bytes;
    case kMaxThreadsPerMultiprocessor:
      return of.threads;
    case kMaxBlocksPerMultiprocessor:
      return of.groups;
    case kMaxRegistersPerMultiprocessor:
      return 65536;
    case kClockRate:
      return of.kilohertz;
    case kMemoryClockRate:
      return of.memory_kilohertz;
    case kGlobalMemoryBusWidth:
      return of.bus_bits;
    case kComputeCapabilityMajor:
      return compute_of_device() / 10;
    case kComputeCapabilityMinor:
      return compute_of_device() % 10;
    default:
      return -1;
  }
}

namespace {

// A copy or a fill, late.
Result give(FakeCall& call, CUstream_st* stream, std::function<void(FakeDriver&)> work) {
  CUstream_st* on = call.driver.streams.find(stream);
  if (!on || on->context != call.context()) return kInvalidHandle;
  on->work.emplace_back([&driver = call.driver, work = std::move(work)] { work(driver); });
  return kSuccess;
}

// Checked when it is given, and once more when it is done: then it may be gone.
bool is_there(FakeCall& call, Address address, size_t bytes) {
  return call.driver.memory.find(address, bytes, call.context()->device) != nullptr;
}

void lose_by_copy(FakeDriver& driver, CUctx_st* context) {
  context->lost = kIllegalAddress;
  driver.fault = "a copy of memory that is gone";
}

}  // namespace

extern "C" {

Result cuInit(unsigned flags) {
  FakeCall call("cuInit", FakeCall::Needs::Nothing);
  if (call.result != kSuccess) return call.result;
  if (flags != 0) return kInvalidValue;
  if (device_count() <= 0) return kNoDevice;
  call.driver.is_initialised = true;
  return kSuccess;
}

Result cuDriverGetVersion(int* version) {
  FakeCall call("cuDriverGetVersion", FakeCall::Needs::Nothing);
  if (call.result != kSuccess) return call.result;
  *version = static_cast<int>(setting("FAKE_CUDA_VERSION", kDefaultVersion));
  return kSuccess;
}

Result cuGetErrorName(Result result, const char** name) {
  const NamedResult* found = find_result(result);
  *name = found ? found->name : nullptr;
  return found ? kSuccess : kInvalidValue;
}

Result cuGetErrorString(Result result, const char** text) {
  const NamedResult* found = find_result(result);
  *text = found ? found->text : nullptr;
  return found ? kSuccess : kInvalidValue;
}

Result cuDeviceGetCount(int* count) {
  FakeCall call("cuDeviceGetCount", FakeCall::Needs::Driver);
  if (call.result == kSuccess) *count = device_count();
  return call.result;
}

Result cuDeviceGet(int* device, int number) {
  FakeCall call("cuDeviceGet", FakeCall::Needs::Driver);
  if (call.result != kSuccess) return call.result;
  if (!is_device(number)) return kInvalidDevice;
  *device = number;
  return kSuccess;
}

Result cuDeviceGetName(char* name, int size, int device) {
  FakeCall call("cuDeviceGetName", FakeCall::Needs::Driver);
  if (call.result != kSuccess) return call.result;
  if (!is_device(device) || size <= 0) return kInvalidValue;
  std::snprintf(name, static_cast<size_t>(size), "Emulated GPU %d", device);
  return kSuccess;
}

Result cuDeviceTotalMem_v2(size_t* bytes, int device) {
  FakeCall call("cuDeviceTotalMem_v2", FakeCall::Needs::Driver);
  if (call.result != kSuccess) return call.result;
  if (!is_device(device)) return kInvalidDevice;
  *bytes = memory_of_device();
  return kSuccess;
}

Result cuDeviceGetAttribute(int* value, Attribute which, int device) {
  FakeCall call("cuDeviceGetAttribute", FakeCall::Needs::Driver);
  if (call.result != kSuccess) return call.result;
  if (!is_device(device)) return kInvalidDevice;
  *value = attribute_of(which);
  return *value < 0 ? kInvalidValue : kSuccess;
}

Result cuDevicePrimaryCtxRetain(CUctx_st** context, int device) {
  FakeCall call("cuDevicePrimaryCtxRetain", FakeCall::Needs::Driver);
  if (call.result != kSuccess) return call.result;
  if (!is_device(device)) return kInvalidDevice;
  *context = &call.driver.contexts[static_cast<size_t>(device)];
  (*context)->device = device;
  ++(*context)->retained;
  return kSuccess;
}

Result cuDevicePrimaryCtxRelease_v2(int device) {
  FakeCall call("cuDevicePrimaryCtxRelease_v2", FakeCall::Needs::Driver);
  if (call.result != kSuccess) return call.result;
  if (!is_device(device)) return kInvalidDevice;
  CUctx_st& context = call.driver.contexts[static_cast<size_t>(device)];
  if (context.retained == 0) return kInvalidContext;
  if (--context.retained == 0) context.peers.clear();
  return kSuccess;
}

Result cuCtxPushCurrent_v2(CUctx_st* context) {
  FakeCall call("cuCtxPushCurrent_v2", FakeCall::Needs::Driver);
  if (call.result != kSuccess) return call.result;
  if (!context || context->retained == 0) return kInvalidContext;
  pushed().push_back(context);
  return kSuccess;
}

Result cuCtxPopCurrent_v2(CUctx_st** context) {
  FakeCall call("cuCtxPopCurrent_v2", FakeCall::Needs::Driver);
  if (call.result != kSuccess) return call.result;
  if (pushed().empty()) return kInvalidContext;
  *context = pushed().back();
  pushed().pop_back();
  return kSuccess;
}

Result cuCtxGetCurrent(CUctx_st** context) {
  *context = pushed().empty() ? nullptr : pushed().back();
  return kSuccess;
}

Result cuDeviceCanAccessPeer(int* can, int device, int peer) {
  FakeCall call("cuDeviceCanAccessPeer", FakeCall::Needs::Driver);
  if (call.result != kSuccess) return call.result;
  if (!is_device(device) || !is_device(peer)) return kInvalidDevice;
  *can = device != peer && setting("FAKE_CUDA_PEERS", 1) != 0 ? 1 : 0;
  return kSuccess;
}

Result cuCtxEnablePeerAccess(CUctx_st* peer, unsigned flags) {
  FakeCall call("cuCtxEnablePeerAccess", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (flags != 0 || peer == call.context()) return kInvalidValue;
  if (!peer || peer->retained == 0) return kInvalidContext;
  return call.context()->peers.insert(peer).second ? kSuccess : kPeerAccessAlreadyEnabled;
}

// Without the access a driver would go over the host: nobody here asks for that.
Result cuMemcpyPeerAsync(Address to, CUctx_st* target, Address from, CUctx_st* source, size_t bytes,
                         CUstream_st* stream) {
  FakeCall call("cuMemcpyPeerAsync", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (target != call.context() || !target->peers.contains(source)) return kInvalidContext;
  if (source->lost != kSuccess) return source->lost;
  GlobalMemory& memory = call.driver.memory;
  if (!memory.find(to, bytes, target->device) || !memory.find(from, bytes, source->device))
    return kInvalidValue;
  return give(call, stream, [target, source, to, from, bytes](FakeDriver& driver) {
    std::byte* into = driver.memory.find(to, bytes, target->device);
    const std::byte* data = driver.memory.find(from, bytes, source->device);
    if (!into || !data) return lose_by_copy(driver, target);
    std::memcpy(into, data, bytes);
  });
}

Result cuMemAlloc_v2(Address* address, size_t bytes) {
  FakeCall call("cuMemAlloc_v2", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (bytes == 0) return kInvalidValue;
  *address = call.driver.memory.allocate(bytes, call.context()->device, memory_of_device());
  return *address == 0 ? kOutOfMemory : kSuccess;
}

Result cuMemFree_v2(Address address) {
  FakeCall call("cuMemFree_v2", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  return call.driver.memory.release(address) ? kSuccess : kInvalidValue;
}

Result cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  FakeCall call("cuMemHostAlloc", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  constexpr size_t kPage = 4096;
  *memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (!*memory) return kOutOfMemory;
  call.driver.host_memory.insert(*memory);
  return kSuccess;
}

Result cuMemFreeHost(void* memory) {
  FakeCall call("cuMemFreeHost", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (call.driver.host_memory.erase(memory) == 0) return kInvalidValue;
  std::free(memory);
  return kSuccess;
}

Result cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, CUstream_st* stream) {
  FakeCall call("cuMemcpyHtoDAsync_v2", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (!is_there(call, to, bytes)) return kInvalidValue;
  return give(call, stream, [context = call.context(), to, from, bytes](FakeDriver& driver) {
    std::byte* at = driver.memory.find(to, bytes, context->device);
    if (!at) return lose_by_copy(driver, context);
    std::memcpy(at, from, bytes);
  });
}

Result cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, CUstream_st* stream) {
  FakeCall call("cuMemcpyDtoHAsync_v2", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (!is_there(call, from, bytes)) return kInvalidValue;
  return give(call, stream, [context = call.context(), to, from, bytes](FakeDriver& driver) {
    const std::byte* at = driver.memory.find(from, bytes, context->device);
    if (!at) return lose_by_copy(driver, context);
    std::memcpy(to, at, bytes);
  });
}

Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, CUstream_st* stream) {
  FakeCall call("cuMemcpyDtoDAsync_v2", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (!is_there(call, to, bytes) || !is_there(call, from, bytes)) return kInvalidValue;
  return give(call, stream, [context = call.context(), to, from, bytes](FakeDriver& driver) {
    std::byte* target = driver.memory.find(to, bytes, context->device);
    const std::byte* source = driver.memory.find(from, bytes, context->device);
    if (!target || !source) return lose_by_copy(driver, context);
    std::memmove(target, source, bytes);
  });
}

Result cuMemsetD8Async(Address to, unsigned char value, size_t bytes, CUstream_st* stream) {
  FakeCall call("cuMemsetD8Async", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (!is_there(call, to, bytes)) return kInvalidValue;
  return give(call, stream, [context = call.context(), to, value, bytes](FakeDriver& driver) {
    std::byte* at = driver.memory.find(to, bytes, context->device);
    if (!at) return lose_by_copy(driver, context);
    std::memset(at, value, bytes);
  });
}

Result cuStreamCreate(CUstream_st** stream, unsigned flags) {
  FakeCall call("cuStreamCreate", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (flags > kStreamNonBlocking) return kInvalidValue;
  *stream = call.driver.streams.make();
  (*stream)->context = call.context();
  return kSuccess;
}

Result cuStreamDestroy_v2(CUstream_st* stream) {
  FakeCall call("cuStreamDestroy_v2", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (!call.driver.streams.find(stream)) return kInvalidHandle;
  call.driver.finish(*stream);
  call.driver.streams.erase(stream);
  return kSuccess;
}

Result cuStreamSynchronize(CUstream_st* stream) {
  FakeCall call("cuStreamSynchronize", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (!call.driver.streams.find(stream)) return kInvalidHandle;
  call.driver.finish(*stream);
  return stream->context->lost;
}

Result cuEventCreate(CUevent_st** event, unsigned) {
  FakeCall call("cuEventCreate", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  *event = call.driver.events.make();
  (*event)->context = call.context();
  return kSuccess;
}

Result cuEventDestroy_v2(CUevent_st* event) {
  FakeCall call("cuEventDestroy_v2", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  return call.driver.events.erase(event) ? kSuccess : kInvalidHandle;
}

Result cuEventRecord(CUevent_st* event, CUstream_st* stream) {
  FakeCall call("cuEventRecord", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (!call.driver.events.find(event)) return kInvalidHandle;
  event->stream = stream;
  event->at.reset();
  return give(call, stream, [event](FakeDriver& driver) {
    if (!driver.events.find(event)) return;
    event->at = std::chrono::steady_clock::now();
    event->stream = nullptr;
  });
}

Result cuEventQuery(CUevent_st* event) {
  FakeCall call("cuEventQuery", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (!call.driver.events.find(event)) return kInvalidHandle;
  return event->stream ? kNotReady : kSuccess;
}

Result cuEventSynchronize(CUevent_st* event) {
  FakeCall call("cuEventSynchronize", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (!call.driver.events.find(event)) return kInvalidHandle;
  // And nothing that was given later.
  while (event->stream && call.driver.streams.find(event->stream) && !event->stream->work.empty())
    call.driver.step(*event->stream);
  return event->context->lost;
}

Result cuEventElapsedTime(float* milliseconds, CUevent_st* from, CUevent_st* to) {
  FakeCall call("cuEventElapsedTime", FakeCall::Needs::Context);
  if (call.result != kSuccess) return call.result;
  if (!call.driver.events.find(from) || !call.driver.events.find(to)) return kInvalidHandle;
  if (!from->at || !to->at) return from->stream || to->stream ? kNotReady : kInvalidHandle;
  *milliseconds = std::chrono::duration<float, std::milli>(*to->at - *from->at).count();
  return kSuccess;
}
}
