// What the runtime's own kernels share.
#ifndef MYCELIA_LITE_OWN_H_
#define MYCELIA_LITE_OWN_H_

#include <cstdint>

#include "mycelia/abi.h"
#include "mycelia/op_attrs.h"

namespace mycelia::lite {

#define LITE_OWN(op, suffix, dtypes) int32_t own_##op##_##suffix(const myc_call* call);
#include "own.def"
#undef LITE_OWN

template <class T>
const T* in(const myc_call* call, int i) {
  return call->in[i] ? static_cast<const T*>(call->in[i]->data) : nullptr;
}
template <class T>
T* out(const myc_call* call, int i = 0) {
  return static_cast<T*>(call->out[i]->data);
}
template <class A>
const A& attrs(const myc_call* call) {
  return *static_cast<const A*>(call->attrs);
}

// body(i) for i in [0, n), by several threads.
template <class Body>
void for_each(const myc_call* call, int64_t n, int64_t grain, const Body& body) {
  call->ctx->parallel_for(
      call->ctx, n, grain < 1 ? 1 : grain,
      [](void* arg, int64_t begin, int64_t end, int32_t) {
        for (int64_t i = begin; i < end; ++i) (*static_cast<const Body*>(arg))(i);
      },
      const_cast<Body*>(&body));
}

}  // namespace mycelia::lite

#endif
