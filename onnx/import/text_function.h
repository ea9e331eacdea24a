// What functions of texts share: they are called by runs (engine/custom_op.h), with where the texts
// of the run are as the first input, and the numbers of texts as the others.
#pragma once

#include <clocale>
#include <functional>
#include <string>

#include "engine/custom_op.h"
#include "onnx/import/call.h"
#include "onnx/texts.h"

namespace tiny::onnx {

class TextFunction : public CustomOp {
 public:
  explicit TextFunction(std::string name) : CustomOp("", std::move(name)) {}
  void run(const RunningCall& call) const final;
  virtual void compute(Texts& texts, const RunningCall& call) const = 0;

 protected:
  static size_t count_of(const RunningCall::Value& value);
  static const int64_t* numbers_of(const RunningCall::Value& value) {
    return static_cast<const int64_t*>(value.data);
  }
};

// Texts as a constant of their numbers, one axis.
Tensor text_constant(const Call& call, const std::vector<std::string>& texts);
// What a function makes of texts.
Tensors call_texts(const Call& call, const Ref<const CustomOp>& function, const Tensors& inputs,
                   size_t outputs);
// Numbers that are in the order of the texts, byte by byte, and equal where these are.
Tensor text_ranks(const Call& call, const Tensor& x);
// Numbers as texts and back; a text that is none is an error of the run.
Tensor text_of_numbers(const Call& call, const Tensor& x);
Tensor numbers_of_text(const Call& call, const Tensor& x, DType dtype);

// Letters of every script, of texts in UTF-8; what is none stays.
class LetterCase {
 public:
  LetterCase();
  ~LetterCase();
  LetterCase(const LetterCase&) = delete;
  LetterCase& operator=(const LetterCase&) = delete;
  std::string lower(const std::string& text) const;
  std::string upper(const std::string& text) const;

 private:
  locale_t locale_;
};

}  // namespace tiny::onnx
