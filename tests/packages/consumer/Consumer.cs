// Prints the version and a sum.
using System;
using Tiny;

static class Consumer {
  static void Main() {
    using (var context = new Context()) {
      Tensor x = Tensor.Of(context, new float[] {1, 2, 3});
      Console.WriteLine(Library.Version());
      Console.WriteLine(x.Sum().ToArray<float>()[0]);
    }
  }
}
