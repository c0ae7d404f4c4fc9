// The loops behind the primitives of fused_map. The arithmetic is that of the kernels of the single ops: the
// same functions on the same vectors, and two steps in one are rounded twice, so fusing changes no bit.
#include "elementwise/fused_steps.h"

#include "elementwise/elementwise.h"
#include "simd/half.h"
#include "simd/activations.h"

namespace mycelia::MYC_ISA {

namespace {

// Keeps a product and the sum that follows from becoming one rounding.
MYC_INLINE f32v rounded(f32v x) {
#if defined(__x86_64__)
  asm("" : "+x"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#endif
  return x;
}

struct Vectors {
  const float* p;
  MYC_INLINE f32v at(int64_t i) const { return load(p + i); }
  MYC_INLINE f32v at(int64_t i, int64_t lanes) const { return load_partial(p + i, lanes); }
};
struct Number {
  f32v v;
  MYC_INLINE f32v at(int64_t) const { return v; }
  MYC_INLINE f32v at(int64_t, int64_t) const { return v; }
};

MYC_INLINE Vectors vectors(const void* p) { return {static_cast<const float*>(p)}; }
MYC_INLINE Number number(const void* p) { return {splat(*static_cast<const float*>(p))}; }

template <class F, class... Operand>
MYC_INLINE void loop(void* to, int64_t n, const Operand&... operand) {
  const F f{};
  float* const y = static_cast<float*>(to);
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const f32v first = f(operand.at(i)...), second = f(operand.at(i + kLanes)...);
    store(y + i, first);
    store(y + i + kLanes, second);
  }
  for (; i + kLanes <= n; i += kLanes) store(y + i, f(operand.at(i)...));
  if (i < n) store_partial(y + i, f(operand.at(i, n - i)...), n - i);
}

template <class F>
void one(const void* const* x, unsigned, void* y, int64_t n) {
  loop<F>(y, n, vectors(x[0]));
}
template <class F>
void two(const void* const* x, unsigned numbers, void* y, int64_t n) {
  if (numbers == 0) return loop<F>(y, n, vectors(x[0]), vectors(x[1]));
  if (numbers == 2) return loop<F>(y, n, vectors(x[0]), number(x[1]));
  loop<F>(y, n, number(x[0]), vectors(x[1]));
}
template <class F>
void three(const void* const* x, unsigned numbers, void* y, int64_t n) {
  switch (numbers) {
    case 0: return loop<F>(y, n, vectors(x[0]), vectors(x[1]), vectors(x[2]));
    case 1: return loop<F>(y, n, number(x[0]), vectors(x[1]), vectors(x[2]));
    case 2: return loop<F>(y, n, vectors(x[0]), number(x[1]), vectors(x[2]));
    case 3: return loop<F>(y, n, number(x[0]), number(x[1]), vectors(x[2]));
    case 4: return loop<F>(y, n, vectors(x[0]), vectors(x[1]), number(x[2]));
    case 5: return loop<F>(y, n, number(x[0]), vectors(x[1]), number(x[2]));
    default: return loop<F>(y, n, vectors(x[0]), number(x[1]), number(x[2]));
  }
}

MYC_INLINE i32v integers(f32v x) { return bits(x); }

#define ONE(name, expression)                                        \
  struct name {                                                      \
    MYC_INLINE f32v operator()(f32v x) const { return expression; } \
  };
#define TWO(name, expression)                                                \
  struct name {                                                              \
    MYC_INLINE f32v operator()(f32v a, f32v b) const { return expression; } \
  };
#define THREE(name, expression)                                                      \
  struct name {                                                                      \
    MYC_INLINE f32v operator()(f32v a, f32v b, f32v c) const { return expression; } \
  };

ONE(Copy, x)
ONE(RoundHalf, rounded_to<Half>(x))
ONE(RoundBrain, rounded_to<Brain>(x))
ONE(FloatOfInt, to_float(integers(x)))
ONE(FloatOfMask, from_bits(bits(x) & bits(splat(1.0f))))
ONE(IntOfFloat, from_bits(cut(x)))
ONE(IntOfMask, from_bits(bits(x) & 1))
ONE(MaskOfFloat, from_bits(x != 0.0f))
ONE(MaskOfInt, from_bits(bits(x) != 0))

TWO(Add, a + b)
TWO(Sub, a - b)
TWO(Mul, a * b)
TWO(Div, a / b)
TWO(Maximum, maximum(a, b))
TWO(Minimum, minimum(a, b))
TWO(Pow, pow(a, b))
ONE(Neg, -x)
ONE(Abs, abs(x))
ONE(Square, x* x)
ONE(Sign, to_float((x < 0.0f) - (x > 0.0f)))
ONE(Reciprocal, 1.0f / x)
ONE(Sqrt, sqrt(x))
ONE(Rsqrt, 1.0f / sqrt(x))
ONE(Floor, floor(x))
ONE(Ceil, ceil(x))
ONE(Trunc, trunc(x))
ONE(Round, round_even(x))
TWO(AddInt, from_bits((i32v)((u32v)bits(a) + (u32v)bits(b))))
TWO(SubInt, from_bits((i32v)((u32v)bits(a) - (u32v)bits(b))))
TWO(MulInt, from_bits((i32v)((u32v)bits(a) * (u32v)bits(b))))

THREE(MulAdd, rounded(a* b) + c)
THREE(MulSub, rounded(a* b) - c)
THREE(SubProduct, c - rounded(a * b))
THREE(AddMul, (a + b) * c)
THREE(SubMul, (a - b) * c)
THREE(MulMul, a* b* c)
THREE(AddAdd, a + b + c)

TWO(Equal, from_bits(a == b))
TWO(NotEqual, from_bits(a != b))
TWO(Less, from_bits(a < b))
TWO(LessEqual, from_bits(a <= b))
TWO(EqualInt, from_bits(bits(a) == bits(b)))
TWO(NotEqualInt, from_bits(bits(a) != bits(b)))
TWO(LessInt, from_bits(bits(a) < bits(b)))
TWO(LessEqualInt, from_bits(bits(a) <= bits(b)))
TWO(And, from_bits(bits(a) & bits(b)))
TWO(Or, from_bits(bits(a) | bits(b)))
TWO(Xor, from_bits(bits(a) ^ bits(b)))
ONE(Not, from_bits(~bits(x)))
THREE(Select, select(bits(a), b, c))

ONE(Exp, exp(x))
ONE(Expm1, expm1(x))
ONE(Log, log(x))
ONE(Log1p, log1p(x))
ONE(Sin, sin(x))
ONE(Cos, cos(x))
ONE(Tanh, tanh(x))
TWO(TanhGrad, tanh_grad(a, b))
ONE(Erf, erf(x))

ONE(Sigmoid, sigmoid(x))
TWO(SigmoidGrad, sigmoid_grad(a, b))
ONE(Relu, relu(x))
TWO(ReluGrad, relu_grad(a, b))
ONE(Relu6, relu6(x))
THREE(Clip, clip(a, b, c))
TWO(LeakyRelu, leaky_relu(a, b))
THREE(LeakyReluGrad, leaky_relu_grad(a, b, c))
TWO(Elu, elu(a, b))
THREE(EluGrad, elu_grad(a, b, c))
ONE(Hardsigmoid, hardsigmoid(x))
ONE(Hardswish, hardswish(x))
TWO(HardswishGrad, hardswish_grad(a, b))
ONE(Silu, silu(x))
TWO(SiluGrad, silu_grad(a, b))
ONE(FastGelu, fast_gelu(x))
ONE(Mish, mish(x))
ONE(Softplus, softplus(x))
ONE(Gelu, gelu(x))
TWO(GeluGrad, gelu_grad(a, b))
ONE(GeluTanh, gelu_tanh(x))
TWO(GeluTanhGrad, gelu_tanh_grad(a, b))

void load_bool(const void* const* x, unsigned, void* to, int64_t n) {
  const uint8_t* const from = static_cast<const uint8_t*>(x[0]);
  int32_t* const y = static_cast<int32_t*>(to);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = -static_cast<int32_t>(from[i] != 0);
}
void store_bool(const void* const* x, unsigned, void* to, int64_t n) {
  const int32_t* const from = static_cast<const int32_t*>(x[0]);
  uint8_t* const y = static_cast<uint8_t*>(to);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<uint8_t>(from[i] & 1);
}

template <class T>
void load_16(const void* const* x, unsigned, void* to, int64_t n) {
  widen(static_cast<const T*>(x[0]), static_cast<float*>(to), n);
}
template <class T>
void store_16(const void* const* x, unsigned, void* to, int64_t n) {
  narrow(static_cast<const float*>(x[0]), static_cast<T*>(to), n);
}

// F and the rounding to T of its result.
template <class F, class T>
struct Rounded {
  template <class... V>
  MYC_INLINE f32v operator()(V... v) const {
    return rounded_to<T>(F{}(v...));
  }
};

template <class T>
StepFn rounded_step(int64_t primitive) {
  switch (primitive) {
    case MYC_FUSED_ADD: return two<Rounded<Add, T>>;
    case MYC_FUSED_SUB: return two<Rounded<Sub, T>>;
    case MYC_FUSED_MUL: return two<Rounded<Mul, T>>;
    case MYC_FUSED_DIV: return two<Rounded<Div, T>>;
    case MYC_FUSED_SQUARE: return one<Rounded<Square, T>>;
    case MYC_FUSED_RECIPROCAL: return one<Rounded<Reciprocal, T>>;
    case MYC_FUSED_SQRT: return one<Rounded<Sqrt, T>>;
    case MYC_FUSED_RSQRT: return one<Rounded<Rsqrt, T>>;
    case MYC_FUSED_EXP: return one<Rounded<Exp, T>>;
    case MYC_FUSED_TANH: return one<Rounded<Tanh, T>>;
    case MYC_FUSED_TANH_GRAD: return two<Rounded<TanhGrad, T>>;
    case MYC_FUSED_SIGMOID: return one<Rounded<Sigmoid, T>>;
    case MYC_FUSED_SIGMOID_GRAD: return two<Rounded<SigmoidGrad, T>>;
    case MYC_FUSED_SILU: return one<Rounded<Silu, T>>;
    case MYC_FUSED_SILU_GRAD: return two<Rounded<SiluGrad, T>>;
    case MYC_FUSED_GELU: return one<Rounded<Gelu, T>>;
    case MYC_FUSED_GELU_GRAD: return two<Rounded<GeluGrad, T>>;
    case MYC_FUSED_GELU_TANH: return one<Rounded<GeluTanh, T>>;
    case MYC_FUSED_GELU_TANH_GRAD: return two<Rounded<GeluTanhGrad, T>>;
    default: return nullptr;
  }
}

}  // namespace

StepFn rounded_step_function(int64_t primitive, int64_t rounding) {
  return rounding == MYC_FUSED_ROUND_F16 ? rounded_step<Half>(primitive) : rounded_step<Brain>(primitive);
}

StepFn step_function(int64_t primitive) {
  switch (primitive) {
    case MYC_FUSED_COPY: return one<Copy>;
    case MYC_FUSED_LOAD_BOOL: return load_bool;
    case MYC_FUSED_STORE_BOOL: return store_bool;
    case MYC_FUSED_FLOAT_OF_INT: return one<FloatOfInt>;
    case MYC_FUSED_FLOAT_OF_MASK: return one<FloatOfMask>;
    case MYC_FUSED_INT_OF_FLOAT: return one<IntOfFloat>;
    case MYC_FUSED_INT_OF_MASK: return one<IntOfMask>;
    case MYC_FUSED_MASK_OF_FLOAT: return one<MaskOfFloat>;
    case MYC_FUSED_MASK_OF_INT: return one<MaskOfInt>;
    case MYC_FUSED_ADD: return two<Add>;
    case MYC_FUSED_SUB: return two<Sub>;
    case MYC_FUSED_MUL: return two<Mul>;
    case MYC_FUSED_DIV: return two<Div>;
    case MYC_FUSED_MAXIMUM: return two<Maximum>;
    case MYC_FUSED_MINIMUM: return two<Minimum>;
    case MYC_FUSED_POW: return two<Pow>;
    case MYC_FUSED_NEG: return one<Neg>;
    case MYC_FUSED_ABS: return one<Abs>;
    case MYC_FUSED_SQUARE: return one<Square>;
    case MYC_FUSED_SIGN: return one<Sign>;
    case MYC_FUSED_RECIPROCAL: return one<Reciprocal>;
    case MYC_FUSED_SQRT: return one<Sqrt>;
    case MYC_FUSED_RSQRT: return one<Rsqrt>;
    case MYC_FUSED_FLOOR: return one<Floor>;
    case MYC_FUSED_CEIL: return one<Ceil>;
    case MYC_FUSED_TRUNC: return one<Trunc>;
    case MYC_FUSED_ROUND: return one<Round>;
    case MYC_FUSED_ADD_INT: return two<AddInt>;
    case MYC_FUSED_SUB_INT: return two<SubInt>;
    case MYC_FUSED_MUL_INT: return two<MulInt>;
    case MYC_FUSED_MUL_ADD: return three<MulAdd>;
    case MYC_FUSED_MUL_SUB: return three<MulSub>;
    case MYC_FUSED_SUB_PRODUCT: return three<SubProduct>;
    case MYC_FUSED_ADD_MUL: return three<AddMul>;
    case MYC_FUSED_SUB_MUL: return three<SubMul>;
    case MYC_FUSED_MUL_MUL: return three<MulMul>;
    case MYC_FUSED_ADD_ADD: return three<AddAdd>;
    case MYC_FUSED_EQUAL: return two<Equal>;
    case MYC_FUSED_NOT_EQUAL: return two<NotEqual>;
    case MYC_FUSED_LESS: return two<Less>;
    case MYC_FUSED_LESS_EQUAL: return two<LessEqual>;
    case MYC_FUSED_EQUAL_INT: return two<EqualInt>;
    case MYC_FUSED_NOT_EQUAL_INT: return two<NotEqualInt>;
    case MYC_FUSED_LESS_INT: return two<LessInt>;
    case MYC_FUSED_LESS_EQUAL_INT: return two<LessEqualInt>;
    case MYC_FUSED_AND: return two<And>;
    case MYC_FUSED_OR: return two<Or>;
    case MYC_FUSED_XOR: return two<Xor>;
    case MYC_FUSED_NOT: return one<Not>;
    case MYC_FUSED_SELECT: return three<Select>;
    case MYC_FUSED_EXP: return one<Exp>;
    case MYC_FUSED_EXPM1: return one<Expm1>;
    case MYC_FUSED_LOG: return one<Log>;
    case MYC_FUSED_LOG1P: return one<Log1p>;
    case MYC_FUSED_SIN: return one<Sin>;
    case MYC_FUSED_COS: return one<Cos>;
    case MYC_FUSED_TANH: return one<Tanh>;
    case MYC_FUSED_TANH_GRAD: return two<TanhGrad>;
    case MYC_FUSED_ERF: return one<Erf>;
    case MYC_FUSED_SIGMOID: return one<Sigmoid>;
    case MYC_FUSED_SIGMOID_GRAD: return two<SigmoidGrad>;
    case MYC_FUSED_RELU: return one<Relu>;
    case MYC_FUSED_RELU_GRAD: return two<ReluGrad>;
    case MYC_FUSED_RELU6: return one<Relu6>;
    case MYC_FUSED_CLIP: return three<Clip>;
    case MYC_FUSED_LEAKY_RELU: return two<LeakyRelu>;
    case MYC_FUSED_LEAKY_RELU_GRAD: return three<LeakyReluGrad>;
    case MYC_FUSED_ELU: return two<Elu>;
    case MYC_FUSED_ELU_GRAD: return three<EluGrad>;
    case MYC_FUSED_HARDSIGMOID: return one<Hardsigmoid>;
    case MYC_FUSED_HARDSWISH: return one<Hardswish>;
    case MYC_FUSED_HARDSWISH_GRAD: return two<HardswishGrad>;
    case MYC_FUSED_SILU: return one<Silu>;
    case MYC_FUSED_SILU_GRAD: return two<SiluGrad>;
    case MYC_FUSED_FAST_GELU: return one<FastGelu>;
    case MYC_FUSED_MISH: return one<Mish>;
    case MYC_FUSED_SOFTPLUS: return one<Softplus>;
    case MYC_FUSED_GELU: return one<Gelu>;
    case MYC_FUSED_GELU_GRAD: return two<GeluGrad>;
    case MYC_FUSED_GELU_TANH: return one<GeluTanh>;
    case MYC_FUSED_GELU_TANH_GRAD: return two<GeluTanhGrad>;
    case MYC_FUSED_LOAD_F16: return load_16<Half>;
    case MYC_FUSED_LOAD_BF16: return load_16<Brain>;
    case MYC_FUSED_STORE_F16: return store_16<Half>;
    case MYC_FUSED_STORE_BF16: return store_16<Brain>;
    case MYC_FUSED_ROUND_F16: return one<RoundHalf>;
    case MYC_FUSED_ROUND_BF16: return one<RoundBrain>;
    default: return nullptr;
  }
}

}  // namespace mycelia::MYC_ISA
