// Transposition of a float32 matrix through registers.
#ifndef MYCELIA_CONV_TRANSPOSE_H_
#define MYCELIA_CONV_TRANSPOSE_H_

#include "simd/transpose.h"

namespace mycelia::MYC_ISA {

// to[j * to_ld + i] = from[i * from_ld + j] for i < rows, j < columns; touches nothing outside.
// A last block that is not full overlaps the one before it where that is possible.
inline void transpose_matrix(const float* from, int64_t from_ld, int64_t rows, int64_t columns, float* to,
                             int64_t to_ld) {
  f32v block[kLanes];
  for (int64_t i = 0; i < rows; i += kLanes) {
    if (i + kLanes > rows && rows >= kLanes) i = rows - kLanes;
    const int64_t r = min<int64_t>(kLanes, rows - i);
    for (int64_t j = 0; j < columns; j += kLanes) {
      if (j + kLanes > columns && columns >= kLanes) j = columns - kLanes;
      const int64_t c = min<int64_t>(kLanes, columns - j);
      const float* f = from + i * from_ld + j;
      float* t = to + j * to_ld + i;
      if (r == kLanes && c == kLanes) {
        for (int e = 0; e < kLanes; ++e) block[e] = load(f + e * from_ld);
        transpose(block);
        for (int e = 0; e < kLanes; ++e) store(t + e * to_ld, block[e]);
      } else if (r == kLanes || c == kLanes) {
        for (int e = 0; e < kLanes; ++e) block[e] = e < r ? load_partial(f + e * from_ld, c) : f32v{};
        transpose(block);
        for (int64_t e = 0; e < c; ++e) store_partial(t + e * to_ld, block[e], r);
      } else {
        for (int64_t a = 0; a < r; ++a)
          for (int64_t b = 0; b < c; ++b) t[b * to_ld + a] = f[a * from_ld + b];
      }
    }
  }
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_CONV_TRANSPOSE_H_
