// Values for event files: arrays in the form that is written, and their messages.
#define NPY_NO_DEPRECATED_API NPY_1_20_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mycelia_data_array_api
#define NO_IMPORT_ARRAY
#include "event_values.h"

#include <numpy/arrayobject.h>

#include "message.h"

namespace mycelia::data {
namespace {

constexpr size_t kImagesAcross = 8;

PyArrayObject* array_of(const Value& value) { return reinterpret_cast<PyArrayObject*>(value.array.get()); }

// The type in which elements are written, or -1. Booleans count as integers, which halves as floats; pixels that are neither bytes nor
// floats are spread over their range as float64.
int written_type(int type, bool is_image) {
  if (type == NPY_FLOAT || type == NPY_DOUBLE || type == NPY_UINT8) return type;
  const bool is_number = PyTypeNum_ISINTEGER(type) || PyTypeNum_ISFLOAT(type) || type == NPY_BOOL;
  if (is_image) return is_number ? NPY_DOUBLE : -1;
  return type == NPY_BOOL ? NPY_UINT8 : type == NPY_HALF ? NPY_FLOAT : PyTypeNum_ISINTEGER(type) ? type : -1;
}

bool value_of(PyObject* object, Value* out) {
  const char *tag, *kind;
  Py_ssize_t size;
  PyObject* content;
  if (!PyTuple_Check(object)) {
    PyErr_SetString(PyExc_TypeError, "values are tuples (tag, kind, content)");
    return false;
  }
  if (!PyArg_ParseTuple(object, "s#sO", &tag, &size, &kind, &content)) return false;
  out->tag.assign(tag, static_cast<size_t>(size));
  const std::string name = kind;
  if (name == "scalar") {
    out->kind = Value::Kind::kScalar;
    out->number = static_cast<float>(PyFloat_AsDouble(content));
    return !PyErr_Occurred();
  }
  const bool is_image = name == "image";
  if (!is_image && name != "histogram") {
    PyErr_Format(PyExc_ValueError, "kinds are scalar, image and histogram, but got %s", kind);
    return false;
  }
  out->kind = is_image ? Value::Kind::kImage : Value::Kind::kHistogram;
  PyArrayObject* array = reinterpret_cast<PyArrayObject*>(content);
  const int type = PyArray_Check(content) ? written_type(PyArray_TYPE(array), is_image) : -1;
  if (type < 0 || (is_image && PyArray_NDIM(array) != 4)) {
    PyErr_SetString(PyExc_TypeError, is_image ? "an array [N, 1 or 3, H, W] of numbers is needed" : "an array of integers, booleans, float16, float32 or float64 is needed");
    return false;
  }
  if (is_image && PyArray_DIM(array, 1) != 1 && PyArray_DIM(array, 1) != 3) return true;
  out->array.reset(PyArray_FromArray(array, PyArray_DescrFromType(type), NPY_ARRAY_CARRAY_RO | NPY_ARRAY_NOTSWAPPED | NPY_ARRAY_FORCECAST));
  return out->array != nullptr;
}

// Calls `body` with the elements, whose type it takes from the pointer.
template <class Body>
void with_elements(PyArrayObject* a, Body&& body) {
  const auto call = [&](auto zero) { body(static_cast<const decltype(zero)*>(PyArray_DATA(a))); };
  if (PyArray_TYPE(a) == NPY_FLOAT) return call(float{});
  if (PyArray_TYPE(a) == NPY_DOUBLE) return call(double{});
  const bool is_signed = PyArray_ISSIGNED(a);
  switch (PyArray_ITEMSIZE(a)) {
    case 1: return is_signed ? call(int8_t{}) : call(uint8_t{});
    case 2: return is_signed ? call(int16_t{}) : call(uint16_t{});
    case 4: return is_signed ? call(int32_t{}) : call(uint32_t{});
    default: return is_signed ? call(int64_t{}) : call(uint64_t{});
  }
}

void put_image(PyArrayObject* a, std::string* out) {
  const npy_intp* shape = PyArray_DIMS(a);
  const auto put = [&](auto* images) {
    put_images(images, static_cast<size_t>(shape[0]), static_cast<size_t>(shape[1]), static_cast<size_t>(shape[2]), static_cast<size_t>(shape[3]), kImagesAcross, out);
  };
  if (PyArray_TYPE(a) == NPY_UINT8) put(static_cast<const uint8_t*>(PyArray_DATA(a)));
  else if (PyArray_TYPE(a) == NPY_FLOAT) put(static_cast<const float*>(PyArray_DATA(a)));
  else put(static_cast<const double*>(PyArray_DATA(a)));
}

}  // namespace

void put_value(const Value& value, std::string* out) {
  std::string content;
  PyArrayObject* array = array_of(value);
  put_bytes(0x0a, value.tag, &content);
  if (value.kind == Value::Kind::kScalar) put_fixed(0x1d, value.number, &content);
  else if (value.kind == Value::Kind::kImage) put_image(array, &content);
  else with_elements(array, [&](auto* values) { put_histogram(values, static_cast<size_t>(PyArray_SIZE(array)), &content); });
  put_bytes(0x0a, content, out);
}

bool values_of(PyObject* sequence, std::vector<Value>* out) {
  const std::unique_ptr<PyObject, Release> held(PySequence_Tuple(sequence));
  if (!held) return false;
  const Py_ssize_t n = PyTuple_GET_SIZE(held.get());
  out->resize(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!value_of(PyTuple_GET_ITEM(held.get(), i), &(*out)[static_cast<size_t>(i)])) return false;
  return true;
}

}  // namespace mycelia::data
