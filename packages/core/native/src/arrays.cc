// Tensors and NumPy arrays: either looks at the memory of the other where it can.
#define NO_IMPORT_ARRAY
#define PY_ARRAY_UNIQUE_SYMBOL mycelia_array_api
#define NPY_NO_DEPRECATED_API NPY_1_20_API_VERSION
#include <numpy/arrayobject.h>

#include "core.h"
#include "tensor_parts.h"

namespace mycelia {

namespace {

const int kNumpyType[MYC_DTYPE_COUNT] = {NPY_BOOL,   NPY_INT8,   NPY_INT16,  NPY_INT32, NPY_INT64, NPY_UINT8,   NPY_UINT16,    NPY_UINT32,
                                         NPY_UINT64, NPY_HALF,   NPY_UINT16, NPY_FLOAT, NPY_DOUBLE, NPY_CFLOAT, NPY_CDOUBLE};

// dtype code of a native-byte-order NumPy type number, or -1.
int code_of_numpy(int type_num) {
  switch (type_num) {
    case NPY_BOOL: return MYC_BOOL;
    case NPY_BYTE: return MYC_I8;
    case NPY_SHORT: return MYC_I16;
    case NPY_INT: return MYC_I32;
    case NPY_LONG: return sizeof(long) == 8 ? MYC_I64 : MYC_I32;
    case NPY_LONGLONG: return MYC_I64;
    case NPY_UBYTE: return MYC_U8;
    case NPY_USHORT: return MYC_U16;
    case NPY_UINT: return MYC_U32;
    case NPY_ULONG: return sizeof(long) == 8 ? MYC_U64 : MYC_U32;
    case NPY_ULONGLONG: return MYC_U64;
    case NPY_HALF: return MYC_F16;
    case NPY_FLOAT: return MYC_F32;
    case NPY_DOUBLE: return MYC_F64;
    case NPY_CFLOAT: return MYC_C64;
    case NPY_CDOUBLE: return MYC_C128;
    default: return -1;
  }
}

// ---- what a NumPy array holds on to: one reference to a Storage --------------------------------------------------

struct StorageRef {
  PyObject_HEAD
  Storage* storage;
};

PyTypeObject* StorageRefType = nullptr;

void storage_ref_dealloc(PyObject* self) {
  Storage* s = reinterpret_cast<StorageRef*>(self)->storage;
  release_export(s);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyType_Slot storage_ref_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(storage_ref_dealloc)}, {0, nullptr}};
PyType_Spec storage_ref_spec = {"mycelia.engine._C.StorageRef", sizeof(StorageRef), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                storage_ref_slots};

PyObject* storage_ref(Storage* s) {
  StorageRef* ref = PyObject_New(StorageRef, StorageRefType);
  if (!ref) return nullptr;
  ref->storage = s;
  retain(s);
  ++s->exports;
  return reinterpret_cast<PyObject*>(ref);
}

// bfloat16, of which NumPy has no dtype, as float32: exact.
PyObject* bfloat16_array(Tensor* t) {
  npy_intp dims[MYC_MAX_RANK];
  for (int i = 0; i < t->t.rank; ++i) dims[i] = t->t.shape[i];
  PyObject* a = PyArray_SimpleNew(t->t.rank, dims, NPY_FLOAT);
  if (!a) return nullptr;
  uint32_t* out = static_cast<uint32_t*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(a)));
  const uint16_t* in = static_cast<const uint16_t*>(t->t.data);
  for (int64_t i = 0; i < t->t.size; ++i) out[i] = uint32_t(in[i]) << 16;
  return a;
}

}  // namespace

bool is_native_array(PyObject* object) {
  if (!PyArray_CheckExact(object)) return false;
  PyArrayObject* a = reinterpret_cast<PyArrayObject*>(object);
  return code_of_numpy(PyArray_TYPE(a)) >= 0 && PyArray_ISNOTSWAPPED(a) && PyArray_NDIM(a) <= MYC_MAX_RANK;
}

Tensor* tensor_from_array(PyObject* object, bool share) {
  PyArrayObject* a = reinterpret_cast<PyArrayObject*>(object);
  const int32_t code = code_of_numpy(PyArray_TYPE(a));
  if (code < 0 || !PyArray_ISNOTSWAPPED(a)) {
    PyErr_Format(PyExc_TypeError, "a Tensor cannot hold a numpy array of dtype %S; supported are bool, integers, floating and complex numbers of native byte order",
                 reinterpret_cast<PyObject*>(PyArray_DESCR(a)));
    return nullptr;
  }
  if (PyArray_NDIM(a) > MYC_MAX_RANK) {
    PyErr_Format(PyExc_ValueError, "a tensor has at most %d dimensions, but the array has %d", MYC_MAX_RANK, PyArray_NDIM(a));
    return nullptr;
  }
  const bool contiguous = PyArray_IS_C_CONTIGUOUS(a) && PyArray_ISALIGNED(a);
  int64_t dims[MYC_MAX_RANK];
  const int rank = PyArray_NDIM(a);
  for (int i = 0; i < rank; ++i) dims[i] = PyArray_DIM(a, i);
  if (share && contiguous && PyArray_ISWRITEABLE(a)) {  // updates in place would fault on a mapped file
    Tensor* t = tensor_object();
    if (!t) return nullptr;
    t->t.dtype = code;
    t->t.rank = rank;
    for (int i = 0; i < rank; ++i) t->t.shape[i] = dims[i];
    t->t.size = PyArray_SIZE(a);
    t->t.data = PyArray_DATA(a);
    t->storage = storage_wrap(t->t.data, PyArray_NBYTES(a), object);
    if (!t->storage) {
      Py_DECREF(t);
      return nullptr;
    }
    return t;
  }
  Tensor* t = tensor_empty(code, rank, dims);
  if (!t) return nullptr;
  if (contiguous) {
    std::memcpy(t->t.data, PyArray_DATA(a), static_cast<size_t>(t->t.size * kItemSize[code]));
    return t;
  }
  OwnedRef target(tensor_to_array(t));
  if (!target || PyArray_CopyInto(reinterpret_cast<PyArrayObject*>(target.p), a) < 0) {
    Py_DECREF(t);
    return nullptr;
  }
  return t;
}

PyObject* tensor_to_array(Tensor* t) {
  if (t->storage->device != kHost) {
    OwnedRef here(reinterpret_cast<PyObject*>(tensor_on(t, kHost)));
    return here ? tensor_to_array(as_tensor(here.p)) : nullptr;
  }
  npy_intp dims[MYC_MAX_RANK];
  for (int i = 0; i < t->t.rank; ++i) dims[i] = t->t.shape[i];
  OwnedRef ref(storage_ref(t->storage));
  if (!ref) return nullptr;
  PyObject* a = PyArray_New(&PyArray_Type, t->t.rank, dims, kNumpyType[t->t.dtype], nullptr, t->t.data, 0, NPY_ARRAY_CARRAY, nullptr);
  if (!a) return nullptr;
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(a), ref.take()) < 0) {
    Py_DECREF(a);
    return nullptr;
  }
  return a;
}

PyObject* method_asnumpy(PyObject* self, PyObject*) {
  Tensor* t = as_tensor(self);
  if (!has_data(t)) return nullptr;
  if (t->t.dtype != MYC_BF16) return tensor_to_array(t);
  OwnedRef here(reinterpret_cast<PyObject*>(tensor_on(t, kHost)));
  return here ? bfloat16_array(as_tensor(here.p)) : nullptr;
}

// __array__(dtype=None, copy=None): without a copy where NumPy allows it and the dtype is one of NumPy's.
PyObject* method_array(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"dtype", "copy", nullptr};
  PyObject *dtype = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", const_cast<char**>(names), &dtype, &copy)) return nullptr;
  const int wanted = copy == Py_None ? -1 : PyObject_IsTrue(copy);
  if (wanted < 0 && PyErr_Occurred()) return nullptr;
  OwnedRef array(method_asnumpy(self, nullptr));
  if (!array) return nullptr;
  const bool copied = as_tensor(self)->storage->device != kHost;
  bool fresh = copied || as_tensor(self)->t.dtype == MYC_BF16;
  if (dtype != Py_None) {
    OwnedRef converted(PyObject_CallMethod(array.p, "astype", "OssOO", dtype, "K", "unsafe", Py_True, Py_False));
    if (!converted) return nullptr;
    fresh = fresh || converted.p != array.p;
    Py_SETREF(array.p, converted.take());
  }
  if (wanted == 0 && fresh) {
    PyErr_SetString(PyExc_ValueError, copied ? "copy must not be False: the tensor lies in the memory of a device"
                                             : "copy must not be False where the dtype changes: bfloat16 is float32 in NumPy");
    place_error("Tensor.__array__");
    return nullptr;
  }
  if (wanted == 1 && !fresh) return PyObject_CallMethod(array.p, "copy", nullptr);
  return array.take();
}

PyObject* method_from_numpy(PyObject*, PyObject* array) {
  if (!PyArray_Check(array)) {
    PyErr_Format(PyExc_TypeError, "array must be a numpy.ndarray, but got %s", Py_TYPE(array)->tp_name);
    place_error("Tensor.from_numpy");
    return nullptr;
  }
  PyObject* made = reinterpret_cast<PyObject*>(tensor_from_array(array, true));
  if (!made) place_error("Tensor.from_numpy");
  return made;
}

// Bit pattern access for dtypes NumPy does not know (bfloat16): a uint16 view.
PyObject* method_bits(PyObject* self, PyObject*) {
  if (!has_data(as_tensor(self))) return nullptr;
  return tensor_to_array(as_tensor(self));
}

// from_array(array, dtype, share): like Tensor(array), reading bit patterns for bfloat16.
PyObject* module_from_array(PyObject*, PyObject* args) {
  PyObject *array, *dtype;
  int share;
  if (!PyArg_ParseTuple(args, "O!Op", &PyArray_Type, &array, &dtype, &share)) return nullptr;
  Tensor* t = tensor_from_array(array, share);
  if (!t || dtype == Py_None) return reinterpret_cast<PyObject*>(t);
  const int32_t code = dtype_code(dtype);
  if (code < 0 || kItemSize[code] != kItemSize[t->t.dtype]) {
    if (code >= 0) PyErr_SetString(PyExc_TypeError, "from_array: the item size does not fit the dtype");
    Py_DECREF(t);
    return nullptr;
  }
  t->t.dtype = code;
  return reinterpret_cast<PyObject*>(t);
}

int init_arrays() {
  StorageRefType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&storage_ref_spec));
  return StorageRefType ? 0 : -1;
}

}  // namespace mycelia
