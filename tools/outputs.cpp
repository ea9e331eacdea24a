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

std::string percent(const Probabilities& shares, const Ranked& ranked) {
  return fixed(shares.values[ranked.index] * 100, 2) + "%";
}

void set_top(const std::vector<Ranked>& largest, const std::optional<Probabilities>& shares,
             Json& report) {
  Json list = Json::array(), percents = Json::array();
  for (const Ranked& ranked : largest) {
    Json entry = Json::object();
    entry.set("index", ranked.index);
    entry.set("label", ranked.label.empty() ? Json() : Json(ranked.label));
    list.push(entry.set("value", ranked.value));
    if (shares) percents.push(shares->values[ranked.index] * 100);
  }
  report.set("top", list);
  if (!shares) return;
  report.set("top_percent", percents);
  report.set("top_percent_of", shares->is_softmax ? "softmax" : "values");
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
  size_t rank = 0;
  report.text += top_heading(largest.size(), shares);
  for (const Ranked& ranked : largest) {
    report.text += right(std::to_string(++rank), 4) + " " + right(std::to_string(ranked.index), 6) +
                   " " + left(ranked.label.empty() ? "-" : ranked.label, label_width) + " " +
                   right(ranked.value.text(), value_width);
    if (shares) report.text += " " + right(percent(*shares, ranked), 7);
    report.text += "\n";
  }
  set_top(largest, shares, report.json);
}

bool report_pictures(const Array& array, const RunFlags& flags,
                     const std::vector<std::string>& labels, OutputReport& report) {
  const std::vector<std::string>& paths = flags.input.pictures;
  const bool has_rows =
      !array.shape.empty() && array.shape[0] == static_cast<int64_t>(paths.size());
  if (paths.empty() || (!has_rows && paths.size() > 1)) return false;
  const size_t count = array.count() / paths.size(), bytes = array.bytes.size() / paths.size();
  const auto dims = array.shape.begin() + has_rows;
  if (count < 2 || *std::max_element(dims, array.shape.end()) != static_cast<int64_t>(count))
    return false;
  std::vector<std::vector<std::string>> rows{{"picture", "class", "value"}};
  Json list = Json::array();
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto begin = array.bytes.begin() + static_cast<ptrdiff_t>(i * bytes);
    const Array row{array.name,
                    array.dtype,
                    {static_cast<int64_t>(count)},
                    {begin, begin + static_cast<ptrdiff_t>(bytes)}};
    const auto largest = top(row, static_cast<size_t>(std::max<int64_t>(flags.top, 1)), labels);
    const std::optional<Probabilities> shares = probabilities(row);
    if (shares) rows[0][2] = shares->is_softmax ? "softmax" : "probability";
    for (const Ranked& ranked : largest)
      rows.push_back({&ranked == &largest[0] ? paths[i] : "",
                      ranked.label.empty() ? std::to_string(ranked.index) : ranked.label,
                      shares ? percent(*shares, ranked) : ranked.value.text()});
    Json entry = Json::object();
    set_top(largest, shares, entry.set("file", paths[i]));
    list.push(entry);
  }
  report.text += table(rows, "    ");
  report.json.set("pictures", list);
  return true;
}

}  // namespace tiny::cli
