// The tape: one Node per recorded op.
//
// Nodes point to the nodes of their inputs, never to their own outputs, so the graph is acyclic and reference counting
// frees it. A node keeps exactly the tensors that the op's gradient rule names.
#include "tape.h"

#include <vector>

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
  n->attrs = n->in_types = n->custom = n->name = n->hook = n->origin = nullptr;
  n->n_in = n_in;
  n->n_out = n_out;
  n->n_params = 0;
  n->keeps_outputs = false;
  for (int i = 0; i < n_in; ++i) n->edges[i] = Edge{nullptr, 0};
  for (int i = 0; i < n_in; ++i) clear_fields(&n->saved_in[i]);
  for (int i = 0; i < n_out; ++i) clear_fields(&n->saved_out[i]);
  return n;
}

}  // namespace

void forget_values(Node* n) {
  for (int i = 0; i < n->n_in; ++i) clear_saved(&n->saved_in[i]);
  for (int i = 0; i < n->n_out; ++i) clear_saved(&n->saved_out[i]);
  Py_CLEAR(n->custom);
}

namespace {

void free_one(Node* n) {
  forget_values(n);
  for (int i = 0; i < n->n_in; ++i) Py_CLEAR(n->edges[i].node);
  Py_CLEAR(n->op);
  Py_CLEAR(n->attrs);
  Py_CLEAR(n->in_types);
  Py_CLEAR(n->name);
  Py_CLEAR(n->hook);
  Py_CLEAR(n->origin);
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

// ---- recording ---------------------------------------------------------------------------------------------------

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
PyObject* node_get_origin(PyObject* self, void*) {
  Node* n = reinterpret_cast<Node*>(self);
  return Py_NewRef(n->origin ? n->origin : Py_None);
}
int node_set_origin(PyObject* self, PyObject* value, void*) {
  Node* n = reinterpret_cast<Node*>(self);
  Py_XSETREF(n->origin, value && value != Py_None ? Py_NewRef(value) : nullptr);
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
                             {"origin", node_get_origin, node_set_origin, "Where in the user's code it comes from, or None.", nullptr},
                             {"seq", node_get_seq, nullptr, "Order of creation.", nullptr},
                             {nullptr, nullptr, nullptr, nullptr, nullptr}};
#define SLOT(name, fn) {name, reinterpret_cast<void*>(fn)}
PyType_Slot node_slots[] = {SLOT(Py_tp_dealloc, node_dealloc), SLOT(Py_tp_repr, node_repr), SLOT(Py_tp_getset, node_getset), {0, nullptr}};
#undef SLOT
PyType_Spec node_spec = {"mycelia.engine._C.Node", sizeof(Node), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, node_slots};

PyMethodDef functions[] = {
    {"backward", backward, METH_VARARGS, "backward(outputs, cotangents, targets, add, release, ready=None): the reverse walk."},
    {"gradient_origin", gradient_origin, METH_NOARGS, "The `origin` of the node whose gradient rule runs on this thread, or None."},
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
