// What the Python side of mycelia.engine._data shares: arguments, errors, the interpreter's lock.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <exception>
#include <utility>

#include "data.h"

namespace mycelia::data {

constexpr long kLargest = 1 << 29;

// A C-contiguous uint8 image [rows, columns, channels], but for the distance of its rows.
struct Pixels {
  const uint8_t* first;
  int rows, columns, channels;
  ptrdiff_t stride;
};
bool pixels_of(PyObject* object, Pixels* out);

extern PyMethodDef image_functions[], event_functions[];
bool add_event_file(PyObject* module);  // false with an error set

PyObject* failed(const std::exception& e);  // sets the error, gives nullptr

template <class Body>
PyObject* guarded(Body&& body) {
  try {
    return body();
  } catch (const std::exception& e) {
    return failed(e);
  }
}

// Runs `body` without the interpreter's lock. None (borrowed), or nullptr with an error set.
template <class Body>
PyObject* unlocked(Body&& body) {
  PyThreadState* state = PyEval_SaveThread();
  try {
    std::forward<Body>(body)();
  } catch (const std::exception& e) {
    PyEval_RestoreThread(state);
    return failed(e);
  }
  PyEval_RestoreThread(state);
  return Py_None;
}

}  // namespace mycelia::data
