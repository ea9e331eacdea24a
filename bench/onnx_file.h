// Small ONNX files, so that a row's weights are what a model's are: constants, which a program may
// lay out once.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tiny.h"

namespace tiny::bench {

struct OnnxNode {
  std::string op;
  std::vector<std::string> inputs;
  std::string output;
  std::vector<std::pair<std::string, std::vector<int64_t>>> lists = {};  // attributes
  std::vector<std::pair<std::string, int64_t>> numbers = {};
};

struct OnnxValue {
  std::string name;
  tiny_dtype dtype = TINY_FLOAT32;
  std::vector<int64_t> dims;
  std::vector<float> values = {};  // of a constant
};

struct OnnxGraph {
  std::vector<OnnxNode> nodes;
  std::vector<OnnxValue> constants;
  OnnxValue input;
  OnnxValue output;
};

// The file's content: operator set 17.
std::string onnx_bytes(const OnnxGraph& graph);

}  // namespace tiny::bench
