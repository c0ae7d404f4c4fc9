// A whole vector or less of it, by a branch: a masked access of all lanes takes longer than a plain one.  `lanes`: up to kLanes.
#ifndef MYCELIA_SIMD_LANES_H_
#define MYCELIA_SIMD_LANES_H_

#include "simd/vec.h"

namespace mycelia::MYC_ISA {

template <class T>
MYC_INLINE f32v load_lanes(const T* p, int64_t lanes) {
  return lanes == kLanes ? load(p) : load_partial(p, lanes);
}
template <class T>
MYC_INLINE void store_lanes(T* p, f32v v, int64_t lanes) {
  if (lanes == kLanes) {
    store(p, v);
  } else {
    store_partial(p, v, lanes);
  }
}
MYC_INLINE f32v keep_lanes(f32v v, int64_t lanes) {
  return lanes == kLanes ? v : select(iota() < static_cast<int32_t>(lanes), v, f32v{});
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_SIMD_LANES_H_
