#include "runtime/null/null.h"

#include <cstring>

#include "base/error.h"

namespace tiny {

namespace {

// The caller's memory, which is the host's on every device.
class WrappedBuffer : public Buffer {
 public:
  WrappedBuffer(Device* device, void* data, int64_t bytes)
      : Buffer(device, bytes), data_(static_cast<std::byte*>(data)) {}
  std::byte* host() const override { return data_; }

 private:
  std::byte* data_;
};

class NullDevice : public Device {
 public:
  const std::string& name() const override { return name_; }

  Ref<Buffer> make_buffer(int64_t bytes) override { return make_ref<Buffer>(this, bytes); }
  Ref<Buffer> wrap(void* data, int64_t bytes) override {
    return make_ref<WrappedBuffer>(this, data, bytes);
  }

  void copy_in(const Queue*, Buffer& to, int64_t offset, const void*, int64_t bytes) override {
    check_range(to, offset, bytes);
    counts().copied(bytes);
  }
  void copy_out(const Queue*, void* to, const Buffer& from, int64_t offset,
                int64_t bytes) override {
    check_range(from, offset, bytes);
    counts().copied(bytes);
    if (bytes > 0) std::memset(to, 0, static_cast<size_t>(bytes));
  }
  void copy(const Queue*, Buffer& to, int64_t to_offset, const Buffer& from, int64_t from_offset,
            int64_t bytes) override {
    check_range(to, to_offset, bytes);
    check_range(from, from_offset, bytes);
    counts().copied(bytes);
  }

  std::vector<Ref<Executable>> load(std::span<const Code> codes) override {
    std::vector<Ref<Executable>> loaded;
    for (size_t i = 0; i < codes.size(); ++i) loaded.push_back(make_ref<Executable>());
    return loaded;
  }
  void launch(const Queue*, const Launch&) override {}
  Ref<Queue> make_queue() override { return make_ref<Queue>(); }
  void wait(const Queue*) override {}

 private:
  static void check_range(const Buffer& buffer, int64_t offset, int64_t bytes) {
    require(
        offset >= 0 && bytes >= 0 && offset <= buffer.bytes() && bytes <= buffer.bytes() - offset,
        Status::InvalidArgument, "bytes ", offset, " to ", offset, " + ", bytes,
        " are outside a buffer of ", buffer.bytes());
  }

  std::string name_ = "null";
};

}  // namespace

std::unique_ptr<Device> make_null_device() {
  return std::make_unique<NullDevice>();
}

}  // namespace tiny
