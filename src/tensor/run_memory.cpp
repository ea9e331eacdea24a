// Runs that read and write memory of the caller's.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>

#include "base/error.h"
#include "base/text.h"
#include "tensor/run.h"

namespace tiny {

namespace {

// What can be told before the variables have values.
void require_memory(const TensorProgram::Port& port, const char* what, const void* data,
                    int64_t bytes) {
  bool is_known = true;
  for (const SizeExpression& size : port.sizes) is_known &= size.is_const();
  require(!is_known || bytes == port.bytes, Status::Shape, what, " \"", port.name, "\" of shape ",
          list_text(port.shape), " has ", port.bytes, " bytes; got ", bytes);
  require(data != nullptr || bytes == 0, Status::InvalidArgument, "data is NULL but has ", bytes,
          " bytes");
  require(std::bit_cast<uintptr_t>(data) % static_cast<uintptr_t>(port.dtype.bytes()) == 0,
          Status::InvalidArgument, what, " \"", port.name,
          "\": data is not aligned to an element of ", port.dtype);
}

bool meet(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
  const auto* first = static_cast<const std::byte*>(a);
  const auto* second = static_cast<const std::byte*>(b);
  return std::less<>()(first, second + b_bytes) && std::less<>()(second, first + a_bytes);
}

}  // namespace

void TensorRun::require_input_apart(size_t index, const void* data, int64_t bytes) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const OfCaller& other = outputs_[i].memory;
    require(!other.is_bound || !meet(data, bytes, other.data, other.buffer->bytes()),
            Status::InvalidArgument, "input \"", input_ports_[index].name,
            "\": what is bound shares memory with that of output \"", output_ports_[i].name, "\"");
  }
}

void TensorRun::require_output_apart(size_t index, const void* data, int64_t bytes) const {
  const auto apart = [&](const OfCaller& other, const char* what, const std::string& name) {
    require(!other.is_bound || !meet(data, bytes, other.data, other.buffer->bytes()),
            Status::InvalidArgument, "output \"", output_ports_[index].name,
            "\": what is bound shares memory with that of ", what, " \"", name, "\"");
  };
  for (size_t i = 0; i < inputs_.size(); ++i)
    apart(inputs_[i].memory, "input", input_ports_[i].name);
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (i != index) apart(outputs_[i].memory, "output", output_ports_[i].name);
}

bool TensorRun::lay(OfCaller& memory, void* data, int64_t bytes) {
  const bool is_same = memory.is_bound && memory.buffer->bytes() == bytes;
  memory.data = data;
  Device& device = context_->device();
  if (!device.sees_host()) {
    if (is_same) return true;
    memory.buffer = device.allocate(bytes);
    memory.storage = make_ref<Storage>(memory.buffer, 0);
  } else if (!memory.buffer) {
    memory.buffer = device.wrap(data, bytes);
    memory.storage = make_ref<Storage>(memory.buffer, 0);
  } else {
    invariant(memory.buffer->rewrap(data, bytes), "a buffer that was wrapped can be again");
  }
  return is_same;
}

// All checks come first, with the memory as the probe's: nothing changes if one fails.
void TensorRun::bind_input(size_t index, const void* data, int64_t bytes) {
  require(index < inputs_.size(), Status::InvalidArgument, "the program has ", inputs_.size(),
          " inputs; got index ", index);
  const TensorProgram::Port& port = input_ports_[index];
  require_memory(port, "input", data, bytes);
  // Nothing writes there: a program that stores to an input's memory does not get it.
  void* memory = const_cast<void*>(data);
  OfCaller& bound = inputs_[index].memory;
  if (!context_->device().sees_host()) {
    require_input_apart(index, data, bytes);
  } else if (port.number >= 0 && run_) {
    lay(probe_, memory, bytes);
    require_apart_of_outputs(index, {*probe_.storage, bytes, "what is bound"});
    run_->require_not_written(port.number, *probe_.storage);
  }
  const bool is_same = lay(bound, memory, bytes);
  if (!is_same && port.number >= 0 && run_) run_->bind_input(port.number, bound.storage);
  fits_ &= is_same || values_.empty();
  bound.is_bound = inputs_[index].is_bound = true;
}

void TensorRun::bind_output(size_t index, void* data, int64_t bytes) {
  const TensorProgram::Port& port = output_ports_[index];
  require(!port.captured, Status::InvalidArgument, "output \"", port.name,
          "\" is a tensor that the program writes: no other memory can be bound");
  if (bytes == 0) return set_output(index, nullptr);
  require_not_made(index);
  require_memory(port, "output", data, bytes);
  if (port.number < 0 || !run_) return;  // without elements
  if (!context_->device().sees_host()) {
    require_output_apart(index, data, bytes);
  } else {
    lay(probe_, data, bytes);
    require_apart(index, {*probe_.storage, bytes, "what is bound"});
  }
  OfCaller& bound = outputs_[index].memory;
  forget_written(index);
  const bool is_same = lay(bound, data, bytes);
  outputs_[index].given = bound.storage;
  bound.is_bound = true;
  fits_ &= is_same || values_.empty();
  if (fits_ && !is_same) bind_number(port.number);
}

void TensorRun::copy_from_caller() {
  if (context_->device().sees_host()) return;
  bool any = false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const OfCaller& memory = inputs_[i].memory;
    if (!memory.is_bound || input_ports_[i].number < 0) continue;
    context_->device().copy_in(queue_.get(), *memory.buffer, 0, memory.data,
                               memory.buffer->bytes());
    any = true;
  }
  if (any) context_->device().wait(queue_.get());
}

void TensorRun::copy_to_caller() {
  if (context_->device().sees_host()) return;
  bool any = false;
  for (const Output& output : outputs_) {
    const OfCaller& memory = output.memory;
    if (!memory.is_bound) continue;
    context_->device().copy_out(queue_.get(), memory.data, *memory.buffer, 0,
                                memory.buffer->bytes());
    any = true;
  }
  if (any) context_->device().wait(queue_.get());
}

}  // namespace tiny
