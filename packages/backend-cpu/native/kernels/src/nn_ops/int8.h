// Products of small integers, exact: C(i, j) = sum over k of A(i, k) B(k, j) in 32 bits.
//
// Both operands are 16 bits wide and have their zero points subtracted, so that pairs of k multiply and add without
// overflow (the 8-bit instructions of AVX2 saturate), and neither zero points nor padding need a correction.  Two
// multiply-and-adds of pairs a cycle are the same peak as the 8-bit sequence of three instructions.
// A: rows of pairs.  B: panels of 16 columns, pair p of column j at [j / 16][p][j % 16].
#ifndef MYCELIA_INT8_H_
#define MYCELIA_INT8_H_

#include "simd/vec.h"

namespace mycelia::MYC_ISA {

constexpr int64_t kPairColumns = 16;  // of a panel; one format for all instruction sets
#if defined(__AVX512BW__) || defined(__aarch64__)
constexpr int kPairRows = 12;  // accumulators, two vectors of B, one of A and a product fill 32 registers
#else
constexpr int kPairRows = 6;  // 16 registers
#endif
constexpr int kPairTile = 2 * kLanes;  // columns of a block

// Each lane holds two 16-bit numbers: the sum of their products.
MYC_INLINE i32v multiply_pairs(i32v a, i32v b) {
#if defined(__AVX512BW__)
  return (i32v)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (i32v)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  return (i32v)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
  return ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
#endif
}

// Rows of A `a_row` pairs apart against a block of columns; `b_vector`: pairs between its two vectors at one p.  The sums
// go to c [rows][kPairTile], added to what is there if `add`.
template <int kRows>
inline __attribute__((noinline)) void pairs_micro(int64_t pairs, const int32_t* a, int64_t a_row, const int32_t* b,
                                                  int64_t b_vector, int32_t* c, bool add) {
  i32v sum[kRows][2] = {};
  const int32_t* rows[(kRows + 2) / 3];  // three rows a pointer: addressing adds the other two for free
  for (int i = 0; i < (kRows + 2) / 3; ++i) rows[i] = a + 3 * i * a_row;
#pragma GCC unroll 2
  for (int64_t p = 0; p < pairs; ++p, b += kPairColumns) {
    const i32v b0 = load(b), b1 = load(b + b_vector);
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      const i32v v = splat(rows[i / 3][i % 3 * a_row]);
      sum[i][0] += multiply_pairs(v, b0);
      sum[i][1] += multiply_pairs(v, b1);
    }
#pragma GCC unroll 4
    for (int i = 0; i < (kRows + 2) / 3; ++i) ++rows[i];
  }
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < 2; ++v) {
      int32_t* to = c + i * kPairTile + v * kLanes;
      store(to, add ? load(to) + sum[i][v] : sum[i][v]);
    }
  }
}

using PairsMicro = void (*)(int64_t, const int32_t*, int64_t, const int32_t*, int64_t, int32_t*, bool);

// The micro-kernel for `rows` in [1, kPairRows].
template <int kRows = kPairRows>
PairsMicro pairs_micro_for(int64_t rows) {
  if constexpr (kRows == 1) {
    return pairs_micro<1>;
  } else {
    return rows == kRows ? pairs_micro<kRows> : pairs_micro_for<kRows - 1>(rows);
  }
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_INT8_H_
