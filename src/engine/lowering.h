// Lists of options of one kernel made into code, several at once: each thread has the kernel in a
// graph of its own, since a graph belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/options/options.h"
#include "codegen/pipeline.h"
#include "engine/backend.h"
#include "engine/size.h"
#include "engine/trial.h"
#include "ir/kernel.h"

namespace tiny {

using ProgramHash = std::pair<uint64_t, uint64_t>;

struct Lowered {
  std::vector<Option> list;
  std::string name;
  SizeExpression threads_extent;
  double executed = 0;  // ops of one launch
  ProgramHash hash;     // of the linear program
  Code code;            // empty unless asked for
};

class Lowering {
 public:
  // All outlive it.
  Lowering(const Kernel& kernel, Backend& backend, const PipelineOptions& base, const Trial& trial,
           const StopSignal& stop);
  ~Lowering();

  // What `lists` are applied to.
  const Kernel& prepared() const;
  size_t lanes() const { return lanes_.size(); }

  struct Wish {
    bool must_fit = true;               // ask fits_target first
    bool with_code = true;              // or as far as the linear program
    double executed_max = 0;            // more than this is left out; 0: nothing is
    const std::set<ProgramHash>* seen;  // programs that are left out
  };
  // What the signal throws, or, in the order of `lists`; none for a list that does not fit the
  // kernel, asks too much of the target, or is left out.
  std::vector<std::optional<Lowered>> lower(std::span<const std::vector<Option>> lists,
                                            const Wish& wish);

 private:
  struct Lane;
  std::optional<Lowered> lower_one(const Lane& lane, const std::vector<Option>& list,
                                   const Wish& wish, LinearProgram& program) const;
  void lower_share(size_t share, std::span<const std::vector<Option>> lists, const Wish& wish,
                   std::vector<std::optional<Lowered>>& made) const;

  Backend& backend_;
  PipelineOptions pipeline_;
  const Trial& trial_;
  const StopSignal& stop_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace tiny
