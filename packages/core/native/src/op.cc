// The Op type: a callable that remembers, per signature, what to do (its Plan).
//
// A call builds a key of int64 words from the types of its tensors and the values of its attributes and looks it up in
// the op's own open-addressing table. A hit runs without any Python; a miss asks dispatch.resolve for a Plan.
#define NO_IMPORT_ARRAY
#define PY_ARRAY_UNIQUE_SYMBOL mycelia_array_api
#define NPY_NO_DEPRECATED_API NPY_1_20_API_VERSION
#include <numpy/arrayobject.h>

#include <vector>

#include "core.h"

namespace mycelia {

PyTypeObject* OpType = nullptr;
thread_local uint32_t mode = 0;
thread_local int32_t tape_level = 0;

namespace {

constexpr int kMaxParams = 32;
constexpr int kMaxTable = 1024;              // entries; a fuller table is cleared
uint64_t plan_epoch = 1;

// ---- keys --------------------------------------------------------------------------------------------------------

enum Tag : int64_t {
  kTagTensor = 1 << 16, kTagNumber = 2 << 16, kTagNone = 3 << 16, kTagList = 4 << 16, kTagInt = 5 << 16, kTagFloat = 6 << 16,
  kTagText = 7 << 16, kTagTuple = 8 << 16, kTagObject = 9 << 16, kTagBool = 10 << 16, kTagComplex = 11 << 16
};

// Keys are built in one shared buffer: the GIL is held and nothing here calls back into Python code.
struct KeyBuilder {
  static std::vector<int64_t> words;
  KeyBuilder() { words.clear(); }
  void add(int64_t w) { words.push_back(w); }
  uint64_t hash() const {
    uint64_t h = 0x243f6a8885a308d3ull;
    for (int64_t w : words) {
      h = (h ^ static_cast<uint64_t>(w)) * 0x9e3779b97f4a7c15ull;
      h ^= h >> 29;
    }
    return h;
  }
};
std::vector<int64_t> KeyBuilder::words;

int number_kind(PyObject* o) {  // 0: no Python number
  if (PyFloat_CheckExact(o)) return 3;
  if (PyLong_CheckExact(o)) return 2;
  if (PyBool_Check(o)) return 1;
  if (PyComplex_CheckExact(o)) return 4;
  return 0;
}

void add_tensor_key(KeyBuilder* key, const Tensor* t) {
  key->add(kTagTensor | t->t.rank << 8 | t->t.dtype);
  for (int i = 0; i < t->t.rank; ++i) key->add(t->t.shape[i]);
}

// False: the value has no key (unhashable); an error is set.
bool add_value_key(KeyBuilder* key, PyObject* v) {
  if (v == Py_None) {
    key->add(kTagNone);
  } else if (PyBool_Check(v)) {
    key->add(kTagBool | (v == Py_True));
  } else if (PyLong_CheckExact(v)) {
    int overflow;
    const long long n = PyLong_AsLongLongAndOverflow(v, &overflow);
    // One that needs more bits is known by its address: the check of the attribute says which takes it.
    key->add(overflow ? kTagObject : kTagInt);
    key->add(overflow ? reinterpret_cast<intptr_t>(v) : n);
  } else if (PyFloat_CheckExact(v)) {
    int64_t bits;
    const double d = PyFloat_AS_DOUBLE(v);
    std::memcpy(&bits, &d, 8);
    key->add(kTagFloat);
    key->add(bits);
  } else if (PyUnicode_CheckExact(v)) {
    key->add(kTagText);
    key->add(PyObject_Hash(v));
    key->add(PyUnicode_GET_LENGTH(v));
  } else if (PyTuple_CheckExact(v) || PyList_CheckExact(v)) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(v);
    key->add(kTagTuple | n);
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (!add_value_key(key, PySequence_Fast_GET_ITEM(v, i))) return false;
    }
  } else if (PyArray_IsScalar(v, Integer)) {
    OwnedRef n(PyNumber_Index(v));
    return n && add_value_key(key, n.p);
  } else if (PyArray_IsScalar(v, Floating)) {
    OwnedRef d(PyNumber_Float(v));
    return d && add_value_key(key, d.p);
  } else {
    key->add(kTagObject);
    key->add(reinterpret_cast<intptr_t>(v));
  }
  return true;
}

// ---- table -------------------------------------------------------------------------------------------------------

void clear_table(Op* op) {
  for (int i = 0; i < op->capacity; ++i) {
    if (!op->table[i].plan) continue;
    PyMem_Free(op->table[i].key);
    Py_DECREF(op->table[i].attrs);
    Py_DECREF(op->table[i].plan);
  }
  PyMem_Free(op->table);
  op->table = nullptr;
  op->capacity = op->used = 0;
}

Plan* find_plan(Op* op, const KeyBuilder& key, uint64_t hash) {
  if (op->epoch != plan_epoch) {
    clear_table(op);
    op->epoch = plan_epoch;
  }
  if (!op->capacity) return nullptr;
  const int32_t n = static_cast<int32_t>(key.words.size());
  for (int i = static_cast<int>(hash & (op->capacity - 1));; i = (i + 1) & (op->capacity - 1)) {
    const PlanEntry& e = op->table[i];
    if (!e.plan) return nullptr;
    if (e.hash == hash && e.length == n && std::memcmp(e.key, key.words.data(), sizeof(int64_t) * n) == 0) return e.plan;
  }
}

void place(PlanEntry* table, int capacity, const PlanEntry& e) {
  int i = static_cast<int>(e.hash & (capacity - 1));
  while (table[i].plan) i = (i + 1) & (capacity - 1);
  table[i] = e;
}

// `attrs`: the values as given. A key holds addresses of unknown objects, so these must not die before the entry.
bool insert_plan(Op* op, const std::vector<int64_t>& key, uint64_t hash, PyObject* attrs, Plan* plan) {
  if (op->used >= kMaxTable) clear_table(op);
  if (2 * (op->used + 1) > op->capacity) {
    const int capacity = op->capacity ? 2 * op->capacity : 16;
    PlanEntry* table = static_cast<PlanEntry*>(PyMem_Calloc(capacity, sizeof(PlanEntry)));
    if (!table) {
      PyErr_NoMemory();
      return false;
    }
    for (int i = 0; i < op->capacity; ++i)
      if (op->table[i].plan) place(table, capacity, op->table[i]);
    PyMem_Free(op->table);
    op->table = table;
    op->capacity = capacity;
  }
  int64_t* words = static_cast<int64_t*>(PyMem_Malloc(sizeof(int64_t) * key.size()));
  if (!words) {
    PyErr_NoMemory();
    return false;
  }
  std::memcpy(words, key.data(), sizeof(int64_t) * key.size());
  Py_INCREF(plan);
  Py_INCREF(attrs);
  place(op->table, op->capacity, PlanEntry{hash, static_cast<int32_t>(key.size()), words, attrs, plan});
  ++op->used;
  return true;
}

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
    OwnedRef attrs(pack_tuple(c->slot + op->n_params, op->n_attrs));
    if (!attrs) return nullptr;
    plan = resolve(op, c, attrs.p);
    if (!plan || !insert_plan(op, words, hash, attrs.p, plan)) {
      Py_XDECREF(plan);
      return nullptr;
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
  if (mode) {
    OwnedRef inputs(pack_tuple(c.slot, op->n_params)), attrs(pack_tuple(c.slot + op->n_params, op->n_attrs));
    if (!inputs || !attrs) return nullptr;
    PyObject* a[3] = {reinterpret_cast<PyObject*>(op), inputs.p, attrs.p};
    return PyObject_Vectorcall(hooks.slow_call, a, 3, nullptr);
  }
  if (!flatten(op, &c)) return nullptr;
  return execute(op, &c);
}

PyObject* op_vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  Op* op = reinterpret_cast<Op*>(self);
  PyObject* result = call(op, args, nargsf, kwnames);
  if (!result) place_error(op->name);  // what C code raised gets its code and the user's line
  return result;
}

// ---- the Op type -------------------------------------------------------------------------------------------------

PyObject* intern(PyObject* text) {
  Py_INCREF(text);
  PyUnicode_InternInPlace(&text);
  return text;
}

// Op(name, definition, params=((name, kind), ...), attrs=((name, default) | (name,), ...), updates=(param index, ...), flags)
PyObject* op_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *name, *definition, *params, *attrs, *updates;
  unsigned flags;
  if (!PyArg_ParseTuple(args, "UOO!O!O!I", &name, &definition, &PyTuple_Type, &params, &PyTuple_Type, &attrs, &PyTuple_Type, &updates, &flags))
    return nullptr;
  const Py_ssize_t n_params = PyTuple_GET_SIZE(params), n_attrs = PyTuple_GET_SIZE(attrs);
  if (n_params > kMaxTensorParams || n_params + n_attrs > kMaxParams) {
    PyErr_Format(PyExc_ValueError, "op %U: at most %d tensor parameters and %d parameters in all", name, kMaxTensorParams, kMaxParams);
    return nullptr;
  }
  Op* op = reinterpret_cast<Op*>(type->tp_alloc(type, 0));
  if (!op) return nullptr;
  op->vectorcall = op_vectorcall;
  op->name = intern(name);
  Py_INCREF(definition);
  op->definition = definition;
  op->n_params = static_cast<int32_t>(n_params);
  op->n_attrs = static_cast<int32_t>(n_attrs);
  op->n_updates = static_cast<int32_t>(PyTuple_GET_SIZE(updates));
  for (int i = 0; i < op->n_updates; ++i) op->update_param[i] = static_cast<int32_t>(PyLong_AsLong(PyTuple_GET_ITEM(updates, i)));
  op->flags = flags;
  op->param_kind = static_cast<int8_t*>(PyMem_Calloc(n_params + 1, 1));
  op->saves_input = static_cast<uint8_t*>(PyMem_Calloc(n_params + 1, 1));
  op->param_names = static_cast<PyObject**>(PyMem_Calloc(n_params + n_attrs + 1, sizeof(PyObject*)));
  op->attr_default = static_cast<PyObject**>(PyMem_Calloc(n_attrs + 1, sizeof(PyObject*)));
  for (Py_ssize_t i = 0; i < n_params; ++i) {
    PyObject* p = PyTuple_GET_ITEM(params, i);
    op->param_names[i] = intern(PyTuple_GET_ITEM(p, 0));
    op->param_kind[i] = static_cast<int8_t>(PyLong_AsLong(PyTuple_GET_ITEM(p, 1)));
  }
  for (Py_ssize_t i = 0; i < n_attrs; ++i) {
    PyObject* a = PyTuple_GET_ITEM(attrs, i);
    op->param_names[n_params + i] = intern(PyTuple_GET_ITEM(a, 0));
    if (PyTuple_GET_SIZE(a) > 1) {
      Py_INCREF(PyTuple_GET_ITEM(a, 1));
      op->attr_default[i] = PyTuple_GET_ITEM(a, 1);
    }
  }
  if (PyErr_Occurred()) {
    Py_DECREF(op);
    return nullptr;
  }
  return reinterpret_cast<PyObject*>(op);
}

void op_dealloc(PyObject* self) {
  Op* op = reinterpret_cast<Op*>(self);
  if (op->weakrefs) PyObject_ClearWeakRefs(self);
  clear_table(op);
  for (int i = 0; i < op->n_params + op->n_attrs; ++i) Py_XDECREF(op->param_names[i]);
  for (int i = 0; i < op->n_attrs; ++i) Py_XDECREF(op->attr_default[i]);
  for (int i = 0; i < op->n_vjp; ++i) Py_XDECREF(op->vjp_params[i].name);
  PyMem_Free(op->param_kind);
  PyMem_Free(op->saves_input);
  PyMem_Free(op->param_names);
  PyMem_Free(op->attr_default);
  PyMem_Free(op->vjp_params);
  Py_XDECREF(op->name);
  Py_XDECREF(op->definition);
  Py_XDECREF(op->vjp);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// _set_vjp(function, ((kind, index, name), ...)): the gradient rule and what it asks for.
PyObject* op_set_vjp(PyObject* self, PyObject* args) {
  Op* op = reinterpret_cast<Op*>(self);
  PyObject *function, *spec;
  if (!PyArg_ParseTuple(args, "OO!", &function, &PyTuple_Type, &spec)) return nullptr;
  const Py_ssize_t n = PyTuple_GET_SIZE(spec);
  VjpParam* fresh = static_cast<VjpParam*>(PyMem_Calloc(n + 1, sizeof(VjpParam)));
  if (!fresh) return PyErr_NoMemory();
  for (int i = 0; i < op->n_vjp; ++i) Py_XDECREF(op->vjp_params[i].name);
  PyMem_Free(op->vjp_params);
  op->vjp_params = fresh;
  op->n_vjp = 0;
  op->saves_output = false;
  std::memset(op->saves_input, 0, op->n_params);
  for (Py_ssize_t i = 0; i < n; ++i) {
    int kind, index;
    PyObject* name;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(spec, i), "iiO", &kind, &index, &name)) return nullptr;
    Py_INCREF(name);
    fresh[op->n_vjp++] = VjpParam{static_cast<int8_t>(kind), index, name};
    if (kind == kInput) op->saves_input[index] = 1;
    if (kind == kOut || kind == kOuts) op->saves_output = true;
  }
  Py_INCREF(function);
  Py_XSETREF(op->vjp, function);
  Py_RETURN_NONE;
}

// _execute(args, attrs): runs the op now, whatever the mode; arguments as slow_call received them.
PyObject* op_execute_method(PyObject* self, PyObject* args) {
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

PyObject* op_getattro(PyObject* self, PyObject* name) {
  PyObject* v = PyObject_GenericGetAttr(self, name);
  if (v || !PyErr_ExceptionMatches(PyExc_AttributeError)) return v;
  PyErr_Clear();
  return PyObject_GetAttr(reinterpret_cast<Op*>(self)->definition, name);
}

PyObject* op_descr_get(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, object);
}

PyObject* op_repr(PyObject* self) { return PyUnicode_FromFormat("<op %U>", reinterpret_cast<Op*>(self)->name); }
PyObject* op_get_doc(PyObject* self, void*) { return PyObject_GetAttrString(reinterpret_cast<Op*>(self)->definition, "doc"); }
PyObject* op_get_name(PyObject* self, void*) {
  PyObject* n = reinterpret_cast<Op*>(self)->name;
  Py_INCREF(n);
  return n;
}
PyObject* op_get_plans(PyObject* self, void*) { return PyLong_FromLong(reinterpret_cast<Op*>(self)->used); }
PyObject* op_get_vjp(PyObject* self, void*) {
  PyObject* f = reinterpret_cast<Op*>(self)->vjp ? reinterpret_cast<Op*>(self)->vjp : Py_None;
  Py_INCREF(f);
  return f;
}
PyObject* op_reduce(PyObject* self, PyObject*) {
  OwnedRef module(PyImport_ImportModule("mycelia.engine.ops.define"));
  if (!module) return nullptr;
  OwnedRef find(PyObject_GetAttrString(module.p, "find"));
  return find ? Py_BuildValue("(O(O))", find.p, reinterpret_cast<Op*>(self)->name) : nullptr;
}

PyMethodDef op_methods[] = {
    {"_set_vjp", op_set_vjp, METH_VARARGS, "Sets the gradient rule."},
    {"_execute", op_execute_method, METH_VARARGS, "Runs the op whatever the mode."},
    {"__reduce__", op_reduce, METH_NOARGS, "Pickles as its name."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef op_getset[] = {{"__doc__", op_get_doc, nullptr, nullptr, nullptr},
                           {"__name__", op_get_name, nullptr, nullptr, nullptr},
                           {"name", op_get_name, nullptr, "Name of the op.", nullptr},
                           {"_plan_count", op_get_plans, nullptr, "Signatures remembered.", nullptr},
                           {"gradient_rule", op_get_vjp, nullptr, "The vjp function, or None.", nullptr},
                           {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef op_members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Op, vectorcall), READONLY, nullptr},
                            {"__weaklistoffset__", T_PYSSIZET, offsetof(Op, weakrefs), READONLY, nullptr},
                            {"definition", T_OBJECT_EX, offsetof(Op, definition), READONLY, "The OpDef this op was made from."},
                            {nullptr, 0, 0, 0, nullptr}};
#define SLOT(name, fn) {name, reinterpret_cast<void*>(fn)}
PyType_Slot op_slots[] = {SLOT(Py_tp_new, op_new), SLOT(Py_tp_dealloc, op_dealloc), SLOT(Py_tp_call, PyVectorcall_Call),
                          SLOT(Py_tp_getattro, op_getattro), SLOT(Py_tp_descr_get, op_descr_get), SLOT(Py_tp_repr, op_repr),
                          SLOT(Py_tp_methods, op_methods), SLOT(Py_tp_getset, op_getset), SLOT(Py_tp_members, op_members), {0, nullptr}};
#undef SLOT
PyType_Spec op_spec = {"mycelia.engine._C.Op", sizeof(Op), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, op_slots};

// ---- module functions --------------------------------------------------------------------------------------------

PyObject* clear_plans(PyObject*, PyObject*) {
  ++plan_epoch;
  Py_RETURN_NONE;
}

PyObject* get_mode(PyObject*, PyObject*) { return PyLong_FromUnsignedLong(mode); }
PyObject* set_mode(PyObject*, PyObject* value) {
  const unsigned long v = PyLong_AsUnsignedLong(value);
  if (PyErr_Occurred()) return nullptr;
  const uint32_t old = mode;
  mode = static_cast<uint32_t>(v);
  return PyLong_FromUnsignedLong(old);
}

// kernels(capsule): [(op, dtypes, flags), ...] in table order, after checking the ABI number.
PyObject* kernels(PyObject*, PyObject* capsule) {
  const auto* t = static_cast<const myc_kernel_table*>(PyCapsule_GetPointer(capsule, MYC_KERNEL_TABLE_CAPSULE));
  if (!t) return nullptr;
  if (t->abi_version != MYC_ABI_VERSION) {
    PyErr_Format(PyExc_ImportError, "kernel library '%s' was built for kernel ABI %u, but mycelia-core has %d; install matching versions",
                 t->library, t->abi_version, MYC_ABI_VERSION);
    return nullptr;
  }
  OwnedRef list(PyList_New(t->count));
  for (uint32_t i = 0; list && i < t->count; ++i) {
    PyObject* row = Py_BuildValue("(ssI)", t->kernels[i].op, t->kernels[i].dtypes, t->kernels[i].flags);
    if (!row) return nullptr;
    PyList_SET_ITEM(list.p, i, row);
  }
  return list.take();
}

PyMethodDef functions[] = {{"clear_plans", clear_plans, METH_NOARGS, "Forgets all plans (the device or a setting changed)."},
                           {"mode", get_mode, METH_NOARGS, "The thread's mode bits; any of them sends op calls to dispatch.slow_call."},
                           {"set_mode", set_mode, METH_O, "Sets the thread's mode bits and returns the old ones."},
                           {"kernels", kernels, METH_O, "Entries of a kernel table capsule."},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int init_op(PyObject* module) {
  OpType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&op_spec));
  if (!OpType) return -1;
  if (PyModule_AddObjectRef(module, "Op", reinterpret_cast<PyObject*>(OpType)) < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace mycelia
