// Programs for other sizes: a copy with the types that follow, and a memory plan of its own.
#include <algorithm>
#include <numeric>

#include "program.h"

namespace mycelia {
namespace {

constexpr int64_t kAlignment = 64;  // of what lies in an arena

// What needs so many bytes from instruction `first` to `last`.
struct Interval {
  int64_t bytes;
  int32_t first, last;
};

// An offset for each interval; returns the bytes of the arena. Greedy by size: the largest first, each as low as it fits.
int64_t place(const std::vector<Interval>& all, std::vector<int64_t>* offsets) {
  std::vector<int32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return all[a].bytes != all[b].bytes ? all[a].bytes > all[b].bytes : all[a].first < all[b].first;
  });
  offsets->assign(all.size(), 0);
  std::vector<int32_t> placed;  // from low to high
  placed.reserve(all.size());
  int64_t total = 0;
  for (int32_t index : order) {
    const Interval& interval = all[index];
    int64_t offset = 0;
    for (int32_t other : placed) {
      if (all[other].first > interval.last || all[other].last < interval.first) continue;
      if ((*offsets)[other] - offset >= interval.bytes) break;
      offset = std::max(offset, (*offsets)[other] + all[other].bytes);
    }
    (*offsets)[index] = offset;
    total = std::max(total, offset + interval.bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), index, [&](int32_t a, int32_t b) { return (*offsets)[a] < (*offsets)[b]; }),
                  index);
  }
  return total;
}

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool read_column(PyObject* list, std::vector<int64_t>* out) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    out->push_back(PyLong_AsLongLong(PyList_GET_ITEM(list, i)));
    if (PyErr_Occurred()) return false;
  }
  return true;
}

template <class T>
T* with_reference(T* object) {
  Py_XINCREF(object);
  return object;
}

void copy_body(const Body& from, Body* to) {
  to->code = from.code;
  for (Instruction& ins : to->code) {
    for (PyObject* o : {reinterpret_cast<PyObject*>(ins.op), reinterpret_cast<PyObject*>(ins.plan), ins.callable, ins.programs[0], ins.programs[1]})
      Py_XINCREF(o);
  }
  to->task_groups = from.task_groups;
  to->types = from.types;
  to->fixed = from.fixed;
  to->offset = from.offset;
  to->base = from.base;
  to->views = from.views;
  to->constants = from.constants;
  for (PyObject* c : to->constants) Py_XINCREF(c);
  to->home = from.home;
  to->devices = from.devices;
  to->inputs = from.inputs;
  to->outputs = from.outputs;
  to->updates = from.updates;
  to->sources = from.sources;
  for (Source& source : to->sources) with_reference(source.hoisted);
}

struct Triples {  // of int32, in a bytes object
  const int32_t* data;
  size_t count;
  Triples(PyObject* bytes, size_t width) : data(reinterpret_cast<const int32_t*>(PyBytes_AS_STRING(bytes))), count(PyBytes_GET_SIZE(bytes) / (4 * width)) {}
};

bool in_range(int32_t v, size_t count) {
  if (v >= 0 && static_cast<size_t>(v) < count) return true;
  PyErr_Format(PyExc_IndexError, "Program.resized: %d is not among %zu", v, count);
  return false;
}

bool set_sizes(PyObject* numbers, PyObject* open, Body* body) {
  const Triples entries(open, 3);
  for (size_t i = 0; i < entries.count; ++i) {
    const int32_t v = entries.data[3 * i], axis = entries.data[3 * i + 1], at = entries.data[3 * i + 2];
    if (!in_range(v, body->types.size()) || !in_range(axis, body->types[v].rank) || !in_range(at, PyList_GET_SIZE(numbers))) return false;
    body->types[v].shape[axis] = PyLong_AsLongLong(PyList_GET_ITEM(numbers, at));
    if (PyErr_Occurred()) return false;
    if (body->types[v].shape[axis] < 0) {
      PyErr_Format(PyExc_ValueError, "Program.resized: value %d would have the size %lld", v, static_cast<long long>(body->types[v].shape[axis]));
      return false;
    }
  }
  for (size_t v = 0; v < body->types.size(); ++v)
    if (body->fixed[v]) body->types[v].size = count_elements(body->types[v].rank, body->types[v].shape);
  return true;
}

int64_t bytes_of(const myc_tensor& t) { return t.size * kItemSize[t.dtype]; }

bool set_places(PyObject* blocks, PyObject* followers, Body* body) {
  const Triples found(blocks, 3), others(followers, 2);
  std::vector<Interval> intervals(found.count);
  for (size_t i = 0; i < found.count; ++i) {
    const int32_t* row = found.data + 3 * i;
    if (!in_range(row[0], body->types.size())) return false;
    intervals[i] = Interval{aligned(bytes_of(body->types[row[0]])), row[1], row[2]};
  }
  std::vector<int64_t> offsets;
  body->arena_bytes = place(intervals, &offsets);
  for (size_t i = 0; i < found.count; ++i) body->offset[found.data[3 * i]] = offsets[i];
  for (size_t i = 0; i < others.count; ++i) {
    const int32_t v = others.data[2 * i], root = others.data[2 * i + 1];
    if (!in_range(v, body->types.size()) || !in_range(root, body->types.size())) return false;
    if (body->offset[root] < 0 || bytes_of(body->types[v]) > bytes_of(body->types[root])) {
      PyErr_Format(PyExc_ValueError, "Program.resized: value %d does not fit in the place of value %d", v, root);
      return false;
    }
    body->offset[v] = body->offset[root];
  }
  for (size_t v = 0; v < body->types.size(); ++v) body->offset[v] = body->offset[body->base[v]];
  return true;
}

bool set_instructions(PyObject* changed, Body* body) {
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(changed, &at, &key, &value)) {
    const long index = PyLong_AsLong(key);
    if (PyErr_Occurred() || !in_range(static_cast<int32_t>(index), body->code.size())) return false;
    Instruction fresh;
    if (!read_instruction(value, body->types.size(), &fresh)) {
      clear_instruction(&fresh);
      return false;
    }
    if (fresh.kind != body->code[index].kind || fresh.in != body->code[index].in || fresh.out != body->code[index].out) {
      clear_instruction(&fresh);
      PyErr_Format(PyExc_ValueError, "Program.resized: instruction %ld would be another one", index);
      return false;
    }
    clear_instruction(&body->code[index]);
    body->code[index] = std::move(fresh);
  }
  return true;
}

bool set_sources(PyObject* changed, Body* body) {
  if (changed == Py_None) return true;
  if (!PyTuple_Check(changed) || static_cast<size_t>(PyTuple_GET_SIZE(changed)) != body->sources.size()) {
    PyErr_SetString(PyExc_ValueError, "Program.resized: expected a Hoisted or None for each source");
    return false;
  }
  for (size_t i = 0; i < body->sources.size(); ++i) {
    PyObject* o = PyTuple_GET_ITEM(changed, i);
    if (o == Py_None) continue;
    if (Py_TYPE(o) != HoistedType) {
      PyErr_Format(PyExc_TypeError, "Program.resized: expected a Hoisted or None for each source, but got %s", Py_TYPE(o)->tp_name);
      return false;
    }
    Py_INCREF(o);
    Hoisted* old = body->sources[i].hoisted;
    body->sources[i].hoisted = reinterpret_cast<Hoisted*>(o);
    Py_DECREF(old);
  }
  return true;
}

}  // namespace

PyObject* program_resized(PyObject* self, PyObject* args) {
  PyObject *numbers, *open, *blocks, *followers, *instructions, *sources;
  if (!PyArg_ParseTuple(args, "O!SSSO!O", &PyList_Type, &numbers, &open, &blocks, &followers, &PyDict_Type, &instructions, &sources)) return nullptr;
  Program* p = new_program();
  if (!p) return nullptr;
  OwnedRef guard(reinterpret_cast<PyObject*>(p));
  copy_body(*as_program(self)->body, p->body);
  if (!set_sizes(numbers, open, p->body) || !set_places(blocks, followers, p->body)) return nullptr;
  if (!set_instructions(instructions, p->body) || !set_sources(sources, p->body)) return nullptr;
  derive(p->body);
  return guard.take();
}

// plan_offsets(sizes, first, last) -> (offsets, bytes)
PyObject* plan_offsets(PyObject*, PyObject* args) {
  PyObject* lists[3];
  if (!PyArg_ParseTuple(args, "O!O!O!", &PyList_Type, &lists[0], &PyList_Type, &lists[1], &PyList_Type, &lists[2])) return nullptr;
  std::vector<int64_t> columns[3];
  for (int i = 0; i < 3; ++i)
    if (!read_column(lists[i], &columns[i])) return nullptr;
  const size_t count = columns[0].size();
  if (columns[1].size() != count || columns[2].size() != count) {
    PyErr_SetString(PyExc_ValueError, "plan_offsets: expected lists of one length");
    return nullptr;
  }
  std::vector<Interval> intervals(count);
  for (size_t i = 0; i < count; ++i)
    intervals[i] = Interval{aligned(columns[0][i]), static_cast<int32_t>(columns[1][i]), static_cast<int32_t>(columns[2][i])};
  std::vector<int64_t> offsets;
  const int64_t total = place(intervals, &offsets);
  OwnedRef made(PyList_New(count));
  for (size_t i = 0; made && i < count; ++i) {
    PyObject* offset = PyLong_FromLongLong(offsets[i]);
    if (!offset) return nullptr;
    PyList_SET_ITEM(made.p, i, offset);
  }
  return made ? Py_BuildValue("(OL)", made.p, static_cast<long long>(total)) : nullptr;
}

}  // namespace mycelia
