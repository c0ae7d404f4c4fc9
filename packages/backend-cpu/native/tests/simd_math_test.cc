// Vector functions against the C library in double precision: error in units in the last place, and special values.
#include "simd/math.h"

#include <math.h>
#include <stdio.h>

#include "simd/transpose.h"

using namespace mycelia::MYC_ISA;
namespace v = mycelia::MYC_ISA;

namespace {

int failed = 0;

// Distance in units of the last place of `want`; 0 for equal, both NaN.
double ulps(float got, double want) {
  const float rounded = static_cast<float>(want);
  if (got == rounded || (isnan(got) && isnan(rounded))) return 0;
  if (isnan(got) || isnan(rounded) || isinf(got) || isinf(rounded)) return INFINITY;
  return fabs(got - want) / ldexp(1.0, (fabs(want) < 0x1p-126 ? -126 : ilogb(want)) - 23);
}

template <class F, class G>
void check(const char* name, double limit, float low, float high, const F& f, const G& g) {
  const float special[] = {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, INFINITY, -INFINITY, NAN, 1e-40f, -1e-40f, 3e38f, -3e38f, 1e-20f};
  const int steps = 200000, count = steps + 13;
  double worst = 0;
  float at = 0;
  for (int i = 0; i < count; ++i) {
    const float x = i < steps ? low + (high - low) * static_cast<float>(i) / steps : special[i - steps];
    const double error = ulps(f(splat(x))[i % kLanes], g(x));
    if (error > worst) worst = error, at = x;
  }
  if (worst > limit) printf("%s: %g ulp at %.9g (limit %g)\n", name, worst, at, limit), ++failed;
}

void check_pow() {
  const float values[] = {0.0f,  -0.0f, 1.0f,     -1.0f,     2.0f, -2.0f, 3.0f,  -3.0f,     0.5f,         -0.5f,       1.5f,
                          -2.5f, 1e30f, INFINITY, -INFINITY, NAN,  10.5f, 1e-3f, 16777215.f, -16777217.f, 33554432.f};
  for (float x : values) {
    for (float y : values) {
      const float got = v::pow(splat(x), splat(y))[0], want = powf(x, y);
      if (!(ulps(got, want) <= 1) || signbit(got) != signbit(want)) {
        if (isnan(got) && isnan(want)) continue;
        printf("pow(%g, %g) = %g, expected %g\n", x, y, got, want), ++failed;
      }
    }
  }
}

void check_rounding() {
  const float values[] = {-2.5f, -1.5f, -0.5f, -0.2f, 0.0f, 0.5f, 1.5f, 2.5f, 1e10f, -1e10f, 8388609.0f, 0.49999997f};
  for (float x : values) {
    const bool good = v::floor(splat(x))[0] == floorf(x) && v::ceil(splat(x))[0] == ceilf(x) &&
                      v::trunc(splat(x))[0] == truncf(x) && v::round_even(splat(x))[0] == rintf(x);
    if (!good) printf("rounding of %g\n", x), ++failed;
  }
}

void check_lanes() {
  float memory[kLanes + 1], result[kLanes + 1];
  for (int n = 0; n <= kLanes; ++n) {
    for (int i = 0; i <= kLanes; ++i) memory[i] = static_cast<float>(i + 1), result[i] = -1;
    store_partial(result, load_partial(memory, n), n);
    for (int i = 0; i <= kLanes; ++i) failed += result[i] != (i < n ? memory[i] : -1);
  }
  f32v ramp = to_float(iota());
  failed += horizontal_sum(ramp) != kLanes * (kLanes - 1) / 2 || horizontal_max(ramp) != kLanes - 1 ||
            horizontal_min(ramp) != 0;
  ramp[1] = NAN;
  failed += !isnan(horizontal_max(ramp)) || !isnan(horizontal_min(ramp)) || !any(is_nan(ramp));
  failed += !isnan(maximum(splat(NAN), splat(1.0f))[0]) || !isnan(maximum(splat(1.0f), splat(NAN))[0]);
  failed += !isnan(minimum(splat(NAN), splat(1.0f))[0]) || !isnan(minimum(splat(1.0f), splat(NAN))[0]);
  f32v tile[kLanes];
  for (int i = 0; i < kLanes; ++i) tile[i] = to_float(iota()) + 100.0f * static_cast<float>(i);
  transpose(tile);
  for (int i = 0; i < kLanes; ++i) {
    for (int j = 0; j < kLanes; ++j) failed += tile[i][j] != static_cast<float>(100 * j + i);
  }
}

}  // namespace

int main() {
  const auto flushed_exp = [](double x) { return ::exp(x) < 0x1.6a09e6p-126 ? 0.0 : ::exp(x); };
  check("exp", 1.5, -86.9f, 89, [](f32v x) { return v::exp(x); }, flushed_exp);
  check("exp_of_negative", 1.5, -86.9f, 0, [](f32v x) { return v::exp_of_negative(min_or_second(splat(0.0f), x)); },
        [=](double x) { return flushed_exp(x > 0 ? 0 : x); });
  check("expm1", 2, -30, 89, [](f32v x) { return v::expm1(x); }, [](double x) { return ::expm1(x); });
  check("log", 1.5, 0, 100, [](f32v x) { return v::log(x); }, [](double x) { return ::log(x); });
  check("log1p", 2, -0.999f, 10, [](f32v x) { return v::log1p(x); }, [](double x) { return ::log1p(x); });
  check("sigmoid", 3, -80, 30, [](f32v x) { return v::sigmoid(x); }, [](double x) { return 1 / (1 + ::exp(-x)); });
  check("tanh", 3, -12, 12, [](f32v x) { return v::tanh(x); }, [](double x) { return ::tanh(x); });
  check("erf", 3, -6, 6, [](f32v x) { return v::erf(x); }, [](double x) { return ::erf(x); });
  check("sin", 3, -8000, 8000, [](f32v x) { return v::sin(x); }, [](double x) { return ::sin(x); });
  check("cos", 3, -8000, 8000, [](f32v x) { return v::cos(x); }, [](double x) { return ::cos(x); });
  for (float y : {-3.5f, -1.0f, 0.3f, 2.0f, 7.0f}) {
    check("pow", 1, 0.01f, 40, [y](f32v x) { return v::pow(x, splat(y)); }, [y](double x) { return ::pow(x, y); });
  }
  check_pow();
  check_rounding();
  check_lanes();
  return failed > 100 ? 100 : failed;
}
