#include "engine/placed_lifetimes.h"

#include <algorithm>
#include <bit>

namespace tiny {

PlacedLifetimes::PlacedLifetimes(std::span<const Lifetime> lifetimes) : lifetimes_(lifetimes) {
  for (const Lifetime& life : lifetimes) {
    times_.push_back(life.first);
    times_.push_back(life.last);
  }
  std::ranges::sort(times_);
  const auto [rest, end] = std::ranges::unique(times_);
  times_.erase(rest, end);
  leaves_ = std::bit_ceil(std::max<size_t>(times_.size(), 1));
  tree_.resize(2 * leaves_);
}

size_t PlacedLifetimes::leaf_of(int64_t time) const {
  const auto at = std::ranges::lower_bound(times_, time);
  return leaves_ + static_cast<size_t>(at - times_.begin());
}

template <class See>
void PlacedLifetimes::for_each_piece(const Lifetime& life, const See& see) const {
  size_t begin = leaf_of(life.first), end = leaf_of(life.last) + 1;
  for (; begin < end; begin /= 2, end /= 2) {
    if (begin % 2 == 1) see(begin++);
    if (end % 2 == 1) see(--end);
  }
}

void PlacedLifetimes::add(size_t number) {
  const Lifetime& life = lifetimes_[number];
  const int64_t end = life.offset + life.bytes;
  const size_t rank = added_.size();
  added_.push_back(number);
  begins_.emplace(life.first, rank);
  for_each_piece(life, [&](size_t at) {
    TreeNode& node = tree_[at];
    links_.push_back({rank, node.covers});
    node.covers = static_cast<uint32_t>(links_.size() - 1);
    node.cover_end = std::max(node.cover_end, end);
    node.end = std::max(node.end, end);
  });
  // Whatever is above one of these pieces is above one of both ends.
  for (const int64_t time : {life.first, life.last})
    for (size_t at = leaf_of(time); at > 0; at /= 2) tree_[at].end = std::max(tree_[at].end, end);
}

bool PlacedLifetimes::find(const Lifetime& life, size_t most, std::vector<size_t>& found) const {
  found.clear();
  // Those that live when it begins, and those that begin after that.
  for (size_t at = leaf_of(life.first); at > 0; at /= 2)
    for (uint32_t link = tree_[at].covers; link > 0 && found.size() <= most;
         link = links_[link].next)
      found.push_back(links_[link].rank);
  for (auto at = begins_.lower_bound({life.first + 1, 0});
       at != begins_.end() && at->first <= life.last && found.size() <= most; ++at)
    found.push_back(at->second);
  const auto offset = [&](size_t rank) { return lifetimes_[added_[rank]].offset; };
  std::ranges::sort(found, [&](size_t a, size_t b) {
    return offset(a) != offset(b) ? offset(a) < offset(b) : a < b;
  });
  const bool is_all = found.size() <= most;
  for (size_t& rank : found) rank = added_[rank];
  return is_all;
}

int64_t PlacedLifetimes::end_beside(const Lifetime& life) const {
  int64_t end = 0;
  for_each_piece(life, [&](size_t at) { end = std::max(end, tree_[at].end); });
  for (const int64_t time : {life.first, life.last})
    for (size_t at = leaf_of(time); at > 0; at /= 2) end = std::max(end, tree_[at].cover_end);
  return end;
}

}  // namespace tiny
