// The commands and flags of the command line, as CLI11 parses them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "commands.h"

namespace tiny::cli {

struct Arguments {
  CommonFlags common;
  RunFlags run;
  InfoFlags info;
  BenchFlags bench;
  TestFlags test;
  ExportFlags exported;
  std::string layout = "nchw", fit;
  double scale = 0;
};

// Tells `root` of all commands, and of the flags of the chosen one, which fill `all`.
void add_commands(CLI::App& root, Arguments& all, const std::string& chosen);
// What the flags of pictures mean, once all of them are read.
void finish_inputs(const CLI::App& app, InputFlags& flags, const Arguments& all);

// The message of a mistake in the arguments, with what would have been right.
std::string parse_message(const CLI::App& root, const CLI::ParseError& error,
                          const std::vector<std::string>& arguments);
// `tiny -v run ..`: which flags there are is the command's, so that it comes first.
void require_command_first(const std::vector<std::string>& arguments, const CLI::App& root);

}  // namespace tiny::cli
