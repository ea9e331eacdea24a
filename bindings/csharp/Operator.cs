// Operators whose functions are delegates, for graphs and for ONNX models.
using System;
using System.Runtime.InteropServices;

namespace Tiny {

/// <summary>What a tensor is without its elements.  A dimension that runs bind is a number to be passed
/// on as it is.</summary>
public sealed class Spec {
  public readonly Dtype Dtype;
  public readonly long[] Shape;
  public Spec(Dtype dtype, long[] shape) {
    Dtype = dtype;
    Shape = shape;
  }
}

/// <summary>The dtypes and shapes of the first count outputs; an input that is left out is null.</summary>
public delegate Spec[] Infer(string attributes, Spec[] inputs, int count);
/// <summary>Computes the outputs of a call; of a gradient: its inputs are those of the operator, then its outputs,
/// then what reached each output, null where nothing did; its outputs are the gradients of those inputs that are
/// floats.</summary>
public delegate void RunOperator(OperatorCall call);

/// <summary>One call of an operator while it runs; of no use afterwards.</summary>
public sealed class OperatorCall {
  readonly IntPtr call;
  internal OperatorCall(IntPtr call) { this.call = call; }

  /// <summary>A JSON object.</summary>
  public string Attributes { get { return Raw.call_attributes(call); } }
  public int Inputs { get { return Raw.call_inputs(call); } }
  public int Outputs { get { return Raw.call_outputs(call); } }
  /// <summary>Null for an input that is left out.</summary>
  public Spec Input(int index) { return SpecOf(call, 0, index); }
  public Spec Output(int index) { return SpecOf(call, 1, index); }

  /// <summary>A copy of an input's elements, row-major.</summary>
  public T[] Read<T>(int index) where T : struct {
    var elements = new T[CountOf(Input(index), typeof(T))];
    Copy(Raw.call_data(call, 0, index), elements, false);
    return elements;
  }

  /// <summary>All elements of an output, row-major.</summary>
  public void Write<T>(int index, T[] elements) where T : struct {
    long count = CountOf(Output(index), typeof(T));
    if (elements.Length != count)
      throw new ArgumentException("output " + index + " has " + count + " elements, not " + elements.Length);
    Copy(Raw.call_data(call, 1, index), elements, true);
  }

  static long CountOf(Spec spec, Type type) {
    if (spec == null) throw new ArgumentException("there is no such value");
    if (Tensor.DtypeOf(type) != spec.Dtype)
      throw new ArgumentException("elements are " + spec.Dtype + ", not " + type);
    long count = 1;
    foreach (long dim in spec.Shape) count *= dim;
    return count;
  }

  static void Copy(IntPtr memory, Array elements, bool isWritten) {
    int count = Buffer.ByteLength(elements);
    if (count == 0) return;
    var bytes = new byte[count];
    if (isWritten) {
      Buffer.BlockCopy(elements, 0, bytes, 0, count);
      Marshal.Copy(bytes, 0, memory, count);
    } else {
      Marshal.Copy(memory, bytes, 0, count);
      Buffer.BlockCopy(bytes, 0, elements, 0, count);
    }
  }

  internal static Spec SpecOf(IntPtr call, int ofOutput, int index) {
    int dtype = Raw.call_dtype(call, ofOutput, index);
    if (dtype == 0) return null;
    var shape = new long[Raw.call_rank(call, ofOutput, index)];
    for (int axis = 0; axis < shape.Length; ++axis) shape[axis] = Raw.call_dim(call, ofOutput, index, axis);
    return new Spec((Dtype)dtype, shape);
  }
}

public sealed partial class Context {
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
  delegate int CallFunction(IntPtr user, IntPtr call);

  // Static: what the library holds of them must outlive every object.
  static readonly CallFunction callInfer = (user, call) => Guarded(call, () => {
    var inputs = new Spec[Raw.call_inputs(call)];
    for (int i = 0; i < inputs.Length; ++i) inputs[i] = OperatorCall.SpecOf(call, 0, i);
    int count = Raw.call_outputs(call);
    Spec[] outputs = Functions(user).Item1(Raw.call_attributes(call), inputs, count);
    for (int i = 0; i < count && i < outputs.Length; ++i)
      Raw.call_set_output(call, i, (int)outputs[i].Dtype, outputs[i].Shape, outputs[i].Shape.Length);
  });
  static readonly CallFunction callRun =
      (user, call) => Guarded(call, () => Functions(user).Item2(new OperatorCall(call)));
  static readonly CallFunction callGradient =
      (user, call) => Guarded(call, () => Functions(user).Item3(new OperatorCall(call)));
  static readonly Deleter dropFunctions = user => GCHandle.FromIntPtr(user).Free();

  static Tuple<Infer, RunOperator, RunOperator> Functions(IntPtr user) {
    return (Tuple<Infer, RunOperator, RunOperator>)GCHandle.FromIntPtr(user).Target;
  }

  static int Guarded(IntPtr call, Action action) {
    try {
      action();
      return 0;
    } catch (TinyException error) {
      Raw.call_set_error(call, error.Message);
      return (int)error.Status;
    } catch (Exception error) {
      Raw.call_set_error(call, error.GetType().Name + ": " + error.Message);
      return (int)Status.ErrorInvalidArgument;
    }
  }

  /// <summary>From now on graphs (Op) and models of this context know the operator.  `infer` is called while
  /// graphs are built, `run` at each execution, on the thread that executes, maybe on several at once; neither may
  /// use the context.  The message of an exception is that of the call that builds or executes.  Without `gradient`
  /// nothing can be differentiated through it.</summary>
  public void AddOperator(string domain, string name, Infer infer, RunOperator run, RunOperator gradient = null) {
    if (infer == null || run == null) throw new ArgumentNullException("infer or run");
    IntPtr user = GCHandle.ToIntPtr(GCHandle.Alloc(Tuple.Create(infer, run, gradient)));
    Raw.context_add_operator(handle, domain, name, Marshal.GetFunctionPointerForDelegate(callInfer),
                             Marshal.GetFunctionPointerForDelegate(callRun),
                             gradient == null ? IntPtr.Zero : Marshal.GetFunctionPointerForDelegate(callGradient),
                             Marshal.GetFunctionPointerForDelegate(dropFunctions), user);
  }
}

}  // namespace Tiny
