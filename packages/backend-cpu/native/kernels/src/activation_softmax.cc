// Softmax, log-softmax and their gradients along any axis, float32.  The innermost axis goes by rows that stay in L1, any
// other axis by columns of one vector's width.  Compulsory traffic: 8 bytes an element forward, 12 backward; one
// exponential (about 20 flops) an element.
#include "softmax_row.h"

namespace mycelia::MYC_ISA {

void softmax_row(const float* x, float* y, int64_t n) {
  const float total = row_exp_sum<true>(x, y, n, row_max(x, n));  // subtracting the peak keeps exp() finite
  const float scale = 1.0f / total;
  map(y, y, n, [=](f32v v) { return v * scale; });
}

void log_softmax_row(const float* x, float* y, int64_t n) {
  const float peak = row_max(x, n);
  const f32v shift = splat(peak), log_sum = splat(logf(row_exp_sum<false>(x, nullptr, n, peak)));
  map(x, y, n, [=](f32v v) { return (v - shift) - log_sum; });
}

void softmax_grad_row(const float* dy, const float* y, float* dx, int64_t n) {
  f32v sum = {};
  for_vectors(dy, n, 0.0f, [&](f32v v, int64_t i, int64_t lanes) { sum += v * load_partial(y + i, lanes); });
  const f32v dot = splat(horizontal_sum(sum));
  map(dy, y, dx, n, [=](f32v d, f32v p) { return (d - dot) * p; });
}

void log_softmax_grad_row(const float* dy, const float* y, float* dx, int64_t n) {
  f32v sum = {};
  for_vectors(dy, n, 0.0f, [&](f32v v, int64_t, int64_t) { sum += v; });
  const f32v total = splat(horizontal_sum(sum));
  map(dy, y, dx, n, [=](f32v d, f32v log_p) { return d - exp(log_p) * total; });
}

// One vector of columns: n elements `step` apart, `lanes` columns in use.
struct Column {
  int64_t n, step, lanes;
  MYC_INLINE f32v at(const float* x, int64_t i) const {
    return load_lanes(x + i * step, lanes);
  }
  MYC_INLINE void put(float* y, int64_t i, f32v v) const { store_lanes(y + i * step, v, lanes); }
};

MYC_INLINE f32v column_max(const float* x, const Column& c) {
  f32v peak = splat(-INFINITY);
  for (int64_t i = 0; i < c.n; ++i) peak = max_or_second(c.at(x, i), peak);
  return peak;
}

void softmax_column(const float* x, float* y, const Column& c) {
  const f32v peak = column_max(x, c);
  f32v sum = {};
  for (int64_t i = 0; i < c.n; ++i) {
    const f32v e = exp(c.at(x, i) - peak);
    sum += e;
    c.put(y, i, e);
  }
  const f32v scale = 1.0f / sum;
  for (int64_t i = 0; i < c.n; ++i) c.put(y, i, c.at(y, i) * scale);
}

void log_softmax_column(const float* x, float* y, const Column& c) {
  const f32v peak = column_max(x, c);
  f32v sum = {};
  for (int64_t i = 0; i < c.n; ++i) sum += exp(c.at(x, i) - peak);
  const f32v log_sum = log(sum);
  for (int64_t i = 0; i < c.n; ++i) c.put(y, i, (c.at(x, i) - peak) - log_sum);
}

void softmax_grad_column(const float* dy, const float* y, float* dx, const Column& c) {
  f32v dot = {};
  for (int64_t i = 0; i < c.n; ++i) dot += c.at(dy, i) * c.at(y, i);
  for (int64_t i = 0; i < c.n; ++i) c.put(dx, i, (c.at(dy, i) - dot) * c.at(y, i));
}

void log_softmax_grad_column(const float* dy, const float* y, float* dx, const Column& c) {
  f32v sum = {};
  for (int64_t i = 0; i < c.n; ++i) sum += c.at(dy, i);
  for (int64_t i = 0; i < c.n; ++i) c.put(dx, i, c.at(dy, i) - exp(c.at(y, i)) * sum);
}

// row(offset, n) for each row when the axis is innermost, column(offset, Column) for each vector of columns otherwise.
template <class Row, class ColumnBody>
MYC_INLINE int32_t along_axis(const myc_call* call, int64_t axis, const Row& row, const ColumnBody& column) {
  const AxisView v = around_axis(output(call), axis);
  if (output(call).size == 0) return MYC_OK;
  constexpr int64_t kWork = 32;  // bytes and flops of an element
  if (v.inner == 1) {
    parallel_rows(call, v.outer, v.n * kWork, [&](int64_t r) { row(r * v.n, v.n); });
    return MYC_OK;
  }
  const int64_t columns = ceil_div(v.inner, kLanes);
  parallel_rows(call, v.outer * columns, v.n * kLanes * kWork, [&](int64_t r) {
    const int64_t first = r % columns * kLanes;
    column(r / columns * v.n * v.inner + first, Column{v.n, v.inner, min(int64_t{kLanes}, v.inner - first)});
  });
  return MYC_OK;
}

#define FORWARD_ALONG_AXIS(op)                                                          \
  KERNEL_FN(op, f32) {                                                                  \
    const float* x = in<float>(call);                                                   \
    float* y = out<float>(call);                                                        \
    return along_axis(                                                                  \
        call, attrs<myc_##op##_attrs>(call).axis,                                       \
        [&](int64_t at, int64_t n) { op##_row(x + at, y + at, n); },                    \
        [&](int64_t at, const Column& c) { op##_column(x + at, y + at, c); });          \
  }
#define GRADIENT_ALONG_AXIS(op)                                                         \
  KERNEL_FN(op, f32) {                                                                  \
    const float *dy = in<float>(call, 0), *y = in<float>(call, 1);                      \
    float* dx = out<float>(call);                                                       \
    return along_axis(                                                                  \
        call, attrs<myc_##op##_attrs>(call).axis,                                       \
        [&](int64_t at, int64_t n) { op##_row(dy + at, y + at, dx + at, n); },          \
        [&](int64_t at, const Column& c) { op##_column(dy + at, y + at, dx + at, c); }); \
  }

FORWARD_ALONG_AXIS(softmax)
FORWARD_ALONG_AXIS(log_softmax)
GRADIENT_ALONG_AXIS(softmax_grad)
GRADIENT_ALONG_AXIS(log_softmax_grad)

}  // namespace mycelia::MYC_ISA
