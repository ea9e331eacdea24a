// What the tests of the emulator share: memory, launches, and the assembler as a second judge of
// the text.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/emulation/ptx_machine.h"
#include "tests/emulation/ptx_program.h"
#include "tests/support/assembler.h"

namespace tiny::emulation {

inline constexpr uint64_t kRoom = uint64_t{1} << 30;

// Whether ptxas takes the text; true, too, where there is no ptxas.
inline bool assembles(const std::string& text) {
  static const std::string assembler = tiny::testing::ptx_assembler();
  if (assembler.empty()) return true;
  const size_t at = text.find(".target ") + 8;
  const std::string target = text.substr(at, text.find('\n', at) - at);
  return tiny::testing::assemble(assembler, text, target, 0).status == 0;
}

// A module of one kernel "kernel" with `parameters` pointers p0.. in %d0.. and registers of all
// kinds: %p, %h (16 bits), %r (32), %d (64).
inline std::string module_of(const std::string& body, int parameters,
                             const std::string& outside = "",
                             const std::string& target = ".version 7.8\n.target sm_90\n") {
  std::string text = target + ".address_size 64\n" + outside + ".visible .entry kernel(";
  for (int i = 0; i < parameters; ++i)
    text += std::string(i > 0 ? ", " : "") + ".param .u64 p" + std::to_string(i);
  text += ")\n{\n.reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<32>;\n.reg .b64 %d<32>;\n";
  for (int i = 0; i < parameters; ++i) {
    const std::string d = "%d" + std::to_string(i);
    text += "ld.param.u64 " + d + ", [p" + std::to_string(i) + "];\n";
  }
  return text + body + "\nret;\n}\n";
}

class EmulatorTest : public ::testing::Test {
 protected:
  template <class T>
  uint64_t upload(const std::vector<T>& values) {
    const uint64_t bytes = values.size() * sizeof(T);
    const uint64_t address = memory_.allocate(bytes, 0, kRoom);
    std::memcpy(memory_.find(address, bytes, 0), values.data(), bytes);
    return address;
  }
  template <class T>
  std::vector<T> download(uint64_t address, size_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), memory_.find(address, count * sizeof(T), 0), count * sizeof(T));
    return values;
  }
  uint64_t room(uint64_t bytes) { return memory_.allocate(bytes, 0, kRoom); }

  void run(const std::string& text, const std::vector<uint64_t>& arguments, uint32_t grid,
           uint32_t block, uint64_t seed = 1, uint32_t dynamic_shared = 0) {
    if (assembled_.insert(text).second) {
      EXPECT_TRUE(assembles(text)) << text;
    }
    const Module module = parse_module(text);
    KernelLaunch launch;
    launch.entry = &module.entries.at("kernel");
    launch.grid = {grid, 1, 1};
    launch.block = {block, 1, 1};
    launch.dynamic_shared = dynamic_shared;
    launch.parameters.resize(arguments.size() * 8);
    if (!arguments.empty())
      std::memcpy(launch.parameters.data(), arguments.data(), launch.parameters.size());
    Machine machine(memory_, 0, seed);
    machine.set_most_instructions(most_instructions_);
    machine.run(launch);
  }
  // The words of the fault, which must be of that kind with every seed.
  std::string fault(Fault::Of of, const std::string& text, const std::vector<uint64_t>& arguments,
                    uint32_t block) {
    std::string words;
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      try {
        run(text, arguments, 2, block, seed);
        ADD_FAILURE() << "no fault with seed " << seed << "\n" << text;
      } catch (const Fault& f) {
        EXPECT_EQ(f.of(), of) << f.what();
        words = f.what();
      }
    }
    return words;
  }

  GlobalMemory memory_;
  uint64_t most_instructions_ = 1'000'000'000;

 private:
  std::set<std::string> assembled_;
};

}  // namespace tiny::emulation
