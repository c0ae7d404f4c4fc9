// Circular and hyperbolic functions and their inverses.  float32 on vectors, the C library in float64.
// Bytes: 8 an element read and written with one input, 12 with two.
#include "elementwise/elementwise.h"
#include "simd/functions.h"

namespace mycelia::MYC_ISA {

#define UNARY(op, work)                                                      \
  KERNEL_FN(op, f32) {                                                       \
    return map_floats(call, work, [](f32v x) { return op(x); });             \
  }                                                                          \
  KERNEL_FN(op, f64) {                                                       \
    return map_scalars<double>(call, 400, [](double x) { return ::op(x); }); \
  }

UNARY(sin, 80)
UNARY(cos, 80)
UNARY(tan, 100)
UNARY(asin, 80)
UNARY(acos, 80)
UNARY(atan, 80)
UNARY(sinh, 160)
UNARY(cosh, 120)
UNARY(asinh, 200)
UNARY(acosh, 200)
UNARY(atanh, 100)

namespace {

struct Atan2 {
  MYC_INLINE f32v operator()(f32v y, f32v x) const { return atan2(y, x); }
  MYC_INLINE double operator()(double y, double x) const { return ::atan2(y, x); }
};

}  // namespace

KERNEL_FN(atan2, f32) { return zip_floats(call, 120, Atan2{}); }
KERNEL_FN(atan2, f64) { return zip_scalars<double>(call, 400, Atan2{}); }

}  // namespace mycelia::MYC_ISA
