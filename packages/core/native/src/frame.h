// A Frame is all that one run of a Program needs: a description of every value and a prepared call of every kernel. Frames
// are kept, so that a run only fills in where inputs and memory of its own lie. Runs that overlap, from other threads or by
// recursion, have a frame each. The arena is there for the time of a run, so programs that do not run at the same time lie in
// the same memory.
#pragma once
#include "program.h"

namespace mycelia {

// What a run holds for a value with a Tensor: the object if others get to see it, and its memory, which another thread may
// meanwhile exchange in the object.
struct Held {
  PyObject* object = nullptr;
  Storage* storage = nullptr;
};

struct Frame {
  Storage* arena = nullptr;           // of the present run
  const char* placed = nullptr;       // where the arena lay when the values in it got their addresses
  std::vector<myc_tensor> values;
  std::vector<const myc_tensor*> in;  // of all kernels, one after the other
  std::vector<myc_tensor*> out;
  std::vector<myc_call> calls;        // per instruction
  std::vector<myc_context*> contexts;
  std::vector<Held> held;
  std::vector<uint8_t> in_place;      // per update of this run
  Tensor* measured = nullptr;         // of a run that is measured: a row per output of an instruction
  int32_t counts_begin = 0, counts_end = 0;  // columns of these rows that count what is not finite
};

inline int64_t byte_count(const myc_tensor& t) { return t.size * kItemSize[t.dtype]; }

inline bool same_type(const myc_tensor& a, const myc_tensor& b) {
  if (a.dtype != b.dtype || a.rank != b.rank) return false;
  for (int32_t i = 0; i < a.rank; ++i)
    if (a.shape[i] != b.shape[i]) return false;
  return true;
}

inline void set_data(const Body* body, Frame* f, int32_t v, void* data) {
  f->values[v].data = data;
  for (int32_t view : body->views[v]) f->values[view].data = data;
}

inline void drop(Held* held) {
  Storage* s = held->storage;
  PyObject* o = held->object;
  *held = Held{};
  if (s) release(s);
  Py_XDECREF(o);
}

Frame* make_frame(const Body* body);
bool hold(const Body* body, Frame* f, int32_t v, Tensor* t);  // value `v` is `t` from now on
bool make_fresh(const Body* body, Frame* f, int32_t v);       // memory of its own for value `v`, as a Tensor
Storage* memory_of(const Body* body, const Frame* f, int32_t v);
PyObject* new_tensor_of(const Body* body, const Frame* f, int32_t v);
// A Tensor of value `v`: the one that was given or made, or one for the time of an instruction.
inline PyObject* tensor_of(const Body* body, const Frame* f, int32_t v) {
  PyObject* known = f->held[v].object;
  if (!known) return new_tensor_of(body, f, v);
  Py_INCREF(known);
  return known;
}
// Tensors of values, NULL for -1.
bool collect_tensors(const Body* body, const Frame* f, const Ints& values, Tensors* out);

}  // namespace mycelia
