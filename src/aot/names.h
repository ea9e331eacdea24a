// Names of a program as identifiers of C.
#pragma once

#include <set>
#include <string>

namespace tiny::aot {

// Whether the text is an identifier of C, and no keyword of C or C++.
bool is_usable(const std::string& name);

// The text with the name for each "$".
std::string with_name(const char* text, const std::string& name);

// Identifiers of one structure, each once: "conv1/x:0" is conv1_x_0, a second one conv1_x_0_2.
class Members {
 public:
  explicit Members(std::set<std::string> taken) : taken_(std::move(taken)) {}
  std::string add(const std::string& name);

 private:
  std::set<std::string> taken_;
};

}  // namespace tiny::aot
