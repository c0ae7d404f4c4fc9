// What a debugger asks of a tensor: extremes, sums, and counts of what is not finite, zero, negative or positive.
// One read, about seven operations an element. A block is first taken as if all of it were finite; if the sum of its
// squares is not, it has NaN or infinities, or squares that float cannot hold, and is looked at element by element.
#include "simd/half.h"
#include "simd/vec.h"

namespace mycelia::MYC_ISA {

namespace {

constexpr int64_t kBlock = 2048;    // elements: 8 KiB, which stay in L1 for the second look; chains of additions stay short
constexpr double kSmall = 1e-15;     // magnitude of a block below which squares in float lose digits that count
constexpr float kEnlarge = 0x1p100f;  // brings such numbers, 1e-45 to kSmall, to where squares of float and their sum are exact enough
constexpr int64_t kPiece = 1 << 13;  // elements that are added up by themselves, whoever does
constexpr int64_t kPieces = 256;     // at most
constexpr int64_t kGrain = 2;        // pieces that are worth a thread: 2 us, while the end of a parallel loop takes one and others wait meanwhile

struct Numbers {
  double max = -INFINITY, min = INFINITY, sum = 0, squares = 0;  // of finite elements
  int64_t finite = 0, nan = 0, negative_inf = 0, positive_inf = 0, zero = 0, negative = 0;

  void add(const Numbers& o) {
    max = o.max > max ? o.max : max;
    min = o.min < min ? o.min : min;
    sum += o.sum;
    squares += o.squares;
    finite += o.finite;
    nan += o.nan;
    negative_inf += o.negative_inf;
    positive_inf += o.positive_inf;
    zero += o.zero;
    negative += o.negative;
  }
};

MYC_INLINE bool is_finite(double x) { return x - x == 0; }

MYC_INLINE void take(double x, Numbers* n) {
  n->zero += x == 0;
  n->negative += x < 0;
  if (is_finite(x)) {
    n->max = x > n->max ? x : n->max;
    n->min = x < n->min ? x : n->min;
    n->sum += x;
    n->squares += x * x;
    n->finite += 1;
  } else {
    n->nan += x != x;
    n->negative_inf += x < 0;
    n->positive_inf += x > 0;
  }
}

MYC_INLINE double value(float x) { return x; }
MYC_INLINE double value(double x) { return x; }
MYC_INLINE double value(const Half& x) { return widen_one(x); }
MYC_INLINE double value(const Brain& x) { return widen_one(x); }

// One more in the lanes where a and b are equal, or a is less.
MYC_INLINE i32v count_equal(i32v count, f32v a, f32v b) {
#if MYC_VECTOR_BYTES == 64  // comparisons and sums under masks: as a vector of 0 and -1 a mask takes two instructions more
  return (i32v)_mm512_mask_sub_epi32((__m512i)count, _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ), (__m512i)count,
                                     _mm512_set1_epi32(-1));
#else
  return count - (a == b);
#endif
}
MYC_INLINE i32v count_less(i32v count, f32v a, f32v b) {
#if MYC_VECTOR_BYTES == 64
  return (i32v)_mm512_mask_sub_epi32((__m512i)count, _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ), (__m512i)count,
                                     _mm512_set1_epi32(-1));
#else
  return count - (a < b);
#endif
}

MYC_INLINE int32_t total(i32v v) {
  typedef int32_t quad __attribute__((vector_size(16)));
  quad q[MYC_VECTOR_BYTES / 16];
  memcpy(q, &v, sizeof(v));
  quad s = q[0];
  for (int i = 1; i < MYC_VECTOR_BYTES / 16; ++i) s += q[i];
  return (s[0] + s[2]) + (s[1] + s[3]);
}

// What a block adds up in lanes. Chains of their own hide how long an operation takes.
struct Lanes {
  static constexpr int kChains = 4;
  f32v high[2] = {splat(-INFINITY), splat(-INFINITY)}, low[2] = {splat(INFINITY), splat(INFINITY)};
  f32v sum[kChains] = {}, squares[kChains] = {};

  MYC_INLINE void take(f32v v, int k) {
    high[k & 1] = max_or_second(v, high[k & 1]);
    low[k & 1] = min_or_second(v, low[k & 1]);
    sum[k] += v;
    squares[k] = fma(v, v, squares[k]);
  }
};

MYC_INLINE float total(const f32v (&v)[Lanes::kChains]) { return horizontal_sum((v[0] + v[1]) + (v[2] + v[3])); }

// The sum of squares of whole vectors of numbers below kSmall.
template <class T>
double small_squares(const T* x, int64_t n) {
  f32v squares = {};
  for (int64_t i = 0; i < n; i += kLanes) {
    const f32v v = load(x + i) * kEnlarge;
    squares = fma(v, v, squares);
  }
  return static_cast<double>(horizontal_sum(squares)) / kEnlarge / kEnlarge;
}

// How many elements of whole vectors are zero and, where there can be some, negative.
template <bool kNegative, class T>
MYC_INLINE void count_signs(const T* x, int64_t n, Numbers* numbers) {
  i32v zero[2] = {}, negative[2] = {};
  const auto take = [&](int64_t i, int k) __attribute__((always_inline)) {
    const f32v v = load(x + i);
    zero[k] = count_equal(zero[k], v, f32v{});
    if (kNegative) negative[k] = count_less(negative[k], v, f32v{});
  };
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) take(i, 0), take(i + kLanes, 1);
  if (i < n) take(i, 0);
  numbers->zero += total(zero[0] + zero[1]);
  if (kNegative) numbers->negative += total(negative[0] + negative[1]);
}

// A block of whole vectors, all of it finite; false if it is not. Signs are counted in a second look, where the least element says that
// there are some: after a ReLU nothing is negative.
template <class T>
MYC_INLINE bool take_finite(const T* x, int64_t n, Numbers* numbers) {
  constexpr int64_t step = Lanes::kChains * kLanes;
  Lanes lanes;
  int64_t i = 0;
  for (; i + step <= n; i += step)
    for (int k = 0; k < Lanes::kChains; ++k) lanes.take(load(x + i + k * kLanes), k);
  for (int k = 0; i < n; i += kLanes, ++k) lanes.take(load(x + i), k);
  const float squares = total(lanes.squares);
  if (!is_finite(squares)) return false;
  const double high = horizontal_max(max_or_second(lanes.high[0], lanes.high[1]));
  const double low = horizontal_min(min_or_second(lanes.low[0], lanes.low[1]));
  numbers->max = high > numbers->max ? high : numbers->max;
  numbers->min = low < numbers->min ? low : numbers->min;
  numbers->sum += total(lanes.sum);
  const bool small = high < kSmall && low > -kSmall && (high != 0 || low != 0);
  numbers->squares += small ? small_squares(x, n) : squares;
  if (low < 0) {
    count_signs<true>(x, n, numbers);
  } else if (low == 0) {
    count_signs<false>(x, n, numbers);
  }
  numbers->finite += n;
  return true;
}

template <class T>
void describe(const T* x, int64_t begin, int64_t end, Numbers* numbers) {
  while (begin < end) {
    const int64_t block = end - begin < kBlock ? end - begin : kBlock, whole = block / kLanes * kLanes;
    int64_t done = whole > 0 && take_finite(x + begin, whole, numbers) ? whole : 0;
    for (; done < block; ++done) take(value(x[begin + done]), numbers);
    begin += block;
  }
}

void describe(const double* x, int64_t begin, int64_t end, Numbers* numbers) {
  for (int64_t i = begin; i < end; ++i) take(x[i], numbers);
}

// A block of whole vectors: whether all of it is finite.  x * 0 is NaN for what is not, and stays so in a sum.
template <class T>
MYC_INLINE bool all_finite(const T* x, int64_t n) {
  f32v sum[4] = {};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes)
    for (int k = 0; k < 4; ++k) sum[k] += load(x + i + k * kLanes) * 0.0f;
  for (; i < n; i += kLanes) sum[0] += load(x + i) * 0.0f;
  const f32v all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  return !any(all != all);
}

template <class T>
void count(const T* x, int64_t begin, int64_t end, Numbers* numbers) {
  while (begin < end) {
    const int64_t block = end - begin < kBlock ? end - begin : kBlock, whole = block / kLanes * kLanes;
    int64_t done = whole > 0 && all_finite(x + begin, whole) ? whole : 0;
    for (; done < block; ++done) take(value(x[begin + done]), numbers);
    begin += block;
  }
}

void count(const double* x, int64_t begin, int64_t end, Numbers* numbers) { describe(x, begin, end, numbers); }

// Pieces of the tensor, on several threads where there is enough, added in order: the same for any number of threads.
template <class T, class Look>
Numbers in_pieces(const myc_call* call, Look look) {
  const int64_t n = call->in[0]->size;
  const T* x = static_cast<const T*>(call->in[0]->data);
  const int64_t piece = n / kPieces > kPiece ? n / kPieces + 1 : kPiece, pieces = (n + piece - 1) / piece;
  if (pieces <= 1) {
    Numbers all;
    look(x, 0, n, &all);
    return all;
  }
  Numbers found[kPieces];
  parallel_for(call, pieces, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) look(x, p * piece, (p + 1) * piece < n ? (p + 1) * piece : n, &found[p]);
  });
  Numbers all;
  for (int64_t p = 0; p < pieces; ++p) all.add(found[p]);
  return all;
}

void write_numbers(const myc_call* call, const Numbers& all) {
  const int64_t size = call->in[0]->size;
  const double nothing = NAN;
  const bool some = all.finite > 0;
  const double row[] = {static_cast<double>(size),
                        some ? all.max : nothing,
                        some ? all.min : nothing,
                        some ? all.sum / static_cast<double>(all.finite) : nothing,
                        some ? __builtin_sqrt(all.squares) : nothing,
                        static_cast<double>(all.nan),
                        static_cast<double>(all.negative_inf),
                        static_cast<double>(all.positive_inf),
                        static_cast<double>(all.zero),
                        static_cast<double>(all.negative),
                        static_cast<double>(size - all.zero - all.negative - all.nan)};
  memcpy(call->out[0]->data, row, sizeof(row));
}

template <class T>
void write_statistics(const myc_call* call) {
  write_numbers(call, in_pieces<T>(call, [](const T* x, int64_t begin, int64_t end, Numbers* n) { describe(x, begin, end, n); }));
}

// Of whole numbers and booleans, as double: those of 64 bits may be rounded.
template <class T>
void write_whole(const myc_call* call) {
  write_numbers(call, in_pieces<T>(call, [](const T* x, int64_t begin, int64_t end, Numbers* n) {
                  for (int64_t i = begin; i < end; ++i) take(static_cast<double>(x[i]), n);
                }));
}

template <class T>
void write_counts(const myc_call* call) {
  const Numbers all = in_pieces<T>(call, [](const T* x, int64_t begin, int64_t end, Numbers* n) { count(x, begin, end, n); });
  const double row[] = {static_cast<double>(all.nan), static_cast<double>(all.negative_inf), static_cast<double>(all.positive_inf)};
  memcpy(call->out[0]->data, row, sizeof(row));
}

}  // namespace

KERNEL_FN(tensor_statistics, any) {
  const int32_t dtype = call->in[0]->dtype;
  switch (dtype) {
    case MYC_F64: write_statistics<double>(call); return MYC_OK;
    case MYC_BOOL:
    case MYC_U8: write_whole<uint8_t>(call); return MYC_OK;
    case MYC_I8: write_whole<int8_t>(call); return MYC_OK;
    case MYC_I16: write_whole<int16_t>(call); return MYC_OK;
    case MYC_U16: write_whole<uint16_t>(call); return MYC_OK;
    case MYC_I32: write_whole<int32_t>(call); return MYC_OK;
    case MYC_U32: write_whole<uint32_t>(call); return MYC_OK;
    case MYC_I64: write_whole<int64_t>(call); return MYC_OK;
    case MYC_U64: write_whole<uint64_t>(call); return MYC_OK;
    default: break;
  }
  if (dtype != MYC_F32 && !(kTakes16Bits && is_16_bits(dtype))) return MYC_E_UNSUPPORTED;
  with_float_type(dtype, [&](auto like) { write_statistics<decltype(like)>(call); });
  return MYC_OK;
}

KERNEL_FN(nonfinite_counts, any) {
  const int32_t dtype = call->in[0]->dtype;
  if (dtype == MYC_F64) {
    write_counts<double>(call);
    return MYC_OK;
  }
  if (dtype != MYC_F32 && !(kTakes16Bits && is_16_bits(dtype))) return MYC_E_UNSUPPORTED;
  with_float_type(dtype, [&](auto like) { write_counts<decltype(like)>(call); });
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA
