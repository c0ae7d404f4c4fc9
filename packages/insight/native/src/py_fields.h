// What the module `_native` has for messages of protobuf.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace mycelia::insight {

// Adds `fields`, `plain`, `varints` and the exception `Broken`. False: an exception is set.
bool add_fields(PyObject* module);

}  // namespace mycelia::insight
