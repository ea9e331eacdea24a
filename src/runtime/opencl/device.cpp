#include "runtime/opencl/device.h"

#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "runtime/host.h"
#include "runtime/opencl/queue.h"

namespace tiny {
namespace {

using opencl::ClBuffer;
using opencl::ClExecutable;
using opencl::ClPrepared;
using opencl::ClProgram;
using opencl::ClQueue;
using opencl::Connection;

class OpenClDeviceOfDriver : public OpenClDevice {
 public:
  OpenClDeviceOfDriver(const DeviceNumber& which, int64_t memory_kept)
      : connection_(make_ref<Connection>(which, memory_kept)),
        own_queue_(make_ref<ClQueue>(this, connection_)) {}

  const opencl::Facts& facts() const override { return connection_->facts(); }
  const std::string& name() const override { return facts().name; }
  bool sees_host() const override { return false; }
  bool is_late() const override { return true; }
  // Pace looks at it while launches are given, and nobody later.
  bool keeps_signals() const override { return false; }
  int64_t kept_bytes() override { return connection_->kept_bytes(); }
  void release_kept() override { connection_->release_kept(); }

  Ref<Buffer> wrap(void*, int64_t) override {
    throw_error(Status::Device, "the device ", name(), " does not see the host's memory");
  }
  void copy_in(const Queue* queue, Buffer& to, int64_t offset, const void* from,
               int64_t bytes) override {
    check_range(to, offset, bytes);
    settle(to);
    counts().copied(bytes);
    on(queue).write(memory_of(to), offset, from, bytes, !queue);
  }
  void copy_out(const Queue* queue, void* to, const Buffer& from, int64_t offset,
                int64_t bytes) override {
    check_range(from, offset, bytes);
    settle(from);
    counts().copied(bytes);
    on(queue).read(to, memory_of(from), offset, bytes, !queue);
  }
  void copy(const Queue* queue, Buffer& to, int64_t to_offset, const Buffer& from,
            int64_t from_offset, int64_t bytes) override {
    check_range(to, to_offset, bytes);
    check_range(from, from_offset, bytes);
    settle(to);
    settle(from);
    counts().copied(bytes);
    on(queue).copy(memory_of(to), to_offset, memory_of(from), from_offset, bytes);
    if (!queue) own_queue_->finish();
  }

  using Device::load;
  std::vector<Ref<Executable>> load(std::span<const Code> codes, const StopSignal& stop) override {
    std::unordered_map<std::string_view, Ref<ClProgram>> programs;
    std::vector<Ref<Executable>> out;
    out.reserve(codes.size());
    for (const Code& code : codes) {
      stop.check();
      require(code.kind == CodeKind::OpenCl, Status::Device, "kernel ", code.name,
              " is not OpenCL C");
      Ref<ClProgram>& program = programs[code.text];
      if (!program) program = make_ref<ClProgram>(connection_, code.text, what_of(codes, code));
      out.push_back(make_ref<ClExecutable>(program, code));
    }
    return out;
  }

  void launch(const Queue* queue, const Launch& launch, const StopSignal&) override {
    auto& executable = static_cast<ClExecutable&>(*launch.executable);
    const ClQueue& to = on(queue);
    connection_->check_usable();
    {
      const std::lock_guard held(executable.lock());
      executable.kernel().set_arguments(launch, to.status_memory());
      executable.kernel().enqueue(to.queue(), launch);
    }
    if (!queue) own_queue_->finish();
  }
  void launch_all(const Queue* queue, std::span<const Launch> launches,
                  const StopSignal& stop) override {
    opencl::Pace pace(on(queue), stop);
    for (const Launch& one : launches) {
      pace.step();
      launch(queue, one, stop);
    }
    on(queue).flush();
  }
  Ref<Prepared> prepare(std::span<const Launch> launches) override {
    return make_ref<ClPrepared>(launches);
  }

  Ref<Queue> make_queue() override { return make_ref<ClQueue>(this, connection_); }
  void wait(const Queue* queue) override {
    if (queue) on(queue).finish();
  }
  void clear_status(const Queue& queue) override { on(&queue).clear_status(); }
  int64_t status(const Queue& queue) override { return on(&queue).status(); }
  // Who waits for it gives nothing before.
  Ref<Event> record(const Queue& queue) override {
    Ref<Event> event = on(&queue).record();
    on(&queue).flush();
    return event;
  }
  void wait_until(const Event& event) override {
    static_cast<const opencl::ClEvent&>(event).wait();
  }
  bool has_happened(const Event& event) override {
    return static_cast<const opencl::ClEvent&>(event).has_happened();
  }
  double seconds(const Event& from, const Event& to) const override {
    const auto begin = static_cast<const opencl::ClEvent&>(from).time();
    const auto end = static_cast<const opencl::ClEvent&>(to).time();
    constexpr double kNanosecond = 1e-9;
    return static_cast<double>(static_cast<int64_t>(end - begin)) * kNanosecond;
  }

 protected:
  Ref<Buffer> make_buffer(int64_t bytes) override {
    return make_ref<ClBuffer>(this, connection_, bytes);
  }

 private:
  // What is done without a queue is done at once, in one that nobody else has.
  const ClQueue& on(const Queue* queue) const {
    return queue ? static_cast<const ClQueue&>(*queue) : *own_queue_;
  }
  static cl_mem memory_of(const Buffer& buffer) {
    return static_cast<const ClBuffer&>(buffer).memory();
  }
  static std::string what_of(std::span<const Code> codes, const Code& first) {
    int64_t count = 0;
    for (const Code& code : codes) count += code.text == first.text;
    return cat("kernel ", first.name, count > 1 ? cat(" and ", count - 1, " more") : "");
  }

  Ref<Connection> connection_;
  Ref<ClQueue> own_queue_;
};

}  // namespace

std::unique_ptr<OpenClDevice> make_opencl_device(const DeviceNumber& which, int64_t memory_kept) {
  return std::make_unique<OpenClDeviceOfDriver>(which, memory_kept);
}

std::vector<opencl::Facts> opencl_devices() {
  const opencl::Functions functions = opencl::load_functions();
  std::vector<opencl::Facts> out;
  for (opencl::FoundDevice& device : opencl::find_devices(functions))
    out.push_back(std::move(device.facts));
  return out;
}

}  // namespace tiny
