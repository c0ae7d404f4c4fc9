// Integers of 8 bits as TensorFlow Lite's kernels compute with them.
#include <algorithm>

#include "own.h"

namespace mycelia::lite {

namespace {

constexpr int64_t kGrain = 4096;

template <class T>
void look_up(const myc_call* call, uint8_t first) {
  const uint8_t* const x = in<uint8_t>(call, 0);
  const T* const table = in<T>(call, 1);
  T* const y = out<T>(call);
  for_each(call, call->out[0]->size, kGrain, [=](int64_t i) { y[i] = table[static_cast<uint8_t>(x[i] - first)]; });
}

// Products are rounded to 31 bits with halves up, then by the shift.
template <class T>
void rescale(const myc_call* call, const RescaleAttributes& a) {
  const int32_t* const x = in<int32_t>(call, 0);
  T* const y = out<T>(call);
  const int64_t half = a.right ? int64_t{1} << (a.right - 1) : 0, negative = a.right && !a.up ? -1 : 0;
  for_each(call, call->out[0]->size, kGrain, [&](int64_t i) {
    const auto wrapped = static_cast<int32_t>(static_cast<uint32_t>(x[i]) << a.left);
    const int64_t wide = (wrapped * a.multiplier + (int64_t{1} << 30)) >> 31;
    const int64_t scaled = (wide + half + ((wide >> 63) & negative)) >> a.right;
    y[i] = static_cast<T>(std::clamp(scaled + a.zero, a.low, a.high));
  });
}

}  // namespace

int32_t own_lookup_any(const myc_call* call) {
  const auto first = static_cast<uint8_t>(attrs<LookupAttributes>(call).first);
  switch (call->out[0]->dtype) {
    case MYC_I8:
    case MYC_U8: look_up<uint8_t>(call, first); return MYC_OK;
    case MYC_I32: look_up<int32_t>(call, first); return MYC_OK;
    default: return MYC_E_UNSUPPORTED;
  }
}

int32_t own_rescale_i32(const myc_call* call) {
  const auto& a = attrs<RescaleAttributes>(call);
  switch (call->out[0]->dtype) {
    case MYC_I8: rescale<int8_t>(call, a); return MYC_OK;
    case MYC_U8: rescale<uint8_t>(call, a); return MYC_OK;
    case MYC_I32: rescale<int32_t>(call, a); return MYC_OK;
    default: return MYC_E_UNSUPPORTED;
  }
}

}  // namespace mycelia::lite
