#include "io/limits.h"

#include "base/checked.h"
#include "base/text.h"

namespace tiny {

std::string to_string(const RaiseHint& hint) {
  const std::string_view name = hint.name;
  const char* option = name == "nodes"            ? "node_limit"
                       : name == "subgraph_depth" ? "depth_limit"
                       : name == "model_bytes"    ? "file_limit"
                                                  : nullptr;
  return option ? cat("; a higher one is set with the option \"", option, "\"") : std::string();
}

namespace {

void charge(int64_t& used, int64_t amount, int64_t limit, const char* name, const char* what) {
  used = checked_add(used, amount, name);
  require(used <= limit, Status::Limit, what, ": more than the limit ", name, " = ", limit,
          raise_hint(name));
}

}  // namespace

void Budget::charge_structure(int64_t bytes, const char* what) {
  if (limits.stop) limits.stop->check();
  charge(structure_bytes, bytes, limits.structure_bytes, "structure_bytes", what);
}

void Budget::charge_converted(int64_t bytes, const char* what) {
  if (limits.stop) limits.stop->check();
  charge(converted_bytes, bytes, limits.converted_bytes, "converted_bytes", what);
}

void Budget::charge_nodes(int64_t count) {
  if (limits.stop) limits.stop->check();
  charge(nodes, count, limits.nodes, "nodes", "the model's graphs");
}

}  // namespace tiny
