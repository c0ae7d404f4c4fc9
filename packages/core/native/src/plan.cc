// The Plan type: what to do for one signature of an op.
#include "core.h"

namespace mycelia {

PyTypeObject* PlanType = nullptr;

bool read_type(PyObject* type, myc_tensor* out) {
  OwnedRef dtype(PyObject_GetAttrString(type, "dtype")), shape(PyObject_GetAttrString(type, "shape"));
  if (!dtype || !shape) return false;
  std::memset(out, 0, sizeof(*out));
  out->dtype = dtype_code(dtype.p);
  if (out->dtype < 0) return false;
  out->rank = static_cast<int32_t>(PyTuple_GET_SIZE(shape.p));
  if (out->rank > MYC_MAX_RANK) {
    PyErr_Format(PyExc_ValueError, "a tensor has at most %d dimensions, but the result's shape would be %R", MYC_MAX_RANK, shape.p);
    return false;
  }
  for (int i = 0; i < out->rank; ++i) out->shape[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape.p, i));
  out->size = count_elements(out->rank, out->shape);
  return !PyErr_Occurred();
}

namespace {

// Plan(kind, in_types, out_types, scalar_dtypes, attrs, packed, function, table, kernel_index, work, device=0, home=0)
PyObject* plan_new(PyTypeObject* type, PyObject* args, PyObject*) {
  int kind, index, device = kHost, home = kHost;
  long long work;
  PyObject *in_types, *out_types, *scalars, *attrs, *packed, *function, *table;
  if (!PyArg_ParseTuple(args, "iO!O!O!OSOOiL|ii", &kind, &PyTuple_Type, &in_types, &PyTuple_Type, &out_types, &PyTuple_Type, &scalars, &attrs,
                        &packed, &function, &table, &index, &work, &device, &home))
    return nullptr;
  if (!is_device(device) || !is_device(home)) return nullptr;
  Plan* p = reinterpret_cast<Plan*>(type->tp_alloc(type, 0));
  if (!p) return nullptr;
  OwnedRef guard(reinterpret_cast<PyObject*>(p));
  p->kind = kind;
  p->work = work;
  p->device = static_cast<int8_t>(device);
  p->home = static_cast<int8_t>(home);
  p->n_in = static_cast<int16_t>(PyTuple_GET_SIZE(in_types));
  p->n_out = static_cast<int32_t>(PyTuple_GET_SIZE(out_types));
  p->out = static_cast<myc_tensor*>(PyMem_Calloc(p->n_out + 1, sizeof(myc_tensor)));
  p->scalar_dtype = static_cast<int32_t*>(PyMem_Calloc(p->n_in + 1, sizeof(int32_t)));
  if (!p->out || !p->scalar_dtype) return PyErr_NoMemory();
  for (int i = 0; i < p->n_in; ++i) p->scalar_dtype[i] = static_cast<int32_t>(PyLong_AsLong(PyTuple_GET_ITEM(scalars, i)));
  for (int i = 0; i < p->n_out; ++i)
    if (!read_type(PyTuple_GET_ITEM(out_types, i), &p->out[i])) return nullptr;
  Py_INCREF(in_types);
  p->in_types = in_types;
  Py_INCREF(out_types);
  p->out_types = out_types;
  Py_INCREF(attrs);
  p->attrs = attrs;
  Py_INCREF(packed);
  p->packed = packed;
  Py_INCREF(function);
  p->function = function;
  if (kind == kKernel) {
    const auto* t = static_cast<const myc_kernel_table*>(PyCapsule_GetPointer(table, MYC_KERNEL_TABLE_CAPSULE));
    if (!t) return nullptr;
    if (index < 0 || static_cast<uint32_t>(index) >= t->count) return PyErr_Format(PyExc_IndexError, "kernel index %d of %u", index, t->count);
    p->fn = t->kernels[index].fn;
    p->flags = t->kernels[index].flags;
    p->context = t->context;
    Py_INCREF(table);
    p->capsule = table;
  }
  return guard.take();
}

void plan_dealloc(PyObject* self) {
  Plan* p = reinterpret_cast<Plan*>(self);
  PyMem_Free(p->out);
  PyMem_Free(p->scalar_dtype);
  for (PyObject* o : {p->capsule, p->packed, p->function, p->attrs, p->in_types, p->out_types}) Py_XDECREF(o);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef plan_members[] = {{"kind", T_INT, offsetof(Plan, kind), READONLY, "0 kernel, 1 view, 2 reference, 3 compose, 4 launch, 5 copy."},
                              {"device", T_BYTE, offsetof(Plan, device), READONLY, "Where it runs; 0: the host."},
                              {"home", T_BYTE, offsetof(Plan, home), READONLY, "Where its results lie in the end."},
                              {"in_types", T_OBJECT_EX, offsetof(Plan, in_types), READONLY, nullptr},
                              {"out_types", T_OBJECT_EX, offsetof(Plan, out_types), READONLY, nullptr},
                              {"attrs", T_OBJECT_EX, offsetof(Plan, attrs), READONLY, nullptr},
                              {"function", T_OBJECT_EX, offsetof(Plan, function), READONLY, nullptr},
                              {"flags", T_UINT, offsetof(Plan, flags), READONLY, "Of the kernel: 1, out[0] may be the memory of an input."},
                              {"work", T_LONGLONG, offsetof(Plan, work), READONLY, nullptr},
                              {nullptr, 0, 0, 0, nullptr}};
PyType_Slot plan_slots[] = {{Py_tp_new, reinterpret_cast<void*>(plan_new)},
                            {Py_tp_dealloc, reinterpret_cast<void*>(plan_dealloc)},
                            {Py_tp_members, plan_members},
                            {0, nullptr}};
PyType_Spec plan_spec = {"mycelia.engine._C.Plan", sizeof(Plan), 0, Py_TPFLAGS_DEFAULT, plan_slots};

}  // namespace

int init_plan(PyObject* module) {
  PlanType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&plan_spec));
  if (!PlanType) return -1;
  return PyModule_AddObjectRef(module, "Plan", reinterpret_cast<PyObject*>(PlanType));
}

}  // namespace mycelia
