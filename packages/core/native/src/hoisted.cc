// The Hoisted type: values that are kept until an input that they depend on changes.
#include "frame.h"
#include "tensor_parts.h"

namespace mycelia {

PyTypeObject* HoistedType = nullptr;

namespace {

constexpr int kUnfreezeAfter = 4;                // runs in a row that had to compute the hoisted values
constexpr uint64_t kHashed = uint64_t(1) << 63;

// ---- life ----------------------------------------------------------------------------------------------------------

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

// ---- values --------------------------------------------------------------------------------------------------------

// Memory that others may write into at any time has no stamp to go by: its content is looked at.
uint64_t content_of(const Tensor* t) {
  if (t->storage->exports == 0 && t->storage->bin != kForeign) return t->storage->stamp;
  return hash_bytes(t->t.data, byte_count(t->t)) | kHashed;
}

// Computes the hoisted values if what they depend on has changed.
bool refresh(Hoisted* h, const Ints& positions, PyObject* const* inputs) {
  const size_t count = positions.size();
  std::vector<Seen>& seen = *h->seen;
  bool valid = h->runs > 0;
  for (size_t k = 0; k < count && valid; ++k) {
    Tensor* t = as_tensor(inputs[positions[k]]);
    if (!t->storage && !has_data(t)) return false;
    valid = Seen{content_of(t), t->t.data} == seen[k];
  }
  if (valid) {
    h->misses = 0;
    return true;
  }
  std::vector<Seen> now(count);
  std::vector<PyObject*> args(count);
  for (size_t k = 0; k < count; ++k) {
    Tensor* t = as_tensor(inputs[positions[k]]);
    if (!t->storage && !has_data(t)) return false;
    now[k] = Seen{content_of(t), t->t.data};
    args[k] = inputs[positions[k]];
  }
  Tensors results;
  if (!run_program(h->program, args.data(), count, &results.v)) return false;
  std::swap(*h->tensors, results.v);
  seen = std::move(now);
  ++h->runs;
  ++h->misses;
  return true;
}

}  // namespace

bool take_hoisted(Body* body, Frame* f, PyObject* const* inputs) {
  bool changing = false;
  for (const Source& source : body->sources) {
    if (!refresh(source.hoisted, source.inputs, inputs)) return false;
    for (size_t k = 0; k < source.values.size(); ++k)
      if (!hold(body, f, source.values[k], as_tensor((*source.hoisted->tensors)[k]))) return false;
    changing |= source.hoisted->misses >= kUnfreezeAfter;
  }
  if (!changing || !body->unfreeze) return true;
  OwnedRef told(PyObject_CallNoArgs(body->unfreeze));
  return bool(told);
}

int init_hoisted(PyObject* module) {
  HoistedType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&hoisted_spec));
  return HoistedType ? PyModule_AddObjectRef(module, "Hoisted", reinterpret_cast<PyObject*>(HoistedType)) : -1;
}

}  // namespace mycelia
