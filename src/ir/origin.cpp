#include "ir/origin.h"

#include <utility>

#include "base/hash.h"

namespace tiny {

Origin Origins::add(std::vector<std::string> names) {
  uint64_t hash = 0;
  for (const std::string& name : names) hash = hash_bytes(name, hash);
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto at = begin; at != end; ++at)
    if (lists_.at(at->second).names == names) return at->second;
  if (names.empty() || names.size() >= kOperators - next_) return kNobody;
  const Origin first = next_;
  next_ += static_cast<Origin>(names.size());
  lists_.emplace(first, List{std::move(names)});
  by_hash_.emplace(hash, first);
  return first;
}

Origin Origins::named(const std::string& name) {
  Origin& known = given_[name];
  if (known != kNobody) return known;
  if (next_ == kOperators) return kNobody;
  known = next_++;
  lists_.emplace(known, List{{name}, true});
  return known;
}

Origin Origins::of_operator(const std::string& name) {
  const auto [at, is_new] =
      operator_numbers_.try_emplace(name, kOperators + static_cast<Origin>(operators_.size()));
  if (is_new) operators_.push_back(name);
  return at->second;
}

Origins::Lists::const_iterator Origins::list_of(Origin origin) const {
  auto after = lists_.upper_bound(origin);
  if (after == lists_.begin()) return lists_.end();
  --after;
  return origin - after->first < after->second.names.size() ? after : lists_.end();
}

Origin Origins::merged(Origin first, Origin other) const {
  if (first == kNobody || first == other) return other;
  if (other == kNobody || first == kSeveral) return first;
  if (is_operator(first)) return other;
  if (is_operator(other)) return first;
  const auto a = list_of(first), b = list_of(other);
  const bool is_clear = a == b || (a != lists_.end() && a->second.is_given) ||
                        (b != lists_.end() && b->second.is_given);
  return is_clear ? first : kSeveral;
}

std::string Origins::text(Origin origin) const {
  if (is_operator(origin)) return operators_[origin - kOperators];
  const auto list = list_of(origin);
  return list == lists_.end() ? std::string() : list->second.names[origin - list->first];
}

}  // namespace tiny
