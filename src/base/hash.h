// 64-bit hashing: structure hashes of UOps, kernels and cache keys.  Not for untrusted keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tiny {

// Mixes `value` into `seed`: not symmetric, no fixed point at 0, every input bit reaches every
// output bit.
constexpr uint64_t hash_mix(uint64_t seed, uint64_t value) {
  uint64_t h = (seed + 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
  h = (h ^ (h >> 31)) + value;
  h = (h ^ (h >> 30)) * 0xD6E8FEB86659FD93u;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
  return h ^ (h >> 31);
}

// Over the bytes, eight at a time.
inline uint64_t hash_bytes(std::string_view bytes, uint64_t seed = 0) {
  uint64_t h = hash_mix(seed, bytes.size());
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= sizeof(uint64_t); at += sizeof(uint64_t), left -= sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    h = hash_mix(h, word);
  }
  uint64_t rest = 0;
  if (left > 0) std::memcpy(&rest, at, left);
  return hash_mix(h, rest);
}

}  // namespace tiny
