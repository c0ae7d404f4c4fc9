// Rounding, rounded quotients and remainders.  Integers never trap: division by zero and the one overflow of
// two's complement are handled before dividing.  Bytes: 8 an element with one input, 12 with two (float32).
#include "elementwise/elementwise.h"

namespace mycelia::MYC_ISA {

#define ROUNDING(op, vector, scalar)                                          \
  KERNEL_FN(op, f32) {                                                        \
    return map_floats(call, 8, [](f32v x) { return vector(x); });             \
  }                                                                           \
  KERNEL_FN(op, f64) {                                                        \
    return map_scalars<double>(call, 16, [](double x) { return scalar(x); }); \
  }

ROUNDING(floor, floor, ::floor)
ROUNDING(ceil, ceil, ::ceil)
ROUNDING(trunc, trunc, ::trunc)

KERNEL_FN(round, f32) {
  if (attrs<myc_round_attrs>(call).decimals != 0) return MYC_E_UNSUPPORTED;
  return map_floats(call, 8, [](f32v x) { return round_even(x); });
}

// ---- quotients ----

namespace {

template <class T>
constexpr T largest() {
  return static_cast<T>(~uint64_t{0} >> (65 - 8 * sizeof(T)));
}

// x / 0: the largest number, the smallest, or 0 for 0 / 0.
template <class T>
MYC_INLINE T quotient_by_zero(T x) {
  return x > 0 ? largest<T>() : x < 0 ? static_cast<T>(-largest<T>() - 1) : T{0};
}

struct FloorDiv {
  MYC_INLINE f32v operator()(f32v a, f32v b) const { return floor(a / b); }
  MYC_INLINE double operator()(double a, double b) const { return ::floor(a / b); }
  template <class T>
  MYC_INLINE T operator()(T a, T b) const {
    if (b == 0) return quotient_by_zero(a);
    if (b == -1) return negative(a);
    const T q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
  }
  template <class T>
  static MYC_INLINE T negative(T a) {
    return static_cast<T>(0 - static_cast<uint64_t>(a));
  }  // wraps around
};

struct TruncateDiv {
  MYC_INLINE f32v operator()(f32v a, f32v b) const { return trunc(a / b); }
  MYC_INLINE double operator()(double a, double b) const { return ::trunc(a / b); }
  template <class T>
  MYC_INLINE T operator()(T a, T b) const {
    return b == 0 ? quotient_by_zero(a) : b == -1 ? FloorDiv::negative(a) : a / b;
  }
};

// ---- remainders ----

// a - trunc(a / b) b, exactly: the product and difference are one rounding, and where the rounded quotient is
// off by one the remainder is taken again.  Quotients that are no exact integers, inf and NaN go through the
// C library.
MYC_INLINE f32v remainder(f32v a, f32v b) {
#if defined(__FMA__) || defined(__aarch64__)
  const f32v x = abs(a), y = abs(b);
  f32v q = trunc(x / y);
  const f32v first = x - q * y;
  q = select(first < 0.0f, q - 1.0f, select(first >= y, q + 1.0f, q));
  f32v r = copysign(x - q * y, a);
  const i32v hard = ~((q < 0x1p22f) & (y > 0x1p-100f) & (y < INFINITY));
  if (__builtin_expect(!any(hard), 1)) return r;
#else
  f32v r = a;
#endif
  for (int i = 0; i < kLanes; ++i) r[i] = fmodf(a[i], b[i]);
  return r;
}

struct TruncateMod {
  MYC_INLINE f32v operator()(f32v a, f32v b) const { return remainder(a, b); }
  MYC_INLINE double operator()(double a, double b) const { return ::fmod(a, b); }
  template <class T>
  MYC_INLINE T operator()(T a, T b) const {
    return b == 0 ? a : b == -1 ? 0 : a % b;
  }
};

struct FloorMod {
  MYC_INLINE f32v operator()(f32v a, f32v b) const {
    const f32v r = remainder(a, b);
    const i32v other_sign = (bits(r) ^ bits(b)) < 0;
    return select(r == 0.0f, copysign(r, b), select(other_sign & ~is_nan(r), r + b, r));
  }
  template <class T>
  MYC_INLINE T operator()(T a, T b) const {
    const T r = TruncateMod{}(a, b);
    return r != 0 ? ((r < 0) != (b < 0) && b != 0 ? r + b : r) : zero(r, b);
  }
  // A float remainder of zero takes the divisor's sign, as NumPy's.
  static MYC_INLINE double zero(double, double b) { return ::copysign(0.0, b); }
  template <class T>
  static MYC_INLINE T zero(T r, T) {
    return r;
  }
};

}  // namespace

#define DIVISION(op, Functor)                                              \
  KERNEL_FN(op, f64) { return zip_scalars<double>(call, 60, Functor{}); }  \
  KERNEL_FN(op, i32) { return zip_scalars<int32_t>(call, 40, Functor{}); } \
  KERNEL_FN(op, i64) { return zip_scalars<int64_t>(call, 60, Functor{}); }

DIVISION(floor_div, FloorDiv)
DIVISION(truncate_div, TruncateDiv)
DIVISION(floor_mod, FloorMod)
DIVISION(truncate_mod, TruncateMod)

KERNEL_FN(floor_div, f32) { return zip_floats(call, 16, FloorDiv{}); }
KERNEL_FN(truncate_div, f32) { return zip_floats(call, 16, TruncateDiv{}); }
KERNEL_FN(floor_mod, f32) { return zip_floats(call, 40, FloorMod{}); }
KERNEL_FN(truncate_mod, f32) { return zip_floats(call, 40, TruncateMod{}); }

}  // namespace mycelia::MYC_ISA
