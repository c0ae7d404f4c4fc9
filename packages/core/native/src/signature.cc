// call_key: the usual arguments of a compiled function as bytes, so that finding its program is one look into a dict.
#include "core.h"

namespace mycelia {
namespace {

constexpr int kWords = 96;  // a call with more than this is found the slower way

enum Tag : int64_t { kTensor = 1, kInt, kFloat, kTrue, kFalse, kNone, kText };

// Words of one argument, or -1: only compile/signature.py knows it. Tensors are appended to `tensors`.
int add_argument(PyObject* v, int64_t* words, int room, PyObject* tensors) {
  if (Py_TYPE(v) == TensorType) {
    const myc_tensor& t = as_tensor(v)->t;
    if (!as_tensor(v)->storage || room < 1 + t.rank || PyList_Append(tensors, v) < 0) return -1;
    words[0] = kTensor | static_cast<int64_t>(t.rank) << 8 | static_cast<int64_t>(t.dtype) << 16;
    for (int32_t i = 0; i < t.rank; ++i) words[1 + i] = t.shape[i];
    return 1 + t.rank;
  }
  if (room < 2) return -1;
  if (v == Py_None || PyBool_Check(v)) {
    words[0] = v == Py_None ? kNone : v == Py_True ? kTrue : kFalse;
    return 1;
  }
  if (PyLong_CheckExact(v)) {
    int overflow;
    words[0] = kInt;
    words[1] = PyLong_AsLongLongAndOverflow(v, &overflow);
    return overflow ? -1 : 2;
  }
  if (PyFloat_CheckExact(v)) {
    const double number = PyFloat_AS_DOUBLE(v);
    words[0] = kFloat;
    std::memcpy(words + 1, &number, 8);  // -0.0 and each nan are values of their own
    return 2;
  }
  if (PyUnicode_CheckExact(v)) {
    Py_ssize_t length;
    const char* text = PyUnicode_AsUTF8AndSize(v, &length);
    const int needed = text ? 1 + static_cast<int>((length + 7) / 8) : room + 1;
    if (needed > room) return -1;
    words[0] = kText | static_cast<int64_t>(length) << 8;
    words[needed - 1] = 0;
    std::memcpy(words + 1, text, static_cast<size_t>(length));
    return needed;
  }
  return -1;
}

PyObject* call_key(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyTuple_Check(args[0]) || !PyList_Check(args[1])) {
    PyErr_SetString(PyExc_TypeError, "call_key: a tuple of arguments and a list for their tensors are needed");
    return nullptr;
  }
  int64_t words[kWords];
  int used = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); ++i) {
    const int n = add_argument(PyTuple_GET_ITEM(args[0], i), words + used, kWords - used, args[1]);
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
     "call_key(args, tensors): a key for arguments that are Tensors, numbers, None and short texts; None for others.\n"
     "Appends the tensors to the list `tensors`."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int init_signature(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace mycelia
