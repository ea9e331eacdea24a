#include "tensor/run.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"
#include "engine/realize.h"
#include "engine/records.h"
#include "engine/versions.h"
#include "schedule/schedule.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/movement.h"
#include "tensor/value.h"

namespace tiny {

namespace {

// Gives the ports the shapes of these values.
void fit_ports(std::vector<TensorProgram::Port>& ports, const Ints& values) {
  for (TensorProgram::Port& port : ports) {
    if (port.sizes.empty()) continue;  // the same for every value
    port.bytes = port.dtype.bytes();
    for (size_t i = 0; i < port.sizes.size(); ++i) {
      port.shape[i] = port.sizes[i].value(values);
      port.bytes = checked_mul(port.bytes, port.shape[i], "a tensor's size");
    }
  }
}

// The memory of a tensor that is a row-major part of what it shares with its views; null if it is
// none.
Ref<Storage> own_memory(const Tensor& tensor) {
  const UOp& whole = tensor.cell()->node();
  const View& view = tensor.view();
  if (!tensor.cell()->owns_memory() || whole.op() != Op::Buffer || !view.offset.is_const() ||
      !is_row_major(View{view.shape, view.strides, 0}))
    return {};
  return Storage::part(storage_of(whole), view.offset.value() * tensor.dtype().bytes());
}

// A row-major memory block that holds the tensor's elements, computed now if need be.
Ref<Storage> storage_for(const Tensor& given) {
  if (Ref<Storage> memory = own_memory(given)) return memory;
  Tensor tensor = given;
  const int64_t bytes = element_count(tensor) * tensor.dtype().bytes();
  Tensor* one[] = {&tensor};
  realize(one);
  auto stored = as_view(tensor.node());
  if (!stored || !is_row_major(View{stored->view.shape, stored->view.strides, 0})) {
    tensor = contiguous(tensor);
    realize(one);
    stored = as_view(tensor.node());
  }
  if (!stored) {  // a constant
    std::vector<std::byte> data(static_cast<size_t>(bytes));
    read(tensor, data.data(), bytes);
    return tensor.context().from_host(data.data(), bytes);
  }
  return Storage::part(storage_of(stored->base),
                       stored->view.offset.value() * tensor.dtype().bytes());
}

}  // namespace

TensorRun::TensorRun(Ref<Context> context, Ref<const TensorProgram> program)
    : context_(std::move(context)),
      program_(std::move(program)),
      values_(program_->variables.size()),
      is_known_(program_->variables.size()),
      input_ports_(program_->inputs),
      output_ports_(program_->outputs),
      inputs_(program_->inputs.size()),
      outputs_(program_->outputs.size()),
      queue_(context_->device().make_queue()) {
  if (program_->compiled.program) run_ = make_ref<Run>(program_->compiled.program);
  for (size_t i = 0; i < values_.size(); ++i)
    if (program_->variables[i].is_computed) is_known_[i] = 1;
  take_greatest_sizes();
  if (values_.empty()) bind_outputs();
}

void TensorRun::require_variables() const {
  std::vector<std::string> missing;
  for (size_t i = 0; i < values_.size(); ++i)
    if (!is_known_[i]) missing.push_back(cat('"', program_->variables[i].name, '"'));
  require(missing.empty(), Status::InvalidArgument,
          "variables without a value: ", join(missing, ", "),
          "; an input whose shape has one gives it, or it is set");
}

int64_t TensorRun::value_of(const Dim& dim) const {
  if (dim.is_const()) return dim.value();
  std::vector<UOp> variables;
  for (const ProgramVariable& v : program_->variables)
    variables.push_back(context_->graph().variable(v.name, v.min, v.max));
  for (const UOp& u : topological({&dim.expression(), 1}))
    require(u.op() != Op::Variable || std::ranges::count(variables, u) > 0, Status::InvalidArgument,
            "the program has no variable \"", u.op() == Op::Variable ? u.variable_arg().name : "",
            "\", on which ", dim, " depends");
  require_variables();
  return SizeExpression(dim, variables).value(values_);
}

void TensorRun::set_variable(size_t index, int64_t value) {
  const ProgramVariable& v = program_->variables[index];
  require(!v.is_computed, Status::InvalidArgument, "the variable \"", v.name,
          "\" is a size that executions compute");
  require(value >= v.min && value <= v.max, Status::InvalidArgument, "the variable \"", v.name,
          "\" is from ", v.min, " to ", v.max, "; got ", value);
  take_value(index, value);
}

// A value within the variable's range.  What the run holds for others is let go.
void TensorRun::take_value(size_t variable, int64_t value) {
  if (is_known_[variable] && values_[variable] == value) return;
  if (run_) run_->bind_variable(static_cast<int64_t>(variable), value);
  is_known_[variable] = 1;
  values_[variable] = value;
  fits_ = false;
  forget_outputs();
  if (outcome_ == Outcome::Done) outcome_ = Outcome::Outdated;
  fit_all_ports();
}

void TensorRun::fit_all_ports() {
  if (std::ranges::count(is_known_, 0) > 0) return;
  fit_ports(input_ports_, values_);
  fit_ports(output_ports_, values_);
}

// Before an execution: what outputs have room for.
void TensorRun::take_greatest_sizes() {
  bool any = false;
  for (size_t i = 0; i < values_.size(); ++i) {
    const ProgramVariable& v = program_->variables[i];
    if (v.is_computed) values_[i] = v.max;
    any |= v.is_computed;
  }
  if (any) fit_all_ports();
}

// Behind it: what they have.
void TensorRun::read_computed_sizes() {
  bool any = false;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!program_->variables[i].is_computed) continue;
    values_[i] = run_->variable(static_cast<int64_t>(i));
    any = true;
  }
  if (any) fit_ports(output_ports_, values_);
}

// Holds an input's shape against the program's, and takes the values of variables from it.
void TensorRun::learn(size_t index, const Ints& shape) {
  const TensorProgram::Port& port = program_->inputs[index];
  require(shape.size() == port.sizes.size(), Status::Shape, "input \"", port.name, "\" has ",
          port.sizes.size(), " dimensions; got the shape ", list_text(shape));
  std::vector<std::pair<size_t, int64_t>> values;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const SizeExpression& size = port.sizes[axis];
    const int64_t got = shape[axis];
    require(!size.is_const() || size.value({}) == got, Status::Shape, "dimension ", axis,
            " of input \"", port.name, "\" is ", size.is_const() ? size.value({}) : 0,
            "; got the shape ", list_text(shape));
    const auto multiple = size.multiple();
    if (!multiple) continue;
    const auto [variable, factor] = *multiple;
    const ProgramVariable& v = program_->variables[variable];
    const int64_t value = got / factor;
    require(got % factor == 0 && value >= v.min && value <= v.max, Status::Shape, "dimension ",
            axis, " of input \"", port.name, "\" is ", factor == 1 ? "" : cat(factor, " times "),
            "the variable \"", v.name, "\", from ", v.min, " to ", v.max, "; got the shape ",
            list_text(shape));
    const auto before = std::ranges::find(values, variable, &std::pair<size_t, int64_t>::first);
    require(before == values.end() || before->second == value, Status::Shape, "the variable \"",
            v.name, "\" has two values in the shape ", list_text(shape), " of input \"", port.name,
            "\"");
    values.emplace_back(variable, value);
  }
  for (const auto& [variable, value] : values) take_value(variable, value);
}

namespace {

void require_shape(const TensorProgram::Port& port, const char* what, const Ints& shape) {
  require(shape == port.shape, Status::Shape, what, " \"", port.name, "\" has the shape ",
          list_text(port.shape), " with the variables' values; got ", list_text(shape));
}

void require_bytes(const TensorProgram::Port& port, const char* what, int64_t bytes) {
  require(bytes == port.bytes, Status::Shape, what, " \"", port.name, "\" has the shape ",
          list_text(port.shape), " with the variables' values, ", port.bytes, " bytes; memory of ",
          bytes, " bytes is bound");
}

}  // namespace

// The values of the variables are final: what is bound must fit, and outputs get memory.
void TensorRun::fit() {
  require_variables();
  for (size_t i = 0; !values_.empty() && i < input_ports_.size(); ++i) {
    const OfCaller& memory = inputs_[i].memory;
    if (memory.is_bound)
      require_bytes(input_ports_[i], "input", memory.buffer->bytes());
    else
      require_shape(input_ports_[i], "input", inputs_[i].shape);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].memory.is_bound)
      require_bytes(output_ports_[i], "output", outputs_[i].memory.buffer->bytes());
    else if (outputs_[i].given)
      require_shape(output_ports_[i], "output", outputs_[i].given_shape);
  }
  bind_outputs();
}

void TensorRun::bind_outputs() {
  for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i].next = output_ports_[i].captured;
  for (auto port = output_ports_.begin(); run_ && port != output_ports_.end(); ++port) {
    const auto first = std::ranges::find(output_ports_, port->number, &TensorProgram::Port::number);
    if (port->number >= 0 && port == first) bind_number(port->number);
  }
  fits_ = true;
}

// Binds the memory that was first set for an output of this number, or new memory.  Outputs that
// are the same value share it, but for those that have memory of their own.
void TensorRun::bind_number(int64_t number) {
  if (run_->makes_output(number)) return;
  Ref<Storage> memory;
  for (size_t i = 0; i < outputs_.size() && !memory; ++i)
    if (output_ports_[i].number == number) memory = outputs_[i].given;
  const bool is_tensors = static_cast<bool>(memory);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (output_ports_[i].number != number) continue;
    if (!memory) memory = context_->allocate(output_ports_[i].bytes);
    outputs_[i].next = outputs_[i].given ? outputs_[i].given : memory;
  }
  run_->bind_output(number, memory, is_tensors);
}

bool TensorRun::is_made(size_t output) const {
  const int64_t number = output_ports_[output].number;
  return run_ && number >= 0 && run_->makes_output(number);
}

void TensorRun::require_not_made(size_t output) const {
  require(!is_made(output), Status::Unsupported, "output \"", output_ports_[output].name,
          "\" has a size that nothing bounds: an execution makes its memory");
}

void TensorRun::take_made_outputs() {
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (is_made(i)) outputs_[i].next = run_->made_output(output_ports_[i].number);
}

void TensorRun::forget_outputs() {
  for (Output& output : outputs_) output.written = output.next = nullptr;
}

// What the last execution wrote there, and outputs that share it.
void TensorRun::forget_written(size_t index) {
  const Ref<Storage> gone = outputs_[index].written;
  for (Output& output : outputs_)
    if (output.written == gone) output.written = nullptr;
}

void TensorRun::let_go() {
  for (Input& input : inputs_) input.is_bound = input.memory.is_bound = false;
  for (Output& output : outputs_) {
    output.memory.is_bound = false;
    output.given = nullptr;
  }
  forget_outputs();
  outcome_ = Outcome::None;
  fits_ = false;
  if (run_) run_->unbind();
}

namespace {

void require_dtype(const TensorProgram::Port& port, const char* what, const Tensor& tensor) {
  require(tensor.dtype() == port.dtype, Status::DType, what, " \"", port.name, "\" is of type ",
          port.dtype, "; got ", tensor.dtype());
}

// The program's dtype and shape are wanted.
void require_fit(const TensorProgram::Port& port, const char* what, const Tensor& tensor) {
  require_dtype(port, what, tensor);
  require(tensor.shape() == to_shape(port.shape), Status::Shape, what, " \"", port.name,
          "\" has the shape ", list_text(port.shape), "; got ", tensor.shape());
}

}  // namespace

void TensorRun::set_input(size_t index, const Tensor& tensor) {
  require(index < inputs_.size(), Status::InvalidArgument, "the program has ", inputs_.size(),
          " inputs; got index ", index);
  if (program_->variables.empty()) {
    require_fit(input_ports_[index], "input", tensor);
  } else {
    require_dtype(input_ports_[index], "input", tensor);
    inputs_[index].is_bound = false;
    inputs_[index].shape = const_dims(tensor.shape());
    learn(index, inputs_[index].shape);
    if (fits_) require_shape(input_ports_[index], "input", inputs_[index].shape);
  }
  const TensorProgram::Port& port = input_ports_[index];  // made anew for other values
  if (port.number >= 0 && run_) {
    const Ref<Storage> memory = storage_for(tensor);
    require_apart_of_outputs(index,
                             {*memory, element_count(tensor) * port.dtype.bytes(), "the tensor"});
    run_->bind_input(port.number, memory);
  } else if (port.empty_number >= 0 && run_) {
    // A kernel may have it as a parameter.
    run_->bind_input(port.empty_number, context_->allocate(1));
  }
  inputs_[index].memory.is_bound = false;
  inputs_[index].is_bound = true;
}

void TensorRun::set_output(size_t index, Tensor* tensor) {
  const TensorProgram::Port& port = output_ports_[index];
  require(!port.captured, Status::InvalidArgument, "output \"", port.name,
          "\" is a tensor that the program writes: no other can be set");
  if (tensor) {
    require_not_made(index);
    require_variables();
    require_fit(port, "output", *tensor);
  }
  if (port.number < 0) return;  // without elements
  Ref<Storage> memory;
  if (tensor) {
    memory = writable_memory(*tensor);
    require_apart(index, {*memory, port.bytes, "the tensor"});
    part_equals(*context_, {storage_of(tensor->cell()->node()).get()});
  }
  outputs_[index].given = memory;
  forget_written(index);
  outputs_[index].memory.is_bound = false;
  if (tensor) outputs_[index].given_shape = const_dims(tensor->shape());
  if (fits_) bind_number(port.number);
}

int64_t TensorRun::given_bytes(size_t output) const {
  const OfCaller& memory = outputs_[output].memory;
  return memory.is_bound ? memory.buffer->bytes() : output_ports_[output].bytes;
}

void TensorRun::require_apart_of_outputs(size_t input, const Place& place) const {
  for (size_t i = 0; i < outputs_.size(); ++i)
    require(!outputs_[i].given ||
                !overlap(place.memory, place.bytes, *outputs_[i].given, given_bytes(i)),
            Status::InvalidArgument, "input \"", input_ports_[input].name, "\": ", place.what,
            " shares memory with that of output \"", output_ports_[i].name, "\"");
}

// Kernels read and write in an order of their own: an output shares no memory with what they read.
void TensorRun::require_apart(size_t index, const Place& place) const {
  const TensorProgram::Port& port = output_ports_[index];
  if (const Slot* slot = run_->find_overlap(place.memory, place.bytes)) {
    const auto input = std::ranges::find(input_ports_, slot->number, &TensorProgram::Port::number);
    const bool is_input = slot->kind == SlotKind::Input && input != input_ports_.end();
    throw_error(Status::InvalidArgument, "output \"", port.name, "\": ", place.what,
                " shares memory with ",
                is_input ? cat("that of input \"", input->name, "\"")
                         : std::string("one that the program captured"));
  }
  for (size_t i = 0; i < outputs_.size(); ++i)
    require(i == index || !outputs_[i].given ||
                !overlap(place.memory, place.bytes, *outputs_[i].given, given_bytes(i)),
            Status::InvalidArgument, "output \"", port.name, "\": ", place.what,
            " shares memory with that of output \"", output_ports_[i].name, "\"");
}

void TensorRun::require_output(size_t index) const {
  const char* reason = nullptr;
  if (outcome_ == Outcome::None) reason = "\" has no value: the run was not executed";
  if (outcome_ == Outcome::Failed) reason = "\" has no value: the last execution failed";
  if (outcome_ == Outcome::Outdated)
    reason = "\" is that of other values of the variables: the run is to be executed first";
  if (!reason && !outputs_[index].written && output_ports_[index].number >= 0)
    reason = "\" has no value: where it goes was set after the last execution";
  require(reason == nullptr, Status::InvalidArgument, "output \"", output_ports_[index].name,
          reason ? reason : "");
}

void TensorRun::read_output(size_t index, void* data) const {
  const TensorProgram::Port& port = output_ports_[index];
  require_output(index);
  if (port.bytes == 0) return;
  Device& device = context_->device();
  device.copy_out(queue_.get(), data, outputs_[index].written->memory(),
                  outputs_[index].written->byte_offset(), port.bytes);
  device.wait(queue_.get());
}

Ref<Storage> TensorRun::copied(const Storage& memory, int64_t bytes) {
  const Ref<Storage> copy = context_->allocate(bytes);
  context_->device().copy(queue_.get(), copy->memory(), copy->byte_offset(), memory.memory(),
                          memory.byte_offset(), bytes);
  context_->device().wait(queue_.get());
  return copy;
}

Tensor TensorRun::take_output(size_t index) {
  const TensorProgram::Port& port = output_ports_[index];
  require(!port.captured, Status::InvalidArgument, "output ", index,
          " is a tensor that the program writes: use that tensor");
  require_output(index);
  if (port.number < 0) return full(context_, port.dtype, to_shape(port.shape), 0);
  require(!outputs_[index].was_given, Status::InvalidArgument, "output ", index,
          " is written into a tensor that was set: use that tensor");
  // Of outputs that are the same value each tensor has memory of its own.
  if (std::ranges::count(outputs_, outputs_[index].written, &Output::written) > 1)
    outputs_[index].written = copied(*outputs_[index].written, port.bytes);
  const Ref<Storage> taken = outputs_[index].written;
  if (outputs_[index].next == taken) {
    const Ref<Storage> next = is_made(index) ? Ref<Storage>() : context_->allocate(port.bytes);
    for (Output& output : outputs_)
      if (output.next == taken) output.next = next;
    if (next)
      run_->bind_output(port.number, next);
    else
      run_->let_go_output(port.number);
  }
  return of_storage(context_, port.dtype, port.shape, taken);
}

void TensorRun::set_cancel(Ref<CancelToken> token) {
  if (run_) run_->set_cancel(std::move(token));
}

void TensorRun::set_timed(bool timed) {
  if (run_) run_->set_timed(timed);
}

std::span<const double> TensorRun::seconds() const {
  if (!run_) return {};
  return run_->seconds();
}

std::string TensorRun::trace() const {
  constexpr const char* kEmpty = R"({"displayTimeUnit":"ms","traceEvents":[]})";
  if (!run_) return kEmpty;  // there is nothing to compute
  require(seconds().size() == run_->program().tape.size(), Status::InvalidArgument,
          "no timed execution came to its end: tiny_run_set_timed, then tiny_run_execute");
  return trace_json(*run_);
}

void TensorRun::execute(StopSignal::Since since) {
  execute_by([&] { run_->execute(since); });
}

void TensorRun::execute(const StopSignal& within) {
  execute_by([&] { run_->execute(within); });
}

template <class Execute>
void TensorRun::execute_by(Execute execute) {
  std::vector<std::string> missing;
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (!inputs_[i].is_bound) missing.push_back(cat('"', program_->inputs[i].name, '"'));
  outcome_ = Outcome::Failed;
  require(missing.empty(), Status::InvalidArgument,
          "inputs that were not set: ", join(missing, ", "));
  take_greatest_sizes();
  if (!fits_) fit();
  if (run_) {
    copy_from_caller();
    number_execution();
    execute();
    read_computed_sizes();
    take_made_outputs();
    copy_outputs();
    copy_to_caller();
  }
  for (Output& output : outputs_) {
    if (!(output.written == output.next)) output.written = output.next;
    output.was_given = static_cast<bool>(output.given);
  }
  outcome_ = Outcome::Done;
}

// The next number among all executions that share the count.
void TensorRun::number_execution() {
  if (program_->execution < 0) return;
  const ExecutionNumber number = program_->executions->next();
  if (!execution_) execution_ = context_->allocate(sizeof number);
  Device& device = context_->device();
  device.copy_in(queue_.get(), execution_->memory(), execution_->byte_offset(), &number,
                 sizeof number);
  device.wait(queue_.get());
  run_->bind_input(program_->execution, execution_);
}

// Of outputs that are the same value, the first that was set has the result; the others get copies.
void TensorRun::copy_outputs() {
  bool any = false;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i].given) continue;
    size_t first = 0;
    while (!outputs_[first].given || output_ports_[first].number != output_ports_[i].number)
      ++first;
    if (first == i) continue;
    context_->device().copy(queue_.get(), outputs_[i].given->memory(),
                            outputs_[i].given->byte_offset(), outputs_[first].given->memory(),
                            outputs_[first].given->byte_offset(), output_ports_[i].bytes);
    outputs_[i].given->count_run();
    any = true;
  }
  if (any) context_->device().wait(queue_.get());
}

}  // namespace tiny
