// What an archive of tiny.h is: tensors by name, of a file or set by the caller.
#pragma once

#include <algorithm>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/boundary.h"
#include "base/sort.h"
#include "io/archive.h"

namespace tiny {

// An owner of a tensor's handle; may be of none.
class Held {
 public:
  Held() = default;
  explicit Held(const tiny_tensor* tensor) : tensor_(const_cast<tiny_tensor*>(tensor)) {
    tiny_tensor_retain(tensor_);
  }
  Held(const Held& other) : Held(other.tensor_) {}
  Held(Held&& other) noexcept : tensor_(std::exchange(other.tensor_, nullptr)) {}
  Held& operator=(Held other) noexcept {
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~Held() { tiny_tensor_release(tensor_); }
  explicit operator bool() const { return tensor_ != nullptr; }
  tiny_tensor& operator*() const { return *tensor_; }
  tiny_tensor* operator->() const { return tensor_; }

 private:
  tiny_tensor* tensor_ = nullptr;
};

// A tensor of the file, or one that was set: then of the file's the name alone.
struct ArchiveEntry {
  tiny::NamedTensor stored;
  Held given;
};

inline bool is_before(const ArchiveEntry* entry, std::string_view name) {
  return entry->stored.name < name;
}

inline void require_fixed(const tiny_tensor& tensor) {
  require(tensor.is_fixed, Status::InvalidArgument, "a tensor of shape ", tensor.shape,
          " has a value in runs of a program alone, which bind its variables");
}

}  // namespace tiny

struct tiny_archive : tiny::CountedAs<tiny::HandleKind::Archive> {
  explicit tiny_archive(tiny_context& c) : context(&c) { c.retain(); }
  // Null if there is none of this name.
  tiny::ArchiveEntry* find(std::string_view name) const {
    const auto at = std::lower_bound(by_name.begin(), by_name.end(), name, tiny::is_before);
    return at != by_name.end() && (*at)->stored.name == name ? *at : nullptr;
  }
  // Those of a file, which are in no order yet.
  void fill(tiny::Archive file) {
    for (tiny::NamedTensor& tensor : file.tensors)
      by_name.push_back(
          entries
              .emplace_back(std::make_unique<tiny::ArchiveEntry>(std::move(tensor), tiny::Held()))
              .get());
    tiny::sort_stable(by_name, [](const tiny::ArchiveEntry* a, const tiny::ArchiveEntry* b) {
      return tiny::is_before(a, b->stored.name);
    });
    metadata.assign(std::make_move_iterator(file.metadata.begin()),
                    std::make_move_iterator(file.metadata.end()));
  }
  tiny::ArchiveEntry& add(const std::string& name);
  // The tensor goes to `gone`, the name stays where it is.  False if there is none of this name.
  bool remove(std::string_view name, tiny::Held& gone);
  // Null if there is none under this key.
  std::string* find_text(std::string_view key) {
    for (auto& [known, text] : metadata)
      if (known == key) return &text;
    return nullptr;
  }

  tiny_context* context;
  mutable std::mutex mutex;  // of what follows; held to look and to change
  std::vector<std::unique_ptr<tiny::ArchiveEntry>> entries;
  std::vector<tiny::ArchiveEntry*> by_name;                  // in the order of names
  std::vector<std::unique_ptr<tiny::ArchiveEntry>> removed;  // whose names are lent
  std::list<std::pair<std::string, std::string>> metadata;   // texts stay where they are
};

namespace tiny {

// A call that looks at an archive or changes it, alone: waits for no context.
inline tiny_status with_archive(const char* call, const tiny_archive* archive,
                                FunctionRef<void()> body) noexcept {
  return guarded(call, [&] {
    const std::lock_guard lock(required(archive, "archive").mutex);
    body();
  });
}

}  // namespace tiny
