// How an op is called: arguments to slots, the Plan of their signature, its run, the record for a gradient.
//
// A signature that was seen before runs without any Python; a new one asks dispatch.resolve for a Plan.
#define NO_IMPORT_ARRAY
#define PY_ARRAY_UNIQUE_SYMBOL mycelia_array_api
#define NPY_NO_DEPRECATED_API NPY_1_20_API_VERSION
#include <numpy/arrayobject.h>

#include "op_parts.h"
#include "plan_cache.h"

namespace mycelia {

thread_local uint32_t mode = 0;
thread_local int32_t tape_level = 0;

namespace {

// ---- arguments ---------------------------------------------------------------------------------------------------

// A call's arguments, one slot per parameter; tensors flattened.
struct Call {
  PyObject* slot[kMaxParams];
  int32_t count[kMaxTensorParams];
  int32_t n_flat;
  PyObject** flat;
  PyObject* few[kMaxTensorParams];
  std::vector<PyObject*> many;
  std::vector<PyObject*> owned;  // converted arguments
  ~Call() {
    for (PyObject* o : owned) Py_DECREF(o);
  }
};

bool argument_error(Op* op, const char* format, PyObject* what) {
  OwnedRef text(PyUnicode_FromFormat(format, what));
  PyErr_Format(PyExc_TypeError, "%U: %U", op->name, text.p);
  return false;
}

bool holds_tensor(PyObject* v) {
  if (is_tensor(v)) return true;
  if (!PyTuple_CheckExact(v) && !PyList_CheckExact(v)) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(v); ++i)
    if (is_tensor(PySequence_Fast_GET_ITEM(v, i))) return true;
  return false;
}

// The numbers in a Tensor that stands for an attribute, such as a shape or an axis: one, or a tuple; also inside of a
// list. A Tensor without a value raises the error that asking for it does.
PyObject* numbers_of(PyObject* v) {
  if (is_tensor(v)) {
    OwnedRef numbers(PyObject_CallMethod(v, "tolist", nullptr));
    if (!numbers) return nullptr;
    return PyList_Check(numbers.p) ? PySequence_Tuple(numbers.p) : Py_NewRef(numbers.p);
  }
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(v);
  OwnedRef items(PyTuple_New(n));
  if (!items) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(v, i);
    PyObject* number = is_tensor(item) ? numbers_of(item) : Py_NewRef(item);
    if (!number) return nullptr;
    PyTuple_SET_ITEM(items.p, i, number);
  }
  return Py_NewRef(items.p);
}

bool bind_arguments(Op* op, Call* c, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  const int total = op->n_params + op->n_attrs;
  if (n > total) {
    PyErr_Format(PyExc_TypeError, "%U: takes at most %d arguments, but %zd were given", op->name, total, n);
    return false;
  }
  int i = 0;
  for (; i < n; ++i) c->slot[i] = args[i];
  for (; i < total; ++i) c->slot[i] = nullptr;
  const Py_ssize_t n_kw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < n_kw; ++k) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, k);
    int at = -1;
    for (int p = 0; p < total && at < 0; ++p)
      if (op->param_names[p] == name) at = p;
    for (int p = 0; p < total && at < 0; ++p)
      if (PyUnicode_Compare(op->param_names[p], name) == 0) at = p;
    if (at < 0) return argument_error(op, "got an unexpected argument '%U'", name);
    if (c->slot[at]) return argument_error(op, "got multiple values for argument '%U'", name);
    c->slot[at] = args[n + k];
  }
  for (int p = 0; p < op->n_params; ++p) {
    if (c->slot[p]) continue;
    if (op->param_kind[p] != kOptionalParam) return argument_error(op, "missing required argument '%U'", op->param_names[p]);
    c->slot[p] = Py_None;
  }
  for (int a = 0; a < op->n_attrs; ++a) {
    PyObject*& value = c->slot[op->n_params + a];
    if (value) {
      if (!holds_tensor(value)) continue;
      PyObject* numbers = numbers_of(value);
      if (!numbers) return false;
      c->owned.push_back(numbers);
      value = numbers;
      continue;
    }
    if (!op->attr_default[a]) return argument_error(op, "missing required argument '%U'", op->param_names[op->n_params + a]);
    c->slot[op->n_params + a] = op->attr_default[a];
  }
  return true;
}

// Lets a Tensor or a Python number through; NumPy values become Tensors.
bool accept(Op* op, Call* c, int param, PyObject** value) {
  PyObject* v = *value;
  if (is_tensor(v) || number_kind(v)) return true;
  if (PyArray_Check(v) || PyArray_CheckScalar(v)) {
    PyObject* t = PyObject_CallOneArg(reinterpret_cast<PyObject*>(TensorType), v);
    if (!t) return false;
    c->owned.push_back(t);
    *value = t;
    return true;
  }
  PyErr_Format(PyExc_TypeError, "%U: argument '%U' must be a Tensor or a number, but got %s", op->name, op->param_names[param],
               Py_TYPE(v)->tp_name);
  return false;
}

bool check_updates(Op* op, const Call* c) {
  for (int i = 0; i < op->n_updates; ++i) {
    PyObject* v = c->slot[op->update_param[i]];
    if (v != Py_None && !is_tensor(v)) {
      PyErr_Format(PyExc_TypeError, "%U: argument '%U' is overwritten and must be a Tensor, but got %s", op->name,
                   op->param_names[op->update_param[i]], Py_TYPE(v)->tp_name);
      return false;
    }
  }
  return true;
}

bool flatten(Op* op, Call* c) {
  if (!check_updates(op, c)) return false;
  if (op->n_params && op->param_kind[0] == kListParam) {
    PyObject* list = c->slot[0];
    if (!PyTuple_Check(list) && !PyList_Check(list)) {
      PyErr_Format(PyExc_TypeError, "%U: argument '%U' must be a list or tuple of Tensors, but got %s", op->name, op->param_names[0],
                   Py_TYPE(list)->tp_name);
      return false;
    }
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(list);
    if (n > kMaxInputs) {
      PyErr_Format(PyExc_ValueError, "%U: argument '%U' has %zd members, at most %d are taken", op->name, op->param_names[0], n, kMaxInputs);
      return false;
    }
    c->many.assign(PySequence_Fast_ITEMS(list), PySequence_Fast_ITEMS(list) + n);
    for (PyObject*& v : c->many)
      if (!accept(op, c, 0, &v)) return false;
    c->count[0] = static_cast<int32_t>(n);
    for (int p = 1; p < op->n_params; ++p) {
      c->many.push_back(c->slot[p]);
      c->count[p] = 1;
    }
    c->flat = c->many.data();
    c->n_flat = static_cast<int32_t>(c->many.size());
    for (int p = 1; p < op->n_params; ++p) {
      PyObject** v = &c->flat[c->n_flat - op->n_params + p];
      if (*v == Py_None && op->param_kind[p] == kOptionalParam) *v = nullptr;
      else if (!accept(op, c, p, v)) return false;
    }
    return true;
  }
  c->flat = c->few;
  c->n_flat = op->n_params;
  for (int p = 0; p < op->n_params; ++p) {
    c->few[p] = c->slot[p];
    c->count[p] = 1;
    if (c->few[p] == Py_None && op->param_kind[p] == kOptionalParam) {
      c->few[p] = nullptr;
    } else if (!accept(op, c, p, &c->few[p])) {
      return false;
    }
  }
  return true;
}

PyObject* type_of(PyObject* v) {
  if (!v) Py_RETURN_NONE;
  if (!is_tensor(v)) {
    Py_INCREF(Py_TYPE(v));
    return reinterpret_cast<PyObject*>(Py_TYPE(v));
  }
  const myc_tensor& t = as_tensor(v)->t;
  OwnedRef shape(shape_tuple(t));
  PyObject* args[2] = {dtype_objects[t.dtype], shape.p};
  return shape ? PyObject_Vectorcall(hooks.tensor_type, args, 2, nullptr) : nullptr;
}

PyObject* pack_tuple(PyObject* const* items, Py_ssize_t n) {
  PyObject* tuple = PyTuple_New(n);
  for (Py_ssize_t i = 0; tuple && i < n; ++i) {
    PyObject* o = items[i] ? items[i] : Py_None;
    Py_INCREF(o);
    PyTuple_SET_ITEM(tuple, i, o);
  }
  return tuple;
}

Plan* resolve(Op* op, Call* c, PyObject* attrs) {
  OwnedRef types(PyTuple_New(c->n_flat)), counts(PyTuple_New(op->n_params));
  if (!types || !counts) return nullptr;
  for (int i = 0; i < c->n_flat; ++i) {
    PyObject* t = type_of(c->flat[i]);
    if (!t) return nullptr;
    PyTuple_SET_ITEM(types.p, i, t);
  }
  for (int p = 0; p < op->n_params; ++p) PyTuple_SET_ITEM(counts.p, p, PyLong_FromLong(c->count[p]));
  PyObject* args[4] = {reinterpret_cast<PyObject*>(op), types.p, attrs, counts.p};
  PyObject* plan = PyObject_Vectorcall(hooks.resolve, args, 4, nullptr);
  if (plan && Py_TYPE(plan) != PlanType) {
    PyErr_Format(PyExc_TypeError, "dispatch.resolve must return a Plan, but returned %s", Py_TYPE(plan)->tp_name);
    Py_CLEAR(plan);
  }
  return reinterpret_cast<Plan*>(plan);
}

// ---- running ----------------------------------------------------------------------------------------------------

// Finishes a call: gradient record, write-back of updates, result object. Takes the references in `outputs`.
PyObject* finish(Op* op, Plan* plan, const int32_t* counts, PyObject* const* inputs, Tensor** outputs) {
  if (tape_level > 0 && !(op->flags & kNoGradient)) {
    bool any = false;
    for (int i = 0; i < plan->n_in && !any; ++i) any = inputs[i] && tracked(inputs[i]);
    if (any) {
      bool ok = true;
      std::vector<PyObject*> kept(inputs, inputs + plan->n_in);
      std::vector<PyObject*> made;
      for (int i = 0; i < plan->n_in && ok; ++i) {
        if (!inputs[i] || plan->scalar_dtype[i] < 0) continue;
        Tensor* s = scalar_tensor(plan->scalar_dtype[i], inputs[i]);
        if (!s) ok = false;
        else made.push_back(kept[i] = reinterpret_cast<PyObject*>(s));
      }
      ok = ok && record(op, plan->attrs, plan->in_types, counts, kept.data(), plan->n_in, outputs, plan->n_out);
      for (PyObject* o : made) Py_DECREF(o);
      if (!ok) {
        for (int i = 0; i < plan->n_out; ++i) Py_CLEAR(outputs[i]);
        return nullptr;
      }
    }
  }
  int first = 0;
  for (; first < op->n_updates; ++first) {
    PyObject* updated = inputs[op->update_param[first]];
    const bool taken = !updated || tensor_take(as_tensor(updated), outputs[first]);
    if (!taken) {
      for (int i = first; i < plan->n_out; ++i) Py_DECREF(outputs[i]);
      return nullptr;
    }
    Py_DECREF(outputs[first]);
  }
  if (first == plan->n_out && first > 0) {
    PyObject* updated = inputs[op->update_param[0]];
    Py_INCREF(updated);
    return updated;
  }
  if (plan->n_out - first == 1 && !(op->flags & kAlwaysTuple)) return reinterpret_cast<PyObject*>(outputs[first]);
  PyObject* tuple = PyTuple_New(plan->n_out - first);
  for (int i = first; i < plan->n_out; ++i) {
    if (tuple) PyTuple_SET_ITEM(tuple, i - first, reinterpret_cast<PyObject*>(outputs[i]));
    else Py_DECREF(outputs[i]);
  }
  return tuple;
}

// The call as interceptors get it.
PyObject* call_slowly(Op* op, const Call& c) {
  OwnedRef inputs(pack_tuple(c.slot, op->n_params)), attrs(pack_tuple(c.slot + op->n_params, op->n_attrs));
  if (!inputs || !attrs) return nullptr;
  PyObject* args[3] = {reinterpret_cast<PyObject*>(op), inputs.p, attrs.p};
  return PyObject_Vectorcall(hooks.slow_call, args, 3, nullptr);
}

PyObject* execute(Op* op, Call* c) {
  KeyBuilder key;
  if (op->n_params && op->param_kind[0] == kListParam) key.add(kTagList | c->count[0]);
  for (int i = 0; i < c->n_flat; ++i) {
    PyObject* v = c->flat[i];
    if (!v) key.add(kTagNone);
    else if (is_tensor(v)) add_tensor_key(&key, as_tensor(v));
    else key.add(kTagNumber | number_kind(v));
  }
  for (int a = 0; a < op->n_attrs; ++a)
    if (!add_value_key(&key, c->slot[op->n_params + a])) return nullptr;
  const uint64_t hash = key.hash();
  Plan* plan = find_plan(op, key, hash);
  if (plan) {
    Py_INCREF(plan);
  } else {
    const std::vector<int64_t> words = key.words;  // resolving calls other ops
    const uint32_t before = mode;
    OwnedRef attrs(pack_tuple(c->slot + op->n_params, op->n_attrs));
    if (!attrs) return nullptr;
    plan = resolve(op, c, attrs.p);
    if (!plan || !insert_plan(op, words, hash, attrs.p, plan)) {
      Py_XDECREF(plan);
      return nullptr;
    }
    if (!before && mode) {  // this is the first op of all, and who watches from the beginning has come with it
      Py_DECREF(plan);
      return call_slowly(op, *c);
    }
  }
  OwnedRef keep(reinterpret_cast<PyObject*>(plan));
  if (plan->kind == kCompose) return PyObject_Vectorcall(plan->function, c->slot, op->n_params + op->n_attrs, nullptr);
  Tensor* few[16] = {};
  std::vector<Tensor*> many;
  Tensor** outputs = few;
  if (plan->n_out > 16) {
    many.resize(plan->n_out);
    outputs = many.data();
  }
  if (!run_plan(op, plan, c->flat, outputs)) {
    for (int i = 0; i < plan->n_out; ++i) Py_XDECREF(outputs[i]);
    return nullptr;
  }
  return finish(op, plan, c->count, c->flat, outputs);
}

PyObject* call(Op* op, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Call c;
  if (!bind_arguments(op, &c, args, PyVectorcall_NARGS(nargsf), kwnames)) return nullptr;
  if (mode) return call_slowly(op, c);
  if (!flatten(op, &c)) return nullptr;
  return execute(op, &c);
}

}  // namespace

PyObject* op_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Op* op = reinterpret_cast<Op*>(self);
  PyObject* result = call(op, args, nargsf, kwnames);
  if (!result) place_error(op->name);  // what C code raised gets its code and the user's line
  return result;
}

PyObject* op_execute(PyObject* self, PyObject* args) {
  Op* op = reinterpret_cast<Op*>(self);
  PyObject *inputs, *attrs;
  if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &inputs, &PyTuple_Type, &attrs)) return nullptr;
  if (PyTuple_GET_SIZE(inputs) != op->n_params || PyTuple_GET_SIZE(attrs) != op->n_attrs) {
    PyErr_Format(PyExc_TypeError, "%U: _execute needs %d inputs and %d attributes", op->name, op->n_params, op->n_attrs);
    return nullptr;
  }
  Call c;
  for (int i = 0; i < op->n_params; ++i) c.slot[i] = PyTuple_GET_ITEM(inputs, i);
  for (int i = 0; i < op->n_attrs; ++i) c.slot[op->n_params + i] = PyTuple_GET_ITEM(attrs, i);
  if (!flatten(op, &c)) return nullptr;
  return execute(op, &c);
}

}  // namespace mycelia
