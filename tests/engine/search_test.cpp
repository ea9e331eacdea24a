// A search finds optimisations that compute the same, keeps them, and ends when it is told to.
#include "engine/search.h"
#include "engine/kernel_cache.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/error.h"
#include "engine/context.h"
#include "engine/realize.h"
#include "schedule/schedule.h"
#include "tensor/create.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/value.h"
#include "tensor/window.h"
#include "tests/reference/reference.h"
#include "tests/support/context.h"
#include "tests/support/failure.h"
#include "tests/support/temporary_folder.h"

namespace tiny {
namespace {

namespace fs = std::filesystem;

std::string told;  // by the last context
void listen(void*, const char* text) {
  told += text;
}

class SearchTest : public ::testing::Test {
 protected:
  void SetUp() override { told.clear(); }

  // A search of width 2 whose result may be kept; what is told is heard.
  Flags flags(const std::string& device) const {
    Flags f = testing::flags_for(device);
    f.spec = 0;  // what is verified is not taken from disk
    f.debug = 1;
    f.log = {listen, nullptr};
    f.processor = "zen5";  // the speeds of one that is not known are a file of their own
    f.cache_dir = folder_.string();
    f.beam = 2;
    return f;
  }

  std::vector<fs::path> files() const { return folder_.files(".tiny"); }

  testing::TemporaryFolder folder_;
};

Tensor data(const Ref<Context>& context, const Ints& shape, int64_t step) {
  const int64_t count =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<int64_t>(i) * step % 17 - 8);
  return from_data(context, kFloat32, shape, values.data(), count * 4);
}

Tensor product(const Ref<Context>& context) {
  return matmul(data(context, {37, 50}, 7), data(context, {50, 45}, 5));
}

Tensor convolution(const Ref<Context>& context) {
  Window window;
  window.strides = {1, 1};
  window.dilations = {1, 1};
  window.before = window.after = {1, 1};
  return conv(data(context, {2, 3, 12, 20}, 7), data(context, {8, 3, 3, 3}, 5), Tensor(), window);
}

// Values of 8 or 16 bits, whose products a target may add in words.
Tensor narrow(const Ref<Context>& context, DType dtype, const Ints& shape, int64_t step) {
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < shape[0] * shape[1]; ++i) {
    const auto value = static_cast<int8_t>(i * step % 17 - 8);
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
    if (dtype == kInt8) bytes.push_back(static_cast<uint8_t>(value));
    if (dtype == kBFloat16)
      bytes.insert(bytes.end(),
                   {static_cast<uint8_t>(bits >> 16), static_cast<uint8_t>(bits >> 24)});
  }
  return from_data(context, dtype, shape, bytes.data(), std::ssize(bytes));
}
Tensor narrow_product(const Ref<Context>& context, DType dtype, DType wide) {
  const Tensor a = cast(narrow(context, dtype, {40, 64}, 7), wide);
  return cast(matmul(a, cast(narrow(context, dtype, {64, 48}, 5), wide)), kFloat32);
}
Tensor bytes(const Ref<Context>& context) {
  return narrow_product(context, kInt8, kInt32);
}
Tensor bfloats(const Ref<Context>& context) {
  return narrow_product(context, kBFloat16, kFloat32);
}

// What a new context makes of an expression, held against the oracle; what its cache did.
CompileCounts compute(const Flags& flags, Tensor (*make)(const Ref<Context>&)) {
  const Ref<Context> context = make_ref<Context>(flags);
  Tensor t = make(context);
  const reference::Values want = reference::evaluate(t.node());
  std::vector<float> got(want.size());
  read(t, got.data(), static_cast<int64_t>(got.size() * sizeof(float)));
  EXPECT_EQ(reference::difference(want, got.data()), "");
  return context->kernels().times();
}

TEST_F(SearchTest, WhatItFindsIsRight) {
  for (const auto make : {product, convolution}) {
    Flags verified = flags("cpu");
    verified.spec = 1;
    const CompileCounts counts = compute(verified, make);
    EXPECT_EQ(counts.searched, 1);
    EXPECT_GT(counts.candidates, 20);
  }
}

TEST_F(SearchTest, ProductsOfNarrowValuesAreSearchedFor) {
  for (const auto make : {bytes, bfloats}) {
    Flags f = flags("cpu");
    f.bf16_dots = 1;
    const CompileCounts counts = compute(f, make);
    EXPECT_EQ(counts.searched, 1);
    EXPECT_GT(counts.candidates, 20);
  }
}

TEST_F(SearchTest, AListThatIsGivenIsNotSearchedFor) {
  Flags f = flags("cpu");
  f.opts = "r_37_45_50: TILE r1 16; VEC r3";
  EXPECT_EQ(compute(f, product).searched, 0);
  EXPECT_EQ(compute(f, convolution).searched, 1) << "which has no list";
}

TEST_F(SearchTest, ItTellsEachStepBesideTheChoice) {
  compute(flags("cpu"), product);
  EXPECT_NE(told.find("search for the optimisations of "), std::string::npos) << told;
  EXPECT_NE(told.find("us from "), std::string::npos) << told;
  EXPECT_NE(told.find(" actions "), std::string::npos) << told;
  EXPECT_NE(told.find("x cost model"), std::string::npos) << told;
  // A value that is computed at once is not computed again.
  EXPECT_NE(told.find("and from none, for one run:\n"), std::string::npos) << told;
}

// What a bar on a terminal is drawn from.
TEST_F(SearchTest, ItTellsHowFarItIs) {
  struct Heard {
    int64_t calls = 0, last = 0;
    bool is_sound = true;
  } heard;
  Flags watched = flags("cpu");
  watched.progress.user = &heard;
  watched.progress.tell = [](void* user, const char* what, int64_t done, int64_t total) {
    auto& h = *static_cast<Heard*>(user);
    if (std::string_view(what).substr(0, 7) != "search ") return 0;
    h.is_sound &= done >= 0 && done < total && (done == 0 || done > h.last);
    ++h.calls;
    h.last = done;
    return 0;
  };
  const CompileCounts counts = compute(watched, product);
  EXPECT_TRUE(heard.is_sound);
  EXPECT_GT(heard.calls, 3);
  EXPECT_LT(heard.calls, counts.candidates);
}

TEST_F(SearchTest, ASecondContextTakesTheListFromDisk) {
  const CompileCounts first = compute(flags("cpu"), product);
  EXPECT_GT(first.candidates, 0);
  const CompileCounts second = compute(flags("cpu"), product);
  EXPECT_EQ(second.on_disk, 1);
  EXPECT_EQ(second.searched, 0);
  EXPECT_EQ(second.candidates, 0);
  // Each width has a search of its own, and the cost model's kernels stay what they are.
  Flags other = flags("cpu");
  other.beam = 1;
  EXPECT_EQ(compute(other, product).searched, 1);
  other.beam = 0;
  EXPECT_EQ(compute(other, product).on_disk, 0);
}

TEST_F(SearchTest, TheListOutlivesTheCode) {
  const Flags f = flags("cpu");
  compute(f, product);
  size_t left = 0;
  for (const fs::path& path : files()) {
    std::ifstream in(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    const bool is_list = bytes.find("beam ") != std::string::npos;
    left += is_list ? 1 : 0;
    if (!is_list) fs::remove(path);
  }
  EXPECT_EQ(left, 1u);
  const CompileCounts counts = compute(f, product);
  EXPECT_EQ(counts.compiled, 1);
  EXPECT_EQ(counts.searched, 0);
  EXPECT_EQ(counts.candidates, 0);
}

TEST_F(SearchTest, ADamagedListIsSearchedForAgain) {
  const Flags f = flags("cpu");
  EXPECT_EQ(compute(f, product).searched, 1);
  for (const fs::path& path : files()) fs::resize_file(path, fs::file_size(path) / 2);
  EXPECT_EQ(compute(f, product).searched, 1);
  for (const fs::path& path : files()) std::ofstream(path, std::ios::trunc) << "not a list";
  EXPECT_EQ(compute(f, product).searched, 1);
  EXPECT_EQ(compute(f, product).searched, 0);
}

TEST_F(SearchTest, ItsTimeIsBoundedAlsoWhereCompilingIsSlow) {
  const Flags f = flags("c");
  const Ref<Context> context = make_ref<Context>(f);
  const UOp node = product(context).node();
  const Schedule schedule = make_schedule({&node, 1}, context->backend().machine());
  SearchLimits limits;
  limits.seconds = 1;
  const SearchResult result =
      search_options(schedule.kernels.front().kernel,
                     {context->backend(), context->observer(), context->stop()}, {}, limits);
  EXPECT_GT(result.candidates, 0);
  EXPECT_LE(result.seconds, result.chosen_seconds);
  EXPECT_LT(context->observer().now(), 20) << "a batch or two more, on a busy machine";
}

TEST_F(SearchTest, WhereNothingIsToBeGainedItSaysSo) {
  for (const char* device : {"interp", "null"}) {
    told.clear();
    const Ref<Context> context = make_ref<Context>(flags(device));
    Tensor t = product(context);
    std::vector<float> out(37 * 45);
    read(t, out.data(), static_cast<int64_t>(out.size() * sizeof(float)));
    EXPECT_EQ(context->kernels().times().searched, 0) << device;
    EXPECT_NE(told.find("no search for optimisations (TINY_BEAM=2)"), std::string::npos) << told;
  }
  Flags fixed = flags("cpu");
  fixed.noopt = 1;
  EXPECT_EQ(compute(fixed, product).searched, 0);
}

TEST_F(SearchTest, ATokenAndATimeLimitEndIt) {
  Flags f = flags("cpu");
  f.time_limit = 1;
  {
    const Ref<Context> context = make_ref<Context>(f);
    Tensor t = product(context);
    context->stop().begin(f.time_limit);
    std::vector<float> out(37 * 45);
    testing::expect_failure(testing::failure_of([&] { read(t, out.data(), 37 * 45 * 4); }),
                            Status::Limit);
  }
  f.time_limit = 0;
  const Ref<Context> context = make_ref<Context>(f);
  Tensor t = product(context);
  const auto token = make_ref<CancelToken>();
  token->set();
  context->stop().set_token(token);
  std::vector<float> out(37 * 45);
  testing::expect_failure(testing::failure_of([&] { read(t, out.data(), 37 * 45 * 4); }),
                          Status::Cancelled);
  token->clear();
  context->stop().begin(f.time_limit);
  read(t, out.data(), 37 * 45 * 4);
  EXPECT_EQ(reference::difference(reference::evaluate(product(context).node()), out.data()), "");
}

// A kernel whose buffers cannot be had is compiled as the cost model would.
TEST_F(SearchTest, WithoutMemoryTheChosenListStands) {
  Flags f = flags("cpu");
  f.cache = 0;
  f.memory_limit = 64 << 10;
  const CompileCounts counts = compute(f, product);
  EXPECT_EQ(counts.searched, 1);
  f.memory_limit = 24 << 10;  // the operands and the result
  told.clear();
  EXPECT_EQ(compute(f, product).candidates, 0);
  EXPECT_NE(told.find("no search for "), std::string::npos) << told;
}

}  // namespace
}  // namespace tiny
