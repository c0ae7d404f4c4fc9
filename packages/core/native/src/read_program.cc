// What the compiler gives for a Program, checked: a Body.
#include "program.h"

namespace mycelia {
namespace {

bool read_ints(PyObject* tuple, size_t n_values, bool absent_allowed, Ints* out) {
  if (!PyTuple_Check(tuple)) {
    PyErr_SetString(PyExc_TypeError, "Program: values must be a tuple of int");
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    const long v = PyLong_AsLong(PyTuple_GET_ITEM(tuple, i));
    if (PyErr_Occurred()) return false;
    if (v >= static_cast<long>(n_values) || v < (absent_allowed ? -1 : 0)) {
      PyErr_Format(PyExc_IndexError, "Program: value %ld is not among the %zu values", v, n_values);
      return false;
    }
    out->push_back(static_cast<int32_t>(v));
  }
  return true;
}

// The inner programs are the compiler's, but a loop that goes beyond its inputs would not end in an exception.
bool check_loop(const Instruction& ins) {
  const size_t carried = static_cast<size_t>(ins.carried), scanned = static_cast<size_t>(ins.scanned), made = ins.out.size();
  bool ok = ins.carried >= 0 && ins.scanned >= 0 && carried + scanned <= ins.in.size();
  size_t results = carried;  // of the body
  if (ins.kind == kRunWhile) ok = ok && made == carried;
  if (ins.kind == kRunHistory) ok = ok && made == 2 * carried;
  if (ins.kind == kRunScan) ok = ok && made >= carried && scanned > 0;
  if (ins.kind == kRunScan) results = made;
  ok = ok && as_program(ins.programs[1])->body->outputs.size() == results;
  ok = ok && (!ins.programs[0] || as_program(ins.programs[0])->body->outputs.size() == 1);
  for (int32_t v : ins.in) ok = ok && v >= 0;
  if (ins.kind != kRunWhile)
    for (size_t k = carried; ok && k < made; ++k) ok = ins.out[k] >= 0;
  if (!ok) PyErr_SetString(PyExc_ValueError, "Program: inputs, results and programs of a loop do not fit together");
  return ok;
}

}  // namespace

bool read_instruction(PyObject* tuple, size_t n_values, Instruction* ins) {
  const char* kind;
  if (!PyTuple_Check(tuple) || !PyTuple_GET_SIZE(tuple) || !(kind = PyUnicode_AsUTF8(PyTuple_GET_ITEM(tuple, 0)))) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "Program: an instruction is a tuple that starts with its kind");
    return false;
  }
  OwnedRef rest(PyTuple_GetSlice(tuple, 1, PyTuple_GET_SIZE(tuple)));
  PyObject *in, *out, *free, *a = nullptr, *b = nullptr;
  if (std::strcmp(kind, "op") == 0) {
    if (!PyArg_ParseTuple(rest.p, "O!O!OOO", OpType, &a, PlanType, &b, &in, &out, &free)) return false;
    Py_INCREF(a);
    Py_INCREF(b);
    ins->op = reinterpret_cast<Op*>(a);
    ins->plan = reinterpret_cast<Plan*>(b);
    ins->kind = ins->plan->kind == kKernel ? kRunKernel : kRunReference;
  } else if (std::strcmp(kind, "view") == 0) {
    if (!PyArg_ParseTuple(rest.p, "OOO", &in, &out, &free)) return false;
    ins->kind = kRunView;
  } else if (std::strcmp(kind, "python") == 0) {
    if (!PyArg_ParseTuple(rest.p, "OOOO", &a, &in, &out, &free)) return false;
    Py_INCREF(a);
    ins->callable = a;
    ins->kind = kRunPython;
  } else if (std::strcmp(kind, "if") == 0) {
    ins->kind = kRunIf;
    if (!PyArg_ParseTuple(rest.p, "iO!O!OOO", &ins->condition, ProgramType, &a, ProgramType, &b, &in, &out, &free)) return false;
    if (ins->condition < 0 || ins->condition >= static_cast<int32_t>(n_values)) {
      PyErr_Format(PyExc_IndexError, "Program: value %d is not among the %zu values", ins->condition, n_values);
      return false;
    }
  } else if (std::strcmp(kind, "while") == 0 || std::strcmp(kind, "history") == 0) {
    ins->kind = kind[0] == 'w' ? kRunWhile : kRunHistory;
    if (!PyArg_ParseTuple(rest.p, "O!O!iOOO", ProgramType, &a, ProgramType, &b, &ins->carried, &in, &out, &free)) return false;
  } else if (std::strcmp(kind, "scan") == 0) {
    int reverse;
    ins->kind = kRunScan;
    if (!PyArg_ParseTuple(rest.p, "O!iipOOO", ProgramType, &b, &ins->carried, &ins->scanned, &reverse, &in, &out, &free)) return false;
    ins->reverse = reverse != 0;
  } else {
    PyErr_Format(PyExc_ValueError, "Program: unknown instruction '%s'", kind);
    return false;
  }
  if (ins->kind != kRunPython && b && !ins->op) {
    Py_XINCREF(a);
    Py_INCREF(b);
    ins->programs[0] = a;
    ins->programs[1] = b;
  }
  const bool is_op = ins->op != nullptr;
  if (!read_ints(in, n_values, true, &ins->in) || !read_ints(out, n_values, !is_op, &ins->out) || !read_ints(free, n_values, false, &ins->free))
    return false;
  if (is_op && (static_cast<int32_t>(ins->out.size()) != ins->plan->n_out || static_cast<int32_t>(ins->in.size()) != ins->plan->n_in)) {
    PyErr_Format(PyExc_ValueError, "Program: %U has %d inputs and %d outputs, but %zu and %zu values were given", ins->op->name,
                 ins->plan->n_in, ins->plan->n_out, ins->in.size(), ins->out.size());
    return false;
  }
  if (ins->kind >= kRunWhile && !check_loop(*ins)) return false;
  return true;
}

namespace {

bool read_types(PyObject* types, Body* body) {
  const size_t count = static_cast<size_t>(PyTuple_GET_SIZE(types));
  body->types.resize(count);
  body->fixed.assign(count, 1);
  for (size_t v = 0; v < count; ++v) {
    myc_tensor* t = &body->types[v];
    if (!read_type(PyTuple_GET_ITEM(types, v), t)) return false;
    t->data = nullptr;
    for (int32_t i = 0; i < t->rank; ++i) body->fixed[v] &= t->shape[i] >= 0;
  }
  return true;
}

bool read_constants(PyObject* constants, Body* body) {
  PyObject *key, *value;
  Py_ssize_t at = 0;
  body->constants.assign(body->types.size(), nullptr);
  while (PyDict_Next(constants, &at, &key, &value)) {
    const Py_ssize_t v = PyLong_AsSsize_t(key);
    if (v < 0 || v >= static_cast<Py_ssize_t>(body->types.size()) || !is_tensor(value) || !as_tensor(value)->storage) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "Program: constants must be {value: Tensor}");
      return false;
    }
    // An object of our own, where the program needs it: the given one may become another value.
    OwnedRef there(reinterpret_cast<PyObject*>(tensor_on(as_tensor(value), device_of(body, static_cast<int32_t>(v)))));
    if (!there) return false;
    const myc_tensor& t = as_tensor(there.p)->t;
    Tensor* own = tensor_view(as_tensor(there.p), t.rank, t.shape, 0);
    if (!own) return false;
    Py_XSETREF(body->constants[v], reinterpret_cast<PyObject*>(own));
    body->types[v] = own->t;
  }
  return true;
}

// home: where the arena lies and what else has no other device in `devices`, a dict {value: device}.
bool read_devices(int home, PyObject* devices, Body* body) {
  if (!is_device(home)) return false;
  body->home = home;
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(devices, &at, &key, &value)) {
    const long v = PyLong_AsLong(key), device = PyLong_AsLong(value);
    if (PyErr_Occurred() || !is_device(device)) return false;
    if (v < 0 || v >= static_cast<long>(body->types.size())) {
      PyErr_Format(PyExc_IndexError, "Program: value %ld is not among the %zu values", v, body->types.size());
      return false;
    }
    if (body->devices.empty()) body->devices.assign(body->types.size(), home);
    body->devices[v] = static_cast<int32_t>(device);
  }
  return true;
}

// A kernel finds what it reads and writes on its own device; only copies cross.
bool check_devices(const Body* body) {
  for (const Instruction& ins : body->code) {
    if (!ins.plan || ins.kind == kRunView) continue;
    bool good = true;
    if (ins.plan->kind != kCopy)
      for (int32_t v : ins.in) good = good && (v < 0 || device_of(body, v) == ins.plan->device);
    for (int32_t v : ins.out) good = good && device_of(body, v) == ins.plan->device;
    if (!good) {
      PyErr_Format(PyExc_ValueError, "Program: %U runs on device %d, but not all of its values lie there", ins.op->name, ins.plan->device);
      return false;
    }
  }
  for (size_t v = 0; v < body->types.size(); ++v) {
    if (body->offset[v] >= 0 && device_of(body, static_cast<int32_t>(v)) != body->home) {
      PyErr_Format(PyExc_ValueError, "Program: value %zu lies in the arena, but on another device", v);
      return false;
    }
  }
  return true;
}

// places: an offset in the arena, or None, or (value,): a view of that value.
bool read_places(PyObject* places, Body* body) {
  const size_t count = body->types.size();
  if (static_cast<size_t>(PyTuple_GET_SIZE(places)) != count) {
    PyErr_SetString(PyExc_ValueError, "Program: a type and a place are needed for each value");
    return false;
  }
  body->offset.assign(count, -1);
  body->views.resize(count);
  for (size_t v = 0; v < count; ++v) {
    PyObject* place = PyTuple_GET_ITEM(places, v);
    int32_t base = static_cast<int32_t>(v);
    if (PyTuple_Check(place)) {
      Ints of;
      if (!read_ints(place, count, false, &of)) return false;
      if (of.size() != 1 || body->base.size() <= static_cast<size_t>(of[0])) {
        PyErr_SetString(PyExc_ValueError, "Program: a view comes after the value that it shows");
        return false;
      }
      base = body->base[of[0]];
      body->views[base].push_back(static_cast<int32_t>(v));
      body->offset[v] = body->offset[base];
    } else if (place != Py_None) {
      body->offset[v] = PyLong_AsLongLong(place);
      const myc_tensor& t = body->types[v];
      if (PyErr_Occurred()) return false;
      if (!body->fixed[v] || body->offset[v] < 0 || body->offset[v] + t.size * kItemSize[t.dtype] > body->arena_bytes) {
        PyErr_Format(PyExc_ValueError, "Program: value %zu does not fit in the arena of %lld bytes", v, static_cast<long long>(body->arena_bytes));
        return false;
      }
    }
    body->base.push_back(base);
    if (base != static_cast<int32_t>(v) && body->constants[base]) body->types[v].data = body->types[base].data;
  }
  return true;
}

bool read_updates(PyObject* updates, Body* body) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(updates); ++i) {
    Update u;
    int in_place;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(updates, i), "iip", &u.value, &u.input, &in_place)) return false;
    u.in_place = in_place != 0;
    if (u.value < 0 || u.value >= static_cast<int32_t>(body->types.size()) || u.input < 0 || u.input >= static_cast<int32_t>(body->inputs.size()) ||
        (u.in_place && body->inputs[u.input] < 0)) {
      PyErr_SetString(PyExc_IndexError, "Program: an update is (value, input, in place)");
      return false;
    }
    body->updates.push_back(u);
  }
  return true;
}

}  // namespace

// (Hoisted, positions of inputs, values)
bool read_source(PyObject* tuple, const Body* body, Source* source) {
  PyObject *hoisted, *inputs, *values;
  if (!PyArg_ParseTuple(tuple, "O!OO", HoistedType, &hoisted, &inputs, &values)) return false;
  if (!read_ints(inputs, body->inputs.size(), false, &source->inputs) || !read_ints(values, body->types.size(), false, &source->values))
    return false;
  const Body* other = reinterpret_cast<Hoisted*>(hoisted)->program->body;
  if (other->inputs.size() != source->inputs.size() || other->outputs.size() != source->values.size()) {
    PyErr_SetString(PyExc_ValueError, "Program: what is hoisted must take the inputs and give the values it is for");
    return false;
  }
  Py_INCREF(hoisted);
  source->hoisted = reinterpret_cast<Hoisted*>(hoisted);
  return true;
}

namespace {

bool read_sources(PyObject* sources, Body* body) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sources); ++i) {
    Source source{};
    if (!read_source(PyTuple_GET_ITEM(sources, i), body, &source)) return false;
    body->sources.push_back(std::move(source));
  }
  return true;
}

}  // namespace

// Program(types, places, instructions, inputs, outputs, constants, arena_bytes, updates, sources, home=0, devices={})
PyObject* program_new(PyTypeObject*, PyObject* args, PyObject*) {
  long long arena_bytes;
  int home = kHost;
  PyObject *types, *places, *instructions, *inputs, *outputs, *constants, *updates, *sources, *devices = nullptr;
  if (!PyArg_ParseTuple(args, "O!O!O!OOO!LO!O!|iO!", &PyTuple_Type, &types, &PyTuple_Type, &places, &PyList_Type, &instructions, &inputs, &outputs,
                        &PyDict_Type, &constants, &arena_bytes, &PyTuple_Type, &updates, &PyTuple_Type,
                        &sources, &home, &PyDict_Type, &devices))
    return nullptr;
  Program* p = new_program();
  if (!p) return nullptr;
  OwnedRef guard(reinterpret_cast<PyObject*>(p));
  Body* body = p->body;
  body->arena_bytes = arena_bytes;
  const size_t count = static_cast<size_t>(PyTuple_GET_SIZE(types));
  if (!read_types(types, body) || (devices && !read_devices(home, devices, body))) return nullptr;
  if (!read_constants(constants, body) || !read_places(places, body)) return nullptr;
  if (!read_ints(inputs, count, true, &body->inputs) || !read_ints(outputs, count, false, &body->outputs)) return nullptr;
  body->code.resize(PyList_GET_SIZE(instructions));
  for (size_t i = 0; i < body->code.size(); ++i)
    if (!read_instruction(PyList_GET_ITEM(instructions, i), count, &body->code[i])) return nullptr;
  if (!read_updates(updates, body) || !read_sources(sources, body) || !check_devices(body)) return nullptr;
  derive(body);
  return guard.take();
}

}  // namespace mycelia
