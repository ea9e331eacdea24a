#include "schedule/users.h"

#include "schedule/schedule.h"

namespace tiny {

Users::Users(const std::vector<UOp>& order) : begin_(order.size() + 1) {
  if (order.empty()) return;
  numbers_.resize(order.front().graph().id_limit());
  for (size_t i = 0; i < order.size(); ++i) numbers_[order[i].id()] = static_cast<uint32_t>(i);
  for (const UOp& u : order)
    if (!has_memory(u))
      for (const UOp& s : u.src()) ++begin_[number(s) + 1];
  for (size_t i = 0; i < order.size(); ++i) begin_[i + 1] += begin_[i];
  users_.resize(begin_.back());
  std::vector<uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (const UOp& u : order)
    if (!has_memory(u))
      for (const UOp& s : u.src()) users_[next[number(s)]++] = &u;
}

}  // namespace tiny
