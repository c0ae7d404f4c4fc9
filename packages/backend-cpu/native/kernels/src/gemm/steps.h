// Inner loops written by hand, for the instruction sets that have them: MYC_STEPS those of one tile, MYC_STRIPS those
// of several tiles.
#ifndef MYCELIA_GEMM_STEPS_H_
#define MYCELIA_GEMM_STEPS_H_

#include "gemm/tile_shape.h"

#if defined(__x86_64__) && defined(__AVX512F__)
#define MYC_STEPS 0
#define MYC_STRIPS 1

namespace mycelia::MYC_ISA {

// Whether there is one for tiles of this size.
constexpr bool has_strips(int64_t rows, int64_t columns) { return rows >= 7 && columns > kLanes; }

}  // namespace mycelia::MYC_ISA

#elif defined(__x86_64__) && defined(__AVX2__)
#include "gemm/steps_avx2.h"
#define MYC_STEPS 1
#define MYC_STRIPS 1

namespace mycelia::MYC_ISA {

constexpr bool has_steps(int rows, int vectors) { return vectors == 2 && rows >= 4 && rows <= 6; }
constexpr bool has_strips(int64_t rows, int64_t columns) { return has_steps(rows, 2) && columns == kTileColumns; }

}  // namespace mycelia::MYC_ISA

#else
#define MYC_STEPS 0
#define MYC_STRIPS 0

namespace mycelia::MYC_ISA {

constexpr bool has_strips(int64_t, int64_t) { return false; }

}  // namespace mycelia::MYC_ISA
#endif

#endif  // MYCELIA_GEMM_STEPS_H_
