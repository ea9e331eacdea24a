// tiny test: the runner of ONNX's standard layout.  Every case runs in a process of its own, so
// that a crash or a time-out is the result of that case and nothing else.
#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "commands.h"
#include "process.h"
#include "values.h"

namespace tiny::cli {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string folder, name, category;
};

struct Result {
  std::string kind;  // "pass", "fail", "unsupported", "error", "known"
  std::string reason;
  double max_abs = 0, max_rel = 0, ms = 0;
  uint64_t kernels = 0;  // that ran
  uint64_t interpreted = 0;
};

std::vector<Case> find_cases(const std::vector<std::string>& folders) {
  std::set<std::string> found;
  for (const std::string& folder : folders) {
    std::error_code error;
    const fs::path root = fs::canonical(folder, error);
    if (error) throw file_failure(folder, error.message());
    if (!fs::is_directory(root, error)) throw file_failure(folder, "is no folder");
    if (fs::is_regular_file(root / "model.onnx", error)) found.insert(root);
    fs::recursive_directory_iterator at(root, fs::directory_options::skip_permission_denied, error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error))
      if (at->path().filename() == "model.onnx") found.insert(at->path().parent_path());
    if (error) throw file_failure(folder, error.message());
  }
  std::vector<Case> cases;
  for (const std::string& folder : found) {
    const fs::path path(folder);
    cases.push_back({folder, path.filename(), path.parent_path().filename()});
  }
  return cases;
}

std::regex parse_regex(const std::string& text, const char* flag) {
  try {
    return std::regex(text);
  } catch (const std::regex_error& error) {
    throw usage_failure(std::string(flag) + " wants a regular expression: " + error.what());
  }
}

// The numbers of test_data_set_N, in order.
std::vector<std::string> data_sets(const std::string& folder) {
  std::map<int64_t, std::string> sets;
  const std::string prefix = "test_data_set_";
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(prefix) && entry.is_directory())
      sets[parse_integer(name.substr(prefix.size()), name, 0, INT32_MAX)] = entry.path();
  }
  std::vector<std::string> folders;
  for (const auto& [number, path] : sets) folders.push_back(path);
  return folders;
}

// The data of ONNX's cases of transforms holds a float32 transform's rounding errors where the true
// value is 0.
Tolerance tolerance_of(const TestFlags& flags) {
  constexpr double kTransformErrors = 1e-6;
  Tolerance tolerance = flags.tolerance;
  if (fs::path(flags.one_case).filename().string().find("dft") != std::string::npos)
    tolerance.absolute = std::max(tolerance.absolute, kTransformErrors);
  return tolerance;
}

void add(const Comparison& compared, const std::string& folder, const std::string& output,
         Result& result) {
  result.max_abs = std::max(result.max_abs, compared.max_abs);
  result.max_rel = std::max(result.max_rel, compared.max_rel);
  if (compared.pass || result.kind != "pass") return;
  result.kind = "fail";
  result.reason =
      fs::path(folder).filename().string() + ", output " + output + ": " + compared.text();
}

// Whether a node of the model draws random numbers, or may: then data sets hold those of another.
bool may_draw(const LoadedModel& model) {
  const std::set<std::string> drawing = {"Bernoulli",        "Dropout",          "Multinomial",
                                         "RandomNormal",     "RandomNormalLike", "RandomUniform",
                                         "RandomUniformLike"};
  const Json info = model.info();
  const Json* operators = info.find("operators");
  return operators && std::ranges::any_of(operators->items(), [&](const Json& one) {
           const Json* op = one.find("op");
           return op && drawing.contains(op->text());
         });
}

// Whether one output is random: another execution makes other elements.  Then its type and shape
// are what can be compared.
bool is_random(const Array& one, const Array& another, const Array& wanted) {
  return one.bytes != another.bytes && one.dtype == wanted.dtype && one.shape == wanted.shape;
}

void run_set(const Context& context, const LoadedModel& model, const std::string& folder,
             const TestFlags& flags, const CommonFlags& common, Result& result) {
  InputFlags input;
  input.data = folder;
  CommonFlags own = common;  // the files say what the shapes are
  own.dims.clear();
  own.shapes.clear();
  auto inputs = read_inputs(context, model, input, own);
  const auto files = data_files(folder, "output");
  if (files.empty()) throw file_failure(folder, "no output_0.pb");
  if (files.size() > model.outputs().size())
    throw file_failure(folder, std::to_string(files.size()) + " outputs for a model that has " +
                                   std::to_string(model.outputs().size()));
  std::vector<Array> wanted;
  const Context reader = open_context_for_files();
  for (const std::string& file : files) wanted.push_back(load_tensor(reader, file));
  Session session(context, model, arrays_of(inputs));
  session.execute();
  const std::vector<Array> outputs = session.read_outputs();
  const Json kernels = session.kernels();
  result.kernels += static_cast<uint64_t>(kernels.find("count")->number());
  result.interpreted += static_cast<uint64_t>(kernels.find("interpreted")->number());
  std::vector<Array> again;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Comparison compared = compare(outputs[i], wanted[i], files[i], tolerance_of(flags));
    if (!compared.pass && may_draw(model)) {
      if (again.empty()) {
        session.execute();
        again = session.read_outputs();
      }
      if (is_random(outputs[i], again[i], wanted[i])) continue;
    }
    add(compared, folder, outputs[i].name, result);
  }
}

// All of one case, in this process.
Result run_case(const TestFlags& flags, const CommonFlags& common) {
  Result result;
  result.kind = "pass";
  const auto start = Clock::now();
  try {
    const Context context = open_context(common);
    LoadedModel model(context, flags.one_case + "/model.onnx");
    const bool is_of_values = has_values(model.get());
    if (!is_of_values) model.read_ports();
    const auto sets = data_sets(flags.one_case);
    if (sets.empty()) throw file_failure(flags.one_case, "no test_data_set_0");
    for (const std::string& folder : sets) {
      if (!is_of_values) {
        run_set(context, model, folder, flags, common, result);
        continue;
      }
      for (const Comparison& compared :
           compare_run_of_values(context, model.get(), folder, tolerance_of(flags)))
        add(compared, folder, compared.file, result);
    }
  } catch (const Failure& failure) {
    result.kind = failure.exit == Exit::Unsupported ? "unsupported" : "error";
    result.reason = failure.message;
  }
  result.ms = ms_since(start);
  return result;
}

Json line_of(const Case& tested, const Result& result) {
  std::optional<Failure> failure;
  if (result.kind == "fail") failure = mismatch(result.reason);
  if (result.kind == "error") failure = Failure(Exit::Mismatch, "INTERNAL", result.reason);
  if (result.kind == "unsupported")
    failure = Failure(Exit::Unsupported, "UNSUPPORTED", result.reason);
  Json line = json_head("test", failure);
  line.set("name", tested.name).set("category", tested.category).set("result", result.kind);
  line.set("reason", result.reason.empty() ? Json() : Json(result.reason));
  line.set("max_abs", result.max_abs).set("max_rel", result.max_rel).set("ms", result.ms);
  return line.set("kernels", result.kernels).set("interpreted", result.interpreted);
}

// What a child wrote, or what its end says.
Result result_of(const Ended& ended, double timeout) {
  Result result;
  result.kind = "error";
  result.ms = ended.ms;
  const auto line = Json::parse(ended.out);
  if (ended.timed_out) {
    result.reason = "time-out after " + fixed(timeout, 1) + " s";
  } else if (ended.exit_code == 0 && line && line->find("result")) {
    result.kind = line->find("result")->text();
    result.reason = line->find("reason")->text();
    result.max_abs = std::strtod(line->find("max_abs")->text().c_str(), nullptr);
    result.max_rel = std::strtod(line->find("max_rel")->text().c_str(), nullptr);
    result.ms = line->find("ms")->number();
    result.kernels = static_cast<uint64_t>(line->find("kernels")->number());
    result.interpreted = static_cast<uint64_t>(line->find("interpreted")->number());
  } else {
    result.reason = ended.exit_code < 0 ? "ended by signal " + std::to_string(ended.signal)
                                        : "ended with " + std::to_string(ended.exit_code);
    const size_t end = ended.err.find_last_not_of("\n ");
    if (end != std::string::npos) result.reason += ": " + ended.err.substr(0, end + 1);
  }
  return result;
}

struct Counts {
  uint64_t passed = 0, failed = 0, unsupported = 0, errors = 0, known = 0;

  void add(const std::string& kind) {
    if (kind == "pass")
      ++passed;
    else if (kind == "fail")
      ++failed;
    else if (kind == "unsupported")
      ++unsupported;
    else if (kind == "known")
      ++known;
    else
      ++errors;
  }
  uint64_t total() const { return passed + failed + unsupported + errors + known; }
  Json json() const {
    Json object = Json::object();
    object.set("passed", passed).set("failed", failed).set("unsupported", unsupported);
    return object.set("errors", errors).set("known", known).set("total", total());
  }
};

std::string table(const std::map<std::string, Counts>& categories) {
  std::string text = left("category", 24);
  for (const char* title : {"passed", "failed", "errors", "unsupported", "known", "total"})
    text += right(title, 12);
  text += "\n";
  for (const auto& [name, counts] : categories) {
    text += left(name, 24);
    for (const uint64_t count : {counts.passed, counts.failed, counts.errors, counts.unsupported,
                                 counts.known, counts.total()})
      text += right(std::to_string(count), 12);
    text += "\n";
  }
  return text;
}

class Tester {
 public:
  Tester(const TestFlags& flags, const CommonFlags& common) : flags_(flags), common_(common) {
    if (!flags.known.empty())
      for (const std::string& name : read_labels(flags.known))
        if (!name.empty() && name[0] != '#') known_.insert(name);
    const std::regex filter = parse_regex(flags.filter, "--filter");
    const std::regex exclude = parse_regex(flags.exclude, "--exclude");
    for (Case& found : find_cases(flags.folders))
      if (std::regex_search(found.name, filter) &&
          (flags.exclude.empty() || !std::regex_search(found.name, exclude)))
        cases_.push_back(std::move(found));
    if (cases_.empty())
      throw file_failure(flags.folders.front(), "no folder with model.onnx is below, or chosen");
  }

  Outcome run() {
    Children children;
    size_t started = 0, ended = 0;
    const Phase phase("testing");
    while (ended < cases_.size()) {
      while (started < cases_.size() && children.running() < static_cast<size_t>(flags_.jobs)) {
        std::vector<std::string> arguments = flags_.arguments;
        arguments.push_back("--one-case=" + cases_[started].folder);
        children.start(started++, arguments, flags_.case_timeout);
      }
      note_progress("cases", static_cast<int64_t>(ended), static_cast<int64_t>(cases_.size()));
      const auto [index, how] = children.wait();
      ++ended;
      report(cases_[index], result_of(how, flags_.case_timeout));
    }
    return finish();
  }

 private:
  void report(const Case& tested, Result result) {
    const bool failed = result.kind == "fail" || result.kind == "error";
    if (failed && known_.contains(tested.name)) result.kind = "known";
    kernels_ += result.kernels;
    interpreted_ += result.interpreted;
    all_.add(result.kind);
    categories_[tested.category].add(result.kind);
    if (common_.json) return print(line_of(tested, result).dump() + "\n");
    const bool tell = result.kind == "fail" || result.kind == "error" ||
                      (common_.verbose > 0 && result.kind != "pass");
    if (tell)
      print(left(result.kind, 12) + tested.category + "/" + tested.name + ": " + result.reason +
            "\n");
  }

  Outcome finish() const {
    Outcome outcome;
    outcome.printed = true;
    const uint64_t failed = all_.failed + all_.errors;
    if (failed > 0)
      outcome.failure = mismatch(std::to_string(failed) + " of " + std::to_string(all_.total()) +
                                 " cases failed");
    if (!common_.json) {
      print(table(categories_) + std::to_string(kernels_) + " kernels ran, " +
            std::to_string(interpreted_) + " of them interpreted\n" + std::to_string(all_.passed) +
            " passed, " + std::to_string(failed) + " failed, " +
            std::to_string(all_.unsupported + all_.known) + " skipped\n");
      return outcome;
    }
    Json summary = all_.json(), categories = Json::object();
    summary.set("kernels", kernels_).set("interpreted", interpreted_);
    for (const auto& [name, counts] : categories_) categories.set(name, counts.json());
    Json line = json_head("test", outcome.failure);
    print(line.set("summary", summary.set("by_category", categories)).dump() + "\n");
    return outcome;
  }

  const TestFlags& flags_;
  const CommonFlags& common_;
  std::vector<Case> cases_;
  std::set<std::string> known_;
  uint64_t kernels_ = 0, interpreted_ = 0;
  Counts all_;
  std::map<std::string, Counts> categories_;
};

}  // namespace

Outcome test_command(const TestFlags& flags, const CommonFlags& common) {
  if (flags.one_case.empty()) {
    open_context(common);  // what is wrong with it is no case's fault
    return Tester(flags, common).run();
  }
  end_with_parent();
  Outcome outcome;
  outcome.printed = true;
  print(line_of({}, run_case(flags, common)).dump() + "\n");
  return outcome;
}

}  // namespace tiny::cli
