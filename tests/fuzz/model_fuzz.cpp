// Any bytes are a model or an error.  What is read must satisfy the laws of model.h again.
#include "onnx/check.h"
#include "onnx/inline.h"
#include "onnx/reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tiny;
  Limits limits;
  limits.structure_bytes = 1 << 26;
  limits.converted_bytes = 1 << 24;
  limits.nodes = 1 << 14;
  try {
    const SharedBytes bytes = SharedBytes::copy({reinterpret_cast<const char*>(data), size});
    onnx::Model model = onnx::parse_model(bytes, "", limits);
    onnx::inline_functions(model, limits);
    try {
      onnx::check_and_sort(model);
    } catch (const Error&) {
      __builtin_trap();  // inlining must leave a legal model
    }
  } catch (const Error& e) {
    if (e.status() == Status::Internal) __builtin_trap();
  }
  return 0;
}
