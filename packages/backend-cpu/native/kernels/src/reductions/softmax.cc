// Softmax, log-softmax and their gradients along any axis; 16-bit floats are widened on the way, and rounded at the end.  The innermost axis goes by rows that stay in L1, any
// other axis by strips of columns.  Compulsory traffic: 8 bytes an element forward, 12 backward; one
// exponential (about 20 flops) an element.
#include "reductions/softmax_row.h"

namespace mycelia::MYC_ISA {

template <class T>
void log_softmax_row(const T* x, T* y, int64_t n) {
  const float peak = row_max(x, n);
  const f32v shift = splat(peak), log_sum = splat(logf(row_exp_sum<false>(x, nullptr, n, peak, n)));
  map(x, y, n, [=](f32v v) { return (v - shift) - log_sum; });
}

template <class T>
void softmax_grad_row(const T* dy, const T* y, T* dx, int64_t n) {
  f32v sum = {};
  for_vectors(dy, n, 0.0f, [&](f32v v, int64_t i, int64_t lanes) { sum += v * load_partial(y + i, lanes); });
  const f32v dot = splat(horizontal_sum(sum));
  map(dy, y, dx, n, [=](f32v d, f32v p) { return (d - dot) * p; });
}

template <class T>
void log_softmax_grad_row(const T* dy, const T* y, T* dx, int64_t n) {
  f32v sum = {};
  for_vectors(dy, n, 0.0f, [&](f32v v, int64_t, int64_t) { sum += v; });
  const f32v total = splat(horizontal_sum(sum));
  map(dy, y, dx, n, [=](f32v d, f32v log_p) { return d - exp(log_p) * total; });
}

// A strip of columns: `n` elements `step` apart, `width` columns of which the last vector may be partial.  Strips of four
// vectors use whole cache lines of each row.
struct Strip {
  int64_t n, step, width;
  // f(vector number, offset, lanes) for the vectors of row i.
  template <class F>
  MYC_INLINE void row(int64_t i, const F& f) const {
    for (int64_t v = 0; v * kLanes < width; ++v) f(v, i * step + v * kLanes, min(int64_t{kLanes}, width - v * kLanes));
  }
};
constexpr int64_t kStripVectors = 4;

// sums[v] = the sum over the rows of term(vector number, offset, lanes).
template <class Term>
MYC_INLINE void strip_sums(const Strip& c, f32v* sums, const Term& term) {
  for (int v = 0; v < kStripVectors; ++v) sums[v] = f32v{};
  for (int64_t i = 0; i < c.n; ++i)
    c.row(i, [&](int64_t v, int64_t at, int64_t lanes) { sums[v] += term(v, at, lanes); });
}

// y = value(vector number, offset, lanes) everywhere.
template <class T, class Value>
MYC_INLINE void strip_store(const Strip& c, T* y, const Value& value) {
  for (int64_t i = 0; i < c.n; ++i)
    c.row(i, [&](int64_t v, int64_t at, int64_t lanes) { store_lanes(y + at, value(v, at, lanes), lanes); });
}

template <class T>
MYC_INLINE void strip_peaks(const T* x, const Strip& c, f32v* peak) {
  for (int v = 0; v < kStripVectors; ++v) peak[v] = splat(-INFINITY);
  for (int64_t i = 0; i < c.n; ++i) {
    c.row(i, [&](int64_t v, int64_t at, int64_t lanes) { peak[v] = max_or_second(load_lanes(x + at, lanes), peak[v]); });
  }
}

// Exponentials wait in y; 16 bits could not hold them, there they are computed twice.
template <class T>
void softmax_strip(const T* x, T* y, const Strip& c) {
  constexpr bool waits = sizeof(T) == sizeof(float);
  f32v peak[kStripVectors], sum[kStripVectors];
  strip_peaks(x, c, peak);
  const auto exponential = [&](int64_t v, int64_t at, int64_t lanes) __attribute__((always_inline)) {
    return exp_of_negative(load_lanes(x + at, lanes) - peak[v]);
  };
  strip_sums(c, sum, [&](int64_t v, int64_t at, int64_t lanes) {
    const f32v e = exponential(v, at, lanes);
    if constexpr (waits) store_lanes(y + at, e, lanes);
    return e;
  });
  for (f32v& s : sum) s = 1.0f / s;
  strip_store(c, y, [&](int64_t v, int64_t at, int64_t lanes) {
    return (waits ? load_lanes(y + at, lanes) : exponential(v, at, lanes)) * sum[v];
  });
}

template <class T>
void log_softmax_strip(const T* x, T* y, const Strip& c) {
  f32v peak[kStripVectors], sum[kStripVectors];
  strip_peaks(x, c, peak);
  strip_sums(c, sum, [&](int64_t v, int64_t at, int64_t lanes) { return exp_of_negative(load_lanes(x + at, lanes) - peak[v]); });
  for (f32v& s : sum) s = log(s);
  strip_store(c, y, [&](int64_t v, int64_t at, int64_t lanes) { return (load_lanes(x + at, lanes) - peak[v]) - sum[v]; });
}

template <class T>
void softmax_grad_strip(const T* dy, const T* y, T* dx, const Strip& c) {
  f32v dot[kStripVectors];
  strip_sums(c, dot, [&](int64_t, int64_t at, int64_t lanes) { return load_lanes(dy + at, lanes) * load_lanes(y + at, lanes); });
  strip_store(c, dx, [&](int64_t v, int64_t at, int64_t lanes) {
    return (load_lanes(dy + at, lanes) - dot[v]) * load_lanes(y + at, lanes);
  });
}

template <class T>
void log_softmax_grad_strip(const T* dy, const T* y, T* dx, const Strip& c) {
  f32v sum[kStripVectors];
  strip_sums(c, sum, [&](int64_t, int64_t at, int64_t lanes) { return load_lanes(dy + at, lanes); });
  strip_store(c, dx, [&](int64_t v, int64_t at, int64_t lanes) {
    return load_lanes(dy + at, lanes) - exp(load_lanes(y + at, lanes)) * sum[v];
  });
}

// row(offset, n, worker) for each row when the axis is innermost, strip(offset, Strip) for each strip of columns otherwise.
template <class Row, class StripBody>
MYC_INLINE int32_t along_axis(const myc_call* call, int64_t axis, const Row& row, const StripBody& strip) {
  const AxisView v = around_axis(output(call), axis);
  if (output(call).size == 0) return MYC_OK;
  constexpr int64_t kWork = 32;  // bytes and flops of an element
  if (v.inner == 1) {
    const int64_t grain = kMinParallelWork / (v.n * kWork + 1) + 1;
    parallel_for_worker(call, v.outer, grain, [&](int64_t begin, int64_t end, int32_t worker) {
      for (int64_t r = begin; r < end; ++r) row(r * v.n, v.n, worker);
    });
    return MYC_OK;
  }
  constexpr int64_t kWidth = kStripVectors * kLanes;
  const int64_t strips = ceil_div(v.inner, kWidth);
  parallel_rows(call, v.outer * strips, v.n * kWidth * kWork, [&](int64_t r) {
    const int64_t first = r % strips * kWidth;
    strip(r / strips * v.n * v.inner + first, Strip{v.n, v.inner, min(kWidth, v.inner - first)});
  });
  return MYC_OK;
}

template <class T>
int32_t softmax_of(const myc_call* call) {
  const int64_t axis = attrs<myc_softmax_attrs>(call).axis, n = around_axis(output(call), axis).n;
  const T* x = in<T>(call);
  T* y = out<T>(call);
  Scratch scratch(call);
  float* rows = nullptr;  // a row for each worker
  if constexpr (sizeof(T) != sizeof(float)) {
    rows = scratch.take<float>(max_workers(call) * round_up(n, 16));
    if (!rows) return MYC_E_MEMORY;
  }
  return along_axis(
      call, axis,
      [&](int64_t at, int64_t length, int32_t worker) {
        if constexpr (sizeof(T) == sizeof(float)) softmax_row(x + at, y + at, y + at, length);
        else softmax_row(x + at, rows + worker * round_up(n, 16), y + at, length);
      },
      [&](int64_t at, const Strip& c) { softmax_strip(x + at, y + at, c); });
}

KERNEL_FN(softmax, f32) {
  return with_float_type(output(call).dtype, [&](auto type) { return softmax_of<decltype(type)>(call); });
}

KERNEL_FN(log_softmax, f32) {
  return with_float_type(output(call).dtype, [&](auto type) {
    const auto* x = in<decltype(type)>(call);
    auto* y = out<decltype(type)>(call);
    return along_axis(
        call, attrs<myc_log_softmax_attrs>(call).axis,
        [&](int64_t at, int64_t n, int32_t) { log_softmax_row(x + at, y + at, n); },
        [&](int64_t at, const Strip& c) { log_softmax_strip(x + at, y + at, c); });
  });
}

#define GRADIENT_ALONG_AXIS(op)                                                                \
  KERNEL_FN(op, f32) {                                                                         \
    return with_float_type(output(call).dtype, [&](auto type) {                                \
      const auto *dy = in<decltype(type)>(call, 0), *y = in<decltype(type)>(call, 1);          \
      auto* dx = out<decltype(type)>(call);                                                    \
      return along_axis(                                                                       \
          call, attrs<myc_##op##_attrs>(call).axis,                                            \
          [&](int64_t at, int64_t n, int32_t) { op##_row(dy + at, y + at, dx + at, n); },      \
          [&](int64_t at, const Strip& c) { op##_strip(dy + at, y + at, dx + at, c); });       \
    });                                                                                        \
  }

GRADIENT_ALONG_AXIS(softmax_grad)
GRADIENT_ALONG_AXIS(log_softmax_grad)

}  // namespace mycelia::MYC_ISA
