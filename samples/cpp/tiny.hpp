// tiny.hpp - tiny.h for C++20: handles that release themselves, errors as exceptions, operators.
//
// A thin layer to copy into a program and to extend there: each function is one call of tiny.h,
// which says what it does.  `get()` of a handle is what other calls of tiny.h take.
#pragma once

#include <tiny.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tiny {

class Error : public std::runtime_error {
 public:
  explicit Error(tiny_status status) : Error(status, tiny_last_error()) {}
  Error(tiny_status status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  tiny_status status() const { return status_; }

 private:
  tiny_status status_;
};

inline void check(tiny_status status) {
  if (status != TINY_OK) throw Error(status);
}

// What a call makes: its out-parameter comes last.
template <typename T, typename... Parameters, typename... Arguments>
T make(tiny_status (*call)(Parameters...), const Arguments&... arguments) {
  T out{};
  check(call(arguments..., &out));
  return out;
}

// One handle, which copies share.
template <typename T, auto retain, auto release>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T* owned) : handle_(owned) {}
  Handle(const Handle& other) : handle_(other.handle_) {
    if (handle_ != nullptr) retain(handle_);
  }
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() { release(handle_); }

  T* get() const { return handle_; }

 private:
  T* handle_ = nullptr;
};

using Shape = std::vector<int64_t>;

// The dtype whose elements are of the type T in memory.
template <typename T>
constexpr tiny_dtype dtype_of() {
  static_assert(std::is_arithmetic_v<T>, "elements are numbers");
  if constexpr (std::same_as<T, bool>) return TINY_BOOL;
  if constexpr (std::floating_point<T>) return sizeof(T) == 4 ? TINY_FLOAT32 : TINY_FLOAT64;
  constexpr int kLog2 = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return (std::is_signed_v<T> ? TINY_INT8 : TINY_UINT8) + kLog2;
}

class Tensor : public Handle<tiny_tensor, tiny_tensor_retain, tiny_tensor_release> {
 public:
  using Handle::Handle;

  tiny_dtype dtype() const { return make<tiny_dtype>(tiny_tensor_dtype, get()); }
  Shape shape() const {
    Shape dims(TINY_RANK_MAX);
    size_t rank = 0;
    check(tiny_tensor_shape(get(), dims.data(), dims.size(), &rank));
    dims.resize(rank);
    return dims;
  }

  // The elements, row-major; T must be the dtype's type.
  template <typename T>
  std::vector<T> read() const {
    if (dtype() != dtype_of<T>())
      throw Error(TINY_ERROR_DTYPE, std::string("read as ") + tiny_dtype_name(dtype_of<T>()) +
                                        ": the tensor is " + tiny_dtype_name(dtype()));
    std::vector<T> elements(static_cast<size_t>(make<int64_t>(tiny_tensor_numel, get())));
    check(tiny_tensor_read(get(), elements.data(), elements.size() * sizeof(T)));
    return elements;
  }
  template <typename T>
  T item() const {
    const std::vector<T> elements = read<T>();
    if (elements.size() != 1)
      throw Error(TINY_ERROR_SHAPE, "item: " + std::to_string(elements.size()) + " elements");
    return elements[0];
  }

  Tensor cast(tiny_dtype dtype) const { return of(tiny_cast, get(), dtype); }
  Tensor reshape(const Shape& dims) const {
    return of(tiny_reshape, get(), dims.data(), dims.size());
  }
  Tensor permute(const Shape& axes) const {
    return of(tiny_permute, get(), axes.data(), axes.size());
  }
  // Over these axes, or over all.
  Tensor reduce(tiny_reduce_op op, const Shape& axes = {}, tiny_flags flags = 0) const {
    return of(tiny_reduce, op, get(), axes.empty() ? nullptr : axes.data(), axes.size(), flags);
  }
  Tensor sum(const Shape& axes = {}) const { return reduce(TINY_SUM, axes); }
  Tensor mean(const Shape& axes = {}) const { return reduce(TINY_MEAN, axes); }
  Tensor argmax(int64_t axis) const { return of(tiny_argmax, get(), axis, tiny_flags{}); }
  void assign(const Tensor& value) { check(tiny_assign(get(), value.get())); }

  // A number beside a tensor, whose dtype it takes if that can hold it.
  class Number {
   public:
    Number(std::integral auto value) : whole_(value), is_whole_(true) {}  // NOLINT: converts
    Number(std::floating_point auto value) : real_(value) {}              // NOLINT: converts
    Tensor beside(const Tensor& tensor) const {
      const Handle<tiny_context, tiny_context_retain, tiny_context_release> context(
          make<tiny_context*>(tiny_tensor_context, tensor.get()));
      return is_whole_ ? of(tiny_scalar_int, context.get(), whole_)
                       : of(tiny_scalar_float, context.get(), real_);
    }

   private:
    int64_t whole_ = 0;
    double real_ = 0;
    bool is_whole_ = false;
  };
  class Operand {
   public:
    Operand(const Tensor& tensor) : tensor_(&tensor) {}          // NOLINT: converts
    Operand(std::integral auto value) : number_(value) {}        // NOLINT: converts
    Operand(std::floating_point auto value) : number_(value) {}  // NOLINT: converts
    Tensor beside(const Tensor& other) const { return tensor_ ? *tensor_ : number_.beside(other); }

   private:
    const Tensor* tensor_ = nullptr;
    Number number_ = 0;
  };
  friend Tensor binary(tiny_binary_op op, const Tensor& a, const Operand& b) {
    return of(tiny_binary, op, a.get(), b.beside(a).get());
  }
  friend Tensor compare(tiny_compare_op op, const Tensor& a, const Operand& b) {
    return of(tiny_compare, op, a.get(), b.beside(a).get());
  }
  friend Tensor operator+(const Tensor& a, const Operand& b) { return binary(TINY_ADD, a, b); }
  friend Tensor operator-(const Tensor& a, const Operand& b) { return binary(TINY_SUB, a, b); }
  friend Tensor operator*(const Tensor& a, const Operand& b) { return binary(TINY_MUL, a, b); }
  friend Tensor operator/(const Tensor& a, const Operand& b) { return binary(TINY_DIV, a, b); }
  friend Tensor operator+(const Number& a, const Tensor& b) { return a.beside(b) + b; }
  friend Tensor operator-(const Number& a, const Tensor& b) { return a.beside(b) - b; }
  friend Tensor operator*(const Number& a, const Tensor& b) { return a.beside(b) * b; }
  friend Tensor operator/(const Number& a, const Tensor& b) { return a.beside(b) / b; }
  friend Tensor operator-(const Tensor& a) { return unary(TINY_NEG, a); }
  friend Tensor matmul(const Tensor& a, const Tensor& b) {
    return of(tiny_matmul, a.get(), b.get());
  }
  friend Tensor unary(tiny_unary_op op, const Tensor& a) { return of(tiny_unary, op, a.get()); }
  friend Tensor relu(const Tensor& a) { return unary(TINY_RELU, a); }
  friend Tensor exp(const Tensor& a) { return unary(TINY_EXP, a); }
  friend Tensor softmax(const Tensor& a, int64_t axis) { return of(tiny_softmax, a.get(), axis); }
  // The mean loss of logits [batch, classes] for integers [batch].
  friend Tensor cross_entropy(const Tensor& logits, const Tensor& classes) {
    return of(tiny_cross_entropy, logits.get(), classes.get(), nullptr, -100, 0,
              TINY_REDUCTION_MEAN);
  }

  template <typename... Parameters, typename... Arguments>
  static Tensor of(tiny_status (*call)(Parameters...), const Arguments&... arguments) {
    return Tensor(make<tiny_tensor*>(call, arguments...));
  }
};

inline std::vector<tiny_tensor*> pointers(std::span<const Tensor> tensors) {
  std::vector<tiny_tensor*> handles;
  for (const Tensor& tensor : tensors) handles.push_back(tensor.get());
  return handles;
}
// Takes over what a call wrote into an array.
inline std::vector<Tensor> owned(std::span<tiny_tensor* const> handles) {
  std::vector<Tensor> tensors;
  tensors.reserve(handles.size());
  for (tiny_tensor* handle : handles) tensors.emplace_back(handle);
  return tensors;
}

inline std::vector<Tensor> gradient(const Tensor& loss, std::span<const Tensor> wrt) {
  tiny_tensor* const losses[] = {loss.get()};
  std::vector<tiny_tensor*> gradients(wrt.size());
  check(tiny_gradient(losses, 1, pointers(wrt).data(), wrt.size(), nullptr, 0, 0, gradients.data(),
                      gradients.size()));
  return owned(gradients);
}
inline void export_onnx(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                        const std::string& path) {
  check(tiny_export_onnx(pointers(inputs).data(), inputs.size(), pointers(outputs).data(),
                         outputs.size(), path.c_str()));
}

class Context : public Handle<tiny_context, tiny_context_retain, tiny_context_release> {
 public:
  Context() : Handle(make<tiny_context*>(tiny_context_create, nullptr)) {}

  template <typename T>
  Tensor tensor(const Shape& shape, const std::vector<T>& elements) const {
    return Tensor::of(tiny_tensor_from_data, get(), dtype_of<T>(), shape.data(), shape.size(),
                      elements.data(), elements.size() * sizeof(T));
  }
  // What each run of a program is given.
  Tensor input(tiny_dtype dtype, const Shape& shape) const {
    return Tensor::of(tiny_input, get(), dtype, shape.data(), shape.size());
  }
  Tensor load(const std::string& path) const {
    return Tensor::of(tiny_tensor_load, get(), path.c_str());
  }
};

// Tensors by name: a module's state, a file.
class Archive : public Handle<tiny_archive, tiny_archive_retain, tiny_archive_release> {
 public:
  using Handle::Handle;
  static Archive load(const Context& context, const std::string& path) {
    return Archive(make<tiny_archive*>(tiny_archive_load, context.get(), path.c_str()));
  }
  void assign(const Archive& source, tiny_flags flags = 0) {
    check(tiny_archive_assign(get(), source.get(), flags));
  }
  void save(const std::string& path) const { check(tiny_archive_save(get(), path.c_str())); }
};

class Module : public Handle<tiny_module, tiny_module_retain, tiny_module_release> {
 public:
  using Handle::Handle;
  Module(const Context& context, int64_t seed)
      : Handle(make<tiny_module*>(tiny_module_create, context.get(), seed)) {}
  Module child(const char* name) const {
    return Module(make<tiny_module*>(tiny_module_child, get(), name));
  }
  void set_training(bool training) { check(tiny_module_set_training(get(), training)); }

  Tensor linear(const char* name, const Tensor& x, int64_t features, tiny_flags flags = 0) const {
    return Tensor::of(tiny_module_linear, get(), name, x.get(), features, flags);
  }
  Tensor batch_norm(const char* name, const Tensor& x) const {
    return Tensor::of(tiny_module_batch_norm, get(), name, x.get(), 0.1, 1e-5, tiny_flags{});
  }
  Tensor dropout(const Tensor& x, double p) const {
    return Tensor::of(tiny_module_dropout, get(), x.get(), p);
  }

  std::vector<Tensor> parameters() const {
    std::vector<Tensor> parameters(make<size_t>(tiny_module_parameter_count, get()));
    for (size_t i = 0; i < parameters.size(); ++i)
      parameters[i] = Tensor::of(tiny_module_parameter_at, get(), i);
    return parameters;
  }
  Archive state() const { return Archive(make<tiny_archive*>(tiny_module_state, get())); }
};

class Optimizer : public Handle<tiny_optimizer, tiny_optimizer_retain, tiny_optimizer_release> {
 public:
  Optimizer(const Context& context, tiny_optimizer_kind kind, std::span<const Tensor> parameters)
      : Handle(make<tiny_optimizer*>(tiny_optimizer_create, context.get(), kind)) {
    make<int64_t>(tiny_optimizer_add, get(), pointers(parameters).data(), parameters.size());
  }
  void set(const char* name, double value) { check(tiny_optimizer_set(get(), 0, name, value)); }
  // One gradient for each parameter.
  void step(std::span<const Tensor> gradients) {
    check(tiny_optimizer_step(get(), pointers(gradients).data(), gradients.size(), nullptr));
  }
};

// Batches of the rows of tensors:  while (loader.next()) .. loader[0] .. loader[1] ..
class Loader : public Handle<tiny_loader, tiny_loader_retain, tiny_loader_release> {
 public:
  Loader(std::span<const Tensor> arrays, int64_t batch, int64_t seed, tiny_flags flags)
      : Handle(make<tiny_loader*>(tiny_loader_create, pointers(arrays).data(), arrays.size(), batch,
                                  seed, size_t{2}, flags)) {}
  // The number of rows; 0 at the end of the epoch.
  int64_t next() { return make<int64_t>(tiny_loader_next, get()); }
  Tensor operator[](size_t index) const { return Tensor::of(tiny_loader_tensor, get(), index); }
};

class Model : public Handle<tiny_model, tiny_model_retain, tiny_model_release> {
 public:
  Model(const Context& context, const std::string& path)
      : Handle(make<tiny_model*>(tiny_model_load, context.get(), path.c_str())) {}
  // Its outputs for these inputs, computed now, or as a part of the caller's graph.
  std::vector<Tensor> run(std::span<const Tensor> inputs) const {
    return outputs(tiny_model_run, inputs);
  }
  std::vector<Tensor> apply(std::span<const Tensor> inputs) const {
    return outputs(tiny_model_apply, inputs);
  }

 private:
  std::vector<Tensor> outputs(decltype(&tiny_model_run) call,
                              std::span<const Tensor> inputs) const {
    std::vector<tiny_tensor*> outputs(make<size_t>(tiny_model_output_count, get()));
    check(call(get(), pointers(inputs).data(), inputs.size(), outputs.data(), outputs.size()));
    return owned(outputs);
  }
};

class Program : public Handle<tiny_program, tiny_program_retain, tiny_program_release> {
 public:
  Program(std::span<const Tensor> inputs, std::span<const Tensor> outputs)
      : Handle(make<tiny_program*>(tiny_program_compile, pointers(inputs).data(), inputs.size(),
                                   pointers(outputs).data(), outputs.size())) {}
};

// One execution of a program, again and again; of one owner.
class Run {
 public:
  explicit Run(const Program& program) : run_(make<tiny_run*>(tiny_run_create, program.get())) {}
  tiny_run* get() const { return run_.get(); }

  void execute(std::span<const Tensor> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) check(tiny_run_set_input(get(), i, inputs[i].get()));
    check(tiny_run_execute(get()));
  }
  Tensor output(size_t index) const { return Tensor::of(tiny_run_output_tensor, get(), index); }

 private:
  struct Release {
    void operator()(tiny_run* run) const { tiny_run_release(run); }
  };
  std::unique_ptr<tiny_run, Release> run_;
};

}  // namespace tiny
