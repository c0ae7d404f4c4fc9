// How a Program runs. Between native instructions there is no Python, no allocation and no reference count.
#include "frame.h"

namespace mycelia {
namespace {

constexpr int64_t kReleaseGil = 1 << 15;  // elements: below, kernels are quicker than handing the GIL over
constexpr size_t kIdleFrames = 2;         // kept when several runs of a program overlapped

// ---- kernels -------------------------------------------------------------------------------------------------------

// Kernels [begin, end): the first that fails, or `end`.
int32_t try_kernels(const Body* body, const Frame* f, int32_t begin, int32_t end, int32_t* rc) {
  const myc_kernel_fn* kernels = body->kernels.data();
  const myc_call* calls = f->calls.data();
  if (f->measured) {
    for (int32_t i = begin; i < end; ++i) {
      *rc = kernels[i](&calls[i]);
      if (*rc != MYC_OK) return i;
      measure(body, f, i, calls[i].ctx);
    }
    return end;
  }
  for (int32_t i = begin; i < end; ++i) {
    *rc = kernels[i](&calls[i]);
    if (*rc != MYC_OK) return i;
  }
  return end;
}

}  // namespace

bool run_kernels(const Body* body, Frame* f, int32_t begin, int32_t end, int64_t work) {
  while (begin < end) {
    int32_t rc = MYC_OK;
    if (work < kReleaseGil) {
      begin = try_kernels(body, f, begin, end, &rc);
    } else {
      PyThreadState* state = PyEval_SaveThread();
      begin = try_kernels(body, f, begin, end, &rc);
      PyEval_RestoreThread(state);
    }
    if (rc == MYC_OK) return true;
    const Instruction& ins = body->code[begin];
    if (rc != MYC_E_UNSUPPORTED) return raise_kernel_error(ins.op, rc, f->calls[begin].ctx);
    if (!run_reference_instruction(body, ins, f)) return false;
    if (f->measured) measure(body, f, begin, f->calls[begin].ctx);
    ++begin;
  }
  return true;
}

namespace {

// Tasks that do not depend on each other, on the threads of the library that has the first kernel.
struct Tasks {
  const Body* body;
  const Frame* frame;
  const Step* step;
  Ints reached;  // per task: the first kernel that did not succeed, or its end

  int32_t begin(int64_t task) const { return task > 0 ? step->tasks[task - 1] : step->begin; }
};

void run_task(void* arg, int64_t first, int64_t last, int32_t) {
  Tasks& s = *static_cast<Tasks*>(arg);
  for (int64_t task = first; task < last; ++task) {
    int32_t i = s.begin(task);
    for (; i < s.step->tasks[task]; ++i) {
      myc_call call = s.frame->calls[i];
      call.ctx = s.body->contexts[s.body->context_of[i]]();  // of the thread that works here
      if (s.body->kernels[i](&call) != MYC_OK) break;
      if (s.frame->measured) measure(s.body, s.frame, i, call.ctx);
    }
    s.reached[task] = i;
  }
}

bool run_tasks(const Body* body, Frame* f, const Step& step) {
  myc_context* ctx = f->calls[step.begin].ctx;
  if (ctx->threads <= 1) return run_kernels(body, f, step.begin, step.end, step.work);
  const int64_t count = static_cast<int64_t>(step.tasks.size());
  Tasks s = {body, f, &step, Ints(count)};
  PyThreadState* state = PyEval_SaveThread();
  ctx->parallel_for(ctx, count, 1, run_task, &s);
  PyEval_RestoreThread(state);
  // A kernel that did not succeed runs once more here, where Python can stand in for it or say what is wrong.
  for (int64_t i = 0; i < count; ++i)
    if (!run_kernels(body, f, s.reached[i], step.tasks[i], step.work)) return false;
  return true;
}

bool run_steps(const Body* body, Frame* f) {
  for (const Step& step : body->steps) {
    for (int32_t v : step.fresh)
      if (!make_fresh(body, f, v)) return false;
    const bool ok = !step.native          ? run_instruction(body, body->code[step.begin], f)
                    : step.tasks.empty() ? run_kernels(body, f, step.begin, step.end, step.work)
                                           : run_tasks(body, f, step);
    if (!ok) return false;
    if (f->measured && !step.native) measure(body, f, step.begin, nullptr);
    for (int32_t v : step.free) drop(&f->held[v]);
  }
  return true;
}

// ---- a run ---------------------------------------------------------------------------------------------------------

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
    Py_CLEAR(frame_->measured);
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
  bool ok = (body->sources.empty() || take_hoisted(body, f, inputs)) && choose_updates(body, f, inputs);
  ok = ok && (!body->meter || begin_measuring(body, f));
  ok = ok && (body->profiled || body->observer ? run_instrumented(body, f) : run_steps(body, f));
  ok = ok && (!f->measured || end_measuring(body, f));
  tape_level = level;
  return ok && collect_outputs(body, f, inputs, results) && write_back(body, f, inputs);
}

}  // namespace mycelia
