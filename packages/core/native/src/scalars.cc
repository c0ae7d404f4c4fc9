// One element of a Tensor as a number of Python: int(), float(), an index, a truth value, item(); and a number as an element.
#include "core.h"
#include "tensor_parts.h"

namespace mycelia {

namespace {

float half_to_float(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 1023;
  uint32_t bits;
  if (exponent == 0) {
    float f = static_cast<float>(mantissa) * 5.9604644775390625e-08f;  // 2^-24: subnormal
    return sign ? -f : f;
  }
  bits = exponent == 31 ? sign | 0x7f800000 | (mantissa << 13) : sign | ((exponent + 112) << 23) | (mantissa << 13);
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

// The first element of `tensor`, which may lie anywhere.
PyObject* element(const Tensor* tensor) {
  const myc_tensor& t = tensor->t;
  const char* p = static_cast<const char*>(t.data);
  char copied[16];
  if (tensor->storage->device != kHost) {
    if (!copy_bytes(copied, kHost, t.data, tensor->storage->device, kItemSize[t.dtype])) return nullptr;
    p = copied;
  }
  switch (t.dtype) {
    case MYC_BOOL: return PyBool_FromLong(*p);
    case MYC_I8: return PyLong_FromLong(*reinterpret_cast<const int8_t*>(p));
    case MYC_I16: return PyLong_FromLong(*reinterpret_cast<const int16_t*>(p));
    case MYC_I32: return PyLong_FromLong(*reinterpret_cast<const int32_t*>(p));
    case MYC_I64: return PyLong_FromLongLong(*reinterpret_cast<const int64_t*>(p));
    case MYC_U8: return PyLong_FromLong(*reinterpret_cast<const uint8_t*>(p));
    case MYC_U16: return PyLong_FromLong(*reinterpret_cast<const uint16_t*>(p));
    case MYC_U32: return PyLong_FromUnsignedLong(*reinterpret_cast<const uint32_t*>(p));
    case MYC_U64: return PyLong_FromUnsignedLongLong(*reinterpret_cast<const uint64_t*>(p));
    case MYC_F16: return PyFloat_FromDouble(half_to_float(*reinterpret_cast<const uint16_t*>(p)));
    case MYC_BF16: {
      const uint32_t bits = uint32_t(*reinterpret_cast<const uint16_t*>(p)) << 16;
      float f;
      std::memcpy(&f, &bits, 4);
      return PyFloat_FromDouble(f);
    }
    case MYC_F32: return PyFloat_FromDouble(*reinterpret_cast<const float*>(p));
    case MYC_F64: return PyFloat_FromDouble(*reinterpret_cast<const double*>(p));
    case MYC_C64: return PyComplex_FromDoubles(reinterpret_cast<const float*>(p)[0], reinterpret_cast<const float*>(p)[1]);
    default: return PyComplex_FromDoubles(reinterpret_cast<const double*>(p)[0], reinterpret_cast<const double*>(p)[1]);
  }
}

PyObject* only_element(PyObject* self, const char* what) {
  Tensor* t = as_tensor(self);
  if (!has_data(t)) return nullptr;
  if (t->t.size != 1) {
    OwnedRef shape(shape_tuple(t->t));
    PyErr_Format(PyExc_ValueError, "%s needs a tensor with one element, but the shape is %R", what, shape.p);
    place_error("Tensor");
    return nullptr;
  }
  return element(t);
}

}  // namespace

PyObject* to_int(PyObject* self) {
  OwnedRef v(only_element(self, "int()"));
  return v ? PyNumber_Long(v.p) : nullptr;
}
PyObject* to_float(PyObject* self) {
  OwnedRef v(only_element(self, "float()"));
  return v ? PyNumber_Float(v.p) : nullptr;
}
PyObject* to_index(PyObject* self) {
  const int32_t d = as_tensor(self)->t.dtype;
  if (d > MYC_U64) {
    PyErr_Format(PyExc_ValueError, "only an integer or bool tensor with one element can be an index, but the dtype is %S", dtype_objects[d]);
    place_error("Tensor");
    return nullptr;
  }
  OwnedRef v(only_element(self, "an index"));
  return v ? PyNumber_Index(v.p) : nullptr;
}
int to_bool(PyObject* self) {
  Tensor* t = as_tensor(self);
  if (!has_data(t)) return -1;
  if (t->t.size != 1) {
    OwnedRef shape(shape_tuple(t->t));
    PyErr_Format(PyExc_ValueError, "The truth value of an array with %s is ambiguous. Use x.any() or x.all() (the shape is %R).",
                 t->t.size ? "more than one element" : "no element", shape.p);
    place_error("Tensor");
    return -1;
  }
  OwnedRef v(element(t));
  return v ? PyObject_IsTrue(v.p) : -1;
}

PyObject* method_item(PyObject* self, PyObject* const* args, Py_ssize_t n) {
  Tensor* t = as_tensor(self);
  if (n == 0) return only_element(self, "item()");
  if (!has_data(t)) return nullptr;
  OwnedRef array(tensor_to_array(t));
  if (!array) return nullptr;
  OwnedRef method(PyObject_GetAttrString(array.p, "item"));
  return method ? PyObject_Vectorcall(method.p, args, n, nullptr) : nullptr;
}

bool fill_scalar(int32_t dtype, PyObject* number, void* out) {
  if (dtype == MYC_C64 || dtype == MYC_C128) {
    const Py_complex z = PyComplex_AsCComplex(number);
    if (z.real == -1.0 && PyErr_Occurred()) return false;
    if (dtype == MYC_C128) {
      static_cast<double*>(out)[0] = z.real;
      static_cast<double*>(out)[1] = z.imag;
    } else {
      static_cast<float*>(out)[0] = static_cast<float>(z.real);
      static_cast<float*>(out)[1] = static_cast<float>(z.imag);
    }
    return true;
  }
  if (dtype == MYC_BOOL) {
    const int truth = PyObject_IsTrue(number);
    if (truth < 0) return false;
    *static_cast<uint8_t*>(out) = static_cast<uint8_t>(truth);
    return true;
  }
  if (dtype <= MYC_U64) {
    int64_t v;
    if (PyFloat_CheckExact(number)) {
      v = static_cast<int64_t>(PyFloat_AS_DOUBLE(number));
    } else {
      v = static_cast<int64_t>(PyLong_AsUnsignedLongLongMask(number));  // wraps like a cast
      if (v == -1 && PyErr_Occurred()) return false;
    }
    std::memcpy(out, &v, static_cast<size_t>(kItemSize[dtype]));  // little endian: the low bytes come first
    return true;
  }
  const double d = PyFloat_AsDouble(number);
  if (d == -1.0 && PyErr_Occurred()) return false;
  if (dtype == MYC_F64) {
    *static_cast<double*>(out) = d;
    return true;
  }
  const float f = static_cast<float>(d);
  if (dtype == MYC_F32) {
    *static_cast<float*>(out) = f;
    return true;
  }
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  if (dtype == MYC_BF16) {
    const bool nan = f != f;
    *static_cast<uint16_t*>(out) = nan ? 0x7fc0 : static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    return true;
  }
  // float16, rounded to even
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const int exponent = static_cast<int>((bits >> 23) & 255) - 112;
  uint32_t mantissa = bits & 0x7fffff;
  uint16_t half;
  if (f != f) {
    half = 0x7e00;
  } else if (exponent >= 31) {
    half = sign | 0x7c00;
  } else if (exponent <= 0) {
    if (exponent < -10) {
      half = sign;
    } else {
      mantissa |= 0x800000;
      const int shift = 14 - exponent;
      const uint32_t rounded = mantissa + (1u << (shift - 1)) - 1 + ((mantissa >> shift) & 1);
      half = static_cast<uint16_t>(sign | (rounded >> shift));
    }
  } else {
    const uint32_t rounded = (static_cast<uint32_t>(exponent) << 23 | mantissa) + 0xfff + ((mantissa >> 13) & 1);
    half = static_cast<uint16_t>(sign | (rounded >> 13));
  }
  *static_cast<uint16_t*>(out) = half;
  return true;
}

Tensor* scalar_tensor(int32_t dtype, PyObject* number) {
  Tensor* t = tensor_empty(dtype, 0, nullptr);
  if (t && !fill_scalar(dtype, number, t->t.data)) Py_CLEAR(t);
  return t;
}

}  // namespace mycelia
