// Sharing a Tensor's memory with others: DLPack and the buffer protocol.
#include "tensor_parts.h"

namespace mycelia {
namespace {

// ---- DLPack (v0 struct layout, https://dmlc.github.io/dlpack/latest/c_api.html) ----------------------------------

struct DLDevice { int32_t type, id; };
struct DLDataType { uint8_t code, bits; uint16_t lanes; };
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* manager;
  void (*deleter)(DLManagedTensor*);
};
enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6 };

struct Managed {
  DLManagedTensor dl;
  int64_t shape[MYC_MAX_RANK];
};

void managed_delete(DLManagedTensor* m) {
  PyGILState_STATE gil = PyGILState_Ensure();  // consumers may call from any thread
  Storage* s = static_cast<Storage*>(m->manager);
  release_export(s);
  delete reinterpret_cast<Managed*>(m);
  PyGILState_Release(gil);
}

void capsule_delete(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;  // a consumer took it
  DLManagedTensor* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  m->deleter(m);
}

DLDataType dl_type(int32_t dtype) {
  const uint8_t bits = static_cast<uint8_t>(8 * kItemSize[dtype]);
  if (dtype == MYC_BOOL) return {kDLBool, 8, 1};
  if (dtype <= MYC_I64) return {kDLInt, bits, 1};
  if (dtype <= MYC_U64) return {kDLUInt, bits, 1};
  if (dtype == MYC_BF16) return {kDLBfloat, 16, 1};
  if (dtype <= MYC_F64) return {kDLFloat, bits, 1};
  return {kDLComplex, bits, 1};
}

struct Borrowed {
  PyObject_HEAD
  DLManagedTensor* dl;
};
PyTypeObject* BorrowedType = nullptr;
void borrowed_dealloc(PyObject* self) {
  DLManagedTensor* m = reinterpret_cast<Borrowed*>(self)->dl;
  if (m->deleter) m->deleter(m);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}
PyType_Slot borrowed_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(borrowed_dealloc)}, {0, nullptr}};
PyType_Spec borrowed_spec = {"mycelia.engine._C.BorrowedDLPack", sizeof(Borrowed), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             borrowed_slots};

const char* const kFormat[MYC_DTYPE_COUNT] = {"?", "b", "h", "i", "q", "B", "H", "I", "Q", "e", "H", "f", "d", "Zf", "Zd"};

}  // namespace

PyObject* method_dlpack(PyObject* self, PyObject*, PyObject*) {
  if (!has_data(as_tensor(self))) return nullptr;
  OwnedRef here(reinterpret_cast<PyObject*>(tensor_on(as_tensor(self), kHost)));
  if (!here) return nullptr;
  Tensor* t = as_tensor(here.p);
  Managed* m = new Managed;
  std::memcpy(m->shape, t->t.shape, sizeof(m->shape));
  m->dl.tensor = DLTensor{t->t.data, {1, 0}, t->t.rank, dl_type(t->t.dtype), m->shape, nullptr, 0};
  m->dl.manager = t->storage;
  m->dl.deleter = managed_delete;
  retain(t->storage);
  ++t->storage->exports;
  PyObject* capsule = PyCapsule_New(&m->dl, "dltensor", capsule_delete);
  if (!capsule) managed_delete(&m->dl);
  return capsule;
}

PyObject* method_dlpack_device(PyObject*, PyObject*) { return Py_BuildValue("(ii)", 1, 0); }

PyObject* method_from_dlpack(PyObject*, PyObject* capsule) {
  DLManagedTensor* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  if (!m) return nullptr;
  const DLTensor& d = m->tensor;
  if (d.device.type != 1 || d.ndim > MYC_MAX_RANK || d.dtype.lanes != 1) {
    PyErr_SetString(PyExc_ValueError, "from_dlpack: only CPU tensors of rank up to 8 are taken");
    return nullptr;
  }
  int32_t code = -1;
  for (int32_t i = 0; i < MYC_DTYPE_COUNT; ++i) {
    const DLDataType want = dl_type(i);
    if (want.code == d.dtype.code && want.bits == d.dtype.bits) code = i;
  }
  if (code < 0) {
    PyErr_Format(PyExc_TypeError, "from_dlpack: element type (code %d, %d bits) is not known", d.dtype.code, d.dtype.bits);
    return nullptr;
  }
  int64_t expected = 1;
  const bool has_elements = count_elements(d.ndim, d.shape) > 0;
  for (int i = d.ndim - 1; i >= 0 && d.strides && has_elements; --i) {
    if (d.shape[i] != 1 && d.strides[i] != expected) {
      PyErr_SetString(PyExc_ValueError, "from_dlpack: the tensor is not contiguous; make it contiguous first");
      return nullptr;
    }
    expected *= d.shape[i];
  }
  PyCapsule_SetName(capsule, "used_dltensor");
  Borrowed* owner = PyObject_New(Borrowed, BorrowedType);
  if (!owner) return nullptr;
  owner->dl = m;
  OwnedRef keep(reinterpret_cast<PyObject*>(owner));
  Tensor* t = tensor_object();
  if (!t) return nullptr;
  t->t.dtype = code;
  t->t.rank = d.ndim;
  t->t.size = count_elements(d.ndim, d.shape);
  for (int i = 0; i < d.ndim; ++i) t->t.shape[i] = d.shape[i];
  t->t.data = static_cast<char*>(d.data) + d.byte_offset;
  t->storage = storage_wrap(t->t.data, t->t.size * kItemSize[code], keep.p);
  if (!t->storage) {
    Py_DECREF(t);
    return nullptr;
  }
  return reinterpret_cast<PyObject*>(t);
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  if (!has_data(as_tensor(self))) return -1;
  const bool copied = as_tensor(self)->storage->device != kHost;
  if (copied && (flags & PyBUF_WRITABLE)) {
    PyErr_SetString(PyExc_BufferError, "the tensor lies in the memory of a device: its buffer is a copy, which can only be read");
    return -1;
  }
  OwnedRef here(reinterpret_cast<PyObject*>(tensor_on(as_tensor(self), kHost)));
  if (!here) return -1;
  Tensor* t = as_tensor(here.p);
  if (t->t.dtype == MYC_BF16 && (flags & PyBUF_FORMAT)) {  // plain bytes are no numbers: they may be read
    PyErr_SetString(PyExc_BufferError, "bfloat16 has no buffer format: use asnumpy(), which gives float32");
    return -1;
  }
  Py_ssize_t* dims = static_cast<Py_ssize_t*>(PyMem_Malloc(2 * MYC_MAX_RANK * sizeof(Py_ssize_t)));
  if (!dims) {
    PyErr_NoMemory();
    return -1;
  }
  Py_ssize_t stride = kItemSize[t->t.dtype];
  for (int i = t->t.rank - 1; i >= 0; --i) {
    dims[i] = t->t.shape[i];
    dims[MYC_MAX_RANK + i] = stride;
    stride *= t->t.shape[i];
  }
  Py_INCREF(self);
  *view = Py_buffer{t->t.data,
                    self,
                    static_cast<Py_ssize_t>(t->t.size * kItemSize[t->t.dtype]),
                    static_cast<Py_ssize_t>(kItemSize[t->t.dtype]),
                    copied,
                    t->t.rank,
                    const_cast<char*>(kFormat[t->t.dtype]),
                    dims,
                    dims + MYC_MAX_RANK,
                    nullptr,
                    t->storage};
  retain(t->storage);
  ++t->storage->exports;
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) {
  Storage* s = static_cast<Storage*>(view->internal);
  release_export(s);
  PyMem_Free(view->shape);
}

int init_interchange() {
  BorrowedType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&borrowed_spec));
  return BorrowedType ? 0 : -1;
}

}  // namespace mycelia
