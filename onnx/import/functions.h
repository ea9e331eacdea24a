// Functions of tensors that several importers share.
#pragma once

#include <span>
#include <vector>

#include "base/error.h"
#include "onnx/import/call.h"
#include "tensor/window.h"

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
  throw_error(Status::InvalidModel, "the attribute ", name, " is \"", text, "\"; wanted ",
              join(wanted, ", "));
}

// `axis` counted from the front, Error{InvalidModel} unless it is one of `rank`.
int64_t axis_of(int64_t axis, int64_t rank);
// The same for distinct axes.
Ints axes_of(const Ints& axes, int64_t rank);

// The operand b of an operator before version 7: stretched to a's axes from `axis` on where the
// attribute `broadcast` is set, and otherwise of a's very shape.
Tensor aligned(const Call& call, const Tensor& a, const Tensor& b);

// The windows that the attributes of a convolution with these weights say, and those of a pool.
Window convolution_window(const Call& call, const Tensor& x, const Tensor& weights);
Window pool_window(const Call& call, const Tensor& x);
// A convolution as the attributes of Conv say, of inputs 0 to 2; a product of matrices as those of
// Gemm do.
Tensor conv_of(const Call& call);
Tensor gemm_of(const Call& call);

}  // namespace tiny::onnx
