// How a Plan runs: a native kernel, a view, a copy, a function in Python; with copies between devices where it must.
#include <vector>

#include "core.h"

namespace mycelia {
namespace {

constexpr int64_t kReleaseGil = 1 << 15;     // elements: below, a kernel is quicker than handing the GIL over

bool needs_data(Op* op, Tensor* t) {
  if (t->storage) return true;
  if (t->traced && t->flags & kParameter && hooks.concretize) {  // lent to the capture of another thread: waits for its end
    OwnedRef r(PyObject_CallOneArg(hooks.concretize, reinterpret_cast<PyObject*>(t)));
    if (!r || t->storage) return r && t->storage;
  }
  if (t->traced) {
    PyErr_Format(PyExc_RuntimeError, "%U: a tensor of a graph under capture was used after the capture had ended", op->name);
  } else {
    PyErr_Format(PyExc_RuntimeError, "%U: a tensor argument has no data; call init_data() on the parameter first", op->name);
  }
  return false;
}

Tensor* output_there(const Plan* plan, int i) {
  const myc_tensor& type = plan->out[i];
  if (plan->device == kHost) return tensor_empty(type.dtype, type.rank, type.shape);
  return tensor_empty(type.dtype, type.rank, type.shape, plan->device);
}

// A kernel in Python of a device with memory of its own: it gets Tensors, those to read and those to write.
bool run_launch(Op* op, Plan* plan, PyObject* const* inputs, Tensor** outputs) {
  OwnedRef in(PyTuple_New(plan->n_in)), out(PyTuple_New(plan->n_out));
  if (!in || !out) return false;
  for (int i = 0; i < plan->n_in; ++i) {
    if (inputs[i] && !needs_data(op, as_tensor(inputs[i]))) return false;
    PyTuple_SET_ITEM(in.p, i, Py_NewRef(inputs[i] ? inputs[i] : Py_None));
  }
  for (int i = 0; i < plan->n_out; ++i) {
    if (!outputs[i] && !(outputs[i] = output_there(plan, i))) return false;
    PyTuple_SET_ITEM(out.p, i, Py_NewRef(reinterpret_cast<PyObject*>(outputs[i])));
  }
  PyObject* args[2] = {in.p, out.p};
  OwnedRef result(PyObject_Vectorcall(plan->function, args, 2, nullptr));
  return bool(result);
}

bool run_copy(Op* op, Plan* plan, PyObject* const* inputs, Tensor** outputs) {
  OwnedRef number(nullptr);
  PyObject* given = inputs[0];
  if (!is_tensor(given)) given = number.p = reinterpret_cast<PyObject*>(scalar_tensor(plan->scalar_dtype[0], given));
  if (!given || !needs_data(op, as_tensor(given))) return false;
  const Tensor* from = as_tensor(given);
  if (!outputs[0] && !(outputs[0] = output_there(plan, 0))) return false;
  return copy_bytes(outputs[0]->t.data, outputs[0]->storage->device, from->t.data, from->storage->device,
                    from->t.size * kItemSize[from->t.dtype]);
}

bool run_reference(Op* op, Plan* plan, PyObject* const* inputs, Tensor** outputs) {
  OwnedRef args(PyTuple_New(plan->n_in));
  if (!args) return false;
  for (int i = 0; i < plan->n_in; ++i) {
    PyObject* a;
    if (!inputs[i]) {
      a = Py_None;
      Py_INCREF(a);
    } else if (is_tensor(inputs[i])) {
      if (!needs_data(op, as_tensor(inputs[i]))) return false;
      a = tensor_to_array(as_tensor(inputs[i]));
    } else {
      OwnedRef t(reinterpret_cast<PyObject*>(scalar_tensor(plan->scalar_dtype[i], inputs[i])));
      a = t ? tensor_to_array(as_tensor(t.p)) : nullptr;
    }
    if (!a) return false;
    PyTuple_SET_ITEM(args.p, i, a);
  }
  OwnedRef result(PyObject_Call(plan->function, args.p, nullptr));
  if (!result) return false;
  if (!PyTuple_Check(result.p) || PyTuple_GET_SIZE(result.p) != plan->n_out) {
    PyErr_Format(PyExc_RuntimeError, "%U: the body must return %d arrays, but returned %R", op->name, plan->n_out, result.p);
    return false;
  }
  for (int i = 0; i < plan->n_out; ++i) {
    outputs[i] = tensor_from_array(PyTuple_GET_ITEM(result.p, i), true);
    if (!outputs[i]) return false;
    outputs[i]->t.dtype = plan->out[i].dtype;  // bfloat16 travels as uint16
  }
  return true;
}

// Another thread may meanwhile give one of these tensors other memory (a parameter is loaded while a net predicts): the
// kernel works on copies of the descriptions, and the memory is held for it.
int32_t run_without_gil(const Plan* plan, myc_call call, PyObject* const* inputs, Tensor* const* outputs) {
  std::vector<myc_tensor> types(plan->n_in + plan->n_out);
  std::vector<const myc_tensor*> in(plan->n_in, nullptr);
  std::vector<myc_tensor*> out(plan->n_out);
  std::vector<Storage*> held;
  for (int i = 0; i < plan->n_in; ++i) {
    if (!inputs[i]) continue;
    types[i] = *call.in[i];
    in[i] = &types[i];
    if (plan->scalar_dtype[i] < 0 || plan->device != kHost) held.push_back(as_tensor(inputs[i])->storage);
  }
  for (int i = 0; i < plan->n_out; ++i) {
    types[plan->n_in + i] = *call.out[i];
    out[i] = &types[plan->n_in + i];
    held.push_back(outputs[i]->storage);
  }
  for (Storage* s : held) retain(s);
  call.in = in.data();
  call.out = out.data();
  PyThreadState* state = PyEval_SaveThread();
  const int32_t rc = plan->fn(&call);
  PyEval_RestoreThread(state);
  for (Storage* s : held) release(s);
  return rc;
}

bool run_kernel(Op* op, Plan* plan, PyObject* const* inputs, Tensor** outputs) {
  const myc_tensor* few_in[16];
  myc_tensor* few_out[16];
  std::vector<const myc_tensor*> many_in;
  std::vector<myc_tensor*> many_out;
  const myc_tensor** in = few_in;
  myc_tensor** out = few_out;
  if (plan->n_in > 16) {
    many_in.resize(plan->n_in);
    in = many_in.data();
  }
  if (plan->n_out > 16) {
    many_out.resize(plan->n_out);
    out = many_out.data();
  }
  myc_tensor scalars[8];
  int64_t scalar_data[8][2];
  int n_scalars = 0;
  for (int i = 0; i < plan->n_in; ++i) {
    PyObject* v = inputs[i];
    if (!v) {
      in[i] = nullptr;
    } else if (plan->scalar_dtype[i] < 0 || plan->device != kHost) {  // a device gets numbers as tensors
      if (!needs_data(op, as_tensor(v))) return false;
      in[i] = &as_tensor(v)->t;
    } else {
      if (n_scalars == 8) {
        PyErr_Format(PyExc_TypeError, "%U: at most 8 tensor arguments may be Python numbers", op->name);
        return false;
      }
      myc_tensor& s = scalars[n_scalars];
      s.data = scalar_data[n_scalars++];
      s.size = 1;
      s.dtype = plan->scalar_dtype[i];
      s.rank = 0;
      if (!fill_scalar(s.dtype, v, s.data)) return false;
      in[i] = &s;
    }
  }
  for (int i = 0; i < plan->n_out; ++i) {
    // An updated tensor is written where it is, unless other tensors look at the same memory.
    PyObject* updated = i < op->n_updates ? inputs[op->update_param[i]] : nullptr;
    if (outputs[i]) {
      // the caller chose the memory
    } else if (updated && (plan->flags & MYC_INPLACE) && !is_shared(as_tensor(updated)->storage)) {
      Py_INCREF(updated);
      outputs[i] = as_tensor(updated);
    } else {
      outputs[i] = output_there(plan, i);
      if (!outputs[i]) return false;
    }
    out[i] = &outputs[i]->t;
  }
  myc_context* ctx = plan->context();
  const myc_call call = {in, out, PyBytes_AS_STRING(plan->packed), ctx, plan->n_in, plan->n_out};
  int32_t rc;
  if (plan->work < kReleaseGil) {
    rc = plan->fn(&call);
  } else {
    rc = run_without_gil(plan, call, inputs, outputs);
  }
  for (int i = 0; i < op->n_updates && i < plan->n_out; ++i) outputs[i]->storage->stamp = next_stamp();  // after the write
  if (rc == MYC_OK) return true;
  for (int i = 0; i < plan->n_out; ++i) Py_CLEAR(outputs[i]);
  if (rc != MYC_E_UNSUPPORTED) return raise_kernel_error(op, rc, ctx);
  // The kernel declines this case: from now on the plan is what dispatch falls back to.
  OwnedRef dispatch(PyImport_ImportModule("mycelia.engine.dispatch"));
  if (!dispatch) return false;
  OwnedRef other(PyObject_CallMethod(dispatch.p, "fallback", "OO", op, plan));
  if (!other) return false;
  plan->kind = kReference;
  plan->device = kHost;
  Py_INCREF(other.p);
  Py_XSETREF(plan->function, other.p);
  return run_plan(op, plan, inputs, outputs);
}

}  // namespace

// The error class, code and the user's line are chosen in Python.
bool raise_kernel_error(Op* op, int32_t rc, const myc_context* ctx) {
  OwnedRef dispatch(PyImport_ImportModule("mycelia.engine.dispatch"));
  if (!dispatch) return false;
  OwnedRef made(PyObject_CallMethod(dispatch.p, "kernel_error", "Ois", op, rc, rc == MYC_E_ARGUMENT ? ctx->error : ""));
  if (made) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.p)), made.p);
  return false;
}

bool run_plan_there(Op* op, Plan* plan, PyObject* const* inputs, Tensor** outputs) {
  if (__builtin_expect(plan->kind == kKernel, 1)) return run_kernel(op, plan, inputs, outputs);
  switch (plan->kind) {
    case kView: {
      if (!needs_data(op, as_tensor(inputs[0]))) return false;
      outputs[0] = tensor_view(as_tensor(inputs[0]), plan->out[0].rank, plan->out[0].shape, 0);
      return outputs[0] != nullptr;
    }
    case kReference: return run_reference(op, plan, inputs, outputs);
    case kLaunch: return run_launch(op, plan, inputs, outputs);
    case kCopy: return run_copy(op, plan, inputs, outputs);
    default: PyErr_Format(PyExc_RuntimeError, "%U: a composed op has no plan to run", op->name); return false;
  }
}

namespace {

bool is_apart(const Plan* plan, PyObject* const* inputs) {
  if (plan->kind == kView || plan->kind == kCopy) return false;
  if (plan->device != plan->home) return true;
  for (int i = 0; i < plan->n_in; ++i) {
    if (!inputs[i]) continue;
    const bool number = !is_tensor(inputs[i]);
    const Storage* s = number ? nullptr : as_tensor(inputs[i])->storage;
    if (number ? plan->device != kHost : s && s->device != plan->device) return true;
  }
  return false;
}

// Inputs are brought to the plan's device, results to its home. Tensors come to their home for good; where another device stands
// in they are copied, and stay where they are.
bool run_apart(Op* op, Plan* plan, PyObject* const* inputs, Tensor** outputs) {
  Tensors brought;
  std::vector<PyObject*> there(inputs, inputs + plan->n_in);
  for (int i = 0; i < plan->n_in; ++i) {
    if (!inputs[i]) continue;
    OwnedRef number(nullptr);
    if (!is_tensor(inputs[i])) {
      if (plan->device == kHost) continue;
      number.p = reinterpret_cast<PyObject*>(scalar_tensor(plan->scalar_dtype[i], inputs[i]));
      if (!number) return false;
    }
    Tensor* given = as_tensor(number ? number.p : inputs[i]);
    if (!needs_data(op, given)) return false;
    Tensor* t = plan->device == plan->home ? tensor_brought(given, plan->device) : tensor_on(given, plan->device);
    if (!t) return false;
    brought.v.push_back(there[i] = reinterpret_cast<PyObject*>(t));
  }
  if (plan->device == plan->home) return run_plan_there(op, plan, there.data(), outputs);
  std::vector<Tensor*> made(plan->n_out, nullptr);
  const bool ok = run_plan_there(op, plan, there.data(), made.data());
  for (Tensor* t : made) brought.v.push_back(reinterpret_cast<PyObject*>(t));
  for (int i = 0; ok && i < plan->n_out; ++i) {
    if (!outputs[i]) {
      outputs[i] = tensor_on(made[i], plan->home);
      if (!outputs[i]) return false;
    } else if (!copy_bytes(outputs[i]->t.data, outputs[i]->storage->device, made[i]->t.data, made[i]->storage->device,
                           made[i]->t.size * kItemSize[made[i]->t.dtype])) {
      return false;
    }
  }
  return ok;
}

}  // namespace

bool run_plan_between(Op* op, Plan* plan, PyObject* const* inputs, Tensor** outputs) {
  return is_apart(plan, inputs) ? run_apart(op, plan, inputs, outputs) : run_plan_there(op, plan, inputs, outputs);
}

}  // namespace mycelia
