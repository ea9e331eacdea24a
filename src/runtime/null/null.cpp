#include "runtime/null/null.h"

#include <cstring>
#include <utility>

#include "runtime/host.h"

namespace tiny {

namespace {

// Its own buffers have no memory; the caller's, where they are wrapped, stay what they are.
class NullDevice : public HostDevice {
 public:
  explicit NullDevice(std::string name) : HostDevice(std::move(name)) {}

  Ref<Buffer> make_buffer(int64_t bytes) override { return make_ref<Buffer>(this, bytes); }
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

  using Device::load;
  std::vector<Ref<Executable>> load(std::span<const Code> codes, const StopSignal&) override {
    std::vector<Ref<Executable>> loaded;
    for (size_t i = 0; i < codes.size(); ++i) loaded.push_back(make_ref<Executable>());
    return loaded;
  }
  void launch(const Queue*, const Launch&, const StopSignal&) override {}
};

}  // namespace

std::unique_ptr<Device> make_null_device(std::string name) {
  return std::make_unique<NullDevice>(std::move(name));
}

}  // namespace tiny
