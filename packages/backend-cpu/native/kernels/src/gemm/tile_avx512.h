// What the strips of register tiles in assembly for AVX-512 share, strip_avx512.h and outer_avx512.h: the registers that they
// use, and the choice of a tile's height.
#ifndef MYCELIA_GEMM_TILE_AVX512_H_
#define MYCELIA_GEMM_TILE_AVX512_H_

// Sums in 0 to 23, B of two k in 24 to 27, elements of A in 28 and 29.
#define MYC_TILE_CLOBBERS \
  "memory", "cc", "k1", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", \
      "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29"

// Cases of a switch: strip(rows) with the includer's MYC_ROWS_<height>, 8 rows to 12.
#define MYC_TALL_TILES(strip) \
  case 12: strip(MYC_ROWS_12); break; \
  case 11: strip(MYC_ROWS_11); break; \
  case 10: strip(MYC_ROWS_10); break; \
  case 9: strip(MYC_ROWS_9); break; \
  case 8: strip(MYC_ROWS_8); break;

#endif  // MYCELIA_GEMM_TILE_AVX512_H_
