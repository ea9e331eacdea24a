// Which of the elements that decide sizes a program is told.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "onnx/model.h"

namespace tiny::onnx {

// Elements of inputs that shapes depend on are numbers of a program, which is made anew for others.
// Where they keep changing (a position in a text, the size that a picture is to have) the run is to
// find them, as it does what it computes, if a program can be made of that.
class HostElements {
 public:
  using Known = std::vector<std::optional<HostTensor>>;

  void learn(const Known& known);
  // Takes out those that keep changing; whether there are such.
  bool forget(Known& known) const;
  // No program can be made without them.
  void tell_all() { is_all_told_ = true; }

 private:
  int64_t count(int64_t input) const { return std::ranges::count(inputs_, input); }

  // The first few values of each: whose they are, and their hashes.
  Ints inputs_, hashes_;
  bool is_all_told_ = false;
};

}  // namespace tiny::onnx
