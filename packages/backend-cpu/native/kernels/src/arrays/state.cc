// Overwriting parameters: assign, assign_add, assign_sub.
#include "elementwise/elementwise.h"

namespace mycelia::MYC_ISA {
namespace {

// 12 bytes moved per float: in = variable, value; the value may be one element for all.
template <class T, class F>
int32_t combine(const myc_call* call, const F& f) {
  const T* x = in<T>(call, 0);
  const T* v = in<T>(call, 1);
  T* y = out<T>(call);
  const bool one = input(call, 1).size == 1;
  parallel_for(call, output(call).size, 1 << 15, [&](int64_t begin, int64_t end) {
    if (one) {
      const T value = v[0];
      for (int64_t i = begin; i < end; ++i) y[i] = f(x[i], value);
    } else {
      for (int64_t i = begin; i < end; ++i) y[i] = f(x[i], v[i]);
    }
  });
  return MYC_OK;
}

template <class T>
int32_t add_to(const myc_call* call) {
  return combine<T>(call, [](T a, T b) { return static_cast<T>(a + b); });
}
template <class T>
int32_t subtract_from(const myc_call* call) {
  return combine<T>(call, [](T a, T b) { return static_cast<T>(a - b); });
}

// Floats of another type, rounded to the variable's; MYC_E_UNSUPPORTED: other numbers.
int32_t assign_floats(const myc_call* call) {
  const myc_tensor &value = input(call, 1), &y = output(call);
  const auto is_float = [](int32_t dtype) { return dtype == MYC_F32 || is_16_bits(dtype); };
  if (!is_float(value.dtype) || !is_float(y.dtype) || value.size != y.size) return MYC_E_UNSUPPORTED;
  return with_float_type(value.dtype, [&](auto from) {
    return with_float_type(y.dtype, [&](auto to) -> int32_t {
      const decltype(from)* x = in<decltype(from)>(call, 1);
      decltype(to)* result = out<decltype(to)>(call);
      parallel_for(call, y.size, grain_of(6), [&](int64_t begin, int64_t end) {
        map(x + begin, result + begin, end - begin, [](f32v v) { return v; });
      });
      return MYC_OK;
    });
  });
}

struct Sum {
  MYC_INLINE f32v operator()(f32v a, f32v b) const { return a + b; }
};
struct Difference {
  MYC_INLINE f32v operator()(f32v a, f32v b) const { return a - b; }
};

}  // namespace

KERNEL_FN(assign, any) {
  const myc_tensor& value = input(call, 1);
  const myc_tensor& y = output(call);
  if (value.dtype != y.dtype) return assign_floats(call);
  const int64_t bytes = item_size(y.dtype);
  char* to = out<char>(call);
  if (value.size == y.size) {
    memmove(to, value.data, static_cast<size_t>(bytes * y.size));
  } else {
    for (int64_t i = 0; i < y.size; ++i) memcpy(to + i * bytes, value.data, static_cast<size_t>(bytes));
  }
  return MYC_OK;
}

KERNEL_FN(assign_add, f32) { return zip_floats(call, 12, Sum{}); }
KERNEL_FN(assign_add, i32) { return add_to<int32_t>(call); }
KERNEL_FN(assign_add, i64) { return add_to<int64_t>(call); }
KERNEL_FN(assign_sub, f32) { return zip_floats(call, 12, Difference{}); }
KERNEL_FN(assign_sub, i32) { return subtract_from<int32_t>(call); }
KERNEL_FN(assign_sub, i64) { return subtract_from<int64_t>(call); }

}  // namespace mycelia::MYC_ISA
