// What kernels that read index tensors share: dispatch on the index dtype, bounds, rows of any element size.
#ifndef MYCELIA_INDEX_COMMON_H_
#define MYCELIA_INDEX_COMMON_H_

#include "mycelia/kernels.h"

namespace mycelia::MYC_ISA {

// body(pointer) with the indices as int32_t or int64_t; other dtypes are left to the reference body.
template <class Body>
MYC_INLINE int32_t with_indices(const myc_tensor& t, const Body& body) {
  if (t.dtype == MYC_I32) return body(static_cast<const int32_t*>(t.data));
  if (t.dtype == MYC_I64) return body(static_cast<const int64_t*>(t.data));
  return MYC_E_UNSUPPORTED;
}

// body(T()) with the unsigned type of an element's size.
template <class Body>
MYC_INLINE int32_t with_item(int64_t bytes, const Body& body) {
  switch (bytes) {
    case 1: return body(uint8_t());
    case 2: return body(uint16_t());
    case 4: return body(uint32_t());
    case 8: return body(uint64_t());
    default: return MYC_E_UNSUPPORTED;
  }
}

// body(T()) with the arithmetic type of a dtype.
template <class Body>
MYC_INLINE int32_t with_number(int32_t dtype, const Body& body) {
  switch (dtype) {
    case MYC_F32: return body(float());
    case MYC_F64: return body(double());
    case MYC_I32: return body(int32_t());
    case MYC_I64: return body(int64_t());
    default: return MYC_E_UNSUPPORTED;
  }
}

// MYC_E_ARGUMENT naming the first of `count` indices that is not in [-n, n).
template <class I>
int32_t check_indices(const myc_call* call, const I* index, int64_t count, int64_t n, int axis, int64_t step = 1) {
  I low = 0, high = -1;
  for (int64_t i = 0; i < count; ++i) {
    low = min(low, index[i * step]);
    high = max(high, index[i * step]);
  }
  if (low >= -n && high < n) return MYC_OK;
  int64_t i = 0;
  while (index[i * step] >= -n && index[i * step] < n) ++i;
  return fail(call, "index %lld is out of bounds for axis %d with size %lld", static_cast<long long>(index[i * step]),
              axis, static_cast<long long>(n));
}

template <class I>
MYC_INLINE int64_t wrap(I index, int64_t n) {
  return index < 0 ? index + n : index;
}

MYC_INLINE void copy_bytes(char* y, const char* x, int64_t bytes) {
  switch (bytes) {  // one load and one store instead of a call
    case 1: *y = *x; return;
    case 2: memcpy(y, x, 2); return;
    case 4: memcpy(y, x, 4); return;
    case 8: memcpy(y, x, 8); return;
    case 16: memcpy(y, x, 16); return;
    default: memcpy(y, x, bytes);
  }
}

}  // namespace mycelia::MYC_ISA

#endif
