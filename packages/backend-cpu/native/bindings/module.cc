// The extension module mycelia_backend_cpu._native: hands the kernel table to core and the thread pool's knobs to Python.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>

#include "mycelia/cpu.h"

namespace {

const myc_kernel_table* table = nullptr;  // set once while the module is imported

PyObject* kernel_table(PyObject*, PyObject*) {
  return PyCapsule_New(const_cast<myc_kernel_table*>(table), MYC_KERNEL_TABLE_CAPSULE, nullptr);
}

PyObject* isa(PyObject*, PyObject*) { return PyUnicode_FromString(table->isa); }

PyObject* threads(PyObject*, PyObject*) { return PyLong_FromLong(myc_cpu_threads()); }

// A count of threads in `given`, -1 with an error set if it is none.
int32_t thread_count(PyObject* given, const char* function) {
  const long n = PyLong_AsLong(given);
  if (n == -1 && PyErr_Occurred()) return -1;
  if (n >= 0 && n <= 1024) return static_cast<int32_t>(n);
  PyErr_Format(PyExc_ValueError, "%s: expected 0 (all cores) or a count up to 1024, got %ld", function, n);
  return -1;
}

PyObject* set_threads(PyObject*, PyObject* count) {
  const int32_t n = thread_count(count, "set_threads");
  if (n < 0) return nullptr;
  myc_cpu_set_threads(n);
  Py_RETURN_NONE;
}

PyObject* limit_threads(PyObject*, PyObject* count) {
  static thread_local int32_t limit = 0;
  const int32_t n = thread_count(count, "limit_threads");
  if (n < 0) return nullptr;
  const int32_t before = limit;
  myc_cpu_use_pool(nullptr, limit = n);
  return PyLong_FromLong(before);
}

PyObject* set_deterministic(PyObject*, PyObject* on) {
  const int value = PyObject_IsTrue(on);
  if (value < 0) return nullptr;
  myc_cpu_set_deterministic(value);
  Py_RETURN_NONE;
}

PyObject* multiply_adds(PyObject*, PyObject* rounds) {
  const long long n = PyLong_AsLongLong(rounds);
  if (n == -1 && PyErr_Occurred()) return nullptr;
  double operations;
  Py_BEGIN_ALLOW_THREADS operations = myc_cpu_multiply_adds(table->isa, n);
  Py_END_ALLOW_THREADS return PyFloat_FromDouble(operations);
}

PyObject* conv_cycles(PyObject*, PyObject* arguments) {
  int algorithm, packs;
  long long image[4], channels, pad[4];
  if (!PyArg_ParseTuple(arguments, "i(LLLL)L(LLLL)p", &algorithm, image, image + 1, image + 2, image + 3, &channels, pad, pad + 1, pad + 2,
                        pad + 3, &packs))
    return nullptr;
  int64_t sizes[4], pads[4];
  for (int d = 0; d < 4; ++d) sizes[d] = image[d], pads[d] = pad[d];
  return PyFloat_FromDouble(myc_cpu_conv_cycles(algorithm, sizes, channels, pads, packs));
}

PyObject* product_algorithm(PyObject*, PyObject* arguments) {
  long long rows, columns, depth;
  if (!PyArg_ParseTuple(arguments, "LLL", &rows, &columns, &depth)) return nullptr;
  return PyLong_FromLong(myc_cpu_product_algorithm(rows, columns, depth));
}

PyMethodDef methods[] = {
    {"kernel_table", kernel_table, METH_NOARGS, "The kernel table as a capsule named 'mycelia.kernel_table'."},
    {"isa", isa, METH_NOARGS, "Name of the instruction-set variant in use: generic, avx2, avx512 or neon."},
    {"threads", threads, METH_NOARGS, "Number of threads that kernels may use."},
    {"set_threads", set_threads, METH_O, "Set the number of threads that kernels may use; 0 = all cores."},
    {"limit_threads", limit_threads, METH_O,
     "Limit the threads that kernels of the calling thread may use, 0 = as set_threads says; the limit before."},
    {"set_deterministic", set_deterministic, METH_O, "Whether results must not depend on the number of threads."},
    {"multiply_adds", multiply_adds, METH_O,
     "Do that many rounds of multiply-adds in registers; the number of operations, for measuring the peak."},
    {"conv_cycles", conv_cycles, METH_VARARGS,
     "(algorithm, (n, height, width, depth), channels, pad, packs) -> estimated cycles, see mycelia/cpu.h."},
    {"product_algorithm", product_algorithm, METH_VARARGS,
     "(rows, columns, depth) -> number of the algorithm of a product with constant weights, see mycelia/cpu.h."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", "CPU kernels of Mycelia.", -1, methods, nullptr, nullptr,
                          nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__native(void) {
  const char* wanted = getenv("MYCELIA_ISA");
  table = myc_cpu_kernel_table(wanted);
  if (table == nullptr) {
    PyErr_Format(PyExc_ImportError,
                 "mycelia-backend-cpu: the kernel variant '%s' (MYCELIA_ISA) was not built or this processor cannot run "
                 "it; unset MYCELIA_ISA to let the library choose",
                 wanted != nullptr ? wanted : "any");
    return nullptr;
  }
  return PyModule_Create(&definition);
}
