// The reverse walk over the tape, which autodiff/reverse.py drives, and the gradient rule of each node on its way.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tape.h"

namespace mycelia {
namespace {

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

thread_local Node* in_progress = nullptr;  // whose gradient rule runs; borrowed

// For the time of a node's gradient rule: `gradient_origin` tells where it comes from.
class InProgress {
 public:
  explicit InProgress(Node* n) : before_(in_progress) { in_progress = n; }
  ~InProgress() { in_progress = before_; }
  InProgress(const InProgress&) = delete;
  InProgress& operator=(const InProgress&) = delete;

 private:
  Node* before_;
};

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

}  // namespace

PyObject* gradient_origin(PyObject*, PyObject*) {
  return Py_NewRef(in_progress && in_progress->origin ? in_progress->origin : Py_None);
}

// backward(outputs, cotangents, targets, add, release, ready=None) -> list of gradients, None where nothing flows.
// `outputs`, `targets`: lists of (Node, output index). Nodes older than every target are not visited. `ready(i, gradient)` is called
// as soon as all of the gradient of a target has come; if it returns True, it has taken that, and the list has None in its place.
PyObject* backward(PyObject*, PyObject* args) {
  PyObject *outputs, *cotangents, *targets, *add, *ready = Py_None;
  int release_values;
  if (!PyArg_ParseTuple(args, "O!O!O!Op|O", &PyList_Type, &outputs, &PyList_Type, &cotangents, &PyList_Type, &targets, &add, &release_values,
                        &ready))
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
  std::unordered_map<Node*, int64_t> readers;  // of targets: what has still to give a part of their gradient
  std::unordered_set<Node*> hooked;            // targets whose hooks were called
  auto each_target = [&](Node* n, auto change) {
    for (int i = 0; i < n->n_in; ++i)
      if (n->edges[i].node && target_of.count(n->edges[i].node) && !change(n->edges[i].node)) return false;
    return true;
  };
  if (ready != Py_None) {
    for (Node* n : order)
      if (!target_of.count(n) && useful[n]) each_target(n, [&](Node* target) { return ++readers[target] > 0; });
  }
  auto tell = [&](Node* target) {
    if (--readers[target]) return true;
    std::vector<PyObject*>& cts = pending.of[target];
    if (!cts[0]) return true;
    hooked.insert(target);
    if (!call_hook(target, &cts)) return false;
    const OwnedRef told(PyObject_CallFunction(ready, "iO", target_of[target], cts[0]));
    if (told.p == Py_True) Py_CLEAR(cts[0]);
    return static_cast<bool>(told);
  };
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
      const InProgress rule(n);
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
    if (ready != Py_None && !each_target(n, tell)) return nullptr;
  }
  OwnedRef result(PyList_New(n_targets));
  for (Py_ssize_t i = 0; result && i < n_targets; ++i) {
    Node* target = reinterpret_cast<Node*>(PyList_GET_ITEM(targets, i));
    auto found = pending.of.find(target);
    const bool hooks = found != pending.of.end() && target_of[target] == i && !hooked.count(target);
    if (hooks && !call_hook(target, &found->second)) return nullptr;
    PyObject* g = found == pending.of.end() || !found->second[0] ? Py_None : found->second[0];
    Py_INCREF(g);
    PyList_SET_ITEM(result.p, i, g);
  }
  return result.take();
}

}  // namespace mycelia
