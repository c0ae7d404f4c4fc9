// Runs of a Program that is profiled or observed: one instruction at a time.
#include <chrono>

#include "frame.h"

namespace mycelia {
namespace {

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

}  // namespace

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
      const bool ok = step.native ? run_kernels(body, f, i, i + 1, ins.work) : run_instruction(body, ins, f);
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

}  // namespace mycelia
