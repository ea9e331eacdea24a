#include "io/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "tests/support/failure.h"

namespace tiny {
namespace {

std::string file(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string out(reinterpret_cast<const char*>(&length), sizeof length);
  return out + header + data;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  int64_t begin, int64_t end) {
  return cat("\"", name, R"(":{"dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":[)",
             begin, ",", end, "]}");
}

Archive parse(const std::string& bytes) {
  return parse_safetensors(SharedBytes::copy(bytes));
}

void expect_refused(const std::string& bytes, Status status,
                    std::initializer_list<std::string_view> texts,
                    std::source_location at = std::source_location::current()) {
  testing::expect_failure(testing::failure_of([&] { parse(bytes); }), status, texts, at);
}

// The same, of a header with these entries and of `data` bytes behind it.
void expect_refused(std::initializer_list<std::string> entries, size_t data,
                    std::initializer_list<std::string_view> texts,
                    std::source_location at = std::source_location::current()) {
  expect_refused(file(cat("{", join(entries, ","), "}"), std::string(data, 'x')),
                 Status::InvalidModel, texts, at);
}

std::string written(const Archive& archive) {
  const SafetensorsHeader header = safetensors_header(archive);
  std::string out = header.bytes;
  for (const size_t i : header.order) out += archive.tensors[i].value.bytes.text();
  return out;
}

constexpr DType kAll[] = {kBool,   kInt8,   kInt16,   kInt32,   kInt64,    kUInt8,  kUInt16,
                          kUInt32, kUInt64, kFloat16, kFloat32, kBFloat16, kFloat64};

TEST(Safetensors, TheFormatsOwnExampleIsRead) {
  const std::string header =
      R"({"__metadata__":{"format":"pt","a":""},"w":{"shape":[1,2],"data_offsets":[1,9],"dtype":"F32"},)"
      R"("b\u00e9":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}   )";
  const Archive archive = parse(file(header, "Xabcdefgh"));
  ASSERT_EQ(archive.tensors.size(), 2u);
  EXPECT_EQ(archive.tensors[0].name, "w");
  EXPECT_EQ(archive.tensors[0].value.dtype, kFloat32);
  EXPECT_EQ(archive.tensors[0].value.shape, (Ints{1, 2}));
  EXPECT_EQ(archive.tensors[0].value.bytes.text(), "abcdefgh");
  EXPECT_EQ(archive.tensors[1].name, "b\xC3\xA9");
  EXPECT_EQ(archive.tensors[1].value.shape, Ints{});
  EXPECT_EQ(archive.tensors[1].value.bytes.text(), "X");
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(archive.metadata, (Pairs{{"format", "pt"}, {"a", ""}}));
}

TEST(Safetensors, WhatIsWrittenIsReadAndEveryTensorIsAligned) {
  Archive archive;
  for (const DType dtype : kAll)
    for (const Ints& shape : {Ints{}, Ints{0, 2}, Ints{3}, Ints{2, 1, 2}}) {
      std::string data;
      for (int64_t i = 0; i < element_count(shape, "test") * dtype.bytes(); ++i)
        data += static_cast<char>(dtype.is_bool() ? i % 2 : i * 37);
      archive.tensors.push_back({cat("\"t\\", archive.tensors.size(), "\n"),
                                 {dtype, shape, SharedBytes::copy(data)},
                                 ""});
    }
  archive.metadata = {{"k", "v\xE2\x82\xAC"}};
  const std::string bytes = written(archive);
  const Archive back = parse(bytes);
  ASSERT_EQ(back.tensors.size(), archive.tensors.size());
  EXPECT_EQ(back.metadata, archive.metadata);
  const SafetensorsHeader header = safetensors_header(archive);
  EXPECT_EQ(header.bytes.size() % 8, 0u);
  int64_t at = 0;
  for (size_t i = 0; i < header.order.size(); ++i) {
    const NamedTensor& want = archive.tensors[header.order[i]];
    EXPECT_EQ(back.tensors[i].name, want.name);
    EXPECT_EQ(back.tensors[i].value.dtype, want.value.dtype);
    EXPECT_EQ(back.tensors[i].value.shape, want.value.shape);
    EXPECT_EQ(back.tensors[i].value.bytes.text(), want.value.bytes.text());
    EXPECT_EQ(at % want.value.dtype.bytes(), 0);
    at += want.value.bytes.size();
  }
}

TEST(Safetensors, TheBytesOfASmallFile) {
  const Archive archive{{{"a", {kUInt8, {2}, SharedBytes::copy("xy")}, ""},
                         {"b", {kInt16, {1}, SharedBytes::copy("zw")}, ""}},
                        {{"format", "pt"}}};
  const std::string header = R"({"__metadata__":{"format":"pt"},)"
                             R"("b":{"dtype":"I16","shape":[1],"data_offsets":[0,2]},)"
                             R"("a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})";
  EXPECT_EQ(written(archive), file(header + std::string(7 - (header.size() + 7) % 8, ' '), "zwxy"));
  EXPECT_EQ(written({}), file("{}      ", ""));
}

TEST(Safetensors, BoolsAreZeroOrOne) {
  const Archive archive =
      parse(file(cat("{", entry("b", "BOOL", "[3]", 0, 3), "}"), std::string("\0\1\xFF", 3)));
  EXPECT_EQ(archive.tensors[0].value.bytes.text(), std::string_view("\0\1\1", 3));
}

TEST(Safetensors, TypesThatTheEngineLacksAreRefusedByNameWhenTheyAreAskedFor) {
  const Archive archive = parse(
      file(cat("{", entry("h", "F8_E8M0", "[2]", 0, 2), ",", entry("c", "C64", "[]", 2, 10), ",",
               entry("n", "NEW", "[7]", 10, 11), ",", entry("f", "U8", "[]", 11, 12), "}"),
           "0123456789ab"));
  EXPECT_EQ(supported(archive.tensors[3]).bytes.text(), "b");
  const std::string names[] = {"F8_E8M0", "C64", "NEW"};
  for (size_t i = 0; i < 3; ++i)
    testing::expect_failure(testing::failure_of([&] { supported(archive.tensors[i]); }),
                            Status::Unsupported, {names[i], archive.tensors[i].name});
  expect_refused({entry("h", "F8_E5M2", "[2]", 0, 3)}, 3, {"\"h\"", "needs 2 bytes", "give it 3"});
  expect_refused({entry("h", "F4", "[3]", 0, 2)}, 2, {"\"h\"", "needs 2 bytes"});
}

TEST(Safetensors, HeadersThatLieAboutTheirLengthAreRefused) {
  expect_refused("", Status::InvalidModel, {"0 bytes"});
  expect_refused("1234567", Status::InvalidModel, {"7 bytes"});
  expect_refused(std::string(8, '\xFF'), Status::InvalidModel, {"18446744073709551615 bytes"});
  expect_refused(std::string("\x03\0\0\0\0\0\0\0{}", 10), Status::InvalidModel, {"3 bytes", "2"});
  const uint64_t length = 100'000'001;
  std::string large(reinterpret_cast<const char*>(&length), sizeof length);
  large.resize(8 + length, ' ');
  expect_refused(large, Status::Limit, {"100000001", "limit"});
}

TEST(Safetensors, TensorsCoverTheDataOnce) {
  const auto bytes = [](const char* name, int64_t begin, int64_t end) {
    return entry(name, "U8", cat("[", end - begin, "]"), begin, end);
  };
  expect_refused({bytes("a", 0, 4), bytes("b", 2, 6)}, 6, {"\"b\"", "byte 2", "inside another"});
  expect_refused({bytes("a", 0, 4), bytes("b", 0, 4)}, 4, {"inside another"});
  expect_refused({bytes("b", 5, 6), bytes("a", 0, 4)}, 6, {"bytes 4 to 5"});
  expect_refused({bytes("a", 0, 4)}, 5, {"bytes 4 to 5"});
  expect_refused({bytes("a", 1, 4)}, 4, {"bytes 0 to 1"});
  expect_refused({bytes("a", 0, 5)}, 4, {"\"a\"", "0 to 5 of 4"});
  expect_refused({entry("a", "U8", "[1]", 3, 2)}, 4, {"\"a\"", "3 to 2"});
  expect_refused({entry("a", "U8", "[1]", 0, INT64_MAX)}, 4, {"\"a\""});
  expect_refused({}, 1, {"bytes 0 to 1"});
  const std::string good = cat("{", bytes("z", 4, 4), ",", bytes("b", 4, 6), ",", bytes("e", 0, 0),
                               ",", bytes("a", 0, 4), "}");
  EXPECT_EQ(parse(file(good, "abcdef")).tensors[1].value.bytes.text(), "ef");
}

TEST(Safetensors, ShapesMustGiveTheSize) {
  expect_refused({entry("a", "F32", "[2]", 0, 4)}, 4,
                 {"\"a\"", "[2]", "F32", "needs 8", "give it 4"});
  expect_refused({entry("a", "F32", "[0,9]", 0, 4)}, 4, {"needs 0"});
  const std::string huge = entry("a", "F64", "[4611686018427387904,4]", 0, 4);
  expect_refused(file(cat("{", huge, "}"), "abcd"), Status::Limit, {"\"a\""});
  std::string deep = "[1";
  for (int i = 0; i < 64; ++i) deep += ",1";
  expect_refused({entry("a", "U8", deep + "]", 0, 1)}, 1, {"\"a\"", "64 dimensions"});
}

TEST(Safetensors, HeadersOfAnotherFormAreRefusedWithTheirPlace) {
  const auto header = [](const char* text, std::initializer_list<std::string_view> texts,
                         std::source_location at = std::source_location::current()) {
    expect_refused(file(text, ""), Status::InvalidModel, texts, at);
  };
  header("", {"the header", "an object is due"});
  header("[]", {"an object is due"});
  header(R"({"a":1})", {"byte 5", "an object is due"});
  header(R"({"a":{}})", {"\"a\"", "lacks dtype, shape or data_offsets"});
  header(R"({"a":{"dtype":"U8","dtype":"U8"}})", {"two \"dtype\""});
  header(R"({"a":{"dtype":7}})", {"a string is due"});
  header(R"({"a":{"shape":[-1]}})", {"not negative"});
  header(R"({"a":{"data_offsets":[0]}})", {"a begin and an end"});
  header(R"({"a":{"data_offsets":[0,0,0]}})", {"a begin and an end"});
  header(R"({"a":{"more":1}})", {"unknown key \"more\""});
  header(R"({"__metadata__":{"a":1}})", {"a string is due"});
  header(R"({"__metadata__":{"a":"","a":""}})", {"two entries of the metadata are named \"a\""});
  header(R"({"__metadata__":{},"__metadata__":{}})", {"two \"__metadata__\""});
  header("{\"\xFF\":{}}", {"not UTF-8"});
  header(R"({"a\u0000b":{}})", {"NUL"});
  expect_refused({entry("a", "U8", "[0]", 0, 0), entry("a", "U8", "[0]", 0, 0)}, 0,
                 {"two tensors are named \"a\""});
}

TEST(Safetensors, EveryTruncationAndEveryChangedByteEndsInTensorsOrAnError) {
  const std::string good = file(cat(R"({"__metadata__":{"k":"v"},)", entry("a", "I32", "[2]", 0, 8),
                                    ",", entry("b", "BOOL", "[3]", 8, 11), "}"),
                                std::string(11, '\1'));
  for (size_t size = 0; size < good.size(); ++size)
    expect_refused(good.substr(0, size), Status::InvalidModel, {});
  for (size_t i = 0; i < good.size(); ++i)
    for (int value = 0; value < 256; ++value) {
      std::string changed = good;
      changed[i] = static_cast<char>(value);
      const Status status = testing::failure_of([&] { parse(changed); }).status();
      EXPECT_TRUE(status == Status::Ok || status == Status::InvalidModel || status == Status::Limit)
          << status_name(status);
    }
}

TEST(Safetensors, WhatCannotBeWrittenIsRefused) {
  const HostTensor one{kUInt8, {1}, SharedBytes::copy("x")};
  const auto refused = [](const Archive& archive, Status status, std::string_view text) {
    testing::expect_failure(testing::failure_of([&] { safetensors_header(archive); }), status,
                            {text});
  };
  refused({{{"a", one, ""}, {"a", one, ""}}, {}}, Status::InvalidArgument, "two tensors are named");
  refused({{{"__metadata__", one, ""}}, {}}, Status::InvalidArgument, "cannot be named");
  refused({{{"\xFF", one, ""}}, {}}, Status::InvalidArgument, "not UTF-8");
  refused({{{"a", one, ""}}, {{"k", "\xFF"}}}, Status::InvalidArgument, "not UTF-8");
  refused({{{"a", {}, "F4"}}, {}}, Status::Unsupported, "F4");
}

TEST(Safetensors, ErrorsNameTheFile) {
  const std::string path = ::testing::TempDir() + "tiny_bad.safetensors";
  write_file(path, file("{]", ""));
  const Error error = testing::failure_of([&] { read_safetensors(path); });
  testing::expect_failure(error, Status::InvalidModel, {path, "the header: byte 1: "});
  EXPECT_EQ(error.file(), path);
  std::filesystem::remove(path);
  EXPECT_EQ(testing::failure_of([&] { read_safetensors(path); }).status(), Status::Io);
}

}  // namespace
}  // namespace tiny
