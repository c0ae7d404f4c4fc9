// Layers on integers of 8 bits with scales, but for the products: what they compute is rounded once, to even, from float32.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "mycelia/isa.h"
#include "own.h"
#include "walk.h"
#if defined(__x86_64__) && !defined(__clang__)  // whose target pragmas are others
#include <immintrin.h>
#endif

#pragma GCC diagnostic ignored "-Wpsabi"  // vectors are given to functions that become part of their callers alone
#define INLINE [[gnu::always_inline]] inline

namespace mycelia::lite {

namespace {

namespace plain {
#include "quantized_loops.h"
}  // namespace plain

#if defined(__x86_64__) && !defined(__clang__)  // whose target pragmas are others
#pragma GCC push_options
#pragma GCC target("avx2")
#define LITE_VECTORS
namespace vectors {
#include "quantized_loops.h"
}  // namespace vectors
#pragma GCC pop_options

bool has_vectors() {
  static const bool found = has_avx2();  // virtual machines take their time for the answer
  return found;
}
#define CHOSEN(loop) (has_vectors() ? vectors::loop(call) : plain::loop(call))
#else
#define CHOSEN(loop) plain::loop(call)
#endif

}  // namespace

int32_t own_quantize_f32(const myc_call* call) { return CHOSEN(quantize); }
int32_t own_dequantize_any(const myc_call* call) { return CHOSEN(dequantize); }
int32_t own_dynamic_quantize_f32(const myc_call* call) { return CHOSEN(dynamic_quantize); }
int32_t own_combine_any(const myc_call* call) { return CHOSEN(combine); }
int32_t own_integer_pool_any(const myc_call* call) { return CHOSEN(integer_pool); }
int32_t own_integer_depthwise_any(const myc_call* call) { return CHOSEN(integer_depthwise); }

}  // namespace mycelia::lite
