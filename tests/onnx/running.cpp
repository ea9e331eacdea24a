#include "tests/onnx/running.h"

#include <cmath>
#include <filesystem>

#include "onnx/import/host_value.h"
#include "onnx/reader.h"
#include "tensor/create.h"
#include "tensor/value.h"

namespace tiny::onnx::testing {

namespace fs = std::filesystem;

Ref<Context> default_context() {
  return make_ref<Context>(Flags::from_environment(nullptr));
}

Ref<LoadedModel> load(const Ref<Context>& context, const Message& graph) {
  return make_ref<LoadedModel>(context, parse_model(shared(model(graph))));
}

std::vector<HostTensor> read_numbered(const std::string& folder, const std::string& prefix) {
  std::vector<HostTensor> tensors;
  for (;;) {
    const fs::path file = fs::path(folder) / cat(prefix, tensors.size(), ".pb");
    if (!fs::exists(file)) return tensors;
    tensors.push_back(to_host_tensor(read_tensor_pb(file)));
  }
}

Tensor from_host(const Ref<Context>& context, const HostTensor& host) {
  return from_data(context, host.dtype, host.shape, host.bytes.data(), host.bytes.size());
}

std::vector<Tensor> from_host(const Ref<Context>& context, const std::vector<HostTensor>& hosts) {
  std::vector<Tensor> tensors;
  for (const HostTensor& host : hosts) tensors.push_back(from_host(context, host));
  return tensors;
}

HostTensor host_tensor(Tensor tensor) {
  const Ints shape = dims_of(tensor);
  std::vector<std::byte> bytes(static_cast<size_t>(element_count(tensor) * tensor.dtype().bytes()));
  read(tensor, bytes.data(), static_cast<int64_t>(bytes.size()));
  return HostTensor{tensor.dtype(), shape, SharedBytes::own(std::move(bytes))};
}

std::vector<HostTensor> run_once(const Ref<Context>& context,
                                 const Ref<const TensorProgram>& program,
                                 const std::vector<Tensor>& inputs) {
  const Ref<TensorRun> run = make_ref<TensorRun>(context, program);
  for (size_t i = 0; i < inputs.size(); ++i) run->set_input(i, inputs[i]);
  run->execute();
  std::vector<HostTensor> outputs;
  for (const TensorProgram::Port& port : run->output_ports()) {
    std::vector<std::byte> bytes(static_cast<size_t>(port.bytes));
    run->read_output(outputs.size(), bytes.data());
    outputs.push_back({port.dtype, port.shape, SharedBytes::own(std::move(bytes))});
  }
  return outputs;
}

std::string difference(const HostTensor& got, const HostTensor& want, const Tolerance& tolerance) {
  if (got.dtype != want.dtype)
    return cat("type ", tiny::to_string(got.dtype), ", wanted ", tiny::to_string(want.dtype));
  if (got.shape != want.shape)
    return cat("shape ", list_text(got.shape), ", wanted ", list_text(want.shape));
  const std::vector<double> g = reals_of(got);
  const std::vector<double> w = reals_of(want);
  size_t wrong = 0;
  size_t first = 0;
  for (size_t i = 0; i < g.size(); ++i) {
    const bool same =
        g[i] == w[i] || (std::isnan(g[i]) && std::isnan(w[i])) ||
        (std::isfinite(w[i]) &&
         std::fabs(g[i] - w[i]) <= tolerance.absolute + tolerance.relative * std::fabs(w[i]));
    if (same) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return "";
  return cat(wrong, " of ", g.size(), " elements differ, the first at ", first, ": ", g[first],
             ", wanted ", w[first]);
}

}  // namespace tiny::onnx::testing
