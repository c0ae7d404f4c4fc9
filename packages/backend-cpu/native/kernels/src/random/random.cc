// Random numbers from Philox4x32-10 counters: words, uniform and normal float32, dropout.  About 2 cycles a word with AVX2;
// a word is one element.
#include "elementwise/elementwise.h"
#include "random/philox.h"
#include "simd/math.h"

namespace mycelia::MYC_ISA {

constexpr int64_t kWordWork = 24;  // work of an element in bytes moved

// group(at, n, words) for each run of up to kPhiloxGroup elements.
template <class Group>
MYC_INLINE void for_groups(const myc_call* call, int64_t n, const Group& group) {
  parallel_for(call, ceil_div(n, kPhiloxGroup), grain_of(kWordWork * kPhiloxGroup), [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) group(g * kPhiloxGroup, min(int64_t{kPhiloxGroup}, n - g * kPhiloxGroup), g * kLanes);
  });
}

// The next state of a generator and the key of this draw.
KERNEL_FN(rng_next, i64) {
  const int64_t* state = in<int64_t>(call);
  int64_t *next = out<int64_t>(call), *key = out<int64_t>(call, 1);
  key[0] = state[0], key[1] = state[1];
  next[0] = key[0], next[1] = static_cast<int64_t>(static_cast<uint64_t>(key[1]) + 1);
  return MYC_OK;
}

KERNEL_FN(random_bits, i64) {
  const PhiloxKey key = philox_key(in<int64_t>(call));
  uint32_t* y = out<uint32_t>(call);
  for_groups(call, output(call).size, [&](int64_t at, int64_t n, uint64_t block) {
    uint32_t words[kPhiloxGroup];
    philox_group(key, block, words);
    memcpy(y + at, words, sizeof(uint32_t) * n);
  });
  return MYC_OK;
}

// [0, 1) from the upper 24 bits of a word.
MYC_INLINE f32v unit_interval(u32v word) { return to_float((i32v)(word >> 8)) * 0x1p-24f; }

KERNEL_FN(random_uniform, i64) {
  if (output(call).dtype != MYC_F32) return MYC_E_UNSUPPORTED;
  const PhiloxKey key = philox_key(in<int64_t>(call));
  float* y = out<float>(call);
  for_groups(call, output(call).size, [&](int64_t at, int64_t n, uint64_t block) {
    PhiloxWords words = philox(key, block);
    for (u32v& w : words.word) w = (u32v)unit_interval(w);
    uint32_t values[kPhiloxGroup];
    store_interleaved(words.word, values);
    memcpy(y + at, values, sizeof(float) * n);
  });
  return MYC_OK;
}

// Sine and cosine of 2 pi t for t in [0, 1): the quarter turns are taken off exactly.
MYC_INLINE SinCos sincos_of_turns(f32v t) {
  const f32v quarters = t * 4.0f, n = round_even(quarters);
  const SinCos near = sincos((quarters - n) * 0x1.921fb6p0f);
  const i32v quadrant = to_int(n), swap = (quadrant & 1) != 0;
  const i32v sin_sign = (quadrant & 2) << 30, cos_sign = ((quadrant + 1) & 2) << 30;
  return {from_bits(bits(select(swap, near.cos, near.sin)) ^ sin_sign),
          from_bits(bits(select(swap, near.sin, near.cos)) ^ cos_sign)};
}

// Two normal numbers from two words (Box and Muller), in place.
MYC_INLINE void normal_pair(u32v* first, u32v* second) {
  const f32v radius = sqrt(-2.0f * log(unit_interval(*first) + 0x1p-24f));  // (0, 1]: the logarithm is finite
  const SinCos direction = sincos_of_turns(unit_interval(*second));
  *first = (u32v)(radius * direction.cos);
  *second = (u32v)(radius * direction.sin);
}

KERNEL_FN(random_normal, i64) {
  if (output(call).dtype != MYC_F32) return MYC_E_UNSUPPORTED;
  const PhiloxKey key = philox_key(in<int64_t>(call));
  float* y = out<float>(call);
  for_groups(call, output(call).size, [&](int64_t at, int64_t n, uint64_t block) {
    PhiloxWords words = philox(key, block);
    normal_pair(&words.word[0], &words.word[1]);
    normal_pair(&words.word[2], &words.word[3]);
    uint32_t values[kPhiloxGroup];
    store_interleaved(words.word, values);
    memcpy(y + at, values, sizeof(float) * n);
  });
  return MYC_OK;
}

// y = x / (1 - p) where the element's word reaches the threshold, else 0.  The same for the gradient.
template <class T>
int32_t dropout(const myc_call* call) {
  const double p = attrs<myc_dropout_attrs>(call).p;
  const PhiloxKey key = philox_key(in<int64_t>(call, 1));
  const T* x = in<T>(call);
  T* y = out<T>(call);
  const u32v threshold = u32v{} + drop_threshold(p);
  const f32v scale = splat(static_cast<float>(1 / (1 - p)));
  for_groups(call, output(call).size, [&](int64_t at, int64_t n, uint64_t block) {
    uint32_t words[kPhiloxGroup];
    philox_group(key, block, words);
    const auto piece = [&](int64_t i, f32v v) {
      u32v w;
      memcpy(&w, words + i, sizeof(w));
      return select((i32v)(w >= threshold), v * scale, f32v{});
    };
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store(y + at + i, piece(i, load(x + at + i)));
    if (i < n) store_partial(y + at + i, piece(i, load_partial(x + at + i, n - i)), n - i);
  });
  return MYC_OK;
}

KERNEL_FN(dropout, f32_i64) {
  return with_float_type(output(call).dtype, [&](auto type) { return dropout<decltype(type)>(call); });
}

}  // namespace mycelia::MYC_ISA
