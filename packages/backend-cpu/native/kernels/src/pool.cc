// Pooling: largest element and mean of windows, regular and adaptive, with their gradients.
// All of them are bound by memory: 4 bytes read an input element, 4 written an output element.
#include "simd/vec.h"

namespace mycelia::MYC_ISA {
namespace {

// Windows along one axis: window p covers elements begin(p) + t * dilation inside [0, in), t < taps.
struct Axis {
  int64_t in, out;
  int64_t kernel = 0, stride = 0, dilation = 1, before = 0, after = 0;  // kernel 0: adaptive

  int64_t begin(int64_t p) const { return kernel ? p * stride - before : p * in / out; }
  int64_t end(int64_t p) const {
    return kernel ? begin(p) + (kernel - 1) * dilation + 1 : ceil_div((p + 1) * in, out);
  }
  // The part inside the data, on the dilation's grid: first element and one behind the last.
  int64_t first(int64_t p) const {
    const int64_t b = begin(p);
    return b < 0 ? b + ceil_div(-b, dilation) * dilation : b;
  }
  int64_t last(int64_t p) const { return min(in, end(p)); }
  // Elements that a mean counts.
  int64_t counted(int64_t p, bool padding) const {
    return padding ? min(end(p), in + after) - begin(p) : min(end(p), in) - max(begin(p), int64_t{0});
  }
};

// Depth, height and width of x (or of the data a gradient is for) and of the windows; missing axes have
// extent 1.
struct Pool {
  int64_t planes;
  Axis axis[3];

  int64_t in_plane() const { return axis[0].in * axis[1].in * axis[2].in; }
  int64_t out_plane() const { return axis[0].out * axis[1].out * axis[2].out; }
};

int64_t entry(const myc_ints& list, int i) { return list.v[list.n == 1 ? 0 : i]; }

Pool adaptive_pool(const myc_tensor& data, const myc_tensor& windows) {
  Pool p;
  p.planes = data.shape[0] * data.shape[1];
  const int rank = data.rank - 2;
  for (int d = 0; d < 3; ++d) {
    const int i = d - (3 - rank);
    p.axis[d] = {i < 0 ? 1 : data.shape[2 + i], i < 0 ? 1 : windows.shape[2 + i]};
  }
  return p;
}

Pool regular_pool(const myc_tensor& data, const myc_tensor& windows, const myc_ints& kernel,
                  const myc_ints& stride, const myc_ints& pad, const myc_ints* dilation) {
  Pool p = adaptive_pool(data, windows);
  const int rank = data.rank - 2;
  for (int d = 0; d < 3; ++d) {
    const int i = d - (3 - rank);
    Axis& a = p.axis[d];
    a.kernel = i < 0 ? 1 : entry(kernel, i), a.stride = i < 0 ? 1 : entry(stride, i);
    a.dilation = i < 0 || !dilation ? 1 : entry(*dilation, i);
    a.before = i < 0 ? 0 : entry(pad, i), a.after = i < 0 ? 0 : entry(pad, rank + i);
  }
  return p;
}

// ---- maximum ----

// Flat index of the first largest element of a window, 0 when it holds none; NaN is never the largest.
int64_t find_max(const Pool& p, const float* x, int64_t z, int64_t y, int64_t e) {
  const Axis &az = p.axis[0], &ay = p.axis[1], &ae = p.axis[2];
  int64_t best = -1;
  float peak = -INFINITY;
  for (int64_t i = az.first(z), iz = az.last(z); i < iz; i += az.dilation)
    for (int64_t j = ay.first(y), jy = ay.last(y); j < jy; j += ay.dilation)
      for (int64_t k = ae.first(e), ke = ae.last(e); k < ke; k += ae.dilation) {
        const int64_t at = (i * ay.in + j) * ae.in + k;
        if (x[at] > peak || best < 0) {
          peak = x[at] == x[at] ? x[at] : -INFINITY;
          best = at;
        }
      }
  return max(best, int64_t{0});
}

template <class Body>  // body(plane, window, z, y, x) for every window of planes [begin, end)
MYC_INLINE void for_each_window(const Pool& p, int64_t begin, int64_t end, const Body& body) {
  for (int64_t plane = begin; plane < end; ++plane) {
    int64_t window = 0;
    for (int64_t z = 0; z < p.axis[0].out; ++z)
      for (int64_t y = 0; y < p.axis[1].out; ++y)
        for (int64_t e = 0; e < p.axis[2].out; ++e) body(plane, window++, z, y, e);
  }
}

int64_t plane_grain(const Pool& p) { return kMinParallelWork / (8 * (p.in_plane() + p.out_plane()) + 1) + 1; }

// Rows without padding, 2 x 2 windows side by side: the case of most networks.
bool is_two_by_two(const Pool& p) {
  const auto pairs = [](const Axis& a) {
    return a.kernel == 2 && a.stride == 2 && a.dilation == 1 && a.before == 0 && a.out * 2 <= a.in;
  };
  return p.axis[0].in == 1 && p.axis[0].kernel == 1 && p.axis[0].before == 0 && pairs(p.axis[1]) &&
         pairs(p.axis[2]);
}

void max_two_rows(const float* a, const float* b, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) {
    float m = a[2 * i] > -INFINITY ? a[2 * i] : -INFINITY;
    m = a[2 * i + 1] > m ? a[2 * i + 1] : m;
    m = b[2 * i] > m ? b[2 * i] : m;
    y[i] = b[2 * i + 1] > m ? b[2 * i + 1] : m;
  }
}

// Even and odd elements of 2 * kLanes floats, and back.
MYC_INLINE void split_pairs(const float* from, f32v* even, f32v* odd) {
  const f32v a = load(from), b = load(from + kLanes);
  *even = __builtin_shuffle(a, b, iota() * 2);
  *odd = __builtin_shuffle(a, b, iota() * 2 + 1);
}
MYC_INLINE void join_pairs(float* to, f32v even, f32v odd) {
  const i32v low = iota() / 2 + (iota() & 1) * kLanes;
  store(to, __builtin_shuffle(even, odd, low));
  store(to + kLanes, __builtin_shuffle(even, odd, low + kLanes / 2));
}

// kLanes windows of 2 x 2: g goes to the first of four that equals the peak; a window of NaN counts as its
// first.
MYC_INLINE void max_pairs_grad(const float* a, const float* b, const float* dy, float* da, float* db) {
  f32v v0, v1, v2, v3;
  split_pairs(a, &v0, &v1);
  split_pairs(b, &v2, &v3);
  const f32v g = load(dy), none = f32v{};
  f32v m = max_or_second(v0, splat(-INFINITY));
  m = max_or_second(v3, max_or_second(v2, max_or_second(v1, m)));
  const i32v h1 = v1 == m, h2 = v2 == m, h3 = v3 == m;
  const i32v first = (v0 == m) | ~(h1 | h2 | h3), second = h1 & ~first, third = h2 & ~(first | second);
  const i32v fourth = ~(first | second | third);
  join_pairs(da, select(first, g, none), select(second, g, none));
  join_pairs(db, select(third, g, none), select(fourth, g, none));
}

// n windows.  `spill`: reading and writing up to 2 * kLanes floats behind both rows does no harm, because
// they are written again later.
void max_two_rows_grad(const float* a, const float* b, const float* dy, int64_t n, float* da, float* db,
                       bool spill) {
  if (n >= kLanes || spill) {
    for (int64_t i = 0; i < n; i += kLanes) {
      if (i + kLanes > n && n >= kLanes) i = n - kLanes;  // overlaps the block before
      max_pairs_grad(a + 2 * i, b + 2 * i, dy + i, da + 2 * i, db + 2 * i);
    }
    return;
  }
  float rows[4][2 * kLanes] = {}, g[kLanes] = {};
  memcpy(rows[0], a, 2 * n * sizeof(float));
  memcpy(rows[1], b, 2 * n * sizeof(float));
  memcpy(g, dy, n * sizeof(float));
  max_pairs_grad(rows[0], rows[1], g, rows[2], rows[3]);
  memcpy(da, rows[2], 2 * n * sizeof(float));
  memcpy(db, rows[3], 2 * n * sizeof(float));
}

// One plane of any geometry, separably where windows are dense: every element of x is compared kernel-width
// times.
void max_plane(const Pool& p, const float* x, float* y) {
  const Axis &az = p.axis[0], &ay = p.axis[1], &ae = p.axis[2];
  for (int64_t z = 0; z < az.out; ++z)
    for (int64_t r = 0; r < ay.out; ++r, y += ae.out) {
      for (int64_t e = 0; e < ae.out; ++e) y[e] = -INFINITY;
      for (int64_t i = az.first(z), iz = az.last(z); i < iz; i += az.dilation)
        for (int64_t j = ay.first(r), jy = ay.last(r); j < jy; j += ay.dilation) {
          const float* row = x + (i * ay.in + j) * ae.in;
          if (ae.kernel == 0) {
            for (int64_t e = 0; e < ae.out; ++e)
              for (int64_t k = ae.first(e), ke = ae.last(e); k < ke; ++k)
                y[e] = row[k] > y[e] ? row[k] : y[e];
            continue;
          }
          for (int64_t t = 0; t < ae.kernel; ++t) {  // windows whose tap t lies inside the row
            const int64_t shift = t * ae.dilation - ae.before;
            const int64_t begin = min(ae.out, shift < 0 ? ceil_div(-shift, ae.stride) : 0);
            const int64_t end = ae.in > shift ? min(ae.out, ceil_div(ae.in - shift, ae.stride)) : 0;
            const float* from = row + shift;
            if (ae.stride == 1) {
              for (int64_t e = begin; e < end; ++e) y[e] = from[e] > y[e] ? from[e] : y[e];
            } else if (ae.stride == 2) {
              for (int64_t e = begin; e < end; ++e) y[e] = from[2 * e] > y[e] ? from[2 * e] : y[e];
            } else {
              for (int64_t e = begin; e < end; ++e)
                y[e] = from[e * ae.stride] > y[e] ? from[e * ae.stride] : y[e];
            }
          }
        }
    }
}

// A row of x with its padding, split by the stride: element i of phase f is padded element i * stride + f.
// NaN in the data becomes -inf and padding becomes NaN, so that a comparison never finds either of them.
struct PhaseRow {
  int64_t stride, before, in, length;  // length: of a phase

  explicit PhaseRow(const Axis& a) : stride(a.stride), before(a.before), in(a.in) {
    length =
        ceil_div(max(a.before + a.in, (a.out - 1) * a.stride + (a.kernel - 1) * a.dilation + 1), a.stride);
  }
  int64_t floats() const { return stride * length; }

  void split(const float* row, float* to) const {
    for (int64_t f = 0; f < stride; ++f, to += length) {
      const int64_t begin = min(length, max(int64_t{0}, ceil_div(before - f, stride)));
      const int64_t end = max(begin, min(length, ceil_div(before + in - f, stride)));
      const float* from = row + f - before;
      for (int64_t i = 0; i < begin; ++i) to[i] = NAN;
      for (int64_t i = begin; i < end; ++i)
        to[i] = from[i * stride] > -INFINITY ? from[i * stride] : -INFINITY;
      for (int64_t i = end; i < length; ++i) to[i] = NAN;
    }
  }
  void join(const float* from, float* row) const {
    for (int64_t f = 0; f < stride; ++f, from += length) {
      const int64_t begin = max(int64_t{0}, ceil_div(before - f, stride)),
                    end = ceil_div(before + in - f, stride);
      for (int64_t i = begin; i < end; ++i) row[i * stride + f - before] = from[i];
    }
  }
};

// Gradient of one plane: x in phases, the peaks of a row of windows, and every dy to the first tap that
// equals its peak.  `split` and `sums` hold the plane's rows in phases, `peak` one row of windows.
void max_plane_grad(const Pool& p, const PhaseRow& phases, const float* x, const float* dy, float* dx,
                    float* split, float* sums, float* peak) {
  const Axis &az = p.axis[0], &ay = p.axis[1], &ae = p.axis[2];
  const int64_t rows = az.in * ay.in, floats = phases.floats();
  for (int64_t r = 0; r < rows; ++r) phases.split(x + r * ae.in, split + r * floats);
  memset(sums, 0, rows * floats * sizeof(float));
  for (int64_t z = 0; z < az.out; ++z) {
    for (int64_t y = 0; y < ay.out; ++y, dy += ae.out) {
      for (int64_t e = 0; e < ae.out; ++e) peak[e] = -INFINITY;
      for (int pass = 0; pass < 2; ++pass) {
        for (int64_t i = az.first(z), iz = az.last(z); i < iz; i += az.dilation) {
          for (int64_t j = ay.first(y), jy = ay.last(y); j < jy; j += ay.dilation) {
            for (int64_t t = 0; t < ae.kernel; ++t) {
              const int64_t at = (i * ay.in + j) * floats + t * ae.dilation % ae.stride * phases.length +
                                 t * ae.dilation / ae.stride;
              const float* value = split + at;
              if (pass == 0) {
                for (int64_t e = 0; e < ae.out; ++e) peak[e] = value[e] > peak[e] ? value[e] : peak[e];
                continue;
              }
              float* sum = sums + at;
              for (int64_t e = 0; e < ae.out; ++e) {
                const bool hit = value[e] == peak[e];
                sum[e] += hit ? dy[e] : 0.0f;
                peak[e] = hit ? NAN : peak[e];  // found: equals nothing any more
              }
            }
          }
        }
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r) phases.join(sums + r * floats, dx + r * ae.in);
}

int32_t run_max(const myc_call* call, const Pool& p) {
  const float* x = in<float>(call);
  float* y = out<float>(call);
  const bool pairs = is_two_by_two(p);
  parallel_for(call, p.planes, plane_grain(p), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const float* from = x + plane * p.in_plane();
      float* to = y + plane * p.out_plane();
      if (!pairs) {
        max_plane(p, from, to);
        continue;
      }
      const int64_t width = p.axis[2].in, n = p.axis[2].out;
      for (int64_t r = 0; r < p.axis[1].out; ++r)
        max_two_rows(from + 2 * r * width, from + (2 * r + 1) * width, n, to + r * n);
    }
  });
  return MYC_OK;
}

int32_t run_max_index(const myc_call* call, const Pool& p) {
  const float* x = in<float>(call);
  int64_t* y = out<int64_t>(call);
  parallel_for(call, p.planes, plane_grain(p), [&](int64_t begin, int64_t end) {
    for_each_window(p, begin, end, [&](int64_t plane, int64_t window, int64_t z, int64_t r, int64_t e) {
      y[plane * p.out_plane() + window] = find_max(p, x + plane * p.in_plane(), z, r, e);
    });
  });
  return MYC_OK;
}

// ---- mean ----

// to[e] (+)= sum of row[k] over window e.
void sum_row(const Axis& a, const float* row, float* to) {
  if (a.kernel == 0) {
    for (int64_t e = 0; e < a.out; ++e)
      for (int64_t k = a.first(e), end = a.last(e); k < end; ++k) to[e] += row[k];
    return;
  }
  for (int64_t t = 0; t < a.kernel; ++t) {
    const int64_t shift = t - a.before;
    const int64_t begin = min(a.out, shift < 0 ? ceil_div(-shift, a.stride) : 0);
    const int64_t end = a.in > shift ? min(a.out, ceil_div(a.in - shift, a.stride)) : 0;
    const float* from = row + shift;
    if (a.stride == 2) {
      for (int64_t e = begin; e < end; ++e) to[e] += from[2 * e];
    } else {
      for (int64_t e = begin; e < end; ++e) to[e] += from[e * a.stride];
    }
  }
}

// row[k] += sum of from[e] over the windows e that hold k.
void spread_row(const Axis& a, const float* from, float* row) {
  if (a.kernel == 0) {
    for (int64_t e = 0; e < a.out; ++e)
      for (int64_t k = a.first(e), end = a.last(e); k < end; ++k) row[k] += from[e];
    return;
  }
  for (int64_t t = 0; t < a.kernel; ++t) {
    const int64_t shift = t - a.before;
    const int64_t begin = min(a.out, shift < 0 ? ceil_div(-shift, a.stride) : 0);
    const int64_t end = a.in > shift ? min(a.out, ceil_div(a.in - shift, a.stride)) : 0;
    float* to = row + shift;
    for (int64_t e = begin; e < end; ++e) to[e * a.stride] += from[e];
  }
}

// What the sum of each window is multiplied by, one row of windows at a time: scale(z, y)[e].
struct Scale {
  bool padding;
  int64_t divisor;

  float of(const Pool& p, int64_t z, int64_t y, int64_t e) const {
    if (divisor) return 1.0f / static_cast<float>(divisor);
    const int64_t n = max(int64_t{1}, p.axis[0].counted(z, padding)) *
                      max(int64_t{1}, p.axis[1].counted(y, padding)) *
                      max(int64_t{1}, p.axis[2].counted(e, padding));
    return 1.0f / static_cast<float>(n);
  }
};

// One window that covers everything: global pooling.
bool is_whole_plane(const Pool& p) {
  for (const Axis& a : p.axis)
    if (a.out != 1 || a.begin(0) > 0 || a.end(0) < a.in) return false;
  return true;
}

// Scales of all windows of a plane; null when memory is exhausted.
const float* window_scales(const Pool& p, const Scale& scale, Scratch* scratch) {
  float* all = scratch->take<float>(p.out_plane());
  if (all == nullptr) return nullptr;
  for_each_window(p, 0, 1, [&](int64_t, int64_t window, int64_t z, int64_t y, int64_t e) {
    all[window] = scale.of(p, z, y, e);
  });
  return all;
}

int32_t run_mean(const myc_call* call, const Pool& p, const Scale& scale) {
  const float* x = in<float>(call);
  float* y = out<float>(call);
  if (p.planes == 0 || p.out_plane() == 0) return MYC_OK;
  if (is_whole_plane(p)) {
    const float factor = scale.of(p, 0, 0, 0);
    const int64_t n = p.in_plane();
    parallel_rows(call, p.planes, n * 4, [&](int64_t plane) {
      const float* from = x + plane * n;
      f32v sum[4] = {};
      int64_t i = 0;
      for (; i + 4 * kLanes <= n; i += 4 * kLanes)
        for (int v = 0; v < 4; ++v) sum[v] += load(from + i + v * kLanes);
      for (; i < n; i += kLanes) sum[0] += load_partial(from + i, min<int64_t>(kLanes, n - i));
      y[plane] = horizontal_sum((sum[0] + sum[1]) + (sum[2] + sum[3])) * factor;
    });
    return MYC_OK;
  }
  Scratch scratch(call);
  const float* scales = window_scales(p, scale, &scratch);
  if (!scales) return MYC_E_MEMORY;
  const Axis &az = p.axis[0], &ay = p.axis[1], &ae = p.axis[2];
  parallel_for(call, p.planes, plane_grain(p), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const float *from = x + plane * p.in_plane(), *factor = scales;
      float* to = y + plane * p.out_plane();
      for (int64_t z = 0; z < az.out; ++z)
        for (int64_t r = 0; r < ay.out; ++r, to += ae.out, factor += ae.out) {
          for (int64_t e = 0; e < ae.out; ++e) to[e] = 0;
          for (int64_t i = az.first(z), iz = az.last(z); i < iz; ++i)
            for (int64_t j = ay.first(r), jy = ay.last(r); j < jy; ++j)
              sum_row(ae, from + (i * ay.in + j) * ae.in, to);
          for (int64_t e = 0; e < ae.out; ++e) to[e] *= factor[e];
        }
    }
  });
  return MYC_OK;
}

int32_t run_mean_grad(const myc_call* call, const Pool& p, const Scale& scale) {
  const float* dy = in<float>(call);
  float* dx = out<float>(call);
  if (p.planes == 0 || p.in_plane() == 0) return MYC_OK;
  if (is_whole_plane(p)) {
    const float factor = scale.of(p, 0, 0, 0);
    const int64_t n = p.in_plane();
    parallel_rows(call, p.planes, n * 4, [&](int64_t plane) {
      const float v = dy[plane] * factor;
      float* to = dx + plane * n;
      for (int64_t i = 0; i < n; ++i) to[i] = v;
    });
    return MYC_OK;
  }
  Scratch scratch(call);
  const float* scales = window_scales(p, scale, &scratch);
  const Axis &az = p.axis[0], &ay = p.axis[1], &ae = p.axis[2];
  const int64_t workers = max_workers(call);
  float* rows = scratch.take<float>(workers * round_up(ae.out, 16));
  if (!scales || !rows) return MYC_E_MEMORY;
  parallel_for_worker(call, p.planes, plane_grain(p), [&](int64_t begin, int64_t end, int32_t worker) {
    float* scaled = rows + worker * round_up(ae.out, 16);
    for (int64_t plane = begin; plane < end; ++plane) {
      const float *from = dy + plane * p.out_plane(), *factor = scales;
      float* to = dx + plane * p.in_plane();
      memset(to, 0, p.in_plane() * sizeof(float));
      for (int64_t z = 0; z < az.out; ++z)
        for (int64_t r = 0; r < ay.out; ++r, from += ae.out, factor += ae.out) {
          for (int64_t e = 0; e < ae.out; ++e) scaled[e] = from[e] * factor[e];
          for (int64_t i = az.first(z), iz = az.last(z); i < iz; ++i)
            for (int64_t j = ay.first(r), jy = ay.last(r); j < jy; ++j)
              spread_row(ae, scaled, to + (i * ay.in + j) * ae.in);
        }
    }
  });
  return MYC_OK;
}

}  // namespace

KERNEL_FN(max_pool, f32) {
  const auto& a = attrs<myc_max_pool_attrs>(call);
  if (a.data_format != 0) return MYC_E_UNSUPPORTED;
  return run_max(call, regular_pool(input(call), output(call), a.kernel, a.stride, a.pad, &a.dilation));
}

KERNEL_FN(max_pool_index, f32) {
  const auto& a = attrs<myc_max_pool_index_attrs>(call);
  return run_max_index(call, regular_pool(input(call), output(call), a.kernel, a.stride, a.pad, &a.dilation));
}

// The peak is looked up again in x: cheaper than to write and read indices, and inference needs none.
KERNEL_FN(max_pool_grad, f32) {
  const auto& a = attrs<myc_max_pool_grad_attrs>(call);
  if (a.data_format != 0) return MYC_E_UNSUPPORTED;
  const Pool p = regular_pool(input(call, 0), input(call, 1), a.kernel, a.stride, a.pad, &a.dilation);
  const float *x = in<float>(call, 0), *dy = in<float>(call, 1);
  float* dx = out<float>(call);
  if (!is_two_by_two(p)) {
    Scratch scratch(call);
    const PhaseRow phases(p.axis[2]);
    const int64_t floats = round_up(p.axis[0].in * p.axis[1].in * phases.floats(), 16);
    const int64_t row = round_up(p.axis[2].out, 16), each = 2 * floats + row;
    float* buffers = scratch.take<float>(max_workers(call) * each);
    if (!buffers) return MYC_E_MEMORY;
    parallel_for_worker(call, p.planes, plane_grain(p), [&](int64_t begin, int64_t end, int32_t worker) {
      float* own = buffers + worker * each;
      for (int64_t i = begin; i < end; ++i)
        max_plane_grad(p, phases, x + i * p.in_plane(), dy + i * p.out_plane(), dx + i * p.in_plane(), own,
                       own + floats, own + 2 * floats);
    });
    return MYC_OK;
  }
  const int64_t height = p.axis[1].in, width = p.axis[2].in, n = p.axis[2].out, rows = p.axis[1].out;
  parallel_for(call, p.planes, plane_grain(p), [&](int64_t begin, int64_t end) {
    const float* last = dx + end * p.in_plane();
    const float* last_dy = dy + end * p.out_plane();
    for (int64_t plane = begin; plane < end; ++plane) {
      const float *from = x + plane * p.in_plane(), *g = dy + plane * p.out_plane();
      float* to = dx + plane * p.in_plane();
      for (int64_t r = 0; r < rows; ++r, from += 2 * width, to += 2 * width, g += n) {
        const bool spill = to + width + 2 * kLanes <= last && g + kLanes <= last_dy;
        max_two_rows_grad(from, from + width, g, n, to, to + width, spill);
        for (int64_t i = 2 * n; i < width; ++i) to[i] = to[width + i] = 0;  // columns behind the last window
      }
      memset(to, 0, (height - 2 * rows) * width * sizeof(float));
    }
  });
  return MYC_OK;
}

KERNEL_FN(adaptive_max_pool, f32) { return run_max(call, adaptive_pool(input(call), output(call))); }

KERNEL_FN(adaptive_max_pool_index, f32) {
  return run_max_index(call, adaptive_pool(input(call), output(call)));
}

KERNEL_FN(avg_pool, f32) {
  const auto& a = attrs<myc_avg_pool_attrs>(call);
  if (a.data_format != 0) return MYC_E_UNSUPPORTED;
  const Pool p = regular_pool(input(call), output(call), a.kernel, a.stride, a.pad, nullptr);
  return run_mean(call, p, {a.count_include_pad != 0, a.divisor});
}

KERNEL_FN(avg_pool_grad, f32) {
  const auto& a = attrs<myc_avg_pool_grad_attrs>(call);
  if (a.data_format != 0) return MYC_E_UNSUPPORTED;
  const Pool p = regular_pool(output(call), input(call), a.kernel, a.stride, a.pad, nullptr);
  return run_mean_grad(call, p, {a.count_include_pad != 0, a.divisor});
}

KERNEL_FN(adaptive_avg_pool, f32) {
  return run_mean(call, adaptive_pool(input(call), output(call)), {false, 0});
}

KERNEL_FN(adaptive_avg_pool_grad, f32) {
  return run_mean_grad(call, adaptive_pool(output(call), input(call)), {false, 0});
}

KERNEL_FN(pool_take, f32_i64) {
  const float* x = in<float>(call, 0);
  const int64_t* index = in<int64_t>(call, 1);
  float* y = out<float>(call);
  const int64_t planes = input(call, 1).shape[0] * input(call, 1).shape[1];
  if (planes == 0) return MYC_OK;
  const int64_t n = input(call, 1).size / planes, size = input(call, 0).size / planes;
  for (int64_t i = 0; i < planes; ++i, x += size, index += n, y += n)
    for (int64_t j = 0; j < n; ++j) {
      if (index[j] < 0 || index[j] >= size)
        return fail(call, "pool_take: index %lld is outside the plane of %lld elements",
                    static_cast<long long>(index[j]), static_cast<long long>(size));
      y[j] = x[index[j]];
    }
  return MYC_OK;
}

KERNEL_FN(pool_scatter, f32_i64) {
  const float* x = in<float>(call, 0);
  const int64_t* index = in<int64_t>(call, 1);
  float* y = out<float>(call);
  const int64_t planes = output(call).shape[0] * output(call).shape[1];
  memset(y, 0, output(call).size * sizeof(float));
  if (planes == 0) return MYC_OK;
  const int64_t n = input(call, 1).size / planes, size = output(call).size / planes;
  for (int64_t i = 0; i < planes; ++i, x += n, index += n, y += size)
    for (int64_t j = 0; j < n; ++j) {
      if (index[j] < 0 || index[j] >= size)
        return fail(call, "pool_scatter: index %lld is outside the plane of %lld elements",
                    static_cast<long long>(index[j]), static_cast<long long>(size));
      y[index[j]] += x[j];
    }
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
