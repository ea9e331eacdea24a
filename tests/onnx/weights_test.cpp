// Weights of models: lying tensors, files beside the model, sparse tensors.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "onnx/reader.h"
#include "onnx/session.h"
#include "tests/onnx/model_writer.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/resident.h"
#include "tests/support/tensors.h"

namespace tiny::onnx {
namespace {

namespace fs = std::filesystem;
namespace t = field::TensorProto;
using testing::dim;
using testing::floats;
using testing::graph;
using testing::int_attribute;
using testing::kFloatType;
using testing::kInt64Type;
using testing::Message;
using testing::node;
using testing::shared;
using testing::tensor;
using testing::typed_graph;
using testing::with;
using tiny::testing::expect_failure;
using tiny::testing::failure_of;

Error reading(const Message& message, const Limits& limits = {}) {
  return failure_of([&] { parse_model(shared(message), "", limits); });
}

TEST(Weights, LyingTensorsAreRefused) {
  const auto of = [](const Message& m) { return reading(testing::model(graph({}, {}, {}, {m}))); };
  expect_failure(of(tensor("w", kFloatType, {1000}).text(t::raw_data, "abcd")),
                 Status::InvalidModel, {"needs 4000 bytes, raw_data has 4"});
  expect_failure(of(tensor("w", kFloatType, {int64_t{1} << 40, int64_t{1} << 40})), Status::Limit,
                 {"overflows"});
  expect_failure(of(tensor("w", kFloatType, {int64_t{1} << 40, int64_t{1} << 40, 0})),
                 Status::Limit, {"overflows"});
  expect_failure(of(tensor("w", kFloatType, {int64_t{1} << 62})), Status::Limit, {"overflows"});
  expect_failure(of(tensor("w", kFloatType, {int64_t{1} << 50})), Status::Limit, {"tensor_bytes"});
  expect_failure(of(tensor("w", kInt64Type, {int64_t{1} << 30})), Status::InvalidModel,
                 {"the dimensions ask for 1073741824 values"});
  expect_failure(of(tensor("w", kFloatType, {-1})), Status::InvalidModel, {"negative dimension"});
  expect_failure(of(tensor("w", 27, {1})), Status::InvalidModel,
                 {"type 27, which is no element type"});
  expect_failure(of(tensor("w", 0, {1})), Status::InvalidModel, {"no element type"});
  expect_failure(of(tensor("w", kFloatType, std::vector<int64_t>(65, 1))), Status::Limit,
                 {"more than 64"});
  expect_failure(of(tensor("w", kFloatType, {2}).packed_reals(t::float_data, {1})),
                 Status::InvalidModel, {"ask for 8 bytes of values, there are 4"});
  expect_failure(of(tensor("w", 8, {2}).text(t::string_data, "a")), Status::InvalidModel,
                 {"2 strings, there are 1"});
  expect_failure(of(tensor("w", kFloatType, {0}).message(t::segment, Message())),
                 Status::Unsupported, {"segments"});
}

// A folder with a model whose one weight lies in another file.
class External : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) / ("tiny_weights_test_" + std::to_string(getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_ / "model/sub");
    write_file(root_ / "secret.bin", "secret!!");
    write_file(root_ / "model/sub/weights.bin", "0123456789abcdef");
    fs::create_symlink(root_ / "secret.bin", root_ / "model/link.bin");
  }
  void TearDown() override { fs::remove_all(root_); }

  // The model's weight of two floats, or the error.
  std::string weight(const std::vector<std::pair<std::string, std::string>>& entries,
                     Message more = {}) {
    Message w = tensor("w", kFloatType, {2});
    for (const auto& [key, value] : entries)
      w.message(t::external_data, Message().text(1, key).text(2, value));
    w.number(t::data_location, 1).raw(more.bytes());
    write_file(root_ / "model/model.onnx", testing::model(graph({}, {}, {}, {w})).bytes());
    const Model model = read_model(root_ / "model/model.onnx");
    return std::string(model.graph.initializers.at(0).bytes.text());
  }
  Error error(const std::vector<std::pair<std::string, std::string>>& entries) {
    return failure_of([&] { weight(entries); });
  }

  fs::path root_;
};

TEST_F(External, WeightsBesideTheModelAreFound) {
  EXPECT_EQ(weight({{"location", "sub/weights.bin"}}), "01234567");
  EXPECT_EQ(weight({{"location", "sub/weights.bin"}, {"offset", "4"}, {"length", "8"}}),
            "456789ab");
  EXPECT_EQ(weight({{"location", "./sub/weights.bin"}, {"offset", "8"}, {"checksum", "?"}}),
            "89abcdef");
}

// Products with a weight at an odd address of a mapped file, which lies in panels afterwards or,
// where one row is multiplied with each of its rows, as it is, but in the device's memory.
TEST_F(External, AWeightThatIsLaidOutAnewLeavesMemory) {
  constexpr size_t kSize = 1024;
  std::vector<float> values(kSize * kSize);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 8191) - 4000.5f;
  std::string bytes = "?";
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  write_file(root_ / "model/weights", bytes);
  Message w = tensor("w", kFloatType, {kSize, kSize});
  w.message(t::external_data, Message().text(1, "location").text(2, "weights"));
  w.message(t::external_data, Message().text(1, "offset").text(2, "1"));
  w.number(t::data_location, 1);
  for (const bool transposed : {false, true}) {
    const Message product = transposed
                                ? with(node("Gemm", {"x", "w"}, {"y"}), int_attribute("transB", 1))
                                : node("MatMul", {"x", "w"}, {"y"});
    const auto rows = transposed ? dim(1) : dim("N");
    const Message g = typed_graph({product}, {floats("x", {rows, dim(kSize)})}, {"y"}, {w});
    write_file(root_ / "model/model.onnx", testing::model(g).bytes());
    for (const std::string& device : tiny::testing::computing_devices()) {
      const auto model =
          make_ref<LoadedModel>(tiny::testing::new_context(device), root_ / "model/model.onnx");
      const std::byte* weight = model->model().graph.initializers.at(0).bytes.data();
      const int64_t before = tiny::testing::resident_bytes(weight);
      for (const size_t count : transposed ? std::vector<size_t>{1} : std::vector<size_t>{2, 33}) {
        std::vector<float> x(count * kSize);
        for (size_t i = 0; i < count; ++i) x[i * kSize + 7 * i + 1] = 2;
        const Tensor in =
            tiny::testing::floats(model->context(), x, {static_cast<int64_t>(count), kSize});
        const std::vector<float> y = tiny::testing::floats_of(model->run({in}).at(0));
        for (size_t i = 0; i < count; ++i)
          for (size_t j = 0; j < kSize; ++j) {
            const size_t row = 7 * i + 1;
            ASSERT_EQ(y[i * kSize + j], 2 * values[transposed ? j * kSize + row : row * kSize + j])
                << device;
          }
      }
      if (device == "cpu") {
        EXPECT_LT(tiny::testing::resident_bytes(weight), before + (1 << 20));
      }
    }
  }
}

TEST_F(External, LocationsOutsideTheFolderAreRefused) {
  for (const std::string location : {"../secret.bin", "sub/../../secret.bin", "link.bin"})
    expect_failure(error({{"location", location}}), Status::InvalidModel, {location});
  expect_failure(error({{"location", (root_ / "secret.bin").string()}}), Status::InvalidModel,
                 {"relative"});
  expect_failure(error({{"location", "missing"}}), Status::Io, {"No such file"});
  expect_failure(error({}), Status::InvalidModel, {"without a location"});
}

TEST_F(External, OffsetsAndLengthsAreChecked) {
  const auto with = [&](const char* key, const char* value) {
    return error({{"location", "sub/weights.bin"}, {key, value}});
  };
  expect_failure(with("offset", "9"), Status::InvalidModel, {"do not lie inside"});
  expect_failure(with("offset", "9223372036854775807"), Status::InvalidModel,
                 {"do not lie inside"});
  expect_failure(with("offset", "99999999999999999999"), Status::InvalidModel, {"not a number"});
  expect_failure(with("offset", "-1"), Status::InvalidModel, {"not a number"});
  expect_failure(with("offset", "1x"), Status::InvalidModel, {"not a number"});
  expect_failure(with("length", "4"), Status::InvalidModel, {"needs 8 bytes"});
  expect_failure(with("__class__", "x"), Status::InvalidModel, {"unknown external_data key"});
}

TEST(Weights, AModelInMemoryHasNoFolder) {
  const Message w = tensor("w", kFloatType, {2})
                        .message(t::external_data, Message().text(1, "location").text(2, "f"))
                        .number(t::data_location, 1);
  expect_failure(reading(testing::model(graph({}, {}, {}, {w}))), Status::Unsupported,
                 {"no folder"});
}

Message sparse(const Message& values, const Message& indices, const std::vector<int64_t>& dims) {
  Message m;
  m.message(field::SparseTensorProto::values, values);
  m.message(field::SparseTensorProto::indices, indices);
  for (int64_t d : dims) m.number(field::SparseTensorProto::dims, d);
  return m;
}

Message with_sparse(const Message& tensor) {
  return testing::model(Message().message(field::GraphProto::sparse_initializer, tensor));
}

TEST(Weights, SparseTensorsBecomeDense) {
  const Message values = tensor("w", kFloatType, {2}).packed_reals(t::float_data, {5, 7});
  const Message linear = tensor("", kInt64Type, {2}).packed(t::int64_data, {1, 5});
  const Message pairs = tensor("", kInt64Type, {2, 2}).packed(t::int64_data, {0, 1, 1, 2});
  for (const Message& indices : {linear, pairs}) {
    const Model model = parse_model(shared(with_sparse(sparse(values, indices, {2, 3}))));
    const TensorData& w = model.graph.initializers.at(0);
    EXPECT_EQ(w.name, "w");
    EXPECT_EQ(w.dims, (Ints{2, 3}));
    float dense[6];
    ASSERT_EQ(w.bytes.size(), static_cast<int64_t>(sizeof dense));
    std::memcpy(dense, w.bytes.data(), sizeof dense);
    EXPECT_EQ(std::vector<float>(dense, dense + 6), (std::vector<float>{0, 5, 0, 0, 0, 7}));
  }
}

TEST(Weights, LyingSparseTensorsAreRefused) {
  const Message values = tensor("w", kFloatType, {2}).packed_reals(t::float_data, {5, 7});
  const auto of = [&](const std::vector<int64_t>& shape, const std::vector<int64_t>& indices,
                      const std::vector<int64_t>& dims) {
    return reading(with_sparse(
        sparse(values, tensor("", kInt64Type, shape).packed(t::int64_data, indices), dims)));
  };
  expect_failure(of({2}, {1, 6}, {2, 3}), Status::InvalidModel, {"sparse index 6 of 6"});
  expect_failure(of({2}, {-1, 5}, {2, 3}), Status::InvalidModel, {"sparse index -1"});
  expect_failure(of({2}, {5, 5}, {2, 3}), Status::InvalidModel, {"ascending"});
  expect_failure(of({2, 2}, {0, 0, 0, 3}, {2, 3}), Status::InvalidModel, {"sparse index 3 in"});
  expect_failure(of({1}, {0}, {2, 3}), Status::InvalidModel, {"for 2 values"});
  expect_failure(of({2, 3}, {0, 0, 0, 0, 0, 1}, {2, 3}), Status::InvalidModel, {"of rank 2"});
  expect_failure(of({2}, {0, 1}, {int64_t{1} << 40}), Status::Limit, {"tensor_bytes"});
  expect_failure(of({2}, {0, 1}, {int64_t{1} << 34}), Status::Limit, {"converted_bytes"});
  expect_failure(reading(with_sparse(Message())), Status::InvalidModel, {"without values"});
}

TEST(Weights, ConvertedBytesAreLimited) {
  Limits limits;
  limits.converted_bytes = 20;
  expect_failure(
      reading(testing::model(graph(
                  {}, {}, {}, {tensor("w", kInt64Type, {3}).packed(t::int64_data, {1, 2, 3})})),
              limits),
      Status::Limit, {"converted_bytes"});
}

}  // namespace
}  // namespace tiny::onnx
