// Runs of a Program that is profiled or observed: one instruction at a time.
#include <algorithm>
#include <chrono>
#include <cstring>

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

// Whether instruction `i` makes values that nobody has described yet.
bool is_measured(const Instruction& ins) { return ins.kind != kRunView; }

}  // namespace

PyObject* program_measure(PyObject* self, PyObject* args) {
  PyObject *meter, *gauges;
  if (!PyArg_ParseTuple(args, "OO!:measure", &meter, &PyTuple_Type, &gauges)) return nullptr;
  Body* body = as_program(self)->body;
  if (meter == Py_None) {  // a run on another thread may still use the gauges
    Py_CLEAR(body->meter);
    Py_RETURN_NONE;
  }
  Plan* of[MYC_DTYPE_COUNT] = {};
  int64_t width = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(gauges); ++i) {
    PyObject *dtype, *plan;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(gauges, i), "OO!:measure", &dtype, PlanType, &plan)) return nullptr;
    Plan* p = reinterpret_cast<Plan*>(plan);
    if (p->kind != 0 || !p->fn || p->device != kHost || p->n_out != 1 || p->out[0].dtype != MYC_F64 || p->out[0].rank != 1) {
      PyErr_SetString(PyExc_ValueError, "Program.measure: a gauge must be a kernel of the host with one row of float64 as its result");
      return nullptr;
    }
    width = p->out[0].shape[0];
    for (int32_t d = 0; d < MYC_DTYPE_COUNT; ++d)
      if (dtype_objects[d] == dtype) of[d] = p;
  }
  Py_INCREF(gauges);
  Py_XSETREF(body->gauges, gauges);
  std::copy(of, of + MYC_DTYPE_COUNT, body->gauge_of);
  body->gauge_width = static_cast<int32_t>(width);
  body->gauge_row.clear();
  body->gauge_rows = 0;
  for (const Instruction& ins : body->code) {
    body->gauge_row.push_back(static_cast<int32_t>(body->gauge_rows));
    body->gauge_rows += static_cast<int64_t>(ins.out.size());
  }
  Py_INCREF(meter);
  Py_XSETREF(body->meter, meter);
  Py_RETURN_NONE;
}

bool begin_measuring(const Body* body, Frame* f) {
  const int64_t shape[2] = {body->gauge_rows, body->gauge_width};
  f->measured = tensor_empty(MYC_F64, 2, shape);
  if (!f->measured) return false;
  memset(f->measured->t.data, 0, static_cast<size_t>(byte_count(f->measured->t)));  // rows of what does not run
  return true;
}

bool end_measuring(const Body* body, Frame* f) {
  OwnedRef table(reinterpret_cast<PyObject*>(f->measured)), meter(Py_XNewRef(body->meter));
  f->measured = nullptr;
  if (!meter) return true;  // it was ended meanwhile
  OwnedRef result(PyObject_CallOneArg(meter.p, table.p));
  return bool(result);
}

void measure(const Body* body, const Frame* f, int32_t i, myc_context* ctx) {
  const Instruction& ins = body->code[i];
  if (!is_measured(ins)) return;
  double* rows = static_cast<double*>(f->measured->t.data) + body->gauge_row[i] * body->gauge_width;
  for (size_t k = 0; k < ins.out.size(); ++k) {
    const int32_t v = ins.out[k];
    if (v < 0 || device_of(body, v) != kHost) continue;
    const myc_tensor& value = f->values[v];
    const Plan* gauge = body->gauge_of[value.dtype];
    if (!gauge || !value.data) continue;
    myc_tensor row = gauge->out[0];
    row.data = rows + k * body->gauge_width;
    const myc_tensor* in[1] = {&value};
    myc_tensor* out[1] = {&row};
    const myc_call call = {in, out, nullptr, ctx ? ctx : gauge->context(), 1, 1};
    gauge->fn(&call);  // what it declines keeps a row of zeros
  }
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
      const bool ok = step.native ? run_kernels(body, f, i, i + 1, ins.work) : run_instruction(body, ins, f);
      if (!ok) return false;
      if (f->measured && !step.native) measure(body, f, i, nullptr);
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
