// Module mycelia_insight._native: the columns of a run, as arrays.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <system_error>
#include <vector>

#include "columns.h"
#include "py_fields.h"

namespace mycelia::insight {
namespace {

PyObject* damaged_error = nullptr;

struct PyIndex {
  PyObject_HEAD
  Index* index;
};

// Runs f without the interpreter's lock; a C++ exception becomes one of Python. False: one is set.
template <class F>
bool apart(const F& f) {
  std::error_code error;
  std::string text;
  enum { kFine, kSystem, kDamaged, kMemory, kOther } state = kFine;
  Py_BEGIN_ALLOW_THREADS
  try {
    f();
  } catch (const Damaged& e) {
    state = kDamaged, text = e.what();
  } catch (const std::system_error& e) {
    state = kSystem, error = e.code(), text = e.what();
  } catch (const std::bad_alloc&) {
    state = kMemory;
  } catch (const std::exception& e) {
    state = kOther, text = e.what();
  }
  Py_END_ALLOW_THREADS
  if (state == kMemory) {
    PyErr_NoMemory();
  } else if (state == kSystem) {
    PyObject* pair = Py_BuildValue("(is)", error.value(), text.c_str());
    if (pair) PyErr_SetObject(PyExc_OSError, pair);
    Py_XDECREF(pair);
  } else if (state != kFine) {
    PyErr_SetString(state == kDamaged ? damaged_error : PyExc_RuntimeError, text.c_str());
  }
  return state == kFine;
}

PyObject* bytes_of(const void* data, size_t size) {
  return PyBytes_FromStringAndSize(static_cast<const char*>(data), static_cast<Py_ssize_t>(size));
}

PyObject* text_of(const std::string& text) {  // tags are whatever a file says
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
}

PyObject* index_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* folder;
  if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &folder)) return nullptr;
  const std::string path(PyBytes_AS_STRING(folder), static_cast<size_t>(PyBytes_GET_SIZE(folder)));
  Py_DECREF(folder);
  Index* index = nullptr;
  if (!apart([&] { index = new Index(path); })) return nullptr;
  auto* self = reinterpret_cast<PyIndex*>(type->tp_alloc(type, 0));
  if (!self) {
    delete index;
    return nullptr;
  }
  self->index = index;
  return reinterpret_cast<PyObject*>(self);
}

void index_dealloc(PyIndex* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete self->index;
  type->tp_free(reinterpret_cast<PyObject*>(self));
  Py_DECREF(type);
}

PyObject* index_scan(PyIndex* self, PyObject* args) {
  PyObject* encoded;
  long long limit;
  if (!PyArg_ParseTuple(args, "O&L", PyUnicode_FSConverter, &encoded, &limit)) return nullptr;
  const std::string path(PyBytes_AS_STRING(encoded), static_cast<size_t>(PyBytes_GET_SIZE(encoded)));
  Py_DECREF(encoded);
  Index::Scan scan = {};
  if (!apart([&] { scan = self->index->scan(path, limit); })) return nullptr;
  return Py_BuildValue("(NNLL)", PyBool_FromLong(scan.done), PyBool_FromLong(scan.replaced), static_cast<long long>(scan.offset),
                       static_cast<long long>(scan.read));
}

PyObject* index_commit(PyIndex* self, PyObject*) {
  if (!apart([&] { self->index->commit(); })) return nullptr;
  Py_RETURN_NONE;
}

PyObject* index_clear(PyIndex* self, PyObject*) {
  if (!apart([&] { self->index->clear(); })) return nullptr;
  Py_RETURN_NONE;
}

PyObject* index_sources(PyIndex* self, PyObject*) {
  std::vector<Source> found;
  if (!apart([&] { found = self->index->sources(); })) return nullptr;
  PyObject* list = PyList_New(0);
  for (const Source& s : found) {
    PyObject* broken = list ? PyList_New(0) : nullptr;
    for (const Broken& b : s.first_broken) {
      PyObject* one = broken ? Py_BuildValue("(Ls)", static_cast<long long>(b.offset), b.what.c_str()) : nullptr;
      if (!one || PyList_Append(broken, one) != 0) Py_CLEAR(broken);
      Py_XDECREF(one);
    }
    PyObject* path = broken ? PyUnicode_DecodeFSDefaultAndSize(s.path.data(), static_cast<Py_ssize_t>(s.path.size())) : nullptr;
    PyObject* one = path ? Py_BuildValue("(NLiLN)", path, static_cast<long long>(s.offset), static_cast<int>(s.dialect),
                                         static_cast<long long>(s.broken), broken)
                         : nullptr;
    if (!path) Py_XDECREF(broken);
    if (!one || PyList_Append(list, one) != 0) {
      Py_XDECREF(one);
      Py_XDECREF(list);
      return nullptr;
    }
    Py_DECREF(one);
  }
  return list;
}

PyObject* index_summaries(PyIndex* self, PyObject*) {
  std::vector<Summary> found;
  if (!apart([&] { found = self->index->summaries(); })) return nullptr;
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(found.size()));
  for (size_t i = 0; list && i < found.size(); ++i) {
    const Summary& s = found[i];
    PyObject* tag = text_of(s.tag);
    PyObject* one = tag ? Py_BuildValue("(iNLLLddd)", static_cast<int>(s.kind), tag, static_cast<long long>(s.count),
                                        static_cast<long long>(s.first_step), static_cast<long long>(s.last_step), s.first_time,
                                        s.last_time, static_cast<double>(s.last_value))
                        : nullptr;
    if (!one) Py_CLEAR(list);
    else PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), one);
  }
  return list;
}

// What the files call the tag of a kind that is shown as `name`, which differs where it is no UTF-8. False: an error is set.
bool stored_name(PyIndex* self, int kind, std::string* name) {
  if (name->find("\\x") == std::string::npos) return true;
  std::vector<Summary> all;
  if (!apart([&] { all = self->index->summaries(); })) return false;
  const std::string* found = nullptr;
  for (const Summary& s : all) {
    if (static_cast<int>(s.kind) != kind) continue;
    if (s.tag == *name) return true;
    PyObject* shown = text_of(s.tag);
    if (!shown) return false;
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(shown, &size);
    if (text && std::string_view(text, static_cast<size_t>(size)) == *name) found = &s.tag;
    Py_DECREF(shown);
    if (!text) return false;
  }
  if (found) *name = *found;
  return true;
}

// Points as columns.
struct Arrays {
  std::vector<int64_t> steps;
  std::vector<double> times;
  std::vector<float> values, smoothed;
  void fill(const std::vector<Point>& found) {
    steps.reserve(found.size()), times.reserve(found.size()), values.reserve(found.size());
    for (const Point& p : found) steps.push_back(p.step), times.push_back(p.time), values.push_back(p.value), smoothed.push_back(p.smoothed);
  }
};

PyObject* index_points(PyIndex* self, PyObject* args) {
  const char* tag;
  Py_ssize_t size;
  int axis;
  double low, high, weight;
  long long columns;
  if (!PyArg_ParseTuple(args, "s#iddLd", &tag, &size, &axis, &low, &high, &columns, &weight)) return nullptr;
  std::string name(tag, static_cast<size_t>(size));
  if (!stored_name(self, static_cast<int>(Kind::kScalar), &name)) return nullptr;
  Arrays a;
  bool known = false;
  if (!apart([&] {
        std::vector<Point> found;
        known = self->index->points(name, axis ? Axis::kTime : Axis::kStep, low, high, columns, weight, &found);
        a.fill(found);
      }))
    return nullptr;
  if (!known) Py_RETURN_NONE;
  return Py_BuildValue("(NNNN)", bytes_of(a.steps.data(), a.steps.size() * 8), bytes_of(a.times.data(), a.times.size() * 8),
                       bytes_of(a.values.data(), a.values.size() * 4), bytes_of(a.smoothed.data(), a.smoothed.size() * 4));
}

PyObject* index_stored(PyIndex* self, PyObject* args) {
  const char* tag;
  Py_ssize_t size;
  long long from, count;
  if (!PyArg_ParseTuple(args, "s#LL", &tag, &size, &from, &count)) return nullptr;
  if (from < 0 || count < 0) {
    PyErr_SetString(PyExc_ValueError, "from and count must not be negative");
    return nullptr;
  }
  std::string name(tag, static_cast<size_t>(size));
  if (!stored_name(self, static_cast<int>(Kind::kScalar), &name)) return nullptr;
  Arrays a;
  int64_t rest = 0;
  bool known = false;
  if (!apart([&] {
        std::vector<Point> found;
        known = self->index->stored(name, from, count, &found, &rest);
        a.fill(found);
      }))
    return nullptr;
  if (!known) Py_RETURN_NONE;
  return Py_BuildValue("(NNNL)", bytes_of(a.steps.data(), a.steps.size() * 8), bytes_of(a.times.data(), a.times.size() * 8),
                       bytes_of(a.values.data(), a.values.size() * 4), static_cast<long long>(rest));
}

PyObject* index_entries(PyIndex* self, PyObject* args) {
  int kind;
  const char* tag;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "is#", &kind, &tag, &size)) return nullptr;
  if (kind < 0 || kind >= kKinds) {
    PyErr_Format(PyExc_ValueError, "kind %d is not known", kind);
    return nullptr;
  }
  std::string name(tag, static_cast<size_t>(size));
  if (!stored_name(self, kind, &name)) return nullptr;
  std::vector<Index::Entry> found;
  bool known = false;
  if (!apart([&] { known = self->index->entries(static_cast<Kind>(kind), name, &found); })) return nullptr;
  if (!known) Py_RETURN_NONE;
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(found.size()));
  for (size_t i = 0; list && i < found.size(); ++i) {
    const Index::Entry& e = found[i];
    PyObject* one = Py_BuildValue("(LdiLiii)", static_cast<long long>(e.step), e.time, static_cast<int>(e.file),
                                  static_cast<long long>(e.place.offset), static_cast<int>(e.place.size),
                                  static_cast<int>(static_cast<uint32_t>(e.place.extra) >> 16), static_cast<int>(e.place.extra & 0xFFFF));
    if (!one) Py_CLEAR(list);
    else PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), one);
  }
  return list;
}

template <class F>
PyCFunction method(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}

template <class F>
void* slot(F* f) {
  return reinterpret_cast<void*>(f);
}

PyMethodDef index_methods[] = {
    {"scan", method(index_scan), METH_VARARGS,
     "scan(path, limit) -> (done, replaced, offset, read): read on in an event file, about `limit` bytes at most.\n\n"
     "done: nothing is left to read now. replaced: the file is another one or shorter than what was read of it."},
    {"commit", method(index_commit), METH_NOARGS, "commit(): keep what has been read, on the disk."},
    {"clear", method(index_clear), METH_NOARGS, "clear(): forget everything."},
    {"sources", method(index_sources), METH_NOARGS,
     "sources() -> [(path, offset read to, dialect, broken records, [(offset, what) of the first])]"},
    {"summaries", method(index_summaries), METH_NOARGS,
     "summaries() -> [(kind, tag, count, first step, last step, first time, last time, last value)]"},
    {"points", method(index_points), METH_VARARGS,
     "points(tag, axis, low, high, columns, weight) -> (steps int64, times float64, values, smoothed float32) as bytes, or None.\n\n"
     "axis: 0 steps, 1 times in seconds. Of each of `columns` equal parts of low..high the first, the last, the least,\n"
     "the greatest and all points that are not finite; all points for 0. weight: of the exponential moving average."},
    {"stored", method(index_stored), METH_VARARGS,
     "stored(tag, from, count) -> (steps int64, times float64, values float32 as bytes, number of points behind), or None.\n\n"
     "Points as they are stored, without those that a later file wrote again: for walking over all of them."},
    {"entries", method(index_entries), METH_VARARGS,
     "entries(kind, tag) -> [(step, time, number of the source, offset, bytes, width, height)], or None."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot index_slots[] = {{Py_tp_new, slot(index_new)},
                             {Py_tp_dealloc, slot(index_dealloc)},
                             {Py_tp_methods, index_methods},
                             {Py_tp_doc, const_cast<char*>("Index(folder): the columns of a run, kept in a folder.")},
                             {0, nullptr}};
PyType_Spec index_spec = {"mycelia_insight._native.Index", sizeof(PyIndex), 0, Py_TPFLAGS_DEFAULT, index_slots};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "mycelia_insight._native", "Event files as columns.", -1, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace mycelia::insight

PyMODINIT_FUNC PyInit__native() {
  using namespace mycelia::insight;
  PyObject* m = PyModule_Create(&module);
  if (!m) return nullptr;
  damaged_error = PyErr_NewException("mycelia_insight._native.DamagedIndex", PyExc_RuntimeError, nullptr);
  PyObject* type = PyType_FromSpec(&index_spec);
  if (!type || !damaged_error || PyModule_AddObjectRef(m, "Index", type) != 0 || PyModule_AddObjectRef(m, "DamagedIndex", damaged_error) != 0 || !add_fields(m)) Py_CLEAR(m);
  Py_XDECREF(type);
  return m;
}
