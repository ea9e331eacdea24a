// Plans by the structure of the graph they were made for: an expression that is built again on
// other data is neither scheduled nor compiled again.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/count.h"
#include "engine/program.h"

namespace tiny {

struct CachedPlan {
  Plan plan;                      // its captured slots without memory
  std::vector<uint32_t> outputs;  // the output's positions in the order of the graph's key
};

// The plans used least recently go when there are too many.
class PlanCache {
 public:
  explicit PlanCache(int64_t limit) : limit_(limit) {}

  // Null if there is none.
  std::shared_ptr<const CachedPlan> find(const std::string& key);
  void keep(const std::string& key, std::shared_ptr<const CachedPlan> plan);
  void clear();
  int64_t size() const { return size_; }  // for any thread

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const CachedPlan> plan;
  };
  std::list<Entry> plans_;  // the latest used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> index_;
  int64_t limit_;
  Count<int64_t> size_;
};

}  // namespace tiny
