// Functions of tensors that several importers share.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "onnx/import/call.h"
#include "tensor/indexing.h"
#include "tensor/quantization.h"
#include "tensor/reduce.h"

namespace tiny::onnx {

// What a text of an attribute means.
template <class T>
struct Named {
  const char* text;
  T meaning;
};
// What the attribute `name` says, of what it may say; Error{InvalidModel} for another text.
template <class T>
T named_attr(const Call& call, const char* name, const char* fallback,
             std::span<const Named<T>> known) {
  const std::string text = call.text_attr(name, fallback);
  std::vector<std::string> wanted;
  for (const Named<T>& one : known) {
    if (text == one.text) return one.meaning;
    wanted.emplace_back(one.text);
  }
  throw Error(Status::InvalidModel,
              cat("the attribute ", name, " is \"", text, "\"; wanted ", join(wanted, ", ")));
}

// `axis` counted from the front, Error{InvalidModel} unless it is one of `rank`.
int64_t axis_of(int64_t axis, int64_t rank);
// The same for distinct axes.
Ints axes_of(const Ints& axes, int64_t rank);

// Elements indices[0], indices[1], .. of one axis; the indices are checked now.
inline Tensor take(const Tensor& a, const Ints& indices, int64_t axis) {
  return index_select(a, indices, axis);
}
// Elements of `data` at these row-major positions; a position that is false in `valid` (bool, of
// the same shape) is Error{Index} when the program runs.
Tensor gather_flat(const Tensor& data, const Tensor& position, const Tensor& valid);

// The operand b of an operator before version 7: stretched to a's axes from `axis` on where the
// attribute `broadcast` is set, and otherwise of a's very shape.
Tensor aligned(const Call& call, const Tensor& a, const Tensor& b);

// The sum of `a` in its own dtype.
inline Tensor sum_same(const Tensor& a, const Ints& axes, bool keepdims) {
  return sum_in_dtype(a, axes, keepdims);
}

}  // namespace tiny::onnx
