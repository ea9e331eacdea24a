#include "io/tensor_pb.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "tests/onnx/model_writer.h"
#include "tests/support/environment.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

using onnx::testing::Message;
using onnx::testing::shared;
using onnx::testing::tensor;
namespace f = field::TensorProto;

template <class T>
std::vector<T> values_of(const TensorData& data) {
  std::vector<T> values(static_cast<size_t>(data.bytes.size()) / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), data.bytes.data(), values.size() * sizeof(T));
  return values;
}

TensorData parse(const Message& message) {
  return parse_tensor_pb(shared(message));
}

Error error_of(const std::string& bytes) {
  return testing::failure_of([&] { parse_tensor_pb(SharedBytes::copy(bytes)); });
}

constexpr DType kAll[] = {kBool,   kInt8,   kInt16,   kInt32,   kInt64,    kUInt8,  kUInt16,
                          kUInt32, kUInt64, kFloat16, kFloat32, kBFloat16, kFloat64};

TEST(TensorPb, WhatIsWrittenIsRead) {
  for (const DType dtype : kAll)
    for (const Ints& shape : {Ints{}, Ints{0}, Ints{5}, Ints{2, 3}, Ints{3, 0, 2}}) {
      const int64_t count = element_count(shape, "test");
      std::string data;
      for (int64_t i = 0; i < count * dtype.bytes(); ++i)
        data += static_cast<char>(dtype.is_bool() ? i % 2 : i * 37);
      const HostTensor tensor{dtype, shape, SharedBytes::copy(data)};
      const TensorData read = parse_tensor_pb(SharedBytes::copy(tensor_pb_bytes(tensor, "a/b")));
      EXPECT_EQ(read.name, "a/b");
      const HostTensor back = to_host_tensor(read);
      EXPECT_EQ(back.dtype, dtype);
      EXPECT_EQ(back.shape, shape);
      EXPECT_EQ(back.bytes.text(), data);
    }
}

TEST(TensorPb, TypedFieldsBecomeBytes) {
  EXPECT_EQ(values_of<float>(parse(tensor("", 1, {3}).packed_reals(f::float_data, {1, -2, 3}))),
            (std::vector<float>{1, -2, 3}));
  EXPECT_EQ(values_of<double>(parse(tensor("", 11, {2}).packed_doubles(f::double_data, {1, -2}))),
            (std::vector<double>{1, -2}));
  EXPECT_EQ(values_of<int8_t>(parse(tensor("", 3, {2}).packed(f::int32_data, {-128, 127}))),
            (std::vector<int8_t>{-128, 127}));
  EXPECT_EQ(values_of<uint16_t>(parse(tensor("", 4, {1}).packed(f::int32_data, {65535}))),
            (std::vector<uint16_t>{65535}));
  EXPECT_EQ(values_of<uint16_t>(parse(tensor("", 16, {1}).packed(f::int32_data, {0x3F80}))),
            (std::vector<uint16_t>{0x3F80}));
  EXPECT_EQ(values_of<int32_t>(parse(tensor("", 6, {1}).packed(f::int32_data, {-7}))),
            (std::vector<int32_t>{-7}));
  EXPECT_EQ(values_of<int64_t>(parse(tensor("", 7, {2}).packed(f::int64_data, {INT64_MIN, 5}))),
            (std::vector<int64_t>{INT64_MIN, 5}));
  EXPECT_EQ(values_of<uint32_t>(parse(tensor("", 12, {1}).packed(f::uint64_data, {0xFFFFFFFF}))),
            (std::vector<uint32_t>{0xFFFFFFFF}));
  EXPECT_EQ(values_of<uint64_t>(parse(tensor("", 13, {1}).packed(f::uint64_data, {-1}))),
            (std::vector<uint64_t>{UINT64_MAX}));
  EXPECT_EQ(values_of<uint8_t>(parse(tensor("", 9, {3}).packed(f::int32_data, {0, 256, 1}))),
            (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_EQ(values_of<float>(parse(tensor("", 14, {1}).packed_reals(f::float_data, {1, 2}))),
            (std::vector<float>{1, 2}));
  // Three 4-bit values take two bytes, each stored as one number.
  EXPECT_EQ(values_of<uint8_t>(parse(tensor("", 22, {3}).packed(f::int32_data, {0x21, 0x03}))),
            (std::vector<uint8_t>{0x21, 0x03}));
}

TEST(TensorPb, PackedAndSingleValuesMix) {
  EXPECT_EQ(values_of<float>(parse(tensor("", 1, {4})
                                       .real(f::float_data, 1)
                                       .packed_reals(f::float_data, {2, 3})
                                       .real(f::float_data, 4))),
            (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(values_of<int64_t>(
                parse(tensor("", 7, {3}).number(f::int64_data, 1).packed(f::int64_data, {2, 3}))),
            (std::vector<int64_t>{1, 2, 3}));
}

TEST(TensorPb, OneRunOfFloatsIsNotCopied) {
  const SharedBytes bytes = shared(tensor("", 1, {3}).packed_reals(f::float_data, {1, 2, 3}));
  const TensorData data = parse_tensor_pb(bytes);
  EXPECT_EQ(data.bytes.owner(), bytes.owner());
}

TEST(TensorPb, StringsAreKept) {
  const TensorData data = parse(
      tensor("", 8, {2}).text(f::string_data, "a").text(f::string_data, std::string("\0", 1)));
  EXPECT_EQ(data.strings, (std::vector<std::string>{"a", std::string("\0", 1)}));
}

TEST(TensorPb, BoolsAreZeroOrOne) {
  EXPECT_EQ(
      values_of<uint8_t>(parse(tensor("", 9, {3}).text(f::raw_data, std::string("\0\1\xFF", 3)))),
      (std::vector<uint8_t>{0, 1, 1}));
}

TEST(TensorPb, TypesTheEngineLacksAreNamed) {
  TensorData data;
  data.type = 8;
  data.name = "w";
  testing::expect_failure(testing::failure_of([&] { to_host_tensor(data); }), Status::Unsupported,
                          {"tensor \"w\" has the element type STRING"});
}

TEST(TensorPb, ComplexNumbersArePairs) {
  const TensorData read = parse(tensor("", 14, {2, 1}).packed_reals(f::float_data, {1, -2, 3, 4}));
  EXPECT_EQ(read.dims, (Ints{2, 1}));
  const HostTensor pairs = to_host_tensor(read);
  EXPECT_EQ(pairs.dtype, kFloat32);
  EXPECT_EQ(pairs.shape, (Ints{2, 1, 2}));
  EXPECT_EQ(values_of<float>(read), (std::vector<float>{1, -2, 3, 4}));
  const HostTensor wide =
      to_host_tensor(parse(tensor("", 15, {}).packed_doubles(f::double_data, {0.5, -1})));
  EXPECT_EQ(wide.dtype, kFloat64);
  EXPECT_EQ(wide.shape, (Ints{2}));
  EXPECT_EQ(wide.bytes.size(), 16);
  // Half of a number is missing.
  EXPECT_EQ(testing::failure_of([] {
              parse(tensor("", 14, {2}).packed_reals(f::float_data, {1, -2, 3}));
            }).status(),
            Status::InvalidModel);
}

TEST(TensorPb, NarrowTypesComeInWholeBytes) {
  const auto packed = [](int type, int64_t count, const char* bytes) {
    return to_host_tensor(parse(tensor("", type, {count}).text(f::raw_data, bytes)));
  };
  const HostTensor whole = packed(22, 3, "\x8F\x07");  // -1, -8, 7
  EXPECT_EQ(whole.dtype, kInt8);
  EXPECT_EQ(whole.bytes.text(), "\xFF\xF8\x07");
  EXPECT_EQ(packed(21, 3, "\x8F\x07").bytes.text(), "\x0F\x08\x07");
  EXPECT_EQ(packed(26, 5, "\xB1\x03").bytes.text(), std::string("\x01\x00\xFF\xFE\xFF", 5));
  const HostTensor real = packed(17, 2, "\x7F\x38");
  EXPECT_EQ(real.dtype, kUInt8);
  EXPECT_EQ(real.bytes.text(), "\x7F\x38");
}

TEST(TensorPb, SequencesAndOptionalsAreRefusedByName) {
  const Message item = tensor("", 1, {1}).text(f::raw_data, "abcd");
  for (const Message& container :
       {Message().text(1, "name").number(2, 1).message(3, item).message(3, item),
        Message().number(2, 1).message(3, item), Message().text(1, "empty").number(2, 1),
        Message().text(1, "lists").number(2, 3).message(5, Message().number(2, 1)),
        Message().text(1, "none").number(2, 0)}) {
    const Error e = error_of(container.bytes());
    EXPECT_EQ(e.status(), Status::Unsupported) << e.message();
    EXPECT_NE(e.message().find("SequenceProto"), std::string::npos) << e.message();
  }
}

TEST(TensorPb, ATypeOfElementsBeyondAllIsAnError) {
  const Message item = tensor("", 1, {1}).text(f::raw_data, "abcd");
  const Error e = error_of(Message().number(2, INT64_MAX).message(6, item).bytes());
  EXPECT_TRUE(e.status() == Status::InvalidModel || e.status() == Status::Unsupported)
      << e.message();
}

TEST(TensorPb, BrokenFilesAreInvalid) {
  for (const std::string& bytes :
       {std::string(), std::string("\x08"), std::string("no tensor at all"),
        std::string(100, '\xFF'), tensor("", 1, {2}).text(f::raw_data, "abcd").bytes(),
        tensor("", 1, {2}).text(f::raw_data, "abcdefgh1").bytes()})
    EXPECT_EQ(error_of(bytes).status(), Status::InvalidModel) << error_of(bytes).message();
}

TEST(TensorPb, ExternalDataNeedsAModelsFolder) {
  const Message m =
      tensor("w", 1, {1})
          .message(f::external_data, Message().text(1, "location").text(2, "weights.bin"))
          .number(f::data_location, 1);
  EXPECT_EQ(error_of(m.bytes()).status(), Status::Unsupported);
}

TEST(TensorPb, EveryTruncationAndEveryChangedByteEndsInATensorOrAnError) {
  const std::string good =
      tensor("w", 6, {2, 2}).packed(f::int32_data, {1, -2, 300, 70000}).bytes();
  for (size_t size = 0; size < good.size(); ++size) error_of(good.substr(0, size));
  for (size_t i = 0; i < good.size(); ++i)
    for (int value = 0; value < 256; ++value) {
      std::string changed = good;
      changed[i] = static_cast<char>(value);
      const Status status = error_of(changed).status();
      EXPECT_TRUE(status == Status::Ok || status == Status::InvalidModel ||
                  status == Status::Limit || status == Status::Unsupported)
          << status_name(status);
    }
}

TEST(TensorPb, ReadsTheTestDataOfTheOnnxWheel) {
  const std::filesystem::path package = testing::onnx_package();
  if (package.empty()) GTEST_SKIP() << testing::kNoOnnxPackage;
  int tensors = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(package / "backend/test/data")) {
    if (entry.path().extension() != ".pb") continue;
    try {
      read_tensor_pb(entry.path());
      ++tensors;
    } catch (const Error& e) {
      EXPECT_EQ(e.status(), Status::Unsupported) << e.message();
      EXPECT_NE(e.message().find("SequenceProto"), std::string::npos) << e.message();
    }
  }
  EXPECT_GT(tensors, 1000);
}

}  // namespace
}  // namespace tiny
