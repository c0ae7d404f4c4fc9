// The functions of mycelia.engine._data on whole images.
#define NPY_NO_DEPRECATED_API NPY_1_20_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL mycelia_data_array_api
#define NO_IMPORT_ARRAY
#include "image.h"
#include "loops.h"

#include <numpy/arrayobject.h>

#include <algorithm>

namespace mycelia::data {
namespace {

PyArrayObject* array_of(PyObject* object) { return reinterpret_cast<PyArrayObject*>(object); }

template <class T>
T* data_of(PyObject* object) {
  return static_cast<T*>(PyArray_DATA(array_of(object)));
}

// A new array that `body` fills without the interpreter's lock.
template <class T, class Body>
PyObject* filled(int rank, const npy_intp* shape, int type, Body&& body) {
  PyObject* result = PyArray_SimpleNew(rank, const_cast<npy_intp*>(shape), type);
  if (!result) return nullptr;
  T* out = data_of<T>(result);
  if (unlocked([&] { body(out); })) return result;
  Py_DECREF(result);
  return nullptr;
}

template <class Body>
PyObject* like(const Pixels& in, Body&& body) {
  const npy_intp shape[3] = {in.rows, in.columns, in.channels};
  return filled<uint8_t>(3, shape, NPY_UINT8, body);
}

bool coloured(const Pixels& in, const char* op) {
  if (in.channels == 3) return true;
  PyErr_Format(PyExc_ValueError, "%s: three channels are needed, but got %d", op, in.channels);
  return false;
}

// A C-contiguous array of a type; false with an error set for others.
bool is(PyObject* object, int type, int rank, const char* what) {
  if (PyArray_Check(object) && PyArray_TYPE(array_of(object)) == type && PyArray_NDIM(array_of(object)) == rank &&
      PyArray_IS_C_CONTIGUOUS(array_of(object)))
    return true;
  PyErr_Format(PyExc_ValueError, "%s is no contiguous array of the expected dtype and rank", what);
  return false;
}

PyObject* py_histogram(PyObject*, PyObject* image) {
  Pixels in;
  if (!pixels_of(image, &in)) return nullptr;
  const npy_intp shape[2] = {in.channels, 256};
  return filled<int64_t>(2, shape, NPY_INT64, [&](int64_t* out) { histogram(in, out); });
}

PyObject* py_grey(PyObject*, PyObject* args) {
  PyObject* image;
  Pixels in;
  int shares[3];
  if (!PyArg_ParseTuple(args, "O(iii)", &image, &shares[0], &shares[1], &shares[2]) || !pixels_of(image, &in)) return nullptr;
  if (in.channels < 3) return PyErr_Format(PyExc_ValueError, "grey: three channels are needed, but got %d", in.channels);
  const npy_intp shape[2] = {in.rows, in.columns};
  return filled<uint8_t>(2, shape, NPY_UINT8, [&](uint8_t* out) { grey(in, shares, out); });
}

PyObject* py_saturation(PyObject*, PyObject* args) {
  PyObject* image;
  Pixels in;
  int shares[3];
  double factor;
  if (!PyArg_ParseTuple(args, "O(iii)d", &image, &shares[0], &shares[1], &shares[2], &factor) || !pixels_of(image, &in) ||
      !coloured(in, "saturation"))
    return nullptr;
  return like(in, [&](uint8_t* out) { saturation(in, shares, factor, out); });
}

PyObject* py_hue(PyObject*, PyObject* args) {
  PyObject* image;
  Pixels in;
  int shift;
  if (!PyArg_ParseTuple(args, "Oi", &image, &shift) || !pixels_of(image, &in) || !coloured(in, "hue")) return nullptr;
  return like(in, [&](uint8_t* out) { hue(in, shift, out); });
}

PyObject* py_sharpness(PyObject*, PyObject* args) {
  PyObject* image;
  Pixels in;
  double factor;
  if (!PyArg_ParseTuple(args, "Od", &image, &factor) || !pixels_of(image, &in)) return nullptr;
  return like(in, [&](uint8_t* out) { sharpness(in, factor, out); });
}

PyObject* py_blur(PyObject*, PyObject* args) {
  PyObject *image, *across, *down;
  Pixels in;
  if (!PyArg_ParseTuple(args, "OOO", &image, &across, &down) || !pixels_of(image, &in) || !is(across, NPY_FLOAT64, 1, "blur: across") ||
      !is(down, NPY_FLOAT64, 1, "blur: down"))
    return nullptr;
  const npy_intp wide = PyArray_SIZE(array_of(across)), high = PyArray_SIZE(array_of(down));
  if (wide % 2 == 0 || high % 2 == 0 || wide > kLargest / 4 || high > kLargest / 4 || in.columns > kLargest / in.channels - wide)
    return PyErr_Format(PyExc_ValueError, "blur: kernels must have odd lengths");
  return like(in, [&](uint8_t* out) {
    blur(in, data_of<double>(across), static_cast<int>(wide), data_of<double>(down), static_cast<int>(high), out);
  });
}

PyObject* py_warp(PyObject*, PyObject* args) {
  PyObject *image, *inverse, *weights, *fill;
  Pixels in;
  Warp how;
  int perspective;
  if (!PyArg_ParseTuple(args, "OO(ii)pOO", &image, &inverse, &how.rows, &how.columns, &perspective, &weights, &fill) ||
      !pixels_of(image, &in) || !is(inverse, NPY_FLOAT64, 2, "warp: inverse") || !is(weights, NPY_FLOAT32, 2, "warp: weights") ||
      !is(fill, NPY_UINT8, 1, "warp: fill"))
    return nullptr;
  how.taps = static_cast<int>(PyArray_DIM(array_of(weights), 1));
  if (PyArray_SIZE(array_of(inverse)) != 9 || PyArray_DIM(array_of(weights), 0) != 32 || PyArray_SIZE(array_of(fill)) != in.channels ||
      (how.taps != 1 && how.taps != 2 && how.taps != 4) || how.rows < 0 || how.columns < 0)
    return PyErr_Format(PyExc_ValueError, "warp: wrong matrix, weights, fill or size");
  how.perspective = perspective != 0;
  how.weights = data_of<float>(weights), how.fill = data_of<uint8_t>(fill);
  std::copy_n(data_of<double>(inverse), 9, how.inverse);
  const npy_intp shape[3] = {how.rows, how.columns, in.channels};
  return filled<uint8_t>(3, shape, NPY_UINT8, [&](uint8_t* out) { warp(in, how, out); });
}

// normalize(values, mean, std): float32 [..., C], a mean and a std for each channel.
PyObject* py_normalize(PyObject*, PyObject* args) {
  PyObject *values, *mean, *std;
  if (!PyArg_ParseTuple(args, "OOO", &values, &mean, &std) || !is(mean, NPY_FLOAT32, 1, "normalize: mean") ||
      !is(std, NPY_FLOAT32, 1, "normalize: std"))
    return nullptr;
  const int rank = PyArray_Check(values) ? PyArray_NDIM(array_of(values)) : 0;
  if (!rank || !is(values, NPY_FLOAT32, rank, "normalize: values")) return nullptr;
  const npy_intp channels = PyArray_DIM(array_of(values), rank - 1);
  if (!channels || channels > kLargest || PyArray_SIZE(array_of(mean)) != channels || PyArray_SIZE(array_of(std)) != channels)
    return PyErr_Format(PyExc_ValueError, "normalize: a mean and a std for each channel are needed");
  return filled<float>(rank, PyArray_DIMS(array_of(values)), NPY_FLOAT32, [&](float* out) {
    loops().normalize(data_of<float>(values), data_of<float>(mean), data_of<float>(std), static_cast<int>(channels),
                      static_cast<size_t>(PyArray_SIZE(array_of(values))), out);
  });
}

template <class T>
void separate(const void* in, void* out, npy_intp pixels, npy_intp channels) {
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(out);
  constexpr npy_intp kBlock = 1024;  // pixels: stay in the nearest cache while each channel passes over them
  for (npy_intp start = 0; start < pixels; start += kBlock) {
    const npy_intp end = std::min(pixels, start + kBlock);
    for (npy_intp c = 0; c < channels; ++c)
      for (npy_intp i = start; i < end; ++i) to[c * pixels + i] = from[i * channels + c];
  }
}

// planes(image): [H, W, C] -> [C, H, W] of any number dtype.
PyObject* py_planes(PyObject*, PyObject* image) {
  if (!PyArray_Check(image) || PyArray_NDIM(array_of(image)) != 3 || !PyArray_IS_C_CONTIGUOUS(array_of(image)) ||
      !(PyArray_ISNUMBER(array_of(image)) || PyArray_ISBOOL(array_of(image))))
    return PyErr_Format(PyExc_ValueError, "planes: contiguous numbers [H, W, C] are needed");
  const npy_intp* shape = PyArray_DIMS(array_of(image));
  const npy_intp turned[3] = {shape[2], shape[0], shape[1]}, pixels = shape[0] * shape[1];
  PyArray_Descr* type = PyArray_DESCR(array_of(image));
  Py_INCREF(type);
  PyObject* result = PyArray_SimpleNewFromDescr(3, const_cast<npy_intp*>(turned), type);
  if (!result) return nullptr;
  const void* in = PyArray_DATA(array_of(image));
  void* out = PyArray_DATA(array_of(result));
  const npy_intp item = PyArray_ITEMSIZE(array_of(image));
  bool known = true;
  PyObject* reached = unlocked([&] {
    switch (item) {
      case 1:
        return separate<uint8_t>(in, out, pixels, shape[2]);
      case 2:
        return separate<uint16_t>(in, out, pixels, shape[2]);
      case 4:
        return separate<uint32_t>(in, out, pixels, shape[2]);
      case 8:
        return separate<uint64_t>(in, out, pixels, shape[2]);
      default:
        known = false;
    }
  });
  if (reached && known) return result;
  Py_DECREF(result);
  return reached ? PyErr_Format(PyExc_ValueError, "planes: elements of %zd bytes", static_cast<Py_ssize_t>(item)) : nullptr;
}

}  // namespace

PyMethodDef image_functions[] = {
    {"histogram", py_histogram, METH_O, "histogram(image): how often each value is there, int64 [C, 256]."},
    {"grey", py_grey, METH_VARARGS, "grey(image, shares): [H, W, C] -> [H, W], shares of three channels in 15 bits."},
    {"saturation", py_saturation, METH_VARARGS, "saturation(image, shares, factor): away from, or towards, the grey image."},
    {"hue", py_hue, METH_VARARGS, "hue(image, shift): hue moved by shift of 256."},
    {"sharpness", py_sharpness, METH_VARARGS, "sharpness(image, factor): away from, or towards, the smoothed image."},
    {"blur", py_blur, METH_VARARGS, "blur(image, across, down): kernels along rows and columns, float64 of odd lengths."},
    {"warp", py_warp, METH_VARARGS,
     "warp(image, inverse, size, perspective, weights, fill): the image through a map, from the way back [3, 3]."},
    {"normalize", py_normalize, METH_VARARGS, "normalize(values, mean, std): (values - mean) / std for each channel, the last axis."},
    {"planes", py_planes, METH_O, "planes(image): [H, W, C] -> [C, H, W]."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace mycelia::data
