// Files as bytes in memory, mapped or read, and kept alive by whoever still looks at a part of
// them.
//
// The only place of the engine that opens files named by untrusted data: `open_beneath` never
// leaves its folder, neither by `..`, nor by an absolute path, nor through a symbolic link.
// A mapped file must not be truncated while in use: the system answers that with SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ref.h"
#include "base/stop.h"
#include "io/limits.h"
#include "runtime/device.h"

namespace tiny {

// What holds bytes that others look at.
class BytesOwner : public RefCounted {
 public:
  // Whether bytes that have left memory can be had again.
  virtual bool can_unload() const { return false; }
  // Nobody is likely to look at these bytes of it soon: their memory may go.
  virtual void unload(std::span<const std::byte>) const {}
};

// A read-only view of bytes together with a reference to what holds them.  May be unaligned.
class SharedBytes {
 public:
  SharedBytes() = default;
  SharedBytes(Ref<const BytesOwner> owner, std::span<const std::byte> view)
      : owner_(std::move(owner)), view_(view) {}
  // Takes the vector's memory.
  static SharedBytes own(std::vector<std::byte> bytes);
  static SharedBytes copy(std::string_view bytes);

  const std::byte* data() const { return view_.data(); }
  int64_t size() const { return static_cast<int64_t>(view_.size()); }
  std::span<const std::byte> view() const { return view_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(view_.data()), view_.size()};
  }
  const Ref<const BytesOwner>& owner() const { return owner_; }
  bool can_unload() const { return owner_ && owner_->can_unload(); }
  // Bytes of a mapped file leave memory; whoever looks at them reads them from the file again.
  void unload() const {
    if (owner_) owner_->unload(view_);
  }
  // The bytes [offset, offset + size), which must lie inside.
  SharedBytes part(int64_t offset, int64_t size) const;

 private:
  Ref<const BytesOwner> owner_;
  std::span<const std::byte> view_;
};

// Memory that whoever made it fills before anybody looks.
class NewBytes final : public BytesOwner {
 public:
  // Counts in `use` (may be null) as long as it lives; Error{Limit} if there is no room.
  NewBytes(Ref<MemoryUse> use, int64_t bytes)
      : room_(std::move(use), bytes),
        bytes_(new std::byte[static_cast<size_t>(bytes)]),
        size_(static_cast<size_t>(bytes)) {}
  std::byte* data() const { return bytes_.get(); }
  static SharedBytes shared(const Ref<NewBytes>& all) { return {all, {all->data(), all->size_}}; }

 private:
  MemoryRoom room_;
  std::unique_ptr<std::byte[]> bytes_;
  size_t size_;
};

// How a file's bytes come into memory.
struct FileAccess {
  bool is_copied = false;            // what becomes of the file does not touch a copy
  Ref<MemoryUse> memory;             // in which copies count as long as they live; null: in none
  const StopSignal* stop = nullptr;  // of the call that reads; null: it goes on to the end
};

// The bytes of the regular file at `path`, or Error{Io}; more than `bytes_max` is Error{Limit}.
SharedBytes open_file(const std::string& path, const FileAccess& access,
                      int64_t bytes_max = INT64_MAX);
inline SharedBytes map_file(const std::string& path, int64_t bytes_max = INT64_MAX) {
  return open_file(path, {}, bytes_max);
}

// Writes the parts, one after the other, into the file at `path`, or throws Error{Io}.  The file
// gets its name, or takes another's place, once it is whole and on the disk: who has an old one
// mapped keeps it, and it stays if this fails or the process ends; only where the folder takes no
// other file it is written in place.
// What `stop` (may be null) says is thrown on the way.
void write_file(const std::string& path, std::span<const std::string_view> parts,
                const StopSignal* stop = nullptr);
void write_file(const std::string& path, std::string_view bytes);

// Opens the regular file `location` below the open folder for reading and returns its descriptor.
// A location that leaves the folder is Error{InvalidModel}, a missing file Error{Io}.
// `use_openat2` false takes the path for kernels without that call: one component at a time.
int open_beneath(int folder, const std::string& location, bool use_openat2 = true);

// The weight files beside one model, each opened once.
class ExternalFiles {
 public:
  // Locations are relative to `folder`, which is opened on first use.
  ExternalFiles(std::string folder, const Limits& limits, FileAccess access = {})
      : folder_(std::move(folder)), limits_(limits), access_(std::move(access)) {}
  ExternalFiles(const ExternalFiles&) = delete;
  ExternalFiles& operator=(const ExternalFiles&) = delete;
  ~ExternalFiles();

  // `size` bytes of the file from `offset` on; Error{InvalidModel} where they do not lie inside it.
  SharedBytes read(const std::string& location, int64_t offset, int64_t size);
  // The whole file.
  const SharedBytes& file(const std::string& location);

 private:
  std::string folder_;
  Limits limits_;
  FileAccess access_;
  int folder_fd_ = -1;
  std::map<std::string, SharedBytes> files_;
};

}  // namespace tiny
