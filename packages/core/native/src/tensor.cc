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
    SLOT(Py_tp_getset, tensor_attributes),
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
