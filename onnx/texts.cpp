#include "onnx/texts.h"

#include "base/error.h"

namespace tiny::onnx {

int64_t Texts::count() const {
  const std::lock_guard guard(lock_);
  return first_ + static_cast<int64_t>(texts_.size());
}

// Below no lock is needed, since nothing changes there.
int64_t Texts::find(std::string_view text) const {
  if (below_)
    if (const int64_t number = below_->find(text); number >= 0) return number;
  const auto at = numbers_.find(text);
  return at == numbers_.end() ? -1 : at->second;
}

int64_t Texts::number_of(std::string_view text) {
  if (below_)
    if (const int64_t number = below_->find(text); number >= 0) return number;
  const std::lock_guard guard(lock_);
  if (const auto at = numbers_.find(text); at != numbers_.end()) return at->second;
  const int64_t number = first_ + static_cast<int64_t>(texts_.size());
  numbers_.emplace(texts_.emplace_back(text), number);
  return number;
}

const std::string& Texts::text(int64_t number) const {
  if (below_ && number < first_) return below_->own(number);
  const std::lock_guard guard(lock_);
  return own(number);
}

const std::string& Texts::own(int64_t number) const {
  if (below_ && number < first_) return below_->own(number);
  const int64_t at = number - first_;
  require(at >= 0 && at < static_cast<int64_t>(texts_.size()), Status::Index,
          "no text has the number ", number);
  return texts_[static_cast<size_t>(at)];
}

}  // namespace tiny::onnx
