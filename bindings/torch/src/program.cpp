// Programs for torch.compile: a graph that was recorded on placeholders is compiled once, and each
// call is one execution of it, without the cost of its operators.
#include <ATen/ops/empty_strided.h>
#include <torch/library.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>

#include "call.h"
#include "variables.h"

namespace tiny_torch {

namespace {

using at::Tensor;
using TensorList = std::vector<Tensor>;

// Objects that Python holds by numbers.
template <class Object>
class Numbered {
 public:
  int64_t add(std::shared_ptr<Object> object) {
    const std::lock_guard guard(lock_);
    objects_[next_] = std::move(object);
    return next_++;
  }
  std::shared_ptr<Object> at(int64_t number) {
    const std::lock_guard guard(lock_);
    const auto found = objects_.find(number);
    TORCH_CHECK(found != objects_.end(), "tiny: no program has the number ", number);
    return found->second;
  }
  void remove(int64_t number) {
    const std::lock_guard guard(lock_);
    objects_.erase(number);
  }

 private:
  std::mutex lock_;
  std::map<int64_t, std::shared_ptr<Object>> objects_;
  int64_t next_ = 0;
};

// Arithmetic with dimensions.
int64_t dimension(std::string_view op, int64_t a, int64_t b) {
  static const std::map<std::string_view,
                        tiny_status (*)(tiny_context*, int64_t, int64_t, int64_t*)>
      kOperations = {{"add", tiny_dim_add},       {"sub", tiny_dim_sub},
                     {"mul", tiny_dim_mul},       {"floordiv", tiny_dim_floor_div},
                     {"mod", tiny_dim_floor_mod}, {"min", tiny_dim_min},
                     {"max", tiny_dim_max}};
  int64_t made = 0;
  check(kOperations.at(op)(context(), a, b, &made));
  return made;
}

// Sizes or strides as the engine has them, in a recording.
Sizes dimensions_of(at::IntArrayRef sizes) {
  Sizes dims(sizes.begin(), sizes.end());
  for (int64_t& size : dims) size = recording()->dimension(size);
  return dims;
}

// Strides of a tensor of these dimensions.  Where elements lie without gaps they are products of
// those, which a number alone might tell wrongly.
Sizes strides_of(const Tensor& tensor, const Sizes& dims) {
  const at::IntArrayRef strides = tensor.strides();
  std::vector<size_t> order(dims.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  Sizes made(dims.size());
  int64_t expected = 1, product = 1;
  for (const size_t axis : order) {
    if (strides[axis] != expected) return dimensions_of(strides);
    made[axis] = product;
    expected *= tensor.size(static_cast<int64_t>(axis));
    product = dimension("mul", product, dims[axis]);
  }
  return made;
}

// How a result lies in memory, as it was recorded.
struct Result {
  Sizes sizes, strides;
  at::ScalarType type;
};

class Program {
 public:
  // Of a recording that this thread is in, which is kept for the variables, and of outputs that
  // signature() was asked for at last.
  Program(const TensorList& inputs, const TensorList& outputs, std::shared_ptr<Recording> recorded)
      : recorded_(std::move(recorded)) {
    std::vector<Value> values;
    std::vector<tiny_tensor*> placeholders, results;
    for (const Tensor& input : inputs)
      placeholders.push_back(values.emplace_back(read(input)).handle());
    auto known = recorded_->results().begin();
    for (const Tensor& output : outputs) {
      results.push_back(values.emplace_back(read(output)).handle());
      const auto strides = known + 1 + output.dim();
      const auto end = strides + output.dim();
      results_.push_back({Sizes(known + 1, strides), Sizes(strides, end), output.scalar_type()});
      known = end;
    }
    check(tiny_program_compile(placeholders.data(), placeholders.size(), results.data(),
                               results.size(), &program_));
    const tiny_status status = tiny_run_create(program_, &run_);
    if (status != TINY_OK) tiny_program_release(program_);
    check(status);
    // Where nothing that is computed depends on a variable, the program has none of that name.
    const auto variables = recorded_->variables();
    for (size_t i = 0; i < variables.size(); ++i)
      has_variable_.push_back(tiny_run_set_variable(run_, variables[i], recorded_->least()[i]) ==
                              TINY_OK);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    tiny_run_release(run_);
    tiny_program_release(program_);
  }

  TensorList execute(const TensorList& inputs, SizesRef variables) {
    const std::lock_guard guard(lock_);
    for (size_t i = 0; i < variables.size(); ++i)
      if (has_variable_[i])
        check(tiny_run_set_variable(run_, recorded_->variables()[i], variables[i]));
    for (size_t i = 0; i < inputs.size(); ++i)
      check(tiny_run_set_input(run_, i, read(inputs[i]).handle()));
    check(tiny_run_execute(run_));
    TensorList made;
    for (size_t i = 0; i < results_.size(); ++i) {
      tiny_tensor* value = nullptr;
      check(tiny_run_output_tensor(run_, i, &value));
      const Result& result = results_[i];
      made.push_back(
          at::empty_strided(sizes_now(result.sizes), sizes_now(result.strides),
                            at::TensorOptions(result.type).device(c10::DeviceType::PrivateUse1)));
      write(made.back(), Value(value));
    }
    return made;
  }

  int64_t kernels() const {
    size_t count = 0;
    check(tiny_program_kernel_count(program_, &count));
    return static_cast<int64_t>(count);
  }

 private:
  Sizes sizes_now(const Sizes& dims) const {
    Sizes sizes = dims;
    for (int64_t& size : sizes)
      if (size < TINY_DIM_FREE) check(tiny_run_dim(run_, size, &size));
    return sizes;
  }

  std::mutex lock_;  // a run is one caller's at a time
  std::shared_ptr<Recording> recorded_;
  tiny_program* program_ = nullptr;
  tiny_run* run_ = nullptr;
  std::vector<Result> results_;
  std::vector<bool> has_variable_;
};

Numbered<Program>& programs() {
  static auto& made = *new Numbered<Program>;
  return made;
}
Numbered<Recording>& recordings() {
  static auto& made = *new Numbered<Recording>;
  return made;
}

// What each run is given as input `index`: a tensor that has sizes and strides, and no elements.
Tensor placeholder(int64_t recording, int64_t index, at::ScalarType type, at::IntArrayRef sizes,
                   at::IntArrayRef strides) {
  const Value input = recordings().at(recording)->input(static_cast<size_t>(index), dtype_of(type),
                                                        {sizes.data(), sizes.size()});
  Tensor made = at::empty_strided(sizes, strides,
                                  at::TensorOptions(type).device(c10::DeviceType::PrivateUse1));
  if (!made.is_non_overlapping_and_dense()) return tensor_of(input);
  write_new(made, input);
  return made;
}

// What tells graphs of a recording from one another: nodes of values, and where tensors have their
// elements.
Sizes signature(const TensorList& tensors) {
  Sizes made;
  for (const Tensor& tensor : tensors) {
    const Value value = recording()->kept(read(tensor));
    tiny_node* node = nullptr;
    check(tiny_tensor_node(value.handle(), &node));
    int64_t& id = made.emplace_back();
    const tiny_status status = tiny_node_id(node, &id);
    tiny_node_release(node);
    check(status);
    const Sizes dims = dimensions_of(tensor.sizes());
    const Sizes strides = strides_of(tensor, dims);
    made.insert(made.end(), dims.begin(), dims.end());
    made.insert(made.end(), strides.begin(), strides.end());
  }
  recording()->set_results(made);
  return made;
}

SizesRef span_of(at::IntArrayRef numbers) {
  return {numbers.data(), numbers.size()};
}

TORCH_LIBRARY_FRAGMENT(tiny, m) {
  m.def(
      "placeholder(int recording, int index, ScalarType dtype, int[] size, int[] stride) -> Tensor",
      placeholder);
  m.def("dimension(str op, int a, int b) -> int", dimension);
  m.def("variables(int recording) -> int[]", [](int64_t number) {
    const SizesRef dims = recordings().at(number)->dimensions();
    return Sizes(dims.begin(), dims.end());
  });
  m.def("record(int[] least, int[] greatest) -> int",
        [](at::IntArrayRef least, at::IntArrayRef greatest) {
          return recordings().add(std::make_shared<Recording>(span_of(least), span_of(greatest)));
        });
  m.def("begin_recording(int recording, int[] stand_ins, int[] sizes, int[] dimensions) -> ()",
        [](int64_t number, at::IntArrayRef stand_ins, at::IntArrayRef sizes, at::IntArrayRef dims) {
          recordings().at(number)->begin(span_of(stand_ins), span_of(sizes), span_of(dims));
        });
  m.def("end_recording() -> ()", [] { Recording::end(); });
  m.def("release_recording(int recording) -> ()",
        [](int64_t number) { recordings().remove(number); });
  m.def("signature(Tensor[] tensors) -> int[]", signature);
  m.def(
      "compile(int recording, Tensor[] inputs, Tensor[] outputs) -> int",
      [](int64_t number, const TensorList& inputs, const TensorList& outputs) {
        return programs().add(std::make_shared<Program>(inputs, outputs, recordings().at(number)));
      });
  m.def("execute(int program, Tensor[] inputs, int[] variables=[]) -> Tensor[]",
        [](int64_t number, const TensorList& inputs, at::IntArrayRef variables) {
          return programs().at(number)->execute(inputs, span_of(variables));
        });
  m.def("kernel_count(int program) -> int",
        [](int64_t number) { return programs().at(number)->kernels(); });
  m.def("release(int program) -> ()", [](int64_t number) { programs().remove(number); });
}

}  // namespace

}  // namespace tiny_torch
