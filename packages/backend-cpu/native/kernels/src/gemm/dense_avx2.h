// Products of short depth and many columns for AVX2, in assembly: rows at equal distances, one stretch of k, all
// columns before the next rows. The multiply-adds of a tile of 6 x 16 with k = 16 take 96 cycles; between two tiles
// come 85 instructions here, 130 in strip_avx2.h, where rows lie anywhere and sums are added to what is there.
#ifndef MYCELIA_GEMM_DENSE_AVX2_H_
#define MYCELIA_GEMM_DENSE_AVX2_H_

#include <stddef.h>

#include "simd/vec.h"

namespace mycelia::MYC_ISA {

// Tiles of 6 rows, one behind the other, each over `blocks` panels of B that are k * 64 bytes long.
struct DenseStrip {
  const float *a, *c;
  int64_t a_row, c_row;    // bytes between rows
  int64_t a_step, c_step;  // bytes to the next tile's first row; for c from behind the last block
  const float *b, *start;  // start: what the columns' sums begin with
  int64_t start_step;      // bytes from block to block
  int64_t k;
  const float* high;  // null, or sums are cut to [0, *high]
  int64_t tiles, blocks;
};

#define MYC_X(field) "%c[" #field "](%[x])"
#define MYC_AT(field) [field] "i"(offsetof(DenseStrip, field))
// Rows 0 to 2 lie behind one pointer, 3 to 5 behind another.
#define MYC_ROWS(body, low, high, row) \
  body("(%%" low ")", "ymm14", "ymm0", "ymm1") body("(%%" low ", %%" row ")", "ymm15", "ymm2", "ymm3") \
  body("(%%" low ", %%" row ", 2)", "ymm14", "ymm4", "ymm5") body("(%%" high ")", "ymm15", "ymm6", "ymm7") \
  body("(%%" high ", %%" row ")", "ymm14", "ymm8", "ymm9") body("(%%" high ", %%" row ", 2)", "ymm15", "ymm10", "ymm11")
#define MYC_OF_A(body) MYC_ROWS(body, "r8", "r9", "rdx")
#define MYC_OF_C(body) MYC_ROWS(body, "rsi", "r10", "rdi")
#define MYC_CLAIM(at, with, s, t) "prefetchw " at "\n\t"
#define MYC_START(at, with, s, t) "vmovaps %%ymm12, %%" s "\n\tvmovaps %%ymm13, %%" t "\n\t"
#define MYC_STEP(u, at, with, s, t) \
  "vbroadcastss 4*" #u at ", %%" with "\n\t" \
  "vfmadd231ps %%" with ", %%ymm12, %%" s "\n\tvfmadd231ps %%" with ", %%ymm13, %%" t "\n\t"
#define MYC_STEP_0(...) MYC_STEP(0, __VA_ARGS__)
#define MYC_STEP_1(...) MYC_STEP(1, __VA_ARGS__)
#define MYC_STEP_2(...) MYC_STEP(2, __VA_ARGS__)
#define MYC_STEP_3(...) MYC_STEP(3, __VA_ARGS__)
#define MYC_K(u) \
  "vmovups 64*" #u "(%%rbx), %%ymm12\n\tvmovups 64*" #u "+32(%%rbx), %%ymm13\n\t" MYC_OF_A(MYC_STEP_##u)
// vmaxps and vminps give their second operand, here the sum, if one is no number.
#define MYC_CLIP(at, with, s, t) \
  "vmaxps %%" s ", %%ymm12, %%" s "\n\tvmaxps %%" t ", %%ymm12, %%" t "\n\t" \
  "vminps %%" s ", %%ymm13, %%" s "\n\tvminps %%" t ", %%ymm13, %%" t "\n\t"
#define MYC_STORE(at, with, s, t) "vmovups %%" s ", " at "\n\tvmovups %%" t ", 32" at "\n\t"

// At least one tile, one block and one k; `x` is changed.
inline __attribute__((noinline)) void run_dense(DenseStrip& x) {
  asm volatile(
      "movq " MYC_X(a_row) ", %%rdx\n\tmovq " MYC_X(c_row) ", %%rdi\n\tmovq " MYC_X(c) ", %%rsi\n\t"
      "leaq (%%rsi, %%rdi, 2), %%r10\n\taddq %%rdi, %%r10\n\tmovq " MYC_X(a) ", %%r13\n\t.p2align 5\n"
      "1:\n\tmovq " MYC_X(b) ", %%rbx\n\tmovq " MYC_X(start) ", %%r12\n\tmovq " MYC_X(blocks) ", %%r11\n"
      "2:\n\tmovq %%r13, %%r8\n\tleaq (%%rdx, %%rdx, 2), %%r9\n\taddq %%r13, %%r9\n\t"
      "vmovups (%%r12), %%ymm12\n\tvmovups 32(%%r12), %%ymm13\n\t" MYC_OF_A(MYC_START) MYC_OF_C(MYC_CLAIM)
      "movq " MYC_X(k) ", %%rcx\n\tsubq $4, %%rcx\n\tjs 4f\n\t.p2align 6\n"
      "3:\n\t" MYC_K(0) MYC_K(1) MYC_K(2) MYC_K(3)
      "addq $16, %%r8\n\taddq $16, %%r9\n\taddq $256, %%rbx\n\tsubq $4, %%rcx\n\tjns 3b\n"
      "4:\n\taddq $4, %%rcx\n\tjz 6f\n"
      "5:\n\t" MYC_K(0) "addq $4, %%r8\n\taddq $4, %%r9\n\taddq $64, %%rbx\n\tdecq %%rcx\n\tjnz 5b\n"
      "6:\n\tmovq " MYC_X(high) ", %%rax\n\ttestq %%rax, %%rax\n\tjz 7f\n\t"
      "vxorps %%ymm12, %%ymm12, %%ymm12\n\tvbroadcastss (%%rax), %%ymm13\n\t" MYC_OF_C(MYC_CLIP)
      "7:\n\t" MYC_OF_C(MYC_STORE)
      "addq $64, %%rsi\n\taddq $64, %%r10\n\taddq " MYC_X(start_step) ", %%r12\n\tdecq %%r11\n\tjnz 2b\n\t"
      "addq " MYC_X(a_step) ", %%r13\n\tmovq " MYC_X(c_step) ", %%rax\n\taddq %%rax, %%rsi\n\taddq %%rax, %%r10\n\t"
      "decq " MYC_X(tiles) "\n\tjnz 1b\n\t"
      :
      : [x] "r"(&x), MYC_AT(a), MYC_AT(c), MYC_AT(a_row), MYC_AT(c_row), MYC_AT(a_step), MYC_AT(c_step), MYC_AT(b),
        MYC_AT(start), MYC_AT(start_step), MYC_AT(k), MYC_AT(high), MYC_AT(tiles), MYC_AT(blocks)
      : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "memory", "cc", "xmm0",
        "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
        "xmm14", "xmm15");
}

#undef MYC_X
#undef MYC_AT
#undef MYC_ROWS
#undef MYC_OF_A
#undef MYC_OF_C
#undef MYC_CLAIM
#undef MYC_START
#undef MYC_STEP
#undef MYC_STEP_0
#undef MYC_STEP_1
#undef MYC_STEP_2
#undef MYC_STEP_3
#undef MYC_K
#undef MYC_CLIP
#undef MYC_STORE

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_DENSE_AVX2_H_
