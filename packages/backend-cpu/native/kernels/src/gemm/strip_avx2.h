// Strips of register tiles for AVX2, wholly in assembly. Between two tiles of 6 x 16 a compiler needs 150
// instructions, as many as 7 k of the product, and computes the addresses of the next tile in vector registers,
// where they wait for the multiply-adds of this one.
#ifndef MYCELIA_GEMM_STRIP_AVX2_H_
#define MYCELIA_GEMM_STRIP_AVX2_H_

#include <stddef.h>

#include "simd/vec.h"

namespace mycelia::MYC_ISA {

constexpr int64_t kFetchEvery = 4;  // k: a line ahead

// Tiles of equal height, one behind the other, each over all runs of k; rows.h says what the parts mean.
struct Strip {
  const float* a;
  const int64_t* a_row;  // offsets of a tile's rows, in floats
  float* c;
  const int64_t* c_row;
  int64_t a_step, c_step, row_step;  // bytes from tile to tile, of a, c and both lists
  const void *runs, *runs_end;       // a, b and length of each
  const float *b, *start;            // start: what the 16 columns' sums begin with
  int64_t residual;                  // bytes from c to what is added; 0 without
  int64_t c_ahead;                   // bytes behind c that are fetched while the sums run
  int64_t add;                       // whether c itself is added
  const float* high;                 // null, or sums are cut to [0, *high]
  const char* fetch;
  int64_t fetch_step;  // bytes for every kFetchEvery k
  int64_t tiles;
  // Of every tile so many blocks of 16 columns, one behind the other in c; bytes from block to block.
  int64_t blocks, b_step, start_step;
  int64_t b_back, start_back;  // bytes from the last block to the first
  int64_t left;                // blocks, the loop's own
};

#define MYC_X(field) "%c[" #field "](%[x])"
// body(row, its pointer, the register of its broadcasts, its sums)
#define MYC_ROWS_4(body) \
  body(0, "r8", "ymm14", "ymm0", "ymm1") body(1, "r9", "ymm15", "ymm2", "ymm3") \
  body(2, "r10", "ymm14", "ymm4", "ymm5") body(3, "r11", "ymm15", "ymm6", "ymm7")
#define MYC_ROWS_5(body) MYC_ROWS_4(body) body(4, "r12", "ymm14", "ymm8", "ymm9")
#define MYC_ROWS_6(body) MYC_ROWS_5(body) body(5, "r13", "ymm15", "ymm10", "ymm11")

#define MYC_POINTER(i, row, a, s, t) "movq 8*" #i "(%%rdi), %%" row "\n\tleaq (%%rsi, %%" row ", 4), %%" row "\n\t"
#define MYC_OFFSET(i, row, a, s, t) "movq 8*" #i "(%%rdi), %%" row "\n\t"
#define MYC_FETCH(i, row, a, s, t) "movq 8*" #i "(%%rdi), %%rbx\n\tprefetcht0 (%%rsi, %%rbx, 4)\n\t"
#define MYC_CLAIM(i, row, a, s, t) "movq 8*" #i "(%%rdi), %%rbx\n\tprefetchw (%%rsi, %%rbx, 4)\n\t"
#define MYC_START(i, row, a, s, t) "vmovaps %%ymm12, %%" s "\n\tvmovaps %%ymm13, %%" t "\n\t"
#define MYC_STEP(i, row, a, s, t, u) \
  "vbroadcastss 4*" #u "(%%" row ", %%rax, 4), %%" a "\n\t" \
  "vfmadd231ps %%" a ", %%ymm12, %%" s "\n\tvfmadd231ps %%" a ", %%ymm13, %%" t "\n\t"
#define MYC_STEP_0(i, row, a, s, t) MYC_STEP(i, row, a, s, t, 0)
#define MYC_STEP_1(i, row, a, s, t) MYC_STEP(i, row, a, s, t, 1)
#define MYC_STEP_2(i, row, a, s, t) MYC_STEP(i, row, a, s, t, 2)
#define MYC_STEP_3(i, row, a, s, t) MYC_STEP(i, row, a, s, t, 3)
#define MYC_B(u) "vmovups 64*" #u "(%%rbx), %%ymm12\n\tvmovups 64*" #u "+32(%%rbx), %%ymm13\n\t"
#define MYC_ADD(i, row, a, s, t) \
  "vaddps (%%rax, %%" row ", 4), %%" s ", %%" s "\n\tvaddps 32(%%rax, %%" row ", 4), %%" t ", %%" t "\n\t"
#define MYC_LOW(i, row, a, s, t) "vmaxps %%" s ", %%ymm12, %%" s "\n\tvmaxps %%" t ", %%ymm12, %%" t "\n\t"
#define MYC_HIGH(i, row, a, s, t) "vminps %%" s ", %%ymm13, %%" s "\n\tvminps %%" t ", %%ymm13, %%" t "\n\t"
#define MYC_STORE(i, row, a, s, t) \
  "vmovups %%" s ", (%%rsi, %%" row ", 4)\n\tvmovups %%" t ", 32(%%rsi, %%" row ", 4)\n\t"
#define MYC_AT(field) [field] "i"(offsetof(Strip, field))

#define MYC_NEXT_TILE \
  "12:\n\tmovq " MYC_X(b_back) ", %%rax\n\taddq %%rax, " MYC_X(b) "\n\t" \
  "movq " MYC_X(start_back) ", %%rax\n\taddq %%rax, " MYC_X(start) "\n\t" \
  "movq " MYC_X(a_step) ", %%rax\n\taddq %%rax, " MYC_X(a) "\n\t" \
  "movq " MYC_X(c_step) ", %%rax\n\taddq %%rax, " MYC_X(c) "\n\t" \
  "movq " MYC_X(row_step) ", %%rax\n\taddq %%rax, " MYC_X(a_row) "\n\taddq %%rax, " MYC_X(c_row) "\n\t" \
  "decq " MYC_X(tiles) "\n\tjnz 1b\n\t"
#define MYC_FIELDS \
  MYC_AT(a), MYC_AT(a_row), MYC_AT(c), MYC_AT(c_row), MYC_AT(a_step), MYC_AT(c_step), MYC_AT(row_step), \
  MYC_AT(runs), MYC_AT(runs_end), MYC_AT(b), MYC_AT(start), MYC_AT(residual), MYC_AT(c_ahead), MYC_AT(add), \
  MYC_AT(high), MYC_AT(fetch), MYC_AT(fetch_step), MYC_AT(tiles), MYC_AT(blocks), MYC_AT(b_step), \
  MYC_AT(start_step), MYC_AT(b_back), MYC_AT(start_back), MYC_AT(left)
#define MYC_CHANGED \
  "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "memory", "cc", "xmm0", \
  "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
  "xmm14", "xmm15"

// vmaxps and vminps give their second operand, here the sum, if one is no number.
#define MYC_STRIP(rows) \
  asm volatile( \
      ".p2align 5\n1:\n\t" \
      "movq " MYC_X(blocks) ", %%rax\n\tmovq %%rax, " MYC_X(left) "\n" \
      "11:\n\tmovq " MYC_X(c) ", %%rsi\n\tmovq " MYC_X(c_row) ", %%rdi\n\taddq " MYC_X(c_ahead) ", %%rsi\n\t" \
      rows(MYC_CLAIM) \
      "movq " MYC_X(residual) ", %%rax\n\ttestq %%rax, %%rax\n\tjz 2f\n\taddq %%rax, %%rsi\n\t" rows(MYC_FETCH) \
      "2:\n\tmovq " MYC_X(a) ", %%rsi\n\tmovq " MYC_X(a_row) ", %%rdi\n\t" rows(MYC_POINTER) \
      "movq " MYC_X(start) ", %%rax\n\tvmovups (%%rax), %%ymm12\n\tvmovups 32(%%rax), %%ymm13\n\t" rows(MYC_START) \
      "movq " MYC_X(fetch) ", %%rdi\n\tmovq " MYC_X(fetch_step) ", %%rdx\n\tmovq " MYC_X(runs) ", %%rsi\n" \
      "3:\n\tmovq (%%rsi), %%rax\n\tmovq 8(%%rsi), %%rbx\n\tmovq 16(%%rsi), %%rcx\n\taddq $24, %%rsi\n\t" \
      "shlq $6, %%rbx\n\taddq " MYC_X(b) ", %%rbx\n\tsubq $4, %%rcx\n\tjs 5f\n\t.p2align 6\n" \
      "4:\n\tprefetcht0 (%%rdi)\n\taddq %%rdx, %%rdi\n\t" \
      MYC_B(0) rows(MYC_STEP_0) MYC_B(1) rows(MYC_STEP_1) MYC_B(2) rows(MYC_STEP_2) MYC_B(3) rows(MYC_STEP_3) \
      "addq $4, %%rax\n\taddq $256, %%rbx\n\tsubq $4, %%rcx\n\tjns 4b\n" \
      "5:\n\taddq $4, %%rcx\n\tjz 7f\n" \
      "6:\n\t" MYC_B(0) rows(MYC_STEP_0) "incq %%rax\n\taddq $64, %%rbx\n\tdecq %%rcx\n\tjnz 6b\n" \
      "7:\n\tcmpq " MYC_X(runs_end) ", %%rsi\n\tjne 3b\n\tmovq %%rdi, " MYC_X(fetch) "\n\t" \
      "movq " MYC_X(c) ", %%rsi\n\tmovq " MYC_X(c_row) ", %%rdi\n\t" rows(MYC_OFFSET) \
      "cmpq $0, " MYC_X(add) "\n\tje 8f\n\tmovq %%rsi, %%rax\n\t" rows(MYC_ADD) \
      "8:\n\tmovq " MYC_X(residual) ", %%rax\n\ttestq %%rax, %%rax\n\tjz 9f\n\taddq %%rsi, %%rax\n\t" rows(MYC_ADD) \
      "9:\n\tmovq " MYC_X(high) ", %%rax\n\ttestq %%rax, %%rax\n\tjz 10f\n\t" \
      "vxorps %%ymm12, %%ymm12, %%ymm12\n\tvbroadcastss (%%rax), %%ymm13\n\t" rows(MYC_LOW) rows(MYC_HIGH) \
      "10:\n\t" rows(MYC_STORE) \
      "decq " MYC_X(left) "\n\tjz 12f\n\taddq $64, " MYC_X(c) "\n\t" \
      "movq " MYC_X(b_step) ", %%rax\n\taddq %%rax, " MYC_X(b) "\n\t" \
      "movq " MYC_X(start_step) ", %%rax\n\taddq %%rax, " MYC_X(start) "\n\tjmp 11b\n" \
      MYC_NEXT_TILE \
      : \
      : [x] "r"(&x), MYC_FIELDS \
      : MYC_CHANGED)

// At least one tile of 4, 5 or 6 rows; `x` is changed.
inline __attribute__((noinline)) void run_strip(int64_t rows, Strip& x) {
  if (rows == 6) {
    MYC_STRIP(MYC_ROWS_6);
  } else if (rows == 5) {
    MYC_STRIP(MYC_ROWS_5);
  } else {
    MYC_STRIP(MYC_ROWS_4);
  }
}

// The same for tiles of 3 rows and 32 columns, two panels of B `b_panel` bytes apart, in every block: 19 instructions
// for 12 multiply-adds instead of 20, and half the rows to look up between two tiles; but twice as much of B has to
// stay in the first-level cache.
#define MYC_WIDE(body) \
  body(0, "r8", "ymm12", "ymm0", "ymm1", "ymm2", "ymm3") body(1, "r9", "ymm13", "ymm4", "ymm5", "ymm6", "ymm7") \
  body(2, "r10", "ymm14", "ymm8", "ymm9", "ymm10", "ymm11")
#define MYC_WIDE_POINTER(i, row, a, s, t, u, v) MYC_POINTER(i, row, a, s, t)
#define MYC_WIDE_OFFSET(i, row, a, s, t, u, v) MYC_OFFSET(i, row, a, s, t)
#define MYC_WIDE_FETCH(i, row, a, s, t, u, v) \
  "movq 8*" #i "(%%rdi), %%rbx\n\tprefetcht0 (%%rsi, %%rbx, 4)\n\tprefetcht0 64(%%rsi, %%rbx, 4)\n\t"
#define MYC_WIDE_CLAIM(i, row, a, s, t, u, v) \
  "movq 8*" #i "(%%rdi), %%rbx\n\tprefetchw (%%rsi, %%rbx, 4)\n\tprefetchw 64(%%rsi, %%rbx, 4)\n\t"
#define MYC_WIDE_START(i, row, a, s, t, u, v) \
  "vmovaps %%ymm12, %%" s "\n\tvmovaps %%ymm13, %%" t "\n\tvmovaps %%ymm14, %%" u "\n\tvmovaps %%ymm15, %%" v "\n\t"
#define MYC_WIDE_ADD(i, row, a, s, t, u, v) \
  "vaddps (%%rax, %%" row ", 4), %%" s ", %%" s "\n\tvaddps 32(%%rax, %%" row ", 4), %%" t ", %%" t "\n\t" \
  "vaddps 64(%%rax, %%" row ", 4), %%" u ", %%" u "\n\tvaddps 96(%%rax, %%" row ", 4), %%" v ", %%" v "\n\t"
#define MYC_WIDE_LOW(i, row, a, s, t, u, v) MYC_LOW(i, row, a, s, t) MYC_LOW(i, row, a, u, v)
#define MYC_WIDE_HIGH(i, row, a, s, t, u, v) MYC_HIGH(i, row, a, s, t) MYC_HIGH(i, row, a, u, v)
#define MYC_WIDE_STORE(i, row, a, s, t, u, v) \
  "vmovups %%" s ", (%%rsi, %%" row ", 4)\n\tvmovups %%" t ", 32(%%rsi, %%" row ", 4)\n\t" \
  "vmovups %%" u ", 64(%%rsi, %%" row ", 4)\n\tvmovups %%" v ", 96(%%rsi, %%" row ", 4)\n\t"
#define MYC_WIDE_ONE(b, s, t, u) \
  "vmovups " b ", %%ymm15\n\tvfmadd231ps %%ymm12, %%ymm15, %%" s "\n\t" \
  "vfmadd231ps %%ymm13, %%ymm15, %%" t "\n\tvfmadd231ps %%ymm14, %%ymm15, %%" u "\n\t"
#define MYC_WIDE_STEP(u) \
  "vbroadcastss 4*" #u "(%%r8, %%rax, 4), %%ymm12\n\tvbroadcastss 4*" #u "(%%r9, %%rax, 4), %%ymm13\n\t" \
  "vbroadcastss 4*" #u "(%%r10, %%rax, 4), %%ymm14\n\t" \
  MYC_WIDE_ONE("64*" #u "(%%rbx)", "ymm0", "ymm4", "ymm8") \
  MYC_WIDE_ONE("64*" #u "+32(%%rbx)", "ymm1", "ymm5", "ymm9") \
  MYC_WIDE_ONE("64*" #u "(%%rbx, %%r11)", "ymm2", "ymm6", "ymm10") \
  MYC_WIDE_ONE("64*" #u "+32(%%rbx, %%r11)", "ymm3", "ymm7", "ymm11")

inline __attribute__((noinline)) void run_wide_strip(Strip& x, int64_t b_panel) {
  asm volatile(
      "movq %[panel], %%r11\n\t.p2align 5\n1:\n\t"
      "movq " MYC_X(blocks) ", %%rax\n\tmovq %%rax, " MYC_X(left) "\n"
      "11:\n\tmovq " MYC_X(c) ", %%rsi\n\tmovq " MYC_X(c_row) ", %%rdi\n\taddq " MYC_X(c_ahead) ", %%rsi\n\t"
      MYC_WIDE(MYC_WIDE_CLAIM)
      "movq " MYC_X(residual) ", %%rax\n\ttestq %%rax, %%rax\n\tjz 2f\n\taddq %%rax, %%rsi\n\t"
      MYC_WIDE(MYC_WIDE_FETCH)
      "2:\n\tmovq " MYC_X(a) ", %%rsi\n\tmovq " MYC_X(a_row) ", %%rdi\n\t" MYC_WIDE(MYC_WIDE_POINTER)
      "movq " MYC_X(start) ", %%rax\n\tvmovups (%%rax), %%ymm12\n\tvmovups 32(%%rax), %%ymm13\n\t"
      "vmovups 64(%%rax), %%ymm14\n\tvmovups 96(%%rax), %%ymm15\n\t" MYC_WIDE(MYC_WIDE_START)
      "movq " MYC_X(fetch) ", %%rdi\n\tmovq " MYC_X(fetch_step) ", %%rdx\n\tmovq " MYC_X(runs) ", %%rsi\n"
      "3:\n\tmovq (%%rsi), %%rax\n\tmovq 8(%%rsi), %%rbx\n\tmovq 16(%%rsi), %%rcx\n\taddq $24, %%rsi\n\t"
      "shlq $6, %%rbx\n\taddq " MYC_X(b) ", %%rbx\n\tsubq $4, %%rcx\n\tjs 5f\n\t.p2align 6\n"
      "4:\n\tprefetcht0 (%%rdi)\n\taddq %%rdx, %%rdi\n\t"
      MYC_WIDE_STEP(0) MYC_WIDE_STEP(1) MYC_WIDE_STEP(2) MYC_WIDE_STEP(3)
      "addq $4, %%rax\n\taddq $256, %%rbx\n\tsubq $4, %%rcx\n\tjns 4b\n"
      "5:\n\taddq $4, %%rcx\n\tjz 7f\n"
      "6:\n\t" MYC_WIDE_STEP(0) "incq %%rax\n\taddq $64, %%rbx\n\tdecq %%rcx\n\tjnz 6b\n"
      "7:\n\tcmpq " MYC_X(runs_end) ", %%rsi\n\tjne 3b\n\tmovq %%rdi, " MYC_X(fetch) "\n\t"
      "movq " MYC_X(c) ", %%rsi\n\tmovq " MYC_X(c_row) ", %%rdi\n\t" MYC_WIDE(MYC_WIDE_OFFSET)
      "cmpq $0, " MYC_X(add) "\n\tje 8f\n\tmovq %%rsi, %%rax\n\t" MYC_WIDE(MYC_WIDE_ADD)
      "8:\n\tmovq " MYC_X(residual) ", %%rax\n\ttestq %%rax, %%rax\n\tjz 9f\n\taddq %%rsi, %%rax\n\t"
      MYC_WIDE(MYC_WIDE_ADD)
      "9:\n\tmovq " MYC_X(high) ", %%rax\n\ttestq %%rax, %%rax\n\tjz 10f\n\t"
      "vxorps %%ymm12, %%ymm12, %%ymm12\n\tvbroadcastss (%%rax), %%ymm13\n\t"
      MYC_WIDE(MYC_WIDE_LOW) MYC_WIDE(MYC_WIDE_HIGH)
      "10:\n\t" MYC_WIDE(MYC_WIDE_STORE)
      "decq " MYC_X(left) "\n\tjz 12f\n\tsubq $-128, " MYC_X(c) "\n\t"
      "movq " MYC_X(b_step) ", %%rax\n\taddq %%rax, " MYC_X(b) "\n\t"
      "movq " MYC_X(start_step) ", %%rax\n\taddq %%rax, " MYC_X(start) "\n\tjmp 11b\n"
      MYC_NEXT_TILE
      :
      : [x] "r"(&x), [panel] "r"(b_panel), MYC_FIELDS
      : MYC_CHANGED);
}

#undef MYC_X
#undef MYC_ROWS_4
#undef MYC_ROWS_5
#undef MYC_ROWS_6
#undef MYC_POINTER
#undef MYC_OFFSET
#undef MYC_FETCH
#undef MYC_CLAIM
#undef MYC_START
#undef MYC_STEP
#undef MYC_STEP_0
#undef MYC_STEP_1
#undef MYC_STEP_2
#undef MYC_STEP_3
#undef MYC_B
#undef MYC_ADD
#undef MYC_LOW
#undef MYC_HIGH
#undef MYC_STORE
#undef MYC_AT
#undef MYC_STRIP
#undef MYC_NEXT_TILE
#undef MYC_FIELDS
#undef MYC_CHANGED
#undef MYC_WIDE
#undef MYC_WIDE_POINTER
#undef MYC_WIDE_OFFSET
#undef MYC_WIDE_FETCH
#undef MYC_WIDE_CLAIM
#undef MYC_WIDE_START
#undef MYC_WIDE_ADD
#undef MYC_WIDE_LOW
#undef MYC_WIDE_HIGH
#undef MYC_WIDE_STORE
#undef MYC_WIDE_ONE
#undef MYC_WIDE_STEP

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_STRIP_AVX2_H_
