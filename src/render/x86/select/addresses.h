// Addresses that are made once for all their users.
//
// reads: values.
// makes: values of Address ops, by the emitter.
#pragma once

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "render/x86/select/values.h"

namespace tiny::x86 {

// Address(base, x + c, unit) is base + x*unit, made once for a block and the ones inside it, plus
// c*unit.
class Addresses {
 public:
  explicit Addresses(Values& values) : v_(values) {}

  void select(LinearId id);
  void open_block() { ++depth_; }
  void close_block();  // what was made in it is forgotten

 private:
  using Key = std::tuple<LinearId, LinearId, int64_t>;
  VReg form(LinearId index, VReg base, int64_t unit);

  Values& v_;
  size_t depth_ = 0;
  std::map<Key, VReg> formed_;
  std::vector<std::pair<size_t, Key>> formed_at_;  // the depth of the block that made it
};

}  // namespace tiny::x86
