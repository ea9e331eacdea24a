// How much memory values take while the kernels run that make and read them.
#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "schedule/decide.h"
#include "schedule/schedule.h"

namespace tiny {

// Units are kernels that run one after the other, each known by its first.
class LiveBytes {
 public:
  // `outputs` and what they are views of keep their memory, whoever reads them.
  LiveBytes(const std::vector<ScheduledKernel>& kernels, const std::vector<size_t>& unit_of,
            const Decision& decision, std::span<const UOp> outputs);

  // By how much more is alive when these units have run, after those that ran.
  double growth(std::span<const size_t> units) const;
  void run(size_t unit);
  // The unit that alone reads what this one makes; none if there are several, or it makes several.
  size_t only_reader(size_t unit) const;
  static constexpr size_t kNone = SIZE_MAX;

 private:
  struct Value {
    double bytes = 0;
    std::vector<size_t> readers;  // units
    size_t left = 0;              // of these, those that did not run
  };
  struct Unit {
    std::vector<const Node*> makes;
    std::vector<const Node*> reads;
  };

  std::unordered_map<const Node*, Value> values_;  // without memory of their own
  std::vector<Unit> units_;
};

}  // namespace tiny
