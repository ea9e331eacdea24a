// Runs that read and write memory of the caller's.
#include <algorithm>
#include <bit>

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

}  // namespace

bool TensorRun::lay(OfCaller& memory, void* data, int64_t bytes) {
  const bool is_same = memory.is_bound && memory.buffer->bytes() == bytes;
  if (!memory.buffer) {
    memory.buffer = context_->device().wrap(data, bytes);
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
  if (port.number >= 0 && run_) {
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
  require_memory(port, "output", data, bytes);
  if (port.number < 0 || !run_) return;  // without elements
  lay(probe_, data, bytes);
  require_apart(index, {*probe_.storage, bytes, "what is bound"});
  OfCaller& bound = outputs_[index].memory;
  forget_written(index);
  const bool is_same = lay(bound, data, bytes);
  outputs_[index].given = bound.storage;
  bound.is_bound = true;
  fits_ &= is_same || values_.empty();
  if (fits_ && !is_same) bind_number(port.number);
}

}  // namespace tiny
