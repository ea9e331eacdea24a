#include "schedule/kernel_order.h"

#include <algorithm>
#include <unordered_set>

#include "schedule/kernel_memory.h"

namespace tiny {

namespace {

constexpr size_t kApartMax = 256;  // kernels further apart do not become one

}  // namespace

KernelOrder::KernelOrder(const std::vector<ScheduledKernel>& kernels, const Decision& decision)
    : kernels_(kernels), decision_(decision) {
  const size_t count = kernels.size();
  for (size_t k = 0; k <= count; ++k)
    places_.push_back({(k + count) % (count + 1), (k + 1) % (count + 1), k});
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

std::optional<std::vector<size_t>> KernelOrder::with_both_as_one(size_t first,
                                                                 size_t second) const {
  if (!are_near(first, second)) return std::nullopt;
  KernelMemory made(decision_);
  made.add(kernels_[first]);
  std::vector<size_t> order;
  std::vector<size_t> after;
  KernelMemory between(decision_);
  for (size_t k = places_[first].next; k != second; k = places_[k].next) {
    // Who reads a scan is not seen here.
    if (kernels_[k].scan != kernels_[first].scan) return std::nullopt;
    if (made.comes_before(kernels_[k])) {
      made.add(kernels_[k]);
      between.add(kernels_[k]);
      after.push_back(k);
    } else {
      order.push_back(k);
    }
  }
  if (between.comes_before(kernels_[second])) return std::nullopt;
  order.push_back(first);
  order.insert(order.end(), after.begin(), after.end());
  return order;
}

void KernelOrder::join(size_t first, size_t second, std::span<const size_t> order) {
  joined_into_[second] = first;
  std::vector<size_t> numbers;
  for (size_t k = first; k != second; k = places_[k].next) numbers.push_back(places_[k].number);
  size_t before = places_[first].previous;
  const size_t end = places_[second].next;
  for (size_t i = 0; i <= order.size(); ++i) {
    const size_t k = i < order.size() ? order[i] : end;
    places_[before].next = k;
    places_[k].previous = before;
    if (i < order.size()) places_[k].number = numbers[i];
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

double KernelOrder::bytes_kept(size_t first, size_t second) const {
  if (are_neighbours(first, second)) return 0;
  std::unordered_set<const Node*> seen;
  double bytes = 0;
  for (const ScheduledKernel::Read& read : kernels_[first].reads) {
    if (has_memory(read.base) || !seen.insert(read.base.node()).second) continue;
    const auto& readers = readers_.at(read.base.node());
    const bool lives = std::any_of(readers.rbegin(), readers.rend(), [&](size_t k) {
      return places_[kernel_of(k)].number >= places_[second].number;
    });
    if (!lives) bytes += bytes_of(read.base);
  }
  return bytes;
}

}  // namespace tiny
