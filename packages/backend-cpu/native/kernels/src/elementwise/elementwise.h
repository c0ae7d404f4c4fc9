// Loops of elementwise kernels: one input, or two of equal shape, a number against a tensor, or any
// broadcasting. `work` is the cost of an element in bytes moved or 4 x flops; it decides when a second thread
// helps. The result may be the memory of an input: every element is read before it is written.
// Loops over floats take those of 16 bits, too: converted in registers, computed in float32, rounded once.
#ifndef MYCELIA_ELEMENTWISE_H_
#define MYCELIA_ELEMENTWISE_H_

#include "simd/half.h"
#include "mycelia/kernels.h"
#include "simd/vec.h"

#define MYC_NOINLINE __attribute__((noinline))

namespace mycelia::MYC_ISA {

inline int64_t grain_of(int64_t work) { return kMinParallelWork / work + 1; }

// Cut to an integer; NaN and what is out of range give the lowest one, on every processor.
MYC_INLINE i32v cut(f32v x) {
  return to_int(select((x >= -0x1p31f) & (x < 0x1p31f), x, splat(-0x1p31f)));
}
template <class To, class From>
MYC_INLINE To cut(From x) {
  constexpr From low = sizeof(To) == 4 ? From(-0x1p31) : From(-0x1p63);
  return static_cast<To>(x >= low && x < -low ? x : low);
}

// y = f(x) on vectors of floats.
template <class F>
MYC_INLINE int32_t map_floats(const myc_call* call, int64_t work, const F& f) {
  return with_float_type(output(call).dtype, [&](auto type) {
    using T = decltype(type);
    const T* x = in<T>(call);
    T* y = out<T>(call);
    parallel_for(call, output(call).size, grain_of(work),
                 [&](int64_t begin, int64_t end) { map(x + begin, y + begin, end - begin, f); });
    return MYC_OK;
  });
}

// Floats limited to [low, high]; high wins where they cross, and what is or meets a NaN is NaN.
MYC_INLINE int32_t clip_floats(const myc_call* call, float low, float high) {
  const f32v from = splat(low), to = splat(high), none = splat(low != low || high != high ? NAN : 0.0f);
  return map_floats(call, 12, [=](f32v x) { return min_or_second(to, max_or_second(from, x)) - none; });
}

// y = f(a, b) on vectors of floats; equal shapes.
template <class F>
MYC_INLINE int32_t map_pairs(const myc_call* call, int64_t work, const F& f) {
  return with_float_type(output(call).dtype, [&](auto type) {
    using T = decltype(type);
    const T *a = in<T>(call, 0), *b = in<T>(call, 1);
    T* y = out<T>(call);
    parallel_for(call, output(call).size, grain_of(work),
                 [&](int64_t begin, int64_t end) { map(a + begin, b + begin, y + begin, end - begin, f); });
    return MYC_OK;
  });
}

// y = f(x) element by element, T to R.
template <class T, class R = T, class F>
MYC_INLINE int32_t map_scalars(const myc_call* call, int64_t work, const F& f) {
  const T* x = in<T>(call);
  R* y = out<R>(call);
  parallel_for(call, output(call).size, grain_of(work), [=](int64_t begin, int64_t end) {
    const T* const from = x;  // bytes may alias anything, also the captured pointers, but not locals
    R* const to = y;
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) to[i] = f(from[i]);
  });
  return MYC_OK;
}

// An operand that repeats with a short period, such as a bias of few channels, is laid out once in a block of
// many periods: runs of the block's length instead of many short ones.
constexpr int64_t kPeriodicBlock = 2048;

// Fills `block` with whole periods of operand k, as many as fit or `size` elements need, and returns their
// length; 0 if no period is short enough.
template <int K, class T>
MYC_NOINLINE int64_t fill_periodic(const Broadcast<K>& plan, int k, const T* x, int64_t size, T* block) {
  int first = 0;  // the axes before it repeat the operand
  while (first < plan.rank && plan.stride[k][first] == 0) ++first;
  int64_t period = 1;
  for (int d = first; d < plan.rank; ++d) period *= plan.shape[d];
  if (first == 0 || period < 1 || period > kPeriodicBlock) return 0;  // nothing has no period
  for (int64_t i = 0; i < period; ++i) {
    int64_t rest = i, offset = 0;
    for (int d = plan.rank - 1; d >= first; --d) {
      offset += rest % plan.shape[d] * plan.stride[k][d];
      rest /= plan.shape[d];
    }
    block[i] = x[offset];
  }
  const int64_t filled = min(kPeriodicBlock / period * period, round_up(size, period));
  for (int64_t i = period; i < filled; ++i) block[i] = block[i - period];
  return filled;
}

// row(a, a_step, b, b_step, y, n) over all runs of the two broadcast inputs; a step is 1, or 0 for one
// number.
template <class T, class R>
MYC_INLINE int32_t zip_runs(const myc_call* call, int64_t work,
                            void (*row)(const T* a, bool a_step, const T* b, bool b_step, R* y, int64_t n)) {
  const myc_tensor &ta = input(call, 0), &tb = input(call, 1), &ty = output(call);
  const T *a = in<T>(call, 0), *b = in<T>(call, 1);
  R* y = out<R>(call);
  const bool a_full = ta.size == ty.size, b_full = tb.size == ty.size;
  if ((a_full || ta.size == 1) && (b_full || tb.size == 1)) {  // no strides to compute
    parallel_for(call, ty.size, grain_of(work), [&](int64_t begin, int64_t end) {
      row(a_full ? a + begin : a, a_full, b_full ? b + begin : b, b_full, y + begin, end - begin);
    });
    return MYC_OK;
  }
  const Broadcast<2> plan = broadcast<2>(ty, {&ta, &tb});
  if (plan.inner() < 64 && (a_full || b_full)) {
    const int k = a_full ? 1 : 0;
    alignas(64) T block[kPeriodicBlock];
    const int64_t filled = fill_periodic(plan, k, k == 1 ? b : a, ty.size, block);
    if (filled > 0) {
      const int64_t blocks = ceil_div(ty.size, filled);
      parallel_for(call, blocks, grain_of(work * filled), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin * filled; i < min(ty.size, end * filled); i += filled) {
          row(k == 1 ? a + i : block, true, k == 1 ? block : b + i, true, y + i, min(filled, ty.size - i));
        }
      });
      return MYC_OK;
    }
  }
  const bool a_step = plan.inner_stride(0) != 0, b_step = plan.inner_stride(1) != 0;
  for_each_row(call, plan, work, [&](int64_t at, const int64_t* offset, int64_t n) {
    row(a + offset[0], a_step, b + offset[1], b_step, y + at, n);
  });
  return MYC_OK;
}

// y = f(a, b) on vectors of floats.
template <class F, class T>
MYC_NOINLINE void zip_float_run(const T* a, bool a_step, const T* b, bool b_step, T* y, int64_t n) {
  const F f{};
  if (a_step && b_step) {
    map(a, b, y, n, f);
  } else if (a_step) {
    const f32v number = splat(widen_one(*b));
    map(a, y, n, [&](f32v v) { return f(v, number); });
  } else {
    const f32v number = splat(widen_one(*a));
    map(b, y, n, [&](f32v v) { return f(number, v); });
  }
}
template <class F>
MYC_INLINE int32_t zip_floats(const myc_call* call, int64_t work, const F&) {
  return with_float_type(output(call).dtype, [&](auto type) {
    using T = decltype(type);
    return zip_runs<T, T>(call, work, zip_float_run<F, T>);
  });
}

// y = f(a, b) element by element, T to R.
template <class T, class R, class F>
MYC_NOINLINE void zip_scalar_run(const T* a, bool a_step, const T* b, bool b_step, R* y, int64_t n) {
  const F f{};
  if (a_step && b_step) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
  } else if (a_step) {
    const T number = *b;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], number);
  } else {
    const T number = *a;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = f(number, b[i]);
  }
}
template <class T, class R = T, class F>
MYC_INLINE int32_t zip_scalars(const myc_call* call, int64_t work, const F&) {
  return zip_runs<T, R>(call, work, zip_scalar_run<T, R, F>);
}

// y = f(a, b) float by float, to R.
template <class X, class R, class F>
MYC_NOINLINE void zip_each_float_run(const X* a, bool a_step, const X* b, bool b_step, R* y, int64_t n) {
  if (n == 0) return;
  float wide_a[kHalfBlock], wide_b[kHalfBlock];
  wide_a[0] = widen_one(*a), wide_b[0] = widen_one(*b);  // all there is of one that does not step
  for (int64_t i = 0; i < n; i += kHalfBlock) {
    const int64_t m = min(kHalfBlock, n - i);
    if (a_step) widen(a + i, wide_a, m);
    if (b_step) widen(b + i, wide_b, m);
    zip_scalar_run<float, R, F>(wide_a, a_step, wide_b, b_step, y + i, m);
  }
}
template <class R, class F>
MYC_INLINE int32_t zip_each_float(const myc_call* call, int64_t work, const F& f) {
  if (!kTakes16Bits || !is_16_bits(input(call).dtype)) return zip_scalars<float, R>(call, work, f);
  return with_float_type(input(call).dtype, [&](auto type) {
    using X = decltype(type);
    return zip_runs<X, R>(call, work, zip_each_float_run<X, R, F>);
  });
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_ELEMENTWISE_H_
