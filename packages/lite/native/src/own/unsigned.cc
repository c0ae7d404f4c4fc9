// What of uint64 differs from int64 and is not a matter of order.
#include "own.h"

namespace mycelia::lite {

namespace {

// y = f(a, b), broadcast.
template <class F>
int32_t of_two(const myc_call* call, const F& f) {
  const myc_tensor &a = *call->in[0], &b = *call->in[1], &y = *call->out[0];
  const auto place = [&](const myc_tensor& t, int64_t i) {
    int64_t at = 0, stride = 1;
    for (int d = y.rank - 1; d >= 0; --d) {
      const int64_t index = i % y.shape[d];
      i /= y.shape[d];
      const int own = d - (y.rank - t.rank);
      if (own < 0) continue;
      if (t.shape[own] != 1) at += index * stride;
      stride *= t.shape[own];
    }
    return at;
  };
  for_each(call, y.size, 1024, [&](int64_t i) { out<uint64_t>(call)[i] = f(in<uint64_t>(call, 0)[place(a, i)], in<uint64_t>(call, 1)[place(b, i)]); });
  return MYC_OK;
}

// Division by zero gives the largest number, 0 / 0 gives 0, as kernels of the other integers have it.
uint64_t quotient(uint64_t a, uint64_t b) { return b ? a / b : a ? UINT64_MAX : 0; }
uint64_t rest(uint64_t a, uint64_t b) { return b ? a % b : 0; }

}  // namespace

int32_t own_bitwise_right_shift_u64(const myc_call* call) {
  return of_two(call, [](uint64_t a, uint64_t b) { return b < 64 ? a >> b : 0; });
}
int32_t own_truncate_div_u64(const myc_call* call) { return of_two(call, quotient); }
int32_t own_truncate_mod_u64(const myc_call* call) { return of_two(call, rest); }
int32_t own_floor_mod_u64(const myc_call* call) { return of_two(call, rest); }

}  // namespace mycelia::lite
