// Batch normalization for training and inference and its gradient, float32, channels in the second or the last axis.
// A channel's data is read three times, from L2 when it fits; compulsory traffic is 8 bytes an element forward, 12 backward.
#include "sums.h"

namespace mycelia::MYC_ISA {

constexpr int64_t kWork = 24;  // bytes and flops of an element

// [samples, channels, plane]; with channels last samples counts all positions and plane is 1.
struct Layout {
  int64_t samples, channels, plane;
  int64_t count() const { return samples * plane; }  // elements of a channel
};

inline Layout layout_of(const myc_tensor& t, int64_t data_format) {
  if (data_format == 0) return {t.shape[0], t.shape[1], extent(t, 2, t.rank)};
  return {extent(t, 0, t.rank - 1), t.shape[t.rank - 1], 1};
}

// ---- channels in the second axis: a channel is `samples` planes ----

// Sum of piece(offset of the plane) over a channel's planes.
template <class Piece>
MYC_INLINE double over_planes(const Layout& l, int64_t c, const Piece& piece) {
  double total = 0;
  for (int64_t s = 0; s < l.samples; ++s) total += piece((s * l.channels + c) * l.plane);
  return total;
}

struct ChannelMoments {
  double mean, variance;
};

ChannelMoments channel_moments(const float* x, const Layout& l, int64_t c) {
  const double n = static_cast<double>(l.count());
  const double mean = over_planes(l, c, [&](int64_t at) { return sum_of(x + at, l.plane); }) / n;
  const float center = static_cast<float>(mean);
  const double squares = over_planes(l, c, [&](int64_t at) { return sum_of_squares_about(x + at, l.plane, center); });
  return {mean, squares / n};
}

void scale_channel(const float* x, float* y, const Layout& l, int64_t c, float factor, float summand) {
  const f32v scale = splat(factor), shift = splat(summand);
  for (int64_t s = 0; s < l.samples; ++s) {
    const int64_t at = (s * l.channels + c) * l.plane;
    map(x + at, y + at, l.plane, [=](f32v v) { return v * scale + shift; });
  }
}

// ---- channels last: a strip of neighbouring channels at all positions ----

constexpr int64_t kStrip = 4 * kLanes;     // channels of a strip: two or more cache lines of each row
constexpr int64_t kRowsPerBlock = 256;     // rows whose float sums meet in double precision

// term(offset, lanes, vector number, f32v* sums) adds to `parts` sums a vector; total[part * kStrip + channel] is their sum.
template <int parts, class Term>
MYC_INLINE void over_rows(const Layout& l, int64_t first, int64_t width, double* total, const Term& term) {
  for (int64_t i = 0; i < parts * kStrip; ++i) total[i] = 0;
  for (int64_t start = 0; start < l.samples; start += kRowsPerBlock) {
    f32v sums[4][parts] = {};
    const int64_t end = min(l.samples, start + kRowsPerBlock);
    for (int64_t r = start; r < end; ++r) {
      for (int64_t v = 0; v * kLanes < width; ++v)
        term(r * l.channels + first + v * kLanes, min(int64_t{kLanes}, width - v * kLanes), v, sums[v]);
    }
    for (int v = 0; v < 4; ++v)
      for (int p = 0; p < parts; ++p)
        for (int i = 0; i < kLanes; ++i) total[p * kStrip + v * kLanes + i] += sums[v][p][i];
  }
}

// body(first channel, width) for each strip.
template <class Body>
MYC_INLINE void for_strips(const myc_call* call, const Layout& l, const Body& body) {
  parallel_rows(call, ceil_div(l.channels, kStrip), l.samples * kStrip * kWork, [&](int64_t strip) {
    const int64_t first = strip * kStrip;
    body(first, min(kStrip, l.channels - first));
  });
}

void scale_strip(const float* x, float* y, const Layout& l, int64_t first, int64_t width, const float* factor,
                 const float* summand) {
  for (int64_t r = 0; r < l.samples; ++r) {
    const int64_t at = r * l.channels + first;
    for (int64_t v = 0; v < width; v += kLanes) {
      const int64_t lanes = min(int64_t{kLanes}, width - v);
      store_lanes(y + at + v, load_lanes(x + at + v, lanes) * load(factor + v) + load(summand + v), lanes);
    }
  }
}

// ---- kernels ----

KERNEL_FN(batch_norm_infer, f32) {
  const auto& a = attrs<myc_batch_norm_infer_attrs>(call);
  const Layout l = layout_of(input(call), a.data_format);
  const float *x = in<float>(call), *scale = in<float>(call, 1), *bias = in<float>(call, 2);
  const float *mean = in<float>(call, 3), *variance = in<float>(call, 4);
  float* y = out<float>(call);
  if (output(call).size == 0) return MYC_OK;
  const float epsilon = static_cast<float>(a.epsilon);
  const auto factor_of = [&](int64_t c) { return scale[c] / sqrtf(variance[c] + epsilon); };
  if (l.plane > 1 || l.channels == 1) {
    parallel_rows(call, l.samples * l.channels, l.plane * kWork, [&](int64_t r) {
      const int64_t c = r % l.channels;
      const float factor = factor_of(c);
      const f32v by = splat(factor), shift = splat(bias[c] - mean[c] * factor);
      map(x + r * l.plane, y + r * l.plane, l.plane, [=](f32v v) { return v * by + shift; });
    });
    return MYC_OK;
  }
  for_strips(call, l, [&](int64_t first, int64_t width) {
    float factor[kStrip] = {}, summand[kStrip] = {};
    for (int64_t i = 0; i < width; ++i) {
      factor[i] = factor_of(first + i);
      summand[i] = bias[first + i] - mean[first + i] * factor[i];
    }
    scale_strip(x, y, l, first, width, factor, summand);
  });
  return MYC_OK;
}

// out: running mean and variance (in place), y, batch mean, inverse deviation.
KERNEL_FN(batch_norm_train, f32) {
  const auto& a = attrs<myc_batch_norm_train_attrs>(call);
  const Layout l = layout_of(input(call, 2), a.data_format);
  const float *old_mean = in<float>(call, 0), *old_variance = in<float>(call, 1), *x = in<float>(call, 2);
  const float *scale = in<float>(call, 3), *bias = in<float>(call, 4);
  float *running_mean = out<float>(call, 0), *running_variance = out<float>(call, 1), *y = out<float>(call, 2);
  float *batch_mean = out<float>(call, 3), *inv_std = out<float>(call, 4);
  if (l.count() == 0) {
    for (int64_t c = 0; c < l.channels; ++c) {
      running_mean[c] = old_mean[c], running_variance[c] = old_variance[c];
      batch_mean[c] = inv_std[c] = 0;
    }
    return MYC_OK;
  }
  const double n = static_cast<double>(l.count());
  const float momentum = static_cast<float>(a.momentum);
  // Records the statistics of channel c; returns the factor of x.
  const auto record = [&](int64_t c, double mean, double variance) {
    const float unbiased = static_cast<float>(variance * (n / (n > 1 ? n - 1 : 1)));
    batch_mean[c] = static_cast<float>(mean);
    inv_std[c] = static_cast<float>(1 / ::sqrt(variance + a.epsilon));
    running_mean[c] = old_mean[c] + momentum * (batch_mean[c] - old_mean[c]);
    running_variance[c] = old_variance[c] + momentum * (unbiased - old_variance[c]);
    return scale[c] * inv_std[c];
  };
  if (l.plane > 1 || l.channels == 1) {
    parallel_rows(call, l.channels, l.count() * kWork, [&](int64_t c) {
      const ChannelMoments m = channel_moments(x, l, c);
      const float factor = record(c, m.mean, m.variance);
      scale_channel(x, y, l, c, factor, bias[c] - batch_mean[c] * factor);
    });
    return MYC_OK;
  }
  for_strips(call, l, [&](int64_t first, int64_t width) {
    double sums[kStrip], squares[kStrip];
    float center[kStrip] = {}, factor[kStrip] = {}, summand[kStrip] = {};
    over_rows<1>(l, first, width, sums, [&](int64_t at, int64_t lanes, int64_t, f32v* s) {
      s[0] += load_lanes(x + at, lanes);
    });
    for (int64_t i = 0; i < width; ++i) center[i] = static_cast<float>(sums[i] / n);
    over_rows<1>(l, first, width, squares, [&](int64_t at, int64_t lanes, int64_t v, f32v* s) {
      const f32v d = load_lanes(x + at, lanes) - load(center + v * kLanes);
      s[0] += d * d;
    });
    for (int64_t i = 0; i < width; ++i) {
      factor[i] = record(first + i, sums[i] / n, squares[i] / n);
      summand[i] = bias[first + i] - center[i] * factor[i];
    }
    scale_strip(x, y, l, first, width, factor, summand);
  });
  return MYC_OK;
}

// dx = scale inv_std (dy - d_bias / n - x_hat d_scale / n): one factor each for dy and x, and a summand.
struct GradFactors {
  float by_dy, by_x, summand;
};

inline GradFactors grad_factors(float scale, float mean, float inv_std, double d_scale, double d_bias, double n) {
  const double by_dy = static_cast<double>(scale) * inv_std;
  const double by_x = -by_dy * inv_std * d_scale / n;
  return {static_cast<float>(by_dy), static_cast<float>(by_x), static_cast<float>(-by_dy * d_bias / n - by_x * mean)};
}

KERNEL_FN(batch_norm_grad, f32) {
  const auto& a = attrs<myc_batch_norm_grad_attrs>(call);
  const Layout l = layout_of(input(call, 1), a.data_format);
  const float *dy = in<float>(call, 0), *x = in<float>(call, 1), *scale = in<float>(call, 2);
  const float *mean = in<float>(call, 3), *inv_std = in<float>(call, 4);
  float *dx = out<float>(call), *d_scale = out<float>(call, 1), *d_bias = out<float>(call, 2);
  const double n = static_cast<double>(max(l.count(), int64_t{1}));
  const auto record = [&](int64_t c, double d, double p) {
    d_scale[c] = static_cast<float>(p), d_bias[c] = static_cast<float>(d);
    return grad_factors(scale[c], mean[c], inv_std[c], p, d, n);
  };
  if (l.plane > 1 || l.channels == 1) {
    parallel_rows(call, l.channels, l.count() * kWork, [&](int64_t c) {
      const double d = over_planes(l, c, [&](int64_t at) { return sum_of(dy + at, l.plane); });
      const double p = over_planes(
          l, c, [&](int64_t at) { return sum_of_products_about(dy + at, x + at, l.plane, mean[c]); });
      const GradFactors f = record(c, d, p * inv_std[c]);
      const f32v by_dy = splat(f.by_dy), by_x = splat(f.by_x), shift = splat(f.summand);
      for (int64_t s = 0; s < l.samples; ++s) {
        const int64_t at = (s * l.channels + c) * l.plane;
        map(dy + at, x + at, dx + at, l.plane, [=](f32v g, f32v v) { return g * by_dy + (v * by_x + shift); });
      }
    });
    return MYC_OK;
  }
  for_strips(call, l, [&](int64_t first, int64_t width) {
    double sums[2 * kStrip];
    float center[kStrip] = {}, by_dy[kStrip] = {}, by_x[kStrip] = {}, summand[kStrip] = {};
    memcpy(center, mean + first, sizeof(float) * width);
    over_rows<2>(l, first, width, sums, [&](int64_t at, int64_t lanes, int64_t v, f32v* s) {
      const f32v g = load_lanes(dy + at, lanes);
      s[0] += g;
      s[1] += g * (load_lanes(x + at, lanes) - load(center + v * kLanes));
    });
    for (int64_t i = 0; i < width; ++i) {
      const GradFactors f = record(first + i, sums[i], sums[kStrip + i] * inv_std[first + i]);
      by_dy[i] = f.by_dy, by_x[i] = f.by_x, summand[i] = f.summand;
    }
    for (int64_t r = 0; r < l.samples; ++r) {
      for (int64_t v = 0; v < width; v += kLanes) {
        const int64_t at = r * l.channels + first + v, lanes = min(int64_t{kLanes}, width - v);
        store_lanes(dx + at,
                    load_lanes(dy + at, lanes) * load(by_dy + v) +
                        (load_lanes(x + at, lanes) * load(by_x + v) + load(summand + v)),
                    lanes);
      }
    }
  });
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
