// Made from include/tiny.h by bindings/generate.py: every call of the header.
#![allow(clippy::too_many_arguments, clippy::should_implement_trait)]

use crate::ffi;
use crate::support::{c_text, check, count, flags, mut_pointer, pointer, text, GUESS};
use crate::Result;
use std::ptr;

/// Any number is a valid value: a newer library may have more of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Status(pub i32);

impl Status {
    pub const OK: Status = Status(ffi::TINY_OK as i32);
    /// the caller's mistake; nothing changed
    pub const ERROR_INVALID_ARGUMENT: Status = Status(ffi::TINY_ERROR_INVALID_ARGUMENT as i32);
    /// shapes, axes or sizes that do not fit together
    pub const ERROR_SHAPE: Status = Status(ffi::TINY_ERROR_SHAPE as i32);
    /// an element type that the operation does not take
    pub const ERROR_DTYPE: Status = Status(ffi::TINY_ERROR_DTYPE as i32);
    /// a driver, compiler or launch failed
    pub const ERROR_DEVICE: Status = Status(ffi::TINY_ERROR_DEVICE as i32);
    /// valid, but this build, device or model feature is missing
    pub const ERROR_UNSUPPORTED: Status = Status(ffi::TINY_ERROR_UNSUPPORTED as i32);
    pub const ERROR_OUT_OF_MEMORY: Status = Status(ffi::TINY_ERROR_OUT_OF_MEMORY as i32);
    /// a model file that breaks its format
    pub const ERROR_INVALID_MODEL: Status = Status(ffi::TINY_ERROR_INVALID_MODEL as i32);
    /// a file could not be read or written
    pub const ERROR_IO: Status = Status(ffi::TINY_ERROR_IO as i32);
    /// a limit set by the caller was reached
    pub const ERROR_LIMIT: Status = Status(ffi::TINY_ERROR_LIMIT as i32);
    /// the cancel token was set
    pub const ERROR_CANCELLED: Status = Status(ffi::TINY_ERROR_CANCELLED as i32);
    /// another thread is using the object, or a call of its own is
    pub const ERROR_BUSY: Status = Status(ffi::TINY_ERROR_BUSY as i32);
    /// the device stopped, or stayed behind in a fork; release its context
    pub const ERROR_DEVICE_LOST: Status = Status(ffi::TINY_ERROR_DEVICE_LOST as i32);
    /// an index read from data was out of range
    pub const ERROR_INDEX: Status = Status(ffi::TINY_ERROR_INDEX as i32);
    /// a bug in libtiny; please report the message
    pub const ERROR_INTERNAL: Status = Status(ffi::TINY_ERROR_INTERNAL as i32);
}

/// Any number is a valid value: a newer library may have more of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Dtype(pub i32);

impl Dtype {
    /// one byte, 0 or 1
    pub const BOOL: Dtype = Dtype(ffi::TINY_BOOL as i32);
    pub const INT8: Dtype = Dtype(ffi::TINY_INT8 as i32);
    pub const INT16: Dtype = Dtype(ffi::TINY_INT16 as i32);
    pub const INT32: Dtype = Dtype(ffi::TINY_INT32 as i32);
    pub const INT64: Dtype = Dtype(ffi::TINY_INT64 as i32);
    pub const UINT8: Dtype = Dtype(ffi::TINY_UINT8 as i32);
    pub const UINT16: Dtype = Dtype(ffi::TINY_UINT16 as i32);
    pub const UINT32: Dtype = Dtype(ffi::TINY_UINT32 as i32);
    pub const UINT64: Dtype = Dtype(ffi::TINY_UINT64 as i32);
    pub const FLOAT16: Dtype = Dtype(ffi::TINY_FLOAT16 as i32);
    pub const BFLOAT16: Dtype = Dtype(ffi::TINY_BFLOAT16 as i32);
    pub const FLOAT32: Dtype = Dtype(ffi::TINY_FLOAT32 as i32);
    pub const FLOAT64: Dtype = Dtype(ffi::TINY_FLOAT64 as i32);
    /// of 8 bits: computed as float32 and rounded, beyond the greatest number to that
    pub const FLOAT8_E4M3FN: Dtype = Dtype(ffi::TINY_FLOAT8_E4M3FN as i32);
    pub const FLOAT8_E4M3FNUZ: Dtype = Dtype(ffi::TINY_FLOAT8_E4M3FNUZ as i32);
    pub const FLOAT8_E5M2: Dtype = Dtype(ffi::TINY_FLOAT8_E5M2 as i32);
    pub const FLOAT8_E5M2FNUZ: Dtype = Dtype(ffi::TINY_FLOAT8_E5M2FNUZ as i32);
    /// this and those below: for types that no tensor has yet (TINY_ERROR_UNSUPPORTED)
    pub const FLOAT8_E8M0: Dtype = Dtype(ffi::TINY_FLOAT8_E8M0 as i32);
    pub const FLOAT4_E2M1: Dtype = Dtype(ffi::TINY_FLOAT4_E2M1 as i32);
    pub const INT4: Dtype = Dtype(ffi::TINY_INT4 as i32);
    pub const UINT4: Dtype = Dtype(ffi::TINY_UINT4 as i32);
    pub const INT2: Dtype = Dtype(ffi::TINY_INT2 as i32);
    pub const UINT2: Dtype = Dtype(ffi::TINY_UINT2 as i32);
    /// two float32
    pub const COMPLEX64: Dtype = Dtype(ffi::TINY_COMPLEX64 as i32);
    pub const COMPLEX128: Dtype = Dtype(ffi::TINY_COMPLEX128 as i32);
    pub const STRING: Dtype = Dtype(ffi::TINY_STRING as i32);
}

/// Any number is a valid value: a newer library may have more of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UnaryOp(pub i32);

impl UnaryOp {
    pub const NEG: UnaryOp = UnaryOp(ffi::TINY_NEG as i32);
    pub const ABS: UnaryOp = UnaryOp(ffi::TINY_ABS as i32);
    /// logical on bool, bitwise on integers
    pub const NOT: UnaryOp = UnaryOp(ffi::TINY_NOT as i32);
    pub const SQRT: UnaryOp = UnaryOp(ffi::TINY_SQRT as i32);
    pub const FLOOR: UnaryOp = UnaryOp(ffi::TINY_FLOOR as i32);
    pub const CEIL: UnaryOp = UnaryOp(ffi::TINY_CEIL as i32);
    pub const TRUNC: UnaryOp = UnaryOp(ffi::TINY_TRUNC as i32);
    /// half to even
    pub const ROUND: UnaryOp = UnaryOp(ffi::TINY_ROUND as i32);
    pub const EXP: UnaryOp = UnaryOp(ffi::TINY_EXP as i32);
    pub const LOG: UnaryOp = UnaryOp(ffi::TINY_LOG as i32);
    pub const SIN: UnaryOp = UnaryOp(ffi::TINY_SIN as i32);
    pub const COS: UnaryOp = UnaryOp(ffi::TINY_COS as i32);
    pub const TANH: UnaryOp = UnaryOp(ffi::TINY_TANH as i32);
    pub const ERF: UnaryOp = UnaryOp(ffi::TINY_ERF as i32);
    pub const RECIPROCAL: UnaryOp = UnaryOp(ffi::TINY_RECIPROCAL as i32);
    pub const RSQRT: UnaryOp = UnaryOp(ffi::TINY_RSQRT as i32);
    pub const SIGMOID: UnaryOp = UnaryOp(ffi::TINY_SIGMOID as i32);
    pub const RELU: UnaryOp = UnaryOp(ffi::TINY_RELU as i32);
    /// NaN of NaN
    pub const SIGN: UnaryOp = UnaryOp(ffi::TINY_SIGN as i32);
    pub const SQUARE: UnaryOp = UnaryOp(ffi::TINY_SQUARE as i32);
    /// a * sigmoid(a)
    pub const SILU: UnaryOp = UnaryOp(ffi::TINY_SILU as i32);
    /// log(1 + exp(a))
    pub const SOFTPLUS: UnaryOp = UnaryOp(ffi::TINY_SOFTPLUS as i32);
    /// exp(a) - 1, exact near 0
    pub const EXPM1: UnaryOp = UnaryOp(ffi::TINY_EXPM1 as i32);
    /// log(1 + a), exact near 0
    pub const LOG1P: UnaryOp = UnaryOp(ffi::TINY_LOG1P as i32);
    /// a bool
    pub const IS_NAN: UnaryOp = UnaryOp(ffi::TINY_IS_NAN as i32);
}

/// Any number is a valid value: a newer library may have more of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BinaryOp(pub i32);

impl BinaryOp {
    pub const ADD: BinaryOp = BinaryOp(ffi::TINY_ADD as i32);
    pub const SUB: BinaryOp = BinaryOp(ffi::TINY_SUB as i32);
    pub const MUL: BinaryOp = BinaryOp(ffi::TINY_MUL as i32);
    /// true division; integers divide as float32
    pub const DIV: BinaryOp = BinaryOp(ffi::TINY_DIV as i32);
    /// rounds towards minus infinity; by 0: 0 for integers
    pub const FLOOR_DIV: BinaryOp = BinaryOp(ffi::TINY_FLOOR_DIV as i32);
    /// the sign of the divisor
    pub const FLOOR_MOD: BinaryOp = BinaryOp(ffi::TINY_FLOOR_MOD as i32);
    /// rounds towards zero
    pub const TRUNC_DIV: BinaryOp = BinaryOp(ffi::TINY_TRUNC_DIV as i32);
    /// the sign of the dividend
    pub const TRUNC_MOD: BinaryOp = BinaryOp(ffi::TINY_TRUNC_MOD as i32);
    pub const POW: BinaryOp = BinaryOp(ffi::TINY_POW as i32);
    /// NaN if either is NaN
    pub const MAX: BinaryOp = BinaryOp(ffi::TINY_MAX as i32);
    pub const MIN: BinaryOp = BinaryOp(ffi::TINY_MIN as i32);
    /// logical on bool, bitwise on integers
    pub const AND: BinaryOp = BinaryOp(ffi::TINY_AND as i32);
    pub const OR: BinaryOp = BinaryOp(ffi::TINY_OR as i32);
    pub const XOR: BinaryOp = BinaryOp(ffi::TINY_XOR as i32);
    pub const SHL: BinaryOp = BinaryOp(ffi::TINY_SHL as i32);
    /// arithmetic for signed integers
    pub const SHR: BinaryOp = BinaryOp(ffi::TINY_SHR as i32);
}

/// Any number is a valid value: a newer library may have more of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CompareOp(pub i32);

impl CompareOp {
    pub const LT: CompareOp = CompareOp(ffi::TINY_LT as i32);
    pub const LE: CompareOp = CompareOp(ffi::TINY_LE as i32);
    pub const GT: CompareOp = CompareOp(ffi::TINY_GT as i32);
    pub const GE: CompareOp = CompareOp(ffi::TINY_GE as i32);
    pub const EQ: CompareOp = CompareOp(ffi::TINY_EQ as i32);
    pub const NE: CompareOp = CompareOp(ffi::TINY_NE as i32);
}

/// Any number is a valid value: a newer library may have more of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReduceOp(pub i32);

impl ReduceOp {
    pub const SUM: ReduceOp = ReduceOp(ffi::TINY_SUM as i32);
    pub const PROD: ReduceOp = ReduceOp(ffi::TINY_PROD as i32);
    pub const REDUCE_MAX: ReduceOp = ReduceOp(ffi::TINY_REDUCE_MAX as i32);
    pub const REDUCE_MIN: ReduceOp = ReduceOp(ffi::TINY_REDUCE_MIN as i32);
    pub const MEAN: ReduceOp = ReduceOp(ffi::TINY_MEAN as i32);
    pub const ANY: ReduceOp = ReduceOp(ffi::TINY_ANY as i32);
    pub const ALL: ReduceOp = ReduceOp(ffi::TINY_ALL as i32);
    /// log(sum(exp(a))), without overflow
    pub const LOGSUMEXP: ReduceOp = ReduceOp(ffi::TINY_LOGSUMEXP as i32);
}

/// Any number is a valid value: a newer library may have more of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Movement(pub i32);

impl Movement {
    /// the dimensions
    pub const RESHAPE: Movement = Movement(ffi::TINY_MOVEMENT_RESHAPE as i32);
    /// axis k of the result is axis number\[k\]
    pub const PERMUTE: Movement = Movement(ffi::TINY_MOVEMENT_PERMUTE as i32);
    /// the dimensions; axes of size 1 are repeated
    pub const EXPAND: Movement = Movement(ffi::TINY_MOVEMENT_EXPAND as i32);
    /// how many zeros before each axis, then how many behind each
    pub const PAD: Movement = Movement(ffi::TINY_MOVEMENT_PAD as i32);
    /// where each axis begins, then where each ends
    pub const SHRINK: Movement = Movement(ffi::TINY_MOVEMENT_SHRINK as i32);
    /// the axes that are reversed
    pub const FLIP: Movement = Movement(ffi::TINY_MOVEMENT_FLIP as i32);
    /// of each axis every number\[k\]-th element, from its first; from its last if negative
    pub const STRIDE: Movement = Movement(ffi::TINY_MOVEMENT_STRIDE as i32);
    /// the dimensions, as many strides, and the offset, as tiny_as_strided takes them
    pub const AS_STRIDED: Movement = Movement(ffi::TINY_MOVEMENT_AS_STRIDED as i32);
}

/// Any number is a valid value: a newer library may have more of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Padding(pub i32);

impl Padding {
    /// what tiny_window_set_padding says; 0 unless it was called
    pub const EXPLICIT: Padding = Padding(ffi::TINY_PADDING_EXPLICIT as i32);
    /// so much that windows number size / stride, rounded up; what is odd goes after
    pub const SAME_UPPER: Padding = Padding(ffi::TINY_PADDING_SAME_UPPER as i32);
    /// the same; what is odd goes before
    pub const SAME_LOWER: Padding = Padding(ffi::TINY_PADDING_SAME_LOWER as i32);
    /// none
    pub const VALID: Padding = Padding(ffi::TINY_PADDING_VALID as i32);
}

/// Any number is a valid value: a newer library may have more of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Layout(pub i32);

impl Layout {
    /// \[batch, channels, spatial..\]
    pub const CHANNELS_FIRST: Layout = Layout(ffi::TINY_LAYOUT_CHANNELS_FIRST as i32);
    /// \[batch, spatial.., channels\]; weights \[.., kernel.., ..\], see tiny_conv
    pub const CHANNELS_LAST: Layout = Layout(ffi::TINY_LAYOUT_CHANNELS_LAST as i32);
}

/// Any number is a valid value: a newer library may have more of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reduction(pub i32);

impl Reduction {
    pub const MEAN: Reduction = Reduction(ffi::TINY_REDUCTION_MEAN as i32);
    pub const SUM: Reduction = Reduction(ffi::TINY_REDUCTION_SUM as i32);
    /// they stay as they are
    pub const NONE: Reduction = Reduction(ffi::TINY_REDUCTION_NONE as i32);
}

/// Any number is a valid value: a newer library may have more of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct OptimizerKind(pub i32);

impl OptimizerKind {
    pub const SGD: OptimizerKind = OptimizerKind(ffi::TINY_OPTIMIZER_KIND_SGD as i32);
    pub const ADAM: OptimizerKind = OptimizerKind(ffi::TINY_OPTIMIZER_KIND_ADAM as i32);
    pub const ADAMW: OptimizerKind = OptimizerKind(ffi::TINY_OPTIMIZER_KIND_ADAMW as i32);
    /// You et al. 2019
    pub const LAMB: OptimizerKind = OptimizerKind(ffi::TINY_OPTIMIZER_KIND_LAMB as i32);
    /// You et al. 2017
    pub const LARS: OptimizerKind = OptimizerKind(ffi::TINY_OPTIMIZER_KIND_LARS as i32);
    /// Jordan et al. 2024, in float32; parameters are matrices, or become them
    pub const MUON: OptimizerKind = OptimizerKind(ffi::TINY_OPTIMIZER_KIND_MUON as i32);
    pub const RMSPROP: OptimizerKind = OptimizerKind(ffi::TINY_OPTIMIZER_KIND_RMSPROP as i32);
    pub const ADAGRAD: OptimizerKind = OptimizerKind(ffi::TINY_OPTIMIZER_KIND_ADAGRAD as i32);
}

/// Any number is a valid value: a newer library may have more of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Initial(pub i32);

impl Initial {
    /// a
    pub const CONSTANT: Initial = Initial(ffi::TINY_INITIAL_CONSTANT as i32);
    /// from a to b
    pub const UNIFORM: Initial = Initial(ffi::TINY_INITIAL_UNIFORM as i32);
    /// mean a, deviation b
    pub const NORMAL: Initial = Initial(ffi::TINY_INITIAL_NORMAL as i32);
    /// the same, within two deviations
    pub const TRUNCATED_NORMAL: Initial = Initial(ffi::TINY_INITIAL_TRUNCATED_NORMAL as i32);
    /// gain a
    pub const XAVIER_UNIFORM: Initial = Initial(ffi::TINY_INITIAL_XAVIER_UNIFORM as i32);
    /// gain a
    pub const XAVIER_NORMAL: Initial = Initial(ffi::TINY_INITIAL_XAVIER_NORMAL as i32);
    /// negative slope a; b: 0 by the inputs (fan_in), 1 by the outputs
    pub const KAIMING_UNIFORM: Initial = Initial(ffi::TINY_INITIAL_KAIMING_UNIFORM as i32);
    /// the same
    pub const KAIMING_NORMAL: Initial = Initial(ffi::TINY_INITIAL_KAIMING_NORMAL as i32);
    /// gain a
    pub const ORTHOGONAL: Initial = Initial(ffi::TINY_INITIAL_ORTHOGONAL as i32);
    /// of a groups
    pub const DIRAC: Initial = Initial(ffi::TINY_INITIAL_DIRAC as i32);
    /// a share a of each column is 0, the others normal with deviation b
    pub const SPARSE: Initial = Initial(ffi::TINY_INITIAL_SPARSE as i32);
}

/// Any number is a valid value: a newer library may have more of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RecurrentKind(pub i32);

impl RecurrentKind {
    /// of tanh
    pub const RNN: RecurrentKind = RecurrentKind(ffi::TINY_RECURRENT_KIND_RNN as i32);
    pub const GRU: RecurrentKind = RecurrentKind(ffi::TINY_RECURRENT_KIND_GRU as i32);
    pub const LSTM: RecurrentKind = RecurrentKind(ffi::TINY_RECURRENT_KIND_LSTM as i32);
}

/// Any number is a valid value: a newer library may have more of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Kind(pub i32);

impl Kind {
    pub const TENSOR: Kind = Kind(ffi::TINY_KIND_TENSOR as i32);
    /// a list of values
    pub const SEQUENCE: Kind = Kind(ffi::TINY_KIND_SEQUENCE as i32);
    /// of a model: a value, or nothing; a value of this kind is nothing
    pub const OPTIONAL: Kind = Kind(ffi::TINY_KIND_OPTIONAL as i32);
    /// from texts or integers to texts or numbers
    pub const MAP: Kind = Kind(ffi::TINY_KIND_MAP as i32);
    pub const SPARSE_TENSOR: Kind = Kind(ffi::TINY_KIND_SPARSE_TENSOR as i32);
    /// a tensor of texts: since 0.3
    pub const TEXTS: Kind = Kind(ffi::TINY_KIND_TEXTS as i32);
}

pub struct Options {
    pub(crate) raw: ptr::NonNull<ffi::tiny_options>,
}

// Used by one thread at a time, which may be any.
unsafe impl Send for Options {}

impl Options {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_options) -> Options {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Options { raw }
    }

    /// ends work early
    pub fn create() -> Result<Options> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_options_create(&mut out) })?;
        Ok(Options::from_raw(out))
    }

    /// Keys: "threads" (0: as many as the affinity mask and the cgroup quota allow), "deterministic" (1: results are the same bits with any number of threads, on one machine; not with "beam"), "debug" (0..7), "beam", "noopt", "spec", "viz" (1: see tiny_context_record), "cache" (0: no disk cache), "map_files" (0: files are read into memory, not mapped; see tiny_model_load), "cache_kernels" (compiled kernels that the context keeps), "memory_kept" (bytes of large buffers that are gone and whose memory waits for the next ones; 268435456 if not set, and never more beside the buffers in use than have been in use at once), "busy_timeout" (milliseconds that a building call waits for others on the context before it is TINY_ERROR_BUSY; 0: without end).  Limits, 0 for none or the default, each TINY_ERROR_LIMIT when it is reached: "memory_limit" (bytes of all buffers, of files that are read into memory and of tables made while building), "time_limit" (milliseconds of a call, its wait for others, compiling and executing together; it ends within milliseconds, also in a kernel; of a wait the shorter of it and "busy_timeout"), "node_limit", "depth_limit", "file_limit" (nodes, nesting and bytes of a model file).  An unknown key is an error that lists the known.
    pub fn set_int(&self, key: &str, value: i64) -> Result<()> {
        let key = c_text(Some(key))?;
        check(unsafe { ffi::tiny_options_set_int(self.raw.as_ptr(), key.as_ref().map_or(ptr::null(), |t| t.as_ptr()), value) })?;
        Ok(())
    }

    /// Keys: "busy" ("wait", "error": what a building call does while another has the context), "device" ("cpu", "interp", "c", "null"; "cuda", "opencl:1": see tiny_devices), "isa" ("auto", "avx512", "avx2"), "cache_dir" (of compiled kernels; "": $XDG_CACHE_HOME/tiny or ~/.cache/tiny; if it cannot be used there is no disk cache).
    pub fn set_string(&self, key: &str, value: &str) -> Result<()> {
        let key = c_text(Some(key))?;
        let value = c_text(Some(value))?;
        check(unsafe { ffi::tiny_options_set_string(self.raw.as_ptr(), key.as_ref().map_or(ptr::null(), |t| t.as_ptr()), value.as_ref().map_or(ptr::null(), |t| t.as_ptr())) })?;
        Ok(())
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        unsafe { ffi::tiny_options_release(self.raw.as_ptr()) }
    }
}

pub struct Context {
    pub(crate) raw: ptr::NonNull<ffi::tiny_context>,
}

// The library's calls wait for each other where they must.
unsafe impl Send for Context {}
unsafe impl Sync for Context {}

impl Context {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_context) -> Context {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Context { raw }
    }

    /// `options` may be NULL: the defaults, changed by the TINY_* environment variables.
    pub fn create(options: Option<&Options>) -> Result<Context> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_context_create(options.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), &mut out) })?;
        Ok(Context::from_raw(out))
    }

    /// `cancel` (may be NULL: none) ends loading, compiling and computing in this context early, with TINY_ERROR_CANCELLED, and waiting for it, within milliseconds: it is looked at between steps and in the middle of kernels.  Runs have their own.  A value whose computing was ended is computed anew when it is read again; what was assigned by then has any elements: it may be read, and assigned again.
    pub fn set_cancel(&self, cancel: Option<&Cancel>) -> Result<()> {
        check(unsafe { ffi::tiny_context_set_cancel(self.raw.as_ptr(), cancel.map_or(ptr::null_mut(), |o| o.raw.as_ptr())) })?;
        Ok(())
    }

    /// What the context's options came to, as one JSON object: "device", "isa" ("" where there is none), "threads" (of its pool, the caller's included), "debug", "memory_limit", "memory_used" (bytes of buffers now), "memory_kept" (bytes kept for later ones), "cache_dir" ("": no disk cache).
    pub fn info(&self) -> Result<Report> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_context_info(self.raw.as_ptr(), &mut out) })?;
        Ok(Report::from_raw(out))
    }

    /// Changes an option of a context that is in use: "debug", "graph", "graphuops", "beam", "noopt", "fusion", "default_int", "default_float", "weak_results"; another is an error that lists them.  Programs that are compiled stay as they are; after "beam", "noopt" and "fusion", what is computed is compiled anew.  A building call.  Since 0.3.
    pub fn set_int(&self, key: &str, value: i64) -> Result<()> {
        let key = c_text(Some(key))?;
        check(unsafe { ffi::tiny_context_set_int(self.raw.as_ptr(), key.as_ref().map_or(ptr::null(), |t| t.as_ptr()), value) })?;
        Ok(())
    }

    /// The context on another of its devices, named as for the option "device" ("cpu", "opencl:1"): what is made with it lies there, and all that takes a context takes it (tensors, models, archives, generators).  It is opened when it is first asked for, with the options, the operators and the cancel token that `context` has then, and is the same one for all who ask for that device, for as long as the context that asked first; from it one comes back by the other's device. It has a lock, caches, limits and counters of its own: calls of two devices do not wait for each other. tiny_tensor_to copies between them; any other call over tensors of two is TINY_ERROR_INVALID_ARGUMENT that names both devices.  Since 0.3.
    pub fn on_device(&self, device: &str) -> Result<Context> {
        let device = c_text(Some(device))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_context_on_device(self.raw.as_ptr(), device.as_ref().map_or(ptr::null(), |t| t.as_ptr()), &mut out) })?;
        Ok(Context::from_raw(out))
    }

    /// Waits until the context's device has done all that it was given, for who measures time: what reads a value waits for that by itself.  Since 0.3.
    pub fn synchronize(&self) -> Result<()> {
        check(unsafe { ffi::tiny_context_synchronize(self.raw.as_ptr()) })?;
        Ok(())
    }

    /// A tensor without dimensions that holds `value`.  A scalar is weak: combined with a tensor it takes the tensor's dtype, unless only a float can hold it (docs/semantics.md).
    pub fn scalar_float(&self, value: f64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_scalar_float(self.raw.as_ptr(), value, &mut out) })?;
        Ok(Tensor::from_raw(out, self.clone()))
    }

    /// The same of an integer.  A number that stands for a dimension (see "Dimensions") is the size that each run has.
    pub fn scalar_int(&self, value: i64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_scalar_int(self.raw.as_ptr(), value, &mut out) })?;
        Ok(Tensor::from_raw(out, self.clone()))
    }

    /// Every element `value`, converted to `dtype`.
    pub fn full(&self, dtype: Dtype, dims: &[i64], value: f64) -> Result<Tensor> {
        let dims_count = count(&[Some(dims)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_full(self.raw.as_ptr(), dtype.0, pointer(Some(dims)), dims_count, value, &mut out) })?;
        Ok(Tensor::from_raw(out, self.clone()))
    }

    /// The integers 0, 1, .. count-1 as `dtype`.
    pub fn arange(&self, dtype: Dtype, count: i64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_arange(self.raw.as_ptr(), dtype.0, count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.clone()))
    }

    /// A tensor in memory of its own, of just as many elements as the strides reach: 1 + the sum of (dims\[k\] - 1) * |strides\[k\]|, none if a dimension is 0.  It has exactly these strides, and an offset of 0 unless one is negative. Its elements, and those between them, are any until they are assigned.  Takes no number that stands for a dimension.  Since 0.3.
    pub fn empty_strided(&self, dtype: Dtype, dims: &[i64], strides: &[i64]) -> Result<Tensor> {
        let dims_count = count(&[Some(dims), Some(strides)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_empty_strided(self.raw.as_ptr(), dtype.0, pointer(Some(dims)), pointer(Some(strides)), dims_count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.clone()))
    }

    /// The number of elements that memory needs for the view: one more than the last that it reaches; 0 for a view, or a mask, without elements.  TINY_ERROR_SHAPE if it reaches elements before the memory's begin. mask_begin may be NULL, mask_end may be NULL: all is there.  Since 0.3.
    pub fn get_buffer_size(&self, dims: &[i64], strides: &[i64], mask_begin: Option<&[i64]>, mask_end: Option<&[i64]>, offset: i64) -> Result<i64> {
        let dims_count = count(&[Some(dims), Some(strides), mask_begin, mask_end])?;
        let mut out: i64 = 0;
        check(unsafe { ffi::tiny_get_buffer_size(self.raw.as_ptr(), pointer(Some(dims)), pointer(Some(strides)), pointer(mask_begin), pointer(mask_end), dims_count, offset, &mut out) })?;
        Ok(out)
    }

    /// The elements that a view reaches, each axis forwards: the sizes (within the mask) of those axes that have more than one element and a stride other than 0, their strides without the sign, and the lowest element.  A view without elements is one axis of size 0 and stride 1, from element 0 on.  `view` gets the n dimensions, the n strides and the offset, the first `capacity` of these `count` = 2 n + 1 numbers.  mask_begin may be NULL, mask_end may be NULL: all is there.  Since 0.3.
    pub fn get_real_view(&self, dims: &[i64], strides: &[i64], mask_begin: Option<&[i64]>, mask_end: Option<&[i64]>, offset: i64) -> Result<Vec<i64>> {
        let dims_count = count(&[Some(dims), Some(strides), mask_begin, mask_end])?;
        let mut view_count = 0usize;
        let mut view: Vec<i64> = vec![0; GUESS];
        check(unsafe { ffi::tiny_get_real_view(self.raw.as_ptr(), pointer(Some(dims)), pointer(Some(strides)), pointer(mask_begin), pointer(mask_end), dims_count, offset, view.as_mut_ptr(), view.len(), &mut view_count) })?;
        if view_count > view.len() {
            view.resize(view_count, Default::default());
            check(unsafe { ffi::tiny_get_real_view(self.raw.as_ptr(), pointer(Some(dims)), pointer(Some(strides)), pointer(mask_begin), pointer(mask_end), dims_count, offset, view.as_mut_ptr(), view.len(), &mut view_count) })?;
        }
        view.truncate(view_count);
        Ok(view)
    }

    /// Movements that make the view, one after the other (tiny_apply_movement_op), of a tensor of one axis that has at least tiny_get_buffer_size elements: each as its tiny_movement, how many numbers it has, and these.  The first `capacity` numbers are written, `count` gets how many there are.  What comes out is a view of that tensor, but for a mask, which ends in a pad.  A view whose strides are not those of one array in the memory is one as_strided. mask_begin may be NULL, mask_end may be NULL: all is there.  Since 0.3.
    pub fn to_movement_ops(&self, dims: &[i64], strides: &[i64], mask_begin: Option<&[i64]>, mask_end: Option<&[i64]>, offset: i64) -> Result<Vec<i64>> {
        let dims_count = count(&[Some(dims), Some(strides), mask_begin, mask_end])?;
        let mut ops_count = 0usize;
        let mut ops: Vec<i64> = vec![0; GUESS];
        check(unsafe { ffi::tiny_to_movement_ops(self.raw.as_ptr(), pointer(Some(dims)), pointer(Some(strides)), pointer(mask_begin), pointer(mask_end), dims_count, offset, ops.as_mut_ptr(), ops.len(), &mut ops_count) })?;
        if ops_count > ops.len() {
            ops.resize(ops_count, Default::default());
            check(unsafe { ffi::tiny_to_movement_ops(self.raw.as_ptr(), pointer(Some(dims)), pointer(Some(strides)), pointer(mask_begin), pointer(mask_end), dims_count, offset, ops.as_mut_ptr(), ops.len(), &mut ops_count) })?;
        }
        ops.truncate(ops_count);
        Ok(ops)
    }

    /// What the context did since it was made: {"kernels":{"launched","compiled","cached","interpreted", "launched_interpreted"},"memory":{"allocations","allocated_bytes"},"copies":{"count","bytes"},"compile_seconds": {"schedule","lower","load","passes":{}}}. `cached` counts kernels that were asked for again.  "realized":{"launches","copies","copied_bytes"} is what computing values took, runs of programs aside: launches; copies of old elements, made because a write (tiny_assign) would have destroyed what something still reads.  With the option "profile" at 2, "profile":\[{"name","launches","seconds", "operations","bytes","options","scalar","computes"}\] is what the launches of each kernel took, in all.
    pub fn counters(&self) -> Result<Report> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_context_counters(self.raw.as_ptr(), &mut out) })?;
        Ok(Report::from_raw(out))
    }

    /// Sums over all launches of kernels since the context was made, those of programs' runs too: how many, the operations and bytes of their buffers as tiny_program_kernels counts them, and the seconds of those that were timed (by tiny_run_set_timed, or the option "debug" from 2 on).  `memory_used` is the bytes of all buffers now.  A few loads: for any thread, waits for nobody.  Since 0.3.
    pub fn totals(&self) -> Result<(i64, f64, f64, f64, i64)> {
        let mut launches: i64 = 0;
        let mut operations: f64 = 0.0;
        let mut bytes: f64 = 0.0;
        let mut timed_seconds: f64 = 0.0;
        let mut memory_used: i64 = 0;
        check(unsafe { ffi::tiny_context_totals(self.raw.as_ptr(), &mut launches, &mut operations, &mut bytes, &mut timed_seconds, &mut memory_used) })?;
        Ok((launches, operations, bytes, timed_seconds, memory_used))
    }

    /// With the option "viz" at 1, what the context has kept of its work, as JSON, for programs that show it: "graphs" that were computed or compiled, with what each pass over them left; "kernels" as the scheduler made them, after each pass, with the rules that fired, their loops and code; "programs", lists of kernels and their buffers; "traceEvents", when what ran, in Chrome's format.  Unstable: what is in it changes with the engine.  A building call.  Since 0.3.
    pub fn record(&self) -> Result<Report> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_context_record(self.raw.as_ptr(), &mut out) })?;
        Ok(Report::from_raw(out))
    }

    /// One operator of ONNX, as models have them, applied to tensors: `op` ("TopK") of `domain` (may be NULL: the standard's, "" and "ai.onnx" too) with the meaning of version `opset` of the domain's operator set (0: the newest that is known).  docs/ONNX.md lists the operators and what is left out of them. An element of `inputs` may be NULL: that input is left out.  Numbers (tiny_scalar_float) take the dtype of what they meet.  Elements that decide shapes (those of Reshape, axes, pads, k) are read now: TINY_ERROR_UNSUPPORTED if they depend on a placeholder. `attributes` (may be NULL: none) is a JSON object: {"axis": -1, "mode": "linear", "pads": \[0, 1\], "value": {"dtype": "float32", "shape": \[2\], "data": \[1.5, 2\]}}.  An integer stands for a float, true and false for 1 and 0, "inf", "-inf" and "nan" for these floats, a dtype's name ("float32") for its number, and null for an attribute that is left out.  One that the operator does not look at is TINY_ERROR_INVALID_ARGUMENT. `outputs` receives the operator's first `output_count` outputs, not computed.  Operators whose attributes are graphs (If, Loop, Scan), and those that take or make sequences, are TINY_ERROR_UNSUPPORTED.
    pub fn op(&self, domain: Option<&str>, op: &str, opset: i64, inputs: &[Option<&Tensor>], attributes: Option<&str>, output_count: usize) -> Result<Vec<Tensor>> {
        let domain = c_text(domain)?;
        let op = c_text(Some(op))?;
        let inputs_raw: Vec<_> = inputs.iter().map(|o| o.map_or(ptr::null(), |o| o.raw.as_ptr() as *const _)).collect();
        let attributes = c_text(attributes)?;
        let mut outputs = vec![ptr::null_mut(); output_count];
        check(unsafe { ffi::tiny_op(self.raw.as_ptr(), domain.as_ref().map_or(ptr::null(), |t| t.as_ptr()), op.as_ref().map_or(ptr::null(), |t| t.as_ptr()), opset, inputs_raw.as_ptr() as *const _, inputs_raw.len(), attributes.as_ref().map_or(ptr::null(), |t| t.as_ptr()), outputs.as_mut_ptr(), outputs.len()) })?;
        Ok(outputs.into_iter().map(|o| Tensor::from_raw(o, self.clone())).collect())
    }

    pub fn random_key(&self, seed: i64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_random_key(self.raw.as_ptr(), seed, &mut out) })?;
        Ok(Tensor::from_raw(out, self.clone()))
    }

    /// Arithmetic with dimensions of a context and with numbers: `out` gets a number if the result is one whatever the variables are (n - n), else what stands for it: the same for equal ones (n + n, 2 * n).  What may be further from 0 than 2^40 is TINY_ERROR_LIMIT.  A result may be negative, as a position in tiny_slice; as a size it must be known not to be.
    pub fn dim_add(&self, a: i64, b: i64) -> Result<i64> {
        let mut out: i64 = 0;
        check(unsafe { ffi::tiny_dim_add(self.raw.as_ptr(), a, b, &mut out) })?;
        Ok(out)
    }

    pub fn dim_sub(&self, a: i64, b: i64) -> Result<i64> {
        let mut out: i64 = 0;
        check(unsafe { ffi::tiny_dim_sub(self.raw.as_ptr(), a, b, &mut out) })?;
        Ok(out)
    }

    pub fn dim_mul(&self, a: i64, b: i64) -> Result<i64> {
        let mut out: i64 = 0;
        check(unsafe { ffi::tiny_dim_mul(self.raw.as_ptr(), a, b, &mut out) })?;
        Ok(out)
    }

    /// Rounds towards minus infinity; b must be known to be at least 1.
    pub fn dim_floor_div(&self, a: i64, b: i64) -> Result<i64> {
        let mut out: i64 = 0;
        check(unsafe { ffi::tiny_dim_floor_div(self.raw.as_ptr(), a, b, &mut out) })?;
        Ok(out)
    }

    /// a - a / b * b with that division, 0 to b - 1.
    pub fn dim_floor_mod(&self, a: i64, b: i64) -> Result<i64> {
        let mut out: i64 = 0;
        check(unsafe { ffi::tiny_dim_floor_mod(self.raw.as_ptr(), a, b, &mut out) })?;
        Ok(out)
    }

    pub fn dim_min(&self, a: i64, b: i64) -> Result<i64> {
        let mut out: i64 = 0;
        check(unsafe { ffi::tiny_dim_min(self.raw.as_ptr(), a, b, &mut out) })?;
        Ok(out)
    }

    pub fn dim_max(&self, a: i64, b: i64) -> Result<i64> {
        let mut out: i64 = 0;
        check(unsafe { ffi::tiny_dim_max(self.raw.as_ptr(), a, b, &mut out) })?;
        Ok(out)
    }

    /// Numbers that it is not below and not above: with one variable that occurs once, its lowest and highest value.  This and tiny_dim_text look at what is known, and wait for nobody.
    pub fn dim_range(&self, dim: i64) -> Result<(i64, i64)> {
        let mut min: i64 = 0;
        let mut max: i64 = 0;
        check(unsafe { ffi::tiny_dim_range(self.raw.as_ptr(), dim, &mut min, &mut max) })?;
        Ok((min, max))
    }

    /// As text, by the names of the variables: "2*N + 1"; a size is its digits.
    pub fn dim_text(&self, dim: i64) -> Result<Report> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_dim_text(self.raw.as_ptr(), dim, &mut out) })?;
        Ok(Report::from_raw(out))
    }

    /// A stand-in for a tensor that every run of a program is given.  It can be used like any tensor, but has no value: reading it, or what is made from it, is TINY_ERROR_INVALID_ARGUMENT.  A dimension may be a variable's.
    pub fn input(&self, dtype: Dtype, dims: &[i64]) -> Result<Tensor> {
        let dims_count = count(&[Some(dims)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_input(self.raw.as_ptr(), dtype.0, pointer(Some(dims)), dims_count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.clone()))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        unsafe { ffi::tiny_context_release(self.raw.as_ptr()) }
    }
}

impl Clone for Context {
    /// Another reference to the same object.
    fn clone(&self) -> Context {
        unsafe { ffi::tiny_context_retain(self.raw.as_ptr()) }
        Context::from_raw(self.raw.as_ptr())
    }
}

pub struct Tensor {
    pub(crate) raw: ptr::NonNull<ffi::tiny_tensor>,
    pub(crate) context: Context,
}

// The library's calls wait for each other where they must.
unsafe impl Send for Tensor {}
unsafe impl Sync for Tensor {}

impl Tensor {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_tensor, context: Context) -> Tensor {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Tensor { raw, context }
    }
    /// The context that this lives in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Copies the elements of `data` (row-major, `bytes` must be their exact size) before it returns.
    pub fn from_data(context: &Context, dtype: Dtype, dims: &[i64], data: &[u8]) -> Result<Tensor> {
        let dims_count = count(&[Some(dims)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_tensor_from_data(context.raw.as_ptr(), dtype.0, pointer(Some(dims)), dims_count, data.as_ptr() as *const _, data.len(), &mut out) })?;
        Ok(Tensor::from_raw(out, context.clone()))
    }

    /// In a context with the option "weak_results", of what follows from bare numbers alone: TINY_WEAK_INT or TINY_WEAK_FLOAT.  It is computed and stored as the option "default_int" or "default_float" says; tiny_cast gives it that dtype, and to these two makes it weak.
    pub fn dtype(&self) -> Result<Dtype> {
        let mut out = 0i32;
        check(unsafe { ffi::tiny_tensor_dtype(self.raw.as_ptr(), &mut out) })?;
        Ok(Dtype(out))
    }

    pub fn rank(&self) -> Result<usize> {
        let mut out: usize = 0;
        check(unsafe { ffi::tiny_tensor_rank(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    /// Writes min(rank, capacity) dimensions; `rank` gets their full number.  A dimension that depends on variables is the number that stands for it.
    pub fn shape(&self) -> Result<Vec<i64>> {
        let mut dims_count = 0usize;
        let mut dims: Vec<i64> = vec![0; GUESS];
        check(unsafe { ffi::tiny_tensor_shape(self.raw.as_ptr(), dims.as_mut_ptr(), dims.len(), &mut dims_count) })?;
        if dims_count > dims.len() {
            dims.resize(dims_count, Default::default());
            check(unsafe { ffi::tiny_tensor_shape(self.raw.as_ptr(), dims.as_mut_ptr(), dims.len(), &mut dims_count) })?;
        }
        dims.truncate(dims_count);
        Ok(dims)
    }

    /// Strides in elements, as tiny_tensor_shape writes dimensions.
    pub fn strides(&self) -> Result<Vec<i64>> {
        let mut strides_count = 0usize;
        let mut strides: Vec<i64> = vec![0; GUESS];
        check(unsafe { ffi::tiny_tensor_strides(self.raw.as_ptr(), strides.as_mut_ptr(), strides.len(), &mut strides_count) })?;
        if strides_count > strides.len() {
            strides.resize(strides_count, Default::default());
            check(unsafe { ffi::tiny_tensor_strides(self.raw.as_ptr(), strides.as_mut_ptr(), strides.len(), &mut strides_count) })?;
        }
        strides.truncate(strides_count);
        Ok(strides)
    }

    /// Where element (0, 0, ..) is in the memory that the tensor shares with its views, in elements.
    pub fn offset(&self) -> Result<i64> {
        let mut out: i64 = 0;
        check(unsafe { ffi::tiny_tensor_offset(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    /// The name of the device that the tensor's memory is of ("cpu"); lives as long as its context.
    pub fn device(&self) -> Result<Option<String>> {
        let mut out = ptr::null();
        check(unsafe { ffi::tiny_tensor_device(self.raw.as_ptr(), &mut out) })?;
        Ok(unsafe { text(out) })
    }

    /// The tensor in `context`, as a rule one of tiny_context_on_device: the elements, computed now if need be, are copied, row-major, from device to device where both drivers can, else over the host.  It shares nothing with the tensor, and gradients end there.  In the tensor's own context it is the tensor itself, in another handle.  A scalar becomes the same scalar there.  What has no elements yet, such as a program's input, is TINY_ERROR_INVALID_ARGUMENT.  A building call of both contexts, one after the other.  Since 0.3.
    pub fn to(&self, context: &Context) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_tensor_to(self.raw.as_ptr(), context.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, context.clone()))
    }

    /// What profiles and traces call the work that computes this value and nothing else that has a name: see tiny_program_kernels.  A label for people: it may be any text, "" is none again, and it decides nothing.  Equal values of a context are one value: the latest name given to it holds.
    pub fn set_name(&self, name: &str) -> Result<()> {
        let name = c_text(Some(name))?;
        check(unsafe { ffi::tiny_tensor_set_name(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr())) })?;
        Ok(())
    }

    /// The name that this handle was given, or ""; lives as long as the context.
    pub fn name(&self) -> Result<Option<String>> {
        let mut out = ptr::null();
        check(unsafe { ffi::tiny_tensor_name(self.raw.as_ptr(), &mut out) })?;
        Ok(unsafe { text(out) })
    }

    /// The number of elements.
    pub fn numel(&self) -> Result<i64> {
        let mut out: i64 = 0;
        check(unsafe { ffi::tiny_tensor_numel(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    /// Computes `tensor` if needed and copies its elements, row-major; `bytes` must be their exact size.
    pub fn read(&self, data: &mut [u8]) -> Result<()> {
        check(unsafe { ffi::tiny_tensor_read(self.raw.as_ptr(), mut_pointer(data), data.len()) })?;
        Ok(())
    }

    /// Computes `tensor` if needed; `out` is the address of its element (0, 0, ..), the others are at tiny_tensor_strides; NULL if it has none.  Only to be read, and until the tensor is released, assigned to, or written by a run: then the address may change or the memory be gone.  TINY_ERROR_DEVICE if the memory is not the host's.
    pub fn data(&self) -> Result<*const std::ffi::c_void> {
        let mut out = ptr::null();
        check(unsafe { ffi::tiny_tensor_data(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    /// From now on `target`, and every tensor that shares its elements (the tensor that it is a view of, other views), has `value` there: broadcast to its shape and converted to its dtype, which must be what the two promote to.  What was built from them before keeps the old elements.  The write happens when work runs that needs it; wrapped memory is written then.  Between any two orders of elements it is one kernel, and no copy is made unless the value reads what is written otherwise than element by element.  Of a target whose elements share memory (an expanded axis) it is TINY_ERROR_INVALID_ARGUMENT, with PyTorch's words.
    pub fn assign(&self, value: &Tensor) -> Result<()> {
        check(unsafe { ffi::tiny_assign(self.raw.as_ptr(), value.raw.as_ptr()) })?;
        Ok(())
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are.
    pub fn neg(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(0, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are.
    pub fn abs(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(1, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are. logical on bool, bitwise on integers
    pub fn not(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(2, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are.
    pub fn sqrt(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(3, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are.
    pub fn floor(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(4, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are.
    pub fn ceil(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(5, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are.
    pub fn trunc(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(6, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are. half to even
    pub fn round(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(7, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are.
    pub fn exp(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(8, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are.
    pub fn log(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(9, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are.
    pub fn sin(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(10, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are.
    pub fn cos(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(11, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are.
    pub fn tanh(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(12, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are.
    pub fn erf(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(13, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are.
    pub fn reciprocal(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(14, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are.
    pub fn rsqrt(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(15, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are.
    pub fn sigmoid(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(16, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are.
    pub fn relu(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(17, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are. NaN of NaN
    pub fn sign(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(18, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are.
    pub fn square(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(19, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are. a * sigmoid(a)
    pub fn silu(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(20, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are. log(1 + exp(a))
    pub fn softplus(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(21, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are. exp(a) - 1, exact near 0
    pub fn expm1(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(22, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are. log(1 + a), exact near 0
    pub fn log1p(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(23, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\]).  Functions of floats take integers as float32; rounding leaves integers as they are. a bool
    pub fn is_nan(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unary(24, self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]).
    pub fn add(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary(0, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]).
    pub fn sub(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary(1, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]).
    pub fn mul(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary(2, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]). true division; integers divide as float32
    pub fn div(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary(3, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]). rounds towards minus infinity; by 0: 0 for integers
    pub fn floor_div(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary(4, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]). the sign of the divisor
    pub fn floor_mod(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary(5, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]). rounds towards zero
    pub fn trunc_div(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary(6, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]). the sign of the dividend
    pub fn trunc_mod(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary(7, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]).
    pub fn pow(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary(8, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]). NaN if either is NaN
    pub fn max(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary(9, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]).
    pub fn min(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary(10, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]). logical on bool, bitwise on integers
    pub fn and(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary(11, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]).
    pub fn or(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary(12, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]).
    pub fn xor(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary(13, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]).
    pub fn shl(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary(14, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]). arithmetic for signed integers
    pub fn shr(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary(15, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]), a bool.  Comparisons with NaN are false, but for TINY_NE.
    pub fn lt(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_compare(0, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]), a bool.  Comparisons with NaN are false, but for TINY_NE.
    pub fn le(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_compare(1, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]), a bool.  Comparisons with NaN are false, but for TINY_NE.
    pub fn gt(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_compare(2, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]), a bool.  Comparisons with NaN are false, but for TINY_NE.
    pub fn ge(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_compare(3, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]), a bool.  Comparisons with NaN are false, but for TINY_NE.
    pub fn eq(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_compare(4, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = op(a\[i\], b\[i\]), a bool.  Comparisons with NaN are false, but for TINY_NE.
    pub fn ne(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_compare(5, self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Folds `axes` (negative ones count from the end; naxes 0 with axes NULL: all of them).  Takes TINY_FLAG_KEEPDIMS. Sums and products of bool and of integers below 64 bits are int64.  Over nothing: 0, 1, the lowest or highest value; a mean is NaN.
    pub fn sum(&self, axes: Option<&[i64]>, keepdims: bool) -> Result<Tensor> {
        let axes_count = count(&[axes])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_reduce(0, self.raw.as_ptr(), pointer(axes), axes_count, flags(&[(keepdims, 1)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Folds `axes` (negative ones count from the end; naxes 0 with axes NULL: all of them).  Takes TINY_FLAG_KEEPDIMS. Sums and products of bool and of integers below 64 bits are int64.  Over nothing: 0, 1, the lowest or highest value; a mean is NaN.
    pub fn prod(&self, axes: Option<&[i64]>, keepdims: bool) -> Result<Tensor> {
        let axes_count = count(&[axes])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_reduce(1, self.raw.as_ptr(), pointer(axes), axes_count, flags(&[(keepdims, 1)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Folds `axes` (negative ones count from the end; naxes 0 with axes NULL: all of them).  Takes TINY_FLAG_KEEPDIMS. Sums and products of bool and of integers below 64 bits are int64.  Over nothing: 0, 1, the lowest or highest value; a mean is NaN.
    pub fn reduce_max(&self, axes: Option<&[i64]>, keepdims: bool) -> Result<Tensor> {
        let axes_count = count(&[axes])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_reduce(2, self.raw.as_ptr(), pointer(axes), axes_count, flags(&[(keepdims, 1)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Folds `axes` (negative ones count from the end; naxes 0 with axes NULL: all of them).  Takes TINY_FLAG_KEEPDIMS. Sums and products of bool and of integers below 64 bits are int64.  Over nothing: 0, 1, the lowest or highest value; a mean is NaN.
    pub fn reduce_min(&self, axes: Option<&[i64]>, keepdims: bool) -> Result<Tensor> {
        let axes_count = count(&[axes])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_reduce(3, self.raw.as_ptr(), pointer(axes), axes_count, flags(&[(keepdims, 1)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Folds `axes` (negative ones count from the end; naxes 0 with axes NULL: all of them).  Takes TINY_FLAG_KEEPDIMS. Sums and products of bool and of integers below 64 bits are int64.  Over nothing: 0, 1, the lowest or highest value; a mean is NaN.
    pub fn mean(&self, axes: Option<&[i64]>, keepdims: bool) -> Result<Tensor> {
        let axes_count = count(&[axes])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_reduce(4, self.raw.as_ptr(), pointer(axes), axes_count, flags(&[(keepdims, 1)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Folds `axes` (negative ones count from the end; naxes 0 with axes NULL: all of them).  Takes TINY_FLAG_KEEPDIMS. Sums and products of bool and of integers below 64 bits are int64.  Over nothing: 0, 1, the lowest or highest value; a mean is NaN.
    pub fn any(&self, axes: Option<&[i64]>, keepdims: bool) -> Result<Tensor> {
        let axes_count = count(&[axes])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_reduce(5, self.raw.as_ptr(), pointer(axes), axes_count, flags(&[(keepdims, 1)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Folds `axes` (negative ones count from the end; naxes 0 with axes NULL: all of them).  Takes TINY_FLAG_KEEPDIMS. Sums and products of bool and of integers below 64 bits are int64.  Over nothing: 0, 1, the lowest or highest value; a mean is NaN.
    pub fn all(&self, axes: Option<&[i64]>, keepdims: bool) -> Result<Tensor> {
        let axes_count = count(&[axes])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_reduce(6, self.raw.as_ptr(), pointer(axes), axes_count, flags(&[(keepdims, 1)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Folds `axes` (negative ones count from the end; naxes 0 with axes NULL: all of them).  Takes TINY_FLAG_KEEPDIMS. Sums and products of bool and of integers below 64 bits are int64.  Over nothing: 0, 1, the lowest or highest value; a mean is NaN. log(sum(exp(a))), without overflow
    pub fn logsumexp(&self, axes: Option<&[i64]>, keepdims: bool) -> Result<Tensor> {
        let axes_count = count(&[axes])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_reduce(7, self.raw.as_ptr(), pointer(axes), axes_count, flags(&[(keepdims, 1)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// At most one dimension may be TINY_DIM_FREE: what is left over.
    pub fn reshape(&self, dims: &[i64]) -> Result<Tensor> {
        let dims_count = count(&[Some(dims)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_reshape(self.raw.as_ptr(), pointer(Some(dims)), dims_count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out's axis k is a's axis axes\[k\].
    pub fn permute(&self, axes: &[i64]) -> Result<Tensor> {
        let axes_count = count(&[Some(axes)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_permute(self.raw.as_ptr(), pointer(Some(axes)), axes_count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Repeats axes of size 1; missing leading axes are added; TINY_DIM_FREE keeps a size.
    pub fn expand(&self, dims: &[i64]) -> Result<Tensor> {
        let dims_count = count(&[Some(dims)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_expand(self.raw.as_ptr(), pointer(Some(dims)), dims_count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Reverses the axes.
    pub fn flip(&self, axes: &[i64]) -> Result<Tensor> {
        let axes_count = count(&[Some(axes)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_flip(self.raw.as_ptr(), pointer(Some(axes)), axes_count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Adds before\[k\] and after\[k\] elements `value` around axis k; negative numbers take away.
    pub fn pad(&self, before: &[i64], after: &[i64], value: f64) -> Result<Tensor> {
        let before_count = count(&[Some(before), Some(after)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_pad(self.raw.as_ptr(), pointer(Some(before)), pointer(Some(after)), before_count, value, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Elements begin\[k\], begin\[k\]+step\[k\], .. before end\[k\] of every axis k, as Python slices them: negative positions count from the end, positions are clamped, a negative step goes backwards. `step` may be NULL (1). Positions are at most 2^40 either way, or INT64_MAX, -INT64_MAX, INT64_MIN: beyond any end.
    pub fn slice(&self, begin: &[i64], end: &[i64], step: Option<&[i64]>) -> Result<Tensor> {
        let begin_count = count(&[Some(begin), Some(end), step])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_slice(self.raw.as_ptr(), pointer(Some(begin)), pointer(Some(end)), pointer(step), begin_count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Element (i0, ..) is element offset + i0*strides\[0\] + .. of `a`'s memory, counted from its own first element; of a tensor that is computed, of its row-major elements.  Strides have any sign, 0 repeats; those and the offset from the memory's begin (`a`'s and `offset`) are what tiny_tensor_strides and tiny_tensor_offset say of the result.  All must lie in that memory (TINY_ERROR_SHAPE).
    pub fn as_strided(&self, dims: &[i64], strides: &[i64], offset: i64) -> Result<Tensor> {
        let dims_count = count(&[Some(dims), Some(strides)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_as_strided(self.raw.as_ptr(), pointer(Some(dims)), pointer(Some(strides)), dims_count, offset, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// One movement of `a`, by its numbers; a view wherever the call of that name makes one.  Since 0.3.
    pub fn apply_movement_op(&self, op: Movement, numbers: &[i64]) -> Result<Tensor> {
        let numbers_count = count(&[Some(numbers)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_apply_movement_op(self.raw.as_ptr(), op.0, pointer(Some(numbers)), numbers_count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    pub fn cast(&self, dtype: Dtype) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_cast(self.raw.as_ptr(), dtype.0, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The same bits as another dtype of the same size.
    pub fn bitcast(&self, dtype: Dtype) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_bitcast(self.raw.as_ptr(), dtype.0, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\] = condition\[i\] ? a\[i\] : b\[i\].
    pub fn where_(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_where(self.raw.as_ptr(), a.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// A row-major copy.
    pub fn contiguous(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_contiguous(self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Products of the last two axes, the axes before broadcast; vectors as numpy.matmul takes them.
    pub fn matmul(&self, b: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_matmul(self.raw.as_ptr(), b.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Removes `axes`, which have size 1 (`axes` may be NULL with naxes 0: every such axis).
    pub fn squeeze(&self, axes: Option<&[i64]>) -> Result<Tensor> {
        let axes_count = count(&[axes])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_squeeze(self.raw.as_ptr(), pointer(axes), axes_count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Adds axes of size 1; `axes` are their places in the result.
    pub fn unsqueeze(&self, axes: &[i64]) -> Result<Tensor> {
        let axes_count = count(&[Some(axes)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_unsqueeze(self.raw.as_ptr(), pointer(Some(axes)), axes_count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Repeats the whole of axis k repeats\[k\] times.
    pub fn tile(&self, repeats: &[i64]) -> Result<Tensor> {
        let repeats_count = count(&[Some(repeats)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_tile(self.raw.as_ptr(), pointer(Some(repeats)), repeats_count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Parts of these sizes, which fill `axis`; `count` is the number of sizes.  On failure every part is NULL.
    pub fn split(&self, axis: i64, sizes: &[i64]) -> Result<Vec<Tensor>> {
        let sizes_count = count(&[Some(sizes)])?;
        let mut parts = vec![ptr::null_mut(); sizes.len()];
        check(unsafe { ffi::tiny_split(self.raw.as_ptr(), axis, pointer(Some(sizes)), sizes_count, parts.as_mut_ptr(), parts.len()) })?;
        Ok(parts.into_iter().map(|o| Tensor::from_raw(o, self.context.clone())).collect())
    }

    /// Blocks of channels become blocks of pixels; `a` is \[n, c, h, w\].  Takes TINY_FLAG_COLUMNS_FIRST.
    pub fn depth_to_space(&self, block: i64, columns_first: bool) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_depth_to_space(self.raw.as_ptr(), block, flags(&[(columns_first, 32)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    pub fn space_to_depth(&self, block: i64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_space_to_depth(self.raw.as_ptr(), block, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// a\[.., index\[..\], ..\] along `axis`, as numpy.take.
    pub fn gather(&self, index: &Tensor, axis: i64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_gather(self.raw.as_ptr(), index.raw.as_ptr(), axis, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// out\[i\]\[j\].. = a\[i\]\[index\[i\]\[j\]\].. along `axis`; the ranks agree, and `index` is nowhere longer than `a` but along `axis`.
    pub fn take_along_axis(&self, index: &Tensor, axis: i64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_take_along_axis(self.raw.as_ptr(), index.raw.as_ptr(), axis, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// a\[index\[.., 0\], index\[.., 1\], ..\] behind `batch` leading axes that both have.
    pub fn gather_nd(&self, index: &Tensor, batch: i64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_gather_nd(self.raw.as_ptr(), index.raw.as_ptr(), batch, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// A new axis of `depth` elements at `axis`: `on` at the index, `off` elsewhere (two scalars).  An index out of range gives only `off`.
    pub fn one_hot(&self, depth: i64, on: &Tensor, off: &Tensor, axis: i64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_one_hot(self.raw.as_ptr(), depth, on.raw.as_ptr(), off.raw.as_ptr(), axis, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The position of the greatest element along `axis`, int64: the first of equals; a NaN is the greatest.  Takes TINY_FLAG_KEEPDIMS and TINY_FLAG_LAST.
    pub fn argmax(&self, axis: i64, keepdims: bool, last: bool) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_argmax(self.raw.as_ptr(), axis, flags(&[(keepdims, 1), (last, 2)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The position of the lowest element: as tiny_argmax.  Takes TINY_FLAG_KEEPDIMS and TINY_FLAG_LAST.
    pub fn argmin(&self, axis: i64, keepdims: bool, last: bool) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_argmin(self.raw.as_ptr(), axis, flags(&[(keepdims, 1), (last, 2)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Sums up to each element along `axis`.  Takes TINY_FLAG_EXCLUSIVE and TINY_FLAG_REVERSE.  Dtypes as TINY_SUM.
    pub fn cumsum(&self, axis: i64, exclusive: bool, reverse: bool) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_cumsum(self.raw.as_ptr(), axis, flags(&[(exclusive, 4), (reverse, 8)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Keeps a\[.., i, j\] where j - i >= diagonal; 0 elsewhere.
    pub fn triu(&self, diagonal: i64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_triu(self.raw.as_ptr(), diagonal, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Keeps a\[.., i, j\] where j - i \<= diagonal; 0 elsewhere.
    pub fn tril(&self, diagonal: i64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_tril(self.raw.as_ptr(), diagonal, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// a * Phi(a), by erf.  Takes TINY_FLAG_APPROXIMATE.
    pub fn gelu(&self, approximate: bool) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_gelu(self.raw.as_ptr(), flags(&[(approximate, 16)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// a, and alpha * (exp(a) - 1) below 0.
    pub fn elu(&self, alpha: f64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_elu(self.raw.as_ptr(), alpha, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// a, and slope * a below 0.
    pub fn leaky_relu(&self, slope: f64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_leaky_relu(self.raw.as_ptr(), slope, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// alpha * a + beta, kept between 0 and 1.
    pub fn hard_sigmoid(&self, alpha: f64, beta: f64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_hard_sigmoid(self.raw.as_ptr(), alpha, beta, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Kept between `low` and `high`, tensors that broadcast; `low` may be NULL, `high` may be NULL.  NaN stays.
    pub fn clip(&self, low: Option<&Tensor>, high: Option<&Tensor>) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_clip(self.raw.as_ptr(), low.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), high.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// exp(a) over its sum along `axis`, without overflow.
    pub fn softmax(&self, axis: i64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_softmax(self.raw.as_ptr(), axis, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The logarithm of tiny_softmax.
    pub fn log_softmax(&self, axis: i64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_log_softmax(self.raw.as_ptr(), axis, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The mean squared distance from the mean over `axes` (`axes` may be NULL with naxes 0: all); `correction` is taken from the count it divides by: 0 or 1.  Takes TINY_FLAG_KEEPDIMS.
    pub fn variance(&self, axes: Option<&[i64]>, correction: f64, keepdims: bool) -> Result<Tensor> {
        let axes_count = count(&[axes])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_variance(self.raw.as_ptr(), pointer(axes), axes_count, correction, flags(&[(keepdims, 1)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Cross-correlation.  x is \[batch, channels, spatial..\], `weight` \[out channels, channels / groups, kernel..\], `bias` (may be NULL) \[out channels\].  `window` may be NULL: its defaults.  With TINY_LAYOUT_CHANNELS_LAST the second axis of each is the last: x and the result are \[batch, spatial.., channels\], `weight` is \[out channels, kernel.., channels / groups\].
    pub fn conv(&self, weight: &Tensor, bias: Option<&Tensor>, window: Option<&Window>) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_conv(self.raw.as_ptr(), weight.raw.as_ptr(), bias.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), window.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The transpose of tiny_conv, its gradient: `weight` is \[channels, out channels / groups, kernel..\], or with TINY_LAYOUT_CHANNELS_LAST \[channels, kernel.., out channels / groups\].  An axis of n elements becomes (n - 1) * stride + (kernel - 1) * dilation + 1 - before - after + output padding; n * stride with padding that is SAME.  `bias` may be NULL, `window` may be NULL.
    pub fn conv_transpose(&self, weight: &Tensor, bias: Option<&Tensor>, window: Option<&Window>) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_conv_transpose(self.raw.as_ptr(), weight.raw.as_ptr(), bias.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), window.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// What lies in each window over the last axes of x, as many as the window has: out\[.., o1, .., k1, ..\] is x\[.., o1 * stride1 + k1 * dilation1, ..\] for every window that fits, with zeros where it is padded.  A view.
    pub fn windows(&self, window: &Window) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_windows(self.raw.as_ptr(), window.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The greatest value of each window over the last axes of x, as many as the window has, or with TINY_LAYOUT_CHANNELS_LAST those before the last.  Padding counts for nothing.
    pub fn max_pool(&self, window: &Window) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_max_pool(self.raw.as_ptr(), window.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Where tiny_max_pool's values are: positions in the flattened spatial axes, int64, the first of equals.
    pub fn max_pool_indices(&self, window: &Window) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_max_pool_indices(self.raw.as_ptr(), window.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The mean of each window, over axes as tiny_max_pool; padding counts only with the window's TINY_FLAG_COUNT_INCLUDE_PAD.
    pub fn avg_pool(&self, window: &Window) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_avg_pool(self.raw.as_ptr(), window.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// (x - mean) / sqrt(var + epsilon) * scale + bias, one number of each per channel (axis 1).  `scale` may be NULL, `bias` may be NULL.
    pub fn batch_norm(&self, scale: Option<&Tensor>, bias: Option<&Tensor>, mean: &Tensor, var: &Tensor, epsilon: f64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_batch_norm(self.raw.as_ptr(), scale.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), bias.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), mean.raw.as_ptr(), var.raw.as_ptr(), epsilon, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// (x - mean) / sqrt(variance + epsilon) * scale + bias over the axes from `axis` on.  `scale` may be NULL, `bias` may be NULL; they broadcast.
    pub fn layer_norm(&self, scale: Option<&Tensor>, bias: Option<&Tensor>, axis: i64, epsilon: f64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_layer_norm(self.raw.as_ptr(), scale.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), bias.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), axis, epsilon, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// x / sqrt(mean(x * x) + epsilon) * scale over the axes from `axis` on.  `scale` may be NULL.
    pub fn rms_norm(&self, scale: Option<&Tensor>, axis: i64, epsilon: f64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_rms_norm(self.raw.as_ptr(), scale.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), axis, epsilon, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// As tiny_layer_norm over the spatial axes and, in each of `groups` parts, the channels (axis 1), with one scale and bias per channel.  `scale` may be NULL, `bias` may be NULL.
    pub fn group_norm(&self, groups: i64, scale: Option<&Tensor>, bias: Option<&Tensor>, epsilon: f64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_group_norm(self.raw.as_ptr(), groups, scale.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), bias.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), epsilon, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// tiny_group_norm with a group for each channel.  `scale` may be NULL, `bias` may be NULL.
    pub fn instance_norm(&self, scale: Option<&Tensor>, bias: Option<&Tensor>, epsilon: f64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_instance_norm(self.raw.as_ptr(), scale.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), bias.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), epsilon, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// x / (k + alpha / size * s) ^ beta, where s sums the squares of the `size` channels around each.
    pub fn lrn(&self, size: i64, alpha: f64, beta: f64, k: f64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_lrn(self.raw.as_ptr(), size, alpha, beta, k, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The value of the tensor now: before it is computed what it will be computed of, afterwards a view of memory.
    pub fn node(&self) -> Result<Node> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_tensor_node(self.raw.as_ptr(), &mut out) })?;
        Ok(Node::from_raw(out, self.context.clone()))
    }

    /// By the ending of `path`: .npy, .pb (an ONNX TensorProto), .safetensors, or what data sets come in: -ubyte or .idx (MNIST's format), .bin (the binary version of CIFAR), and .pkl, .pickle, .meta or no ending at all (a Python pickle, such as CIFAR's, of a dict of NumPy arrays, lists of integers and texts; nothing is executed, what it cannot be without is TINY_ERROR_UNSUPPORTED).  Any of them may be compressed, with .gz behind it.  What has several tensors is TINY_ERROR_INVALID_ARGUMENT here, with their names.  Data sets and .gz are since 0.3, and not written.
    pub fn load(context: &Context, path: &str) -> Result<Tensor> {
        let path = c_text(Some(path))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_tensor_load(context.raw.as_ptr(), path.as_ref().map_or(ptr::null(), |t| t.as_ptr()), &mut out) })?;
        Ok(Tensor::from_raw(out, context.clone()))
    }

    /// Writes such a file.  `name` (may be NULL: "") is the name in a .pb or .safetensors.  A file that is there is replaced once the new one is whole and on the disk: whenever the process or the machine ends, one of the two is there as a whole.  (Beside it there may be what was written by then, under the name with six more letters.)
    pub fn save(&self, path: &str, name: Option<&str>) -> Result<()> {
        let path = c_text(Some(path))?;
        let name = c_text(name)?;
        check(unsafe { ffi::tiny_tensor_save(self.raw.as_ptr(), path.as_ref().map_or(ptr::null(), |t| t.as_ptr()), name.as_ref().map_or(ptr::null(), |t| t.as_ptr())) })?;
        Ok(())
    }

    /// Of logits \[batch, classes, ..\].  Targets are integers \[batch, ..\]: classes, of which `ignore_index`, a class or not, weighs nothing; or floats of the logits' shape: shares of the classes.  `weight` (may be NULL) has a number for each class; the mean of classes is over the weights of the targets.  `label_smoothing`, 0 to 1, is shared by all classes.
    pub fn cross_entropy(&self, target: &Tensor, weight: Option<&Tensor>, ignore_index: i64, label_smoothing: f64, reduction: Reduction) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_cross_entropy(self.raw.as_ptr(), target.raw.as_ptr(), weight.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), ignore_index, label_smoothing, reduction.0, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The same of logarithms of probabilities, with classes for targets.  `weight` may be NULL.
    pub fn nll_loss(&self, target: &Tensor, weight: Option<&Tensor>, ignore_index: i64, reduction: Reduction) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_nll_loss(self.raw.as_ptr(), target.raw.as_ptr(), weight.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), ignore_index, reduction.0, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    pub fn mse_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_mse_loss(self.raw.as_ptr(), target.raw.as_ptr(), reduction.0, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    pub fn l1_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_l1_loss(self.raw.as_ptr(), target.raw.as_ptr(), reduction.0, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Squares below a distance of `beta`, straight beyond.
    pub fn smooth_l1_loss(&self, target: &Tensor, beta: f64, reduction: Reduction) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_smooth_l1_loss(self.raw.as_ptr(), target.raw.as_ptr(), beta, reduction.0, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    pub fn huber_loss(&self, target: &Tensor, delta: f64, reduction: Reduction) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_huber_loss(self.raw.as_ptr(), target.raw.as_ptr(), delta, reduction.0, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Of probabilities, whose logarithms are at least -100.
    pub fn binary_cross_entropy(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary_cross_entropy(self.raw.as_ptr(), target.raw.as_ptr(), reduction.0, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Of what a sigmoid makes probabilities of.  Targets that are 1 weigh `positive_weight` (may be NULL), which broadcasts.
    pub fn binary_cross_entropy_with_logits(&self, target: &Tensor, positive_weight: Option<&Tensor>, reduction: Reduction) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_binary_cross_entropy_with_logits(self.raw.as_ptr(), target.raw.as_ptr(), positive_weight.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), reduction.0, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// target * (log(target) - x), x being logarithms; of logarithms in `target` too if log_target != 0.
    pub fn kl_div(&self, target: &Tensor, log_target: bool, reduction: Reduction) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_kl_div(self.raw.as_ptr(), target.raw.as_ptr(), log_target as i32, reduction.0, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Connectionist temporal classification: -log of the probability that the steps spell the target, blanks and repetitions left out.  log_probability is \[steps, batch, classes\], `target` integers \[batch, labels\], of which the first target_lengths\[b\] count, as do the first input_lengths\[b\] of the steps.  Each loss of a mean is divided by its target's length first.  Takes TINY_FLAG_ZERO_INFINITY.
    pub fn ctc_loss(&self, target: &Tensor, input_lengths: &Tensor, target_lengths: &Tensor, blank: i64, reduction: Reduction, zero_infinity: bool) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_ctc_loss(self.raw.as_ptr(), target.raw.as_ptr(), input_lengths.raw.as_ptr(), target_lengths.raw.as_ptr(), blank, reduction.0, flags(&[(zero_infinity, 262144)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Which of `others` the tensor is made of, those that gradients do not reach among them: their positions in `others`, in order; writes min(found, capacity), and `found` gets how many there are.  Since 0.3.
    pub fn made_of(&self, others: &[&Tensor]) -> Result<Vec<i64>> {
        let others_raw: Vec<_> = others.iter().map(|o| o.raw.as_ptr() as *const _).collect();
        let mut positions_count = 0usize;
        let mut positions: Vec<i64> = vec![0; GUESS];
        check(unsafe { ffi::tiny_made_of(self.raw.as_ptr(), others_raw.as_ptr() as *const _, others_raw.len(), positions.as_mut_ptr(), positions.len(), &mut positions_count) })?;
        if positions_count > positions.len() {
            positions.resize(positions_count, Default::default());
            check(unsafe { ffi::tiny_made_of(self.raw.as_ptr(), others_raw.as_ptr() as *const _, others_raw.len(), positions.as_mut_ptr(), positions.len(), &mut positions_count) })?;
        }
        positions.truncate(positions_count);
        Ok(positions)
    }

    /// The same value, through which no gradient goes: by tiny_gradient it is made of nothing, and can be one of `wrt`.
    pub fn detach(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_detach(self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The same value as one of its own: gradients by it are apart from those by `a` and by equal constants, and go on to `a`. A write to one leaves the other as it is.  Since 0.3.
    pub fn clone(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_clone(self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The same value, whose gradient computes again what it is made of: between the forward and the backward pass only the value is kept (checkpointing).  What is computed again begins at the tensors of `kept`, of which `a` is made (`kept` may be NULL with count 0), at other such values, at memory, and at results of recurrences and of the caller's operators.  Values and gradients are the same but for rounding.
    pub fn recompute(&self, kept: &[&Tensor]) -> Result<Tensor> {
        let kept_raw: Vec<_> = kept.iter().map(|o| o.raw.as_ptr() as *const _).collect();
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_recompute(self.raw.as_ptr(), kept_raw.as_ptr() as *const _, kept_raw.len(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// `count` keys, \[count, 2\], which have nothing to do with each other or with other numbers of `key`.
    pub fn random_split(&self, count: i64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_random_split(self.raw.as_ptr(), count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// `count` uint32, all as likely as each other: those of JAX's threefry_2x32 at 0, 1, ..
    pub fn random_bits(&self, count: i64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_random_bits(self.raw.as_ptr(), count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The generator's block at each of `counters`, uint32 \[2, ..\], whose two words stand along axis 0, as those of the result do.  At one counter, \[2\], it is a key, which has nothing to do with those at others.  Since 0.3.
    pub fn random_at(&self, counters: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_random_at(self.raw.as_ptr(), counters.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Floats of at least 0 and below 1.
    pub fn random_uniform(&self, dtype: Dtype, dims: &[i64]) -> Result<Tensor> {
        let dims_count = count(&[Some(dims)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_random_uniform(self.raw.as_ptr(), dtype.0, pointer(Some(dims)), dims_count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Floats of mean 0 and variance 1, normally distributed.
    pub fn random_normal(&self, dtype: Dtype, dims: &[i64]) -> Result<Tensor> {
        let dims_count = count(&[Some(dims)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_random_normal(self.raw.as_ptr(), dtype.0, pointer(Some(dims)), dims_count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Integers from `low` to below `high`.
    pub fn random_integers(&self, dtype: Dtype, dims: &[i64], low: i64, high: i64) -> Result<Tensor> {
        let dims_count = count(&[Some(dims)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_random_integers(self.raw.as_ptr(), dtype.0, pointer(Some(dims)), dims_count, low, high, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// 0, 1, .. count-1 in any order, int64.
    pub fn random_permutation(&self, count: i64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_random_permutation(self.raw.as_ptr(), count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Bools of p's shape, true with the probability that stands there.
    pub fn random_bernoulli(&self, p: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_random_bernoulli(self.raw.as_ptr(), p.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Normally distributed as tiny_random_normal, of those from `low` to `high`.
    pub fn random_truncated_normal(&self, dtype: Dtype, dims: &[i64], low: f64, high: f64) -> Result<Tensor> {
        let dims_count = count(&[Some(dims)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_random_truncated_normal(self.raw.as_ptr(), dtype.0, pointer(Some(dims)), dims_count, low, high, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// `count` positions along the last axis of `weights`, int64 \[.., count\], each as likely as its weight's share: floats, none below 0, not all 0.  Every position may come again if replacement != 0; otherwise none does, those of weight 0 are last, and `count` is at most the size of the axis.
    pub fn random_multinomial(&self, weights: &Tensor, count: i64, replacement: bool) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_random_multinomial(self.raw.as_ptr(), weights.raw.as_ptr(), count, replacement as i32, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Floats `x`, of which each is 0 with probability `p`, 0 to 1, and else over 1 - p: of the training of a network.
    pub fn dropout(&self, x: &Tensor, p: f64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_dropout(self.raw.as_ptr(), x.raw.as_ptr(), p, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Floats of this shape; the same for the same key.
    pub fn initialize(&self, initial: Initial, a: f64, b: f64, dtype: Dtype, dims: &[i64]) -> Result<Tensor> {
        let dims_count = count(&[Some(dims)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_initialize(self.raw.as_ptr(), initial.0, a, b, dtype.0, pointer(Some(dims)), dims_count, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        unsafe { ffi::tiny_tensor_release(self.raw.as_ptr()) }
    }
}

impl Clone for Tensor {
    /// Another reference to the same object.
    fn clone(&self) -> Tensor {
        unsafe { ffi::tiny_tensor_retain(self.raw.as_ptr()) }
        Tensor::from_raw(self.raw.as_ptr(), self.context.clone())
    }
}

pub struct Report {
    pub(crate) raw: ptr::NonNull<ffi::tiny_report>,
}

// The library's calls wait for each other where they must.
unsafe impl Send for Report {}
unsafe impl Sync for Report {}

impl Report {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_report) -> Report {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Report { raw }
    }

    /// The text, NUL-terminated; lives as long as the report.
    pub fn text(&self) -> Option<String> {
        unsafe { text(ffi::tiny_report_text(self.raw.as_ptr())) }
    }

    pub fn bytes(&self) -> usize {
        unsafe { ffi::tiny_report_bytes(self.raw.as_ptr()) }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        unsafe { ffi::tiny_report_release(self.raw.as_ptr()) }
    }
}

pub struct Cancel {
    pub(crate) raw: ptr::NonNull<ffi::tiny_cancel>,
}

// The library's calls wait for each other where they must.
unsafe impl Send for Cancel {}
unsafe impl Sync for Cancel {}

impl Cancel {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_cancel) -> Cancel {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Cancel { raw }
    }

    /// A token; set and cleared from any thread.
    pub fn create() -> Result<Cancel> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_cancel_create(&mut out) })?;
        Ok(Cancel::from_raw(out))
    }

    /// Whatever the token was given to ends with TINY_ERROR_CANCELLED, until it is cleared.  Of any thread, and of a signal handler.
    pub fn set(&self) -> Result<()> {
        check(unsafe { ffi::tiny_cancel_set(self.raw.as_ptr()) })?;
        Ok(())
    }

    pub fn clear(&self) -> Result<()> {
        check(unsafe { ffi::tiny_cancel_clear(self.raw.as_ptr()) })?;
        Ok(())
    }
}

impl Drop for Cancel {
    fn drop(&mut self) {
        unsafe { ffi::tiny_cancel_release(self.raw.as_ptr()) }
    }
}

impl Clone for Cancel {
    /// Another reference to the same object.
    fn clone(&self) -> Cancel {
        unsafe { ffi::tiny_cancel_retain(self.raw.as_ptr()) }
        Cancel::from_raw(self.raw.as_ptr())
    }
}

pub struct Window {
    pub(crate) raw: ptr::NonNull<ffi::tiny_window>,
}

// The library's calls wait for each other where they must.
unsafe impl Send for Window {}
unsafe impl Sync for Window {}

impl Window {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_window) -> Window {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Window { raw }
    }

    /// A window of `nspatial` axes, 1 to TINY_RANK_MAX - 2: strides and dilations 1, no padding, one group, channels first, and no kernel.
    pub fn create(nspatial: usize) -> Result<Window> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_window_create(nspatial, &mut out) })?;
        Ok(Window::from_raw(out))
    }

    /// The sizes of a pool's windows, at least 1.  A convolution takes those of its weight; if they are set here too they must agree.  Each list has `nspatial` numbers, the window's own.
    pub fn set_kernel(&self, kernel: &[i64]) -> Result<()> {
        let kernel_count = count(&[Some(kernel)])?;
        check(unsafe { ffi::tiny_window_set_kernel(self.raw.as_ptr(), pointer(Some(kernel)), kernel_count) })?;
        Ok(())
    }

    /// How far apart windows begin, at least 1.
    pub fn set_strides(&self, strides: &[i64]) -> Result<()> {
        let strides_count = count(&[Some(strides)])?;
        check(unsafe { ffi::tiny_window_set_strides(self.raw.as_ptr(), pointer(Some(strides)), strides_count) })?;
        Ok(())
    }

    /// How far apart the elements of a window are, at least 1.
    pub fn set_dilations(&self, dilations: &[i64]) -> Result<()> {
        let dilations_count = count(&[Some(dilations)])?;
        check(unsafe { ffi::tiny_window_set_dilations(self.raw.as_ptr(), pointer(Some(dilations)), dilations_count) })?;
        Ok(())
    }

    /// Elements that are added before and after each axis, and makes padding explicit; those of a convolution may be negative: elements are taken away.
    pub fn set_padding(&self, before: &[i64], after: &[i64]) -> Result<()> {
        let before_count = count(&[Some(before), Some(after)])?;
        check(unsafe { ffi::tiny_window_set_padding(self.raw.as_ptr(), pointer(Some(before)), pointer(Some(after)), before_count) })?;
        Ok(())
    }

    /// Padding that follows from sizes, instead; TINY_PADDING_EXPLICIT is none again.
    pub fn set_auto_padding(&self, padding: Padding) -> Result<()> {
        check(unsafe { ffi::tiny_window_set_auto_padding(self.raw.as_ptr(), padding.0) })?;
        Ok(())
    }

    /// What a transposed convolution adds to the end of each axis, at least 0.
    pub fn set_output_padding(&self, output_padding: &[i64]) -> Result<()> {
        let output_padding_count = count(&[Some(output_padding)])?;
        check(unsafe { ffi::tiny_window_set_output_padding(self.raw.as_ptr(), pointer(Some(output_padding)), output_padding_count) })?;
        Ok(())
    }

    /// Channels are split into as many groups, each a convolution of its own; at least 1.
    pub fn set_groups(&self, groups: i64) -> Result<()> {
        check(unsafe { ffi::tiny_window_set_groups(self.raw.as_ptr(), groups) })?;
        Ok(())
    }

    pub fn set_layout(&self, layout: Layout) -> Result<()> {
        check(unsafe { ffi::tiny_window_set_layout(self.raw.as_ptr(), layout.0) })?;
        Ok(())
    }

    /// What pools are told besides: takes TINY_FLAG_CEIL_MODE and TINY_FLAG_COUNT_INCLUDE_PAD, instead of those that were set.
    pub fn set_flags(&self, ceil_mode: bool, count_include_pad: bool) -> Result<()> {
        check(unsafe { ffi::tiny_window_set_flags(self.raw.as_ptr(), flags(&[(ceil_mode, 64), (count_include_pad, 128)])) })?;
        Ok(())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        unsafe { ffi::tiny_window_release(self.raw.as_ptr()) }
    }
}

impl Clone for Window {
    /// Another reference to the same object.
    fn clone(&self) -> Window {
        unsafe { ffi::tiny_window_retain(self.raw.as_ptr()) }
        Window::from_raw(self.raw.as_ptr())
    }
}

pub struct Node {
    pub(crate) raw: ptr::NonNull<ffi::tiny_node>,
    pub(crate) context: Context,
}

// The library's calls wait for each other where they must.
unsafe impl Send for Node {}
unsafe impl Sync for Node {}

impl Node {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_node, context: Context) -> Node {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Node { raw, context }
    }
    /// The context that this lives in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Equal for two handles if they are of one node; of a node that is gone another may have it.
    pub fn id(&self) -> Result<i64> {
        let mut out: i64 = 0;
        check(unsafe { ffi::tiny_node_id(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    /// The operation's name in tiny_ops.  Lives as long as the library.
    pub fn op(&self) -> Result<Option<String>> {
        let mut out = ptr::null();
        check(unsafe { ffi::tiny_node_op(self.raw.as_ptr(), &mut out) })?;
        Ok(unsafe { text(out) })
    }

    /// 0 for a node without a value, such as a kernel's store.
    pub fn dtype(&self) -> Result<Dtype> {
        let mut out = 0i32;
        check(unsafe { ffi::tiny_node_dtype(self.raw.as_ptr(), &mut out) })?;
        Ok(Dtype(out))
    }

    /// As JSON: a number or bool of a constant ("nan", "inf", "-inf"), a number or a list of integers of most operations (null in the place of what a source gives), {"name","min","max"} of a variable, {"op","axes"} of a reduction, {"shape","strides","offset"} of a view, null where there is none.
    pub fn argument(&self) -> Result<Report> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_node_argument(self.raw.as_ptr(), &mut out) })?;
        Ok(Report::from_raw(out))
    }

    pub fn source_count(&self) -> Result<usize> {
        let mut out: usize = 0;
        check(unsafe { ffi::tiny_node_source_count(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    pub fn source(&self, index: usize) -> Result<Node> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_node_source(self.raw.as_ptr(), index, &mut out) })?;
        Ok(Node::from_raw(out, self.context.clone()))
    }

    /// 1 if the node is of the tensor graph, where nodes have shapes, else 0.
    pub fn has_shape(&self) -> Result<i32> {
        let mut out: i32 = 0;
        check(unsafe { ffi::tiny_node_has_shape(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    /// As tiny_tensor_shape; TINY_ERROR_INVALID_ARGUMENT for a node without.
    pub fn shape(&self) -> Result<Vec<i64>> {
        let mut dims_count = 0usize;
        let mut dims: Vec<i64> = vec![0; GUESS];
        check(unsafe { ffi::tiny_node_shape(self.raw.as_ptr(), dims.as_mut_ptr(), dims.len(), &mut dims_count) })?;
        if dims_count > dims.len() {
            dims.resize(dims_count, Default::default());
            check(unsafe { ffi::tiny_node_shape(self.raw.as_ptr(), dims.as_mut_ptr(), dims.len(), &mut dims_count) })?;
        }
        dims.truncate(dims_count);
        Ok(dims)
    }

    /// 1 if its elements are in memory, so that it is read and not computed, else 0.
    pub fn in_memory(&self) -> Result<i32> {
        let mut out: i32 = 0;
        check(unsafe { ffi::tiny_node_in_memory(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    /// Numbers that an integer (or bool: 0, 1) is not below and not above, by what its operands can be; INT64_MIN and INT64_MAX where there is no bound.  64-bit arithmetic is taken not to overflow.
    pub fn range(&self) -> Result<(i64, i64)> {
        let mut min: i64 = 0;
        let mut max: i64 = 0;
        check(unsafe { ffi::tiny_node_range(self.raw.as_ptr(), &mut min, &mut max) })?;
        Ok((min, max))
    }

    /// An expression as text, "((a * 4) + b)".  TINY_ERROR_LIMIT for one that is written with more than 4,000 nodes; an operand that several share is written for each.
    pub fn text(&self) -> Result<Report> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_node_text(self.raw.as_ptr(), &mut out) })?;
        Ok(Report::from_raw(out))
    }

    /// The expression rewritten by the engine's rules for indices: 64-bit arithmetic is taken not to overflow. TINY_ERROR_INVALID_ARGUMENT for what depends on tensors.
    pub fn simplify(&self) -> Result<Node> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_node_simplify(self.raw.as_ptr(), &mut out) })?;
        Ok(Node::from_raw(out, self.context.clone()))
    }

    /// Constants, of an integer type or bool and of a float type.
    pub fn integer(context: &Context, dtype: Dtype, value: i64) -> Result<Node> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_node_integer(context.raw.as_ptr(), dtype.0, value, &mut out) })?;
        Ok(Node::from_raw(out, context.clone()))
    }

    pub fn float(context: &Context, dtype: Dtype, value: f64) -> Result<Node> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_node_float(context.raw.as_ptr(), dtype.0, value, &mut out) })?;
        Ok(Node::from_raw(out, context.clone()))
    }

    /// A 64-bit integer from `min` to `max`; one with the same name and range is the same.
    pub fn variable(context: &Context, name: &str, min: i64, max: i64) -> Result<Node> {
        let name = c_text(Some(name))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_node_variable(context.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), min, max, &mut out) })?;
        Ok(Node::from_raw(out, context.clone()))
    }

    /// An elementwise operation, as it is, without rewriting.  `dtype` is what a Cast or Bitcast makes and may be 0 otherwise; operands have one dtype (a choice's condition is a bool) and, in the tensor graph, one shape.
    pub fn make(context: &Context, op: &str, dtype: Dtype, sources: &[&Node]) -> Result<Node> {
        crate::support::at_least_one(sources.len())?;
        let op = c_text(Some(op))?;
        let sources_raw: Vec<_> = sources.iter().map(|o| o.raw.as_ptr() as *const _).collect();
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_node_make(context.raw.as_ptr(), op.as_ref().map_or(ptr::null(), |t| t.as_ptr()), dtype.0, sources_raw.as_ptr() as *const _, sources_raw.len(), &mut out) })?;
        Ok(Node::from_raw(out, context.clone()))
    }

    /// The node with other sources, each of the dtype (and shape) of that which it replaces, and all else the same.
    pub fn with_sources(&self, sources: &[&Node]) -> Result<Node> {
        let sources_raw: Vec<_> = sources.iter().map(|o| o.raw.as_ptr() as *const _).collect();
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_node_with_sources(self.raw.as_ptr(), sources_raw.as_ptr() as *const _, sources_raw.len(), &mut out) })?;
        Ok(Node::from_raw(out, self.context.clone()))
    }

    /// A tensor of the node's value.  TINY_ERROR_INVALID_ARGUMENT, which says why, for what is none: a kernel's.
    pub fn tensor(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_node_tensor(self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        unsafe { ffi::tiny_node_release(self.raw.as_ptr()) }
    }
}

impl Clone for Node {
    /// Another reference to the same object.
    fn clone(&self) -> Node {
        unsafe { ffi::tiny_node_retain(self.raw.as_ptr()) }
        Node::from_raw(self.raw.as_ptr(), self.context.clone())
    }
}

pub struct Archive {
    pub(crate) raw: ptr::NonNull<ffi::tiny_archive>,
    pub(crate) context: Context,
}

// The library's calls wait for each other where they must.
unsafe impl Send for Archive {}
unsafe impl Sync for Archive {}

impl Archive {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_archive, context: Context) -> Archive {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Archive { raw, context }
    }
    /// The context that this lives in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// An archive without tensors.
    pub fn create(context: &Context) -> Result<Archive> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_archive_create(context.raw.as_ptr(), &mut out) })?;
        Ok(Archive::from_raw(out, context.clone()))
    }

    /// The tensors of a .safetensors or data set ("data" and "labels", or "coarse_labels" and "fine_labels", of CIFAR), or the one of another file (named "", but for a .pb), see tiny_tensor_load.  The file is checked, and stays mapped until the archive is released, as with tiny_model_load (the option "map_files" too): elements are read when a tensor is asked for.  It is untrusted input: TINY_ERROR_INVALID_MODEL names the place that is wrong.
    pub fn load(context: &Context, path: &str) -> Result<Archive> {
        let path = c_text(Some(path))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_archive_load(context.raw.as_ptr(), path.as_ref().map_or(ptr::null(), |t| t.as_ptr()), &mut out) })?;
        Ok(Archive::from_raw(out, context.clone()))
    }

    pub fn count(&self) -> Result<usize> {
        let mut out: usize = 0;
        check(unsafe { ffi::tiny_archive_count(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    /// In the order of the file's header, then as they were set; lives as long as the archive.
    pub fn name(&self, index: usize) -> Result<Option<String>> {
        let mut out = ptr::null();
        check(unsafe { ffi::tiny_archive_name(self.raw.as_ptr(), index, &mut out) })?;
        Ok(unsafe { text(out) })
    }

    /// {"tensors":\[{"name","dtype","shape","bytes"}\],"metadata":{}}; a dtype that is none of tiny_dtype as the file spells it.
    pub fn info(&self) -> Result<Report> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_archive_info(self.raw.as_ptr(), &mut out) })?;
        Ok(Report::from_raw(out))
    }

    /// A tensor with a copy of the elements, or the very tensor that was set.  A name that is not there is TINY_ERROR_INVALID_ARGUMENT with a message that lists the known; a dtype that is none of tiny_dtype is TINY_ERROR_UNSUPPORTED.
    pub fn get(&self, name: &str) -> Result<Tensor> {
        let name = c_text(Some(name))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_archive_get(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Adds the tensor, or puts it in another's place: what it holds when the archive is saved is written.
    pub fn set(&self, name: &str, tensor: &Tensor) -> Result<()> {
        let name = c_text(Some(name))?;
        check(unsafe { ffi::tiny_archive_set(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), tensor.raw.as_ptr()) })?;
        Ok(())
    }

    /// The name is no longer there; what is behind it moves up.  One that was not is TINY_ERROR_INVALID_ARGUMENT. Since 0.3.
    pub fn remove(&self, name: &str) -> Result<()> {
        let name = c_text(Some(name))?;
        check(unsafe { ffi::tiny_archive_remove(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr())) })?;
        Ok(())
    }

    /// A state is put back: the tensors that were set in `target` get the elements of those of the same names in `source`, as tiny_assign does it, computed before it returns.  Shapes agree; a dtype may differ between floats, which are converted.  All is checked before anything is assigned: one message lists the names that `source` lacks, those that `target` lacks, and the tensors that do not agree.  With TINY_FLAG_PARTIAL names that only one of them has are passed over.  `source` may be a file's (tiny_archive_load), whose elements are read where they lie.  Since 0.3.
    pub fn assign(&self, source: &Archive, partial: bool) -> Result<()> {
        check(unsafe { ffi::tiny_archive_assign(self.raw.as_ptr(), source.raw.as_ptr(), flags(&[(partial, 1024)])) })?;
        Ok(())
    }

    /// A text under a key, for a .safetensors ("format": "pt").
    pub fn set_metadata(&self, key: &str, value: &str) -> Result<()> {
        let key = c_text(Some(key))?;
        let value = c_text(Some(value))?;
        check(unsafe { ffi::tiny_archive_set_metadata(self.raw.as_ptr(), key.as_ref().map_or(ptr::null(), |t| t.as_ptr()), value.as_ref().map_or(ptr::null(), |t| t.as_ptr())) })?;
        Ok(())
    }

    /// That text; NULL, which is no error, if there is none.  Lives until another is set under the key, as long as the archive.  Since 0.3.
    pub fn metadata(&self, key: &str) -> Result<Option<String>> {
        let key = c_text(Some(key))?;
        let mut out = ptr::null();
        check(unsafe { ffi::tiny_archive_metadata(self.raw.as_ptr(), key.as_ref().map_or(ptr::null(), |t| t.as_ptr()), &mut out) })?;
        Ok(unsafe { text(out) })
    }

    /// Computes the tensors that were set, and writes all as tiny_tensor_save does: to a .safetensors, or a .npy or .pb if there is one.  Names are UTF-8.
    pub fn save(&self, path: &str) -> Result<()> {
        let path = c_text(Some(path))?;
        check(unsafe { ffi::tiny_archive_save(self.raw.as_ptr(), path.as_ref().map_or(ptr::null(), |t| t.as_ptr())) })?;
        Ok(())
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        unsafe { ffi::tiny_archive_release(self.raw.as_ptr()) }
    }
}

impl Clone for Archive {
    /// Another reference to the same object.
    fn clone(&self) -> Archive {
        unsafe { ffi::tiny_archive_retain(self.raw.as_ptr()) }
        Archive::from_raw(self.raw.as_ptr(), self.context.clone())
    }
}

pub struct Loader {
    pub(crate) raw: ptr::NonNull<ffi::tiny_loader>,
    pub(crate) context: Context,
}

// The library's calls wait for each other where they must.
unsafe impl Send for Loader {}
unsafe impl Sync for Loader {}

impl Loader {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_loader, context: Context) -> Loader {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Loader { raw, context }
    }
    /// The context that this lives in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The rows of `arrays`, which have first axes of one size (pictures and their labels), `batch` at a time: the last one of an epoch may be smaller.  They are computed now; who assigns to one computes it before the next batch is made. Takes TINY_FLAG_SHUFFLE: each epoch has an order of its own, which `seed` decides, the same on every machine; and TINY_FLAG_DROP_LAST.  A thread of the loader's gathers up to `ahead` batches before they are asked for; 0: there is none, and each is gathered when it is asked for.  After a fork a loader with a thread is TINY_ERROR_DEVICE_LOST in the child.  Any thread may call; calls on one loader wait for each other.  Since 0.3, as are all of these.
    pub fn create(arrays: &[&Tensor], batch: i64, seed: i64, ahead: usize, shuffle: bool, drop_last: bool) -> Result<Loader> {
        crate::support::at_least_one(arrays.len())?;
        let arrays_raw: Vec<_> = arrays.iter().map(|o| o.raw.as_ptr() as *const _).collect();
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_loader_create(arrays_raw.as_ptr() as *const _, arrays_raw.len(), batch, seed, ahead, flags(&[(shuffle, 2048), (drop_last, 4096)]), &mut out) })?;
        Ok(Loader::from_raw(out, arrays[0].context.clone()))
    }

    /// Batches of an epoch.
    pub fn batch_count(&self) -> Result<i64> {
        let mut out: i64 = 0;
        check(unsafe { ffi::tiny_loader_batch_count(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    /// Goes to the next batch: `out` is its number of rows; 0 tells the end of the epoch, behind which the next one begins. Takes no part in building.
    pub fn next(&self) -> Result<i64> {
        let mut out: i64 = 0;
        check(unsafe { ffi::tiny_loader_next(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    /// The rows of array `index` that are in the batch, gathered into memory of their own: no other copy is made.  Asked for again it is the same tensor.
    pub fn tensor(&self, index: usize) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_loader_tensor(self.raw.as_ptr(), index, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The next batch is number `batch` of the epoch; both count from 0.  For going on where another loader was.
    pub fn seek(&self, epoch: i64, batch: i64) -> Result<()> {
        check(unsafe { ffi::tiny_loader_seek(self.raw.as_ptr(), epoch, batch) })?;
        Ok(())
    }

    /// Which the next batch is; one that does not exist is the end of the epoch.
    pub fn place(&self) -> Result<(i64, i64)> {
        let mut epoch: i64 = 0;
        let mut batch: i64 = 0;
        check(unsafe { ffi::tiny_loader_place(self.raw.as_ptr(), &mut epoch, &mut batch) })?;
        Ok((epoch, batch))
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        unsafe { ffi::tiny_loader_release(self.raw.as_ptr()) }
    }
}

impl Clone for Loader {
    /// Another reference to the same object.
    fn clone(&self) -> Loader {
        unsafe { ffi::tiny_loader_retain(self.raw.as_ptr()) }
        Loader::from_raw(self.raw.as_ptr(), self.context.clone())
    }
}

pub struct Processes {
    pub(crate) raw: ptr::NonNull<ffi::tiny_processes>,
}

// The library's calls wait for each other where they must.
unsafe impl Send for Processes {}
unsafe impl Sync for Processes {}

impl Processes {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_processes) -> Processes {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Processes { raw }
    }

    /// Joins the others by a transport, a library that is loaded now; `library` may be NULL: "libtiny_mpi.so", for processes that mpirun started.  TINY_ERROR_UNSUPPORTED with what is missing where it cannot be had.  Once in a process; the last release leaves.  Since 0.3.
    pub fn open(library: Option<&str>) -> Result<Processes> {
        let library = c_text(library)?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_processes_open(library.as_ref().map_or(ptr::null(), |t| t.as_ptr()), &mut out) })?;
        Ok(Processes::from_raw(out))
    }

    /// Which of them this one is, from 0 on, and how many there are.
    pub fn rank(&self) -> Result<i64> {
        let mut out: i64 = 0;
        check(unsafe { ffi::tiny_processes_rank(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    pub fn count(&self) -> Result<i64> {
        let mut out: i64 = 0;
        check(unsafe { ffi::tiny_processes_count(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        unsafe { ffi::tiny_processes_release(self.raw.as_ptr()) }
    }
}

impl Clone for Processes {
    /// Another reference to the same object.
    fn clone(&self) -> Processes {
        unsafe { ffi::tiny_processes_retain(self.raw.as_ptr()) }
        Processes::from_raw(self.raw.as_ptr())
    }
}

pub struct LossScaler {
    pub(crate) raw: ptr::NonNull<ffi::tiny_loss_scaler>,
    pub(crate) context: Context,
}

// The library's calls wait for each other where they must.
unsafe impl Send for LossScaler {}
unsafe impl Sync for LossScaler {}

impl LossScaler {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_loss_scaler, context: Context) -> LossScaler {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        LossScaler { raw, context }
    }
    /// The context that this lives in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The factor begins at `factor` and is doubled after `interval` steps in a row whose gradients were finite; others halve it.  It is kept in tensors, which a program reads and writes.
    pub fn create(context: &Context, factor: f64, interval: i64) -> Result<LossScaler> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_loss_scaler_create(context.raw.as_ptr(), factor, interval, &mut out) })?;
        Ok(LossScaler::from_raw(out, context.clone()))
    }

    /// The loss times the factor, of at least 32 bits.
    pub fn scale(&self, loss: &Tensor) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_loss_scaler_scale(self.raw.as_ptr(), loss.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The gradients of a scaled loss as those of the loss, of at least 32 bits; `unscaled_count` is the number of `gradients`.  The factor of the next step is a pending write (tiny_assign).
    pub fn unscale(&self, gradients: &[&Tensor]) -> Result<Vec<Tensor>> {
        let gradients_raw: Vec<_> = gradients.iter().map(|o| o.raw.as_ptr() as *const _).collect();
        let mut unscaled = vec![ptr::null_mut(); gradients.len()];
        check(unsafe { ffi::tiny_loss_scaler_unscale(self.raw.as_ptr(), gradients_raw.as_ptr() as *const _, gradients_raw.len(), unscaled.as_mut_ptr(), unscaled.len()) })?;
        Ok(unscaled.into_iter().map(|o| Tensor::from_raw(o, self.context.clone())).collect())
    }

    /// Of the gradients that were unscaled last, a bool scalar for tiny_optimizer_step: whether some element is not finite.
    pub fn skip(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_loss_scaler_skip(self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The state, to be saved and put back (tiny_assign): the factor, a float32 scalar, and how many steps in a row were finite since it changed, an int64 scalar.
    pub fn factor(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_loss_scaler_factor(self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    pub fn good_steps(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_loss_scaler_good_steps(self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }
}

impl Drop for LossScaler {
    fn drop(&mut self) {
        unsafe { ffi::tiny_loss_scaler_release(self.raw.as_ptr()) }
    }
}

impl Clone for LossScaler {
    /// Another reference to the same object.
    fn clone(&self) -> LossScaler {
        unsafe { ffi::tiny_loss_scaler_retain(self.raw.as_ptr()) }
        LossScaler::from_raw(self.raw.as_ptr(), self.context.clone())
    }
}

pub struct Plateau {
    pub(crate) raw: ptr::NonNull<ffi::tiny_plateau>,
}

// The library's calls wait for each other where they must.
unsafe impl Send for Plateau {}
unsafe impl Sync for Plateau {}

impl Plateau {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_plateau) -> Plateau {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Plateau { raw }
    }

    /// A rate that is multiplied by `factor`, below 1, after more than `patience` steps whose metric was not below the best one by a share `threshold` of it; then `cooldown` steps do not count.  It stays at `least`.
    pub fn create(rate: f64, factor: f64, patience: i64, threshold: f64, cooldown: i64, least: f64) -> Result<Plateau> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_plateau_create(rate, factor, patience, threshold, cooldown, least, &mut out) })?;
        Ok(Plateau::from_raw(out))
    }

    /// The rate after a step with this metric.
    pub fn next(&self, metric: f64) -> Result<f64> {
        let mut rate: f64 = 0.0;
        check(unsafe { ffi::tiny_plateau_next(self.raw.as_ptr(), metric, &mut rate) })?;
        Ok(rate)
    }

    /// The state, to be saved and put back: "rate", "best", "bad_steps" and "cooling", the steps that will not count.
    pub fn set(&self, name: &str, value: f64) -> Result<()> {
        let name = c_text(Some(name))?;
        check(unsafe { ffi::tiny_plateau_set(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), value) })?;
        Ok(())
    }

    pub fn get(&self, name: &str) -> Result<f64> {
        let name = c_text(Some(name))?;
        let mut value: f64 = 0.0;
        check(unsafe { ffi::tiny_plateau_get(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), &mut value) })?;
        Ok(value)
    }
}

impl Drop for Plateau {
    fn drop(&mut self) {
        unsafe { ffi::tiny_plateau_release(self.raw.as_ptr()) }
    }
}

impl Clone for Plateau {
    /// Another reference to the same object.
    fn clone(&self) -> Plateau {
        unsafe { ffi::tiny_plateau_retain(self.raw.as_ptr()) }
        Plateau::from_raw(self.raw.as_ptr())
    }
}

pub struct Optimizer {
    pub(crate) raw: ptr::NonNull<ffi::tiny_optimizer>,
    pub(crate) context: Context,
}

// The library's calls wait for each other where they must.
unsafe impl Send for Optimizer {}
unsafe impl Sync for Optimizer {}

impl Optimizer {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_optimizer, context: Context) -> Optimizer {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Optimizer { raw, context }
    }
    /// The context that this lives in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// An optimiser without parameters.
    pub fn create(context: &Context, kind: OptimizerKind) -> Result<Optimizer> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_optimizer_create(context.raw.as_ptr(), kind.0, &mut out) })?;
        Ok(Optimizer::from_raw(out, context.clone()))
    }

    /// A group of parameters that share settings; `group` becomes its number, 0 for the first.  They are floats, and steps write to them (tiny_assign); of 16-bit floats the state has a float32 copy, of which each step makes them anew. They are computed now: losses are built on them afterwards.  Before the first step.
    pub fn add(&self, parameters: &[&Tensor]) -> Result<i64> {
        let parameters_raw: Vec<_> = parameters.iter().map(|o| o.raw.as_ptr() as *const _).collect();
        let mut group: i64 = 0;
        check(unsafe { ffi::tiny_optimizer_add(self.raw.as_ptr(), parameters_raw.as_ptr() as *const _, parameters_raw.len(), &mut group) })?;
        Ok(group)
    }

    /// Settings have the names, meanings and defaults of torch.optim: "lr"; "weight_decay", "maximize" (1 or 0), "eps"; of SGD "momentum", "dampening", "nesterov", "classic" (1: the momentum is that of steps, which had their rate, not of gradients; 0 if nothing is set); of Adam, AdamW and LAMB "beta1", "beta2", "amsgrad" (not LAMB's); of LARS "momentum", "nesterov", "trust", "classic" (1 if nothing is set); of Muon "momentum", "nesterov", "ns_steps", and "ns_a", "ns_b", "ns_c", the coefficients of these; of RMSprop "alpha", "momentum", "centered"; of Adagrad "lr_decay", "initial_accumulator_value".  Any of them has "ema_decay", 0 for none: the state keeps an average of each parameter over the steps.  "lr" can be set any time, and holds for runs of compiled programs too; the others before the first step, which is made of them.
    pub fn set(&self, group: i64, name: &str, value: f64) -> Result<()> {
        let name = c_text(Some(name))?;
        check(unsafe { ffi::tiny_optimizer_set(self.raw.as_ptr(), group, name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), value) })?;
        Ok(())
    }

    pub fn get(&self, group: i64, name: &str) -> Result<f64> {
        let name = c_text(Some(name))?;
        let mut value: f64 = 0.0;
        check(unsafe { ffi::tiny_optimizer_get(self.raw.as_ptr(), group, name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), &mut value) })?;
        Ok(value)
    }

    /// The learning rate as steps read it, a float32 scalar.  Who assigns to it changes it, in a program too.
    pub fn rate(&self, group: i64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_optimizer_rate(self.raw.as_ptr(), group, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Writes new values to all parameters, and to what the optimiser keeps: pending writes, which are made when something needs them, or by runs of a program that is compiled while they are pending.  A gradient for each parameter, in the order in which they were added; an element of `gradients` may be NULL, which leaves the parameter as it is. `skip` may be NULL, or is a bool scalar: where it is true nothing changes.
    pub fn step(&self, gradients: &[Option<&Tensor>], skip: Option<&Tensor>) -> Result<()> {
        let gradients_raw: Vec<_> = gradients.iter().map(|o| o.map_or(ptr::null(), |o| o.raw.as_ptr() as *const _)).collect();
        check(unsafe { ffi::tiny_optimizer_step(self.raw.as_ptr(), gradients_raw.as_ptr() as *const _, gradients_raw.len(), skip.map_or(ptr::null_mut(), |o| o.raw.as_ptr())) })?;
        Ok(())
    }

    /// What the next step is made of beside the parameters, to be saved and put back (tiny_assign): "lr.0" of the first group, "step" where their number matters, "exp_avg.3" of the fourth parameter, "master.3", "ema.3".  Settings are as they will be from now on; names live as long as the optimiser.
    pub fn state_count(&self) -> Result<usize> {
        let mut out: usize = 0;
        check(unsafe { ffi::tiny_optimizer_state_count(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    pub fn state_name(&self, index: usize) -> Result<Option<String>> {
        let mut out = ptr::null();
        check(unsafe { ffi::tiny_optimizer_state_name(self.raw.as_ptr(), index, &mut out) })?;
        Ok(unsafe { text(out) })
    }

    pub fn state(&self, index: usize) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_optimizer_state(self.raw.as_ptr(), index, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }
}

impl Drop for Optimizer {
    fn drop(&mut self) {
        unsafe { ffi::tiny_optimizer_release(self.raw.as_ptr()) }
    }
}

impl Clone for Optimizer {
    /// Another reference to the same object.
    fn clone(&self) -> Optimizer {
        unsafe { ffi::tiny_optimizer_retain(self.raw.as_ptr()) }
        Optimizer::from_raw(self.raw.as_ptr(), self.context.clone())
    }
}

pub struct Generator {
    pub(crate) raw: ptr::NonNull<ffi::tiny_generator>,
    pub(crate) context: Context,
}

// The library's calls wait for each other where they must.
unsafe impl Send for Generator {}
unsafe impl Sync for Generator {}

impl Generator {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_generator, context: Context) -> Generator {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Generator { raw, context }
    }
    /// The context that this lives in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// a source of keys that moves on with every run
    pub fn create(context: &Context, seed: i64) -> Result<Generator> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_generator_create(context.raw.as_ptr(), seed, &mut out) })?;
        Ok(Generator::from_raw(out, context.clone()))
    }

    /// A key that no other call gave.  Whenever something that was made of keys is computed, all keys of the generator become others: each run of a program has its own numbers, and those that the same steps have without a program.
    pub fn next(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_generator_next(self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// What the next keys are made of, uint32 \[3\], to be saved and put back (tiny_assign).
    pub fn state(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_generator_state(self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        unsafe { ffi::tiny_generator_release(self.raw.as_ptr()) }
    }
}

impl Clone for Generator {
    /// Another reference to the same object.
    fn clone(&self) -> Generator {
        unsafe { ffi::tiny_generator_retain(self.raw.as_ptr()) }
        Generator::from_raw(self.raw.as_ptr(), self.context.clone())
    }
}

pub struct Module {
    pub(crate) raw: ptr::NonNull<ffi::tiny_module>,
    pub(crate) context: Context,
}

// The library's calls wait for each other where they must.
unsafe impl Send for Module {}
unsafe impl Sync for Module {}

impl Module {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_module, context: Context) -> Module {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Module { raw, context }
    }
    /// The context that this lives in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The root of a tree, in training.  What parameters begin with depends on `seed` and their names alone.
    pub fn create(context: &Context, seed: i64) -> Result<Module> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_create(context.raw.as_ptr(), seed, &mut out) })?;
        Ok(Module::from_raw(out, context.clone()))
    }

    /// The place `name` below: what is made there has names that begin with it and a dot.
    pub fn child(&self, name: &str) -> Result<Module> {
        let name = c_text(Some(name))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_child(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), &mut out) })?;
        Ok(Module::from_raw(out, self.context.clone()))
    }

    /// Whether layers of the whole tree are built for training, training != 0, or for use: dropout does nothing then, and tiny_module_batch_norm takes the running statistics.
    pub fn set_training(&self, training: bool) -> Result<()> {
        check(unsafe { ffi::tiny_module_set_training(self.raw.as_ptr(), training as i32) })?;
        Ok(())
    }

    pub fn is_training(&self) -> Result<i32> {
        let mut out: i32 = 0;
        check(unsafe { ffi::tiny_module_is_training(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    /// What parameters that are made from now on are of: floats; TINY_FLOAT32 if nothing is said.
    pub fn set_dtype(&self, dtype: Dtype) -> Result<()> {
        check(unsafe { ffi::tiny_module_set_dtype(self.raw.as_ptr(), dtype.0) })?;
        Ok(())
    }

    /// Where the tree's random numbers come from, in a child too.
    pub fn generator(&self) -> Result<Generator> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_generator(self.raw.as_ptr(), &mut out) })?;
        Ok(Generator::from_raw(out, self.context.clone()))
    }

    /// The parameter `name`, made with these values if it is not there yet.
    pub fn parameter(&self, name: &str, dims: &[i64], initial: Initial, a: f64, b: f64) -> Result<Tensor> {
        let name = c_text(Some(name))?;
        let dims_count = count(&[Some(dims)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_parameter(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), pointer(Some(dims)), dims_count, initial.0, a, b, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The same for what optimisers leave alone: each element begins with `value`.
    pub fn buffer(&self, name: &str, dtype: Dtype, dims: &[i64], value: f64) -> Result<Tensor> {
        let name = c_text(Some(name))?;
        let dims_count = count(&[Some(dims)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_buffer(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), dtype.0, pointer(Some(dims)), dims_count, value, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The parameters at this place and below it, in the order in which they were made, for tiny_gradient and tiny_optimizer_add.  Their names from the root on live as long as the tree.
    pub fn parameter_count(&self) -> Result<usize> {
        let mut out: usize = 0;
        check(unsafe { ffi::tiny_module_parameter_count(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    pub fn parameter_name(&self, index: usize) -> Result<Option<String>> {
        let mut out = ptr::null();
        check(unsafe { ffi::tiny_module_parameter_name(self.raw.as_ptr(), index, &mut out) })?;
        Ok(unsafe { text(out) })
    }

    pub fn parameter_at(&self, index: usize) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_parameter_at(self.raw.as_ptr(), index, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The state dictionary: parameters and buffers at this place and below it, by their names from there on.
    pub fn state(&self) -> Result<Archive> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_state(self.raw.as_ptr(), &mut out) })?;
        Ok(Archive::from_raw(out, self.context.clone()))
    }

    /// x \[.., inputs\] times the transpose of weight \[features, inputs\], plus bias \[features\].  Takes TINY_FLAG_NO_BIAS.
    pub fn linear(&self, name: &str, x: &Tensor, features: i64, no_bias: bool) -> Result<Tensor> {
        let name = c_text(Some(name))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_linear(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), x.raw.as_ptr(), features, flags(&[(no_bias, 8192)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// tiny_conv to so many `channels`; the window says the kernel.  Takes TINY_FLAG_NO_BIAS.
    pub fn conv(&self, name: &str, x: &Tensor, channels: i64, window: &Window, no_bias: bool) -> Result<Tensor> {
        let name = c_text(Some(name))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_conv(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), x.raw.as_ptr(), channels, window.raw.as_ptr(), flags(&[(no_bias, 8192)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The same with tiny_conv_transpose.  Takes TINY_FLAG_NO_BIAS.
    pub fn conv_transpose(&self, name: &str, x: &Tensor, channels: i64, window: &Window, no_bias: bool) -> Result<Tensor> {
        let name = c_text(Some(name))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_conv_transpose(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), x.raw.as_ptr(), channels, window.raw.as_ptr(), flags(&[(no_bias, 8192)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The row of weight \[count, size\] that each index says.
    pub fn embedding(&self, name: &str, index: &Tensor, count: i64, size: i64) -> Result<Tensor> {
        let name = c_text(Some(name))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_embedding(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), index.raw.as_ptr(), count, size, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// In training by the statistics of x over all axes but 1; the running ones go towards them by `momentum` whenever the result is computed.  Takes TINY_FLAG_NO_AFFINE.
    pub fn batch_norm(&self, name: &str, x: &Tensor, momentum: f64, epsilon: f64, no_affine: bool) -> Result<Tensor> {
        let name = c_text(Some(name))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_batch_norm(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), x.raw.as_ptr(), momentum, epsilon, flags(&[(no_affine, 16384)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Over the axes from `axis` on.  Takes TINY_FLAG_NO_AFFINE.
    pub fn layer_norm(&self, name: &str, x: &Tensor, axis: i64, epsilon: f64, no_affine: bool) -> Result<Tensor> {
        let name = c_text(Some(name))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_layer_norm(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), x.raw.as_ptr(), axis, epsilon, flags(&[(no_affine, 16384)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// The same by the mean square alone, without a bias.  Takes TINY_FLAG_NO_AFFINE.
    pub fn rms_norm(&self, name: &str, x: &Tensor, axis: i64, epsilon: f64, no_affine: bool) -> Result<Tensor> {
        let name = c_text(Some(name))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_rms_norm(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), x.raw.as_ptr(), axis, epsilon, flags(&[(no_affine, 16384)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// tiny_group_norm with its scale and bias.  Takes TINY_FLAG_NO_AFFINE.
    pub fn group_norm(&self, name: &str, x: &Tensor, groups: i64, epsilon: f64, no_affine: bool) -> Result<Tensor> {
        let name = c_text(Some(name))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_group_norm(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), x.raw.as_ptr(), groups, epsilon, flags(&[(no_affine, 16384)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// tiny_instance_norm with its scale and bias.  Takes TINY_FLAG_NO_AFFINE.
    pub fn instance_norm(&self, name: &str, x: &Tensor, epsilon: f64, no_affine: bool) -> Result<Tensor> {
        let name = c_text(Some(name))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_instance_norm(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), x.raw.as_ptr(), epsilon, flags(&[(no_affine, 16384)]), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// In training each element is 0 with the probability p, the others are divided by 1 - p.
    pub fn dropout(&self, x: &Tensor, p: f64) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_dropout(self.raw.as_ptr(), x.raw.as_ptr(), p, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// `layers` layers of `hidden` elements along x \[steps, batch, inputs\], `dropout` in training between each two.  Outputs: y \[steps, batch, directions * hidden\]; the last states \[layers * directions, batch, hidden\]; those of an LSTM's cells.  It begins with the states `h` (may be NULL: zeros) and, of an LSTM, `c` (may be NULL with h).  Takes TINY_FLAG_NO_BIAS, TINY_FLAG_BIDIRECTIONAL and TINY_FLAG_BATCH_FIRST.
    pub fn recurrent(&self, name: &str, kind: RecurrentKind, x: &Tensor, hidden: i64, layers: i64, dropout: f64, no_bias: bool, bidirectional: bool, batch_first: bool, h: Option<&Tensor>, c: Option<&Tensor>, output_count: usize) -> Result<Vec<Tensor>> {
        let name = c_text(Some(name))?;
        let mut outputs = vec![ptr::null_mut(); output_count];
        check(unsafe { ffi::tiny_module_recurrent(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), kind.0, x.raw.as_ptr(), hidden, layers, dropout, flags(&[(no_bias, 8192), (bidirectional, 32768), (batch_first, 65536)]), h.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), c.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), outputs.as_mut_ptr(), outputs.len()) })?;
        Ok(outputs.into_iter().map(|o| Tensor::from_raw(o, self.context.clone())).collect())
    }

    /// Attention of `heads` heads for query \[batch, queries, size\], key and value \[batch, keys, ..\], with projections before and after.  `mask` (may be NULL) broadcasts to \[batch, heads, queries, keys\]: bools, true where a query may look, or numbers that are added; `dropout` of the weights in training.  Takes TINY_FLAG_NO_BIAS and TINY_FLAG_CAUSAL.
    pub fn attention(&self, name: &str, query: &Tensor, key: &Tensor, value: &Tensor, heads: i64, dropout: f64, no_bias: bool, causal: bool, mask: Option<&Tensor>) -> Result<Tensor> {
        let name = c_text(Some(name))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_module_attention(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), query.raw.as_ptr(), key.raw.as_ptr(), value.raw.as_ptr(), heads, dropout, flags(&[(no_bias, 8192), (causal, 131072)]), mask.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        unsafe { ffi::tiny_module_release(self.raw.as_ptr()) }
    }
}

impl Clone for Module {
    /// Another reference to the same object.
    fn clone(&self) -> Module {
        unsafe { ffi::tiny_module_retain(self.raw.as_ptr()) }
        Module::from_raw(self.raw.as_ptr(), self.context.clone())
    }
}

pub struct Value {
    pub(crate) raw: ptr::NonNull<ffi::tiny_value>,
    pub(crate) context: Context,
}

// The library's calls wait for each other where they must.
unsafe impl Send for Value {}
unsafe impl Sync for Value {}

impl Value {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_value, context: Context) -> Value {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Value { raw, context }
    }
    /// The context that this lives in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    pub fn from_tensor(tensor: &Tensor) -> Result<Value> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_value_from_tensor(tensor.raw.as_ptr(), &mut out) })?;
        Ok(Value::from_raw(out, tensor.context.clone()))
    }

    /// Texts of this shape, row-major, which are copied: `data` has them one after the other, `lengths` how many bytes each has.  They are UTF-8 by agreement, and may hold any bytes.
    pub fn texts(context: &Context, dims: &[i64], data: &[u8], lengths: &[i64]) -> Result<Value> {
        let dims_count = count(&[Some(dims)])?;
        let lengths_count = count(&[Some(lengths)])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_value_texts(context.raw.as_ptr(), pointer(Some(dims)), dims_count, data.as_ptr() as *const _, data.len(), pointer(Some(lengths)), lengths_count, &mut out) })?;
        Ok(Value::from_raw(out, context.clone()))
    }

    pub fn sequence(context: &Context, elements: &[&Value]) -> Result<Value> {
        crate::support::at_least_one(elements.len())?;
        let elements_raw: Vec<_> = elements.iter().map(|o| o.raw.as_ptr() as *const _).collect();
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_value_sequence(context.raw.as_ptr(), elements_raw.as_ptr() as *const _, elements_raw.len(), &mut out) })?;
        Ok(Value::from_raw(out, context.clone()))
    }

    /// A map: `keys` are texts or a tensor of TINY_INT64, `values` texts or a tensor, each of one axis, equally many.
    pub fn map(&self, values: &Value) -> Result<Value> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_value_map(self.raw.as_ptr(), values.raw.as_ptr(), &mut out) })?;
        Ok(Value::from_raw(out, self.context.clone()))
    }

    /// The value of an optional that is not there.
    pub fn nothing(context: &Context) -> Result<Value> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_value_nothing(context.raw.as_ptr(), &mut out) })?;
        Ok(Value::from_raw(out, context.clone()))
    }

    /// The value in a file of ONNX's test data (.pb), which says its kind nowhere itself: `kind` is the model's.
    pub fn load(context: &Context, path: &str, kind: Kind) -> Result<Value> {
        let path = c_text(Some(path))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_value_load(context.raw.as_ptr(), path.as_ref().map_or(ptr::null(), |t| t.as_ptr()), kind.0, &mut out) })?;
        Ok(Value::from_raw(out, context.clone()))
    }

    pub fn kind(&self) -> Result<Kind> {
        let mut out = 0i32;
        check(unsafe { ffi::tiny_value_kind(self.raw.as_ptr(), &mut out) })?;
        Ok(Kind(out))
    }

    /// Of a sequence its elements, of a map 2: its keys and its values; else 0.
    pub fn count(&self) -> Result<usize> {
        let mut out: usize = 0;
        check(unsafe { ffi::tiny_value_count(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    pub fn element(&self, index: usize) -> Result<Value> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_value_element(self.raw.as_ptr(), index, &mut out) })?;
        Ok(Value::from_raw(out, self.context.clone()))
    }

    /// Of a value that is a tensor of numbers.
    pub fn tensor(&self) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_value_tensor(self.raw.as_ptr(), &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    /// Of texts, as tiny_tensor_shape.
    pub fn shape(&self) -> Result<Vec<i64>> {
        let mut dims_count = 0usize;
        let mut dims: Vec<i64> = vec![0; GUESS];
        check(unsafe { ffi::tiny_value_shape(self.raw.as_ptr(), dims.as_mut_ptr(), dims.len(), &mut dims_count) })?;
        if dims_count > dims.len() {
            dims.resize(dims_count, Default::default());
            check(unsafe { ffi::tiny_value_shape(self.raw.as_ptr(), dims.as_mut_ptr(), dims.len(), &mut dims_count) })?;
        }
        dims.truncate(dims_count);
        Ok(dims)
    }

    /// Writes the bytes that min(count, capacity) texts have each, row-major; `count` gets how many texts there are.
    pub fn text_lengths(&self) -> Result<Vec<i64>> {
        let mut lengths_count = 0usize;
        let mut lengths: Vec<i64> = vec![0; GUESS];
        check(unsafe { ffi::tiny_value_text_lengths(self.raw.as_ptr(), lengths.as_mut_ptr(), lengths.len(), &mut lengths_count) })?;
        if lengths_count > lengths.len() {
            lengths.resize(lengths_count, Default::default());
            check(unsafe { ffi::tiny_value_text_lengths(self.raw.as_ptr(), lengths.as_mut_ptr(), lengths.len(), &mut lengths_count) })?;
        }
        lengths.truncate(lengths_count);
        Ok(lengths)
    }

    /// Writes all texts one after the other; `bytes` must be the sum of their lengths.
    pub fn read_texts(&self, data: &mut [u8]) -> Result<()> {
        check(unsafe { ffi::tiny_value_read_texts(self.raw.as_ptr(), mut_pointer(data), data.len()) })?;
        Ok(())
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        unsafe { ffi::tiny_value_release(self.raw.as_ptr()) }
    }
}

impl Clone for Value {
    /// Another reference to the same object.
    fn clone(&self) -> Value {
        unsafe { ffi::tiny_value_retain(self.raw.as_ptr()) }
        Value::from_raw(self.raw.as_ptr(), self.context.clone())
    }
}

pub struct Model {
    pub(crate) raw: ptr::NonNull<ffi::tiny_model>,
    pub(crate) context: Context,
}

// The library's calls wait for each other where they must.
unsafe impl Send for Model {}
unsafe impl Sync for Model {}

impl Model {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_model, context: Context) -> Model {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Model { raw, context }
    }
    /// The context that this lives in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Reads the file and checks its structure; weights stay in the file, mapped, and so do those in other files.  As long as the model or a program of it lives such a file may be renamed, deleted or replaced by another, but neither changed in place nor truncated: the process would end with SIGBUS.  The context's option "map_files" 0 reads files into memory instead; then they may do as they like.  Operators are checked when the model is compiled.  A model file is untrusted input: TINY_ERROR_INVALID_MODEL names the place that is wrong, TINY_ERROR_LIMIT a limit of the context's options.
    pub fn load(context: &Context, path: &str) -> Result<Model> {
        let path = c_text(Some(path))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_model_load(context.raw.as_ptr(), path.as_ref().map_or(ptr::null(), |t| t.as_ptr()), &mut out) })?;
        Ok(Model::from_raw(out, context.clone()))
    }

    /// The same of the bytes of such a file, which are copied before it returns.  `folder` (may be NULL: none) is where weights in other files lie, which tiny_model_load takes from the file's own folder; without it a model that has some is TINY_ERROR_UNSUPPORTED.
    pub fn load_memory(context: &Context, data: &[u8], folder: Option<&str>) -> Result<Model> {
        let folder = c_text(folder)?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_model_load_memory(context.raw.as_ptr(), data.as_ptr() as *const _, data.len(), folder.as_ref().map_or(ptr::null(), |t| t.as_ptr()), &mut out) })?;
        Ok(Model::from_raw(out, context.clone()))
    }

    /// All about the model as one JSON object: the keys of `tiny info --json`.  It imports the operators, to count what a run computes, in a graph of its own; tiny_model_header looks at none.
    pub fn info(&self) -> Result<Report> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_model_info(self.raw.as_ptr(), &mut out) })?;
        Ok(Report::from_raw(out))
    }

    /// What the file says of itself as one JSON object: what tiny_model_info has under "model", without a look at the operators.
    pub fn header(&self) -> Result<Report> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_model_header(self.raw.as_ptr(), &mut out) })?;
        Ok(Report::from_raw(out))
    }

    pub fn input_count(&self) -> Result<usize> {
        let mut out: usize = 0;
        check(unsafe { ffi::tiny_model_input_count(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    pub fn output_count(&self) -> Result<usize> {
        let mut out: usize = 0;
        check(unsafe { ffi::tiny_model_output_count(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    /// Names live as long as the model.  The index of a name that is not there is TINY_ERROR_INVALID_ARGUMENT with a message that lists the known names.
    pub fn input_name(&self, index: usize) -> Result<Option<String>> {
        let mut out = ptr::null();
        check(unsafe { ffi::tiny_model_input_name(self.raw.as_ptr(), index, &mut out) })?;
        Ok(unsafe { text(out) })
    }

    pub fn output_name(&self, index: usize) -> Result<Option<String>> {
        let mut out = ptr::null();
        check(unsafe { ffi::tiny_model_output_name(self.raw.as_ptr(), index, &mut out) })?;
        Ok(unsafe { text(out) })
    }

    pub fn input_index(&self, name: &str) -> Result<usize> {
        let name = c_text(Some(name))?;
        let mut out: usize = 0;
        check(unsafe { ffi::tiny_model_input_index(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), &mut out) })?;
        Ok(out)
    }

    pub fn output_index(&self, name: &str) -> Result<usize> {
        let name = c_text(Some(name))?;
        let mut out: usize = 0;
        check(unsafe { ffi::tiny_model_output_index(self.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), &mut out) })?;
        Ok(out)
    }

    /// What an input or output is.  A model with others than tensors of numbers is run by tiny_model_run_values; compiling it is TINY_ERROR_UNSUPPORTED.
    pub fn input_kind(&self, index: usize) -> Result<Kind> {
        let mut out = 0i32;
        check(unsafe { ffi::tiny_model_input_kind(self.raw.as_ptr(), index, &mut out) })?;
        Ok(Kind(out))
    }

    pub fn output_kind(&self, index: usize) -> Result<Kind> {
        let mut out = 0i32;
        check(unsafe { ffi::tiny_model_output_kind(self.raw.as_ptr(), index, &mut out) })?;
        Ok(Kind(out))
    }

    pub fn input_dtype(&self, index: usize) -> Result<Dtype> {
        let mut out = 0i32;
        check(unsafe { ffi::tiny_model_input_dtype(self.raw.as_ptr(), index, &mut out) })?;
        Ok(Dtype(out))
    }

    /// Writes min(rank, capacity) dimensions, TINY_DIM_FREE for one that the model leaves free; `rank` gets their full number.
    pub fn input_shape(&self, index: usize) -> Result<Vec<i64>> {
        let mut dims_count = 0usize;
        let mut dims: Vec<i64> = vec![0; GUESS];
        check(unsafe { ffi::tiny_model_input_shape(self.raw.as_ptr(), index, dims.as_mut_ptr(), dims.len(), &mut dims_count) })?;
        if dims_count > dims.len() {
            dims.resize(dims_count, Default::default());
            check(unsafe { ffi::tiny_model_input_shape(self.raw.as_ptr(), index, dims.as_mut_ptr(), dims.len(), &mut dims_count) })?;
        }
        dims.truncate(dims_count);
        Ok(dims)
    }

    /// The name of a free dimension ("N"), "" if it has none; lives as long as the model.
    pub fn input_dim_name(&self, index: usize, axis: usize) -> Result<Option<String>> {
        let mut out = ptr::null();
        check(unsafe { ffi::tiny_model_input_dim_name(self.raw.as_ptr(), index, axis, &mut out) })?;
        Ok(unsafe { text(out) })
    }

    /// The same of outputs, before anything runs: as the file says, and where it says nothing as follows from its graph with the free dimensions free, which the first call that needs it finds out.  What follows from neither (a shape that elements decide, or an operator that is not supported) is TINY_ERROR_UNSUPPORTED; the shape of a run's outputs, tiny_run_output_shape says.
    pub fn output_dtype(&self, index: usize) -> Result<Dtype> {
        let mut out = 0i32;
        check(unsafe { ffi::tiny_model_output_dtype(self.raw.as_ptr(), index, &mut out) })?;
        Ok(Dtype(out))
    }

    /// TINY_DIM_FREE for a dimension that is free, or depends on such.
    pub fn output_shape(&self, index: usize) -> Result<Vec<i64>> {
        let mut dims_count = 0usize;
        let mut dims: Vec<i64> = vec![0; GUESS];
        check(unsafe { ffi::tiny_model_output_shape(self.raw.as_ptr(), index, dims.as_mut_ptr(), dims.len(), &mut dims_count) })?;
        if dims_count > dims.len() {
            dims.resize(dims_count, Default::default());
            check(unsafe { ffi::tiny_model_output_shape(self.raw.as_ptr(), index, dims.as_mut_ptr(), dims.len(), &mut dims_count) })?;
        }
        dims.truncate(dims_count);
        Ok(dims)
    }

    /// The name of such a dimension; "" if it has none, or the formula of the inputs' names where it follows from them ("2*N"); lives as long as the model.
    pub fn output_dim_name(&self, index: usize, axis: usize) -> Result<Option<String>> {
        let mut out = ptr::null();
        check(unsafe { ffi::tiny_model_output_dim_name(self.raw.as_ptr(), index, axis, &mut out) })?;
        Ok(unsafe { text(out) })
    }

    /// The texts in which the file speaks of itself, by key: of its own fields "producer_name", "producer_version", "domain", "doc_string", "graph_name" and "model_version", those that are not empty, then what it has under keys of its own (metadata_props).
    pub fn metadata_count(&self) -> Result<usize> {
        let mut out: usize = 0;
        check(unsafe { ffi::tiny_model_metadata_count(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    /// These live as long as the model.
    pub fn metadata_key(&self, index: usize) -> Result<Option<String>> {
        let mut out = ptr::null();
        check(unsafe { ffi::tiny_model_metadata_key(self.raw.as_ptr(), index, &mut out) })?;
        Ok(unsafe { text(out) })
    }

    pub fn metadata_value(&self, index: usize) -> Result<Option<String>> {
        let mut out = ptr::null();
        check(unsafe { ffi::tiny_model_metadata_value(self.raw.as_ptr(), index, &mut out) })?;
        Ok(unsafe { text(out) })
    }

    /// The first text of this key; NULL, which is no error, if there is none.
    pub fn metadata(&self, key: &str) -> Result<Option<String>> {
        let key = c_text(Some(key))?;
        let mut out = ptr::null();
        check(unsafe { ffi::tiny_model_metadata(self.raw.as_ptr(), key.as_ref().map_or(ptr::null(), |t| t.as_ptr()), &mut out) })?;
        Ok(unsafe { text(out) })
    }

    /// Compiles the model for inputs of these shapes: `dims` holds the dimensions of all inputs one after the other, in the model's order, each as many as the input's rank.  `dims` may be NULL: every dimension is fixed by the model.  An unsupported operator is TINY_ERROR_UNSUPPORTED with a message that lists all of them.  The program is for these very sizes, also where the model leaves them free; programs are cached by shape with the model.  A dimension that the model leaves free may depend on a variable (tiny_variable_dim): one program for all of its values, which each run binds by its inputs or by tiny_run_set_variable; it is made anew by each call.  What must know such a size is TINY_ERROR_UNSUPPORTED.
    pub fn compile(&self, dims: Option<&[i64]>) -> Result<Program> {
        let dims_count = count(&[dims])?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_model_compile(self.raw.as_ptr(), pointer(dims), dims_count, &mut out) })?;
        Ok(Program::from_raw(out, self.context.clone()))
    }

    /// Inputs in the model's order to outputs in the model's order, in one call: compiles (or finds) a program and runs it.  `outputs` receives `output_count` new tensors.  One program serves all sizes of the model's free dimensions, from 2 up to a bound that grows when a larger size comes; sizes of 0 and 1, and dimensions that an operator must know, get programs by value, and so do sizes of more than four of the latest 32 runs.  Inputs of at most 64 integers in at most one axis whose elements decide shapes (those of Reshape, axes, pads, repeats, k) are read before compiling, and programs are found by their elements too.
    pub fn run(&self, inputs: &[&Tensor], output_count: usize) -> Result<Vec<Tensor>> {
        let inputs_raw: Vec<_> = inputs.iter().map(|o| o.raw.as_ptr() as *const _).collect();
        let mut outputs = vec![ptr::null_mut(); output_count];
        check(unsafe { ffi::tiny_model_run(self.raw.as_ptr(), inputs_raw.as_ptr() as *const _, inputs_raw.len(), outputs.as_mut_ptr(), outputs.len()) })?;
        Ok(outputs.into_iter().map(|o| Tensor::from_raw(o, self.context.clone())).collect())
    }

    /// Begins anew the random numbers of the model's programs, of which each execution draws others: the next draws what the first one does with this `seed`, which is 0 before.  Operators that have a seed of their own look at none. Since 0.3.
    pub fn set_seed(&self, seed: i64) -> Result<()> {
        check(unsafe { ffi::tiny_model_set_seed(self.raw.as_ptr(), seed) })?;
        Ok(())
    }

    /// tiny_model_run with values, which need not be tensors: texts, lists, optional values and maps, as the model says.  Each of its programs is for lists of certain lengths and tensors of certain sizes; texts may be any.  `outputs` receives `output_count` new values.  A map of ai.onnx.ml.ZipMap, for which tiny_model_run gives the columns of its values, is one here.  Since 0.3.
    pub fn run_values(&self, inputs: &[&Value], output_count: usize) -> Result<Vec<Value>> {
        let inputs_raw: Vec<_> = inputs.iter().map(|o| o.raw.as_ptr() as *const _).collect();
        let mut outputs = vec![ptr::null_mut(); output_count];
        check(unsafe { ffi::tiny_model_run_values(self.raw.as_ptr(), inputs_raw.as_ptr() as *const _, inputs_raw.len(), outputs.as_mut_ptr(), outputs.len()) })?;
        Ok(outputs.into_iter().map(|o| Value::from_raw(o, self.context.clone())).collect())
    }

    /// Makes the model a part of the caller's graph: its outputs for these inputs, in the model's order, not computed. Inputs may be any tensors of the model's dtypes and shapes: placeholders (tiny_input), results, outputs of other models; a scalar takes the model's dtype.  `outputs` receives `output_count` new tensors, for operations, tiny_realize or tiny_program_compile like any other.  Elements that decide shapes are read now: they must follow from computed tensors and constants, or it is TINY_ERROR_UNSUPPORTED.  Random numbers are drawn once, as one execution would; those of the next call are others.  The model may be released.
    pub fn apply(&self, inputs: &[&Tensor], output_count: usize) -> Result<Vec<Tensor>> {
        let inputs_raw: Vec<_> = inputs.iter().map(|o| o.raw.as_ptr() as *const _).collect();
        let mut outputs = vec![ptr::null_mut(); output_count];
        check(unsafe { ffi::tiny_model_apply(self.raw.as_ptr(), inputs_raw.as_ptr() as *const _, inputs_raw.len(), outputs.as_mut_ptr(), outputs.len()) })?;
        Ok(outputs.into_iter().map(|o| Tensor::from_raw(o, self.context.clone())).collect())
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        unsafe { ffi::tiny_model_release(self.raw.as_ptr()) }
    }
}

impl Clone for Model {
    /// Another reference to the same object.
    fn clone(&self) -> Model {
        unsafe { ffi::tiny_model_retain(self.raw.as_ptr()) }
        Model::from_raw(self.raw.as_ptr(), self.context.clone())
    }
}

pub struct Program {
    pub(crate) raw: ptr::NonNull<ffi::tiny_program>,
    pub(crate) context: Context,
}

// The library's calls wait for each other where they must.
unsafe impl Send for Program {}
unsafe impl Sync for Program {}

impl Program {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_program, context: Context) -> Program {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Program { raw, context }
    }
    /// The context that this lives in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Compiles what the outputs need, for runs that set the inputs (made by tiny_input), and computes nothing. Other tensors are captured: each run reads what they hold when it executes.  Writes (tiny_assign) that are pending and that an output needs are done by every run, in place, and no longer pending: list among the outputs a tensor that the program is to write; such an output is that tensor's own memory.  A program that writes does a step as a whole: pending writes to other tensors that it reads, and those that depend on its inputs, are done by it too, such as an optimiser's momentum and running statistics.  It is exclusive: TINY_ERROR_BUSY while another run of it executes.  After a run, what was built on a tensor that it wrote and not computed before is TINY_ERROR_INVALID_ARGUMENT.  `inputs` may be NULL if there are none. Where outputs depend on a call over several devices (tiny_allreduce, tiny_allgather, tiny_tensor_to) inputs and outputs are of any of these devices, and a run does that call too: between its kernels of before and behind, each device's kernels beside the others'.  What is needed behind and does not go through the call is computed again there; it must not read what is written before it (TINY_ERROR_UNSUPPORTED).  Sizes are numbers then.
    pub fn compile(inputs: &[&Tensor], outputs: &[&Tensor]) -> Result<Program> {
        crate::support::at_least_one(outputs.len())?;
        let inputs_raw: Vec<_> = inputs.iter().map(|o| o.raw.as_ptr() as *const _).collect();
        let outputs_raw: Vec<_> = outputs.iter().map(|o| o.raw.as_ptr() as *const _).collect();
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_program_compile(inputs_raw.as_ptr() as *const _, inputs_raw.len(), outputs_raw.as_ptr() as *const _, outputs_raw.len(), &mut out) })?;
        Ok(Program::from_raw(out, outputs[0].context.clone()))
    }

    pub fn kernel_count(&self) -> Result<usize> {
        let mut out: usize = 0;
        check(unsafe { ffi::tiny_program_kernel_count(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    /// How many of them are interpreted because machine code could not be had.
    pub fn interpreted_count(&self) -> Result<usize> {
        let mut out: usize = 0;
        check(unsafe { ffi::tiny_program_interpreted_count(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    /// How many of them had their code before the program was compiled, in the context or in the disk cache.
    pub fn cached_count(&self) -> Result<usize> {
        let mut out: usize = 0;
        check(unsafe { ffi::tiny_program_cached_count(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }

    /// Bytes of memory for values between kernels, per run; and of weights, shared by all runs.
    pub fn memory(&self) -> Result<(usize, usize)> {
        let mut arena: usize = 0;
        let mut weights: usize = 0;
        check(unsafe { ffi::tiny_program_memory(self.raw.as_ptr(), &mut arena, &mut weights) })?;
        Ok((arena, weights))
    }

    /// The kernels as a JSON array: name, computes, options, operations and bytes of one execution, launches in it (more than one for the steps of a recurrence; null where the run decides how many there are), interpreted, cached (its code was there before this program was compiled: in the context, or on disk), scalar (loops without any vector), and buffers as tiny_schedule lists them, of which a "part" is in each step another part of a larger one.  "computes" lists, in the order of the data's flow, the nodes of the model, or the tensors with a name (tiny_tensor_set_name), that the kernel computes all or a part of: \["conv1","relu1"\].  A node without a name is its operator and first output, "Conv:y"; a node in another's graph stands behind that, "loop1/add2"; what tiny_op made and nobody has named is its operator, "TopK".  What several models share, or nobody has named, is not listed.
    pub fn kernels(&self) -> Result<Report> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_program_kernels(self.raw.as_ptr(), &mut out) })?;
        Ok(Report::from_raw(out))
    }

    /// One kernel as text, made anew: `stage` is "uops" (its nodes), "linear" (what renderers start from), "c", or "asm" (what the device runs).  A building call.  TINY_ERROR_UNSUPPORTED if the context has dropped it.
    pub fn kernel_source(&self, index: usize, stage: &str) -> Result<Report> {
        let stage = c_text(Some(stage))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_program_kernel_source(self.raw.as_ptr(), index, stage.as_ref().map_or(ptr::null(), |t| t.as_ptr()), &mut out) })?;
        Ok(Report::from_raw(out))
    }

    /// The program as C11 in three files of `directory`, which is made unless it is there: NAME.c, NAME.h and NAME.weights. They need no library but libm; NAME.h declares NAME_run and says what it takes: the inputs, outputs and variables as members of a structure, memory that the caller gives, and a function of the caller's that runs pieces on threads.  It keeps nothing between calls; what the program writes in place is a state, which the caller has.  Kernels are those that the context has compiled, with vectors as long as its isa's; with gcc and clang for the same processor they give the same bits, and elsewhere too.  A building call.  TINY_ERROR_INVALID_ARGUMENT unless `name` is an identifier of C; TINY_ERROR_UNSUPPORTED for a program that calls an operator of the caller's, for kernels whose structure the context does not have because their code came from the disk cache (compile with the option cache = 0), and in a build without the export.  Since 0.3.
    pub fn export_c(&self, directory: &str, name: &str) -> Result<()> {
        let directory = c_text(Some(directory))?;
        let name = c_text(Some(name))?;
        check(unsafe { ffi::tiny_program_export_c(self.raw.as_ptr(), directory.as_ref().map_or(ptr::null(), |t| t.as_ptr()), name.as_ref().map_or(ptr::null(), |t| t.as_ptr())) })?;
        Ok(())
    }

    /// Seconds spent on importing and scheduling, on code generation, and on values computed once.
    pub fn times(&self) -> Result<(f64, f64, f64)> {
        let mut schedule: f64 = 0.0;
        let mut compile: f64 = 0.0;
        let mut init: f64 = 0.0;
        check(unsafe { ffi::tiny_program_times(self.raw.as_ptr(), &mut schedule, &mut compile, &mut init) })?;
        Ok((schedule, compile, init))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        unsafe { ffi::tiny_program_release(self.raw.as_ptr()) }
    }
}

impl Clone for Program {
    /// Another reference to the same object.
    fn clone(&self) -> Program {
        unsafe { ffi::tiny_program_retain(self.raw.as_ptr()) }
        Program::from_raw(self.raw.as_ptr(), self.context.clone())
    }
}

pub struct Run {
    pub(crate) raw: ptr::NonNull<ffi::tiny_run>,
    pub(crate) context: Context,
}

// Used by one thread at a time, which may be any.
unsafe impl Send for Run {}

impl Run {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_run, context: Context) -> Run {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Run { raw, context }
    }
    /// The context that this lives in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    pub fn create(program: &Program) -> Result<Run> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_run_create(program.raw.as_ptr(), &mut out) })?;
        Ok(Run::from_raw(out, program.context.clone()))
    }

    /// The tensor's dtype and shape must be the program's; it is computed now if it is not yet.  A variable that is a dimension of the input has the tensor's size from now on: TINY_ERROR_SHAPE names it if that is out of its range.
    pub fn set_input(&self, index: usize, tensor: &Tensor) -> Result<()> {
        check(unsafe { ffi::tiny_run_set_input(self.raw.as_ptr(), index, tensor.raw.as_ptr()) })?;
        Ok(())
    }

    /// Gives a variable its value, which inputs with it as a dimension do by themselves.  At an execution every variable has a value and all inputs and outputs fit them (TINY_ERROR_SHAPE otherwise).  When one has changed, outputs of the last execution are gone, and the next may allocate.
    pub fn set_variable(&self, variable: &Variable, value: i64) -> Result<()> {
        check(unsafe { ffi::tiny_run_set_variable(self.raw.as_ptr(), variable.raw.as_ptr(), value) })?;
        Ok(())
    }

    /// The value that a dimension of the context has with the run's variables, which must all have one.
    pub fn dim(&self, dim: i64) -> Result<i64> {
        let mut out: i64 = 0;
        check(unsafe { ffi::tiny_run_dim(self.raw.as_ptr(), dim, &mut out) })?;
        Ok(out)
    }

    /// From now on executions write output `index` into the memory of `tensor`, which has the result then; `tensor` may be NULL: into memory of the run's own again.  Its dtype and shape must be the program's, its elements row-major (those of tiny_tensor_wrap without strides, of any computed tensor), and it must share no memory with an input of the run, with what the program captured, or with another output: TINY_ERROR_INVALID_ARGUMENT, which names the two.  It is computed now if it is not yet.  After an execution, what was built on the tensor before and not computed is TINY_ERROR_INVALID_ARGUMENT.  Nothing else may use the tensor while the run executes.
    pub fn set_output(&self, index: usize, tensor: Option<&Tensor>) -> Result<()> {
        check(unsafe { ffi::tiny_run_set_output(self.raw.as_ptr(), index, tensor.map_or(ptr::null_mut(), |o| o.raw.as_ptr())) })?;
        Ok(())
    }

    /// Runs the kernels on the calling thread and the pool; a device of a driver (OpenCL, CUDA) may do some of the work after this has returned: what reads an output waits for it.  Allocates nothing, unless a variable has changed.
    pub fn execute(&self) -> Result<()> {
        check(unsafe { ffi::tiny_run_execute(self.raw.as_ptr()) })?;
        Ok(())
    }

    /// `cancel` (may be NULL: none) ends an execution, in the middle of kernels too, with TINY_ERROR_CANCELLED; the run can be executed again.  Of what an execution that was ended, by it or by the option "time_limit", was to write, outputs that were set and tensors that the program writes have any elements, old and new ones among them: a caller who wants to go on from there keeps a copy, or assigns them again.
    pub fn set_cancel(&self, cancel: Option<&Cancel>) -> Result<()> {
        check(unsafe { ffi::tiny_run_set_cancel(self.raw.as_ptr(), cancel.map_or(ptr::null_mut(), |o| o.raw.as_ptr())) })?;
        Ok(())
    }

    /// Copies an output of the last execution, row-major; `bytes` must be its exact size.  TINY_ERROR_INVALID_ARGUMENT if there is none: the run was not executed, the last execution failed, or a variable or where the output goes was set since.
    pub fn read_output(&self, index: usize, data: &mut [u8]) -> Result<()> {
        check(unsafe { ffi::tiny_run_read_output(self.raw.as_ptr(), index, mut_pointer(data), data.len()) })?;
        Ok(())
    }

    /// An output of the last execution as a tensor, without a copy: the next execution has memory of its own.  Asked for again before that it is the same tensor, and tiny_run_read_output reads that tensor's memory.  Errors as tiny_run_read_output.
    pub fn output_tensor(&self, index: usize) -> Result<Tensor> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_run_output_tensor(self.raw.as_ptr(), index, &mut out) })?;
        Ok(Tensor::from_raw(out, self.context.clone()))
    }

    pub fn output_dtype(&self, index: usize) -> Result<Dtype> {
        let mut out = 0i32;
        check(unsafe { ffi::tiny_run_output_dtype(self.raw.as_ptr(), index, &mut out) })?;
        Ok(Dtype(out))
    }

    /// With the variables' values, which every variable must have.
    pub fn output_shape(&self, index: usize) -> Result<Vec<i64>> {
        let mut dims_count = 0usize;
        let mut dims: Vec<i64> = vec![0; GUESS];
        check(unsafe { ffi::tiny_run_output_shape(self.raw.as_ptr(), index, dims.as_mut_ptr(), dims.len(), &mut dims_count) })?;
        if dims_count > dims.len() {
            dims.resize(dims_count, Default::default());
            check(unsafe { ffi::tiny_run_output_shape(self.raw.as_ptr(), index, dims.as_mut_ptr(), dims.len(), &mut dims_count) })?;
        }
        dims.truncate(dims_count);
        Ok(dims)
    }

    /// on != 0: the next executions are timed kernel by kernel.
    pub fn set_timed(&self, on: bool) -> Result<()> {
        check(unsafe { ffi::tiny_run_set_timed(self.raw.as_ptr(), on as i32) })?;
        Ok(())
    }

    /// Seconds of each kernel of the last timed execution; writes min(count, capacity).
    pub fn kernel_seconds(&self) -> Result<Vec<f64>> {
        let mut seconds_count = 0usize;
        let mut seconds: Vec<f64> = vec![0.0; GUESS];
        check(unsafe { ffi::tiny_run_kernel_seconds(self.raw.as_ptr(), seconds.as_mut_ptr(), seconds.len(), &mut seconds_count) })?;
        if seconds_count > seconds.len() {
            seconds.resize(seconds_count, Default::default());
            check(unsafe { ffi::tiny_run_kernel_seconds(self.raw.as_ptr(), seconds.as_mut_ptr(), seconds.len(), &mut seconds_count) })?;
        }
        seconds.truncate(seconds_count);
        Ok(seconds)
    }

    /// The last timed execution as a trace in Chrome's JSON object format, which Perfetto and chrome://tracing open: a complete event for each kernel, in microseconds from the execution's begin, with its name and in "args" what it computes, gflops, gbps, operations, bytes and options (see tiny_program_kernels).  Timed kernels run one after the other, each on all threads.  TINY_ERROR_INVALID_ARGUMENT if there was no timed execution, or it did not end well.
    pub fn trace(&self) -> Result<Report> {
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_run_trace(self.raw.as_ptr(), &mut out) })?;
        Ok(Report::from_raw(out))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        unsafe { ffi::tiny_run_release(self.raw.as_ptr()) }
    }
}

pub struct Variable {
    pub(crate) raw: ptr::NonNull<ffi::tiny_variable>,
    pub(crate) context: Context,
}

// The library's calls wait for each other where they must.
unsafe impl Send for Variable {}
unsafe impl Sync for Variable {}

impl Variable {
    pub(crate) fn from_raw(raw: *mut ffi::tiny_variable, context: Context) -> Variable {
        let raw = ptr::NonNull::new(raw).expect("the library gave no handle");
        Variable { raw, context }
    }
    /// The context that this lives in.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// A whole number from `min` to `max`, 0 \<= min \< max; `name` is for messages, and tells it from a program's other variables: one with the same name and range is the same.  From 2 on it is known to be no size that broadcasts.
    pub fn create(context: &Context, name: &str, min: i64, max: i64) -> Result<Variable> {
        let name = c_text(Some(name))?;
        let mut out = ptr::null_mut();
        check(unsafe { ffi::tiny_variable_create(context.raw.as_ptr(), name.as_ref().map_or(ptr::null(), |t| t.as_ptr()), min, max, &mut out) })?;
        Ok(Variable::from_raw(out, context.clone()))
    }

    /// Lives as long as the variable.
    pub fn name(&self) -> Result<Option<String>> {
        let mut out = ptr::null();
        check(unsafe { ffi::tiny_variable_name(self.raw.as_ptr(), &mut out) })?;
        Ok(unsafe { text(out) })
    }

    pub fn range(&self) -> Result<(i64, i64)> {
        let mut min: i64 = 0;
        let mut max: i64 = 0;
        check(unsafe { ffi::tiny_variable_range(self.raw.as_ptr(), &mut min, &mut max) })?;
        Ok((min, max))
    }

    /// The number that stands for it among dimensions; that of equal ones is the same.
    pub fn dim(&self) -> Result<i64> {
        let mut out: i64 = 0;
        check(unsafe { ffi::tiny_variable_dim(self.raw.as_ptr(), &mut out) })?;
        Ok(out)
    }
}

impl Drop for Variable {
    fn drop(&mut self) {
        unsafe { ffi::tiny_variable_release(self.raw.as_ptr()) }
    }
}

impl Clone for Variable {
    /// Another reference to the same object.
    fn clone(&self) -> Variable {
        unsafe { ffi::tiny_variable_retain(self.raw.as_ptr()) }
        Variable::from_raw(self.raw.as_ptr(), self.context.clone())
    }
}

/// "major.minor.patch"; lives as long as the library.
pub fn version() -> Option<String> {
    unsafe { text(ffi::tiny_version()) }
}

/// TINY_ABI_VERSION of the header that the library was built with.
pub fn abi_version() -> i32 {
    unsafe { ffi::tiny_abi_version() }
}

/// The newest version of ONNX's operator set ("ai.onnx") whose operators are known here.
pub fn supported_opset() -> i64 {
    unsafe { ffi::tiny_supported_opset() }
}

/// 1 if models may have the operator `op` of `domain` ("" and "ai.onnx" are the standard's; `domain` may be NULL, the same) at version `opset` of the domain's operator set, else 0.  docs/ONNX.md has the same as a table, and what of an operator is left out; whether a given model can be compiled, tiny_model_info says.
pub fn op_supported(domain: Option<&str>, op: &str, opset: i64) -> Result<i32> {
    let domain = c_text(domain)?;
    let op = c_text(Some(op))?;
    Ok(unsafe { ffi::tiny_op_supported(domain.as_ref().map_or(ptr::null(), |t| t.as_ptr()), op.as_ref().map_or(ptr::null(), |t| t.as_ptr()), opset) })
}

/// "INVALID_ARGUMENT"; "UNKNOWN" for a number that is no status.  Lives as long as the library.
pub fn status_name(status: Status) -> Option<String> {
    unsafe { text(ffi::tiny_status_name(status.0)) }
}

/// "float32"; NULL for a number that is no dtype.  Lives as long as the library.
pub fn dtype_name(dtype: Dtype) -> Option<String> {
    unsafe { text(ffi::tiny_dtype_name(dtype.0)) }
}

/// Bytes of one element; 0 for a number that is no dtype, for elements smaller than a byte, and for strings.
pub fn dtype_size(dtype: Dtype) -> usize {
    unsafe { ffi::tiny_dtype_size(dtype.0) }
}

/// Bits of one element in memory (8 of a bool); 0 for a number that is no dtype, and for strings.
pub fn dtype_bits(dtype: Dtype) -> usize {
    unsafe { ffi::tiny_dtype_bits(dtype.0) }
}

/// 1 if tensors may have the dtype, else 0.
pub fn dtype_supported(dtype: Dtype) -> i32 {
    unsafe { ffi::tiny_dtype_supported(dtype.0) }
}

/// Computes the tensors now, in one schedule, with the writes to them that are pending.
pub fn realize(tensors: &[&Tensor]) -> Result<()> {
    let tensors_raw: Vec<_> = tensors.iter().map(|o| o.raw.as_ptr() as *const _).collect();
    check(unsafe { ffi::tiny_realize(tensors_raw.as_ptr() as *const _, tensors_raw.len()) })?;
    Ok(())
}

/// The tensors one after the other along `axis`; the other dimensions agree.
pub fn concat(tensors: &[&Tensor], axis: i64) -> Result<Tensor> {
    crate::support::at_least_one(tensors.len())?;
    let tensors_raw: Vec<_> = tensors.iter().map(|o| o.raw.as_ptr() as *const _).collect();
    let mut out = ptr::null_mut();
    check(unsafe { ffi::tiny_concat(tensors_raw.as_ptr() as *const _, tensors_raw.len(), axis, &mut out) })?;
    Ok(Tensor::from_raw(out, tensors[0].context.clone()))
}

/// The tensors side by side along a new axis.
pub fn stack(tensors: &[&Tensor], axis: i64) -> Result<Tensor> {
    crate::support::at_least_one(tensors.len())?;
    let tensors_raw: Vec<_> = tensors.iter().map(|o| o.raw.as_ptr() as *const _).collect();
    let mut out = ptr::null_mut();
    check(unsafe { ffi::tiny_stack(tensors_raw.as_ptr() as *const _, tensors_raw.len(), axis, &mut out) })?;
    Ok(Tensor::from_raw(out, tensors[0].context.clone()))
}

/// The kernels that computing `tensors` now would run, in order; nothing runs.  {"kernels":\[{"name", "computes" (see tiny_program_kernels),"ranges":\[{"range","size","kind","reduced"}\],"options","operations", "bytes","stores","buffers":\[{"access" ("read","write","update"),"dtype","bytes","buffer","kind"}\]}\]}
pub fn schedule(tensors: &[&Tensor]) -> Result<Report> {
    crate::support::at_least_one(tensors.len())?;
    let tensors_raw: Vec<_> = tensors.iter().map(|o| o.raw.as_ptr() as *const _).collect();
    let mut out = ptr::null_mut();
    check(unsafe { ffi::tiny_schedule(tensors_raw.as_ptr() as *const _, tensors_raw.len(), &mut out) })?;
    Ok(Report::from_raw(out))
}

/// The operations that nodes may have, as a JSON array in the order of the engine's table: "name" ("Add"), "symbol", "arity" (null: any number), "result" (whose dtype it has: "declared", "first", "last" source, "bool", "void"), "weight" (what an element costs, in instructions), "traits" ("elementwise", "commutative", "associative", "float", "int", "logic", "movement", "effect", "transcendental"), "stages" ("tensor", "kernel", "linear": which of its representations may hold it).  Unstable: names may change, be added and go.
pub fn ops() -> Result<Report> {
    let mut out = ptr::null_mut();
    check(unsafe { ffi::tiny_ops(&mut out) })?;
    Ok(Report::from_raw(out))
}

/// Store `store` of kernel `kernel` of tiny_schedule(tensors), which says how many each has ("stores"), as the scheduler made it: loads, reductions and what is computed of them, before the kernel is optimised.
pub fn schedule_store(tensors: &[&Tensor], kernel: usize, store: usize) -> Result<Node> {
    crate::support::at_least_one(tensors.len())?;
    let tensors_raw: Vec<_> = tensors.iter().map(|o| o.raw.as_ptr() as *const _).collect();
    let mut out = ptr::null_mut();
    check(unsafe { ffi::tiny_schedule_store(tensors_raw.as_ptr() as *const _, tensors_raw.len(), kernel, store, &mut out) })?;
    Ok(Node::from_raw(out, tensors[0].context.clone()))
}

/// outs\[k\]\[i\] = op of element i of all tensors, for every k alike, in the tensors' dtype; `count` is the number of `tensors`, `processes` may be NULL: this one alone.  Takes TINY_SUM, TINY_PROD, TINY_REDUCE_MAX, TINY_REDUCE_MIN, and TINY_MEAN of floats.  16-bit floats are combined in float32 and rounded once.  Since 0.3.
pub fn allreduce(tensors: &[&Tensor], op: ReduceOp, processes: Option<&Processes>) -> Result<Vec<Tensor>> {
    crate::support::at_least_one(tensors.len())?;
    let tensors_raw: Vec<_> = tensors.iter().map(|o| o.raw.as_ptr() as *const _).collect();
    let mut outs = vec![ptr::null_mut(); tensors.len()];
    check(unsafe { ffi::tiny_allreduce(tensors_raw.as_ptr() as *const _, tensors_raw.len(), op.0, processes.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), outs.as_mut_ptr(), outs.len()) })?;
    Ok(outs.into_iter().map(|o| Tensor::from_raw(o, tensors[0].context.clone())).collect())
}

/// outs\[k\] = all tensors, one after the other along `axis`, for every k alike; `count` is the number of `tensors`, `processes` may be NULL: this one alone.  Since 0.3.
pub fn allgather(tensors: &[&Tensor], axis: i64, processes: Option<&Processes>) -> Result<Vec<Tensor>> {
    crate::support::at_least_one(tensors.len())?;
    let tensors_raw: Vec<_> = tensors.iter().map(|o| o.raw.as_ptr() as *const _).collect();
    let mut outs = vec![ptr::null_mut(); tensors.len()];
    check(unsafe { ffi::tiny_allgather(tensors_raw.as_ptr() as *const _, tensors_raw.len(), axis, processes.map_or(ptr::null_mut(), |o| o.raw.as_ptr()), outs.as_mut_ptr(), outs.len()) })?;
    Ok(outs.into_iter().map(|o| Tensor::from_raw(o, tensors[0].context.clone())).collect())
}

/// The gradients of losses by the tensors `wrt`: gradients\[i\] has the shape and dtype of wrt\[i\]; `count` is the number of `wrt`. It is the sum over all losses, each element weighed by the same element of its upstream, of what the loss changes by for a change of the element of wrt\[i\].  `upstream` may be NULL: ones, for losses of one element; or it has a tensor for each loss, of its shape.  Nothing has to be marked before and nothing is kept: what is differentiated is the graph that the losses are made of now, so a loss that was computed already (tiny_realize, tiny_tensor_read) has none. A tensor of `wrt` is a value that the losses were built of; what was assigned to it since is another value.  The gradients are graphs like any other: they can be part of a program, and be differentiated again. docs/semantics.md says what the slope is where there is none (equal elements of a maximum, |0|). A tensor that no loss depends on is TINY_ERROR_INVALID_ARGUMENT; with TINY_FLAG_ALLOW_UNUSED its gradient is 0. Loops and branches whose count or choice the run computes are TINY_ERROR_UNSUPPORTED.
pub fn gradient(losses: &[&Tensor], wrt: &[&Tensor], upstream: &[&Tensor], allow_unused: bool) -> Result<Vec<Tensor>> {
    crate::support::at_least_one(wrt.len())?;
    let losses_raw: Vec<_> = losses.iter().map(|o| o.raw.as_ptr() as *const _).collect();
    let wrt_raw: Vec<_> = wrt.iter().map(|o| o.raw.as_ptr() as *const _).collect();
    let upstream_raw: Vec<_> = upstream.iter().map(|o| o.raw.as_ptr() as *const _).collect();
    let mut gradients = vec![ptr::null_mut(); wrt.len()];
    check(unsafe { ffi::tiny_gradient(losses_raw.as_ptr() as *const _, losses_raw.len(), wrt_raw.as_ptr() as *const _, wrt_raw.len(), upstream_raw.as_ptr() as *const _, upstream_raw.len(), flags(&[(allow_unused, 512)]), gradients.as_mut_ptr(), gradients.len()) })?;
    Ok(gradients.into_iter().map(|o| Tensor::from_raw(o, wrt[0].context.clone())).collect())
}

/// The root of the sum of all squares, a float32 scalar.
pub fn gradient_norm(gradients: &[&Tensor]) -> Result<Tensor> {
    crate::support::at_least_one(gradients.len())?;
    let gradients_raw: Vec<_> = gradients.iter().map(|o| o.raw.as_ptr() as *const _).collect();
    let mut out = ptr::null_mut();
    check(unsafe { ffi::tiny_gradient_norm(gradients_raw.as_ptr() as *const _, gradients_raw.len(), &mut out) })?;
    Ok(Tensor::from_raw(out, gradients[0].context.clone()))
}

/// The gradients with a common factor that leaves them a norm of at most `most`; `norm` is tiny_gradient_norm's.  clipped\[i\] is gradients\[i\] clipped; `clipped_count` is the number of `gradients`.
pub fn clip_by_norm(gradients: &[&Tensor], norm: &Tensor, most: f64) -> Result<Vec<Tensor>> {
    crate::support::at_least_one(gradients.len())?;
    let gradients_raw: Vec<_> = gradients.iter().map(|o| o.raw.as_ptr() as *const _).collect();
    let mut clipped = vec![ptr::null_mut(); gradients.len()];
    check(unsafe { ffi::tiny_clip_by_norm(gradients_raw.as_ptr() as *const _, gradients_raw.len(), norm.raw.as_ptr(), most, clipped.as_mut_ptr(), clipped.len()) })?;
    Ok(clipped.into_iter().map(|o| Tensor::from_raw(o, gradients[0].context.clone())).collect())
}

/// base * gamma^(step / every), rounded down.
pub fn rate_step(base: f64, step: i64, every: i64, gamma: f64) -> Result<f64> {
    let mut rate: f64 = 0.0;
    check(unsafe { ffi::tiny_rate_step(base, step, every, gamma, &mut rate) })?;
    Ok(rate)
}

/// base * gamma^(how many of the milestones, which ascend, are at most `step`).
pub fn rate_multi_step(base: f64, step: i64, milestones: &[i64], gamma: f64) -> Result<f64> {
    let milestones_count = count(&[Some(milestones)])?;
    let mut rate: f64 = 0.0;
    check(unsafe { ffi::tiny_rate_multi_step(base, step, pointer(Some(milestones)), milestones_count, gamma, &mut rate) })?;
    Ok(rate)
}

/// Half a cosine from `base` down to `least` at `steps`, where it stays.
pub fn rate_cosine(base: f64, step: i64, steps: i64, least: f64) -> Result<f64> {
    let mut rate: f64 = 0.0;
    check(unsafe { ffi::tiny_rate_cosine(base, step, steps, least, &mut rate) })?;
    Ok(rate)
}

/// From base * first in a straight line up to `base` at `steps`, where it stays.
pub fn rate_warm_up(base: f64, step: i64, steps: i64, first: f64) -> Result<f64> {
    let mut rate: f64 = 0.0;
    check(unsafe { ffi::tiny_rate_warm_up(base, step, steps, first, &mut rate) })?;
    Ok(rate)
}

/// From most / divisor up to `most` within a share `rise` of the steps, and down to most / divisor / final_divisor at the last one.
pub fn rate_one_cycle(most: f64, step: i64, steps: i64, rise: f64, divisor: f64, final_divisor: f64) -> Result<f64> {
    let mut rate: f64 = 0.0;
    check(unsafe { ffi::tiny_rate_one_cycle(most, step, steps, rise, divisor, final_divisor, &mut rate) })?;
    Ok(rate)
}

/// Writes `outputs` as functions of `inputs` (made by tiny_input) to an ONNX model of operator set 20, or 26 where it takes the bits of floats: computes nothing. Both have the names that tensors were given (tiny_tensor_set_name), or "input0", "output0", .. by their places. Other tensors are weights, as they are now.  A dimension that depends on variables is free; a variable that the graph needs must be a dimension of an input by itself.  Operators are ONNX's larger ones (Conv, Gemm, MatMul, Softmax, LayerNormalization, ..) where importing them would make the same graph, and elementary ones elsewhere. The file is replaced as tiny_tensor_save does it.  TINY_ERROR_UNSUPPORTED names what no operator does: assignments, loops that a run counts.  TINY_ERROR_LIMIT for a model of more than 2 GiB.  Since 0.3.
pub fn export_onnx(inputs: &[&Tensor], outputs: &[&Tensor], path: &str) -> Result<()> {
    let inputs_raw: Vec<_> = inputs.iter().map(|o| o.raw.as_ptr() as *const _).collect();
    let outputs_raw: Vec<_> = outputs.iter().map(|o| o.raw.as_ptr() as *const _).collect();
    let path = c_text(Some(path))?;
    check(unsafe { ffi::tiny_export_onnx(inputs_raw.as_ptr() as *const _, inputs_raw.len(), outputs_raw.as_ptr() as *const _, outputs_raw.len(), path.as_ref().map_or(ptr::null(), |t| t.as_ptr())) })?;
    Ok(())
}

/// The devices of this build and machine as one JSON object: the keys of `tiny devices --json`.
pub fn devices() -> Result<Report> {
    let mut out = ptr::null_mut();
    check(unsafe { ffi::tiny_devices(&mut out) })?;
    Ok(Report::from_raw(out))
}
