// Operators of the caller's: functions of the host that are steps of programs like kernels, and the
// names under which a context knows them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/kernel_abi.h"
#include "base/ref.h"
#include "engine/program.h"
#include "ir/dtype.h"
#include "shape/shape.h"

namespace tiny {

class Context;
struct ScheduledKernel;

// One call while it runs: row-major memory of the host, for the call's length.
struct RunningCall {
  struct Value {
    DType dtype;  // Void: left out
    std::span<const int64_t> dims;
    void* data = nullptr;  // null without elements
  };
  const std::string& attributes;  // a JSON object
  std::span<const Value> inputs;
  std::span<const Value> outputs;
  // Whether it is to leave early; what it has filled by then is void.
  const KernelPoll* poll = &kStay;
};

class CustomOp : public RefCounted {
 public:
  CustomOp(std::string domain, std::string name)
      : domain_(std::move(domain)), name_(std::move(name)) {}
  const std::string& domain() const { return domain_; }
  const std::string& name() const { return name_; }
  // The dtypes and shapes of the first `outputs` outputs; Error if they cannot be had.
  virtual std::vector<HostCall::Value> infer(const std::string& attributes,
                                             std::span<const HostCall::Value> inputs,
                                             size_t outputs) const = 0;
  // The operator that computes its gradient, null if there is none: of its inputs, its outputs, and
  // what reached each output (left out where nothing did), the gradients of those inputs that are
  // floats, in their order.
  virtual Ref<const CustomOp> gradient() const { return {}; }
  // Fills the outputs; on the thread that executes, at the same time as other threads.
  virtual void run(const RunningCall& call) const = 0;

 private:
  std::string domain_;
  std::string name_;
};

// "domain.Name".
std::string to_string(const CustomOp& op);

// A list that only grows: any thread may look.
class CustomOps {
 public:
  CustomOps() = default;
  CustomOps(const CustomOps&) = delete;
  CustomOps& operator=(const CustomOps&) = delete;
  ~CustomOps();
  // Error{InvalidArgument} if there is one of this domain and name.  Belongs to the context's
  // thread.
  void add(Ref<const CustomOp> op);
  // All of another context's, for one that has none.
  void copy(const CustomOps& others);
  size_t size() const;
  bool empty() const { return !last_.load(std::memory_order_relaxed); }
  // Null if there is none.
  Ref<const CustomOp> find(std::string_view domain, std::string_view name) const;

 private:
  struct Known {
    Ref<const CustomOp> op;
    const Known* before;
  };
  std::atomic<const Known*> last_{nullptr};
};

// An operator with the attributes of one call: the function of a HostCall.
struct CustomCall : RefCounted {
  CustomCall(Ref<const CustomOp> o, std::string a) : op(std::move(o)), attributes(std::move(a)) {}
  Ref<const CustomOp> op;
  std::string attributes;
};

// The entry of a tape that makes the call of a kernel: its code, parameters and name.
TapeEntry call_entry(Context& context, const ScheduledKernel& kernel);

}  // namespace tiny
