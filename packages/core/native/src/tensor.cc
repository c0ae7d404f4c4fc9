// The Tensor type: a contiguous block of one dtype, or a symbolic value while a graph is captured.
#include <vector>

#include "core.h"
#include "tensor_parts.h"

namespace mycelia {

PyTypeObject* TensorType = nullptr;
PyObject* dtype_objects[MYC_DTYPE_COUNT];
const int64_t kItemSize[MYC_DTYPE_COUNT] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
Hooks hooks;

namespace {

constexpr int kFreeTensors = 256;
Tensor* free_tensors[kFreeTensors];
int n_free_tensors = 0;

// ---- life of a Tensor --------------------------------------------------------------------------------------------

void clear_content(Tensor* t) {
  Storage* s = t->storage;
  t->storage = nullptr;
  release(s);
  Node* node = t->node;
  t->node = nullptr;
  Py_XDECREF(node);
  Py_CLEAR(t->traced);
}

void init_fields(Tensor* t) {
  t->storage = nullptr;
  t->node = nullptr;
  t->traced = nullptr;
  t->weakrefs = nullptr;
  t->dict = nullptr;
  t->node_output = 0;
  t->flags = 0;
}

void tensor_dealloc(PyObject* self) {
  Tensor* t = as_tensor(self);
  PyObject_GC_UnTrack(self);
  if (t->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(t->dict);
  clear_content(t);
  PyTypeObject* type = Py_TYPE(self);
  if (type == TensorType) {
    if (n_free_tensors < kFreeTensors) {
      free_tensors[n_free_tensors++] = t;
    } else {
      PyObject_GC_Del(self);
    }
  } else {
    type->tp_free(self);
  }
  Py_DECREF(type);  // subtype_dealloc leaves this to the base when the base is a heap type
}

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(as_tensor(self)->dict);
  Py_VISIT(Py_TYPE(self));
  return 0;
}

int tensor_clear(PyObject* self) {
  Py_CLEAR(as_tensor(self)->dict);
  return 0;
}

void track_dict(PyObject* self) {
  if (as_tensor(self)->dict && !PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
}

int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  const int result = PyObject_GenericSetAttr(self, name, value);
  track_dict(self);
  return result;
}

PyObject* get_dict(PyObject* self, void* context) {
  PyObject* dict = PyObject_GenericGetDict(self, context);
  track_dict(self);
  return dict;
}

// Subclasses (Parameter) come here; Tensor itself is made by tensor_vectorcall.
PyObject* tensor_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type == TensorType ? reinterpret_cast<PyObject*>(tensor_object()) : type->tp_alloc(type, 0);
  if (!self) return nullptr;
  init_fields(as_tensor(self));
  std::memset(&as_tensor(self)->t, 0, sizeof(myc_tensor));
  return self;
}

// Tensor(...) of a plain native array is copied right here; everything else is decided in Python.
PyObject* tensor_vectorcall(PyObject*, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  if (n == 1 && !kwnames && is_native_array(args[0])) return reinterpret_cast<PyObject*>(tensor_from_array(args[0], false));
  if (!hooks.construct) {
    PyErr_SetString(PyExc_RuntimeError, "mycelia.engine._C is used before mycelia.engine.tensors.tensor was imported");
    return nullptr;
  }
  PyObject* made = PyObject_Vectorcall(hooks.construct, args, nargsf & ~PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames);
  if (!made) place_error("Tensor");
  return made;
}

// ---- attributes --------------------------------------------------------------------------------------------------

// The shape of the graph value that a tensor stands for: its sizes may be symbolic (ir/symint.py). NULL without an error: there is
// no such value.
PyObject* traced_shape(PyObject* self) {
  PyObject* value = as_tensor(self)->traced;
  if (!value) return nullptr;
  OwnedRef type(PyObject_GetAttrString(value, "type"));
  return type ? PyObject_GetAttrString(type.p, "shape") : nullptr;
}
PyObject* get_shape(PyObject* self, void*) {
  PyObject* shape = traced_shape(self);
  return shape || PyErr_Occurred() ? shape : shape_tuple(as_tensor(self)->t);
}
PyObject* get_dtype(PyObject* self, void*) {
  PyObject* d = dtype_objects[as_tensor(self)->t.dtype];
  if (!d) Py_RETURN_NONE;
  Py_INCREF(d);
  return d;
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(as_tensor(self)->t.rank); }
PyObject* get_size(PyObject* self, void*) {
  OwnedRef shape(traced_shape(self));
  if (!shape) return PyErr_Occurred() ? nullptr : PyLong_FromLongLong(as_tensor(self)->t.size);
  OwnedRef size(PyLong_FromLong(1));
  for (Py_ssize_t i = 0; size && i < PyTuple_GET_SIZE(shape.p); ++i) {
    PyObject* product = PyNumber_Multiply(size.p, PyTuple_GET_ITEM(shape.p, i));
    Py_XSETREF(size.p, product);
  }
  return size.take();
}
PyObject* get_itemsize(PyObject* self, void*) { return PyLong_FromLongLong(kItemSize[as_tensor(self)->t.dtype]); }
PyObject* get_nbytes(PyObject* self, void*) {
  OwnedRef size(get_size(self, nullptr)), item(PyLong_FromLongLong(kItemSize[as_tensor(self)->t.dtype]));
  return size && item ? PyNumber_Multiply(size.p, item.p) : nullptr;
}
PyObject* get_traced(PyObject* self, void*) {
  PyObject* v = as_tensor(self)->traced ? as_tensor(self)->traced : Py_None;
  Py_INCREF(v);
  return v;
}
PyObject* get_node(PyObject* self, void*) {
  PyObject* v = as_tensor(self)->node ? reinterpret_cast<PyObject*>(as_tensor(self)->node) : Py_None;
  Py_INCREF(v);
  return v;
}
int set_node(PyObject* self, PyObject* value, void*) {
  Tensor* t = as_tensor(self);
  Node* fresh = nullptr;
  if (value && value != Py_None) {
    if (Py_TYPE(value) != NodeType) {
      PyErr_SetString(PyExc_TypeError, "Tensor._node must be a tape node or None");
      return -1;
    }
    Py_INCREF(value);
    fresh = reinterpret_cast<Node*>(value);
  }
  Node* old = t->node;
  t->node = fresh;
  t->node_output = 0;
  Py_XDECREF(old);
  return 0;
}
PyObject* get_node_output(PyObject* self, void*) { return PyLong_FromLong(as_tensor(self)->node_output); }
PyObject* get_tape_place(PyObject* self, void*) {
  const Tensor* t = as_tensor(self);
  if (!t->node) Py_RETURN_NONE;
  return Py_BuildValue("(Oi)", reinterpret_cast<PyObject*>(t->node), static_cast<int>(t->node_output));
}
int set_tape_place(PyObject* self, PyObject* value, void*) {
  if (!value || value == Py_None) return set_node(self, Py_None, nullptr);
  PyObject* node;
  int output;
  if (!PyTuple_Check(value)) {
    PyErr_SetString(PyExc_TypeError, "Tensor._tape_place must be (tape node, number of its output) or None");
    return -1;
  }
  if (!PyArg_ParseTuple(value, "Oi", &node, &output) || set_node(self, node, nullptr) < 0) return -1;
  as_tensor(self)->node_output = output;
  return 0;
}
PyObject* get_initialized(PyObject* self, void*) {
  return PyBool_FromLong(as_tensor(self)->storage != nullptr || as_tensor(self)->traced != nullptr);
}
PyObject* get_is_parameter(PyObject* self, void*) { return PyBool_FromLong(as_tensor(self)->flags & kParameter); }
int set_is_parameter(PyObject* self, PyObject* value, void*) {
  const int truth = value ? PyObject_IsTrue(value) : 0;
  if (truth < 0) return -1;
  as_tensor(self)->flags = truth ? as_tensor(self)->flags | kParameter : as_tensor(self)->flags & ~kParameter;
  return 0;
}
PyObject* get_data_ptr(PyObject* self, void*) { return PyLong_FromVoidPtr(as_tensor(self)->t.data); }
PyObject* get_device(PyObject* self, void*) {
  const Storage* s = as_tensor(self)->storage;
  return PyLong_FromLong(s ? s->device : kHost);
}

PyGetSetDef getset[] = {
    {"shape", get_shape, nullptr, "Sizes of the dimensions, a tuple of int.", nullptr},
    {"dtype", get_dtype, nullptr, "Element type.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of dimensions.", nullptr},
    {"size", get_size, nullptr, "Number of elements.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"traced", get_traced, nullptr, "The ir.Value this tensor stands for while a graph is captured, else None.", nullptr},
    {"_node", get_node, set_node, "Tape node that produced this tensor, or None.", nullptr},
    {"_node_output", get_node_output, nullptr, "Which output of the tape node this tensor is.", nullptr},
    {"_tape_place", get_tape_place, set_tape_place, "(tape node, which of its outputs), or None: to keep and to give back.", nullptr},
    {"_is_parameter", get_is_parameter, set_is_parameter, "Reads inside a trace become graph inputs.", nullptr},
    {"_has_value", get_initialized, nullptr, "False for a tensor whose memory was not set yet.", nullptr},
    {"_data_ptr", get_data_ptr, nullptr, "Address of the first element.", nullptr},
    {"_device", get_device, nullptr, "Number of the device in whose memory it lies; 0: the host.", nullptr},
    {"__dict__", get_dict, PyObject_GenericSetDict, "Attributes that were set on this tensor.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

bool has_data(Tensor* t) {
  if (t->storage) return true;
  if (t->traced && hooks.concretize) {
    OwnedRef r(PyObject_CallOneArg(hooks.concretize, reinterpret_cast<PyObject*>(t)));
    if (r && t->storage) return true;  // a Parameter that another thread's capture has given back
    if (r) PyErr_SetString(PyExc_RuntimeError, "a tensor without data was used as a value");
    return false;
  }
  PyErr_SetString(PyExc_RuntimeError, "the tensor has no data: it was not initialised (call init_data() first)");
  place_error("Tensor");
  return false;
}

namespace {

PyObject* method_assign(PyObject* self, PyObject* other) {
  if (!is_tensor(other)) {
    PyErr_Format(PyExc_TypeError, "Tensor._assign: expected a Tensor, but got %s", Py_TYPE(other)->tp_name);
    return nullptr;
  }
  if (!tensor_take(as_tensor(self), as_tensor(other))) return nullptr;
  Py_INCREF(self);
  return self;
}

PyObject* method_detach(PyObject* self, PyObject*) {
  Tensor* t = as_tensor(self);
  Tensor* out = tensor_object();
  if (!out) return nullptr;
  out->t = t->t;
  if (t->storage) {
    retain(t->storage);
    out->storage = t->storage;
  }
  Py_XINCREF(t->traced);
  out->traced = t->traced;
  return reinterpret_cast<PyObject*>(out);
}

PyObject* call_hook(PyObject* hook, const char* name, PyObject* const* args, size_t n) {
  if (!hook) {
    PyErr_Format(PyExc_RuntimeError, "%s is used before mycelia.engine.tensors.tensor was imported", name);
    return nullptr;
  }
  PyObject* result = PyObject_Vectorcall(hook, args, n, nullptr);
  if (!result) place_error(name);
  return result;
}

PyObject* get_item(PyObject* self, PyObject* key) {
  PyObject* args[2] = {self, key};
  return call_hook(hooks.getitem, "Tensor.__getitem__", args, 2);
}
PyObject* sequence_item(PyObject* self, Py_ssize_t index) {
  OwnedRef key(PyLong_FromSsize_t(index));
  return key ? get_item(self, key.p) : nullptr;
}
int set_item(PyObject* self, PyObject* key, PyObject* value) {
  if (!value) {
    PyErr_SetString(PyExc_TypeError, "elements of a Tensor cannot be deleted");
    place_error("Tensor.__delitem__");
    return -1;
  }
  PyObject* args[3] = {self, key, value};
  OwnedRef r(call_hook(hooks.setitem, "Tensor.__setitem__", args, 3));
  return r ? 0 : -1;
}
PyObject* repr(PyObject* self) { return call_hook(hooks.repr, "Tensor.__repr__", &self, 1); }
PyObject* str(PyObject* self) { return call_hook(hooks.str, "Tensor.__str__", &self, 1); }

Py_ssize_t length(PyObject* self) {
  const myc_tensor& t = as_tensor(self)->t;
  if (t.rank == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  if (t.shape[0] < 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a tensor whose first size is known only when the graph runs");
    return -1;
  }
  OwnedRef shape(traced_shape(self));
  if (PyErr_Occurred()) return -1;
  return shape ? PyNumber_AsSsize_t(PyTuple_GET_ITEM(shape.p, 0), PyExc_OverflowError) : t.shape[0];
}

Py_hash_t hash(PyObject* self) {
  if (as_tensor(self)->traced) {  // one that stands for a Python number would be found by its value
    OwnedRef number(PyObject_GetAttrString(as_tensor(self)->traced, "is_number"));
    if (!number) PyErr_Clear();
    else if (number.p == Py_True && !has_data(as_tensor(self))) return -1;
  }
  return static_cast<Py_hash_t>(reinterpret_cast<uintptr_t>(self) >> 4);
}

PyObject* method_reduce(PyObject* self, PyObject*) {
  Tensor* t = as_tensor(self);
  if (!t->storage && !t->traced) {  // a type without a value
    OwnedRef types(PyImport_ImportModule("mycelia.engine.tensors.tensor"));
    OwnedRef rebuild_type(types ? PyObject_GetAttrString(types.p, "_rebuild_type") : nullptr);
    OwnedRef shape(rebuild_type ? PyObject_GetAttrString(self, "shape") : nullptr);
    return shape ? Py_BuildValue("(O(OO))", rebuild_type.p, dtype_objects[t->t.dtype], shape.p) : nullptr;
  }
  if (!has_data(t)) return nullptr;
  OwnedRef array(tensor_to_array(as_tensor(self)));
  if (!array) return nullptr;
  OwnedRef rebuild(nullptr);
  OwnedRef module(PyImport_ImportModule("mycelia.engine.tensors.tensor"));
  if (!module) return nullptr;
  rebuild.p = PyObject_GetAttrString(module.p, "_rebuild");
  if (!rebuild) return nullptr;
  OwnedRef copy(PyObject_CallMethod(array.p, "copy", nullptr));
  if (!copy) return nullptr;
  return Py_BuildValue("(O(OO))", rebuild.p, copy.p, dtype_objects[as_tensor(self)->t.dtype]);
}

PyMethodDef methods[] = {
    {"asnumpy", method_asnumpy, METH_NOARGS,
     "The elements as a numpy.ndarray that shares this tensor's memory; a copy where that is a device's, and of bfloat16, as float32."},
    {"numpy", method_asnumpy, METH_NOARGS,
     "The elements as a numpy.ndarray that shares this tensor's memory; a copy where that is a device's, and of bfloat16, as float32."},
    {"item", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(method_item)), METH_FASTCALL, "One element as a Python number."},
    {"from_numpy", method_from_numpy, METH_O | METH_STATIC, "A Tensor that shares the memory of a numpy.ndarray; one that is not contiguous, aligned and writable is copied."},
    {"_bits", method_bits, METH_NOARGS, "Like asnumpy, but bfloat16 comes as its uint16 bit pattern."},
    {"_assign", method_assign, METH_O, "Becomes the other tensor: its memory, shape, dtype and tape node."},
    {"_detach", method_detach, METH_NOARGS, "The same memory without tape node."},
    {"__array__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(method_array)), METH_VARARGS | METH_KEYWORDS, "NumPy conversion."},
    {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(method_dlpack)), METH_VARARGS | METH_KEYWORDS, "DLPack capsule that shares memory."},
    {"__dlpack_device__", method_dlpack_device, METH_NOARGS, "(device type, device id) of DLPack."},
    {"_from_dlpack", method_from_dlpack, METH_O | METH_STATIC, "A Tensor that shares the memory of a DLPack capsule."},
    {"__reduce__", method_reduce, METH_NOARGS, "Pickle support."},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(Tensor, weakrefs), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(Tensor, dict), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

#define SLOT(name, fn) {name, reinterpret_cast<void*>(fn)}
const PyType_Slot base_slots[] = {
    SLOT(Py_tp_dealloc, tensor_dealloc),
    SLOT(Py_tp_new, tensor_new),
    SLOT(Py_tp_traverse, tensor_traverse),
    SLOT(Py_tp_clear, tensor_clear),
    SLOT(Py_tp_setattro, set_attribute),
    SLOT(Py_tp_methods, methods),
    SLOT(Py_tp_getset, getset),
    SLOT(Py_tp_members, members),
    SLOT(Py_tp_repr, repr),
    SLOT(Py_tp_str, str),
    SLOT(Py_tp_hash, hash),
    SLOT(Py_nb_int, to_int),
    SLOT(Py_nb_float, to_float),
    SLOT(Py_nb_index, to_index),
    SLOT(Py_nb_bool, to_bool),
    SLOT(Py_mp_subscript, get_item),
    SLOT(Py_mp_ass_subscript, set_item),
    SLOT(Py_mp_length, length),
    SLOT(Py_sq_length, length),
    SLOT(Py_sq_item, sequence_item),  // NumPy takes sizes from sequences only
    SLOT(Py_bf_getbuffer, get_buffer),
    SLOT(Py_bf_releasebuffer, release_buffer),
    {Py_tp_doc, const_cast<char*>("An n-dimensional array of one dtype, the value every op works on.")},
};
#undef SLOT
// All slots of the type: those of this file, then the operators.
PyTypeObject* make_type() {
  constexpr int kBase = sizeof(base_slots) / sizeof(base_slots[0]);
  std::vector<PyType_Slot> slots(base_slots, base_slots + kBase);
  slots.insert(slots.end(), operator_slots, operator_slots + operator_slot_count);
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"mycelia.Tensor", sizeof(Tensor), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

PyObject* set_dtypes(PyObject*, PyObject* list) {
  for (int i = 0; i < MYC_DTYPE_COUNT; ++i) {
    PyObject* d = PySequence_GetItem(list, i);
    if (!d) return nullptr;
    Py_XSETREF(dtype_objects[i], d);
  }
  Py_RETURN_NONE;
}

bool parse_shape(PyObject* shape, int32_t* rank, int64_t* out) {
  OwnedRef fast(PySequence_Fast(shape, "shape must be a tuple or list of int"));
  if (!fast) return false;
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.p);
  if (n > MYC_MAX_RANK) {
    PyErr_Format(PyExc_ValueError, "a tensor has at most %d dimensions, but shape is %R", MYC_MAX_RANK, shape);
    return false;
  }
  *rank = static_cast<int32_t>(n);
  for (Py_ssize_t i = 0; i < n; ++i) {
    out[i] = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(fast.p, i));
    if (out[i] == -1 && PyErr_Occurred()) return false;
  }
  return true;
}

// empty(dtype, shape, device=0): fresh memory, content undefined.
PyObject* module_empty(PyObject*, PyObject* args) {
  PyObject *dtype, *shape;
  int device = kHost;
  if (!PyArg_ParseTuple(args, "OO|i", &dtype, &shape, &device) || !is_device(device)) return nullptr;
  int32_t rank;
  int64_t dims[MYC_MAX_RANK];
  const int32_t code = dtype_code(dtype);
  if (code < 0 || !parse_shape(shape, &rank, dims)) return nullptr;
  for (int i = 0; i < rank; ++i)
    if (dims[i] < 0) return PyErr_Format(PyExc_ValueError, "a tensor's sizes must not be negative, but shape is %R", shape);
  return reinterpret_cast<PyObject*>(tensor_empty(code, rank, dims, device));
}

// on_device(tensor, device): itself if it lies there, else a copy.
PyObject* module_on_device(PyObject*, PyObject* args) {
  PyObject* tensor;
  int device;
  if (!PyArg_ParseTuple(args, "O!i", TensorType, &tensor, &device) || !is_device(device) || !has_data(as_tensor(tensor))) return nullptr;
  return reinterpret_cast<PyObject*>(tensor_on(as_tensor(tensor), device));
}

// make_traced(value, dtype, shape): a tensor that stands for an ir.Value; sizes may be -1.
PyObject* module_make_traced(PyObject*, PyObject* args) {
  PyObject *value, *dtype, *shape;
  if (!PyArg_ParseTuple(args, "OOO", &value, &dtype, &shape)) return nullptr;
  const int32_t code = dtype_code(dtype);
  if (code < 0) return nullptr;
  Tensor* t = tensor_object();
  if (!t) return nullptr;
  t->t.data = nullptr;
  t->t.dtype = code;
  if (!parse_shape(shape, &t->t.rank, t->t.shape)) {
    Py_DECREF(t);
    return nullptr;
  }
  t->t.size = count_elements(t->t.rank, t->t.shape);
  if (value != Py_None) {  // None: a type without a value, as for Cell.set_inputs
    Py_INCREF(value);
    t->traced = value;
  }
  return reinterpret_cast<PyObject*>(t);
}

PyMethodDef functions[] = {
    {"set_operator", set_operator, METH_VARARGS, "set_operator(name, op): the Op behind a Tensor operator."},
    {"set_dtypes", set_dtypes, METH_O, "set_dtypes(list): DType objects by code."},
    {"empty", module_empty, METH_VARARGS, "empty(dtype, shape, device=0): a Tensor with undefined content."},
    {"on_device", module_on_device, METH_VARARGS, "on_device(tensor, device): the tensor if it lies there, else a copy without history."},
    {"make_traced", module_make_traced, METH_VARARGS, "make_traced(value, dtype, shape): a Tensor that stands for an ir.Value."},
    {"from_array", module_from_array, METH_VARARGS, "from_array(array, dtype, share): a Tensor of the array's bits."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

constexpr int64_t kTooMany = int64_t(1) << 56;  // stands for a size that overflows: the allocator refuses it

int64_t count_elements(int32_t rank, const int64_t* shape) {
  int64_t n = 1;
  for (int32_t i = 0; i < rank; ++i)
    if (__builtin_mul_overflow(n, shape[i], &n)) n = kTooMany;
  return n;
}

Tensor* tensor_object() {
  Tensor* t;
  if (n_free_tensors) {
    t = free_tensors[--n_free_tensors];
    PyObject_Init(reinterpret_cast<PyObject*>(t), TensorType);
  } else {
    t = PyObject_GC_New(Tensor, TensorType);
    if (!t) return nullptr;
  }
  init_fields(t);
  return t;
}

namespace {

// Without memory; `bytes`: how much it needs.
inline Tensor* tensor_of_type(int32_t dtype, int32_t rank, const int64_t* shape, int64_t* bytes) {
  Tensor* t = tensor_object();
  if (!t) return nullptr;
  t->t.dtype = dtype;
  t->t.rank = rank;
  for (int32_t i = 0; i < rank; ++i) t->t.shape[i] = shape[i];
  t->t.size = count_elements(rank, shape);
  if (__builtin_mul_overflow(t->t.size, kItemSize[dtype], bytes)) *bytes = kTooMany;
  return t;
}

inline Tensor* with_memory(Tensor* t, Storage* memory) {
  t->storage = memory;
  if (!memory) {
    Py_DECREF(t);
    return nullptr;
  }
  t->t.data = memory->data;
  return t;
}

}  // namespace

Tensor* tensor_empty(int32_t dtype, int32_t rank, const int64_t* shape) {
  int64_t bytes;
  Tensor* t = tensor_of_type(dtype, rank, shape, &bytes);
  return t ? with_memory(t, storage_alloc(bytes)) : nullptr;
}

Tensor* tensor_empty(int32_t dtype, int32_t rank, const int64_t* shape, int32_t device) {
  int64_t bytes;
  Tensor* t = tensor_of_type(dtype, rank, shape, &bytes);
  return t ? with_memory(t, device_alloc(device, bytes)) : nullptr;
}

Tensor* tensor_view(Tensor* base, int32_t rank, const int64_t* shape, int64_t offset_bytes) {
  Tensor* t = tensor_object();
  if (!t) return nullptr;
  t->t.dtype = base->t.dtype;
  t->t.rank = rank;
  for (int32_t i = 0; i < rank; ++i) t->t.shape[i] = shape[i];
  t->t.size = count_elements(rank, shape);
  t->t.data = static_cast<char*>(base->t.data) + offset_bytes;
  t->storage = base->storage;
  retain(t->storage);
  return t;
}

bool tensor_take(Tensor* target, Tensor* source) {
  if (target == source) return true;
  Storage* old_storage = target->storage;
  Node* old_node = target->node;
  PyObject* old_traced = target->traced;
  const bool exported = old_storage && old_storage->exports > 0 && source->storage && old_storage != source->storage &&
                        !is_shared(old_storage) && target->t.dtype == source->t.dtype && target->t.size == source->t.size;
  // NumPy arrays look at the old memory: they must see the update.
  if (exported && !copy_bytes(target->t.data, old_storage->device, source->t.data, source->storage->device,
                              source->t.size * kItemSize[source->t.dtype]))
    return false;
  target->node = source->node;
  Py_XINCREF(source->node);
  target->node_output = source->node_output;
  target->traced = source->traced;
  Py_XINCREF(source->traced);
  if (exported) {
    old_storage->stamp = next_stamp();
    const void* data = target->t.data;
    target->t = source->t;
    target->t.data = const_cast<void*>(data);
  } else {
    target->storage = source->storage;
    if (source->storage) retain(source->storage);
    target->t = source->t;
    release(old_storage);
  }
  Py_XDECREF(old_node);
  Py_XDECREF(old_traced);
  return true;
}

int32_t dtype_code(PyObject* dtype) {
  for (int32_t i = 0; i < MYC_DTYPE_COUNT; ++i)
    if (dtype_objects[i] == dtype) return i;
  PyErr_Format(PyExc_TypeError, "expected a dtype such as mycelia.float32, but got %R", dtype);
  return -1;
}

PyObject* shape_tuple(const myc_tensor& t) {
  PyObject* tuple = PyTuple_New(t.rank);
  if (!tuple) return nullptr;
  for (int i = 0; i < t.rank; ++i) {
    PyObject* n = PyLong_FromLongLong(t.shape[i]);
    if (!n) {
      Py_DECREF(tuple);
      return nullptr;
    }
    PyTuple_SET_ITEM(tuple, i, n);
  }
  return tuple;
}

int init_tensor(PyObject* module) {
  TensorType = make_type();
  if (!TensorType || init_arrays() < 0 || init_interchange() < 0) return -1;
  TensorType->tp_vectorcall = tensor_vectorcall;
  if (PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(TensorType)) < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace mycelia
