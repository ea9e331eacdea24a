// Writing outputs: what --save names is read once, and refused where it could mean something else.
#pragma once

#include <string>
#include <vector>

#include "array.h"
#include "handles.h"

namespace tiny::cli {

// Wrong usage if `count` outputs cannot be saved there; called before the model is run.
void check_target(const std::string& target, size_t count);

// To a folder, one .npy each (.pb for bfloat16, which NumPy's format has not); to FILE.npz or
// FILE.safetensors, by name; or one alone to FILE.npy or FILE.pb.
void save_outputs(const Context& context, const std::string& target,
                  const std::vector<Array>& arrays);

}  // namespace tiny::cli
