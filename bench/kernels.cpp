// bench_kernels: single operations of tiny, through tiny.h alone, against libraries that have them.
//
//   bench_kernels [--duration SECONDS] [--only TEXT]
//
// Prints one JSON object: {"settings": [..], "rows": [..]}, the rows as row_json makes them.
// One thread; the environment that bench/run sets holds the peers to one as well.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "measure.h"
#include "peers.h"
#include "tiny.h"

namespace tiny::bench {
namespace {

constexpr int kRounds = 20;

void check(tiny_status status) {
  if (status != TINY_OK)
    throw std::runtime_error(std::string(tiny_status_name(status)) + ": " + tiny_last_error());
}

struct Release {
  void operator()(tiny_context* p) const { tiny_context_release(p); }
  void operator()(tiny_tensor* p) const { tiny_tensor_release(p); }
  void operator()(tiny_program* p) const { tiny_program_release(p); }
  void operator()(tiny_run* p) const { tiny_run_release(p); }
  void operator()(tiny_report* p) const { tiny_report_release(p); }
  void operator()(tiny_options* p) const { tiny_options_release(p); }
};
template <typename T>
using Owned = std::unique_ptr<T, Release>;
using Tensor = Owned<tiny_tensor>;
using Dims = std::vector<int64_t>;

size_t count_of(const Dims& dims) {
  size_t count = 1;
  for (const int64_t d : dims) count *= static_cast<size_t>(d);
  return count;
}

Owned<tiny_context> one_thread() {
  tiny_options* options = nullptr;
  check(tiny_options_create(&options));
  const Owned<tiny_options> owner(options);
  check(tiny_options_set_int(options, "threads", 1));
  tiny_context* context = nullptr;
  check(tiny_context_create(options, &context));
  return Owned<tiny_context>(context);
}

Tensor input(tiny_context* context, const Dims& dims) {
  tiny_tensor* out = nullptr;
  check(tiny_input(context, TINY_FLOAT32, dims.data(), dims.size(), &out));
  return Tensor(out);
}

Tensor constant(tiny_context* context, const Dims& dims, const std::vector<float>& values) {
  tiny_tensor* out = nullptr;
  check(tiny_tensor_from_data(context, TINY_FLOAT32, dims.data(), dims.size(), values.data(),
                              values.size() * sizeof(float), &out));
  return Tensor(out);
}

// A compiled program of one output with a run that its inputs are bound to.
struct Compiled {
  Owned<tiny_program> program;
  Owned<tiny_run> run;
  size_t count = 0;  // elements of the output
  std::vector<Tensor> bound;
};

Contender tiny_contender(Row& row, const std::vector<tiny_tensor*>& inputs, tiny_tensor* output,
                         std::vector<Tensor> values, size_t count) {
  const auto work = std::make_shared<Compiled>();
  tiny_program* program = nullptr;
  check(tiny_program_compile(inputs.data(), inputs.size(), &output, 1, &program));
  work->program.reset(program);
  tiny_run* run = nullptr;
  check(tiny_run_create(program, &run));
  work->run.reset(run);
  for (size_t i = 0; i < values.size(); ++i) check(tiny_run_set_input(run, i, values[i].get()));
  work->bound = std::move(values);
  work->count = count;
  size_t interpreted = 0;
  check(tiny_program_interpreted_count(program, &interpreted));
  if (interpreted > 0) throw std::runtime_error(row.name + ": a kernel is interpreted");
  tiny_report* report = nullptr;
  check(tiny_program_kernels(program, &report));
  row.kernels = tiny_report_text(Owned<tiny_report>(report).get());
  const auto result = [work] {
    std::vector<float> out(work->count);
    check(tiny_run_read_output(work->run.get(), 0, out.data(), out.size() * sizeof(float)));
    return out;
  };
  return {"tiny", "threads 1", "tiny", [work] { check(tiny_run_execute(work->run.get())); },
          result};
}

// Peers after tiny, then the limit.
void add(Row& row, std::vector<Contender> contenders) {
  for (Contender& contender : contenders) row.contenders.push_back(std::move(contender));
}

Row gemm_row(tiny_context* context, Gemm& gemm, int64_t size) {
  const Dims dims{size, size};
  gemm = {size, size, size, random_values(count_of(dims), 1), random_values(count_of(dims), 2)};
  const auto n = static_cast<double>(size);
  Row row{"matmul " + std::to_string(size) + "^3", 2 * n * n * n, 3 * 4 * n * n, "", {}};
  const Tensor a = input(context, dims);
  const Tensor b = input(context, dims);
  tiny_tensor* product = nullptr;
  check(tiny_matmul(a.get(), b.get(), &product));
  const Tensor c(product);
  std::vector<Tensor> values;
  values.push_back(constant(context, dims, gemm.a));
  values.push_back(constant(context, dims, gemm.b));
  row.contenders.push_back(
      tiny_contender(row, {a.get(), b.get()}, product, std::move(values), count_of(dims)));
  add(row, gemm_peers(gemm));
  row.contenders.push_back(fma_limit(row.flops));
  return row;
}

struct ConvolutionRow {
  const char* name;
  int64_t channels, size, filters, kernel, stride;
};
constexpr ConvolutionRow kConvolutions[] = {
    {"conv 3x3 64->64 at 56", 64, 56, 64, 3, 1},
    {"conv 3x3 128->128 at 28", 128, 28, 128, 3, 1},
    {"conv 3x3 256->256 at 14", 256, 14, 256, 3, 1},
    {"conv 7x7 stride 2 3->64 at 224", 3, 224, 64, 7, 2},
    {"conv 1x1 256->64 at 56", 256, 56, 64, 1, 1},
};

Row convolution_row(tiny_context* context, const ConvolutionRow& shape) {
  Convolution conv{shape.channels,
                   shape.size,
                   shape.filters,
                   shape.kernel,
                   shape.stride,
                   shape.kernel / 2,
                   {},
                   {}};
  const Dims x_dims{1, conv.channels, conv.size, conv.size};
  const Dims weight_dims{conv.filters, conv.channels, conv.kernel, conv.kernel};
  const Dims y_dims{1, conv.filters, conv.out_size(), conv.out_size()};
  conv.x = random_values(count_of(x_dims), 3);
  conv.weight = random_values(count_of(weight_dims), 4);
  const auto products =
      count_of(y_dims) * count_of(weight_dims) / static_cast<size_t>(shape.filters);
  const double flops = 2.0 * static_cast<double>(products);
  const auto elements = count_of(x_dims) + count_of(weight_dims) + count_of(y_dims);
  Row row{shape.name, flops, 4.0 * static_cast<double>(elements), "", {}};
  const Tensor x = input(context, x_dims);
  const Tensor weight = constant(context, weight_dims, conv.weight);
  const int64_t strides[] = {conv.stride, conv.stride};
  const int64_t padding[] = {conv.padding, conv.padding};
  tiny_tensor* made = nullptr;
  check(tiny_conv(x.get(), weight.get(), nullptr, strides, nullptr, padding, padding, 2, 1, &made));
  const Tensor y(made);
  std::vector<Tensor> values;
  values.push_back(constant(context, x_dims, conv.x));
  row.contenders.push_back(
      tiny_contender(row, {x.get()}, made, std::move(values), count_of(y_dims)));
  add(row, convolution_peers(conv));
  row.contenders.push_back(fma_limit(row.flops));
  return row;
}

Row softmax_row(tiny_context* context, int64_t rows, int64_t columns) {
  const Dims dims{rows, columns};
  const std::vector<float> x = random_values(count_of(dims), 5);
  const auto elements = static_cast<double>(count_of(dims));
  Row row{
      "softmax " + std::to_string(rows) + "x" + std::to_string(columns), 0, 8 * elements, "", {}};
  const Tensor a = input(context, dims);
  tiny_tensor* made = nullptr;
  check(tiny_softmax(a.get(), 1, &made));
  const Tensor y(made);
  std::vector<Tensor> values;
  values.push_back(constant(context, dims, x));
  row.contenders.push_back(tiny_contender(row, {a.get()}, made, std::move(values), count_of(dims)));
  add(row, softmax_peers(rows, columns, x));
  row.contenders.push_back(copy_limit(row.bytes));
  return row;
}

// The rows are made one after the other: what an earlier one holds must not fill the caches.
void run_rows(double seconds, const std::string& only) {
  const Owned<tiny_context> context = one_thread();
  bool first = true;
  const auto wanted = [&](const std::string& name) { return name.find(only) != name.npos; };
  const auto run = [&](const Row& row) {
    std::fprintf(stderr, "bench: %s\n", row.name.c_str());
    const std::vector<Samples> samples = measure(row, seconds, kRounds);
    std::printf("%s\n%s", first ? "" : ",", row_json(row, samples).c_str());
    first = false;
  };
  for (const int64_t size : {256, 512, 1024}) {
    if (!wanted("matmul " + std::to_string(size) + "^3")) continue;
    Gemm gemm;  // outlives the row, whose peers read it
    run(gemm_row(context.get(), gemm, size));
  }
  for (const ConvolutionRow& shape : kConvolutions)
    if (wanted(shape.name)) run(convolution_row(context.get(), shape));
  if (wanted("softmax 512x1024")) run(softmax_row(context.get(), 512, 1024));
}

int main_of(int count, char** arguments) {
  double seconds = 1;
  std::string only;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string flag = arguments[i];
    if (flag == "--duration") {
      seconds = std::atof(arguments[i + 1]);
    } else if (flag == "--only") {
      only = arguments[i + 1];
    } else {
      std::fprintf(stderr, "bench_kernels: unknown flag %s\n", arguments[i]);
      return 2;
    }
  }
  std::printf("{\"settings\":[");
  const std::vector<std::string> settings = peer_settings();
  for (size_t i = 0; i < settings.size(); ++i)
    std::printf("%s\"%s\"", i > 0 ? "," : "", settings[i].c_str());
  std::printf("],\"rows\":[");
  run_rows(seconds, only);
  std::printf("\n]}\n");
  return 0;
}

}  // namespace
}  // namespace tiny::bench

int main(int count, char** arguments) {
  try {
    return tiny::bench::main_of(count, arguments);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "bench_kernels: %s\n", problem.what());
    return 1;
  }
}
