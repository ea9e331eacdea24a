// The function that does what an execution of a program's tape does, as C.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "aot/memory.h"
#include "engine/program.h"

namespace tiny::aot {

// A formula over `variable[k]`, an array of int64_t in C.
std::string size_text(const SizeExpression& size, const std::string& variable);

struct TapeKernel {
  std::string function;
  int64_t scratch_bytes = 0;
  bool is_threaded = false;
};

struct TapeText {
  std::string slots;     // where slots lie that do not move: statements
  std::string launches;  // statements
};

// `kernels`: by entry.  `inputs` and `outputs`: expressions of addresses, by number.  The text uses
//   char *s[..]        where slots lie
//   n                  the variables
//   char *weights, *state, *arena
//   struct Run *run    launch(run, ..), run->status
class TapeWriter {
 public:
  TapeWriter(const Plan& plan, const CapturedMemory& captured, std::span<const TapeKernel> kernels,
             std::span<const std::string> inputs, std::span<const std::string> outputs)
      : plan_(plan), captured_(captured), kernels_(kernels), inputs_(inputs), outputs_(outputs) {}

  TapeText write();
  // Statements that end with the arena's size in `size`.
  std::string arena_size() const;

 private:
  void line(const std::string& text);
  std::string place_of(uint32_t slot) const;
  void write_moving(uint32_t loop, const std::string& step, const std::string& count);
  void write_entries(uint32_t first, uint32_t end, size_t loops_from, size_t loops_end);
  void write_counted(size_t loop, size_t loops_end);
  size_t write_group(size_t loop, size_t loops_end);
  void write_launch(uint32_t entry);
  std::string offsets() const;

  const Plan& plan_;
  const CapturedMemory& captured_;
  std::span<const TapeKernel> kernels_;
  std::span<const std::string> inputs_;
  std::span<const std::string> outputs_;
  std::string text_;
  size_t depth_ = 1;
};

}  // namespace tiny::aot
