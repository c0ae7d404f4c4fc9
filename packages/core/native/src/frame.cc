// Frames of a Program's runs: where its values lie.
#include "frame.h"

#include <memory>

#include "tensor_parts.h"

namespace mycelia {

Frame* make_frame(const Body* body) {
  std::unique_ptr<Frame> f(new Frame);
  const size_t count = body->types.size();
  f->values = body->types;
  for (size_t v = 0; v < count; ++v) {
    if (body->offset[v] < 0 && body->base[v] != static_cast<int32_t>(v)) f->values[v].data = f->values[body->base[v]].data;
  }
  f->held.resize(count);
  f->in_place.resize(body->updates.size());
  f->contexts.assign(body->contexts.size(), nullptr);
  size_t n_in = 0, n_out = 0;
  for (const Instruction& ins : body->code) {
    if (ins.kind != kRunKernel) continue;
    n_in += ins.in.size();
    n_out += ins.out.size();
  }
  f->in.reserve(n_in);
  f->out.reserve(n_out);
  f->calls.resize(body->code.size());
  for (size_t i = 0; i < body->code.size(); ++i) {
    const Instruction& ins = body->code[i];
    if (ins.kind != kRunKernel) continue;
    f->calls[i] = myc_call{f->in.data() + f->in.size(), f->out.data() + f->out.size(), PyBytes_AS_STRING(ins.plan->packed), nullptr,
                           static_cast<int32_t>(ins.in.size()), static_cast<int32_t>(ins.out.size())};
    for (int32_t v : ins.in) f->in.push_back(v < 0 ? nullptr : &f->values[v]);
    for (int32_t v : ins.out) f->out.push_back(&f->values[v]);
  }
  return f.release();
}

void free_frame(Frame* frame) {
  for (Held& held : frame->held) drop(&held);
  delete frame;
}

bool hold(const Body* body, Frame* f, int32_t v, Tensor* t) {
  if (!t->storage && !has_data(t)) return false;
  if (body->fixed[v] && !same_type(t->t, f->values[v])) {
    OwnedRef want(shape_tuple(f->values[v])), have(shape_tuple(t->t));
    PyErr_Format(PyExc_TypeError, "Program: value %d is a %S of shape %R, but a %S of shape %R was given", v,
                 dtype_objects[f->values[v].dtype], want.p, dtype_objects[t->t.dtype], have.p);
    return false;
  }
  OwnedRef brought;  // where the program needs it
  if (t->storage->device != device_of(body, v)) {
    brought.p = reinterpret_cast<PyObject*>(tensor_brought(t, device_of(body, v)));
    if (!brought) return false;
    t = as_tensor(brought.p);
  }
  Held old = f->held[v];
  retain(t->storage);
  f->held[v].storage = t->storage;
  f->held[v].object = nullptr;
  if (body->seen_outside[v]) {
    Py_INCREF(t);
    f->held[v].object = reinterpret_cast<PyObject*>(t);
  }
  drop(&old);
  if (body->fixed[v]) set_data(body, f, v, t->t.data);
  else f->values[v] = t->t;
  return true;
}

bool make_fresh(const Body* body, Frame* f, int32_t v) {
  const myc_tensor& type = f->values[v];
  OwnedRef made(reinterpret_cast<PyObject*>(tensor_empty(type.dtype, type.rank, type.shape, device_of(body, v))));
  return made && hold(body, f, v, as_tensor(made.p));
}

Storage* memory_of(const Body* body, const Frame* f, int32_t v) {
  if (f->held[v].storage) return f->held[v].storage;
  const int32_t base = body->base[v];
  if (body->constants[base]) return as_tensor(body->constants[base])->storage;
  return f->held[base].storage ? f->held[base].storage : f->arena;
}

PyObject* new_tensor_of(const Body* body, const Frame* f, int32_t v) {
  Tensor* t = tensor_object();
  if (!t) return nullptr;
  t->t = f->values[v];
  t->storage = memory_of(body, f, v);
  retain(t->storage);
  return reinterpret_cast<PyObject*>(t);
}

bool collect_tensors(const Body* body, const Frame* f, const Ints& values, Tensors* out) {
  out->v.reserve(values.size());
  for (int32_t v : values) {
    PyObject* t = v < 0 ? nullptr : tensor_of(body, f, v);
    if (v >= 0 && !t) return false;
    out->v.push_back(t);
  }
  return true;
}

}  // namespace mycelia
