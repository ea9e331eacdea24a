// 64-bit hashing: structure hashes of UOps, kernels and cache keys.  Not for untrusted keys.
#pragma once

#include <cstddef>
#include <cstdint>
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

// FNV-1a over the bytes, then mixed.
constexpr uint64_t hash_bytes(std::string_view bytes, uint64_t seed = 0) {
  uint64_t h = 0xCBF29CE484222325u ^ seed;
  for (char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash_mix(h, bytes.size());
}

}  // namespace tiny
