// The functions that may follow a product, on vectors.
#ifndef MYCELIA_GEMM_ACTIVATIONS_H_
#define MYCELIA_GEMM_ACTIVATIONS_H_

#include "gemm/row_types.h"
#include "part.h"
#include "simd/activations.h"

namespace mycelia::MYC_ISA {

MYC_INLINE f32v activate(f32v x, Activation f) {
  switch (f) {
    case Activation::relu:
      return relu(x);
    case Activation::relu6:
      return relu6(x);
    case Activation::hardswish:
      return hardswish(x);
    case Activation::silu:
      return silu(x);
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::none:
      break;
  }
  return x;
}

// The same on `count` floats, of those that tiles do not apply themselves.  activations.cc, a part
KERNEL_PART(activations)(float* y, int64_t count, Activation f);

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_ACTIVATIONS_H_
