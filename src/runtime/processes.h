// Processes that compute together, on one machine or several, in a ring: each gives bytes to the
// next one and takes them from the one before.  How they get there a library of its own knows
// (base/transport_abi.h), which is loaded when it is asked for.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/ref.h"

namespace tiny {

class Processes : public RefCounted {
 public:
  virtual int64_t rank() const = 0;
  virtual int64_t count() const = 0;
  // Returns when both are done; all processes of the ring call it.  Error{Io} if one has gone.
  virtual void exchange(std::span<const std::byte> to_next,
                        std::span<std::byte> from_previous) const = 0;
};

// Of the library, "libtiny_mpi.so" where none is named.  Error{Unsupported} that says what is
// missing where there is none, or none of this version.
Ref<Processes> open_processes(const std::string& library);

}  // namespace tiny
