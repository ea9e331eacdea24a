// Programs for torch.compile: a graph that was recorded on placeholders is compiled once, and each
// call is one execution of it, without the cost of its operators.
#include <ATen/ops/empty_strided.h>
#include <torch/library.h>

#include <map>
#include <mutex>

#include "call.h"

namespace tiny_torch {

namespace {

using at::Tensor;
using TensorList = std::vector<Tensor>;

// How a result lies in memory, as it was recorded.
struct Result {
  c10::DimVector sizes, strides;
  at::ScalarType type;
};

class Program {
 public:
  Program(const TensorList& inputs, const TensorList& outputs) {
    std::vector<Value> values;
    std::vector<tiny_tensor*> placeholders, results;
    for (const Tensor& input : inputs)
      placeholders.push_back(values.emplace_back(read(input)).handle());
    for (const Tensor& output : outputs) {
      results.push_back(values.emplace_back(read(output)).handle());
      results_.push_back(
          {c10::DimVector(output.sizes()), c10::DimVector(output.strides()), output.scalar_type()});
    }
    check(tiny_program_compile(placeholders.data(), placeholders.size(), results.data(),
                               results.size(), &program_));
    const tiny_status status = tiny_run_create(program_, &run_);
    if (status != TINY_OK) tiny_program_release(program_);
    check(status);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    tiny_run_release(run_);
    tiny_program_release(program_);
  }

  TensorList execute(const TensorList& inputs) {
    const std::lock_guard guard(lock_);
    for (size_t i = 0; i < inputs.size(); ++i)
      check(tiny_run_set_input(run_, i, read(inputs[i]).handle()));
    check(tiny_run_execute(run_));
    TensorList made;
    for (size_t i = 0; i < results_.size(); ++i) {
      tiny_tensor* value = nullptr;
      check(tiny_run_output_tensor(run_, i, &value));
      const Result& result = results_[i];
      made.push_back(
          at::empty_strided(result.sizes, result.strides,
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
  std::mutex lock_;  // a run is one caller's at a time
  tiny_program* program_ = nullptr;
  tiny_run* run_ = nullptr;
  std::vector<Result> results_;
};

std::mutex& lock() {
  static auto& mutex = *new std::mutex;
  return mutex;
}
std::map<int64_t, std::shared_ptr<Program>>& programs() {
  static auto& made = *new std::map<int64_t, std::shared_ptr<Program>>;
  return made;
}
std::shared_ptr<Program> program(int64_t number) {
  const std::lock_guard guard(lock());
  const auto found = programs().find(number);
  TORCH_CHECK(found != programs().end(), "tiny: no program has the number ", number);
  return found->second;
}

// A tensor that each run is given: it has sizes and strides, and no elements.
Tensor placeholder(const Tensor& like) {
  const at::IntArrayRef sizes = like.sizes();
  tiny_tensor* input = nullptr;
  check(tiny_input(context(), dtype_of(like.scalar_type()), sizes.data(), sizes.size(), &input));
  const Value value(input);
  if (like.is_non_overlapping_and_dense()) {
    Tensor made = at::empty_strided(sizes, like.strides(),
                                    like.options().device(c10::DeviceType::PrivateUse1));
    write_new(made, value);
    return made;
  }
  return tensor_of(value);
}

int64_t compile(const TensorList& inputs, const TensorList& outputs) {
  auto made = std::make_shared<Program>(inputs, outputs);
  const std::lock_guard guard(lock());
  static int64_t next = 0;
  programs()[next] = std::move(made);
  return next++;
}

TORCH_LIBRARY_FRAGMENT(tiny, m) {
  m.def("placeholder(Tensor like) -> Tensor", placeholder);
  m.def("compile(Tensor[] inputs, Tensor[] outputs) -> int", compile);
  m.def("execute(int program, Tensor[] inputs) -> Tensor[]",
        [](int64_t number, const TensorList& inputs) { return program(number)->execute(inputs); });
  m.def("kernel_count(int program) -> int",
        [](int64_t number) { return program(number)->kernels(); });
  m.def("release(int program) -> ()", [](int64_t number) {
    const std::lock_guard guard(lock());
    programs().erase(number);
  });
}

}  // namespace

}  // namespace tiny_torch
