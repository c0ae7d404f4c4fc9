// What the kernels of batch normalization share, channels in the second or the last axis: statistics, and the two passes
// of training and of its gradient, into which residuals and activations can be put.  What is normalized, and its
// gradients, has T: float or a float of 16 bits; parameters and statistics are float32.
// Bound by memory: the statistics read x once (the gradient's sums dy and x), the result reads it again and is written.
// Sums run about a number near the channel's mean, so that one pass keeps the digits of the variance; float sums of few
// elements meet in double precision, in an order that depends on the shape alone.
#ifndef MYCELIA_NORM_BATCH_H_
#define MYCELIA_NORM_BATCH_H_

#include <type_traits>

#include "reductions/sums.h"

namespace mycelia::MYC_ISA::batch_norm {

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

struct Moments {
  double mean, variance;
};

// ---- channels in the second axis: a channel is `samples` planes ----

// Sums over a channel's planes of the pair of vectors that term(offset, lanes, sums) adds.
template <class Term>
MYC_INLINE void channel_sums(const Layout& l, int64_t c, double (&total)[2], const Term& term) {
  constexpr int kChains = 4;
  total[0] = total[1] = 0;
  for (int64_t s = 0; s < l.samples; ++s) {
    const int64_t begin = (s * l.channels + c) * l.plane, stop = begin + l.plane;
    for (int64_t start = begin; start < stop; start += kSumBlock) {
      const int64_t end = min(stop, start + kSumBlock);
      f32v sums[kChains][2] = {};
      int64_t i = start;
      for (; i + kChains * kLanes <= end; i += kChains * kLanes)
        for (int v = 0; v < kChains; ++v) term(i + v * kLanes, int64_t{kLanes}, sums[v]);
      for (; i < end; i += kLanes) term(i, min(int64_t{kLanes}, end - i), sums[0]);
      for (int p = 0; p < 2; ++p)
        total[p] += horizontal_sum((sums[0][p] + sums[1][p]) + (sums[2][p] + sums[3][p]));
    }
  }
}

template <class T>
Moments channel_moments(const T* x, const Layout& l, int64_t c) {
  const int64_t few = min(l.plane, kSumBlock);
  const float center = static_cast<float>(sum_of(x + c * l.plane, few) / static_cast<double>(few));
  const f32v about = splat(center);
  double sums[2];
  channel_sums(l, c, sums, [=](int64_t at, int64_t lanes, f32v* s) {
    const f32v d = keep_lanes(load_lanes(x + at, lanes) - about, lanes);
    s[0] += d;
    s[1] += d * d;
  });
  const double n = static_cast<double>(l.count()), mean = sums[0] / n;
  return {center + mean, max(0.0, sums[1] / n - mean * mean)};
}

// f(offset, lanes) for every vector of a channel.
template <class F>
MYC_INLINE void for_channel(const Layout& l, int64_t c, const F& f) {
  for (int64_t s = 0; s < l.samples; ++s) {
    const int64_t begin = (s * l.channels + c) * l.plane, end = begin + l.plane;
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) f(i, int64_t{kLanes});
    if (i < end) f(i, end - i);
  }
}

// ---- channels last: rows of channels ----

constexpr int64_t kRowsPerBlock = 64;   // rows whose float sums meet in double precision
constexpr int64_t kRowsPerPart = 256;   // rows of a part, at least
constexpr int64_t kParts = 16;
constexpr int kRowsPerStep = 4;         // rows that one load and store of the sums serves

inline int64_t parts_of(const Layout& l) { return clamp(l.samples / kRowsPerPart, int64_t{1}, kParts); }
inline int64_t padded(int64_t channels) { return round_up(channels, int64_t{kLanes}); }

// Adds to sums[p][channel] over rows [begin, end) what term(offset, channel, lanes, sums) adds to two vectors.
template <class Term>
MYC_INLINE void row_sums(const Layout& l, int64_t begin, int64_t end, float* sums, const Term& term) {
  const int64_t n = l.channels, width = padded(n);
  const auto step = [&](int64_t row, auto rows) __attribute__((always_inline)) {
    const auto vector = [&](int64_t c, int64_t lanes) __attribute__((always_inline)) {
      f32v s[2] = {load(sums + c), load(sums + width + c)};
      for (int r = 0; r < rows.value; ++r) term((row + r) * n + c, c, lanes, s);
      store(sums + c, s[0]);
      store(sums + width + c, s[1]);
    };
    int64_t c = 0;
    for (; c + kLanes <= n; c += kLanes) vector(c, kLanes);
    if (c < n) vector(c, n - c);
  };
  int64_t row = begin;
  for (; row + kRowsPerStep <= end; row += kRowsPerStep) step(row, std::integral_constant<int, kRowsPerStep>());
  for (; row < end; ++row) step(row, std::integral_constant<int, 1>());
}

// The same in double precision; `sums` is scratch for 2 * padded floats, total[p * channels + c].
template <class Term>
MYC_INLINE void part_sums(const Layout& l, int64_t begin, int64_t end, float* sums, double* total, const Term& term) {
  const int64_t width = padded(l.channels);
  for (int64_t i = 0; i < 2 * l.channels; ++i) total[i] = 0;
  for (int64_t start = begin; start < end; start += kRowsPerBlock) {
    memset(sums, 0, 2 * width * sizeof(float));
    row_sums(l, start, min(end, start + kRowsPerBlock), sums, term);
    for (int p = 0; p < 2; ++p)
      for (int64_t c = 0; c < l.channels; ++c) total[p * l.channels + c] += sums[p * width + c];
  }
}

// Memory for the sums of all parts: doubles [part][2][channels], and 3 * padded floats a worker.
struct PartSums {
  int64_t parts, channels;
  double* total = nullptr;
  float* floats = nullptr;

  PartSums(Scratch* scratch, const myc_call* call, const Layout& l) : parts(parts_of(l)), channels(l.channels) {
    total = scratch->take<double>(parts * 2 * channels);
    floats = scratch->take<float>(max_workers(call) * 3 * padded(channels));
  }
  double* of(int64_t part) const { return total + part * 2 * channels; }
};

// body(part, first row, end row, worker's floats)
template <class Body>
MYC_INLINE void for_parts(const myc_call* call, const Layout& l, const PartSums& sums, const Body& body) {
  const int64_t work = l.samples * l.channels * kWork / sums.parts;
  parallel_for_worker(call, sums.parts, kMinParallelWork / (work + 1) + 1,
                      [&](int64_t begin, int64_t end, int32_t worker) {
                        for (int64_t i = begin; i < end; ++i)
                          body(i, l.samples * i / sums.parts, l.samples * (i + 1) / sums.parts,
                               sums.floats + worker * 3 * padded(l.channels));
                      });
}

// Leaves in sums.of(0) each channel's mean and variance.
template <class T>
void row_moments(const myc_call* call, const T* x, const Layout& l, const PartSums& sums) {
  const int64_t n = l.channels, width = padded(n);
  for_parts(call, l, sums, [&](int64_t part, int64_t begin, int64_t end, float* floats) {
    float* center = floats + 2 * width;
    double* total = sums.of(part);
    const int64_t few = min(kRowsPerBlock, end - begin);
    memset(floats, 0, 3 * width * sizeof(float));
    row_sums(l, begin, begin + few, floats, [&](int64_t at, int64_t, int64_t lanes, f32v* s) {
      s[0] += load_lanes(x + at, lanes);
    });
    for (int64_t c = 0; c < n; ++c) center[c] = floats[c] / static_cast<float>(few);
    part_sums(l, begin, end, floats, total, [&](int64_t at, int64_t c, int64_t lanes, f32v* s) {
      const f32v d = load_lanes(x + at, lanes) - load(center + c);
      s[0] += d;
      s[1] += d * d;
    });
    const double rows = static_cast<double>(end - begin);
    for (int64_t c = 0; c < n; ++c) {  // mean, and sum of squares about it
      const double shift = total[c] / rows;
      total[n + c] = max(0.0, total[n + c] - total[c] * shift);
      total[c] = center[c] + shift;
    }
  });
  // Chan, Golub, LeVeque 1979: two samples of a and b elements become one.
  double* mean = sums.of(0);
  double* squares = mean + n;
  for (int64_t part = 1; part < sums.parts; ++part) {
    const double a = static_cast<double>(l.samples * part / sums.parts);
    const double all = static_cast<double>(l.samples * (part + 1) / sums.parts), b = all - a;
    const double *more = sums.of(part), *more_squares = more + n;
    for (int64_t c = 0; c < n; ++c) {
      const double delta = more[c] - mean[c];
      squares[c] += more_squares[c] + delta * delta * (a * b / all);
      mean[c] += delta * (b / all);
    }
  }
  for (int64_t c = 0; c < n; ++c) squares[c] /= static_cast<double>(l.samples);
}

// f(offset, channel, lanes) for every vector of every row.
template <class F>
MYC_INLINE void for_rows(const myc_call* call, const Layout& l, const F& f) {
  parallel_for(call, l.samples, kMinParallelWork / (l.channels * kWork + 1) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t c = 0;
      for (; c + kLanes <= l.channels; c += kLanes) f(r * l.channels + c, c, int64_t{kLanes});
      if (c < l.channels) f(r * l.channels + c, c, l.channels - c);
    }
  });
}

inline bool by_planes(const Layout& l) { return l.plane > 1 || l.channels == 1; }

// ---- training ----

// The normalization of a channel: a factor of x and a summand.
struct Affine {
  float factor, summand;
};

inline Affine affine(float scale, float bias, float mean, float inv_std) {
  const float factor = scale * inv_std;
  return {factor, bias - mean * factor};
}

template <class T>
struct Training {
  const T* x;
  T* y;
  const float *old_mean, *old_variance, *scale, *bias;
  float *running_mean, *running_variance, *batch_mean, *inv_std;
  double epsilon;
  float momentum;

  template <class Attrs>
  Training(const myc_call* call, const Attrs& a)
      : x(in<T>(call, 2)), y(out<T>(call, 2)), old_mean(in<float>(call, 0)), old_variance(in<float>(call, 1)),
        scale(in<float>(call, 3)), bias(in<float>(call, 4)), running_mean(out<float>(call, 0)),
        running_variance(out<float>(call, 1)), batch_mean(out<float>(call, 3)), inv_std(out<float>(call, 4)),
        epsilon(a.epsilon), momentum(static_cast<float>(a.momentum)) {}

  // Records the statistics of channel c, of n elements.
  Affine record(int64_t c, const Moments& m, double n) const {
    const float unbiased = static_cast<float>(m.variance * (n / (n > 1 ? n - 1 : 1)));
    batch_mean[c] = static_cast<float>(m.mean);
    inv_std[c] = static_cast<float>(1 / ::sqrt(m.variance + epsilon));
    running_mean[c] = old_mean[c] + momentum * (batch_mean[c] - old_mean[c]);
    running_variance[c] = old_variance[c] + momentum * (unbiased - old_variance[c]);
    return affine(scale[c], bias[c], batch_mean[c], inv_std[c]);
  }
};

// y = finish(normalized x, offset, lanes).
template <class T, class Finish>
MYC_INLINE int32_t train(const myc_call* call, const Layout& l, const Training<T>& t, const Finish& finish) {
  const T* x = t.x;
  T* y = t.y;
  if (l.count() == 0) {
    for (int64_t c = 0; c < l.channels; ++c) {
      t.running_mean[c] = t.old_mean[c], t.running_variance[c] = t.old_variance[c];
      t.batch_mean[c] = t.inv_std[c] = 0;
    }
    return MYC_OK;
  }
  const double n = static_cast<double>(l.count());
  if (by_planes(l)) {
    parallel_rows(call, l.channels, l.count() * kWork, [&](int64_t c) {
      const Affine f = t.record(c, channel_moments(x, l, c), n);
      const f32v by = splat(f.factor), shift = splat(f.summand);
      for_channel(l, c, [=](int64_t at, int64_t lanes) {
        store_lanes(y + at, finish(load_lanes(x + at, lanes) * by + shift, at, lanes), lanes);
      });
    });
    return MYC_OK;
  }
  Scratch scratch(call);
  const PartSums sums(&scratch, call, l);
  const int64_t width = padded(l.channels);
  float* factor = scratch.take<float>(2 * width);
  if (!sums.total || !sums.floats || !factor) return MYC_E_MEMORY;
  float* summand = factor + width;
  row_moments(call, x, l, sums);
  const double *mean = sums.of(0), *variance = mean + l.channels;
  for (int64_t c = 0; c < l.channels; ++c) {
    const Affine f = t.record(c, {mean[c], variance[c]}, n);
    factor[c] = f.factor, summand[c] = f.summand;
  }
  for_rows(call, l, [=](int64_t at, int64_t c, int64_t lanes) {
    const f32v v = load_lanes(x + at, lanes) * load(factor + c) + load(summand + c);
    store_lanes(y + at, finish(v, at, lanes), lanes);
  });
  return MYC_OK;
}

// ---- its gradient ----

// dx = scale inv_std (dy - d_bias / n - x_hat d_scale / n): one factor each for dy and x, and a summand.
struct GradFactors {
  float by_dy, by_x, summand;
};

inline GradFactors grad_factors(float scale, float mean, float inv_std, double d_scale, double d_bias, double n) {
  const double by_dy = static_cast<double>(scale) * inv_std;
  const double by_x = -by_dy * inv_std * d_scale / n;
  return {static_cast<float>(by_dy), static_cast<float>(by_x),
          static_cast<float>(-by_dy * d_bias / n - by_x * mean)};
}

template <class T>
struct Gradient {
  const T* x;
  const float *scale, *mean, *inv_std;
  const float* bias;  // null if the gate does not ask for the normalized x
  T* dx;
  float *d_scale, *d_bias;
};

// The gradient of what was normalized is gate(offset, lanes, normalized x).
template <class T, class Gate>
MYC_INLINE int32_t gradient(const myc_call* call, const Layout& l, const Gradient<T>& g, const Gate& gate) {
  const T* x = g.x;
  const float* mean = g.mean;
  T* dx = g.dx;
  const double n = static_cast<double>(max(l.count(), int64_t{1}));
  const auto forward = [&](int64_t c) {
    return g.bias ? affine(g.scale[c], g.bias[c], mean[c], g.inv_std[c]) : Affine{0, 0};
  };
  const auto record = [&](int64_t c, double d, double p) {
    g.d_scale[c] = static_cast<float>(p), g.d_bias[c] = static_cast<float>(d);
    return grad_factors(g.scale[c], mean[c], g.inv_std[c], p, d, n);
  };
  if (by_planes(l)) {
    parallel_rows(call, l.channels, l.count() * kWork, [&](int64_t c) {
      const Affine a = forward(c);
      const f32v center = splat(mean[c]), factor = splat(a.factor), offset = splat(a.summand);
      double sums[2];
      channel_sums(l, c, sums, [=](int64_t at, int64_t lanes, f32v* s) {
        const f32v v = load_lanes(x + at, lanes), d = gate(at, lanes, v * factor + offset);
        s[0] += d;
        s[1] += d * (v - center);
      });
      const GradFactors f = record(c, sums[0], sums[1] * g.inv_std[c]);
      const f32v by_dy = splat(f.by_dy), by_x = splat(f.by_x), shift = splat(f.summand);
      for_channel(l, c, [=](int64_t at, int64_t lanes) {
        const f32v v = load_lanes(x + at, lanes), d = gate(at, lanes, v * factor + offset);
        store_lanes(dx + at, d * by_dy + (v * by_x + shift), lanes);
      });
    });
    return MYC_OK;
  }
  Scratch scratch(call);
  const PartSums sums(&scratch, call, l);
  const int64_t width = padded(l.channels);
  float* by_dy = scratch.take<float>(6 * width);
  if (!sums.total || !sums.floats || !by_dy) return MYC_E_MEMORY;
  float *by_x = by_dy + width, *summand = by_x + width, *factor = summand + width, *offset = factor + width;
  float* center = offset + width;  // whole vectors can be read from it
  memset(center, 0, width * sizeof(float));
  memcpy(center, mean, l.channels * sizeof(float));
  for (int64_t c = 0; c < l.channels; ++c) {
    const Affine a = forward(c);
    factor[c] = a.factor, offset[c] = a.summand;
  }
  for_parts(call, l, sums, [&](int64_t part, int64_t begin, int64_t end, float* floats) {
    part_sums(l, begin, end, floats, sums.of(part), [=](int64_t at, int64_t c, int64_t lanes, f32v* s) {
      const f32v v = load_lanes(x + at, lanes);
      const f32v d = gate(at, lanes, v * load(factor + c) + load(offset + c));
      s[0] += d;
      s[1] += d * (v - load(center + c));
    });
  });
  for (int64_t c = 0; c < l.channels; ++c) {
    double d = 0, p = 0;
    for (int64_t part = 0; part < sums.parts; ++part) d += sums.of(part)[c], p += sums.of(part)[l.channels + c];
    const GradFactors f = record(c, d, p * g.inv_std[c]);
    by_dy[c] = f.by_dy, by_x[c] = f.by_x, summand[c] = f.summand;
  }
  for_rows(call, l, [=](int64_t at, int64_t c, int64_t lanes) {
    const f32v v = load_lanes(x + at, lanes);
    const f32v d = gate(at, lanes, v * load(factor + c) + load(offset + c));
    store_lanes(dx + at, d * load(by_dy + c) + (v * load(by_x + c) + load(summand + c)), lanes);
  });
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA::batch_norm

#endif  // MYCELIA_NORM_BATCH_H_
