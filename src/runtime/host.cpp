#include "runtime/host.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <new>

#include "base/checked.h"
#include "base/error.h"

namespace tiny {

namespace {

constexpr std::align_val_t kAlignment{256};
constexpr int64_t kStaggeredFrom = 128 << 10;  // bytes, to which a page or two are little

class HeapBuffer : public Buffer {
 public:
  HeapBuffer(Device* device, int64_t bytes) : Buffer(device, bytes), memory_(bytes) {}
  std::byte* host() const override { return memory_.data; }

 private:
  AlignedMemory memory_;
};

// Starts `stagger` bytes behind the start of a page.
class StaggeredBuffer : public Buffer {
 public:
  StaggeredBuffer(Device* device, int64_t bytes, int64_t page, int64_t stagger)
      : Buffer(device, bytes), memory_(checked_add(bytes, page + stagger, "a buffer's size")) {
    const auto start = std::bit_cast<uintptr_t>(memory_.data);
    const auto behind = static_cast<int64_t>(start % static_cast<uintptr_t>(page));
    data_ = memory_.data + (behind == 0 ? 0 : page - behind) + stagger;
  }
  std::byte* host() const override { return data_; }

 private:
  AlignedMemory memory_;
  std::byte* data_ = nullptr;
};

class WrappedBuffer : public Buffer {
 public:
  WrappedBuffer(Device* device, void* data, int64_t bytes)
      : Buffer(device, bytes), data_(static_cast<std::byte*>(data)) {}
  std::byte* host() const override { return data_; }
  bool rewrap(void* data, int64_t bytes) override {
    data_ = static_cast<std::byte*>(data);
    resize(bytes);
    return true;
  }

 private:
  std::byte* data_;
};

// The address of a range of a buffer that must lie in it.
std::byte* range(const Buffer& buffer, int64_t offset, int64_t bytes) {
  check_range(buffer, offset, bytes);
  std::byte* data = buffer.host();
  require(data != nullptr || bytes == 0, Status::Device, "the buffer is not in host memory");
  return data == nullptr ? nullptr : data + offset;
}

void copy_bytes(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memmove(to, from, static_cast<size_t>(bytes));
}

}  // namespace

void check_range(const Buffer& buffer, int64_t offset, int64_t bytes) {
  require(offset >= 0 && bytes >= 0 && offset <= buffer.bytes() && bytes <= buffer.bytes() - offset,
          Status::InvalidArgument, "bytes ", offset, " to ", offset, " + ", bytes,
          " are outside a buffer of ", buffer.bytes());
}

AlignedMemory::AlignedMemory(int64_t size) : bytes(size) {
  require(size >= 0, Status::InvalidArgument, "a buffer of ", size, " bytes");
  data = static_cast<std::byte*>(
      ::operator new(static_cast<size_t>(std::max<int64_t>(size, 1)), kAlignment, std::nothrow));
  require(data != nullptr, Status::OutOfMemory, "no memory for a buffer of ", size, " bytes");
}

AlignedMemory::~AlignedMemory() {
  ::operator delete(data, kAlignment);
}

HostDevice::~HostDevice() {
  delete scratch_.load();
}

Ref<Buffer> HostDevice::make_buffer(int64_t bytes) {
  if (bytes < kStaggeredFrom) return make_ref<HeapBuffer>(this, bytes);
  return make_ref<StaggeredBuffer>(this, bytes, kPageBytes, next_stagger() % kPageBytes);
}

Ref<Buffer> HostDevice::wrap(void* data, int64_t bytes) {
  require(bytes >= 0 && (data != nullptr || bytes == 0), Status::InvalidArgument,
          "memory to wrap: null, or of negative size");
  return make_ref<WrappedBuffer>(this, data, bytes);
}

void HostDevice::copy_in(const Queue*, Buffer& to, int64_t offset, const void* from,
                         int64_t bytes) {
  copy_bytes(range(to, offset, bytes), from, bytes);
  counts().copied(bytes);
}

void HostDevice::copy_out(const Queue*, void* to, const Buffer& from, int64_t offset,
                          int64_t bytes) {
  copy_bytes(to, range(from, offset, bytes), bytes);
  counts().copied(bytes);
}

void HostDevice::copy(const Queue*, Buffer& to, int64_t to_offset, const Buffer& from,
                      int64_t from_offset, int64_t bytes) {
  copy_bytes(range(to, to_offset, bytes), range(from, from_offset, bytes), bytes);
  counts().copied(bytes);
}

void HostDevice::launch(const Queue* queue, const Launch& launch, const StopSignal& stop) {
  const auto& executable = static_cast<const HostExecutable&>(*launch.executable);
  executable.check_launch(launch);
  std::array<void*, 64> few;
  std::vector<void*> many;
  std::span<void*> addresses(few.data(), std::min(few.size(), launch.arguments.size()));
  if (launch.arguments.size() > few.size()) {
    many.resize(launch.arguments.size());
    addresses = many;
  }
  for (size_t i = 0; i < launch.arguments.size(); ++i)
    addresses[i] = range(*launch.arguments[i].buffer, launch.arguments[i].byte_offset, 0);
  std::unique_ptr<AlignedMemory> scratch(scratch_.exchange(nullptr));
  if (!scratch || scratch->bytes < executable.scratch_bytes())
    scratch = std::make_unique<AlignedMemory>(executable.scratch_bytes());
  int64_t nobody_asked = 0;
  executable.run({addresses.data(), launch.variables.data(), scratch->data, launch.begin,
                  launch.end, 0,
                  queue ? &static_cast<const HostQueue&>(*queue).status : &nobody_asked, &stop});
  delete scratch_.exchange(scratch.release());
}

namespace {

class FunctionExecutable : public HostExecutable {
 public:
  FunctionExecutable(const std::string& name, Ref<const HostFunction> function)
      : HostExecutable(name, 0), function_(std::move(function)) {}
  void run(const KernelArgs& args) const override { function_->run(args); }

 private:
  Ref<const HostFunction> function_;
};

}  // namespace

Ref<Executable> HostDevice::load_function(const std::string& name,
                                          Ref<const HostFunction> function) {
  return make_ref<FunctionExecutable>(name, std::move(function));
}

Ref<Queue> HostDevice::make_queue() {
  return make_ref<HostQueue>();
}

void HostDevice::wait(const Queue*) {
}

void HostDevice::clear_status(const Queue& queue) {
  static_cast<const HostQueue&>(queue).status = 0;
}

int64_t HostDevice::status(const Queue& queue) {
  return static_cast<const HostQueue&>(queue).status;
}

namespace {

class HostEvent : public Event {
 public:
  const std::chrono::steady_clock::time_point at = std::chrono::steady_clock::now();
};

}  // namespace

Ref<Event> HostDevice::record(const Queue&) {
  return make_ref<HostEvent>();
}

double HostDevice::seconds(const Event& from, const Event& to) const {
  const auto at = [](const Event& e) { return static_cast<const HostEvent&>(e).at; };
  return std::chrono::duration<double>(at(to) - at(from)).count();
}

}  // namespace tiny
