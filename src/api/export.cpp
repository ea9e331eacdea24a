// Graphs of tensors as models.
#include "onnx/export/export.h"

#include "api/boundary.h"
#include "onnx/write.h"

using tiny::require;
using tiny::Status;

namespace {

std::vector<tiny::onnx::ExportPort> ports(tiny_tensor* const* tensors, size_t count,
                                          const char* otherwise) {
  std::vector<tiny::onnx::ExportPort> ports;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = tensors[i]->name.load();
    ports.push_back({name.empty() ? tiny::cat(otherwise, i) : name, tensors[i]->value});
  }
  return ports;
}

}  // namespace

extern "C" {

tiny_status tiny_export_onnx(tiny_tensor* const* inputs, size_t input_count,
                             tiny_tensor* const* outputs, size_t output_count, const char* path) {
  return tiny::guarded(__func__, [=] {
    require(output_count > 0, Status::InvalidArgument, "there are no outputs");
    tiny_context& context = tiny::Operands(outputs, output_count, "outputs").context();
    if (input_count > 0)
      tiny::require_one_context(tiny::Operands(inputs, input_count, "inputs").context(), context,
                                "inputs are of another context than outputs");
    const std::string file = &tiny::required(path, "path");
    const tiny::Building building(context);
    tiny::onnx::Model model = tiny::onnx::export_model(
        context.core, ports(inputs, input_count, "input"), ports(outputs, output_count, "output"));
    model.producer_version = tiny_version();
    // Weights lie where tensors have them: nobody changes them meanwhile.
    tiny::onnx::write_model(file, model, &context.core->stop());
  });
}

}  // extern "C"
