/* Tensors of the data that most are made of: lists of floats and ints, and contiguous arrays.  What
   is anything else the package looks at (_data.py). */

#include <math.h>

typedef struct {
  int64_t dims[TINY_RANK_MAX];
  int rank, known; /* axes; those whose size is known */
  int floats;      /* whether one element is a float */
  double* numbers; /* all elements; integers beyond 2^53 are not taken */
  size_t count, capacity;
} list_data;

/* Appends a number; 1: it is none that is dealt with here. */
static int add_number(list_data* data, PyObject* value) {
  double number;
  if (PyFloat_CheckExact(value)) {
    number = PyFloat_AS_DOUBLE(value);
    data->floats = 1;
  } else if (PyLong_CheckExact(value)) {
    int overflows = 0;
    const long long integer = PyLong_AsLongLongAndOverflow(value, &overflows);
    if (overflows || integer > (1LL << 53) || integer < -(1LL << 53)) return 1;
    number = (double)integer;
  } else {
    return 1;
  }
  if (data->count == data->capacity) {
    double* more =
        (double*)PyMem_Realloc(data->numbers, sizeof(double) * (data->capacity * 2 + 16));
    if (more == NULL) return 1;
    data->numbers = more;
    data->capacity = data->capacity * 2 + 16;
  }
  data->numbers[data->count++] = number;
  return 0;
}

static int add_list(list_data* data, PyObject* list, int depth) {
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(list);
  int other = depth >= TINY_RANK_MAX || size == 0;
  if (other) return 1;
  if (depth == data->known) {
    if (data->count > 0) return 1;
    data->dims[data->known++] = size;
  }
  if (data->dims[depth] != size) return 1;
  for (Py_ssize_t i = 0; !other && i < size; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(list, i);
    if (PyList_CheckExact(item) || PyTuple_CheckExact(item))
      other = add_list(data, item, depth + 1);
    else
      other = depth + 1 != data->known || add_number(data, item);
  }
  return other;
}

/* The elements in the numbers' own memory, as float32, int64 or int32; 1: one does not fit. */
static int pack_numbers(list_data* data, tiny_dtype dtype) {
  for (size_t i = 0; i < data->count; ++i) {
    const double number = data->numbers[i];
    if (dtype == TINY_FLOAT32) {
      const float narrow = (float)number;
      if (isinf(narrow) && !isinf(number)) return 1;
      memcpy((char*)data->numbers + i * sizeof narrow, &narrow, sizeof narrow);
    } else if (dtype == TINY_INT64) {
      const int64_t whole = (int64_t)number;
      memcpy((char*)data->numbers + i * sizeof whole, &whole, sizeof whole);
    } else if (dtype == TINY_INT32 && number >= INT32_MIN && number <= INT32_MAX) {
      const int32_t whole = (int32_t)number;
      memcpy((char*)data->numbers + i * sizeof whole, &whole, sizeof whole);
    } else {
      return 1;
    }
  }
  return 0;
}

/* The type of a buffer's format; 0: another one than those of plain numbers. */
static tiny_dtype dtype_of_format(const Py_buffer* view) {
  static const struct {
    char letter;
    int bytes;
    tiny_dtype dtype;
  } known[] = {{'f', 4, TINY_FLOAT32}, {'d', 8, TINY_FLOAT64}, {'e', 2, TINY_FLOAT16},
               {'?', 1, TINY_BOOL},    {'b', 1, TINY_INT8},    {'h', 2, TINY_INT16},
               {'i', 4, TINY_INT32},   {'l', 8, TINY_INT64},   {'q', 8, TINY_INT64},
               {'B', 1, TINY_UINT8},   {'H', 2, TINY_UINT16},  {'I', 4, TINY_UINT32},
               {'L', 8, TINY_UINT64},  {'Q', 8, TINY_UINT64}};
  if (view->format == NULL || view->format[0] == '\0' || view->format[1] != '\0') return 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (known[i].letter == view->format[0] && known[i].bytes == view->itemsize)
      return known[i].dtype;
  return 0;
}

/* A large copy is made without the interpreter's lock. */
static tiny_status make_tensor(PyObject* context, tiny_dtype dtype, const int64_t* dims, int rank,
                               const void* memory, size_t bytes, tiny_tensor** made) {
  tiny_status status;
  LEAVE_PYTHON(bytes < 4096)
  status = tiny_tensor_from_data((tiny_context*)pointer_of(context), dtype, dims, (size_t)rank,
                                 memory, bytes, made);
  RETURN_TO_PYTHON
  return status;
}

/* 1: the data is not dealt with here; -1: an exception is set. */
static int tensor_of_list(PyObject* context, PyObject* list, tiny_dtype of_floats,
                          tiny_dtype of_ints, tiny_tensor** made) {
  list_data data = {{0}};
  int other = add_list(&data, list, 0);
  const tiny_dtype dtype = data.floats ? of_floats : of_ints;
  if (!other) other = pack_numbers(&data, dtype);
  if (!other)
    other = check_status(make_tensor(context, dtype, data.dims, data.known, data.numbers,
                                     data.count * tiny_dtype_size(dtype), made));
  PyMem_Free(data.numbers);
  return other;
}

static int tensor_of_buffer(PyObject* context, PyObject* array, tiny_tensor** made) {
  int64_t dims[TINY_RANK_MAX];
  Py_buffer view;
  int other = 1;
  if (PyObject_GetBuffer(array, &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) {
    PyErr_Clear();
    return 1;
  }
  if (view.ndim <= TINY_RANK_MAX && dtype_of_format(&view) != 0) {
    for (int i = 0; i < view.ndim; ++i) dims[i] = view.shape[i];
    other = check_status(make_tensor(context, dtype_of_format(&view), dims, view.ndim, view.buf,
                                     (size_t)view.len, made));
  }
  PyBuffer_Release(&view);
  return other;
}

/* fill(tensor, context, data, dtype of floats, dtype of ints): whether the tensor has the data now;
   False: it is of another kind than those that are dealt with here. */
static PyObject* native_fill(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
  tiny_tensor* made = NULL;
  PyObject* data;
  handle* target;
  int other = 1;
  if (count != 5 || !is_handle(kind_tiny_tensor, arguments[0]) ||
      !is_handle(kind_tiny_context, arguments[1]))
    return PyErr_Format(PyExc_TypeError,
                        "fill(tensor, context, data, dtype of floats, dtype of ints)");
  target = (handle*)arguments[0];
  data = arguments[2];
  if (PyList_CheckExact(data) || PyTuple_CheckExact(data))
    other = tensor_of_list(arguments[1], data, (tiny_dtype)PyLong_AsLong(arguments[3]),
                           (tiny_dtype)PyLong_AsLong(arguments[4]), &made);
  else if (PyObject_CheckBuffer(data) && !PyBytes_Check(data) && !PyByteArray_Check(data) &&
           !is_handle(kind_tiny_tensor, data))
    other = tensor_of_buffer(arguments[1], data, &made);
  if (other < 0 || PyErr_Occurred()) return NULL;
  if (other) Py_RETURN_FALSE;
  drop_pointer(target);
  target->pointer = made;
  Py_INCREF(arguments[1]);
  Py_XSETREF(target->context, arguments[1]);
  Py_RETURN_TRUE;
}

static PyMethodDef creation_functions[] = {
    {"fill", (PyCFunction)(void (*)(void))native_fill, METH_FASTCALL,
     "fill(tensor, context, data, dtype of floats, dtype of ints): whether the tensor has the data "
     "now."},
    {NULL}};
