// Sums of tensors that all members of a group start and take by one call each (engine/communication/direct.py): each copies its own into
// memory that the others see, says so on its board, and adds those of all when their boards say that they are there.
#define PY_SSIZE_T_CLEAN
#define NO_IMPORT_ARRAY
#define PY_ARRAY_UNIQUE_SYMBOL mycelia_array_api
#define NPY_NO_DEPRECATED_API NPY_1_20_API_VERSION
#include <numpy/arrayobject.h>

#include <algorithm>
#include <string>

#include "shared_memory.h"

namespace mycelia {
namespace {

// A board (engine/communication/board.py): entries by turns, and a line in which its owner says what it waits for. An entry is its
// number, plus 1, how far its writer has come, where its elements lie (segment, descriptor, size, offset), how many they are, and the
// length of the text that follows.
constexpr int64_t kTurns = 64, kLine = 512, kText = 64;
enum { kNumber, kEnded, kSegment, kDescriptor, kSize, kOffset, kElements, kLength };
enum { kNothing, kEntries, kMessages };

#ifdef __linux__

constexpr size_t kKnown = 16;  // segments of a member

struct Line {
  char* begin;
  int64_t* words() const { return reinterpret_cast<int64_t*>(begin); }
  const uint32_t* word() const { return reinterpret_cast<uint32_t*>(begin); }
  bool is_of(int64_t number) const { return __atomic_load_n(words(), __ATOMIC_ACQUIRE) == number + 1; }
};

struct Memory {
  PyObject* array;
  char* data;
  int64_t size, segment, descriptor, last;  // the last number that it was for
};

struct Member {
  PyObject* board;
  char* begin;
  std::vector<Memory> known;
  size_t oldest = 0;

  Line line(int64_t number) const { return {begin + number % kTurns * kLine}; }
  int64_t* said() const { return reinterpret_cast<int64_t*>(begin + kTurns * kLine); }
};

struct Sums {
  std::string told;
  int32_t dtype;
  int64_t elements;
  double divisor;
  size_t rank;  // of this process among the members
  std::vector<int64_t> offsets;  // of the tensors, in bytes
  std::vector<myc_tensor> types;
  Member own;
  std::vector<Member> others;  // in order of their ranks
  std::vector<Memory> rooms;   // of this process, by turns
  size_t turn = 0;
};

struct DirectSums {
  PyObject_HEAD
  Sums* sums;
};

Sums* sums_of(PyObject* self) { return reinterpret_cast<DirectSums*>(self)->sums; }

bool read_board(PyObject* array, bool writes, Member* out) {
  out->begin = bytes_of(array, writes);
  if (!out->begin) return false;
  if (size_of(array) < (kTurns + 1) * kLine) {
    PyErr_SetString(PyExc_ValueError, "DirectSums: the memory is smaller than a board");
    return false;
  }
  out->board = Py_NewRef(array);
  return true;
}

void free_sums(Sums* s) {
  Py_XDECREF(s->own.board);
  for (Member& m : s->others) {
    Py_XDECREF(m.board);
    for (Memory& k : m.known) Py_XDECREF(k.array);
  }
  for (Memory& r : s->rooms) Py_XDECREF(r.array);
  delete s;
}

bool read_sums(Sums* s, PyObject* args) {
  PyObject *own, *others, *offsets, *shapes, *dtype;
  const char* told;
  Py_ssize_t length, rank;
  long long elements;
  if (!PyArg_ParseTuple(args, "OO!ny#O!O!LOd", &own, &PyList_Type, &others, &rank, &told, &length, &PyTuple_Type, &offsets, &PyTuple_Type, &shapes, &elements,
                        &dtype, &s->divisor)) {
    return false;
  }
  s->told.assign(told, length);
  s->elements = elements;
  s->rank = rank;
  s->dtype = dtype_code(dtype);
  if (s->dtype < 0) return false;
  const Py_ssize_t members = PyList_GET_SIZE(others) + 1, count = PyTuple_GET_SIZE(shapes);
  if ((s->dtype != MYC_F32 && s->dtype != MYC_F64) || length > kLine - kText || rank < 0 || rank >= members || members < 2 || PyTuple_GET_SIZE(offsets) != count) {
    PyErr_SetString(PyExc_ValueError, "DirectSums: float32 or float64 of two members or more, a text that fits, and an offset for each shape are needed");
    return false;
  }
  if (!read_board(own, true, &s->own)) return false;
  for (Py_ssize_t i = 0; i + 1 < members; ++i) {
    s->others.emplace_back();
    s->others.back().board = nullptr;
    if (!read_board(PyList_GET_ITEM(others, i), false, &s->others.back())) return false;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* shape = PyTuple_GET_ITEM(shapes, i);
    myc_tensor type = {};
    if (!PyTuple_Check(shape) || PyTuple_GET_SIZE(shape) > MYC_MAX_RANK) {
      PyErr_SetString(PyExc_TypeError, "DirectSums: shapes must be tuples");
      return false;
    }
    type.dtype = s->dtype;
    type.rank = static_cast<int32_t>(PyTuple_GET_SIZE(shape));
    for (int32_t d = 0; d < type.rank; ++d) type.shape[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, d));
    type.size = count_elements(type.rank, type.shape);
    const int64_t at = PyLong_AsLongLong(PyTuple_GET_ITEM(offsets, i));
    if (PyErr_Occurred()) return false;
    if (at < 0 || at + type.size * kItemSize[s->dtype] > elements * kItemSize[s->dtype]) {
      PyErr_Format(PyExc_ValueError, "DirectSums: tensor %zd does not fit into %lld elements", i, elements);
      return false;
    }
    s->offsets.push_back(at);
    s->types.push_back(type);
  }
  return true;
}

PyObject* direct_new(PyTypeObject* type, PyObject* args, PyObject*) {
  OwnedRef made(type->tp_alloc(type, 0));
  if (!made) return nullptr;
  Sums* s = new Sums();
  s->own.board = nullptr;
  reinterpret_cast<DirectSums*>(made.p)->sums = s;
  return read_sums(s, args) ? made.take() : nullptr;
}

void direct_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (sums_of(self)) free_sums(sums_of(self));
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* direct_room(PyObject* self, PyObject* args) {
  PyObject* array;
  long long segment, descriptor, size, last;
  if (!PyArg_ParseTuple(args, "OLLLL", &array, &segment, &descriptor, &size, &last)) return nullptr;
  Sums* s = sums_of(self);
  char* data = bytes_of(array, true);
  if (!data) return nullptr;
  if (size_of(array) < s->elements * kItemSize[s->dtype]) return PyErr_Format(PyExc_ValueError, "DirectSums: the memory is too small");
  s->rooms.push_back({Py_NewRef(array), data, size, segment, descriptor, last});
  return PyLong_FromSize_t(s->rooms.size());
}

PyObject* direct_knows(PyObject* self, PyObject* args) {
  PyObject* array;
  Py_ssize_t other;
  long long segment;
  if (!PyArg_ParseTuple(args, "nLO", &other, &segment, &array)) return nullptr;
  Sums* s = sums_of(self);
  char* data = bytes_of(array, false);
  if (!data) return nullptr;
  if (other < 0 || static_cast<size_t>(other) >= s->others.size()) return PyErr_Format(PyExc_ValueError, "DirectSums: there is no member %zd", other);
  Member& m = s->others[other];
  const Memory found = {Py_NewRef(array), data, size_of(array), segment, 0, 0};
  for (Memory& k : m.known) {
    if (k.segment != segment) continue;
    Py_SETREF(k.array, found.array);
    k = found;
    Py_RETURN_NONE;
  }
  if (m.known.size() < kKnown) {
    m.known.push_back(found);
  } else {
    Memory& k = m.known[m.oldest++ % kKnown];
    Py_DECREF(k.array);
    k = found;
  }
  Py_RETURN_NONE;
}

bool fit(const Sums* s, PyObject* tensors) {
  if (!PyTuple_Check(tensors) || static_cast<size_t>(PyTuple_GET_SIZE(tensors)) != s->types.size()) {
    PyErr_Format(PyExc_TypeError, "DirectSums: a tuple of %zu tensors is needed", s->types.size());
    return false;
  }
  for (size_t i = 0; i < s->types.size(); ++i) {
    PyObject* o = PyTuple_GET_ITEM(tensors, i);
    const Tensor* t = is_tensor(o) ? as_tensor(o) : nullptr;
    if (!t || !t->storage || t->storage->device != kHost || t->t.dtype != s->dtype || t->t.size != s->types[i].size) {
      PyErr_Format(PyExc_TypeError, "DirectSums: tensor %zu is of another dtype or size, or does not lie on the host", i);
      return false;
    }
  }
  return true;
}

// Which of the own rooms was taken, or -1 if its turn has not come: others may still read there. Plus 1 << 8 if a member waits for
// messages, which the caller sends.
PyObject* direct_start(PyObject* self, PyObject* args) {
  long long number, ended, free;
  PyObject* tensors;
  if (!PyArg_ParseTuple(args, "LLLO", &number, &ended, &free, &tensors)) return nullptr;
  Sums* s = sums_of(self);
  if (!fit(s, tensors)) return nullptr;
  if (s->rooms.empty() || s->rooms[s->turn].last >= free || number - free >= kTurns) return PyLong_FromLong(-1);
  const size_t turn = s->turn;
  Memory& room = s->rooms[turn];
  s->turn = (turn + 1) % s->rooms.size();
  room.last = number;
  for (size_t i = 0; i < s->types.size(); ++i) {
    const myc_tensor& t = as_tensor(PyTuple_GET_ITEM(tensors, i))->t;
    std::memcpy(room.data + s->offsets[i], t.data, t.size * kItemSize[s->dtype]);
  }
  const Line line = s->own.line(number);
  int64_t* words = line.words();
  __atomic_store_n(words, -1, __ATOMIC_RELEASE);
  words[kEnded] = ended;
  words[kSegment] = room.segment;
  words[kDescriptor] = room.descriptor;
  words[kSize] = room.size;
  words[kOffset] = 0;
  words[kElements] = s->elements;
  words[kLength] = static_cast<int64_t>(s->told.size());
  std::memcpy(line.begin + kText, s->told.data(), s->told.size());
  __atomic_store_n(words, number + 1, __ATOMIC_SEQ_CST);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);  // what was written is seen before what others say is read
  bool sleeps = false, listens = false;
  for (const Member& m : s->others) {
    const int64_t said = __atomic_load_n(m.said(), __ATOMIC_ACQUIRE);
    sleeps = sleeps || said == kEntries;
    listens = listens || said == kMessages;
  }
  if (sleeps) wake_all(line.word());
  return PyLong_FromSize_t(turn + (listens ? 256 : 0));
}

// Whether a member has written its entry: looked at for `looks` seconds, then up to `naps` times slept for `nap` seconds.
bool await_entry(const Sums* s, const Member& m, int64_t number, double looks, int naps, double nap) {
  const Line line = m.line(number);
  if (look_for([&] { return line.is_of(number); }, looks)) return true;
  bool found = false;
  for (int i = 0; i < naps && !found; ++i) {
    __atomic_store_n(s->own.said(), static_cast<int64_t>(kEntries), __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    const uint32_t before = __atomic_load_n(line.word(), __ATOMIC_ACQUIRE);
    if (!line.is_of(number)) sleep_for(line.word(), before, nap);
    found = line.is_of(number);
  }
  __atomic_store_n(s->own.said(), static_cast<int64_t>(kNothing), __ATOMIC_RELEASE);
  return found;
}

// Where the elements of an entry lie, if it is of these sums and in memory that is known; else NULL.
const char* elements_of(const Sums* s, const Member& m, int64_t number) {
  const Line line = m.line(number);
  const int64_t* words = line.words();
  if (words[kElements] != s->elements || words[kLength] != static_cast<int64_t>(s->told.size())) return nullptr;
  if (std::memcmp(line.begin + kText, s->told.data(), s->told.size())) return nullptr;
  for (const Memory& k : m.known) {
    if (k.segment != words[kSegment]) continue;
    const int64_t offset = words[kOffset];
    return offset >= 0 && offset + s->elements * kItemSize[s->dtype] <= k.size ? k.data + offset : nullptr;
  }
  return nullptr;
}

PyObject* direct_finish(PyObject* self, PyObject* args) {
  long long number;
  int room, naps;
  double looks, nap;
  if (!PyArg_ParseTuple(args, "Lidid", &number, &room, &looks, &naps, &nap)) return nullptr;
  const Sums* s = sums_of(self);
  if (room < 0 || static_cast<size_t>(room) >= s->rooms.size()) return PyErr_Format(PyExc_ValueError, "DirectSums: there is no room %d", room);
  const int64_t shape[1] = {s->elements};
  OwnedRef total(reinterpret_cast<PyObject*>(tensor_empty(s->dtype, 1, shape)));
  if (!total) return nullptr;
  char* out = static_cast<char*>(as_tensor(total.p)->t.data);
  std::vector<const char*> parts;
  bool is_whole = true;
  int64_t ended = INT64_MAX;
  PyThreadState* state = PyEval_SaveThread();
  for (size_t i = 0; i <= s->others.size() && is_whole; ++i) {
    if (i == s->rank) {
      parts.push_back(s->rooms[room].data);
      continue;
    }
    const Member& m = s->others[i - (i > s->rank)];
    const char* part = await_entry(s, m, number, looks, naps, nap) ? elements_of(s, m, number) : nullptr;
    is_whole = part != nullptr;
    if (!is_whole) break;
    parts.push_back(part);
    ended = std::min<int64_t>(ended, m.line(number).words()[kEnded]);
  }
  if (is_whole) add_arrays(s->dtype, parts, out, s->elements, s->divisor);
  PyEval_RestoreThread(state);
  if (!is_whole) Py_RETURN_NONE;
  OwnedRef found(PyTuple_New(s->types.size()));
  for (size_t i = 0; found && i < s->types.size(); ++i) {
    Tensor* view = tensor_view(as_tensor(total.p), s->types[i].rank, s->types[i].shape, s->offsets[i]);
    if (!view) return nullptr;
    PyTuple_SET_ITEM(found.p, i, reinterpret_cast<PyObject*>(view));
  }
  return found ? Py_BuildValue("LO", static_cast<long long>(ended), found.p) : nullptr;
}

PyMethodDef direct_methods[] = {
    {"room", direct_room, METH_VARARGS, "room(memory, segment, descriptor, size, last): memory of this process that all others have opened; how many there are."},
    {"knows", direct_knows, METH_VARARGS, "knows(other, segment, memory): memory of another member, that is the i-th of the others."},
    {"start", direct_start, METH_VARARGS,
     "start(number, ended, free, tensors): which room has the tensors now, plus 256 if a member waits for messages; -1 if there is none that is\n"
     "not read any more: the last number that it was for is below `free`."},
    {"finish", direct_finish, METH_VARARGS,
     "finish(number, room, looks, naps, nap): (how far all others have come, the sums), or None if a member does not come in time, starts\n"
     "something else, or has put its elements where nobody knows."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot direct_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(direct_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(direct_dealloc)},
    {Py_tp_methods, direct_methods},
    {Py_tp_doc, const_cast<char*>("DirectSums(own_board, boards, rank, told, offsets, shapes, elements, dtype, divisor)\n\nSums of tensors of these shapes over "
                                  "members that see one another's memory.")},
    {0, nullptr}};
PyType_Spec direct_spec = {"mycelia.engine._C.DirectSums", sizeof(DirectSums), 0, Py_TPFLAGS_DEFAULT, direct_slots};

#endif

}  // namespace

int init_direct_sums(PyObject* module) {
  const struct {
    const char* name;
    int64_t value;
  } sizes[] = {{"BOARD_TURNS", kTurns}, {"BOARD_LINE", kLine}, {"BOARD_TEXT", kText}, {"BOARD_NOTHING", kNothing}, {"BOARD_ENTRIES", kEntries},
               {"BOARD_MESSAGES", kMessages}};
  for (const auto& one : sizes) {
    if (PyModule_AddIntConstant(module, one.name, one.value) < 0) return -1;
  }
#ifdef __linux__
  OwnedRef type(PyType_FromSpec(&direct_spec));
  return type ? PyModule_AddObjectRef(module, "DirectSums", type.p) : -1;
#else
  return 0;
#endif
}

}  // namespace mycelia
