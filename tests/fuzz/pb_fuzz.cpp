// Any bytes are a tensor or an error; what is read comes back from what is written of it.
#include "io/tensor_pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tiny;
  Limits limits;
  limits.converted_bytes = 1 << 24;
  try {
    const SharedBytes bytes = SharedBytes::copy({reinterpret_cast<const char*>(data), size});
    const TensorData read = parse_tensor_pb(bytes, limits);
    const HostTensor tensor = to_host_tensor(read);
    const TensorData again =
        parse_tensor_pb(SharedBytes::copy(tensor_pb_bytes(tensor, read.name)), limits);
    // A type that the engine has not comes back as its carrier.
    const TensorTypeInfo& type = *tensor_type(read.type);
    const int32_t written = is_carried(type) ? tensor_type_of_dtype(tensor.dtype) : read.type;
    if (again.type != written || again.dims != tensor.shape || again.name != read.name ||
        again.bytes.text() != tensor.bytes.text())
      __builtin_trap();
  } catch (const Error& e) {
    if (e.status() == Status::Internal) __builtin_trap();
  }
  return 0;
}
