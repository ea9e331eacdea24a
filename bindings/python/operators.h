/* What every operation on tensors passes through: operands, results, and Python's operators.

   Tensors, floats and ints are dealt with here, without a frame of Python's; for anything else the
   package's functions are called (tiny_set_hooks). */

#define HOOKS(HOOK)                                                                      \
  HOOK(operand)   /* (source, value): a tensor of what is no tensor, float or int */     \
  HOOK(operator)  /* (name, left, right) where one is no tensor, float or int */         \
  HOOK(numbers)   /* (value): the list of integers of what is no list and no tuple */    \
  HOOK(number)    /* (value): the integer that stands for a dimension */                 \
  HOOK(dimension) /* (context, number): what stands for a dimension */                   \
  HOOK(carry)     /* (source, result): one of the same shape remembers `_dims`, too */   \
  HOOK(note)      /* (result): its gradient may be asked for, as tinygrad reads calls */ \
  HOOK(reading)   /* the class whose attribute `tinygrad` says whether calls are so read */
#define HOOK(NAME) hook_##NAME,
enum { HOOKS(HOOK) hook_count };
#undef HOOK
static PyObject* hooks[hook_count];
static PyObject *name_leaves, *name_requires_grad, *name_context, *name_dims, *name_tinygrad,
    *name_no_grad;

/* What a call has left: -1, an exception is set.  A signal's handler may have raised meanwhile. */
static int check_status(tiny_status status) {
  if (watch.is_on) watch_no_more();
  raise_kept();
  if (status == TINY_OK && !PyErr_Occurred()) return 0;
  if (!PyErr_Occurred()) raise_status(status);
  return -1;
}

/* ---- What gradients are traced by (_tape.py) ---- */

/* The leaves that a tensor was built of; NULL without an exception: none. */
static PyObject* leaves_of(PyObject* tensor) {
  PyObject *dict = ((handle*)tensor)->dict, *found;
  if (dict == NULL) return NULL;
  found = PyDict_GetItemWithError(dict, name_requires_grad);
  if (found != NULL && found != Py_None && found != Py_False) {
    PyObject* one = PyTuple_Pack(1, tensor);
    PyObject* leaves = one == NULL ? NULL : PyFrozenSet_New(one);
    Py_XDECREF(one);
    return leaves;
  }
  found = PyDict_GetItemWithError(dict, name_leaves);
  return found == NULL || PySet_GET_SIZE(found) == 0 ? NULL : Py_NewRef(found);
}

/* Adds the leaves of an operand to *leaves (NULL: none yet); -1: an exception is set. */
static int join_leaves(PyObject** leaves, PyObject* operand) {
  PyObject *more, *both;
  if (PyList_Check(operand) || PyTuple_Check(operand)) {
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(operand);
    for (Py_ssize_t i = 0; i < count; ++i)
      if (join_leaves(leaves, PySequence_Fast_GET_ITEM(operand, i)) != 0) return -1;
    return 0;
  }
  if (!is_handle(kind_tiny_tensor, operand)) return 0;
  more = leaves_of(operand);
  if (more == NULL) return PyErr_Occurred() ? -1 : 0;
  if (*leaves == NULL || *leaves == more) {
    Py_XSETREF(*leaves, more);
    return 0;
  }
  both = PyNumber_Or(*leaves, more);
  Py_DECREF(more);
  Py_SETREF(*leaves, both);
  return both == NULL ? -1 : 0;
}

/* Whether an attribute is true; -1: an exception is set. */
static int is_set(PyObject* object, PyObject* name) {
  PyObject* value = PyObject_GetAttr(object, name);
  const int is_true = value == NULL ? -1 : value == Py_False ? 0 : PyObject_IsTrue(value);
  Py_XDECREF(value);
  return is_true;
}

static int call_hook(int hook, PyObject* first, PyObject* second) {
  PyObject* result = PyObject_CallFunctionObjArgs(hooks[hook], first, second, NULL);
  Py_XDECREF(result);
  return result == NULL ? -1 : 0;
}

/* Whether calls are read as tinygrad reads them; -1: an exception is set. */
static int is_tinygrad(void) {
  return is_set(hooks[hook_reading], name_tinygrad);
}

/* Notes for a result what its operands were built of; only floats have gradients. */
static int trace(PyObject* result, PyObject* const* operands, Py_ssize_t count) {
  PyObject* leaves = NULL;
  tiny_dtype dtype = 0;
  int failed = 0, all = is_tinygrad();
  if (all != 0) return all < 0 ? -1 : call_hook(hook_note, result, NULL);
  for (Py_ssize_t i = 0; i < count && !failed; ++i) failed = join_leaves(&leaves, operands[i]);
  if (!failed && leaves != NULL) {
    const int none = is_set((PyObject*)types[kind_tiny_tensor], name_no_grad);
    tiny_tensor_dtype((tiny_tensor*)pointer_of(result), &dtype);
    failed = none < 0 ? -1 : 0;
    if (none == 0 && dtype >= TINY_FLOAT16 && dtype <= TINY_FLOAT64)
      failed = PyObject_SetAttr(result, name_leaves, leaves);
  }
  Py_XDECREF(leaves);
  return failed;
}

/* What a tensor remembers of sizes that follow from variables with values (_bound.py); borrowed. */
static PyObject* dims_of(PyObject* tensor) {
  PyObject* dict = is_handle(kind_tiny_tensor, tensor) ? ((handle*)tensor)->dict : NULL;
  return dict == NULL ? NULL : PyDict_GetItemWithError(dict, name_dims);
}

/* ---- Operands and results ---- */

/* The Context that an object lives in; a new reference, NULL: an exception is set. */
static PyObject* context_of(PyObject* source) {
  if (is_handle(kind_tiny_context, source)) return Py_NewRef(source);
  if (is_handle(kind_tiny_tensor, source) && ((handle*)source)->context != NULL)
    return Py_NewRef(((handle*)source)->context);
  return PyObject_GetAttr(source, name_context);
}

/* A tensor as it is; a number as a weak scalar of the source's context; None as NULL.  A new
   reference; NULL: an exception is set. */
static PyObject* operand_of(PyObject* source, PyObject* value) {
  tiny_tensor* made = NULL;
  tiny_status status = TINY_OK;
  PyObject* context;
  int overflows = 0;
  int64_t integer = 0;
  if (is_handle(kind_tiny_tensor, value) || value == Py_None) return Py_NewRef(value);
  if (PyLong_CheckExact(value)) integer = PyLong_AsLongLongAndOverflow(value, &overflows);
  if ((!PyFloat_CheckExact(value) && !PyLong_CheckExact(value)) || overflows)
    return PyObject_CallFunctionObjArgs(hooks[hook_operand], source, value, NULL);
  context = context_of(source);
  if (context == NULL) return NULL;
  if (!is_handle(kind_tiny_context, context)) {
    PyErr_SetString(PyExc_TypeError, "the operand has no context");
  } else {
    LEAVE_PYTHON(1)
    if (PyFloat_CheckExact(value))
      status =
          tiny_scalar_float((tiny_context*)pointer_of(context), PyFloat_AS_DOUBLE(value), &made);
    else
      status = tiny_scalar_int((tiny_context*)pointer_of(context), integer, &made);
    RETURN_TO_PYTHON
  }
  PyObject* result =
      PyErr_Occurred() || check_status(status) != 0 ? NULL : new_handle(kind_tiny_tensor, made);
  if (result != NULL) ((handle*)result)->context = context;
  if (result == NULL) Py_DECREF(context);
  return result;
}

/* The tensor that a call has made of operands, which live where the first does. */
static PyObject* made_of(tiny_status status, tiny_tensor* made, PyObject* const* operands,
                         Py_ssize_t count) {
  PyObject* result;
  if (check_status(status) != 0) {
    if (made != NULL) tiny_tensor_release(made);
    return NULL;
  }
  result = new_handle(kind_tiny_tensor, made);
  if (result == NULL || result == Py_None) return result;
  ((handle*)result)->context = Py_XNewRef(((handle*)operands[0])->context);
  for (Py_ssize_t i = 0; result != NULL && i < count; ++i)
    if (dims_of(operands[i]) != NULL && call_hook(hook_carry, operands[i], result) != 0)
      Py_CLEAR(result);
  if (result != NULL && trace(result, operands, count) != 0) Py_CLEAR(result);
  return result;
}

/* made(source, result, *operands): the result of a raw call, which remembers the context that it
   lives in, and what it was made of. */
static PyObject* native_made(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
  PyObject* result;
  if (count < 2) return PyErr_Format(PyExc_TypeError, "made(source, result, *operands)");
  result = arguments[1];
  if (arguments[0] != Py_None) {
    PyObject* context = context_of(arguments[0]);
    int failed = context == NULL;
    if (!failed) failed = PyObject_SetAttr(result, name_context, context);
    if (!failed && count > 2 && dims_of(arguments[0]) != NULL)
      failed = call_hook(hook_carry, arguments[0], result);
    Py_XDECREF(context);
    if (failed) return NULL;
  }
  if (is_handle(kind_tiny_tensor, result) && trace(result, arguments + 2, count - 2) != 0)
    return NULL;
  return Py_NewRef(result);
}

static PyObject* native_operand(PyObject* module, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2) return PyErr_Format(PyExc_TypeError, "operand(source, value)");
  return operand_of(arguments[0], arguments[1]);
}

/* The sizes of the axes; one that depends on variables is what the package makes of it. */
static PyObject* native_shape(PyObject* module, PyObject* tensor) {
  int64_t dims[TINY_RANK_MAX];
  size_t rank = 0;
  void* pointer;
  PyObject* shape;
  if (find_pointer(kind_tiny_tensor, tensor, &pointer, "shape", 1) != 0 ||
      check_status(tiny_tensor_shape((tiny_tensor*)pointer, dims, TINY_RANK_MAX, &rank)) != 0)
    return NULL;
  if (dims_of(tensor) != NULL) return Py_NewRef(dims_of(tensor));
  shape = PyTuple_New((Py_ssize_t)rank);
  for (size_t i = 0; shape != NULL && i < rank; ++i) {
    PyObject* size = PyLong_FromLongLong(dims[i]);
    if (size != NULL && dims[i] < 0) {
      PyObject* context = context_of(tensor);
      Py_SETREF(size, context == NULL ? NULL
                                      : PyObject_CallFunctionObjArgs(hooks[hook_dimension], context,
                                                                     size, NULL));
      Py_XDECREF(context);
    }
    if (size == NULL)
      Py_CLEAR(shape);
    else
      PyTuple_SET_ITEM(shape, (Py_ssize_t)i, size);
  }
  return shape;
}

/* ---- Lists of integers, and of what stands for dimensions ---- */

/* A new array of the integers of a sequence, or of one number; *count gets how many.  NULL: an
   exception is set. */
static int64_t* integers_of(PyObject* sequence, size_t* count) {
  PyObject* list = PyList_CheckExact(sequence) || PyTuple_CheckExact(sequence)
                       ? Py_NewRef(sequence)
                       : PyObject_CallFunctionObjArgs(hooks[hook_numbers], sequence, NULL);
  int64_t* values;
  Py_ssize_t length;
  if (list == NULL) return NULL;
  length = PySequence_Fast_GET_SIZE(list);
  values = (int64_t*)PyMem_Malloc(sizeof(int64_t) * (size_t)(length + 1));
  if (values == NULL) PyErr_NoMemory();
  for (Py_ssize_t i = 0; values != NULL && i < length; ++i) {
    PyObject* item = Py_NewRef(PySequence_Fast_GET_ITEM(list, i));
    if (!PyIndex_Check(item))
      Py_SETREF(item, PyObject_CallFunctionObjArgs(hooks[hook_number], item, NULL));
    if (item != NULL && !PyLong_Check(item)) Py_SETREF(item, PyNumber_Index(item));
    values[i] = item == NULL ? -1 : PyLong_AsLongLong(item);
    Py_XDECREF(item);
    if (values[i] == -1 && PyErr_Occurred()) {
      PyMem_Free(values);
      values = NULL;
    }
  }
  *count = (size_t)length;
  Py_DECREF(list);
  return values;
}

/* Fills `wanted` arrays that share one count from a tuple of sequences; None gives NULL. */
static int fill_lists(PyObject* tuple, Py_ssize_t wanted, int64_t** arrays, size_t* count) {
  int known = 0;
  *count = 0;
  if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != wanted) {
    PyErr_Format(PyExc_TypeError, "a tuple of %zd sequences is wanted", wanted);
    return -1;
  }
  for (Py_ssize_t i = 0; i < wanted; ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    size_t length = 0;
    if (item == Py_None) continue;
    arrays[i] = integers_of(item, &length);
    if (arrays[i] == NULL) return -1;
    if (known && length != *count) {
      PyErr_Format(PyExc_ValueError, "sequences of one length are wanted, not %zu and %zu", *count,
                   length);
      return -1;
    }
    known = 1;
    *count = length;
  }
  return 0;
}

/* ---- Python's operators ---- */

typedef tiny_status (*binary_call)(int32_t op, const tiny_tensor* a, const tiny_tensor* b,
                                   tiny_tensor** out);

static int is_plain(PyObject* value) {
  return PyFloat_CheckExact(value) || PyLong_CheckExact(value);
}

static tiny_status call_matmul(int32_t op, const tiny_tensor* a, const tiny_tensor* b,
                               tiny_tensor** out) {
  return tiny_matmul(a, b, out);
}

static PyObject* operate(const char* name, binary_call call, int32_t op, PyObject* left,
                         PyObject* right) {
  const int has_left = is_handle(kind_tiny_tensor, left);
  const int has_right = is_handle(kind_tiny_tensor, right);
  PyObject *operands[2], *result = NULL;
  tiny_tensor* made = NULL;
  tiny_status status;
  if ((!has_left && !is_plain(left)) || (!has_right && !is_plain(right)))
    return PyObject_CallFunction(hooks[hook_operator], "sOO", name, left, right);
  operands[0] = has_left ? Py_NewRef(left) : operand_of(right, left);
  operands[1] = has_right ? Py_NewRef(right) : operand_of(left, right);
  if (operands[0] != NULL && operands[1] != NULL) {
    LEAVE_PYTHON(1)
    status = call(op, (tiny_tensor*)pointer_of(operands[0]), (tiny_tensor*)pointer_of(operands[1]),
                  &made);
    RETURN_TO_PYTHON
    result = made_of(status, made, operands, 2);
  }
  Py_XDECREF(operands[0]);
  Py_XDECREF(operands[1]);
  return result;
}

static PyObject* operate_alone(int32_t op, PyObject* operand) {
  tiny_tensor* made = NULL;
  tiny_status status;
  LEAVE_PYTHON(1)
  status = tiny_unary(op, (tiny_tensor*)pointer_of(operand), &made);
  RETURN_TO_PYTHON
  return made_of(status, made, &operand, 1);
}

#define BINARY(NAME, CALL, OP)                                      \
  static PyObject* tensor_##NAME(PyObject* left, PyObject* right) { \
    return operate(#NAME, (binary_call)CALL, OP, left, right);      \
  }
BINARY(add, tiny_binary, TINY_ADD)
BINARY(sub, tiny_binary, TINY_SUB)
BINARY(mul, tiny_binary, TINY_MUL)
BINARY(truediv, tiny_binary, TINY_DIV)
BINARY(floordiv, tiny_binary, TINY_FLOOR_DIV)
BINARY(mod, tiny_binary, TINY_FLOOR_MOD)
BINARY(and, tiny_binary, TINY_AND)
BINARY(or, tiny_binary, TINY_OR)
BINARY(xor, tiny_binary, TINY_XOR)
BINARY(lshift, tiny_binary, TINY_SHL)
BINARY(rshift, tiny_binary, TINY_SHR)
BINARY(matmul, call_matmul, 0)
#undef BINARY

static PyObject* tensor_pow(PyObject* left, PyObject* right, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  /* Integers have no negative powers: the method says so. */
  if (PyLong_CheckExact(right) && is_handle(kind_tiny_tensor, left) && Py_SIZE(right) < 0)
    return PyObject_CallMethod(left, "pow", "O", right);
  return operate("pow", (binary_call)tiny_binary, TINY_POW, left, right);
}

static PyObject* tensor_compare(PyObject* left, PyObject* right, int sign) {
  static const struct {
    const char* name;
    int32_t op;
  } ops[] = {[Py_LT] = {"lt", TINY_LT}, [Py_LE] = {"le", TINY_LE}, [Py_EQ] = {"eq", TINY_EQ},
             [Py_NE] = {"ne", TINY_NE}, [Py_GT] = {"gt", TINY_GT}, [Py_GE] = {"ge", TINY_GE}};
  return operate(ops[sign].name, (binary_call)tiny_compare, ops[sign].op, left, right);
}

#define UNARY(NAME, OP)                               \
  static PyObject* tensor_##NAME(PyObject* operand) { \
    return operate_alone(OP, operand);                \
  }
UNARY(neg, TINY_NEG)
UNARY(abs, TINY_ABS)
UNARY(invert, TINY_NOT)
#undef UNARY

static const PyType_Slot tensor_slots[] = {{Py_nb_add, (void*)tensor_add},
                                           {Py_nb_subtract, (void*)tensor_sub},
                                           {Py_nb_multiply, (void*)tensor_mul},
                                           {Py_nb_true_divide, (void*)tensor_truediv},
                                           {Py_nb_floor_divide, (void*)tensor_floordiv},
                                           {Py_nb_remainder, (void*)tensor_mod},
                                           {Py_nb_power, (void*)tensor_pow},
                                           {Py_nb_and, (void*)tensor_and},
                                           {Py_nb_or, (void*)tensor_or},
                                           {Py_nb_xor, (void*)tensor_xor},
                                           {Py_nb_lshift, (void*)tensor_lshift},
                                           {Py_nb_rshift, (void*)tensor_rshift},
                                           {Py_nb_matrix_multiply, (void*)tensor_matmul},
                                           {Py_nb_negative, (void*)tensor_neg},
                                           {Py_nb_absolute, (void*)tensor_abs},
                                           {Py_nb_invert, (void*)tensor_invert},
                                           {Py_tp_richcompare, (void*)tensor_compare},
                                           {0, NULL}};

/* ---- Members of the module beside tiny.h's functions ---- */

static PyObject* native_set_hooks(PyObject* module, PyObject* functions) {
#define HOOK(NAME) #NAME,
  static const char* const names[] = {HOOKS(HOOK)};
#undef HOOK
  for (int i = 0; i < hook_count; ++i) {
    PyObject* hook = PyMapping_GetItemString(functions, names[i]);
    if (hook == NULL) return NULL;
    Py_XSETREF(hooks[i], hook);
  }
  Py_RETURN_NONE;
}

static PyMethodDef native_functions[] = {
    {"made", (PyCFunction)(void (*)(void))native_made, METH_FASTCALL,
     "made(source, result, *operands): the result of a raw call, with its context and its leaves."},
    {"operand", (PyCFunction)(void (*)(void))native_operand, METH_FASTCALL,
     "operand(source, value): a tensor as it is, a number as a weak scalar of the source's "
     "context."},
    {"shape", native_shape, METH_O, "shape(tensor): the sizes of the axes."},
    {"set_hooks", native_set_hooks, METH_O, "set_hooks(functions): by their names."},
    {NULL}};

static int add_members(PyObject* module) {
  static const struct {
    PyObject** name;
    const char* text;
  } names[] = {{&name_leaves, "_leaves"},    {&name_requires_grad, "_requires_grad"},
               {&name_context, "context"},   {&name_dims, "_dims"},
               {&name_tinygrad, "tinygrad"}, {&name_no_grad, "no_grad"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    *names[i].name = PyUnicode_InternFromString(names[i].text);
    if (*names[i].name == NULL) return -1;
  }
  return add_types(module, tensor_slots) != 0 ? -1
                                              : PyModule_AddFunctions(module, native_functions);
}
