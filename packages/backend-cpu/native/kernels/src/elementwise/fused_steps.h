// Primitives of fused_map: loops over a tile that lies in L1, one function for each. Elements are 4 bytes:
// float32, int32, or masks of 0 and -1; only load_bool reads bytes and store_bool writes them.
#ifndef MYCELIA_FUSED_STEPS_H_
#define MYCELIA_FUSED_STEPS_H_

#include "mycelia/fused_code.h"
#include "mycelia/kernels.h"

namespace mycelia::MYC_ISA {

// y[i] = f(a[i], b[i], c[i]) for i < n; bit k of `numbers` is set where operand k is one number.
using StepFn = void (*)(const void* const* operand, unsigned numbers, void* y, int64_t n);

// The loop of a primitive; null for reductions and numbers that mean nothing.
StepFn step_function(int64_t primitive);

// The loop of a primitive whose result is rounded at once, by `rounding`: round_f16 or round_bf16; null if there is none.
StepFn rounded_step_function(int64_t primitive, int64_t rounding);

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_FUSED_STEPS_H_
