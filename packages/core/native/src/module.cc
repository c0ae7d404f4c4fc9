// Module mycelia.engine._C: initialisation and the callbacks that Python code hands over.
#define PY_ARRAY_UNIQUE_SYMBOL mycelia_array_api
#define NPY_NO_DEPRECATED_API NPY_1_20_API_VERSION
#include <numpy/arrayobject.h>

#include "core.h"
#include "shared_memory.h"

namespace mycelia {
namespace {

struct HookSlot {
  const char* name;
  PyObject** slot;
};
const HookSlot kHookSlots[] = {{"resolve", &hooks.resolve},       {"slow_call", &hooks.slow_call}, {"construct", &hooks.construct},
                               {"getitem", &hooks.getitem},       {"setitem", &hooks.setitem},     {"repr", &hooks.repr},
                               {"str", &hooks.str},               {"concretize", &hooks.concretize}, {"tensor_type", &hooks.tensor_type},
                               {"operand", &hooks.operand}};

PyObject* set_hook(PyObject*, PyObject* args) {
  const char* name;
  PyObject* value;
  if (!PyArg_ParseTuple(args, "sO", &name, &value)) return nullptr;
  for (const HookSlot& h : kHookSlots) {
    if (std::strcmp(h.name, name)) continue;
    Py_INCREF(value);
    Py_XSETREF(*h.slot, value);
    Py_RETURN_NONE;
  }
  return PyErr_Format(PyExc_ValueError, "set_hook: no hook is called '%s'", name);
}

PyObject* memory_statistics(PyObject*, PyObject*) { return storage_statistics(); }
PyObject* reset_memory_peaks(PyObject*, PyObject* args) {
  int live, reserved;
  if (!PyArg_ParseTuple(args, "pp", &live, &reserved)) return nullptr;
  storage_reset_peaks(live, reserved);
  Py_RETURN_NONE;
}
PyObject* set_memory_limit(PyObject*, PyObject* bytes) {
  const long long limit = PyLong_AsLongLong(bytes);
  if (limit == -1 && PyErr_Occurred()) return nullptr;
  storage_set_limit(limit);
  Py_RETURN_NONE;
}
PyObject* empty_cache(PyObject*, PyObject*) {
  storage_empty_cache();
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {{"set_hook", set_hook, METH_VARARGS, "set_hook(name, function): a callback into Python."},
                           {"memory_statistics", memory_statistics, METH_NOARGS, "Bytes in use, cached and at the peak."},
                           {"reset_memory_peaks", reset_memory_peaks, METH_VARARGS, "reset_memory_peaks(live, reserved): these peaks start anew from now."},
                           {"set_memory_limit", set_memory_limit, METH_O, "The most bytes that tensors, and what is kept for them, may take."},
                           {"empty_cache", empty_cache, METH_NOARGS, "Hands cached memory back to the system."},
                           {"watch_faults", watch_faults, METH_O, "Write the native stack of a fault to a file descriptor; whether this system can."},
                           {"forget_faults", forget_faults, METH_NOARGS, "End watch_faults."},
                           {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "mycelia.engine._C", "The native core: Tensor, Op, tape and program executor.", -1, functions,
                          nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace mycelia

PyMODINIT_FUNC PyInit__C() {
  import_array();
  PyObject* m = PyModule_Create(&mycelia::definition);
  if (!m) return nullptr;
  if (mycelia::init_tensor(m) < 0 || mycelia::init_op(m) < 0 || mycelia::init_plan(m) < 0 || mycelia::init_tape(m) < 0 || mycelia::init_program(m) < 0 || mycelia::init_device(m) < 0 ||
      mycelia::init_signature(m) < 0 || mycelia::init_dump_step(m) < 0 || mycelia::init_shared_sums(m) < 0 ||
      mycelia::init_direct_sums(m) < 0) {
    Py_DECREF(m);
    return nullptr;
  }
  return m;
}
