// Custom nodes on signals: Fourier transforms as products with the matrices of the waves, and windows.
#include <algorithm>
#include <cmath>

#include "custom.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr int64_t kMostPoints = 1 << 14;  // of a transform, whose matrix is kept
constexpr double kPi = 3.14159265358979323846;

int64_t number(Planner& p, int value, const char* what, int64_t least, int64_t most) {
  const std::vector<int64_t> found = p.integers(value, what);
  if (p.ok() && (found.size() != 1 || found[0] < least || found[0] > most)) p.fail(kOperatorAttribute, std::string(what) + " does not fit");
  return p.ok() ? found[0] : least;
}

// Cosines and sines [rows, columns] of the products of row and column, as parts of `length`; each row times a factor.
struct Waves {
  int cosines, sines;
};
Waves waves(Planner& p, int32_t dtype, int64_t length, int64_t rows, int64_t columns, const std::function<double(int64_t)>& factor) {
  std::vector<double> c(static_cast<size_t>(rows * columns)), s(c.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const double angle = 2 * kPi * static_cast<double>(i * j % length) / static_cast<double>(length);
      c[i * columns + j] = std::cos(angle) * factor(i), s[i * columns + j] = std::sin(angle) * factor(i);
    }
  }
  const auto kept = [&](const std::vector<double>& values) {
    const int wide = p.made_constant({MYC_F64, {rows, columns}}, values.data());
    return dtype == MYC_F64 ? wide : p.emit("cast", {wide}, myc_cast_attrs{dtype}, Type{dtype, {rows, columns}});
  };
  return {kept(c), kept(s)};
}

int product(Planner& p, int x, int matrix) {  // of the last axis
  const Type type = p.type(x), m = p.type(matrix);
  if (!p.ok()) return 0;
  const int flat = p.view(x, {element_count(type.shape) / std::max<int64_t>(type.shape.back(), 1), type.shape.back()});
  Type out = p.type(flat);
  out.shape[1] = m.shape[1];
  const int y = p.emit("mat_mul", {flat, matrix}, myc_mat_mul_attrs{0, 0}, out);
  std::vector<int64_t> shape = type.shape;
  shape.back() = m.shape[1];
  return p.ok() ? p.view(y, shape) : 0;
}

int moved(Planner& p, int x, const std::vector<int64_t>& order) {
  Type out = p.type(x);
  for (size_t d = 0; d < order.size(); ++d) out.shape[d] = p.type(x).shape[order[d]];
  return p.emit("transpose", {x}, myc_transpose_attrs{ints(p, order)}, out);
}

int sum(Planner& p, const char* op, int a, int b) { return b < 0 ? a : p.emit(op, {a, b}, p.type(a)); }

// A signal's real and imaginary part (or -1), each [..., length], cut off or filled up with zeros.
struct Signal {
  int real, imaginary;
};

// Both parts of the transform, [..., columns] each.
Signal transformed(Planner& p, const Signal& x, int64_t length, int64_t columns, bool inverse) {
  const double scale = inverse ? 1.0 / static_cast<double>(length) : 1;
  const Waves w = waves(p, p.type(x.real).dtype, length, length, columns, [&](int64_t) { return scale; });
  if (!p.ok()) return {0, 0};
  const int rc = product(p, x.real, w.cosines), rs = product(p, x.real, w.sines);
  if (x.imaginary < 0) return {rc, inverse ? rs : p.emit("neg", {rs}, p.type(rs))};
  const int ic = product(p, x.imaginary, w.cosines), is = product(p, x.imaginary, w.sines);
  return {sum(p, inverse ? "sub" : "add", rc, is), sum(p, inverse ? "add" : "sub", ic, rs)};
}

// The parts stacked along a new last axis.
int stacked(Planner& p, const std::vector<int>& parts) {
  Type out = p.type(parts[0]);
  out.shape.push_back(static_cast<int64_t>(parts.size()));
  return p.emit("stack", parts, myc_stack_attrs{static_cast<int64_t>(out.shape.size()) - 1}, out);
}

// A part of [..., 1 or 2] with one axis moved to the end and `length` elements of it.
int part(Planner& p, int x, int64_t index, int axis, int64_t length) {
  const Type type = p.type(x);
  const int last = type.rank() - 1;
  int y = sliced_along(p, x, last, index, 1);
  y = p.view(y, {type.shape.begin(), type.shape.end() - 1});
  std::vector<int64_t> order;
  for (int d = 0; d < last; ++d)
    if (d != axis) order.push_back(d);
  order.push_back(axis);
  y = moved(p, y, order);
  Type out = p.type(y);
  myc_pad_constant_attrs pads{};
  pads.pads.n = 2 * out.rank();
  pads.pads.v[2 * out.rank() - 1] = length - out.shape.back();
  out.shape.back() = length;
  return p.ok() ? p.emit("pad_constant", {y}, pads, out) : 0;
}

}  // namespace

// x [..., real] or [..., real, imaginary], the length, the axis; `given`: which of the two inputs are there.
CUSTOM(dft) {
  const int x = p.input(0);
  const Type type = p.type(x);
  const int64_t inverse = custom_int(p, "inverse", 0, 1), onesided = custom_int(p, "onesided", 0, 1);
  const std::vector<int64_t> given = custom_ints(p, "given", 2, 0, 1);
  int64_t at = custom_int(p, "axis", -MYC_MAX_RANK, MYC_MAX_RANK);
  if (given[1]) at = number(p, p.input(1 + given[0]), "the axis", -MYC_MAX_RANK, MYC_MAX_RANK);
  const int axis = p.ok() ? axis_of(p, at, type.rank()) : 0;
  if (!p.ok()) return;
  const int last = type.rank() - 1;
  if (type.rank() < 2 || axis == last || type.shape[last] < 1 || type.shape[last] > 2) {
    p.fail(kInferFailed, "a transform of " + text_of(type) + " along axis " + std::to_string(axis));
    return;
  }
  const int64_t size = type.shape[axis];
  int64_t length = inverse && onesided ? 2 * (size - 1) : size;
  if (given[0]) length = number(p, p.input(1), "the length", 1, kMostPoints);
  if (p.ok() && (length < 1 || length > kMostPoints)) p.fail(kNotSupported, "a transform of " + std::to_string(length) + " points");
  if (!p.ok()) return;
  std::vector<int> results;
  if (inverse && onesided) {  // the other half of the frequencies is the conjugate of this one
    const int64_t used = std::min(size, length / 2 + 1);
    const int real = part(p, x, 0, axis, used), imaginary = type.shape[last] == 2 ? part(p, x, 1, axis, used) : -1;
    const Waves w = waves(p, type.dtype, length, used, length, [&](int64_t i) {
      return (i == 0 || 2 * i == length ? 1.0 : 2.0) / static_cast<double>(length);
    });
    if (!p.ok()) return;
    results = {sum(p, "sub", product(p, real, w.cosines), imaginary < 0 ? -1 : product(p, imaginary, w.sines))};
  } else {
    const Signal signal{part(p, x, 0, axis, length), type.shape[last] == 2 ? part(p, x, 1, axis, length) : -1};
    const Signal y = transformed(p, signal, length, onesided ? length / 2 + 1 : length, inverse);
    results = {y.real, y.imaginary};
  }
  if (!p.ok()) return;
  const int y = stacked(p, results);  // [others..., frequencies, parts]
  std::vector<int64_t> order;
  for (int d = 0; d < last; ++d) order.push_back(d < axis ? d : d == axis ? last - 1 : d - 1);
  order.push_back(last);
  if (p.ok()) p.set_output(0, moved(p, y, order));
}

// A signal [N, length] or [N, length, parts], the step, then window and length of a frame as `given` says.
CUSTOM(stft) {
  const int x = p.input(0);
  const Type type = p.type(x);
  const int64_t onesided = custom_int(p, "onesided", 0, 1);
  const std::vector<int64_t> given = custom_ints(p, "given", 2, 0, 1);
  const int64_t step = p.ok() ? number(p, p.input(1), "the step", 1, kMostSize) : 1;
  const int window = given[0] ? p.input(2) : -1;
  int64_t length = window >= 0 && p.type(window).rank() == 1 ? p.type(window).shape[0] : 0;
  if (p.ok() && given[1]) length = number(p, p.input(2 + given[0]), "the length of a frame", 1, kMostPoints);
  if (!p.ok()) return;
  const int64_t parts = type.rank() == 3 ? type.shape[2] : 1;
  const bool fits = (type.rank() == 2 || type.rank() == 3) && (parts == 1 || (parts == 2 && !onesided)) && length >= 1 && length <= kMostPoints &&
                    type.shape[1] >= length && (window < 0 || (p.type(window).shape == std::vector<int64_t>{length} && p.type(window).dtype == type.dtype));
  if (!fits) {
    p.fail(kInferFailed, "frames of " + std::to_string(length) + " of a signal " + text_of(type));
    return;
  }
  const int64_t count = (type.shape[1] - length) / step + 1;
  std::vector<int64_t> at(static_cast<size_t>(count * length));
  for (int64_t i = 0; i < count * length; ++i) at[i] = i / length * step + i % length;
  const int places = p.made_constant({MYC_I64, {count, length}}, at.data());
  Signal frames{-1, -1};
  for (int64_t k = 0; k < parts; ++k) {
    int y = type.rank() == 3 ? p.view(sliced_along(p, x, 2, k, 1), {type.shape[0], type.shape[1]}) : x;
    const Type out{type.dtype, {type.shape[0], count, length}};
    y = p.emit("gather", {y, places}, myc_gather_attrs{1, 0}, out);
    if (window >= 0) y = p.emit("mul", {y, window}, out);
    (k ? frames.imaginary : frames.real) = y;
  }
  const Signal y = transformed(p, frames, length, onesided ? length / 2 + 1 : length, false);
  if (p.ok()) p.set_output(0, stacked(p, {y.real, y.imaginary}));
}

// `size` values of a - b cos t + c cos 2 t, t once around; `periodic`: the next one would be the first again.
CUSTOM(window) {
  const double a = custom_real(p, "a"), b = custom_real(p, "b"), c = custom_real(p, "c");
  const int64_t periodic = custom_int(p, "periodic", 0, 1), number_of_dtype = custom_int(p, "dtype", 0, 1 << 10);
  const int32_t to = abi_dtype(static_cast<int32_t>(number_of_dtype));
  if (to < 0) p.fail(kOperatorAttribute, "the dtype number " + std::to_string(number_of_dtype) + " is unknown");
  const int64_t size = number(p, p.input(0), "the size", 0, 1 << 24);
  if (!p.ok()) return;
  std::vector<double> values(static_cast<size_t>(size));
  const double period = static_cast<double>(std::max<int64_t>(periodic ? size : size - 1, 1));
  for (int64_t i = 0; i < size; ++i) {
    const double t = 2 * kPi * static_cast<double>(i) / period;
    values[i] = a - b * std::cos(t) + c * std::cos(2 * t);
  }
  const int wide = p.made_constant({MYC_F64, {size}}, values.data());
  p.set_output(0, to == MYC_F64 ? wide : p.emit("cast", {wide}, myc_cast_attrs{to}, Type{to, {size}}));
}

}  // namespace mycelia::lite
