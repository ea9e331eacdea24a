// The header of a program that was exported as C.
#pragma once

#include <span>
#include <string>

#include "aot/ports.h"

namespace tiny::aot {

struct HeaderFigures {
  int64_t weight_bytes = 0;
  int64_t state_bytes = 0;
};
// `title`: for the first line.
std::string header_text(const std::string& name, const std::string& title, const CPorts& ports,
                        std::span<const ProgramVariable> variables, const HeaderFigures& figures);

}  // namespace tiny::aot
