// Any bytes are arrays by name or refused: nothing else is read, and no more made than they pay
// for.
#include "base/error.h"
#include "io/pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tiny;
  try {
    const Archive archive =
        parse_pickle(SharedBytes::copy({reinterpret_cast<const char*>(data), size}));
    for (const NamedTensor& tensor : archive.tensors)
      if (tensor.value.bytes.size() !=
          element_count(tensor.value.shape, "") * tensor.value.dtype.bytes())
        __builtin_trap();
  } catch (const Error& e) {
    if (e.status() == Status::Internal) __builtin_trap();
  }
  return 0;
}
