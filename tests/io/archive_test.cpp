#include "io/archive.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/failure.h"

namespace tiny {
namespace {

class ArchiveFile : public ::testing::TestWithParam<const char*> {
 protected:
  ~ArchiveFile() override { std::filesystem::remove(path_); }
  const std::string path_ = ::testing::TempDir() + "tiny_archive_test" + GetParam();
  const NamedTensor one_{"x", {kInt16, {2}, SharedBytes::copy("abcd")}, ""};
};

TEST_P(ArchiveFile, OneTensorComesBack) {
  write_archive(path_, {{one_}, {}});
  const Archive back = read_archive(path_);
  ASSERT_EQ(back.tensors.size(), 1u);
  EXPECT_EQ(back.tensors[0].name, path_.ends_with(".npy") ? "" : "x");
  EXPECT_EQ(back.tensors[0].value.dtype, kInt16);
  EXPECT_EQ(back.tensors[0].value.shape, Ints{2});
  EXPECT_EQ(back.tensors[0].value.bytes.text(), "abcd");
}

TEST_P(ArchiveFile, SeveralTensorsAndMetadataAreForSafetensorsAlone) {
  const Archive archive{{one_, {"y", one_.value, ""}}, {{"k", "v"}}};
  if (path_.ends_with(".safetensors")) {
    write_archive(path_, archive);
    EXPECT_EQ(read_archive(path_).tensors.size(), 2u);
    return;
  }
  testing::expect_failure(testing::failure_of([&] { write_archive(path_, archive); }),
                          Status::InvalidArgument, {path_, "one tensor", ".safetensors"});
  testing::expect_failure(testing::failure_of([&] { write_archive(path_, {}); }),
                          Status::InvalidArgument, {"not 0 tensors"});
}

INSTANTIATE_TEST_SUITE_P(Endings, ArchiveFile, ::testing::Values(".npy", ".pb", ".safetensors"));

TEST(Archive, OtherEndingsAreRefused) {
  for (const auto& call : {+[] { read_archive("x.txt"); }, +[] { write_archive("x.txt", {}); }})
    testing::expect_failure(testing::failure_of(call), Status::InvalidArgument,
                            {"\"x.txt\"", ".npy", ".pb", ".safetensors"});
}

TEST(Archive, LongListsOfNamesAreCut) {
  EXPECT_EQ(names_text({}), "");
  EXPECT_EQ(names_text({"a", "b"}), "\"a\", \"b\"");
  EXPECT_TRUE(names_text(std::vector<std::string>(25, "n")).ends_with("\"n\" and 5 more"));
}

}  // namespace
}  // namespace tiny
