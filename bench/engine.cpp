#include "engine.h"

#include <unistd.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace tiny::bench {
namespace {

// A compiled program of one output with a run that its inputs are bound to.
struct Compiled {
  Owned<tiny_program> program;
  Owned<tiny_run> run;
  Problem problem;
  size_t count = 0;  // elements of the output
  tiny_dtype dtype = TINY_FLOAT32;

  std::vector<float> result() const {
    std::vector<char> bytes(count * tiny_dtype_size(dtype));
    check(tiny_run_read_output(run.get(), 0, bytes.data(), bytes.size()));
    std::vector<float> out(count);
    for (size_t i = 0; i < count; ++i) out[i] = element(bytes.data(), i);
    return problem.arrange ? problem.arrange(std::move(out)) : out;
  }

  float element(const char* bytes, size_t i) const {
    if (dtype == TINY_BFLOAT16) {
      uint16_t half = 0;
      std::memcpy(&half, bytes + 2 * i, 2);
      return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
    }
    if (dtype == TINY_INT32) {
      int32_t value = 0;
      std::memcpy(&value, bytes + 4 * i, 4);
      return static_cast<float>(value);
    }
    if (dtype != TINY_FLOAT32) throw std::runtime_error("an output that bench cannot read");
    float value = 0;
    std::memcpy(&value, bytes + 4 * i, 4);
    return value;
  }
};

Owned<tiny_program> compiled_model(const Problem& problem) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("bench_row_" + std::to_string(::getpid()) + ".onnx");
  std::ofstream(path, std::ios::binary) << onnx_bytes(problem.model);
  tiny_model* model = nullptr;
  const tiny_status status = tiny_model_load(problem.context, path.c_str(), &model);
  std::filesystem::remove(path);  // what is mapped stays
  check(status);
  const Owned<tiny_model> owner(model);
  tiny_program* program = nullptr;
  check(tiny_model_compile(model, nullptr, 0, &program));
  return Owned<tiny_program>(program);
}

Owned<tiny_program> compiled(const Problem& problem) {
  if (problem.context) return compiled_model(problem);
  std::vector<tiny_tensor*> inputs;
  for (const Tensor& tensor : problem.inputs) inputs.push_back(tensor.get());
  tiny_tensor* output = problem.output.get();
  tiny_program* program = nullptr;
  check(tiny_program_compile(inputs.data(), inputs.size(), &output, 1, &program));
  return Owned<tiny_program>(program);
}

}  // namespace

void check(tiny_status status) {
  if (status != TINY_OK)
    throw std::runtime_error(std::string(tiny_status_name(status)) + ": " + tiny_last_error());
}

size_t count_of(const Dims& dims) {
  size_t count = 1;
  for (const int64_t d : dims) count *= static_cast<size_t>(d);
  return count;
}

Owned<tiny_context> new_context(int threads, const std::string& isa, const std::string& wino) {
  tiny_options* options = nullptr;
  check(tiny_options_create(&options));
  const Owned<tiny_options> owner(options);
  check(tiny_options_set_int(options, "threads", threads));
  check(tiny_options_set_string(options, "isa", isa.c_str()));
  check(tiny_options_set_string(options, "wino", wino.c_str()));
  check(tiny_options_set_int(options, "bf16_dots", 1));  // what the other libraries use
  tiny_context* context = nullptr;
  check(tiny_context_create(options, &context));
  return Owned<tiny_context>(context);
}

Tensor input_of(tiny_context* context, tiny_dtype dtype, const Dims& dims) {
  tiny_tensor* out = nullptr;
  check(tiny_input(context, dtype, dims.data(), dims.size(), &out));
  return Tensor(out);
}

Tensor constant_of(tiny_context* context, tiny_dtype dtype, const Dims& dims,
                   const std::vector<float>& values) {
  tiny_tensor* out = nullptr;
  check(tiny_tensor_from_data(context, TINY_FLOAT32, dims.data(), dims.size(), values.data(),
                              values.size() * sizeof(float), &out));
  Tensor made(out);
  if (dtype == TINY_FLOAT32) return made;
  check(tiny_cast(made.get(), dtype, &out));
  Tensor cast(out);
  check(tiny_realize(&out, 1));
  return cast;
}

Contender tiny_contender(Row& row, const std::string& name, const std::string& kind,
                         const std::string& settings, Problem problem) {
  const auto work = std::make_shared<Compiled>();
  work->problem = std::move(problem);
  work->program = compiled(work->problem);
  tiny_program* program = work->program.get();
  tiny_run* run = nullptr;
  check(tiny_run_create(program, &run));
  work->run.reset(run);
  for (size_t i = 0; i < work->problem.values.size(); ++i)
    check(tiny_run_set_input(run, i, work->problem.values[i].get()));
  Dims dims(TINY_RANK_MAX);
  size_t rank = 0;
  check(tiny_run_output_shape(run, 0, dims.data(), dims.size(), &rank));
  dims.resize(rank);
  work->count = count_of(dims);
  check(tiny_run_output_dtype(run, 0, &work->dtype));
  if (kind == "tiny") {
    check(tiny_program_interpreted_count(program, &row.interpreted));
    tiny_report* report = nullptr;
    check(tiny_program_kernels(program, &report));
    row.kernels = tiny_report_text(Owned<tiny_report>(report).get());
  }
  return {name, settings, kind, [work] { check(tiny_run_execute(work->run.get())); },
          [work] { return work->result(); }};
}

}  // namespace tiny::bench
