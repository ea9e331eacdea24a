// The tables of docs/ONNX.md are those of the importer.  With WRITE_DOCUMENTATION set they are
// written instead (scripts/generate-onnx-docs.sh).
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "base/text.h"
#include "io/limits.h"
#include "io/tensor_pb.h"
#include "onnx/import/table.h"

namespace tiny::onnx {
namespace {

std::string operand_list(HostOperands operands) {
  if (operands == kEveryOperand) return "all";
  std::vector<std::string> numbers;
  for (unsigned i = 0; i < 32; ++i)
    if (operands & operand(i)) numbers.push_back(std::to_string(i));
  return join(numbers, ", ");
}

std::string operators_table() {
  std::map<std::pair<std::string, std::string>, HostOperands> operators;
  for (const std::span<const Row> table : tables())
    for (const Row& row : table) operators[{row.domain, row.op_type}] |= row.host_operands;
  std::string text =
      cat(operators.size(), " operators.\n\n| operator | versions | known |\n|---|---|---|\n");
  for (const auto& [name, operands] : operators) {
    const auto& [domain, op_type] = name;
    text += cat("| ", domain, domain.empty() ? "" : ".", op_type, " | ",
                supported_versions(domain, op_type), " | ", operand_list(operands), " |\n");
  }
  return text;
}

std::string types_table() {
  std::string text = "| ONNX | here |\n|---|---|\n";
  for (int64_t number = 1; tensor_type(number); ++number) {
    const TensorTypeInfo& type = *tensor_type(number);
    if (is_complex(number))
      text += cat("| `", type.name, "` | pairs of real and imaginary part, one axis more, in `",
                  to_string(carrier_of(type)), "` |\n");
    else if (is_carried(type))
      text +=
          cat("| `", type.name, "` | ", type.bits < 8 && type.name[0] != 'F' ? "" : "its bits, in ",
              "`", to_string(carrier_of(type)), "` |\n");
    else if (type.number == kTextType)
      text += cat("| `", type.name, "` | a number for each text, in `int64` |\n");
    else
      text += cat("| `", type.name, "` | `", to_string(DType(type.ours)), "` |\n");
  }
  return text;
}

std::string limits_table() {
  const Limits limits;
  std::string text = "| limit | default | of |\n|---|---|---|\n";
  const auto row = [&](const char* name, int64_t value, const char* of) {
    text += cat("| `", name, "` | ", value, " | ", of, " |\n");
  };
  row("model_bytes", limits.model_bytes, "the model file; a protobuf message ends there");
  row("structure_bytes", limits.structure_bytes, "the parsed structures, weights left out");
  row("nodes", limits.nodes, "nodes of all graphs, after functions are inlined");
  row("subgraph_depth", limits.subgraph_depth, "graphs in attributes, nested types, nested calls");
  row("tensor_bytes", limits.tensor_bytes, "one tensor");
  row("converted_bytes", limits.converted_bytes, "tensors that cannot be used where they lie");
  row("attribute_bytes", limits.attribute_bytes, "one string or list attribute");
  row("name_bytes", limits.name_bytes, "one name");
  row("rank", limits.rank, "dimensions of one tensor or type in the file");
  row("external_files", limits.external_files, "files that hold weights");
  return text;
}

constexpr const char* kPath = SOURCE_FOLDER "/docs/ONNX.md";

// The text with what stands between the two marks replaced.
std::string with_table(const std::string& text, const std::string& name, const std::string& table) {
  const std::string begin = cat("<!-- ", name, ": begin -->\n"),
                    end = cat("<!-- ", name, ": end -->");
  const size_t from = text.find(begin), to = text.find(end);
  if (from == std::string::npos || to == std::string::npos) return cat("no mark of ", name);
  return text.substr(0, from + begin.size()) + table + text.substr(to);
}

TEST(Documentation, HasTheTablesOfTheImporter) {
  std::ifstream file(kPath);
  std::ostringstream stream;
  stream << file.rdbuf();
  const std::string before = stream.str();
  std::string after = before;
  after = with_table(after, "operators", operators_table());
  after = with_table(after, "types", types_table());
  after = with_table(after, "limits", limits_table());
  if (std::getenv("WRITE_DOCUMENTATION")) {
    std::ofstream(kPath) << after;
    return;
  }
  EXPECT_EQ(before, after) << "run scripts/generate-onnx-docs.sh";
}

}  // namespace
}  // namespace tiny::onnx
