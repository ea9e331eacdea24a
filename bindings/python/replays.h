/* What TinyJit looks at before it replays a program: the arguments of the call, and the places that
   the program took as they were (_guards.py).  Both are looked at with each call. */

/* ---- Arguments ---- */

static int is_scalar(PyObject* value) {
  return PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyUnicode_CheckExact(value) ||
         PyBool_Check(value) || value == Py_None || PyBytes_CheckExact(value) ||
         PyComplex_CheckExact(value);
}

/* A number or text of a class of its own, such as a variable with a value. */
static int is_peculiar(PyObject* value) {
  return PyLong_Check(value) || PyFloat_Check(value) || PyUnicode_Check(value) ||
         PyBytes_Check(value) || PyComplex_Check(value);
}

/* Takes over the reference; -1: an exception is set. */
static int append(PyObject* list, PyObject* value) {
  const int failed = value == NULL || PyList_Append(list, value) != 0;
  Py_XDECREF(value);
  return failed ? -1 : 0;
}

static int describe_tensor(PyObject* tensor, PyObject* key, PyObject* tensors) {
  tiny_dtype dtype = 0;
  PyObject* shape;
  if (dims_of(tensor) != NULL) return 1;
  shape = native_shape(NULL, tensor);
  for (Py_ssize_t i = 0; shape != NULL && i < PyTuple_GET_SIZE(shape); ++i)
    if (!PyLong_Check(PyTuple_GET_ITEM(shape, i))) {
      Py_DECREF(shape);
      return 1;
    }
  if (append(key, shape) != 0) return -1;
  tiny_tensor_dtype((tiny_tensor*)pointer_of(tensor), &dtype);
  return append(key, PyLong_FromLong(dtype)) != 0 ? -1 : PyList_Append(tensors, tensor);
}

/* Appends what tells the value apart to `key`, and its tensors to `tensors`.  1: it has something
   that takes another look than this one; -1: an exception is set. */
static int describe(PyObject* value, PyObject* key, PyObject* tensors) {
  int other = 0;
  if (PyList_Append(key, (PyObject*)Py_TYPE(value)) != 0) return -1;
  if (is_handle(kind_tiny_tensor, value)) return describe_tensor(value, key, tensors);
  if (is_scalar(value)) return PyList_Append(key, value);
  if (PyList_Check(value) || PyTuple_Check(value)) {
    if (append(key, PyLong_FromSsize_t(PySequence_Fast_GET_SIZE(value))) != 0) return -1;
    if (Py_EnterRecursiveCall(" in the arguments of a TinyJit")) return -1;
    for (Py_ssize_t i = 0; !other && i < PySequence_Fast_GET_SIZE(value); ++i)
      other = describe(PySequence_Fast_GET_ITEM(value, i), key, tensors);
    Py_LeaveRecursiveCall();
    return other;
  }
  if (PyDict_Check(value)) {
    Py_ssize_t at = 0;
    PyObject *name, *part;
    if (append(key, PyLong_FromSsize_t(PyDict_GET_SIZE(value))) != 0) return -1;
    if (Py_EnterRecursiveCall(" in the arguments of a TinyJit")) return -1;
    while (!other && PyDict_Next(value, &at, &name, &part))
      other = PyList_Append(key, name) != 0 ? -1 : describe(part, key, tensors);
    Py_LeaveRecursiveCall();
    return other;
  }
  if (is_peculiar(value)) return 1;
  return append(key, PyLong_FromVoidPtr(value)); /* itself; a program that knows it keeps it */
}

/* describe(first, arguments, keywords): (key, tensors) of a call, two keys being equal where a
   program for one is one for the other; None where that takes another look. */
static PyObject* native_describe(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
  PyObject *key, *tensors, *result = NULL;
  int other = count == 3 ? 0 : -1;
  if (other) return PyErr_Format(PyExc_TypeError, "describe(first, arguments, keywords)");
  key = PyList_New(0);
  tensors = PyList_New(0);
  if (key == NULL || tensors == NULL) other = -1;
  for (Py_ssize_t i = 0; !other && i < count; ++i) other = describe(arguments[i], key, tensors);
  if (other == 0) {
    PyObject* fixed = PyList_AsTuple(key);
    result = fixed == NULL ? NULL : PyTuple_Pack(2, fixed, tensors);
    Py_XDECREF(fixed);
  }
  Py_XDECREF(key);
  Py_XDECREF(tensors);
  if (other > 0) Py_RETURN_NONE;
  return result;
}

/* ---- Places ---- */

enum { place_entry, place_item, place_length, place_cell, place_call };

/* What a place (how, holder, key, was) holds now, a new reference; NULL without an exception:
 * nothing. */
static PyObject* held_in(PyObject* place) {
  PyObject *holder = PyTuple_GET_ITEM(place, 1), *key = PyTuple_GET_ITEM(place, 2);
  switch (PyLong_AsLong(PyTuple_GET_ITEM(place, 0))) {
    case place_entry:
      return Py_XNewRef(PyDict_GetItemWithError(holder, key));
    case place_item: {
      const Py_ssize_t index = PyLong_AsSsize_t(key);
      if (index >= PyObject_Size(holder)) return NULL;
      return PyList_Check(holder) || PyTuple_Check(holder)
                 ? Py_NewRef(PySequence_Fast_GET_ITEM(holder, index))
                 : PySequence_GetItem(holder, index); /* a deque */
    }
    case place_length:
      return PyLong_FromSsize_t(PyObject_Size(holder));
    case place_cell:
      return PyCell_Get(holder);
    default:
      return PyObject_CallNoArgs(holder);
  }
}

/* Whether the place holds the same: the same object, or an equal number or text; None is like
   nothing. -1: an exception is set. */
static int holds_still(PyObject* place, PyObject* gone) {
  PyObject *was = PyTuple_GET_ITEM(place, 3), *now = held_in(place);
  int same;
  if (now == NULL) return PyErr_Occurred() ? -1 : was == gone || was == Py_None;
  same = now == was;
  if (!same && Py_TYPE(now) == Py_TYPE(was) && is_peculiar(was))
    same = PyObject_RichCompareBool(now, was, Py_EQ);
  Py_DECREF(now);
  return same;
}

/* first_changed(places, gone): where the first place is that holds something else now; -1: nowhere.
 */
static PyObject* native_first_changed(PyObject* module, PyObject* const* arguments,
                                      Py_ssize_t count) {
  if (count != 2 || !PyList_CheckExact(arguments[0]))
    return PyErr_Format(PyExc_TypeError, "first_changed(places, gone)");
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(arguments[0]); ++i) {
    const int same = holds_still(PyList_GET_ITEM(arguments[0], i), arguments[1]);
    if (same < 0) return NULL;
    if (!same) return PyLong_FromSsize_t(i);
  }
  return PyLong_FromLong(-1);
}

static PyMethodDef replay_functions[] = {
    {"describe", (PyCFunction)(void (*)(void))native_describe, METH_FASTCALL,
     "describe(first, arguments, keywords): (key, tensors) of a call, or None."},
    {"first_changed", (PyCFunction)(void (*)(void))native_first_changed, METH_FASTCALL,
     "first_changed(places, gone): the index of the first that holds something else, or -1."},
    {NULL}};
