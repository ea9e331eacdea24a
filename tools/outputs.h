// What `tiny run` tells of one output: its figures, its largest elements, its comparisons.
#pragma once

#include <string>
#include <vector>

#include "array.h"
#include "commands.h"
#include "json.h"

namespace tiny::cli {

// The columns of what is told of inputs and outputs: name, then dtype and shape.
struct Columns {
  size_t name = 0, what = 0;

  void fit(const Array& array) {
    name = std::max(name, width_of(array.name));
    what = std::max(what, width_of(describe(array.dtype, array.shape)));
  }
  std::string text(const Array& array) const {
    return left(array.name, name) + "  " + left(describe(array.dtype, array.shape), what);
  }
};

struct OutputReport {
  Json json = Json::object();
  std::string text;
  std::string mismatch;  // the first comparison that failed
};

void report_values(const Array& array, const RunFlags& flags, const Columns& columns,
                   OutputReport& report);
// The --top largest, with percentages where the elements are probabilities or logits.
void report_top(const Array& array, const RunFlags& flags, const std::vector<std::string>& labels,
                OutputReport& report);

// The --top largest (1) of the row of each picture as a table; false if the output has no such
// rows.
bool report_pictures(const Array& array, const RunFlags& flags,
                     const std::vector<std::string>& labels, OutputReport& report);

}  // namespace tiny::cli
