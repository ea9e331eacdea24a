// Rendered kernels on disk, so that a process need not compile what an earlier one has compiled.
//
//   Keyed     by the kernel's structure and by what all keys of a context have in common: the build
//             of the library, the target, the options.  A file holds its whole key, which is
//             compared.
//   Harmless  a file that is cut off, damaged or of another key is no file; files are written aside
//             and renamed; the folder and every file must belong to the user, and to nobody else.
//   Silent    nothing here fails a call: a folder that cannot be used means no cache.
//   Bounded   the files used least recently go when there are too many bytes of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/flags.h"
#include "engine/program.h"
#include "runtime/device.h"

namespace tiny {

struct StoredKernel {
  Code code;
  int64_t threads_extent = 0;
  KernelInfo info;
};

class CodeCache {
 public:
  // Off if the flags say so, if they ask to see compilation (spec, debug from 3 on,
  // graphuops, track_match_stats), if the build
  // has no identity, or if the folder cannot be used; told on stderr at debug 1.
  CodeCache(const Flags& flags, std::string_view target_key);

  bool enabled() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }
  std::optional<StoredKernel> find(std::string_view kernel_key);
  // Machine code and bytecode are kept; other kinds are not.
  void store(std::string_view kernel_key, const StoredKernel& kernel);

 private:
  std::string path_of(std::string_view key) const;
  void trim();

  std::string folder_;  // empty: off
  std::string common_;  // of all keys
  int64_t written_ = 0;
  bool trimmed_ = false;
  bool tell_ = false;
};

}  // namespace tiny
