// NVIDIA's library of collective operations, libnccl.so.2: opened when several devices first
// combine something, and done without where there is none.
#pragma once

#include <string>
#include <vector>

#include "runtime/collectives.h"
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/parts.h"

struct ncclComm;

namespace tiny::cuda {

// The functions of it that are called, as NCCL's documented ABI has them since version 2.0; the
// library's enumerations are ints.
struct NcclFunctions {
  int (*ncclCommInitAll)(ncclComm**, int count, const int* devices) = nullptr;
  int (*ncclCommDestroy)(ncclComm*) = nullptr;
  int (*ncclCommAbort)(ncclComm*) = nullptr;
  int (*ncclCommGetAsyncError)(ncclComm*, int* result) = nullptr;
  int (*ncclGroupStart)() = nullptr;
  int (*ncclGroupEnd)() = nullptr;
  int (*ncclAllReduce)(const void*, void*, size_t, int type, int op, ncclComm*,
                       CUstream_st*) = nullptr;
  int (*ncclAllGather)(const void*, void*, size_t, int type, ncclComm*, CUstream_st*) = nullptr;
  const char* (*ncclGetErrorString)(int result) = nullptr;
  const char* (*ncclGetLastError)(ncclComm*) = nullptr;  // since 2.13: may be null
};

// False where there is no such library; Error{Device} where it lacks a function.
bool find_nccl(NcclFunctions& functions);

class Nccl : public Collectives {
 public:
  // The devices' numbers are different ones.
  Nccl(const NcclFunctions& functions, std::vector<Ref<Gpu>> gpus);
  // Whether it failed: then it does nothing any more.
  bool is_broken() const { return is_broken_; }
  bool is_over(const std::vector<Ref<Gpu>>& gpus) const;

  void all_reduce(std::span<const Argument> from, std::span<const Argument> to, int64_t count,
                  CollectiveElement element, CollectiveSum how) override;
  void all_gather(std::span<const Argument> from, std::span<const Argument> to,
                  int64_t bytes) override;

 private:
  ~Nccl() override;
  template <class Call>
  void together(const char* name, std::span<const Argument> from, std::span<const Argument> to,
                const Call& call);
  void check(int result, const char* call);

  const NcclFunctions functions_;
  const std::vector<Ref<Gpu>> gpus_;
  std::vector<Ref<CudaQueue>> queues_;
  std::vector<ncclComm*> members_;  // none if they could not be made
  bool is_broken_ = false;
};

}  // namespace tiny::cuda
