// Module mycelia.engine._data: what Python calls. Arguments are checked here; the work is done without the interpreter's lock.
#define NPY_NO_DEPRECATED_API NPY_1_20_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mycelia_data_array_api
#include "module.h"

#include <numpy/arrayobject.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

namespace mycelia::data {

PyObject* failed(const std::exception& e) {
  if (dynamic_cast<const std::bad_alloc*>(&e)) return PyErr_NoMemory();
  PyErr_SetString(PyExc_RuntimeError, e.what());
  return nullptr;
}

bool pixels_of(PyObject* object, Pixels* out) {
  if (!PyArray_Check(object)) {
    PyErr_SetString(PyExc_TypeError, "an array is needed");
    return false;
  }
  PyArrayObject* a = reinterpret_cast<PyArrayObject*>(object);
  const npy_intp *shape = PyArray_DIMS(a), *strides = PyArray_STRIDES(a);
  const auto whole = [&] {  // the stride of an axis of one element says nothing
    return (shape[2] == 1 || strides[2] == 1) && (shape[1] == 1 || strides[1] == shape[2]);
  };
  if (PyArray_TYPE(a) != NPY_UINT8 || PyArray_NDIM(a) != 3 || !whole() || !PyArray_SIZE(a) || shape[0] > kLargest ||
      shape[1] > kLargest || shape[2] > kLargest || shape[1] * shape[2] > kLargest) {
    PyErr_SetString(PyExc_ValueError, "uint8 [H, W, C] with whole pixels next to each other is needed");
    return false;
  }
  *out = {static_cast<const uint8_t*>(PyArray_DATA(a)), static_cast<int>(shape[0]), static_cast<int>(shape[1]),
          static_cast<int>(shape[2]), strides[0]};
  return true;
}

namespace {

PyObject* load_jpeg(PyObject*, PyObject* args) {
  const char* path;
  if (!PyArg_ParseTuple(args, "s", &path)) return nullptr;
  return guarded([&]() -> PyObject* { return PyUnicode_FromString(jpeg_load(path).c_str()); });
}

bool bytes_of(PyObject* object, const uint8_t** data, size_t* size) {
  PyArrayObject* a = reinterpret_cast<PyArrayObject*>(object);
  if (!PyArray_Check(object) || PyArray_TYPE(a) != NPY_UINT8 || PyArray_NDIM(a) != 1 || !PyArray_IS_C_CONTIGUOUS(a)) {
    PyErr_SetString(PyExc_TypeError, "uint8 [n] is needed");
    return false;
  }
  *data = static_cast<const uint8_t*>(PyArray_DATA(a));
  *size = static_cast<size_t>(PyArray_SIZE(a));
  return true;
}

PyObject* jpeg_shape(PyObject*, PyObject* object) {
  const uint8_t* data;
  size_t size;
  JpegHeader h;
  if (!bytes_of(object, &data, &size)) return nullptr;
  if (!jpeg_ready() || !jpeg_header(data, size, &h)) Py_RETURN_NONE;
  return Py_BuildValue("iiN", h.rows, h.columns, PyBool_FromLong(h.ends));
}

bool inside(const Box& part, int rows, int columns) {
  return part.top >= 0 && part.left >= 0 && part.rows > 0 && part.columns > 0 && part.top <= rows - part.rows &&
         part.left <= columns - part.columns;
}

// A new array, or `wanted` if it is just like that.
PyObject* result_of(const npy_intp (&shape)[3], PyArray_Descr* type, PyObject* wanted) {
  PyArrayObject* a = reinterpret_cast<PyArrayObject*>(wanted);
  if (PyArray_Check(wanted) && PyArray_NDIM(a) == 3 && std::equal(shape, shape + 3, PyArray_DIMS(a)) && PyArray_IS_C_CONTIGUOUS(a) &&
      PyArray_ISWRITEABLE(a) && PyArray_EquivTypes(PyArray_DESCR(a), type)) {
    Py_DECREF(type);
    Py_INCREF(wanted);
    return wanted;
  }
  return PyArray_SimpleNewFromDescr(3, const_cast<npy_intp*>(shape), type);
}

// transform(source, box, size, mode, window, flips, planar, table, out=None)
PyObject* transform(PyObject*, PyObject* args) {
  PyObject *source, *table_object, *out = Py_None;
  Box box, window;
  int rows, columns, mode, flip_x, flip_y, planar;
  if (!PyArg_ParseTuple(args, "O(iiii)(ii)i(iiii)(pp)pO|O", &source, &box.top, &box.left, &box.rows, &box.columns, &rows, &columns, &mode,
                        &window.top, &window.left, &window.rows, &window.columns, &flip_x, &flip_y, &planar, &table_object, &out))
    return nullptr;
  const bool encoded = PyArray_Check(source) && PyArray_NDIM(reinterpret_cast<PyArrayObject*>(source)) == 1;
  const uint8_t* data = nullptr;
  size_t size = 0;
  Pixels pixels{nullptr, 0, 0, 3, 0};
  if (encoded) {
    JpegHeader h;
    if (!bytes_of(source, &data, &size)) return nullptr;
    if (!jpeg_ready() || !jpeg_header(data, size, &h)) Py_RETURN_NONE;
    pixels.rows = h.rows, pixels.columns = h.columns;
  } else if (!pixels_of(source, &pixels)) {
    return nullptr;
  }
  if (rows <= 0 || columns <= 0 || rows > kLargest / pixels.channels || columns > kLargest / pixels.channels ||
      !inside(box, pixels.rows, pixels.columns) || !inside(window, rows, columns) || mode < 0 || mode > 4 || mode == 1)
    return PyErr_Format(PyExc_ValueError, "transform: wrong part, size or mode");
  PyArrayObject* table = nullptr;
  PyArray_Descr* type = PyArray_DescrFromType(NPY_UINT8);
  if (table_object != Py_None) {
    table = reinterpret_cast<PyArrayObject*>(table_object);
    const bool fits = PyArray_Check(table_object) && PyArray_NDIM(table) == 2 && PyArray_DIM(table, 0) == pixels.channels &&
                      PyArray_DIM(table, 1) == 256 && PyArray_IS_C_CONTIGUOUS(table) &&
                      (PyArray_ISNUMBER(table) || PyArray_ISBOOL(table)) && PyArray_ITEMSIZE(table) <= 8;
    Py_DECREF(type);
    if (!fits) return PyErr_Format(PyExc_ValueError, "transform: the table must be numbers [channels, 256]");
    type = PyArray_DESCR(table);
    Py_INCREF(type);
  }
  npy_intp shape[3] = {window.rows, window.columns, pixels.channels};
  if (planar) shape[0] = pixels.channels, shape[1] = window.rows, shape[2] = window.columns;
  PyObject* result = result_of(shape, type, out);
  if (!result) return nullptr;
  const Sink sink{window.rows, window.columns, pixels.channels, flip_x != 0, flip_y != 0, planar != 0,
                  table ? static_cast<int>(PyArray_ITEMSIZE(table)) : 1, table ? PyArray_DATA(table) : nullptr,
                  PyArray_DATA(reinterpret_cast<PyArrayObject*>(result))};
  bool done = false;
  PyObject* reached = unlocked([&] {
    const Resize resize(box, rows, columns, static_cast<Mode>(mode), window, pixels.channels);
    const Box need = resize.need();
    if (encoded) {
      std::unique_ptr<Rows> opened = jpeg_open(data, size, need);
      done = opened && resize.run(*opened, sink);
    } else {
      ArrayRows opened(pixels.first + need.top * pixels.stride + static_cast<ptrdiff_t>(need.left) * pixels.channels, pixels.stride);
      done = resize.run(opened, sink);
    }
  });
  if (reached && done) return result;
  Py_DECREF(result);
  if (!reached) return nullptr;
  Py_RETURN_NONE;
}

bool ints_of(PyObject* object, npy_intp count) {
  PyArrayObject* a = reinterpret_cast<PyArrayObject*>(object);
  return PyArray_Check(object) && PyArray_TYPE(a) == NPY_INT64 && PyArray_NDIM(a) == 1 && PyArray_IS_C_CONTIGUOUS(a) &&
         (count < 0 || PyArray_SIZE(a) == count);
}

// crc32c(data, begins, sizes, tables=False)
PyObject* checksums(PyObject*, PyObject* args) {
  PyObject *begins_object, *sizes_object;
  Py_buffer data;
  int tables = 0;
  if (!PyArg_ParseTuple(args, "y*OO|p", &data, &begins_object, &sizes_object, &tables)) return nullptr;
  const std::unique_ptr<Py_buffer, void (*)(Py_buffer*)> held(&data, PyBuffer_Release);
  if (!ints_of(begins_object, -1) || !ints_of(sizes_object, PyArray_SIZE(reinterpret_cast<PyArrayObject*>(begins_object))))
    return PyErr_Format(PyExc_TypeError, "crc32c: begins and sizes must be int64 [n]");
  const npy_intp count = PyArray_SIZE(reinterpret_cast<PyArrayObject*>(begins_object));
  const auto* begins = static_cast<const int64_t*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(begins_object)));
  const auto* sizes = static_cast<const int64_t*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(sizes_object)));
  for (npy_intp i = 0; i < count; ++i)
    if (sizes[i] < 0 || sizes[i] > data.len || begins[i] < 0 || begins[i] > data.len - sizes[i])
      return PyErr_Format(PyExc_ValueError, "crc32c: piece %zd is outside of the data", static_cast<Py_ssize_t>(i));
  PyObject* result = PyArray_SimpleNew(1, &count, NPY_UINT32);
  if (!result) return nullptr;
  uint32_t* out = static_cast<uint32_t*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(result)));
  const uint8_t* first = static_cast<const uint8_t*>(data.buf);
  if (unlocked([&] { crc32c(first, begins, sizes, static_cast<size_t>(count), tables != 0, out); })) return result;
  Py_DECREF(result);
  return nullptr;
}

// read_pieces(fd, begins, sizes, out)
PyObject* read_pieces_of(PyObject*, PyObject* args) {
  int fd;
  PyObject *begins_object, *sizes_object, *out_object;
  if (!PyArg_ParseTuple(args, "iOOO", &fd, &begins_object, &sizes_object, &out_object)) return nullptr;
  if (!ints_of(begins_object, -1) || !ints_of(sizes_object, PyArray_SIZE(reinterpret_cast<PyArrayObject*>(begins_object))))
    return PyErr_Format(PyExc_TypeError, "read_pieces: begins and sizes must be int64 [n]");
  const uint8_t* out;
  size_t room;
  if (!bytes_of(out_object, &out, &room)) return nullptr;
  const npy_intp count = PyArray_SIZE(reinterpret_cast<PyArrayObject*>(begins_object));
  const auto* begins = static_cast<const int64_t*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(begins_object)));
  const auto* sizes = static_cast<const int64_t*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(sizes_object)));
  for (npy_intp i = 0; i < count; ++i) {
    if (sizes[i] < 0 || begins[i] < 0 || begins[i] > INT64_MAX - sizes[i] || static_cast<size_t>(sizes[i]) > room)
      return PyErr_Format(PyExc_ValueError, "read_pieces: piece %zd does not fit", static_cast<Py_ssize_t>(i));
    room -= static_cast<size_t>(sizes[i]);
  }
  if (!PyArray_ISWRITEABLE(reinterpret_cast<PyArrayObject*>(out_object)) || room)
    return PyErr_Format(PyExc_ValueError, "read_pieces: out must be writeable and as large as the pieces");
  ReadResult result{};
  if (!unlocked([&] { result = read_pieces(fd, begins, sizes, static_cast<size_t>(count), const_cast<uint8_t*>(out)); })) return nullptr;
  if (result.error) {
    errno = result.error;
    return PyErr_SetFromErrno(PyExc_OSError);
  }
  return PyLong_FromSize_t(result.whole);
}

PyMethodDef functions[] = {
    {"read_pieces", read_pieces_of, METH_VARARGS,
     "read_pieces(fd, begins, sizes, out): fill `out` (uint8) with pieces of a file, one behind the other; how many there were\n"
     "before the end of the file."},
    {"crc32c", checksums, METH_VARARGS,
     "crc32c(data, begins, sizes, tables=False): CRC-32C of pieces of a buffer, uint32 [n]; with tables not by the machine's\n"
     "own instruction."},
    {"load_jpeg", load_jpeg, METH_VARARGS, "load_jpeg(path): take this libjpeg; why it cannot be used, or ''."},
    {"jpeg_shape", jpeg_shape, METH_O, "jpeg_shape(bytes): (rows, columns, has its end), or None for what is no plain JPEG."},
    {"transform", transform, METH_VARARGS,
     "transform(source, box, size, mode, window, flips, planar, table, out=None): the window of a box of JPEG bytes or of an array,\n"
     "resized, mirrored (x, y) and looked up, in `out` if that has its shape and dtype; None for a JPEG that is damaged."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "mycelia.engine._data", "Image transforms, checksums and reading for the dataset pipeline, records of event files.", -1, functions, nullptr,
                          nullptr, nullptr, nullptr};

}  // namespace
}  // namespace mycelia::data

PyMODINIT_FUNC PyInit__data() {
  import_array();
  PyObject* module = PyModule_Create(&mycelia::data::definition);
  for (PyMethodDef* more : {mycelia::data::image_functions, mycelia::data::event_functions})
    if (module && PyModule_AddFunctions(module, more) < 0) Py_CLEAR(module);
  if (module && !mycelia::data::add_event_file(module)) Py_CLEAR(module);
  return module;
}
