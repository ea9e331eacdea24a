// What a driver's library does over memory of several devices at once.  Knows bytes, and the few
// elements that such libraries add up.
#pragma once

#include <cstdint>
#include <span>

#include "base/ref.h"
#include "runtime/device.h"

namespace tiny {

enum class CollectiveElement : uint8_t {
  Int8,
  UInt8,
  Int32,
  UInt32,
  Int64,
  UInt64,
  Float32,
  Float64
};
enum class CollectiveSum : uint8_t { Sum, Product };

// Over certain devices, in an order; each gives what lies at `from[i]` and gets what is to lie at
// `to[i]`.  Done when a call returns; Error{Device} with the library's words.
class Collectives : public RefCounted {
 public:
  // Each gets, element by element, what all come to.
  virtual void all_reduce(std::span<const Argument> from, std::span<const Argument> to,
                          int64_t count, CollectiveElement element, CollectiveSum how) = 0;
  // Each gets the bytes of all, one device's after the other's.
  virtual void all_gather(std::span<const Argument> from, std::span<const Argument> to,
                          int64_t bytes) = 0;
};

}  // namespace tiny
