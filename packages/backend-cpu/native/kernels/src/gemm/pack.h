// Copies of A and B in the order in which the micro-kernel reads them.
#ifndef MYCELIA_GEMM_PACK_H_
#define MYCELIA_GEMM_PACK_H_

#include "gemm/micro.h"
#include "simd/transpose.h"

namespace mycelia::MYC_ISA {

// A matrix as the product sees it: element (i, p) of A, or (p, j) of B, wherever it is stored.
struct View {
  const float* data;
  int64_t row, column;  // element strides; one of them is 1

  const float* at(int64_t i, int64_t j) const { return data + i * row + j * column; }
};

// Transposes `count` source rows (p .. p + depth of each) into to[q * stride + r], rows behind `count` as zeros;
// `width` is a multiple of kLanes.  Stores whole vectors in the order of q: with stride < width the next q overwrites
// what is too much, and the last one writes up to width - stride floats behind the block.
inline void pack_transposed(const float* from, int64_t ld, int64_t count, int64_t depth, float* to, int64_t stride,
                            int64_t width) {
  int64_t q = 0;
  for (; q + kLanes <= depth; q += kLanes) {
    f32v tile[3][kLanes];  // width <= 3 vectors
    for (int64_t g = 0; g < width / kLanes; ++g) {
      for (int r = 0; r < kLanes; ++r) {
        const int64_t row = g * kLanes + r;
        tile[g][r] = row < count ? load(from + row * ld + q) : f32v{};
      }
      transpose(tile[g]);
    }
    for (int r = 0; r < kLanes; ++r) {
      for (int64_t g = 0; g < width / kLanes; ++g) store(to + (q + r) * stride + g * kLanes, tile[g][r]);
    }
  }
  for (; q < depth; ++q) {
    for (int64_t r = 0; r < min(stride, width); ++r) to[q * stride + r] = r < count ? from[r * ld + q] : 0.0f;
  }
}

// Copies `count` <= width floats of each of `depth` rows into to[q * stride + r], the rest of `width` as zeros.
// Whole vectors are stored, see above.
inline void pack_rows(const float* from, int64_t ld, int64_t count, int64_t depth, float* to, int64_t stride,
                      int64_t width) {
  for (int64_t q = 0; q < depth; ++q, from += ld, to += stride) {
    for (int64_t r = 0; r < width; r += kLanes) {
      store(to + r, r + kLanes <= count ? load(from + r) : load_partial(from + r, clamp<int64_t>(count - r, 0, kLanes)));
    }
  }
}

// One panel of B: rows [0, depth) of the view, `columns` <= kPanel columns.
inline void pack_panel(const View& b, int64_t columns, int64_t depth, float* to) {
  if (b.column == 1) {
    pack_rows(b.data, b.row, columns, depth, to, kPanel, kPanel);
  } else {
    pack_transposed(b.data, b.column, columns, depth, to, kPanel, kPanel);
  }
}

constexpr int64_t kBlockWidth = (kBlockRows + kLanes - 1) / kLanes * kLanes;
constexpr int64_t kPackSlack = kBlockWidth;  // floats that packing A may write behind its block

// All blocks of kBlockRows rows of A, one behind the other: rows x depth of the view.
inline void pack_blocks(const View& a, int64_t rows, int64_t depth, float* to) {
  for (int64_t i = 0; i < rows; i += kBlockRows, to += depth * kBlockRows) {
    const int64_t count = min<int64_t>(kBlockRows, rows - i);
    if (a.row == 1) {
      pack_rows(a.at(i, 0), a.column, count, depth, to, kBlockRows, kBlockWidth);
    } else {
      pack_transposed(a.at(i, 0), a.row, count, depth, to, kBlockRows, kBlockWidth);
    }
  }
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_PACK_H_
