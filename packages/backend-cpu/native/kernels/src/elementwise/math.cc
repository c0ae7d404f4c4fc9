// Elementwise arithmetic, powers, exponentials, logarithms and extremes.  float32 on vectors, the C library
// in float64, integers wrap around.  Bytes: 8 an element read and written with one input, 12 with two, unless
// broadcasting saves some.
#include "elementwise/elementwise.h"
#include "simd/functions.h"

namespace mycelia::MYC_ISA {

// ---- two inputs ----

namespace {

struct Add {
  template <class V>
  MYC_INLINE V operator()(V a, V b) const {
    return a + b;
  }
};
struct Sub {
  template <class V>
  MYC_INLINE V operator()(V a, V b) const {
    return a - b;
  }
};
struct Mul {
  template <class V>
  MYC_INLINE V operator()(V a, V b) const {
    return a * b;
  }
};
struct Div {
  template <class V>
  MYC_INLINE V operator()(V a, V b) const {
    return a / b;
  }
};
struct Maximum {
  MYC_INLINE f32v operator()(f32v a, f32v b) const { return maximum(a, b); }
  template <class T>
  MYC_INLINE T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Minimum {
  MYC_INLINE f32v operator()(f32v a, f32v b) const { return minimum(a, b); }
  template <class T>
  MYC_INLINE T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

// Signed overflow is undefined in C++: integers are computed in the unsigned type of the same width.
template <class Op, class U>
struct Wrapping {
  MYC_INLINE U operator()(U a, U b) const { return Op{}(a, b); }
};

}  // namespace

#define ARITHMETIC(op, Functor)                                                                 \
  KERNEL_FN(op, f32) { return zip_floats(call, 12, Functor{}); }                                \
  KERNEL_FN(op, f64) { return zip_scalars<double>(call, 24, Functor{}); }                       \
  KERNEL_FN(op, i32) { return zip_scalars<uint32_t>(call, 12, Wrapping<Functor, uint32_t>{}); } \
  KERNEL_FN(op, i64) { return zip_scalars<uint64_t>(call, 24, Wrapping<Functor, uint64_t>{}); }

ARITHMETIC(add, Add)
ARITHMETIC(sub, Sub)
ARITHMETIC(mul, Mul)

KERNEL_FN(div, f32) { return zip_floats(call, 16, Div{}); }
KERNEL_FN(div, f64) { return zip_scalars<double>(call, 32, Div{}); }

#define EXTREME(op, Functor)                                               \
  KERNEL_FN(op, f32) { return zip_floats(call, 12, Functor{}); }           \
  KERNEL_FN(op, f64) { return zip_scalars<double>(call, 24, Functor{}); }  \
  KERNEL_FN(op, i32) { return zip_scalars<int32_t>(call, 12, Functor{}); } \
  KERNEL_FN(op, i64) { return zip_scalars<int64_t>(call, 24, Functor{}); }

EXTREME(maximum, Maximum)
EXTREME(minimum, Minimum)

namespace {

struct Hypot {
  MYC_INLINE f32v operator()(f32v a, f32v b) const { return hypot(a, b); }
  MYC_INLINE double operator()(double a, double b) const { return ::hypot(a, b); }
};
struct LogAddExp {
  MYC_INLINE f32v operator()(f32v a, f32v b) const { return log_add_exp(a, b); }
};
struct LogAddExp2 {
  MYC_INLINE f32v operator()(f32v a, f32v b) const { return log_add_exp2(a, b); }
};
struct Xlogy {
  MYC_INLINE f32v operator()(f32v a, f32v b) const {
    return select((a == 0.0f) & ~is_nan(b), f32v{}, a * log(b));
  }
};
struct Xdivy {
  MYC_INLINE f32v operator()(f32v a, f32v b) const { return select((a == 0.0f) & ~is_nan(b), f32v{}, a / b); }
};
struct CopySign {
  MYC_INLINE f32v operator()(f32v a, f32v b) const { return copysign(a, b); }
};
struct TanhGrad {
  template <class V>
  MYC_INLINE V operator()(V dy, V y) const {
    return dy * (1 - y * y);
  }
};

}  // namespace

KERNEL_FN(hypot, f32) { return zip_floats(call, 60, Hypot{}); }
KERNEL_FN(hypot, f64) { return zip_scalars<double>(call, 100, Hypot{}); }
KERNEL_FN(logaddexp, f32) { return zip_floats(call, 160, LogAddExp{}); }
KERNEL_FN(logaddexp2, f32) { return zip_floats(call, 160, LogAddExp2{}); }
KERNEL_FN(xlogy, f32) { return zip_floats(call, 100, Xlogy{}); }
KERNEL_FN(xdivy, f32) { return zip_floats(call, 20, Xdivy{}); }
KERNEL_FN(copysign, f32) { return zip_floats(call, 12, CopySign{}); }
KERNEL_FN(tanh_grad, f32) { return zip_floats(call, 12, TanhGrad{}); }
KERNEL_FN(tanh_grad, f64) { return zip_scalars<double>(call, 24, TanhGrad{}); }

// ---- powers ----

namespace {

struct Pow {
  MYC_INLINE f32v operator()(f32v a, f32v b) const { return pow(a, b); }
  MYC_INLINE double operator()(double a, double b) const { return ::pow(a, b); }
};

// Exponents that need no general power; each agrees with it to the last places, special values included.
template <class T>
void pow_run(const T* x, bool x_step, const T* exponent, bool exponent_step, T* y, int64_t n) {
  if (!x_step || exponent_step) return zip_float_run<Pow>(x, x_step, exponent, exponent_step, y, n);
  const float e = widen_one(*exponent);
  if (e == 2.0f) return map(x, y, n, [](f32v v) { return v * v; });
  if (e == 3.0f) return map(x, y, n, [](f32v v) { return v * v * v; });
  if (e == 1.0f) return map(x, y, n, [](f32v v) { return v; });
  if (e == 0.0f) return map(x, y, n, [](f32v) { return splat(1.0f); });
  if (e == -1.0f) return map(x, y, n, [](f32v v) { return 1.0f / v; });
  if (e == 0.5f)
    return map(x, y, n, [](f32v v) { return select(v == -INFINITY, splat(INFINITY), sqrt(v) + 0.0f); });
  zip_float_run<Pow>(x, x_step, exponent, exponent_step, y, n);
}

// By squaring, modulo 2^bits; a negative exponent leaves 0 but for the bases 1 and -1.
template <class T, class U>
struct IntegerPow {
  MYC_INLINE T operator()(T base, T exponent) const {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
    U power = 1, square = static_cast<U>(base);
    for (U e = static_cast<U>(exponent); e != 0; e >>= 1, square *= square) {
      if (e & 1) power *= square;
    }
    return static_cast<T>(power);
  }
};

}  // namespace

KERNEL_FN(pow, f32) {
  return with_float_type(output(call).dtype, [&](auto type) {
    using T = decltype(type);
    return zip_runs<T, T>(call, 160, pow_run<T>);
  });
}
KERNEL_FN(pow, f64) { return zip_scalars<double>(call, 400, Pow{}); }
KERNEL_FN(pow, i32) { return zip_scalars<int32_t>(call, 80, IntegerPow<int32_t, uint32_t>{}); }
KERNEL_FN(pow, i64) { return zip_scalars<int64_t>(call, 80, IntegerPow<int64_t, uint64_t>{}); }

// ---- one input ----

#define UNARY_FLOAT(op, work, expression)                             \
  KERNEL_FN(op, f32) {                                                \
    return map_floats(call, work, [](f32v x) { return expression; }); \
  }
#define UNARY_DOUBLE(op, work, expression)                                       \
  KERNEL_FN(op, f64) {                                                           \
    return map_scalars<double>(call, work, [](double x) { return expression; }); \
  }
#define UNARY_INTEGER(op, expression)                                            \
  KERNEL_FN(op, i32) {                                                           \
    return map_scalars<int32_t>(call, 8, [](int32_t x) { return expression; });  \
  }                                                                              \
  KERNEL_FN(op, i64) {                                                           \
    return map_scalars<int64_t>(call, 16, [](int64_t x) { return expression; }); \
  }

namespace {

// On unsigned numbers, where overflow is defined.
MYC_INLINE int32_t wrapping_neg(int32_t a) { return static_cast<int32_t>(0u - static_cast<uint32_t>(a)); }
MYC_INLINE int64_t wrapping_neg(int64_t a) {
  return static_cast<int64_t>(uint64_t{0} - static_cast<uint64_t>(a));
}
MYC_INLINE int32_t wrapping_square(int32_t a) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(a));
}
MYC_INLINE int64_t wrapping_square(int64_t a) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(a));
}

}  // namespace

UNARY_FLOAT(neg, 8, -x)
UNARY_DOUBLE(neg, 16, -x)
UNARY_INTEGER(neg, wrapping_neg(x))
UNARY_FLOAT(abs, 8, abs(x))
UNARY_DOUBLE(abs, 16, fabs(x))
UNARY_INTEGER(abs, x < 0 ? wrapping_neg(x) : x)
UNARY_FLOAT(square, 8, x* x)
UNARY_DOUBLE(square, 16, x* x)
UNARY_INTEGER(square, wrapping_square(x))
UNARY_FLOAT(sign, 8, to_float((x < 0.0f) - (x > 0.0f)))
UNARY_DOUBLE(sign, 16, static_cast<double>((x > 0) - (x < 0)))
UNARY_INTEGER(sign, (x > 0) - (x < 0))
UNARY_FLOAT(reciprocal, 12, 1.0f / x)
UNARY_DOUBLE(reciprocal, 24, 1.0 / x)
UNARY_FLOAT(sqrt, 12, sqrt(x))
UNARY_DOUBLE(sqrt, 32, ::sqrt(x))
UNARY_FLOAT(rsqrt, 20, 1.0f / sqrt(x))
UNARY_DOUBLE(rsqrt, 48, 1.0 / ::sqrt(x))

UNARY_FLOAT(exp, 50, exp(x))
UNARY_DOUBLE(exp, 200, ::exp(x))
UNARY_FLOAT(exp2, 50, exp2(x))
UNARY_DOUBLE(exp2, 200, ::exp2(x))
UNARY_FLOAT(expm1, 60, expm1(x))
UNARY_DOUBLE(expm1, 300, ::expm1(x))
UNARY_FLOAT(log, 60, log(x))
UNARY_DOUBLE(log, 200, ::log(x))
UNARY_FLOAT(log2, 60, log_base2(x))
UNARY_DOUBLE(log2, 200, ::log2(x))
UNARY_FLOAT(log10, 60, log_base10(x))
UNARY_DOUBLE(log10, 300, ::log10(x))
UNARY_FLOAT(log1p, 80, log1p(x))
UNARY_DOUBLE(log1p, 300, ::log1p(x))
UNARY_FLOAT(tanh, 70, tanh(x))
UNARY_DOUBLE(tanh, 400, ::tanh(x))

// ---- clipping ----

KERNEL_FN(clip, f32) {
  const auto& a = attrs<myc_clip_attrs>(call);
  return clip_floats(call, a.has_min ? static_cast<float>(a.min) : -INFINITY, a.has_max ? static_cast<float>(a.max) : INFINITY);
}

KERNEL_FN(clip_grad, f32) {
  const auto& a = attrs<myc_clip_grad_attrs>(call);
  const f32v low = splat(a.has_min ? static_cast<float>(a.min) : -INFINITY);
  const f32v high = splat(a.has_max ? static_cast<float>(a.max) : INFINITY);
  return map_pairs(call, 12, [=](f32v c, f32v v) { return select((v >= low) & (v <= high), c, f32v{}); });
}

KERNEL_FN(nan_to_num, f32) {
  const auto& a = attrs<myc_nan_to_num_attrs>(call);
  const f32v nan = splat(a.has_nan ? static_cast<float>(a.nan) : 0.0f);
  const f32v high = splat(a.has_posinf ? static_cast<float>(a.posinf) : 0x1.fffffep127f);
  const f32v low = splat(a.has_neginf ? static_cast<float>(a.neginf) : -0x1.fffffep127f);
  return map_floats(call, 8, [=](f32v x) {
    return select(is_nan(x), nan, select(x == INFINITY, high, select(x == -INFINITY, low, x)));
  });
}

}  // namespace mycelia::MYC_ISA
