// Gives an imported model a new last layer, which learns what the model was not made for.
//
//   finetune.exe MODEL DATA_DIR
//
// MODEL is samples/fashion/fashion.onnx after samples/python/add_features.py: its outputs are ten
// probabilities, and the features that its last layer makes them of.  DATA_DIR holds Fashion-MNIST
// (Debian's package dataset-fashion-mnist puts it in /usr/share/datasets/fashion-mnist).  The model
// has only seen clothes the right way up; here they stand on their heads.  Prints the accuracy of the
// model as it is, and with a new last layer that has learnt from 2,000 such pictures; all other layers
// stay as they are.  Exit status: 0 done, 1 something failed, 2 wrong usage.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using Tiny;

static class FineTune {
  const long Batch = 100, Side = 28, Classes = 10, Pictures = 2000, Epochs = 5;

  /// <summary>The first pictures of a file, upside down, and their classes.</summary>
  static Tensor[] Data(Context context, string folder, string name) {
    Tensor pictures = Tensor.Load(context, folder + "/" + name + "-images-idx3-ubyte.gz");
    Tensor labels = Tensor.Load(context, folder + "/" + name + "-labels-idx1-ubyte.gz");
    return new[] {pictures.Slice(new long[] {0, 0, 0}, new[] {Pictures, Side, Side}).Flip(new long[] {1}),
                  labels.Slice(new long[] {0}, new[] {Pictures})};
  }

  /// <summary>One execution for each batch of an epoch: what output 0 is each time.</summary>
  static IEnumerable<Tensor> Epoch(Run run, Loader loader) {
    while (loader.Next() > 0) {
      run.SetInput(0, loader.Tensor(0));
      run.SetInput(1, loader.Tensor(1));
      run.Execute();
      yield return run.OutputTensor(0);
    }
  }

  static double Accuracy(Tensor x, Tensor y, Tensor scores, Loader loader) {
    Tensor right = scores.Argmax(1).Eq(y.Cast(Dtype.Int64)).Cast(Dtype.Int64).Sum();
    using (Run run = Run.Create(Program.Compile(new[] {x, y}, new[] {right})))
      return Epoch(run, loader).Sum(hits => hits.ToArray<long>()[0]) / (double)Pictures;
  }

  static void Train(string path, string folder) {
    using (var context = new Context())
    using (Loader training = Loader.Create(Data(context, folder, "train"), Batch, 1, 2, shuffle: true))
    using (Loader testing = Loader.Create(Data(context, folder, "t10k"), Batch, 1, 2)) {
      // The model becomes a part of the graph: its outputs are functions of x like any other.
      Model model = Model.Load(context, path);
      Tensor x = context.Input(Dtype.Uint8, new[] {Batch, Side, Side});
      Tensor y = context.Input(Dtype.Uint8, new[] {Batch});
      Tensor[] outputs = model.Apply(new[] {x}, 2);
      Tensor shares = outputs[0], features = outputs[1];
      Console.WriteLine("before: accuracy " + Text(Accuracy(x, y, shares, testing)));

      // A new last layer.  Its parameters alone are given to the optimiser: the model is frozen.
      Module module = Module.Create(context, 1);
      Tensor logits = module.Linear("head", features, Classes);
      Tensor[] parameters = {module.ParameterAt(0), module.ParameterAt(1)};
      Optimizer optimizer = Optimizer.Create(context, OptimizerKind.Adam);
      optimizer.Add(parameters);
      optimizer.Set(0, "lr", 3e-3);

      // A step, the model's features included, is one program; it writes the parameters.
      Tensor loss = logits.CrossEntropy(y.Cast(Dtype.Int64));
      optimizer.Step(Library.Gradient(new[] {loss}, parameters));
      using (Run step = Run.Create(Program.Compile(new[] {x, y}, new[] {loss, parameters[0], parameters[1]})))
        for (long epoch = 1; epoch <= Epochs; ++epoch)
          Console.WriteLine("epoch " + epoch + ": loss " +
                            Text(Epoch(step, training).Average(value => value.ToArray<float>()[0])));
      Tensor answer = module.Linear("head", features, Classes);
      Console.WriteLine("after: accuracy " + Text(Accuracy(x, y, answer, testing)));
    }
  }

  static string Text(double value) { return value.ToString("F4", CultureInfo.InvariantCulture); }

  static int Main(string[] arguments) {
    if (arguments.Length != 2) {
      Console.Error.WriteLine("usage: finetune.exe MODEL DATA_DIR");
      return 2;
    }
    try {
      Train(arguments[0], arguments[1]);
    } catch (TinyException error) {
      Console.Error.WriteLine("finetune: " + error.Message);
      return 1;
    }
    return 0;
  }
}
