// One node while it is imported: its operands, its attributes, and the operator set it was written
// for.  What an importer function sees.
//
// An operand is a tensor of the lazy graph.  Operands that decide shapes (axes, sizes, pads) must
// be known now: the functions that return numbers compute them on the host, or say that they depend
// on input data (Error{Unsupported}) or on a free dimension (FreeDimension).
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onnx/model.h"
#include "tensor/tensor.h"

namespace tiny::onnx {

class Importer;

using Tensors = std::vector<Tensor>;

// ONNX's element type of texts, whose carrier are their numbers (onnx/texts.h).
inline constexpr int32_t kTextType = 8;

// The keys of maps: texts, or integers.
struct MapKeys {
  std::vector<std::string> texts;
  Ints integers;
};

// A tensor, and its elements where the importer knows them; or a sequence of tensors, whose length
// is always known; or a map; or nothing, where an optional value is not there.
struct Value {
  Tensor tensor = {};
  std::shared_ptr<const HostTensor> known = {};  // null: not known
  std::shared_ptr<const Tensors> sequence = {};  // null: a tensor
  // ONNX's type where the tensor, or each of the sequence, is its carrier (io/tensor_pb.h, or
  // kTextType); 0: its own.
  int32_t carried = 0;
  std::shared_ptr<const std::vector<Value>> map = {};  // keys [n] and values [n]; null: none
  std::shared_ptr<const MapKeys> columns = {};         // the tensor's rows are maps with these keys
  bool is_nothing = false;
  bool is_given() const { return tensor || sequence || map; }
  // Whether a tensor says all of it.
  bool is_plain() const { return tensor && carried == 0 && !columns; }
};
using Values = std::vector<Value>;

// The tensors of which values are made, one after the other; and values of such a form of other
// tensors.
Tensors flat(const Values& values);
Values formed(const Values& like, const Tensors& tensors);
// Whether these have the same form: kinds, lengths and element types.
bool are_alike(const Values& a, const Values& b);

// Makes a size of an element that the run finds: its place among others, and itself (int64, [1]).
using FoundSize = std::function<tiny::Dim(size_t, const Tensor&)>;

class Call {
 public:
  Call(Importer& importer, const Node& node, std::vector<Value> inputs)
      : importer_(importer), node_(node), inputs_(std::move(inputs)) {}

  const Node& node() const { return node_; }
  Importer& importer() const { return importer_; }
  // All of them, or the one of this name whatever its type; null if the node has none.
  const std::vector<Attribute>& attributes() const;
  const Attribute* any_attribute(const char* name) const;
  int64_t version() const { return node_.version; }
  const Ref<Context>& context() const;

  // Inputs up to the last one given; `has` says whether one of them is given.
  size_t inputs() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].is_given(); }
  // Error{InvalidModel} if the input is left out.
  const Tensor& in(size_t i) const;
  bool is_sequence(size_t i) const { return has(i) && inputs_[i].sequence; }
  const Tensors& sequence(size_t i) const;
  // An input as it was given, whatever it is.
  Value input(size_t i) const { return i < inputs_.size() ? inputs_[i] : Value{}; }
  // Makes output i a sequence of what the inputs are; its place in the function's result is not
  // looked at.
  void set_sequence(size_t i, Tensors tensors);
  // ONNX's type of an input that the tensor carries, or 0; and of an output.
  int32_t carried(size_t i) const { return i < inputs_.size() ? inputs_[i].carried : 0; }
  void set_carried(size_t i, int32_t type);
  // Says what output i is.  Its tensor, if that says all of it, is to be in the function's result.
  void set_value(size_t i, Value value);
  // What was said of output i by the calls above.
  Value made(size_t i) const { return i < made_.size() ? made_[i] : Value{}; }
  // All inputs; Error{InvalidModel} if one is left out or there are fewer than `least`.
  Tensors all(size_t least = 1) const;
  // The input, or `fallback` where it is left out.
  Tensor in_or(size_t i, const Tensor& fallback) const { return has(i) ? in(i) : fallback; }

  size_t outputs() const { return node_.outputs.size(); }
  bool wants(size_t i) const { return i < node_.outputs.size() && !node_.outputs[i].empty(); }
  // Error{Unsupported} if an output from `first` on is wanted.
  void refuse_outputs(size_t first) const;

  // Operands read on the host.  Where free dimensions decide what is to be a number: FreeDimension.
  bool known(size_t i) const;  // whether no input's elements decide it, nor what a run computes
  HostTensor value(size_t i) const;
  Ints ints(size_t i) const;
  // Integers, or expressions over free dimensions and sizes that the run finds, which nothing
  // bounds but where `found` does.
  Shape sizes(size_t i, const FoundSize& found = {}) const;
  std::vector<double> reals(size_t i) const;
  int64_t integer(size_t i) const;  // exactly one element
  tiny::Dim size(size_t i) const;
  double real(size_t i) const;
  // The one element of a tensor that a subgraph made; `what` names it in messages.
  int64_t number_of(const Tensor& tensor, const char* what) const;

  // Attributes; Error{InvalidModel} for one of another type, and where there is no fallback for one
  // that is missing.
  bool has_attribute(const char* name) const { return any_attribute(name) != nullptr; }
  int64_t attr(const char* name, int64_t fallback) const;
  int64_t attr(const char* name) const;
  bool flag(const char* name, bool fallback) const { return attr(name, fallback ? 1 : 0) != 0; }
  float real_attr(const char* name, float fallback) const;
  std::string text_attr(const char* name, const std::string& fallback) const;
  std::optional<Ints> ints_attr(const char* name) const;
  Ints ints_attr(const char* name, const Ints& fallback) const;
  std::vector<float> floats_attr(const char* name) const;  // none if it is missing
  std::optional<std::vector<std::string>> strings_attr(const char* name) const;
  const Graph& graph_attr(const char* name) const;
  const TensorData& tensor_attr(const char* name) const;
  // The dtype of an attribute that holds an ONNX element type.
  DType dtype_attr(const char* name, DType fallback) const;
  DType dtype_attr(const char* name) const;
  // Attributes that the operator may have and that change nothing of what is computed here.
  void pass_over(std::initializer_list<const char*> names) const {
    for (const char* name : names) ask(name);
  }

  // Error{InvalidArgument} for a bare attribute that none of the calls above has named.
  void require_asked() const;

  // ONNX's element type in an attribute; `fallback` where there is none.
  int64_t type_attr(const char* name, int64_t fallback) const;

  // Elements as a constant; of a type that it only carries Error{Unsupported}.
  Tensor constant(const HostTensor& tensor) const;
  Tensor constant(const Ints& values) const;  // int64, one axis
  Tensor constant(const Shape& sizes) const;  // the same; free dimensions stay what they are
  Tensor constant(const TensorData& data) const;
  // The same of any type, as output 0.
  Tensor constant_of(const TensorData& data);

  // The outputs of a graph in an attribute, given its inputs; it sees the names around the node.
  Tensors subgraph(const Graph& graph, const Tensors& inputs) const;

  // Whether no input's elements decide it, nor a size that the run computes.
  bool is_known(const Tensor& tensor) const;

  // Throws about this node.
  template <class... Parts>
  [[noreturn]] void unsupported(const Parts&... parts) const {
    throw_error(Status::Unsupported, parts...);
  }
  template <class... Parts>
  void check(bool ok, const Parts&... parts) const {
    require(ok, Status::InvalidModel, parts...);
  }

 private:
  const Attribute* attribute(const char* name, AttributeType type) const;
  void ask(std::string_view name) const;

  Importer& importer_;
  const Node& node_;
  std::vector<Value> inputs_;
  std::vector<Value> made_;                 // what was said of outputs
  mutable std::vector<std::string> asked_;  // names of attributes, of a node alone
};

// Whether an input is of texts.
inline bool is_text(const Call& call, size_t i) {
  return call.carried(i) == kTextType;
}
// An input of places.  What a branch needs may be computed although it is not taken: there they are
// 0, so that none is out of range.
Tensor places(const Call& call, size_t i);
// Says what the outputs are; what the operator's function is to give back.
Tensors give(Call& call, const Values& values);

// The dimensions of a tensor as numbers; FreeDimension if one is not.
Ints dims_of(const Tensor& tensor);
// Negative axes count from the end; Error{InvalidModel} for one that is not there.
int64_t dim_of(const Tensor& tensor, int64_t axis);  // a number, or FreeDimension
tiny::Dim size_of(const Tensor& tensor, int64_t axis);

// A number that takes the dtype of what it meets.
inline Tensor number(const Call& c, double value) {
  return Tensor::weak_float(c.context(), value);
}
inline Tensor number_int(const Call& c, int64_t value) {
  return Tensor::weak_int(c.context(), value);
}

}  // namespace tiny::onnx
