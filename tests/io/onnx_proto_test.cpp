// The table of field numbers against the text of the pinned wheel's onnx.proto and onnx-data.proto.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/tensor_pb.h"
#include "io/wire.h"
#include "onnx/model.h"
#include "tests/support/environment.h"

namespace tiny {
namespace {

// "ModelProto.graph" -> 7, "TensorProto.DataType.FLOAT" -> 1: every numbered name with the messages
// and enums around it.
std::map<std::string, int> numbered_names(const std::string& text) {
  std::vector<std::string> words;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size());
    } else if (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_') {
      size_t end = i;
      while (end < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
        ++end;
      words.push_back(text.substr(i, end - i));
      i = end;
    } else {
      if (!std::isspace(static_cast<unsigned char>(text[i]))) words.emplace_back(1, text[i]);
      ++i;
    }
  }
  std::map<std::string, int> names;
  std::vector<std::string> scopes;
  for (size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i + 1] == "{") {
      const bool is_scope = i > 0 && (words[i - 1] == "message" || words[i - 1] == "enum");
      scopes.push_back(is_scope ? words[i] + "." : "");  // a oneof adds nothing to its names
    } else if (words[i] == "}") {
      if (!scopes.empty()) scopes.pop_back();
    } else if (words[i + 1] == "=" && std::isdigit(static_cast<unsigned char>(words[i + 2][0]))) {
      std::string path;
      for (const std::string& scope : scopes) path += scope;
      names[path + words[i]] = std::stoi(words[i + 2], nullptr, 0);
    }
  }
  return names;
}

class OnnxProto : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path package = tiny::testing::onnx_package();
    if (package.empty()) GTEST_SKIP() << tiny::testing::kNoOnnxPackage;
    const SharedBytes file = map_file(package / "onnx.proto");
    names_ = numbered_names(std::string(file.text()));
    const SharedBytes values = map_file(package / "onnx-data.proto");
    names_.merge(numbered_names(std::string(values.text())));
    ASSERT_GT(names_.size(), 150u);
  }
  int number(const std::string& name) const {
    const auto at = names_.find(name);
    return at == names_.end() ? -1 : at->second;
  }
  std::map<std::string, int> names_;
};

TEST_F(OnnxProto, FieldNumbersAreThoseOfOnnx) {
  int rows = 0;
#define FIELD(message, name, value)                                                      \
  EXPECT_EQ(number(std::string(message_name(ProtoMessage::message)) + "." #name), value) \
      << #message "." #name;                                                             \
  ++rows;
#include "io/onnx_proto.def"
  EXPECT_GT(rows, 80);
}

TEST_F(OnnxProto, AttributeTypesAreThoseOfOnnxAndComplete) {
  int rows = 0;
#define ATTRIBUTE_TYPE(name, text, value)                                   \
  EXPECT_EQ(number("AttributeProto.AttributeType." #text), value) << #text; \
  ++rows;
#include "io/onnx_proto.def"
  int there = 0;
  for (const auto& [name, value] : names_)
    there += name.starts_with("AttributeProto.AttributeType.") ? 1 : 0;
  EXPECT_EQ(rows, there);
}

TEST_F(OnnxProto, TheNewestIrVersionIsTheWheels) {
  EXPECT_EQ(number("Version.IR_VERSION"), onnx::kNewestIrVersion);
}

TEST_F(OnnxProto, ElementTypesAreThoseOfOnnxAndComplete) {
  int there = 0;
  for (const auto& [name, value] : names_) {
    const std::string scope = "TensorProto.DataType.";
    if (!name.starts_with(scope) || value == 0) continue;
    ++there;
    ASSERT_NE(tensor_type(value), nullptr) << name;
    EXPECT_EQ(tensor_type_name(value), name.substr(scope.size()));
  }
  EXPECT_EQ(there, 26);
  EXPECT_EQ(tensor_type(0), nullptr);
  EXPECT_EQ(tensor_type(27), nullptr);
}

TEST(TensorTypes, EveryDTypeHasOneNumber) {
  for (const ScalarInfo& info : kScalars) {
    const std::optional<DType> dtype = dtype_named(info.text);
    ASSERT_TRUE(dtype);
    if (info.kind == DTypeKind::None || dtype->is_float8()) continue;  // those are carried
    const int32_t number = tensor_type_of_dtype(*dtype);
    EXPECT_EQ(dtype_of_tensor_type(number, "tensor", "x"), *dtype);
    EXPECT_EQ(tensor_type(number)->bits, dtype->bits());
  }
}

TEST(FieldNames, AreFoundByNumber) {
  EXPECT_STREQ(field_name(ProtoMessage::TensorProto, 9), "raw_data");
  EXPECT_EQ(field_name(ProtoMessage::TensorProto, 999), nullptr);
  EXPECT_STREQ(message_name(ProtoMessage::Dimension), "TensorShapeProto.Dimension");
}

}  // namespace
}  // namespace tiny
