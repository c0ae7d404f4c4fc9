// Strips of register tiles for AVX-512, wholly in assembly. GCC 12 keeps pointers of rows in vector registers, whose way
// back takes slots of the multiply-adds, and puts 250 instructions between two tiles. Here sums take registers 0 to 23,
// B of two k 24 to 27, elements of A 28 and 29.
// The second vector of a tile has 16 columns or 8: units of 256 bits take half the time for 8 (Zen 4), those of 512 bits as
// long (Intel); a column's sums are the same. Tiles of one vector are not here: 13 loads for 12 multiply-adds of Zen 4 leave no
// room for pointers in memory, and rows_micro is quicker by half.
#ifndef MYCELIA_GEMM_STRIP_AVX512_H_
#define MYCELIA_GEMM_STRIP_AVX512_H_

#include <stddef.h>

#include "gemm/tile_avx512.h"
#include "part.h"
#include "simd/vec.h"

namespace mycelia::MYC_ISA {

constexpr int64_t kFetchEvery = 2;  // k: a line ahead

// Tiles of equal height, one behind the other, each over all runs of k; rows.h says what the parts mean.
struct Strip {
  const float* a;
  const int64_t* a_row;  // offsets of a tile's rows, in floats
  float* c;
  const int64_t* c_row;
  int64_t a_step, c_step, row_step;  // bytes from tile to tile, of a, c and both lists
  const void *runs, *runs_end;       // a, b and length of each
  const float* b;
  int64_t b_vector, b_k;  // bytes to the second vector, to the next k
  const float* start;     // what the columns' sums begin with
  int64_t residual;       // bytes from c to what is added; 0 without
  int64_t c_ahead;        // bytes behind c that are fetched while the sums run
  int64_t add;            // whether c itself is added
  const float* high;      // null, or sums are cut to [0, *high]
  const char* fetch;
  int64_t fetch_step;  // bytes for every kFetchEvery k
  int64_t tiles;
  int64_t columns;  // of the last vector, as a mask; run_strip sets it
  // Of every tile so many blocks of 32 columns, one behind the other in c; bytes from block to block.
  int64_t blocks, b_step, start_step;
  int64_t b_back, start_back;  // bytes from the last block to the first
  // The loop's own: blocks left, the run that follows, where one ends, pointers to rows for which no register is left.
  int64_t left;
  const void* run;
  int64_t end;
  const float* row[4];
};

#define MYC_X(field) "%c[" #field "](%[x])"
#define MYC_OWN(bytes) #bytes "+%c[left](%[x])"  // behind `left`: an asm takes 30 operands
#define MYC_AT(field) [field] "i"(offsetof(Strip, field))
// near(row, its pointer, its sums), or far(row, where its pointer lies, its sums).
#define MYC_ROWS_7(near, far) \
  near(0, "r8", "0", "1") near(1, "r9", "2", "3") near(2, "r10", "4", "5") \
  near(3, "r11", "6", "7") near(4, "r12", "8", "9") near(5, "r13", "10", "11") \
  near(6, "r14", "12", "13")
#define MYC_ROWS_8(near, far) MYC_ROWS_7(near, far) near(7, "r15", "14", "15")
#define MYC_ROWS_9(near, far) MYC_ROWS_8(near, far) far(8, MYC_OWN(24), "16", "17")
#define MYC_ROWS_10(near, far) MYC_ROWS_9(near, far) far(9, MYC_OWN(32), "18", "19")
#define MYC_ROWS_11(near, far) MYC_ROWS_10(near, far) far(10, MYC_OWN(40), "20", "21")
#define MYC_ROWS_12(near, far) MYC_ROWS_11(near, far) far(11, MYC_OWN(48), "22", "23")
#define MYC_ALL(rows, body) rows(body, body)

#define MYC_NEAR(i, row, s, t) "movq 8*" #i "(%%rdi), %%" row "\n\tleaq (%%rbx, %%" row ", 4), %%" row "\n\t"
#define MYC_FAR(i, row, s, t) \
  "movq 8*" #i "(%%rdi), %%rax\n\tleaq (%%rbx, %%rax, 4), %%rax\n\tmovq %%rax, " row "\n\t"
#define MYC_FETCH(i, row, s, t) \
  "movq 8*" #i "(%%rdi), %%rax\n\tprefetcht0 (%%rbx, %%rax, 4)\n\tprefetcht0 64(%%rbx, %%rax, 4)\n\t"
#define MYC_CLAIM(i, row, s, t) \
  "movq 8*" #i "(%%rdi), %%rax\n\tprefetchw (%%rbx, %%rax, 4)\n\tprefetchw 64(%%rbx, %%rax, 4)\n\t"
#define MYC_START(i, row, s, t) "vmovaps %%zmm24, %%zmm" s "\n\tvmovaps " MYC_V("25") ", " MYC_V(t) "\n\t"
#define MYC_FIRST(p, s, t) \
  "vbroadcastss (%%" p ", %%rax), %%zmm28\n\tvfmadd231ps %%zmm28, %%zmm24, %%zmm" s "\n\t" \
  "vfmadd231ps " MYC_V("28") ", " MYC_V("25") ", " MYC_V(t) "\n\t"
#define MYC_SECOND(p, s, t) \
  "vbroadcastss 4(%%" p ", %%rax), %%zmm29\n\tvfmadd231ps %%zmm29, %%zmm26, %%zmm" s "\n\t" \
  "vfmadd231ps " MYC_V("29") ", " MYC_V("27") ", " MYC_V(t) "\n\t"
#define MYC_ONE(i, row, s, t) MYC_FIRST(row, s, t)
#define MYC_ONE_FAR(i, row, s, t) "movq " row ", %%rdi\n\t" MYC_FIRST("rdi", s, t)
#define MYC_PAIR(i, row, s, t) MYC_FIRST(row, s, t) MYC_SECOND(row, s, t)
#define MYC_PAIR_FAR(i, row, s, t) "movq " row ", %%rdi\n\t" MYC_FIRST("rdi", s, t) MYC_SECOND("rdi", s, t)
#define MYC_TWO_K(rows) \
  "vmovups (%%rbx), %%zmm24\n\tvmovups (%%rbx, %%rdx), %%zmm26\n\tleaq (%%rbx, %%rdx, 2), %%rbx\n\t" \
  "vmovups (%%rcx), " MYC_V("25") "\n\tvmovups (%%rcx, %%rdx), " MYC_V("27") "\n\tleaq (%%rcx, %%rdx, 2), %%rcx\n\t" \
  rows(MYC_PAIR, MYC_PAIR_FAR) "addq $8, %%rax\n\t"
#define MYC_NEXT_LINE \
  "movq " MYC_X(fetch) ", %%rdi\n\tprefetcht1 (%%rdi)\n\t" \
  "addq " MYC_X(fetch_step) ", %%rdi\n\tmovq %%rdi, " MYC_X(fetch) "\n\t"
#define MYC_ADD(i, row, s, t) \
  "movq 8*" #i "(%%rdi), %%rax\n\tvaddps (%%rcx, %%rax, 4), %%zmm" s ", %%zmm" s "\n\t" \
  "vmovups 64(%%rcx, %%rax, 4), " MYC_V("24") " %{%%k1%}%{z%}\n\tvaddps " MYC_V("24") ", " MYC_V(t) ", " MYC_V(t) "\n\t"
#define MYC_LOW(i, row, s, t) \
  "vmaxps %%zmm" s ", %%zmm24, %%zmm" s "\n\tvmaxps " MYC_V(t) ", " MYC_V("24") ", " MYC_V(t) "\n\t"
#define MYC_HIGH(i, row, s, t) \
  "vminps %%zmm" s ", %%zmm25, %%zmm" s "\n\tvminps " MYC_V(t) ", " MYC_V("25") ", " MYC_V(t) "\n\t"
#define MYC_STORE(i, row, s, t) \
  "movq 8*" #i "(%%rdi), %%rax\n\tvmovups %%zmm" s ", (%%rbx, %%rax, 4)\n\t" \
  "vmovups " MYC_V(t) ", 64(%%rbx, %%rax, 4) %{%%k1%}\n\t"

// vmaxps and vminps give their second operand, here the sum, if one is no number.
#define MYC_STRIP(rows) \
  asm volatile( \
      "movl " MYC_X(columns) ", %%eax\n\tkmovw %%eax, %%k1\n\t.p2align 5\n" \
      "1:\n\tmovq " MYC_X(blocks) ", %%rax\n\tmovq %%rax, " MYC_X(left) "\n" \
      "11:\n\tmovq " MYC_X(c) ", %%rbx\n\tmovq " MYC_X(c_row) ", %%rdi\n\taddq " MYC_X(c_ahead) ", %%rbx\n\t" \
      MYC_ALL(rows, MYC_CLAIM) \
      "movq " MYC_X(residual) ", %%rax\n\ttestq %%rax, %%rax\n\tjz 2f\n\taddq %%rax, %%rbx\n\t" MYC_ALL(rows, MYC_FETCH) \
      "2:\n\tmovq " MYC_X(a) ", %%rbx\n\tmovq " MYC_X(a_row) ", %%rdi\n\t" rows(MYC_NEAR, MYC_FAR) \
      "movq " MYC_X(start) ", %%rax\n\tvmovups (%%rax), %%zmm24\n\t" \
      "vmovups 64(%%rax), " MYC_V("25") " %{%%k1%}%{z%}\n\t" \
      MYC_ALL(rows, MYC_START) \
      "movq " MYC_X(runs) ", %%rdi\n\tmovq " MYC_X(b_k) ", %%rdx\n" \
      "3:\n\tmovq (%%rdi), %%rax\n\tmovq 8(%%rdi), %%rbx\n\tmovq 16(%%rdi), %%rcx\n\taddq $24, %%rdi\n\t" \
      "movq %%rdi, " MYC_OWN(8) "\n\tshlq $2, %%rax\n\tleaq -16(%%rax, %%rcx, 4), %%rcx\n\tmovq %%rcx, " MYC_OWN(16) "\n\t" \
      "imulq %%rdx, %%rbx\n\taddq " MYC_X(b) ", %%rbx\n\tmovq " MYC_X(b_vector) ", %%rcx\n\taddq %%rbx, %%rcx\n\t" \
      "cmpq " MYC_OWN(16) ", %%rax\n\tjg 5f\n\t.p2align 6\n" \
      "4:\n\t" MYC_NEXT_LINE MYC_TWO_K(rows) MYC_NEXT_LINE MYC_TWO_K(rows) "cmpq " MYC_OWN(16) ", %%rax\n\tjle 4b\n" \
      "5:\n\taddq $16, " MYC_OWN(16) "\n\tcmpq " MYC_OWN(16) ", %%rax\n\tjge 7f\n" \
      "6:\n\tvmovups (%%rbx), %%zmm24\n\tvmovups (%%rcx), " MYC_V("25") "\n\t" rows(MYC_ONE, MYC_ONE_FAR) \
      "addq %%rdx, %%rbx\n\taddq %%rdx, %%rcx\n\taddq $4, %%rax\n\tcmpq " MYC_OWN(16) ", %%rax\n\tjl 6b\n" \
      "7:\n\tmovq " MYC_OWN(8) ", %%rdi\n\tcmpq " MYC_X(runs_end) ", %%rdi\n\tjne 3b\n\t" \
      "movq " MYC_X(c) ", %%rbx\n\tmovq " MYC_X(c_row) ", %%rdi\n\t" \
      "cmpq $0, " MYC_X(add) "\n\tje 8f\n\tmovq %%rbx, %%rcx\n\t" MYC_ALL(rows, MYC_ADD) \
      "8:\n\tmovq " MYC_X(residual) ", %%rcx\n\ttestq %%rcx, %%rcx\n\tjz 9f\n\taddq %%rbx, %%rcx\n\t" \
      MYC_ALL(rows, MYC_ADD) \
      "9:\n\tmovq " MYC_X(high) ", %%rax\n\ttestq %%rax, %%rax\n\tjz 10f\n\t" \
      "vpxord %%zmm24, %%zmm24, %%zmm24\n\tvbroadcastss (%%rax), %%zmm25\n\t" \
      MYC_ALL(rows, MYC_LOW) MYC_ALL(rows, MYC_HIGH) \
      "10:\n\t" MYC_ALL(rows, MYC_STORE) \
      "decq " MYC_X(left) "\n\tjz 12f\n\tsubq $-128, " MYC_X(c) "\n\t" \
      "movq " MYC_X(b_step) ", %%rax\n\taddq %%rax, " MYC_X(b) "\n\t" \
      "movq " MYC_X(start_step) ", %%rax\n\taddq %%rax, " MYC_X(start) "\n\tjmp 11b\n" \
      "12:\n\tmovq " MYC_X(b_back) ", %%rax\n\taddq %%rax, " MYC_X(b) "\n\t" \
      "movq " MYC_X(start_back) ", %%rax\n\taddq %%rax, " MYC_X(start) "\n\t" \
      "movq " MYC_X(a_step) ", %%rax\n\taddq %%rax, " MYC_X(a) "\n\t" \
      "movq " MYC_X(c_step) ", %%rax\n\taddq %%rax, " MYC_X(c) "\n\t" \
      "movq " MYC_X(row_step) ", %%rax\n\taddq %%rax, " MYC_X(a_row) "\n\taddq %%rax, " MYC_X(c_row) "\n\t" \
      "decq " MYC_X(tiles) "\n\tjnz 1b\n\t" \
      : \
      : [x] "r"(&x), MYC_AT(a), MYC_AT(a_row), MYC_AT(c), MYC_AT(c_row), MYC_AT(a_step), MYC_AT(c_step), \
        MYC_AT(row_step), MYC_AT(runs), MYC_AT(runs_end), MYC_AT(b), MYC_AT(b_vector), MYC_AT(b_k), MYC_AT(start), \
        MYC_AT(residual), MYC_AT(c_ahead), MYC_AT(add), MYC_AT(high), MYC_AT(fetch), MYC_AT(fetch_step), \
        MYC_AT(tiles), MYC_AT(columns), MYC_AT(blocks), MYC_AT(b_step), MYC_AT(start_step), MYC_AT(b_back), \
        MYC_AT(start_back), MYC_AT(left) \
      : "rax", "rbx", "rcx", "rdx", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", \
        MYC_TILE_CLOBBERS)

// Cases of even heights, and of odd ones, which a program may leave out.
#define MYC_EVEN_TILES \
  case 12: MYC_STRIP(MYC_ROWS_12); break; \
  case 10: MYC_STRIP(MYC_ROWS_10); break; \
  default: MYC_STRIP(MYC_ROWS_8); break;
#define MYC_ODD_TILES \
  case 11: MYC_STRIP(MYC_ROWS_11); break; \
  case 9: MYC_STRIP(MYC_ROWS_9); break; \
  default: MYC_STRIP(MYC_ROWS_7); break;

// A register of the second vector.
#define MYC_V(number) "%%zmm" number
inline __attribute__((noinline)) void run_whole_strip(int64_t rows, Strip& x) {
  switch (rows) { MYC_EVEN_TILES }
}
inline __attribute__((noinline)) void run_odd_whole_strip(int64_t rows, Strip& x) {
  switch (rows) { MYC_ODD_TILES }
}

#undef MYC_V
#define MYC_V(number) "%%ymm" number
inline __attribute__((noinline)) void run_three_quarter_strip(int64_t rows, Strip& x) {
  if (rows % 2) {
    switch (rows) { MYC_ODD_TILES }
  } else {
    switch (rows) { MYC_EVEN_TILES }
  }
}

#undef MYC_EVEN_TILES
#undef MYC_ODD_TILES

// Whether there are 8 columns at most in the second vector; their mask.
inline bool three_quarters(int64_t columns, Strip& x) {
  x.columns = (1 << (columns - kLanes)) - 1;
  return columns <= kLanes + kLanes / 2;
}

// At least one tile of 7 to 12 rows and 17 to 32 columns, 32 where there are several blocks; `x` is changed.
inline void run_any_strip(int64_t rows, int64_t columns, Strip& x) {
  (three_quarters(columns, x) ? run_three_quarter_strip : rows % 2 ? run_odd_whole_strip : run_whole_strip)(rows, x);
}

// Strips that a program may leave out: of odd heights, and those whose second vector has registers of 256 bits, in whose place
// the others serve.  tile_heights.cc
KERNEL_PART(tile_odd)(int64_t rows, Strip& x);
KERNEL_PART(tile_quarters)(int64_t rows, Strip& x);

// As run_any_strip, for B in panels of 16 columns; false, and nothing is done, if that height was left out.
inline bool run_strip(int64_t rows, int64_t columns, Strip& x) {
  if (three_quarters(columns, x) && MYC_PART(tile_quarters)(rows, x) == MYC_OK) return true;
  if (rows % 2) return MYC_PART(tile_odd)(rows, x) == MYC_OK;
  run_whole_strip(rows, x);
  return true;
}

#undef MYC_X
#undef MYC_OWN
#undef MYC_AT
#undef MYC_ROWS_7
#undef MYC_ROWS_8
#undef MYC_ROWS_9
#undef MYC_ROWS_10
#undef MYC_ROWS_11
#undef MYC_ROWS_12
#undef MYC_ALL
#undef MYC_NEAR
#undef MYC_FAR
#undef MYC_FETCH
#undef MYC_CLAIM
#undef MYC_START
#undef MYC_FIRST
#undef MYC_SECOND
#undef MYC_ONE
#undef MYC_ONE_FAR
#undef MYC_PAIR
#undef MYC_PAIR_FAR
#undef MYC_TWO_K
#undef MYC_NEXT_LINE
#undef MYC_ADD
#undef MYC_LOW
#undef MYC_HIGH
#undef MYC_STORE
#undef MYC_STRIP
#undef MYC_V

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_STRIP_AVX512_H_
