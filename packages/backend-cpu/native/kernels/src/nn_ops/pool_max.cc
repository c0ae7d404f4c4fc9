// Largest elements of windows, regular and adaptive, with the channels first, their indices and their gradient.
// All of them are bound by memory: 4 bytes read an input element, 4 written an output element.
#include "nn_ops/pool.h"
#include "simd/transpose.h"

namespace mycelia::MYC_ISA {
namespace {

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

// Rows without padding, 2 x 2 windows side by side: the case of most networks.
bool is_two_by_two(const Pool& p) {
  const auto pairs = [](const Axis& a) {
    return a.kernel == 2 && a.stride == 2 && a.dilation == 1 && a.before == 0 && a.out * 2 <= a.in;
  };
  return p.axis[0].in == 1 && p.axis[0].kernel == 1 && p.axis[0].before == 0 && pairs(p.axis[1]) &&
         pairs(p.axis[2]);
}

// Even and odd elements of 2 * kLanes floats, and back.
constexpr int even_lane(int l) { return 2 * l; }
constexpr int odd_lane(int l) { return 2 * l + 1; }
constexpr int low_pair(int l) { return l / 2 + (l % 2 ? kLanes : 0); }
constexpr int high_pair(int l) { return low_pair(l) + kLanes / 2; }

MYC_INLINE void split_pairs(const float* from, f32v* even, f32v* odd) {
  const f32v a = load(from), b = load(from + kLanes);
  *even = shuffle<even_lane>(a, b);
  *odd = shuffle<odd_lane>(a, b);
}
MYC_INLINE void join_pairs(float* to, f32v even, f32v odd) {
  store(to, shuffle<low_pair>(even, odd));
  store(to + kLanes, shuffle<high_pair>(even, odd));
}

// n windows of 2 x 2.
void max_two_rows(const float* a, const float* b, int64_t n, float* y) {
  const auto windows = [](const auto& row, const float* a, const float* b) __attribute__((always_inline)) {
    f32v v0, v1, v2, v3;
    row(a, &v0, &v1);
    row(b, &v2, &v3);
    return max_or_second(v3, max_or_second(v2, max_or_second(v1, max_or_second(v0, splat(-INFINITY)))));
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, windows(split_pairs, a + 2 * i, b + 2 * i));
  if (i == n) return;
  const int64_t floats = 2 * (n - i);
  const auto rest = [=](const float* from, f32v* even, f32v* odd) __attribute__((always_inline)) {
    const f32v first = load_partial(from, min<int64_t>(floats, kLanes));
    const f32v second = floats > kLanes ? load_partial(from + kLanes, floats - kLanes) : f32v{};
    *even = shuffle<even_lane>(first, second);
    *odd = shuffle<odd_lane>(first, second);
  };
  store_partial(y + i, windows(rest, a + 2 * i, b + 2 * i), n - i);
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

// One plane of adaptive windows.
void adaptive_max_plane(const Pool& p, const float* x, float* y) {
  const Axis &az = p.axis[0], &ay = p.axis[1], &ae = p.axis[2];
  for (int64_t z = 0; z < az.out; ++z)
    for (int64_t r = 0; r < ay.out; ++r, y += ae.out) {
      for (int64_t e = 0; e < ae.out; ++e) y[e] = -INFINITY;
      for (int64_t i = az.first(z), iz = az.last(z); i < iz; ++i)
        for (int64_t j = ay.first(r), jy = ay.last(r); j < jy; ++j) {
          const float* row = x + (i * ay.in + j) * ae.in;
          for (int64_t e = 0; e < ae.out; ++e)
            for (int64_t k = ae.first(e), ke = ae.last(e); k < ke; ++k) y[e] = row[k] > y[e] ? row[k] : y[e];
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
    whole_ = ceil_div(before, stride), rest_ = whole_ * stride - before;
    whole_end_ = ceil_div(before + in, stride), rest_end_ = whole_end_ * stride - before - in;
  }
  int64_t floats() const { return stride * length; }

  // Elements [begin, end) of phase f are data: ceil((before - f) / stride) without a division.
  int64_t begin(int64_t f) const { return clamp(whole_ - (rest_ + f >= stride), int64_t{0}, length); }
  int64_t end(int64_t f) const { return clamp(whole_end_ - (rest_end_ + f >= stride), begin(f), length); }

  // body(i) for kLanes elements of both phases of stride 2 at a time, some of them twice; returns the first element
  // behind them.
  template <class Body>
  MYC_INLINE int64_t for_pairs(const Body& body) const {
    const int64_t first = begin(0), stop = min(end(0), end(1));
    if (stop - first < kLanes) return first;
    for (int64_t i = first; i + kLanes < stop; i += kLanes) body(i);
    body(stop - kLanes);
    return stop;
  }

  void split(const float* row, float* to) const {
    const f32v least = splat(-INFINITY);
    int64_t done = -1;
    if (stride == 2) {
      done = for_pairs([&](int64_t i) {
        f32v even, odd;
        split_pairs(row + 2 * i - before, &even, &odd);
        store(to + i, max_or_second(even, least));
        store(to + length + i, max_or_second(odd, least));
      });
    }
    for (int64_t f = 0; f < stride; ++f, to += length) {
      const int64_t first = begin(f), last = end(f);
      const float* from = row + f - before;
      for (int64_t i = 0; i < first; ++i) to[i] = NAN;
      int64_t i = first;
      if (done > begin(0)) {  // phase 1 may begin one element before phase 0, where pairs begin
        for (; i < begin(0); ++i) to[i] = from[i * stride] > -INFINITY ? from[i * stride] : -INFINITY;
        i = done;
      }
      for (; i < last; ++i) to[i] = from[i * stride] > -INFINITY ? from[i * stride] : -INFINITY;
      for (i = last; i < length; ++i) to[i] = NAN;
    }
  }

 private:
  int64_t whole_, rest_, whole_end_, rest_end_;
};

// y = the largest element of each of n windows side by side.  taps: place of each tap of the first window in `values`;
// whole vectors are read behind the last window.
template <int kTaps>  // 0: `count` of them
__attribute__((noinline)) void find_peaks(const float* values, const int64_t* taps, int64_t count, float* y,
                                          int64_t n) {
  for (int64_t e = 0; e < n; e += kLanes) {
    f32v peak = splat(-INFINITY);
#pragma GCC unroll 9
    for (int64_t t = 0; t < (kTaps ? kTaps : count); ++t) peak = max_or_second(load(values + taps[t] + e), peak);
    if (e + kLanes <= n) {
      store(y + e, peak);
    } else {
      store_partial(y + e, peak, n - e);
    }
  }
}

// dy of each window is added to the first tap that holds the largest element: to sums[places[t] + window] for tap t.
// Whole vectors are read and written behind the last window, where dy counts as 0.
template <int kTaps>
__attribute__((noinline)) void add_to_first(const float* values, const int64_t* taps, float* sums,
                                            const int64_t* places, int64_t count, const float* dy, int64_t n) {
  for (int64_t e = 0; e < n; e += kLanes) {
    const f32v g = e + kLanes <= n ? load(dy + e) : load_partial(dy + e, n - e);
    f32v peak = splat(-INFINITY);
#pragma GCC unroll 9
    for (int64_t t = 0; t < (kTaps ? kTaps : count); ++t) peak = max_or_second(load(values + taps[t] + e), peak);
    i32v open = ~i32v{};  // windows whose element is not found yet
#pragma GCC unroll 9
    for (int64_t t = 0; t < (kTaps ? kTaps : count); ++t) {
      const i32v hit = (load(values + taps[t] + e) == peak) & open;
      open &= ~hit;
      float* to = sums + places[t] + e;
      store(to, load(to) + from_bits(bits(g) & hit));
    }
  }
}

// Planes of any geometry: rows of x in phases and, for the gradient, the sums that become rows of dx, one for each tap
// of a row, so that neighbouring windows do not add to the same place.  With one depth only the rows under a band of
// windows are in memory, so that they stay in L1.
class MaxPlane {
 public:
  MaxPlane(const Pool& p, bool gradient)
      : p_(p), phases_(p.axis[2]), gradient_(gradient), rolls_(p.axis[0].in == 1) {
    const Axis &ay = p.axis[1], &ae = p.axis[2];
    margin_ = (ae.kernel - 1) * ae.dilation / ae.stride + 1;
    line_ = 2 * margin_ + max(ae.out, phases_.length) + 2 * kLanes;
    value_row_ = phases_.floats(), sum_row_ = gradient ? ae.kernel * line_ : 0;
    const int64_t rows = p.axis[0].in * ay.in, span = (ay.kernel - 1) * ay.dilation + 1;
    rows_ = rolls_ ? min(rows, max(2 * span, kBandFloats / (value_row_ + sum_row_))) : rows;
    values_ = round_up(rows_ * value_row_ + kLanes, 16);
    sums_ = round_up(rows_ * sum_row_, 16);
  }
  int64_t bytes() const {
    const int64_t lists = 2 * taps() + 2 * p_.axis[2].kernel + p_.axis[2].stride + 1;
    return round_up((values_ + sums_) * int64_t{sizeof(float)} + lists * int64_t{sizeof(int64_t)}, 64);
  }

  void forward(const float* x, float* y, char* buffer) const { run(x, nullptr, y, nullptr, buffer); }
  void backward(const float* x, const float* dy, float* dx, char* buffer) const { run(x, dy, nullptr, dx, buffer); }

 private:
  static constexpr int64_t kBandFloats = 6144;  // 24 KB of L1

  // shifts: the place of tap t of the first window in a row of values.
  void list_columns(int64_t* shifts, int64_t* columns, int64_t* starts) const {
    const Axis& ae = p_.axis[2];
    for (int64_t t = 0; t < ae.kernel; ++t)
      shifts[t] = t * ae.dilation % ae.stride * phases_.length + t * ae.dilation / ae.stride;
    int64_t count = 0;
    for (int64_t f = 0; f < ae.stride; ++f) {
      starts[f] = count;
      for (int64_t t = 0; t < ae.kernel; ++t)
        if (t * ae.dilation % ae.stride == f) columns[count++] = t * line_ + margin_ - t * ae.dilation / ae.stride;
    }
    starts[ae.stride] = count;
  }

  void run(const float* x, const float* dy, float* y, float* dx, char* buffer) const {
    const Axis &az = p_.axis[0], &ay = p_.axis[1], &ae = p_.axis[2];
    const int64_t all = az.in * ay.in;
    float *values = reinterpret_cast<float*>(buffer), *sums = values + values_;
    int64_t *at = reinterpret_cast<int64_t*>(sums + sums_), *places = at + taps(), *shifts = places + taps(),
            *columns = shifts + ae.kernel, *starts = columns + ae.kernel;
    list_columns(shifts, columns, starts);
    int64_t base = 0, loaded = 0;  // rows [base, loaded) are in memory
    const auto finish = [&](int64_t until) {  // rows before `until` are not needed any more
      if (gradient_) {
        for (int64_t r = base; r < min(until, loaded); ++r)
          join(sums + (r - base) * sum_row_, columns, starts, dx + r * ae.in);
        for (int64_t r = loaded; r < until; ++r) memset(dx + r * ae.in, 0, ae.in * sizeof(float));
      }
      const int64_t kept = max(loaded - until, int64_t{0});
      memmove(values, values + (until - base) * value_row_, kept * value_row_ * sizeof(float));
      memmove(sums, sums + (until - base) * sum_row_, kept * sum_row_ * sizeof(float));
      base = until, loaded = base + kept;
    };
    for (int64_t z = 0; z < az.out; ++z) {
      for (int64_t r = 0, window = z * ay.out * ae.out; r < ay.out; ++r, window += ae.out) {
        const int64_t first = ay.first(r), last = ay.last(r), until = rolls_ ? last : all;
        if (first < last) {
          if (until - base > rows_) finish(first);
          for (; loaded < until; ++loaded) {
            phases_.split(x + loaded * ae.in, values + (loaded - base) * value_row_);
            memset(sums + (loaded - base) * sum_row_, 0, sum_row_ * sizeof(float));
          }
        }
        int64_t count = 0;
        for (int64_t i = az.first(z), iz = az.last(z); i < iz; i += az.dilation)
          for (int64_t j = first; j < last; j += ay.dilation)
            for (int64_t t = 0; t < ae.kernel; ++t, ++count) {
              const int64_t row = i * ay.in + j - base;
              at[count] = row * value_row_ + shifts[t];
              places[count] = row * sum_row_ + t * line_ + margin_;
            }
        if (gradient_) {
          (count == 9 ? add_to_first<9> : count == 4 ? add_to_first<4> : add_to_first<0>)(
              values, at, sums, places, count, dy + window, ae.out);
        } else {
          (count == 9 ? find_peaks<9> : count == 4 ? find_peaks<4> : find_peaks<0>)(values, at, count, y + window,
                                                                                    ae.out);
        }
      }
    }
    if (gradient_) finish(all);
  }

  // A row of dx: element i of phase f is the sum over the taps of that phase, each of the window that it belongs to.
  // columns: the places of element 0 in the sums, phase by phase; starts[f]: where phase f begins in that list.
  void join(const float* sums, const int64_t* columns, const int64_t* starts, float* row) const {
    const Axis& ae = p_.axis[2];
    const auto total = [&](int64_t f, int64_t i) __attribute__((always_inline)) {
      f32v sum = {};
      for (int64_t t = starts[f]; t < starts[f + 1]; ++t) sum += load(sums + columns[t] + i);
      return sum;
    };
    const auto one = [&](int64_t f, int64_t i) {
      float sum = 0;
      for (int64_t t = starts[f]; t < starts[f + 1]; ++t) sum += sums[columns[t] + i];
      return sum;
    };
    int64_t done = -1;
    if (ae.stride == 2) {
      done = phases_.for_pairs([&](int64_t i) { join_pairs(row + 2 * i - ae.before, total(0, i), total(1, i)); });
    }
    for (int64_t f = 0; f < ae.stride; ++f) {
      int64_t i = phases_.begin(f);
      const int64_t last = phases_.end(f);
      float* to = row + f - ae.before;
      if (done > phases_.begin(0)) {
        for (; i < phases_.begin(0); ++i) to[i * ae.stride] = one(f, i);
        i = done;
      }
      if (ae.stride == 1)
        for (; i + kLanes <= last; i += kLanes) store(to + i, total(f, i));
      for (; i < last; ++i) to[i * ae.stride] = one(f, i);
    }
  }

  int64_t taps() const { return p_.axis[0].kernel * p_.axis[1].kernel * p_.axis[2].kernel; }

  const Pool& p_;
  PhaseRow phases_;
  bool gradient_, rolls_;
  int64_t margin_, line_;  // of the sums of one tap of a row: zeros around them, floats
  int64_t value_row_, sum_row_, rows_, values_, sums_;
};

int32_t run_max(const myc_call* call, const Pool& p) {
  const float* x = in<float>(call);
  float* y = out<float>(call);
  const bool pairs = is_two_by_two(p), regular = p.axis[2].kernel > 0;
  if (!pairs && regular) {
    Scratch scratch(call);
    const MaxPlane maximum(p, false);
    char* buffers = scratch.take<char>(max_workers(call) * maximum.bytes());
    if (!buffers) return MYC_E_MEMORY;
    parallel_for_worker(call, p.planes(), plane_grain(p), [&](int64_t begin, int64_t end, int32_t worker) {
      for (int64_t i = begin; i < end; ++i)
        maximum.forward(x + i * p.in_plane(), y + i * p.out_plane(), buffers + worker * maximum.bytes());
    });
    return MYC_OK;
  }
  parallel_for(call, p.planes(), plane_grain(p), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const float* from = x + plane * p.in_plane();
      float* to = y + plane * p.out_plane();
      if (!pairs) {
        adaptive_max_plane(p, from, to);
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
  parallel_for(call, p.planes(), plane_grain(p), [&](int64_t begin, int64_t end) {
    for_each_window(p, begin, end, [&](int64_t plane, int64_t window, int64_t z, int64_t r, int64_t e) {
      y[plane * p.out_plane() + window] = find_max(p, x + plane * p.in_plane(), z, r, e);
    });
  });
  return MYC_OK;
}

}  // namespace

KERNEL_FN(max_pool, f32) {
  const auto& a = attrs<myc_max_pool_attrs>(call);
  const Pool p = regular_pool(input(call), output(call), a.data_format, a.kernel, a.stride, a.pad, &a.dilation);
  return p.last ? max_pool_last(call, p, in<float>(call), out<float>(call)) : run_max(call, p);
}

KERNEL_FN(max_pool_index, f32) {
  const auto& a = attrs<myc_max_pool_index_attrs>(call);
  return run_max_index(call, regular_pool(input(call), output(call), 0, a.kernel, a.stride, a.pad, &a.dilation));
}

// The peak is looked up again in x: cheaper than to write and read indices, and inference needs none.
KERNEL_FN(max_pool_grad, f32) {
  const auto& a = attrs<myc_max_pool_grad_attrs>(call);
  const Pool p = regular_pool(input(call, 0), input(call, 1), a.data_format, a.kernel, a.stride, a.pad, &a.dilation);
  const float *x = in<float>(call, 0), *dy = in<float>(call, 1);
  float* dx = out<float>(call);
  if (p.last) return max_pool_last_grad(call, p, x, dy, dx);
  if (!is_two_by_two(p)) {
    Scratch scratch(call);
    const MaxPlane maximum(p, true);
    char* buffers = scratch.take<char>(max_workers(call) * maximum.bytes());
    if (!buffers) return MYC_E_MEMORY;
    parallel_for_worker(call, p.planes(), plane_grain(p), [&](int64_t begin, int64_t end, int32_t worker) {
      for (int64_t i = begin; i < end; ++i)
        maximum.backward(x + i * p.in_plane(), dy + i * p.out_plane(), dx + i * p.in_plane(),
                         buffers + worker * maximum.bytes());
    });
    return MYC_OK;
  }
  const int64_t height = p.axis[1].in, width = p.axis[2].in, n = p.axis[2].out, rows = p.axis[1].out;
  parallel_for(call, p.planes(), plane_grain(p), [&](int64_t begin, int64_t end) {
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

}  // namespace mycelia::MYC_ISA
