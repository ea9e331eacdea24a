// Counting the allocations of the whole process, libtiny's included.
#pragma once

#include <cstdint>
#include <optional>

namespace tiny::cli {

// Calls of malloc and its kin since this was first called, on all threads; nothing under a
// sanitizer, which has its own.
std::optional<uint64_t> allocations();

}  // namespace tiny::cli
