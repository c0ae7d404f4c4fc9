// What the files of the Op type share: op.cc has the type, call.cc how it is called.
#pragma once
#include "core.h"

namespace mycelia {

constexpr int kMaxParams = 32;  // of one op, attributes included

// call.cc
PyObject* op_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames);
// _execute(args, attrs): runs the op now, whatever the mode; arguments as slow_call received them.
PyObject* op_execute(PyObject* self, PyObject* args);

}  // namespace mycelia
