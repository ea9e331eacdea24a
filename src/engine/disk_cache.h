// What was compiled, on disk, so that a process need not make what an earlier one has made.
//
//   Keyed     by what decides the content and by what all keys of a context have in common: the
//             build of the library, the target, the options.  A file holds its whole key, which is
//             compared.
//   Harmless  a file that is cut off, damaged or of another key is no file; files are written aside
//             and renamed; the folder and every file must belong to the user, and to nobody else.
//   Silent    nothing here fails a call: a folder that cannot be used means no cache.
//   Bounded   the files used least recently go when there are too many bytes of them, a share of
//             the files at a time, so that nobody waits for long.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/flags.h"

namespace tiny {

// The content of a file, which stays for as long as this.
class DiskContent {
 public:
  // The file's bytes, mapped.
  DiskContent(void* mapping, size_t size) : mapping_(mapping), size_(size) {}
  // A part of what somebody else keeps.
  explicit DiskContent(std::string_view view) : view_(view) {}
  DiskContent(DiskContent&& other) noexcept
      : mapping_(std::exchange(other.mapping_, nullptr)), size_(other.size_), view_(other.view_) {}
  DiskContent& operator=(DiskContent&&) = delete;
  ~DiskContent();

  std::string_view mapped() const { return {static_cast<const char*>(mapping_), size_}; }
  void show(std::string_view part) { view_ = part; }
  std::string_view view() const { return view_; }

 private:
  void* mapping_ = nullptr;
  size_t size_ = 0;
  std::string_view view_;
};

// Contents of files by their names, out of one file that holds them all.
using DiskBundle = std::map<std::string_view, std::string_view>;

class DiskCache {
 public:
  // Off if the flags say so, if they ask to see compilation (spec, debug from 3 on,
  // graphuops, track_match_stats, viz), if the build
  // has no identity, or if the folder cannot be used; told at debug 1.
  DiskCache(const Flags& flags, std::string_view target_key);
  // By other flags from now on; within a building call.
  void open(const Flags& flags);

  bool enabled() const { return is_on_.load(std::memory_order_relaxed); }
  // Empty if it is off; any thread may ask.
  std::string folder() const { return enabled() ? folder_ : std::string(); }
  // The file of a key: 128 bits of it.
  std::string name_of(std::string_view key) const;
  std::optional<DiskContent> find(std::string_view key) const;
  // By the file's name alone, where that is all that is known; from the bundle if that has it.
  std::optional<DiskContent> find_named(const std::string& name,
                                        const DiskBundle& bundle = {}) const;
  void store(std::string_view key, std::string_view content);

 private:
  std::optional<DiskContent> read_named(const std::string& name, const std::string_view* key) const;
  void trim();

  std::string target_key_;
  std::atomic<bool> is_on_{false};
  std::string folder_;  // set once
  std::string common_;  // of all keys
  int64_t written_ = 0;
  bool trimmed_ = false;
  Log log_;
  bool tell_ = false;
};

}  // namespace tiny
