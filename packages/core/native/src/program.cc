// The Program type: a compiled graph as a flat list of instructions over values.
#include "program.h"

namespace mycelia {

PyTypeObject* ProgramType = nullptr;

void clear_instruction(Instruction* ins) {
  Py_CLEAR(ins->op);
  Py_CLEAR(ins->plan);
  Py_CLEAR(ins->callable);
  Py_CLEAR(ins->programs[0]);
  Py_CLEAR(ins->programs[1]);
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
  Py_VISIT(body->meter);
  Py_VISIT(body->nodes);
  Py_VISIT(body->info);
  Py_VISIT(body->unfreeze);
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
  Py_CLEAR(body->meter);
  Py_CLEAR(body->gauges);
  Py_CLEAR(body->nodes);
  Py_CLEAR(body->info);
  Py_CLEAR(body->unfreeze);
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

PyObject* get_task_groups(PyObject* self, void*) {
  const Body* body = as_program(self)->body;
  OwnedRef all(PyTuple_New(body->task_groups.size()));
  if (!all) return nullptr;
  for (size_t g = 0; g < body->task_groups.size(); ++g) {
    const TaskGroup& group = body->task_groups[g];
    OwnedRef ends(PyTuple_New(group.ends.size()));
    if (!ends) return nullptr;
    for (size_t i = 0; i < group.ends.size(); ++i) PyTuple_SET_ITEM(ends.p, i, PyLong_FromLong(group.ends[i]));
    PyObject* entry = Py_BuildValue("(iO)", group.begin, ends.p);
    if (!entry) return nullptr;
    PyTuple_SET_ITEM(all.p, g, entry);
  }
  return all.take();
}

bool read_task_group(const Body* body, PyObject* entry, int32_t from, TaskGroup* group) {
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
  if (!good) PyErr_SetString(PyExc_ValueError, "Program.task_groups: expected (begin, ends) of kernels, in order and apart from each other");
  return good;
}

int set_task_groups(PyObject* self, PyObject* value, void*) {
  Body* body = as_program(self)->body;
  if (!value || !PyTuple_Check(value)) {
    PyErr_SetString(PyExc_TypeError, "Program.task_groups: expected a tuple of (begin, ends)");
    return -1;
  }
  std::vector<TaskGroup> groups;
  int32_t from = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
    TaskGroup group;
    if (!read_task_group(body, PyTuple_GET_ITEM(value, i), from, &group)) return -1;
    from = group.ends.back();
    groups.push_back(std::move(group));
  }
  body->task_groups = std::move(groups);
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
PyObject* Body::*unfreeze_member = &Body::unfreeze;

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
    {"measure", program_measure, METH_VARARGS, 
     "measure(meter, gauges, begin, end, passes): after each run call meter(table, finite) with what kernels find of all results; None\n"
     "ends it.\n\n"
     "Columns [begin, end) of the table count what is not finite; `finite`: they are all zero. passes: a byte for each instruction, not\n"
     "zero if its results are finite where all that it reads is; where all columns are such counts, it is looked at only if there are."},
    {"observe", program_observe, METH_O, "observe(function): call function(index, outputs) after each instruction; None ends it."},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(Program, weakrefs), READONLY, nullptr},
                         {"__vectorcalloffset__", T_PYSSIZET, offsetof(Program, vectorcall), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

PyGetSetDef getset[] = {
    {"instruction_count", get_size, nullptr, "Instructions of this program, without those of inner ones.", nullptr},
    {"nodes", get_nodes, set_nodes, "The graph node behind each instruction; empty when not told.", nullptr},
    {"task_groups", get_task_groups, set_task_groups,
     "((begin, (end, ...)), ...): kernels from instruction `begin` on in tasks that may run at the same time. Tasks must not depend on "
     "each other, and no value of one may lie where another's does. Set before the first run.", nullptr},
    {"info", get_object, set_object, "Whatever the compiler keeps with the program.", &info_member},
    {"unfreeze", get_object, set_object, "Function called when hoisted values had to be computed many times in a row, or None.",
     &unfreeze_member},
    {"arena_bytes", get_arena, nullptr, "Size of the arena.", nullptr},
    {"hoisted", get_hoisted, nullptr, "Where values come from that depend only on inputs that rarely change: Hoisted, ...", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
#define SLOT(name, fn) {name, reinterpret_cast<void*>(fn)}
PyType_Slot slots[] = {SLOT(Py_tp_new, program_new), SLOT(Py_tp_dealloc, program_dealloc), SLOT(Py_tp_traverse, program_traverse),
                       SLOT(Py_tp_clear, program_clear), SLOT(Py_tp_call, PyVectorcall_Call), SLOT(Py_tp_getset, getset),
                       SLOT(Py_tp_methods, methods), SLOT(Py_tp_members, members),
                       {Py_tp_doc, const_cast<char*>(
                           "Program(types, places, instructions, inputs, outputs, constants, arena_bytes, updates, sources, home=0, devices={})\n\n"
                           "A compiled graph over values 0..n-1. types: a TensorType each. places: an offset in the arena, (value,) for\n"
                           "a view of another value, None for anything else. Instructions, `in`, `out`, `free` being tuples of values\n"
                           "(-1: absent): ('op', op, plan, in, out, free), ('view', in, out, free), ('python', callable, in, out, free),\n"
                           "('if', condition, true program, false program, in, out, free),\n"
                           "('while' or 'history', condition program, body program, carried, in, out, free),\n"
                           "('scan', body program, carried, scanned, reverse, in, out, free).\n"
                           "updates: ((value, input, in place), ...): the Tensor given as that input takes the value when the run has\n"
                           "succeeded. sources: (Hoisted, positions of its inputs, values that it gives), ...: computed again when one\n"
                           "of these inputs has changed. What Python callables or inner programs receive and what the program returns\n"
                           "must not lie in the arena. home: the device of the arena and of all values but those in devices, {value: device}.")},
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
  if (!ProgramType || PyModule_AddFunctions(module, functions) || init_hoisted(module)) return -1;
  return PyModule_AddObjectRef(module, "Program", reinterpret_cast<PyObject*>(ProgramType));
}

}  // namespace mycelia
