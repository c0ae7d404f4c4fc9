// Sums of products of 8-bit integers times the real number of their column, as TensorFlow Lite's kernels round them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "mycelia/isa.h"
#include "own.h"
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace mycelia::lite {

namespace {

constexpr int64_t kGrain = 4096;

// What the columns have, `period` each: columns one after the other, as often as full blocks need them.
struct Columns {
  const int32_t *multiplier, *left, *right, *down;
  int64_t period;
  int32_t zero, low, high;
};

int32_t whole(int32_t x) { return x; }
int32_t whole(float x) {  // as vectors convert: what no int32 has becomes the least one
  return std::fabs(x) < 0x1p31f ? static_cast<int32_t>(std::nearbyint(x)) : std::numeric_limits<int32_t>::min();
}

// The product in 31 bits with halves up, then over 2^right, with halves up or (`down`: -1) of negative ones down.
int64_t scaled(const Columns& c, int64_t j, int32_t x, int32_t down) {
  const auto product = static_cast<int64_t>(static_cast<uint64_t>(int64_t{x}) * (static_cast<uint64_t>(c.multiplier[j]) << c.left[j]));
  const int64_t wide = (product + (int64_t{1} << 30)) >> 31, half = c.right[j] ? int64_t{1} << (c.right[j] - 1) : 0;
  return (wide + half + ((wide >> 63) & down)) >> c.right[j];
}

template <class X, class Y>
void plain(const Columns& c, const X* x, Y* y, int64_t begin, int64_t end, bool all_down) {
  for (int64_t i = begin, j = begin % c.period; i < end; ++i, j = j + 1 == c.period ? 0 : j + 1) {
    const int32_t down = all_down && c.right[j] ? -1 : c.down[j];
    y[i] = static_cast<Y>(std::clamp<int64_t>(scaled(c, j, whole(x[i]), down) + c.zero, c.low, c.high));
  }
}

// Blocks of eight, of columns without `left`. A right shift that rounds is the shift by one less, whose last bit says whether to
// go up.
#if defined(__x86_64__)
#define LITE_VECTORS
bool has_vectors() { return has_avx2(); }

[[gnu::target("avx2"), gnu::always_inline]] inline __m256i load(const int32_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

template <class X, class Y>
[[gnu::target("avx2")]] void blocks(const Columns& c, const X* x, Y* y, int64_t begin, int64_t end) {
  const __m256i half = _mm256_set1_epi64x(int64_t{1} << 30), one = _mm256_set1_epi32(1), zero = _mm256_set1_epi32(c.zero);
  const __m256i low = _mm256_set1_epi32(c.low - c.zero), high = _mm256_set1_epi32(c.high - c.zero);
  for (int64_t i = begin, j = begin % c.period; i < end; i += 8, j = j + 8 == c.period ? 0 : j + 8) {
    __m256i v;
    if constexpr (std::is_same_v<X, float>) v = _mm256_cvtps_epi32(_mm256_loadu_ps(x + i));
    else v = load(x + i);
    const __m256i multiplier = load(c.multiplier + j), right = load(c.right + j);
    const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(v, multiplier), half);
    const __m256i odd = _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(v, 32), _mm256_srli_epi64(multiplier, 32)), half);
    v = _mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xaa);
    v = _mm256_add_epi32(v, _mm256_and_si256(_mm256_srai_epi32(v, 31), load(c.down + j)));
    const __m256i up = _mm256_andnot_si256(_mm256_cmpeq_epi32(right, _mm256_setzero_si256()), _mm256_srav_epi32(v, _mm256_sub_epi32(right, one)));
    v = _mm256_add_epi32(_mm256_srav_epi32(v, right), _mm256_and_si256(up, one));
    v = _mm256_add_epi32(_mm256_min_epi32(_mm256_max_epi32(v, low), high), zero);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(y + i), std::numeric_limits<Y>::is_signed ? _mm_packs_epi16(words, words) : _mm_packus_epi16(words, words));
  }
}
#elif defined(__aarch64__)
#define LITE_VECTORS
bool has_vectors() { return true; }

int32x4_t wholes(const int32_t* x) { return vld1q_s32(x); }
int32x4_t wholes(const float* x) {  // nearest with halves to even; what no int32 has becomes the least one, as elsewhere
  const float32x4_t v = vld1q_f32(x);
  return vbslq_s32(vcltq_f32(vabsq_f32(v), vdupq_n_f32(0x1p31f)), vcvtnq_s32_f32(v), vdupq_n_s32(std::numeric_limits<int32_t>::min()));
}

template <class X, class Y>
void blocks(const Columns& c, const X* x, Y* y, int64_t begin, int64_t end) {
  const int32x4_t one = vdupq_n_s32(1), low = vdupq_n_s32(c.low - c.zero), high = vdupq_n_s32(c.high - c.zero);
  for (int64_t i = begin, j = begin % c.period; i < end; i += 4, j = j + 4 == c.period ? 0 : j + 4) {
    const int32x4_t right = vld1q_s32(c.right + j);
    int32x4_t v = vqrdmulhq_s32(wholes(x + i), vld1q_s32(c.multiplier + j));
    v = vaddq_s32(v, vandq_s32(vshrq_n_s32(v, 31), vld1q_s32(c.down + j)));
    const int32x4_t up = vbicq_s32(vshlq_s32(v, vsubq_s32(one, right)), vreinterpretq_s32_u32(vceqzq_s32(right)));
    v = vaddq_s32(vshlq_s32(v, vnegq_s32(right)), vandq_s32(up, one));
    int32_t made[4];
    vst1q_s32(made, vaddq_s32(vminq_s32(vmaxq_s32(v, low), high), vdupq_n_s32(c.zero)));
    for (int k = 0; k < 4; ++k) y[i + k] = static_cast<Y>(made[k]);
  }
}
#endif

template <class X, class Y>
void rescale(const myc_call* call) {
  const auto& a = attrs<RescaleColumnsAttributes>(call);
  const int32_t* const factors = in<int32_t>(call, 1);
  const int64_t period = call->in[1]->shape[1], size = call->out[0]->size;
  struct Work {
    Columns columns;
    const X* x;
    Y* y;
    int64_t size, even;  // where elements begin that are rounded one by one
    bool vectors;
  };
  Work work{{factors, factors + period, factors + 2 * period, factors + 3 * period, period, static_cast<int32_t>(a.zero),
             static_cast<int32_t>(a.low), static_cast<int32_t>(a.high)}, in<X>(call, 0), out<Y>(call), size, a.together ? size / a.together * a.together : size, false};
#ifdef LITE_VECTORS
  work.vectors = !a.grows && has_vectors();
#endif
  call->ctx->parallel_for(
      call->ctx, (size + 7) / 8, kGrain / 8,
      [](void* arg, int64_t begin, int64_t end, int32_t) {
        const Work w = *static_cast<const Work*>(arg);
        int64_t from = 8 * begin;
        const int64_t to = std::min(8 * end, w.size), even = std::clamp(w.even, from, to);
#ifdef LITE_VECTORS
        if (const int64_t full = even / 8 * 8; w.vectors && from < full) blocks(w.columns, w.x, w.y, from, full), from = full;
#endif
        plain(w.columns, w.x, w.y, from, even, false);
        plain(w.columns, w.x, w.y, even, to, true);
      },
      &work);
}

template <class X>
int32_t rescale_to(const myc_call* call) {
  switch (call->out[0]->dtype) {
    case MYC_I8: rescale<X, int8_t>(call); return MYC_OK;
    case MYC_U8: rescale<X, uint8_t>(call); return MYC_OK;
    default: return MYC_E_UNSUPPORTED;
  }
}

}  // namespace

int32_t own_rescale_columns_f32(const myc_call* call) { return rescale_to<float>(call); }
int32_t own_rescale_columns_i32(const myc_call* call) { return rescale_to<int32_t>(call); }

}  // namespace mycelia::lite
