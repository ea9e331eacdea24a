// What a model's outputs are before anything runs: as the file says, and where it says nothing as
// follows from the graph with its free dimensions free.  Any thread may ask.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <vector>

#include "onnx/model.h"
#include "onnx/model_value.h"
#include "tensor/tensor.h"

namespace tiny::onnx {

struct OutputType {
  std::optional<DType> dtype;                        // none: not known
  std::optional<std::vector<Dim>> dims;              // none: not even their number
  ModelValue::Kind kind = ModelValue::Kind::Tensor;  // where the file does not say what it is
};

// An output of the graph with its free dimensions free.
struct InferredOutput {
  ModelValue::Kind kind = ModelValue::Kind::Tensor;
  Tensor tensor;  // none: nothing follows of its type and shape
};

class OutputTypes {
 public:
  OutputTypes() = default;
  OutputTypes(const OutputTypes&) = delete;
  OutputTypes& operator=(const OutputTypes&) = delete;
  ~OutputTypes();

  void declare(const std::vector<ValueInfo>& outputs);  // before anybody asks
  // What the file says, if that is all of it, or what was inferred with so many of the caller's
  // operators known; null where nobody has inferred it yet.  It lives as long as this.
  const OutputType* find(size_t index, size_t operators) const;
  // Keeps what follows from the graph: `outputs` is empty where nothing does.
  void keep(const std::vector<InferredOutput>& outputs, size_t operators);

 private:
  // A list that only grows.
  struct Inferred {
    std::vector<OutputType> types;
    size_t operators;
    const Inferred* before;
  };
  std::vector<OutputType> declared_;
  std::vector<bool> complete_;  // by output: nothing is to be inferred
  std::atomic<const Inferred*> last_{nullptr};
};

}  // namespace tiny::onnx
