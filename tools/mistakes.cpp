// Mistakes in the arguments: what is said of them.
#include <algorithm>

#include "arguments.h"
#include "suggest.h"

namespace tiny::cli {
namespace {

std::vector<std::string> known_flags(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_lnames().empty() && !option->get_group().empty())
      names.push_back("--" + option->get_lnames().front());
  return names;
}

std::vector<std::string> known_commands(const CLI::App& root) {
  std::vector<std::string> names;
  for (const CLI::App* app : root.get_subcommands({})) names.push_back(app->get_name());
  return names;
}

// The first argument that looks like a flag and is none, or "".
std::string unknown_flag(const std::vector<std::string>& arguments,
                         const std::vector<std::string>& known) {
  for (const std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    if (name.starts_with("--") && std::find(known.begin(), known.end(), name) == known.end())
      return name;
  }
  return "";
}

}  // namespace

std::string parse_message(const CLI::App& root, const CLI::ParseError& error,
                          const std::vector<std::string>& arguments) {
  const auto chosen = root.get_subcommands();
  if (chosen.empty()) {
    const std::vector<std::string> commands = known_commands(root);
    const std::string start = arguments.empty() ? std::string("a command is wanted")
                                                : "no command '" + arguments[0] + "'" +
                                                      did_you_mean(arguments[0], commands);
    return start + "; commands: " + list_text(commands) + "; see tiny --help";
  }
  std::string message = error.what();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    const std::vector<std::string> flags = known_flags(*chosen[0]);
    if (const std::string flag = unknown_flag(arguments, flags); !flag.empty())
      message += did_you_mean(flag, flags);
    message += "; known flags: " + list_text(flags);
  }
  return message + "; see tiny " + chosen[0]->get_name() + " --help";
}

void require_command_first(const std::vector<std::string>& arguments, const CLI::App& root) {
  if (arguments.empty() || !arguments[0].starts_with("-")) return;
  for (const char* own : {"-h", "--help", "--version"})
    if (arguments[0] == own) return;
  throw usage_failure("flags come after the command: tiny COMMAND .. " + arguments[0] +
                      "; commands: " + list_text(known_commands(root)));
}

}  // namespace tiny::cli
