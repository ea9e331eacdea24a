/* The raw C# functions: tiny.h as it stands, as static methods of Tiny.Raw.  Handles are SafeHandles,
   arrays are pinned by the marshaller, int64_t is long (SWIG alone would make it int), size_t is
   ulong, a status that is not OK throws TinyException. */
%module Raw
%{
#include <tiny.h>
%}

%include <stdint.i>
%apply long long { int64_t };
%apply unsigned long long { uint64_t };

%pragma(csharp) moduleclassmodifiers="internal class"

/* ---- size_t: 64 bits on both sides ---- */
%typemap(ctype) size_t "size_t"
%typemap(imtype) size_t "System.UIntPtr"
%typemap(cstype) size_t "ulong"
%typemap(csin) size_t "(System.UIntPtr)$csinput"
%typemap(csout, excode=SWIGEXCODE) size_t { return (ulong)$imcall; }
%typemap(in) size_t %{ $1 = $input; %}
%typemap(out) size_t %{ $result = $1; %}

/* ---- Status ---- */
%typemap(ctype) tiny_status "int32_t"
%typemap(imtype) tiny_status "int"
%typemap(cstype) tiny_status "int"
%typemap(in) tiny_status %{ $1 = $input; %}
%typemap(out) tiny_status %{ $result = $1; %}
%typemap(cstype, out="void") tiny_status "int"
%typemap(csout, excode=SWIGEXCODE) tiny_status { TinyException.Check($imcall); }

/* ---- Arrays of integers: pinned, not copied ---- */
%typemap(ctype) const int64_t * "const int64_t *"
%typemap(imtype) const int64_t * "long[]"
%typemap(cstype) const int64_t * "long[]"
%typemap(csin) const int64_t * "$csinput"
%typemap(in) const int64_t * %{ $1 = (int64_t *)$input; %}
%define FILLED(CTYPE, CSTYPE)
%typemap(ctype) CTYPE *RESULTS "CTYPE *"
%typemap(imtype) CTYPE *RESULTS
    "[System.Runtime.InteropServices.In, System.Runtime.InteropServices.Out] CSTYPE[]"
%typemap(cstype) CTYPE *RESULTS "CSTYPE[]"
%typemap(csin) CTYPE *RESULTS "$csinput"
%typemap(in) CTYPE *RESULTS %{ $1 = $input; %}
%enddef
FILLED(int64_t, long)
FILLED(double, double)

/* ---- Numbers that come back ---- */
%define RESULT_OF(CTYPE, IMTYPE, CSTYPE)
%typemap(ctype) CTYPE *RESULT "CTYPE *"
%typemap(imtype) CTYPE *RESULT "out IMTYPE"
%typemap(cstype) CTYPE *RESULT "out CSTYPE"
%typemap(csin) CTYPE *RESULT "out $csinput"
%typemap(in) CTYPE *RESULT %{ $1 = $input; %}
%enddef
RESULT_OF(int32_t, int, int)
RESULT_OF(int64_t, long, long)
RESULT_OF(double, double, double)
%typemap(ctype) size_t *RESULT "size_t *"
%typemap(imtype) size_t *RESULT "out System.UIntPtr"
%typemap(cstype) size_t *RESULT "out ulong"
%typemap(csin, pre="    System.UIntPtr $csinput_size = System.UIntPtr.Zero;", post="    $csinput = (ulong)$csinput_size;")
    size_t *RESULT "out $csinput_size"
%typemap(in) size_t *RESULT %{ $1 = $input; %}

/* ---- Text that comes back: a borrowed pointer, copied at once ---- */
%typemap(ctype) const char ** "const char **"
%typemap(imtype) const char ** "out System.IntPtr"
%typemap(cstype) const char ** "out System.IntPtr"
%typemap(csin) const char ** "out $csinput"
%typemap(in) const char ** %{ $1 = (char **)$input; %}

/* ---- An address that comes back ---- */
%typemap(ctype) const void ** "const void **"
%typemap(imtype) const void ** "out System.IntPtr"
%typemap(cstype) const void ** "out System.IntPtr"
%typemap(csin) const void ** "out $csinput"
%typemap(in) const void ** %{ $1 = (void **)$input; %}

/* ---- Memory and the callback that gives it back ---- */
%apply void *VOID_INT_PTR { void *, const void * };
%typemap(ctype) void (*)(void *) "void *"
%typemap(imtype) void (*)(void *) "Deleter"
%typemap(cstype) void (*)(void *) "Deleter"
%typemap(csin) void (*)(void *) "$csinput"
%typemap(in) void (*)(void *) %{ $1 = (void (*)(void *))$input; %}

/* ---- Objects ---- */
%define TINY_OBJECT(TYPE, NAME, HANDLE)
%typemap(ctype) TYPE *, const TYPE * "void *"
%typemap(imtype) TYPE *, const TYPE * "HANDLE"
%typemap(cstype) TYPE *, const TYPE * "HANDLE"
%typemap(csin) TYPE *, const TYPE * "$csinput"
%typemap(in) TYPE *, const TYPE * %{ $1 = (TYPE *)$input; %}
%typemap(ctype) TYPE ** "void *"
%typemap(imtype) TYPE ** "out HANDLE"
%typemap(cstype) TYPE ** "out HANDLE"
%typemap(csin) TYPE ** "out $csinput"
%typemap(in) TYPE ** %{ $1 = (TYPE **)$input; %}
%typemap(ctype) TYPE **MADE "void *"
%typemap(imtype) TYPE **MADE
    "[System.Runtime.InteropServices.In, System.Runtime.InteropServices.Out] System.IntPtr[]"
%typemap(cstype) TYPE **MADE "System.IntPtr[]"
%typemap(csin) TYPE **MADE "$csinput"
%typemap(in) TYPE **MADE %{ $1 = (TYPE **)$input; %}
%typemap(ctype) TYPE *const *, const TYPE *const * "void *"
%typemap(imtype) TYPE *const *, const TYPE *const * "System.IntPtr[]"
%typemap(cstype) TYPE *const *, const TYPE *const * "System.IntPtr[]"
%typemap(csin) TYPE *const *, const TYPE *const * "$csinput"
%typemap(in) TYPE *const *, const TYPE *const * %{ $1 = (TYPE **)$input; %}
%ignore TYPE##_release;
%ignore TYPE##_retain;
%inline %{
void release_##TYPE(void *handle) { TYPE##_release((TYPE *)handle); }
%}
%enddef

%include "tiny_generated.i"

/* ---- Delegates as functions of C ---- */
%inline %{
tiny_status options_add_deleter(tiny_options *options, void *deleter, void *user) {
  return tiny_options_add_deleter(options, (void (*)(void *))deleter, user);
}
tiny_status options_set_log(tiny_options *options, void *log, void *user) {
  return tiny_options_set_log(options, (void (*)(void *, const char *))log, user);
}
tiny_status options_set_allocator(tiny_options *options, void *allocate, void *release,
                                  void *user) {
  return tiny_options_set_allocator(options, (void *(*)(void *, size_t, size_t))allocate,
                                    (void (*)(void *, void *, size_t))release, user);
}
tiny_status options_set_thread_pool(tiny_options *options, void *run, void *user) {
  return tiny_options_set_thread_pool(
      options, (void (*)(void *, void (*)(void *, size_t), void *, size_t))run, user);
}
tiny_status options_set_progress(tiny_options *options, void *progress, void *user) {
  return tiny_options_set_progress(
      options, (int32_t(*)(void *, const char *, int64_t, int64_t))progress, user);
}
tiny_status options_set_poll(tiny_options *options, void *poll, void *user) {
  return tiny_options_set_poll(options, (int32_t(*)(void *))poll, user);
}
%}

/* ---- Operators of delegates: a call is an address ---- */
%inline %{
tiny_status context_add_operator(tiny_context *context, const char *domain, const char *name,
                                 void *infer, void *run, void *gradient, void *deleter,
                                 void *user) {
  tiny_custom_op *op = NULL;
  tiny_status status =
      tiny_custom_op_create(domain, name, user, (void (*)(void *))deleter, &op);
  if (status != TINY_OK) {
    if (deleter) ((void (*)(void *))deleter)(user);
    return status;
  }
  tiny_custom_op_set_infer(op, (tiny_status(*)(void *, tiny_custom_call *))infer);
  tiny_custom_op_set_run(op, (tiny_status(*)(void *, tiny_custom_call *))run);
  tiny_custom_op_set_gradient(op, (tiny_status(*)(void *, tiny_custom_call *))gradient);
  status = tiny_context_add_custom_op(context, op);
  tiny_custom_op_release(op);
  return status;
}
const char *call_attributes(void *call) {
  return tiny_custom_call_attributes((tiny_custom_call *)call);
}
int call_inputs(void *call) {
  return (int)tiny_custom_call_input_count((tiny_custom_call *)call);
}
int call_outputs(void *call) {
  return (int)tiny_custom_call_output_count((tiny_custom_call *)call);
}
int call_dtype(void *call, int of_output, int index) {
  tiny_custom_call *c = (tiny_custom_call *)call;
  return of_output ? tiny_custom_call_output_dtype(c, (size_t)index)
                   : tiny_custom_call_input_dtype(c, (size_t)index);
}
int call_rank(void *call, int of_output, int index) {
  tiny_custom_call *c = (tiny_custom_call *)call;
  size_t rank = 0;
  if (of_output)
    tiny_custom_call_output_shape(c, (size_t)index, &rank);
  else
    tiny_custom_call_input_shape(c, (size_t)index, &rank);
  return (int)rank;
}
int64_t call_dim(void *call, int of_output, int index, int axis) {
  tiny_custom_call *c = (tiny_custom_call *)call;
  return (of_output ? tiny_custom_call_output_shape(c, (size_t)index, NULL)
                    : tiny_custom_call_input_shape(c, (size_t)index, NULL))[axis];
}
void *call_data(void *call, int of_output, int index) {
  tiny_custom_call *c = (tiny_custom_call *)call;
  return of_output ? tiny_custom_call_output_data(c, (size_t)index)
                   : (void *)tiny_custom_call_input_data(c, (size_t)index);
}
tiny_status call_set_output(void *call, int index, int dtype, const int64_t *dims, int rank) {
  return tiny_custom_call_set_output((tiny_custom_call *)call, (size_t)index, dtype, dims,
                                     (size_t)rank);
}
void call_set_error(void *call, const char *message) {
  tiny_custom_call_set_error((tiny_custom_call *)call, message);
}
%}

/* ---- DLPack: the struct is an address ---- */
%inline %{
tiny_status tensor_to_dlpack(const tiny_tensor *tensor, const void **out) {
  return tiny_tensor_to_dlpack(tensor, (struct DLManagedTensorVersioned **)out);
}
tiny_status tensor_from_dlpack(tiny_context *context, void *managed, tiny_tensor **out) {
  return tiny_tensor_from_dlpack(context, (struct DLManagedTensorVersioned *)managed, out);
}
void dlpack_release(void *managed) {
  tiny_dlpack_release((struct DLManagedTensorVersioned *)managed);
}
%}

%ignore tiny_options_set_log; /* above, of delegates */
%ignore tiny_options_set_allocator;
%ignore tiny_options_set_thread_pool;
%ignore tiny_options_set_progress;
%ignore tiny_options_set_poll;
%ignore tiny_options_add_deleter;
%ignore tiny_tensor_to_dlpack; /* above, by addresses */
%ignore tiny_tensor_from_dlpack;
%ignore tiny_dlpack_release;
%ignore tiny_custom_op; /* its functions are C's */
%ignore tiny_custom_op_create;
%ignore tiny_custom_op_retain;
%ignore tiny_custom_op_release;
%ignore tiny_custom_op_set_infer;
%ignore tiny_custom_op_set_run;
%ignore tiny_custom_op_set_gradient;
%ignore tiny_context_add_custom_op;
%ignore tiny_custom_call;
%rename("$ignore", regexmatch$name="^tiny_custom_call_") "";
#define TINY_API
%include <tiny.h>
