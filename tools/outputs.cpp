#include "outputs.h"

#include <algorithm>

namespace tiny::cli {
namespace {

constexpr size_t kValuesInJson = 64, kValuesInText = 8;

Json values_json(const Array& array) {
  Json values = Json::array();
  for (size_t i = 0; i < array.count(); ++i) values.push(element(array, i));
  return values;
}

// The elements in lines of the last dimension, a column of figures below each other.
std::string values_text(const Array& array) {
  constexpr size_t kIndent = 7;
  const auto line = array.shape.empty() ? 1 : static_cast<size_t>(array.shape.back());
  size_t width = 0;
  for (size_t i = 0; i < array.count(); ++i)
    width = std::max(width, element(array, i).text().size());
  std::string text;
  for (size_t i = 0; i < array.count(); ++i) {
    text += i % line == 0 ? std::string(i > 0, '\n') + std::string(kIndent, ' ') : " ";
    text += right(element(array, i).text(), width);
  }
  return text + "\n";
}

std::string top_heading(size_t count, const std::optional<Probabilities>& shares) {
  std::string text = "    the " + std::to_string(count) + " largest";
  if (shares) text += shares->is_softmax ? "; percentages are their softmax" : ", as percentages";
  return text + "\n";
}

}  // namespace

void report_values(const Array& array, const RunFlags& flags, const Columns& columns,
                   OutputReport& report) {
  const Statistics sums = statistics(array);
  report.json.set("name", array.name).set("dtype", tiny_dtype_name(array.dtype));
  report.json.set("shape", Json::integers(array.shape));
  report.json.set("min", sums.min).set("max", sums.max).set("mean", sums.mean);
  report.json.set("nan", sums.nan).set("inf", sums.inf);
  const bool full = flags.print == "full", none = flags.print == "none";
  if (full || (!none && array.count() <= kValuesInJson))
    report.json.set("values", values_json(array));
  if (none) return;
  report.text += "output " + columns.text(array);
  if (sums.min.kind() != Json::Kind::Null)
    report.text += "  min " + sums.min.text() + "  max " + sums.max.text() + "  mean " +
                   short_text(sums.mean.number());
  if (sums.nan) report.text += "  nan " + std::to_string(sums.nan);
  if (sums.inf) report.text += "  inf " + std::to_string(sums.inf);
  report.text += "\n";
  if (full || array.count() <= kValuesInText) report.text += values_text(array);
}

void report_top(const Array& array, const RunFlags& flags, const std::vector<std::string>& labels,
                OutputReport& report) {
  if (flags.top == 0) return;
  const std::vector<Ranked> largest = top(array, static_cast<size_t>(flags.top), labels);
  const std::optional<Probabilities> shares = probabilities(array);
  size_t label_width = 0, value_width = 0;
  // Of a file with too few labels the rows without one stand out.
  const bool all_labelled =
      std::none_of(largest.begin(), largest.end(), [](const Ranked& r) { return r.label.empty(); });
  for (const Ranked& ranked : largest) {
    if (all_labelled) label_width = std::max(label_width, width_of(ranked.label));
    value_width = std::max(value_width, ranked.value.text().size());
  }
  Json list = Json::array(), percents = Json::array();
  size_t rank = 0;
  report.text += top_heading(largest.size(), shares);
  for (const Ranked& ranked : largest) {
    Json entry = Json::object();
    entry.set("index", ranked.index);
    entry.set("label", ranked.label.empty() ? Json() : Json(ranked.label));
    list.push(entry.set("value", ranked.value));
    report.text += right(std::to_string(++rank), 4) + " " + right(std::to_string(ranked.index), 6) +
                   " " + left(ranked.label.empty() ? "-" : ranked.label, label_width) + " " +
                   right(ranked.value.text(), value_width);
    if (shares) {
      percents.push(shares->values[ranked.index] * 100);
      report.text += " " + right(fixed(shares->values[ranked.index] * 100, 2) + "%", 7);
    }
    report.text += "\n";
  }
  report.json.set("top", list);
  if (!shares) return;
  report.json.set("top_percent", percents);
  report.json.set("top_percent_of", shares->is_softmax ? "softmax" : "values");
}

}  // namespace tiny::cli
