// Conversion between all real element types.  Bytes: one read and one write.
// float16 and bfloat16 go through float32 in blocks that stay in L1; rounding is to nearest, ties to even.
// Floating numbers are cut to integers of 32 and 64 bits, see `cut`; narrower and unsigned ones are the low bits of one
// of 64.
#include "elementwise/elementwise.h"
#include "simd/half.h"

namespace mycelia::MYC_ISA {

namespace {

template <class T>
constexpr bool is_16 = false;
template <>
constexpr bool is_16<Half> = true;
template <>
constexpr bool is_16<Brain> = true;

template <class A, class B>
constexpr bool is_same = false;
template <class A>
constexpr bool is_same<A, A> = true;

template <class T>
constexpr bool is_float = is_same<T, float> || is_same<T, double>;

template <class From, class To>
MYC_INLINE To convert_one(From x) {
  if constexpr (is_same<To, bool>) {
    return x != From{0};
  } else if constexpr (is_float<From> && (is_same<To, int32_t> || is_same<To, int64_t>)) {
    return cut<To>(x);
  } else if constexpr (is_float<From> && is_same<To, uint64_t>) {
    const bool upper = x >= From(0x1p63) && x < From(0x1p64);
    const uint64_t y = static_cast<uint64_t>(cut<int64_t>(upper ? x - From(0x1p63) : x));
    return upper ? y | uint64_t{1} << 63 : y;
  } else if constexpr (is_float<From> && !is_float<To>) {
    return static_cast<To>(cut<int64_t>(x));  // wraps around
  } else {
    return static_cast<To>(x);
  }
}

template <class From, class To>
void convert(const From* x, To* y, int64_t n) {
  if constexpr (is_same<From, bool>) {
    convert(reinterpret_cast<const uint8_t*>(x), y, n);  // vectorizes, unlike bool
  } else if constexpr (is_16<From> && is_same<To, bool>) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i].bits & 0x7fff) != 0;
  } else if constexpr (is_16<From> && is_same<To, float>) {
    widen(x, y, n);
  } else if constexpr (is_same<From, float> && is_16<To>) {
    narrow(x, y, n);
  } else if constexpr (is_16<From> || is_16<To>) {
    float block[kHalfBlock];
    for (int64_t i = 0; i < n; i += kHalfBlock) {
      const int64_t m = min(kHalfBlock, n - i);
      if constexpr (is_16<From>) {
        widen(x + i, block, m);
      } else if constexpr (is_same<From, double>) {
        for (int64_t j = 0; j < m; ++j) block[j] = to_odd(x[i + j]);
      } else {
        convert(x + i, block, m);
      }
      convert(block, y + i, m);
    }
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = convert_one<From, To>(x[i]);
  }
}

// Calls body(T{}) with the C++ type of a dtype; false for complex numbers.
template <class Body>
MYC_INLINE bool with_type(int32_t dtype, const Body& body) {
  switch (dtype) {
    case MYC_BOOL: body(bool{}); return true;
    case MYC_I8: body(int8_t{}); return true;
    case MYC_I16: body(int16_t{}); return true;
    case MYC_I32: body(int32_t{}); return true;
    case MYC_I64: body(int64_t{}); return true;
    case MYC_U8: body(uint8_t{}); return true;
    case MYC_U16: body(uint16_t{}); return true;
    case MYC_U32: body(uint32_t{}); return true;
    case MYC_U64: body(uint64_t{}); return true;
    case MYC_F16: body(Half{}); return true;
    case MYC_BF16: body(Brain{}); return true;
    case MYC_F32: body(float{}); return true;
    case MYC_F64: body(double{}); return true;
    default: return false;
  }
}

}  // namespace

KERNEL_FN(cast, any) {
  const myc_tensor &x = input(call), &y = output(call);
  if (x.dtype == y.dtype) {
    const int64_t size = item_size(x.dtype);
    parallel_for(call, x.size, grain_of(2 * size), [&](int64_t begin, int64_t end) {
      memcpy(out<char>(call) + begin * size, in<char>(call) + begin * size, (end - begin) * size);
    });
    return MYC_OK;
  }
  bool known = false;
  const bool known_from = with_type(x.dtype, [&](auto from) {
    known = with_type(y.dtype, [&](auto to) {
      using From = decltype(from);
      using To = decltype(to);
      parallel_for(call, x.size, grain_of(sizeof(From) + sizeof(To)), [&](int64_t begin, int64_t end) {
        convert(in<From>(call) + begin, out<To>(call) + begin, end - begin);
      });
    });
  });
  return known_from && known ? MYC_OK : MYC_E_UNSUPPORTED;
}

namespace {

template <class T>
int32_t round_all(const myc_call* call) {
  parallel_for(call, input(call).size, grain_of(8), [&](int64_t begin, int64_t end) {
    T block[kHalfBlock];
    for (int64_t i = begin; i < end; i += kHalfBlock) {
      const int64_t count = min(kHalfBlock, end - i);
      narrow(in<float>(call) + i, block, count);
      widen(block, out<float>(call) + i, count);
    }
  });
  return MYC_OK;
}

}  // namespace

KERNEL_FN(round_f16, f32) { return round_all<Half>(call); }
KERNEL_FN(round_bf16, f32) { return round_all<Brain>(call); }

}  // namespace mycelia::MYC_ISA
