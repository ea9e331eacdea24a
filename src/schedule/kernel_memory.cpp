#include "schedule/kernel_memory.h"

#include <algorithm>

#include "base/sort.h"
#include "shape/shape.h"

namespace tiny {

namespace {

constexpr size_t kTriesMax = 4;  // kernels that are looked at for one

}  // namespace

double bytes_of(const UOp& base) {
  return static_cast<double>(base.dtype().bytes()) * elements_at_most(base);
}

NodeSet outputs_and_bases(std::span<const UOp> outputs) {
  NodeSet bases;
  for (const UOp& out : outputs) {
    const UOp* base = &out;
    for (bases.insert(base->node()); has(base->op(), kMovement); bases.insert(base->node()))
      base = &base->src(0);
  }
  return bases;
}

bool is_write(const ScheduledStore& store) {
  return store.value.op() == Op::Assign;
}

void KernelMemory::add(const ScheduledKernel& kernel) {
  for (const ScheduledKernel::Read& read : kernel.reads) read_.insert(memory(read.base));
  for (const ScheduledStore& s : kernel.stores) {
    stored_.insert(memory(s.destination));
    if (is_write(s)) written_.insert(memory(s.destination));
  }
}

bool KernelMemory::comes_before(const ScheduledKernel& kernel) const {
  for (const ScheduledKernel::Read& read : kernel.reads)
    if (stored_.contains(memory(read.base))) return true;
  for (const ScheduledStore& s : kernel.stores) {
    const Node* node = memory(s.destination);
    if (written_.contains(node)) return true;
    if (is_write(s) && (stored_.contains(node) || read_.contains(node))) return true;
  }
  return false;
}

bool KernelMemory::comes_after(const ScheduledKernel& kernel) const {
  for (const ScheduledKernel::Read& read : kernel.reads)
    if (written_.contains(memory(read.base))) return true;
  for (const ScheduledStore& s : kernel.stores) {
    const Node* node = memory(s.destination);
    if (read_.contains(node) || written_.contains(node)) return true;
    if (is_write(s) && stored_.contains(node)) return true;
  }
  return false;
}

bool reads_before_it_stores(const ScheduledKernel& kernel, const Decision& decision) {
  const auto memory = [&](const UOp& base) { return decision.slot(base).node(); };
  std::unordered_set<const Node*> stored;
  std::unordered_set<const Node*> written;
  for (const ScheduledStore& s : kernel.stores) {
    stored.insert(memory(s.destination));
    if (is_write(s) && !written.insert(memory(s.destination)).second)
      return false;  // two of one memory
  }
  return std::ranges::all_of(kernel.reads, [&](const ScheduledKernel::Read& read) {
    if (!stored.contains(memory(read.base))) return true;
    const auto is_version = [&](const ScheduledStore& s) {
      return read.base.op() == Op::After && read.base.src(1) == s.value;
    };
    return read.in_place && written.contains(memory(read.base)) &&
           std::ranges::none_of(kernel.stores, is_version);
  });
}

double shared_bytes(const ScheduledKernel& a, const ScheduledKernel& b, const Decision& decision) {
  const auto memory = [&](const UOp& base) { return decision.slot(base).node(); };
  std::unordered_set<const Node*> of_a;
  for (const ScheduledKernel::Read& read : a.reads) of_a.insert(memory(read.base));
  for (const ScheduledStore& s : a.stores) of_a.insert(memory(s.destination));
  double sum = 0;
  std::unordered_set<const Node*> seen;
  for (const ScheduledKernel::Read& read : b.reads)
    if (of_a.contains(memory(read.base)) && seen.insert(memory(read.base)).second)
      sum += bytes_of(read.base);
  return sum;
}

void KernelsByMemory::note(size_t k) {
  const auto note = [&](const UOp& base) {
    const Node* memory = decision_.slot(base).node();
    if (noted_[k].insert(memory).second) touched_[memory].push_back(k);
  };
  for (const ScheduledKernel::Read& read : kernels_[k].reads) note(read.base);
  for (const ScheduledStore& s : kernels_[k].stores) note(s.destination);
}

std::vector<size_t> KernelsByMemory::beside(size_t k) const {
  std::unordered_map<size_t, double> shared;
  std::unordered_set<const Node*> seen;
  for (const ScheduledKernel::Read& read : kernels_[k].reads) {
    const Node* memory = decision_.slot(read.base).node();
    if (!seen.insert(memory).second) continue;
    const auto known = touched_.find(memory);
    if (known == touched_.end()) continue;
    const size_t count = std::min(known->second.size(), 2 * kTriesMax);
    for (size_t i = known->second.size() - count; i < known->second.size(); ++i)
      shared[known->second[i]] += bytes_of(read.base);
  }
  std::vector<size_t> found;
  for (const auto& [other, bytes] : shared) found.push_back(other);
  sort_stable(found, [&](size_t a, size_t b) {
    return shared.at(a) != shared.at(b) ? shared.at(a) > shared.at(b) : a > b;
  });
  if (found.size() > kTriesMax) found.resize(kTriesMax);
  return found;
}

}  // namespace tiny
