// Any text is a list of options or an error; what is read comes back from what is written of it.
#include "base/error.h"
#include "codegen/options/options.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tiny;
  try {
    const std::vector<Option> options = parse_options({reinterpret_cast<const char*>(data), size});
    if (parse_options(to_text(options)) != options) __builtin_trap();
  } catch (const Error& e) {
    if (e.status() == Status::Internal) __builtin_trap();
  }
  return 0;
}
