// Error and gamma functions.  float32 on vectors where a polynomial serves, the C library elsewhere.
// Bytes: 8 an element read and written.
#include "elementwise/elementwise.h"
#include "simd/functions.h"

namespace mycelia::MYC_ISA {

KERNEL_FN(erf, f32) {
  return map_floats(call, 80, [](f32v x) { return erf(x); });
}
KERNEL_FN(erf, f64) {
  return map_scalars<double>(call, 400, [](double x) { return ::erf(x); });
}
KERNEL_FN(erfc, f32) {
  return map_floats(call, 160, [](f32v x) { return erfc(x); });
}
KERNEL_FN(erfc, f64) {
  return map_scalars<double>(call, 400, [](double x) { return ::erfc(x); });
}
KERNEL_FN(erfinv, f32) {
  return map_floats(call, 160, [](f32v x) { return erfinv(x); });
}

namespace {

// lgamma() leaves the sign of gamma in a global variable; this form has it on the stack.
MYC_INLINE double log_gamma(double x) {
#if defined(__GLIBC__)
  int sign;
  return ::lgamma_r(x, &sign);
#else
  return ::lgamma(x);
#endif
}
}  // namespace

KERNEL_FN(lgamma, f32) {
  return map_scalars<float>(call, 400, [](float x) { return static_cast<float>(log_gamma(x)); });
}
KERNEL_FN(lgamma, f64) {
  return map_scalars<double>(call, 400, [](double x) { return log_gamma(x); });
}

namespace {

// Abramowitz and Stegun: reflection 6.3.7 below 0, recurrence 6.3.5 up to 8, series 6.3.18 beyond.
double digamma(double x) {
  if (x == 0) return ::copysign(INFINITY, -x);
  if (x != x || x == -INFINITY) return NAN;
  double result = 0;
  if (x < 0) {
    if (x == ::floor(x)) return NAN;
    result = -M_PI / ::tan(M_PI * ::fmod(x, 1.0));
    x = 1 - x;
  }
  for (; x < 8; x += 1) result -= 1 / x;
  const double z = 1 / (x * x);
  const double series =
      z *
      (1.0 / 12 -
       z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  return result + ::log(x) - 0.5 / x - series;
}
}  // namespace

KERNEL_FN(digamma, f32) {
  return map_scalars<float>(call, 600, [](float x) { return static_cast<float>(digamma(x)); });
}
KERNEL_FN(digamma, f64) {
  return map_scalars<double>(call, 600, [](double x) { return digamma(x); });
}

}  // namespace mycelia::MYC_ISA
