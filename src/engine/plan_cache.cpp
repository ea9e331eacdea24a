#include "engine/plan_cache.h"

namespace tiny {

namespace {

// The key of a larger graph is not kept.
constexpr size_t kKeyBytesMax = 1 << 20;

}  // namespace

std::shared_ptr<const CachedPlan> PlanCache::find(const std::string& key) {
  const auto at = index_.find(key);
  if (at == index_.end()) return nullptr;
  plans_.splice(plans_.begin(), plans_, at->second);
  return plans_.front().plan;
}

void PlanCache::keep(const std::string& key, std::shared_ptr<const CachedPlan> plan) {
  if (limit_ <= 0 || key.size() > kKeyBytesMax || index_.contains(key)) return;
  plans_.push_front({key, std::move(plan)});
  index_.emplace(plans_.front().key, plans_.begin());
  ++size_;
  if (size_ <= limit_) return;
  index_.erase(plans_.back().key);
  plans_.pop_back();
  size_ += -1;
}

void PlanCache::clear() {
  index_.clear();
  plans_.clear();
  size_ = {};
}

}  // namespace tiny
