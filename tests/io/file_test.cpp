#include "io/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/error.h"
#include "tests/support/failure.h"
#include "tests/support/resident.h"

namespace tiny {
namespace {

using testing::expect_failure;
using testing::failure_of;

namespace fs = std::filesystem;

// A folder with weights inside and a secret outside, and links of every kind between them.
class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) / ("tiny_file_test_" + std::to_string(getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_ / "model/sub");
    write_file(root_ / "secret", "secret");
    write_file(root_ / "model/weights", "0123456789");
    write_file(root_ / "model/sub/more", "more");
    write_file(root_ / "model/empty", "");
    fs::create_symlink(root_ / "secret", root_ / "model/link_out");
    fs::create_symlink("weights", root_ / "model/link_in");
    fs::create_directory_symlink(root_, root_ / "model/folder_out");
    fs::create_directory_symlink("sub", root_ / "model/folder_in");
    fs::create_hard_link(root_ / "secret", root_ / "model/hard");
    ASSERT_EQ(mkfifo((root_ / "model/fifo").c_str(), 0600), 0);
    folder_ = open((root_ / "model").c_str(), O_PATH | O_DIRECTORY);
  }
  void TearDown() override {
    close(folder_);
    fs::remove_all(root_);
  }

  // Opens by both ways, which must agree; Ok if the file is opened.
  Status open_status(const std::string& location) {
    const auto open_by = [&](bool use_openat2) {
      return failure_of([&] { close(open_beneath(folder_, location, use_openat2)); }).status();
    };
    const Status result = open_by(false);
    EXPECT_EQ(open_by(true), result) << location;
    return result;
  }
  std::string model() const { return root_ / "model"; }

  fs::path root_;
  int folder_ = -1;
};

TEST_F(Files, LocationsInsideTheFolderAreOpened) {
  EXPECT_EQ(open_status("weights"), Status::Ok);
  EXPECT_EQ(open_status("sub/more"), Status::Ok);
  EXPECT_EQ(open_status("./sub//./more"), Status::Ok);
  EXPECT_EQ(open_status("missing"), Status::Io);
  EXPECT_EQ(open_status("weights/more"), Status::Io);
}

TEST_F(Files, LocationsThatLeaveTheFolderAreRefused) {
  for (const std::string location :
       {"../secret", "sub/../weights", "sub/../../secret", "..", "junk/../../secret", "", ".", "/",
        "link_out", "link_in", "folder_out/secret", "folder_in/more"})
    EXPECT_EQ(open_status(location), Status::InvalidModel) << location;
  EXPECT_EQ(open_status((root_ / "secret").string()), Status::InvalidModel);
  EXPECT_EQ(open_status(std::string("weights\0x", 9)), Status::InvalidModel);
  EXPECT_EQ(open_status(std::string(100000, 'a')), Status::Io);
}

TEST_F(Files, PartsMustLieInsideTheFile) {
  ExternalFiles files(model(), {});
  EXPECT_EQ(files.read("weights", 2, 3).text(), "234");
  EXPECT_EQ(files.read("weights", 0, 10).text(), "0123456789");
  EXPECT_EQ(files.read("weights", 10, 0).text(), "");
  EXPECT_EQ(files.read("empty", 0, 0).size(), 0);
  for (const auto& [offset, size] : {std::pair<int64_t, int64_t>{11, 0},
                                     {0, 11},
                                     {8, 3},
                                     {-1, 2},
                                     {0, -1},
                                     {INT64_MAX, 1},
                                     {1, INT64_MAX},
                                     {INT64_MIN, 1}}) {
    SCOPED_TRACE(cat(offset, " ", size));
    expect_failure(failure_of([&] { files.read("weights", offset, size); }), Status::InvalidModel);
  }
}

TEST_F(Files, OnlyRegularFilesAreMapped) {
  ExternalFiles files(model(), {});
  for (const std::string location : {"sub", "fifo"}) {
    SCOPED_TRACE(location);
    expect_failure(failure_of([&] { files.file(location); }), Status::Io);
  }
  EXPECT_THROW(map_file(model()), Error);
  EXPECT_THROW(map_file(root_ / "model/fifo"), Error);
  EXPECT_THROW(map_file("/dev/null"), Error);
}

TEST_F(Files, HardLinksAreRefusedWhereTheLimitsSaySo) {
  EXPECT_EQ(ExternalFiles(model(), {}).file("hard").text(), "secret");
  Limits limits;
  limits.hard_links = false;
  ExternalFiles strict(model(), limits);
  EXPECT_EQ(strict.file("weights").size(), 10);
  EXPECT_THROW(strict.file("hard"), Error);
}

TEST_F(Files, TheNumberOfFilesIsLimited) {
  Limits limits;
  limits.external_files = 1;
  ExternalFiles files(model(), limits);
  files.file("weights");
  files.file("weights");
  EXPECT_THROW(files.file("sub/more"), Error);
}

TEST_F(Files, BytesOutliveTheirFile) {
  SharedBytes part;
  {
    ExternalFiles files(model(), {});
    part = files.read("weights", 3, 4);
  }
  fs::remove(root_ / "model/weights");
  EXPECT_EQ(part.text(), "3456");
}

TEST_F(Files, LargeFilesStopAtTheLimit) {
  expect_failure(failure_of([&] { map_file(root_ / "model/weights", 9); }), Status::Limit);
}

// A child writes one generation after the other, each of one letter; it is killed at any time.
TEST_F(Files, AWriterThatIsKilledLeavesAWholeFile) {
  constexpr size_t kBytes = 4 << 20;
  const std::string path = root_ / "state";
  write_file(path, std::string(kBytes, 'a'));
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0)
      for (char letter = 'b';; letter = letter == 'z' ? 'b' : static_cast<char>(letter + 1))
        write_file(path, std::string(kBytes, letter));
    usleep(static_cast<useconds_t>(2000 + 1700 * round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const SharedBytes bytes = map_file(path);
    ASSERT_EQ(bytes.size(), static_cast<int64_t>(kBytes));
    ASSERT_EQ(bytes.text().find_first_not_of(bytes.text()[0]), std::string_view::npos) << round;
  }
}

TEST_F(Files, ANewFileHasItsNameOnceItIsWhole) {
  const std::string path = root_ / "new";
  StopSignal stop;
  stop.set_token(make_ref<CancelToken>());
  stop.token()->set();
  const std::string_view parts[] = {"abc"};
  EXPECT_THROW(write_file(path, parts, &stop), Error);
  EXPECT_FALSE(fs::exists(path));
  const mode_t old = umask(027);
  write_file(path, "abc");
  umask(old);
  EXPECT_EQ(map_file(path).text(), "abc");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0640));
}

TEST_F(Files, DescriptorsAreClosed) {
  const auto open_count = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = open_count();
  for (int i = 0; i < 3; ++i) {
    ExternalFiles files(model(), {});
    files.file("sub/more");
    for (const std::string location : {"link_out", "sub", "fifo", "missing", "folder_in/more"})
      EXPECT_THROW(files.file(location), Error);
    EXPECT_EQ(open_status("sub/more"), Status::Ok);
    EXPECT_EQ(open_status("folder_in/more"), Status::InvalidModel);
  }
  EXPECT_EQ(open_count(), before);
}

size_t entries_of(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST_F(Files, AFileIsReplacedAndWhoHasItMappedKeepsIt) {
  const std::string path = root_ / "model/weights";
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  const size_t before = entries_of(root_ / "model");
  const SharedBytes mapped = map_file(path);
  const std::string_view parts[] = {"ab", "", "c"};
  write_file(path, parts);
  EXPECT_EQ(mapped.text(), "0123456789");
  EXPECT_EQ(map_file(path).text(), "abc");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms(0640));
  EXPECT_EQ(entries_of(root_ / "model"), before);
}

TEST_F(Files, UnloadedBytesLeaveMemoryAndAreThereWhenTheyAreReadAgain) {
  std::string text;
  for (int i = 0; text.size() < (4 << 20); ++i) text += std::to_string(i);
  write_file(root_ / "large", text);
  const SharedBytes bytes = map_file(root_ / "large");
  const auto size = static_cast<int64_t>(text.size());
  ASSERT_TRUE(bytes.text() == text);
  EXPECT_GE(testing::resident_bytes(bytes.data()), size);
  // Not aligned to pages: those at its ends hold bytes of others.
  bytes.part(100, size / 2).unload();
  EXPECT_LT(testing::resident_bytes(bytes.data()), size / 2 + 3 * 4096);
  EXPECT_TRUE(bytes.text() == text);
  // What is nowhere else stays.
  const SharedBytes own = SharedBytes::copy(text);
  own.unload();
  EXPECT_TRUE(own.text() == text);
}

TEST_F(Files, ALinkStaysOneWhenItsFileIsReplaced) {
  write_file(root_ / "model/link_in", "new");
  EXPECT_TRUE(fs::is_symlink(root_ / "model/link_in"));
  EXPECT_EQ(map_file(root_ / "model/weights").text(), "new");
}

TEST_F(Files, WhatIsNoFileIsWrittenInPlace) {
  write_file("/dev/null", "gone");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(Files, AFileThatCannotBeWrittenIsAnErrorThatNamesItAndLeavesNothing) {
  const size_t before = entries_of(root_ / "model");
  for (const std::string path : {root_ / "none/x", root_ / "model/sub"}) {
    const Error error = failure_of([&] { write_file(path, "x"); });
    expect_failure(error, Status::Io, {path});
    EXPECT_EQ(error.file(), path);
  }
  const Error error = failure_of([&] { write_file("/dev/full", "x"); });
  expect_failure(error, Status::Io, {"/dev/full"});
  EXPECT_EQ(entries_of(root_ / "model"), before);
}

}  // namespace
}  // namespace tiny
