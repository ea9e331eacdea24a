// Values of models: texts, lists, maps and nothing, made, looked at, and given to a model.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/onnx/model_writer.h"
#include "tests/support/api_values.h"
#include "tiny.h"

namespace tiny {
namespace {

namespace w = onnx::testing;
using testing::Dims;
using testing::error_has;
constexpr int64_t kStringType = 8;

class Values : public ::testing::Test, protected testing::ApiValues {
 protected:
  void SetUp() override { open("cpu"); }
  void TearDown() override {
    for (tiny_value* value : values_) tiny_value_release(value);
    close();
  }
  tiny_value* kept(tiny_status status, tiny_value* value) {
    EXPECT_EQ(status, TINY_OK) << tiny_last_error();
    values_.push_back(value);
    return value;
  }
  tiny_value* texts(const Dims& dims, const std::vector<std::string>& list) {
    std::string all;
    Dims lengths;
    for (const std::string& text : list) {
      all += text;
      lengths.push_back(static_cast<int64_t>(text.size()));
    }
    tiny_value* made = nullptr;
    const tiny_status status = tiny_value_texts(context_, dims.data(), dims.size(), all.data(),
                                                all.size(), lengths.data(), lengths.size(), &made);
    return kept(status, made);
  }
  tiny_value* of(tiny_tensor* tensor) {
    tiny_value* made = nullptr;
    const tiny_status status = tiny_value_from_tensor(tensor, &made);
    return kept(status, made);
  }
  tiny_value* list(const std::vector<tiny_value*>& elements) {
    tiny_value* made = nullptr;
    const tiny_status status =
        tiny_value_sequence(context_, elements.data(), elements.size(), &made);
    return kept(status, made);
  }
  static std::string all_of(const tiny_value* value) {
    size_t count = 0;
    EXPECT_EQ(tiny_value_text_lengths(value, nullptr, 0, &count), TINY_OK) << tiny_last_error();
    Dims lengths(count);
    EXPECT_EQ(tiny_value_text_lengths(value, lengths.data(), count, &count), TINY_OK);
    std::string all;
    for (const int64_t length : lengths) all.append(static_cast<size_t>(length), ' ');
    EXPECT_EQ(tiny_value_read_texts(value, all.data(), all.size()), TINY_OK) << tiny_last_error();
    return all;
  }
  static tiny_kind kind_of(const tiny_value* value) {
    tiny_kind kind = -1;
    EXPECT_EQ(tiny_value_kind(value, &kind), TINY_OK);
    return kind;
  }
  std::vector<tiny_value*> values_;
};

TEST_F(Values, SayWhatTheyAre) {
  tiny_value* t = texts({2, 1}, {"a", std::string("b\0c", 3)});
  tiny_value* numbers = of(floats({2}, {1, 2}));
  tiny_value* both = list({t, numbers});
  tiny_value* map = nullptr;
  const tiny_status status = tiny_value_map(texts({2}, {"k", "l"}), numbers, &map);
  kept(status, map);
  tiny_value* nothing = nullptr;
  ASSERT_EQ(tiny_value_nothing(context_, &nothing), TINY_OK);
  values_.push_back(nothing);
  EXPECT_EQ(kind_of(t), TINY_KIND_TEXTS);
  EXPECT_EQ(kind_of(numbers), TINY_KIND_TENSOR);
  EXPECT_EQ(kind_of(both), TINY_KIND_SEQUENCE);
  EXPECT_EQ(kind_of(map), TINY_KIND_MAP);
  EXPECT_EQ(kind_of(nothing), TINY_KIND_OPTIONAL);
  EXPECT_EQ(all_of(t), std::string("ab\0c", 4));
  int64_t dims[4] = {};
  size_t rank = 0, count = 0;
  EXPECT_EQ(tiny_value_shape(t, dims, 4, &rank), TINY_OK);
  EXPECT_EQ(Dims(dims, dims + rank), (Dims{2, 1}));
  EXPECT_EQ(tiny_value_count(both, &count), TINY_OK);
  EXPECT_EQ(count, 2u);
  tiny_value* second = nullptr;
  ASSERT_EQ(tiny_value_element(both, 1, &second), TINY_OK);
  tiny_tensor* tensor = nullptr;
  EXPECT_EQ(tiny_value_tensor(second, &tensor), TINY_OK);
  float read[2] = {};
  EXPECT_EQ(tiny_tensor_read(tensor, read, sizeof read), TINY_OK);
  EXPECT_EQ(read[1], 2);
  tiny_tensor_release(tensor);
  tiny_value_release(second);
}

TEST_F(Values, NameMistakes) {
  tiny_value* made = nullptr;
  const int64_t two[] = {2}, lengths[] = {1, 5}, negative[] = {1, -1};
  EXPECT_EQ(tiny_value_texts(context_, two, 1, "abc", 3, lengths, 1, &made), TINY_ERROR_SHAPE);
  EXPECT_EQ(tiny_value_texts(context_, two, 1, "abc", 3, lengths, 2, &made), TINY_ERROR_SHAPE);
  EXPECT_TRUE(error_has("lengths[1] is 5"));
  EXPECT_EQ(tiny_value_texts(context_, two, 1, "abc", 3, negative, 2, &made), TINY_ERROR_SHAPE);
  EXPECT_EQ(tiny_value_texts(context_, nullptr, 0, "abc", 3, lengths, 1, &made), TINY_ERROR_SHAPE);
  EXPECT_TRUE(error_has("2 bytes behind the last"));
  EXPECT_EQ(made, nullptr);
  tiny_value* t = texts({1}, {"a"});
  tiny_value* numbers = of(floats({2}, {1, 2}));
  EXPECT_EQ(tiny_value_map(t, numbers, &made), TINY_ERROR_SHAPE);
  EXPECT_EQ(tiny_value_map(numbers, numbers, &made), TINY_ERROR_DTYPE);
  EXPECT_EQ(tiny_value_map(list({t}), numbers, &made), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_value_element(t, 0, &made), TINY_ERROR_INVALID_ARGUMENT);
  tiny_tensor* tensor = nullptr;
  EXPECT_EQ(tiny_value_tensor(t, &tensor), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_value_read_texts(numbers, nullptr, 0), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_value_read_texts(t, nullptr, 3), TINY_ERROR_SHAPE);
  EXPECT_EQ(tiny_value_load(context_, "/nothing.pb", 99, &made), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(tiny_value_load(context_, "/nothing.pb", TINY_KIND_TEXTS, &made), TINY_ERROR_IO);
  EXPECT_EQ(tiny_value_kind(reinterpret_cast<tiny_value*>(context_), nullptr),
            TINY_ERROR_INVALID_ARGUMENT);
  tiny_value* deep = t;
  for (int i = 0; i < 60; ++i) deep = list({deep});
  tiny_status status = TINY_OK;
  for (int i = 0; i < 10 && status == TINY_OK; ++i) {
    tiny_value* next = nullptr;
    status = tiny_value_sequence(context_, &deep, 1, &next);
    if (status == TINY_OK) deep = kept(status, next);
  }
  EXPECT_EQ(status, TINY_ERROR_LIMIT);
}

// y = a + b of texts, e = (a == b).
TEST_F(Values, GoThroughModels) {
  const w::Message graph =
      w::typed_graph(
          {w::node("StringConcat", {"a", "b"}, {"y"}), w::node("Equal", {"a", "b"}, {"e"})},
          {w::value("a", w::tensor_type(kStringType, {w::dim(2)})),
           w::value("b", w::tensor_type(kStringType, {w::dim("N")}))},
          {})
          .message(field::GraphProto::output,
                   w::value("y", w::tensor_type(kStringType, {w::dim(2)})))
          .message(field::GraphProto::output,
                   w::value("e", w::tensor_type(w::kBoolType, {w::dim(2)})));
  namespace f = field::ModelProto;
  const std::string bytes = w::Message()
                                .number(f::ir_version, 9)
                                .message(f::graph, graph)
                                .message(f::opset_import, w::opset("", 20))
                                .bytes();
  tiny_model* model = nullptr;
  ASSERT_EQ(tiny_model_load_memory(context_, bytes.data(), bytes.size(), nullptr, &model), TINY_OK)
      << tiny_last_error();
  tiny_kind kind = -1;
  EXPECT_EQ(tiny_model_input_kind(model, 0, &kind), TINY_OK);
  EXPECT_EQ(kind, TINY_KIND_TEXTS);
  for (const char* last : {"y", "longer"}) {
    tiny_value* inputs[] = {texts({2}, {"a", last}), texts({2}, {"a", "x"})};
    tiny_value* outputs[2] = {};
    ASSERT_EQ(tiny_model_run_values(model, inputs, 2, outputs, 2), TINY_OK) << tiny_last_error();
    values_.insert(values_.end(), outputs, outputs + 2);
    EXPECT_EQ(all_of(outputs[0]), std::string("aa") + last + "x");
    tiny_tensor* same = nullptr;
    ASSERT_EQ(tiny_value_tensor(outputs[1], &same), TINY_OK);
    uint8_t read[2] = {9, 9};
    EXPECT_EQ(tiny_tensor_read(keep(same), read, 2), TINY_OK);
    EXPECT_TRUE(read[0] == 1 && read[1] == 0);
  }
  tiny_value* wrong[] = {of(floats({2}, {1, 2})), texts({2}, {"a", "x"})};
  tiny_value* outputs[2] = {};
  EXPECT_EQ(tiny_model_run_values(model, wrong, 2, outputs, 2), TINY_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(error_has("input \"a\""));
  EXPECT_EQ(tiny_model_run_values(model, wrong, 1, outputs, 2), TINY_ERROR_INVALID_ARGUMENT);
  tiny_program* program = nullptr;
  EXPECT_EQ(tiny_model_compile(model, nullptr, 0, &program), TINY_ERROR_INVALID_ARGUMENT);
  tiny_model_release(model);
}

}  // namespace
}  // namespace tiny
