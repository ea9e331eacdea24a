// Reads ONNX model files.  A file is untrusted: whatever it holds, the result is a Model that keeps
// the laws of model.h, or an Error: InvalidModel for a breach of the format (with field path and
// byte), Limit for a limit, Unsupported for a valid feature not had, Io for a file not readable.
#pragma once

#include <string>

#include "io/limits.h"
#include "onnx/model.h"

namespace tiny::onnx {

// Reads the file; weights in other files are looked for below the file's folder.
Model read_model(const std::string& path, const Limits& limits = {}, const FileAccess& access = {});

// Reads a model from memory.  `folder` is where weights in other files lie; empty refuses them.
Model parse_model(const SharedBytes& bytes, const std::string& folder = "",
                  const Limits& limits = {}, const FileAccess& access = {});

}  // namespace tiny::onnx
