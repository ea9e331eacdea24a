// tiny export: a model as C.
#include <algorithm>
#include <map>

#include "commands.h"
#include "files.h"

namespace tiny::cli {
namespace {

// Dimensions that each run chooses from a range: --dim NAME=1..64.
class Ranges {
 public:
  // Takes them out of the flags.
  Ranges(const Context& context, CommonFlags& flags) {
    std::vector<std::string> sizes;
    for (const std::string& text : flags.dims) {
      const size_t equals = text.rfind('='), dots = text.rfind("..");
      if (equals == std::string::npos || dots == std::string::npos || dots < equals)
        sizes.push_back(text);
      else
        add(context, text.substr(0, equals), text.substr(equals + 1, dots - equals - 1),
            text.substr(dots + 2));
    }
    flags.dims = sizes;
  }
  // What stands for the dimension in a shape; -1: there is no range of that name.
  int64_t dim(const std::string& name) {
    const auto found = variables_.find(name);
    if (found == variables_.end()) return -1;
    used_[name] = true;
    int64_t dim = 0;
    check(tiny_variable_dim(found->second.get(), &dim));
    return dim;
  }
  void check_used() const {
    for (const auto& [name, variable] : variables_)
      if (!used_.contains(name))
        throw usage_failure("--dim " + name +
                            "=..: the model leaves no dimension of that name free");
  }

 private:
  void add(const Context& context, const std::string& name, const std::string& low,
           const std::string& high) {
    const int64_t min = parse_integer(low, "--dim " + name, 1, INT32_MAX);
    const int64_t max = parse_integer(high, "--dim " + name, min + 1, INT32_MAX);
    Variable& variable = variables_[name];
    check(tiny_variable_create(context.get(), name.c_str(), min, max, out(variable)));
  }

  std::map<std::string, Variable> variables_;
  std::map<std::string, bool> used_;
};

// "mnist" of "models/mnist-8.onnx": what may name a function of C.
std::string name_of(const std::string& path) {
  std::string stem = path.substr(path.rfind('/') + 1);
  stem = stem.substr(0, stem.find('.'));
  for (char& ch : stem)
    if (!isalnum(static_cast<unsigned char>(ch))) ch = '_';
  if (stem.empty() || !isalpha(static_cast<unsigned char>(stem[0]))) stem.insert(0, "model_");
  return stem;
}

Failure is_free(const std::string& input, const std::string& dim, size_t axis) {
  std::string text = "input " + input + ": ";
  text += dim.empty() ? "dimension " + std::to_string(axis) : dim;
  text += " is free: ";
  text +=
      dim.empty() ? "--shape " + input + "=.. says it" : "--dim " + dim + "=N says it, or --dim ";
  if (!dim.empty()) text += dim + "=1..64 leaves it to each run";
  return usage_failure(text);
}

std::vector<int64_t> dims_of(const LoadedModel& model, const CommonFlags& common, Ranges& ranges) {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    const Port& port = model.inputs()[i];
    const std::vector<int64_t> shape = known_shape(model, common, i);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const std::string name = axis < port.names.size() ? port.names[axis] : "";
      int64_t dim = shape[axis];
      if (dim < 0 && !name.empty()) dim = ranges.dim(name);
      if (dim == -1) throw is_free(port.name, name, axis);
      dims.push_back(dim);
    }
  }
  ranges.check_used();
  return dims;
}

}  // namespace

Outcome export_command(const ExportFlags& flags, const CommonFlags& given) {
  CommonFlags common = given;
  common.no_cache = true;  // of code from the disk cache there is no other form
  const Context context = open_context(common);
  LoadedModel model(context, flags.model);
  model.read_ports();
  Ranges ranges(context, common);
  const std::vector<int64_t> dims = dims_of(model, common, ranges);
  Program program;
  check(tiny_model_compile(model.get(), dims.empty() ? nullptr : dims.data(), dims.size(),
                           out(program)),
        flags.model);
  const std::string name = flags.name.empty() ? name_of(flags.model) : flags.name;
  check(tiny_program_export_c(program.get(), flags.folder.c_str(), name.c_str()), flags.folder);
  size_t kernels = 0;
  check(tiny_program_kernel_count(program.get(), &kernels));
  const std::string path = flags.folder + (flags.folder.ends_with('/') ? "" : "/") + name;
  Outcome outcome;
  outcome.body.set("name", name);
  Json files = Json::array();
  for (const char* ending : {".c", ".h", ".weights"}) files.push(path + ending);
  outcome.body.set("files", files);
  outcome.body.set("kernels", kernels);
  outcome.text = "wrote " + path + ".c, .h and .weights: " + std::to_string(kernels) + " kernels\n";
  return outcome;
}

}  // namespace tiny::cli
