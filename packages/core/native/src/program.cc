// The Program type: a compiled graph as a flat list of instructions over values. run.cc runs it.
#include <algorithm>

#include "program.h"

namespace mycelia {

PyTypeObject* ProgramType = nullptr;
PyTypeObject* HoistedType = nullptr;

// ---- reading what the compiler gives -------------------------------------------------------------------------------

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

namespace {

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

void clear_instruction(Instruction* ins) {
  Py_CLEAR(ins->op);
  Py_CLEAR(ins->plan);
  Py_CLEAR(ins->callable);
  Py_CLEAR(ins->programs[0]);
  Py_CLEAR(ins->programs[1]);
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

// home: where the arena lies and what else has no other device in `elsewhere`, a dict {value: device}.
bool read_devices(int home, PyObject* elsewhere, Body* body) {
  if (!is_device(home)) return false;
  body->home = home;
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(elsewhere, &at, &key, &value)) {
    const long v = PyLong_AsLong(key), device = PyLong_AsLong(value);
    if (PyErr_Occurred() || !is_device(device)) return false;
    if (v < 0 || v >= static_cast<long>(body->types.size())) {
      PyErr_Format(PyExc_IndexError, "Program: value %ld is not among the %zu values", v, body->types.size());
      return false;
    }
    if (body->elsewhere.empty()) body->elsewhere.assign(body->types.size(), home);
    body->elsewhere[v] = static_cast<int32_t>(device);
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

// ---- what follows from that ----------------------------------------------------------------------------------------

void find_outside(Body* body) {
  body->seen_outside.assign(body->types.size(), 0);
  for (int32_t v : body->outputs) body->seen_outside[v] = 1;
  for (const Instruction& ins : body->code) {
    if (ins.kind == kRunView) {
      for (int32_t v : ins.out) body->seen_outside[v] = 1;
    } else if (ins.kind != kRunKernel && ins.kind != kRunReference) {
      for (int32_t v : ins.in)
        if (v >= 0) body->seen_outside[v] = 1;
    }
  }
}

void find_work(Body* body) {
  for (Instruction& ins : body->code) {
    ins.work = 0;
    if (!ins.plan) continue;
    for (const Ints* values : {&ins.in, &ins.out})
      for (int32_t v : *values)
        if (v >= 0 && body->fixed[v]) ins.work += body->types[v].size;
  }
}

void group_steps(Body* body) {
  std::vector<uint8_t> in_place(body->types.size(), 0);
  for (const Update& u : body->updates)
    if (u.in_place) in_place[u.value] = 1;
  body->steps.clear();
  auto group = body->groups.begin();
  int32_t apart = 0;  // before this instruction a step begins
  for (size_t i = 0; i < body->code.size(); ++i) {
    const Instruction& ins = body->code[i];
    const bool native = ins.kind == kRunKernel;
    const int32_t at = static_cast<int32_t>(i);
    const bool first = group != body->groups.end() && group->begin == at;
    if (!native || first || at == apart || !body->steps.back().native) {
      body->steps.push_back(Step{at, at, native, 0, {}, {}, {}});
      if (first) {
        body->steps.back().strands = group->ends;
        apart = group->ends.back();
        ++group;
      }
    }
    Step& step = body->steps.back();
    step.end = static_cast<int32_t>(i) + 1;
    if (ins.plan) {
      step.work += ins.work;
      for (int32_t v : ins.out)
        if (body->offset[v] < 0 && !in_place[v]) step.fresh.push_back(v);
    }
    step.free.insert(step.free.end(), ins.free.begin(), ins.free.end());
  }
}

void find_contexts(Body* body) {
  body->contexts.clear();
  body->context_of.clear();
  body->kernels.clear();
  for (const Instruction& ins : body->code) {
    int32_t found = -1;
    if (ins.kind == kRunKernel) {
      const auto at = std::find(body->contexts.begin(), body->contexts.end(), ins.plan->context);
      found = static_cast<int32_t>(at - body->contexts.begin());
      if (at == body->contexts.end()) body->contexts.push_back(ins.plan->context);
    }
    body->context_of.push_back(found);
    body->kernels.push_back(ins.kind == kRunKernel ? ins.plan->fn : nullptr);
  }
}

void find_holders(Body* body) {
  body->holders.clear();
  body->in_arena.clear();
  for (size_t v = 0; v < body->types.size(); ++v) {
    if (body->offset[v] >= 0) body->in_arena.push_back(static_cast<int32_t>(v));
    else if (!body->constants[v] && (body->base[v] == static_cast<int32_t>(v) || body->seen_outside[v]))
      body->holders.push_back(static_cast<int32_t>(v));
  }
}

}  // namespace

void derive(Body* body) {
  find_work(body);
  find_outside(body);
  group_steps(body);
  find_contexts(body);
  find_holders(body);
}

namespace {

// ---- life ----------------------------------------------------------------------------------------------------------

int program_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const Body* body = as_program(self)->body;
  if (!body) return 0;
  for (const Instruction& ins : body->code) {
    Py_VISIT(ins.callable);
    Py_VISIT(ins.programs[0]);
    Py_VISIT(ins.programs[1]);
  }
  for (const Source& source : body->sources) Py_VISIT(source.hoisted);
  Py_VISIT(body->observer);
  Py_VISIT(body->nodes);
  Py_VISIT(body->info);
  Py_VISIT(body->unsteady);
  return 0;
}

int program_clear(PyObject* self) {
  Body* body = as_program(self)->body;
  if (!body) return 0;
  for (Instruction& ins : body->code) {
    Py_CLEAR(ins.callable);
    Py_CLEAR(ins.programs[0]);
    Py_CLEAR(ins.programs[1]);
  }
  for (Source& source : body->sources) Py_CLEAR(source.hoisted);
  body->sources.clear();
  Py_CLEAR(body->observer);
  Py_CLEAR(body->nodes);
  Py_CLEAR(body->info);
  Py_CLEAR(body->unsteady);
  return 0;
}

void program_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Program* p = as_program(self);
  if (p->weakrefs) PyObject_ClearWeakRefs(self);
  program_clear(self);
  if (Body* body = p->body) {
    p->body = nullptr;
    for (Instruction& ins : body->code) clear_instruction(&ins);
    for (Frame* f : body->idle) free_frame(f);
    for (PyObject* c : body->constants) Py_XDECREF(c);
    delete body;
  }
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// ---- calls ---------------------------------------------------------------------------------------------------------

PyObject* results_of(PyObject* self, PyObject* const* inputs, size_t count) {
  std::vector<PyObject*> results;
  if (!run_program(as_program(self), inputs, count, &results)) return nullptr;
  PyObject* tuple = PyTuple_New(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (tuple) PyTuple_SET_ITEM(tuple, i, results[i]);
    else Py_DECREF(results[i]);
  }
  return tuple;
}

PyObject* program_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
  if (names && PyTuple_GET_SIZE(names)) {
    PyErr_SetString(PyExc_TypeError, "Program: takes no keyword arguments");
    return nullptr;
  }
  return results_of(self, args, PyVectorcall_NARGS(nargsf));
}

// run(first, second): a call with the members of two lists.
PyObject* program_run(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyList_Check(args[0]) || !PyList_Check(args[1])) {
    PyErr_SetString(PyExc_TypeError, "Program.run: expected two lists of Tensors");
    return nullptr;
  }
  std::vector<PyObject*> inputs;
  inputs.reserve(PyList_GET_SIZE(args[0]) + PyList_GET_SIZE(args[1]));
  for (int k = 0; k < 2; ++k)
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[k]); ++i) {
      inputs.push_back(PyList_GET_ITEM(args[k], i));
      Py_INCREF(inputs.back());  // the lists may change while Python code runs
    }
  PyObject* results = results_of(self, inputs.data(), inputs.size());
  for (PyObject* t : inputs) Py_DECREF(t);
  return results;
}

}  // namespace

Program* new_program() {
  Program* p = as_program(ProgramType->tp_alloc(ProgramType, 0));
  if (!p) return nullptr;
  p->vectorcall = program_vectorcall;
  p->body = new Body;
  return p;
}

namespace {

// Program(types, places, instructions, inputs, outputs, constants, arena_bytes, updates, sources, home=0, elsewhere={})
PyObject* program_new(PyTypeObject*, PyObject* args, PyObject*) {
  long long arena_bytes;
  int home = kHost;
  PyObject *types, *places, *instructions, *inputs, *outputs, *constants, *updates, *sources, *elsewhere = nullptr;
  if (!PyArg_ParseTuple(args, "O!O!O!OOO!LO!O!|iO!", &PyTuple_Type, &types, &PyTuple_Type, &places, &PyList_Type, &instructions, &inputs, &outputs,
                        &PyDict_Type, &constants, &arena_bytes, &PyTuple_Type, &updates, &PyTuple_Type,
                        &sources, &home, &PyDict_Type, &elsewhere))
    return nullptr;
  Program* p = new_program();
  if (!p) return nullptr;
  OwnedRef guard(reinterpret_cast<PyObject*>(p));
  Body* body = p->body;
  body->arena_bytes = arena_bytes;
  const size_t count = static_cast<size_t>(PyTuple_GET_SIZE(types));
  if (!read_types(types, body) || (elsewhere && !read_devices(home, elsewhere, body))) return nullptr;
  if (!read_constants(constants, body) || !read_places(places, body)) return nullptr;
  if (!read_ints(inputs, count, true, &body->inputs) || !read_ints(outputs, count, false, &body->outputs)) return nullptr;
  body->code.resize(PyList_GET_SIZE(instructions));
  for (size_t i = 0; i < body->code.size(); ++i)
    if (!read_instruction(PyList_GET_ITEM(instructions, i), count, &body->code[i])) return nullptr;
  if (!read_updates(updates, body) || !read_sources(sources, body) || !check_devices(body)) return nullptr;
  derive(body);
  return guard.take();
}

// ---- methods and attributes ----------------------------------------------------------------------------------------

PyObject* program_profile(PyObject* self, PyObject* on) {
  const int truth = PyObject_IsTrue(on);
  if (truth < 0) return nullptr;
  Body* body = as_program(self)->body;
  if (truth) body->timings.assign(body->code.size(), Timing{});
  body->profiled = truth != 0;
  Py_RETURN_NONE;
}

PyObject* program_timings(PyObject* self, PyObject*) {
  const Body* body = as_program(self)->body;
  OwnedRef list(PyList_New(body->timings.size()));
  for (size_t i = 0; list && i < body->timings.size(); ++i) {
    const Timing& t = body->timings[i];
    PyObject* row = Py_BuildValue("(LL)", static_cast<long long>(t.calls), static_cast<long long>(t.nanoseconds));
    if (!row) return nullptr;
    PyList_SET_ITEM(list.p, i, row);
  }
  return list.take();
}

PyObject* program_observe(PyObject* self, PyObject* function) {
  if (function != Py_None && !PyCallable_Check(function)) {
    PyErr_Format(PyExc_TypeError, "Program.observe: expected a function or None, but got %s", Py_TYPE(function)->tp_name);
    return nullptr;
  }
  Body* body = as_program(self)->body;
  PyObject* fresh = function == Py_None ? nullptr : function;
  Py_XINCREF(fresh);
  Py_XSETREF(body->observer, fresh);
  Py_RETURN_NONE;
}

bool set_node_tuple(Body* body, PyObject* value) {
  if (!PyTuple_Check(value) || static_cast<size_t>(PyTuple_GET_SIZE(value)) != body->code.size()) {
    PyErr_Format(PyExc_ValueError, "Program.nodes: expected a tuple of %zu, one entry an instruction", body->code.size());
    return false;
  }
  Py_INCREF(value);
  Py_XSETREF(body->nodes, value);
  return true;
}

PyObject* get_nodes(PyObject* self, void*) {
  Body* body = as_program(self)->body;
  if (!body->nodes) return PyTuple_New(0);
  if (!PyTuple_Check(body->nodes)) {
    OwnedRef made(PyObject_CallNoArgs(body->nodes));
    if (!made || !set_node_tuple(body, made.p)) return nullptr;
  }
  Py_INCREF(body->nodes);
  return body->nodes;
}

int set_nodes(PyObject* self, PyObject* value, void*) {
  Body* body = as_program(self)->body;
  if (!value || !PyCallable_Check(value)) return set_node_tuple(body, value ? value : Py_None) ? 0 : -1;
  Py_INCREF(value);
  Py_XSETREF(body->nodes, value);
  return 0;
}

PyObject* get_strands(PyObject* self, void*) {
  const Body* body = as_program(self)->body;
  OwnedRef all(PyTuple_New(body->groups.size()));
  if (!all) return nullptr;
  for (size_t g = 0; g < body->groups.size(); ++g) {
    const Group& group = body->groups[g];
    OwnedRef ends(PyTuple_New(group.ends.size()));
    if (!ends) return nullptr;
    for (size_t i = 0; i < group.ends.size(); ++i) PyTuple_SET_ITEM(ends.p, i, PyLong_FromLong(group.ends[i]));
    PyObject* entry = Py_BuildValue("(iO)", group.begin, ends.p);
    if (!entry) return nullptr;
    PyTuple_SET_ITEM(all.p, g, entry);
  }
  return all.take();
}

bool read_group(const Body* body, PyObject* entry, int32_t from, Group* group) {
  PyObject* ends;
  if (!PyArg_ParseTuple(entry, "iO!", &group->begin, &PyTuple_Type, &ends)) return false;
  int32_t at = group->begin;
  bool good = at >= from && PyTuple_GET_SIZE(ends) > 1;
  for (Py_ssize_t i = 0; good && i < PyTuple_GET_SIZE(ends); ++i) {
    const long end = PyLong_AsLong(PyTuple_GET_ITEM(ends, i));
    if (end == -1 && PyErr_Occurred()) return false;
    good = end > at && end <= static_cast<long>(body->code.size());
    for (; good && at < end; ++at) good = body->code[at].kind == kRunKernel;
    group->ends.push_back(at);
  }
  if (!good) PyErr_SetString(PyExc_ValueError, "Program.strands: expected (begin, ends) of kernels, in order and apart from each other");
  return good;
}

int set_strands(PyObject* self, PyObject* value, void*) {
  Body* body = as_program(self)->body;
  if (!value || !PyTuple_Check(value)) {
    PyErr_SetString(PyExc_TypeError, "Program.strands: expected a tuple of (begin, ends)");
    return -1;
  }
  std::vector<Group> groups;
  int32_t from = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
    Group group;
    if (!read_group(body, PyTuple_GET_ITEM(value, i), from, &group)) return -1;
    from = group.ends.back();
    groups.push_back(std::move(group));
  }
  body->groups = std::move(groups);
  group_steps(body);
  return 0;
}

// Attributes that are any object: `closure` is which member of Body.
PyObject* get_object(PyObject* self, void* closure) {
  PyObject* found = as_program(self)->body->**static_cast<PyObject* Body::**>(closure);
  if (!found) Py_RETURN_NONE;
  Py_INCREF(found);
  return found;
}

int set_object(PyObject* self, PyObject* value, void* closure) {
  PyObject* fresh = value == Py_None ? nullptr : value;
  Py_XINCREF(fresh);
  Py_XSETREF(as_program(self)->body->**static_cast<PyObject* Body::**>(closure), fresh);
  return 0;
}

PyObject* Body::*info_member = &Body::info;
PyObject* Body::*unsteady_member = &Body::unsteady;

PyObject* get_size(PyObject* self, void*) { return PyLong_FromSize_t(as_program(self)->body->code.size()); }
PyObject* get_arena(PyObject* self, void*) { return PyLong_FromLongLong(as_program(self)->body->arena_bytes); }
PyObject* get_hoisted(PyObject* self, void*) {
  const Body* body = as_program(self)->body;
  PyObject* all = PyTuple_New(body->sources.size());
  for (size_t i = 0; all && i < body->sources.size(); ++i) {
    Py_INCREF(body->sources[i].hoisted);
    PyTuple_SET_ITEM(all, i, reinterpret_cast<PyObject*>(body->sources[i].hoisted));
  }
  return all;
}

// ---- Hoisted -------------------------------------------------------------------------------------------------------

PyObject* hoisted_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* program;
  if (!PyArg_ParseTuple(args, "O!", ProgramType, &program)) return nullptr;
  Hoisted* h = reinterpret_cast<Hoisted*>(type->tp_alloc(type, 0));
  if (!h) return nullptr;
  Py_INCREF(program);
  h->program = as_program(program);
  h->seen = new std::vector<Seen>;
  h->tensors = new std::vector<PyObject*>;
  return reinterpret_cast<PyObject*>(h);
}

int hoisted_traverse(PyObject* self, visitproc visit, void* arg) {
  Hoisted* h = reinterpret_cast<Hoisted*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(h->program);
  Py_VISIT(h->info);
  return 0;
}

int hoisted_clear(PyObject* self) {
  Py_CLEAR(reinterpret_cast<Hoisted*>(self)->info);
  return 0;
}

void hoisted_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  Hoisted* h = reinterpret_cast<Hoisted*>(self);
  if (h->weakrefs) PyObject_ClearWeakRefs(self);
  Py_XDECREF(h->info);
  Py_XDECREF(h->program);
  if (h->tensors)
    for (PyObject* t : *h->tensors) Py_XDECREF(t);
  delete h->tensors;
  delete h->seen;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef hoisted_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Hoisted, weakrefs), READONLY, nullptr},
    {"program", T_OBJECT, offsetof(Hoisted, program), READONLY, "What computes the values."},
    {"info", T_OBJECT, offsetof(Hoisted, info), 0, "Whatever the compiler keeps with it."},
    {"runs", T_LONGLONG, offsetof(Hoisted, runs), READONLY, "How often the values were computed."},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot hoisted_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(hoisted_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(hoisted_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(hoisted_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(hoisted_clear)},
    {Py_tp_members, hoisted_members},
    {Py_tp_doc, const_cast<char*>("Hoisted(program)\n\nThe results of a Program, kept until the content of one of its inputs changes. "
                                  "Programs that need\nthe same values of the same inputs share one.")},
    {0, nullptr}};
PyType_Spec hoisted_spec = {"mycelia.engine._C.Hoisted", sizeof(Hoisted), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, hoisted_slots};

// ---- tables --------------------------------------------------------------------------------------------------------

PyMethodDef methods[] = {
    {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(program_run)), METH_FASTCALL, "run(first, second): a call with the members of two lists."},
    {"profile", program_profile, METH_O, "profile(on): count calls and nanoseconds of each instruction from now on, starting at zero."},
    {"timings", program_timings, METH_NOARGS, "[(calls, nanoseconds)] of each instruction since `profile(True)`."},
    {"resized", program_resized, METH_VARARGS,
     "resized(numbers, open, blocks, followers, instructions, sources): this program for other sizes.\n\n"
     "open, blocks, followers: bytes of int32. open: (value, axis, position in numbers) of each size that differs; blocks: (value,\n"
     "first, last) of what lies in the arena and when; followers: (value, value that it lies in place of). instructions: {index: one\n"
     "that takes its place}; sources: None or, for each source, a Hoisted that takes its place or None."},
    {"observe", program_observe, METH_O, "observe(function): call function(index, outputs) after each instruction; None ends it."},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(Program, weakrefs), READONLY, nullptr},
                         {"__vectorcalloffset__", T_PYSSIZET, offsetof(Program, vectorcall), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

PyGetSetDef getset[] = {
    {"instruction_count", get_size, nullptr, "Instructions of this program, without those of inner ones.", nullptr},
    {"nodes", get_nodes, set_nodes, "The graph node behind each instruction; empty when not told.", nullptr},
    {"strands", get_strands, set_strands,
     "((begin, (end, ...)), ...): kernels from instruction `begin` on that may run at the same time, part by part. The parts must not "
     "depend on each other, and no value of one may lie where another's does. Set before the first run.", nullptr},
    {"info", get_object, set_object, "Whatever the compiler keeps with the program.", &info_member},
    {"unsteady", get_object, set_object, "Function called when hoisted values had to be computed many times in a row, or None.",
     &unsteady_member},
    {"arena_bytes", get_arena, nullptr, "Size of the arena.", nullptr},
    {"hoisted", get_hoisted, nullptr, "Where values come from that depend only on inputs that rarely change: Hoisted, ...", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
#define SLOT(name, fn) {name, reinterpret_cast<void*>(fn)}
PyType_Slot slots[] = {SLOT(Py_tp_new, program_new), SLOT(Py_tp_dealloc, program_dealloc), SLOT(Py_tp_traverse, program_traverse),
                       SLOT(Py_tp_clear, program_clear), SLOT(Py_tp_call, PyVectorcall_Call), SLOT(Py_tp_getset, getset),
                       SLOT(Py_tp_methods, methods), SLOT(Py_tp_members, members),
                       {Py_tp_doc, const_cast<char*>(
                           "Program(types, places, instructions, inputs, outputs, constants, arena_bytes, updates, sources, home=0, elsewhere={})\n\n"
                           "A compiled graph over values 0..n-1. types: a TensorType each. places: an offset in the arena, (value,) for\n"
                           "a view of another value, None for anything else. Instructions, `in`, `out`, `free` being tuples of values\n"
                           "(-1: absent): ('op', op, plan, in, out, free), ('view', in, out, free), ('python', callable, in, out, free),\n"
                           "('if', condition, true program, false program, in, out, free),\n"
                           "('while' or 'history', condition program, body program, carried, in, out, free),\n"
                           "('scan', body program, carried, scanned, reverse, in, out, free).\n"
                           "updates: ((value, input, in place), ...): the Tensor given as that input takes the value when the run has\n"
                           "succeeded. sources: (Hoisted, positions of its inputs, values that it gives), ...: computed again when one\n"
                           "of these inputs has changed. What Python callables or inner programs receive and what the program returns\n"
                           "must not lie in the arena. home: the device of the arena and of all values but those in elsewhere, {value: device}.")},
                       {0, nullptr}};
#undef SLOT
PyMethodDef functions[] = {{"plan_offsets", plan_offsets, METH_VARARGS,
                            "plan_offsets(sizes, first, last): (offsets, bytes of the arena) for what needs so many bytes from position\n"
                            "`first` to `last`: greedy by size."},
                           {nullptr, nullptr, 0, nullptr}};
PyType_Spec spec = {"mycelia.engine._C.Program", sizeof(Program), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

}  // namespace

int init_program(PyObject* module) {
  ProgramType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  HoistedType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&hoisted_spec));
  if (!ProgramType || !HoistedType || PyModule_AddObjectRef(module, "Hoisted", reinterpret_cast<PyObject*>(HoistedType))) return -1;
  if (PyModule_AddFunctions(module, functions)) return -1;
  return PyModule_AddObjectRef(module, "Program", reinterpret_cast<PyObject*>(ProgramType));
}

}  // namespace mycelia
