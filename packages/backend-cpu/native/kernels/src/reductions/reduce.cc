// Reductions over any set of axes.  Extents of 1 are dropped and neighbours that are both reduced or both
// kept are merged; the reduced groups then go one by one, innermost first, each as rows ([outer, n]) or as
// columns ([outer, n, inner]). One read of the input; flops: one per element.  16-bit floats are widened in registers and
// go the same way; their results are rounded at the end.
#include "reductions/reduce_run.h"

namespace mycelia::MYC_ISA {

namespace {

constexpr int64_t kChain = 256;  // rows that one chain of additions takes: the same two levels for columns

// y[j] = reduction of x[r * stride + j] over r < n, for a few vectors of columns, kept in registers.
template <class Op, class Pre, int vectors, class T>
MYC_INLINE void reduce_strip(const T* x, int64_t n, int64_t stride, float* y) {
  f32v total[vectors];
  for (int64_t from = 0; from < n || from == 0; from += kChain) {
    f32v part[vectors];
    for (int v = 0; v < vectors; ++v) part[v] = splat(Op::identity);
    for (int64_t r = from; r < min(n, from + kChain); ++r) {
      for (int v = 0; v < vectors; ++v)
        part[v] = Op::step(part[v], Pre::of(load(x + r * stride + v * kLanes)));
    }
    for (int v = 0; v < vectors; ++v) total[v] = from == 0 ? part[v] : Op::step(total[v], part[v]);
  }
  for (int v = 0; v < vectors; ++v) store(y + v * kLanes, total[v]);
}

constexpr int64_t kStrip =
    512;  // columns whose partial results stay in L1 while rows stream by in long pieces

// The same for `width` <= kStrip columns, a multiple of the vector length; four rows at a time.
template <class Op, class Pre, class T>
void reduce_wide_strip(const T* x, int64_t n, int64_t stride, int64_t width, float* y) {
  alignas(64) float part[kStrip];
  for (int64_t from = 0; from < n; from += kChain) {
    const int64_t to = min(n, from + kChain);
    float* const sums = from == 0 ? y : part;
    const T* row = x + from * stride;
    for (int64_t j = 0; j < width; j += kLanes) store(sums + j, Pre::of(load(row + j)));
    int64_t r = from + 1;
    for (; r + 4 <= to; r += 4) {
      row = x + r * stride;
      for (int64_t j = 0; j < width; j += kLanes) {
        const f32v a = Op::step(Pre::of(load(row + j)), Pre::of(load(row + stride + j)));
        const f32v b = Op::step(Pre::of(load(row + 2 * stride + j)), Pre::of(load(row + 3 * stride + j)));
        store(sums + j, Op::step(load(sums + j), Op::step(a, b)));
      }
    }
    for (; r < to; ++r) {
      row = x + r * stride;
      for (int64_t j = 0; j < width; j += kLanes)
        store(sums + j, Op::step(load(sums + j), Pre::of(load(row + j))));
    }
    for (int64_t j = 0; from > 0 && j < width; j += kLanes)
      store(y + j, Op::step(load(y + j), load(part + j)));
  }
}

template <class Op, class Pre, class T>
MYC_NOINLINE void reduce_columns(const T* x, int64_t n, int64_t stride, int64_t width, float* y) {
  int64_t j = 0;
  while (n > 0 && width - j >= 16 * kLanes) {
    const int64_t wide = min(kStrip, (width - j) / kLanes * kLanes);
    reduce_wide_strip<Op, Pre>(x + j, n, stride, wide, y + j);
    j += wide;
  }
  for (; j + 8 * kLanes <= width; j += 8 * kLanes) reduce_strip<Op, Pre, 8>(x + j, n, stride, y + j);
  for (; j + 2 * kLanes <= width; j += 2 * kLanes) reduce_strip<Op, Pre, 2>(x + j, n, stride, y + j);
  for (; j + kLanes <= width; j += kLanes) reduce_strip<Op, Pre, 1>(x + j, n, stride, y + j);
  if (j < width) {
    const int64_t rest = width - j;
    f32v total = splat(Op::identity), part = total;
    for (int64_t r = 0; r < n; ++r) {
      part = Op::step(part, Pre::of(load_partial(x + r * stride + j, rest)));
      if (r % kChain == kChain - 1) total = Op::step(total, part), part = splat(Op::identity);
    }
    store_partial(y + j, Op::step(total, part), rest);
  }
}

// ---- other element types: plain loops, T summed in R ----

template <class T, class R, class Step>
void reduce_plain(const T* x, R* y, AxisView v, R identity, const Step& step) {
  for (int64_t o = 0; o < v.outer; ++o, x += v.n * v.inner, y += v.inner) {
    if (v.inner == 1) {
      R total = identity;
      for (int64_t r = 0; r < v.n; ++r) total = step(total, static_cast<R>(x[r]));
      *y = total;
      continue;
    }
    for (int64_t j = 0; j < v.inner; ++j) y[j] = identity;
    for (int64_t r = 0; r < v.n; ++r) {
      const T* row = x + r * v.inner;
#pragma GCC ivdep
      for (int64_t j = 0; j < v.inner; ++j) y[j] = step(y[j], static_cast<R>(row[j]));
    }
  }
}

// ---- the plan: alternating groups of kept and reduced axes ----

struct Groups {
  int count;
  int64_t extent[MYC_MAX_RANK];
  bool reduced[MYC_MAX_RANK];
  int64_t reduced_total;  // elements that meet in one result
};

inline Groups group_axes(const myc_tensor& x, const bool* is_reduced) {
  Groups g = {};
  g.reduced_total = 1;
  for (int d = 0; d < x.rank; ++d) {
    if (is_reduced[d]) g.reduced_total *= x.shape[d];
    if (x.shape[d] == 1) continue;
    if (g.count > 0 && g.reduced[g.count - 1] == is_reduced[d]) {
      g.extent[g.count - 1] *= x.shape[d];
    } else {
      g.extent[g.count] = x.shape[d];
      g.reduced[g.count++] = is_reduced[d];
    }
  }
  return g;
}

inline Groups group_axes(const myc_tensor& x, bool has_axes, const myc_ints& axes) {
  bool is_reduced[MYC_MAX_RANK];
  const bool all = !has_axes || axes.n == 0;
  for (int d = 0; d < x.rank; ++d) is_reduced[d] = all;
  for (int64_t i = 0; !all && i < axes.n && x.rank > 0; ++i)
    is_reduced[positive_axis(axes.v[i], x.rank)] = true;
  return group_axes(x, is_reduced);
}

// Calls pass(AxisView, is_first, is_last) for every reduced group, innermost first.
template <class Pass>
MYC_INLINE void for_each_group(const Groups& g, const Pass& pass) {
  int left = 0;
  for (int k = 0; k < g.count; ++k) left += g.reduced[k];
  bool is_first = true;
  int64_t inner = 1;  // kept elements behind the group; reduced groups behind it are gone
  for (int k = g.count - 1; k >= 0; --k) {
    if (!g.reduced[k]) {
      inner *= g.extent[k];
      continue;
    }
    int64_t outer = 1;
    for (int d = 0; d < k; ++d) outer *= g.extent[d];
    pass(AxisView{outer, g.extent[k], inner}, is_first, --left == 0);
    is_first = false;
  }
}

// ---- the driver for floats ----

template <class Op, class Pre, class T>
int32_t reduce_pass(const myc_call* call, Scratch& scratch, const T* x, float* y, AxisView v) {
  const int64_t size = v.outer * v.n * v.inner;
  if (v.inner > 1) {
    // Columns are split into strips wide enough for full cache lines.  Few columns and many rows: the rows
    // are split too.
    const int64_t strips = ceil_div(v.inner, kStrip);
    const bool parallel = call->ctx->threads > 1 && size * 4 > 2 * kMinParallelWork;
    if (parallel && v.outer * strips < 4 && v.n >= 64) {
      constexpr int64_t parts = 16;
      float* partial = scratch.take<float>(parts * v.inner);
      if (partial == nullptr) return MYC_E_MEMORY;
      const int64_t step = ceil_div(v.n, parts);
      for (int64_t o = 0; o < v.outer; ++o) {
        const T* from = x + o * v.n * v.inner;
        parallel_for(call, parts, 1, [&](int64_t begin, int64_t end) {
          for (int64_t p = begin; p < end; ++p) {
            const int64_t first = min(v.n, p * step), last = min(v.n, first + step);
            reduce_columns<Op, Pre>(from + first * v.inner, last - first, v.inner, v.inner,
                                    partial + p * v.inner);
          }
        });
        reduce_columns<Op, Identity>(partial, parts, v.inner, v.inner, y + o * v.inner);
      }
      return MYC_OK;
    }
    const int64_t strip_work = v.n * min(v.inner, kStrip) * 4;
    parallel_for(
        call, v.outer * strips, kMinParallelWork / (strip_work + 1) + 1, [&](int64_t begin, int64_t end) {
          for (int64_t s = begin; s < end;) {
            const int64_t o = s / strips, from = (s % strips) * kStrip;
            const int64_t last = min(end, (o + 1) * strips);  // strips of one outer index go together
            const int64_t to = min(v.inner, from + (last - s) * kStrip);
            reduce_columns<Op, Pre>(x + o * v.n * v.inner + from, v.n, v.inner, to - from,
                                    y + o * v.inner + from);
            s = last;
          }
        });
    return MYC_OK;
  }
  if (v.outer == 1 &&
      size * 4 > 2 * kMinParallelWork) {  // one long run: fixed pieces, so that threads change no digit
    constexpr int64_t piece = 8 * kBlock;
    const int64_t pieces = ceil_div(v.n, piece);
    float* partial = scratch.take<float>(pieces);
    if (partial == nullptr) return MYC_E_MEMORY;
    parallel_for(call, pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        partial[p] = reduce_run<Op, Pre>(x + p * piece, min(piece, v.n - p * piece));
      }
    });
    *y = reduce_run<Op, Identity>(partial, pieces);
    return MYC_OK;
  }
  parallel_for(call, v.outer, kMinParallelWork / (v.n * 4 + 1) + 1, [&](int64_t begin, int64_t end) {
    const auto rows = [&](const auto* from, int64_t first, int64_t count) __attribute__((always_inline)) {
      for (int64_t o = 0; o < count; ++o) y[first + o] = reduce_short_run<Op, Pre>(from + o * v.n, v.n);
    };
    if (sizeof(T) == sizeof(float) || v.n > kLanes) return rows(x + begin * v.n, begin, end - begin);
    float wide[kHalfBlock];  // rows too short for vectors are widened together
    const int64_t step = kHalfBlock / v.n;
    for (int64_t o = begin; o < end; o += step) {
      const int64_t count = min(step, end - o);
      widen(x + o * v.n, wide, count * v.n);
      rows(wide, o, count);
    }
  });
  return MYC_OK;
}

template <class Op, class First, class T, class Finish>
MYC_INLINE int32_t reduce_to(const myc_call* call, Scratch& scratch, const Groups& g, const T* from, float* y, const Finish& finish) {
  const int64_t size = output(call).size;
  if (input(call).size == 0) {
    for (int64_t i = 0; i < size; ++i) y[i] = Op::identity;
    finish(y, size);
    return MYC_OK;
  }
  int32_t status = MYC_OK;
  const float* x = nullptr;  // the result so far
  for_each_group(g, [&](AxisView v, bool is_first, bool is_last) {
    if (status != MYC_OK) return;
    float* to = is_last ? y : scratch.take<float>(v.outer * v.inner);
    if (to == nullptr) {
      status = MYC_E_MEMORY;
      return;
    }
    status = is_first ? reduce_pass<Op, First>(call, scratch, from, to, v)
                      : reduce_pass<Op, Identity>(call, scratch, x, to, v);
    x = to;
  });
  if (status != MYC_OK) return status;
  if (!x) map(from, y, size, [](f32v v) { return First::of(v); });  // every reduced extent is 1
  finish(y, size);
  return MYC_OK;
}

// Results have the type of the input, those of 16-bit floats any type of floats; MYC_E_UNSUPPORTED: another one.
template <class Op, class First = Identity, class Finish>
MYC_INLINE int32_t reduce_floats(const myc_call* call, const Groups& g, const Finish& finish) {
  const int32_t from = input(call).dtype, to = output(call).dtype;
  if (from != to && !(is_16_bits(from) && (is_16_bits(to) || to == MYC_F32))) return MYC_E_UNSUPPORTED;
  Scratch scratch(call);
  const int64_t size = output(call).size;
  float* y = to == MYC_F32 ? out<float>(call) : scratch.take<float>(max(size, int64_t{1}));
  if (y == nullptr) return MYC_E_MEMORY;
  const int32_t status = with_float_type(from, [&](auto type) {
    return reduce_to<Op, First>(call, scratch, g, in<decltype(type)>(call), y, finish);
  });
  if (status != MYC_OK || to == MYC_F32) return status;
  if (to == MYC_F16) narrow(y, out<Half>(call), size);
  else narrow(y, out<Brain>(call), size);
  return MYC_OK;
}

inline void keep(float*, int64_t) {}

template <class T, class R, class Step>
int32_t reduce_others(const myc_call* call, const Groups& g, R identity, const Step& step) {
  Scratch scratch(call);
  const void* x = input(call).data;
  R* const y = out<R>(call);
  if (input(call).size == 0) {
    for (int64_t i = 0; i < output(call).size; ++i) y[i] = identity;
    return MYC_OK;
  }
  int32_t status = MYC_OK;
  bool any = false;
  for_each_group(g, [&](AxisView v, bool is_first, bool is_last) {
    if (status != MYC_OK) return;
    R* to = is_last ? y : scratch.take<R>(v.outer * v.inner);
    if (to == nullptr) {
      status = MYC_E_MEMORY;
      return;
    }
    if (is_first) {
      reduce_plain(static_cast<const T*>(x), to, v, identity, step);
    } else {
      reduce_plain(static_cast<const R*>(x), to, v, identity, step);
    }
    x = to;
    any = true;
  });
  if (status == MYC_OK && !any) {
    for (int64_t i = 0; i < output(call).size; ++i) y[i] = step(identity, static_cast<R>(in<T>(call)[i]));
  }
  return status;
}

}  // namespace

// ---- kernels ----

namespace {

struct WrappingAdd {
  uint64_t operator()(uint64_t a, uint64_t b) const { return a + b; }
};
struct PlainAdd {
  double operator()(double a, double b) const { return a + b; }
};
struct PlainMax {
  template <class T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct PlainMin {
  template <class T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

}  // namespace

KERNEL_FN(sum, f32) {
  const auto& a = attrs<myc_sum_attrs>(call);
  return reduce_floats<SumOp>(call, group_axes(input(call), a.has_dim, a.dim), keep);
}

KERNEL_FN(mean, f32) {
  const auto& a = attrs<myc_mean_attrs>(call);
  const Groups g = group_axes(input(call), a.has_axis, a.axis);
  const float scale = 1.0f / static_cast<float>(g.reduced_total);
  const float count = static_cast<float>(g.reduced_total);
  const bool exact =
      (g.reduced_total & (g.reduced_total - 1)) == 0;  // a power of two: the product is the quotient
  return reduce_floats<SumOp>(call, g, [=](float* y, int64_t n) {
    if (exact && g.reduced_total > 0) {
      map(y, y, n, [=](f32v v) { return v * scale; });
    } else {
      map(y, y, n, [=](f32v v) { return v / count; });
    }
  });
}

KERNEL_FN(prod, f32) {
  const auto& a = attrs<myc_prod_attrs>(call);
  return reduce_floats<ProdOp>(call, group_axes(input(call), a.has_axis, a.axis), keep);
}

KERNEL_FN(reduce_max, f32) {
  const auto& a = attrs<myc_reduce_max_attrs>(call);
  return reduce_floats<MaxOp>(call, group_axes(input(call), a.has_axis, a.axis), keep);
}

KERNEL_FN(reduce_min, f32) {
  const auto& a = attrs<myc_reduce_min_attrs>(call);
  return reduce_floats<MinOp>(call, group_axes(input(call), a.has_axis, a.axis), keep);
}

KERNEL_FN(l2_norm, f32) {
  const auto& a = attrs<myc_l2_norm_attrs>(call);
  return reduce_floats<SumOp, Square>(
      call, group_axes(input(call), a.has_axis, a.axis),
      [](float* y, int64_t n) { map(y, y, n, [](f32v v) { return sqrt(v); }); });
}

namespace {

// Axes that `shape` lacks or has as 1 are summed.
Groups groups_of_sum_to(const myc_call* call) {
  const myc_tensor& x = input(call);
  const myc_ints& shape = attrs<myc_sum_to_attrs>(call).shape;
  bool is_reduced[MYC_MAX_RANK];
  for (int d = 0; d < x.rank; ++d) {
    const int64_t at = d - (x.rank - shape.n);
    is_reduced[d] = at < 0 || shape.v[at] == 1;
  }
  return group_axes(x, is_reduced);
}

}  // namespace

KERNEL_FN(sum_to, f32) { return reduce_floats<SumOp>(call, groups_of_sum_to(call), keep); }
KERNEL_FN(sum_to, f64) {
  return reduce_others<double, double>(call, groups_of_sum_to(call), 0.0, PlainAdd{});
}

KERNEL_FN(sum, f64) {
  if (output(call).dtype != MYC_F64) return MYC_E_UNSUPPORTED;
  const auto& a = attrs<myc_sum_attrs>(call);
  return reduce_others<double, double>(call, group_axes(input(call), a.has_dim, a.dim), 0.0, PlainAdd{});
}

#define INTEGER_SUM(suffix, T)                                                                      \
  KERNEL_FN(sum, suffix) {                                                                          \
    if (output(call).dtype != MYC_I64) return MYC_E_UNSUPPORTED;                                    \
    const auto& a = attrs<myc_sum_attrs>(call);                                                     \
    return reduce_others<T, uint64_t>(call, group_axes(input(call), a.has_dim, a.dim), uint64_t{0}, \
                                      WrappingAdd{});                                               \
  }

INTEGER_SUM(bool, uint8_t)
INTEGER_SUM(i32, int32_t)
INTEGER_SUM(i64, int64_t)

#define INTEGER_EXTREME(op, suffix, T, Step, from)                                               \
  KERNEL_FN(op, suffix) {                                                                        \
    const auto& a = attrs<myc_##op##_attrs>(call);                                               \
    return reduce_others<T, T>(call, group_axes(input(call), a.has_axis, a.axis), from, Step{}); \
  }

INTEGER_EXTREME(reduce_max, i32, int32_t, PlainMax, INT32_MIN)
INTEGER_EXTREME(reduce_max, i64, int64_t, PlainMax, INT64_MIN)
INTEGER_EXTREME(reduce_max, f64, double, PlainMax, double{-INFINITY})
INTEGER_EXTREME(reduce_min, i32, int32_t, PlainMin, INT32_MAX)
INTEGER_EXTREME(reduce_min, i64, int64_t, PlainMin, INT64_MAX)
INTEGER_EXTREME(reduce_min, f64, double, PlainMin, double{INFINITY})

KERNEL_FN(all, bool) {
  const auto& a = attrs<myc_all_attrs>(call);
  return reduce_others<uint8_t, uint8_t>(call, group_axes(input(call), a.has_axis, a.axis), uint8_t{1},
                                         [](uint8_t p, uint8_t q) -> uint8_t { return p & q; });
}

KERNEL_FN(any, bool) {
  const auto& a = attrs<myc_any_attrs>(call);
  return reduce_others<uint8_t, uint8_t>(call, group_axes(input(call), a.has_axis, a.axis), uint8_t{0},
                                         [](uint8_t p, uint8_t q) -> uint8_t { return p | q; });
}

}  // namespace mycelia::MYC_ISA
