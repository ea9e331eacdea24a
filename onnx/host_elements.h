// Which of the elements that decide sizes a program is told.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
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
  // Without those that keep changing; none if there are no such.
  std::optional<Known> told(const Known& known) const;
  // No program can be made without them.
  void tell_all() { is_all_told_ = true; }

 private:
  std::map<size_t, std::set<std::string>> seen_;  // by input, the first few
  bool is_all_told_ = false;
};

}  // namespace tiny::onnx
