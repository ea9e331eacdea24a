// What C# users expect beside the header's functions: exceptions, arrays in and out, operators.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace Tiny {

/// <summary>Gives wrapped memory back; called once, from any thread.</summary>
[UnmanagedFunctionPointer(CallingConvention.Cdecl)]
public delegate void Deleter(IntPtr user);

/// <summary>A call failed; the message is the engine's.</summary>
public sealed class TinyException : Exception {
  public readonly Status Status;
  public TinyException(Status status, string message) : base(message) { Status = status; }

  internal static void Check(int status) {
    if (status != 0) throw new TinyException((Status)status, Raw.tiny_last_error());
  }
}

/// <summary>An array that stays where it is while a call reads or fills it.</summary>
internal sealed class Pinned : IDisposable {
  internal readonly ulong Bytes;
  GCHandle pin;

  internal Pinned(Array array) {
    if (array == null) throw new ArgumentNullException("array");
    Bytes = (ulong)Buffer.ByteLength(array);
    pin = GCHandle.Alloc(array, GCHandleType.Pinned);
  }

  internal IntPtr Address { get { return pin.AddrOfPinnedObject(); } }
  public void Dispose() { pin.Free(); }
}

/// <summary>An array that stays where it is until nobody has this any more.</summary>
internal sealed class KeptInPlace {
  internal readonly ulong Bytes;
  internal readonly IntPtr Address;
  GCHandle pin;

  internal KeptInPlace(Array array) {
    Bytes = array == null ? 0 : (ulong)Buffer.ByteLength(array);
    pin = GCHandle.Alloc(array, GCHandleType.Pinned);
    Address = array == null ? IntPtr.Zero : pin.AddrOfPinnedObject();
  }

  ~KeptInPlace() { pin.Free(); }
}

/// <summary>The pointers of several objects, each held until the call returns.</summary>
internal sealed class Handles : IDisposable {
  internal readonly IntPtr[] Pointers;
  readonly SafeHandle[] handles;
  int held;

  Handles(SafeHandle[] handles) {
    this.handles = handles;
    Pointers = new IntPtr[handles.Length];
    for (; held < handles.Length; ++held) {
      if (handles[held] == null) continue;
      bool added = false;
      handles[held].DangerousAddRef(ref added);
      Pointers[held] = handles[held].DangerousGetHandle();
    }
  }

  internal static Handles Of<T>(string name, T[] objects, Converter<T, SafeHandle> handle) where T : class {
    if (objects == null) throw new ArgumentNullException(name);
    return new Handles(Array.ConvertAll(objects, one => one == null ? null : handle(one)));
  }

  internal ulong Count { get { return (ulong)Pointers.Length; } }

  public void Dispose() {
    while (held > 0)
      if (handles[--held] != null) handles[held].DangerousRelease();
  }
}

internal static class Memory {
  /// <summary>How many numbers a list is first given room for.</summary>
  internal const int Guess = 16;

  /// <summary>The length that the arrays share; null ones have none.</summary>
  internal static ulong Count(params long[][] arrays) {
    long[] first = Array.Find(arrays, array => array != null);
    foreach (long[] array in arrays)
      if (array != null && array.Length != first.Length)
        throw new ArgumentException("arrays of one length are wanted, not " + first.Length +
                                    " and " + array.Length);
    return first == null ? 0 : (ulong)first.Length;
  }

  internal static T[] Cut<T>(T[] values, ulong count) {
    Array.Resize(ref values, (int)count);
    return values;
  }

  internal static T First<T>(T[] values) where T : class {
    return values == null || values.Length == 0 ? null : values[0];
  }
}

/// <summary>Gives the address of memory, aligned to a power of two, or zero if there is none.</summary>
public delegate IntPtr Allocate(ulong bytes, ulong alignment);
public delegate void Release(IntPtr memory, ulong bytes, ulong alignment);
/// <summary>Calls task(i) once for each i below count, on any threads, and returns when all have
/// returned.</summary>
public delegate void RunTasks(Action<ulong> task, ulong count);

/// <summary>Told that done of total steps of the work are done; true ends it.</summary>
public delegate bool Progress(string what, long done, long total);

/// <summary>Delegates are called from any thread, and may not use the context that calls them.  An
/// exception in one has nobody to catch it: it is written to Console.Error.  Each is kept for as long
/// as something made with the options may call it.</summary>
public sealed partial class Options {
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
  delegate void LogFunction(IntPtr user, IntPtr text);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
  delegate IntPtr AllocateFunction(IntPtr user, UIntPtr bytes, UIntPtr alignment);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
  delegate void ReleaseFunction(IntPtr user, IntPtr memory, UIntPtr bytes, UIntPtr alignment);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
  delegate int ProgressFunction(IntPtr user, IntPtr what, long done, long total);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
  delegate int PollFunction(IntPtr user);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
  delegate void TaskFunction(IntPtr data, UIntPtr index);
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
  delegate void RunFunction(IntPtr user, IntPtr task, IntPtr data, UIntPtr count);

  // Static: what the library holds of them must outlive every object.
  static readonly Deleter drop = user => GCHandle.FromIntPtr(user).Free();
  static readonly LogFunction callLog = (user, text) => Guard(
      () => ((Action<string>)Kept(user))(Marshal.PtrToStringAnsi(text)));
  static readonly ProgressFunction callProgress = (user, what, done, total) => {
    bool ends = true;
    Guard(() => ends = ((Progress)Kept(user))(Marshal.PtrToStringAnsi(what), done, total));
    return ends ? 1 : 0;
  };
  static readonly PollFunction callPoll = user => {
    bool ends = true;
    Guard(() => ends = ((Func<bool>)Kept(user))());
    return ends ? 1 : 0;
  };
  static readonly AllocateFunction callAllocate = (user, bytes, alignment) => {
    IntPtr memory = IntPtr.Zero;
    Guard(() => memory = ((Tuple<Allocate, Release>)Kept(user)).Item1((ulong)bytes, (ulong)alignment));
    return memory;
  };
  static readonly ReleaseFunction callRelease = (user, memory, bytes, alignment) => Guard(
      () => ((Tuple<Allocate, Release>)Kept(user)).Item2(memory, (ulong)bytes, (ulong)alignment));
  static readonly RunFunction callRun = (user, task, data, count) => Guard(() => {
    var call = (TaskFunction)Marshal.GetDelegateForFunctionPointer(task, typeof(TaskFunction));
    ((RunTasks)Kept(user))(index => call(data, (UIntPtr)index), (ulong)count);
  });

  static object Kept(IntPtr user) { return GCHandle.FromIntPtr(user).Target; }

  static void Guard(Action action) {
    try {
      action();
    } catch (Exception error) {
      Console.Error.WriteLine(error);
    }
  }

  /// <summary>What the library passes to the functions: the object, kept until nothing calls.</summary>
  IntPtr Keep(object kept) {
    IntPtr user = GCHandle.ToIntPtr(GCHandle.Alloc(kept));
    try {
      Raw.options_add_deleter(handle, Marshal.GetFunctionPointerForDelegate(drop), user);
    } catch {
      GCHandle.FromIntPtr(user).Free();
      throw;
    }
    return user;
  }

  /// <summary>What "debug" asks for goes there, whole lines, instead of to stderr; null: to stderr
  /// again.</summary>
  public void SetLog(Action<string> log) {
    if (log == null) Raw.options_set_log(handle, IntPtr.Zero, IntPtr.Zero);
    else Raw.options_set_log(handle, Marshal.GetFunctionPointerForDelegate(callLog), Keep(log));
  }

  /// <summary>Called between kernels that are compiled and candidates that a search tries, by the
  /// thread that builds; true, or an exception, ends the call with Status.ErrorCancelled.  Null: nobody
  /// is told again.</summary>
  public void SetProgress(Progress progress) {
    if (progress == null) Raw.options_set_progress(handle, IntPtr.Zero, IntPtr.Zero);
    else Raw.options_set_progress(handle, Marshal.GetFunctionPointerForDelegate(callProgress), Keep(progress));
  }

  /// <summary>Called every few milliseconds in calls that build and in executions, by the thread that
  /// called; true, or an exception, ends the call with Status.ErrorCancelled, in the middle of kernels
  /// too.  Null: nobody is asked.</summary>
  public void SetPoll(Func<bool> poll) {
    if (poll == null) Raw.options_set_poll(handle, IntPtr.Zero, IntPtr.Zero);
    else Raw.options_set_poll(handle, Marshal.GetFunctionPointerForDelegate(callPoll), Keep(poll));
  }

  /// <summary>Memory of tensors comes from the one and goes back to the other; both null: the
  /// library's own again.</summary>
  public void SetAllocator(Allocate allocate, Release release) {
    if ((allocate == null) != (release == null))
      throw new ArgumentException("allocate and release go together");
    if (allocate == null)
      Raw.options_set_allocator(handle, IntPtr.Zero, IntPtr.Zero, IntPtr.Zero);
    else
      Raw.options_set_allocator(handle, Marshal.GetFunctionPointerForDelegate(callAllocate),
                                Marshal.GetFunctionPointerForDelegate(callRelease),
                                Keep(Tuple.Create(allocate, release)));
  }

  /// <summary>Kernels that are split run there, at most as many tasks at once as the option "threads"
  /// says; null: on the library's own threads again.</summary>
  public void SetThreadPool(RunTasks run) {
    if (run == null) Raw.options_set_thread_pool(handle, IntPtr.Zero, IntPtr.Zero);
    else Raw.options_set_thread_pool(handle, Marshal.GetFunctionPointerForDelegate(callRun), Keep(run));
  }
}

public sealed partial class Context {
  /// <summary>A context with the default options.</summary>
  public Context() : this(Open(null)) {}
  public Context(Options options) : this(Open(options)) {}
  Context(ContextHandle handle) : this(handle, null) {}

  static ContextHandle Open(Options options) {
    ContextHandle made;
    Raw.tiny_context_create(Options.HandleOf(options), out made);
    return made;
  }
}

/// <summary>new Window(2) {Strides = new long[] {2, 2}, AutoPadding = Padding.SameUpper}</summary>
public sealed partial class Window {
  public Window(int axes) : this(Open(axes), null) {}

  static WindowHandle Open(int axes) {
    WindowHandle made;
    Raw.tiny_window_create((ulong)axes, out made);
    return made;
  }

  public long[] Kernel { set { SetKernel(value); } }
  public long[] Strides { set { SetStrides(value); } }
  public long[] Dilations { set { SetDilations(value); } }
  /// <summary>The same before and after each axis; SetPadding takes two.</summary>
  public long[] Padding { set { SetPadding(value, value); } }
  public Padding AutoPadding { set { SetAutoPadding(value); } }
  public long[] OutputPadding { set { SetOutputPadding(value); } }
  public long Groups { set { SetGroups(value); } }
  public Layout Layout { set { SetLayout(value); } }
}

/// <summary>A size, or one that every run of a program has its own of: n + 1, x.Dims[0] * 2.  Where longs are
/// taken for dimensions it stands for itself: new long[] {n + 1, 3}.  Comparisons are of dimensions, not of
/// values: equal ones are so for all values of the variables.</summary>
public struct Dim : IEquatable<Dim> {
  readonly Context context;  // none: a plain number
  readonly long number;

  internal Dim(Context context, long number) {
    this.context = context;
    this.number = number;
  }

  public static implicit operator Dim(long size) { return new Dim(null, size); }
  public static implicit operator Dim(Variable variable) { return new Dim(variable.Context, variable.Dim); }
  public static implicit operator long(Dim dim) { return dim.number; }

  static Dim Of(Dim a, Dim b, Func<Context, long> calculate) {
    Context context = a.context ?? b.context;
    if (context == null) throw new ArgumentException("a dimension of a context is wanted, not two numbers");
    return new Dim(context, calculate(context));
  }

  public static Dim operator +(Dim a, Dim b) { return Of(a, b, c => c.DimAdd(a.number, b.number)); }
  public static Dim operator -(Dim a, Dim b) { return Of(a, b, c => c.DimSub(a.number, b.number)); }
  public static Dim operator *(Dim a, Dim b) { return Of(a, b, c => c.DimMul(a.number, b.number)); }
  /// <summary>Rounds down.</summary>
  public static Dim operator /(Dim a, Dim b) { return Of(a, b, c => c.DimFloorDiv(a.number, b.number)); }
  public static Dim operator %(Dim a, Dim b) { return Of(a, b, c => c.DimFloorMod(a.number, b.number)); }
  public static Dim operator -(Dim a) { return 0 - a; }
  public Dim Min(Dim other) { Dim a = this; return Of(a, other, c => c.DimMin(a.number, other.number)); }
  public Dim Max(Dim other) { Dim a = this; return Of(a, other, c => c.DimMax(a.number, other.number)); }

  /// <summary>The lowest and the highest value.</summary>
  public (long min, long max) Range {
    get { return context == null ? (number, number) : context.DimRange(number); }
  }

  public static bool operator ==(Dim a, Dim b) { return a.number == b.number; }
  public static bool operator !=(Dim a, Dim b) { return a.number != b.number; }
  public bool Equals(Dim other) { return number == other.number; }
  public override bool Equals(object other) { return other is Dim && Equals((Dim)other); }
  public override int GetHashCode() { return number.GetHashCode(); }
  public override string ToString() {
    return context == null ? number.ToString() : context.DimText(number).Text();
  }
}

public sealed partial class Variable {
  /// <summary>The number that stands for it, for arrays of dimensions: new long[] {n, 3}.</summary>
  public static implicit operator long(Variable variable) { return variable.Dim; }

  public static Dim operator +(Variable a, Dim b) { return (Dim)a + b; }
  public static Dim operator +(Dim a, Variable b) { return a + (Dim)b; }
  public static Dim operator -(Variable a, Dim b) { return (Dim)a - b; }
  public static Dim operator -(Dim a, Variable b) { return a - (Dim)b; }
  public static Dim operator *(Variable a, Dim b) { return (Dim)a * b; }
  public static Dim operator *(Dim a, Variable b) { return a * (Dim)b; }
  public static Dim operator +(Variable a, Variable b) { return (Dim)a + (Dim)b; }
  public static Dim operator -(Variable a, Variable b) { return (Dim)a - (Dim)b; }
  public static Dim operator *(Variable a, Variable b) { return (Dim)a * (Dim)b; }
  public static Dim operator /(Variable a, Dim b) { return (Dim)a / b; }
  public static Dim operator %(Variable a, Dim b) { return (Dim)a % b; }
}

public sealed partial class Run {
  readonly Dictionary<ulong, KeptInPlace> inputs = new Dictionary<ulong, KeptInPlace>();
  readonly Dictionary<ulong, KeptInPlace> outputs = new Dictionary<ulong, KeptInPlace>();

  /// <summary>From now on executions read the input from the array, which has all its elements and is
  /// pinned until another is bound; what changes there need not be bound again.</summary>
  public void BindInput(ulong index, Array data) {
    if (data == null) throw new ArgumentNullException("data");
    var kept = new KeptInPlace(data);
    Raw.tiny_run_bind_input(handle, index, kept.Address, kept.Bytes);
    inputs[index] = kept;
  }

  /// <summary>From now on executions write the output into the array; null: into memory of the run's own
  /// again.</summary>
  public void BindOutput(ulong index, Array data) {
    var kept = new KeptInPlace(data);
    Raw.tiny_run_bind_output(handle, index, kept.Address, kept.Bytes);
    outputs[index] = kept;
  }
}

public sealed partial class Tensor {
  /// <summary>The shape, with what depends on variables as dimensions to calculate with.</summary>
  public Dim[] Dims {
    get { return Array.ConvertAll(Shape, size => new Dim(Context, size)); }
  }

  static readonly Deleter Unpin = user => GCHandle.FromIntPtr(user).Free();

  internal static Dtype DtypeOf(Type element) {
    switch (Type.GetTypeCode(element)) {
      case TypeCode.Boolean: return Dtype.Bool;
      case TypeCode.SByte: return Dtype.Int8;
      case TypeCode.Int16: return Dtype.Int16;
      case TypeCode.Int32: return Dtype.Int32;
      case TypeCode.Int64: return Dtype.Int64;
      case TypeCode.Byte: return Dtype.Uint8;
      case TypeCode.UInt16: return Dtype.Uint16;
      case TypeCode.UInt32: return Dtype.Uint32;
      case TypeCode.UInt64: return Dtype.Uint64;
      case TypeCode.Single: return Dtype.Float32;
      case TypeCode.Double: return Dtype.Float64;
      default: throw new ArgumentException("no dtype for elements of " + element);
    }
  }

  /// <summary>A copy of an array, in the array's own shape unless dims are given.</summary>
  public static Tensor Of(Context context, Array data, params long[] dims) {
    if (dims.Length == 0) {
      dims = new long[data.Rank];
      for (int axis = 0; axis < data.Rank; ++axis) dims[axis] = data.GetLongLength(axis);
    }
    return FromData(context, DtypeOf(data.GetType().GetElementType()), dims, data);
  }

  /// <summary>The array's own memory, pinned until no tensor needs it; element (i0, ..) is
  /// data[first + i0*strides[0] + ..].  The array must not change before the tensor is computed.
  /// An assignment is written there, but if it is readOnly: then the tensor gets memory of its own.
  /// </summary>
  public static Tensor Wrap(Context context, Array data, long[] dims, long[] strides = null,
                            long first = 0, bool readOnly = false) {
    Dtype dtype = DtypeOf(data.GetType().GetElementType());
    ulong count = Memory.Count(dims, strides);
    ulong bytes = (ulong)data.LongLength * Raw.tiny_dtype_size((int)dtype);
    GCHandle pin = GCHandle.Alloc(data, GCHandleType.Pinned);
    TensorHandle made;
    try {
      Raw.tiny_tensor_wrap(context.handle, (int)dtype, dims, strides, count,
                           pin.AddrOfPinnedObject(), bytes, first,
                           readOnly ? (uint)Raw.TINY_FLAG_READ_ONLY : 0, Unpin,
                           GCHandle.ToIntPtr(pin), out made);
    } catch {
      pin.Free();
      throw;
    }
    return new Tensor(made, context);
  }

  /// <summary>The tensor's memory, computed if need be, as the address of a DLPack struct
  /// (DLManagedTensorVersioned).  It is the caller's: it keeps the memory until one taker calls the
  /// struct's deleter, as FromDlpack's tensor does, or ReleaseDlpack gives it back.</summary>
  public IntPtr ToDlpack() {
    IntPtr managed;
    Raw.tensor_to_dlpack(handle, out managed);
    return managed;
  }

  /// <summary>A tensor of the memory of a DLPack struct, without a copy.  The struct is the tensor's
  /// from then on; if this throws it is still the caller's.</summary>
  public static Tensor FromDlpack(Context context, IntPtr managed) {
    if (context == null) throw new ArgumentNullException("context");
    TensorHandle made;
    Raw.tensor_from_dlpack(context.handle, managed, out made);
    return new Tensor(made, context);
  }

  /// <summary>Gives back what no taker has; zero is a no-op.</summary>
  public static void ReleaseDlpack(IntPtr managed) { Raw.dlpack_release(managed); }

  /// <summary>The elements, computed and copied row-major.</summary>
  public T[] ToArray<T>() where T : struct {
    if (DtypeOf(typeof(T)) != Dtype)
      throw new ArgumentException("elements are " + Dtype + ", not " + typeof(T));
    var elements = new T[Numel];
    Read(elements);
    return elements;
  }

  Tensor Scalar(double value) { return Context.ScalarFloat(value); }
  // Also of a Variable or Dim, which a double would not keep.
  Tensor Scalar(long value) { return Context.ScalarInt(value); }

  public static Tensor operator +(Tensor a, Tensor b) { return a.Add(b); }
  public static Tensor operator -(Tensor a, Tensor b) { return a.Sub(b); }
  public static Tensor operator *(Tensor a, Tensor b) { return a.Mul(b); }
  public static Tensor operator /(Tensor a, Tensor b) { return a.Div(b); }
  public static Tensor operator -(Tensor a) { return a.Neg(); }
  public static Tensor operator +(Tensor a, double b) { return a.Add(a.Scalar(b)); }
  public static Tensor operator -(Tensor a, double b) { return a.Sub(a.Scalar(b)); }
  public static Tensor operator *(Tensor a, double b) { return a.Mul(a.Scalar(b)); }
  public static Tensor operator /(Tensor a, double b) { return a.Div(a.Scalar(b)); }
  public static Tensor operator +(Tensor a, long b) { return a.Add(a.Scalar(b)); }
  public static Tensor operator -(Tensor a, long b) { return a.Sub(a.Scalar(b)); }
  public static Tensor operator *(Tensor a, long b) { return a.Mul(a.Scalar(b)); }
  public static Tensor operator /(Tensor a, long b) { return a.Div(a.Scalar(b)); }
  public static Tensor operator +(double a, Tensor b) { return b.Scalar(a).Add(b); }
  public static Tensor operator -(double a, Tensor b) { return b.Scalar(a).Sub(b); }
  public static Tensor operator *(double a, Tensor b) { return b.Scalar(a).Mul(b); }
  public static Tensor operator /(double a, Tensor b) { return b.Scalar(a).Div(b); }
  public static Tensor operator +(long a, Tensor b) { return b.Scalar(a).Add(b); }
  public static Tensor operator -(long a, Tensor b) { return b.Scalar(a).Sub(b); }
  public static Tensor operator *(long a, Tensor b) { return b.Scalar(a).Mul(b); }
  public static Tensor operator /(long a, Tensor b) { return b.Scalar(a).Div(b); }
}

}  // namespace Tiny
