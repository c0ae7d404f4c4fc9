// What processes that add arrays together do besides Python: copies, sums in the order of ranks, and waiting for a word that another
// process writes into memory that both see (engine/communication).
#define NO_IMPORT_ARRAY
#define PY_ARRAY_UNIQUE_SYMBOL mycelia_array_api
#define NPY_NO_DEPRECATED_API NPY_1_20_API_VERSION
#include <numpy/arrayobject.h>

#include <cerrno>
#include <cmath>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#endif

#include "core.h"

#if defined(__GNUC__) && !defined(__clang__)
#define MYC_VECTORIZED __attribute__((optimize("O3")))
#else
#define MYC_VECTORIZED
#endif

namespace mycelia {
namespace {

constexpr int64_t kReleaseGilBytes = 1 << 18;
constexpr int64_t kBlock = 4096;  // elements whose sums stay in the first cache

class WithoutGil {
 public:
  explicit WithoutGil(int64_t bytes) : state_(bytes >= kReleaseGilBytes ? PyEval_SaveThread() : nullptr) {}
  ~WithoutGil() {
    if (state_) PyEval_RestoreThread(state_);
  }

 private:
  PyThreadState* state_;
};

// The bytes of a contiguous array; NULL with TypeError set.
char* bytes_of(PyObject* value, bool writes) {
  if (!PyArray_Check(value) || !PyArray_IS_C_CONTIGUOUS(reinterpret_cast<PyArrayObject*>(value))) {
    PyErr_SetString(PyExc_TypeError, "a contiguous array is needed");
    return nullptr;
  }
  PyArrayObject* array = reinterpret_cast<PyArrayObject*>(value);
  if (writes && !PyArray_ISWRITEABLE(array)) {
    PyErr_SetString(PyExc_TypeError, "the array cannot be written");
    return nullptr;
  }
  return static_cast<char*>(PyArray_DATA(array));
}

int64_t size_of(PyObject* array) { return PyArray_NBYTES(reinterpret_cast<PyArrayObject*>(array)); }

PyObject* lay_down(PyObject*, PyObject* args) {
  PyObject *out, *offsets, *arrays;
  if (!PyArg_ParseTuple(args, "OO!O!", &out, &PyTuple_Type, &offsets, &PyList_Type, &arrays)) return nullptr;
  char* to = bytes_of(out, true);
  if (!to) return nullptr;
  const Py_ssize_t count = PyList_GET_SIZE(arrays);
  if (PyTuple_GET_SIZE(offsets) != count) return PyErr_Format(PyExc_ValueError, "lay_down: %zd offsets for %zd arrays", PyTuple_GET_SIZE(offsets), count);
  struct Copy {
    char* to;
    const char* from;
    int64_t bytes;
  };
  std::vector<Copy> copies;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const char* from = bytes_of(PyList_GET_ITEM(arrays, i), false);
    const int64_t at = PyLong_AsLongLong(PyTuple_GET_ITEM(offsets, i));
    if (!from || PyErr_Occurred()) return nullptr;
    const int64_t bytes = size_of(PyList_GET_ITEM(arrays, i));
    if (at < 0 || at + bytes > size_of(out)) return PyErr_Format(PyExc_ValueError, "lay_down: array %zd does not fit", i);
    copies.push_back({to + at, from, bytes});
  }
  WithoutGil free(size_of(out));
  for (const Copy& c : copies) std::memcpy(c.to, c.from, c.bytes);
  Py_RETURN_NONE;
}

// Dividing by a power of two is multiplying by its inverse, to the same bits.
template <typename T>
MYC_VECTORIZED void divide(T* x, int64_t n, T divisor) {
  int exponent;
  if (std::frexp(divisor, &exponent) == T(0.5) && exponent > -100 && exponent < 100) {
    const T inverse = T(1) / divisor;
    for (int64_t i = 0; i < n; ++i) x[i] *= inverse;
  } else {
    for (int64_t i = 0; i < n; ++i) x[i] /= divisor;
  }
}

template <typename T>
MYC_VECTORIZED void add(T* to, const T* a, const T* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = a[i] + b[i];
}

// The result may be one of the parts: sums of a block are made apart.
template <typename T>
void add_parts(const std::vector<const char*>& parts, char* out, int64_t count, double divisor) {
  T block[kBlock];
  for (int64_t at = 0; at < count; at += kBlock) {
    const int64_t n = count - at < kBlock ? count - at : kBlock;
    add(block, reinterpret_cast<const T*>(parts[0]) + at, reinterpret_cast<const T*>(parts[1]) + at, n);
    for (size_t k = 2; k < parts.size(); ++k) add(block, block, reinterpret_cast<const T*>(parts[k]) + at, n);
    if (divisor != 1) divide(block, n, static_cast<T>(divisor));
    std::memcpy(reinterpret_cast<T*>(out) + at, block, n * sizeof(T));
  }
}

PyObject* add_up(PyObject*, PyObject* args) {
  PyObject *parts, *out;
  double divisor;
  if (!PyArg_ParseTuple(args, "O!dO", &PyList_Type, &parts, &divisor, &out)) return nullptr;
  char* to = bytes_of(out, true);
  if (!to) return nullptr;
  const int type = PyArray_TYPE(reinterpret_cast<PyArrayObject*>(out));
  const Py_ssize_t count = PyList_GET_SIZE(parts);
  if ((type != NPY_FLOAT && type != NPY_DOUBLE) || count < 2) return PyErr_Format(PyExc_TypeError, "add_up: two arrays or more of float32 or float64 are needed");
  std::vector<const char*> from;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* part = PyList_GET_ITEM(parts, i);
    from.push_back(bytes_of(part, false));
    if (!from.back()) return nullptr;
    if (PyArray_TYPE(reinterpret_cast<PyArrayObject*>(part)) != type || size_of(part) != size_of(out)) {
      return PyErr_Format(PyExc_TypeError, "add_up: part %zd has another dtype or size than the result", i);
    }
  }
  WithoutGil free(size_of(out));
  if (type == NPY_FLOAT) {
    add_parts<float>(from, to, size_of(out) / 4, divisor);
  } else {
    add_parts<double>(from, to, size_of(out) / 8, divisor);
  }
  Py_RETURN_NONE;
}

#ifdef __linux__

// The lower half of a word of 8 bytes.
uint32_t* word_at(PyObject* memory, Py_ssize_t offset) {
  char* bytes = bytes_of(memory, false);
  if (!bytes) return nullptr;
  if (offset < 0 || offset % 8 || offset + 8 > size_of(memory)) {
    PyErr_Format(PyExc_ValueError, "there is no word at %zd", offset);
    return nullptr;
  }
  return reinterpret_cast<uint32_t*>(bytes + offset);
}

PyObject* await_word(PyObject*, PyObject* args) {
  PyObject* memory;
  Py_ssize_t offset;
  long long value;
  double spins, sleeps;
  if (!PyArg_ParseTuple(args, "OnLdd", &memory, &offset, &value, &spins, &sleeps)) return nullptr;
  uint32_t* word = word_at(memory, offset);
  if (!word) return nullptr;
  const uint32_t wanted = static_cast<uint32_t>(value);
  auto is_there = [&] { return __atomic_load_n(word, __ATOMIC_ACQUIRE) == wanted; };
  PyThreadState* state = PyEval_SaveThread();
  auto now = [] {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
  };
  const double begin = now();
  bool found = is_there();
  while (!found && now() - begin < spins) {
    for (int i = 0; i < 32 && !(found = is_there()); ++i) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  }
  if (!found && sleeps > 0) {
    const uint32_t before = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (before != wanted) {
      timespec most = {static_cast<time_t>(sleeps), static_cast<long>((sleeps - std::floor(sleeps)) * 1e9)};
      syscall(SYS_futex, word, FUTEX_WAIT, before, &most, nullptr, 0);  // a signal or another value ends it, too
    }
    found = is_there();
  }
  PyEval_RestoreThread(state);
  return PyBool_FromLong(found);
}

PyObject* wake_word(PyObject*, PyObject* args) {
  PyObject* memory;
  Py_ssize_t offset;
  if (!PyArg_ParseTuple(args, "On", &memory, &offset)) return nullptr;
  uint32_t* word = word_at(memory, offset);
  if (!word) return nullptr;
  syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
  Py_RETURN_NONE;
}

#endif

PyMethodDef functions[] = {
    {"lay_down", lay_down, METH_VARARGS, "lay_down(out, offsets, arrays): copies arrays to places in another, in bytes."},
    {"add_up", add_up, METH_VARARGS, "add_up(parts, divisor, out): sums of float32 or float64 in the order of the parts, divided."},
#ifdef __linux__
    {"await_word", await_word, METH_VARARGS,
     "await_word(memory, offset, value, spins, sleeps): whether a word of shared memory has this value, looked at for `spins` seconds, and "
     "then once more after it has changed or `sleeps` seconds are over."},
    {"wake_word", wake_word, METH_VARARGS, "wake_word(memory, offset): wakes those who await this word, which was changed."},
#endif
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int init_shared_sums(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace mycelia
