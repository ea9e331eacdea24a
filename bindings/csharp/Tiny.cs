// What C# users expect beside the header's functions: exceptions, arrays in and out, operators.
using System;
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

/// <summary>The pointers of several tensors, each held until the call returns.</summary>
internal sealed class Handles : IDisposable {
  internal readonly IntPtr[] Pointers;
  readonly Tensor[] tensors;
  int held;

  internal Handles(Tensor[] tensors) {
    if (tensors == null) throw new ArgumentNullException("tensors");
    this.tensors = tensors;
    Pointers = new IntPtr[tensors.Length];
    for (; held < tensors.Length; ++held) {
      if (tensors[held] == null) continue;
      bool added = false;
      tensors[held].handle.DangerousAddRef(ref added);
      Pointers[held] = tensors[held].handle.DangerousGetHandle();
    }
  }

  internal ulong Count { get { return (ulong)Pointers.Length; } }

  public void Dispose() {
    while (held > 0)
      if (tensors[--held] != null) tensors[held].handle.DangerousRelease();
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

public sealed partial class Tensor {
  static readonly Deleter Unpin = user => GCHandle.FromIntPtr(user).Free();

  static Dtype DtypeOf(Type element) {
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
  /// </summary>
  public static Tensor Wrap(Context context, Array data, long[] dims, long[] strides = null,
                            long first = 0) {
    Dtype dtype = DtypeOf(data.GetType().GetElementType());
    ulong count = Memory.Count(dims, strides);
    long lowest = first, highest = first, step = 1;
    for (int axis = dims.Length - 1; axis >= 0; step *= Math.Max(dims[axis], 1), --axis) {
      long reach = checked((strides == null ? step : strides[axis]) * Math.Max(dims[axis] - 1, 0));
      if (reach < 0) lowest = checked(lowest + reach);
      else highest = checked(highest + reach);
    }
    if (Array.IndexOf(dims, 0L) < 0 && (lowest < 0 || highest >= data.LongLength))
      throw new ArgumentException("elements " + lowest + ".." + highest + " of an array of " +
                                  data.LongLength);
    GCHandle pin = GCHandle.Alloc(data, GCHandleType.Pinned);
    TensorHandle made;
    try {
      var address = new IntPtr(pin.AddrOfPinnedObject().ToInt64() +
                               first * (long)Raw.tiny_dtype_size((int)dtype));
      Raw.tiny_tensor_wrap(context.handle, (int)dtype, dims, strides, count, address, Unpin,
                           GCHandle.ToIntPtr(pin), out made);
    } catch {
      pin.Free();
      throw;
    }
    return new Tensor(made, context);
  }

  /// <summary>The elements, computed and copied row-major.</summary>
  public T[] ToArray<T>() where T : struct {
    if (DtypeOf(typeof(T)) != Dtype)
      throw new ArgumentException("elements are " + Dtype + ", not " + typeof(T));
    var elements = new T[Numel];
    Read(elements);
    return elements;
  }

  Tensor Scalar(double value) { return Context.ScalarFloat(value); }

  public static Tensor operator +(Tensor a, Tensor b) { return a.Add(b); }
  public static Tensor operator -(Tensor a, Tensor b) { return a.Sub(b); }
  public static Tensor operator *(Tensor a, Tensor b) { return a.Mul(b); }
  public static Tensor operator /(Tensor a, Tensor b) { return a.Div(b); }
  public static Tensor operator -(Tensor a) { return a.Neg(); }
  public static Tensor operator +(Tensor a, double b) { return a.Add(a.Scalar(b)); }
  public static Tensor operator -(Tensor a, double b) { return a.Sub(a.Scalar(b)); }
  public static Tensor operator *(Tensor a, double b) { return a.Mul(a.Scalar(b)); }
  public static Tensor operator /(Tensor a, double b) { return a.Div(a.Scalar(b)); }
  public static Tensor operator +(double a, Tensor b) { return b.Scalar(a).Add(b); }
  public static Tensor operator -(double a, Tensor b) { return b.Scalar(a).Sub(b); }
  public static Tensor operator *(double a, Tensor b) { return b.Scalar(a).Mul(b); }
  public static Tensor operator /(double a, Tensor b) { return b.Scalar(a).Div(b); }
}

}  // namespace Tiny
