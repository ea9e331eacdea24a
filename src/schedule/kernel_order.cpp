#include "schedule/kernel_order.h"

#include <algorithm>
#include <unordered_set>

#include "schedule/kernel_memory.h"

namespace tiny {

namespace {

constexpr size_t kApartMax = 256;  // kernels further apart do not become one

}  // namespace

KernelOrder::KernelOrder(const std::vector<ScheduledKernel>& kernels, const Decision& decision,
                         std::span<const UOp> outputs)
    : kernels_(kernels), decision_(decision), kept_(outputs_and_bases(outputs)) {
  const size_t count = kernels.size();
  for (size_t k = 0; k <= count; ++k)
    places_.push_back({(k + count) % (count + 1), (k + 1) % (count + 1)});
  for (size_t k = 0; k < count; ++k) {
    joined_into_.push_back(k);
    for (const ScheduledKernel::Read& read : kernels[k].reads)
      readers_[read.base.node()].push_back(k);
  }
}

std::vector<size_t> KernelOrder::kept() const {
  std::vector<size_t> order;
  const size_t end = kernels_.size();
  for (size_t k = places_[end].next; k < end; k = places_[k].next) order.push_back(k);
  return order;
}

// Whether not too many kernels are from `first` to `second`, which comes later.
bool KernelOrder::are_near(size_t first, size_t second) const {
  size_t k = first;
  for (size_t steps = 0; steps < kApartMax && k < kernels_.size() && k != second; ++steps)
    k = places_[k].next;
  return k == second;
}

std::optional<KernelOrder::Joined> KernelOrder::with_both_as_one(size_t first,
                                                                 size_t second) const {
  if (!are_near(first, second)) return std::nullopt;
  KernelMemory made(decision_);
  made.add(kernels_[first]);
  KernelMemory needs(decision_);
  needs.add(kernels_[second]);
  std::vector<size_t> before;
  std::vector<size_t> after;
  for (size_t k = places_[second].previous; k != first; k = places_[k].previous) {
    // Who reads a scan is not seen here.
    if (kernels_[k].scan != kernels_[first].scan) return std::nullopt;
    if (!needs.comes_after(kernels_[k])) {
      after.push_back(k);
      continue;
    }
    if (made.comes_before(kernels_[k])) return std::nullopt;
    needs.add(kernels_[k]);
    before.push_back(k);
  }
  Joined joined;
  const auto keep = [&](size_t k) {
    for (const ScheduledStore& s : kernels_[k].stores)
      if (!has_memory(decision_.slot(s.destination)) && !kept_.contains(s.destination.node()))
        joined.kept += bytes_of(s.value);
  };
  if (!after.empty()) keep(second);
  for (const size_t k : before) keep(k);
  joined.order.assign(before.rbegin(), before.rend());
  joined.order.push_back(first);
  joined.order.insert(joined.order.end(), after.rbegin(), after.rend());
  return joined;
}

void KernelOrder::join(size_t first, size_t second, std::span<const size_t> order) {
  joined_into_[second] = first;
  size_t before = places_[first].previous;
  const size_t end = places_[second].next;
  for (size_t i = 0; i <= order.size(); ++i) {
    const size_t k = i < order.size() ? order[i] : end;
    places_[before].next = k;
    places_[k].previous = before;
    before = k;
  }
}

// What kernel `k` is a part of.
size_t KernelOrder::kernel_of(size_t k) const {
  while (joined_into_[k] != k) k = joined_into_[k];
  return k;
}

bool KernelOrder::read_only_by(const UOp& value, size_t first, size_t second) const {
  const auto readers = readers_.find(value.node());
  return readers != readers_.end() && std::ranges::all_of(readers->second, [&](size_t k) {
           return kernel_of(k) == first || kernel_of(k) == second;
         });
}

}  // namespace tiny
