// Weights of 1 to 8 bits as kernels read them: panels of 16 columns, and in a panel units of 32 k.  A unit is `bits` rows of 16
// words, one of each column: the column's 32 fields of `bits` bits, two's complements, that of the first k in the lowest bits.
#ifndef MYCELIA_LOW_BIT_H_
#define MYCELIA_LOW_BIT_H_

#include "gemm/row_types.h"
#include "simd/activations.h"

namespace mycelia::MYC_ISA {

constexpr int64_t kUnit = 32;                         // k of a unit
constexpr int kPanelVectors = kPackedColumns / kLanes;

// What integers q of a matrix stand for: (q - zero) * scale.
struct LowBit {
  int64_t bits, depth, columns, group;  // group: k with one scale, a multiple of kUnit
  const int32_t* packed;
  const float *scale, *zero;  // [groups, columns]; zero may be null

  int64_t units() const { return ceil_div(depth, kUnit); }
  int64_t groups() const { return ceil_div(depth, group); }
  int64_t panels() const { return ceil_div(columns, kPackedColumns); }
  int64_t panel_words() const { return units() * bits * kPackedColumns; }
};

// A vector of the numbers of one row of scales or zeros; 0 behind the last column.
MYC_INLINE f32v row_of(const float* rows, int64_t columns, int64_t row, int64_t column) {
  const int64_t lanes = clamp<int64_t>(columns - column, 0, kLanes);
  return lanes == kLanes ? load(rows + row * columns + column) : load_partial(rows + row * columns + column, lanes);
}

// What 16 lanes find by the lowest 4 bits of an index: the field of kBits there.
template <int kBits>
struct FieldTable {
#if MYC_VECTOR_BYTES == 64
  static constexpr bool kUsed = kBits <= 4;
#else
  static constexpr bool kUsed = false;
#endif
  f32v values = {};
  FieldTable() {
    if constexpr (kUsed) {
      constexpr int32_t kShift = 32 - kBits;
      values = to_float((i32v)((u32v)iota() << kShift) >> kShift);
    }
  }
};

// Fields of one vector of columns of a unit; `word`: its kBits words.
template <int kBits>
MYC_INLINE f32v field_of(const i32v (&word)[kBits], int i, const FieldTable<kBits>& table) {
  const int bit = i * kBits, from = bit / 32, at = bit % 32, left = 32 - at - kBits;
  u32v low = (u32v)word[from];
#if MYC_VECTOR_BYTES == 64
  if constexpr (FieldTable<kBits>::kUsed) {
    if (at > 0) low >>= at;
    if (left < 0) low |= (u32v)word[from + 1 < kBits ? from + 1 : from] << (32 - at);
    return (f32v)_mm512_permutexvar_ps((__m512i)low, (__m512)table.values);
  }
#endif
  (void)table;
  if (left >= 0) return to_float((i32v)(low << left) >> (32 - kBits));
  const u32v both = low >> at | (u32v)word[from + 1 < kBits ? from + 1 : from] << (32 - at);
  return to_float((i32v)(both << (32 - kBits)) >> (32 - kBits));
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_LOW_BIT_H_
