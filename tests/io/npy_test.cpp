#include "io/npy.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "tests/support/failure.h"

namespace tiny {
namespace {

std::string file(const std::string& header, const std::string& data, int version = 1) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    out += static_cast<char>((header.size() >> (8 * i)) & 0xFF);
  return out + header + data;
}

std::string header(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }\n";
}

HostTensor parse(const std::string& bytes) {
  return parse_npy(SharedBytes::copy(bytes));
}

Status status_of(const std::string& bytes) {
  return testing::failure_of([&] { parse(bytes); }).status();
}

std::string text_of(const HostTensor& tensor) {
  return std::string(tensor.bytes.text());
}

constexpr DType kAll[] = {kBool,   kInt8,   kInt16,   kInt32,   kInt64,    kUInt8,  kUInt16,
                          kUInt32, kUInt64, kFloat16, kFloat32, kBFloat16, kFloat64};

TEST(Npy, WhatIsWrittenIsRead) {
  for (const DType dtype : kAll)
    for (const Ints& shape : {Ints{}, Ints{0}, Ints{5}, Ints{2, 3}, Ints{2, 1, 4}, Ints{3, 0, 2}}) {
      const int64_t count = element_count(shape, "test");
      std::string data;
      for (int64_t i = 0; i < count * dtype.bytes(); ++i)
        data += static_cast<char>(dtype.is_bool() ? i % 2 : i * 37);
      const HostTensor tensor{dtype, shape, SharedBytes::copy(data)};
      const std::string bytes = npy_bytes(tensor);
      EXPECT_EQ((bytes.size() - data.size()) % 64, 0u);
      const HostTensor back = parse(bytes);
      EXPECT_EQ(back.dtype, dtype);
      EXPECT_EQ(back.shape, shape);
      EXPECT_EQ(text_of(back), data);
    }
}

TEST(Npy, TheHeaderIsNumPysOwn) {
  const HostTensor tensor{kFloat32, {2}, SharedBytes::copy("abcdefgh")};
  const std::string bytes = npy_bytes(tensor);
  EXPECT_EQ(bytes.substr(10, 57), "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }");
  EXPECT_EQ(bytes.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
}

TEST(Npy, ReadsEveryVersion) {
  for (int version : {1, 2, 3}) {
    const HostTensor tensor = parse(file(header("|u1", "(3,)"), "abc", version));
    EXPECT_EQ(tensor.shape, Ints{3});
    EXPECT_EQ(text_of(tensor), "abc");
  }
  EXPECT_EQ(status_of(file(header("|u1", "(3,)"), "abc", 4)), Status::InvalidModel);
}

TEST(Npy, FortranOrderIsTurned) {
  // Rows abc and def, stored by columns.
  EXPECT_EQ(text_of(parse(file(header("|u1", "(2, 3)", true), "adbecf"))), "abcdef");
  // Element (i, j, k) of [2, 2, 2] stands at i + 2 j + 4 k.
  EXPECT_EQ(text_of(parse(file(header("|u1", "(2, 2, 2)", true), "aecgbfdh"))), "abcdefgh");
  EXPECT_EQ(text_of(parse(file(header("<i2", "(2, 2)", true), "AaCcBbDd"))), "AaBbCcDd");
  EXPECT_EQ(text_of(parse(file(header("|u1", "(0, 3)", true), ""))), "");
}

TEST(Npy, BigEndianIsTurned) {
  EXPECT_EQ(text_of(parse(file(header(">i4", "(2,)"), "abcdefgh"))), "dcbahgfe");
  EXPECT_EQ(text_of(parse(file(header(">f2", "()"), "ab"))), "ba");
  EXPECT_EQ(text_of(parse(file(header(">i2", "(2, 2)", true), "aAcCbBdD"))), "AaBbCcDd");
}

TEST(Npy, BoolsAreZeroOrOne) {
  EXPECT_EQ(text_of(parse(file(header("|b1", "(3,)"), std::string("\0\1\xFF", 3)))),
            std::string("\0\1\1", 3));
}

TEST(Npy, OddButLegalHeadersAreRead) {
  EXPECT_EQ(parse(file("{\"shape\":(2L,),'fortran_order':False,'descr':'|u1'}", "ab")).shape,
            Ints{2});
  EXPECT_EQ(parse(file(header("|u1", "( 1 , 2 )"), "ab")).shape, (Ints{1, 2}));
}

TEST(Npy, UnknownTypesAreNamed) {
  for (const std::string descr : {"<U5", "|S3", "|O", "<c8", "<M8[ns]", "<f16", "", "<", "i4"}) {
    const std::string bytes = file(header(descr, "(1,)"), "abcd");
    testing::expect_failure(testing::failure_of([&] { parse(bytes); }), Status::Unsupported,
                            {'"' + descr + '"'});
  }
  EXPECT_EQ(status_of(file("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': ()}", "")),
            Status::Unsupported);
}

TEST(Npy, LyingHeadersAreRefused) {
  const std::string big = "(4611686018427387904, 4611686018427387904)";
  EXPECT_EQ(status_of(file(header("<f8", big), "")), Status::Limit);
  EXPECT_EQ(status_of(file(header("<f8", "(0, 4611686018427387904, 4)"), "")), Status::Limit);
  EXPECT_EQ(status_of(file(header("<f8", "(2305843009213693952,)"), "")), Status::Limit);
  EXPECT_EQ(status_of(file(header("<f8", "(99999999999999999999,)"), "")), Status::InvalidModel);
  EXPECT_EQ(status_of(file(header("<f8", "(-1,)"), "")), Status::InvalidModel);
  EXPECT_EQ(status_of(file(header("<f4", "(2,)"), "abcd")), Status::InvalidModel);
  EXPECT_EQ(status_of(file(header("<f4", "(1,)"), "abcdefgh")), Status::InvalidModel);
  EXPECT_EQ(status_of(file("{}", "")), Status::InvalidModel);
  EXPECT_EQ(status_of(file("{'shape': (", "")), Status::InvalidModel);
  EXPECT_EQ(status_of(file(std::string(200, '('), "")), Status::InvalidModel);
  EXPECT_EQ(status_of(std::string("\x93NUMPY\x02\0\xFF\xFF\xFF\xFF", 12)), Status::InvalidModel);
  EXPECT_EQ(status_of("no such thing"), Status::InvalidModel);
}

TEST(Npy, EveryTruncationAndEveryChangedByteEndsInAnArrayOrAnError) {
  const std::string good = file(header("<i4", "(2, 3)", true), std::string(24, 'x'));
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_EQ(status_of(good.substr(0, size)), Status::InvalidModel) << size;
  for (size_t i = 0; i < good.size(); ++i)
    for (int value = 0; value < 256; ++value) {
      std::string changed = good;
      changed[i] = static_cast<char>(value);
      const Status status = status_of(changed);
      EXPECT_TRUE(status == Status::Ok || status == Status::InvalidModel ||
                  status == Status::Limit || status == Status::Unsupported)
          << status_name(status);
    }
}

TEST(Npy, FilesAreWrittenAndMapped) {
  const std::string path = ::testing::TempDir() + "tiny_npy_test.npy";
  write_npy(path, {kUInt8, {3}, SharedBytes::copy("abc")});
  const HostTensor tensor = read_npy(path);
  std::filesystem::remove(path);  // the mapping stays
  EXPECT_EQ(text_of(tensor), "abc");
  EXPECT_THROW(read_npy(path), Error);
}

}  // namespace
}  // namespace tiny
