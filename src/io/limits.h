// How much an untrusted file may make the library do.  Every reader counts against one Budget and
// stops with Status::Limit, so that a small hostile file can cost neither memory nor stack.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/stop.h"

namespace tiny {

// The defaults admit every published model; a caller may lower or raise each of them.
struct Limits {
  int64_t model_bytes = int64_t{1} << 31;      // of the model file; a protobuf message ends there
  int64_t structure_bytes = int64_t{1} << 31;  // of the parsed structures, weights left out
  int64_t nodes = int64_t{1} << 22;            // of all graphs, after functions are inlined
  int64_t subgraph_depth = 64;                 // graphs in attributes, nested types, nested calls
  int64_t tensor_bytes = int64_t{1} << 38;     // of one tensor
  int64_t converted_bytes = int64_t{1} << 33;  // of tensors that cannot be used where they lie
  int64_t attribute_bytes = int64_t{1} << 26;  // of one string or list attribute
  int64_t name_bytes = int64_t{1} << 16;       // of one name
  int64_t rank = 64;                           // of one tensor or type
  int64_t external_files = 4096;               // that hold weights beside the model
  bool hard_links = true;  // whether a weight file may have further names in the file system
  const StopSignal* stop = nullptr;  // of the call that reads; null: it goes on to the end
};

// How a caller raises the limit with this name, for the end of a message; "" if no option does.
struct RaiseHint {
  std::string_view name;
};
std::string to_string(const RaiseHint& hint);
inline RaiseHint raise_hint(std::string_view name) {
  return {name};
}

// The limits, and what has been used of them.
struct Budget {
  Limits limits;
  int64_t structure_bytes = 0;
  int64_t converted_bytes = 0;
  int64_t nodes = 0;

  // Each counts, and throws Error{Limit} that names `what` once its limit is passed, or what the
  // limits' signal says.
  void charge_structure(int64_t bytes, const char* what);
  void charge_converted(int64_t bytes, const char* what);
  void charge_nodes(int64_t count);
};

}  // namespace tiny
