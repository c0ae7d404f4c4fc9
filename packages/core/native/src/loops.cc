// Loops of a Program: rounds of inner programs, without Python between them.
#include "frame.h"

namespace mycelia {
namespace {

// One round of `while`: 1 when it was run, 0 when the condition is false, -1 on error. `values`: carried ones, then the rest.
int run_round(const Instruction& ins, std::vector<PyObject*>* values) {
  Tensors verdict, next;
  if (PyErr_CheckSignals() || !run_inner(ins.programs[0], *values, &verdict)) return -1;
  const int go_on = PyObject_IsTrue(verdict.v[0]);
  if (go_on <= 0) return go_on;
  if (!run_inner(ins.programs[1], *values, &next)) return -1;
  for (size_t i = 0; i < next.v.size(); ++i) std::swap((*values)[i], next.v[i]);
  return 1;
}

bool same_shape(const myc_tensor& a, const myc_tensor& b) {
  if (a.rank != b.rank) return false;
  for (int32_t i = 0; i < a.rank; ++i)
    if (a.shape[i] != b.shape[i]) return false;
  return true;
}

// A Tensor [rounds, ...] for rows like `row`.
Tensor* stack_for(const myc_tensor& row, int64_t rounds, int32_t device) {
  int64_t shape[MYC_MAX_RANK];
  if (row.rank >= MYC_MAX_RANK) {
    PyErr_Format(PyExc_ValueError, "values of a loop that is differentiated have at most %d dimensions", MYC_MAX_RANK - 1);
    place_error("while");
    return nullptr;
  }
  shape[0] = rounds;
  for (int32_t i = 0; i < row.rank; ++i) shape[i + 1] = row.shape[i];
  return tensor_empty(row.dtype, row.rank + 1, shape, device);
}

bool put_row(Tensor* stack, int64_t index, const Tensor* tensor) {
  const myc_tensor& row = tensor->t;
  myc_tensor expected = stack->t;
  expected.rank -= 1;
  for (int32_t i = 0; i < expected.rank; ++i) expected.shape[i] = stack->t.shape[i + 1];
  if (!same_shape(expected, row)) {
    OwnedRef first(shape_tuple(expected)), now(shape_tuple(row));
    PyErr_Format(PyExc_ValueError, "the gradient of a loop needs values that keep their shape, got %R and %R", first.p, now.p);
    place_error("while");
    return false;
  }
  const int64_t bytes = row.size * kItemSize[row.dtype];
  return copy_bytes(static_cast<char*>(stack->t.data) + index * bytes, stack->storage->device, row.data, tensor->storage->device, bytes);
}

// The stack of a loop that had no round; `type`: [rounds, ...].
Tensor* empty_stack(const myc_tensor& type, int32_t device) {
  myc_tensor row = type;
  row.rank -= 1;
  for (int32_t i = 0; i < row.rank; ++i) {
    row.shape[i] = type.shape[i + 1];
    if (row.shape[i] < 0) {
      OwnedRef shape(shape_tuple(type));
      PyErr_Format(PyExc_ValueError, "no round was run, so the sizes of %R are not known", shape.p);
      place_error("while");
      return nullptr;
    }
  }
  return stack_for(row, 0, device);
}

}  // namespace

bool run_while(const Body* body, const Instruction& ins, Frame* f) {
  Tensors values;
  if (!collect_tensors(body, f, ins.in, &values)) return false;
  for (;;) {
    const int ran = run_round(ins, &values.v);
    if (ran < 0) return false;
    if (!ran) return store_results(body, ins, values.v.data(), ins.out.size(), f);
  }
}

// Results: the carried values, then what they were at the start of each round, stacked.
bool run_history(const Body* body, const Instruction& ins, Frame* f) {
  Tensors values, past, results;
  if (!collect_tensors(body, f, ins.in, &values)) return false;
  const size_t carried = static_cast<size_t>(ins.carried);
  for (;;) {
    for (size_t k = 0; k < carried; ++k) {
      Py_INCREF(values.v[k]);
      past.v.push_back(values.v[k]);
    }
    const int ran = run_round(ins, &values.v);
    if (ran < 0) return false;
    if (!ran) break;
  }
  const int64_t rounds = carried ? static_cast<int64_t>(past.v.size() / carried) - 1 : 0;  // the last start had no round
  for (size_t k = 0; k < carried; ++k) {
    Py_INCREF(values.v[k]);
    results.v.push_back(values.v[k]);
  }
  for (size_t k = 0; k < carried; ++k) {
    Tensor* stack = rounds ? stack_for(as_tensor(past.v[k])->t, rounds, body->home)
                           : empty_stack(body->types[ins.out[carried + k]], body->home);
    if (!stack) return false;
    results.v.push_back(reinterpret_cast<PyObject*>(stack));
    for (int64_t r = 0; r < rounds; ++r)
      if (!put_row(stack, r, as_tensor(past.v[static_cast<size_t>(r) * carried + k]))) return false;
  }
  return store_results(body, ins, results.v.data(), results.v.size(), f);
}

bool run_scan(const Body* body, const Instruction& ins, Frame* f) {
  Tensors inputs, values, results;
  if (!collect_tensors(body, f, ins.in, &inputs)) return false;
  const size_t carried = static_cast<size_t>(ins.carried), scanned = static_cast<size_t>(ins.scanned);
  const size_t made = ins.out.size() - carried;
  const int64_t rounds = as_tensor(inputs.v[carried])->t.shape[0];
  for (size_t k = 1; k < scanned; ++k) {
    const int64_t length = as_tensor(inputs.v[carried + k])->t.shape[0];
    if (length == rounds) continue;
    PyErr_Format(PyExc_ValueError, "scanned inputs differ in their first dimension: %lld and %lld", static_cast<long long>(rounds),
                 static_cast<long long>(length));
    place_error("scan");
    return false;
  }
  for (PyObject* t : inputs.v) Py_INCREF(t);
  values.v = inputs.v;  // arguments of a round: carried values, rows, the rest
  Tensors stacks;
  for (int64_t round = 0; round < rounds; ++round) {
    const int64_t index = ins.reverse ? rounds - 1 - round : round;
    for (size_t k = carried; k < carried + scanned; ++k) {
      Tensor* column = as_tensor(inputs.v[k]);
      const int64_t row_bytes = column->t.size / rounds * kItemSize[column->t.dtype];
      Tensor* row = tensor_view(column, column->t.rank - 1, column->t.shape + 1, index * row_bytes);
      if (!row) return false;
      Py_SETREF(values.v[k], reinterpret_cast<PyObject*>(row));
    }
    Tensors next;
    if (PyErr_CheckSignals() || !run_inner(ins.programs[1], values.v, &next)) return false;
    for (size_t k = 0; k < carried; ++k) std::swap(values.v[k], next.v[k]);
    for (size_t k = 0; k < made; ++k) {
      const Tensor* row = as_tensor(next.v[carried + k]);
      if (round == 0) {
        Tensor* stack = stack_for(row->t, rounds, body->home);
        if (!stack) return false;
        stacks.v.push_back(reinterpret_cast<PyObject*>(stack));
      }
      if (!put_row(as_tensor(stacks.v[k]), index, row)) return false;
    }
  }
  for (size_t k = 0; k < made && rounds == 0; ++k) {
    Tensor* stack = empty_stack(body->types[ins.out[carried + k]], body->home);
    if (!stack) return false;
    stacks.v.push_back(reinterpret_cast<PyObject*>(stack));
  }
  std::vector<PyObject*> all(values.v.begin(), values.v.begin() + static_cast<std::ptrdiff_t>(carried));
  all.insert(all.end(), stacks.v.begin(), stacks.v.end());
  return store_results(body, ins, all.data(), all.size(), f);
}

}  // namespace mycelia
