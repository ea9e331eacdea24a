// train_mlp - a small network learns to tell clothes apart, with tiny.hpp.
//
//   train_mlp DATA_DIR [EPOCHS]
//
// DATA_DIR holds Fashion-MNIST's four files (Debian's package dataset-fashion-mnist puts them in
// /usr/share/datasets/fashion-mnist).  Prints the accuracy on the test set after each epoch.  Exit
// status: 0 done, 1 something failed, 2 wrong usage.
#include <iostream>

#include "tiny.hpp"

namespace {

constexpr int64_t kBatch = 100, kSide = 28, kClasses = 10;

// Pictures [batch, 28, 28] of bytes; ten numbers for each, the greatest for its class.
tiny::Tensor network(const tiny::Module& m, const tiny::Tensor& pictures) {
  tiny::Tensor x = pictures.cast(TINY_FLOAT32) / 255;
  x = x.reshape({kBatch, kSide * kSide});
  x = relu(m.linear("fc1", x, 256));
  x = relu(m.linear("fc2", x, 128));
  return m.linear("fc3", x, kClasses);
}

// Pictures and their classes.
std::vector<tiny::Tensor> load(const tiny::Context& context, const std::string& folder,
                               const std::string& name) {
  return {context.load(folder + "/" + name + "-images-idx3-ubyte.gz"),
          context.load(folder + "/" + name + "-labels-idx1-ubyte.gz")};
}

void train(const std::string& folder, int epochs) {
  const tiny::Context context;
  tiny::Loader training(load(context, folder, "train"), kBatch, /*seed=*/1,
                        TINY_FLAG_SHUFFLE | TINY_FLAG_DROP_LAST);
  tiny::Loader testing(load(context, folder, "t10k"), kBatch, /*seed=*/1, TINY_FLAG_DROP_LAST);

  // The network is a function of its input.  It is built on what each run of a program is given.
  const tiny::Module module(context, /*seed=*/1);
  const tiny::Tensor x = context.input(TINY_UINT8, {kBatch, kSide, kSide});
  const tiny::Tensor y = context.input(TINY_UINT8, {kBatch});
  const tiny::Tensor classes = y.cast(TINY_INT64);
  network(module, x);  // makes the parameters
  const std::vector<tiny::Tensor> parameters = module.parameters();
  tiny::Optimizer optimizer(context, TINY_OPTIMIZER_KIND_ADAM, parameters);
  optimizer.set("lr", 1e-3);

  // What measures: how many of a batch are right.
  const tiny::Tensor found = network(module, x).argmax(1);
  const tiny::Tensor right = compare(TINY_EQ, found, classes).cast(TINY_INT64).sum();
  const std::vector<tiny::Tensor> inputs{x, y};
  tiny::Run measure(tiny::Program(inputs, std::vector{right}));

  // A step: the loss, its gradients and the parameters' new values, all in one program.
  const tiny::Tensor loss = cross_entropy(network(module, x), classes);
  optimizer.step(tiny::gradient(loss, parameters));
  std::vector<tiny::Tensor> written{loss};
  written.insert(written.end(), parameters.begin(), parameters.end());
  tiny::Run step(tiny::Program(inputs, written));

  for (int epoch = 1; epoch <= epochs; ++epoch) {
    double sum = 0;
    int64_t steps = 0, hits = 0, all = 0;
    for (; training.next() > 0; ++steps) {
      step.execute(std::vector{training[0], training[1]});
      sum += step.output(0).item<float>();
    }
    while (const int64_t rows = testing.next()) {
      measure.execute(std::vector{testing[0], testing[1]});
      hits += measure.output(0).item<int64_t>();
      all += rows;
    }
    std::cout << "epoch " << epoch << ": loss " << sum / static_cast<double>(steps) << ", accuracy "
              << static_cast<double>(hits) / static_cast<double>(all) << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::cerr << "usage: train_mlp DATA_DIR [EPOCHS]\n";
    return 2;
  }
  try {
    train(argv[1], argc > 2 ? std::stoi(argv[2]) : 1);
  } catch (const std::exception& error) {
    std::cerr << "train_mlp: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
