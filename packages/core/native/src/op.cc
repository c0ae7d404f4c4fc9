// The Op type: what is known of an op, and what Python sees of it.
#include "op_parts.h"
#include "plan_cache.h"

namespace mycelia {

PyTypeObject* OpType = nullptr;

namespace {

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
    {"_execute", op_execute, METH_VARARGS, "Runs the op whatever the mode."},
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
