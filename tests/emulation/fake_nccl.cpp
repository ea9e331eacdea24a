// NCCL that is not there: libnccl.so.2 over the emulated driver, with the functions that the
// runtime asks for.  What is asked of a group is done when the group ends, on the streams that were
// given, and what lies on the devices afterwards is there when those are waited for.  From the
// environment, looked at in every call:
//
//   FAKE_NCCL_FAIL   SYMBOL: each call of it fails; "late": what was asked is done, and fails then
//
//   fake_nccl_count  of "communicators" that nobody has given back, and of calls by their name
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/cuda/functions.h"

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

using namespace tiny::cuda;  // NOLINT(google-build-using-namespace): its declarations

constexpr int kUnhandledCudaError = 1, kInvalidUsage = 5;  // success is as the driver's
constexpr size_t kTypeBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

struct Asked {
  Address from, to;
  size_t bytes;
  CUstream_st* stream;
};

}  // namespace

struct ncclComm {
  std::shared_ptr<std::vector<ncclComm*>> all;
  int device;
};

namespace {

struct State {
  std::set<ncclComm*> live;
  std::map<std::string, int64_t> calls;
  bool is_open = false;  // a group
  std::map<ncclComm*, Asked> asked;
  std::function<void(std::byte* sum, const std::byte* one, size_t bytes)> combine;  // else gathered
  std::vector<std::unique_ptr<std::vector<std::byte>>> kept;  // until streams have read it
};
State& state() {
  static State one;
  return one;
}

template <class F>
F cuda(const char* symbol) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<F>(dlsym(library, symbol));
}

std::string planned() {
  const char* text = std::getenv("FAKE_NCCL_FAIL");
  return text ? text : "";
}

int called(const char* symbol) {
  ++state().calls[symbol];
  return planned() == symbol ? kUnhandledCudaError : kSuccess;
}

template <class T>
void combine_elements(int op, std::byte* sum, const std::byte* one, size_t bytes) {
  for (size_t at = 0; at < bytes; at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, sum + at, sizeof a);
    std::memcpy(&b, one + at, sizeof b);
    a = static_cast<T>(op == 0 ? a + b : a * b);
    std::memcpy(sum + at, &a, sizeof a);
  }
}

// Does what was asked, device after device.
int finish() {
  State& s = state();
  if (s.asked.empty()) return kSuccess;
  const std::vector<ncclComm*> members = *s.asked.begin()->first->all;
  if (s.asked.size() != members.size()) return kInvalidUsage;
  std::vector<std::byte> result;
  for (ncclComm* one : members) {
    const Asked& asked = s.asked.at(one);
    CUctx_st *context = nullptr, *popped = nullptr;
    cuda<Result (*)(CUctx_st**, int)>("cuDevicePrimaryCtxRetain")(&context, one->device);
    cuda<Result (*)(CUctx_st*)>("cuCtxPushCurrent_v2")(context);
    std::vector<std::byte> bytes(asked.bytes);
    cuda<Result (*)(void*, Address, size_t, CUstream_st*)>("cuMemcpyDtoHAsync_v2")(
        bytes.data(), asked.from, asked.bytes, asked.stream);
    cuda<Result (*)(CUstream_st*)>("cuStreamSynchronize")(asked.stream);
    cuda<Result (*)(CUctx_st**)>("cuCtxPopCurrent_v2")(&popped);
    cuda<Result (*)(int)>("cuDevicePrimaryCtxRelease_v2")(one->device);
    if (s.combine && !result.empty())
      s.combine(result.data(), bytes.data(), bytes.size());
    else
      result.insert(result.end(), bytes.begin(), bytes.end());
  }
  for (ncclComm* one : members) {
    const Asked& asked = s.asked.at(one);
    s.kept.push_back(std::make_unique<std::vector<std::byte>>(result));
    CUctx_st *context = nullptr, *popped = nullptr;
    cuda<Result (*)(CUctx_st**, int)>("cuDevicePrimaryCtxRetain")(&context, one->device);
    cuda<Result (*)(CUctx_st*)>("cuCtxPushCurrent_v2")(context);
    cuda<Result (*)(Address, const void*, size_t, CUstream_st*)>("cuMemcpyHtoDAsync_v2")(
        asked.to, s.kept.back()->data(), result.size(), asked.stream);
    cuda<Result (*)(CUctx_st**)>("cuCtxPopCurrent_v2")(&popped);
    cuda<Result (*)(int)>("cuDevicePrimaryCtxRelease_v2")(one->device);
  }
  return kSuccess;
}

int ask(const char* symbol, const void* from, void* to, size_t bytes, ncclComm* member,
        CUstream_st* stream) {
  if (const int failed = called(symbol); failed != kSuccess) return failed;
  if (!state().is_open || state().live.count(member) == 0 || state().asked.count(member) != 0)
    return kInvalidUsage;
  state().asked[member] = {reinterpret_cast<Address>(from), reinterpret_cast<Address>(to), bytes,
                           stream};
  return kSuccess;
}

}  // namespace

FAKE int64_t fake_nccl_count(const char* what) {
  return std::strcmp(what, "communicators") == 0 ? static_cast<int64_t>(state().live.size())
                                                 : state().calls[what];
}

FAKE int ncclCommInitAll(ncclComm** out, int count, const int* devices) {
  if (const int failed = called(__func__); failed != kSuccess) return failed;
  if (std::set<int>(devices, devices + count).size() != static_cast<size_t>(count))
    return kInvalidUsage;
  const auto all = std::make_shared<std::vector<ncclComm*>>();
  for (int i = 0; i < count; ++i) {
    out[i] = new ncclComm{all, devices[i]};
    all->push_back(out[i]);
    state().live.insert(out[i]);
  }
  return kSuccess;
}

FAKE int ncclCommDestroy(ncclComm* member) {
  if (const int failed = called(__func__); failed != kSuccess) return failed;
  if (state().live.erase(member) == 0) return kInvalidUsage;
  delete member;
  return kSuccess;
}

FAKE int ncclCommAbort(ncclComm* member) {
  if (const int failed = called(__func__); failed != kSuccess) return failed;
  if (state().live.erase(member) == 0) return kInvalidUsage;
  delete member;
  return kSuccess;
}

FAKE int ncclCommGetAsyncError(ncclComm* member, int* result) {
  if (state().live.count(member) == 0) return kInvalidUsage;
  *result = planned() == "late" ? kUnhandledCudaError : kSuccess;
  return called(__func__);
}

FAKE int ncclGroupStart() {
  if (const int failed = called(__func__); failed != kSuccess) return failed;
  if (state().is_open) return kInvalidUsage;
  state().is_open = true;
  state().asked.clear();
  return kSuccess;
}

FAKE int ncclGroupEnd() {
  if (!state().is_open) return kInvalidUsage;
  state().is_open = false;
  if (const int failed = called(__func__); failed != kSuccess) return failed;
  return finish();
}

FAKE int ncclAllReduce(const void* from, void* to, size_t count, int type, int op, ncclComm* member,
                       CUstream_st* stream) {
  const auto with = [op](auto zero) {
    return [op](std::byte* sum, const std::byte* one, size_t bytes) {
      combine_elements<decltype(zero)>(op, sum, one, bytes);
    };
  };
  State& s = state();
  switch (type) {
    case 0:
      s.combine = with(int8_t{});
      break;
    case 1:
      s.combine = with(uint8_t{});
      break;
    case 2:
      s.combine = with(int32_t{});
      break;
    case 3:
      s.combine = with(uint32_t{});
      break;
    case 4:
      s.combine = with(int64_t{});
      break;
    case 5:
      s.combine = with(uint64_t{});
      break;
    case 7:
      s.combine = with(float{});
      break;
    case 8:
      s.combine = with(double{});
      break;
    default:
      return kInvalidUsage;
  }
  return ask(__func__, from, to, count * kTypeBytes[type], member, stream);
}

FAKE int ncclAllGather(const void* from, void* to, size_t count, int type, ncclComm* member,
                       CUstream_st* stream) {
  state().combine = nullptr;
  return ask(__func__, from, to, count * kTypeBytes[type], member, stream);
}

FAKE const char* ncclGetErrorString(int result) {
  return result == kUnhandledCudaError ? "unhandled cuda error" : "invalid usage";
}

FAKE const char* ncclGetLastError(ncclComm*) {
  return "planted";
}
