// How a program was made of its constants, kept on disk under the structure of the graph as it was
// given: a later process neither rewrites that graph nor forms the keys of what it becomes.
//
// Values are numbered: first the leaves of the graph's key, then the results of each step.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/context.h"
#include "engine/disk_cache.h"
#include "engine/kernel_key.h"
#include "engine/program.h"
#include "engine/realize.h"

namespace tiny {

struct ProgramRecord {
  // A constant that is kept with the one constant it was made of.
  struct Derived {
    uint32_t value = 0;   // kNone: it is what its origin is
    uint32_t origin = 0;  // whose memory may go then, until it is read again
    std::string recipe;
  };
  // Constants computed together.
  struct Step {
    std::string plan;  // its file; empty: the result is a copy of the one leaf
    std::vector<uint32_t> leaves;
    std::vector<Derived> derived;
    uint32_t results = 0;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  std::vector<Step> steps;
  std::string plan;  // of the program
  std::vector<uint32_t> leaves;
  std::vector<uint32_t> origins;  // of the plan: which of the graph's as it was given, or kNone
  // What the plans' and their kernels' files hold, so that one file is read; some may be missing.
  DiskBundle files;
};

std::string encode_record(const ProgramRecord& record);
// For a graph of so many leaves; none for bytes that do not hold together.  Looks at the bytes for
// as long as it is used.
std::optional<ProgramRecord> decode_record(std::string_view bytes, size_t leaves);

// Writes a record while a program is made; once something depends on more than the graph's
// structure, there is none.
class ProgramRecorder {
 public:
  // Plans have their files in `disk`.
  ProgramRecorder(const DiskCache& disk, const GraphKey& graph);

  // What is kept with its origin.
  struct Kept {
    Ref<Storage> value;  // may be null
    Ref<Storage> origin;
    std::string recipe;
  };
  void add(const Realized& made, std::span<const Kept> kept);
  // A copy of its origin (engine/copied_constant.h).
  void add_copy(const Kept& copy);
  void give_up() { is_whole_ = false; }
  // The program's own plan: its key in the disk cache, the memory of its leaves, its graph's
  // origins.
  void finish(const std::string& plan, std::span<const Ref<Storage>> leaves,
              std::span<const Origin> origins);
  // The record with its files, as bytes; none if there is none.
  std::optional<std::string> encoded();

 private:
  void add_step(ProgramRecord::Step step, std::span<const Ref<Storage>> results,
                std::span<const Kept> kept);
  uint32_t number_of(const Ref<Storage>& storage);
  std::vector<uint32_t> numbers_of(std::span<const Ref<Storage>> storages);

  const DiskCache& disk_;
  std::vector<Origin> origins_;  // of the graph as it was given
  ProgramRecord record_;
  std::map<const Storage*, uint32_t> numbers_;
  std::vector<Ref<Storage>> held_;  // so that no other gets the address
  bool is_whole_ = true;
};

// Computes the constants as the record says, and gives the program's plan with its memory and with
// the graph's own names; none if a file is missing, or part of it was computed already.
std::optional<Plan> replay(Context& context, const ProgramRecord& record, const GraphKey& graph);

}  // namespace tiny
