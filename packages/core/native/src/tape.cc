// The tape: one Node per recorded op, and the reverse walk that autodiff/reverse.py drives.
//
// Nodes point to the nodes of their inputs, never to their own outputs, so the graph is acyclic and reference counting
// frees it. A node keeps exactly the tensors that the op's gradient rule names.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "core.h"

namespace mycelia {

PyTypeObject* NodeType = nullptr;

namespace {

uint64_t next_seq = 1;

constexpr int kFreeNodes = 512;
constexpr int kPooledInputs = 4;  // nodes with at most this many inputs and one output are pooled
Node* free_nodes[kFreeNodes];
int n_free_nodes = 0;

Node* dead_nodes = nullptr;  // linked through `custom` while a chain is being freed
bool freeing = false;

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

void clear_fields(Saved* s) {
  s->storage = nullptr;
  s->traced = s->packed = nullptr;
  s->node = nullptr;
}

Node* node_alloc(int32_t n_in, int32_t n_out) {
  Node* n;
  const bool pooled = n_in <= kPooledInputs && n_out == 1;
  if (pooled && n_free_nodes) {
    n = free_nodes[--n_free_nodes];
    PyObject_Init(reinterpret_cast<PyObject*>(n), NodeType);
  } else {
    n = PyObject_New(Node, NodeType);
    if (!n) return nullptr;
    n->capacity = pooled ? kPooledInputs : n_in;
    const int32_t outs = n_out < 1 ? 1 : n_out;
    const size_t room = n->capacity < 1 ? 1 : n->capacity;
    char* block = static_cast<char*>(PyMem_Malloc(room * (sizeof(Edge) + sizeof(Saved)) + outs * (sizeof(Saved) + sizeof(myc_tensor))));
    if (!block) {
      PyObject_Free(n);
      PyErr_NoMemory();
      return nullptr;
    }
    n->edges = reinterpret_cast<Edge*>(block);
    n->saved_in = reinterpret_cast<Saved*>(block + room * sizeof(Edge));
    n->saved_out = n->saved_in + room;
    n->out_types = reinterpret_cast<myc_tensor*>(n->saved_out + outs);
  }
  n->seq = next_seq++;
  n->op = nullptr;
  n->attrs = n->in_types = n->custom = n->name = n->hook = nullptr;
  n->n_in = n_in;
  n->n_out = n_out;
  n->n_params = 0;
  n->keeps_outputs = false;
  for (int i = 0; i < n_in; ++i) n->edges[i] = Edge{nullptr, 0};
  for (int i = 0; i < n_in; ++i) clear_fields(&n->saved_in[i]);
  for (int i = 0; i < n_out; ++i) clear_fields(&n->saved_out[i]);
  return n;
}

void forget_values(Node* n) {
  for (int i = 0; i < n->n_in; ++i) clear_saved(&n->saved_in[i]);
  for (int i = 0; i < n->n_out; ++i) clear_saved(&n->saved_out[i]);
  Py_CLEAR(n->custom);
}

void free_one(Node* n) {
  forget_values(n);
  for (int i = 0; i < n->n_in; ++i) Py_CLEAR(n->edges[i].node);
  Py_CLEAR(n->op);
  Py_CLEAR(n->attrs);
  Py_CLEAR(n->in_types);
  Py_CLEAR(n->name);
  Py_CLEAR(n->hook);
  if (n->capacity == kPooledInputs && n->n_out == 1 && n_free_nodes < kFreeNodes) {
    free_nodes[n_free_nodes++] = n;
  } else {
    PyMem_Free(n->edges);
    PyObject_Free(n);
  }
}

// A chain of thousands of nodes must not recurse: nodes that die meanwhile wait in a list.
void node_dealloc(PyObject* self) {
  Node* n = reinterpret_cast<Node*>(self);
  PyTypeObject* type = Py_TYPE(self);
  if (freeing) {
    n->seq = reinterpret_cast<uint64_t>(dead_nodes);
    dead_nodes = n;
    Py_DECREF(type);
    return;
  }
  freeing = true;
  free_one(n);
  while (dead_nodes) {
    Node* next = dead_nodes;
    dead_nodes = reinterpret_cast<Node*>(next->seq);
    free_one(next);
  }
  freeing = false;
  Py_DECREF(type);
}

// ---- gradient of one node ----------------------------------------------------------------------------------------

int32_t first_flat(const Node* n, int32_t param) {
  int32_t at = 0;
  for (int32_t p = 0; p < param; ++p) at += n->param_count[p];
  return at;
}

// One value per tensor parameter; a list parameter gives a tuple of its members' values.
template <class F>
PyObject* per_param(Node* n, int32_t param, F value) {
  const int32_t at = first_flat(n, param);
  if (n->op->param_kind[param] != kListParam) return value(at);
  PyObject* tuple = PyTuple_New(n->param_count[param]);
  for (int32_t i = 0; tuple && i < n->param_count[param]; ++i) {
    PyObject* v = value(at + i);
    if (!v) Py_CLEAR(tuple);
    else PyTuple_SET_ITEM(tuple, i, v);
  }
  return tuple;
}

PyObject* type_attribute(Node* n, int32_t flat, const char* name) {
  PyObject* type = PyTuple_GET_ITEM(n->in_types, flat);
  if (type == Py_None) Py_RETURN_NONE;
  if (PyType_Check(type)) {  // a Python number took this place: a 0-d value
    if (name[0] == 's') return PyTuple_New(0);
    Py_RETURN_NONE;
  }
  return PyObject_GetAttrString(type, name);
}

// `wanted(i)`: whether the gradient of input i leads to a variable of this walk.
template <class Wanted>
PyObject* vjp_argument(Node* n, const VjpParam& p, PyObject* const* cts, Wanted wanted) {
  const int first = n->op->n_updates;  // rules see the returned results only
  switch (p.kind) {
    case kCt: {
      PyObject* ct = cts[first] ? cts[first] : Py_None;
      Py_INCREF(ct);
      return ct;
    }
    case kCts: {
      PyObject* tuple = PyTuple_New(n->n_out - first);
      for (int i = first; tuple && i < n->n_out; ++i) {
        PyObject* ct = cts[i] ? cts[i] : Py_None;
        Py_INCREF(ct);
        PyTuple_SET_ITEM(tuple, i - first, ct);
      }
      return tuple;
    }
    case kOut: return restore(n->saved_out[first], n, first);
    case kOuts: {
      PyObject* tuple = PyTuple_New(n->n_out - first);
      for (int i = first; tuple && i < n->n_out; ++i) PyTuple_SET_ITEM(tuple, i - first, restore(n->saved_out[i], n, i));
      return tuple;
    }
    case kInput:
      return per_param(n, p.index, [n](int32_t i) -> PyObject* {
        if (!n->saved_in[i].storage && !n->saved_in[i].traced && !n->saved_in[i].packed) Py_RETURN_NONE;
        return restore(n->saved_in[i], nullptr, 0);
      });
    case kInputShape: return per_param(n, p.index, [n](int32_t i) { return type_attribute(n, i, "shape"); });
    case kInputDtype: return per_param(n, p.index, [n](int32_t i) { return type_attribute(n, i, "dtype"); });
    case kNeeds: {
      PyObject* tuple = PyTuple_New(n->n_in);
      for (int i = 0; tuple && i < n->n_in; ++i) PyTuple_SET_ITEM(tuple, i, PyBool_FromLong(n->edges[i].node && wanted(i)));
      return tuple;
    }
    default: {
      PyObject* v = PyDict_GetItemWithError(n->attrs, p.name);
      if (!v) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_KeyError, "%U has no attribute %R", n->op->name, p.name);
        return nullptr;
      }
      Py_INCREF(v);
      return v;
    }
  }
}

// Gradients of the inputs, flat, as a new tuple or list; entries may be None.
template <class Wanted>
PyObject* node_gradients(Node* n, PyObject* const* cts, Wanted wanted) {
  OwnedRef result;
  if (!n->op) {
    if (!n->custom) {
      if (n->n_in == 1 && n->name) return PyTuple_Pack(1, cts[0] ? cts[0] : Py_None);  // leaf: identity of an outer variable
      PyErr_SetString(PyExc_RuntimeError, "the gradient function was called a second time after its values had been freed");
      return nullptr;
    }
    const int first = n->keeps_outputs ? n->n_out : 0;
    OwnedRef args(PyTuple_New(first + n->n_out));
    if (!args) return nullptr;
    for (int i = 0; i < first; ++i) {
      PyObject* out = restore(n->saved_out[i], n, i);
      if (!out) return nullptr;
      PyTuple_SET_ITEM(args.p, i, out);
    }
    for (int i = 0; i < n->n_out; ++i) {
      PyObject* ct = cts[i] ? cts[i] : Py_None;
      Py_INCREF(ct);
      PyTuple_SET_ITEM(args.p, first + i, ct);
    }
    result.p = PyObject_Call(n->custom, args.p, nullptr);
  } else {
    Op* op = n->op;
    if (!op->vjp) {
      PyErr_Format(PyExc_NotImplementedError, "MYC-GRADIENT %U: no gradient rule is defined", op->name);
      return nullptr;
    }
    PyObject* args[48];
    int count = 0;
    for (; count < op->n_vjp && count < 48; ++count) {
      args[count] = vjp_argument(n, op->vjp_params[count], cts, wanted);
      if (!args[count]) break;
    }
    if (count == op->n_vjp) result.p = PyObject_Vectorcall(op->vjp, args, static_cast<size_t>(count), nullptr);
    for (int i = 0; i < count; ++i) Py_DECREF(args[i]);
  }
  if (!result) return nullptr;
  if (PyTuple_Check(result.p) || PyList_Check(result.p)) {
    if (PySequence_Fast_GET_SIZE(result.p) == n->n_in) return result.take();
    PyErr_Format(PyExc_RuntimeError, "the gradient rule of %S must return %d values, but returned %zd",
                 n->op ? n->op->name : n->name ? n->name : Py_None, n->n_in, PySequence_Fast_GET_SIZE(result.p));
    return nullptr;
  }
  if (n->n_in == 1) return PyTuple_Pack(1, result.p);
  PyErr_Format(PyExc_RuntimeError, "the gradient rule of %S must return %d values, but returned %s",
               n->op ? n->op->name : n->name ? n->name : Py_None, n->n_in, Py_TYPE(result.p)->tp_name);
  return nullptr;
}

// ---- reverse walk ------------------------------------------------------------------------------------------------

struct Cotangents {
  std::unordered_map<Node*, std::vector<PyObject*>> of;
  ~Cotangents() {
    for (auto& entry : of)
      for (PyObject* o : entry.second) Py_XDECREF(o);
  }
};

bool accumulate(std::vector<PyObject*>* slots, int32_t output, PyObject* value, PyObject* add) {
  PyObject*& slot = (*slots)[output];
  if (!slot) {
    Py_INCREF(value);
    slot = value;
    return true;
  }
  PyObject* args[2] = {slot, value};
  PyObject* sum = PyObject_Vectorcall(add, args, 2, nullptr);
  if (!sum) return false;
  Py_SETREF(slot, sum);
  return true;
}

// Lets the hook of a node see, and replace, the cotangents of its outputs.
bool call_hook(Node* n, std::vector<PyObject*>* cts) {
  for (size_t i = 0; n->hook && i < cts->size(); ++i) {
    if (!(*cts)[i]) continue;
    PyObject* changed = PyObject_CallFunction(n->hook, "nO", static_cast<Py_ssize_t>(i), (*cts)[i]);
    if (!changed) return false;
    Py_SETREF((*cts)[i], changed);
    if (is_tensor(changed)) continue;
    PyErr_Format(PyExc_TypeError, "a hook on a gradient must return a Tensor or None, but returned %s", Py_TYPE(changed)->tp_name);
    return false;
  }
  return true;
}

// backward(outputs, cotangents, targets, add, release) -> list of gradients, None where nothing flows.
// `outputs`, `targets`: lists of (Node, output index). Nodes older than every target are not visited.
PyObject* backward(PyObject*, PyObject* args) {
  PyObject *outputs, *cotangents, *targets, *add;
  int release_values;
  if (!PyArg_ParseTuple(args, "O!O!O!Op", &PyList_Type, &outputs, &PyList_Type, &cotangents, &PyList_Type, &targets, &add, &release_values))
    return nullptr;
  std::unordered_map<Node*, int> target_of;
  uint64_t oldest = UINT64_MAX;
  const Py_ssize_t n_targets = PyList_GET_SIZE(targets), n_outputs = PyList_GET_SIZE(outputs);
  for (Py_ssize_t i = 0; i < n_targets; ++i) {
    Node* n = reinterpret_cast<Node*>(PyList_GET_ITEM(targets, i));
    if (Py_TYPE(n) != NodeType) return PyErr_Format(PyExc_TypeError, "backward: targets must be tape nodes");
    target_of[n] = static_cast<int>(i);
    oldest = std::min(oldest, n->seq);
  }
  Cotangents pending;
  std::vector<Node*> order, stack;  // every reachable node once
  auto visit = [&](Node* n) {
    if (n->seq < oldest || pending.of.count(n)) return;
    pending.of.emplace(n, std::vector<PyObject*>(n->n_out, nullptr));
    order.push_back(n);
    stack.push_back(n);
  };
  for (Py_ssize_t i = 0; i < n_outputs; ++i) {
    PyObject* t = PyList_GET_ITEM(outputs, i);
    if (!is_tensor(t)) return PyErr_Format(PyExc_TypeError, "backward: outputs must be Tensors, but got %s", Py_TYPE(t)->tp_name);
    Node* n = as_tensor(t)->node;
    if (!n) continue;
    visit(n);
    auto found = pending.of.find(n);
    if (found == pending.of.end()) continue;
    if (!accumulate(&found->second, as_tensor(t)->node_output, PyList_GET_ITEM(cotangents, i), add)) return nullptr;
  }
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    if (target_of.count(n)) continue;
    for (int i = 0; i < n->n_in; ++i)
      if (n->edges[i].node) visit(n->edges[i].node);
  }
  std::sort(order.begin(), order.end(), [](Node* a, Node* b) { return a->seq > b->seq; });
  // With outer transforms active some nodes lead only to their variables: leave them out.
  std::unordered_map<Node*, bool> useful;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    Node* n = *it;
    bool u = target_of.count(n) > 0;
    for (int i = 0; i < n->n_in && !u; ++i) {
      auto e = n->edges[i].node ? useful.find(n->edges[i].node) : useful.end();
      u = e != useful.end() && e->second;
    }
    useful[n] = u;
  }
  for (Node* n : order) Py_INCREF(n);
  struct Release {
    std::vector<Node*>* nodes;
    ~Release() {
      for (Node* n : *nodes) Py_DECREF(n);
    }
  } release_nodes{&order};
  for (Node* n : order) {
    if (target_of.count(n) || !useful[n]) continue;
    std::vector<PyObject*>& cts = pending.of[n];
    bool any = false;
    for (PyObject* ct : cts) any = any || ct;
    if (any) {
      if (!call_hook(n, &cts)) return nullptr;
      auto wanted = [&](int i) {
        const auto found = useful.find(n->edges[i].node);
        return found != useful.end() && found->second;
      };
      OwnedRef gradients(node_gradients(n, cts.data(), wanted));
      if (!gradients) return nullptr;
      for (int i = 0; i < n->n_in; ++i) {
        Node* source = n->edges[i].node;
        PyObject* g = PySequence_Fast_GET_ITEM(gradients.p, i);
        if (!source || g == Py_None) continue;
        auto slot = pending.of.find(source);
        if (slot == pending.of.end() || !useful[source]) continue;
        if (!is_tensor(g)) {
          PyErr_Format(PyExc_TypeError, "the gradient rule of %S must return Tensors, but returned %s", n->op ? n->op->name : Py_None, Py_TYPE(g)->tp_name);
          return nullptr;
        }
        if (!accumulate(&slot->second, n->edges[i].output, g, add)) return nullptr;
      }
    }
    for (PyObject*& ct : cts) Py_CLEAR(ct);
    if (release_values) forget_values(n);
  }
  OwnedRef result(PyList_New(n_targets));
  for (Py_ssize_t i = 0; result && i < n_targets; ++i) {
    Node* target = reinterpret_cast<Node*>(PyList_GET_ITEM(targets, i));
    auto found = pending.of.find(target);
    if (found != pending.of.end() && target_of[target] == i && !call_hook(target, &found->second)) return nullptr;
    PyObject* g = found == pending.of.end() || !found->second[0] ? Py_None : found->second[0];
    Py_INCREF(g);
    PyList_SET_ITEM(result.p, i, g);
  }
  return result.take();
}

// leaf(tensor): a node that stands for a variable; an outer transform's gradient passes through it.
PyObject* leaf(PyObject*, PyObject* tensor) {
  if (!is_tensor(tensor)) return PyErr_Format(PyExc_TypeError, "leaf: expected a Tensor, but got %s", Py_TYPE(tensor)->tp_name);
  Tensor* t = as_tensor(tensor);
  Node* n = node_alloc(1, 1);
  if (!n) return nullptr;
  n->edges[0] = Edge{t->node, t->node_output};
  Py_XINCREF(t->node);
  n->name = PyUnicode_FromString("variable");
  n->out_types[0] = t->t;
  return reinterpret_cast<PyObject*>(n);
}

// custom(name, inputs, outputs, function, keep_outputs=False): makes `outputs` depend on `inputs` by a Python gradient
// function(*cts). With `keep_outputs` it is function(*outputs, *cts): a function that held them itself would be a
// reference cycle through this node, which nothing could free.
PyObject* custom(PyObject*, PyObject* args) {
  PyObject *name, *inputs, *outputs, *function;
  int keep_outputs = 0;
  if (!PyArg_ParseTuple(args, "UO!O!O|p", &name, &PyTuple_Type, &inputs, &PyTuple_Type, &outputs, &function, &keep_outputs))
    return nullptr;
  const int32_t n_in = static_cast<int32_t>(PyTuple_GET_SIZE(inputs)), n_out = static_cast<int32_t>(PyTuple_GET_SIZE(outputs));
  for (int i = 0; i < n_out; ++i)
    if (!is_tensor(PyTuple_GET_ITEM(outputs, i))) return PyErr_Format(PyExc_TypeError, "custom: outputs must be Tensors");
  Node* n = node_alloc(n_in, n_out);
  if (!n) return nullptr;
  Py_INCREF(name);
  n->name = name;
  Py_INCREF(function);
  n->custom = function;
  n->keeps_outputs = keep_outputs;
  for (int i = 0; i < n_in; ++i) {
    PyObject* t = PyTuple_GET_ITEM(inputs, i);
    if (!tracked(t)) continue;
    n->edges[i] = Edge{as_tensor(t)->node, as_tensor(t)->node_output};
    Py_INCREF(n->edges[i].node);
  }
  for (int i = 0; i < n_out; ++i) {
    Tensor* t = as_tensor(PyTuple_GET_ITEM(outputs, i));
    n->out_types[i] = t->t;
    if (keep_outputs && !save(&n->saved_out[i], t, true)) {
      Py_DECREF(n);
      return nullptr;
    }
    Py_INCREF(n);
    Node* old = t->node;
    t->node = n;
    t->node_output = i;
    Py_XDECREF(old);
  }
  return reinterpret_cast<PyObject*>(n);
}

// record(op, attrs, in_types, counts, inputs, outputs): what a fast call does itself; for traced calls.
PyObject* record_function(PyObject*, PyObject* args) {
  PyObject *op, *attrs, *in_types, *counts, *inputs, *outputs;
  if (!PyArg_ParseTuple(args, "O!O!O!O!O!O!", OpType, &op, &PyDict_Type, &attrs, &PyTuple_Type, &in_types, &PyTuple_Type, &counts, &PyTuple_Type,
                        &inputs, &PyTuple_Type, &outputs))
    return nullptr;
  int32_t count[kMaxTensorParams];
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(counts) && i < kMaxTensorParams; ++i) count[i] = static_cast<int32_t>(PyLong_AsLong(PyTuple_GET_ITEM(counts, i)));
  const Py_ssize_t n_in = PyTuple_GET_SIZE(inputs), n_out = PyTuple_GET_SIZE(outputs);
  std::vector<PyObject*> in(n_in);
  std::vector<Tensor*> out(n_out);
  for (Py_ssize_t i = 0; i < n_in; ++i) in[i] = PyTuple_GET_ITEM(inputs, i) == Py_None ? nullptr : PyTuple_GET_ITEM(inputs, i);
  for (Py_ssize_t i = 0; i < n_out; ++i) out[i] = as_tensor(PyTuple_GET_ITEM(outputs, i));
  if (!record(reinterpret_cast<Op*>(op), attrs, in_types, count, in.data(), static_cast<int32_t>(n_in), out.data(), static_cast<int32_t>(n_out)))
    return nullptr;
  Py_RETURN_NONE;
}

PyObject* get_tape_level(PyObject*, PyObject*) { return PyLong_FromLong(tape_level); }
PyObject* set_tape_level(PyObject*, PyObject* value) {
  const long v = PyLong_AsLong(value);
  if (PyErr_Occurred()) return nullptr;
  const long old = tape_level;
  tape_level = static_cast<int32_t>(v);
  return PyLong_FromLong(old);
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

// ---- the type, for inspection ------------------------------------------------------------------------------------

PyObject* node_get_op(PyObject* self, void*) {
  Node* n = reinterpret_cast<Node*>(self);
  PyObject* o = n->op ? reinterpret_cast<PyObject*>(n->op) : Py_None;
  Py_INCREF(o);
  return o;
}
PyObject* node_get_name(PyObject* self, void*) {
  Node* n = reinterpret_cast<Node*>(self);
  PyObject* o = n->op ? n->op->name : n->name ? n->name : Py_None;
  Py_INCREF(o);
  return o;
}
PyObject* node_get_edges(PyObject* self, void*) {
  Node* n = reinterpret_cast<Node*>(self);
  PyObject* list = PyList_New(n->n_in);
  for (int i = 0; list && i < n->n_in; ++i) {
    PyObject* e = n->edges[i].node ? Py_BuildValue("(Oi)", n->edges[i].node, n->edges[i].output) : (Py_INCREF(Py_None), Py_None);
    PyList_SET_ITEM(list, i, e);
  }
  return list;
}
PyObject* node_get_seq(PyObject* self, void*) { return PyLong_FromUnsignedLongLong(reinterpret_cast<Node*>(self)->seq); }
PyObject* node_get_hook(PyObject* self, void*) {
  Node* n = reinterpret_cast<Node*>(self);
  return Py_NewRef(n->hook ? n->hook : Py_None);
}
int node_set_hook(PyObject* self, PyObject* value, void*) {
  Node* n = reinterpret_cast<Node*>(self);
  Py_XSETREF(n->hook, value && value != Py_None ? Py_NewRef(value) : nullptr);
  return 0;
}
PyObject* node_repr(PyObject* self) {
  OwnedRef name(node_get_name(self, nullptr));
  return PyUnicode_FromFormat("<tape node %S #%llu>", name.p, static_cast<unsigned long long>(reinterpret_cast<Node*>(self)->seq));
}
PyGetSetDef node_getset[] = {{"op", node_get_op, nullptr, "The Op, or None for a variable or custom node.", nullptr},
                             {"name", node_get_name, nullptr, "Name for messages.", nullptr},
                             {"edges", node_get_edges, nullptr, "(node, output) per input, None where nothing is recorded.", nullptr},
                             {"hook", node_get_hook, node_set_hook, "hook(output, cotangent) -> cotangent, or None.", nullptr},
                             {"seq", node_get_seq, nullptr, "Order of creation.", nullptr},
                             {nullptr, nullptr, nullptr, nullptr, nullptr}};
#define SLOT(name, fn) {name, reinterpret_cast<void*>(fn)}
PyType_Slot node_slots[] = {SLOT(Py_tp_dealloc, node_dealloc), SLOT(Py_tp_repr, node_repr), SLOT(Py_tp_getset, node_getset), {0, nullptr}};
#undef SLOT
PyType_Spec node_spec = {"mycelia.engine._C.Node", sizeof(Node), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, node_slots};

PyMethodDef functions[] = {
    {"backward", backward, METH_VARARGS, "backward(outputs, cotangents, targets, add, release): the reverse walk."},
    {"leaf", leaf, METH_O, "leaf(tensor): a tape node that stands for a variable."},
    {"custom", custom, METH_VARARGS, "custom(name, inputs, outputs, function, keep_outputs=False): a node with a Python gradient function."},
    {"record", record_function, METH_VARARGS, "record(op, attrs, in_types, counts, inputs, outputs): tapes a traced call."},
    {"tape_level", get_tape_level, METH_NOARGS, "How many gradient transforms are recording."},
    {"set_saved_tensor_hooks", set_saved_tensor_hooks, METH_O, "Sets what packs and unpacks the values that nodes keep, (pack, unpack) or None; returns the old pair."},
    {"set_tape_level", set_tape_level, METH_O, "Sets the level and returns the old one."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool record(Op* op, PyObject* attrs, PyObject* in_types, const int32_t* param_count, PyObject* const* inputs, int32_t n_in,
            Tensor* const* outputs, int32_t n_out) {
  Node* n = node_alloc(n_in, n_out);
  if (!n) return false;
  Py_INCREF(op);
  n->op = op;
  Py_INCREF(attrs);
  n->attrs = attrs;
  Py_INCREF(in_types);
  n->in_types = in_types;
  n->n_params = op->n_params;
  int32_t flat = 0;
  for (int p = 0; p < op->n_params; ++p) {
    n->param_count[p] = param_count[p];
    for (int i = 0; i < param_count[p]; ++i, ++flat) {
      PyObject* v = inputs[flat];
      if (!v || !is_tensor(v)) continue;
      Tensor* t = as_tensor(v);
      n->edges[flat] = Edge{t->node, t->node_output};
      Py_XINCREF(t->node);
      if (op->saves_input[p] && !save(&n->saved_in[flat], t, false)) {
        Py_DECREF(n);
        return false;
      }
    }
  }
  for (int i = 0; i < n_out; ++i) {
    n->out_types[i] = outputs[i]->t;
    if (i < op->n_updates) continue;
    if (op->saves_output && !save(&n->saved_out[i], outputs[i], true)) {
      Py_DECREF(n);
      return false;
    }
    Py_INCREF(n);
    outputs[i]->node = n;  // outputs are fresh: no older node to release
    outputs[i]->node_output = i;
  }
  Py_DECREF(n);
  return true;
}

int init_tape(PyObject* module) {
  NodeType = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&node_spec));
  if (!NodeType) return -1;
  if (PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(NodeType)) < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

}  // namespace mycelia
