// How much of a mapping is in memory, as the system counts it for this process.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <stdexcept>

namespace tiny::testing {

// Bytes of the mapping around `address` whose pages this process has.
inline int64_t resident_bytes(const void* address) {
  std::FILE* file = std::fopen("/proc/self/smaps", "r");
  if (!file) throw std::runtime_error("no /proc/self/smaps");
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  int64_t kilobytes = -1;
  bool inside = false;
  char line[4096];
  while (kilobytes < 0 && std::fgets(line, sizeof line, file)) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
      inside = wanted >= begin && wanted < end;
    else if (inside)
      std::sscanf(line, "Rss: %" SCNd64 " kB", &kilobytes);
  }
  std::fclose(file);
  if (kilobytes < 0) throw std::runtime_error("the address is in no mapping");
  return kilobytes * 1024;
}

}  // namespace tiny::testing
