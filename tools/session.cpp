#include "session.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "failure.h"
#include "known_files.h"
#include "process.h"
#include "suggest.h"

namespace tiny::cli {
namespace {

constexpr int kVerboseMax = 7;  // the option "debug" goes no further

// Sets a key of either kind: `value` as a number where it is one, else as a text.
void set_option(tiny_options* options, const std::string& key, const std::string& value) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool is_number = error == std::errc() && end == value.data() + value.size();
  if (is_number && tiny_options_set_int(options, key.c_str(), number) == TINY_OK) return;
  const tiny_status status = tiny_options_set_string(options, key.c_str(), value.c_str());
  if (status == TINY_OK) return;
  const Failure as_text = last_failure(status);
  // For a key of integers only: what is wrong with the number.
  if (is_number) check(tiny_options_set_int(options, key.c_str(), number));
  throw as_text;
}

// The setting of a flag; the library knows the range.
void set_number(tiny_options* options, const char* flag, const char* key, int64_t value) {
  const tiny_status status = tiny_options_set_int(options, key, value);
  if (status == TINY_OK) return;
  Failure failure = last_failure(status);
  failure.message = std::string(flag) + ": " + failure.message;
  throw failure;
}

// DEBUG=2, BEAM=4, NOOPT=1: the names that people know from elsewhere, where TINY_* does not speak.
void set_bare_variables(tiny_options* options) {
  const std::pair<const char*, const char*> known[] = {{"DEBUG", "debug"},
                                                       {"BEAM", "beam"},
                                                       {"NOOPT", "noopt"},
                                                       {"GRAPH", "graph"},
                                                       {"GRAPHUOPS", "graphuops"},
                                                       {"PROFILE", "profile"},
                                                       {"TRACK_MATCH_STATS", "track_match_stats"}};
  for (const auto& [variable, key] : known) {
    const char* value = std::getenv(variable);
    if (value == nullptr || std::getenv((std::string("TINY_") + variable).c_str())) continue;
    int64_t number = 0;
    const char* end = value + std::string_view(value).size();
    if (const auto parsed = std::from_chars(value, end, number);
        parsed.ec == std::errc() && parsed.ptr == end &&
        tiny_options_set_int(options, key, number) != TINY_OK)
      warn(std::string(variable) + "=" + value + " is ignored: " + tiny_last_error());
  }
}

std::string device_name(const CommonFlags& flags) {
  if (!flags.device.empty()) return flags.device;
  const char* variable = std::getenv("TINY_DEVICE");
  return variable && *variable ? variable : "";
}

// The row of the devices' report for a name ("" is the default device), or null.
const Json* device_row(const Json& report, const std::string& name) {
  const Json* devices = report.find("devices");
  if (devices == nullptr) return nullptr;
  for (const Json& device : devices->items()) {
    const Json* known = device.find("name");
    const Json* standard = device.find("default");
    if (name.empty() ? standard && standard->truth() : known && known->text() == name)
      return &device;
  }
  return nullptr;
}

// A device that is not there is no wrong usage but something that this build does not support.
// Asks drivers for their devices: called when there is an error.
void require_device(const std::string& given) {
  const size_t colon = given.find_last_not_of("0123456789");
  const bool is_numbered =
      colon != std::string::npos && given[colon] == ':' && colon + 1 < given.size();
  const std::string name = is_numbered ? given.substr(0, colon) : given;
  const Json report = devices_report();
  const Json* row = device_row(report, name);
  std::string message;
  if (row == nullptr) {
    std::vector<std::string> names;
    if (const Json* devices = report.find("devices"))
      for (const Json& device : devices->items())
        if (const Json* known = device.find("name")) names.push_back(known->text());
    message = "no device '" + name + "'" + did_you_mean(name, names) + "; this build has " +
              list_text(names);
  } else if (const Json* available = row->find("available"); available && !available->truth()) {
    const Json* reason = row->find("reason");
    message = "device '" + name + "' is not available: " + (reason ? reason->text() : "");
  }
  if (!message.empty()) throw Failure(Exit::Unsupported, "DEVICE", message);
}

std::vector<std::string> port_names(const std::vector<Port>& ports) {
  std::vector<std::string> names;
  for (const Port& port : ports) names.push_back(port.name);
  return names;
}

size_t index_of(const std::vector<std::string>& names, const std::string& name, const char* kind) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return i;
  throw usage_failure("'" + name + "' is no " + kind + " of the model" + did_you_mean(name, names) +
                      "; known: " + list_text(names));
}

Port input_port(tiny_model* model, size_t index) {
  Port port;
  const char* text = nullptr;
  size_t rank = 0;
  check(tiny_model_input_name(model, index, &text));
  port.name = text;
  check(tiny_model_input_dtype(model, index, &port.dtype));
  port.shape.resize(TINY_RANK_MAX);
  const tiny_status status =
      tiny_model_input_shape(model, index, port.shape.data(), port.shape.size(), &rank);
  port.has_rank = status != TINY_ERROR_UNSUPPORTED;
  if (port.has_rank) check(status);
  port.shape.resize(rank);
  for (size_t axis = 0; axis < rank; ++axis) {
    check(tiny_model_input_dim_name(model, index, axis, &text));
    port.names.emplace_back(text);
  }
  return port;
}

// "kernels" of the report; what is neither interpreted nor from a cache was compiled.
Json kernels_json(uint64_t count, uint64_t interpreted, uint64_t cached) {
  Json kernels = Json::object();
  kernels.set("count", count).set("compiled", count - std::min(count, interpreted + cached));
  return kernels.set("cached", cached).set("interpreted", interpreted);
}

// What the library says of the file, after what the file is if it is something else altogether.
Failure load_failure(tiny_status status, const std::string& path) {
  Failure failure = last_failure(status, path);
  const bool may_be_another = status == TINY_ERROR_INVALID_MODEL || status == TINY_ERROR_IO;
  if (const std::string kind = may_be_another ? known_kind(path) : ""; !kind.empty())
    failure.message = path + " is " + kind + ", not an ONNX model (" + failure.message + ")";
  return failure;
}

int32_t tell_progress(void*, const char* what, int64_t done, int64_t total) noexcept {
  try {
    note_progress(what, done, total);
  } catch (const std::exception&) {  // without memory there is no line; the work goes on
  }
  return 0;
}

}  // namespace

Context open_context(const CommonFlags& flags) {
  Options options;
  check(tiny_options_create(out(options)));
  check(tiny_options_set_progress(options.get(), tell_progress, nullptr));
  set_bare_variables(options.get());
  for (const std::string& text : flags.options) {
    const auto [key, value] = split_pair(text, "--option");
    set_option(options.get(), key, value);
  }
  if (!flags.device.empty())
    check(tiny_options_set_string(options.get(), "device", flags.device.c_str()));
  if (!flags.isa.empty()) check(tiny_options_set_string(options.get(), "isa", flags.isa.c_str()));
  if (flags.threads) set_number(options.get(), "--threads", "threads", *flags.threads);
  if (flags.limit_memory)
    set_number(options.get(), "--limit-memory", "memory_limit", *flags.limit_memory);
  if (flags.no_cache) check(tiny_options_set_int(options.get(), "cache", 0));
  if (flags.verbose > 0)
    check(tiny_options_set_int(options.get(), "debug", std::min(flags.verbose, kVerboseMax)));
  Context context;
  const tiny_status status = tiny_context_create(options.get(), out(context));
  if (status == TINY_ERROR_INVALID_ARGUMENT || status == TINY_ERROR_UNSUPPORTED) {
    const Failure failure = last_failure(status, {});  // asking for the devices has a message, too
    if (const std::string name = device_name(flags); !name.empty()) require_device(name);
    throw failure;
  }
  check(status);
  return context;
}

Context open_context_for_files() {
  Options options;
  check(tiny_options_create(out(options)));
  check(tiny_options_set_string(options.get(), "device", "interp"));
  Context context;
  check(tiny_context_create(options.get(), out(context)));
  return context;
}

Place place_of(const Context& context) {
  Report report;
  check(tiny_context_info(context.get(), out(report)));
  const auto info = Json::parse(tiny_report_text(report.get()));
  if (!info) throw Failure(Exit::Internal, "INTERNAL", "tiny_context_info gave no JSON");
  return {info->find("device")->text(), info->find("isa")->text(),
          static_cast<int64_t>(info->find("threads")->number())};
}

Json devices_report() {
  Report report;
  check(tiny_devices(out(report)));
  auto parsed = Json::parse(tiny_report_text(report.get()));
  if (!parsed) throw Failure(Exit::Internal, "INTERNAL", "tiny_devices gave no JSON");
  return *parsed;
}

std::string describe(const Port& port) {
  std::string text = tiny_dtype_name(port.dtype);
  if (!port.has_rank) return text + " of any shape";
  text += " [";
  for (size_t i = 0; i < port.shape.size(); ++i) {
    const std::string& name = port.names[i];
    text += (i ? "," : "") + (port.shape[i] >= 0 ? std::to_string(port.shape[i])
                              : name.empty()     ? std::string("?")
                                                 : name);
  }
  return text + "]";
}

LoadedModel::LoadedModel(const Context& context, std::string path) : path_(std::move(path)) {
  const Phase phase("loading " + path_);
  const auto start = Clock::now();
  const tiny_status status = tiny_model_load(context.get(), path_.c_str(), out(model_));
  if (status != TINY_OK) throw load_failure(status, path_);
  load_ms_ = ms_since(start);
}

void LoadedModel::read_ports() {
  size_t count = 0;
  check(tiny_model_input_count(get(), &count));
  for (size_t i = 0; i < count; ++i) inputs_.push_back(input_port(get(), i));
  check(tiny_model_output_count(get(), &count));
  for (size_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    check(tiny_model_output_name(get(), i, &name));
    outputs_.emplace_back(name);
  }
}

Json LoadedModel::info() const {
  return report_of(tiny_model_info, "tiny_model_info");
}

Json LoadedModel::header() const {
  return report_of(tiny_model_header, "tiny_model_header");
}

Json LoadedModel::report_of(decltype(&tiny_model_info) call, const char* name) const {
  Report report;
  check(call(get(), out(report)), path_);
  auto parsed = Json::parse(tiny_report_text(report.get()));
  if (!parsed) throw Failure(Exit::Internal, "INTERNAL", std::string(name) + " gave no JSON");
  return *parsed;
}

size_t LoadedModel::input_index(const std::string& name) const {
  return index_of(port_names(inputs_), name, "input");
}

size_t LoadedModel::output_index(const std::string& name) const {
  return index_of(outputs_, name, "output");
}

Session::Session(const Context& context, const LoadedModel& model,
                 const std::vector<Array*>& inputs)
    : context_(context), model_(model) {
  for (Array* array : inputs) {
    Tensor tensor;
    check(tiny_tensor_from_data(context.get(), array->dtype, array->shape.data(),
                                array->shape.size(), array->bytes.data(), array->bytes.size(),
                                out(tensor)));
    inputs_.push_back(std::move(tensor));
    std::vector<std::byte>().swap(array->bytes);
  }
  compile(inputs);
}

void Session::compile(const std::vector<Array*>& inputs) {
  const Phase phase("compiling " + model_.path());
  std::vector<int64_t> dims;
  for (const Array* array : inputs)
    dims.insert(dims.end(), array->shape.begin(), array->shape.end());
  const auto start = Clock::now();
  // NULL would mean that the model fixes every dimension, which no input at all does as well.
  const tiny_status status = tiny_model_compile(model_.get(), dims.empty() ? nullptr : dims.data(),
                                                dims.size(), out(program_));
  compile_ms_ = ms_since(start);
  if (status == TINY_OK) {
    check(tiny_run_create(program_.get(), out(run_)), model_.path());
    bind(run_.get());
    return;
  }
  // What the shapes alone do not settle, the values may.
  Failure failure = last_failure(status, model_.path());
  if (status == TINY_ERROR_SHAPE || status == TINY_ERROR_DTYPE) failure.exit = Exit::InvalidModel;
  if (status != TINY_ERROR_UNSUPPORTED) throw failure;
  try {
    compile_by_running();
  } catch (const Failure&) {
    throw failure;
  }
}

void Session::compile_by_running() {
  before_ = counted();
  first_run();
  first_ = counted();
  executions_ = 0;
  compile_ms_ = first_.schedule_ms + first_.compile_ms - before_.schedule_ms - before_.compile_ms;
}

Session::Counted Session::counted() const {
  Report report;
  check(tiny_context_counters(context_.get(), out(report)));
  const auto counters = Json::parse(tiny_report_text(report.get()));
  if (!counters) throw Failure(Exit::Internal, "INTERNAL", "tiny_context_counters gave no JSON");
  const Json &kernels = *counters->find("kernels"), &seconds = *counters->find("compile_seconds");
  const auto kernels_of = [&](const char* key) {
    return static_cast<uint64_t>(kernels.find(key)->number());
  };
  const auto ms_of = [&](const char* key) { return seconds.find(key)->number() * 1e3; };
  return {kernels_of("launched"), kernels_of("launched_interpreted"),
          kernels_of("compiled"), kernels_of("interpreted"),
          ms_of("schedule"),      ms_of("lower") + ms_of("load")};
}

void Session::bind(tiny_run* run) const {
  for (size_t i = 0; i < inputs_.size(); ++i)
    check(tiny_run_set_input(run, i, inputs_[i].get()), model_.path());
}

void Session::execute() {
  if (run_) {
    const tiny_status status = execute(run_.get());
    if (status != TINY_ERROR_UNSUPPORTED) return check(status, model_.path());
    run_.reset();  // a branch that the program has not, a run of the model has
  }
  ++executions_;
  std::vector<tiny_tensor*> inputs, results(model_.outputs().size());
  for (const Tensor& input : inputs_) inputs.push_back(input.get());
  const tiny_status status =
      tiny_model_run(model_.get(), inputs.data(), inputs.size(), results.data(), results.size());
  check(status, model_.path());
  results_.clear();
  for (tiny_tensor* result : results) results_.emplace_back(result);
  check(tiny_realize(results.data(), results.size()), model_.path());
  check(tiny_context_synchronize(context_.get()), model_.path());
}

tiny_status Session::execute(tiny_run* run) const {
  const tiny_status status = tiny_run_execute(run);
  return status == TINY_OK ? tiny_context_synchronize(context_.get()) : status;
}

double Session::first_run() {
  if (!first_run_ms_) {
    const auto start = Clock::now();
    execute();
    first_run_ms_ = ms_since(start);
  }
  return *first_run_ms_;
}

Run Session::another_run() const {
  if (!program_)
    throw Failure(Exit::Unsupported, "UNSUPPORTED",
                  "the model's shapes depend on its inputs' values: no program runs concurrently");
  Run run;
  check(tiny_run_create(program_.get(), out(run)), model_.path());
  bind(run.get());
  return run;
}

std::vector<Array> Session::read_outputs() const {
  std::vector<Array> arrays;
  for (size_t i = 0; i < model_.outputs().size(); ++i) {
    const std::string& name = model_.outputs()[i];
    if (!run_) {
      arrays.push_back(read_tensor(results_[i].get(), name));
      continue;
    }
    tiny_dtype dtype;
    size_t rank;
    std::vector<int64_t> shape(TINY_RANK_MAX);
    check(tiny_run_output_dtype(run_.get(), i, &dtype));
    check(tiny_run_output_shape(run_.get(), i, shape.data(), shape.size(), &rank));
    shape.resize(rank);
    arrays.push_back(zeros(name, dtype, std::move(shape)));
    check(tiny_run_read_output(run_.get(), i, arrays[i].bytes.data(), arrays[i].bytes.size()));
  }
  return arrays;
}

Json Session::times() const {
  double schedule = 0, compile = 0, init = 0;
  if (program_) {
    check(tiny_program_times(program_.get(), &schedule, &compile, &init));
  } else {
    schedule = (first_.schedule_ms - before_.schedule_ms) / 1e3;
    compile = (first_.compile_ms - before_.compile_ms) / 1e3;
  }
  Json times = Json::object();
  times.set("schedule", schedule * 1e3).set("compile", compile * 1e3).set("init", init * 1e3);
  return times;
}

Json Session::kernels() const {
  if (!program_) return kernels_of_runs();
  size_t count = 0, interpreted = 0, cached = 0;
  check(tiny_program_kernel_count(program_.get(), &count));
  check(tiny_program_interpreted_count(program_.get(), &interpreted));
  check(tiny_program_cached_count(program_.get(), &cached));
  return kernels_json(count, interpreted, cached);
}

// Of one execution: those after the first, which compiles and may compute constants on the way.
Json Session::kernels_of_runs() const {
  const Counted now = counted();
  const bool again = executions_ > 0;
  const Counted& start = again ? first_ : before_;
  const uint64_t runs = again ? executions_ : 1;
  const uint64_t count = (now.launched - start.launched) / runs;
  const uint64_t interpreted = (now.launched_interpreted - start.launched_interpreted) / runs;
  // Machine code that the first execution compiled; what else ran had been there.
  const uint64_t machine_code = count - std::min(count, interpreted);
  const uint64_t made = first_.compiled - before_.compiled;
  const uint64_t made_bytecode = first_.interpreted - before_.interpreted;
  const uint64_t compiled = std::min(machine_code, made - std::min(made, made_bytecode));
  return kernels_json(count, interpreted, machine_code - compiled);
}

Json Session::memory() const {
  size_t arena = 0, weights = 0;
  if (program_) check(tiny_program_memory(program_.get(), &arena, &weights));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  Json memory = Json::object();
  memory.set("arena", arena).set("weights", weights);
  memory.set("peak_rss", static_cast<int64_t>(usage.ru_maxrss) * 1024);
  return memory;
}

std::pair<std::string, std::string> split_pair(const std::string& text, const std::string& flag) {
  const size_t at = text.find('=');
  if (at == std::string::npos || at == 0)
    throw usage_failure(flag + " wants NAME=VALUE, not '" + text + "'");
  return {text.substr(0, at), text.substr(at + 1)};
}

int64_t parse_integer(const std::string& text, const std::string& what, int64_t low, int64_t high) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < low || number > high)
    throw usage_failure(what + " wants a whole number of at least " + std::to_string(low) +
                        ", not '" + text + "'");
  return number;
}

std::string list_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

}  // namespace tiny::cli
