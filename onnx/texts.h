// Texts by numbers.  A tensor of texts carries the number of each of its elements, int64: equal
// texts have equal numbers, so that what moves, chooses and compares elements needs to know nothing
// of them, and kernels never see a text.  What looks into texts is a function of the host.
//
// A program has the texts of its model, whose numbers are part of its kernels; a run has a table of
// its own above that, which ends with it.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/ref.h"

namespace tiny::onnx {

// Any thread may use it.
class Texts : public RefCounted {
 public:
  // The first text is the empty one, number 0.
  Texts() { number_of({}); }
  // All of `below`, which does not change any more, and what is added.
  explicit Texts(Ref<const Texts> below) : below_(std::move(below)), first_(below_->count()) {}

  int64_t count() const;
  // The text's number; it is added if it is new.
  int64_t number_of(std::string_view text);
  // Error{Index} for a number that none has.  It stays as long as the table.
  const std::string& text(int64_t number) const;

 private:
  // While nobody adds any; < 0: none.
  int64_t find(std::string_view text) const;
  const std::string& own(int64_t number) const;

  Ref<const Texts> below_;
  int64_t first_ = 0;  // number that is not `below_`'s
  mutable std::mutex lock_;
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, int64_t> numbers_;  // views of `texts_`
};

}  // namespace tiny::onnx
