// Instructions of a Program that are more than a kernel.
#include "frame.h"
#include "tensor_parts.h"

namespace mycelia {
namespace {

// The plan of an instruction; where that was made for other sizes, which matters to bodies only, one like it.
PyObject* plan_for_present_sizes(const Instruction& ins, const std::vector<PyObject*>& in) {
  bool same = true;
  for (size_t i = 0; i < in.size() && same; ++i) {
    PyObject* type = PyTuple_GET_ITEM(ins.plan->in_types, i);
    myc_tensor t;
    if (!in[i] || type == Py_None) continue;
    if (!read_type(type, &t)) return nullptr;
    same = same_type(t, as_tensor(in[i])->t);
  }
  if (same) {
    Py_INCREF(ins.plan);
    return reinterpret_cast<PyObject*>(ins.plan);
  }
  OwnedRef dispatch(PyImport_ImportModule("mycelia.engine.dispatch")), shapes(PyTuple_New(in.size()));
  for (size_t i = 0; shapes && i < in.size(); ++i) {
    PyObject* shape = Py_None;
    if (in[i]) shape = shape_tuple(as_tensor(in[i])->t);
    else Py_INCREF(shape);
    if (!shape) return nullptr;
    PyTuple_SET_ITEM(shapes.p, i, shape);
  }
  if (!dispatch || !shapes) return nullptr;
  PyObject* plan = PyObject_CallMethod(dispatch.p, "resized", "OOO", ins.op, ins.plan, shapes.p);
  if (plan && Py_TYPE(plan) != PlanType) {
    PyErr_SetString(PyExc_TypeError, "dispatch.resized must return a Plan");
    Py_CLEAR(plan);
  }
  return plan;
}

}  // namespace

// Results are copied to where the values live: the body may have returned a part of its arguments.
bool run_reference_instruction(const Body* body, const Instruction& ins, Frame* f) {
  Tensors in;
  if (!collect_tensors(body, f, ins.in, &in)) return false;
  std::vector<Tensor*> out(ins.out.size(), nullptr);
  Tensors made;
  OwnedRef planned(plan_for_present_sizes(ins, in.v));
  if (!planned) return false;
  Plan* plan = reinterpret_cast<Plan*>(planned.p);
  const bool writes = plan->kind == kLaunch || plan->kind == kCopy;  // where it is told to
  bool ok = true;
  for (size_t i = 0; i < out.size() && writes && ok; ++i) ok = (out[i] = as_tensor(new_tensor_of(body, f, ins.out[i]))) != nullptr;
  // Placed by the compiler, it runs where its values lie; else it is a fallback, which copies.
  if (ok && plan->device == ins.plan->device) {
    ok = run_plan_there(ins.op, plan, in.v.data(), out.data());
  } else {
    ok = ok && run_plan(ins.op, plan, in.v.data(), out.data());
  }
  for (Tensor* t : out) made.v.push_back(reinterpret_cast<PyObject*>(t));
  if (!ok) return false;
  if (writes) return true;
  for (size_t i = 0; i < out.size(); ++i) {
    const myc_tensor& target = f->values[ins.out[i]];
    if (!same_type(out[i]->t, target)) {
      OwnedRef want(shape_tuple(target)), have(shape_tuple(out[i]->t));
      PyErr_Format(PyExc_RuntimeError, "%U: result %zu should have shape %R, but has shape %R", ins.op->name, i, want.p, have.p);
      return false;
    }
    if (!copy_bytes(target.data, device_of(body, ins.out[i]), out[i]->t.data, out[i]->storage->device, byte_count(target))) return false;
  }
  return true;
}

namespace {

bool run_view(const Body* body, const Instruction& ins, Frame* f) {
  OwnedRef view(tensor_of(body, f, ins.in[0]));
  if (!view) return false;
  const myc_tensor& type = f->values[ins.out[0]];
  OwnedRef made(reinterpret_cast<PyObject*>(tensor_view(as_tensor(view.p), type.rank, type.shape, 0)));
  return made && hold(body, f, ins.out[0], as_tensor(made.p));
}

}  // namespace

bool store_results(const Body* body, const Instruction& ins, PyObject* const* results, size_t count, Frame* f) {
  if (count != ins.out.size()) {
    PyErr_Format(PyExc_RuntimeError, "Program: an instruction gave %zu results for %zu values", count, ins.out.size());
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    if (ins.out[i] < 0) continue;
    if (!is_tensor(results[i])) {
      PyErr_Format(PyExc_TypeError, "Program: an instruction gave a %s where a Tensor was expected", Py_TYPE(results[i])->tp_name);
      return false;
    }
    if (!hold(body, f, ins.out[i], as_tensor(results[i]))) return false;
  }
  return true;
}

bool run_inner(PyObject* program, const std::vector<PyObject*>& args, Tensors* results) {
  return run_program(reinterpret_cast<Program*>(program), args.data(), args.size(), &results->v);
}

namespace {

bool run_python(const Body* body, const Instruction& ins, Frame* f) {
  Tensors args;
  if (!collect_tensors(body, f, ins.in, &args)) return false;
  for (PyObject*& a : args.v) {
    if (a) continue;
    Py_INCREF(Py_None);
    a = Py_None;
  }
  OwnedRef result(PyObject_Vectorcall(ins.callable, args.v.data(), args.v.size(), nullptr));
  if (!result) return false;
  if (PyTuple_Check(result.p)) return store_results(body, ins, &PyTuple_GET_ITEM(result.p, 0), PyTuple_GET_SIZE(result.p), f);
  return store_results(body, ins, &result.p, 1, f);
}

int truth(const Body* body, const Frame* f, int32_t v) {
  OwnedRef t(tensor_of(body, f, v));
  return t ? PyObject_IsTrue(t.p) : -1;
}

bool run_if(const Body* body, const Instruction& ins, Frame* f) {
  const int taken = truth(body, f, ins.condition);
  Tensors args, results;
  if (taken < 0 || !collect_tensors(body, f, ins.in, &args)) return false;
  return run_inner(ins.programs[taken ? 0 : 1], args.v, &results) && store_results(body, ins, results.v.data(), results.v.size(), f);
}

}  // namespace

bool run_instruction(const Body* body, const Instruction& ins, Frame* f) {
  switch (ins.kind) {
    case kRunReference: return run_reference_instruction(body, ins, f);
    case kRunView: return run_view(body, ins, f);
    case kRunPython: return run_python(body, ins, f);
    case kRunIf: return run_if(body, ins, f);
    case kRunWhile: return run_while(body, ins, f);
    case kRunHistory: return run_history(body, ins, f);
    default: return run_scan(body, ins, f);
  }
}

}  // namespace mycelia
