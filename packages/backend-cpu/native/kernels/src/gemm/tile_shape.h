// The register tile that all products share: rows of sums, two vectors wide.
#ifndef MYCELIA_GEMM_TILE_SHAPE_H_
#define MYCELIA_GEMM_TILE_SHAPE_H_

#include "simd/vec.h"

namespace mycelia::MYC_ISA {

// As many rows as leave registers for two vectors of B and one element of A.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kTileRows = 12;  // 32 registers
#else
constexpr int kTileRows = 6;  // 16 registers
#endif
constexpr int kTileVectors = 2;
constexpr int kTileColumns = kTileVectors * kLanes;

// Rows cut into panels of nearly equal height, none above kTileRows: panel i has height(i) rows from begin(i)
// on.
struct RowPanels {
  int64_t rows, count;
  explicit RowPanels(int64_t rows) : rows(rows), count(ceil_div(rows, int64_t{kTileRows})) {}
  int64_t begin(int64_t i) const { return rows * i / count; }
  int64_t height(int64_t i) const { return begin(i + 1) - begin(i); }
};

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_TILE_SHAPE_H_
