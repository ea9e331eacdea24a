#include "tests/onnx/suite.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "onnx/import/host_value.h"
#include "onnx/reader.h"
#include "onnx/session.h"
#include "tensor/create.h"
#include "tensor/value.h"

namespace tiny::onnx::testing {

namespace fs = std::filesystem;

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::Pass:
      return "pass";
    case Verdict::Unsupported:
      return "unsupported";
    case Verdict::Fail:
      return "FAIL";
    case Verdict::Error:
      break;
  }
  return "ERROR";
}

HostTensor host_tensor(Tensor tensor) {
  const Ints shape = dims_of(tensor);
  std::vector<std::byte> bytes(static_cast<size_t>(element_count(tensor) * tensor.dtype().bytes()));
  read(tensor, bytes.data(), static_cast<int64_t>(bytes.size()));
  return HostTensor{tensor.dtype(), shape, SharedBytes::own(std::move(bytes))};
}

std::string difference(const HostTensor& got, const HostTensor& want, const Tolerance& tolerance) {
  if (got.dtype != want.dtype)
    return cat("type ", tiny::to_string(got.dtype), ", wanted ", tiny::to_string(want.dtype));
  if (got.shape != want.shape)
    return cat("shape ", list_text(got.shape), ", wanted ", list_text(want.shape));
  const std::vector<double> g = reals_of(got);
  const std::vector<double> w = reals_of(want);
  size_t wrong = 0;
  size_t first = 0;
  for (size_t i = 0; i < g.size(); ++i) {
    const bool same =
        g[i] == w[i] || (std::isnan(g[i]) && std::isnan(w[i])) ||
        (std::isfinite(w[i]) &&
         std::fabs(g[i] - w[i]) <= tolerance.absolute + tolerance.relative * std::fabs(w[i]));
    if (same) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return "";
  return cat(wrong, " of ", g.size(), " elements differ, the first at ", first, ": ", g[first],
             ", wanted ", w[first]);
}

namespace {

std::vector<std::string> data_files(const fs::path& folder, const std::string& prefix) {
  std::vector<std::string> files;
  for (size_t i = 0;; ++i) {
    const fs::path file = folder / cat(prefix, i, ".pb");
    if (!fs::exists(file)) return files;
    files.push_back(file);
  }
}

Tensor read_input(const Ref<Context>& context, const std::string& file) {
  const HostTensor host = to_host_tensor(read_tensor_pb(file));
  return from_data(context, host.dtype, host.shape, host.bytes.data(), host.bytes.size());
}

}  // namespace

CaseResult run_light(const std::string& file, const Tolerance& tolerance) {
  const Ref<Context> context =
      make_ref<Context>(Flags::from_environment([](const std::string&) {}));
  const Ref<LoadedModel> model = make_ref<LoadedModel>(context, file);
  const Ints shape = model->fixed_shapes().at(0);
  const int64_t count = element_count(shape, "an input");
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(i) / static_cast<float>(count));
  const Tensor input = from_data(context, kFloat32, shape, values.data(),
                                 count * static_cast<int64_t>(sizeof(float)));
  const std::vector<Tensor> outputs = model->run({input});
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string wanted = cat(file.substr(0, file.size() - 5), "_output_", i, ".pb");
    const std::string text =
        difference(host_tensor(outputs[i]), to_host_tensor(read_tensor_pb(wanted)), tolerance);
    if (!text.empty()) return {Verdict::Fail, cat("output ", i, ": ", text)};
  }
  return {Verdict::Pass, ""};
}

namespace {

Model with_free_sizes(Model model) {
  for (ValueInfo& input : model.graph.inputs)
    for (onnx::Dim& dim : input.type.dims)
      if (dim.is_known()) dim = {-1, cat("size ", dim.value)};
  return model;
}

}  // namespace

CaseResult run_case(const std::string& folder, const Tolerance& tolerance, Sizes sizes) {
  try {
    const Ref<Context> context =
        make_ref<Context>(Flags::from_environment([](const std::string&) {}));
    const std::string file = folder + "/model.onnx";
    const Ref<LoadedModel> model =
        sizes == Sizes::Fixed ? make_ref<LoadedModel>(context, file)
                              : make_ref<LoadedModel>(context, with_free_sizes(read_model(file)));
    size_t sets = 0;
    for (;; ++sets) {
      const fs::path data = fs::path(folder) / cat("test_data_set_", sets);
      if (!fs::exists(data)) break;
      // What the library cannot take is not read at all.
      for (size_t i = 0; i < model->input_count(); ++i) model->input_dtype(i);
      std::vector<Tensor> inputs;
      for (const std::string& file : data_files(data, "input_"))
        inputs.push_back(read_input(context, file));
      const std::vector<Tensor> outputs = model->run(inputs);
      const std::vector<std::string> wanted = data_files(data, "output_");
      if (wanted.size() > outputs.size())
        return {Verdict::Error,
                cat(wanted.size(), " outputs are wanted, there are ", outputs.size())};
      for (size_t i = 0; i < wanted.size(); ++i) {
        const std::string text = difference(host_tensor(outputs[i]),
                                            to_host_tensor(read_tensor_pb(wanted[i])), tolerance);
        if (!text.empty()) return {Verdict::Fail, cat("set ", sets, ", output ", i, ": ", text)};
      }
    }
    if (sets == 0) return {Verdict::Error, "there is no data"};
    return {Verdict::Pass, ""};
  } catch (const Error& e) {
    return {e.status() == Status::Unsupported ? Verdict::Unsupported : Verdict::Error,
            cat(status_name(e.status()), ": ", e.message())};
  } catch (const std::exception& e) {
    return {Verdict::Error, e.what()};
  }
}

CaseResult run_case_apart(const std::string& folder, const Tolerance& tolerance, unsigned seconds,
                          Sizes sizes) {
  int pipes[2];
  if (pipe(pipes) != 0) return {Verdict::Error, "no pipe"};
  const pid_t child = fork();
  if (child < 0) return {Verdict::Error, "no process"};
  if (child == 0) {
    close(pipes[0]);
    alarm(seconds);
    const CaseResult result = run_case(folder, tolerance, sizes);
    std::string text = cat(static_cast<int>(result.verdict), result.reason).substr(0, 4000);
    const bool written = write(pipes[1], text.data(), text.size()) >= 0;
    _exit(written ? 0 : 1);
  }
  close(pipes[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(pipes[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  close(pipes[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    return {Verdict::Error,
            WTERMSIG(status) == SIGALRM ? "out of time" : cat("signal ", WTERMSIG(status))};
  if (text.empty()) return {Verdict::Error, "the child said nothing"};
  return {static_cast<Verdict>(text[0] - '0'), text.substr(1)};
}

std::vector<std::string> cases_below(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().filename() == "model.onnx") out.push_back(entry.path().parent_path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace tiny::onnx::testing
