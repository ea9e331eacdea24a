#include "tests/onnx/suite.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "engine/observe.h"
#include "onnx/import/table.h"
#include "onnx/reader.h"
#include "tensor/create.h"
#include "tests/support/process.h"

namespace tiny::onnx::testing {

namespace fs = std::filesystem;
using tiny::testing::Ended;
using tiny::testing::run_apart;

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

namespace {

// Where the outputs differ from what is wanted of the first of them; empty if they do not.
std::string first_difference(const std::vector<Tensor>& outputs,
                             const std::vector<HostTensor>& wanted, const Tolerance& tolerance) {
  if (wanted.size() > outputs.size())
    return cat(wanted.size(), " outputs are wanted, there are ", outputs.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const std::string text = difference(host_tensor(outputs[i]), wanted[i], tolerance);
    if (!text.empty()) return cat("output ", i, ": ", text);
  }
  return "";
}

// Whether another execution made other elements: then types and shapes are what can be wanted.
bool are_random(const std::vector<Tensor>& outputs, const std::vector<Tensor>& again,
                const std::vector<HostTensor>& wanted) {
  bool differ = false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const HostTensor one = host_tensor(outputs[i]), other = host_tensor(again[i]);
    differ |= one.bytes.text() != other.bytes.text();
    if (one.dtype != wanted[i].dtype || one.shape != wanted[i].shape) return false;
  }
  return differ;
}

Model with_free_sizes(Model model) {
  for (ValueInfo& input : model.graph.inputs)
    for (onnx::Dim& dim : input.type.dims)
      if (dim.is_known()) dim = {-1, cat("size ", dim.value)};
  return model;
}

}  // namespace

CaseResult run_light(const std::string& file, const Tolerance& tolerance) {
  const Ref<Context> context = default_context();
  const Ref<LoadedModel> model = make_ref<LoadedModel>(context, file);
  const Ints shape = model->fixed_shapes().at(0);
  const int64_t count = element_count(shape, "an input");
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(i) / static_cast<float>(count));
  const Tensor input = from_data(context, kFloat32, shape, values.data(),
                                 count * static_cast<int64_t>(sizeof(float)));
  const std::vector<Tensor> outputs = model->run({input});
  const fs::path path = file;
  const std::vector<HostTensor> wanted =
      read_numbered(path.parent_path(), path.stem().string() + "_output_");
  if (wanted.size() != outputs.size())
    return {Verdict::Error, cat(outputs.size(), " outputs, ", wanted.size(), " recorded")};
  const std::string text = first_difference(outputs, wanted, tolerance);
  return {text.empty() ? Verdict::Pass : Verdict::Fail, text, context->device().counts().launches,
          context->observer().compiles().interpreted};
}

namespace {

CaseResult verdict_of_case(const Ref<Context>& context, const std::string& folder,
                           const Tolerance& tolerance, Sizes sizes) {
  try {
    const std::string file = folder + "/model.onnx";
    const Ref<LoadedModel> model =
        sizes == Sizes::Fixed ? make_ref<LoadedModel>(context, file)
                              : make_ref<LoadedModel>(context, with_free_sizes(read_model(file)));
    size_t sets = 0;
    for (;; ++sets) {
      const std::string data = cat(folder, "/test_data_set_", sets);
      if (!fs::exists(data)) break;
      // What the library cannot take is not read at all.
      for (size_t i = 0; i < model->input_count(); ++i) model->input_dtype(i);
      const std::vector<Tensor> outputs =
          model->run(from_host(context, read_numbered(data, "input_")));
      const std::vector<HostTensor> wanted = read_numbered(data, "output_");
      const std::string text = first_difference(outputs, wanted, tolerance);
      const auto again = [&] {
        return model->run(from_host(context, read_numbered(data, "input_")));
      };
      if (!text.empty() &&
          !(draws_numbers(model->model().graph) && are_random(outputs, again(), wanted)))
        return {Verdict::Fail, cat("set ", sets, ", ", text)};
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

}  // namespace

CaseResult run_case(const std::string& folder, const Tolerance& tolerance, Sizes sizes) {
  const Ref<Context> context = default_context();
  CaseResult result = verdict_of_case(context, folder, tolerance, sizes);
  result.kernels = context->device().counts().launches.load();
  result.interpreted = context->observer().compiles().interpreted;
  return result;
}

CaseResult run_case_apart(const std::string& folder, const Tolerance& tolerance, unsigned seconds,
                          Sizes sizes) {
  const Ended ended = run_apart(seconds, [&] {
    const CaseResult result = run_case(folder, tolerance, sizes);
    return cat(static_cast<int>(result.verdict), " ", result.kernels, " ", result.interpreted, " ",
               result.reason);
  });
  if (ended.signal() == SIGALRM) return {Verdict::Error, "out of time"};
  if (ended.signal()) return {Verdict::Error, cat("signal ", ended.signal())};
  std::istringstream said(ended.text);
  int verdict = 0;
  CaseResult result;
  if (!(said >> verdict >> result.kernels >> result.interpreted))
    return {Verdict::Error, "the child said nothing"};
  result.verdict = static_cast<Verdict>(verdict);
  said.ignore();
  std::getline(said, result.reason, '\0');
  return result;
}

std::vector<std::string> cases_below(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().filename() == "model.onnx") out.push_back(entry.path().parent_path());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace tiny::onnx::testing
