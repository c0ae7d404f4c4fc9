// Program: a compiled graph as a flat list of instructions over slots. No Python runs between native instructions.
//
// A slot holds one Tensor while it is live. Outputs of an instruction lie in the program's arena at planned offsets, or in
// memory of their own (offset -1): results of the program, and what Python code may keep. Control flow is an instruction
// that runs other Programs.
#include <chrono>
#include <memory>
#include <vector>

#include "core.h"

namespace mycelia {
namespace {

PyTypeObject* ProgramType = nullptr;

enum InstructionKind { kRunOp, kRunPython, kRunIf, kRunWhile };

struct Instruction {
  InstructionKind kind;
  Op* op = nullptr;
  Plan* plan = nullptr;
  PyObject* callable = nullptr;    // kRunPython
  PyObject* programs[2] = {};      // kRunIf: true, false; kRunWhile: condition, body
  int32_t condition = -1;          // kRunIf
  std::vector<int32_t> in, out, free;
  std::vector<int64_t> offset;     // per output of kRunOp
};

struct Timing {
  int64_t calls = 0, nanoseconds = 0;
};

struct Body {
  std::vector<Instruction> code;
  std::vector<Timing> timings;   // per instruction while it is profiled
  PyObject* observer = nullptr;  // called after each instruction: observer(index, outputs)
  PyObject* nodes = nullptr;     // what each instruction was made from, for those who ask
  bool profiled = false;
  std::vector<int32_t> inputs, outputs;
  std::vector<PyObject*> constants;  // per slot, NULL when none
  int64_t arena_bytes = 0;
  Storage* arena = nullptr;  // kept between runs
  bool busy = false;         // a run uses the arena; a recursive run takes its own
};

struct Program {
  PyObject_HEAD
  Body* body;
  PyObject* weakrefs;
};

bool read_ints(PyObject* tuple, std::vector<int32_t>* out) {
  if (!PyTuple_Check(tuple)) {
    PyErr_SetString(PyExc_TypeError, "Program: slots must be a tuple of int");
    return false;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) out->push_back(static_cast<int32_t>(PyLong_AsLong(PyTuple_GET_ITEM(tuple, i))));
  return !PyErr_Occurred();
}

bool check_slots(const std::vector<int32_t>& slots, size_t count, bool absent_allowed) {
  for (int32_t s : slots) {
    if (s >= static_cast<int32_t>(count) || (s < 0 && !(absent_allowed && s == -1))) {
      PyErr_Format(PyExc_IndexError, "Program: slot %d is not among the %zu slots", s, count);
      return false;
    }
  }
  return true;
}

bool read_instruction(PyObject* tuple, size_t n_slots, Instruction* ins) {
  const char* kind;
  if (!PyTuple_Check(tuple) || !PyTuple_GET_SIZE(tuple) || !(kind = PyUnicode_AsUTF8(PyTuple_GET_ITEM(tuple, 0)))) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "Program: an instruction is a tuple that starts with its kind");
    return false;
  }
  OwnedRef rest(PyTuple_GetSlice(tuple, 1, PyTuple_GET_SIZE(tuple)));
  PyObject *in, *out, *free, *offsets = nullptr, *a, *b;
  if (std::strcmp(kind, "op") == 0) {
    ins->kind = kRunOp;
    if (!PyArg_ParseTuple(rest.p, "O!O!OOOO", OpType, &a, PlanType, &b, &in, &out, &offsets, &free)) return false;
    Py_INCREF(a);
    Py_INCREF(b);
    ins->op = reinterpret_cast<Op*>(a);
    ins->plan = reinterpret_cast<Plan*>(b);
  } else if (std::strcmp(kind, "python") == 0) {
    ins->kind = kRunPython;
    if (!PyArg_ParseTuple(rest.p, "OOOO", &a, &in, &out, &free)) return false;
    Py_INCREF(a);
    ins->callable = a;
  } else if (std::strcmp(kind, "if") == 0 || std::strcmp(kind, "while") == 0) {
    ins->kind = kind[0] == 'i' ? kRunIf : kRunWhile;
    if (ins->kind == kRunIf) {
      if (!PyArg_ParseTuple(rest.p, "iO!O!OOO", &ins->condition, ProgramType, &a, ProgramType, &b, &in, &out, &free)) return false;
    } else if (!PyArg_ParseTuple(rest.p, "O!O!OOO", ProgramType, &a, ProgramType, &b, &in, &out, &free)) {
      return false;
    }
    Py_INCREF(a);
    Py_INCREF(b);
    ins->programs[0] = a;
    ins->programs[1] = b;
  } else {
    PyErr_Format(PyExc_ValueError, "Program: unknown instruction '%s'", kind);
    return false;
  }
  if (!read_ints(in, &ins->in) || !read_ints(out, &ins->out) || !read_ints(free, &ins->free)) return false;
  for (Py_ssize_t i = 0; offsets && i < PyTuple_GET_SIZE(offsets); ++i) ins->offset.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(offsets, i)));
  if (ins->kind == kRunOp && (ins->offset.size() != ins->out.size() || static_cast<int32_t>(ins->out.size()) != ins->plan->n_out ||
                              static_cast<int32_t>(ins->in.size()) != ins->plan->n_in)) {
    PyErr_Format(PyExc_ValueError, "Program: %U has %d inputs and %d outputs, but %zu, %zu slots and %zu offsets were given", ins->op->name,
                 ins->plan->n_in, ins->plan->n_out, ins->in.size(), ins->out.size(), ins->offset.size());
    return false;
  }
  if (ins->kind == kRunIf && !check_slots({ins->condition}, n_slots, false)) return false;
  return !PyErr_Occurred() && check_slots(ins->in, n_slots, true) && check_slots(ins->out, n_slots, true) && check_slots(ins->free, n_slots, false);
}

void program_dealloc(PyObject* self) {
  if (reinterpret_cast<Program*>(self)->weakrefs) PyObject_ClearWeakRefs(self);
  Body* body = reinterpret_cast<Program*>(self)->body;
  if (body) {
    for (Instruction& ins : body->code) {
      Py_XDECREF(ins.op);
      Py_XDECREF(ins.plan);
      Py_XDECREF(ins.callable);
      Py_XDECREF(ins.programs[0]);
      Py_XDECREF(ins.programs[1]);
    }
    for (PyObject* c : body->constants) Py_XDECREF(c);
    Py_XDECREF(body->observer);
    Py_XDECREF(body->nodes);
    release(body->arena);
    delete body;
  }
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// Program(n_slots, instructions, inputs, outputs, constants={slot: Tensor}, arena_bytes)
PyObject* program_new(PyTypeObject* type, PyObject* args, PyObject*) {
  Py_ssize_t n_slots;
  long long arena_bytes;
  PyObject *instructions, *inputs, *outputs, *constants;
  if (!PyArg_ParseTuple(args, "nO!O!O!O!L", &n_slots, &PyList_Type, &instructions, &PyTuple_Type, &inputs, &PyTuple_Type, &outputs,
                        &PyDict_Type, &constants, &arena_bytes))
    return nullptr;
  Program* p = reinterpret_cast<Program*>(type->tp_alloc(type, 0));
  if (!p) return nullptr;
  OwnedRef guard(reinterpret_cast<PyObject*>(p));
  Body* body = p->body = new Body;
  body->constants.assign(n_slots, nullptr);
  body->arena_bytes = arena_bytes;
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(constants, &at, &key, &value)) {
    const Py_ssize_t slot = PyLong_AsSsize_t(key);
    if (slot < 0 || slot >= n_slots || !is_tensor(value)) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "Program: constants must be {slot: Tensor}");
      return nullptr;
    }
    Py_INCREF(value);
    Py_XSETREF(body->constants[slot], value);
  }
  if (!read_ints(inputs, &body->inputs) || !read_ints(outputs, &body->outputs)) return nullptr;
  if (!check_slots(body->inputs, n_slots, true) || !check_slots(body->outputs, n_slots, false)) return nullptr;
  body->code.resize(PyList_GET_SIZE(instructions));
  for (size_t i = 0; i < body->code.size(); ++i)
    if (!read_instruction(PyList_GET_ITEM(instructions, i), n_slots, &body->code[i])) return nullptr;
  return guard.take();
}

struct Slots {  // owns what it holds
  std::vector<PyObject*> v;
  explicit Slots(size_t n) : v(n, nullptr) {}
  ~Slots() {
    for (PyObject* o : v) Py_XDECREF(o);
  }
  void set(int32_t slot, PyObject* owned) {
    if (slot < 0) Py_DECREF(owned);
    else Py_XSETREF(v[slot], owned);
  }
};

Tensor* arena_tensor(Storage* arena, const myc_tensor& type, int64_t offset) {
  Tensor* t = tensor_object();
  if (!t) return nullptr;
  t->t = type;
  t->t.data = arena->data + offset;
  t->storage = arena;
  retain(arena);
  return t;
}

bool run(Program* p, PyObject* const* inputs, size_t n, std::vector<PyObject*>* results);

bool run_op_instruction(const Instruction& ins, Slots* slots, Storage* arena) {
  PyObject* few_in[16];
  Tensor* few_out[16];
  std::vector<PyObject*> many_in;
  std::vector<Tensor*> many_out;
  PyObject** in = few_in;
  Tensor** out = few_out;
  if (ins.in.size() > 16) {
    many_in.resize(ins.in.size());
    in = many_in.data();
  }
  if (ins.out.size() > 16) {
    many_out.resize(ins.out.size());
    out = many_out.data();
  }
  for (size_t i = 0; i < ins.in.size(); ++i) in[i] = ins.in[i] < 0 ? nullptr : slots->v[ins.in[i]];
  const Plan* plan = ins.plan;
  bool ok = true;
  for (int32_t i = 0; i < plan->n_out; ++i) {
    out[i] = nullptr;
    if (plan->kind != kKernel || !ok) continue;
    // Functional: even an op that updates its inputs writes to fresh memory; jit stores the result afterwards.
    out[i] = ins.offset[i] >= 0 ? arena_tensor(arena, plan->out[i], ins.offset[i])
                                : tensor_empty(plan->out[i].dtype, plan->out[i].rank, plan->out[i].shape);
    ok = out[i] != nullptr;
  }
  ok = ok && run_plan(ins.op, ins.plan, in, out);
  for (int32_t i = 0; i < plan->n_out; ++i) {
    if (!out[i]) continue;
    if (ok) slots->set(ins.out[i], reinterpret_cast<PyObject*>(out[i]));
    else Py_DECREF(out[i]);
  }
  return ok;
}

bool store_results(const Instruction& ins, const std::vector<PyObject*>& results, Slots* slots) {
  if (results.size() != ins.out.size()) {
    PyErr_Format(PyExc_RuntimeError, "Program: an instruction gave %zu results for %zu slots", results.size(), ins.out.size());
    for (PyObject* r : results) Py_DECREF(r);
    return false;
  }
  for (size_t i = 0; i < results.size(); ++i) slots->set(ins.out[i], results[i]);
  return true;
}

bool run_python(const Instruction& ins, Slots* slots) {
  std::vector<PyObject*> args(ins.in.size());
  for (size_t i = 0; i < args.size(); ++i) args[i] = ins.in[i] < 0 ? Py_None : slots->v[ins.in[i]];
  OwnedRef result(PyObject_Vectorcall(ins.callable, args.data(), args.size(), nullptr));
  if (!result) return false;
  std::vector<PyObject*> results;
  if (PyTuple_Check(result.p)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result.p); ++i) results.push_back(PyTuple_GET_ITEM(result.p, i));
  } else {
    results.push_back(result.p);
  }
  for (PyObject* r : results) Py_INCREF(r);
  return store_results(ins, results, slots);
}

int truth(PyObject* tensor) { return PyObject_IsTrue(tensor); }

bool run_while(const Instruction& ins, Slots* slots) {
  std::vector<PyObject*> carried(ins.in.size());
  for (size_t i = 0; i < carried.size(); ++i) {
    carried[i] = slots->v[ins.in[i]];
    Py_INCREF(carried[i]);
  }
  bool ok = true;
  while (ok) {
    std::vector<PyObject*> verdict, next;
    ok = run(reinterpret_cast<Program*>(ins.programs[0]), carried.data(), carried.size(), &verdict);
    if (!ok) break;
    const int go_on = verdict.empty() ? -1 : truth(verdict[0]);
    for (PyObject* v : verdict) Py_DECREF(v);
    if (go_on <= 0) {
      ok = go_on == 0;
      break;
    }
    ok = PyErr_CheckSignals() == 0 && run(reinterpret_cast<Program*>(ins.programs[1]), carried.data(), carried.size(), &next);
    if (!ok) break;
    for (PyObject* c : carried) Py_DECREF(c);
    carried = std::move(next);
  }
  if (ok) return store_results(ins, carried, slots);
  for (PyObject* c : carried) Py_DECREF(c);
  return false;
}

bool run_if(const Instruction& ins, Slots* slots) {
  const int taken = truth(slots->v[ins.condition]);
  if (taken < 0) return false;
  std::vector<PyObject*> args(ins.in.size()), results;
  for (size_t i = 0; i < args.size(); ++i) args[i] = slots->v[ins.in[i]];
  return run(reinterpret_cast<Program*>(ins.programs[taken ? 0 : 1]), args.data(), args.size(), &results) && store_results(ins, results, slots);
}

bool run_instruction(const Instruction& ins, Slots* slots, Storage* arena) {
  switch (ins.kind) {
    case kRunOp: return run_op_instruction(ins, slots, arena);
    case kRunPython: return run_python(ins, slots);
    case kRunIf: return run_if(ins, slots);
    default: return run_while(ins, slots);
  }
}

bool run_instructions(Body* body, Slots* slots, Storage* arena) {
  for (const Instruction& ins : body->code) {
    if (!run_instruction(ins, slots, arena)) return false;
    for (int32_t s : ins.free) Py_CLEAR(slots->v[s]);
  }
  return true;
}

// An observer may keep what it gets, so it gets copies.
bool call_observer(PyObject* observer, size_t index, const Instruction& ins, Slots* slots) {
  OwnedRef position(PyLong_FromSize_t(index)), outputs(PyTuple_New(ins.out.size()));
  if (!position || !outputs) return false;
  for (size_t i = 0; i < ins.out.size(); ++i) {
    PyObject* seen = ins.out[i] < 0 ? nullptr : slots->v[ins.out[i]];
    if (seen) {
      const myc_tensor& t = as_tensor(seen)->t;
      Tensor* copy = tensor_empty(t.dtype, t.rank, t.shape);
      if (!copy) return false;
      std::memcpy(copy->t.data, t.data, static_cast<size_t>(t.size * kItemSize[t.dtype]));
      seen = reinterpret_cast<PyObject*>(copy);
    } else {
      seen = Py_None;
      Py_INCREF(seen);
    }
    PyTuple_SET_ITEM(outputs.p, i, seen);
  }
  PyObject* args[2] = {position.p, outputs.p};
  OwnedRef result(PyObject_Vectorcall(observer, args, 2, nullptr));
  return bool(result);
}

// The loop of programs that are profiled or observed.
bool run_instrumented(Body* body, Slots* slots, Storage* arena) {
  using Clock = std::chrono::steady_clock;
  OwnedRef observer(body->observer);
  Py_XINCREF(observer.p);
  for (size_t i = 0; i < body->code.size(); ++i) {
    const Instruction& ins = body->code[i];
    const Clock::time_point start = Clock::now();
    if (!run_instruction(ins, slots, arena)) return false;
    const int64_t spent = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
    if (body->profiled) {
      body->timings[i].calls += 1;
      body->timings[i].nanoseconds += spent;
    }
    if (observer && !call_observer(observer.p, i, ins, slots)) return false;
    for (int32_t s : ins.free) Py_CLEAR(slots->v[s]);
  }
  return true;
}

bool run(Program* p, PyObject* const* inputs, size_t n, std::vector<PyObject*>* results) {
  Body* body = p->body;
  if (n != body->inputs.size()) {
    PyErr_Format(PyExc_TypeError, "Program: takes %zu inputs, but %zu were given", body->inputs.size(), n);
    return false;
  }
  Slots slots(body->constants.size());
  for (size_t s = 0; s < body->constants.size(); ++s) {
    Py_XINCREF(body->constants[s]);
    slots.v[s] = body->constants[s];
  }
  for (size_t i = 0; i < n; ++i) {
    if (!is_tensor(inputs[i])) {
      PyErr_Format(PyExc_TypeError, "Program: input %zu must be a Tensor, but got %s", i, Py_TYPE(inputs[i])->tp_name);
      return false;
    }
    if (body->inputs[i] < 0) continue;
    Py_INCREF(inputs[i]);
    Py_XSETREF(slots.v[body->inputs[i]], inputs[i]);
  }
  Storage* arena = nullptr;
  const bool own = body->busy;
  if (body->arena_bytes > 0) {
    if (own || !body->arena) {
      arena = storage_alloc(body->arena_bytes);
      if (!arena) return false;
      if (!own) body->arena = arena;
    } else {
      arena = body->arena;
    }
  }
  const int32_t level = tape_level;
  tape_level = 0;  // a Program is one step for the tape
  body->busy = true;
  bool ok = body->profiled || body->observer ? run_instrumented(body, &slots, arena) : run_instructions(body, &slots, arena);
  if (!own) body->busy = false;
  tape_level = level;
  for (size_t i = 0; ok && i < body->outputs.size(); ++i) {
    PyObject* o = slots.v[body->outputs[i]];
    if (!o) {
      PyErr_Format(PyExc_RuntimeError, "Program: output %zu was never computed", i);
      for (PyObject* r : *results) Py_DECREF(r);
      results->clear();
      ok = false;
      break;
    }
    Py_INCREF(o);
    results->push_back(o);
  }
  if (own) release(arena);
  return ok;
}

PyObject* program_call(PyObject* self, PyObject* args, PyObject*) {
  std::vector<PyObject*> results;
  if (!run(reinterpret_cast<Program*>(self), &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args), &results)) return nullptr;
  PyObject* tuple = PyTuple_New(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (tuple) PyTuple_SET_ITEM(tuple, i, results[i]);
    else Py_DECREF(results[i]);
  }
  return tuple;
}

PyObject* program_profile(PyObject* self, PyObject* on) {
  const int truth = PyObject_IsTrue(on);
  if (truth < 0) return nullptr;
  Body* body = reinterpret_cast<Program*>(self)->body;
  if (truth) body->timings.assign(body->code.size(), Timing{});
  body->profiled = truth != 0;
  Py_RETURN_NONE;
}

PyObject* program_timings(PyObject* self, PyObject*) {
  const Body* body = reinterpret_cast<Program*>(self)->body;
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
  Body* body = reinterpret_cast<Program*>(self)->body;
  PyObject* fresh = function == Py_None ? nullptr : function;
  Py_XINCREF(fresh);
  Py_XSETREF(body->observer, fresh);
  Py_RETURN_NONE;
}

PyObject* get_nodes(PyObject* self, void*) {
  PyObject* nodes = reinterpret_cast<Program*>(self)->body->nodes;
  if (!nodes) return PyTuple_New(0);
  Py_INCREF(nodes);
  return nodes;
}

int set_nodes(PyObject* self, PyObject* value, void*) {
  Body* body = reinterpret_cast<Program*>(self)->body;
  if (!value || !PyTuple_Check(value) || static_cast<size_t>(PyTuple_GET_SIZE(value)) != body->code.size()) {
    PyErr_Format(PyExc_ValueError, "Program.nodes: expected a tuple of %zu, one entry an instruction", body->code.size());
    return -1;
  }
  Py_INCREF(value);
  Py_XSETREF(body->nodes, value);
  return 0;
}

PyMethodDef methods[] = {
    {"profile", program_profile, METH_O, "profile(on): count calls and nanoseconds of each instruction from now on, starting at zero."},
    {"timings", program_timings, METH_NOARGS, "[(calls, nanoseconds)] of each instruction since `profile(True)`."},
    {"observe", program_observe, METH_O, "observe(function): call function(index, outputs) after each instruction; None ends it."},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(Program, weakrefs), READONLY, nullptr}, {nullptr, 0, 0, 0, nullptr}};

PyObject* get_size(PyObject* self, void*) { return PyLong_FromSize_t(reinterpret_cast<Program*>(self)->body->code.size()); }
PyObject* get_arena(PyObject* self, void*) { return PyLong_FromLongLong(reinterpret_cast<Program*>(self)->body->arena_bytes); }

PyGetSetDef getset[] = {{"instruction_count", get_size, nullptr, "Instructions of this program, without those of inner ones.", nullptr},
                        {"nodes", get_nodes, set_nodes, "The graph node behind each instruction, or None; empty when not told.", nullptr},
                        {"arena_bytes", get_arena, nullptr, "Size of the arena.", nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};
#define SLOT(name, fn) {name, reinterpret_cast<void*>(fn)}
PyType_Slot slots[] = {SLOT(Py_tp_new, program_new), SLOT(Py_tp_dealloc, program_dealloc), SLOT(Py_tp_call, program_call),
                       SLOT(Py_tp_getset, getset), SLOT(Py_tp_methods, methods), SLOT(Py_tp_members, members),
                       {Py_tp_doc, const_cast<char*>("Program(n_slots, instructions, inputs, outputs, constants, arena_bytes)\n\n"
                                                     "A compiled graph. Instructions:\n"
                                                     "('op', op, plan, in, out, offsets, free), ('python', callable, in, out, free),\n"
                                                     "('if', condition slot, true program, false program, in, out, free),\n"
                                                     "('while', condition program, body program, in, out, free).\n"
                                                     "in, out, free: tuples of slots (-1: absent); offsets: place of each output in the\n"
                                                     "arena, -1 for memory of its own. What Python callables or inner programs receive and\n"
                                                     "what the program returns must not lie in the arena.")},
                       {0, nullptr}};
#undef SLOT
PyType_Spec spec = {"mycelia._C.Program", sizeof(Program), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

int init_program(PyObject* module) {
  ProgramType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!ProgramType) return -1;
  return PyModule_AddObjectRef(module, "Program", reinterpret_cast<PyObject*>(ProgramType));
}

}  // namespace mycelia
