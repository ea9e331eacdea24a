// What tests of models share beside the models: loading, tensors of files, and comparing.
#pragma once

#include <string>
#include <vector>

#include "io/host_tensor.h"
#include "onnx/session.h"
#include "tensor/tensor.h"
#include "tests/onnx/model_writer.h"

namespace tiny::onnx::testing {

struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

// A context as the environment wants it.
Ref<Context> default_context();
// The model of this graph.
Ref<LoadedModel> load(const Ref<Context>& context, const Message& graph);

// The tensors `<folder>/<prefix>0.pb`, `<prefix>1.pb`, as far as they go.
std::vector<HostTensor> read_numbered(const std::string& folder, const std::string& prefix);
// A tensor with these elements.
Tensor from_host(const Ref<Context>& context, const HostTensor& host);
std::vector<Tensor> from_host(const Ref<Context>& context, const std::vector<HostTensor>& hosts);
// The elements of a tensor, computed now.
HostTensor host_tensor(Tensor tensor);
// The outputs of one execution of the program.
std::vector<HostTensor> run_once(const Ref<Context>& context,
                                 const Ref<const TensorProgram>& program,
                                 const std::vector<Tensor>& inputs);

// Where `got` differs from `want`; empty if it does not.
std::string difference(const HostTensor& got, const HostTensor& want, const Tolerance& tolerance);

}  // namespace tiny::onnx::testing
