// What Python calls to make a Tensor without elements of its own: fresh memory, a copy on a device, a symbolic value.
#include "tensor_parts.h"

namespace mycelia {
namespace {

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

}  // namespace

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

}  // namespace mycelia
