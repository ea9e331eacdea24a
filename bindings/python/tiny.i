/* The raw Python module: tiny.h as it stands.  Typemaps turn its conventions into Python's: lists
   for (dims, ndim), the buffer protocol for (data, bytes), results for out-parameters, exceptions
   for statuses, and objects that release their handle (handles.inc).  methods.py makes methods of the
   functions; what every operation passes through is in operators.inc. */
%module(package="tiny") native
%begin %{
#define PY_SSIZE_T_CLEAN
%}
%{
#include <signal.h>
#include <tiny.h>

static PyObject *error_class; /* tiny.Error, given by the package */

/* Raises tiny.Error(status, message) for the last failed call of this thread. */
static void raise_status(tiny_status status) {
  PyObject *arguments = Py_BuildValue("(is)", (int)status, tiny_last_error());
  if (arguments == NULL) return;
  PyErr_SetObject(error_class ? error_class : PyExc_RuntimeError, arguments);
  Py_DECREF(arguments);
}

/* The deleter of wrapped buffers; called on any thread, with or without the interpreter's lock. */
static void release_buffer(void *user) {
  if (!Py_IsInitialized() || _Py_IsFinalizing()) return; /* the process is about to end */
  PyGILState_STATE state = PyGILState_Ensure();
  PyBuffer_Release((Py_buffer *)user);
  PyMem_Free(user);
  PyGILState_Release(state);
}

/* ---- Ctrl-C in a long call ----
   Python's handlers of signals run on the main thread, between bytecodes: not while a call of ours
   lasts.  The library polls in it (tiny_options_set_poll), and has them run then.  The interpreter's
   lock, which another thread may hold for milliseconds, is taken once in a call of some
   milliseconds, and again when SIGINT has come: for that a handler stands before Python's from the
   first poll of a call to its end. */
static unsigned long main_thread; /* given by the package */
static struct {
  int is_on;
  volatile sig_atomic_t came;
  struct sigaction before; /* Python's, or the caller's */
} watch;

static void on_interrupt(int number, siginfo_t *info, void *context) {
  watch.came = 1;
  if (watch.before.sa_flags & SA_SIGINFO)
    watch.before.sa_sigaction(number, info, context);
  else if (watch.before.sa_handler != SIG_IGN && watch.before.sa_handler != SIG_DFL)
    watch.before.sa_handler(number);
}

static void watch_interrupt(void) {
  struct sigaction ours;
  if (sigaction(SIGINT, NULL, &watch.before) != 0) return;
  if (!(watch.before.sa_flags & SA_SIGINFO) &&
      (watch.before.sa_handler == SIG_DFL || watch.before.sa_handler == SIG_IGN))
    return; /* nothing of Python's is to be called */
  ours = watch.before;
  ours.sa_flags |= SA_SIGINFO;
  ours.sa_sigaction = on_interrupt;
  watch.came = 0;
  watch.is_on = sigaction(SIGINT, &ours, NULL) == 0;
}

/* Of the main thread, as all of it; a handler that was set meanwhile stays. */
static void watch_no_more(void) {
  struct sigaction now;
  if (PyThread_get_thread_ident() != main_thread) return;
  watch.is_on = 0;
  if (sigaction(SIGINT, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
      now.sa_sigaction == on_interrupt)
    sigaction(SIGINT, &watch.before, NULL);
}

/* What a signal's handler has raised in a function of Python's that the library called
   (KeyboardInterrupt, SystemExit: no Exception): it ends the library's call, which raises it. */
static struct {
  PyObject *type, *value, *trace;
} kept;

static int keep_interrupt(void) {
  if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_Exception) ||
      PyThread_get_thread_ident() != main_thread)
    return 0;
  Py_XDECREF(kept.type);
  Py_XDECREF(kept.value);
  Py_XDECREF(kept.trace);
  PyErr_Fetch(&kept.type, &kept.value, &kept.trace);
  return 1;
}

static void raise_kept(void) {
  if (kept.type == NULL || PyThread_get_thread_ident() != main_thread) return;
  PyErr_Restore(kept.type, kept.value, kept.trace);
  kept.type = kept.value = kept.trace = NULL;
}

/* Not 0: a handler has raised, and the exception is this thread's. */
static int32_t poll_signals(void) {
  PyGILState_STATE state;
  int failed;
  if (PyThread_get_thread_ident() != main_thread) return 0;
  if (kept.type != NULL) return 1;
  if (watch.is_on && !watch.came) return 0;
  if (!Py_IsInitialized() || _Py_IsFinalizing()) return 1;
  if (!watch.is_on) watch_interrupt();
  watch.came = 0;
  state = PyGILState_Ensure();
  failed = PyErr_CheckSignals();
  PyGILState_Release(state);
  return failed != 0;
}
%}

%include <stdint.i>
%include <typemaps.i>
/* ---- Status ---- */
%typemap(out) tiny_status {
  if (check_status($1) != 0) SWIG_fail;
  $result = SWIG_Py_Void();
}

/* ---- Lists ---- */
/* A list that comes back: the caller says how many fit, and gets them and how many there are. */
%define FILLED(TYPE, TO_PYTHON)
%typemap(in) (TYPE *RESULTS, size_t CAPACITY, size_t *FILLED) (TYPE *values = NULL, size_t filled) {
  $2 = PyLong_AsSize_t($input);
  if (PyErr_Occurred()) SWIG_fail;
  $1 = values = (TYPE *)PyMem_Calloc($2 + 1, sizeof(TYPE));
  if (values == NULL) {
    PyErr_NoMemory();
    SWIG_fail;
  }
  filled = 0;
  $3 = &filled;
}
%typemap(argout) (TYPE *RESULTS, size_t CAPACITY, size_t *FILLED) {
  size_t length = filled$argnum < $2 ? filled$argnum : $2;
  PyObject *list = PyTuple_New((Py_ssize_t)length);
  for (size_t i = 0; list != NULL && i < length; ++i)
    PyTuple_SET_ITEM(list, (Py_ssize_t)i, TO_PYTHON(values$argnum[i]));
  if (list == NULL) SWIG_fail;
  $result = SWIG_Python_AppendOutput($result, list);
  $result = SWIG_Python_AppendOutput($result, PyLong_FromSize_t(filled$argnum));
}
%typemap(freearg) (TYPE *RESULTS, size_t CAPACITY, size_t *FILLED) { PyMem_Free(values$argnum); }
%enddef
FILLED(int64_t, PyLong_FromLongLong)
FILLED(double, PyFloat_FromDouble)

/* ---- Memory: the buffer protocol, without a copy, held for the length of the call ---- */
%typemap(in) (const void *BUFFER, size_t BYTES) (Py_buffer view = {0}) {
  if (PyObject_GetBuffer($input, &view, PyBUF_C_CONTIGUOUS) != 0) SWIG_fail;
  $1 = view.buf;
  $2 = (size_t)view.len;
}
%typemap(in) (void *BUFFER, size_t BYTES) (Py_buffer view = {0}) {
  if (PyObject_GetBuffer($input, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) != 0) SWIG_fail;
  $1 = view.buf;
  $2 = (size_t)view.len;
}
%typemap(freearg) (const void *BUFFER, size_t BYTES) { PyBuffer_Release(&view$argnum); }
%typemap(freearg) (void *BUFFER, size_t BYTES) { PyBuffer_Release(&view$argnum); }

/* ---- Numbers that come back ---- */
%apply int *OUTPUT { int32_t *RESULT };
%apply long *OUTPUT { int64_t *RESULT };
%apply unsigned long *OUTPUT { size_t *RESULT };
%apply double *OUTPUT { double *RESULT };

/* ---- Text that comes back: a copy ---- */
%typemap(in, numinputs=0) const char **out (const char *text = NULL) { $1 = (char **)&text; }
%typemap(argout) const char **out {
  $result = SWIG_Python_AppendOutput($result, SWIG_FromCharPtr(text$argnum));
}

/* ---- An address that comes back: a number, for ctypes ---- */
%typemap(in, numinputs=0) const void **out (const void *address = NULL) { $1 = (void **)&address; }
%typemap(argout) const void **out {
  $result = SWIG_Python_AppendOutput($result, PyLong_FromVoidPtr((void *)address$argnum));
}

/* ---- Objects: created by an out-parameter, released with the Python object (handles.inc) ---- */
%define TINY_OBJECT(TYPE, NAME, HANDLE)
%ignore TYPE##_release;
%ignore TYPE##_retain;
%typemap(in) TYPE * (void *pointer) {
  if (find_pointer(kind_##TYPE, $input, &pointer, "$symname", $argnum) != 0) SWIG_fail;
  $1 = (TYPE *)pointer;
}
%apply TYPE * { const TYPE * };
%typemap(in, numinputs=0) TYPE **out (TYPE *made = NULL) { $1 = &made; }
%typemap(argout) TYPE **out {
  PyObject *object = new_handle(kind_##TYPE, *$1);
  if (object == NULL) SWIG_fail;
  $result = SWIG_Python_AppendOutput($result, object);
}
%typemap(in) (TYPE **MADE, size_t COUNT) (TYPE **handles = NULL) {
  $2 = PyLong_AsSize_t($input);
  if (PyErr_Occurred()) SWIG_fail;
  $1 = handles = (TYPE **)PyMem_Calloc($2 + 1, sizeof(TYPE *));
  if (handles == NULL) {
    PyErr_NoMemory();
    SWIG_fail;
  }
}
%typemap(argout) (TYPE **MADE, size_t COUNT) {
  PyObject *list = PyTuple_New((Py_ssize_t)$2);
  for (size_t i = 0; list != NULL && i < $2; ++i) {
    PyObject *object = new_handle(kind_##TYPE, handles$argnum[i]);
    if (object == NULL) Py_CLEAR(list);
    else PyTuple_SET_ITEM(list, (Py_ssize_t)i, object);
  }
  if (list == NULL) SWIG_fail;
  $result = SWIG_Python_AppendOutput($result, list);
}
%typemap(freearg) (TYPE **MADE, size_t COUNT) { PyMem_Free(handles$argnum); }
%typemap(in) (TYPE *const *HANDLES, size_t COUNT)
    (PyObject *fast = NULL, TYPE **handles = NULL) {
  fast = PySequence_Fast($input, "a sequence of NAME objects is wanted");
  if (fast == NULL) SWIG_fail;
  $2 = (size_t)PySequence_Fast_GET_SIZE(fast);
  handles = (TYPE **)PyMem_Calloc($2 + 1, sizeof(TYPE *));
  if (handles == NULL) {
    PyErr_NoMemory();
    SWIG_fail;
  }
  for (size_t i = 0; i < $2; ++i) {
    void *pointer = NULL;
    /* None is NULL, which the library takes or names. */
    if (find_pointer(kind_##TYPE, PySequence_Fast_GET_ITEM(fast, (Py_ssize_t)i), &pointer,
                     "$symname", $argnum) != 0)
      SWIG_fail;
    handles[i] = (TYPE *)pointer;
  }
  $1 = handles;
}
%typemap(freearg) (TYPE *const *HANDLES, size_t COUNT) {
  PyMem_Free(handles$argnum);
  Py_XDECREF(fast$argnum);
}
%enddef

/* What is no number or text is refused as handles are: with the call, what is wanted and what was given, which
   SWIG_AsVal_* and SWIG_AsCharPtrAndSize have seen last. */
%wrapper %{
static PyObject *looked_at; /* borrowed: of use before the call returns */

static void refuse(int code, const char *message) {
  char call[128], type[128];
  int argument;
  if (sscanf(message, "in method '%127[^']', argument %d of type '%127[^']'", call, &argument, type) != 3) {
    SWIG_Error(code, message);
    return;
  }
  const char *wanted = strstr(type, "char") != NULL      ? "text"
                       : strcmp(type, "double") == 0     ? "number"
                       : strncmp(type, "tiny_", 5) == 0 ? type
                                                        : "whole number";
  if (PyLong_CheckExact(looked_at))
    PyErr_Format(SWIG_Python_ErrorType(code), "%s: a %s is wanted as argument %d, not %R", call, wanted, argument, looked_at);
  else
    PyErr_Format(SWIG_Python_ErrorType(code), "%s: a %s is wanted as argument %d, not %.100s", call, wanted, argument,
                 Py_TYPE(looked_at)->tp_name);
}
#undef SWIG_exception_fail
#define SWIG_exception_fail(code, message) do { refuse(code, message); SWIG_fail; } while (0)
#define SWIG_AsVal_double(object, value) SWIG_AsVal_double(looked_at = (object), value)
#define SWIG_AsVal_int(object, value) SWIG_AsVal_int(looked_at = (object), value)
#define SWIG_AsVal_long(object, value) SWIG_AsVal_long(looked_at = (object), value)
#define SWIG_AsVal_size_t(object, value) SWIG_AsVal_size_t(looked_at = (object), value)
#define SWIG_AsVal_unsigned_SS_int(object, value) SWIG_AsVal_unsigned_SS_int(looked_at = (object), value)
#define SWIG_AsVal_unsigned_SS_long(object, value) SWIG_AsVal_unsigned_SS_long(looked_at = (object), value)
#define SWIG_AsCharPtrAndSize(object, text, size, made) SWIG_AsCharPtrAndSize(looked_at = (object), text, size, made)
%}
%include "tiny_generated.i"
%{
#include "handles.inc"
#include "operators.inc"
#include "replays.inc"
#include "creation.inc"
#undef SWIG_PYTHON_THREAD_BEGIN_ALLOW
#undef SWIG_PYTHON_THREAD_END_ALLOW
#define SWIG_PYTHON_THREAD_BEGIN_ALLOW LEAVE_PYTHON(0)
#define SWIG_PYTHON_THREAD_END_ALLOW RETURN_TO_PYTHON
%}

/* Calls that take less than a microsecond: they build one operation, or look into a handle. */
%define SHORT(NAME)
%nothread NAME;
%exception NAME {
  LEAVE_PYTHON(1)
  $action
  RETURN_TO_PYTHON
}
%enddef
SHORT(tiny_unary)
SHORT(tiny_binary)
SHORT(tiny_compare)
SHORT(tiny_where)
SHORT(tiny_reduce)
SHORT(tiny_reshape)
SHORT(tiny_permute)
SHORT(tiny_expand)
SHORT(tiny_slice)
SHORT(tiny_squeeze)
SHORT(tiny_unsqueeze)
SHORT(tiny_cast)
SHORT(tiny_clone)
SHORT(tiny_detach)
SHORT(tiny_scalar_float)
SHORT(tiny_scalar_int)
SHORT(tiny_full)
SHORT(tiny_tensor_dtype)
SHORT(tiny_tensor_rank)
SHORT(tiny_tensor_shape)
SHORT(tiny_tensor_numel)
SHORT(tiny_tensor_strides)
SHORT(tiny_tensor_offset)
SHORT(tiny_dtype_size)
%init %{
  if (add_members(m) != 0 || PyModule_AddFunctions(m, replay_functions) != 0 ||
      PyModule_AddFunctions(m, creation_functions) != 0)
    return NULL;
%}
%pythoncode %{
from ._native import *
%}

%ignore tiny_tensor_wrap; /* below, by the buffer protocol */
%ignore tiny_options_set_log; /* below, of Python's functions */
%ignore tiny_options_set_allocator;
%ignore tiny_options_set_thread_pool;
%ignore tiny_options_set_progress;
%ignore tiny_options_set_poll;
%ignore tiny_options_add_deleter;
%ignore tiny_tensor_to_dlpack; /* below, by capsules */
%ignore tiny_tensor_from_dlpack;
%ignore tiny_dlpack_release;
%ignore tiny_custom_op; /* its functions are C's: tiny_add_operator below */
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

%nothread tiny_wrap_buffer;
%nothread tiny_value_content;
%nothread tiny_to_capsule;
%nothread tiny_to_old_capsule;
%nothread tiny_capsule_data;
%nothread tiny_from_capsule;
%nothread tiny_set_error_class;
%nothread tiny_set_log;
%nothread tiny_set_allocator;
%nothread tiny_set_thread_pool;
%nothread tiny_set_progress;
%nothread tiny_add_operator;
%nothread tiny_set_poll;
%nothread tiny_set_main_thread;
%{
/* ---- Functions of Python's that the library calls, from any thread ---- */

/* The interpreter's lock, and the exception that this thread had before. */
typedef struct {
  PyGILState_STATE state;
  PyObject *type, *value, *trace;
} inside;

/* 0: the interpreter is about to end, and nothing of Python's can be called. */
static int enter(inside *python) {
  if (!Py_IsInitialized() || _Py_IsFinalizing()) return 0;
  python->state = PyGILState_Ensure();
  PyErr_Fetch(&python->type, &python->value, &python->trace);
  return 1;
}

/* An exception of the function has nobody to catch it: it is told as those of __del__ are. */
static void leave(inside *python, PyObject *function) {
  if (!keep_interrupt() && PyErr_Occurred()) PyErr_WriteUnraisable(function);
  PyErr_Restore(python->type, python->value, python->trace);
  PyGILState_Release(python->state);
}

static void drop_object(void *user) {
  inside python;
  if (!enter(&python)) return;
  Py_DECREF((PyObject *)user);
  leave(&python, NULL);
}

static void call_log(void *user, const char *text) {
  inside python;
  PyObject *line;
  if (!enter(&python)) return;
  line = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
  if (line != NULL) Py_XDECREF(PyObject_CallFunctionObjArgs((PyObject *)user, line, NULL));
  Py_XDECREF(line);
  leave(&python, (PyObject *)user);
}

static void *call_allocate(void *user, size_t bytes, size_t alignment) {
  inside python;
  PyObject *function = PyTuple_GET_ITEM((PyObject *)user, 0), *address;
  void *memory = NULL;
  if (!enter(&python)) return NULL;
  address = PyObject_CallFunction(function, "nn", (Py_ssize_t)bytes, (Py_ssize_t)alignment);
  if (address != NULL && address != Py_None) memory = PyLong_AsVoidPtr(address);
  Py_XDECREF(address);
  leave(&python, function);
  return memory;
}

static void call_release(void *user, void *memory, size_t bytes, size_t alignment) {
  inside python;
  PyObject *function = PyTuple_GET_ITEM((PyObject *)user, 1);
  if (!enter(&python)) return;
  Py_XDECREF(PyObject_CallFunction(function, "Nnn", PyLong_FromVoidPtr(memory), (Py_ssize_t)bytes,
                                   (Py_ssize_t)alignment));
  leave(&python, function);
}

/* A kernel whose tasks Python's pool may call: until the pool has returned. */
typedef struct {
  void (*task)(void *data, size_t index);
  void *data;
} job;

static PyObject *call_task(PyObject *capsule, PyObject *index) {
  job *its = (job *)PyCapsule_GetPointer(capsule, "tiny.job");
  size_t i;
  if (its == NULL) return NULL;
  i = PyLong_AsSize_t(index);
  if (PyErr_Occurred()) return NULL;
  if (its->task == NULL) {
    PyErr_SetString(PyExc_RuntimeError, "the pool has returned: its tasks may not be called any more");
    return NULL;
  }
  void (*task)(void *data, size_t index) = its->task;
  void *data = its->data;
  Py_BEGIN_ALLOW_THREADS
  task(data, i);
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}
static PyMethodDef task_method = {"task", call_task, METH_O, "Does one task, without the lock."};

static void free_job(PyObject *capsule) {
  PyMem_Free(PyCapsule_GetPointer(capsule, "tiny.job"));
}

static void call_pool(void *user, void (*task)(void *data, size_t index), void *data, size_t count) {
  inside python;
  job *its;
  PyObject *capsule = NULL, *function = NULL;
  if (!enter(&python)) return; /* what is left out the library does */
  its = (job *)PyMem_Malloc(sizeof(job));
  if (its != NULL) {
    its->task = task;
    its->data = data;
    capsule = PyCapsule_New(its, "tiny.job", free_job);
    if (capsule == NULL) PyMem_Free(its);
  }
  if (capsule != NULL) function = PyCFunction_New(&task_method, capsule);
  if (function != NULL)
    Py_XDECREF(PyObject_CallFunction((PyObject *)user, "On", function, (Py_ssize_t)count));
  if (capsule != NULL) its->task = NULL;
  Py_XDECREF(function);
  Py_XDECREF(capsule);
  leave(&python, (PyObject *)user);
}

/* An exception ends the work, too. */
static int32_t call_progress(void *user, const char *what, int64_t done, int64_t total) {
  inside python;
  PyObject *result;
  int32_t ends = 1;
  if (!enter(&python)) return ends;
  result = PyObject_CallFunction((PyObject *)user, "sLL", what, (long long)done, (long long)total);
  if (result != NULL) ends = PyObject_IsTrue(result);
  Py_XDECREF(result);
  leave(&python, (PyObject *)user);
  return ends;
}

/* ---- Operators whose functions are Python's: a tuple (infer, run) ---- */

/* The exception as the call's message; tiny.Error has a status of its own. */
static tiny_status call_failed(tiny_custom_call *call) {
  PyObject *type, *value, *trace, *text = NULL, *number = NULL;
  tiny_status status = TINY_ERROR_INVALID_ARGUMENT;
  if (keep_interrupt()) return TINY_ERROR_CANCELLED;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (value != NULL && error_class != NULL && PyObject_IsInstance(value, error_class) == 1)
    number = PyObject_GetAttrString(value, "status");
  if (number != NULL) status = (tiny_status)PyLong_AsLong(number);
  if (value != NULL)
    text = number ? PyObject_Str(value)
                  : PyUnicode_FromFormat("%s: %S", ((PyTypeObject *)type)->tp_name, value);
  if (text != NULL && PyUnicode_AsUTF8(text) != NULL)
    tiny_custom_call_set_error(call, PyUnicode_AsUTF8(text));
  Py_XDECREF(text);
  Py_XDECREF(number);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  PyErr_Clear();
  return status == TINY_OK ? TINY_ERROR_INVALID_ARGUMENT : status;
}

/* (dtype, dims, memory or None); None for an input that is left out. */
static PyObject *call_value(tiny_dtype dtype, const int64_t *dims, size_t rank, void *data,
                            int flags) {
  PyObject *shape, *memory = Py_None;
  size_t bytes = tiny_dtype_size(dtype);
  if (dtype == 0) Py_RETURN_NONE;
  shape = PyTuple_New((Py_ssize_t)rank);
  for (size_t i = 0; shape != NULL && i < rank; ++i) {
    PyTuple_SET_ITEM(shape, (Py_ssize_t)i, PyLong_FromLongLong(dims[i]));
    bytes *= (size_t)dims[i];
  }
  if (shape == NULL) return NULL;
  Py_INCREF(memory);
  if (data != NULL) {
    Py_DECREF(memory);
    memory = PyMemoryView_FromMemory((char *)data, (Py_ssize_t)bytes, flags);
  }
  return Py_BuildValue("iNN", (int)dtype, shape, memory);
}

static PyObject *call_values(tiny_custom_call *call, int of_outputs) {
  const size_t count =
      of_outputs ? tiny_custom_call_output_count(call) : tiny_custom_call_input_count(call);
  PyObject *list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list != NULL && i < count; ++i) {
    size_t rank = 0;
    PyObject *value;
    if (of_outputs) {
      const int64_t *dims = tiny_custom_call_output_shape(call, i, &rank);
      value = call_value(tiny_custom_call_output_dtype(call, i), dims, rank,
                         tiny_custom_call_output_data(call, i), PyBUF_WRITE);
    } else {
      const int64_t *dims = tiny_custom_call_input_shape(call, i, &rank);
      value = call_value(tiny_custom_call_input_dtype(call, i), dims, rank,
                         (void *)tiny_custom_call_input_data(call, i), PyBUF_READ);
    }
    if (value == NULL) {
      Py_CLEAR(list);
      break;
    }
    PyList_SET_ITEM(list, (Py_ssize_t)i, value);
  }
  return list;
}

/* What infer has returned: a list of (dtype, dims). */
static tiny_status set_outputs(tiny_custom_call *call, PyObject *result) {
  const size_t count = tiny_custom_call_output_count(call);
  for (size_t i = 0; i < count; ++i) {
    PyObject *pair = PySequence_GetItem(result, (Py_ssize_t)i), *dims = NULL;
    int dtype = 0;
    size_t rank = 0;
    int64_t *shape = NULL;
    tiny_status status;
    if (pair != NULL && PyArg_ParseTuple(pair, "iO", &dtype, &dims)) shape = integers_of(dims, &rank);
    Py_XDECREF(pair);
    if (shape == NULL) return call_failed(call);
    status = tiny_custom_call_set_output(call, i, dtype, shape, rank);
    PyMem_Free(shape);
    if (status != TINY_OK) {
      tiny_custom_call_set_error(call, tiny_last_error());
      return status;
    }
  }
  return TINY_OK;
}

/* `which` of the operator's functions: 0 says what the outputs are, others fill them. */
static tiny_status call_operator(void *user, tiny_custom_call *call, int which) {
  inside python;
  PyObject *function = PyTuple_GET_ITEM((PyObject *)user, which), *inputs, *result = NULL;
  tiny_status status = TINY_OK;
  if (!enter(&python)) return TINY_ERROR_CANCELLED;
  inputs = call_values(call, 0);
  if (inputs != NULL && which > 0)
    result = PyObject_CallFunction(function, "sNN", tiny_custom_call_attributes(call), inputs,
                                   call_values(call, 1));
  else if (inputs != NULL)
    result = PyObject_CallFunction(function, "sNn", tiny_custom_call_attributes(call), inputs,
                                   (Py_ssize_t)tiny_custom_call_output_count(call));
  if (result == NULL)
    status = call_failed(call);
  else if (which == 0)
    status = set_outputs(call, result);
  Py_XDECREF(result);
  leave(&python, function);
  return status;
}

static tiny_status call_infer(void *user, tiny_custom_call *call) {
  return call_operator(user, call, 0);
}

static tiny_status call_run(void *user, tiny_custom_call *call) {
  return call_operator(user, call, 1);
}

static tiny_status call_gradient(void *user, tiny_custom_call *call) {
  return call_operator(user, call, 2);
}

/* An exception ends the work, too.  `user` is NULL without a function of Python's. */
static int32_t call_poll(void *user) {
  inside python;
  PyObject *result;
  int32_t ends = poll_signals();
  if (ends || user == NULL) return ends;
  if (!enter(&python)) return 1;
  ends = 1;
  result = PyObject_CallNoArgs((PyObject *)user);
  if (result != NULL) ends = PyObject_IsTrue(result);
  Py_XDECREF(result);
  leave(&python, (PyObject *)user);
  return ends;
}

/* The options, and all that is made with them, keep the object. */
static tiny_status keep_object(tiny_options *options, PyObject *object) {
  tiny_status status;
  Py_INCREF(object);
  status = tiny_options_add_deleter(options, drop_object, object);
  if (status != TINY_OK) Py_DECREF(object);
  return status;
}
%}
%{
#include "lending.inc"
#include "values.inc"
%}
%inline %{
/* What Python has for texts, and for a map; NotImplemented for other values. */
PyObject *tiny_value_content(const tiny_value *value) {
  tiny_kind kind = 0;
  const tiny_status status = tiny_value_kind(value, &kind);
  if (status != TINY_OK) {
    raise_status(status);
    return NULL;
  }
  if (kind == TINY_KIND_TEXTS) return content_of_texts(value);
  if (kind == TINY_KIND_MAP) return content_of_map(value);
  Py_RETURN_NOTIMPLEMENTED;
}

/* The tensor's memory as a DLPack capsule. */
PyObject *tiny_to_capsule(const tiny_tensor *tensor) {
  struct DLManagedTensorVersioned *managed = lend(tensor);
  PyObject *capsule;
  if (managed == NULL) return NULL;
  capsule = PyCapsule_New(managed, CAPSULE, drop_capsule);
  if (capsule == NULL) tiny_dlpack_release(managed);
  return capsule;
}

/* The same as one of before version 1; BufferError for memory that is not to be written. */
PyObject *tiny_to_old_capsule(const tiny_tensor *tensor) {
  struct DLManagedTensorVersioned *managed = lend(tensor);
  old_managed *old;
  PyObject *capsule;
  if (managed == NULL) return NULL;
  if (managed->flags & 1) {
    tiny_dlpack_release(managed);
    PyErr_SetString(PyExc_BufferError, "other values have the tensor's memory, too");
    return NULL;
  }
  old = (old_managed *)calloc(1, sizeof *old);
  if (old == NULL) {
    tiny_dlpack_release(managed);
    return PyErr_NoMemory();
  }
  old->tensor = managed->tensor;
  old->manager_ctx = managed;
  old->deleter = release_as_old;
  capsule = PyCapsule_New(old, OLD_CAPSULE, drop_old_capsule);
  if (capsule == NULL) release_as_old(old);
  return capsule;
}

/* (address, 1 if it is not to be written) of the memory of a capsule of version 1. */
PyObject *tiny_capsule_data(PyObject *capsule) {
  struct DLManagedTensorVersioned *managed =
      (struct DLManagedTensorVersioned *)PyCapsule_GetPointer(capsule, CAPSULE);
  if (managed == NULL) return NULL;
  return Py_BuildValue("(Nk)", PyLong_FromVoidPtr((char *)managed->tensor.data + managed->tensor.byte_offset),
                       (unsigned long)(managed->flags & 1));
}

/* A tensor of the capsule's memory, which is the tensor's from then on. */
tiny_status tiny_from_capsule(tiny_context *context, PyObject *capsule, tiny_tensor **out) {
  struct DLManagedTensorVersioned *managed;
  tiny_status status;
  *out = NULL;
  if (PyCapsule_IsValid(capsule, OLD_CAPSULE)) return take_old(context, capsule, out);
  if (!PyCapsule_IsValid(capsule, CAPSULE)) {
    PyErr_SetString(PyExc_BufferError, "a DLPack capsule, not yet taken, is wanted");
    return TINY_ERROR_INVALID_ARGUMENT;
  }
  managed = (struct DLManagedTensorVersioned *)PyCapsule_GetPointer(capsule, CAPSULE);
  LEAVE_PYTHON(0)
  status = tiny_tensor_from_dlpack(context, managed, out);
  RETURN_TO_PYTHON
  if (status == TINY_OK) PyCapsule_SetName(capsule, "used_" CAPSULE);
  return status;
}


/* A tensor of the buffer's memory, strides and all; the buffer is held until the engine is done. */
tiny_status tiny_wrap_buffer(tiny_context *context, tiny_dtype dtype, PyObject *object,
                             tiny_tensor **out) {
  int64_t dims[TINY_RANK_MAX], strides[TINY_RANK_MAX];
  Py_buffer *view = (Py_buffer *)PyMem_Calloc(1, sizeof(Py_buffer));
  *out = NULL;
  if (view == NULL) return TINY_ERROR_OUT_OF_MEMORY;
  if (PyObject_GetBuffer(object, view, PyBUF_STRIDED_RO) != 0) {
    PyMem_Free(view);
    return TINY_ERROR_INVALID_ARGUMENT;
  }
  tiny_status status = TINY_OK;
  Py_ssize_t lowest = 0, highest = 0; /* bytes from the first element to those that strides reach */
  int is_empty = 0;
  if (view->ndim > TINY_RANK_MAX) {
    PyErr_Format(PyExc_ValueError, "at most %d dimensions, not %d", TINY_RANK_MAX, view->ndim);
    status = TINY_ERROR_INVALID_ARGUMENT;
  }
  for (int i = 0; status == TINY_OK && i < view->ndim; ++i) {
    dims[i] = view->shape[i];
    strides[i] = view->strides[i] / view->itemsize;
    is_empty |= dims[i] == 0;
    *(view->strides[i] < 0 ? &lowest : &highest) += (view->shape[i] - 1) * view->strides[i];
    if (view->strides[i] % view->itemsize != 0) {
      PyErr_SetString(PyExc_ValueError, "strides of whole elements are wanted");
      status = TINY_ERROR_INVALID_ARGUMENT;
    }
  }
  if (is_empty) lowest = highest = 0;
  if (status == TINY_OK) {
    LEAVE_PYTHON(1)
    status = tiny_tensor_wrap(context, dtype, dims, strides, (size_t)view->ndim, (char *)view->buf + lowest,
                              (size_t)(highest - lowest + view->itemsize), -lowest / view->itemsize,
                              view->readonly ? TINY_FLAG_READ_ONLY : 0, release_buffer, view, out);
    RETURN_TO_PYTHON
  }
  if (status != TINY_OK) {
    PyBuffer_Release(view);
    PyMem_Free(view);
  }
  return status;
}

/* The context has an operator of these functions, a tuple of infer, run and maybe gradient, from now on. */
tiny_status tiny_add_operator(tiny_context *context, const char *domain, const char *name,
                              PyObject *functions) {
  tiny_custom_op *op = NULL;
  tiny_status status;
  Py_INCREF(functions);
  status = tiny_custom_op_create(domain, name, functions, drop_object, &op);
  if (status != TINY_OK) {
    Py_DECREF(functions);
    return status;
  }
  tiny_custom_op_set_infer(op, call_infer);
  tiny_custom_op_set_run(op, call_run);
  if (PyTuple_GET_SIZE(functions) > 2) tiny_custom_op_set_gradient(op, call_gradient);
  LEAVE_PYTHON(0)
  status = tiny_context_add_custom_op(context, op);
  RETURN_TO_PYTHON
  tiny_custom_op_release(op);
  return status;
}

/* Python's functions for the options; None: the library's own again. */
tiny_status tiny_set_log(tiny_options *options, PyObject *function) {
  tiny_status status = TINY_OK;
  if (function == Py_None) return tiny_options_set_log(options, NULL, NULL);
  status = keep_object(options, function);
  return status != TINY_OK ? status : tiny_options_set_log(options, call_log, function);
}

tiny_status tiny_set_allocator(tiny_options *options, PyObject *pair) {
  tiny_status status = TINY_OK;
  if (pair == Py_None) return tiny_options_set_allocator(options, NULL, NULL, NULL);
  status = keep_object(options, pair);
  if (status != TINY_OK) return status;
  return tiny_options_set_allocator(options, call_allocate, call_release, pair);
}

tiny_status tiny_set_thread_pool(tiny_options *options, PyObject *function) {
  tiny_status status = TINY_OK;
  if (function == Py_None) return tiny_options_set_thread_pool(options, NULL, NULL);
  status = keep_object(options, function);
  return status != TINY_OK ? status : tiny_options_set_thread_pool(options, call_pool, function);
}

tiny_status tiny_set_progress(tiny_options *options, PyObject *function) {
  tiny_status status = TINY_OK;
  if (function == Py_None) return tiny_options_set_progress(options, NULL, NULL);
  status = keep_object(options, function);
  return status != TINY_OK ? status : tiny_options_set_progress(options, call_progress, function);
}

/* Signals are looked at with None as well. */
tiny_status tiny_set_poll(tiny_options *options, PyObject *function) {
  tiny_status status = TINY_OK;
  if (function == Py_None) return tiny_options_set_poll(options, call_poll, NULL);
  status = keep_object(options, function);
  return status != TINY_OK ? status : tiny_options_set_poll(options, call_poll, function);
}

void tiny_set_main_thread(unsigned long thread) {
  main_thread = thread;
}

void tiny_set_error_class(PyObject *object) {
  Py_INCREF(object);
  Py_XDECREF(error_class);
  error_class = object;
}
%}
