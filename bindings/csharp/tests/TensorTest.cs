// The C# package end to end: memory in and out, operators, errors, lifetimes.
using System;
using System.Collections.Generic;
using System.IO;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;
using Tiny;

static class TensorTest {
  const long Far = (1L << 31) + 7;
  static int failures, checks;

  static void Check(bool held, string fact) {
    ++checks;
    if (held) return;
    ++failures;
    Console.WriteLine("FAILED: " + fact);
  }

  static void Same<T>(T[] got, T[] want, string fact) {
    Check(string.Join(" ", got) == string.Join(" ", want),
          fact + ": got " + string.Join(" ", got) + ", want " + string.Join(" ", want));
  }

  static T Throws<T>(Action call, string fact) where T : Exception {
    try {
      call();
    } catch (T error) {
      Check(true, fact);
      return error;
    }
    Check(false, fact);
    return null;
  }

  static void Arithmetic(Context context) {
    var a = Tensor.Of(context, new float[,] {{1, 2, 3}, {4, 5, 6}});
    var b = Tensor.Of(context, new float[] {10, 20, 30});
    var c = a + b;
    Same(c.Shape, new long[] {2, 3}, "the shape of a sum");
    Same(c.ToArray<float>(), new float[] {11, 22, 33, 14, 25, 36}, "two arrays are added");
    Same(c.Sum(new long[] {-1}).ToArray<float>(), new float[] {66, 75}, "rows are summed");
    Same(c.Sum(new long[] {1}, true).Shape, new long[] {2, 1}, "a summed axis is kept");
    Same(c.Sum().ToArray<float>(), new float[] {141}, "all is summed");
    Same(c.Sum(new long[0]).ToArray<float>(), c.ToArray<float>(), "no axes are no sum");
    Same((1.0 - a * 2.0).ToArray<float>(), new float[] {-1, -3, -5, -7, -9, -11}, "scalars");
    Same((1 - a * 2).ToArray<float>(), new float[] {-1, -3, -5, -7, -9, -11}, "whole scalars");
    Same((context.Arange(Dtype.Int32, 2) * 3).ToArray<int>(), new[] {0, 3}, "whole scalars keep integers");
    Same(Library.Concat(new[] {b, b}, 0).ToArray<float>(), new float[] {10, 20, 30, 10, 20, 30},
         "a list of tensors");
  }

  static void Windows(Context context) {
    var x = Tensor.Of(context, new float[] {1, 2, 3, 4, 5}, 1, 1, 5);
    var w = Tensor.Of(context, new float[] {1, 1, 1}, 1, 1, 3);
    Same(x.Conv(w).ToArray<float>(), new float[] {6, 9, 12}, "a convolution");
    var same = new Window(1) {AutoPadding = Padding.SameUpper, Strides = new long[] {2}};
    Same(x.Conv(w, null, same).ToArray<float>(), new float[] {3, 9, 9}, "a window");
    var last = new Window(1) {Padding = new long[] {1}, Layout = Layout.ChannelsLast};
    var turned = x.Permute(new long[] {0, 2, 1}).Conv(w.Permute(new long[] {0, 2, 1}), null, last);
    Same(turned.Shape, new long[] {1, 5, 1}, "channels last");
    Same(turned.ToArray<float>(), new float[] {3, 6, 9, 12, 9}, "channels last");
    var pairs = new Window(1) {Kernel = new long[] {2}, Strides = new long[] {2}};
    Same(x.MaxPool(pairs).ToArray<float>(), new float[] {2, 4}, "a pool");
    pairs.SetFlags(ceilMode: true);
    Same(x.MaxPool(pairs).ToArray<float>(), new float[] {2, 4, 5}, "a pool with flags");
    Same(x.Argmax(last: true, keepdims: true).Shape, new long[] {1, 1, 1}, "flags");
    Throws<TinyException>(() => { pairs.Groups = 0; }, "no groups");
  }

  static void Views(Context context) {
    var data = new float[] {1, 2, 3, 4};
    var reversed = Tensor.Wrap(context, data, new long[] {4}, new long[] {-1}, 3);
    Same(reversed.Strides, new long[] {-1}, "a negative stride");
    data[3] = 40;  // read when the tensor is computed
    var ones = Tensor.Of(context, new float[] {1, 1, 1, 1});
    Same((reversed + ones).ToArray<float>(), new float[] {41, 4, 3, 2}, "wrapped memory");
    Throws<TinyException>(() => Tensor.Wrap(context, data, new long[] {5}), "past the end");
    Throws<TinyException>(() => Tensor.Wrap(context, data, new long[] {4}, new long[] {-1}, 2),
                          "before the beginning");
    var kept = Tensor.Wrap(context, data, new long[] {4}, readOnly: true);
    kept.Assign(ones);
    Same(kept.ToArray<float>(), new float[] {1, 1, 1, 1}, "a write to read-only memory");
    Same(data, new float[] {1, 2, 3, 40}, "read-only memory");
    Same(Tensor.Of(context, new long[] {1, 2, 3}).Flip(new long[] {0}).ToArray<long>(),
         new long[] {3, 2, 1}, "flip");
  }

  static void Dimensions(Context context) {
    var far = Tensor.Of(context, new long[] {5}).Expand(new long[] {Far});
    Same(far.Shape, new long[] {Far}, "dimensions above 2^31");
    Check(far.Numel == Far, "element counts above 2^31");
    Same(far.Slice(new long[] {Far - 2}, new long[] {Far}).ToArray<long>(), new long[] {5, 5},
         "positions above 2^31");
    Throws<ArgumentException>(() => far.AsStrided(new long[] {1, 1}, new long[] {1}, 0),
                              "arrays of two lengths");
  }

  static void Operators(Context context) {
    var x = Tensor.Of(context, new float[] {3, 1, 4});
    var top = context.Op("TopK", 0, new[] {x, Tensor.Of(context, new long[] {2})}, 2, null, "{\"axis\": -1}");
    Same(top[0].ToArray<float>(), new float[] {4, 3}, "an operator's first output");
    Same(top[1].ToArray<long>(), new long[] {2, 0}, "its second");
    var clipped = context.Op("Clip", 0, new[] {x, null, context.ScalarFloat(2)}, 1);
    Same(clipped[0].ToArray<float>(), new float[] {2, 1, 2}, "an input that is left out");
    var error = Throws<TinyException>(() => context.Op("TopKK", 0, new[] {x}, 1), "no operator");
    Check(error.Status == Status.ErrorUnsupported, "its status");
  }

  static void OwnOperators(Context context) {
    context.AddOperator("test", "Reverse", (attributes, inputs, count) => new[] {inputs[0]}, call => {
      if (call.Attributes.Contains("fail")) throw new InvalidOperationException("as it was asked to");
      var elements = call.Read<float>(0);
      Array.Reverse(elements);
      call.Write(0, elements);
    });
    var x = Tensor.Of(context, new float[] {1, 2, 3});
    var reversed = context.Op("Reverse", 0, new[] {-x}, 1, "test");
    Same((reversed[0] + x).ToArray<float>(), new float[] {-2, 0, 2}, "an operator of delegates");
    var bad = context.Op("Reverse", 0, new[] {x}, 1, "test", "{\"fail\": 1}");
    var error = Throws<TinyException>(() => bad[0].ToArray<float>(), "its exception");
    Check(error.Message.Contains("as it was asked to"), "its message");
    Throws<TinyException>(() => Library.Gradient(new[] {reversed[0].Sum()}, new[] {x}), "no gradient");
    context.AddOperator("test", "Cube", (attributes, inputs, count) => new[] {inputs[0]}, call => {
      call.Write(0, Array.ConvertAll(call.Read<float>(0), v => v * v * v));
    }, call => {  // x, x^3, what reached it
      float[] of = call.Read<float>(0), reached = call.Read<float>(2);
      for (int i = 0; i < of.Length; ++i) of[i] *= 3 * of[i] * reached[i];
      call.Write(0, of);
    });
    var cubes = context.Op("Cube", 0, new[] {x}, 1, "test")[0];
    Same(Library.Gradient(new[] {cubes}, new[] {x}, new[] {x})[0].ToArray<float>(), new float[] {3, 24, 81},
         "a gradient of delegates");
    Throws<TinyException>(() => context.AddOperator("test", "Reverse", (a, i, n) => null, call => {}),
                          "a second of the name");
  }

  // A straight line that is found by steps of an optimiser, in a program.
  static void Training(Context context) {
    var x = context.RandomKey(1).RandomUniform(Dtype.Float32, new long[] {32});
    var y = x * 3.0 + 0.5;
    var slope = Tensor.Of(context, new float[] {0}).Reshape(new long[0]);
    var offset = Tensor.Of(context, new float[] {0}).Reshape(new long[0]);
    var optimizer = Optimizer.Create(context, OptimizerKind.Sgd);
    Check(optimizer.Add(new[] {slope, offset}) == 0, "the first group");
    optimizer.Set(0, "momentum", 0.9);
    optimizer.Set(0, "lr", 0.1);
    var input = context.Input(Dtype.Float32, new long[] {32});
    var wanted = context.Input(Dtype.Float32, new long[] {32});
    var error = slope * input + offset - wanted;
    var loss = (error * error).Mean();
    optimizer.Step(Library.Gradient(new[] {loss}, new[] {slope, offset}));
    var run = Run.Create(Program.Compile(new[] {input, wanted}, new[] {loss, slope, offset}));
    run.SetInput(0, x);
    run.SetInput(1, y);
    for (int i = 0; i < 300; ++i) run.Execute();
    Check(Math.Abs(slope.ToArray<float>()[0] - 3) < 1e-2 && Math.Abs(offset.ToArray<float>()[0] - 0.5) < 1e-2,
          "a line is found");
    Check(optimizer.StateName(1) == "momentum_buffer.0" && optimizer.StateCount() == 3, "what is kept");
    Throws<TinyException>(() => optimizer.Set(0, "momentun", 0.5), "no such setting");
    var none = context.RandomKey(7).Dropout(x, 1.0);
    Check(Array.TrueForAll(none.ToArray<float>(), v => v == 0), "all are dropped");
    var both = (slope * slope).Recompute(new[] {slope}) * slope.Detach();
    float at = slope.ToArray<float>()[0];
    Check(Math.Abs(Library.Gradient(new[] {both}, new[] {slope})[0].ToArray<float>()[0] - 2 * at * at) < 1e-4,
          "a slope past what is detached");
    var scaler = LossScaler.Create(context, 1024, 2);
    var scaled = Library.Gradient(new[] {scaler.Scale(slope * slope)}, new[] {slope});
    Check(Math.Abs(scaler.Unscale(scaled)[0].ToArray<float>()[0] - 2 * at) < 1e-4, "unscaled");
    Check(scaler.Skip().Cast(Dtype.Float32).ToArray<float>()[0] == 0, "nothing is skipped");
    var plateau = Plateau.Create(1, 0.5, 0, 0, 0, 0);
    Check(plateau.Next(1) == 1 && plateau.Next(1) == 0.5, "a rate that falls");
  }

  static void Layers(Context context) {
    var module = Module.Create(context, 1);
    var x = context.RandomKey(2).RandomNormal(Dtype.Float32, new long[] {4, 3});
    var first = module.Linear("fc", x, 2);
    Check(module.Linear("fc", x, 2).ToArray<float>().AsSpan().SequenceEqual<float>(first.ToArray<float>()), "the same layer");
    Check(module.ParameterCount == 2 && module.ParameterName(0) == "fc.weight", "names of parameters");
    module.Child("block").BatchNorm("bn", first).ToArray<float>();
    Check(module.State().Get("block.bn.num_batches_tracked").ToArray<long>()[0] == 1, "running statistics");
    Throws<TinyException>(() => module.Linear("fc", x, 5), "another shape");
    var numbers = Generator.Create(context, 7);
    var one = numbers.Next().RandomUniform(Dtype.Float32, new long[] {3}).ToArray<float>();
    Check(!one.AsSpan().SequenceEqual<float>(numbers.Next().RandomUniform(Dtype.Float32, new long[] {3}).ToArray<float>()),
          "keys move on");
  }

  static void Errors(Context context) {
    var a = Tensor.Of(context, new float[] {1, 2});
    var error = Throws<TinyException>(() => a.Reshape(new long[] {3}), "a wrong shape throws");
    Console.WriteLine("the engine says: " + error.Message);
    Check(error.Status == Status.ErrorShape && error.Message.Length > 0, "status and message");
    error = Throws<TinyException>(
        () => Tensor.FromData(context, Dtype.Float32, new long[] {2, 2}, new byte[15]), "bytes");
    Check(error.Status == Status.ErrorShape, "the status of a wrong size");
    Throws<TinyException>(() => Options.Create().SetInt("no_such_option", 1), "unknown options");
    Throws<ArgumentException>(() => a.ToArray<double>(), "the wrong element type");
    a.Dispose();
    Throws<ObjectDisposedException>(() => a.Neg(), "a disposed tensor");
  }

  static void Lifetimes() {
    Tensor kept;
    using (var context = new Context()) kept = Tensor.Of(context, new float[] {1, 2}) * 2.0;
    Same(kept.ToArray<float>(), new float[] {2, 4}, "a tensor outlives its context");
    var owner = new Context();
    var bytes = new byte[1 << 20];
    for (int i = 0; i < 300; ++i) {  // never disposed: the finaliser's thread releases them
      Tensor.FromData(owner, Dtype.Float32, new long[] {1 << 18}, bytes);
      if (i % 30 == 0) {
        GC.Collect();
        GC.WaitForPendingFinalizers();
      }
    }
    Check(System.Diagnostics.Process.GetCurrentProcess().WorkingSet64 < 250L << 20,
          "memory stays flat");
    var made = new List<Tensor>();
    for (int i = 0; i < 100; ++i) made.Add(Tensor.Of(owner, new float[] {i}) + 1.0);
    var thread = new Thread(() => made.ForEach(tensor => tensor.Dispose()));
    thread.Start();
    float sum = 0;
    for (int i = 0; i < 100; ++i) sum += (Tensor.Of(owner, new float[] {i}) + 2.0).ToArray<float>()[0];
    thread.Join();
    Check(sum == 5150, "another thread releases while this one builds");
  }

  static void Files(Context context) {
    string path = System.IO.Path.GetTempFileName() + ".safetensors";
    try {
      using (var archive = Archive.Create(context)) {
        archive.Set("a", Tensor.Of(context, new float[] {1, 2}));
        archive.Set("b", Tensor.Of(context, new long[] {Far}));
        archive.Save(path);
      }
      using (var archive = Archive.Load(context, path)) {
        Check(archive.Count == 2, "the number of a file's tensors");
        Same(archive.Get("a").ToArray<float>(), new float[] {1, 2}, "a tensor by name");
        Same(archive.Get("b").ToArray<long>(), new long[] {Far}, "another");
        var error = Throws<TinyException>(() => archive.Get("c"), "a name that is not there");
        Check(error.Message.Contains("known:"), "the names that are");
        using (var state = Archive.Create(context))
        using (var weight = Tensor.Of(context, new float[] {0, 0})) {
          state.Set("a", weight);
          Throws<TinyException>(() => state.Assign(archive), "a name that the state lacks");
          state.Assign(archive, partial: true);
          Same(weight.ToArray<float>(), new float[] {1, 2}, "a state that is put back");
        }
        archive.Remove("a");
        Check(archive.Count == 1, "a name that is gone");
      }
    } finally {
      System.IO.File.Delete(path);
    }
  }

  static void Batches(Context context) {
    using (var x = Tensor.Of(context, new float[] {0, 1, 2, 3, 4}))
    using (var loader = Loader.Create(new[] {x}, 2, 0, 1)) {
      var rows = new List<long>();
      for (long n; (n = loader.Next()) > 0;) rows.Add(n);
      Same(rows.ToArray(), new long[] {2, 2, 1}, "the batches of an epoch");
      loader.Seek(4, 2);
      loader.Next();
      Same(loader.Tensor(0).ToArray<float>(), new float[] {4}, "a batch");
    }
  }

  static void Dlpack(Context context) {
    var live = new HashSet<IntPtr>();
    using (var options = Options.Create()) {
      options.SetAllocator((bytes, alignment) => {
        IntPtr memory = IntPtr.Zero;
        Check(posix_memalign(out memory, (UIntPtr)alignment, (UIntPtr)bytes) == 0, "memory");
        lock (live) live.Add(memory);
        return memory;
      }, (memory, bytes, alignment) => {
        lock (live) live.Remove(memory);
        free(memory);
      });
      IntPtr managed;
      using (var owner = new Context(options))
      using (var whole = Tensor.Of(owner, new float[,] {{1, 2, 3}, {4, 5, 6}}))
      using (var lent = whole.Permute(new long[] {1, 0})) managed = lent.ToDlpack();
      GC.Collect();
      GC.WaitForPendingFinalizers();
      Check(live.Count == 1, "a struct keeps the memory");
      var taken = Tensor.FromDlpack(context, managed);
      Same(taken.Shape, new long[] {3, 2}, "the shape of a taken tensor");
      Same(taken.ToArray<float>(), new float[] {1, 4, 2, 5, 3, 6}, "strides and elements");
      taken.Dispose();
      Check(live.Count == 0, "and gives it back, once");
      using (var owner = new Context(options)) {
        managed = Tensor.Of(owner, new float[] {7}).ToDlpack();
        GC.Collect();
        GC.WaitForPendingFinalizers();
        Same(Tensor.FromDlpack(owner, Tensor.Of(owner, new long[] {Far}).ToDlpack()).ToArray<long>(),
             new long[] {Far}, "within a context");
        Tensor.ReleaseDlpack(managed);
        Tensor.ReleaseDlpack(IntPtr.Zero);
      }
    }
    var refused = Tensor.Of(context, new float[] {8}).ToDlpack();
    Marshal.WriteInt32(refused, 2);  // another version of the struct
    var error = Throws<TinyException>(() => Tensor.FromDlpack(context, refused), "a strange version");
    Check(error.Status == Status.ErrorUnsupported, "the status of a strange version");
    Tensor.ReleaseDlpack(refused);
    Throws<TinyException>(() => Tensor.FromDlpack(context, IntPtr.Zero), "no struct");
    Throws<TinyException>(() => context.ScalarFloat(1).ToDlpack(), "a scalar has no memory");
  }

  [DllImport("libc")]
  static extern int posix_memalign(out IntPtr memory, UIntPtr alignment, UIntPtr bytes);
  [DllImport("libc")]
  static extern void free(IntPtr memory);

  static void Arithmetics(Context context) {
    using (var n = Variable.Create(context, "N", 2, 64)) {
      Dim more = n + 1;
      Check(more.Range.Equals((3L, 65L)) && more.ToString().Contains("N"), "n + 1");
      Check(more - 1 == n && 2 * n == n + n && (n / 2).Range.Equals((1L, 32L)) && (n - n) == 0, "arithmetic");
      Check((n % 4).Range.min == 0 && more.Min(8).Range.Equals((3L, 8L)) && (-more).Range.Equals((-65L, -3L)), "more of it");
      var x = context.Input(Dtype.Float32, new long[] {n, 4});
      Check(x.Dims[0] == n && x.Dims[1] == 4, "dimensions of a tensor");
      var ones = context.Full(Dtype.Float32, new long[] {x.Dims[0] * 2 + 1}, 1);
      var run = Run.Create(Program.Compile(new[] {x}, new[] {ones}));
      run.SetInput(0, Tensor.Of(context, new float[3, 4]));
      run.Execute();
      Same(run.OutputShape(0), new long[] {7}, "the size of a run");
      Check(run.Dim(n * 5) == 15, "the value in a run");
      foreach (long wrong in new long[] {(long)more + 1, unchecked((long)more * 2), -(long)more, (long)more / 2}) {
        var error = Throws<TinyException>(() => context.Full(Dtype.Float32, new[] {wrong}, 1), "no dimension");
        Check(error.Message.Contains("no dimension of this context"), error.Message);
      }
    }
  }

  static void Variables(Context context) {
    using (var n = Variable.Create(context, "N", 2, 64)) {
      Check(n.Name == "N" && n.Range.min == 2 && n.Range.max == 64, "a variable's name and range");
      var x = context.Input(Dtype.Float32, new long[] {n, 2});
      Same(x.Shape, new long[] {n.Dim, 2}, "a variable among dimensions");
      var program = Program.Compile(new[] {x}, new[] {(x * 2.0).Sum(new long[] {0}), x / n, (n + 1) * x});
      var run = Run.Create(program);
      foreach (int rows in new[] {3, 64}) {
        var data = new float[rows, 2];
        for (int i = 0; i < rows; ++i) data[i, 1] = i;
        run.SetInput(0, Tensor.Of(context, data));
        run.Execute();
        Same(run.OutputTensor(0).ToArray<float>(), new float[] {0, rows * (rows - 1)}, "a run's size");
        Check(run.OutputTensor(1).ToArray<float>()[3] == 1.0f / rows, "a variable as a scalar");
        Check(run.OutputTensor(2).ToArray<float>()[3] == rows + 1, "a dimension as a scalar");
      }
      var error = Throws<TinyException>(() => run.SetVariable(n, 65), "out of its range");
      Check(error.Message.Contains("\"N\" is from 2 to 64; got 65"), "names and range: " + error.Message);
    }
  }

  static float Total(Options options) {
    using (var context = new Context(options))
      return context.Arange(Dtype.Float32, 1 << 10).Sum().ToArray<float>()[0];
  }

  static void Callbacks() {
    const float want = 1023 * 1024 / 2;
    string told = "";
    using (var options = Options.Create()) {
      options.SetInt("debug", 2);
      options.SetLog(text => { lock (options) told += text; });
      GC.Collect();  // nothing but the library refers to the delegate
      Check(Total(options) == want && told.EndsWith("\n"), "the log is told");
      int length = told.Length;
      options.SetLog(text => { throw new Exception("told by a log that throws"); });
      TextWriter before = Console.Error;
      var error = new StringWriter();
      Console.SetError(TextWriter.Synchronized(error));
      Check(Total(options) == want && told.Length == length, "a log that throws harms nothing");
      Console.SetError(before);
      Check(error.ToString().Contains("told by a log that throws"), "and is told of");
    }
    var live = new Dictionary<IntPtr, IntPtr>();
    using (var options = Options.Create()) {
      options.SetAllocator((bytes, alignment) => {
        IntPtr whole = Marshal.AllocHGlobal((IntPtr)(long)(bytes + alignment));
        long at = (whole.ToInt64() + (long)alignment - 1) / (long)alignment * (long)alignment;
        lock (live) live[(IntPtr)at] = whole;
        return (IntPtr)at;
      }, (memory, bytes, alignment) => {
        lock (live) {
          Marshal.FreeHGlobal(live[memory]);
          live.Remove(memory);
        }
      });
      using (var context = new Context(options)) {
        var kept = Tensor.Of(context, new float[] {1, 2});
        Check(live.Count == 1, "memory is the allocator's");
        kept.Dispose();
        Check(live.Count == 0, "and goes back");
      }
      Throws<ArgumentException>(() => options.SetAllocator(null, (memory, bytes, alignment) => {}), "one of two");
      options.SetAllocator((bytes, alignment) => { return IntPtr.Zero; }, (memory, bytes, alignment) => {});
      var error = Throws<TinyException>(() => Total(options), "no memory");
      Check(error.Status == Status.ErrorOutOfMemory, "the status of no memory");
    }
    var steps = new List<string>();
    using (var options = Options.Create()) {
      options.SetInt("cache", 0);
      options.SetProgress((what, done, total) => {
        steps.Add(what + " " + done + "/" + total);
        return steps.Count > 100;
      });
      Check(Total(options) == want && steps.Count > 1, "progress is told");
      Check(steps[0].StartsWith("compile ") && steps[0].EndsWith(" 0/" + (steps.Count - 1)),
            "as " + steps[0]);
      options.SetProgress((what, done, total) => true);
      var error = Throws<TinyException>(() => Total(options), "progress ends the call");
      Check(error.Status == Status.ErrorCancelled, "the status of an end");
      options.SetProgress(null);
      Check(Total(options) == want, "nobody is told");
    }
    int asked = 0;
    using (var options = Options.Create()) {
      options.SetPoll(() => ++asked > 4);
      using (var context = new Context(options)) {
        var a = context.Full(Dtype.Float32, new long[] {1 << 16, 1}, 0.5).Contiguous();
        var b = context.Full(Dtype.Float32, new long[] {1, 1 << 22}, 0.5).Contiguous();
        var error = Throws<TinyException>(() => a.Mul(b).Sum().ToArray<float>(), "poll ends the call");
        Check(error.Status == Status.ErrorCancelled && asked == 5, "in the middle of a kernel");
      }
    }
    ulong most = 0;
    using (var options = Options.Create()) {
      options.SetInt("threads", 3);
      options.SetThreadPool((task, count) => {
        most = Math.Max(most, count);
        var threads = new List<Thread>();
        for (ulong i = 0; i < count; ++i) {
          ulong index = i;
          threads.Add(new Thread(() => task(index)));
        }
        threads.ForEach(thread => thread.Start());
        threads.ForEach(thread => thread.Join());
      });
      using (var context = new Context(options)) {
        var a = context.Full(Dtype.Float32, new long[] {256, 256}, 2).Contiguous();
        Same(a.Matmul(a).Sum().ToArray<float>(), new float[] {256f * 256 * 256 * 4}, "a product");
      }
      Check(most > 1 && most <= 3, "the pool is asked for " + most + " tasks");
    }
  }

  // y = a * a + a of three floats.
  const string SmallModel = "CAg6RQoOCgFhCgFhEgFzIgNNdWwKDgoBcwoBYRIBeSIDQWRkEgFnWg8KAWESCgoICAESBAoCCANiDwoBeR" +
                            "IKCggIARIECgIIA0ICEA0=";

  static void Threads(Context context) {
    string path = Path.GetTempFileName();
    File.WriteAllBytes(path, Convert.FromBase64String(SmallModel));
    var model = Model.Load(context, path);
    File.Delete(path);
    int right = 0;
    var eight = new ParallelOptions {MaxDegreeOfParallelism = 8};
    Parallel.For(0, 200, eight, i => {
      using (var a = Tensor.Of(context, new float[] {i, 1, 2}))
      using (var y = model.Run(new[] {a}, 1)[0]) {
        var got = y.ToArray<float>();
        if (got[0] == (float)i * i + i && got[1] == 2 && got[2] == 6 && a.Shape[0] == 3)
          Interlocked.Increment(ref right);
      }
    });
    Check(right == 200, right + " of 200 runs of a model, on eight threads, are right");
    right = 0;
    var program = model.Compile(null);
    Parallel.For(0, 8, eight, i => {
      using (var run = Run.Create(program)) {
        float[] source = new float[3], target = new float[3];
        run.BindInput(0, source);
        run.BindOutput(0, target);
        for (int k = 0; k < 50; ++k) {
          source[1] = i + k;
          run.Execute();
          if (target[0] == 0 && target[1] == (i + k) * (i + k + 1)) Interlocked.Increment(ref right);
        }
      }
    });
    Check(right == 400, right + " of 400 bound runs, on eight threads, are right");
  }

  static void BoundMemory(Context context) {
    var x = context.Input(Dtype.Float32, new long[] {2});
    var run = Run.Create(Program.Compile(new[] {x}, new[] {x * 3.0}));
    float[] source = {1, 2}, target = new float[2];
    run.BindInput(0, source);
    run.BindOutput(0, target);
    run.Execute();
    Same(target, new float[] {3, 6}, "a run reads and writes arrays");
    source[0] = 5;
    GC.Collect();
    run.Execute();
    Same(target, new float[] {15, 6}, "and what changed there");
    var error = Throws<TinyException>(() => run.BindInput(0, new float[3]), "another size");
    Check(error.Message.Contains("has 8 bytes; got 12"), "which " + error.Message);
    run.BindInput(0, new float[] {7, 8});
    run.BindOutput(0, null);
    run.Execute();
    Same(target, new float[] {15, 6}, "memory that is not bound any more");
    Same(run.OutputTensor(0).ToArray<float>(), new float[] {21, 24}, "the run's own again");
  }

  // "threads" alone: one context and eight threads, and nothing else.
  static int Main(string[] arguments) {
    if (arguments.Length > 0 && arguments[0] != "threads") throw new ArgumentException(arguments[0]);
    using (var context = new Context()) {
      Threads(context);
      if (arguments.Length > 0) return Result();
      Arithmetic(context);
      Windows(context);
      Views(context);
      Dimensions(context);
      Operators(context);
      OwnOperators(context);
      Training(context);
    Layers(context);
      Errors(context);
      Files(context);
      Batches(context);
      Dlpack(context);
      Arithmetics(context);
      Variables(context);
      BoundMemory(context);
    }
    Lifetimes();
    Callbacks();
    return Result();
  }

  static int Result() {
    Console.WriteLine(checks - failures + " of " + checks + " facts hold");
    return failures == 0 && checks > 0 ? 0 : 1;
  }
}
