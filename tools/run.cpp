// tiny run: one execution of a model, its outputs shown, compared and saved.
#include <algorithm>
#include <set>

#include "commands.h"
#include "outputs.h"
#include "process.h"
#include "save.h"

namespace tiny::cli {
namespace {

// Which outputs are asked for, in the model's order.
std::vector<size_t> chosen_outputs(const LoadedModel& model, const RunFlags& flags) {
  std::set<size_t> chosen;
  const auto known = [&](const std::string& name) {
    return std::find(model.outputs().begin(), model.outputs().end(), name) != model.outputs().end();
  };
  for (const std::string& text : flags.outputs) {
    if (known(text)) {  // a name may hold commas
      chosen.insert(model.output_index(text));
      continue;
    }
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      chosen.insert(model.output_index(text.substr(at, end - at)));
      at = end + 1;
    }
  }
  if (flags.outputs.empty())
    for (size_t i = 0; i < model.outputs().size(); ++i) chosen.insert(i);
  return {chosen.begin(), chosen.end()};
}

bool is_chosen(const std::vector<size_t>& chosen, size_t index) {
  return std::find(chosen.begin(), chosen.end(), index) != chosen.end();
}

struct Expected {
  size_t output;
  Array array;
  std::string file;
};

// What outputs should be: from --expect, and from the data set of --data.
std::vector<Expected> read_expected(const LoadedModel& model, const RunFlags& flags,
                                    const std::vector<size_t>& chosen) {
  std::vector<Expected> expected;
  if (flags.input.data.empty() && flags.expect.empty()) return expected;
  const Context context = open_context_for_files();
  const auto add = [&](size_t index, Array array, const std::string& path) {
    if (index >= model.outputs().size())
      throw usage_failure(path + ": the model has only " + std::to_string(model.outputs().size()) +
                          " outputs");
    expected.push_back({index, std::move(array), path});
  };
  if (!flags.input.data.empty()) {
    const auto files = data_files(flags.input.data, "output");
    for (size_t i = 0; i < files.size(); ++i) add(i, load_tensor(context, files[i]), files[i]);
  }
  const size_t of_data = expected.size();
  size_t unnamed = 0;
  for (const std::string& text : flags.expect) {
    const auto [name, path, member] = split_file(text);
    if (!is_file(path)) throw file_failure(path, "no such file");
    if (is_archive(path) && member.empty() && name.empty()) {
      for (Array& array : load_archive(context, path)) {
        const bool by_order = array.name == "arr_" + std::to_string(unnamed);
        const size_t index = by_order ? unnamed++ : model.output_index(array.name);
        add(index, std::move(array), path);
      }
      continue;
    }
    const size_t index = name.empty() ? unnamed++ : model.output_index(name);
    if (is_archive(path)) {
      const bool is_said = !member.empty();
      std::vector<Array> one = load_archive(context, path, is_said ? member : name, !is_said);
      add(index, std::move(one.front()), path);
      continue;
    }
    add(index, load_tensor(context, path), path);
  }
  // A data set has files for all outputs, chosen or not; the others were named.
  for (size_t i = of_data; i < expected.size(); ++i)
    if (!is_chosen(chosen, expected[i].output))
      throw usage_failure(expected[i].file + " is what output " +
                          model.outputs()[expected[i].output] +
                          " should be, which --outputs leaves out");
  return expected;
}

void report_comparisons(const Array& array, size_t index, const RunFlags& flags,
                        const std::vector<Expected>& expected, OutputReport& report) {
  for (const Expected& wanted : expected) {
    if (wanted.output != index) continue;
    const Comparison result = compare(array, wanted.array, wanted.file, flags.tolerance);
    // Of several comparisons of one output, the report keeps the one that failed.
    if (!report.json.find("compare") || (!result.pass && report.mismatch.empty()))
      report.json.set("compare", result.json());
    report.text += std::string("       ") + (result.pass ? "equals " : "DIFFERS from ") +
                   wanted.file + ": " + result.text() + "  (max_abs " +
                   Json(result.max_abs).text() + ", max_rel " + Json(result.max_rel).text() + ")\n";
    if (!result.pass && report.mismatch.empty())
      report.mismatch = "output " + array.name + ": " + result.text();
  }
}

Json inputs_json(const std::vector<Input>& inputs) {
  Json list = Json::array();
  for (const Input& input : inputs) {
    Json entry = Json::object();
    entry.set("name", input.array.name).set("dtype", tiny_dtype_name(input.array.dtype));
    entry.set("shape", Json::integers(input.array.shape)).set("source", input.source);
    if (input.pictures.size() == 1) entry.set("picture", input.pictures[0].json);
    if (input.pictures.size() > 1) {
      Json pictures = Json::array();
      for (PictureSteps picture : input.pictures)
        pictures.push(picture.json.set("file", picture.path));
      entry.set("pictures", pictures);
    }
    list.push(entry);
  }
  return list;
}

// How the pictures of an input were made to fit; once, if it was the same for all.
std::string steps_text(const std::vector<PictureSteps>& pictures) {
  const auto is_other = [&](const PictureSteps& each) { return each.text != pictures[0].text; };
  if (std::none_of(pictures.begin(), pictures.end(), is_other))
    return pictures.empty() ? "" : "       " + pictures[0].text + "\n";
  std::string text;
  for (const PictureSteps& each : pictures) text += "       " + each.path + ": " + each.text + "\n";
  return text;
}

// The report's "model".
Json about_model(const LoadedModel& model, const CommonFlags& common) {
  Json about = Json::object();
  about.set("path", model.path());
  if (!common.json) return about;
  const Json header = model.header();
  for (size_t i = 0; i < header.keys().size(); ++i)
    if (header.keys()[i] != "path") about.set(header.keys()[i], header.items()[i]);
  return about;
}

// "times  load 0.1 ms ..", each figure below its name.
std::string figures_text(const char* name, const Json& figures, std::string (*text)(const Json&)) {
  std::vector<std::string> heads{left(name, 7)}, row{left("", 7)};
  for (size_t i = 0; i < figures.keys().size(); ++i) {
    heads.push_back(figures.keys()[i]);
    row.push_back(text(figures.items()[i]));
  }
  return table({heads, row}, "");
}

// Where the time went, on request; that kernels are interpreted, which is slow, always.
std::string closing_text(const Json& times, const Json& kernels, const Json& memory, bool asked) {
  if (!asked && kernels.find("interpreted")->number() == 0) return "";
  const auto count = [](const Json& number) { return number.text(); };
  if (!asked)
    return "kernels " + count(*kernels.find("count")) + ", interpreted " +
           count(*kernels.find("interpreted")) + "\n";
  return figures_text("times", times,
                      [](const Json& ms) { return fixed(ms.number(), 2) + " ms"; }) +
         figures_text("kernels", kernels, count) +
         figures_text("memory", memory, [](const Json& size) { return bytes_text(size.number()); });
}

// Outputs of a run of so many pictures, whose first axis is theirs.
std::vector<Array> with_rows(std::vector<Array> outputs, size_t pictures) {
  for (Array& array : outputs) {
    if (!array.shape.empty() && array.shape[0] == static_cast<int64_t>(pictures)) continue;
    if (pictures > 1)
      throw usage_failure("output " + array.name + " has no row for each picture: give " +
                          std::to_string(pictures) + " pictures");
    array.shape.insert(array.shape.begin(), 1);
  }
  return outputs;
}

// Appends what the next pictures came to; their other inputs are the same.
void append_run(std::vector<Input>& inputs, std::vector<Array>& outputs,
                const std::vector<Input>& next_inputs, const std::vector<Array>& next_outputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<PictureSteps>& pictures = inputs[i].pictures;
    if (pictures.empty()) continue;
    const Input& next = next_inputs[i];
    pictures.insert(pictures.end(), next.pictures.begin(), next.pictures.end());
    inputs[i].source = first_and_more(pictures[0].path, pictures.size());
    if (inputs[i].array.shape.size() == 4) inputs[i].array.shape[0] += next.array.shape[0];
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    Array& array = outputs[i];
    const Array& next = next_outputs[i];
    if (!std::equal(array.shape.begin() + 1, array.shape.end(), next.shape.begin() + 1,
                    next.shape.end()))
      throw usage_failure("output " + array.name +
                          " has another shape for each picture: " + shape_text(array.shape) +
                          " and " + shape_text(next.shape) + "; give them one at a time");
    array.shape[0] += next.shape[0];
    array.bytes.insert(array.bytes.end(), next.bytes.begin(), next.bytes.end());
  }
}

}  // namespace

Outcome run_command(const RunFlags& flags, const CommonFlags& common) {
  const std::vector<std::string> labels =
      flags.labels.empty() ? std::vector<std::string>() : read_labels(flags.labels);
  const Context context = open_context(common);
  const Place place = place_of(context);
  LoadedModel model(context, flags.model);
  model.read_ports();
  const std::vector<size_t> chosen = chosen_outputs(model, flags);
  if (!flags.save.empty()) check_target(flags.save, chosen.size());
  std::vector<std::vector<Input>> runs = read_inputs_of_runs(context, model, flags.input, common);
  const std::vector<Expected> expected = read_expected(model, flags, chosen);
  std::vector<Input>& inputs = runs[0];
  Session session(context, model, arrays_of(inputs));
  const auto start = Clock::now();
  session.execute();
  const double first_run_ms = ms_since(start);
  std::vector<Array> outputs = session.read_outputs();
  const size_t at_once = flags.input.pictures.size() / runs.size();
  if (runs.size() > 1) outputs = with_rows(std::move(outputs), at_once);
  for (size_t i = 1; i < runs.size(); ++i) {
    Session next(context, model, arrays_of(runs[i]));  // which finds the program of the first
    next.execute();
    append_run(inputs, outputs, runs[i], with_rows(next.read_outputs(), at_once));
  }

  Outcome outcome;
  outcome.body.set("model", about_model(model, common))
      .set("device", place.device)
      .set("isa", place.isa);
  outcome.body.set("threads", place.threads).set("inputs", inputs_json(inputs));
  Columns columns;
  for (const Input& input : inputs) columns.fit(input.array);
  for (const size_t index : chosen) columns.fit(outputs[index]);
  if (flags.print != "none") {
    outcome.text = "model  " + flags.model + "  on " + place.device +
                   (place.isa.empty() ? "" : " " + place.isa) + ", threads " +
                   std::to_string(place.threads) + "\n";
    for (const Input& input : inputs)
      outcome.text += "input  " + columns.text(input.array) + "  " + input.source + "\n" +
                      steps_text(input.pictures);
  }
  Json list = Json::array();
  std::vector<Array> kept;
  std::string wrong;
  for (size_t index = 0; index < outputs.size(); ++index) {
    // What a data set expects is compared, whether it is shown or not.
    const bool is_shown = is_chosen(chosen, index);
    OutputReport report;
    if (is_shown) report_values(outputs[index], flags, columns, report);
    if (is_shown && !report_pictures(outputs[index], flags, labels, report))
      report_top(outputs[index], flags, labels, report);
    report_comparisons(outputs[index], index, flags, expected, report);
    if (wrong.empty()) wrong = report.mismatch;
    if (!is_shown) continue;
    list.push(report.json);
    outcome.text += report.text;
    kept.push_back(std::move(outputs[index]));
  }
  if (!flags.save.empty()) save_outputs(context, flags.save, kept);
  Json times = Json::object();
  times.set("load", model.load_ms());
  const Json compile_times = session.times();
  for (size_t i = 0; i < compile_times.keys().size(); ++i)
    times.set(compile_times.keys()[i], compile_times.items()[i]);
  times.set("first_run", first_run_ms);
  const Json kernels = session.kernels(), memory = session.memory();
  outcome.body.set("outputs", list).set("times_ms", times);
  outcome.body.set("kernels", kernels).set("memory", memory);
  if (flags.print != "none") outcome.text += closing_text(times, kernels, memory, flags.times);
  if (!wrong.empty()) outcome.failure = mismatch(wrong);
  return outcome;
}

}  // namespace tiny::cli
