// The functions of mycelia.engine._data on event files: values as messages, messages as records.
#define NPY_NO_DEPRECATED_API NPY_1_20_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mycelia_data_array_api
#define NO_IMPORT_ARRAY
#include "message.h"
#include "module.h"
#include "mycelia/crc32c.h"

#include <numpy/arrayobject.h>

#include <cstring>
#include <string>
#include <vector>

namespace mycelia::data {
namespace {

// framed(message)
PyObject* framed_of(PyObject*, PyObject* object) {
  char* data;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(object, &data, &size) != 0) return nullptr;
  PyObject* out = PyBytes_FromStringAndSize(nullptr, size + 16);
  if (!out) return nullptr;
  char* to = PyBytes_AS_STRING(out);
  const auto put_checksum = [](const char* begin, size_t length, char* place) {
    const uint32_t crc = mycelia::crc32c(reinterpret_cast<const uint8_t*>(begin), length), masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
    std::memcpy(place, &masked, 4);
  };
  const uint64_t length = static_cast<uint64_t>(size);
  std::memcpy(to, &length, 8);
  put_checksum(to, 8, to + 8);
  std::memcpy(to + 12, data, static_cast<size_t>(size));
  put_checksum(data, static_cast<size_t>(size), to + 12 + size);
  return out;
}

// png(pixels)
PyObject* png_of(PyObject*, PyObject* object) {
  Pixels pixels;
  if (!pixels_of(object, &pixels)) return nullptr;
  const ptrdiff_t row = static_cast<ptrdiff_t>(pixels.columns) * pixels.channels;
  if ((pixels.channels != 1 && pixels.channels != 3) || (pixels.rows > 1 && pixels.stride != row))
    return PyErr_Format(PyExc_ValueError, "png: contiguous pixels [H, W, 1 or 3] are needed");
  std::string found;
  if (!unlocked([&] { put_png(pixels.first, static_cast<size_t>(pixels.rows), static_cast<size_t>(pixels.columns), static_cast<size_t>(pixels.channels), &found); }))
    return nullptr;
  return PyBytes_FromStringAndSize(found.data(), static_cast<Py_ssize_t>(found.size()));
}

enum class Kind { kScalar, kImage, kHistogram };

// A value to be written; the array is kept by its tuple.
struct Value {
  std::string tag;
  Kind kind;
  float number;
  PyArrayObject* array;
};

constexpr size_t kImagesAcross = 8;

bool is_image(PyArrayObject* a) {
  const int type = PyArray_TYPE(a);
  return PyArray_NDIM(a) == 4 && (PyArray_DIM(a, 1) == 1 || PyArray_DIM(a, 1) == 3) && (type == NPY_UINT8 || type == NPY_FLOAT || type == NPY_DOUBLE);
}

bool is_numbers(PyArrayObject* a) { return PyArray_ISINTEGER(a) || PyArray_TYPE(a) == NPY_FLOAT || PyArray_TYPE(a) == NPY_DOUBLE; }

bool value_of(PyObject* object, Value* out) {
  const char *tag, *kind;
  Py_ssize_t size;
  PyObject* content;
  if (!PyTuple_Check(object)) {
    PyErr_SetString(PyExc_TypeError, "summary_values: tuples (tag, kind, content) are needed");
    return false;
  }
  if (!PyArg_ParseTuple(object, "s#sO", &tag, &size, &kind, &content)) return false;
  out->tag.assign(tag, static_cast<size_t>(size));
  out->array = reinterpret_cast<PyArrayObject*>(content);
  const std::string name = kind;
  if (name == "scalar") {
    out->kind = Kind::kScalar;
    out->number = static_cast<float>(PyFloat_AsDouble(content));
    return !PyErr_Occurred();
  }
  out->kind = name == "image" ? Kind::kImage : Kind::kHistogram;
  if (name != "image" && name != "histogram") {
    PyErr_Format(PyExc_ValueError, "summary_values: kinds are scalar, image and histogram, but got %s", kind);
    return false;
  }
  if (PyArray_Check(content) && PyArray_ISCARRAY_RO(out->array) && (name == "image" ? is_image(out->array) : is_numbers(out->array))) return true;
  PyErr_SetString(PyExc_TypeError, name == "image" ? "a contiguous array [N, 1 or 3, H, W] of uint8, float32 or float64 is needed"
                                                   : "a contiguous array of integers, float32 or float64 is needed");
  return false;
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

// Summary: {1: Value}, of which field 1 is the tag.
std::string message_of(const Value& value) {
  std::string content, out;
  put_bytes(0x0a, value.tag, &content);
  if (value.kind == Kind::kScalar) put_fixed(0x1d, value.number, &content);
  else if (value.kind == Kind::kImage) put_image(value.array, &content);
  else with_elements(value.array, [&](auto* values) { put_histogram(values, static_cast<size_t>(PyArray_SIZE(value.array)), &content); });
  put_bytes(0x0a, content, &out);
  return out;
}

// summary_values(values)
PyObject* summary_values(PyObject*, PyObject* object) {
  PyObject* held = PySequence_Tuple(object);  // arrays must not go while the lock is given away
  if (!held) return nullptr;
  PyObject* out = guarded([&]() -> PyObject* {
    const Py_ssize_t n = PyTuple_GET_SIZE(held);
    std::vector<Value> values(static_cast<size_t>(n));
    for (Py_ssize_t i = 0; i < n; ++i)
      if (!value_of(PyTuple_GET_ITEM(held, i), &values[static_cast<size_t>(i)])) return nullptr;
    std::vector<std::string> messages;
    messages.reserve(values.size());
    if (!unlocked([&] {
          for (const Value& value : values) messages.push_back(message_of(value));
        }))
      return nullptr;
    PyObject* list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; ++i) {
      const std::string& message = messages[static_cast<size_t>(i)];
      PyObject* bytes = PyBytes_FromStringAndSize(message.data(), static_cast<Py_ssize_t>(message.size()));
      if (!bytes) Py_CLEAR(list);
      else PyList_SET_ITEM(list, i, bytes);
    }
    return list;
  });
  Py_DECREF(held);
  return out;
}

}  // namespace

PyMethodDef event_functions[] = {
    {"framed", framed_of, METH_O, "framed(message): a record of an event file: length, its masked CRC-32C, message, its masked CRC-32C."},
    {"png", png_of, METH_O, "png(pixels): uint8 [H, W, 1 or 3] as PNG, grey or RGB."},
    {"summary_values", summary_values, METH_O,
     "summary_values(values): of each (tag, kind, content) a Summary with this one value, as bytes. Kinds: \"scalar\" with a float,\n"
     "\"image\" with a contiguous array [N, 1 or 3, H, W] of uint8, float32 or float64, whose images stand side by side, \"histogram\" with\n"
     "a contiguous array of integers, float32 or float64."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace mycelia::data
