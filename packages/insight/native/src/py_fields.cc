// Iterators over the fields of a message, and repeated varints, for Python.
#include "py_fields.h"

#include <cstdint>
#include <cstring>
#include <new>

#include "wire.h"

namespace mycelia::insight {
namespace {

PyObject* broken_error = nullptr;

struct PyFields {
  PyObject_HEAD
  Py_buffer buffer;
  PyObject* view;  // of which parts are given; null: bytes are copied
  Fields fields;
};

PyTypeObject* fields_type = nullptr;

PyObject* made(PyObject* message, bool with_views) {
  auto* self = reinterpret_cast<PyFields*>(fields_type->tp_alloc(fields_type, 0));
  if (!self) return nullptr;
  if (PyObject_GetBuffer(message, &self->buffer, PyBUF_SIMPLE) != 0 || (with_views && !(self->view = PyMemoryView_FromObject(message)))) {
    Py_DECREF(self);
    return nullptr;
  }
  new (&self->fields) Fields({static_cast<const char*>(self->buffer.buf), static_cast<size_t>(self->buffer.len)});
  return reinterpret_cast<PyObject*>(self);
}

void fields_dealloc(PyFields* self) {
  PyTypeObject* type = Py_TYPE(self);
  Py_CLEAR(self->view);
  PyBuffer_Release(&self->buffer);
  type->tp_free(reinterpret_cast<PyObject*>(self));
  Py_DECREF(type);
}

PyObject* part_of(PyFields* self, std::string_view bytes) {
  const Py_ssize_t at = bytes.data() - static_cast<const char*>(self->buffer.buf);
  return PySequence_GetSlice(self->view, at, at + static_cast<Py_ssize_t>(bytes.size()));
}

PyObject* fields_next(PyFields* self) {
  Field f;
  if (!self->fields.next(&f)) {
    if (!self->fields.ok()) PyErr_SetString(broken_error, self->fields.fault());
    return nullptr;
  }
  PyObject* value;
  if (f.type() == 0) value = PyLong_FromUnsignedLongLong(f.number_value);
  else if (self->view) value = part_of(self, f.bytes);
  else if (f.type() == 2) value = PyBytes_FromStringAndSize(f.bytes.data(), static_cast<Py_ssize_t>(f.bytes.size()));
  else value = PyFloat_FromDouble(f.type() == 1 ? f.as_double() : static_cast<double>(f.as_float()));
  if (!value) return nullptr;
  PyObject* items[] = {PyLong_FromUnsignedLong(f.number()), self->view ? PyLong_FromUnsignedLong(f.type()) : nullptr, value};
  PyObject* found = items[0] ? PyTuple_New(self->view ? 3 : 2) : nullptr;
  if (!found) {
    for (PyObject* item : items) Py_XDECREF(item);
    return nullptr;
  }
  Py_ssize_t at = 0;
  for (PyObject* item : items)
    if (item) PyTuple_SET_ITEM(found, at++, item);
  return found;
}

PyObject* fields_of(PyObject*, PyObject* message) { return made(message, true); }
PyObject* plain_of(PyObject*, PyObject* message) { return made(message, false); }

PyObject* varints_of(PyObject*, PyObject* message) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(message, &buffer, PyBUF_SIMPLE) != 0) return nullptr;
  const auto* at = static_cast<const uint8_t*>(buffer.buf);
  const uint8_t* const end = at + buffer.len;
  Py_ssize_t count = 0;
  for (const uint8_t* p = at; p != end; ++p) count += !(*p & 128);
  PyObject* out = PyBytes_FromStringAndSize(nullptr, count * 8);
  char* to = out ? PyBytes_AS_STRING(out) : nullptr;
  bool whole = true;
  while (to && at != end && whole) {
    uint64_t sum = 0;
    int shift = 0;
    while (at != end && shift < 70) {
      const uint64_t byte = *at++;
      if (shift < 64) sum |= (byte & 127) << shift;
      shift += 7;
      if (!(byte & 128)) break;
    }
    whole = !(at[-1] & 128);
    if (whole) std::memcpy(to, &sum, 8), to += 8;
  }
  PyBuffer_Release(&buffer);
  if (!out || whole) return out;
  PyErr_SetString(broken_error, "a number is cut off");
  Py_DECREF(out);
  return nullptr;
}

PyMethodDef functions[] = {
    {"fields", fields_of, METH_O, "fields(message) -> iterator of (number, type, value): ints of varints, views of the rest. Errors: Broken."},
    {"plain", plain_of, METH_O, "plain(message) -> iterator of (number, value): ints of varints, floats of a fixed size, bytes. Errors: Broken."},
    {"varints", varints_of, METH_O, "varints(data) -> the packed varints as int64, in bytes. Errors: Broken."},
    {nullptr, nullptr, 0, nullptr},
};

template <class F>
void* slot(F* f) {
  return reinterpret_cast<void*>(f);
}

PyType_Slot slots[] = {{Py_tp_dealloc, slot(fields_dealloc)}, {Py_tp_iter, slot(PyObject_SelfIter)}, {Py_tp_iternext, slot(fields_next)}, {0, nullptr}};
PyType_Spec spec = {"mycelia_insight._native.Fields", sizeof(PyFields), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

bool add_fields(PyObject* module) {
  broken_error = PyErr_NewExceptionWithDoc("mycelia_insight._native.Broken", "A message that cannot be what it should be.", PyExc_ValueError, nullptr);
  fields_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return broken_error && fields_type && PyModule_AddObjectRef(module, "Broken", broken_error) == 0 && PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace mycelia::insight
