// Any bytes are tensors or an error; what is read comes back from what is written of it.
#include "base/error.h"
#include "io/safetensors.h"

namespace {

std::string written(const tiny::Archive& archive) {
  const tiny::SafetensorsHeader header = safetensors_header(archive);
  std::string out = header.bytes;
  for (const size_t i : header.order) out += archive.tensors[i].value.bytes.text();
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tiny;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::string once = written(parse_safetensors(SharedBytes::copy(text)));
    if (written(parse_safetensors(SharedBytes::copy(once))) != once) __builtin_trap();
  } catch (const Error& e) {
    if (e.status() == Status::Internal) __builtin_trap();
  }
  return 0;
}
