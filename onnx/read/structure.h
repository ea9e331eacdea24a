// What readers of a model's messages share: lists whose cost counts, and how deep messages nest.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/wire.h"

namespace tiny::onnx {

// Counts what one parsed structure costs in memory.
template <class T>
T& append(WireReader& r, std::vector<T>& list, T value) {
  r.budget().charge_structure(sizeof(T), "the model's structure");
  list.push_back(std::move(value));
  return list.back();
}

inline void append_name(WireReader& r, std::vector<std::string>& list) {
  append(r, list, r.name());
}

inline void check_depth(const WireReader& r, int64_t depth) {
  const int64_t most = r.budget().limits.subgraph_depth;
  if (depth > most)
    r.fail(Status::Limit, "nested deeper than subgraph_depth = ", most,
           raise_hint("subgraph_depth"));
}

}  // namespace tiny::onnx
