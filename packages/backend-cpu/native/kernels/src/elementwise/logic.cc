// Comparisons, tests of floats, logical and bitwise operations.  Results are bytes of 0 or 1.
// Bytes: the inputs and one per element for comparisons and tests.
#include "elementwise/elementwise.h"

namespace mycelia::MYC_ISA {

#define COMPARISON(op, Functor, symbol)                                             \
  namespace {                                                                       \
  struct Functor {                                                                  \
    template <class T>                                                              \
    MYC_INLINE uint8_t operator()(T a, T b) const {                                 \
      return a symbol b;                                                            \
    }                                                                               \
  };                                                                                \
  }                                                                                 \
  KERNEL_FN(op, f32) { return zip_each_float<uint8_t>(call, 9, Functor{}); }    \
  KERNEL_FN(op, f64) { return zip_scalars<double, uint8_t>(call, 17, Functor{}); }  \
  KERNEL_FN(op, i32) { return zip_scalars<int32_t, uint8_t>(call, 9, Functor{}); }  \
  KERNEL_FN(op, i64) { return zip_scalars<int64_t, uint8_t>(call, 17, Functor{}); } \
  KERNEL_FN(op, u8) { return zip_scalars<uint8_t, uint8_t>(call, 3, Functor{}); }   \
  KERNEL_FN(op, bool) { return zip_scalars<uint8_t, uint8_t>(call, 3, Functor{}); }

COMPARISON(equal, Equal, ==)
COMPARISON(not_equal, NotEqual, !=)
COMPARISON(less, Less, <)
COMPARISON(less_equal, LessEqual, <=)
COMPARISON(greater, Greater, >)
COMPARISON(greater_equal, GreaterEqual, >=)

// ---- tests of floats, on their bits so that no optimization can assume them away ----

// body(bits, infinity, lowest): an element's bits as a signed integer, those of infinity, and the lowest such integer,
// which is the sign's bit.
template <class Body>
MYC_INLINE int32_t test_bits(const myc_call* call, const Body& body) {
  const int32_t dtype = input(call).dtype;
  if (!is_16_bits(dtype))
    return map_scalars<int32_t, uint8_t>(call, 5, [=](int32_t b) { return body(b, 0x7f800000, INT32_MIN); });
  const int16_t infinity = dtype == MYC_F16 ? 0x7c00 : 0x7f80;
  return map_scalars<int16_t, uint8_t>(call, 3, [=](int16_t b) { return body(b, infinity, int16_t{INT16_MIN}); });
}

#define FLOAT_TEST(op, expression)                                                                       \
  KERNEL_FN(op, f32) {                                                                                   \
    return test_bits(call, [](auto b, [[maybe_unused]] auto infinity, [[maybe_unused]] auto lowest) -> uint8_t { \
      return expression;                                                                                   \
    });                                                                                                    \
  }

FLOAT_TEST(isnan, (b & ~lowest) > infinity)
FLOAT_TEST(isinf, (b & ~lowest) == infinity)
FLOAT_TEST(isfinite, (b & ~lowest) < infinity)
FLOAT_TEST(isposinf, b == infinity)
FLOAT_TEST(isneginf, b == (infinity | lowest))
FLOAT_TEST(signbit, (b & lowest) != 0)
FLOAT_TEST(logical_not, (b & ~lowest) == 0)

// ---- logical: any number that is not zero is true ----

#define LOGICAL(op, Functor, symbol)                                                \
  namespace {                                                                       \
  struct Functor {                                                                  \
    template <class T>                                                              \
    MYC_INLINE uint8_t operator()(T a, T b) const {                                 \
      return (a != 0) symbol(b != 0);                                               \
    }                                                                               \
  };                                                                                \
  }                                                                                 \
  KERNEL_FN(op, bool) { return zip_scalars<uint8_t, uint8_t>(call, 3, Functor{}); } \
  KERNEL_FN(op, f32) { return zip_each_float<uint8_t>(call, 9, Functor{}); }    \
  KERNEL_FN(op, i32) { return zip_scalars<int32_t, uint8_t>(call, 9, Functor{}); }  \
  KERNEL_FN(op, i64) { return zip_scalars<int64_t, uint8_t>(call, 17, Functor{}); }

LOGICAL(logical_and, LogicalAnd, &)
LOGICAL(logical_or, LogicalOr, |)
LOGICAL(logical_xor, LogicalXor, !=)

KERNEL_FN(logical_not, bool) {
  return map_scalars<uint8_t>(call, 2, [](uint8_t x) -> uint8_t { return !x; });
}
KERNEL_FN(logical_not, i32) {
  return map_scalars<int32_t, uint8_t>(call, 5, [](int32_t x) -> uint8_t { return !x; });
}
KERNEL_FN(logical_not, i64) {
  return map_scalars<int64_t, uint8_t>(call, 9, [](int64_t x) -> uint8_t { return !x; });
}

// ---- bitwise ----

#define BITWISE(op, Functor, symbol)                                       \
  namespace {                                                              \
  struct Functor {                                                         \
    template <class T>                                                     \
    MYC_INLINE T operator()(T a, T b) const {                              \
      return static_cast<T>(a symbol b);                                   \
    }                                                                      \
  };                                                                       \
  }                                                                        \
  KERNEL_FN(op, bool) { return zip_scalars<uint8_t>(call, 3, Functor{}); } \
  KERNEL_FN(op, u8) { return zip_scalars<uint8_t>(call, 3, Functor{}); }   \
  KERNEL_FN(op, i32) { return zip_scalars<int32_t>(call, 12, Functor{}); } \
  KERNEL_FN(op, i64) { return zip_scalars<int64_t>(call, 24, Functor{}); }

BITWISE(bitwise_and, BitAnd, &)
BITWISE(bitwise_or, BitOr, |)
BITWISE(bitwise_xor, BitXor, ^)

KERNEL_FN(invert, bool) {
  return map_scalars<uint8_t>(call, 2, [](uint8_t x) -> uint8_t { return !x; });
}
KERNEL_FN(invert, i32) {
  return map_scalars<int32_t>(call, 8, [](int32_t x) { return ~x; });
}
KERNEL_FN(invert, i64) {
  return map_scalars<int64_t>(call, 16, [](int64_t x) { return ~x; });
}

namespace {

// Counts outside of the width move everything out: 0, or the sign for the right shift.
template <class T, class U>
struct ShiftLeft {
  MYC_INLINE T operator()(T x, T count) const {
    return static_cast<U>(count) >= 8 * sizeof(T) ? 0 : static_cast<T>(static_cast<U>(x) << count);
  }
};
template <class T, class U>
struct ShiftRight {
  MYC_INLINE T operator()(T x, T count) const {
    return x >> (static_cast<U>(count) >= 8 * sizeof(T) ? static_cast<T>(8 * sizeof(T) - 1) : count);
  }
};

}  // namespace

KERNEL_FN(bitwise_left_shift, i32) { return zip_scalars<int32_t>(call, 12, ShiftLeft<int32_t, uint32_t>{}); }
KERNEL_FN(bitwise_left_shift, i64) { return zip_scalars<int64_t>(call, 24, ShiftLeft<int64_t, uint64_t>{}); }
KERNEL_FN(bitwise_right_shift, i32) {
  return zip_scalars<int32_t>(call, 12, ShiftRight<int32_t, uint32_t>{});
}
KERNEL_FN(bitwise_right_shift, i64) {
  return zip_scalars<int64_t>(call, 24, ShiftRight<int64_t, uint64_t>{});
}

}  // namespace mycelia::MYC_ISA
