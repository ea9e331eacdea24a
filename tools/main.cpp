// The command line `tiny`: reads the arguments, runs one command, prints its result or its failure.
#include <algorithm>
#include <cstdio>
#include <new>
#include <optional>

#include "arguments.h"
#include "process.h"

namespace tiny::cli {
namespace {

int fail(const Failure& failure, const std::string& command, bool json) {
  if (json) print(json_head(command, failure).dump() + "\n");
  const std::string text = "tiny: " + failure.message + "\n";
  std::fputs(text.c_str(), stderr);
  return static_cast<int>(failure.exit);
}

int finish(const Outcome& outcome, const std::string& command, bool json) {
  if (!outcome.printed && json) {
    Json object = json_head(command, outcome.failure);
    const Json& body = outcome.body;
    for (size_t i = 0; i < body.keys().size(); ++i) object.set(body.keys()[i], body.items()[i]);
    print(object.dump() + "\n");
  } else if (!outcome.printed) {
    print(outcome.text);
  }
  if (!outcome.failure) return 0;
  std::fputs(("tiny: " + outcome.failure->message + "\n").c_str(), stderr);
  return static_cast<int>(outcome.failure->exit);
}

Failure out_of_memory(const std::string& command) {
  const std::string phase = failed_phase();
  return Failure(Exit::Limit, "OUT_OF_MEMORY",
                 "tiny " + command + ": out of memory" + (phase.empty() ? "" : ", " + phase));
}

Outcome run_chosen(const CLI::App& app, Arguments& all, const std::vector<std::string>& arguments) {
  const std::string& command = app.get_name();
  all.bench.arguments = all.test.arguments = arguments;
  if (command == "run") {
    finish_inputs(app, all.run.input, all);
    return run_command(all.run, all.common);
  }
  if (command == "bench") {
    finish_inputs(app, all.bench.input, all);
    if (all.bench.input.synth.empty()) all.bench.input.synth = "uniform";
    return bench_command(all.bench, all.common);
  }
  if (command == "info") return info_command(all.info, all.common);
  if (command == "export") return export_command(all.exported, all.common);
  if (command == "test") return test_command(all.test, all.common);
  return devices_command(all.common);
}

int run_main(const std::vector<std::string>& arguments, std::string& command, bool& json) {
  Arguments all;
  CLI::App root("tiny: run, inspect, measure, test and export ONNX models", "tiny");
  root.require_subcommand(1);
  root.set_version_flag("--version", std::string(tiny_version()));
  add_commands(root, all, arguments.empty() ? "" : arguments[0]);
  require_command_first(arguments, root);
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    root.parse(reversed);
  } catch (const CLI::ParseError& error) {
    const auto chosen = root.get_subcommands();
    if (!chosen.empty()) command = chosen[0]->get_name();
    if (error.get_exit_code() == 0) {
      root.exit(error);  // --help and --version
      return 0;
    }
    throw usage_failure(parse_message(root, error, arguments));
  }
  const CLI::App& chosen = *root.get_subcommands().at(0);
  command = chosen.get_name();
  json = all.common.json;
  watch_process(json, all.common.quiet, command);
  return finish(run_chosen(chosen, all, arguments), command, json);
}

}  // namespace
}  // namespace tiny::cli

int main(int argc, char** argv) {
  using namespace tiny::cli;
  std::string command;
  // Until the arguments are understood: a mistake in them is told as they ask for.
  const std::vector<std::string> arguments(argv + (argc > 0), argv + argc);
  bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  std::optional<Failure> failure;
  try {
    return run_main(arguments, command, json);
  } catch (const Failure& caught) {
    failure = caught;
  } catch (const std::bad_alloc&) {
    failure = out_of_memory(command);
  } catch (const std::length_error&) {
    failure = out_of_memory(command);
  } catch (const std::exception& caught) {
    failure = Failure(Exit::Internal, "INTERNAL", caught.what());
  }
  try {
    return fail(*failure, command, json);
  } catch (const std::exception&) {
    return static_cast<int>(failure->exit);  // stdout is gone; the exit code still tells
  }
}
