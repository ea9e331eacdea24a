// Values of the engine, through tiny.h alone: what kernels of PyTorch's operators are written with.
// A Value is a handle that knows its type and shape; nothing is computed until someone reads it.
#pragma once

#include <tiny.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

namespace tiny_torch {

using Sizes = std::vector<int64_t>;
using SizesRef = std::span<const int64_t>;

// The one context of the process; made on first use, with TINY_* settings.  Never released: tensors
// of PyTorch outlive every order of destruction.
tiny_context* context();

// Throws what the call's status says, with the engine's message.
void check(tiny_status status);

class Value {
 public:
  Value() = default;
  explicit Value(tiny_tensor* owned) : handle_(owned) {}
  Value(const Value& other) : handle_(other.handle_) { tiny_tensor_retain(handle_); }
  Value(Value&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Value& operator=(Value other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Value() { tiny_tensor_release(handle_); }

  explicit operator bool() const { return handle_ != nullptr; }
  tiny_tensor* handle() const { return handle_; }
  tiny_dtype dtype() const;
  Sizes shape() const;
  size_t shape(int64_t (&sizes)[TINY_RANK_MAX]) const;  // the rank
  int64_t rank() const;
  int64_t size(int64_t axis) const;  // negative axes count from the end
  int64_t numel() const;
  bool is_float() const;

 private:
  tiny_tensor* handle_ = nullptr;
};

// ---- Making -------------------------------------------------------------------------------------

Value from_data(tiny_dtype dtype, SizesRef sizes, const void* data, size_t bytes);
Value full(tiny_dtype dtype, SizesRef sizes, double value);
// A number of `dtype` without dimensions, part of the kernels that use it.
Value constant(tiny_dtype dtype, double value);
// The same for numbers that change from call to call (learning rates, corrections of Adam): those
// that a program would not write down are read from memory, so that kernels stay the same.
Value number(tiny_dtype dtype, double value);
Value integer(tiny_dtype dtype, int64_t value);
Value arange(tiny_dtype dtype, int64_t count);
Value list_of(SizesRef numbers);  // int64
// The same elements in a cell of its own: a write to one is not a write to the other.
Value clone(const Value& a);

// ---- Movement -----------------------------------------------------------------------------------

Value reshape(const Value& a, SizesRef sizes);
Value permute(const Value& a, SizesRef axes);
Value expand(const Value& a, SizesRef sizes);
Value flip(const Value& a, SizesRef axes);
Value slice(const Value& a, SizesRef begin, SizesRef end, SizesRef step);
Value slice_axis(const Value& a, int64_t axis, int64_t begin, int64_t end);
Value pad(const Value& a, SizesRef before, SizesRef after, double value);
Value as_strided(const Value& a, SizesRef sizes, SizesRef strides, int64_t offset);
Value concat(std::span<const Value> parts, int64_t axis);
Value unsqueeze(const Value& a, int64_t axis);
Value squeeze(const Value& a, int64_t axis);
Value transpose(const Value& a, int64_t first, int64_t second);

// ---- Arithmetic ---------------------------------------------------------------------------------

Value cast(const Value& a, tiny_dtype dtype);
Value bitcast(const Value& a, tiny_dtype dtype);
// The bits of one axis as elements of whatever size, of which they are a whole number: the first
// element of a group is the lowest part.
Value recut(const Value& a, tiny_dtype dtype);
Value unary(tiny_unary_op op, const Value& a);
Value binary(tiny_binary_op op, const Value& a, const Value& b);
Value compare(tiny_compare_op op, const Value& a, const Value& b);
Value compare(tiny_compare_op op, const Value& a, double b);
Value where(const Value& condition, const Value& a, const Value& b);
Value reduce(tiny_reduce_op op, const Value& a, SizesRef axes, bool keepdims);
Value matmul(const Value& a, const Value& b);
Value gather(const Value& a, const Value& index, int64_t axis);
Value take_along_axis(const Value& a, const Value& index, int64_t axis);
// tiny.h's: weights may be no values.
Value batch_norm(const Value& x, const Value& scale, const Value& bias, const Value& mean,
                 const Value& variance, double epsilon);
Value layer_norm(const Value& x, const Value& scale, const Value& bias, int64_t axis,
                 double epsilon);
Value group_norm(const Value& x, int64_t groups, const Value& scale, const Value& bias,
                 double epsilon);
// An operator of ONNX by its name.
std::vector<Value> onnx(const char* name, std::span<const Value> inputs, const char* attributes,
                        size_t outputs);
Value onnx(const char* name, std::initializer_list<Value> inputs, const char* attributes = nullptr);

Value operator+(const Value& a, const Value& b);
Value operator-(const Value& a, const Value& b);
Value operator*(const Value& a, const Value& b);
Value operator/(const Value& a, const Value& b);
Value operator-(const Value& a);
// Numbers have the dtype of what they meet.
Value operator+(const Value& a, double b);
Value operator-(const Value& a, double b);
Value operator*(const Value& a, double b);
Value operator/(const Value& a, double b);
Value operator-(double a, const Value& b);
Value operator/(double a, const Value& b);
Value logical_and(const Value& a, const Value& b);

// ---- Gradients ----------------------------------------------------------------------------------

// The same value, made of nothing.
Value detach(const Value& a);
// Of sum(output * upstream) by each of `wrt`, from which `output` was built; zeros where it was
// not.
std::vector<Value> gradients(const Value& output, const Value& upstream,
                             std::span<const Value> wrt);

// ---- Memory -------------------------------------------------------------------------------------

void assign(const Value& target, const Value& value);
void realize(std::span<tiny_tensor* const> handles);
void read(const Value& value, void* data, size_t bytes);

}  // namespace tiny_torch
