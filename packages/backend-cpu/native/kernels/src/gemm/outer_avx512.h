// Strips of register tiles over packed A for AVX-512, wholly in assembly: with twelve elements of A side by side for every
// k, one pointer serves all rows and runs from tile to tile, so that little is left to do between two tiles.
#ifndef MYCELIA_GEMM_OUTER_AVX512_H_
#define MYCELIA_GEMM_OUTER_AVX512_H_

#include <stddef.h>

#include "gemm/tile_avx512.h"
#include "simd/vec.h"

namespace mycelia::MYC_ISA {

// `tiles` of 4 to 12 rows one below the other, in each `blocks` of 32 columns side by side:
// C(12 t + i, 32 q + j) = old C or start[q start_step / 4 + j] +
//   sum over k of a[t a_tile / 4 + 12 k + i] b[q b_block / 4 + 32 k + j], j < 32.
// Fewer than 12 rows: one tile. `columns` says which ones of the blocks' second vectors are there.
struct OuterStrip {
  const float *a, *b;
  float* c;
  int64_t a_tile, b_block, c_row;  // bytes
  int64_t count;                   // of k
  int64_t tiles, blocks;
  int64_t columns;  // a bit each
  const float* start;  // null: what is in C
  int64_t start_step;
  const char* fetch;
  int64_t fetch_step;  // bytes for every four k
  // The loop's own: blocks that are left, their b and start, the first one's c.
  int64_t left;
  const float *b_now, *start_now, *c_tile;
};

#define MYC_X(field) "%c[" #field "](%[x])"
#define MYC_AT(field) [field] "i"(offsetof(OuterStrip, field))
// body(row, where it lies in C, its second vector, its sums)
#define MYC_ROWS_4(body) \
  body(0, "(%%rsi)", "64(%%rsi)", "zmm0", "zmm1") body(1, "(%%rsi, %%r9)", "64(%%rsi, %%r9)", "zmm2", "zmm3") \
  body(2, "(%%rsi, %%r9, 2)", "64(%%rsi, %%r9, 2)", "zmm4", "zmm5") body(3, "(%%r11)", "64(%%r11)", "zmm6", "zmm7")
#define MYC_ROWS_5(body) MYC_ROWS_4(body) body(4, "(%%r11, %%r9)", "64(%%r11, %%r9)", "zmm8", "zmm9")
#define MYC_ROWS_6(body) MYC_ROWS_5(body) body(5, "(%%r11, %%r9, 2)", "64(%%r11, %%r9, 2)", "zmm10", "zmm11")
#define MYC_ROWS_7(body) MYC_ROWS_6(body) body(6, "(%%r14)", "64(%%r14)", "zmm12", "zmm13")
#define MYC_ROWS_8(body) MYC_ROWS_7(body) body(7, "(%%r14, %%r9)", "64(%%r14, %%r9)", "zmm14", "zmm15")
#define MYC_ROWS_9(body) MYC_ROWS_8(body) body(8, "(%%r14, %%r9, 2)", "64(%%r14, %%r9, 2)", "zmm16", "zmm17")
#define MYC_ROWS_10(body) MYC_ROWS_9(body) body(9, "(%%r12)", "64(%%r12)", "zmm18", "zmm19")
#define MYC_ROWS_11(body) MYC_ROWS_10(body) body(10, "(%%r12, %%r9)", "64(%%r12, %%r9)", "zmm20", "zmm21")
#define MYC_ROWS_12(body) MYC_ROWS_11(body) body(11, "(%%r12, %%r9, 2)", "64(%%r12, %%r9, 2)", "zmm22", "zmm23")
#define MYC_STEP(u, i, b, d, with, s, t) \
  "vbroadcastss 48*" #u "+4*" #i "(%%r8), %%" with "\n\t" \
  "vfmadd231ps %%" with ", %%" b ", %%" s "\n\tvfmadd231ps %%" with ", %%" d ", %%" t "\n\t"
#define MYC_STEP_0(i, at, next, s, t) MYC_STEP(0, i, "zmm24", "zmm25", "zmm28", s, t)
#define MYC_STEP_1(i, at, next, s, t) MYC_STEP(1, i, "zmm26", "zmm27", "zmm29", s, t)
#define MYC_STEP_2(i, at, next, s, t) MYC_STEP(2, i, "zmm24", "zmm25", "zmm28", s, t)
#define MYC_STEP_3(i, at, next, s, t) MYC_STEP(3, i, "zmm26", "zmm27", "zmm29", s, t)
#define MYC_B(u, b, d) "vmovups 128*" #u "(%%rbx), %%" b "\n\tvmovups 128*" #u "+64(%%rbx), %%" d "\n\t"
#define MYC_START(i, at, next, s, t) "vmovaps %%zmm24, %%" s "\n\tvmovaps %%zmm25, %%" t "\n\t"
#define MYC_LOAD(i, at, next, s, t) "vmovups " at ", %%" s "\n\tvmovups " next ", %%" t " %{%%k1%}%{z%}\n\t"
#define MYC_STORE(i, at, next, s, t) "vmovups %%" s ", " at "\n\tvmovups %%" t ", " next " %{%%k1%}\n\t"
// Three rows of the next block of C.
#define MYC_FETCH_ROWS \
  "prefetchw (%%r13)\n\tprefetchw 64(%%r13)\n\tprefetchw (%%r13, %%r9)\n\tprefetchw 64(%%r13, %%r9)\n\t" \
  "prefetchw (%%r13, %%r9, 2)\n\tprefetchw 64(%%r13, %%r9, 2)\n\taddq %%r10, %%r13\n\t"

#define MYC_OUTER(rows) \
  asm volatile( \
      "movl " MYC_X(columns) ", %%eax\n\tkmovw %%eax, %%k1\n\t" \
      "movq " MYC_X(c) ", %%rsi\n\tmovq " MYC_X(c_row) ", %%r9\n\tmovq " MYC_X(fetch) ", %%rdi\n\t" \
      "leaq (%%r9, %%r9, 2), %%r10\n\t.p2align 5\n" \
      "1:\n\tmovq " MYC_X(b) ", %%rbx\n\tmovq " MYC_X(blocks) ", %%rcx\n\tmovq %%rsi, " MYC_X(c_tile) "\n\t" \
      "movq " MYC_X(start) ", %%rax\n\tmovq %%rax, " MYC_X(start_now) "\n" \
      "2:\n\tmovq %%rcx, " MYC_X(left) "\n\tmovq %%rbx, " MYC_X(b_now) "\n\tmovq " MYC_X(a) ", %%r8\n\t" \
      "leaq (%%rsi, %%r10), %%r11\n\tleaq (%%rsi, %%r10, 2), %%r14\n\tleaq (%%r11, %%r10, 2), %%r12\n\t" \
      "movq " MYC_X(start_now) ", %%rdx\n\ttestq %%rdx, %%rdx\n\tjz 3f\n\t" \
      "vmovups (%%rdx), %%zmm24\n\tvmovups 64(%%rdx), %%zmm25 %{%%k1%}%{z%}\n\t" rows(MYC_START) \
      "addq " MYC_X(start_step) ", %%rdx\n\tmovq %%rdx, " MYC_X(start_now) "\n\tjmp 4f\n3:\n\t" rows(MYC_LOAD) \
      /* The next block of C comes while this one is computed: beside it, or the first one of the next tile. */ \
      "4:\n\tmovq " MYC_X(c_tile) ", %%r13\n\tleaq (%%r13, %%r10, 4), %%r13\n\tdecq %%rcx\n\t" \
      "leaq 128(%%rsi), %%rcx\n\tcmovneq %%rcx, %%r13\n\t" \
      MYC_FETCH_ROWS MYC_FETCH_ROWS MYC_FETCH_ROWS MYC_FETCH_ROWS \
      "movq " MYC_X(count) ", %%rcx\n\tmovq " MYC_X(fetch_step) ", %%rdx\n\tsubq $4, %%rcx\n\tjs 6f\n\t.p2align 6\n" \
      "5:\n\tprefetcht1 (%%rdi)\n\taddq %%rdx, %%rdi\n\t" \
      MYC_B(0, "zmm24", "zmm25") MYC_B(1, "zmm26", "zmm27") rows(MYC_STEP_0) rows(MYC_STEP_1) \
      MYC_B(2, "zmm24", "zmm25") MYC_B(3, "zmm26", "zmm27") rows(MYC_STEP_2) rows(MYC_STEP_3) \
      "addq $192, %%r8\n\taddq $512, %%rbx\n\tsubq $4, %%rcx\n\tjns 5b\n" \
      "6:\n\taddq $4, %%rcx\n\tjz 8f\n" \
      "7:\n\t" MYC_B(0, "zmm24", "zmm25") rows(MYC_STEP_0) \
      "addq $48, %%r8\n\tsubq $-128, %%rbx\n\tdecq %%rcx\n\tjnz 7b\n" \
      "8:\n\t" rows(MYC_STORE) \
      "subq $-128, %%rsi\n\tmovq " MYC_X(b_now) ", %%rbx\n\taddq " MYC_X(b_block) ", %%rbx\n\t" \
      "movq " MYC_X(left) ", %%rcx\n\tdecq %%rcx\n\tjnz 2b\n\t" \
      "movq " MYC_X(c_tile) ", %%rsi\n\tleaq (%%rsi, %%r10, 4), %%rsi\n\t" \
      "movq " MYC_X(a_tile) ", %%rax\n\taddq %%rax, " MYC_X(a) "\n\tdecq " MYC_X(tiles) "\n\tjnz 1b\n\t" \
      : \
      : [x] "r"(&x), MYC_AT(a), MYC_AT(b), MYC_AT(c), MYC_AT(a_tile), MYC_AT(b_block), MYC_AT(c_row), MYC_AT(count), \
        MYC_AT(tiles), MYC_AT(blocks), MYC_AT(columns), MYC_AT(start), MYC_AT(start_step), \
        MYC_AT(fetch), MYC_AT(fetch_step), MYC_AT(left), MYC_AT(b_now), MYC_AT(start_now), MYC_AT(c_tile) \
      : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", \
        MYC_TILE_CLOBBERS)

// At least one tile of 4 to 12 rows, one block and one k; `x` is changed.
inline __attribute__((noinline)) void run_outer_strip(int64_t rows, OuterStrip& x) {
  switch (rows) {
    MYC_TALL_TILES(MYC_OUTER)
    case 7: MYC_OUTER(MYC_ROWS_7); break;
    case 6: MYC_OUTER(MYC_ROWS_6); break;
    case 5: MYC_OUTER(MYC_ROWS_5); break;
    default: MYC_OUTER(MYC_ROWS_4); break;
  }
}

#undef MYC_X
#undef MYC_AT
#undef MYC_ROWS_4
#undef MYC_ROWS_5
#undef MYC_ROWS_6
#undef MYC_ROWS_7
#undef MYC_ROWS_8
#undef MYC_ROWS_9
#undef MYC_ROWS_10
#undef MYC_ROWS_11
#undef MYC_ROWS_12
#undef MYC_STEP
#undef MYC_STEP_0
#undef MYC_STEP_1
#undef MYC_STEP_2
#undef MYC_STEP_3
#undef MYC_B
#undef MYC_START
#undef MYC_LOAD
#undef MYC_STORE
#undef MYC_FETCH_ROWS
#undef MYC_OUTER

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_OUTER_AVX512_H_
