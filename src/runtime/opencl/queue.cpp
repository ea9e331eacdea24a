#include "runtime/opencl/queue.h"

#include <algorithm>

#include "base/kernel_abi.h"
#include "base/opencl_abi.h"
#include "base/text.h"
#include "runtime/host.h"

namespace tiny::opencl {
namespace {

// docs/semantics.md: what is divided is rounded once, and nothing else is allowed to be less exact.
constexpr const char* kRounded = "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt";
constexpr const char* kInFloat64 = "-cl-std=CL1.2 -DDIVIDE_IN_FLOAT64";

// Of a kernel without groups at most so many items go together: as many as a multiprocessor's warps
// are busy with.  On a processor each is alone.  Its compilers turn a group into loops over its
// items, inside of the kernel's own loops, with what an item keeps in arrays: ResNet-50's took 1.4
// to 3.4 s with 64 items and takes 0.07 s with one (PoCL 3.1, two cores of Zen 5).
constexpr int64_t kItemsTogether = 64;
constexpr int64_t kItemsOnProcessor = 1;

size_t size_of(int64_t n) {
  return static_cast<size_t>(n);
}

}  // namespace

ClProgram::ClProgram(Ref<Connection> connection, const std::string& text, const std::string& what)
    : connection_(std::move(connection)) {
  connection_->check_usable();
  const Functions& cl = connection_->cl();
  const char* source = text.c_str();
  cl_int code = CL_SUCCESS;
  program_ = cl.clCreateProgramWithSource(connection_->context(), 1, &source, nullptr, &code);
  connection_->check(code, "clCreateProgramWithSource", what);
  const cl_device_id id = connection_->id();
  const char* options = connection_->facts().rounds_divisions ? kRounded : kInFloat64;
  code = cl.clBuildProgram(program_, 1, &id, options, nullptr, nullptr);
  if (code == CL_SUCCESS) return;
  size_t size = 0;
  cl.clGetProgramBuildInfo(program_, id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  if (size > 0)
    cl.clGetProgramBuildInfo(program_, id, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  cl.clReleaseProgram(program_);
  connection_->check(code, "clBuildProgram", cat(what, "; the compiler says: ", log.c_str()));
}

ClProgram::~ClProgram() {
  if (connection_->is_here()) connection_->cl().clReleaseProgram(program_);
}

cl_kernel ClProgram::make_kernel(const std::string& entry) const {
  connection_->check_usable();
  cl_int code = CL_SUCCESS;
  cl_kernel kernel = connection_->cl().clCreateKernel(program_, entry.c_str(), &code);
  connection_->check(code, "clCreateKernel", cat("kernel ", entry));
  return kernel;
}

ClKernel::ClKernel(Ref<ClProgram> program, const Code& code)
    : program_(std::move(program)),
      name_(code.name),
      group_(code.group),
      kernel_(program_->make_kernel(code.entry)) {
  size_t most = 1;
  Connection& connection = program_->connection();
  const Functions& cl = connection.cl();
  const cl_int asked = cl.clGetKernelWorkGroupInfo(
      kernel_, connection.id(), CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, nullptr);
  most_threads_ = asked == CL_SUCCESS ? static_cast<int64_t>(most) : 1;
  const int64_t threads = group_[0] * group_[1] * group_[2];
  if (threads <= most_threads_) return;
  cl.clReleaseKernel(kernel_);
  throw_error(Status::Device, "kernel ", name_, " is of groups of ", threads,
              " threads; compiled for the device \"", connection.facts().name, "\" it can have ",
              most_threads_);
}

ClKernel::~ClKernel() {
  if (program_->connection().is_here()) program_->connection().cl().clReleaseKernel(kernel_);
}

void ClKernel::set(cl_uint index, size_t bytes, const void* value) {
  Connection& connection = program_->connection();
  connection.check(connection.cl().clSetKernelArg(kernel_, index, bytes, value), "clSetKernelArg",
                   cat("argument ", index, " of kernel ", name_));
}

void ClKernel::set_arguments(const Launch& launch, cl_mem status) {
  cl_uint at = 0;
  const auto number = [&](int64_t value) {
    const cl_long n = value;
    set(at++, sizeof n, &n);
  };
  for (const Argument& a : launch.arguments) {
    check_range(*a.buffer, a.byte_offset, 0);
    const cl_mem memory = static_cast<const ClBuffer&>(*a.buffer).memory();
    set(at++, sizeof(cl_mem), &memory);
    number(a.byte_offset);
  }
  for (const int64_t v : launch.variables) number(v);
  number(launch.begin);
  number(launch.end);
  set(at, sizeof(cl_mem), &status);
}

void ClKernel::enqueue(cl_command_queue queue, const Launch& launch) {
  const int64_t pieces = launch.end - launch.begin;
  if (pieces <= 0) return;
  Connection& connection = program_->connection();
  std::array<size_t, 3> local{1, 1, 1}, global{1, 1, 1};
  if (group_[0] > 0) {
    for (size_t axis = 0; axis < 3; ++axis) global[axis] = local[axis] = size_of(group_[axis]);
    global[0] *= size_of(pieces);
  } else {
    // Few pieces are for as many units; the last group is filled up, with items that do nothing.
    const int64_t a_unit = (pieces + connection.facts().units - 1) / connection.facts().units;
    const int64_t most = connection.facts().is_processor ? kItemsOnProcessor : kItemsTogether;
    const int64_t together = std::clamp<int64_t>(a_unit, 1, std::min(most, most_threads_));
    local[0] = size_of(together);
    global[0] = size_of((pieces + together - 1) / together * together);
  }
  connection.check(connection.cl().clEnqueueNDRangeKernel(queue, kernel_, 3, nullptr, global.data(),
                                                          local.data(), 0, nullptr, nullptr),
                   "clEnqueueNDRangeKernel", cat("kernel ", name_));
}

void ClEvent::wait() const {
  connection_->check_done(connection_->cl().clWaitForEvents(1, &event_), "clWaitForEvents",
                          "for what was launched");
}

bool ClEvent::has_happened() const {
  cl_int state = CL_QUEUED;
  connection_->check(connection_->cl().clGetEventInfo(event_, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                      sizeof state, &state, nullptr),
                     "clGetEventInfo", "the state of what was launched");
  return state == CL_COMPLETE;
}

cl_ulong ClEvent::time() const {
  cl_ulong nanoseconds = 0;
  connection_->check(
      connection_->cl().clGetEventProfilingInfo(event_, CL_PROFILING_COMMAND_END,
                                                sizeof nanoseconds, &nanoseconds, nullptr),
      "clGetEventProfilingInfo", "the time of what was launched");
  return nanoseconds;
}

ClEvent::~ClEvent() {
  if (connection_->is_here()) connection_->cl().clReleaseEvent(event_);
}

ClQueue::ClQueue(Device* device, Ref<Connection> connection)
    : connection_(std::move(connection)),
      status_(make_ref<ClBuffer>(device, connection_, int64_t{sizeof(OpenClStatus)})) {
  cl_int code = CL_SUCCESS;
  queue_ = connection_->cl().clCreateCommandQueue(connection_->context(), connection_->id(),
                                                  CL_QUEUE_PROFILING_ENABLE, &code);
  connection_->check(code, "clCreateCommandQueue", cat("for ", connection_->facts().model));
}

ClQueue::~ClQueue() {
  if (queue_ && connection_->is_here()) connection_->cl().clReleaseCommandQueue(queue_);
}

void ClQueue::write(cl_mem to, int64_t offset, const void* from, int64_t bytes, bool waits) const {
  connection_->check_usable();
  if (bytes == 0) return;
  connection_->check_done(connection_->cl().clEnqueueWriteBuffer(
                              queue_, to, waits ? CL_TRUE : CL_FALSE, size_of(offset),
                              size_of(bytes), from, 0, nullptr, nullptr),
                          "clEnqueueWriteBuffer", cat(bytes, " bytes"));
}

void ClQueue::read(void* to, cl_mem from, int64_t offset, int64_t bytes, bool waits) const {
  connection_->check_usable();
  if (bytes == 0) return;
  connection_->check_done(connection_->cl().clEnqueueReadBuffer(
                              queue_, from, waits ? CL_TRUE : CL_FALSE, size_of(offset),
                              size_of(bytes), to, 0, nullptr, nullptr),
                          "clEnqueueReadBuffer", cat(bytes, " bytes"));
}

void ClQueue::copy(cl_mem to, int64_t to_offset, cl_mem from, int64_t from_offset,
                   int64_t bytes) const {
  connection_->check_usable();
  if (bytes == 0 || (to == from && to_offset == from_offset)) return;
  connection_->check(connection_->cl().clEnqueueCopyBuffer(queue_, from, to, size_of(from_offset),
                                                           size_of(to_offset), size_of(bytes), 0,
                                                           nullptr, nullptr),
                     "clEnqueueCopyBuffer", cat(bytes, " bytes"));
}

void ClQueue::clear_status() const {
  connection_->check_usable();
  const cl_int none = 0;
  connection_->check(
      connection_->cl().clEnqueueFillBuffer(queue_, status_memory(), &none, sizeof none, 0,
                                            sizeof(OpenClStatus), 0, nullptr, nullptr),
      "clEnqueueFillBuffer", "the status of a queue");
}

int64_t ClQueue::status() const {
  OpenClStatus status;
  read(&status, status_memory(), 0, sizeof status, true);
  return status.check == 0 ? 0 : check_status(status.check - 1, status.position);
}

Ref<ClEvent> ClQueue::record() const {
  connection_->check_usable();
  cl_event event = nullptr;
  connection_->check(connection_->cl().clEnqueueMarkerWithWaitList(queue_, 0, nullptr, &event),
                     "clEnqueueMarkerWithWaitList", "in a queue");
  return make_ref<ClEvent>(connection_, event);
}

void ClQueue::flush() const {
  connection_->check(connection_->cl().clFlush(queue_), "clFlush", "of a queue");
}

void ClQueue::finish() const {
  connection_->check_usable();
  connection_->check_done(connection_->cl().clFinish(queue_), "clFinish", "of a queue");
}

void Pace::step() {
  stop_.check();
  const int64_t before = given_++;
  if (before == 0 || before % kLaunches != 0) return;
  queue_.flush();
  if (last_) last_->wait();
  last_ = queue_.record();
}

ClPrepared::ClPrepared(std::span<const Launch> launches) : launches_(launches) {
  kernels_.reserve(launches.size());
  for (const Launch& launch : launches)
    kernels_.push_back(static_cast<const ClExecutable&>(*launch.executable).make_kernel());
}

void ClPrepared::run(const Queue* on, const StopSignal& stop) {
  const auto& queue = static_cast<const ClQueue&>(*on);
  queue.connection().check_usable();
  if (is_set_for_ != on) {
    is_set_for_ = nullptr;
    for (size_t i = 0; i < kernels_.size(); ++i)
      kernels_[i]->set_arguments(launches_[i], queue.status_memory());
    is_set_for_ = on;
  }
  Pace pace(queue, stop);
  for (size_t i = 0; i < kernels_.size(); ++i) {
    pace.step();
    kernels_[i]->enqueue(queue.queue(), launches_[i]);
  }
  queue.flush();
}

}  // namespace tiny::opencl
