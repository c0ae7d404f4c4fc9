// EventFile of mycelia.engine._data.
#include "event_file.h"
#include "event_values.h"
#include "message.h"

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace mycelia::data {
namespace {

struct Object {
  PyObject_HEAD
  EventFile* file;
};

EventFile& file_of(PyObject* self) { return *reinterpret_cast<Object*>(self)->file; }

PyObject* created(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"path", "limit", "first", nullptr};
  PyObject* path;
  long long limit = -1;
  const char* first = "";
  Py_ssize_t size = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&|Ly#", const_cast<char**>(names), PyUnicode_FSConverter, &path, &limit, &first, &size)) return nullptr;
  const std::unique_ptr<PyObject, Release> held(path);
  return guarded([&]() -> PyObject* {
    auto file = std::make_unique<EventFile>(std::string(PyBytes_AS_STRING(path), static_cast<size_t>(PyBytes_GET_SIZE(path))), limit,
                                            std::string(first, static_cast<size_t>(size)));
    PyObject* self = type->tp_alloc(type, 0);
    if (self) reinterpret_cast<Object*>(self)->file = file.release();
    return self;
  });
}

void destroyed(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<Object*>(self)->file;
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* os_error(int error) {
  errno = error;
  return PyErr_SetFromErrno(PyExc_OSError);
}

// Puts what `encode` makes, without the interpreter's lock: True, False when it was dropped and the file is full, None when it had ended.
template <class Encode>
PyObject* put(PyObject* self, Encode&& encode) {
  EventFile::Outcome outcome{};
  int error = 0;
  const auto body = [&] {
    std::string message;
    encode(&message);
    outcome = file_of(self).put(message);
    error = errno;
  };
  if (!unlocked(body)) return nullptr;
  if (outcome == EventFile::Outcome::kFailed) return os_error(error);
  if (outcome == EventFile::Outcome::kEnded) Py_RETURN_NONE;
  return PyBool_FromLong(outcome == EventFile::Outcome::kTaken);
}

// write(message)
PyObject* write(PyObject* self, PyObject* object) {
  char* data;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(object, &data, &size) != 0) return nullptr;
  return put(self, [&](std::string* message) { message->assign(data, static_cast<size_t>(size)); });
}

// write_values(step, values)
PyObject* write_values(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) return PyErr_Format(PyExc_TypeError, "write_values takes a step and values, but got %zd arguments", count);
  return guarded([&]() -> PyObject* {
    const unsigned long long step = PyLong_AsUnsignedLongLongMask(args[0]);
    if (PyErr_Occurred()) return nullptr;
    std::vector<Value> values;
    if (!values_of(args[1], &values)) return nullptr;
    for (const Value& value : values)
      if (!value.is_known()) return PyErr_Format(PyExc_ValueError, "%s is no batch of images [N, 1 or 3, H, W]", value.tag.c_str());
    return put(self, [&](std::string* message) {
      put_double(0x09, std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(), message);
      put_number(0x10, step, message);
      std::string summary;
      for (const Value& value : values) put_value(value, &summary);
      put_bytes(0x2a, summary, message);
    });
  });
}

template <int (EventFile::*kCall)()>
PyObject* called(PyObject* self, PyObject*) {
  int error = 0;
  if (!unlocked([&] { error = (file_of(self).*kCall)(); })) return nullptr;
  if (error) return os_error(error);
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"write", write, METH_O,
     "write(message): append a record. True; False: it was dropped, the file is full and ends; None: the file has ended before. An\n"
     "OSError ends the file behind its last whole record."},
    {"write_values", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(write_values)), METH_FASTCALL,
     "write_values(step, values): append an event of now with these values, as of `summary_values`; else as `write`."},
    {"flush", called<&EventFile::flush>, METH_NOARGS, "flush(): hand all records to the system."},
    {"close", called<&EventFile::close>, METH_NOARGS, "close(): end the file, and leave it read-only."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("EventFile(path, limit=-1, first=b\"\"): a file of records, made with its first one, which is preceded by that of\n"
                                  "`first`. `limit`: bytes of records after which it ends, if not negative.")},
    {Py_tp_new, reinterpret_cast<void*>(created)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroyed)},
    {Py_tp_methods, methods},
    {0, nullptr}};

PyType_Spec spec = {"mycelia.engine._data.EventFile", sizeof(Object), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

bool add_event_file(PyObject* module) {
  const std::unique_ptr<PyObject, Release> type(PyType_FromSpec(&spec));
  return type && PyModule_AddObjectRef(module, "EventFile", type.get()) == 0;
}

}  // namespace mycelia::data
