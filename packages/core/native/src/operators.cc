// The operators of Tensor. Each calls an Op or function that mycelia.engine.tensors.tensor sets. There are none in place: `x += y` binds x to a
// new tensor, as MindSpore's does, and others that hold the old one keep its values.
#define NO_IMPORT_ARRAY
#define PY_ARRAY_UNIQUE_SYMBOL mycelia_array_api
#define NPY_NO_DEPRECATED_API NPY_1_20_API_VERSION
#include <numpy/arrayobject.h>

#include "tensor_parts.h"

namespace mycelia {
namespace {

enum Operator {
  kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow, kMatMul, kAnd, kOr, kXor, kLeftShift, kRightShift,
  kEq, kNe, kLt, kLe, kGt, kGe, kNeg, kAbs, kInvert, kOperatorCount
};
const char* const kOperatorNames[kOperatorCount] = {"add", "sub", "mul", "div", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
                                                   "lshift", "rshift", "eq", "ne", "lt", "le", "gt", "ge", "neg", "abs", "invert"};
PyObject* operators[kOperatorCount];

PyObject* unsupported(int which) {
  PyErr_Format(PyExc_RuntimeError, "Tensor operator '%s' is used before mycelia.engine.tensors.tensor was imported", kOperatorNames[which]);
  return nullptr;
}

inline bool is_number(PyObject* o) { return PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) || PyComplex_CheckExact(o); }

PyObject* binary(int which, PyObject* a, PyObject* b) {
  if (!operators[which]) return unsupported(which);
  PyObject* args[2] = {a, b};
  if ((is_tensor(a) || is_number(a)) && (is_tensor(b) || is_number(b))) return PyObject_Vectorcall(operators[which], args, 2, nullptr);
  PyObject* other = is_tensor(a) ? b : a;
  if (PyFloat_Check(other) || PyLong_Check(other)) {  // a subclass, such as numpy.float64, counts as the number that it is
    OwnedRef number(PyFloat_Check(other) ? PyFloat_FromDouble(PyFloat_AS_DOUBLE(other)) : PyNumber_Long(other));
    if (!number) return nullptr;
    args[is_tensor(a) ? 1 : 0] = number.p;
    return PyObject_Vectorcall(operators[which], args, 2, nullptr);
  }
  if (PyArray_Check(other) || PyArray_CheckScalar(other) || PyList_Check(other) || PyTuple_Check(other)) {
    const bool members = hooks.operand && (PyList_Check(other) || PyTuple_Check(other));
    OwnedRef converted(PyObject_CallOneArg(members ? hooks.operand : reinterpret_cast<PyObject*>(TensorType), other));
    if (!converted) return nullptr;
    args[is_tensor(a) ? 1 : 0] = converted.p;
    return PyObject_Vectorcall(operators[which], args, 2, nullptr);
  }
  if (mode && PyIndex_Check(other)) return PyObject_Vectorcall(operators[which], args, 2, nullptr);  // a symbolic size
  Py_RETURN_NOTIMPLEMENTED;
}

PyObject* unary(int which, PyObject* a) {
  if (!operators[which]) return unsupported(which);
  return PyObject_Vectorcall(operators[which], &a, 1, nullptr);
}

PyObject* op_add(PyObject* a, PyObject* b) { return binary(kAdd, a, b); }
PyObject* op_sub(PyObject* a, PyObject* b) { return binary(kSub, a, b); }
PyObject* op_mul(PyObject* a, PyObject* b) { return binary(kMul, a, b); }
PyObject* op_div(PyObject* a, PyObject* b) { return binary(kDiv, a, b); }
PyObject* op_floordiv(PyObject* a, PyObject* b) { return binary(kFloorDiv, a, b); }
PyObject* op_mod(PyObject* a, PyObject* b) { return binary(kMod, a, b); }
PyObject* op_pow(PyObject* a, PyObject* b, PyObject*) { return binary(kPow, a, b); }
PyObject* op_matmul(PyObject* a, PyObject* b) { return binary(kMatMul, a, b); }
PyObject* op_and(PyObject* a, PyObject* b) { return binary(kAnd, a, b); }
PyObject* op_or(PyObject* a, PyObject* b) { return binary(kOr, a, b); }
PyObject* op_xor(PyObject* a, PyObject* b) { return binary(kXor, a, b); }
PyObject* op_lshift(PyObject* a, PyObject* b) { return binary(kLeftShift, a, b); }
PyObject* op_rshift(PyObject* a, PyObject* b) { return binary(kRightShift, a, b); }
PyObject* op_neg(PyObject* a) { return unary(kNeg, a); }
PyObject* op_abs(PyObject* a) { return unary(kAbs, a); }
PyObject* op_invert(PyObject* a) { return unary(kInvert, a); }
PyObject* op_pos(PyObject* a) {
  Py_INCREF(a);
  return a;
}

PyObject* rich_compare(PyObject* a, PyObject* b, int op) {
  static const int which[6] = {kLt, kLe, kEq, kNe, kGt, kGe};
  if (b == Py_None && (op == Py_EQ || op == Py_NE)) return PyBool_FromLong(op == Py_NE);
  return binary(which[op], a, b);
}

}  // namespace

PyObject* set_operator(PyObject*, PyObject* args) {
  const char* name;
  PyObject* op;
  if (!PyArg_ParseTuple(args, "sO", &name, &op)) return nullptr;
  for (int i = 0; i < kOperatorCount; ++i) {
    if (std::strcmp(name, kOperatorNames[i]) == 0) {
      Py_INCREF(op);
      Py_XSETREF(operators[i], op);
      Py_RETURN_NONE;
    }
  }
  PyErr_Format(PyExc_ValueError, "set_operator: no operator is called '%s'", name);
  return nullptr;
}

#define SLOT(name, fn) {name, reinterpret_cast<void*>(fn)}
const PyType_Slot operator_slots[] = {
    SLOT(Py_tp_richcompare, rich_compare),
    SLOT(Py_nb_add, op_add),
    SLOT(Py_nb_subtract, op_sub),
    SLOT(Py_nb_multiply, op_mul),
    SLOT(Py_nb_true_divide, op_div),
    SLOT(Py_nb_floor_divide, op_floordiv),
    SLOT(Py_nb_remainder, op_mod),
    SLOT(Py_nb_power, op_pow),
    SLOT(Py_nb_matrix_multiply, op_matmul),
    SLOT(Py_nb_and, op_and),
    SLOT(Py_nb_or, op_or),
    SLOT(Py_nb_xor, op_xor),
    SLOT(Py_nb_lshift, op_lshift),
    SLOT(Py_nb_rshift, op_rshift),
    SLOT(Py_nb_negative, op_neg),
    SLOT(Py_nb_positive, op_pos),
    SLOT(Py_nb_absolute, op_abs),
    SLOT(Py_nb_invert, op_invert),
};
#undef SLOT
const int operator_slot_count = sizeof(operator_slots) / sizeof(operator_slots[0]);

}  // namespace mycelia
