// The state of the emulated driver (fake_cuda.h): devices, contexts and their objects, and streams,
// whose work is done when somebody waits.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cuda/functions.h"
#include "tests/emulation/memory_model.h"
#include "tests/emulation/ptx_machine.h"
#include "tests/emulation/ptx_program.h"

struct CUctx_st {
  int device = 0;
  int retained = 0;
  tiny::cuda::Result lost = 0;  // what every call gives once a kernel has failed
  std::set<CUctx_st*> peers;    // whose memory is reached
};
struct CUstream_st {
  CUctx_st* context = nullptr;
  std::deque<std::function<void()>> work;
};
struct CUevent_st {
  CUctx_st* context = nullptr;
  CUstream_st* stream = nullptr;  // where it was recorded last, and has not happened
  std::optional<std::chrono::steady_clock::time_point> at;
};
struct CUmod_st {
  CUctx_st* context = nullptr;
  tiny::emulation::Module module;
  std::map<std::string, std::unique_ptr<CUfunc_st>, std::less<>> functions;
};
struct CUfunc_st {
  CUctx_st* context = nullptr;
  const tiny::emulation::Entry* entry = nullptr;
  int dynamic_shared_max = 0;
};
struct CUlinkState_st {
  std::string text;  // then the image
  bool is_complete = false;
};
struct CUgraphNode_st {
  CUfunc_st* function = nullptr;
  tiny::emulation::KernelLaunch launch;
  std::vector<CUgraphNode_st*> after;
};
struct CUgraph_st {
  CUctx_st* context = nullptr;
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};
struct CUgraphExec_st {
  CUctx_st* context = nullptr;
  std::vector<CUgraphNode_st> nodes;                // copies
  std::map<const CUgraphNode_st*, size_t> numbers;  // of the graph's own nodes
  std::vector<std::vector<size_t>> after;
};

namespace tiny::emulation {

// Objects of one kind by their handles.
template <class T>
class Objects {
 public:
  T* make() {
    auto object = std::make_unique<T>();
    T* handle = object.get();
    all_.emplace(handle, std::move(object));
    return handle;
  }
  T* find(T* handle) const { return all_.contains(handle) ? handle : nullptr; }
  bool erase(T* handle) { return all_.erase(handle) > 0; }
  size_t size() const { return all_.size(); }
  void clear() { all_.clear(); }

 private:
  std::map<T*, std::unique_ptr<T>> all_;
};

struct FakeDriver {
  static FakeDriver& get();

  std::recursive_mutex lock;
  bool is_initialised = false;
  GlobalMemory memory;
  std::array<CUctx_st, 8> contexts;
  std::set<void*> host_memory;
  Objects<CUstream_st> streams;
  Objects<CUevent_st> events;
  Objects<CUmod_st> modules;
  Objects<CUlinkState_st> links;
  Objects<CUgraph_st> graphs;
  Objects<CUgraphExec_st> executables;
  int64_t calls = 0;
  std::map<std::string, int64_t, std::less<>> calls_of;  // by symbol
  std::string fault;

  // Whether that call is to fail by the environment: with what.
  cuda::Result planned(std::string_view symbol);
  // Does what the stream has been given.
  void finish(CUstream_st& stream);
  void step(CUstream_st& stream);
  void run(CUctx_st& context, const KernelLaunch& launch);

 private:
  std::string planned_text_;
  int64_t calls_until_failure_ = 0;
};

int64_t setting(const char* name, int64_t otherwise);
// Contexts that the calling thread has pushed, the current last.
std::vector<CUctx_st*>& pushed();

}  // namespace tiny::emulation
