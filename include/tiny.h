/* tiny.h - the whole public interface of libtiny.
**
** Ownership   Every `**out` handle is owned by the caller: release it exactly once per retain.  A
**             handle keeps alive what it was made from, so handles may be released in any order.
**             Every argument is borrowed: the library keeps its own reference if it needs one.
**             `const char *` results belong to the library; each says how long it lives.
**             A handle of another type, or one that was released, is TINY_ERROR_INVALID_ARGUMENT with a
**             message that says so, as long as its memory was not used again; retaining or releasing
**             such a one does nothing.
** Errors      Calls that can fail return tiny_status; out-parameters come last and are set to NULL
**             or zero on failure.  tiny_last_error() says what was wrong.  The library never aborts,
**             exits, prints (unless TINY_DEBUG asks), or lets an exception out.
** Threads     Handles may be used by any number of threads at once, but options and a run by one at a time.
**               building   all that makes tensors, computes, compiles or loads in a context: one call at a
**                          time per context, the others wait for it in turn.  The option "busy" =
**                          "error" has TINY_ERROR_BUSY instead, "busy_timeout" after so long.
**               looking    what a context, tensor, dimension, model, program, variable, run or archive is, and
**                          tiny_tensor_read and tiny_tensor_data of what is computed and has no write
**                          pending: waits for nobody and is never BUSY.  The elements are those of the last
**                          building call that ended; an assignment waits until they are copied.
**               files      reading an archive's, and writing what is computed, wait for nobody; to make or
**                          compute a tensor on the way is building.
**               runs       binding, executing and reading wait for nobody, and runs of one program execute
**                          side by side; what sets a tensor is building.  Two threads on one run:
**                          TINY_ERROR_BUSY.  tiny_model_run has the context while it finds or compiles
**                          its program, and not while that executes.
**               lifetime   retain and release: any thread, any time; they wait for nobody.
**               functions  of the caller's that a context calls (log, allocator, progress, deleters, ..) may
**                          release handles; a building call on that context is TINY_ERROR_BUSY there.
**               fork       a child goes on with a context that no other thread was building in; with
**                          another every building call is TINY_ERROR_DEVICE_LOST.
** Dimensions  See "Dimensions" below: sizes, TINY_DIM_FREE, and numbers that stand for variables.
** Units       Dimensions and strides are counted in elements, sizes named `bytes` in bytes, times in
**             seconds.  Shapes are row-major; a tensor has at most TINY_RANK_MAX dimensions.
** Versions    Within a major version, from 0.2 on, nothing is removed, renamed, renumbered or changed, but for
**             what says "Unstable": a program linked with 0.n runs with every later 0.m, and one with 1.n
**             with every later 1.m.  1.0 may break programs of 0.x, once.  Three things say the same: the
**             SONAME is libtiny.so.0 for all of 0.x and libtiny.so.1 for 1.x; the CMake package of 0.m takes
**             a request for 0.n where 2 <= n <= m; every function has the symbol version of the release
**             that added it.  Every declaration below is stable since 0.2 unless it says otherwise.
** Unknown     Later releases add.  A status that a program does not know is a failure, which tiny_status_name()
**             ("UNKNOWN" for a number that is none) and tiny_last_error() tell.  An option that the library
**             does not know is an error that lists the known.  JSON objects may get more keys and lists of
**             names more entries: what a program does not know it passes over.  Enumerations may get more
**             values; an older library refuses them as arguments, with TINY_ERROR_INVALID_ARGUMENT.
*/
#ifndef TINY_H
#define TINY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TINY_API
#if defined(__GNUC__)
#define TINY_API __attribute__((visibility("default")))
#else
#define TINY_API
#endif
#endif

#define TINY_RANK_MAX 16

/* ---- Dimensions ------------------------------------------------------------------------------
** Where dims go in or come out, a number is one of three:
**   0 to 2^40        a size
**   TINY_DIM_FREE    a dimension that is free: it is not said here, since something else decides it.  Taken by
**                    tiny_reshape (the number of elements decides) and tiny_expand (the operand does); given by
**                    tiny_model_input_shape and tiny_model_output_shape (each run does).  Elsewhere it is an error, as
**                    every negative size.
**   far below that   a dimension that depends on variables (tiny_variable_create), which runs bind.  tiny_variable_dim,
**                    tiny_tensor_shape and tiny_dim_* give it.  Taken, within the context, by tiny_input, tiny_full,
**                    tiny_arange (its count), tiny_reshape, tiny_expand, tiny_tile, tiny_pad, tiny_one_hot, where a
**                    tiny_slice begins and ends, by tiny_as_strided and what follows it under "Strides", by
**                    tiny_scalar_int (a scalar that is the size), tiny_model_compile and tiny_dim_*.  What must know
**                    its size, or whether two are equal, is TINY_ERROR_UNSUPPORTED.
** The last checks itself: of another context, or changed by arithmetic (n + 1, 2 * n, -n, n / 2), it is
** TINY_ERROR_INVALID_ARGUMENT that names the argument, never a size; so it is as a number among elements (tiny_full's
** value), near to one that stands for a dimension.  tiny_dim_* calculate with it. */
#define TINY_DIM_FREE (-1)

/* ---- Version ------------------------------------------------------------------------------- */

/* Of this header; tiny_version and tiny_abi_version tell the library's. */
#define TINY_VERSION_MAJOR 0
#define TINY_VERSION_MINOR 3
#define TINY_VERSION_PATCH 0
/* A patch adds no declarations.  A program compiled with n runs with libraries of the same major version whose
   tiny_abi_version() is at least n. */
#define TINY_ABI_VERSION (TINY_VERSION_MAJOR * 1000 + TINY_VERSION_MINOR)

/* "major.minor.patch"; lives as long as the library. */
TINY_API const char *tiny_version(void);
/* TINY_ABI_VERSION of the header that the library was built with. */
TINY_API int32_t tiny_abi_version(void);

/* The newest version of ONNX's operator set ("ai.onnx") whose operators are known here. */
TINY_API int64_t tiny_supported_opset(void);
/* 1 if models may have the operator `op` of `domain` ("" and "ai.onnx" are the standard's; `domain` may be
   NULL, the same) at version `opset` of the domain's operator set, else 0.  docs/ONNX.md has the same as a
   table, and what of an operator is left out; whether a given model can be compiled, tiny_model_info says. */
TINY_API int32_t tiny_op_supported(const char *domain, const char *op, int64_t opset);

/* ---- Status and errors --------------------------------------------------------------------- */

typedef int32_t tiny_status;
enum {
  TINY_OK = 0,
  TINY_ERROR_INVALID_ARGUMENT = 1, /* the caller's mistake; nothing changed */
  TINY_ERROR_SHAPE = 2,            /* shapes, axes or sizes that do not fit together */
  TINY_ERROR_DTYPE = 3,            /* an element type that the operation does not take */
  TINY_ERROR_DEVICE = 4,           /* a driver, compiler or launch failed */
  TINY_ERROR_UNSUPPORTED = 5,      /* valid, but this build, device or model feature is missing */
  TINY_ERROR_OUT_OF_MEMORY = 6,
  TINY_ERROR_INVALID_MODEL = 7, /* a model file that breaks its format */
  TINY_ERROR_IO = 8,            /* a file could not be read or written */
  TINY_ERROR_LIMIT = 9,         /* a limit set by the caller was reached */
  TINY_ERROR_CANCELLED = 10,    /* the cancel token was set */
  TINY_ERROR_BUSY = 11,         /* another thread is using the object, or a call of its own is */
  TINY_ERROR_DEVICE_LOST = 12,  /* the device stopped, or stayed behind in a fork; release its context */
  TINY_ERROR_INDEX = 13,        /* an index read from data was out of range */
  TINY_ERROR_INTERNAL = 14      /* a bug in libtiny; please report the message */
};

/* "INVALID_ARGUMENT"; "UNKNOWN" for a number that is no status.  Lives as long as the library. */
TINY_API const char *tiny_status_name(tiny_status status);
/* The message of the last failed call on this thread: it names the call, what it got and what it
   wanted.  "" if none failed.  Valid until the next call on this thread. */
TINY_API const char *tiny_last_error(void);
/* The same as one JSON object: {"status","call","message"}, and "node" and "file" where the error is
   about a node of a model or a file.  Valid until the next call. */
TINY_API const char *tiny_last_error_json(void);

/* ---- Element types ------------------------------------------------------------------------- */

typedef int32_t tiny_dtype;
enum {
  TINY_BOOL = 1, /* one byte, 0 or 1 */
  TINY_INT8 = 2,
  TINY_INT16 = 3,
  TINY_INT32 = 4,
  TINY_INT64 = 5,
  TINY_UINT8 = 6,
  TINY_UINT16 = 7,
  TINY_UINT32 = 8,
  TINY_UINT64 = 9,
  TINY_FLOAT16 = 10,
  TINY_BFLOAT16 = 11,
  TINY_FLOAT32 = 12,
  TINY_FLOAT64 = 13,
  TINY_FLOAT8_E4M3FN = 14, /* of 8 bits: computed as float32 and rounded, beyond the greatest number to that */
  TINY_FLOAT8_E4M3FNUZ = 15,
  TINY_FLOAT8_E5M2 = 16,
  TINY_FLOAT8_E5M2FNUZ = 17,
  TINY_FLOAT8_E8M0 = 18, /* this and those below: for types that no tensor has yet (TINY_ERROR_UNSUPPORTED) */
  TINY_FLOAT4_E2M1 = 19,
  TINY_INT4 = 20,
  TINY_UINT4 = 21,
  TINY_INT2 = 22,
  TINY_UINT2 = 23,
  TINY_COMPLEX64 = 24, /* two float32 */
  TINY_COMPLEX128 = 25,
  TINY_STRING = 26
};
/* "float32"; NULL for a number that is no dtype.  Lives as long as the library. */
TINY_API const char *tiny_dtype_name(tiny_dtype dtype);
/* Bytes of one element; 0 for a number that is no dtype, for elements smaller than a byte, and for strings. */
TINY_API size_t tiny_dtype_size(tiny_dtype dtype);
/* Bits of one element in memory (8 of a bool); 0 for a number that is no dtype, and for strings. */
TINY_API size_t tiny_dtype_bits(tiny_dtype dtype);
/* 1 if tensors may have the dtype, else 0. */
TINY_API int32_t tiny_dtype_supported(tiny_dtype dtype);

/* ---- Flags --------------------------------------------------------------------------------- */

/* What a call can be told besides: a sum of bits, 0 for none.  Each call says which it takes; another bit is
   TINY_ERROR_INVALID_ARGUMENT with a message that lists them. */
typedef uint32_t tiny_flags;
enum {
  TINY_FLAG_KEEPDIMS = 1,            /* axes that are folded stay, with size 1 */
  TINY_FLAG_LAST = 2,                /* the last of equals, not the first */
  TINY_FLAG_EXCLUSIVE = 4,           /* up to each element, without it */
  TINY_FLAG_REVERSE = 8,             /* from the end */
  TINY_FLAG_APPROXIMATE = 16,        /* by tanh, not by erf */
  TINY_FLAG_COLUMNS_FIRST = 32,      /* channels in ONNX's order CRD, not DCR */
  TINY_FLAG_CEIL_MODE = 64,          /* a last window may reach over the end */
  TINY_FLAG_COUNT_INCLUDE_PAD = 128, /* padding counts as zeros (what TINY_FLAG_CEIL_MODE adds does not) */
  TINY_FLAG_READ_ONLY = 256,         /* memory that is never written */
  TINY_FLAG_ALLOW_UNUSED = 512,      /* what nothing depends on is none of the caller's mistakes */
  TINY_FLAG_PARTIAL = 1024,          /* names that only one side has are passed over */
  TINY_FLAG_SHUFFLE = 2048,          /* in an order that a seed decides */
  TINY_FLAG_DROP_LAST = 4096,        /* what is left at the end and is not whole is left out */
  TINY_FLAG_NO_BIAS = 8192,          /* a layer without what is added */
  TINY_FLAG_NO_AFFINE = 16384,       /* a layer without weight and bias */
  TINY_FLAG_BIDIRECTIONAL = 32768,   /* from the end on, too */
  TINY_FLAG_BATCH_FIRST = 65536,     /* [batch, steps, ..], not [steps, batch, ..] */
  TINY_FLAG_CAUSAL = 131072,         /* nothing looks at what comes later */
  TINY_FLAG_ZERO_INFINITY = 262144   /* losses that are infinite are 0 */
};

/* ---- Context ------------------------------------------------------------------------------- */

typedef struct tiny_options tiny_options; /* settings for a new context */
typedef struct tiny_context tiny_context; /* devices, caches, threads and memory; nothing is global */
typedef struct tiny_tensor tiny_tensor;   /* a value, computed when it is first read */
typedef struct tiny_report tiny_report;   /* a long text */
typedef struct tiny_cancel tiny_cancel;   /* ends work early */

TINY_API tiny_status tiny_options_create(tiny_options **out);
TINY_API void tiny_options_release(tiny_options *options); /* NULL is a no-op, as for every release */
/* Keys: "threads" (0: as many as the affinity mask and the cgroup quota allow), "deterministic" (1: results are the
   same bits with any number of threads, on one machine; not with "beam"), "debug" (0..7), "beam", "noopt", "spec",
   "viz" (1: see tiny_context_record), "cache" (0: no disk cache), "map_files" (0: files are read into memory, not
   mapped; see tiny_model_load),
   "cache_kernels" (compiled kernels that the context keeps), "memory_kept" (bytes of large buffers that are gone and
   whose memory waits for the next ones; 268435456 if not set, and never more beside the
   buffers in use than have been in use at once), "busy_timeout" (milliseconds that a building call waits for others
   on the context before it is TINY_ERROR_BUSY; 0: without end).  Limits, 0 for none or the default, each
   TINY_ERROR_LIMIT when it is reached: "memory_limit" (bytes of all buffers, of files that are read into memory and
   of tables made while building), "time_limit" (milliseconds of a call, its wait for others, compiling and executing
   together; it ends within milliseconds, also in a kernel; of a wait the shorter of it and "busy_timeout"),
   "node_limit", "depth_limit", "file_limit" (nodes, nesting and bytes of a model file).  An unknown key is an error
   that lists the known. */
TINY_API tiny_status tiny_options_set_int(tiny_options *options, const char *key, int64_t value);
/* Keys: "busy" ("wait", "error": what a building call does while another has the context), "device" ("cpu", "interp",
   "c", "null"; "cuda", "opencl:1": see tiny_devices), "isa" ("auto", "avx512", "avx2"), "cache_dir" (of compiled kernels;
   "": $XDG_CACHE_HOME/tiny or ~/.cache/tiny; if it cannot be used there is no disk cache). */
TINY_API tiny_status tiny_options_set_string(tiny_options *options, const char *key, const char *value);

/* What "debug" asks to be told goes to `log`, with `user`, instead of stderr; `log` may be NULL: stderr again.  The
   text is whole lines and lasts for the call.  It comes from whichever thread builds, loads or executes a run
   in a context that these options made, from several at once if several execute, and from the one that releases
   the context.  `log` must not call the library on that context. */
TINY_API tiny_status tiny_options_set_log(tiny_options *options, void (*log)(void *user, const char *text), void *user);

/* Memory for the elements of tensors and for values between kernels comes from `allocate`, aligned to `alignment`
   bytes, a power of two (NULL from it is TINY_ERROR_OUT_OF_MEMORY), and goes back to `release`, once and with the
   same `bytes` and `alignment`; both get `user`, are called from any thread, also after the context was released if
   a program's run or lent memory lives on, and must not call the library.  `allocate` may be NULL, with `release`:
   the library's own memory again.  Code, graphs and texts are not in it. */
TINY_API tiny_status
tiny_options_set_allocator(tiny_options *options, void *(*allocate)(void *user, size_t bytes, size_t alignment),
                           void (*release)(void *user, void *memory, size_t bytes, size_t alignment), void *user);

/* Kernels that are split run on the caller's threads instead of the library's: `run` calls task(data, i) once for each
   i from 0 to count - 1, on any threads, at once or one after the other, and returns when all these calls have.
   `count` is at most the option "threads".  It is called with `user` by the thread that builds or executes, for one
   kernel at a time; what it leaves out, that thread does.  Neither it nor a task may call the library on that
   context, and no task may be called after the context, its programs and its runs are gone.  `run` may be NULL: the
   library's own threads again. */
TINY_API tiny_status tiny_options_set_thread_pool(tiny_options *options,
                                                  void (*run)(void *user, void (*task)(void *data, size_t index),
                                                              void *data, size_t count),
                                                  void *user);
/* Long work tells how far it is: `progress` is called between two kernels that are compiled, with `what` "compile
   NAME", and between two candidates of a search for optimisations (the option "beam"), with "search NAME"; `done` of
   `total` are done, and a new `what` may begin at 0 again.  It is called with `user` by the thread that builds, in
   the call that builds; `what` lasts for the call.  A result other than 0 ends that call with TINY_ERROR_CANCELLED.
   It must not call the library on that context.  `progress` may be NULL: nobody is told again. */
TINY_API tiny_status tiny_options_set_progress(
    tiny_options *options, int32_t (*progress)(void *user, const char *what, int64_t done, int64_t total), void *user);
/* Long work asks: `poll` is called with `user` every few milliseconds by the thread that called, in calls that build
   or wait for those that do, read or write files and large tensors, and in executions, in the middle of kernels too
   (with a thread pool of the caller's, if that runs tasks on the calling thread).  A result other than 0 ends the call
   with TINY_ERROR_CANCELLED.  It must not call the library on that context, but for tiny_cancel_set, nor throw or jump
   out of the call.  `poll` may be NULL: nobody is asked. */
TINY_API tiny_status tiny_options_set_poll(tiny_options *options, int32_t (*poll)(void *user), void *user);
/* `deleter` is called with `user`, once, from any thread, when the options and all that was made with them are gone:
   nothing calls the functions that were set any more.  It must not call the library.  Any number may be
   added. */
TINY_API tiny_status tiny_options_add_deleter(tiny_options *options, void (*deleter)(void *user), void *user);

/* `options` may be NULL: the defaults, changed by the TINY_* environment variables. */
TINY_API tiny_status tiny_context_create(const tiny_options *options, tiny_context **out);
TINY_API void tiny_context_retain(tiny_context *context);
TINY_API void tiny_context_release(tiny_context *context);
/* `cancel` (may be NULL: none) ends loading, compiling and computing in this context early, with
   TINY_ERROR_CANCELLED, and waiting for it, within milliseconds: it is looked at between steps and in the middle of
   kernels.  Runs have their own.  A value whose computing was ended is computed anew when it is read again; what was
   assigned by then has any elements: it may be read, and assigned again. */
TINY_API tiny_status tiny_context_set_cancel(tiny_context *context, tiny_cancel *cancel);
/* What the context's options came to, as one JSON object: "device", "isa" ("" where there is none), "threads" (of
   its pool, the caller's included), "debug", "memory_limit", "memory_used" (bytes of buffers now), "memory_kept"
   (bytes kept for later ones), "cache_dir" ("": no disk cache). */
TINY_API tiny_status tiny_context_info(tiny_context *context, tiny_report **out);
/* Changes an option of a context that is in use: "debug", "graph", "graphuops", "beam", "noopt", "fusion",
   "default_int", "default_float", "weak_results"; another is an error that lists them.  Programs that are compiled
   stay as they are; after "beam", "noopt" and "fusion", what is computed is compiled anew.  A building call.  Since
   0.3. */
TINY_API tiny_status tiny_context_set_int(tiny_context *context, const char *key, int64_t value);
/* The context on another of its devices, named as for the option "device" ("cpu", "opencl:1"): what is made with it lies
   there, and all that takes a context takes it (tensors, models, archives, generators).  It is opened when it is first
   asked for, with the options, the operators and the cancel token that `context` has then, and is the same one for all
   who ask for that device, for as long as the context that asked first; from it one comes back by the other's device.
   It has a lock, caches, limits and counters of its own: calls of two devices do not wait for each other.
   tiny_tensor_to copies between them; any other call over tensors of two is TINY_ERROR_INVALID_ARGUMENT that names
   both devices.  Since 0.3. */
TINY_API tiny_status tiny_context_on_device(tiny_context *context, const char *device, tiny_context **out);
/* Waits until the context's device has done all that it was given, for who measures time: what reads a value waits for
   that by itself.  Since 0.3. */
TINY_API tiny_status tiny_context_synchronize(tiny_context *context);

/* ---- Cancelling ------------------------------------------------------------------------------ */

/* A token; set and cleared from any thread. */
TINY_API tiny_status tiny_cancel_create(tiny_cancel **out);
TINY_API void tiny_cancel_retain(tiny_cancel *cancel);
TINY_API void tiny_cancel_release(tiny_cancel *cancel);
/* Whatever the token was given to ends with TINY_ERROR_CANCELLED, until it is cleared.  Of any thread, and of a signal
   handler. */
TINY_API tiny_status tiny_cancel_set(tiny_cancel *cancel);
TINY_API tiny_status tiny_cancel_clear(tiny_cancel *cancel);

/* ---- Tensors ------------------------------------------------------------------------------- */

/* Copies the elements of `data` (row-major, `bytes` must be their exact size) before it returns. */
TINY_API tiny_status tiny_tensor_from_data(tiny_context *context, tiny_dtype dtype, const int64_t *dims, size_t ndim,
                                           const void *data, size_t bytes, tiny_tensor **out);
/* The caller's memory, the `bytes` from `data` on, without a copy.  Element (i0, i1, ..) is the element offset +
   i0*strides[0] + .. of it; strides have any sign, 0 repeats; NULL strides mean row-major.  All must lie in the memory
   (TINY_ERROR_SHAPE), and `data` be aligned to an element.  The memory is read when work runs and must not change
   before; tiny_assign and runs write there, unless `flags` has TINY_FLAG_READ_ONLY: then the tensor gets memory of its
   own when it is to be written.  `deleter` (may be NULL) is called with `user` once, from any thread, when the last
   tensor that needs the memory is gone.  On failure the deleter is not called. */
TINY_API tiny_status tiny_tensor_wrap(tiny_context *context, tiny_dtype dtype, const int64_t *dims,
                                      const int64_t *strides, size_t ndim, void *data, size_t bytes, int64_t offset,
                                      tiny_flags flags, void (*deleter)(void *user), void *user, tiny_tensor **out);
/* A tensor without dimensions that holds `value`.  A scalar is weak: combined with a tensor it takes
   the tensor's dtype, unless only a float can hold it (docs/semantics.md). */
TINY_API tiny_status tiny_scalar_float(tiny_context *context, double value, tiny_tensor **out);
/* The same of an integer.  A number that stands for a dimension (see "Dimensions") is the size that each run has. */
TINY_API tiny_status tiny_scalar_int(tiny_context *context, int64_t value, tiny_tensor **out);
/* Every element `value`, converted to `dtype`. */
TINY_API tiny_status tiny_full(tiny_context *context, tiny_dtype dtype, const int64_t *dims, size_t ndim, double value,
                               tiny_tensor **out);
/* The integers 0, 1, .. count-1 as `dtype`. */
TINY_API tiny_status tiny_arange(tiny_context *context, tiny_dtype dtype, int64_t count, tiny_tensor **out);
TINY_API void tiny_tensor_retain(tiny_tensor *tensor);
TINY_API void tiny_tensor_release(tiny_tensor *tensor);

/* The context that the tensor lives in; release it. */
TINY_API tiny_status tiny_tensor_context(const tiny_tensor *tensor, tiny_context **out);
/* In a context with the option "weak_results", of what follows from bare numbers alone: TINY_WEAK_INT or
   TINY_WEAK_FLOAT.  It is computed and stored as the option "default_int" or "default_float" says; tiny_cast gives it
   that dtype, and to these two makes it weak. */
TINY_API tiny_status tiny_tensor_dtype(const tiny_tensor *tensor, tiny_dtype *out);
#define TINY_WEAK_INT (-1)
#define TINY_WEAK_FLOAT (-2)
TINY_API tiny_status tiny_tensor_rank(const tiny_tensor *tensor, size_t *out);
/* Writes min(rank, capacity) dimensions; `rank` gets their full number.  A dimension that depends on variables is
   the number that stands for it. */
TINY_API tiny_status tiny_tensor_shape(const tiny_tensor *tensor, int64_t *dims, size_t capacity, size_t *rank);
/* Strides in elements, as tiny_tensor_shape writes dimensions. */
TINY_API tiny_status tiny_tensor_strides(const tiny_tensor *tensor, int64_t *strides, size_t capacity, size_t *rank);
/* Where element (0, 0, ..) is in the memory that the tensor shares with its views, in elements. */
TINY_API tiny_status tiny_tensor_offset(const tiny_tensor *tensor, int64_t *out);
/* The name of the device that the tensor's memory is of ("cpu"); lives as long as its context. */
TINY_API tiny_status tiny_tensor_device(const tiny_tensor *tensor, const char **out);
/* The tensor in `context`, as a rule one of tiny_context_on_device: the elements, computed now if need be, are copied,
   row-major, from device to device where both drivers can, else over the host.  It shares nothing with the tensor, and
   gradients end there.  In the tensor's own context it is the tensor itself, in another handle.  A scalar becomes the
   same scalar there.  What has no elements yet, such as a program's input, is TINY_ERROR_INVALID_ARGUMENT.  A building
   call of both contexts, one after the other.  Since 0.3. */
TINY_API tiny_status tiny_tensor_to(const tiny_tensor *tensor, tiny_context *context, tiny_tensor **out);
/* What profiles and traces call the work that computes this value and nothing else that has a name: see
   tiny_program_kernels.  A label for people: it may be any text, "" is none again, and it decides nothing.  Equal
   values of a context are one value: the latest name given to it holds. */
TINY_API tiny_status tiny_tensor_set_name(tiny_tensor *tensor, const char *name);
/* The name that this handle was given, or ""; lives as long as the context. */
TINY_API tiny_status tiny_tensor_name(const tiny_tensor *tensor, const char **out);
/* The number of elements. */
TINY_API tiny_status tiny_tensor_numel(const tiny_tensor *tensor, int64_t *out);

/* Computes `tensor` if needed and copies its elements, row-major; `bytes` must be their exact size. */
TINY_API tiny_status tiny_tensor_read(const tiny_tensor *tensor, void *data, size_t bytes);
/* Computes `tensor` if needed; `out` is the address of its element (0, 0, ..), the others are at tiny_tensor_strides;
   NULL if it has none.  Only to be read, and until the tensor is released, assigned to, or written by a run: then
   the address may change or the memory be gone.  TINY_ERROR_DEVICE if the memory is not the host's. */
TINY_API tiny_status tiny_tensor_data(const tiny_tensor *tensor, const void **out);
/* From now on `target`, and every tensor that shares its elements (the tensor that it is a view of, other
   views), has `value` there: broadcast to its shape and converted to its dtype, which must be what the two
   promote to.  What was built from them before keeps the old elements.  The write happens when work runs that
   needs it; wrapped memory is written then.  Between any two orders of elements it is one kernel, and no copy is
   made unless the value reads what is written otherwise than element by element.  Of a target whose elements share
   memory (an expanded axis) it is TINY_ERROR_INVALID_ARGUMENT, with PyTorch's words. */
TINY_API tiny_status tiny_assign(tiny_tensor *target, const tiny_tensor *value);
/* Computes the tensors now, in one schedule, with the writes to them that are pending. */
TINY_API tiny_status tiny_realize(tiny_tensor *const *tensors, size_t count);

/* ---- Exchange with other libraries: DLPack, version 1 ----------------------------------------- */

/* As dlpack.h 1.0 and later defines it. */
struct DLManagedTensorVersioned;

/* The tensor's memory, computed now, without a copy: its deleter, to be called once, from any thread, lets it go;
   the tensor and its context may be released before.  It is flagged read-only where other values have the same
   memory.  What is written there is the tensor's from then on: not while work runs that reads it. */
TINY_API tiny_status tiny_tensor_to_dlpack(const tiny_tensor *tensor, struct DLManagedTensorVersioned **out);
/* A tensor of `managed`'s memory, without a copy; its deleter is called once, from any thread, when the last tensor
   that needs the memory is gone.  On failure it is not called: `managed` stays the caller's.  As with
   tiny_tensor_wrap the memory is read when work runs, and tiny_assign writes there; a read-only one is never
   written: an assignment gives the tensor memory of its own.  Memory of another device than the CPU is
   TINY_ERROR_DEVICE, an element type that is not had TINY_ERROR_DTYPE. */
TINY_API tiny_status tiny_tensor_from_dlpack(tiny_context *context, struct DLManagedTensorVersioned *managed,
                                             tiny_tensor **out);
/* Calls the deleter of what nobody took; NULL is a no-op. */
TINY_API void tiny_dlpack_release(struct DLManagedTensorVersioned *managed);

/* ---- Operations without parameters: families --------------------------------------------------
** Elementwise operations broadcast their operands as NumPy does and promote their dtypes as docs/semantics.md
** says.  All operands come from the same context. */

typedef int32_t tiny_unary_op;
enum {
  TINY_NEG = 0,
  TINY_ABS = 1,
  TINY_NOT = 2, /* logical on bool, bitwise on integers */
  TINY_SQRT = 3,
  TINY_FLOOR = 4,
  TINY_CEIL = 5,
  TINY_TRUNC = 6,
  TINY_ROUND = 7, /* half to even */
  TINY_EXP = 8,
  TINY_LOG = 9,
  TINY_SIN = 10,
  TINY_COS = 11,
  TINY_TANH = 12,
  TINY_ERF = 13,
  TINY_RECIPROCAL = 14,
  TINY_RSQRT = 15,
  TINY_SIGMOID = 16,
  TINY_RELU = 17,
  TINY_SIGN = 18, /* NaN of NaN */
  TINY_SQUARE = 19,
  TINY_SILU = 20,     /* a * sigmoid(a) */
  TINY_SOFTPLUS = 21, /* log(1 + exp(a)) */
  TINY_EXPM1 = 22,    /* exp(a) - 1, exact near 0 */
  TINY_LOG1P = 23,    /* log(1 + a), exact near 0 */
  TINY_IS_NAN = 24    /* a bool */
};
/* out[i] = op(a[i]).  Functions of floats take integers as float32; rounding leaves integers as they are. */
TINY_API tiny_status tiny_unary(tiny_unary_op op, const tiny_tensor *a, tiny_tensor **out);

typedef int32_t tiny_binary_op;
enum {
  TINY_ADD = 0,
  TINY_SUB = 1,
  TINY_MUL = 2,
  TINY_DIV = 3,       /* true division; integers divide as float32 */
  TINY_FLOOR_DIV = 4, /* rounds towards minus infinity; by 0: 0 for integers */
  TINY_FLOOR_MOD = 5, /* the sign of the divisor */
  TINY_TRUNC_DIV = 6, /* rounds towards zero */
  TINY_TRUNC_MOD = 7, /* the sign of the dividend */
  TINY_POW = 8,
  TINY_MAX = 9, /* NaN if either is NaN */
  TINY_MIN = 10,
  TINY_AND = 11, /* logical on bool, bitwise on integers */
  TINY_OR = 12,
  TINY_XOR = 13,
  TINY_SHL = 14,
  TINY_SHR = 15 /* arithmetic for signed integers */
};
/* out[i] = op(a[i], b[i]). */
TINY_API tiny_status tiny_binary(tiny_binary_op op, const tiny_tensor *a, const tiny_tensor *b, tiny_tensor **out);

typedef int32_t tiny_compare_op;
enum { TINY_LT = 0, TINY_LE = 1, TINY_GT = 2, TINY_GE = 3, TINY_EQ = 4, TINY_NE = 5 };
/* out[i] = op(a[i], b[i]), a bool.  Comparisons with NaN are false, but for TINY_NE. */
TINY_API tiny_status tiny_compare(tiny_compare_op op, const tiny_tensor *a, const tiny_tensor *b, tiny_tensor **out);

typedef int32_t tiny_reduce_op;
enum {
  TINY_SUM = 0,
  TINY_PROD = 1,
  TINY_REDUCE_MAX = 2,
  TINY_REDUCE_MIN = 3,
  TINY_MEAN = 4,
  TINY_ANY = 5,
  TINY_ALL = 6,
  TINY_LOGSUMEXP = 7 /* log(sum(exp(a))), without overflow */
};
/* Folds `axes` (negative ones count from the end; naxes 0 with axes NULL: all of them).  Takes TINY_FLAG_KEEPDIMS.
   Sums and products of bool and of integers below 64 bits are int64.  Over nothing: 0, 1,
   the lowest or highest value; a mean is NaN. */
TINY_API tiny_status tiny_reduce(tiny_reduce_op op, const tiny_tensor *a, const int64_t *axes, size_t naxes,
                                 tiny_flags flags, tiny_tensor **out);

/* ---- Movement: the same elements, seen in another way; nothing is copied --------------------- */

/* At most one dimension may be TINY_DIM_FREE: what is left over. */
TINY_API tiny_status tiny_reshape(const tiny_tensor *a, const int64_t *dims, size_t ndim, tiny_tensor **out);
/* out's axis k is a's axis axes[k]. */
TINY_API tiny_status tiny_permute(const tiny_tensor *a, const int64_t *axes, size_t naxes, tiny_tensor **out);
/* Repeats axes of size 1; missing leading axes are added; TINY_DIM_FREE keeps a size. */
TINY_API tiny_status tiny_expand(const tiny_tensor *a, const int64_t *dims, size_t ndim, tiny_tensor **out);
/* Reverses the axes. */
TINY_API tiny_status tiny_flip(const tiny_tensor *a, const int64_t *axes, size_t naxes, tiny_tensor **out);
/* Adds before[k] and after[k] elements `value` around axis k; negative numbers take away. */
TINY_API tiny_status tiny_pad(const tiny_tensor *a, const int64_t *before, const int64_t *after, size_t naxes,
                              double value, tiny_tensor **out);
/* Elements begin[k], begin[k]+step[k], .. before end[k] of every axis k, as Python slices them: negative
   positions count from the end, positions are clamped, a negative step goes backwards. `step` may be NULL (1).
   Positions are at most 2^40 either way, or INT64_MAX, -INT64_MAX, INT64_MIN: beyond any end. */
TINY_API tiny_status tiny_slice(const tiny_tensor *a, const int64_t *begin, const int64_t *end, const int64_t *step,
                                size_t naxes, tiny_tensor **out);
/* Element (i0, ..) is element offset + i0*strides[0] + .. of `a`'s memory, counted from its own first
   element; of a tensor that is computed, of its row-major elements.  Strides have any sign, 0 repeats; those and
   the offset from the memory's begin (`a`'s and `offset`) are what tiny_tensor_strides and tiny_tensor_offset say of
   the result.  All must lie in that memory (TINY_ERROR_SHAPE). */
TINY_API tiny_status tiny_as_strided(const tiny_tensor *a, const int64_t *dims, const int64_t *strides, size_t ndim,
                                     int64_t offset, tiny_tensor **out);

/* ---- Strides ---------------------------------------------------------------------------------
** A view of memory is dims, strides and an offset, in elements: element (i0, ..) is the memory's element offset +
** i0*strides[0] + ...  Strides have any sign, 0 repeats.  A mask, which some calls take, says where a view has
** elements: mask_begin[k] <= ik < mask_end[k] along every axis k, 0 <= mask_begin <= mask_end <= dims; it is zero
** elsewhere, whatever the memory has there.  Numbers may stand for dimensions of `context`, those that come out too. */

/* A tensor in memory of its own, of just as many elements as the strides reach: 1 + the sum of (dims[k] - 1) *
   |strides[k]|, none if a dimension is 0.  It has exactly these strides, and an offset of 0 unless one is negative.
   Its elements, and those between them, are any until they are assigned.  Takes no number that stands for a
   dimension.  Since 0.3. */
TINY_API tiny_status tiny_empty_strided(tiny_context *context, tiny_dtype dtype, const int64_t *dims,
                                        const int64_t *strides, size_t ndim, tiny_tensor **out);
/* The number of elements that memory needs for the view: one more than the last that it reaches; 0 for a view, or a
   mask, without elements.  TINY_ERROR_SHAPE if it reaches elements before the memory's begin.
   mask_begin may be NULL, mask_end may be NULL: all is there.  Since 0.3. */
TINY_API tiny_status tiny_get_buffer_size(tiny_context *context, const int64_t *dims, const int64_t *strides,
                                          const int64_t *mask_begin, const int64_t *mask_end, size_t ndim,
                                          int64_t offset, int64_t *out);
/* The elements that a view reaches, each axis forwards: the sizes (within the mask) of those axes that have more than
   one element and a stride other than 0, their strides without the sign, and the lowest element.  A view without
   elements is one axis of size 0 and stride 1, from element 0 on.  `view` gets the n dimensions, the n strides and the
   offset, the first `capacity` of these `count` = 2 n + 1 numbers.  mask_begin may be NULL, mask_end may be NULL: all
   is there.  Since 0.3. */
TINY_API tiny_status tiny_get_real_view(tiny_context *context, const int64_t *dims, const int64_t *strides,
                                        const int64_t *mask_begin, const int64_t *mask_end, size_t ndim, int64_t offset,
                                        int64_t *view, size_t capacity, size_t *count);

typedef int32_t tiny_movement;
enum {
  TINY_MOVEMENT_RESHAPE = 0,   /* the dimensions */
  TINY_MOVEMENT_PERMUTE = 1,   /* axis k of the result is axis number[k] */
  TINY_MOVEMENT_EXPAND = 2,    /* the dimensions; axes of size 1 are repeated */
  TINY_MOVEMENT_PAD = 3,       /* how many zeros before each axis, then how many behind each */
  TINY_MOVEMENT_SHRINK = 4,    /* where each axis begins, then where each ends */
  TINY_MOVEMENT_FLIP = 5,      /* the axes that are reversed */
  TINY_MOVEMENT_STRIDE = 6,    /* of each axis every number[k]-th element, from its first; from its last if negative */
  TINY_MOVEMENT_AS_STRIDED = 7 /* the dimensions, as many strides, and the offset, as tiny_as_strided takes them */
};
/* Movements that make the view, one after the other (tiny_apply_movement_op), of a tensor of one axis that has at least
   tiny_get_buffer_size elements: each as its tiny_movement, how many numbers it has, and these.  The first `capacity`
   numbers are written, `count` gets how many there are.  What comes out is a view of that tensor, but for a mask, which
   ends in a pad.  A view whose strides are not those of one array in the memory is one as_strided.
   mask_begin may be NULL, mask_end may be NULL: all is there.  Since 0.3. */
TINY_API tiny_status tiny_to_movement_ops(tiny_context *context, const int64_t *dims, const int64_t *strides,
                                          const int64_t *mask_begin, const int64_t *mask_end, size_t ndim,
                                          int64_t offset, int64_t *ops, size_t capacity, size_t *count);
/* One movement of `a`, by its numbers; a view wherever the call of that name makes one.  Since 0.3. */
TINY_API tiny_status tiny_apply_movement_op(const tiny_tensor *a, tiny_movement op, const int64_t *numbers,
                                            size_t nnumbers, tiny_tensor **out);

/* ---- Types and choice ------------------------------------------------------------------------ */

TINY_API tiny_status tiny_cast(const tiny_tensor *a, tiny_dtype dtype, tiny_tensor **out);
/* The same bits as another dtype of the same size. */
TINY_API tiny_status tiny_bitcast(const tiny_tensor *a, tiny_dtype dtype, tiny_tensor **out);
/* out[i] = condition[i] ? a[i] : b[i]. */
TINY_API tiny_status tiny_where(const tiny_tensor *condition, const tiny_tensor *a, const tiny_tensor *b,
                                tiny_tensor **out);
/* A row-major copy. */
TINY_API tiny_status tiny_contiguous(const tiny_tensor *a, tiny_tensor **out);
/* The tensors one after the other along `axis`; the other dimensions agree. */
TINY_API tiny_status tiny_concat(tiny_tensor *const *tensors, size_t count, int64_t axis, tiny_tensor **out);
/* Products of the last two axes, the axes before broadcast; vectors as numpy.matmul takes them. */
TINY_API tiny_status tiny_matmul(const tiny_tensor *a, const tiny_tensor *b, tiny_tensor **out);

/* Removes `axes`, which have size 1 (`axes` may be NULL with naxes 0: every such axis). */
TINY_API tiny_status tiny_squeeze(const tiny_tensor *a, const int64_t *axes, size_t naxes, tiny_tensor **out);
/* Adds axes of size 1; `axes` are their places in the result. */
TINY_API tiny_status tiny_unsqueeze(const tiny_tensor *a, const int64_t *axes, size_t naxes, tiny_tensor **out);
/* Repeats the whole of axis k repeats[k] times. */
TINY_API tiny_status tiny_tile(const tiny_tensor *a, const int64_t *repeats, size_t naxes, tiny_tensor **out);
/* The tensors side by side along a new axis. */
TINY_API tiny_status tiny_stack(tiny_tensor *const *tensors, size_t count, int64_t axis, tiny_tensor **out);
/* Parts of these sizes, which fill `axis`; `count` is the number of sizes.  On failure every part is NULL. */
TINY_API tiny_status tiny_split(const tiny_tensor *a, int64_t axis, const int64_t *sizes, size_t nsizes,
                                tiny_tensor **parts, size_t count);
/* Blocks of channels become blocks of pixels; `a` is [n, c, h, w].  Takes TINY_FLAG_COLUMNS_FIRST. */
TINY_API tiny_status tiny_depth_to_space(const tiny_tensor *a, int64_t block, tiny_flags flags, tiny_tensor **out);
TINY_API tiny_status tiny_space_to_depth(const tiny_tensor *a, int64_t block, tiny_tensor **out);

/* ---- Positions and values --------------------------------------------------------------------
** Indices are integers; negative ones count from the end; one out of range is TINY_ERROR_INDEX when the
** value is computed. */

/* a[.., index[..], ..] along `axis`, as numpy.take. */
TINY_API tiny_status tiny_gather(const tiny_tensor *a, const tiny_tensor *index, int64_t axis, tiny_tensor **out);
/* out[i][j].. = a[i][index[i][j]].. along `axis`; the ranks agree, and `index` is nowhere longer than
   `a` but along `axis`. */
TINY_API tiny_status tiny_take_along_axis(const tiny_tensor *a, const tiny_tensor *index, int64_t axis,
                                          tiny_tensor **out);
/* a[index[.., 0], index[.., 1], ..] behind `batch` leading axes that both have. */
TINY_API tiny_status tiny_gather_nd(const tiny_tensor *a, const tiny_tensor *index, int64_t batch, tiny_tensor **out);
/* A new axis of `depth` elements at `axis`: `on` at the index, `off` elsewhere (two scalars).  An index
   out of range gives only `off`. */
TINY_API tiny_status tiny_one_hot(const tiny_tensor *index, int64_t depth, const tiny_tensor *on,
                                  const tiny_tensor *off, int64_t axis, tiny_tensor **out);
/* The position of the greatest element along `axis`, int64: the first of equals; a NaN is the greatest.  Takes
   TINY_FLAG_KEEPDIMS and TINY_FLAG_LAST. */
TINY_API tiny_status tiny_argmax(const tiny_tensor *a, int64_t axis, tiny_flags flags, tiny_tensor **out);
/* The position of the lowest element: as tiny_argmax.  Takes TINY_FLAG_KEEPDIMS and TINY_FLAG_LAST. */
TINY_API tiny_status tiny_argmin(const tiny_tensor *a, int64_t axis, tiny_flags flags, tiny_tensor **out);
/* Sums up to each element along `axis`.  Takes TINY_FLAG_EXCLUSIVE and TINY_FLAG_REVERSE.  Dtypes as TINY_SUM. */
TINY_API tiny_status tiny_cumsum(const tiny_tensor *a, int64_t axis, tiny_flags flags, tiny_tensor **out);
/* Keeps a[.., i, j] where j - i >= diagonal; 0 elsewhere. */
TINY_API tiny_status tiny_triu(const tiny_tensor *a, int64_t diagonal, tiny_tensor **out);
/* Keeps a[.., i, j] where j - i <= diagonal; 0 elsewhere. */
TINY_API tiny_status tiny_tril(const tiny_tensor *a, int64_t diagonal, tiny_tensor **out);

/* ---- Functions of networks -------------------------------------------------------------------
** Integers count as float32; what 16-bit floats add up, they add up in float32. */

/* a * Phi(a), by erf.  Takes TINY_FLAG_APPROXIMATE. */
TINY_API tiny_status tiny_gelu(const tiny_tensor *a, tiny_flags flags, tiny_tensor **out);
/* a, and alpha * (exp(a) - 1) below 0. */
TINY_API tiny_status tiny_elu(const tiny_tensor *a, double alpha, tiny_tensor **out);
/* a, and slope * a below 0. */
TINY_API tiny_status tiny_leaky_relu(const tiny_tensor *a, double slope, tiny_tensor **out);
/* alpha * a + beta, kept between 0 and 1. */
TINY_API tiny_status tiny_hard_sigmoid(const tiny_tensor *a, double alpha, double beta, tiny_tensor **out);
/* Kept between `low` and `high`, tensors that broadcast; `low` may be NULL, `high` may be NULL.  NaN
   stays. */
TINY_API tiny_status tiny_clip(const tiny_tensor *a, const tiny_tensor *low, const tiny_tensor *high,
                               tiny_tensor **out);
/* exp(a) over its sum along `axis`, without overflow. */
TINY_API tiny_status tiny_softmax(const tiny_tensor *a, int64_t axis, tiny_tensor **out);
/* The logarithm of tiny_softmax. */
TINY_API tiny_status tiny_log_softmax(const tiny_tensor *a, int64_t axis, tiny_tensor **out);
/* The mean squared distance from the mean over `axes` (`axes` may be NULL with naxes 0: all); `correction` is
   taken from the count it divides by: 0 or 1.  Takes TINY_FLAG_KEEPDIMS. */
TINY_API tiny_status tiny_variance(const tiny_tensor *a, const int64_t *axes, size_t naxes, double correction,
                                   tiny_flags flags, tiny_tensor **out);

/* ---- Windows: how convolutions and pools see the spatial axes ------------------------------------
** A window says for each of its spatial axes where windows begin and which elements they have, and how the axes lie.
** It belongs to no context, and any thread may use it at any time.  A call reads it while it lasts: afterwards it
** may be changed or released.  What a setter is given is checked at once; numbers that cannot be are
** TINY_ERROR_INVALID_ARGUMENT, or TINY_ERROR_SHAPE if there are too few or too many, and change nothing. */

typedef struct tiny_window tiny_window;

typedef int32_t tiny_padding;
enum {
  TINY_PADDING_EXPLICIT = 0,   /* what tiny_window_set_padding says; 0 unless it was called */
  TINY_PADDING_SAME_UPPER = 1, /* so much that windows number size / stride, rounded up; what is odd goes after */
  TINY_PADDING_SAME_LOWER = 2, /* the same; what is odd goes before */
  TINY_PADDING_VALID = 3       /* none */
};

typedef int32_t tiny_layout;
enum {
  TINY_LAYOUT_CHANNELS_FIRST = 0, /* [batch, channels, spatial..] */
  TINY_LAYOUT_CHANNELS_LAST = 1   /* [batch, spatial.., channels]; weights [.., kernel.., ..], see tiny_conv */
};

/* A window of `nspatial` axes, 1 to TINY_RANK_MAX - 2: strides and dilations 1, no padding, one group, channels first,
   and no kernel. */
TINY_API tiny_status tiny_window_create(size_t nspatial, tiny_window **out);
TINY_API void tiny_window_retain(tiny_window *window);
TINY_API void tiny_window_release(tiny_window *window);
/* The sizes of a pool's windows, at least 1.  A convolution takes those of its weight; if they are set here too they
   must agree.  Each list has `nspatial` numbers, the window's own. */
TINY_API tiny_status tiny_window_set_kernel(tiny_window *window, const int64_t *kernel, size_t nspatial);
/* How far apart windows begin, at least 1. */
TINY_API tiny_status tiny_window_set_strides(tiny_window *window, const int64_t *strides, size_t nspatial);
/* How far apart the elements of a window are, at least 1. */
TINY_API tiny_status tiny_window_set_dilations(tiny_window *window, const int64_t *dilations, size_t nspatial);
/* Elements that are added before and after each axis, and makes padding explicit; those of a convolution may be
   negative: elements are taken away. */
TINY_API tiny_status tiny_window_set_padding(tiny_window *window, const int64_t *before, const int64_t *after,
                                             size_t nspatial);
/* Padding that follows from sizes, instead; TINY_PADDING_EXPLICIT is none again. */
TINY_API tiny_status tiny_window_set_auto_padding(tiny_window *window, tiny_padding padding);
/* What a transposed convolution adds to the end of each axis, at least 0. */
TINY_API tiny_status tiny_window_set_output_padding(tiny_window *window, const int64_t *output_padding,
                                                    size_t nspatial);
/* Channels are split into as many groups, each a convolution of its own; at least 1. */
TINY_API tiny_status tiny_window_set_groups(tiny_window *window, int64_t groups);
TINY_API tiny_status tiny_window_set_layout(tiny_window *window, tiny_layout layout);
/* What pools are told besides: takes TINY_FLAG_CEIL_MODE and TINY_FLAG_COUNT_INCLUDE_PAD, instead of those that were
   set. */
TINY_API tiny_status tiny_window_set_flags(tiny_window *window, tiny_flags flags);

/* Cross-correlation.  x is [batch, channels, spatial..], `weight` [out channels, channels / groups, kernel..], `bias`
   (may be NULL) [out channels].  `window` may be NULL: its defaults.  With TINY_LAYOUT_CHANNELS_LAST the second axis
   of each is the last: x and the result are [batch, spatial.., channels], `weight` is [out channels, kernel..,
   channels / groups]. */
TINY_API tiny_status tiny_conv(const tiny_tensor *x, const tiny_tensor *weight, const tiny_tensor *bias,
                               const tiny_window *window, tiny_tensor **out);
/* The transpose of tiny_conv, its gradient: `weight` is [channels, out channels / groups, kernel..], or with
   TINY_LAYOUT_CHANNELS_LAST [channels, kernel.., out channels / groups].  An axis of n elements becomes
   (n - 1) * stride + (kernel - 1) * dilation + 1 - before - after + output padding; n * stride with padding that is
   SAME.  `bias` may be NULL, `window` may be NULL. */
TINY_API tiny_status tiny_conv_transpose(const tiny_tensor *x, const tiny_tensor *weight, const tiny_tensor *bias,
                                         const tiny_window *window, tiny_tensor **out);
/* What lies in each window over the last axes of x, as many as the window has: out[.., o1, .., k1, ..] is
   x[.., o1 * stride1 + k1 * dilation1, ..] for every window that fits, with zeros where it is padded.  A view. */
TINY_API tiny_status tiny_windows(const tiny_tensor *x, const tiny_window *window, tiny_tensor **out);
/* The greatest value of each window over the last axes of x, as many as the window has, or with
   TINY_LAYOUT_CHANNELS_LAST those before the last.  Padding counts for nothing. */
TINY_API tiny_status tiny_max_pool(const tiny_tensor *x, const tiny_window *window, tiny_tensor **out);
/* Where tiny_max_pool's values are: positions in the flattened spatial axes, int64, the first of equals. */
TINY_API tiny_status tiny_max_pool_indices(const tiny_tensor *x, const tiny_window *window, tiny_tensor **out);
/* The mean of each window, over axes as tiny_max_pool; padding counts only with the window's
   TINY_FLAG_COUNT_INCLUDE_PAD. */
TINY_API tiny_status tiny_avg_pool(const tiny_tensor *x, const tiny_window *window, tiny_tensor **out);

/* ---- Functions of networks: normalisation ------------------------------------------------------ */

/* (x - mean) / sqrt(var + epsilon) * scale + bias, one number of each per channel (axis 1).  `scale` may be
   NULL, `bias` may be NULL. */
TINY_API tiny_status tiny_batch_norm(const tiny_tensor *x, const tiny_tensor *scale, const tiny_tensor *bias,
                                     const tiny_tensor *mean, const tiny_tensor *var, double epsilon,
                                     tiny_tensor **out);
/* (x - mean) / sqrt(variance + epsilon) * scale + bias over the axes from `axis` on.  `scale` may be NULL, `bias`
   may be NULL; they broadcast. */
TINY_API tiny_status tiny_layer_norm(const tiny_tensor *x, const tiny_tensor *scale, const tiny_tensor *bias,
                                     int64_t axis, double epsilon, tiny_tensor **out);
/* x / sqrt(mean(x * x) + epsilon) * scale over the axes from `axis` on.  `scale` may be NULL. */
TINY_API tiny_status tiny_rms_norm(const tiny_tensor *x, const tiny_tensor *scale, int64_t axis, double epsilon,
                                   tiny_tensor **out);
/* As tiny_layer_norm over the spatial axes and, in each of `groups` parts, the channels (axis 1), with one
   scale and bias per channel.  `scale` may be NULL, `bias` may be NULL. */
TINY_API tiny_status tiny_group_norm(const tiny_tensor *x, int64_t groups, const tiny_tensor *scale,
                                     const tiny_tensor *bias, double epsilon, tiny_tensor **out);
/* tiny_group_norm with a group for each channel.  `scale` may be NULL, `bias` may be NULL. */
TINY_API tiny_status tiny_instance_norm(const tiny_tensor *x, const tiny_tensor *scale, const tiny_tensor *bias,
                                        double epsilon, tiny_tensor **out);
/* x / (k + alpha / size * s) ^ beta, where s sums the squares of the `size` channels around each. */
TINY_API tiny_status tiny_lrn(const tiny_tensor *x, int64_t size, double alpha, double beta, double k,
                              tiny_tensor **out);

/* ---- Reports: long texts ---------------------------------------------------------------------- */

/* The text, NUL-terminated; lives as long as the report. */
TINY_API const char *tiny_report_text(const tiny_report *report);
TINY_API size_t tiny_report_bytes(const tiny_report *report); /* without the NUL */
TINY_API void tiny_report_release(tiny_report *report);

/* ---- Looking inside --------------------------------------------------------------------------- */

/* The kernels that computing `tensors` now would run, in order; nothing runs.  {"kernels":[{"name",
   "computes" (see tiny_program_kernels),"ranges":[{"range","size","kind","reduced"}],"options","operations",
   "bytes","stores","buffers":[{"access" ("read","write","update"),"dtype","bytes","buffer","kind"}]}]} */
TINY_API tiny_status tiny_schedule(tiny_tensor *const *tensors, size_t count, tiny_report **out);
/* What the context did since it was made: {"kernels":{"launched","compiled","cached","interpreted",
   "launched_interpreted"},"memory":{"allocations","allocated_bytes"},"copies":{"count","bytes"},"compile_seconds":
   {"schedule","lower","load","passes":{}}}.
   `cached` counts kernels that were asked for again.  "realized":{"launches","copies","copied_bytes"} is what computing
   values took, runs of programs aside: launches; copies of old elements, made because a write (tiny_assign) would
   have destroyed what something still reads.  With the option "profile" at 2, "profile":[{"name","launches","seconds",
   "operations","bytes","options","scalar","computes"}] is what the launches of each kernel took, in all. */
TINY_API tiny_status tiny_context_counters(tiny_context *context, tiny_report **out);
/* Sums over all launches of kernels since the context was made, those of programs' runs too: how many, the operations
   and bytes of their buffers as tiny_program_kernels counts them, and the seconds of those that were timed (by
   tiny_run_set_timed, or the option "debug" from 2 on).  `memory_used` is the bytes of all buffers now.  A few loads:
   for any thread, waits for nobody.  Since 0.3. */
TINY_API tiny_status tiny_context_totals(tiny_context *context, int64_t *launches, double *operations, double *bytes,
                                         double *timed_seconds, int64_t *memory_used);

/* With the option "viz" at 1, what the context has kept of its work, as JSON, for programs that show it: "graphs" that
   were computed or compiled, with what each pass over them left; "kernels" as the scheduler made them, after each pass,
   with the rules that fired, their loops and code; "programs", lists of kernels and their buffers; "traceEvents", when
   what ran, in Chrome's format.  Unstable: what is in it changes with the engine.  A building call.  Since 0.3. */
TINY_API tiny_status tiny_context_record(tiny_context *context, tiny_report **out);

/* Nodes: the graph behind tensors, and of kernels, to look at and to build.  A node is an operation, an element type,
   an argument and sources, never changes, and is interned: equal fields are one node of a context.  Since 0.3. */
typedef struct tiny_node tiny_node;

/* The operations that nodes may have, as a JSON array in the order of the engine's table: "name" ("Add"), "symbol",
   "arity" (null: any number), "result" (whose dtype it has: "declared", "first", "last" source, "bool", "void"),
   "weight" (what an element costs, in instructions), "traits" ("elementwise", "commutative", "associative", "float",
   "int", "logic", "movement", "effect", "transcendental"), "stages" ("tensor", "kernel", "linear": which of its
   representations may hold it).  Unstable: names may change, be added and go. */
TINY_API tiny_status tiny_ops(tiny_report **out);
/* The value of the tensor now: before it is computed what it will be computed of, afterwards a view of memory. */
TINY_API tiny_status tiny_tensor_node(const tiny_tensor *tensor, tiny_node **out);
TINY_API void tiny_node_retain(tiny_node *node);
TINY_API void tiny_node_release(tiny_node *node);
/* A new owner of the context that the node lives in. */
TINY_API tiny_status tiny_node_context(const tiny_node *node, tiny_context **out);
/* Equal for two handles if they are of one node; of a node that is gone another may have it. */
TINY_API tiny_status tiny_node_id(const tiny_node *node, int64_t *out);
/* The operation's name in tiny_ops.  Lives as long as the library. */
TINY_API tiny_status tiny_node_op(const tiny_node *node, const char **out);
/* 0 for a node without a value, such as a kernel's store. */
TINY_API tiny_status tiny_node_dtype(const tiny_node *node, tiny_dtype *out);
/* As JSON: a number or bool of a constant ("nan", "inf", "-inf"), a number or a list of integers of most operations
   (null in the place of what a source gives), {"name","min","max"} of a variable, {"op","axes"} of a reduction,
   {"shape","strides","offset"} of a view, null where there is none. */
TINY_API tiny_status tiny_node_argument(const tiny_node *node, tiny_report **out);
TINY_API tiny_status tiny_node_source_count(const tiny_node *node, size_t *out);
TINY_API tiny_status tiny_node_source(const tiny_node *node, size_t index, tiny_node **out);
/* 1 if the node is of the tensor graph, where nodes have shapes, else 0. */
TINY_API tiny_status tiny_node_has_shape(const tiny_node *node, int32_t *out);
/* As tiny_tensor_shape; TINY_ERROR_INVALID_ARGUMENT for a node without. */
TINY_API tiny_status tiny_node_shape(const tiny_node *node, int64_t *dims, size_t capacity, size_t *rank);
/* 1 if its elements are in memory, so that it is read and not computed, else 0. */
TINY_API tiny_status tiny_node_in_memory(const tiny_node *node, int32_t *out);
/* Numbers that an integer (or bool: 0, 1) is not below and not above, by what its operands can be; INT64_MIN and
   INT64_MAX where there is no bound.  64-bit arithmetic is taken not to overflow. */
TINY_API tiny_status tiny_node_range(const tiny_node *node, int64_t *min, int64_t *max);
/* An expression as text, "((a * 4) + b)".  TINY_ERROR_LIMIT for one that is written with more than 4,000 nodes; an
   operand that several share is written for each. */
TINY_API tiny_status tiny_node_text(const tiny_node *node, tiny_report **out);
/* The expression rewritten by the engine's rules for indices: 64-bit arithmetic is taken not to overflow.
   TINY_ERROR_INVALID_ARGUMENT for what depends on tensors. */
TINY_API tiny_status tiny_node_simplify(const tiny_node *node, tiny_node **out);
/* Constants, of an integer type or bool and of a float type. */
TINY_API tiny_status tiny_node_integer(tiny_context *context, tiny_dtype dtype, int64_t value, tiny_node **out);
TINY_API tiny_status tiny_node_float(tiny_context *context, tiny_dtype dtype, double value, tiny_node **out);
/* A 64-bit integer from `min` to `max`; one with the same name and range is the same. */
TINY_API tiny_status tiny_node_variable(tiny_context *context, const char *name, int64_t min, int64_t max,
                                        tiny_node **out);
/* An elementwise operation, as it is, without rewriting.  `dtype` is what a Cast or Bitcast makes and may be 0
   otherwise; operands have one dtype (a choice's condition is a bool) and, in the tensor graph, one shape. */
TINY_API tiny_status tiny_node_make(tiny_context *context, const char *op, tiny_dtype dtype, tiny_node *const *sources,
                                    size_t count, tiny_node **out);
/* The node with other sources, each of the dtype (and shape) of that which it replaces, and all else the same. */
TINY_API tiny_status tiny_node_with_sources(const tiny_node *node, tiny_node *const *sources, size_t count,
                                            tiny_node **out);
/* A tensor of the node's value.  TINY_ERROR_INVALID_ARGUMENT, which says why, for what is none: a kernel's. */
TINY_API tiny_status tiny_node_tensor(const tiny_node *node, tiny_tensor **out);
/* Store `store` of kernel `kernel` of tiny_schedule(tensors), which says how many each has ("stores"), as the scheduler
   made it: loads, reductions and what is computed of them, before the kernel is optimised. */
TINY_API tiny_status tiny_schedule_store(tiny_tensor *const *tensors, size_t count, size_t kernel, size_t store,
                                         tiny_node **out);

/* ---- Files of tensors ------------------------------------------------------------------------- */

/* By the ending of `path`: .npy, .pb (an ONNX TensorProto), .safetensors, or what data sets come in: -ubyte or .idx
   (MNIST's format), .bin (the binary version of CIFAR), and .pkl, .pickle, .meta or no ending at all (a Python pickle,
   such as CIFAR's, of a dict of NumPy arrays, lists of integers and texts; nothing is executed, what it cannot be
   without is TINY_ERROR_UNSUPPORTED).  Any of them may be compressed, with .gz behind it.  What has several tensors is
   TINY_ERROR_INVALID_ARGUMENT here, with their names.  Data sets and .gz are since 0.3, and not written. */
TINY_API tiny_status tiny_tensor_load(tiny_context *context, const char *path, tiny_tensor **out);
/* Writes such a file.  `name` (may be NULL: "") is the name in a .pb or .safetensors.  A file that is there is
   replaced once the new one is whole and on the disk: whenever the process or the machine ends, one of the two is
   there as a whole.  (Beside it there may be what was written by then, under the name with six more letters.) */
TINY_API tiny_status tiny_tensor_save(const tiny_tensor *tensor, const char *path, const char *name);

typedef struct tiny_archive tiny_archive; /* tensors by name: those of a file, or those for one */

/* An archive without tensors. */
TINY_API tiny_status tiny_archive_create(tiny_context *context, tiny_archive **out);
/* The tensors of a .safetensors or data set ("data" and "labels", or "coarse_labels" and "fine_labels", of CIFAR), or
   the one of another file (named "", but for a .pb), see tiny_tensor_load.  The file is checked, and stays mapped until
   the archive is released, as with tiny_model_load (the option "map_files" too): elements are read when a tensor
   is asked for.  It is untrusted input: TINY_ERROR_INVALID_MODEL names the place that is wrong. */
TINY_API tiny_status tiny_archive_load(tiny_context *context, const char *path, tiny_archive **out);
TINY_API void tiny_archive_retain(tiny_archive *archive);
TINY_API void tiny_archive_release(tiny_archive *archive);
TINY_API tiny_status tiny_archive_count(const tiny_archive *archive, size_t *out);
/* In the order of the file's header, then as they were set; lives as long as the archive. */
TINY_API tiny_status tiny_archive_name(const tiny_archive *archive, size_t index, const char **out);
/* {"tensors":[{"name","dtype","shape","bytes"}],"metadata":{}}; a dtype that is none of tiny_dtype as the file
   spells it. */
TINY_API tiny_status tiny_archive_info(const tiny_archive *archive, tiny_report **out);
/* A tensor with a copy of the elements, or the very tensor that was set.  A name that is not there is
   TINY_ERROR_INVALID_ARGUMENT with a message that lists the known; a dtype that is none of tiny_dtype is
   TINY_ERROR_UNSUPPORTED. */
TINY_API tiny_status tiny_archive_get(const tiny_archive *archive, const char *name, tiny_tensor **out);
/* Adds the tensor, or puts it in another's place: what it holds when the archive is saved is written. */
TINY_API tiny_status tiny_archive_set(tiny_archive *archive, const char *name, const tiny_tensor *tensor);
/* The name is no longer there; what is behind it moves up.  One that was not is TINY_ERROR_INVALID_ARGUMENT.
   Since 0.3. */
TINY_API tiny_status tiny_archive_remove(tiny_archive *archive, const char *name);
/* A state is put back: the tensors that were set in `target` get the elements of those of the same names in `source`,
   as tiny_assign does it, computed before it returns.  Shapes agree; a dtype may differ between floats, which are
   converted.  All is checked before anything is assigned: one message lists the names that `source` lacks, those that
   `target` lacks, and the tensors that do not agree.  With TINY_FLAG_PARTIAL names that only one of them has are passed
   over.  `source` may be a file's (tiny_archive_load), whose elements are read where they lie.  Since 0.3. */
TINY_API tiny_status tiny_archive_assign(const tiny_archive *target, const tiny_archive *source, tiny_flags flags);
/* A text under a key, for a .safetensors ("format": "pt"). */
TINY_API tiny_status tiny_archive_set_metadata(tiny_archive *archive, const char *key, const char *value);
/* That text; NULL, which is no error, if there is none.  Lives until another is set under the key, as long as the
   archive.  Since 0.3. */
TINY_API tiny_status tiny_archive_metadata(const tiny_archive *archive, const char *key, const char **out);
/* Computes the tensors that were set, and writes all as tiny_tensor_save does: to a .safetensors, or a .npy or .pb
   if there is one.  Names are UTF-8. */
TINY_API tiny_status tiny_archive_save(const tiny_archive *archive, const char *path);

/* ---- Data: batches of rows ---------------------------------------------------------------------- */

typedef struct tiny_loader tiny_loader; /* batches of the rows of tensors, epoch after epoch */

/* The rows of `arrays`, which have first axes of one size (pictures and their labels), `batch` at a time: the last one
   of an epoch may be smaller.  They are computed now; who assigns to one computes it before the next batch is made.
   Takes TINY_FLAG_SHUFFLE: each epoch has an order of its own, which `seed` decides, the same on every machine; and
   TINY_FLAG_DROP_LAST.  A thread of the loader's gathers up to `ahead` batches before they are asked for; 0: there is
   none, and each is gathered when it is asked for.  After a fork a loader with a thread is TINY_ERROR_DEVICE_LOST in
   the child.  Any thread may call; calls on one loader wait for each other.  Since 0.3, as are all of these. */
TINY_API tiny_status tiny_loader_create(tiny_tensor *const *arrays, size_t count, int64_t batch, int64_t seed,
                                        size_t ahead, tiny_flags flags, tiny_loader **out);
TINY_API void tiny_loader_retain(tiny_loader *loader);
/* The last release waits for the batch that the thread is at. */
TINY_API void tiny_loader_release(tiny_loader *loader);
/* Batches of an epoch. */
TINY_API tiny_status tiny_loader_batch_count(const tiny_loader *loader, int64_t *out);
/* Goes to the next batch: `out` is its number of rows; 0 tells the end of the epoch, behind which the next one begins.
   Takes no part in building. */
TINY_API tiny_status tiny_loader_next(tiny_loader *loader, int64_t *out);
/* The rows of array `index` that are in the batch, gathered into memory of their own: no other copy is made.  Asked for
   again it is the same tensor. */
TINY_API tiny_status tiny_loader_tensor(tiny_loader *loader, size_t index, tiny_tensor **out);
/* The next batch is number `batch` of the epoch; both count from 0.  For going on where another loader was. */
TINY_API tiny_status tiny_loader_seek(tiny_loader *loader, int64_t epoch, int64_t batch);
/* Which the next batch is; one that does not exist is the end of the epoch. */
TINY_API tiny_status tiny_loader_place(const tiny_loader *loader, int64_t *epoch, int64_t *batch);

/* ---- Operators of models ------------------------------------------------------------------------ */

/* One operator of ONNX, as models have them, applied to tensors: `op` ("TopK") of `domain` (may be NULL: the
   standard's, "" and "ai.onnx" too) with the meaning of version `opset` of the domain's operator set (0: the newest
   that is known).  docs/ONNX.md lists the operators and what is left out of them.
   An element of `inputs` may be NULL: that input is left out.  Numbers (tiny_scalar_float) take the dtype of what they
   meet.  Elements that decide shapes (those of Reshape, axes, pads, k) are read now: TINY_ERROR_UNSUPPORTED if they
   depend on a placeholder.
   `attributes` (may be NULL: none) is a JSON object: {"axis": -1, "mode": "linear", "pads": [0, 1], "value": {"dtype":
   "float32", "shape": [2], "data": [1.5, 2]}}.  An integer stands for a float, true and false for 1 and 0, "inf",
   "-inf" and "nan" for these floats, a dtype's name ("float32") for its number, and null for an attribute that is left
   out.  One that the operator does not look at is TINY_ERROR_INVALID_ARGUMENT.
   `outputs` receives the operator's first `output_count` outputs, not computed.  Operators whose attributes are graphs
   (If, Loop, Scan), and those that take or make sequences, are TINY_ERROR_UNSUPPORTED. */
TINY_API tiny_status tiny_op(tiny_context *context, const char *domain, const char *op, int64_t opset,
                             tiny_tensor *const *inputs, size_t input_count, const char *attributes,
                             tiny_tensor **outputs, size_t output_count);

/* ---- Losses ----------------------------------------------------------------------------------
** By the names and definitions of torch.nn.functional. */

/* What becomes of the losses of all elements. */
typedef int32_t tiny_reduction;
enum {
  TINY_REDUCTION_MEAN = 0,
  TINY_REDUCTION_SUM = 1,
  TINY_REDUCTION_NONE = 2 /* they stay as they are */
};

/* Of logits [batch, classes, ..].  Targets are integers [batch, ..]: classes, of which `ignore_index`, a class or not,
   weighs nothing; or floats of the logits' shape: shares of the classes.  `weight` (may be NULL) has a number for
   each class; the mean of classes is over the weights of the targets.  `label_smoothing`, 0 to 1, is shared by all
   classes. */
TINY_API tiny_status tiny_cross_entropy(const tiny_tensor *logits, const tiny_tensor *target, const tiny_tensor *weight,
                                        int64_t ignore_index, double label_smoothing, tiny_reduction reduction,
                                        tiny_tensor **out);
/* The same of logarithms of probabilities, with classes for targets.  `weight` may be NULL. */
TINY_API tiny_status tiny_nll_loss(const tiny_tensor *log_probability, const tiny_tensor *target,
                                   const tiny_tensor *weight, int64_t ignore_index, tiny_reduction reduction,
                                   tiny_tensor **out);
TINY_API tiny_status tiny_mse_loss(const tiny_tensor *x, const tiny_tensor *target, tiny_reduction reduction,
                                   tiny_tensor **out);
TINY_API tiny_status tiny_l1_loss(const tiny_tensor *x, const tiny_tensor *target, tiny_reduction reduction,
                                  tiny_tensor **out);
/* Squares below a distance of `beta`, straight beyond. */
TINY_API tiny_status tiny_smooth_l1_loss(const tiny_tensor *x, const tiny_tensor *target, double beta,
                                         tiny_reduction reduction, tiny_tensor **out);
TINY_API tiny_status tiny_huber_loss(const tiny_tensor *x, const tiny_tensor *target, double delta,
                                     tiny_reduction reduction, tiny_tensor **out);
/* Of probabilities, whose logarithms are at least -100. */
TINY_API tiny_status tiny_binary_cross_entropy(const tiny_tensor *p, const tiny_tensor *target,
                                               tiny_reduction reduction, tiny_tensor **out);
/* Of what a sigmoid makes probabilities of.  Targets that are 1 weigh `positive_weight` (may be NULL), which
   broadcasts. */
TINY_API tiny_status tiny_binary_cross_entropy_with_logits(const tiny_tensor *x, const tiny_tensor *target,
                                                           const tiny_tensor *positive_weight, tiny_reduction reduction,
                                                           tiny_tensor **out);
/* target * (log(target) - x), x being logarithms; of logarithms in `target` too if log_target != 0. */
TINY_API tiny_status tiny_kl_div(const tiny_tensor *x, const tiny_tensor *target, int32_t log_target,
                                 tiny_reduction reduction, tiny_tensor **out);

/* Connectionist temporal classification: -log of the probability that the steps spell the target, blanks and repetitions
   left out.  log_probability is [steps, batch, classes], `target` integers [batch, labels], of which the first
   target_lengths[b] count, as do the first input_lengths[b] of the steps.  Each loss of a mean is divided by its
   target's length first.  Takes TINY_FLAG_ZERO_INFINITY. */
TINY_API tiny_status tiny_ctc_loss(const tiny_tensor *log_probability, const tiny_tensor *target,
                                   const tiny_tensor *input_lengths, const tiny_tensor *target_lengths, int64_t blank,
                                   tiny_reduction reduction, tiny_flags flags, tiny_tensor **out);

/* ---- Several devices together -----------------------------------------------------------------
** Each device has a tensor, each gets a result; of one context, too.  Tensors have one shape and one dtype.  They are
** computed now if need be, and results have memory of their own: gradients end there.  Of tensors that depend on
** placeholders (tiny_input) the results, like a copy by tiny_tensor_to, have values in runs of a program alone, of
** which tiny_program_compile says more.  Parts go round a ring of the
** devices, in the order of `tensors`, from device to device where both drivers can, else over the host, so that a
** result has the same bits on every device and in every run, whatever kinds of devices they are.  With processes the
** tensors of all are meant, ordered by ranks: all make the same calls in the same order, one at a time, with as many
** tensors each.  Building calls of the contexts of all tensors. */

typedef struct tiny_processes tiny_processes; /* processes that compute together, on one machine or several */

/* Joins the others by a transport, a library that is loaded now; `library` may be NULL: "libtiny_mpi.so", for processes
   that mpirun started.  TINY_ERROR_UNSUPPORTED with what is missing where it cannot be had.  Once in a process; the
   last release leaves.  Since 0.3. */
TINY_API tiny_status tiny_processes_open(const char *library, tiny_processes **out);
TINY_API void tiny_processes_retain(tiny_processes *processes);
TINY_API void tiny_processes_release(tiny_processes *processes);
/* Which of them this one is, from 0 on, and how many there are. */
TINY_API tiny_status tiny_processes_rank(const tiny_processes *processes, int64_t *out);
TINY_API tiny_status tiny_processes_count(const tiny_processes *processes, int64_t *out);

/* outs[k][i] = op of element i of all tensors, for every k alike, in the tensors' dtype; `count` is the number of `tensors`,
   `processes` may be NULL: this one alone.  Takes TINY_SUM, TINY_PROD, TINY_REDUCE_MAX, TINY_REDUCE_MIN, and TINY_MEAN
   of floats.  16-bit floats are combined in float32 and rounded once.  Since 0.3. */
TINY_API tiny_status tiny_allreduce(tiny_tensor *const *tensors, size_t tensor_count, tiny_reduce_op op,
                                    const tiny_processes *processes, tiny_tensor **outs, size_t count);
/* outs[k] = all tensors, one after the other along `axis`, for every k alike; `count` is the number of `tensors`, `processes`
   may be NULL: this one alone.  Since 0.3. */
TINY_API tiny_status tiny_allgather(tiny_tensor *const *tensors, size_t tensor_count, int64_t axis,
                                    const tiny_processes *processes, tiny_tensor **outs, size_t count);

/* ---- Gradients ------------------------------------------------------------------------------- */

/* The gradients of losses by the tensors `wrt`: gradients[i] has the shape and dtype of wrt[i]; `count` is the number of `wrt`.
   It is the sum over all losses, each element weighed by the same element of its upstream, of what the loss changes by
   for a change of the element of wrt[i].  `upstream` may be NULL: ones, for losses of one element; or it has a tensor
   for each loss, of its shape.  Nothing has to be marked before and nothing is kept: what is differentiated is the
   graph that the losses are made of now, so a loss that was computed already (tiny_realize, tiny_tensor_read) has none.
   A tensor of `wrt` is a value that the losses were built of; what was assigned to it since is another value.  The
   gradients are graphs like any other: they can be part of a program, and be differentiated again.
   docs/semantics.md says what the slope is where there is none (equal elements of a maximum, |0|).
   A tensor that no loss depends on is TINY_ERROR_INVALID_ARGUMENT; with TINY_FLAG_ALLOW_UNUSED its gradient is 0.
   Loops and branches whose count or choice the run computes are TINY_ERROR_UNSUPPORTED. */
TINY_API tiny_status tiny_gradient(tiny_tensor *const *losses, size_t loss_count, tiny_tensor *const *wrt,
                                   size_t wrt_count, tiny_tensor *const *upstream, size_t upstream_count,
                                   tiny_flags flags, tiny_tensor **gradients, size_t count);

/* Which of `others` the tensor is made of, those that gradients do not reach among them: their positions in `others`, in
   order; writes min(found, capacity), and `found` gets how many there are.  Since 0.3. */
TINY_API tiny_status tiny_made_of(const tiny_tensor *tensor, tiny_tensor *const *others, size_t other_count,
                                  int64_t *positions, size_t capacity, size_t *found);

/* The same value, through which no gradient goes: by tiny_gradient it is made of nothing, and can be one of `wrt`. */
TINY_API tiny_status tiny_detach(const tiny_tensor *a, tiny_tensor **out);
/* The same value as one of its own: gradients by it are apart from those by `a` and by equal constants, and go on to `a`.
   A write to one leaves the other as it is.  Since 0.3. */
TINY_API tiny_status tiny_clone(const tiny_tensor *a, tiny_tensor **out);
/* The same value, whose gradient computes again what it is made of: between the forward and the backward pass only the
   value is kept (checkpointing).  What is computed again begins at the tensors of `kept`, of which `a` is made
   (`kept` may be NULL with count 0), at other such values, at memory, and at results of recurrences and of the
   caller's operators.  Values and gradients are the same but for rounding. */
TINY_API tiny_status tiny_recompute(const tiny_tensor *a, tiny_tensor *const *kept, size_t count, tiny_tensor **out);

/* The root of the sum of all squares, a float32 scalar. */
TINY_API tiny_status tiny_gradient_norm(tiny_tensor *const *gradients, size_t count, tiny_tensor **out);
/* The gradients with a common factor that leaves them a norm of at most `most`; `norm` is tiny_gradient_norm's.  clipped[i] is
   gradients[i] clipped; `clipped_count` is the number of `gradients`. */
TINY_API tiny_status tiny_clip_by_norm(tiny_tensor *const *gradients, size_t count, const tiny_tensor *norm,
                                       double most, tiny_tensor **clipped, size_t clipped_count);

typedef struct tiny_loss_scaler tiny_loss_scaler; /* a factor for losses whose gradients are 16-bit floats */
/* The factor begins at `factor` and is doubled after `interval` steps in a row whose gradients were finite; others halve
   it.  It is kept in tensors, which a program reads and writes. */
TINY_API tiny_status tiny_loss_scaler_create(tiny_context *context, double factor, int64_t interval,
                                             tiny_loss_scaler **out);
TINY_API void tiny_loss_scaler_retain(tiny_loss_scaler *scaler);
TINY_API void tiny_loss_scaler_release(tiny_loss_scaler *scaler);
/* The loss times the factor, of at least 32 bits. */
TINY_API tiny_status tiny_loss_scaler_scale(tiny_loss_scaler *scaler, const tiny_tensor *loss, tiny_tensor **out);
/* The gradients of a scaled loss as those of the loss, of at least 32 bits; `unscaled_count` is the number of
   `gradients`.  The factor of the next step is a pending write (tiny_assign). */
TINY_API tiny_status tiny_loss_scaler_unscale(tiny_loss_scaler *scaler, tiny_tensor *const *gradients, size_t count,
                                              tiny_tensor **unscaled, size_t unscaled_count);
/* Of the gradients that were unscaled last, a bool scalar for tiny_optimizer_step: whether some element is not finite. */
TINY_API tiny_status tiny_loss_scaler_skip(tiny_loss_scaler *scaler, tiny_tensor **out);
/* The state, to be saved and put back (tiny_assign): the factor, a float32 scalar, and how many steps in a row were
   finite since it changed, an int64 scalar. */
TINY_API tiny_status tiny_loss_scaler_factor(tiny_loss_scaler *scaler, tiny_tensor **out);
TINY_API tiny_status tiny_loss_scaler_good_steps(tiny_loss_scaler *scaler, tiny_tensor **out);

/* ---- Learning rates ----------------------------------------------------------------------------
** By the definitions of torch.optim.lr_scheduler, for tiny_optimizer_set; steps are counted from 0. */

/* base * gamma^(step / every), rounded down. */
TINY_API tiny_status tiny_rate_step(double base, int64_t step, int64_t every, double gamma, double *rate);
/* base * gamma^(how many of the milestones, which ascend, are at most `step`). */
TINY_API tiny_status tiny_rate_multi_step(double base, int64_t step, const int64_t *milestones, size_t count,
                                          double gamma, double *rate);
/* Half a cosine from `base` down to `least` at `steps`, where it stays. */
TINY_API tiny_status tiny_rate_cosine(double base, int64_t step, int64_t steps, double least, double *rate);
/* From base * first in a straight line up to `base` at `steps`, where it stays. */
TINY_API tiny_status tiny_rate_warm_up(double base, int64_t step, int64_t steps, double first, double *rate);
/* From most / divisor up to `most` within a share `rise` of the steps, and down to most / divisor / final_divisor at the
   last one. */
TINY_API tiny_status tiny_rate_one_cycle(double most, int64_t step, int64_t steps, double rise, double divisor,
                                         double final_divisor, double *rate);

typedef struct tiny_plateau tiny_plateau; /* a rate that falls when a metric no longer does */
/* A rate that is multiplied by `factor`, below 1, after more than `patience` steps whose metric was not below the best one
   by a share `threshold` of it; then `cooldown` steps do not count.  It stays at `least`. */
TINY_API tiny_status tiny_plateau_create(double rate, double factor, int64_t patience, double threshold,
                                         int64_t cooldown, double least, tiny_plateau **out);
TINY_API void tiny_plateau_retain(tiny_plateau *plateau);
TINY_API void tiny_plateau_release(tiny_plateau *plateau);
/* The rate after a step with this metric. */
TINY_API tiny_status tiny_plateau_next(tiny_plateau *plateau, double metric, double *rate);
/* The state, to be saved and put back: "rate", "best", "bad_steps" and "cooling", the steps that will not count. */
TINY_API tiny_status tiny_plateau_set(tiny_plateau *plateau, const char *name, double value);
TINY_API tiny_status tiny_plateau_get(const tiny_plateau *plateau, const char *name, double *value);

/* ---- Optimisers ------------------------------------------------------------------------------ */

typedef struct tiny_optimizer tiny_optimizer; /* parameters, and what becomes of them by their gradients */
typedef int32_t tiny_optimizer_kind;
enum {
  TINY_OPTIMIZER_KIND_SGD = 1,
  TINY_OPTIMIZER_KIND_ADAM = 2,
  TINY_OPTIMIZER_KIND_ADAMW = 3,
  TINY_OPTIMIZER_KIND_LAMB = 4, /* You et al. 2019 */
  TINY_OPTIMIZER_KIND_LARS = 5, /* You et al. 2017 */
  TINY_OPTIMIZER_KIND_MUON = 6, /* Jordan et al. 2024, in float32; parameters are matrices, or become them */
  TINY_OPTIMIZER_KIND_RMSPROP = 7,
  TINY_OPTIMIZER_KIND_ADAGRAD = 8
};

/* An optimiser without parameters. */
TINY_API tiny_status tiny_optimizer_create(tiny_context *context, tiny_optimizer_kind kind, tiny_optimizer **out);
TINY_API void tiny_optimizer_retain(tiny_optimizer *optimizer);
TINY_API void tiny_optimizer_release(tiny_optimizer *optimizer);
/* A group of parameters that share settings; `group` becomes its number, 0 for the first.  They are floats, and steps
   write to them (tiny_assign); of 16-bit floats the state has a float32 copy, of which each step makes them anew.
   They are computed now: losses are built on them afterwards.  Before the first step. */
TINY_API tiny_status tiny_optimizer_add(tiny_optimizer *optimizer, tiny_tensor *const *parameters, size_t count,
                                        int64_t *group);
/* Settings have the names, meanings and defaults of torch.optim: "lr"; "weight_decay", "maximize" (1 or 0), "eps";
   of SGD "momentum", "dampening", "nesterov", "classic" (1: the momentum is that of steps, which had their rate, not of
   gradients; 0 if nothing is set); of Adam, AdamW and LAMB "beta1", "beta2", "amsgrad" (not LAMB's); of LARS
   "momentum", "nesterov", "trust", "classic" (1 if nothing is set); of Muon "momentum", "nesterov", "ns_steps", and
   "ns_a", "ns_b", "ns_c", the coefficients of these; of RMSprop "alpha", "momentum", "centered"; of Adagrad "lr_decay",
   "initial_accumulator_value".  Any of them has "ema_decay", 0 for none: the state keeps an average of each parameter
   over the steps.  "lr" can be set any time, and holds for runs of compiled programs too; the others before the first
   step, which is made of them. */
TINY_API tiny_status tiny_optimizer_set(tiny_optimizer *optimizer, int64_t group, const char *name, double value);
TINY_API tiny_status tiny_optimizer_get(const tiny_optimizer *optimizer, int64_t group, const char *name,
                                        double *value);
/* The learning rate as steps read it, a float32 scalar.  Who assigns to it changes it, in a program too. */
TINY_API tiny_status tiny_optimizer_rate(tiny_optimizer *optimizer, int64_t group, tiny_tensor **out);
/* Writes new values to all parameters, and to what the optimiser keeps: pending writes, which are made when something
   needs them, or by runs of a program that is compiled while they are pending.  A gradient for each parameter, in the
   order in which they were added; an element of `gradients` may be NULL, which leaves the parameter as it is.
   `skip` may be NULL, or is a bool scalar: where it is true nothing changes. */
TINY_API tiny_status tiny_optimizer_step(tiny_optimizer *optimizer, tiny_tensor *const *gradients, size_t count,
                                         const tiny_tensor *skip);
/* What the next step is made of beside the parameters, to be saved and put back (tiny_assign): "lr.0" of the first
   group, "step" where their number matters, "exp_avg.3" of the fourth parameter, "master.3", "ema.3".  Settings are as they will
   be from now on; names live as long as the optimiser. */
TINY_API tiny_status tiny_optimizer_state_count(tiny_optimizer *optimizer, size_t *out);
TINY_API tiny_status tiny_optimizer_state_name(tiny_optimizer *optimizer, size_t index, const char **out);
TINY_API tiny_status tiny_optimizer_state(tiny_optimizer *optimizer, size_t index, tiny_tensor **out);

/* ---- Random numbers ----------------------------------------------------------------------------
** Functions of a key, a tensor of two uint32: the same key has the same numbers, on every device and at any number of
** threads, in programs too.  Other numbers come of other keys (tiny_random_split).  Threefry2x32 with 20 rounds. */

TINY_API tiny_status tiny_random_key(tiny_context *context, int64_t seed, tiny_tensor **out);
/* `count` keys, [count, 2], which have nothing to do with each other or with other numbers of `key`. */
TINY_API tiny_status tiny_random_split(const tiny_tensor *key, int64_t count, tiny_tensor **out);
/* `count` uint32, all as likely as each other: those of JAX's threefry_2x32 at 0, 1, .. */
TINY_API tiny_status tiny_random_bits(const tiny_tensor *key, int64_t count, tiny_tensor **out);
/* The generator's block at each of `counters`, uint32 [2, ..], whose two words stand along axis 0, as those of the result
   do.  At one counter, [2], it is a key, which has nothing to do with those at others.  Since 0.3. */
TINY_API tiny_status tiny_random_at(const tiny_tensor *key, const tiny_tensor *counters, tiny_tensor **out);
/* Floats of at least 0 and below 1. */
TINY_API tiny_status tiny_random_uniform(const tiny_tensor *key, tiny_dtype dtype, const int64_t *dims, size_t ndim,
                                         tiny_tensor **out);
/* Floats of mean 0 and variance 1, normally distributed. */
TINY_API tiny_status tiny_random_normal(const tiny_tensor *key, tiny_dtype dtype, const int64_t *dims, size_t ndim,
                                        tiny_tensor **out);
/* Integers from `low` to below `high`. */
TINY_API tiny_status tiny_random_integers(const tiny_tensor *key, tiny_dtype dtype, const int64_t *dims, size_t ndim,
                                          int64_t low, int64_t high, tiny_tensor **out);
/* 0, 1, .. count-1 in any order, int64. */
TINY_API tiny_status tiny_random_permutation(const tiny_tensor *key, int64_t count, tiny_tensor **out);
/* Bools of p's shape, true with the probability that stands there. */
TINY_API tiny_status tiny_random_bernoulli(const tiny_tensor *key, const tiny_tensor *p, tiny_tensor **out);
/* Normally distributed as tiny_random_normal, of those from `low` to `high`. */
TINY_API tiny_status tiny_random_truncated_normal(const tiny_tensor *key, tiny_dtype dtype, const int64_t *dims,
                                                  size_t ndim, double low, double high, tiny_tensor **out);
/* `count` positions along the last axis of `weights`, int64 [.., count], each as likely as its weight's share: floats,
   none below 0, not all 0.  Every position may come again if replacement != 0; otherwise none does, those of weight 0
   are last, and `count` is at most the size of the axis. */
TINY_API tiny_status tiny_random_multinomial(const tiny_tensor *key, const tiny_tensor *weights, int64_t count,
                                             int32_t replacement, tiny_tensor **out);
/* Floats `x`, of which each is 0 with probability `p`, 0 to 1, and else over 1 - p: of the training of a network. */
TINY_API tiny_status tiny_dropout(const tiny_tensor *key, const tiny_tensor *x, double p, tiny_tensor **out);

typedef struct tiny_generator tiny_generator; /* a source of keys that moves on with every run */

TINY_API tiny_status tiny_generator_create(tiny_context *context, int64_t seed, tiny_generator **out);
TINY_API void tiny_generator_retain(tiny_generator *generator);
TINY_API void tiny_generator_release(tiny_generator *generator);
/* A key that no other call gave.  Whenever something that was made of keys is computed, all keys of the generator become
   others: each run of a program has its own numbers, and those that the same steps have without a program. */
TINY_API tiny_status tiny_generator_next(tiny_generator *generator, tiny_tensor **out);
/* What the next keys are made of, uint32 [3], to be saved and put back (tiny_assign). */
TINY_API tiny_status tiny_generator_state(tiny_generator *generator, tiny_tensor **out);

/* What parameters begin with, by the names and definitions of torch.nn.init. */
typedef int32_t tiny_initial;
enum {
  TINY_INITIAL_CONSTANT = 0,         /* a */
  TINY_INITIAL_UNIFORM = 1,          /* from a to b */
  TINY_INITIAL_NORMAL = 2,           /* mean a, deviation b */
  TINY_INITIAL_TRUNCATED_NORMAL = 3, /* the same, within two deviations */
  TINY_INITIAL_XAVIER_UNIFORM = 4,   /* gain a */
  TINY_INITIAL_XAVIER_NORMAL = 5,    /* gain a */
  TINY_INITIAL_KAIMING_UNIFORM = 6,  /* negative slope a; b: 0 by the inputs (fan_in), 1 by the outputs */
  TINY_INITIAL_KAIMING_NORMAL = 7,   /* the same */
  TINY_INITIAL_ORTHOGONAL = 8,       /* gain a */
  TINY_INITIAL_DIRAC = 9,            /* of a groups */
  TINY_INITIAL_SPARSE = 10           /* a share a of each column is 0, the others normal with deviation b */
};
/* Floats of this shape; the same for the same key. */
TINY_API tiny_status tiny_initialize(const tiny_tensor *key, tiny_initial initial, double a, double b, tiny_dtype dtype,
                                     const int64_t *dims, size_t ndim, tiny_tensor **out);

/* ---- Layers ------------------------------------------------------------------------------------
** Functions with parameters: a module has these by the dotted names, shapes and first values of PyTorch's layers, whose
** state dictionaries fit.  A parameter is made, and computed, where a layer first asks for it; afterwards the layer of
** the same name has the same parameters.  A network is so a function of its input.  A layer whose parameters are there
** with other shapes is TINY_ERROR_SHAPE.  All of these since 0.3. */

typedef struct tiny_module tiny_module; /* a place in a tree of names */

/* The root of a tree, in training.  What parameters begin with depends on `seed` and their names alone. */
TINY_API tiny_status tiny_module_create(tiny_context *context, int64_t seed, tiny_module **out);
TINY_API void tiny_module_retain(tiny_module *module);
TINY_API void tiny_module_release(tiny_module *module);
/* The place `name` below: what is made there has names that begin with it and a dot. */
TINY_API tiny_status tiny_module_child(const tiny_module *module, const char *name, tiny_module **out);
/* Whether layers of the whole tree are built for training, training != 0, or for use: dropout does nothing then, and
   tiny_module_batch_norm takes the running statistics. */
TINY_API tiny_status tiny_module_set_training(tiny_module *module, int32_t training);
TINY_API tiny_status tiny_module_is_training(const tiny_module *module, int32_t *out);
/* What parameters that are made from now on are of: floats; TINY_FLOAT32 if nothing is said. */
TINY_API tiny_status tiny_module_set_dtype(tiny_module *module, tiny_dtype dtype);
/* Where the tree's random numbers come from, in a child too. */
TINY_API tiny_status tiny_module_generator(const tiny_module *module, tiny_generator **out);
/* The parameter `name`, made with these values if it is not there yet. */
TINY_API tiny_status tiny_module_parameter(tiny_module *module, const char *name, const int64_t *dims, size_t ndim,
                                           tiny_initial initial, double a, double b, tiny_tensor **out);
/* The same for what optimisers leave alone: each element begins with `value`. */
TINY_API tiny_status tiny_module_buffer(tiny_module *module, const char *name, tiny_dtype dtype, const int64_t *dims,
                                        size_t ndim, double value, tiny_tensor **out);
/* The parameters at this place and below it, in the order in which they were made, for tiny_gradient and
   tiny_optimizer_add.  Their names from the root on live as long as the tree. */
TINY_API tiny_status tiny_module_parameter_count(const tiny_module *module, size_t *out);
TINY_API tiny_status tiny_module_parameter_name(const tiny_module *module, size_t index, const char **out);
TINY_API tiny_status tiny_module_parameter_at(const tiny_module *module, size_t index, tiny_tensor **out);
/* The state dictionary: parameters and buffers at this place and below it, by their names from there on. */
TINY_API tiny_status tiny_module_state(const tiny_module *module, tiny_archive **out);

/* x [.., inputs] times the transpose of weight [features, inputs], plus bias [features].  Takes TINY_FLAG_NO_BIAS. */
TINY_API tiny_status tiny_module_linear(tiny_module *module, const char *name, const tiny_tensor *x, int64_t features,
                                        tiny_flags flags, tiny_tensor **out);
/* tiny_conv to so many `channels`; the window says the kernel.  Takes TINY_FLAG_NO_BIAS. */
TINY_API tiny_status tiny_module_conv(tiny_module *module, const char *name, const tiny_tensor *x, int64_t channels,
                                      const tiny_window *window, tiny_flags flags, tiny_tensor **out);
/* The same with tiny_conv_transpose.  Takes TINY_FLAG_NO_BIAS. */
TINY_API tiny_status tiny_module_conv_transpose(tiny_module *module, const char *name, const tiny_tensor *x,
                                                int64_t channels, const tiny_window *window, tiny_flags flags,
                                                tiny_tensor **out);
/* The row of weight [count, size] that each index says. */
TINY_API tiny_status tiny_module_embedding(tiny_module *module, const char *name, const tiny_tensor *index,
                                           int64_t count, int64_t size, tiny_tensor **out);
/* In training by the statistics of x over all axes but 1; the running ones go towards them by `momentum` whenever the
   result is computed.  Takes TINY_FLAG_NO_AFFINE. */
TINY_API tiny_status tiny_module_batch_norm(tiny_module *module, const char *name, const tiny_tensor *x,
                                            double momentum, double epsilon, tiny_flags flags, tiny_tensor **out);
/* Over the axes from `axis` on.  Takes TINY_FLAG_NO_AFFINE. */
TINY_API tiny_status tiny_module_layer_norm(tiny_module *module, const char *name, const tiny_tensor *x, int64_t axis,
                                            double epsilon, tiny_flags flags, tiny_tensor **out);
/* The same by the mean square alone, without a bias.  Takes TINY_FLAG_NO_AFFINE. */
TINY_API tiny_status tiny_module_rms_norm(tiny_module *module, const char *name, const tiny_tensor *x, int64_t axis,
                                          double epsilon, tiny_flags flags, tiny_tensor **out);
/* tiny_group_norm with its scale and bias.  Takes TINY_FLAG_NO_AFFINE. */
TINY_API tiny_status tiny_module_group_norm(tiny_module *module, const char *name, const tiny_tensor *x, int64_t groups,
                                            double epsilon, tiny_flags flags, tiny_tensor **out);
/* tiny_instance_norm with its scale and bias.  Takes TINY_FLAG_NO_AFFINE. */
TINY_API tiny_status tiny_module_instance_norm(tiny_module *module, const char *name, const tiny_tensor *x,
                                               double epsilon, tiny_flags flags, tiny_tensor **out);
/* In training each element is 0 with the probability p, the others are divided by 1 - p. */
TINY_API tiny_status tiny_module_dropout(const tiny_module *module, const tiny_tensor *x, double p, tiny_tensor **out);

/* Recurrent layers. */
typedef int32_t tiny_recurrent_kind;
enum {
  TINY_RECURRENT_KIND_RNN = 0, /* of tanh */
  TINY_RECURRENT_KIND_GRU = 1,
  TINY_RECURRENT_KIND_LSTM = 2
};
/* `layers` layers of `hidden` elements along x [steps, batch, inputs], `dropout` in training between each two.  Outputs:
   y [steps, batch, directions * hidden]; the last states [layers * directions, batch, hidden]; those of an LSTM's
   cells.  It begins with the states `h` (may be NULL: zeros) and, of an LSTM, `c` (may be NULL with h).  Takes
   TINY_FLAG_NO_BIAS, TINY_FLAG_BIDIRECTIONAL and TINY_FLAG_BATCH_FIRST. */
TINY_API tiny_status tiny_module_recurrent(tiny_module *module, const char *name, tiny_recurrent_kind kind,
                                           const tiny_tensor *x, int64_t hidden, int64_t layers, double dropout,
                                           tiny_flags flags, const tiny_tensor *h, const tiny_tensor *c,
                                           tiny_tensor **outputs, size_t output_count);
/* Attention of `heads` heads for query [batch, queries, size], key and value [batch, keys, ..], with projections before
   and after.  `mask` (may be NULL) broadcasts to [batch, heads, queries, keys]: bools, true where a query may look, or
   numbers that are added; `dropout` of the weights in training.  Takes TINY_FLAG_NO_BIAS and TINY_FLAG_CAUSAL. */
TINY_API tiny_status tiny_module_attention(tiny_module *module, const char *name, const tiny_tensor *query,
                                           const tiny_tensor *key, const tiny_tensor *value, int64_t heads,
                                           double dropout, tiny_flags flags, const tiny_tensor *mask,
                                           tiny_tensor **out);

/* ---- Operators of the caller's ------------------------------------------------------------------ */

typedef struct tiny_custom_op tiny_custom_op;     /* an operator whose functions are the caller's */
typedef struct tiny_custom_call tiny_custom_call; /* one call of a function, lent for its length */

/* An operator `name` ("Median") of `domain` ("com.example"), which must not be one of the library's.  `deleter` (may be
   NULL) is called with `user` once, from any thread, when neither the operator nor a context, program or tensor that
   uses it is there any more; not if this fails.  It must not call the library. */
TINY_API tiny_status tiny_custom_op_create(const char *domain, const char *name, void *user,
                                           void (*deleter)(void *user), tiny_custom_op **out);
TINY_API void tiny_custom_op_retain(tiny_custom_op *op);
TINY_API void tiny_custom_op_release(tiny_custom_op *op);
/* `infer` says what the outputs are, with `user`: by dtypes and shapes of the inputs and by the attributes it sets each
   (tiny_custom_call_set_output).  It is called by the thread that builds or asks about a model, in that call, by
   several at once if several do, and must not call the library on that context.  A dimension may be a number that
   stands for a variable, in this call alone, to be passed on as it is; who needs its size fails with
   TINY_ERROR_UNSUPPORTED. */
TINY_API tiny_status tiny_custom_op_set_infer(tiny_custom_op *op,
                                              tiny_status (*infer)(void *user, tiny_custom_call *call));
/* `run` computes the outputs, with `user`: inputs and outputs are row-major memory, aligned to 64 bytes or as the
   caller's own memory is, for the length of the call; every element of every output is to be written.  It is called at
   each execution by the thread that executes, once what it reads is computed and before anything that reads its
   outputs; by several threads at once if several execute.  Cancelling and time limits are looked at before and after.
   It must not call the library on that context, nor execute runs in it.
   What either returns other than TINY_OK becomes the status of the call that builds or executes, with the text of
   tiny_custom_call_set_error as its message. */
TINY_API tiny_status tiny_custom_op_set_run(tiny_custom_op *op, tiny_status (*run)(void *user, tiny_custom_call *call));
/* `gradient` is what `run` is, for tiny_gradient: its inputs are the operator's inputs, then its outputs, then what
   reached each output (left out where nothing did); its outputs are the gradients of those inputs that are floats, in
   their order, with the inputs' dtypes and shapes.  NULL: the operator has none, and tiny_gradient is
   TINY_ERROR_UNSUPPORTED there. */
TINY_API tiny_status tiny_custom_op_set_gradient(tiny_custom_op *op,
                                                 tiny_status (*gradient)(void *user, tiny_custom_call *call));
/* From now on tiny_op and models know the operator in this context, at every version of its domain's operator set, with
   the functions that it has now.  A second of the same domain and name is TINY_ERROR_INVALID_ARGUMENT.  Programs with
   such operators are not kept on disk. */
TINY_API tiny_status tiny_context_add_custom_op(tiny_context *context, const tiny_custom_op *op);

/* The attributes as a JSON object, as tiny_op takes them; lives as long as the call. */
TINY_API const char *tiny_custom_call_attributes(const tiny_custom_call *call);
TINY_API size_t tiny_custom_call_input_count(const tiny_custom_call *call);
/* 0 for an input that is left out, or not there. */
TINY_API tiny_dtype tiny_custom_call_input_dtype(const tiny_custom_call *call, size_t index);
/* The dimensions; `rank` (may be NULL) gets their number.  NULL for an input that is not there. */
TINY_API const int64_t *tiny_custom_call_input_shape(const tiny_custom_call *call, size_t index, size_t *rank);
/* The elements while `run` runs; NULL for an input that is left out or has none. */
TINY_API const void *tiny_custom_call_input_data(const tiny_custom_call *call, size_t index);
/* How many outputs are wanted: the operator's first ones. */
TINY_API size_t tiny_custom_call_output_count(const tiny_custom_call *call);
/* These are known in `run`. */
TINY_API tiny_dtype tiny_custom_call_output_dtype(const tiny_custom_call *call, size_t index);
TINY_API const int64_t *tiny_custom_call_output_shape(const tiny_custom_call *call, size_t index, size_t *rank);
TINY_API void *tiny_custom_call_output_data(tiny_custom_call *call, size_t index);
/* In `infer`. */
TINY_API tiny_status tiny_custom_call_set_output(tiny_custom_call *call, size_t index, tiny_dtype dtype,
                                                 const int64_t *dims, size_t ndim);
/* What went wrong, for the caller; copied. */
TINY_API void tiny_custom_call_set_error(tiny_custom_call *call, const char *message);

/* ---- Values ----------------------------------------------------------------------------------
** What models take and give that is no tensor of numbers: texts, lists, maps, or nothing.  A value does not change,
** and any thread may use it.  Since 0.3. */

typedef struct tiny_value tiny_value;

/* What a value, or an input or output of a model, is. */
typedef int32_t tiny_kind;
enum {
  TINY_KIND_TENSOR = 0,
  TINY_KIND_SEQUENCE = 1, /* a list of values */
  TINY_KIND_OPTIONAL = 2, /* of a model: a value, or nothing; a value of this kind is nothing */
  TINY_KIND_MAP = 3,      /* from texts or integers to texts or numbers */
  TINY_KIND_SPARSE_TENSOR = 4,
  TINY_KIND_TEXTS = 5 /* a tensor of texts: since 0.3 */
};

TINY_API tiny_status tiny_value_from_tensor(tiny_tensor *tensor, tiny_value **out);
/* Texts of this shape, row-major, which are copied: `data` has them one after the other, `lengths` how many bytes each
   has.  They are UTF-8 by agreement, and may hold any bytes. */
TINY_API tiny_status tiny_value_texts(tiny_context *context, const int64_t *dims, size_t ndim, const void *data,
                                      size_t bytes, const int64_t *lengths, size_t count, tiny_value **out);
TINY_API tiny_status tiny_value_sequence(tiny_context *context, tiny_value *const *elements, size_t count,
                                         tiny_value **out);
/* A map: `keys` are texts or a tensor of TINY_INT64, `values` texts or a tensor, each of one axis, equally many. */
TINY_API tiny_status tiny_value_map(tiny_value *keys, tiny_value *values, tiny_value **out);
/* The value of an optional that is not there. */
TINY_API tiny_status tiny_value_nothing(tiny_context *context, tiny_value **out);
/* The value in a file of ONNX's test data (.pb), which says its kind nowhere itself: `kind` is the model's. */
TINY_API tiny_status tiny_value_load(tiny_context *context, const char *path, tiny_kind kind, tiny_value **out);
TINY_API void tiny_value_retain(tiny_value *value);
TINY_API void tiny_value_release(tiny_value *value);
TINY_API tiny_status tiny_value_kind(const tiny_value *value, tiny_kind *out);
/* Of a sequence its elements, of a map 2: its keys and its values; else 0. */
TINY_API tiny_status tiny_value_count(const tiny_value *value, size_t *out);
TINY_API tiny_status tiny_value_element(const tiny_value *value, size_t index, tiny_value **out);
/* Of a value that is a tensor of numbers. */
TINY_API tiny_status tiny_value_tensor(const tiny_value *value, tiny_tensor **out);
/* Of texts, as tiny_tensor_shape. */
TINY_API tiny_status tiny_value_shape(const tiny_value *value, int64_t *dims, size_t capacity, size_t *rank);
/* Writes the bytes that min(count, capacity) texts have each, row-major; `count` gets how many texts there are. */
TINY_API tiny_status tiny_value_text_lengths(const tiny_value *value, int64_t *lengths, size_t capacity, size_t *count);
/* Writes all texts one after the other; `bytes` must be the sum of their lengths. */
TINY_API tiny_status tiny_value_read_texts(const tiny_value *value, void *data, size_t bytes);

/* ---- Models ----------------------------------------------------------------------------------- */

typedef struct tiny_model tiny_model;     /* a loaded ONNX file */
typedef struct tiny_program tiny_program; /* compiled for certain shapes; immutable; any thread */
typedef struct tiny_run tiny_run;         /* one execution of a program: bindings and memory */

/* Reads the file and checks its structure; weights stay in the file, mapped, and so do those in other files.  As long
   as the model or a program of it lives such a file may be renamed, deleted or replaced by another, but neither
   changed in place nor truncated: the process would end with SIGBUS.  The context's option "map_files" 0 reads files
   into memory instead; then they may do as they like.  Operators are checked when the model is compiled.  A model
   file is untrusted input: TINY_ERROR_INVALID_MODEL names the place that is wrong, TINY_ERROR_LIMIT a limit of the
   context's options. */
TINY_API tiny_status tiny_model_load(tiny_context *context, const char *path, tiny_model **out);
/* The same of the bytes of such a file, which are copied before it returns.  `folder` (may be NULL: none) is where
   weights in other files lie, which tiny_model_load takes from the file's own folder; without it a model that
   has some is TINY_ERROR_UNSUPPORTED. */
TINY_API tiny_status tiny_model_load_memory(tiny_context *context, const void *data, size_t bytes, const char *folder,
                                            tiny_model **out);
TINY_API void tiny_model_retain(tiny_model *model);
TINY_API void tiny_model_release(tiny_model *model);
/* All about the model as one JSON object: the keys of `tiny info --json`.  It imports the operators, to count what a
   run computes, in a graph of its own; tiny_model_header looks at none. */
TINY_API tiny_status tiny_model_info(const tiny_model *model, tiny_report **out);
/* What the file says of itself as one JSON object: what tiny_model_info has under "model", without a look at
   the operators. */
TINY_API tiny_status tiny_model_header(const tiny_model *model, tiny_report **out);

TINY_API tiny_status tiny_model_input_count(const tiny_model *model, size_t *out);
TINY_API tiny_status tiny_model_output_count(const tiny_model *model, size_t *out);
/* Names live as long as the model.  The index of a name that is not there is TINY_ERROR_INVALID_ARGUMENT
   with a message that lists the known names. */
TINY_API tiny_status tiny_model_input_name(const tiny_model *model, size_t index, const char **out);
TINY_API tiny_status tiny_model_output_name(const tiny_model *model, size_t index, const char **out);
TINY_API tiny_status tiny_model_input_index(const tiny_model *model, const char *name, size_t *out);
TINY_API tiny_status tiny_model_output_index(const tiny_model *model, const char *name, size_t *out);
/* What an input or output is.  A model with others than tensors of numbers is run by tiny_model_run_values;
   compiling it is TINY_ERROR_UNSUPPORTED. */
TINY_API tiny_status tiny_model_input_kind(const tiny_model *model, size_t index, tiny_kind *out);
TINY_API tiny_status tiny_model_output_kind(const tiny_model *model, size_t index, tiny_kind *out);
TINY_API tiny_status tiny_model_input_dtype(const tiny_model *model, size_t index, tiny_dtype *out);
/* Writes min(rank, capacity) dimensions, TINY_DIM_FREE for one that the model leaves free; `rank` gets their full
   number. */
TINY_API tiny_status tiny_model_input_shape(const tiny_model *model, size_t index, int64_t *dims, size_t capacity,
                                            size_t *rank);
/* The name of a free dimension ("N"), "" if it has none; lives as long as the model. */
TINY_API tiny_status tiny_model_input_dim_name(const tiny_model *model, size_t index, size_t axis, const char **out);
/* The same of outputs, before anything runs: as the file says, and where it says nothing as follows from its
   graph with the free dimensions free, which the first call that needs it finds out.  What follows from
   neither (a shape that elements decide, or an operator that is not supported) is TINY_ERROR_UNSUPPORTED; the
   shape of a run's outputs, tiny_run_output_shape says. */
TINY_API tiny_status tiny_model_output_dtype(const tiny_model *model, size_t index, tiny_dtype *out);
/* TINY_DIM_FREE for a dimension that is free, or depends on such. */
TINY_API tiny_status tiny_model_output_shape(const tiny_model *model, size_t index, int64_t *dims, size_t capacity,
                                             size_t *rank);
/* The name of such a dimension; "" if it has none, or the formula of the inputs' names where it follows from
   them ("2*N"); lives as long as the model. */
TINY_API tiny_status tiny_model_output_dim_name(const tiny_model *model, size_t index, size_t axis, const char **out);

/* The texts in which the file speaks of itself, by key: of its own fields "producer_name", "producer_version",
   "domain", "doc_string", "graph_name" and "model_version", those that are not empty, then what it has under keys
   of its own (metadata_props). */
TINY_API tiny_status tiny_model_metadata_count(const tiny_model *model, size_t *out);
/* These live as long as the model. */
TINY_API tiny_status tiny_model_metadata_key(const tiny_model *model, size_t index, const char **out);
TINY_API tiny_status tiny_model_metadata_value(const tiny_model *model, size_t index, const char **out);
/* The first text of this key; NULL, which is no error, if there is none. */
TINY_API tiny_status tiny_model_metadata(const tiny_model *model, const char *key, const char **out);

/* Compiles the model for inputs of these shapes: `dims` holds the dimensions of all inputs one after the
   other, in the model's order, each as many as the input's rank.  `dims` may be NULL: every dimension is
   fixed by the model.  An unsupported operator is TINY_ERROR_UNSUPPORTED with a message that lists all of
   them.  The program is for these very sizes, also where the model leaves them free; programs are cached
   by shape with the model.  A dimension that the model leaves free may depend on a variable (tiny_variable_dim):
   one program for all of its values, which each run binds by its inputs or by tiny_run_set_variable; it is made
   anew by each call.  What must know such a size is TINY_ERROR_UNSUPPORTED. */
TINY_API tiny_status tiny_model_compile(tiny_model *model, const int64_t *dims, size_t count, tiny_program **out);
/* Inputs in the model's order to outputs in the model's order, in one call: compiles (or finds) a
   program and runs it.  `outputs` receives `output_count` new tensors.  One program serves all sizes of
   the model's free dimensions, from 2 up to a bound that grows when a larger size comes; sizes of 0 and
   1, and dimensions that an operator must know, get programs by value, and so do sizes of more than
   four of the latest 32 runs.  Inputs of at most 64 integers in at most one axis whose elements
   decide shapes (those of Reshape, axes, pads, repeats, k) are read before compiling, and programs are
   found by their elements too. */
TINY_API tiny_status tiny_model_run(tiny_model *model, tiny_tensor *const *inputs, size_t input_count,
                                    tiny_tensor **outputs, size_t output_count);

/* Begins anew the random numbers of the model's programs, of which each execution draws others: the next draws what the
   first one does with this `seed`, which is 0 before.  Operators that have a seed of their own look at none.
   Since 0.3. */
TINY_API tiny_status tiny_model_set_seed(tiny_model *model, int64_t seed);

/* tiny_model_run with values, which need not be tensors: texts, lists, optional values and maps, as the model says.  Each of
   its programs is for lists of certain lengths and tensors of certain sizes; texts may be any.  `outputs` receives
   `output_count` new values.  A map of ai.onnx.ml.ZipMap, for which tiny_model_run gives the columns of its values, is
   one here.  Since 0.3. */
TINY_API tiny_status tiny_model_run_values(tiny_model *model, tiny_value *const *inputs, size_t input_count,
                                           tiny_value **outputs, size_t output_count);

/* Makes the model a part of the caller's graph: its outputs for these inputs, in the model's order, not computed.
   Inputs may be any tensors of the model's dtypes and shapes: placeholders (tiny_input), results, outputs of other
   models; a scalar takes the model's dtype.  `outputs` receives `output_count` new tensors, for operations,
   tiny_realize or tiny_program_compile like any other.  Elements that decide shapes are read now: they must follow
   from computed tensors and constants, or it is TINY_ERROR_UNSUPPORTED.  Random numbers are drawn once, as one
   execution would; those of the next call are others.  The model may be released. */
TINY_API tiny_status tiny_model_apply(tiny_model *model, tiny_tensor *const *inputs, size_t input_count,
                                      tiny_tensor **outputs, size_t output_count);

/* Writes `outputs` as functions of `inputs` (made by tiny_input) to an ONNX model of operator set 20, or 26 where it
   takes the bits of floats: computes nothing.
   Both have the names that tensors were given (tiny_tensor_set_name), or "input0", "output0", .. by their places.
   Other tensors are weights, as they are now.  A dimension that depends on variables is free; a variable that
   the graph needs must be a dimension of an input by itself.  Operators are ONNX's larger ones (Conv, Gemm, MatMul,
   Softmax, LayerNormalization, ..) where importing them would make the same graph, and elementary ones elsewhere.
   The file is replaced as tiny_tensor_save does it.  TINY_ERROR_UNSUPPORTED names what no operator does: assignments,
   loops that a run counts.  TINY_ERROR_LIMIT for a model of more than 2 GiB.  Since 0.3. */
TINY_API tiny_status tiny_export_onnx(tiny_tensor *const *inputs, size_t input_count, tiny_tensor *const *outputs,
                                      size_t output_count, const char *path);

/* ---- Variables: dimensions that each run of a program binds ------------------------------------ */

typedef struct tiny_variable tiny_variable; /* a size from a range, given anew to every run */

/* A whole number from `min` to `max`, 0 <= min < max; `name` is for messages, and tells it from a program's other
   variables: one with the same name and range is the same.  From 2 on it is known to be no size that broadcasts. */
TINY_API tiny_status tiny_variable_create(tiny_context *context, const char *name, int64_t min, int64_t max,
                                          tiny_variable **out);
TINY_API void tiny_variable_retain(tiny_variable *variable);
TINY_API void tiny_variable_release(tiny_variable *variable);
/* Lives as long as the variable. */
TINY_API tiny_status tiny_variable_name(const tiny_variable *variable, const char **out);
TINY_API tiny_status tiny_variable_range(const tiny_variable *variable, int64_t *min, int64_t *max);
/* The number that stands for it among dimensions; that of equal ones is the same. */
TINY_API tiny_status tiny_variable_dim(const tiny_variable *variable, int64_t *out);

/* Arithmetic with dimensions of a context and with numbers: `out` gets a number if the result is one whatever the
   variables are (n - n), else what stands for it: the same for equal ones (n + n, 2 * n).  What may be further from 0
   than 2^40 is TINY_ERROR_LIMIT.  A result may be negative, as a position in tiny_slice; as a size it must be known
   not to be. */
TINY_API tiny_status tiny_dim_add(tiny_context *context, int64_t a, int64_t b, int64_t *out);
TINY_API tiny_status tiny_dim_sub(tiny_context *context, int64_t a, int64_t b, int64_t *out);
TINY_API tiny_status tiny_dim_mul(tiny_context *context, int64_t a, int64_t b, int64_t *out);
/* Rounds towards minus infinity; b must be known to be at least 1. */
TINY_API tiny_status tiny_dim_floor_div(tiny_context *context, int64_t a, int64_t b, int64_t *out);
/* a - a / b * b with that division, 0 to b - 1. */
TINY_API tiny_status tiny_dim_floor_mod(tiny_context *context, int64_t a, int64_t b, int64_t *out);
TINY_API tiny_status tiny_dim_min(tiny_context *context, int64_t a, int64_t b, int64_t *out);
TINY_API tiny_status tiny_dim_max(tiny_context *context, int64_t a, int64_t b, int64_t *out);
/* Numbers that it is not below and not above: with one variable that occurs once, its lowest and highest value.  This
   and tiny_dim_text look at what is known, and wait for nobody. */
TINY_API tiny_status tiny_dim_range(tiny_context *context, int64_t dim, int64_t *min, int64_t *max);
/* As text, by the names of the variables: "2*N + 1"; a size is its digits. */
TINY_API tiny_status tiny_dim_text(tiny_context *context, int64_t dim, tiny_report **out);

/* ---- Programs and runs ------------------------------------------------------------------------ */

/* A stand-in for a tensor that every run of a program is given.  It can be used like any tensor, but has no
   value: reading it, or what is made from it, is TINY_ERROR_INVALID_ARGUMENT.  A dimension may be a variable's. */
TINY_API tiny_status tiny_input(tiny_context *context, tiny_dtype dtype, const int64_t *dims, size_t ndim,
                                tiny_tensor **out);
/* Compiles what the outputs need, for runs that set the inputs (made by tiny_input), and computes nothing.
   Other tensors are captured: each run reads what they hold when it executes.  Writes (tiny_assign) that are
   pending and that an output needs are done by every run, in place, and no longer pending: list among the outputs a
   tensor that the program is to write; such an output is that tensor's own memory.  A program that writes does a step as
   a whole: pending writes to other tensors that it reads, and those that depend on its inputs, are done by it too, such
   as an optimiser's momentum and running statistics.  It is
   exclusive: TINY_ERROR_BUSY while another run of it executes.  After a run, what was built on a tensor that it
   wrote and not computed before is TINY_ERROR_INVALID_ARGUMENT.  `inputs` may be NULL if there are none.
   Where outputs depend on a call over several devices (tiny_allreduce, tiny_allgather, tiny_tensor_to) inputs and
   outputs are of any of these devices, and a run does that call too: between its kernels of before and behind, each
   device's kernels beside the others'.  What is needed behind and does not go through the call is computed again there;
   it must not read what is written before it (TINY_ERROR_UNSUPPORTED).  Sizes are numbers then. */
TINY_API tiny_status tiny_program_compile(tiny_tensor *const *inputs, size_t input_count, tiny_tensor *const *outputs,
                                          size_t output_count, tiny_program **out);
TINY_API void tiny_program_retain(tiny_program *program);
TINY_API void tiny_program_release(tiny_program *program);
TINY_API tiny_status tiny_program_kernel_count(const tiny_program *program, size_t *out);
/* How many of them are interpreted because machine code could not be had. */
TINY_API tiny_status tiny_program_interpreted_count(const tiny_program *program, size_t *out);
/* How many of them had their code before the program was compiled, in the context or in the disk cache. */
TINY_API tiny_status tiny_program_cached_count(const tiny_program *program, size_t *out);
/* Bytes of memory for values between kernels, per run; and of weights, shared by all runs. */
TINY_API tiny_status tiny_program_memory(const tiny_program *program, size_t *arena, size_t *weights);
/* The kernels as a JSON array: name, computes, options, operations and bytes of one execution, launches in it (more
   than one for the steps of a recurrence; null where the run decides how many there are), interpreted, cached (its
   code was there before this program was compiled: in the context, or on disk), scalar (loops without any vector),
   and buffers as tiny_schedule lists them, of which a "part" is in each step another part of a larger one.  "computes"
   lists, in the order of the data's flow, the nodes of the model, or the tensors with a name (tiny_tensor_set_name),
   that the kernel computes all or a part of: ["conv1","relu1"].  A node without a name is its operator and first
   output, "Conv:y"; a node in another's graph stands behind that, "loop1/add2"; what tiny_op made and nobody has
   named is its operator, "TopK".  What several models share, or nobody has named, is not listed. */
TINY_API tiny_status tiny_program_kernels(const tiny_program *program, tiny_report **out);
/* One kernel as text, made anew: `stage` is "uops" (its nodes), "linear" (what renderers start from), "c", or
   "asm" (what the device runs).  A building call.  TINY_ERROR_UNSUPPORTED if the context has dropped it. */
TINY_API tiny_status tiny_program_kernel_source(const tiny_program *program, size_t index, const char *stage,
                                                tiny_report **out);
/* The program as C11 in three files of `directory`, which is made unless it is there: NAME.c, NAME.h and NAME.weights.
   They need no library but libm; NAME.h declares NAME_run and says what it takes: the inputs, outputs and variables as
   members of a structure, memory that the caller gives, and a function of the caller's that runs pieces on threads.  It
   keeps nothing between calls; what the program writes in place is a state, which the caller has.  Kernels are those
   that the context has compiled, with vectors as long as its isa's; with gcc and clang for the same processor they
   give the same bits, and elsewhere too.  A building call.  TINY_ERROR_INVALID_ARGUMENT unless `name` is an identifier
   of C; TINY_ERROR_UNSUPPORTED for a program that calls an operator of the caller's, for kernels whose structure the
   context does not have because their code came from the disk cache (compile with the option cache = 0), and in a
   build without the export.  Since 0.3. */
TINY_API tiny_status tiny_program_export_c(const tiny_program *program, const char *directory, const char *name);
/* Seconds spent on importing and scheduling, on code generation, and on values computed once. */
TINY_API tiny_status tiny_program_times(const tiny_program *program, double *schedule, double *compile, double *init);

TINY_API tiny_status tiny_run_create(tiny_program *program, tiny_run **out);
TINY_API void tiny_run_release(tiny_run *run);
/* The tensor's dtype and shape must be the program's; it is computed now if it is not yet.  A variable that is a
   dimension of the input has the tensor's size from now on: TINY_ERROR_SHAPE names it if that is out of its range. */
TINY_API tiny_status tiny_run_set_input(tiny_run *run, size_t index, const tiny_tensor *tensor);
/* From now on executions read input `index` from `data`, row-major and of exactly `bytes`, which is aligned to an
   element and not written while the run executes; the caller keeps it until other memory, or a tensor, is
   bound or set, or the run is released.  Elements that changed need not be bound again.  Takes no part in
   building: it waits for nobody, and allocates nothing unless it is the first of its input or of another size.
   Of an input whose shape depends on variables tiny_run_set_variable gives the size, and an execution fails
   (TINY_ERROR_SHAPE) where `bytes` are not those of the shape. */
TINY_API tiny_status tiny_run_bind_input(tiny_run *run, size_t index, const void *data, size_t bytes);
/* The same for where executions write output `index`; it must share no memory with an input of the run, with what
   the program captured, or with another output: TINY_ERROR_INVALID_ARGUMENT, which names the two.  0 bytes:
   into memory of the run's own again. */
TINY_API tiny_status tiny_run_bind_output(tiny_run *run, size_t index, void *data, size_t bytes);
/* Gives a variable its value, which inputs with it as a dimension do by themselves.  At an execution every variable
   has a value and all inputs and outputs fit them (TINY_ERROR_SHAPE otherwise).  When one has changed, outputs
   of the last execution are gone, and the next may allocate. */
TINY_API tiny_status tiny_run_set_variable(tiny_run *run, const tiny_variable *variable, int64_t value);
/* The value that a dimension of the context has with the run's variables, which must all have one. */
TINY_API tiny_status tiny_run_dim(const tiny_run *run, int64_t dim, int64_t *out);
/* From now on executions write output `index` into the memory of `tensor`, which has the result then; `tensor` may
   be NULL: into memory of the run's own again.  Its dtype and shape must be the program's, its elements row-major
   (those of tiny_tensor_wrap without strides, of any computed tensor), and it must share no memory with an input
   of the run, with what the program captured, or with another output: TINY_ERROR_INVALID_ARGUMENT, which names
   the two.  It is computed now if it is not yet.  After an execution, what was built on the tensor before and not
   computed is TINY_ERROR_INVALID_ARGUMENT.  Nothing else may use the tensor while the run executes. */
TINY_API tiny_status tiny_run_set_output(tiny_run *run, size_t index, tiny_tensor *tensor);
/* Runs the kernels on the calling thread and the pool; a device of a driver (OpenCL, CUDA) may do some of the work after
   this has returned: what reads an output waits for it.  Allocates nothing, unless a variable has changed. */
TINY_API tiny_status tiny_run_execute(tiny_run *run);
/* `cancel` (may be NULL: none) ends an execution, in the middle of kernels too, with TINY_ERROR_CANCELLED; the run can
   be executed again.  Of what an execution that was ended, by it or by the option "time_limit", was to write, outputs
   that were set and tensors that the program writes have any elements, old and new ones among them: a caller who
   wants to go on from there keeps a copy, or assigns them again. */
TINY_API tiny_status tiny_run_set_cancel(tiny_run *run, tiny_cancel *cancel);
/* Copies an output of the last execution, row-major; `bytes` must be its exact size.  TINY_ERROR_INVALID_ARGUMENT
   if there is none: the run was not executed, the last execution failed, or a variable or where the output
   goes was set since. */
TINY_API tiny_status tiny_run_read_output(tiny_run *run, size_t index, void *data, size_t bytes);
/* An output of the last execution as a tensor, without a copy: the next execution has memory of its own.  Asked for
   again before that it is the same tensor, and tiny_run_read_output reads that tensor's memory.  Errors as
   tiny_run_read_output. */
TINY_API tiny_status tiny_run_output_tensor(tiny_run *run, size_t index, tiny_tensor **out);
TINY_API tiny_status tiny_run_output_dtype(const tiny_run *run, size_t index, tiny_dtype *out);
/* With the variables' values, which every variable must have. */
TINY_API tiny_status tiny_run_output_shape(const tiny_run *run, size_t index, int64_t *dims, size_t capacity,
                                           size_t *rank);
/* on != 0: the next executions are timed kernel by kernel. */
TINY_API tiny_status tiny_run_set_timed(tiny_run *run, int32_t on);
/* Seconds of each kernel of the last timed execution; writes min(count, capacity). */
TINY_API tiny_status tiny_run_kernel_seconds(const tiny_run *run, double *seconds, size_t capacity, size_t *count);
/* The last timed execution as a trace in Chrome's JSON object format, which Perfetto and chrome://tracing open: a
   complete event for each kernel, in microseconds from the execution's begin, with its name and in "args" what it
   computes, gflops, gbps, operations, bytes and options (see tiny_program_kernels).  Timed kernels run one after the
   other, each on all threads.  TINY_ERROR_INVALID_ARGUMENT if there was no timed execution, or it did not end well. */
TINY_API tiny_status tiny_run_trace(const tiny_run *run, tiny_report **out);

/* ---- Devices ---------------------------------------------------------------------------------- */

/* The devices of this build and machine as one JSON object: the keys of `tiny devices --json`. */
TINY_API tiny_status tiny_devices(tiny_report **out);

#ifdef __cplusplus
}
#endif
#endif
