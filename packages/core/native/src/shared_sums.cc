// What processes that add arrays together do besides Python: copies, sums in the order of ranks, and waiting for a word that another
// process writes into memory that both see (engine/communication).
#define PY_SSIZE_T_CLEAN
#define NO_IMPORT_ARRAY
#define PY_ARRAY_UNIQUE_SYMBOL mycelia_array_api
#define NPY_NO_DEPRECATED_API NPY_1_20_API_VERSION
#include <numpy/arrayobject.h>

#include <cmath>

#ifdef __linux__
#include <sched.h>
#endif

#include "shared_memory.h"

#if defined(__GNUC__) && !defined(__clang__)
#define MYC_VECTORIZED __attribute__((optimize("O3")))
#else
#define MYC_VECTORIZED
#endif

namespace mycelia {
namespace {

constexpr int64_t kReleaseGilBytes = 1 << 18;
constexpr int64_t kBlock = 4096;  // elements whose sums stay in the first cache

}  // namespace

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

namespace {

class WithoutGil {
 public:
  explicit WithoutGil(int64_t bytes) : state_(bytes >= kReleaseGilBytes ? PyEval_SaveThread() : nullptr) {}
  ~WithoutGil() {
    if (state_) PyEval_RestoreThread(state_);
  }

 private:
  PyThreadState* state_;
};

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

}  // namespace

void add_arrays(int32_t dtype, const std::vector<const char*>& parts, char* out, int64_t count, double divisor) {
  if (dtype == MYC_F32) {
    add_parts<float>(parts, out, count, divisor);
  } else {
    add_parts<double>(parts, out, count, divisor);
  }
}

namespace {

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
  const int32_t dtype = type == NPY_FLOAT ? MYC_F32 : MYC_F64;
  add_arrays(dtype, from, to, size_of(out) / kItemSize[dtype], divisor);
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
  bool found = look_for(is_there, spins);
  if (!found && sleeps > 0) {
    const uint32_t before = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (before != wanted) sleep_for(word, before, sleeps);
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
  wake_all(word);
  Py_RETURN_NONE;
}

// Memory of a member for short arrays: two slots by turns, then a line whose first word says whether the member sleeps. A slot begins
// with the number of the exchange, plus 1, and the bytes of the text and of the elements that follow.
constexpr int64_t kLine = 64, kText = 448, kData = 256 << 10, kSlot = kLine + kText + kData;

struct Slot {
  char* begin;
  uint32_t* word() const { return reinterpret_cast<uint32_t*>(begin); }
  int64_t* head() const { return reinterpret_cast<int64_t*>(begin); }
  char* text() const { return begin + kLine; }
  char* data() const { return begin + kLine + kText; }
  bool is_of(int64_t number) const { return __atomic_load_n(head(), __ATOMIC_ACQUIRE) == number + 1; }
};

Slot slot_at(char* memory, int64_t number) { return {memory + number % 2 * kSlot}; }
int64_t* sleeps_at(char* memory) { return reinterpret_cast<int64_t*>(memory + 2 * kSlot); }

// Until the slot is written, for `spins` seconds awake and `sleeps` asleep. Meanwhile others get the core: among them may
// be the member that is waited for.
bool await_slot(const Slot& slot, int64_t number, int64_t* asleep, double spins, double sleeps) {
  const double begin = monotonic();
  do {
    for (int i = 0; i < 64; ++i) {
      if (slot.is_of(number)) return true;
      if (i % 8 == 7) sched_yield();
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  } while (monotonic() - begin < spins);
  if (sleeps <= 0) return false;
  __atomic_store_n(asleep, 1, __ATOMIC_SEQ_CST);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  const uint32_t before = __atomic_load_n(slot.word(), __ATOMIC_ACQUIRE);
  if (!slot.is_of(number)) sleep_for(slot.word(), before, sleeps);
  __atomic_store_n(asleep, 0, __ATOMIC_RELEASE);
  return slot.is_of(number);
}

PyObject* exchange_short(PyObject*, PyObject* args) {
  PyObject *memories, *array;
  Py_ssize_t rank;
  long long number;
  const char* what;
  Py_ssize_t length;
  double spins, sleeps;
  if (!PyArg_ParseTuple(args, "O!nLy#Odd", &PyList_Type, &memories, &rank, &number, &what, &length, &array, &spins, &sleeps)) return nullptr;
  const char* from = bytes_of(array, false);
  if (!from) return nullptr;
  const Py_ssize_t size = PyList_GET_SIZE(memories);
  const int64_t bytes = size_of(array);
  if (length > kText || bytes > kData || rank < 0 || rank >= size || number < 0) {
    return PyErr_Format(PyExc_ValueError, "exchange_short: %zd bytes of text and %lld of elements do not fit", length, static_cast<long long>(bytes));
  }
  std::vector<char*> of(size);
  for (Py_ssize_t i = 0; i < size; ++i) {
    of[i] = bytes_of(PyList_GET_ITEM(memories, i), i == rank);
    if (!of[i]) return nullptr;
    if (size_of(PyList_GET_ITEM(memories, i)) < 2 * kSlot + kLine) return PyErr_Format(PyExc_ValueError, "exchange_short: the memory of member %zd is too small", i);
  }
  const Slot own = slot_at(of[rank], number);
  int64_t* asleep = sleeps_at(of[rank]);
  PyThreadState* state = PyEval_SaveThread();
  if (!own.is_of(number)) {
    std::memcpy(own.text(), what, length);
    std::memcpy(own.data(), from, bytes);
    own.head()[1] = length;
    own.head()[2] = bytes;
    __atomic_store_n(own.head(), number + 1, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    bool wakes = false;
    for (char* memory : of) wakes = wakes || (memory != of[rank] && __atomic_load_n(sleeps_at(memory), __ATOMIC_ACQUIRE));
    if (wakes) wake_all(own.word());
  }
  Py_ssize_t missing = -1, other = -1;
  for (Py_ssize_t i = 0; i < size && missing < 0 && other < 0; ++i) {
    if (i == rank) continue;
    const Slot slot = slot_at(of[i], number);
    if (!await_slot(slot, number, asleep, spins, sleeps)) {
      missing = i;
    } else if (slot.head()[1] != length || slot.head()[2] != bytes || std::memcmp(slot.text(), what, length)) {
      other = i;
    }
  }
  PyEval_RestoreThread(state);
  if (other >= 0) {
    const Slot slot = slot_at(of[other], number);
    const int64_t said = slot.head()[1];
    return Py_BuildValue("ny#", other, slot.text(), static_cast<Py_ssize_t>(said < 0 || said > kText ? 0 : said));
  }
  if (missing >= 0) return PyLong_FromSsize_t(missing);
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
    {"exchange_short", exchange_short, METH_VARARGS,
     "exchange_short(memories, rank, number, what, array, spins, sleeps): None if all members have written what they give to this call into "
     "their memories, else the first that has not, or one that calls something else, and what."},
    {"wake_word", wake_word, METH_VARARGS, "wake_word(memory, offset): wakes those who await this word, which was changed."},
#endif
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int init_shared_sums(PyObject* module) {
#ifdef __linux__
  const struct {
    const char* name;
    int64_t value;
  } sizes[] = {{"SHORT_SLOT_BYTES", kSlot}, {"SHORT_BYTES", 2 * kSlot + kLine}, {"SHORT_TEXT_BYTES", kText}, {"SHORT_DATA_BYTES", kData}};
  for (const auto& one : sizes) {
    if (PyModule_AddIntConstant(module, one.name, one.value) < 0) return -1;
  }
#endif
  return PyModule_AddFunctions(module, functions);
}

}  // namespace mycelia
