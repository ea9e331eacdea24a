// What scheduled kernels read and store, by memory: a buffer or what it is a version of.
//
// reads: the decision and the kernels.
#pragma once

#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/node_map.h"
#include "schedule/decide.h"
#include "schedule/schedule.h"

namespace tiny {

// Of all elements of a value, at most.
double bytes_of(const UOp& base);
// The outputs and what they are views of.
NodeSet outputs_and_bases(std::span<const UOp> outputs);
// Whether the store writes a new version of memory.
bool is_write(const ScheduledStore& store);

// What a set of kernels reads and stores.
class KernelMemory {
 public:
  explicit KernelMemory(const Decision& decision) : decision_(decision) {}

  void add(const ScheduledKernel& kernel);
  // Whether the kernel must come after all of these.
  bool comes_before(const ScheduledKernel& kernel) const;
  // Whether the kernel must come before one of these.
  bool comes_after(const ScheduledKernel& kernel) const;

 private:
  const Node* memory(const UOp& base) const { return decision_.slot(base).node(); }

  const Decision& decision_;
  std::unordered_set<const Node*> read_;
  std::unordered_set<const Node*> stored_;
  std::unordered_set<const Node*> written_;  // of those that are stored, in new versions
};

// Whether what the kernel reads is there when it begins, or read before it is overwritten.
bool reads_before_it_stores(const ScheduledKernel& kernel, const Decision& decision);
// Bytes that both kernels read or one makes and the other reads, and that one kernel of both reads
// once at most.
double shared_bytes(const ScheduledKernel& a, const ScheduledKernel& b, const Decision& decision);

// Kernels that are found by the memory they touch.
class KernelsByMemory {
 public:
  KernelsByMemory(const std::vector<ScheduledKernel>& kernels, const Decision& decision)
      : kernels_(kernels), decision_(decision), noted_(kernels.size()) {}

  // Later kernels find kernel `k`, as it is now.
  void note(size_t k);
  // Kernels that read what `k` reads, or store it: those that share the most come first.
  std::vector<size_t> beside(size_t k) const;

 private:
  const std::vector<ScheduledKernel>& kernels_;
  const Decision& decision_;
  std::vector<std::unordered_set<const Node*>> noted_;            // by kernel
  std::unordered_map<const Node*, std::vector<size_t>> touched_;  // kernels by memory, in order
};

}  // namespace tiny
