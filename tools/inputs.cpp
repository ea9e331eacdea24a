#include "inputs.h"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>

#include "failure.h"
#include "process.h"
#include "suggest.h"

namespace tiny::cli {
namespace {

// What the flags say about the dimensions that the model leaves free.
class Shapes {
 public:
  Shapes(const LoadedModel& model, const CommonFlags& flags) : model_(model) {
    given_.resize(model.inputs().size());
    for (const std::string& text : flags.dims) {
      const auto [name, value] = split_last(text, "--dim");
      require_dim(name);
      flagged_[name] = parse_integer(value, "--dim " + name, 0, INT64_MAX);
    }
    for (const std::string& text : flags.shapes) {
      const auto [name, value] = split_last(text, "--shape");
      const size_t index = model.input_index(name);
      given_[index] = parse_shape(value, name);
    }
  }

  // The shape of an input as far as it is known: -1 is still free.
  std::vector<int64_t> known(size_t index) const { return filled(wanted(index), index, learned_); }

  bool is_known(size_t index) const {
    return model_.inputs()[index].has_rank || given_[index].has_value();
  }

  // Known, with 1 for what is still free; says so.
  std::vector<int64_t> chosen(size_t index) {
    const Port& port = model_.inputs()[index];
    if (!is_known(index))
      throw usage_failure("--shape " + port.name + "=.. is wanted: the model says none");
    std::vector<int64_t> shape = known(index);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] >= 0) continue;
      shape[axis] = 1;
      const std::string& name = port.names[axis];
      const std::string what = name.empty() ? "dimension " + std::to_string(axis) : name;
      warn("input " + port.name + ": " + what + " is free, 1 is taken (" +
           (name.empty() ? "--shape " + port.name + "=.." : "--dim " + name + "=N") + ")");
      if (!name.empty()) learned_[name] = 1;
    }
    return shape;
  }

  // Holds an array against the model, and learns its free dimensions.
  void accept(size_t index, const Array& array, const std::string& source) {
    const Port& port = model_.inputs()[index];
    const std::vector<int64_t> wanted = this->wanted(index);
    const bool any_shape = !is_known(index);
    bool fits = array.dtype == port.dtype && (any_shape || array.shape.size() == wanted.size());
    for (size_t axis = 0; fits && !any_shape && axis < wanted.size(); ++axis)
      fits = wanted[axis] < 0 || wanted[axis] == array.shape[axis];
    if (!fits) {
      Failure failure =
          file_failure(source, "input " + port.name + " wants " + describe(port) +
                                   (wanted == port.shape ? "" : ", here " + shape_text(wanted)) +
                                   ", not " + describe(array.dtype, array.shape));
      failure.status = array.dtype == port.dtype ? "SHAPE" : "DTYPE";
      throw failure;
    }
    if (port.has_rank && port.shape.size() == array.shape.size())
      for (size_t axis = 0; axis < port.shape.size(); ++axis)
        if (!port.names[axis].empty()) learned_[port.names[axis]] = array.shape[axis];
  }

 private:
  using Sizes = std::map<std::string, int64_t>;  // of dimensions, by their names

  // What the model and the flags say.
  std::vector<int64_t> wanted(size_t index) const {
    return filled(given_[index].value_or(model_.inputs()[index].shape), index, flagged_);
  }

  std::vector<int64_t> filled(std::vector<int64_t> shape, size_t index, const Sizes& sizes) const {
    const Port& port = model_.inputs()[index];
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (shape[axis] < 0 && port.has_rank)
        if (const auto found = sizes.find(port.names[axis]); found != sizes.end())
          shape[axis] = found->second;
    return shape;
  }

  static std::pair<std::string, std::string> split_last(const std::string& text,
                                                        const std::string& flag) {
    const size_t at = text.rfind('=');
    if (at == std::string::npos || at == 0)
      throw usage_failure(flag + " wants NAME=VALUE, not '" + text + "'");
    return {text.substr(0, at), text.substr(at + 1)};
  }

  void require_dim(const std::string& name) const {
    std::vector<std::string> known;
    for (const Port& port : model_.inputs())
      for (const std::string& dim : port.names) {
        if (dim == name) return;
        if (!dim.empty()) known.push_back(dim);
      }
    throw usage_failure("'" + name + "' is no free dimension of the inputs" +
                        did_you_mean(name, known) + "; known: " + list_text(known));
  }

  std::vector<int64_t> parse_shape(const std::string& text, const std::string& name) const {
    std::vector<int64_t> shape;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find_first_of("x,", at), text.size());
      shape.push_back(parse_integer(text.substr(at, end - at), "--shape " + name, 0, INT64_MAX));
      at = end + 1;
    }
    const Port& port = model_.inputs()[model_.input_index(name)];
    if (!port.has_rank) return shape;
    bool fits = shape.size() == port.shape.size();
    for (size_t axis = 0; fits && axis < shape.size(); ++axis)
      fits = port.shape[axis] < 0 || port.shape[axis] == shape[axis];
    if (!fits)
      throw usage_failure("--shape " + name + "=" + text + " does not fit " + describe(port));
    return shape;
  }

  const LoadedModel& model_;
  Sizes flagged_;
  Sizes learned_;  // of files; another file may have another size for the same name
  std::vector<std::optional<std::vector<int64_t>>> given_;
};

class Reader {
 public:
  Reader(const Context& context, const LoadedModel& model, const InputFlags& flags,
         const CommonFlags& common)
      : context_(context), model_(model), flags_(flags), common_(common), shapes_(model, common) {
    found_.resize(model.inputs().size());
  }

  std::vector<std::vector<Input>> read() {
    const Phase phase("reading inputs");
    if (!flags_.data.empty()) read_data();
    for (const std::string& text : flags_.files) {
      const FileArgument file = split_file(text);
      if (!is_file(file.path))
        throw file_failure(file.path.empty() ? text : file.path, "no such file");
      read_file(file);
    }
    if (!flags_.pictures.empty()) return read_pictures();
    std::vector<std::vector<Input>> runs;
    runs.push_back(complete());  // a list in braces would copy it
    return runs;
  }

 private:
  void read_data() {
    const auto files = data_files(flags_.data, "input");
    // A model without inputs has a data set without them.
    if (files.empty() && (!model_.inputs().empty() || data_files(flags_.data, "output").empty()))
      throw file_failure(flags_.data, "no input_0.pb in this folder");
    if (files.size() > model_.inputs().size())
      throw file_failure(flags_.data, std::to_string(files.size()) +
                                          " inputs for a model that has " +
                                          std::to_string(model_.inputs().size()));
    for (size_t i = 0; i < files.size(); ++i) add(i, load_tensor(context_, files[i]), files[i]);
  }

  void read_file(const FileArgument& file) {
    if (is_archive(file.path)) return read_archive(file);
    const size_t index = place_of(file);
    if (!is_picture(file.path)) return add(index, load(index, file.path), file.path);
    add_pictures(index, {file.path}, file.path);
  }

  std::vector<std::vector<Input>> read_pictures() {
    const std::vector<std::string>& paths = flags_.pictures;
    for (const std::string& path : paths) {
      if (!is_file(path)) throw file_failure(path, "no such file");
      if (!is_picture(path))
        throw usage_failure(
            std::string(path).append(" is no picture; did you mean --input ").append(path) + "?");
    }
    const size_t index = first_missing(paths[0]);
    const auto at_once = static_cast<ptrdiff_t>(pictures_at_once(
        paths, model_.inputs()[index].dtype, shapes_.known(index), flags_.picture));
    const std::vector<std::optional<Input>> others = found_;
    std::vector<std::vector<Input>> runs;
    for (auto at = paths.begin(); at != paths.end();) {
      const auto end = at + std::min(at_once, paths.end() - at);
      found_ = others;
      add_pictures(index, {at, end}, first_and_more(*at, static_cast<size_t>(end - at)));
      at = end;
      runs.push_back(complete());
    }
    return runs;
  }

  void add_pictures(size_t index, const std::vector<std::string>& paths,
                    const std::string& source) {
    PictureInput made =
        load_pictures(paths, model_.inputs()[index].dtype, shapes_.known(index), flags_.picture);
    add(index, std::move(made.array), source);
    found_[index]->pictures = std::move(made.steps);
  }

  size_t place_of(const FileArgument& file) const {
    return file.name.empty() ? first_missing(file.path) : model_.input_index(file.name);
  }

  Array load(size_t index, const std::string& path) const {
    const Port& port = model_.inputs()[index];
    const std::string end = ending(path);
    if (end != ".bin") return load_tensor(context_, path);
    const std::vector<int64_t> shape = shapes_.known(index);
    if (!shapes_.is_known(index) || std::find(shape.begin(), shape.end(), -1) != shape.end())
      throw usage_failure(path + " has no shape: --shape " + port.name + "=.. is wanted for " +
                          describe(port));
    return load_raw(path, port.dtype, shape);
  }

  // The member that is said; with a name, its member, or the only one; else members by name, or
  // arr_0, arr_1, .. in order.
  void read_archive(const FileArgument& file) {
    const std::string& path = file.path;
    if (!file.member.empty() || !file.name.empty()) {
      const size_t index = place_of(file);
      const bool is_said = !file.member.empty();
      std::vector<Array> one =
          load_archive(context_, path, is_said ? file.member : file.name, !is_said);
      return add(index, std::move(one.front()), is_said ? path + ":" + file.member : path);
    }
    std::vector<Array> members = load_archive(context_, path);
    for (size_t i = 0; i < members.size(); ++i) {
      const bool unnamed = members[i].name == "arr_" + std::to_string(i);
      const size_t index = unnamed ? first_missing(path) : model_.input_index(members[i].name);
      add(index, std::move(members[i]), path);
    }
  }

  size_t first_missing(const std::string& path) const {
    for (size_t i = 0; i < found_.size(); ++i)
      if (!found_[i]) return i;
    throw usage_failure(path + ": the model has only " + std::to_string(found_.size()) +
                        " inputs, and all are given");
  }

  void add(size_t index, Array array, const std::string& source) {
    shapes_.accept(index, array, source);
    array.name = model_.inputs()[index].name;
    found_[index] = Input{std::move(array), source, {}};
  }

  std::vector<Input> complete() {
    std::vector<std::string> missing;
    for (size_t i = 0; i < found_.size(); ++i)
      if (!found_[i])
        missing.push_back(model_.inputs()[i].name + " (" + describe(model_.inputs()[i]) + ")");
    if (!missing.empty() && flags_.synth.empty())
      throw usage_failure("inputs are missing: " + list_text(missing) +
                          "; give --input NAME=FILE or --synth uniform");
    std::vector<Input> inputs;
    for (size_t i = 0; i < found_.size(); ++i) {
      if (!found_[i]) {
        const Port& port = model_.inputs()[i];
        Array array = zeros(port.name, port.dtype, shapes_.chosen(i));
        synthesise(array, flags_.synth, common_.seed, i);
        found_[i] = Input{std::move(array), flags_.synth, {}};
      }
      inputs.push_back(std::move(*found_[i]));
    }
    return inputs;
  }

  const Context& context_;
  const LoadedModel& model_;
  const InputFlags& flags_;
  const CommonFlags& common_;
  Shapes shapes_;
  std::vector<std::optional<Input>> found_;
};

}  // namespace

std::vector<Input> read_inputs(const Context& context, const LoadedModel& model,
                               const InputFlags& flags, const CommonFlags& common) {
  return std::move(Reader(context, model, flags, common).read().front());
}

std::vector<std::vector<Input>> read_inputs_of_runs(const Context& context,
                                                    const LoadedModel& model,
                                                    const InputFlags& flags,
                                                    const CommonFlags& common) {
  return Reader(context, model, flags, common).read();
}

std::vector<int64_t> known_shape(const LoadedModel& model, const CommonFlags& common,
                                 size_t input) {
  const Shapes shapes(model, common);
  if (!shapes.is_known(input))
    throw usage_failure("--shape " + model.inputs()[input].name +
                        "=.. is wanted: the model says none");
  return shapes.known(input);
}

void check_shapes(const LoadedModel& model, const CommonFlags& common) {
  const Shapes checked(model, common);
}

std::string first_and_more(const std::string& first, size_t count) {
  return count == 1 ? first : first + " and " + std::to_string(count - 1) + " more";
}

std::vector<Array*> arrays_of(std::vector<Input>& inputs) {
  std::vector<Array*> arrays;
  for (Input& input : inputs) arrays.push_back(&input.array);
  return arrays;
}

namespace {

// FILE or FILE:MEMBER, if there is such a file.
std::optional<FileArgument> existing_file(const std::string& text) {
  if (is_file(text)) return FileArgument{"", text, ""};
  for (size_t at = text.find(':'); at != std::string::npos; at = text.find(':', at + 1)) {
    const std::string path = text.substr(0, at);
    if (is_archive(path) && is_file(path) && at + 1 < text.size())
      return FileArgument{"", path, text.substr(at + 1)};
  }
  return std::nullopt;
}

}  // namespace

FileArgument split_file(const std::string& text) {
  for (size_t at = text.rfind('='); at != std::string::npos && at > 0; at = text.rfind('=', at - 1))
    if (auto file = existing_file(text.substr(at + 1))) {
      file->name = text.substr(0, at);
      return *file;
    }
  if (const auto file = existing_file(text)) return *file;
  // No such file; the message should name the one that was most likely meant.
  const size_t at = text.rfind('=');
  if (at == std::string::npos) return {"", text, ""};
  return {text.substr(0, at), text.substr(at + 1), ""};
}

std::vector<std::string> data_files(const std::string& folder, const std::string& kind) {
  DIR* opened = opendir(folder.c_str());
  if (opened == nullptr)
    throw file_failure(folder, errno == ENOTDIR ? "is no folder" : std::strerror(errno));
  closedir(opened);
  std::vector<std::string> files;
  for (;;) {
    std::string path = folder;
    path.append("/").append(kind).append("_").append(std::to_string(files.size())).append(".pb");
    if (!is_file(path)) return files;
    files.push_back(path);
  }
}

}  // namespace tiny::cli
