// The order of kernels while some of them become one, and who reads what then.
//
// reads: the decision and the kernels.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/node_map.h"
#include "schedule/decide.h"
#include "schedule/schedule.h"

namespace tiny {

class KernelOrder {
 public:
  // `outputs` have memory in any case.
  KernelOrder(const std::vector<ScheduledKernel>& kernels, const Decision& decision,
              std::span<const UOp> outputs);

  // The kernels that are left, in order.
  std::vector<size_t> kept() const;
  struct Joined {
    std::vector<size_t> order;  // from `first` to `second`, with both as the first
    double kept = 0;            // bytes that are made earlier than without it
  };
  // With both as one in the place of `first`: only what `second` needs comes before.  None if that
  // depends on `first`, or it is too far away.
  std::optional<Joined> with_both_as_one(size_t first, size_t second) const;
  // Kernel `second` becomes a part of `first`, in that order.
  void join(size_t first, size_t second, std::span<const size_t> order);

  // Whether any kernel reads the value, and only these two do.
  bool read_only_by(const UOp& value, size_t first, size_t second) const;

 private:
  // Of the kernels that are left and of their end, by kernel: those beside it.
  struct Place {
    size_t previous = 0;
    size_t next = 0;
  };
  bool are_near(size_t first, size_t second) const;
  size_t kernel_of(size_t k) const;

  const std::vector<ScheduledKernel>& kernels_;
  const Decision& decision_;
  const NodeSet kept_;
  std::vector<Place> places_;
  std::unordered_map<const Node*, std::vector<size_t>> readers_;  // as it was before
  std::vector<size_t> joined_into_;                               // by kernel: itself, or another
};

}  // namespace tiny
