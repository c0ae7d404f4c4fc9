// Attributes of a Tensor: shape, dtype and sizes, its place on the tape, its memory.
#include "tensor_parts.h"

namespace mycelia {

PyObject* traced_shape(PyObject* self) {
  PyObject* value = as_tensor(self)->traced;
  if (!value) return nullptr;
  OwnedRef type(PyObject_GetAttrString(value, "type"));
  return type ? PyObject_GetAttrString(type.p, "shape") : nullptr;
}

namespace {

void track_dict(PyObject* self) {
  if (as_tensor(self)->dict && !PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
}

PyObject* get_dict(PyObject* self, void* context) {
  PyObject* dict = PyObject_GenericGetDict(self, context);
  track_dict(self);
  return dict;
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
PyObject* get_memory(PyObject* self, void*) {
  const Storage* s = as_tensor(self)->storage;
  return Py_BuildValue("(NL)", PyLong_FromVoidPtr(s ? s->data : nullptr), static_cast<long long>(s ? s->bytes : 0));
}
PyObject* get_device(PyObject* self, void*) {
  const Storage* s = as_tensor(self)->storage;
  return PyLong_FromLong(s ? s->device : kHost);
}

}  // namespace

int set_attribute(PyObject* self, PyObject* name, PyObject* value) {
  const int result = PyObject_GenericSetAttr(self, name, value);
  track_dict(self);
  return result;
}

PyGetSetDef tensor_attributes[] = {
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
    {"_memory", get_memory, nullptr, "(address, size in bytes) of the block that it lies in, with other tensors or alone.", nullptr},
    {"_device", get_device, nullptr, "Number of the device in whose memory it lies; 0: the host.", nullptr},
    {"__dict__", get_dict, PyObject_GenericSetDict, "Attributes that were set on this tensor.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace mycelia
