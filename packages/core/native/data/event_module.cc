// The functions of mycelia.engine._data on event files: values as messages, messages as records.
#include "event_file.h"
#include "event_values.h"
#include "message.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace mycelia::data {
namespace {

// framed(message)
PyObject* framed_of(PyObject*, PyObject* object) {
  char* data;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(object, &data, &size) != 0) return nullptr;
  return guarded([&] {
    std::string record;
    put_record(std::string(data, static_cast<size_t>(size)), &record);
    return PyBytes_FromStringAndSize(record.data(), static_cast<Py_ssize_t>(record.size()));
  });
}

// bucket_table(message)
PyObject* bucket_table(PyObject*, PyObject* object) {
  Py_buffer view;
  if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) != 0) return nullptr;
  const std::unique_ptr<Py_buffer, void (*)(Py_buffer*)> held(&view, PyBuffer_Release);
  return guarded([&]() -> PyObject* {
    std::vector<double> table;
    Fields histogram(static_cast<const char*>(view.buf), static_cast<size_t>(view.len));
    bool ok = true;
    while (histogram.next()) {
      if (histogram.number != 1) continue;
      if (histogram.kind != 2) return PyErr_Format(PyExc_ValueError, "a number stands where a bucket is expected");
      Fields bucket(histogram.data, histogram.size);
      double left = 0, width = 0, count = 0;
      while (bucket.next()) {
        if (bucket.number == 1) left = bucket.as_double();
        else if (bucket.number == 2) width = bucket.as_double();
        else if (bucket.number == 3 && bucket.kind == 0) count = static_cast<double>(bucket.value);
      }
      ok = ok && bucket.ok;
      for (const double number : {left, left + width, count}) table.push_back(number);
    }
    if (!ok || !histogram.ok) return PyErr_Format(PyExc_ValueError, "a histogram's message is cut off or has fields of an unknown kind");
    return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(table.data()), static_cast<Py_ssize_t>(table.size() * sizeof(double)));
  });
}

// png(pixels)
PyObject* png_of(PyObject*, PyObject* object) {
  Pixels pixels;
  if (!pixels_of(object, &pixels)) return nullptr;
  const ptrdiff_t row = static_cast<ptrdiff_t>(pixels.columns) * pixels.channels;
  if ((pixels.channels != 1 && pixels.channels != 3) || (pixels.rows > 1 && pixels.stride != row))
    return PyErr_Format(PyExc_ValueError, "png: contiguous pixels [H, W, 1 or 3] are needed");
  std::string found;
  const auto encode = [&] {
    const size_t rows = static_cast<size_t>(pixels.rows), size = static_cast<size_t>(row);
    std::vector<uint8_t> bytes(rows * (1 + size));
    for (size_t y = 0; y < rows; ++y) std::memcpy(bytes.data() + y * (1 + size) + 1, pixels.first + y * size, size);
    put_png(bytes.data(), rows, static_cast<size_t>(pixels.columns), static_cast<size_t>(pixels.channels), &found);
  };
  if (!unlocked(encode)) return nullptr;
  return PyBytes_FromStringAndSize(found.data(), static_cast<Py_ssize_t>(found.size()));
}

// summary_values(values)
PyObject* summary_values(PyObject*, PyObject* object) {
  return guarded([&]() -> PyObject* {
    std::vector<Value> values;
    if (!values_of(object, &values)) return nullptr;
    std::vector<std::string> messages(values.size());
    const auto encode = [&] {
      for (size_t i = 0; i < values.size(); ++i)
        if (values[i].is_known()) put_value(values[i], &messages[i]);
    };
    if (!unlocked(encode)) return nullptr;
    PyObject* list = PyList_New(static_cast<Py_ssize_t>(messages.size()));
    for (size_t i = 0; list && i < messages.size(); ++i) {
      PyObject* item = values[i].is_known() ? PyBytes_FromStringAndSize(messages[i].data(), static_cast<Py_ssize_t>(messages[i].size())) : Py_NewRef(Py_None);
      if (item) PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), item);
      else Py_CLEAR(list);
    }
    return list;
  });
}

}  // namespace

PyMethodDef event_functions[] = {
    {"framed", framed_of, METH_O, "framed(message): a record of an event file: length, its masked CRC-32C, message, its masked CRC-32C."},
    {"bucket_table", bucket_table, METH_O,
     "bucket_table(message): of each bucket of a Histogram's message the left edge, the right one and the count, as bytes of float64 [n, 3]."},
    {"png", png_of, METH_O, "png(pixels): uint8 [H, W, 1 or 3] as PNG, grey or RGB."},
    {"summary_values", summary_values, METH_O,
     "summary_values(values): of each (tag, kind, content) a Summary with this one value, as bytes. Kinds: \"scalar\" with a float,\n"
     "\"image\" with an array [N, 1 or 3, H, W], whose images stand side by side (None where there are other channels), \"histogram\" with an\n"
     "array of numbers."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace mycelia::data
