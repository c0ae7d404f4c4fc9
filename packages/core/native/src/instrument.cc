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

bool is_inexact(int32_t dtype) { return dtype >= MYC_F16; }

// Rows of all that instruction `i` reads and that may be infinite; none if one is not measured by the gauge of the outputs.
Ints rows_read(const Body* body, const Ints& row_of, int32_t i) {
  const Instruction& ins = body->code[i];
  Ints rows;
  for (int32_t v : ins.in) {
    if (v < 0) continue;
    if (!body->fixed[v]) return {};
    const int32_t dtype = body->types[v].dtype, base = body->base[v];
    if (!is_inexact(dtype)) continue;
    if (row_of[base] < 0 || body->types[base].dtype != dtype || !body->gauge_of[dtype] || device_of(body, v) != kHost) return {};
    for (int32_t out : ins.out)
      if (out >= 0 && (!body->fixed[out] || (is_inexact(body->types[out].dtype) && body->types[out].dtype != dtype))) return {};
    rows.push_back(row_of[base]);
  }
  return rows;
}

// Lays out the table of a measured run, once: a run on another thread may read this. `passes`: a byte for each instruction.
void lay_out(Body* body, const char* passes) {
  Ints row_of(body->types.size(), -1);  // per value
  for (size_t i = 0; i < body->code.size(); ++i) {
    const Instruction& ins = body->code[i];
    body->gauge_row.push_back(static_cast<int32_t>(body->gauge_rows));
    body->decided_by.push_back(passes[i] ? rows_read(body, row_of, static_cast<int32_t>(i)) : Ints());
    if (is_measured(ins))
      for (size_t k = 0; k < ins.out.size(); ++k)
        if (ins.out[k] >= 0) row_of[ins.out[k]] = static_cast<int32_t>(body->gauge_rows + k);
    body->gauge_rows += static_cast<int64_t>(ins.out.size());
  }
}

// Whether rows [begin, end) of the table count nothing that is not finite.
bool all_zero(const Frame* f, int64_t begin, int64_t end) {
  const int64_t width = f->measured->t.shape[1];
  const double* table = static_cast<const double*>(f->measured->t.data);
  for (int64_t row = begin; row < end; ++row)
    for (int32_t k = f->counts_begin; k < f->counts_end; ++k)
      if (table[row * width + k] != 0) return false;
  return true;
}

// Whether the rows of instruction `i` are zero because those of all that it read are. They are left so if a row holds no more.
bool is_decided(const Body* body, const Frame* f, int32_t i) {
  if (f->counts_end - f->counts_begin < f->measured->t.shape[1]) return false;
  for (int32_t row : body->decided_by[i])
    if (!all_zero(f, row, row + 1)) return false;
  return !body->decided_by[i].empty();
}

}  // namespace

PyObject* program_measure(PyObject* self, PyObject* args) {
  PyObject *meter, *gauges;
  const char* passes;
  Py_ssize_t count;
  int begin, end;
  if (!PyArg_ParseTuple(args, "OO!iiy#:measure", &meter, &PyTuple_Type, &gauges, &begin, &end, &passes, &count)) return nullptr;
  Body* body = as_program(self)->body;
  if (meter == Py_None) {  // a run on another thread may still use the gauges
    Py_CLEAR(body->meter);
    Py_RETURN_NONE;
  }
  if (static_cast<size_t>(count) != body->code.size()) {
    PyErr_Format(PyExc_ValueError, "Program.measure: expected a byte in passes for each of %zu instructions, but got %zd", body->code.size(),
                 count);
    return nullptr;
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
  if (begin < 0 || end < begin || end > width) {
    PyErr_Format(PyExc_ValueError, "Program.measure: columns [%d, %d) are not among the %lld of a gauge", begin, end, static_cast<long long>(width));
    return nullptr;
  }
  Py_INCREF(gauges);
  Py_XSETREF(body->gauges, gauges);
  std::copy(of, of + MYC_DTYPE_COUNT, body->gauge_of);
  body->gauge_width = static_cast<int32_t>(width);
  body->counts_begin = begin;
  body->counts_end = end;
  if (body->gauge_row.empty()) lay_out(body, passes);
  Py_INCREF(meter);
  Py_XSETREF(body->meter, meter);
  Py_RETURN_NONE;
}

bool begin_measuring(const Body* body, Frame* f) {
  const int64_t shape[2] = {body->gauge_rows, body->gauge_width};
  f->measured = tensor_empty(MYC_F64, 2, shape);
  if (!f->measured) return false;
  f->counts_begin = body->counts_begin;
  f->counts_end = body->counts_end;
  memset(f->measured->t.data, 0, static_cast<size_t>(byte_count(f->measured->t)));  // rows of what does not run
  return true;
}

bool end_measuring(const Body* body, Frame* f) {
  OwnedRef table(reinterpret_cast<PyObject*>(f->measured)), meter(Py_XNewRef(body->meter));
  const bool finite = all_zero(f, 0, f->measured->t.shape[0]);
  f->measured = nullptr;
  if (!meter) return true;  // it was ended meanwhile
  PyObject* args[2] = {table.p, finite ? Py_True : Py_False};
  OwnedRef result(PyObject_Vectorcall(meter.p, args, 2, nullptr));
  return bool(result);
}

void measure(const Body* body, const Frame* f, int32_t i, myc_context* ctx) {
  const Instruction& ins = body->code[i];
  if (!is_measured(ins) || is_decided(body, f, i)) return;
  const int64_t width = f->measured->t.shape[1];
  double* rows = static_cast<double*>(f->measured->t.data) + body->gauge_row[i] * width;
  for (size_t k = 0; k < ins.out.size(); ++k) {
    const int32_t v = ins.out[k];
    if (v < 0 || device_of(body, v) != kHost) continue;
    const myc_tensor& value = f->values[v];
    const Plan* gauge = body->gauge_of[value.dtype];
    if (!gauge || !value.data || gauge->out[0].shape[0] != width) continue;  // others may have been asked for since the run began
    myc_tensor row = gauge->out[0];
    row.data = rows + k * width;
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
