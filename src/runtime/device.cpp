#include "runtime/device.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/pieces.h"
#include "runtime/in_flight.h"

namespace tiny {

namespace {

constexpr size_t kAlignment = 256;

// Memory of the caller's allocator.
class GivenBuffer : public Buffer {
 public:
  GivenBuffer(Device* device, int64_t bytes, const Allocator& allocator)
      : Buffer(device, bytes), allocator_(allocator), size_(static_cast<size_t>(bytes)) {
    if (size_ == 0) size_ = 1;
    data_ = allocator_.allocate(allocator_.user, size_, kAlignment);
    require(data_ != nullptr, Status::OutOfMemory, "the allocator that was set has no memory for ",
            "a buffer of ", bytes, " bytes");
    if (std::bit_cast<uintptr_t>(data_) % kAlignment == 0) return;
    give_back();
    throw_error(Status::InvalidArgument, "the allocator that was set gave memory that is not ",
                "aligned to ", kAlignment, " bytes");
  }
  std::byte* host() const override { return static_cast<std::byte*>(data_); }

 private:
  ~GivenBuffer() override { give_back(); }
  void give_back() { allocator_.release(allocator_.user, data_, size_, kAlignment); }

  Allocator allocator_;
  size_t size_;
  void* data_ = nullptr;
};

}  // namespace

void MemoryUse::take(int64_t bytes) {
  const int64_t before = used_.fetch_add(bytes, std::memory_order_relaxed);
  if (limit_ <= 0 || bytes <= limit_ - before) return;
  give_back(bytes);
  throw_error(Status::Limit, "a buffer of ", bytes, " bytes beside ", before,
              " in use: more than the limit memory_limit = ", limit_,
              "; a higher one is set with the option \"memory_limit\"");
}

Device::Device() : in_flight_(std::make_unique<InFlight>(*this)) {
}

Device::~Device() = default;

void Device::settle(const Buffer& buffer) {
  in_flight_->wait_for(buffer);
}

// What is in flight holds memory.
Ref<Buffer> Device::allocate(int64_t bytes) {
  require(bytes >= 0, Status::InvalidArgument, "a buffer of ", bytes, " bytes");
  if (!is_late()) return allocate_now(bytes);
  try {
    return allocate_now(bytes);
  } catch (const Error& e) {
    const bool is_short = e.status() == Status::OutOfMemory || e.status() == Status::Limit;
    if (!is_short || !in_flight_->wait()) throw;
  }
  return allocate_now(bytes);
}

Ref<Buffer> Device::allocate_now(int64_t bytes) {
  memory_->take(bytes);
  Ref<Buffer> buffer;
  try {
    if (allocator_.allocate && sees_host())
      buffer = make_ref<GivenBuffer>(this, bytes, allocator_);
    else
      buffer = make_buffer(bytes);
  } catch (...) {
    memory_->give_back(bytes);
    throw;
  }
  buffer->count_in(memory_);
  counts_.allocated(bytes);
  return buffer;
}

Ref<Executable> Device::load_function(const std::string& what, Ref<const HostFunction>) {
  throw_error(Status::Unsupported, what, " is a function of the host, which the device \"", name(),
              "\" cannot call");
}

namespace {

// The launches themselves.
class PlainLaunches : public Prepared {
 public:
  PlainLaunches(Device& device, std::span<const Launch> launches)
      : device_(device), launches_(launches) {}
  void run(const Queue* queue, const StopSignal& stop) override {
    device_.launch_all(queue, launches_, stop);
  }

 private:
  Device& device_;
  std::span<const Launch> launches_;
};

}  // namespace

Ref<Prepared> Device::prepare(std::span<const Launch> launches) {
  return make_ref<PlainLaunches>(*this, launches);
}

void copy_between(const Argument& to, const Argument& from, int64_t bytes, const StopSignal& stop) {
  Device &target = to.buffer->device(), &source = from.buffer->device();
  if (target.driver() && target.driver() == source.driver() && target.copy_peer(to, from, bytes))
    return;
  // The host's own memory needs no other between.
  std::byte* into = to.buffer->host();
  const std::byte* data = from.buffer->host();
  std::vector<std::byte> between(into || data ? 0
                                              : static_cast<size_t>(std::min(bytes, kPieceBytes)));
  for_each_piece_of(bytes, 1, &stop, [&](int64_t at, int64_t size) {
    std::byte* taken = into ? into + to.byte_offset + at : between.data();
    if (into || !data) source.copy_out(nullptr, taken, *from.buffer, from.byte_offset + at, size);
    if (into) return;
    target.copy_in(nullptr, *to.buffer, to.byte_offset + at,
                   data ? data + from.byte_offset + at : taken, size);
  });
}

void Device::launch_all(const Queue* queue, std::span<const Launch> launches,
                        const StopSignal& stop) {
  for (const Launch& one : launches) {
    stop.check();
    launch(queue, one, stop);
  }
  stop.check_known();
}

}  // namespace tiny
