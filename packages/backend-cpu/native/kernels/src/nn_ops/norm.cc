// Layer, group and root-mean-square normalization with their gradients.  What is normalized, and its gradients, has T:
// float or a float of 16 bits; parameters and statistics are float32.  A row (the elements that share a mean) is read two or
// three times out of L1 or L2; compulsory traffic is 8 bytes an element forward, 12 backward, half of that for 16 bits.
#include "simd/magnitude.h"
#include "reductions/sums.h"

namespace mycelia::MYC_ISA {

constexpr int64_t kForwardWork = 16, kBackwardWork = 32;  // bytes and flops of an element

struct Moments {
  float mean, inv_std;
};

// Sums of a row about a pivot, the mean of its first elements.
struct PivotSums {
  float pivot;
  double sum, square;
};

// keep: the row is put into `wide` in float32.
template <bool keep, class T>
PivotSums pivot_sums(const T* x, int64_t n, float* wide) {
  const float pivot = n >= kLanes ? horizontal_sum(load(x)) / kLanes : widen_one(x[0]);
  const f32v origin = splat(pivot);
  double sum = 0, square = 0;
  for (int64_t start = 0; start < n; start += kSumBlock) {
    const int64_t end = min(n, start + kSumBlock);
    f32v s[4] = {}, q[4] = {};
    int64_t i = start;
    for (; i + 4 * kLanes <= end; i += 4 * kLanes) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const f32v v = load(x + i + k * kLanes), d = v - origin;
        if constexpr (keep) store(wide + i + k * kLanes, v);
        s[k] += d;
        q[k] += d * d;
      }
    }
    for (; i < end; i += kLanes) {
      const int64_t lanes = min(int64_t{kLanes}, end - i);
      const f32v v = load_lanes(x + i, lanes), d = keep_lanes(v - origin, lanes);
      if constexpr (keep) store_lanes(wide + i, v, lanes);
      s[0] += d;
      q[0] += d * d;
    }
    sum += horizontal_sum((s[0] + s[1]) + (s[2] + s[3]));
    square += horizontal_sum((q[0] + q[1]) + (q[2] + q[3]));
  }
  return {pivot, sum, square};
}

// A second pass about the mean follows where the pivot lies so far off that digits would be lost.
template <class T>
MYC_INLINE Moments moments_of(const T* x, int64_t n, const PivotSums& p, double epsilon) {
  const double offset = p.sum / n, mean = p.pivot + offset;
  double variance = p.square / n - offset * offset;
  if (!(offset * offset <= 4 * variance))
    variance = sum_of_squares_about(x, n, static_cast<float>(mean)) / n;
  return {static_cast<float>(mean), static_cast<float>(1 / ::sqrt(variance + epsilon))};
}

template <class T>
Moments moments_of(const T* x, int64_t n, double epsilon) {
  return moments_of(x, n, pivot_sums<false>(x, n, nullptr), epsilon);
}

// Rows whose moments are taken together, as many as stay in the first-level cache: a row's moments are one long chain
// of dependent operations, those of several rows overlap.
constexpr int64_t kRowsAtOnce = 8, kFloatsAtOnce = 4096;

// ---- rows with a factor and a summand an element: layer and root-mean-square normalization ----

// Whether no result of a row is NaN, if gamma and beta are finite: (x - mean) inv_std is at most the root of n.
MYC_INLINE bool gives_numbers(Moments m) { return fabsf(m.mean) < 1e30f && m.inv_std < INFINITY; }

// y = (x - mean) inv_std gamma + beta; gamma and beta may be null. `numbers`: no result is NaN.
template <bool numbers, class X, class T>
void normalize_row(const X* x, T* y, int64_t n, Moments m, const float* gamma, const float* beta) {
  const f32v mean = splat(m.mean), inv_std = splat(m.inv_std);
  if (gamma && beta) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const f32v v = (load(x + i) - mean) * inv_std * load(gamma + i) + load(beta + i);
      if constexpr (numbers) store_numbers(y + i, v);
      else store(y + i, v);
    }
    if (i == n) return;
    x += i, y += i, gamma += i, beta += i, n -= i;
  }
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t lanes = min(int64_t{kLanes}, n - i);
    f32v v = (load_lanes(x + i, lanes) - mean) * inv_std;
    if (gamma) v *= load_lanes(gamma + i, lanes);
    if (beta) v += load_lanes(beta + i, lanes);
    store_lanes(y + i, v, lanes);
  }
}

// Gradients of normalize_row.  Adds dy x_hat to d_gamma and dy to d_beta.
//   dx = inv_std (d_hat - mean(d_hat) - x_hat mean(d_hat x_hat)),  d_hat = dy gamma,  x_hat = (x - mean) inv_std;
// without centring (root mean square) the middle term is left out.
template <bool centred, class T>
void normalize_grad_row(const T* dy, const T* x, T* dx, int64_t n, Moments m, const float* gamma,
                        float* d_gamma, float* d_beta) {
  const f32v mean = splat(m.mean), inv_std = splat(m.inv_std);
  f32v sum = {}, other_sum = {}, product = {}, other_product = {};
  int64_t i = 0;
  const auto gather = [&](int64_t at, int64_t lanes, f32v* s, f32v* p) {
    f32v d = load_lanes(dy + at, lanes);
    if (gamma) d *= load_lanes(gamma + at, lanes);
    *s += d;
    *p += d * (load_lanes(x + at, lanes) - mean);
  };
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    gather(i, kLanes, &sum, &product);
    gather(i + kLanes, kLanes, &other_sum, &other_product);
  }
  for (; i < n; i += kLanes) gather(i, min(int64_t{kLanes}, n - i), &sum, &product);
  const float mean_d = centred ? horizontal_sum(sum + other_sum) / n : 0.0f;
  const float mean_p = horizontal_sum(product + other_product) * m.inv_std / n;
  const f32v shift = splat(mean_d), slope = splat(mean_p);
  const auto piece = [&](int64_t lanes) {
    const f32v d = load_lanes(dy + i, lanes), x_hat = (load_lanes(x + i, lanes) - mean) * inv_std;
    store_lanes(d_gamma + i, load_lanes(d_gamma + i, lanes) + d * x_hat, lanes);
    if (d_beta) store_lanes(d_beta + i, load_lanes(d_beta + i, lanes) + d, lanes);
    const f32v d_hat = gamma ? d * load_lanes(gamma + i, lanes) : d;
    store_lanes(dx + i, inv_std * (d_hat - shift - x_hat * slope), lanes);
  };
  for (i = 0; i + kLanes <= n; i += kLanes) piece(kLanes);
  if (i < n) piece(n - i);
}

// Sums over rows of the parameters' gradients.  Each worker adds its rows to a block of its own, which goes into its
// total every kRowsPerBlock rows: short chains of additions keep the digits.
constexpr int64_t kRowsPerBlock = 128;

MYC_INLINE void add_to(float* total, const float* x, int64_t n) {
  map(total, x, total, n, [](f32v a, f32v b) { return a + b; });
}

// row(r, block) for each row, where block[0, width) collects; out = the sum of all blocks.
template <class Row>
MYC_INLINE int32_t sum_over_rows(const myc_call* call, int64_t rows, int64_t row_work, int64_t width, float* sum,
                                 const Row& row) {
  Scratch scratch(call);
  const int64_t workers = max_workers(call), stride = round_up(width, 16);
  float* buffer = scratch.take<float>(workers * 2 * stride);
  if (!buffer) return MYC_E_MEMORY;
  memset(buffer, 0, sizeof(float) * workers * 2 * stride);
  parallel_for_worker(call, rows, kMinParallelWork / (row_work + 1) + 1, [&](int64_t begin, int64_t end, int32_t worker) {
    float *block = buffer + worker * 2 * stride, *total = block + stride;
    for (int64_t r = begin; r < end; ++r) {
      row(r, block);
      if ((r - begin) % kRowsPerBlock == kRowsPerBlock - 1 || r == end - 1) {
        add_to(total, block, width);
        memset(block, 0, sizeof(float) * width);
      }
    }
  });
  memcpy(sum, buffer + stride, sizeof(float) * width);
  for (int64_t w = 1; w < workers; ++w) add_to(sum, buffer + w * 2 * stride + stride, width);
  return MYC_OK;
}

template <class T>
int32_t layer_norm_of(const myc_call* call) {
  const auto& a = attrs<myc_layer_norm_attrs>(call);
  const myc_tensor& t = input(call);
  const int64_t rows = output(call, 1).size;
  if (t.size == 0) {
    memset(out<float>(call, 1), 0, sizeof(float) * rows);
    memset(out<float>(call, 2), 0, sizeof(float) * rows);
    return MYC_OK;
  }
  const int64_t n = t.size / rows;
  const T* x = in<T>(call);
  const float *gamma = in<float>(call, 1), *beta = in<float>(call, 2);
  if ((gamma && input(call, 1).size != n) || (beta && input(call, 2).size != n)) return MYC_E_UNSUPPORTED;
  T* y = out<T>(call);
  float *mean = out<float>(call, 1), *inv_std = out<float>(call, 2);
  const auto all_finite = [=](const float* p) { return !p || magnitude_of(magnitude(p, n)) < INFINITY; };
  const bool finite = all_finite(gamma) && all_finite(beta);
  const int64_t at_once = sizeof(T) == sizeof(float) ? kFloatsAtOnce / 4 : kFloatsAtOnce;  // short rows alone gain
  const int64_t each = clamp(at_once / n, int64_t{1}, kRowsAtOnce);
  const bool widened = sizeof(T) != sizeof(float) && n <= kFloatsAtOnce;
  parallel_rows(call, ceil_div(rows, each), each * n * kForwardWork, [&](int64_t block) {
    const int64_t first = block * each, count = min(each, rows - first);
    PivotSums sums[kRowsAtOnce];
    float wide[sizeof(T) == sizeof(float) ? 1 : kFloatsAtOnce];  // rows of 16 bits are widened once
    for (int64_t i = 0; i < count; ++i) {
      const T* row = x + (first + i) * n;
      sums[i] = widened ? pivot_sums<true>(row, n, wide + i * n) : pivot_sums<false>(row, n, nullptr);
    }
    for (int64_t i = 0; i < count; ++i) {
      const Moments m = moments_of(x + (first + i) * n, n, sums[i], a.epsilon);
      mean[first + i] = m.mean, inv_std[first + i] = m.inv_std;
    }
    for (int64_t r = first; r < first + count; ++r) {
      const Moments m = {mean[r], inv_std[r]};
      const auto run = [&](const auto* row) {
        if (finite && gives_numbers(m)) normalize_row<true>(row, y + r * n, n, m, gamma, beta);
        else normalize_row<false>(row, y + r * n, n, m, gamma, beta);
      };
      if (widened) run(wide + (r - first) * n);
      else run(x + r * n);
    }
  });
  return MYC_OK;
}

template <class T>
int32_t layer_norm_grad_of(const myc_call* call) {
  const T *dy = in<T>(call, 0), *x = in<T>(call, 1);
  const float* mean = in<float>(call, 2);
  const float *inv_std = in<float>(call, 3), *gamma = in<float>(call, 4);
  const int64_t rows = input(call, 2).size, n = output(call, 1).size;
  if (rows * n != input(call, 1).size || (gamma && input(call, 4).size != n)) return MYC_E_UNSUPPORTED;
  T* dx = out<T>(call);
  float *d_gamma = out<float>(call, 1), *d_beta = out<float>(call, 2);
  Scratch scratch(call);
  float* sums = scratch.take<float>(2 * n);
  if (!sums) return MYC_E_MEMORY;
  const int32_t status =
      sum_over_rows(call, rows, n * kBackwardWork, 2 * n, sums, [&](int64_t r, float* block) {
        normalize_grad_row<true>(dy + r * n, x + r * n, dx + r * n, n, {mean[r], inv_std[r]}, gamma, block, block + n);
      });
  if (status != MYC_OK) return status;
  memcpy(d_gamma, sums, sizeof(float) * n);
  memcpy(d_beta, sums + n, sizeof(float) * n);
  return MYC_OK;
}

template <class T>
int32_t rms_norm_of(const myc_call* call) {
  const auto& a = attrs<myc_rms_norm_attrs>(call);
  const T* x = in<T>(call);
  const float* gamma = in<float>(call, 1);
  const int64_t n = input(call, 1).size, rows = output(call, 1).size;
  T* y = out<T>(call);
  float* r_std = out<float>(call, 1);
  if (input(call).size == 0) {
    memset(r_std, 0, sizeof(float) * rows);
    return MYC_OK;
  }
  parallel_rows(call, rows, n * kForwardWork, [&](int64_t r) {
    const float scale = static_cast<float>(1 / ::sqrt(sum_of_squares(x + r * n, n) / n + a.epsilon));
    r_std[r] = scale;
    normalize_row<false>(x + r * n, y + r * n, n, {0.0f, scale}, gamma, nullptr);
  });
  return MYC_OK;
}

template <class T>
int32_t rms_norm_grad_of(const myc_call* call) {
  const T *dy = in<T>(call, 0), *x = in<T>(call, 1);
  const float *gamma = in<float>(call, 2), *r_std = in<float>(call, 3);
  const int64_t n = input(call, 2).size, rows = input(call, 3).size;
  T* dx = out<T>(call);
  return sum_over_rows(call, rows, n * kBackwardWork, n, out<float>(call, 1), [&](int64_t r, float* block) {
    normalize_grad_row<false>(dy + r * n, x + r * n, dx + r * n, n, {0.0f, r_std[r]}, gamma, block, nullptr);
  });
}

// ---- groups of channels: each group of each sample is one row, its parameters change with the channel ----

template <class T>
int32_t group_norm_of(const myc_call* call) {
  const auto& a = attrs<myc_group_norm_attrs>(call);
  const myc_tensor& t = input(call);
  const T* x = in<T>(call);
  const float *weight = in<float>(call, 1), *bias = in<float>(call, 2);
  T* y = out<T>(call);
  float *mean = out<float>(call, 1), *inv_std = out<float>(call, 2);
  const int64_t groups = a.num_groups, channels = t.shape[1] / groups, plane = extent(t, 2, t.rank);
  const int64_t rows = t.shape[0] * groups, n = channels * plane;
  if (t.size == 0) {
    memset(mean, 0, sizeof(float) * rows);
    memset(inv_std, 0, sizeof(float) * rows);
    return MYC_OK;
  }
  parallel_rows(call, rows, n * kForwardWork, [&](int64_t r) {
    const Moments m = moments_of(x + r * n, n, a.eps);
    mean[r] = m.mean, inv_std[r] = m.inv_std;
    for (int64_t k = 0; k < channels; ++k) {
      const int64_t c = r % groups * channels + k, at = r * n + k * plane;
      const float factor = weight ? m.inv_std * weight[c] : m.inv_std;
      const f32v scale = splat(factor), shift = splat((bias ? bias[c] : 0.0f) - m.mean * factor);
      map(x + at, y + at, plane, [=](f32v v) { return v * scale + shift; });
    }
  });
  return MYC_OK;
}

template <class T>
int32_t group_norm_grad_of(const myc_call* call) {
  const auto& a = attrs<myc_group_norm_grad_attrs>(call);
  const myc_tensor& t = input(call, 1);
  const T *dy = in<T>(call, 0), *x = in<T>(call, 1);
  const float* mean = in<float>(call, 2);
  const float *inv_std = in<float>(call, 3), *weight = in<float>(call, 4);
  T* dx = out<T>(call);
  float *d_weight = out<float>(call, 1), *d_bias = out<float>(call, 2);
  const int64_t groups = a.num_groups, channels = t.shape[1] / groups, plane = extent(t, 2, t.rank);
  const int64_t n = channels * plane, samples = t.shape[0];
  memset(d_weight, 0, sizeof(float) * t.shape[1]);
  memset(d_bias, 0, sizeof(float) * t.shape[1]);
  if (t.size == 0) return MYC_OK;
  // A group's channels belong to it alone, so their gradients need no exchange between threads.
  parallel_rows(call, groups, samples * n * kBackwardWork, [&](int64_t g) {
    for (int64_t s = 0; s < samples; ++s) {
      const int64_t r = s * groups + g;
      double sum = 0, product = 0;
      for (int64_t k = 0; k < channels; ++k) {
        const int64_t c = g * channels + k, at = r * n + k * plane;
        const double d = sum_of(dy + at, plane);
        const double p = sum_of_products_about(dy + at, x + at, plane, mean[r]) * inv_std[r];
        d_bias[c] += static_cast<float>(d);
        d_weight[c] += static_cast<float>(p);
        const double w = weight ? weight[c] : 1.0;
        sum += d * w, product += p * w;
      }
      // dx = inv_std (dy w - sum / n - x_hat product / n), x_hat = (x - mean) inv_std
      const float slope = static_cast<float>(product / n) * inv_std[r] * inv_std[r];
      const f32v by_x = splat(-slope), shift = splat(slope * mean[r] - static_cast<float>(sum / n) * inv_std[r]);
      for (int64_t k = 0; k < channels; ++k) {
        const int64_t at = r * n + k * plane;
        const f32v by_dy = splat(inv_std[r] * (weight ? weight[g * channels + k] : 1.0f));
        map(dy + at, x + at, dx + at, plane, [=](f32v d, f32v v) { return d * by_dy + (v * by_x + shift); });
      }
    }
  });
  return MYC_OK;
}

// The type of the first result is that of all that is normalized.
#define NORMALIZATION(op) \
  KERNEL_FN(op, f32) {    \
    return with_float_type(output(call).dtype, [&](auto type) { return op##_of<decltype(type)>(call); }); \
  }

NORMALIZATION(layer_norm)
NORMALIZATION(layer_norm_grad)
NORMALIZATION(rms_norm)
NORMALIZATION(rms_norm_grad)
NORMALIZATION(group_norm)
NORMALIZATION(group_norm_grad)

}  // namespace mycelia::MYC_ISA
