// What samples/cpp/tiny.hpp promises: operators, shared handles, errors as exceptions, whole steps.
#include "samples/cpp/tiny.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

namespace {

using Floats = std::vector<float>;

class Wrapper : public ::testing::Test {
 protected:
  tiny::Tensor floats(const tiny::Shape& shape, const Floats& values) {
    return context_.tensor(shape, values);
  }
  const tiny::Context context_;
};

TEST_F(Wrapper, operators_take_tensors_and_numbers) {
  const tiny::Tensor a = floats({2, 2}, {1, 2, 3, 4}), b = floats({2}, {10, 20});
  EXPECT_EQ((a + b).read<float>(), (Floats{11, 22, 13, 24}));
  EXPECT_EQ((a * 2 - 1).read<float>(), (Floats{1, 3, 5, 7}));
  EXPECT_EQ((1 - a / 2).read<float>(), (Floats{0.5, 0, -0.5, -1}));
  EXPECT_EQ((12 / a).read<float>(), (Floats{12, 6, 4, 3}));
  EXPECT_EQ((-a + 0.5 * b).read<float>(), (Floats{4, 8, 2, 6}));
  EXPECT_EQ(matmul(a, b).read<float>(), (Floats{50, 110}));
  EXPECT_EQ(a.permute({1, 0}).sum({1}).read<float>(), (Floats{4, 6}));
  EXPECT_EQ(a.reshape({TINY_DIM_FREE, 1}).shape(), (tiny::Shape{4, 1}));
  EXPECT_EQ(compare(TINY_GT, a, 2).cast(TINY_INT64).sum().item<int64_t>(), 2);
  EXPECT_EQ(a.argmax(1).read<int64_t>(), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(relu(a - 2).mean().item<float>(), 0.75F);
  EXPECT_FLOAT_EQ(softmax(exp(a * 0), 1).read<float>()[0], 0.5F);
}

TEST_F(Wrapper, copies_share_a_handle_which_outlives_its_context) {
  tiny::Tensor kept;
  {
    const tiny::Context context;
    tiny::Tensor first = context.tensor<int32_t>({2}, {1, 2});
    kept = first;
    const tiny::Tensor moved = std::move(first);
    EXPECT_EQ(moved.get(), kept.get());
    kept.assign(moved + moved);
  }
  EXPECT_EQ(kept.read<int32_t>(), (std::vector<int32_t>{2, 4}));
  kept = kept * 2;
  EXPECT_EQ(kept.read<int32_t>(), (std::vector<int32_t>{4, 8}));
}

TEST_F(Wrapper, mistakes_are_exceptions) {
  const auto message = [](auto&& call) {
    try {
      call();
    } catch (const tiny::Error& error) {
      return std::to_string(error.status()) + " " + error.what();
    }
    return std::string("nothing was thrown");
  };
  const tiny::Tensor a = floats({2}, {1, 2}), b = floats({3}, {1, 2, 3});
  EXPECT_EQ(message([&] { a + b; }).substr(0, 14), "2 tiny_binary:");
  EXPECT_EQ(message([&] { (void)a.read<int64_t>(); }), "3 read as int64: the tensor is float32");
  EXPECT_EQ(message([&] { (void)a.item<float>(); }), "2 item: 2 elements");
  EXPECT_EQ(message([&] { (void)context_.load("/nowhere.npy"); }).substr(0, 2), "8 ");
}

TEST_F(Wrapper, a_network_learns_is_kept_and_is_exported) {
  // Whether two numbers have one sign.
  std::mt19937 random(1);
  Floats points;
  std::vector<int64_t> classes;
  for (int i = 0; i < 256; ++i) {
    for (int k = 0; k < 2; ++k) points.push_back(static_cast<float>(random() % 2001) / 1000.0F - 1);
    classes.push_back(points[points.size() - 2] * points[points.size() - 1] > 0);
  }
  const tiny::Tensor x = floats({256, 2}, points), y = context_.tensor({256}, classes);
  const auto network = [](const tiny::Module& m, const tiny::Tensor& in) {
    return m.linear("fc2", m.batch_norm("bn", relu(m.linear("fc1", in, 32))), 2);
  };
  tiny::Module module(context_, 1);
  const tiny::Tensor in = context_.input(TINY_FLOAT32, {256, 2});
  const tiny::Tensor wanted = context_.input(TINY_INT64, {256});
  network(module, in);
  const std::vector<tiny::Tensor> parameters = module.parameters();
  ASSERT_EQ(parameters.size(), 6U);
  tiny::Optimizer optimizer(context_, TINY_OPTIMIZER_KIND_ADAM, parameters);
  optimizer.set("lr", 0.02);
  const tiny::Tensor loss = cross_entropy(network(module, in), wanted);
  optimizer.step(tiny::gradient(loss, parameters));
  std::vector<tiny::Tensor> outputs{loss};
  outputs.insert(outputs.end(), parameters.begin(), parameters.end());
  tiny::Run run(tiny::Program(std::vector{in, wanted}, outputs));
  tiny::Loader loader(std::vector{x, y}, 256, 1, TINY_FLAG_SHUFFLE);
  float first = 0, last = 0;
  for (int epoch = 0; epoch < 200; ++epoch) {
    ASSERT_EQ(loader.next(), 256);
    run.execute(std::vector{loader[0], loader[1]});
    last = run.output(0).item<float>();
    if (epoch == 0) first = last;
    ASSERT_EQ(loader.next(), 0);
  }
  EXPECT_LT(last, first / 3);

  module.set_training(false);
  const Floats logits = network(module, x).read<float>();
  const std::string folder = ::testing::TempDir() + "wrapper_test";
  std::filesystem::create_directories(folder);
  module.state().save(folder + "/state.safetensors");
  tiny::Module other(context_, 2);
  other.set_training(false);
  network(other, x);
  other.state().assign(tiny::Archive::load(context_, folder + "/state.safetensors"));
  EXPECT_EQ(network(other, x).read<float>(), logits);

  tiny::export_onnx({in}, {network(module, in)}, folder + "/model.onnx");
  const tiny::Model model(context_, folder + "/model.onnx");
  const Floats imported = model.run(std::vector{x}).at(0).read<float>();
  for (size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(imported[i], logits[i], 1e-4);
  EXPECT_EQ((model.apply(std::vector{x}).at(0) + 1).shape(), (tiny::Shape{256, 2}));
  std::filesystem::remove_all(folder);
}

}  // namespace
