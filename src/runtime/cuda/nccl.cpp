#include "runtime/cuda/nccl.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "runtime/in_flight.h"

namespace tiny::cuda {

namespace {

// The second is what packages for developers have.
constexpr const char* kLibraries[] = {"libnccl.so.2", "libnccl.so"};

// ncclResult_t, ncclDataType_t, ncclRedOp_t.
constexpr int kNcclSuccess = 0;
constexpr int kNcclInt8 = 0;
constexpr std::array kTypes = {kNcclInt8, 1, 2, 3, 4, 5, 7, 8};  // by CollectiveElement
constexpr std::array kOps = {0, 1};                              // by CollectiveSum

// Two that use the same devices must be given to them in one order, or each may wait for the other
// ("Using multiple NCCL communicators concurrently", NCCL's documentation).
constinit std::mutex one_at_a_time;

}  // namespace

bool find_nccl(NcclFunctions& functions) {
  void* library = nullptr;
  // Not closed again: it has threads of its own.
  for (const char* name : kLibraries)
    if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) return false;
  const auto find = [&](const char* symbol, auto& function) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    return function != nullptr;
  };
  const auto need = [&](const char* symbol, auto& function) {
    require(find(symbol, function), Status::Device, "NCCL's library has no ", symbol);
  };
  need("ncclCommInitAll", functions.ncclCommInitAll);
  need("ncclCommDestroy", functions.ncclCommDestroy);
  need("ncclCommAbort", functions.ncclCommAbort);
  need("ncclCommGetAsyncError", functions.ncclCommGetAsyncError);
  need("ncclGroupStart", functions.ncclGroupStart);
  need("ncclGroupEnd", functions.ncclGroupEnd);
  need("ncclAllReduce", functions.ncclAllReduce);
  need("ncclAllGather", functions.ncclAllGather);
  need("ncclGetErrorString", functions.ncclGetErrorString);
  find("ncclGetLastError", functions.ncclGetLastError);
  return true;
}

Nccl::Nccl(const NcclFunctions& functions, std::vector<Ref<Gpu>> gpus)
    : functions_(functions), gpus_(std::move(gpus)) {
  std::vector<int> numbers;
  for (const Ref<Gpu>& gpu : gpus_) {
    numbers.push_back(gpu->number());
    queues_.push_back(make_ref<CudaQueue>(gpu));
  }
  std::vector<ncclComm*> made(gpus_.size());
  const std::lock_guard guard(one_at_a_time);
  const Gpu::Scope scope(*gpus_[0]);  // what is current afterwards is NCCL's choice
  check(functions_.ncclCommInitAll(made.data(), static_cast<int>(made.size()), numbers.data()),
        "ncclCommInitAll");
  members_ = std::move(made);
}

Nccl::~Nccl() {
  for (const Ref<Gpu>& gpu : gpus_)
    if (gpu->is_lost()) return;
  gpus_[0]->clean_up([&](const Functions&) {
    for (ncclComm* one : members_)
      is_broken_ ? functions_.ncclCommAbort(one) : functions_.ncclCommDestroy(one);
  });
}

bool Nccl::is_over(const std::vector<Ref<Gpu>>& gpus) const {
  return std::ranges::equal(
      gpus_, gpus, {}, [](const Ref<Gpu>& gpu) { return gpu->number(); },
      [](const Ref<Gpu>& gpu) { return gpu->number(); });
}

void Nccl::all_reduce(std::span<const Argument> from, std::span<const Argument> to, int64_t count,
                      CollectiveElement element, CollectiveSum how) {
  together("ncclAllReduce", from, to,
           [&](const void* source, void* target, ncclComm* member, CUstream_st* stream) {
             return functions_.ncclAllReduce(source, target, static_cast<size_t>(count),
                                             kTypes[static_cast<size_t>(element)],
                                             kOps[static_cast<size_t>(how)], member, stream);
           });
}

void Nccl::all_gather(std::span<const Argument> from, std::span<const Argument> to, int64_t bytes) {
  together("ncclAllGather", from, to,
           [&](const void* source, void* target, ncclComm* member, CUstream_st* stream) {
             return functions_.ncclAllGather(source, target, static_cast<size_t>(bytes), kNcclInt8,
                                             member, stream);
           });
}

template <class Call>
void Nccl::together(const char* name, std::span<const Argument> from, std::span<const Argument> to,
                    const Call& call) {
  const auto address = [](const Argument& place) {
    place.buffer->device().in_flight().wait_for(*place.buffer);
    return static_cast<const CudaBuffer*>(place.buffer)->address() +
           static_cast<Address>(place.byte_offset);
  };
  std::vector<Address> sources, targets;
  for (size_t i = 0; i < gpus_.size(); ++i) {
    sources.push_back(address(from[i]));
    targets.push_back(address(to[i]));
  }
  const std::lock_guard guard(one_at_a_time);
  for (const Ref<Gpu>& gpu : gpus_) gpu->check_usable();
  check(functions_.ncclGroupStart(), "ncclGroupStart");
  int given = kNcclSuccess;
  for (size_t i = 0; i < gpus_.size() && given == kNcclSuccess; ++i) {
    const Gpu::Scope scope(*gpus_[i]);
    given = call(reinterpret_cast<const void*>(sources[i]), reinterpret_cast<void*>(targets[i]),
                 members_[i], queues_[i]->stream());
  }
  // Also of a group of which a part was refused: else the library counts it as open.
  int ended = kNcclSuccess;
  {
    const Gpu::Scope scope(*gpus_[0]);
    ended = functions_.ncclGroupEnd();
  }
  check(given, name);
  check(ended, "ncclGroupEnd");
  for (size_t i = 0; i < gpus_.size(); ++i) {
    queues_[i]->wait();
    int late = kNcclSuccess;
    check(functions_.ncclCommGetAsyncError(members_[i], &late), "ncclCommGetAsyncError");
    check(late, name);
  }
}

void Nccl::check(int result, const char* call) {
  if (result == kNcclSuccess) return;
  is_broken_ = true;
  const char* const words = functions_.ncclGetErrorString(result);
  ncclComm* const member = members_.empty() ? nullptr : members_[0];
  const char* const more =
      functions_.ncclGetLastError ? functions_.ncclGetLastError(member) : nullptr;
  throw_error(Status::Device, "NCCL: ", call, ": ", words ? words : cat("error ", result),
              more && *more ? cat(" (", more, ")") : "");
}

}  // namespace tiny::cuda
