// What inputs' elements decide and a program cannot be made without: a run finds it out first.
//
// An import that asks is ended (Undecided): a program that computes the value finds the answer, and
// the graph is imported anew with it.  A question is known again by its node, and its place among
// those of the node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/model.h"
#include "tensor/tensor.h"

namespace tiny::onnx {

// Asked in this node, as its `place`th question.
struct Question {
  const Node* node = nullptr;
  int64_t place = 0;
  bool operator==(const Question&) const = default;
};
struct Decision {
  Question question;
  HostTensor answer;
};
// No Error, since nothing but who makes programs may go on after it.
struct Undecided {
  Question question;
  Tensor value;
};

// Those of one import.
class Questions {
 public:
  // The node that asks, and how much it has asked and could have asked.
  struct Asking {
    const Node* node = nullptr;
    int64_t count = 0;
  };

  // From now on may be asked; the answers so far.
  void set_decisions(const std::vector<Decision>* decisions) { decisions_ = decisions; }
  // Whether an import went on without an answer, since nobody could be asked.
  bool has_guessed() const { return has_guessed_; }

  // Who asks next; the one before.
  Asking set_asking(const Asking& asking) { return std::exchange(asking_, asking); }
  Question next() { return {asking_.node, asking_.count++}; }
  // Null if it has not been answered.
  const HostTensor* find(const Question& question) const;
  // Whether so many elements can be asked; else, if it is nobody's fault but that of who cannot be
  // asked, what goes on is a guess.
  bool may_ask(int64_t elements);

  // A size that runs compute, as a question; null node: it cannot be asked.
  void add_size(std::string_view variable, const Question& question);
  const Question* find_size(std::string_view variable) const;

 private:
  struct Size {
    std::string variable;
    Question question;
  };

  const std::vector<Decision>* decisions_ = nullptr;
  bool has_guessed_ = false;
  Asking asking_;
  std::vector<Size> sizes_;
};

}  // namespace tiny::onnx
