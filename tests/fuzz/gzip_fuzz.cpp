// Any bytes are unpacked or refused, and any that are unpacked are an IDX file or not.
#include "base/error.h"
#include "io/idx.h"
#include "io/inflate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tiny;
  SharedBytes bytes = SharedBytes::copy({reinterpret_cast<const char*>(data), size});
  try {
    if (is_gzip(bytes)) bytes = gunzip(bytes);
    const HostTensor tensor = parse_idx(bytes);
    if (tensor.bytes.size() != element_count(tensor.shape, "") * tensor.dtype.bytes())
      __builtin_trap();
  } catch (const Error& e) {
    if (e.status() == Status::Internal) __builtin_trap();
  }
  return 0;
}
