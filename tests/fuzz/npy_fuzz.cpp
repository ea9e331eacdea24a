// Any bytes are an array or an error; what is read comes back from what is written of it.
#include "base/error.h"
#include "io/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tiny;
  try {
    const SharedBytes bytes = SharedBytes::copy({reinterpret_cast<const char*>(data), size});
    const HostTensor tensor = parse_npy(bytes);
    const HostTensor again = parse_npy(SharedBytes::copy(npy_bytes(tensor)));
    if (again.dtype != tensor.dtype || again.shape != tensor.shape ||
        again.bytes.text() != tensor.bytes.text())
      __builtin_trap();
  } catch (const Error& e) {
    if (e.status() == Status::Internal) __builtin_trap();
  }
  return 0;
}
