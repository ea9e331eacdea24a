// A program as C: a translation unit, its header and its weights, for machines without tiny.
//
// The kernels are those of the program, by the C renderer; what a Run does with the tape is written
// out as one function.  docs/architecture/aot.md has the form of the files.
#pragma once

#include <string>
#include <vector>

#include "base/ref.h"
#include "engine/context.h"
#include "tensor/program.h"

namespace tiny {

struct CExport {
  std::string header;              // NAME.h
  std::string source;              // NAME.c
  std::vector<std::byte> weights;  // NAME.weights: constants, then what the state begins with
};

// Error{InvalidArgument} unless `name` is an identifier of C that is no keyword.
// Error{Unsupported} for a program that calls functions of the host, or whose kernels' structure
// the context no longer knows.  `version`: of the library, for the first line.
CExport export_c(Context& context, const TensorProgram& program, const std::string& name,
                 const std::string& version);

// The three files in a folder, which is made unless it is there.
void write_c_export(const CExport& files, const std::string& folder, const std::string& name,
                    const StopSignal* stop);

}  // namespace tiny
