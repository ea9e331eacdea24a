// A folder of a test's own, gone with it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tiny::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "tiny_test_XXXXXX").string();
    EXPECT_NE(mkdtemp(path.data()), nullptr) << path;
    path_ = path;
  }
  ~TemporaryFolder() {
    std::error_code ignored;  // a test may have taken the folder away, or its permissions
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string string() const { return path_.string(); }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  // Its files, in no order; of one extension (".tiny") where that is named.
  std::vector<std::filesystem::path> files(const std::string& extension = "") const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      if (extension.empty() || entry.path().extension() == extension) found.push_back(entry.path());
    return found;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace tiny::testing
