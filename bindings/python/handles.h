/* The Python objects of the library's handles, and the interpreter's lock around calls.

   An object owns a handle, and keeps the Context that it lives in.  Its type is a plain heap type,
   to which the package attaches methods.  What gradients need (_tape.py) is in the object's
   dictionary, which most tensors do not have: they cost one object. */
#include <structmember.h>

#if PY_VERSION_HEX < 0x030A0000
static PyObject* Py_NewRef(PyObject* object) {
  Py_INCREF(object);
  return object;
}

static PyObject* Py_XNewRef(PyObject* object) {
  Py_XINCREF(object);
  return object;
}
#endif

typedef struct {
  PyObject_HEAD const struct handle_kind* kind;
  void* pointer;     /* NULL before __init__ */
  PyObject* context; /* NULL: not known */
  PyObject *dict, *weak;
} handle;

typedef struct handle_kind {
  const char* name; /* of the class, in its module */
  void (*release)(void* pointer);
  void (*retain)(void* pointer); /* NULL: a handle has one owner */
} handle_kind;

/* KIND(type of tiny.h, class, tiny_x_retain or NULL) of each: tiny_generated.i. */
enum {
#define KIND(TYPE, NAME, RETAIN) kind_##TYPE,
  HANDLE_KINDS(KIND)
#undef KIND
      kind_count
};
static const handle_kind kinds[] = {
#define KIND(TYPE, NAME, RETAIN) \
  {"tiny.native." NAME, (void (*)(void*))TYPE##_release, (void (*)(void*))RETAIN},
    HANDLE_KINDS(KIND)
#undef KIND
};
static PyTypeObject* types[kind_count];

/* ---- The interpreter's lock ----
   A call gives it up, which costs as much as a small operation.  Those that only build or ask
   (%nothread in tiny.i) keep it, unless a thread is in the library without it: that one may
   have the context, and wait for the lock in a function of Python's. */
static int away; /* threads in the library without the lock; changes only with it */

#define LEAVE_PYTHON(is_short)          \
  PyThreadState* thread_state = NULL;   \
  if (!(is_short) || away > 0) {        \
    ++away;                             \
    thread_state = PyEval_SaveThread(); \
  }
#define RETURN_TO_PYTHON                \
  if (thread_state != NULL) {           \
    PyEval_RestoreThread(thread_state); \
    --away;                             \
  }

/* ---- Objects ---- */

/* A new object that owns the handle; None for NULL. */
static PyObject* new_handle(int kind, void* pointer) {
  handle* made;
  if (pointer == NULL) Py_RETURN_NONE;
  made = (handle*)types[kind]->tp_alloc(types[kind], 0);
  if (made == NULL) {
    kinds[kind].release(pointer);
    return NULL;
  }
  made->kind = &kinds[kind];
  made->pointer = pointer;
  return (PyObject*)made;
}

static int is_handle(int kind, PyObject* object) {
  return PyObject_TypeCheck(object, types[kind]);
}

static void* pointer_of(PyObject* object) {
  return ((handle*)object)->pointer;
}

/* The handle of an object of this kind, NULL for None; -1: TypeError that names the call. */
static int find_pointer(int kind, PyObject* object, void** pointer, const char* call,
                        int argument) {
  *pointer = NULL;
  if (object == Py_None) return 0;
  if (!is_handle(kind, object)) {
    PyErr_Format(PyExc_TypeError, "%s: a %s is wanted as argument %d, not %s", call,
                 strrchr(kinds[kind].name, '.') + 1, argument, Py_TYPE(object)->tp_name);
    return -1;
  }
  *pointer = pointer_of(object);
  return 0;
}

/* The end of a tensor is short while its Context lives, since no thread ends with it. */
static void drop_pointer(handle* self) {
  void* pointer = self->pointer;
  if (pointer == NULL) return;
  self->pointer = NULL;
  LEAVE_PYTHON(self->kind == &kinds[kind_tiny_tensor] && self->context != NULL)
  self->kind->release(pointer);
  RETURN_TO_PYTHON
}

static PyObject* handle_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  handle* made;
  int kind = 0;
  while (kind < kind_count && !PyType_IsSubtype(type, types[kind])) ++kind;
  if (kind == kind_count) return PyErr_Format(PyExc_TypeError, "%s has no handle", type->tp_name);
  made = (handle*)type->tp_alloc(type, 0);
  if (made != NULL) made->kind = &kinds[kind];
  return (PyObject*)made;
}

static int handle_traverse(PyObject* self, visitproc visit, void* arg) {
  handle* its = (handle*)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(its->context);
  Py_VISIT(its->dict);
  return 0;
}

static int handle_clear(PyObject* self) {
  Py_CLEAR(((handle*)self)->dict);
  return 0;
}

static void handle_dealloc(PyObject* self) {
  handle* its = (handle*)self;
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_TRASHCAN_BEGIN(self, handle_dealloc) if (its->weak != NULL) PyObject_ClearWeakRefs(self);
  drop_pointer(its);
  Py_CLEAR(its->dict);
  Py_CLEAR(its->context);
  type->tp_free(self);
  Py_DECREF(type);
  Py_TRASHCAN_END
}

static int handle_init(PyObject* self, PyObject* arguments, PyObject* keywords) {
  PyErr_Format(PyExc_AttributeError, "No constructor defined: %s", Py_TYPE(self)->tp_name);
  return -1;
}

static PyObject* get_context(PyObject* self, void* unused) {
  PyObject* context = ((handle*)self)->context;
  if (context == NULL) {
    PyErr_Format(PyExc_AttributeError, "%s has no context yet", Py_TYPE(self)->tp_name);
    return NULL;
  }
  return Py_NewRef(context);
}

static int set_context(PyObject* self, PyObject* context, void* unused) {
  Py_XINCREF(context);
  Py_XSETREF(((handle*)self)->context, context);
  return 0;
}

static PyObject* get_this(PyObject* self, void* unused) {
  return Py_NewRef(self);
}

/* The object has the other's handle from now on: both, where a handle can have several owners. */
static int set_this(PyObject* self, PyObject* other, void* unused) {
  handle* its = (handle*)self;
  void* pointer;
  if (other == NULL || find_pointer((int)(its->kind - kinds), other, &pointer, "this", 1) != 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_AttributeError, "this cannot be deleted");
    return -1;
  }
  if (pointer == its->pointer) return 0;
  if (pointer != NULL && its->kind->retain != NULL)
    its->kind->retain(pointer);
  else if (pointer != NULL)
    ((handle*)other)->pointer = NULL;
  drop_pointer(its);
  its->pointer = pointer;
  return 0;
}

static PyMemberDef handle_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(handle, dict), READONLY},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(handle, weak), READONLY},
    {NULL}};
static PyGetSetDef handle_fields[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict},
    {"context", get_context, set_context, "The context that this lives in."},
    {"this", get_this, set_this, "The handle; assigning another object shares that one's."},
    {NULL}};

static PyObject* handle_repr(PyObject* self) {
  return PyUnicode_FromFormat("<%s at %p>", Py_TYPE(self)->tp_name, pointer_of(self));
}

/* The types, with more slots for tensors, as members of the module; -1: an exception is set. */
static int add_types(PyObject* module, const PyType_Slot* of_tensors) {
  PyType_Slot slots[64] = {{Py_tp_new, (void*)handle_new},
                           {Py_tp_init, (void*)handle_init},
                           {Py_tp_dealloc, (void*)handle_dealloc},
                           {Py_tp_traverse, (void*)handle_traverse},
                           {Py_tp_clear, (void*)handle_clear},
                           {Py_tp_repr, (void*)handle_repr},
                           {Py_tp_hash, (void*)PyBaseObject_Type.tp_hash},
                           {Py_tp_members, handle_members},
                           {Py_tp_getset, handle_fields}};
  const int common = 9;
  for (int kind = 0; kind < kind_count; ++kind) {
    PyType_Spec spec = {kinds[kind].name, sizeof(handle), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
    memset(slots + common, 0, sizeof slots - common * sizeof *slots);
    for (int i = 0; kind == kind_tiny_tensor && of_tensors[i].slot != 0; ++i)
      slots[common + i] = of_tensors[i];
    types[kind] = (PyTypeObject*)PyType_FromSpec(&spec);
    if (types[kind] == NULL) return -1;
    Py_INCREF(types[kind]);
    if (PyModule_AddObject(module, strrchr(spec.name, '.') + 1, (PyObject*)types[kind]) != 0)
      return -1;
  }
  return 0;
}
