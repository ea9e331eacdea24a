// A program that an earlier process has made is made again without rewriting its graph, and is the
// same program for other constants.
#include "engine/program_record.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "engine/compile.h"
#include "engine/kernel_cache.h"
#include "engine/observe.h"
#include "shape/shape.h"
#include "tensor/activation.h"
#include "tensor/elementwise.h"
#include "tensor/matmul.h"
#include "tensor/movement.h"
#include "tensor/program.h"
#include "tensor/window.h"
#include "tests/reference/reference.h"
#include "tests/support/context.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace tiny {
namespace {

namespace fs = std::filesystem;

class ProgramRecordTest : public ::testing::Test {
 public:
  static UOp input_of(const Tensor& placeholder) {
    UOp node = placeholder.node();
    while (node.op() != Op::Buffer) node = UOp(node.src(0));
    return node;
  }

 protected:
  Flags flags() const {
    Flags f = testing::flags_for("cpu");
    f.spec = 0;  // what is verified is not taken from disk
    f.debug = 0;
    f.cache_dir = folder_.string();
    f.processor = "zen5";  // the speeds of one that is not known are a file of their own
    return f;
  }

  // A convolution in Winograd tiles, a product with packed weights, and a bias that is computed.
  struct Network {
    Network(const Ref<Context>& given, int salt) : context(given), salt_(salt) {
      Window options;
      options.before = options.after = {1, 1};
      const Tensor image = constant({1, 16, 8, 8});
      input = testing::float_input(context, {1, 16, 8, 8});
      output = layers(input, options);
      want = layers(image, options);
      data = testing::floats_of(image);
    }
    Tensor layers(const Tensor& x, const Window& options) {
      salt_now_ = salt_;
      const Tensor rows = relu(conv(x, constant({64, 16, 3, 3}), Tensor(), options));
      const Tensor bias = mul(constant({48}), constant({48}));
      return add(matmul(reshape(rows, to_shape({64, 64})), constant({64, 48})), bias);
    }
    Tensor constant(const Ints& shape) {
      testing::Floats values(static_cast<size_t>(product(to_shape(shape)).value()));
      for (float& v : values) v = static_cast<float>((salt_now_ += 7) % 11 - 5) / 8;
      return testing::floats(context, values, shape);
    }

    Ref<Context> context;
    Tensor input, output;
    Tensor want;  // of the data
    testing::Floats data;
    int salt_, salt_now_ = 0;
  };

  // Compiles and runs the network; what its context counted.
  CompileCounts run(Network& network) {
    if (!expected_.contains(network.salt_))
      expected_[network.salt_] = reference::evaluate(network.want.node());
    const reference::Values& expected = expected_[network.salt_];
    Context& context = *network.context;
    const UOp input = input_of(network.input);
    const CompiledProgram made = compile_program(context, {&network.output.node(), 1}, {&input, 1});
    const auto run = make_ref<tiny::Run>(made.program);
    run->bind_input(0, context.from_host(network.data.data(), std::ssize(network.data) * 4));
    testing::Floats got(expected.size());
    const Ref<Storage> memory = context.allocate(std::ssize(got) * 4);
    run->bind_output(0, memory);
    run->execute();
    context.device().copy_out(nullptr, got.data(), memory->memory(), 0, std::ssize(got) * 4);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], expected.real[i], 1e-3) << "element " << i;
    EXPECT_GT(made.weight_bytes, 0);
    return context.kernels().times();
  }
  CompileCounts in_new_context(int salt, const Flags& flags) {
    Network network(make_ref<Context>(flags), salt);
    return run(network);
  }

  testing::TemporaryFolder folder_;
  std::map<int, reference::Values> expected_;  // by salt
};

// The names of a network's kernels in a new context, its layers named with this prefix.
std::vector<std::string> names_in_new_context(const Flags& flags, const std::string& prefix,
                                              int64_t programs_on_disk) {
  const auto context = make_ref<Context>(flags);
  const auto named = [&](const Tensor& tensor, const char* name) {
    tensor.node().node()->origin = context->graph().origins().named(prefix + name);
    return tensor;
  };
  const auto constant = [&](const Ints& shape) {
    const Dim count = product(to_shape(shape));
    return testing::floats(context, testing::Floats(static_cast<size_t>(count.value()), 0.5f),
                           shape);
  };
  Window window;
  window.before = window.after = {1, 1};
  const Tensor x = testing::float_input(context, {1, 16, 8, 8});
  const Tensor rows = named(relu(conv(x, constant({64, 16, 3, 3}), Tensor(), window)), "conv");
  const Tensor y = named(matmul(reshape(rows, to_shape({64, 64})), constant({64, 48})), "product");
  const UOp input = ProgramRecordTest::input_of(x);
  const CompiledProgram made = compile_program(*context, {&y.node(), 1}, {&input, 1});
  EXPECT_EQ(context->kernels().times().programs_on_disk, programs_on_disk);
  std::vector<std::string> names;
  for (const TapeEntry& entry : made.program->tape)
    for (const std::string& name : computed_names(*made.program, entry))
      if (names.empty() || names.back() != name) names.push_back(name);
  return names;
}

TEST_F(ProgramRecordTest, KernelsHaveTheNamesOfTheGraphThatAsks) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_in_new_context(flags(), "a ", 0), (Names{"a conv", "a product"}));
  EXPECT_EQ(names_in_new_context(flags(), "a ", 1), (Names{"a conv", "a product"}));
  EXPECT_EQ(names_in_new_context(flags(), "b ", 1), (Names{"b conv", "b product"}));
}

TEST_F(ProgramRecordTest, ALaterProcessNeitherSchedulesNorCompiles) {
  const CompileCounts first = in_new_context(1, flags());
  EXPECT_EQ(first.programs_on_disk, 0);
  EXPECT_GT(first.compiled, 3) << "filters, weights and the network's own";
  const CompileCounts second = in_new_context(1, flags());
  EXPECT_EQ(second.programs_on_disk, 1);
  EXPECT_EQ(second.compiled, 0);
  EXPECT_EQ(second.schedule, 0);
}

TEST_F(ProgramRecordTest, OtherConstantsGiveOtherValues) {
  in_new_context(1, flags());
  EXPECT_EQ(in_new_context(4, flags()).programs_on_disk, 1);
}

TEST_F(ProgramRecordTest, ConstantsThatAreThereAreNotComputedAgain) {
  in_new_context(1, flags());
  Network network(make_ref<Context>(flags()), 1);
  run(network);
  const int64_t launches = network.context->counters().launches;
  run(network);
  // The bias is of two constants, and kept with neither.
  EXPECT_LE(network.context->counters().launches - launches, 1);
}

TEST_F(ProgramRecordTest, OptionsThatChangeTheProgramHaveTheirOwn) {
  in_new_context(1, flags());
  for (const auto& change : {+[](Flags& f) { f.wino = "0"; }, +[](Flags& f) { f.pack = 0; },
                             +[](Flags& f) { f.fusion = 0; }}) {
    Flags other = flags();
    change(other);
    EXPECT_EQ(in_new_context(1, other).programs_on_disk, 0);
    EXPECT_EQ(in_new_context(1, other).programs_on_disk, 1);
  }
}

// Whichever file is missing or cut off, the program is made all the same.
TEST_F(ProgramRecordTest, AMissingOrDamagedFileMeansAnotherWay) {
  in_new_context(1, flags());
  int64_t without = 0;
  for (const fs::path& path : folder_.files(".tiny")) {
    const fs::path aside = folder_ / "aside";
    fs::rename(path, aside);
    without += in_new_context(1, flags()).programs_on_disk == 0 ? 1 : 0;
    fs::copy_file(aside, path, fs::copy_options::overwrite_existing);
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
    fs::resize_file(path, fs::file_size(path) / 2);
    in_new_context(1, flags());
    fs::remove(path);
    fs::rename(aside, path);
  }
  EXPECT_EQ(without, 1) << "the record alone is needed: it has what the others hold";
}

TEST_F(ProgramRecordTest, OneFileIsEnough) {
  in_new_context(1, flags());
  const std::vector<fs::path> all = folder_.files(".tiny");
  ASSERT_GT(all.size(), 4u);
  fs::path record;  // without it the program is made anew
  for (const fs::path& path : all) {
    const fs::path aside = folder_ / "aside";
    fs::rename(path, aside);
    if (in_new_context(1, flags()).programs_on_disk == 0) record = path;
    fs::rename(aside, path);
  }
  for (const fs::path& path : all)
    if (path != record) fs::remove(path);
  const CompileCounts counts = in_new_context(1, flags());
  EXPECT_EQ(counts.programs_on_disk, 1);
  EXPECT_EQ(counts.compiled, 0);
  EXPECT_GT(counts.on_disk, 3);
  EXPECT_EQ(folder_.files(".tiny").size(), 1u) << "what was read is not written again";
}

TEST(ProgramRecord, BytesThatDoNotHoldTogetherAreNone) {
  ProgramRecord record;
  record.plan = "p";
  record.leaves = {1, 2, 4};
  ProgramRecord::Step& step = record.steps.emplace_back();
  step.plan = "q";
  step.leaves = {0, 2};
  step.results = 2;
  step.derived = {{3, 0, "how"}, {ProgramRecord::kNone, 1, ""}};
  record.files = {{"p", "a plan"}, {"q", "another"}};
  const std::string bytes = encode_record(record);
  const auto again = decode_record(bytes, 3);
  ASSERT_TRUE(again);
  EXPECT_EQ(encode_record(*again), bytes);
  EXPECT_EQ(again->files, record.files);
  EXPECT_FALSE(decode_record(bytes, 2)) << "a step reads the third leaf";
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_record(std::string_view(bytes).substr(0, size), 3)) << size;
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x80);
    decode_record(changed, 3);  // anything but a crash
  }
  step.derived[0].value = 2;  // no result of the step
  EXPECT_FALSE(decode_record(encode_record(record), 3));
  step.derived[0] = {3, 4, ""};  // made of itself
  EXPECT_FALSE(decode_record(encode_record(record), 3));
  step.derived.clear();
  step.plan.clear();  // a copy of one leaf
  EXPECT_FALSE(decode_record(encode_record(record), 3));
  step.leaves = {2};
  EXPECT_FALSE(decode_record(encode_record(record), 3));
  step.results = 1;
  record.leaves = {1, 2, 3};
  EXPECT_TRUE(decode_record(encode_record(record), 3));
}

}  // namespace
}  // namespace tiny
