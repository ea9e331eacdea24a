// Loads and stores: lane by lane, or several adjacent lanes at once where the address is known to
// be a multiple of their bytes.
#pragma once

#include <string>
#include <vector>

#include "render/ptx/writer.h"

namespace tiny::ptx {

enum class Space : uint8_t { Global, Shared, Local };

// `base` is an address in the space, in a register.
struct Address {
  Space space = Space::Global;
  Operand base;
};

// Where lanes of a value are: at the address, so many elements from it for a lane (or an index for
// each), and `displacement` bytes.
struct Access {
  Address address;
  Value index;  // of one lane, or of each
  int64_t stride = 1;
  int64_t displacement = 0;
  DType dtype;
  int64_t alignment = 1;       // of lane 0, displacement included, where the lanes are adjacent
  bool passes_caches = false;  // of a store
  bool is_run = false;         // the lanes that a mask leaves lie side by side
};

// An empty mask: all lanes.  Of a load, lanes that are masked out are 0.  Where some are masked out
// the others are accessed one by one: mostly all lanes are there.
Value load(Writer& out, const Access& access, const Value& mask);
void store(Writer& out, const Access& access, const Value& value, const Value& mask);

// So many bytes from one address to one in shared memory, of which only the first `valid` are
// there: the others are zeros.
struct Copy {
  Operand to;
  Address from;
  Operand valid;  // of 32 bits
  int64_t bytes = 0;
  int64_t element_bytes = 1;
  int64_t alignment = 1;     // of both addresses
  bool runs_beside = false;  // if it can: the thread goes on meanwhile
};
void copy_to_shared(Writer& out, const Copy& copy);

// `base + index * bytes`; the index has 64 bits, or 32 with a sign.
Operand address_at(Writer& out, const Operand& base, const Operand& index, int64_t bytes);

const char* to_string(Space space);

}  // namespace tiny::ptx
