#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "base/text.h"
#include "engine/compile.h"
#include "engine/context.h"
#include "engine/disk_cache.h"
#include "engine/kernel_cache.h"
#include "engine/realize.h"
#include "ir/build.h"
#include "shape/shape.h"
#include "tests/support/context.h"
#include "tests/support/temporary_folder.h"

namespace tiny {
namespace {

namespace fs = std::filesystem;

class DiskCacheTest : public ::testing::Test {
 protected:
  Flags flags(const std::string& device = "cpu") const {
    Flags f = testing::flags_for(device);
    f.spec = 0;  // what is verified is not taken from disk
    f.debug = 0;
    f.processor = "zen5";  // the speeds of one that is not known are a file of their own
    f.cache_dir = folder_.string();
    return f;
  }

  // Computes (x + 1) * 2 and a sum in a new context; what its cache did.
  static CompileCounts compute(const Flags& flags) {
    const Ref<Context> context = make_ref<Context>(flags);
    const std::vector<float> data{1, 2, 3, 4, 5, 6};
    Graph& graph = context->graph();
    const UOp x = make_buffer(graph, context->from_host(data.data(), 24), kFloat32, 6);
    const UOp y = mul(add(x, constant_like(x, 1)), constant_like(x, 2));
    const UOp sum = make_reduce(make_reshape(y, {2, 3}), Op::Add, {1});
    float got[6], sums[2];
    read(*context, y, got, sizeof got);
    read(*context, sum, sums, sizeof sums);
    for (int i = 0; i < 6; ++i) EXPECT_EQ(got[i], (data[static_cast<size_t>(i)] + 1) * 2);
    EXPECT_EQ(sums[0], 18);
    EXPECT_EQ(sums[1], 36);
    return context->kernels().times();
  }

  static UOp constant_like(const UOp& x, double value) {
    return make_expand(make_reshape(x.graph().constant(x.dtype(), value), {1}), shape_of(x));
  }

  std::vector<fs::path> files() const {
    std::vector<fs::path> all = folder_.files();
    std::erase_if(all, [](const fs::path& path) { return path.filename() == "trimmed"; });
    return all;
  }

  // Every file's bytes changed by `change`.
  template <class Change>
  void damage(Change change) {
    for (const fs::path& path : files()) {
      std::ifstream in(path, std::ios::binary);
      std::string bytes((std::istreambuf_iterator<char>(in)), {});
      in.close();
      change(bytes);
      std::ofstream(path, std::ios::binary).write(bytes.data(), std::ssize(bytes));
    }
  }

  testing::TemporaryFolder folder_;
};

TEST_F(DiskCacheTest, ASecondContextCompilesNothing) {
  for (const char* device : {"cpu", "interp"}) {
    const CompileCounts first = compute(flags(device));
    EXPECT_EQ(first.compiled, 2) << device;
    EXPECT_EQ(first.on_disk, 0) << device;
    const CompileCounts second = compute(flags(device));
    EXPECT_EQ(second.compiled, 0) << device;
    EXPECT_EQ(second.on_disk, 2) << device;
    EXPECT_EQ(second.plans_on_disk, 2) << device;
  }
  EXPECT_EQ(files().size(), 8u) << "a kernel and a plan for each";
}

TEST_F(DiskCacheTest, OptionsAndTargetsHaveFilesOfTheirOwn) {
  compute(flags());
  Flags other = flags();
  other.noopt = 1;
  EXPECT_EQ(compute(other).on_disk, 0);
  other = flags();
  other.isa = "avx2";
  compute(other);
  other.threads = 7;
  EXPECT_EQ(compute(other).on_disk, 0);
}

TEST_F(DiskCacheTest, SwitchedOffItReadsAndWritesNothing) {
  Flags off = flags();
  off.cache = 0;
  EXPECT_EQ(compute(off).compiled, 2);
  EXPECT_TRUE(files().empty());
  compute(flags());
  EXPECT_EQ(compute(off).compiled, 2);
  off.cache = 1;
  off.spec = 1;
  EXPECT_EQ(compute(off).compiled, 2);
}

TEST_F(DiskCacheTest, DamagedFilesAreCompiledAnew) {
  compute(flags());
  const auto check = [&](auto change) {
    damage(change);
    EXPECT_EQ(compute(flags()).compiled, 2);
    EXPECT_EQ(compute(flags()).on_disk, 2) << "what was bad has been replaced";
  };
  check([](std::string& b) { b.clear(); });
  check([](std::string& b) { b.resize(10); });
  check([](std::string& b) { b.pop_back(); });
  check([](std::string& b) { b += "more"; });
  check([](std::string& b) { b[0] ^= 1; });  // another format
  check([](std::string& b) { b[b.size() / 2] ^= 4; });
  check([](std::string& b) { b.back() ^= 1; });
  check([](std::string& b) { std::fill(b.begin() + 16, b.begin() + 24, '\xff'); });  // its length
}

TEST_F(DiskCacheTest, AFileOfAnotherKeyIsNotRun) {
  compute(flags());
  const std::vector<fs::path> all = files();
  fs::rename(all[0], folder_ / "aside");
  for (size_t i = 1; i < all.size(); ++i) fs::rename(all[i], all[i - 1]);
  fs::rename(folder_ / "aside", all.back());
  EXPECT_EQ(compute(flags()).compiled, 2);
}

TEST_F(DiskCacheTest, APlanWithoutItsKernelsIsMadeAnew) {
  compute(flags());
  for (const fs::path& path : files()) {
    fs::rename(path, folder_ / "aside");
    const CompileCounts counts = compute(flags());
    EXPECT_EQ(counts.compiled + counts.on_disk, 2);
    EXPECT_LE(counts.plans_on_disk, 1);
    fs::rename(folder_ / "aside", path);
  }
  EXPECT_EQ(compute(flags()).plans_on_disk, 2);
}

TEST_F(DiskCacheTest, APlanWithVariablesServesAllTheirValues) {
  for (const int64_t expected : {0, 1}) {
    const Ref<Context> context = make_ref<Context>(flags());
    const UOp n = context->graph().variable("n", 1, 64);
    const UOp input = make_input(*context, kFloat32, Dim(n));
    const UOp output = make_reduce(mul(input, input), Op::Add, {0});
    const CompiledProgram made = compile_program(*context, {&output, 1}, {&input, 1}, {&n, 1});
    EXPECT_EQ(context->kernels().times().plans_on_disk, expected);
    const auto run = make_ref<tiny::Run>(made.program);
    for (const int64_t count : {1, 5, 64}) {
      const std::vector<float> data(static_cast<size_t>(count), 2.0F);
      const Ref<Storage> result = context->allocate(4);
      run->bind_input(0, context->from_host(data.data(), count * 4));
      run->bind_output(0, result);
      run->bind_variable(0, count);
      run->execute();
      float sum = 0;
      context->device().copy_out(nullptr, &sum, result->memory(), 0, 4);
      EXPECT_EQ(sum, 4.0F * static_cast<float>(count));
    }
  }
}

TEST_F(DiskCacheTest, FilesThatOthersMayWriteAreNotRun) {
  compute(flags());
  for (const fs::path& path : files()) chmod(path.c_str(), 0666);
  EXPECT_EQ(compute(flags()).on_disk, 0);
  fs::permissions(folder_.path(), fs::perms::all);
  EXPECT_EQ(compute(flags()).on_disk, 0);
}

TEST_F(DiskCacheTest, AFolderThatCannotBeUsedMeansNoCache) {
  Flags f = flags();
  f.cache_dir = "/proc/nowhere/tiny";
  EXPECT_EQ(compute(f).compiled, 2);
  std::ofstream(folder_ / "file") << "no folder";
  f.cache_dir = (folder_ / "file").string();
  EXPECT_EQ(compute(f).compiled, 2);
}

TEST_F(DiskCacheTest, TheFolderIsMadeWithThoseAroundIt) {
  Flags f = flags();
  f.cache_dir = (folder_ / "a/b").string();
  compute(f);
  EXPECT_EQ(compute(f).on_disk, 2);
}

// Files of no content that count as `bytes` each, their names spread as hashes are; the older the
// smaller their number.
TEST_F(DiskCacheTest, TheOldestFilesGoAShareAtATime) {
  constexpr int kFiles = 1024;
  constexpr int64_t kBytes = 1020 << 10, kAllBytesMax = 256 << 20;
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < kFiles; ++i) {
    char name[48];
    std::snprintf(name, sizeof name, "%016llx%016x.tiny",
                  static_cast<unsigned>(i) * 0x9E3779B97F4A7C15ull, i);
    std::ofstream(folder_ / name).close();
    fs::resize_file(folder_ / name, kBytes);
    fs::last_write_time(folder_ / name, now - std::chrono::hours(kFiles - i));
  }
  const auto left = [&] {
    std::vector<fs::path> all = files();
    std::erase_if(all, [](const fs::path& path) { return fs::file_size(path) != kBytes; });
    return all;
  };
  const auto number = [](const fs::path& path) {
    return std::stoi(path.filename().string().substr(16, 16), nullptr, 16);
  };
  std::vector<fs::path> before = left();
  ASSERT_EQ(std::ssize(before), kFiles);
  for (int turn = 0; turn < 400; ++turn) {
    DiskCache(flags(), "target").store(cat(turn), "content");
    const std::vector<fs::path> after = left();
    std::set<char> shares;
    for (const fs::path& path : before)
      if (!fs::exists(path)) shares.insert(path.filename().string()[0]);
    EXPECT_LE(shares.size(), 1u) << "one look is at a share alone";
    if (turn == 1) {
      EXPECT_EQ(after.size(), before.size()) << "no second look so soon";
    }
    before = after;
    if (turn != 0) fs::last_write_time(folder_ / "trimmed", now - std::chrono::minutes(10));
  }
  EXPECT_LE(std::ssize(before) * kBytes, kAllBytesMax);
  EXPECT_GE(std::ssize(before) * kBytes, kAllBytesMax / 2);
  for (const fs::path& path : before) EXPECT_GT(number(path), kFiles / 2);
}

TEST_F(DiskCacheTest, ContextsAtTheSameTimeShareAFolder) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) compute(flags());
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(files().size(), 4u) << "nothing is left aside";
  EXPECT_EQ(compute(flags()).on_disk, 2);
}

TEST_F(DiskCacheTest, TheContextForgetsTheKernelsUsedLeastRecently) {
  Flags f = flags();
  f.cache = 0;
  f.cache_kernels = 8;
  const Ref<Context> context = make_ref<Context>(f);
  const auto compute_sizes = [&](int64_t first, int64_t last) {
    for (int64_t n = first; n < last; ++n) {
      const std::vector<float> data(static_cast<size_t>(n), 1.0f);
      const UOp x =
          make_buffer(context->graph(), context->from_host(data.data(), n * 4), kFloat32, n);
      std::vector<float> got(static_cast<size_t>(n));
      read(*context, add(x, x), got.data(), n * 4);
      EXPECT_EQ(got.back(), 2);
    }
  };
  compute_sizes(1, 30);
  EXPECT_LE(context->kernels().size(), 8u);
  const int64_t compiled = context->kernels().times().compiled;
  compute_sizes(28, 30);
  EXPECT_EQ(context->kernels().times().compiled, compiled) << "the latest are still there";
}

}  // namespace
}  // namespace tiny
