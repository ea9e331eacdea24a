// What a renderer makes of a linear program: the same fields as runtime's Code, which render may
// not see; the engine joins the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tiny {

enum class RenderedKind : uint8_t { MachineCode, Bytecode, C };

struct Rendered {
  RenderedKind kind;
  std::string name;              // of the kernel
  std::string entry;             // the symbol to call, where the kind has symbols
  std::vector<std::byte> bytes;  // machine code or bytecode
  std::string text;              // source
  int64_t scratch_bytes = 0;     // a worker
};

}  // namespace tiny
