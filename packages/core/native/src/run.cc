// How a Program runs. Between native instructions there is no Python, no allocation and no reference count.
#include <chrono>

#include "program.h"
#include "tensor_parts.h"

namespace mycelia {
namespace {

constexpr int64_t kReleaseGil = 1 << 15;    // elements: below, kernels are quicker than handing the GIL over
constexpr size_t kIdleFrames = 2;           // kept when several runs of a program overlapped
constexpr int kUnsteady = 4;                // runs in a row that had to compute the hoisted values
constexpr uint64_t kHashed = uint64_t(1) << 63;

int64_t byte_count(const myc_tensor& t) { return t.size * kItemSize[t.dtype]; }

// ---- frames --------------------------------------------------------------------------------------------------------

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

// Memory for the intermediates of one run. It mostly lies where it lay in the run before.
bool take_arena(const Body* body, Frame* f) {
  if (body->arena_bytes == 0) return true;
  f->arena = device_alloc(body->home, body->arena_bytes);
  if (!f->arena) return false;
  if (f->placed == f->arena->data) return true;
  f->placed = f->arena->data;
  for (int32_t v : body->in_arena) f->values[v].data = f->arena->data + body->offset[v];
  return true;
}

// Makes kernels use the scratch memory and threads of the calling thread.
void enter_thread(const Body* body, Frame* f) {
  for (size_t k = 0; k < f->contexts.size(); ++k) {
    myc_context* ctx = body->contexts[k]();
    if (ctx == f->contexts[k]) continue;
    f->contexts[k] = ctx;
    for (size_t i = 0; i < f->calls.size(); ++i)
      if (body->context_of[i] == static_cast<int32_t>(k)) f->calls[i].ctx = ctx;
  }
}

void drop(Held* held) {
  Storage* s = held->storage;
  PyObject* o = held->object;
  *held = Held{};
  if (s) release(s);
  Py_XDECREF(o);
}

// A frame for the time of one run; afterwards it holds nothing and goes back.
class UsedFrame {
 public:
  explicit UsedFrame(Body* body) : body_(body) {
    if (body->idle.empty()) {
      frame_ = make_frame(body);
    } else {
      frame_ = body->idle.back();
      body->idle.pop_back();
    }
    enter_thread(body, frame_);
  }
  ~UsedFrame() {
    for (int32_t v : body_->holders) drop(&frame_->held[v]);
    release(frame_->arena);
    frame_->arena = nullptr;
    if (body_->idle.size() < kIdleFrames) body_->idle.push_back(frame_);
    else free_frame(frame_);
  }
  UsedFrame(const UsedFrame&) = delete;
  UsedFrame& operator=(const UsedFrame&) = delete;
  Frame* get() { return frame_; }

 private:
  Body* body_;
  Frame* frame_;
};

// ---- values --------------------------------------------------------------------------------------------------------

void set_data(const Body* body, Frame* f, int32_t v, void* data) {
  f->values[v].data = data;
  for (int32_t view : body->views[v]) f->values[view].data = data;
}

bool same_type(const myc_tensor& a, const myc_tensor& b) {
  if (a.dtype != b.dtype || a.rank != b.rank) return false;
  for (int32_t i = 0; i < a.rank; ++i)
    if (a.shape[i] != b.shape[i]) return false;
  return true;
}

// Value `v` is `t` from now on.
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

// Memory of its own for value `v`, as a Tensor.
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

// A Tensor of value `v`: the one that was given or made, or one for the time of an instruction.
PyObject* tensor_of(const Body* body, const Frame* f, int32_t v) {
  PyObject* known = f->held[v].object;
  if (!known) return new_tensor_of(body, f, v);
  Py_INCREF(known);
  return known;
}

}  // namespace

bool collect_tensors(const Body* body, const Frame* f, const Ints& values, Tensors* out) {
  out->v.reserve(values.size());
  for (int32_t v : values) {
    PyObject* t = v < 0 ? nullptr : tensor_of(body, f, v);
    if (v >= 0 && !t) return false;
    out->v.push_back(t);
  }
  return true;
}

namespace {

// ---- instructions --------------------------------------------------------------------------------------------------

// The plan of an instruction; where that was made for other sizes, which matters to bodies only, one like it.
PyObject* plan_for_present_sizes(const Instruction& ins, const std::vector<PyObject*>& in) {
  bool same = true;
  for (size_t i = 0; i < in.size() && same; ++i) {
    PyObject* type = PyTuple_GET_ITEM(ins.plan->in_types, i);
    myc_tensor t;
    if (!in[i] || type == Py_None) continue;
    if (!read_type(type, &t)) return nullptr;
    same = same_type(t, as_tensor(in[i])->t);
  }
  if (same) {
    Py_INCREF(ins.plan);
    return reinterpret_cast<PyObject*>(ins.plan);
  }
  OwnedRef dispatch(PyImport_ImportModule("mycelia.engine.dispatch")), shapes(PyTuple_New(in.size()));
  for (size_t i = 0; shapes && i < in.size(); ++i) {
    PyObject* shape = Py_None;
    if (in[i]) shape = shape_tuple(as_tensor(in[i])->t);
    else Py_INCREF(shape);
    if (!shape) return nullptr;
    PyTuple_SET_ITEM(shapes.p, i, shape);
  }
  if (!dispatch || !shapes) return nullptr;
  PyObject* plan = PyObject_CallMethod(dispatch.p, "resized", "OOO", ins.op, ins.plan, shapes.p);
  if (plan && Py_TYPE(plan) != PlanType) {
    PyErr_SetString(PyExc_TypeError, "dispatch.resized must return a Plan");
    Py_CLEAR(plan);
  }
  return plan;
}

// A reference body, or what replaces a kernel that declined. Results are copied to where the values live: the body may have
// returned a part of its arguments.
bool run_reference_instruction(const Body* body, const Instruction& ins, Frame* f) {
  Tensors in;
  if (!collect_tensors(body, f, ins.in, &in)) return false;
  std::vector<Tensor*> out(ins.out.size(), nullptr);
  Tensors made;
  OwnedRef planned(plan_for_present_sizes(ins, in.v));
  if (!planned) return false;
  Plan* plan = reinterpret_cast<Plan*>(planned.p);
  const bool writes = plan->kind == kLaunch || plan->kind == kCopy;  // where it is told to
  bool ok = true;
  for (size_t i = 0; i < out.size() && writes && ok; ++i) ok = (out[i] = as_tensor(new_tensor_of(body, f, ins.out[i]))) != nullptr;
  // Placed by the compiler, it runs where its values lie; else it is a fallback, which copies.
  if (ok && plan->device == ins.plan->device) {
    ok = run_plan_there(ins.op, plan, in.v.data(), out.data());
  } else {
    ok = ok && run_plan(ins.op, plan, in.v.data(), out.data());
  }
  for (Tensor* t : out) made.v.push_back(reinterpret_cast<PyObject*>(t));
  if (!ok) return false;
  if (writes) return true;
  for (size_t i = 0; i < out.size(); ++i) {
    const myc_tensor& target = f->values[ins.out[i]];
    if (!same_type(out[i]->t, target)) {
      OwnedRef want(shape_tuple(target)), have(shape_tuple(out[i]->t));
      PyErr_Format(PyExc_RuntimeError, "%U: result %zu should have shape %R, but has shape %R", ins.op->name, i, want.p, have.p);
      return false;
    }
    if (!copy_bytes(target.data, device_of(body, ins.out[i]), out[i]->t.data, out[i]->storage->device, byte_count(target))) return false;
  }
  return true;
}

bool run_view(const Body* body, const Instruction& ins, Frame* f) {
  OwnedRef view(tensor_of(body, f, ins.in[0]));
  if (!view) return false;
  const myc_tensor& type = f->values[ins.out[0]];
  OwnedRef made(reinterpret_cast<PyObject*>(tensor_view(as_tensor(view.p), type.rank, type.shape, 0)));
  return made && hold(body, f, ins.out[0], as_tensor(made.p));
}

}  // namespace

bool store_results(const Body* body, const Instruction& ins, PyObject* const* results, size_t count, Frame* f) {
  if (count != ins.out.size()) {
    PyErr_Format(PyExc_RuntimeError, "Program: an instruction gave %zu results for %zu values", count, ins.out.size());
    return false;
  }
  for (size_t i = 0; i < count; ++i) {
    if (ins.out[i] < 0) continue;
    if (!is_tensor(results[i])) {
      PyErr_Format(PyExc_TypeError, "Program: an instruction gave a %s where a Tensor was expected", Py_TYPE(results[i])->tp_name);
      return false;
    }
    if (!hold(body, f, ins.out[i], as_tensor(results[i]))) return false;
  }
  return true;
}

bool run_inner(PyObject* program, const std::vector<PyObject*>& args, Tensors* results) {
  return run_program(reinterpret_cast<Program*>(program), args.data(), args.size(), &results->v);
}

namespace {

bool run_python(const Body* body, const Instruction& ins, Frame* f) {
  Tensors args;
  if (!collect_tensors(body, f, ins.in, &args)) return false;
  for (PyObject*& a : args.v) {
    if (a) continue;
    Py_INCREF(Py_None);
    a = Py_None;
  }
  OwnedRef result(PyObject_Vectorcall(ins.callable, args.v.data(), args.v.size(), nullptr));
  if (!result) return false;
  if (PyTuple_Check(result.p)) return store_results(body, ins, &PyTuple_GET_ITEM(result.p, 0), PyTuple_GET_SIZE(result.p), f);
  return store_results(body, ins, &result.p, 1, f);
}

int truth(const Body* body, const Frame* f, int32_t v) {
  OwnedRef t(tensor_of(body, f, v));
  return t ? PyObject_IsTrue(t.p) : -1;
}

bool run_if(const Body* body, const Instruction& ins, Frame* f) {
  const int taken = truth(body, f, ins.condition);
  Tensors args, results;
  if (taken < 0 || !collect_tensors(body, f, ins.in, &args)) return false;
  return run_inner(ins.programs[taken ? 0 : 1], args.v, &results) && store_results(body, ins, results.v.data(), results.v.size(), f);
}

bool run_other(const Body* body, const Instruction& ins, Frame* f) {
  switch (ins.kind) {
    case kRunReference: return run_reference_instruction(body, ins, f);
    case kRunView: return run_view(body, ins, f);
    case kRunPython: return run_python(body, ins, f);
    case kRunIf: return run_if(body, ins, f);
    case kRunWhile: return run_while(body, ins, f);
    case kRunHistory: return run_history(body, ins, f);
    default: return run_scan(body, ins, f);
  }
}

// Kernels [begin, end): the first that fails, or `end`.
int32_t run_kernels(const Body* body, const Frame* f, int32_t begin, int32_t end, int32_t* rc) {
  const myc_kernel_fn* kernels = body->kernels.data();
  const myc_call* calls = f->calls.data();
  for (int32_t i = begin; i < end; ++i) {
    *rc = kernels[i](&calls[i]);
    if (*rc != MYC_OK) return i;
  }
  return end;
}

bool run_native(const Body* body, Frame* f, int32_t begin, int32_t end, int64_t work) {
  while (begin < end) {
    int32_t rc = MYC_OK;
    if (work < kReleaseGil) {
      begin = run_kernels(body, f, begin, end, &rc);
    } else {
      PyThreadState* state = PyEval_SaveThread();
      begin = run_kernels(body, f, begin, end, &rc);
      PyEval_RestoreThread(state);
    }
    if (rc == MYC_OK) return true;
    const Instruction& ins = body->code[begin];
    if (rc != MYC_E_UNSUPPORTED) return raise_kernel_error(ins.op, rc, f->calls[begin].ctx);
    if (!run_reference_instruction(body, ins, f)) return false;
    ++begin;
  }
  return true;
}

// Strands of kernels that do not depend on each other, on the threads of the library that has the first one.
struct Strands {
  const Body* body;
  const Frame* frame;
  const Step* step;
  Ints reached;  // per strand: the first kernel that did not succeed, or its end

  int32_t begin(int64_t strand) const { return strand > 0 ? step->strands[strand - 1] : step->begin; }
};

void run_strand(void* arg, int64_t first, int64_t last, int32_t) {
  Strands& s = *static_cast<Strands*>(arg);
  for (int64_t strand = first; strand < last; ++strand) {
    int32_t i = s.begin(strand);
    for (; i < s.step->strands[strand]; ++i) {
      myc_call call = s.frame->calls[i];
      call.ctx = s.body->contexts[s.body->context_of[i]]();  // of the thread that works here
      if (s.body->kernels[i](&call) != MYC_OK) break;
    }
    s.reached[strand] = i;
  }
}

bool run_strands(const Body* body, Frame* f, const Step& step) {
  myc_context* ctx = f->calls[step.begin].ctx;
  if (ctx->threads <= 1) return run_native(body, f, step.begin, step.end, step.work);
  const int64_t count = static_cast<int64_t>(step.strands.size());
  Strands s = {body, f, &step, Ints(count)};
  PyThreadState* state = PyEval_SaveThread();
  ctx->parallel_for(ctx, count, 1, run_strand, &s);
  PyEval_RestoreThread(state);
  // A kernel that did not succeed runs once more here, where Python can stand in for it or say what is wrong.
  for (int64_t i = 0; i < count; ++i)
    if (!run_native(body, f, s.reached[i], step.strands[i], step.work)) return false;
  return true;
}

bool run_steps(const Body* body, Frame* f) {
  for (const Step& step : body->steps) {
    for (int32_t v : step.fresh)
      if (!make_fresh(body, f, v)) return false;
    const bool ok = !step.native          ? run_other(body, body->code[step.begin], f)
                    : step.strands.empty() ? run_native(body, f, step.begin, step.end, step.work)
                                           : run_strands(body, f, step);
    if (!ok) return false;
    for (int32_t v : step.free) drop(&f->held[v]);
  }
  return true;
}

// ---- profiled and observed programs --------------------------------------------------------------------------------

// An observer may keep what it gets, so it gets copies.
bool call_observer(const Body* body, PyObject* observer, size_t index, const Instruction& ins, const Frame* f) {
  OwnedRef position(PyLong_FromSize_t(index)), outputs(PyTuple_New(ins.out.size()));
  if (!position || !outputs) return false;
  for (size_t i = 0; i < ins.out.size(); ++i) {
    PyObject* seen = Py_None;
    if (ins.out[i] >= 0) {
      const myc_tensor& t = f->values[ins.out[i]];
      Tensor* copy = tensor_empty(t.dtype, t.rank, t.shape);
      if (!copy) return false;
      seen = reinterpret_cast<PyObject*>(copy);
      if (!copy_bytes(copy->t.data, kHost, t.data, memory_of(body, f, ins.out[i])->device, byte_count(t))) {
        Py_DECREF(seen);
        return false;
      }
    } else {
      Py_INCREF(seen);
    }
    PyTuple_SET_ITEM(outputs.p, i, seen);
  }
  PyObject* args[2] = {position.p, outputs.p};
  OwnedRef result(PyObject_Vectorcall(observer, args, 2, nullptr));
  return bool(result);
}

bool run_instrumented(Body* body, Frame* f) {
  using Clock = std::chrono::steady_clock;
  OwnedRef observer(body->observer);
  Py_XINCREF(observer.p);
  for (const Step& step : body->steps) {
    for (int32_t v : step.fresh)
      if (!make_fresh(body, f, v)) return false;
    for (int32_t i = step.begin; i < step.end; ++i) {
      const Instruction& ins = body->code[i];
      const Clock::time_point start = Clock::now();
      const bool ok = step.native ? run_native(body, f, i, i + 1, ins.work) : run_other(body, ins, f);
      if (!ok) return false;
      const int64_t spent = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
      if (body->profiled) {
        body->timings[i].calls += 1;
        body->timings[i].nanoseconds += spent;
      }
      if (observer && !call_observer(body, observer.p, i, ins, f)) return false;
    }
    for (int32_t v : step.free) drop(&f->held[v]);
  }
  return true;
}

// ---- hoisted values ------------------------------------------------------------------------------------------------

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

bool take_hoisted(Body* body, Frame* f, PyObject* const* inputs) {
  bool unsteady = false;
  for (const Source& source : body->sources) {
    if (!refresh(source.hoisted, source.inputs, inputs)) return false;
    for (size_t k = 0; k < source.values.size(); ++k)
      if (!hold(body, f, source.values[k], as_tensor((*source.hoisted->tensors)[k]))) return false;
    unsteady |= source.hoisted->misses >= kUnsteady;
  }
  if (!unsteady || !body->unsteady) return true;
  OwnedRef told(PyObject_CallNoArgs(body->unsteady));
  return bool(told);
}

// ---- a run ---------------------------------------------------------------------------------------------------------

bool take_inputs(const Body* body, Frame* f, PyObject* const* inputs) {
  for (size_t i = 0; i < body->inputs.size(); ++i) {
    if (!is_tensor(inputs[i])) {
      PyErr_Format(PyExc_TypeError, "Program: input %zu must be a Tensor, but got %s", i, Py_TYPE(inputs[i])->tp_name);
      return false;
    }
    const int32_t v = body->inputs[i];
    if (v >= 0 && !hold(body, f, v, as_tensor(inputs[i]))) return false;
  }
  return true;
}

// An updated Tensor is written where it is if nobody else looks at its memory: not another Tensor, not NumPy, and this run only
// through one of its inputs.
bool choose_updates(const Body* body, Frame* f, PyObject* const* inputs) {
  for (size_t k = 0; k < body->updates.size(); ++k) {
    const Update& u = body->updates[k];
    if (!u.in_place) continue;  // results as any other
    const Tensor* target = as_tensor(inputs[u.input]);
    const Storage* s = target->storage;
    f->in_place[k] = s->refs == 2 && s->exports == 0 && s->bin != kForeign && s->device == body->home && target->t.data == s->data;
    if (f->in_place[k]) {
      set_data(body, f, u.value, target->t.data);
      f->held[u.value].storage = target->storage;
      retain(target->storage);
    } else if (!make_fresh(body, f, u.value)) {
      return false;
    }
  }
  return true;
}

bool write_back(const Body* body, Frame* f, PyObject* const* inputs) {
  Tensors values;  // all of them first, as new objects: a value may be another updated input
  for (size_t k = 0; k < body->updates.size(); ++k) {
    PyObject* t = nullptr;
    if (!f->in_place[k] && !(t = new_tensor_of(body, f, body->updates[k].value))) return false;
    values.v.push_back(t);
  }
  for (size_t k = 0; k < body->updates.size(); ++k) {
    const int32_t input = body->updates[k].input;
    Tensor* target = as_tensor(inputs[input]);
    if (body->inputs[input] >= 0) drop(&f->held[body->inputs[input]]);  // so that it is known who else looks at the old memory
    if (values.v[k]) {
      if (!tensor_take(target, as_tensor(values.v[k]))) return false;
    } else {
      target->storage->stamp = next_stamp();
      Node* node = target->node;
      target->node = nullptr;
      Py_XDECREF(node);
    }
  }
  return true;
}

// Whether value `v` is an input that becomes another tensor when the run ends; branches and loops hand inputs on.
bool is_replaced(const Body* body, const Frame* f, PyObject* const* inputs, int32_t v) {
  for (const Update& u : body->updates)
    if (body->inputs[u.input] == v || f->held[v].object == inputs[u.input]) return true;
  return false;
}

// An output may be an input itself; of one that is updated it is what that was.
bool collect_outputs(const Body* body, const Frame* f, PyObject* const* inputs, std::vector<PyObject*>* results) {
  const size_t before = results->size();
  for (int32_t v : body->outputs) {
    PyObject* o = is_replaced(body, f, inputs, v) ? new_tensor_of(body, f, v) : tensor_of(body, f, v);
    if (!o) {
      while (results->size() > before) {
        Py_DECREF(results->back());
        results->pop_back();
      }
      return false;
    }
    results->push_back(o);
  }
  return true;
}

}  // namespace

void free_frame(Frame* frame) {
  for (Held& held : frame->held) drop(&held);
  delete frame;
}

bool run_program(Program* p, PyObject* const* inputs, size_t n, std::vector<PyObject*>* results) {
  Body* body = p->body;
  if (n != body->inputs.size()) {
    PyErr_Format(PyExc_TypeError, "Program: takes %zu inputs, but %zu were given", body->inputs.size(), n);
    return false;
  }
  OwnedRef alive(reinterpret_cast<PyObject*>(p));
  Py_INCREF(p);
  UsedFrame used(body);
  Frame* f = used.get();
  if (!take_arena(body, f) || !take_inputs(body, f, inputs)) return false;
  const int32_t level = tape_level;
  tape_level = 0;  // a Program is one step for the tape
  bool ok = take_hoisted(body, f, inputs) && choose_updates(body, f, inputs);
  ok = ok && (body->profiled || body->observer ? run_instrumented(body, f) : run_steps(body, f));
  tape_level = level;
  return ok && collect_outputs(body, f, inputs, results) && write_back(body, f, inputs);
}

}  // namespace mycelia
