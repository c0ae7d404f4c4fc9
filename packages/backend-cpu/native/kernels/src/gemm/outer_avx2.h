// Strips of register tiles over packed A for AVX2, wholly in assembly: with six elements of A side by side for every
// k, one pointer serves all rows and runs from tile to tile, so that little is left to do between two tiles.
#ifndef MYCELIA_GEMM_OUTER_AVX2_H_
#define MYCELIA_GEMM_OUTER_AVX2_H_

#include <stddef.h>

#include "simd/vec.h"

namespace mycelia::MYC_ISA {

// `tiles` of 6 rows one below the other, in each `blocks` of 16 columns side by side:
// C(6 t + i, 16 q + j) (+)= sum over k of a[t a_tile / 4 + 6 k + i] b[q b_block / 4 + 16 k + j], j < 16.
struct OuterStrip {
  const float *a, *b;
  float* c;
  int64_t a_tile, b_block, c_row;  // bytes
  int64_t count;                   // of k
  int64_t tiles, blocks;
  int64_t add;  // whether to what is in C
  const char* fetch;
  int64_t fetch_step;  // bytes for every four k
  // The loop's own: blocks that are left, their b, the first one's c.
  int64_t left;
  const float *b_now, *c_tile;
};

#define MYC_X(field) "%c[" #field "](%[x])"
#define MYC_AT(field) [field] "i"(offsetof(OuterStrip, field))
// Pointers of A and B are 128 bytes ahead: so all distances in the loop fit a byte.
#define MYC_ROW(u, i, with, s, t) \
  "vbroadcastss 24*" #u "+4*" #i "-128(%%r8), %%" with "\n\t" \
  "vfmadd231ps %%" with ", %%ymm12, %%" s "\n\tvfmadd231ps %%" with ", %%ymm13, %%" t "\n\t"
#define MYC_STEP(u) \
  "vmovups 64*" #u "-128(%%rbx), %%ymm12\n\tvmovups 64*" #u "-96(%%rbx), %%ymm13\n\t" \
  MYC_ROW(u, 0, "ymm14", "ymm0", "ymm1") MYC_ROW(u, 1, "ymm15", "ymm2", "ymm3") \
  MYC_ROW(u, 2, "ymm14", "ymm4", "ymm5") MYC_ROW(u, 3, "ymm15", "ymm6", "ymm7") \
  MYC_ROW(u, 4, "ymm14", "ymm8", "ymm9") MYC_ROW(u, 5, "ymm15", "ymm10", "ymm11")
#define MYC_ROWS(body) \
  body("(%%rsi)", "32(%%rsi)", "ymm0", "ymm1") body("(%%rsi, %%r9)", "32(%%rsi, %%r9)", "ymm2", "ymm3") \
  body("(%%rsi, %%r9, 2)", "32(%%rsi, %%r9, 2)", "ymm4", "ymm5") body("(%%r11)", "32(%%r11)", "ymm6", "ymm7") \
  body("(%%r11, %%r9)", "32(%%r11, %%r9)", "ymm8", "ymm9") \
  body("(%%r11, %%r9, 2)", "32(%%r11, %%r9, 2)", "ymm10", "ymm11")
#define MYC_ZERO(at, next, s, t) "vxorps %%" s ", %%" s ", %%" s "\n\tvxorps %%" t ", %%" t ", %%" t "\n\t"
#define MYC_LOAD(at, next, s, t) "vmovups " at ", %%" s "\n\tvmovups " next ", %%" t "\n\t"
#define MYC_STORE(at, next, s, t) "vmovups %%" s ", " at "\n\tvmovups %%" t ", " next "\n\t"

// At least one tile, one block and one k.  x gets the one register left, so that builds with frame pointers work too.
inline __attribute__((noinline)) void run_outer_strip(OuterStrip& x) {
  asm volatile(
      "movq " MYC_X(a) ", %%r15\n\tmovq " MYC_X(c) ", %%rsi\n\tmovq " MYC_X(c_row) ", %%r9\n\t"
      "movq " MYC_X(count) ", %%r12\n\tmovq " MYC_X(tiles) ", %%r13\n\t"
      "movq " MYC_X(fetch) ", %%rdi\n\tmovq " MYC_X(fetch_step) ", %%rdx\n\t"
      "subq $-128, %%r15\n\tleaq (%%r9, %%r9, 2), %%r10\n\t.p2align 5\n"
      "1:\n\tmovq " MYC_X(b) ", %%rbx\n\tmovq " MYC_X(blocks) ", %%rcx\n\tmovq %%rsi, " MYC_X(c_tile) "\n"
      "2:\n\tmovq %%rcx, " MYC_X(left) "\n\tmovq %%rbx, " MYC_X(b_now) "\n\tsubq $-128, %%rbx\n\t"
      "movq %%r15, %%r8\n\tleaq (%%rsi, %%r10), %%r11\n\tcmpq $0, " MYC_X(add) "\n\tjnz 3f\n\t"
      MYC_ROWS(MYC_ZERO) "jmp 4f\n3:\n\t" MYC_ROWS(MYC_LOAD)
      // The next block of C comes while this one is computed: beside it, or the first one of the next tile.
      "4:\n\tmovq " MYC_X(c_tile) ", %%r14\n\tleaq (%%r14, %%r10, 2), %%r14\n\tdecq %%rcx\n\t"
      "leaq 64(%%rsi), %%rcx\n\tcmovneq %%rcx, %%r14\n\tmovq %%r12, %%rcx\n\t"
      "prefetchw (%%r14)\n\tprefetchw (%%r14, %%r9)\n\tprefetchw (%%r14, %%r9, 2)\n\taddq %%r10, %%r14\n\t"
      "prefetchw (%%r14)\n\tprefetchw (%%r14, %%r9)\n\tprefetchw (%%r14, %%r9, 2)\n\t"
      "subq $4, %%rcx\n\tjs 6f\n\t.p2align 6\n"
      "5:\n\tprefetcht0 (%%rdi)\n\taddq %%rdx, %%rdi\n\t" MYC_STEP(0) MYC_STEP(1) MYC_STEP(2) MYC_STEP(3)
      "addq $96, %%r8\n\taddq $256, %%rbx\n\tsubq $4, %%rcx\n\tjns 5b\n"
      "6:\n\taddq $4, %%rcx\n\tjz 8f\n"
      "7:\n\t" MYC_STEP(0) "addq $24, %%r8\n\taddq $64, %%rbx\n\tdecq %%rcx\n\tjnz 7b\n"
      "8:\n\t" MYC_ROWS(MYC_STORE)
      "addq $64, %%rsi\n\tmovq " MYC_X(b_now) ", %%rbx\n\taddq " MYC_X(b_block) ", %%rbx\n\t"
      "movq " MYC_X(left) ", %%rcx\n\tdecq %%rcx\n\tjnz 2b\n\t"
      "movq " MYC_X(c_tile) ", %%rsi\n\tleaq (%%rsi, %%r10, 2), %%rsi\n\taddq " MYC_X(a_tile) ", %%r15\n\t"
      "decq %%r13\n\tjnz 1b\n\t"
      :
      : [x] "r"(&x), MYC_AT(a), MYC_AT(b), MYC_AT(c), MYC_AT(a_tile), MYC_AT(b_block), MYC_AT(c_row), MYC_AT(count),
        MYC_AT(tiles), MYC_AT(blocks), MYC_AT(add), MYC_AT(fetch), MYC_AT(fetch_step), MYC_AT(left), MYC_AT(b_now),
        MYC_AT(c_tile)
      : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc",
        "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15");
}

#undef MYC_X
#undef MYC_AT
#undef MYC_ROW
#undef MYC_STEP
#undef MYC_ROWS
#undef MYC_ZERO
#undef MYC_LOAD
#undef MYC_STORE

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_OUTER_AVX2_H_
