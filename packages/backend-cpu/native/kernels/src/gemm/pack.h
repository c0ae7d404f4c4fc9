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

// Puts `count` source rows, `depth` long, into columns: to[q * stride + r] = from[r * ld + q]; columns from `count` to
// kWidth are zeros.  When kWidth is one vector but stride is smaller, whole vectors are stored and the next q overwrites
// what is too much: the last one writes kLanes - stride floats behind the block.
template <int kWidth, int kStride>
inline void pack_transposed(const float* from, int64_t ld, int64_t count, int64_t depth, float* to) {
  // Vector by vector of columns: kLanes source rows at a time do not evict each other when ld is a power of two.
  for (int64_t g = 0; g < kWidth; g += kLanes, from += kLanes * ld, count -= kLanes) {
    const int64_t width = kStride < kLanes ? kLanes : min<int64_t>(kLanes, kStride - g);
    int64_t q = 0;
    for (; q + kLanes <= depth; q += kLanes) {
      f32v tile[kLanes];
      if (count >= kLanes) {
#pragma GCC unroll 16
        for (int r = 0; r < kLanes; ++r) tile[r] = load(from + r * ld + q);
      } else {
#pragma GCC unroll 16
        for (int r = 0; r < kLanes; ++r) tile[r] = r < count ? load(from + r * ld + q) : f32v{};
      }
      transpose(tile);
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r) {
        float* at = to + (q + r) * kStride + g;
        if (width == kLanes) {
          store(at, tile[r]);
        } else {
          store_partial(at, tile[r], width);
        }
      }
    }
    for (; q < depth; ++q) {
      for (int64_t r = 0; r < min<int64_t>(width, kStride - g); ++r) {
        to[q * kStride + g + r] = r < count ? from[r * ld + q] : 0.0f;
      }
    }
  }
}

// Copies `count` <= kWidth floats of each of `depth` rows: to[q * kStride + r] = from[q * ld + r]; zeros from `count` to
// kWidth.  Whole vectors are stored: with kStride < kWidth as above.
template <int kWidth, int kStride>
inline void pack_rows(const float* from, int64_t ld, int64_t count, int64_t depth, float* to) {
  if (count >= kWidth) {
    for (int64_t q = 0; q < depth; ++q, from += ld, to += kStride) {
#pragma GCC unroll 4
      for (int r = 0; r < kWidth; r += kLanes) store(to + r, load(from + r));
    }
    return;
  }
  for (int64_t q = 0; q < depth; ++q, from += ld, to += kStride) {
#pragma GCC unroll 4
    for (int r = 0; r < kWidth; r += kLanes) {
      store(to + r, load_partial(from + r, clamp<int64_t>(count - r, 0, kLanes)));
    }
  }
}

constexpr int64_t kPanelsAtOnce = 4;

// `columns` columns of B, rows [0, depth) of the view, as panels that follow each other every `stride` floats.
inline void pack_panels(const View& b, int64_t columns, int64_t depth, float* to, int64_t stride) {
  int64_t j = 0;
  if (b.column == 1) {
    // Several panels at once: 256 bytes of each row instead of one cache line, since rows lie on different pages.
    for (; j + kPanelsAtOnce * kPanel <= columns; j += kPanelsAtOnce * kPanel, to += kPanelsAtOnce * stride) {
      for (int64_t q = 0; q < depth; ++q) {
        const float* from = b.at(q, j);
        for (int64_t g = 0; g < kPanelsAtOnce * kPanel; g += 16) __builtin_prefetch(from + 8 * b.row + g);
#pragma GCC unroll 4
        for (int64_t g = 0; g < kPanelsAtOnce; ++g) {
          for (int64_t v = 0; v < kPanel; v += kLanes) {
            store(to + g * stride + q * kPanel + v, load(from + g * kPanel + v));
          }
        }
      }
    }
  }
  for (; j < columns; j += kPanel, to += stride) {
    const int64_t count = min<int64_t>(kPanel, columns - j);
    if (b.column == 1) {
      pack_rows<kPanel, kPanel>(b.at(0, j), b.row, count, depth, to);
    } else {
      pack_transposed<kPanel, kPanel>(b.at(0, j), b.column, count, depth, to);
    }
  }
}

constexpr int kBlockWidth = (kBlockRows + kLanes - 1) / kLanes * kLanes;
constexpr int64_t kPackSlack = kBlockWidth;  // floats that packing A may write behind its block

constexpr int64_t kBlocksAtOnce = 8;  // blocks of A that one pass over a transposed A fills; more evict each other

// All blocks of kBlockRows rows of A, one behind the other: rows x depth of the view.
inline void pack_blocks(const View& a, int64_t rows, int64_t depth, float* to) {
  int64_t i = 0;
  if (a.row == 1) {  // several blocks at once, as above
    for (; i + kBlocksAtOnce * kBlockRows + kBlockWidth - kBlockRows <= rows; i += kBlocksAtOnce * kBlockRows) {
      for (int64_t q = 0; q < depth; ++q) {
        const float* from = a.at(i, q);
        for (int64_t g = 0; g < kBlocksAtOnce * kBlockRows; g += 16) __builtin_prefetch(from + 8 * a.column + g);
#pragma GCC unroll 4
        for (int64_t g = 0; g < kBlocksAtOnce; ++g) {
          for (int64_t v = 0; v < kBlockWidth; v += kLanes) {
            float* at = to + (g * depth + q) * kBlockRows + v;
            if (q + 1 < depth || v + kLanes <= kBlockRows) {
              store(at, load(from + g * kBlockRows + v));
            } else {  // behind it begins the next block, which is already filled
              store_partial(at, load(from + g * kBlockRows + v), kBlockRows - v);
            }
          }
        }
      }
      to += kBlocksAtOnce * kBlockRows * depth;
    }
  }
  for (; i < rows; i += kBlockRows, to += depth * kBlockRows) {
    const int64_t count = min<int64_t>(kBlockRows, rows - i);
    if (a.row == 1) {
      pack_rows<kBlockWidth, kBlockRows>(a.at(i, 0), a.column, count, depth, to);
    } else {
      pack_transposed<kBlockWidth, kBlockRows>(a.at(i, 0), a.row, count, depth, to);
    }
  }
}

// Distance of blocks of A that are filled at the same time: odd multiples of 64 bytes do not meet in the same cache sets.
constexpr int64_t block_stride(int64_t depth) { return (ceil_div(depth * kBlockRows + kPackSlack, 16) | 1) * 16; }

// All blocks of kBlockRows rows of a transposed A, row by row of its memory: to[i * stride + q * kBlockRows + r] =
// from[q * ld + i * kBlockRows + r].
inline void pack_outer(const float* from, int64_t ld, int64_t rows, int64_t depth, int64_t stride, float* to) {
  const int64_t whole = rows < kBlockWidth ? 0 : (rows - kBlockWidth) / kBlockRows + 1;
  for (int64_t q = 0; q < depth; ++q, from += ld, to += kBlockRows) {
    float* at = to;
    int64_t i = 0;
#pragma GCC unroll 4
    for (; i < whole; ++i, at += stride) {
      for (int64_t v = 0; v < kBlockWidth; v += kLanes) store(at + v, load(from + i * kBlockRows + v));
    }
    for (; i * kBlockRows < rows; ++i, at += stride) {
      for (int64_t v = 0; v < kBlockWidth; v += kLanes) {
        const int64_t at_most = rows - i * kBlockRows - v;
        store(at + v, load_partial(from + i * kBlockRows + v, clamp<int64_t>(at_most, 0, kLanes)));
      }
    }
  }
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_PACK_H_
