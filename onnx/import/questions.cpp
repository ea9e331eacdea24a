#include "onnx/import/questions.h"

#include <algorithm>

namespace tiny::onnx {

namespace {

// So many elements, so many times for one program: each answer is a part of its key, and costs an
// import and a run.
constexpr int64_t kElementsMax = 1024;
constexpr size_t kQuestionsMax = 64;

}  // namespace

const HostTensor* Questions::find(const Question& question) const {
  if (!decisions_) return nullptr;
  const auto at = std::ranges::find(*decisions_, question, &Decision::question);
  return at == decisions_->end() ? nullptr : &at->answer;
}

bool Questions::may_ask(int64_t elements) {
  if (!asking_.node || elements > kElementsMax) return false;
  has_guessed_ = has_guessed_ || !decisions_;
  return decisions_ && decisions_->size() < kQuestionsMax;
}

void Questions::add_size(std::string_view variable, const Question& question) {
  sizes_.push_back({std::string(variable), question});
}

const Question* Questions::find_size(std::string_view variable) const {
  const auto at = std::ranges::find(sizes_, variable, &Size::variable);
  return at == sizes_.end() || !at->question.node ? nullptr : &at->question;
}

}  // namespace tiny::onnx
