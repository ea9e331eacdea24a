#include "engine/custom_op.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "engine/context.h"
#include "runtime/device.h"
#include "schedule/schedule.h"

namespace tiny {

namespace {

// What a call needs of its graph once that is gone: holds no nodes.
class BoundCall : public HostFunction {
 public:
  explicit BoundCall(const ScheduledKernel& kernel)
      : call_(static_cast<CustomCall*>(call_result(kernel.call).call->function.get())) {
    const HostCall& call = *call_result(kernel.call).call;
    const std::vector<UOp>& variables = kernel.kernel.variables;
    for (const HostCall::Value& value : call.inputs)
      inputs_.push_back(port_of(value, value.source, variables));
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const auto store = std::ranges::find_if(
          kernel.stores, [&](const ScheduledStore& s) { return call_result(s.value).index == i; });
      const auto sources = std::ssize(kernel.call.src());
      const bool is_read = store != kernel.stores.end();
      outputs_.push_back(port_of(
          call.outputs[i], is_read ? sources + (store - kernel.stores.begin()) : -1, variables));
    }
  }

  void run(const KernelArgs& args) const override {
    const std::span<const int64_t> variables(args.variables, variables_);
    Sizes sizes;
    for (const auto* ports : {&inputs_, &outputs_})
      for (const Port& port : *ports) {
        sizes.begins.push_back(sizes.dims.size());
        for (const SizeExpression& size : port.sizes) sizes.dims.push_back(size.value(variables));
      }
    sizes.begins.push_back(sizes.dims.size());
    std::vector<RunningCall::Value> inputs;
    std::vector<RunningCall::Value> outputs;
    std::vector<std::unique_ptr<std::byte[]>> unread;
    for (const Port& port : inputs_) inputs.push_back(value_of(port, inputs.size(), sizes, args));
    for (const Port& port : outputs_) {
      outputs.push_back(value_of(port, inputs.size() + outputs.size(), sizes, args));
      RunningCall::Value& value = outputs.back();
      if (value.data || bytes_of(value) == 0) continue;
      // Nobody reads it, and the function fills it all the same.
      unread.push_back(std::make_unique<std::byte[]>(bytes_of(value)));
      value.data = unread.back().get();
    }
    call_->op->run({call_->attributes, inputs, outputs, args.poll});
  }

 private:
  struct Port {
    DType dtype;
    std::vector<SizeExpression> sizes;
    int64_t param = -1;
  };
  // The dimensions of all values one after the other, and where those of each begin.
  struct Sizes {
    std::vector<int64_t> dims;
    std::vector<size_t> begins;
  };

  Port port_of(const HostCall::Value& value, int64_t param, const std::vector<UOp>& variables) {
    variables_ = variables.size();
    Port port{value.dtype, {}, param};
    for (const Dim& d : value.shape) port.sizes.emplace_back(d, variables);
    return port;
  }

  static RunningCall::Value value_of(const Port& port, size_t number, const Sizes& sizes,
                                     const KernelArgs& args) {
    const std::span<const int64_t> all = sizes.dims;
    const size_t begin = sizes.begins[number];
    return {port.dtype, all.subspan(begin, sizes.begins[number + 1] - begin),
            port.param < 0 ? nullptr : args.buffers[port.param]};
  }

  static size_t bytes_of(const RunningCall::Value& value) {
    int64_t bytes = value.dtype.bytes();
    for (int64_t d : value.dims) bytes = checked_mul(bytes, d, "an output's size");
    return static_cast<size_t>(bytes);
  }

  Ref<CustomCall> call_;
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
  size_t variables_ = 0;
};

}  // namespace

std::string to_string(const CustomOp& op) {
  return cat(op.domain(), op.domain().empty() ? "" : ".", op.name());
}

CustomOps::~CustomOps() {
  for (const Known* at = last_.load(); at;) delete std::exchange(at, at->before);
}

void CustomOps::add(Ref<const CustomOp> op) {
  require(!find(op->domain(), op->name()), Status::InvalidArgument, "the context has an operator ",
          to_string(*op), " already");
  last_.store(new Known{std::move(op), last_.load(std::memory_order_relaxed)},
              std::memory_order_release);
}

void CustomOps::copy(const CustomOps& others) {
  for (const Known* at = others.last_.load(std::memory_order_acquire); at; at = at->before)
    add(at->op);
}

size_t CustomOps::size() const {
  size_t count = 0;
  for (const Known* at = last_.load(std::memory_order_acquire); at; at = at->before) ++count;
  return count;
}

Ref<const CustomOp> CustomOps::find(std::string_view domain, std::string_view name) const {
  for (const Known* at = last_.load(std::memory_order_acquire); at; at = at->before)
    if (at->op->domain() == domain && at->op->name() == name) return at->op;
  return nullptr;
}

TapeEntry call_entry(Context& context, const ScheduledKernel& kernel) {
  const auto& call = static_cast<const CustomCall&>(*call_result(kernel.call).call->function);
  TapeEntry entry;
  entry.info.name = to_string(*call.op);
  entry.info.params = kernel.kernel.params;
  entry.executable = context.device().load_function(entry.info.name, make_ref<BoundCall>(kernel));
  return entry;
}

}  // namespace tiny
