// tiny as a contender: graphs built through tiny.h, compiled for inputs that change between runs.
#pragma once

#include <memory>

#include "measure.h"
#include "onnx_file.h"
#include "tiny.h"

namespace tiny::bench {

struct Release {
  void operator()(tiny_context* p) const { tiny_context_release(p); }
  void operator()(tiny_tensor* p) const { tiny_tensor_release(p); }
  void operator()(tiny_model* p) const { tiny_model_release(p); }
  void operator()(tiny_program* p) const { tiny_program_release(p); }
  void operator()(tiny_run* p) const { tiny_run_release(p); }
  void operator()(tiny_report* p) const { tiny_report_release(p); }
  void operator()(tiny_options* p) const { tiny_options_release(p); }
};
template <typename T>
using Owned = std::unique_ptr<T, Release>;
using Tensor = Owned<tiny_tensor>;
using Dims = std::vector<int64_t>;

// Throws what the library says of a call that failed.
void check(tiny_status status);
size_t count_of(const Dims& dims);

// A context of so many threads; `isa` and `wino` as the options of those names.
Owned<tiny_context> new_context(int threads, const std::string& isa,
                                const std::string& wino = "auto");
Tensor input_of(tiny_context* context, tiny_dtype dtype, const Dims& dims);
// `values` converted to `dtype`.
Tensor constant_of(tiny_context* context, tiny_dtype dtype, const Dims& dims,
                   const std::vector<float>& values);

// What is to be compiled, and what its inputs get in every call: tensors, whose other operands a
// program reads anew in each run, or a model, whose weights are constants.
struct Problem {
  std::vector<Tensor> inputs;
  std::vector<Tensor> values;
  Tensor output;
  tiny_context* context = nullptr;  // of a model
  OnnxGraph model;
  // Brings the result into the order of the peers' results; may be empty.
  std::function<std::vector<float>(std::vector<float>)> arrange;
};

// Compiles the problem.  A contender "tiny" also tells the row its kernels.
Contender tiny_contender(Row& row, const std::string& name, const std::string& kind,
                         const std::string& settings, Problem problem);

}  // namespace tiny::bench
