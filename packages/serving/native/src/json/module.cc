// Module mycelia_serving._json: long arrays of numbers in JSON, read without the interpreter's lock.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <exception>
#include <new>
#include <utility>

#include "arrays.h"

namespace mycelia::serving::json {
namespace {

// The elements of an array: a read-only buffer of bytes.
struct PyElements {
  PyObject_HEAD
  uint8_t* data;
  Py_ssize_t size;
};

void elements_dealloc(PyElements* self) {
  delete[] self->data;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(reinterpret_cast<PyObject*>(self));
  Py_DECREF(type);
}

int elements_buffer(PyElements* self, Py_buffer* view, int flags) {
  return PyBuffer_FillInfo(view, reinterpret_cast<PyObject*>(self), self->data, self->size, 1, flags);
}

template <class F>
void* slot(F* f) {
  return reinterpret_cast<void*>(f);
}

PyType_Slot elements_slots[] = {{Py_tp_dealloc, slot(elements_dealloc)}, {Py_bf_getbuffer, slot(elements_buffer)}, {0, nullptr}};
PyType_Spec elements_spec = {"mycelia_serving._json.Elements", sizeof(PyElements), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, elements_slots};
PyTypeObject* elements_type = nullptr;

PyObject* array_of(Array* array) {
  PyObject* data = Py_NewRef(Py_None);
  if (array->data) {
    Py_DECREF(data);
    PyElements* elements = PyObject_New(PyElements, elements_type);
    if (!elements) return nullptr;
    elements->data = array->data.release();
    elements->size = static_cast<Py_ssize_t>(array->size);
    data = reinterpret_cast<PyObject*>(elements);
  }
  PyObject* shape = PyTuple_New(static_cast<Py_ssize_t>(array->shape.size()));
  for (size_t i = 0; shape && i < array->shape.size(); ++i) {
    PyObject* size = PyLong_FromLongLong(array->shape[i]);
    if (!size) Py_CLEAR(shape);
    else PyTuple_SET_ITEM(shape, static_cast<Py_ssize_t>(i), size);
  }
  if (!shape) {
    Py_DECREF(data);
    return nullptr;
  }
  return Py_BuildValue("(CNN)", static_cast<int>(array->kind), shape, data);
}

PyObject* take(PyObject*, PyObject* args) {
  Py_buffer body;
  const char *mark, *key;
  Py_ssize_t mark_size, key_size;
  unsigned long long least, most;
  int narrow;
  if (!PyArg_ParseTuple(args, "y*s#s#KpK", &body, &mark, &mark_size, &key, &key_size, &least, &narrow, &most)) return nullptr;
  Document found;
  bool failed = false;
  Py_BEGIN_ALLOW_THREADS
  try {
    found = take_arrays({static_cast<const char*>(body.buf), static_cast<size_t>(body.len)}, {mark, static_cast<size_t>(mark_size)},
                        {key, static_cast<size_t>(key_size)}, least, narrow != 0, most);
  } catch (const std::exception&) {
    failed = true;
  }
  Py_END_ALLOW_THREADS
  PyBuffer_Release(&body);
  if (failed) return PyErr_NoMemory();
  PyObject* arrays = PyList_New(static_cast<Py_ssize_t>(found.arrays.size()));
  for (size_t i = 0; arrays && i < found.arrays.size(); ++i) {
    PyObject* array = array_of(&found.arrays[i]);
    if (!array) Py_CLEAR(arrays);
    else PyList_SET_ITEM(arrays, static_cast<Py_ssize_t>(i), array);
  }
  if (!arrays) return nullptr;
  return Py_BuildValue("(y#NnnOO)", found.text.data(), static_cast<Py_ssize_t>(found.text.size()), arrays,
                       static_cast<Py_ssize_t>(found.values), static_cast<Py_ssize_t>(found.marked_keys),
                       found.long_integers ? Py_True : Py_False, found.infinite ? Py_True : Py_False);
}

PyMethodDef methods[] = {
    {"take_arrays", take, METH_VARARGS,
     "take_arrays(body, mark, key, least, narrow, most) -> text, [(kind, shape, data)], values, marked keys, long integers, infinite:\n"
     "see native/src/json/arrays.h."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "mycelia_serving._json", "Long arrays of numbers in JSON.", -1, methods,
                      nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace mycelia::serving::json

PyMODINIT_FUNC PyInit__json() {
  using namespace mycelia::serving::json;
  elements_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&elements_spec));
  return elements_type ? PyModule_Create(&module) : nullptr;
}
