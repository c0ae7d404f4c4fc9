// Tensors that a node of the tape keeps for its gradient rule, and the hooks that pack and unpack them.
#include "tape.h"

namespace mycelia {
namespace {

thread_local PyObject* saved_hooks = nullptr;  // (pack, unpack) while saved-tensor hooks are in force

// Calls pack(value) outside of any recording: what it computes belongs to no gradient.
PyObject* pack_value(Tensor* t) {
  OwnedRef hooks(saved_hooks), value(reinterpret_cast<PyObject*>(tensor_object()));
  if (!value) {
    saved_hooks = hooks.take();
    return nullptr;
  }
  Tensor* copy = as_tensor(value.p);
  copy->t = t->t;
  copy->storage = t->storage;
  if (t->storage) retain(t->storage);
  Py_XINCREF(t->traced);
  copy->traced = t->traced;
  const int32_t level = tape_level;
  saved_hooks = nullptr;
  tape_level = 0;
  PyObject* made = PyObject_CallOneArg(PyTuple_GET_ITEM(hooks.p, 0), value.p);
  tape_level = level;
  saved_hooks = hooks.take();
  if (!made) return nullptr;
  OwnedRef keep(made);
  return PyTuple_Pack(2, made, PyTuple_GET_ITEM(saved_hooks, 1));
}

}  // namespace

bool save(Saved* s, Tensor* t, bool own_output) {
  s->node = own_output ? nullptr : t->node;
  Py_XINCREF(s->node);
  s->node_output = t->node_output;
  s->flags = t->flags & ~kParameter;
  s->t = t->t;
  if (saved_hooks) return (s->packed = pack_value(t)) != nullptr;
  s->storage = t->storage;
  if (s->storage) retain(s->storage);
  Py_XINCREF(t->traced);
  s->traced = t->traced;
  return true;
}

void clear_saved(Saved* s) {
  release(s->storage);
  s->storage = nullptr;
  Py_CLEAR(s->traced);
  Py_CLEAR(s->packed);
  Py_CLEAR(s->node);
}

PyObject* restore(const Saved& s, Node* self, int32_t output) {
  OwnedRef unpacked;
  if (s.packed) {
    unpacked.p = PyObject_CallOneArg(PyTuple_GET_ITEM(s.packed, 1), PyTuple_GET_ITEM(s.packed, 0));
    if (!unpacked) return nullptr;
    if (!is_tensor(unpacked.p)) {
      PyErr_Format(PyExc_TypeError, "the unpack hook of saved tensors must return a Tensor, but returned %s", Py_TYPE(unpacked.p)->tp_name);
      return nullptr;
    }
  }
  const Tensor* source = unpacked ? as_tensor(unpacked.p) : nullptr;
  Tensor* t = tensor_object();
  if (!t) return nullptr;
  t->t = source ? source->t : s.t;
  t->storage = source ? source->storage : s.storage;
  if (t->storage) retain(t->storage);
  t->traced = source ? source->traced : s.traced;
  Py_XINCREF(t->traced);
  Node* node = self ? self : s.node;
  Py_XINCREF(node);
  t->node = node;
  t->node_output = self ? output : s.node_output;
  return reinterpret_cast<PyObject*>(t);
}

PyObject* set_saved_tensor_hooks(PyObject*, PyObject* pair) {
  if (pair != Py_None && !(PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2)) {
    PyErr_SetString(PyExc_TypeError, "set_saved_tensor_hooks: expected (pack, unpack) or None");
    return nullptr;
  }
  PyObject* old = saved_hooks;
  saved_hooks = pair == Py_None ? nullptr : Py_NewRef(pair);
  if (old) return old;
  Py_RETURN_NONE;
}

}  // namespace mycelia
