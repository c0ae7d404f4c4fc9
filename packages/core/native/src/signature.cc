// call_key: the usual arguments of a compiled function as bytes, so that finding its program is one look into a dict.
#include "core.h"

namespace mycelia {
namespace {

constexpr int kWords = 96;  // a call with more than this is found the slower way
constexpr int kDepth = 8;   // and so is one with containers in containers in ...

// What counts of an argument besides its type: as in compile/signature.py, which says it for each type.
enum Counts { kTyped, kAlone, kInteger, kFloats, kText, kItems, kEntries, kWays };

struct Kind {
  PyTypeObject* type;  // one of Python's own, or Tensor: it lives on
  Counts counts;
};
Kind kinds[16];
int kind_count = 0;

// A word that begins an argument: the type by its place in `kinds`, and how much follows.
int64_t head(int kind, int64_t count) { return (kind + 1) | count << 8; }

// Words of `size` bytes of text, its length in the first one; -1: there is no room.
int add_text(int kind, const char* text, Py_ssize_t size, int64_t* words, int room) {
  const Py_ssize_t needed = 1 + (size + 7) / 8;
  if (!text || needed > room) return -1;
  words[needed - 1] = 0;
  words[0] = head(kind, size);
  std::memcpy(words + 1, text, static_cast<size_t>(size));
  return static_cast<int>(needed);
}

// Words of one argument, or -1: only compile/signature.py knows it. Tensors are appended to `tensors`.
int add_argument(PyObject* v, int64_t* words, int room, int depth, PyObject* tensors) {
  int kind = 0;
  while (kind < kind_count && kinds[kind].type != Py_TYPE(v)) ++kind;
  if (kind == kind_count || room < 3 || depth > kDepth) return -1;
  int used = 1;
  // Adds the words of a member of the container `v`.
  const auto add_member = [&](PyObject* member) {
    const int n = add_argument(member, words + used, room - used, depth + 1, tensors);
    used = n < 0 ? -1 : used + n;
    return n >= 0;
  };
  switch (kinds[kind].counts) {
    case kTyped: {
      const myc_tensor& t = as_tensor(v)->t;
      if (!as_tensor(v)->storage || room < 1 + t.rank || PyList_Append(tensors, v) < 0) return -1;
      words[0] = head(kind, t.rank | static_cast<int64_t>(t.dtype) << 8);
      for (int32_t i = 0; i < t.rank; ++i) words[1 + i] = t.shape[i];
      return 1 + t.rank;
    }
    case kAlone:
      words[0] = head(kind, 0);
      return 1;
    case kInteger: {
      int overflow;
      words[0] = head(kind, 0);
      words[1] = PyLong_AsLongLongAndOverflow(v, &overflow);
      return overflow ? -1 : 2;
    }
    case kFloats: {  // bit for bit
      words[0] = head(kind, 0);
      const bool real = PyFloat_CheckExact(v);
      const double parts[2] = {real ? PyFloat_AS_DOUBLE(v) : PyComplex_RealAsDouble(v), real ? 0 : PyComplex_ImagAsDouble(v)};
      std::memcpy(words + 1, parts, sizeof parts);
      return real ? 2 : 3;
    }
    case kText: {
      if (PyBytes_CheckExact(v)) return add_text(kind, PyBytes_AS_STRING(v), PyBytes_GET_SIZE(v), words, room);
      Py_ssize_t size = 0;
      const char* text = PyUnicode_AsUTF8AndSize(v, &size);
      return add_text(kind, text, size, words, room);
    }
    case kItems: {
      words[0] = head(kind, PySequence_Fast_GET_SIZE(v));
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(v); ++i) {
        if (!add_member(PySequence_Fast_GET_ITEM(v, i))) return -1;
      }
      return used;
    }
    case kEntries: {
      words[0] = head(kind, PyDict_GET_SIZE(v));
      PyObject *key, *value;
      for (Py_ssize_t place = 0; PyDict_Next(v, &place, &key, &value);) {
        if (!add_member(key) || !add_member(value)) return -1;
      }
      return used;
    }
    default:
      return -1;
  }
}

PyObject* call_kinds(PyObject*, PyObject* pairs) {
  constexpr int room = sizeof kinds / sizeof kinds[0];
  if (!PyTuple_Check(pairs) || PyTuple_GET_SIZE(pairs) > room) {
    return PyErr_Format(PyExc_TypeError, "call_kinds: a tuple of at most %d pairs is needed", room);
  }
  kind_count = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pairs); ++i) {
    PyObject* type;
    int counts;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(pairs, i), "O!i", &PyType_Type, &type, &counts)) return nullptr;
    if (counts < 0 || counts >= kWays) return PyErr_Format(PyExc_ValueError, "call_kinds: no way %d", counts);
    kinds[kind_count++] = {reinterpret_cast<PyTypeObject*>(type), static_cast<Counts>(counts)};
  }
  Py_RETURN_NONE;
}

PyObject* call_key(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyTuple_Check(args[0]) || !PyList_Check(args[1])) {
    PyErr_SetString(PyExc_TypeError, "call_key: a tuple of arguments and a list for their tensors are needed");
    return nullptr;
  }
  int64_t words[kWords];
  int used = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); ++i) {
    const int n = add_argument(PyTuple_GET_ITEM(args[0], i), words + used, kWords - used, 0, args[1]);
    if (n < 0) {
      PyErr_Clear();
      Py_RETURN_NONE;
    }
    used += n;
  }
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(words), used * static_cast<Py_ssize_t>(sizeof(int64_t)));
}

PyMethodDef functions[] = {
    {"call_key", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call_key)), METH_FASTCALL,
     "call_key(args, tensors): a key for few arguments of the types that `call_kinds` named; None for others.\n"
     "Appends the tensors to the list `tensors`."},
    {"call_kinds", call_kinds, METH_O, "call_kinds(pairs): what counts of arguments, by type, see compile/signature.py."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int init_signature(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace mycelia
