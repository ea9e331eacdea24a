// One entry of a unit.
#pragma once

#include <array>
#include <string>

#include "ir/linear.h"

namespace tiny::ptx {

// The name of the memory whose size is given at the launch, which all entries of a unit share.
inline constexpr const char* kDynamicShared = "shared_dynamic";

struct Entry {
  std::string name;
  std::string text;
  std::array<int64_t, 3> block{};
  int64_t shared_alignment = 0;
  int64_t dynamic_shared_bytes = 0;
};

// `has_copies`: the device has copies that run beside the thread.
Entry make_entry(const LinearProgram& program, bool has_copies);

}  // namespace tiny::ptx
