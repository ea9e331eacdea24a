// Values of models that are no tensors of numbers: texts, lists, maps, nothing.
#pragma once

#include <string>
#include <vector>

#include "compare.h"
#include "handles.h"

namespace tiny::cli {

using Value = Handle<tiny_value, tiny_value_release>;

// Whether an input or output of the model is such a value.
bool has_values(const tiny_model* model);
// Runs the model on the files DIR/input_0.pb, .., and compares what it makes with DIR/output_0.pb,
// .., one comparison for each.
std::vector<Comparison> compare_run_of_values(const Context& context, tiny_model* model,
                                              const std::string& folder, Tolerance tolerance);

}  // namespace tiny::cli
