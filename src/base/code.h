// Code as a renderer leaves it and a device loads it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tiny {

// Those from C on are texts, the others bytes.
enum class CodeKind : uint8_t { MachineCode, Bytecode, Cubin, C, OpenCl, Ptx };
constexpr bool is_text(CodeKind kind) {
  return kind >= CodeKind::C;
}

struct Code {
  CodeKind kind = CodeKind::Bytecode;
  std::string name;              // of the kernel, for profilers and files
  std::string entry;             // the symbol to call, where the kind has symbols
  std::vector<std::byte> bytes;  // of what is no text
  std::string text;              // of what is
  int64_t scratch_bytes = 0;     // a worker
  // Of a grouped program whose device starts the threads: how many, by axis; 0: it is not grouped.
  std::array<int64_t, 3> group{};
  // What a group shares and a launch must ask for, beside what the code has by itself.
  int64_t shared_bytes = 0;
};

}  // namespace tiny
