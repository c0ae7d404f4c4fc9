// Sums of the weight gradient of a 3x3 depthwise convolution on AVX2, several rows in one piece of assembly.
// Stride 1 takes two rows of dy at once: 9 sums, 6 elements of dy and a pixel of x are all 16 registers, where a
// compiler moves sums to memory and back. 24 instructions for 18 multiply-adds, and 6 that fetch or count.
#ifndef MYCELIA_CONV_LAST_DEPTHWISE_WEIGHT_AVX2_H_
#define MYCELIA_CONV_LAST_DEPTHWISE_WEIGHT_AVX2_H_

#include <stddef.h>

#include "simd/vec.h"

namespace mycelia::MYC_ISA {

// Two rows of dy, or one, and the rows of x above, beside and below them, for a vector of channels. Rows of x are as
// long as those of dy, two pixels at least, with a zero at each end.
struct DepthwiseSums {
  const float *x, *y;     // the first pixel of the row above, the second one of the first row
  float* sums;            // 9 vectors
  int64_t step, row;      // bytes between pixels, rows
  int64_t ahead;          // bytes from a pixel to that which is fetched meanwhile
  int64_t rounds, entry;  // of three pixels each between the first and the last; how many the first round has, 0 for 3
  int64_t pairs;          // how often, each time two rows further
};

// Which rows of x there are; single: for one row of dy.
enum class DepthwiseUnder { four, last_three, first_three, three_single, last_two_single, first_two_single };

#define MYC_X(field) "%c[" #field "](%[call])"
#define MYC_YES(...) __VA_ARGS__
#define MYC_NO(...)
#define MYC_FMA(sum, d) "vfmadd231ps %%ymm15, %%ymm" #d ", %%ymm" #sum "\n\t"
#define MYC_LOAD(from, at, to) "vmovups (%%" #from ", %%" #at "), %%ymm" #to "\n\t"
// A row of taps; a, b, c: the positions of which the pixel is the first, second, third column.
#define MYC_TAPS_0(newest, oldest, a, b, c) newest(MYC_FMA(0, a)) MYC_FMA(1, b) oldest(MYC_FMA(2, c))
#define MYC_TAPS_1(newest, oldest, a, b, c) newest(MYC_FMA(3, a)) MYC_FMA(4, b) oldest(MYC_FMA(5, c))
#define MYC_TAPS_2(newest, oldest, a, b, c) newest(MYC_FMA(6, a)) MYC_FMA(7, b) oldest(MYC_FMA(8, c))
// A pixel in up to four rows of x; a, b, c of the first row of dy, d, e, f of the second.
#define MYC_PIXEL(x0, x2, x3, y1, newest, oldest, a, b, c, d, e, f) \
  newest(MYC_LOAD(rbx, rax, a) y1(MYC_LOAD(rcx, rax, d))) \
  x0(MYC_LOAD(r8, rax, 15) MYC_TAPS_0(newest, oldest, a, b, c)) \
  MYC_LOAD(r9, rax, 15) MYC_TAPS_1(newest, oldest, a, b, c) y1(MYC_TAPS_0(newest, oldest, d, e, f)) \
  x2(MYC_LOAD(r10, rax, 15) MYC_TAPS_2(newest, oldest, a, b, c) y1(MYC_TAPS_1(newest, oldest, d, e, f))) \
  x3(MYC_LOAD(r11, rax, 15) MYC_TAPS_2(newest, oldest, d, e, f)) \
  "prefetcht0 (%%r9, %%r14)\n\tprefetcht0 (%%rbx, %%r14)\n\t" x2("prefetcht0 (%%r10, %%r14)\n\t") \
  y1("prefetcht0 (%%rcx, %%r14)\n\t") "addq %%rdx, %%rax\n\taddq %%rdx, %%r14\n\t"
// Turns of the registers of dy.
#define MYC_TURN_0(x0, x2, x3, y1, newest, oldest) MYC_PIXEL(x0, x2, x3, y1, newest, oldest, 11, 10, 9, 14, 13, 12)
#define MYC_TURN_1(x0, x2, x3, y1, newest, oldest) MYC_PIXEL(x0, x2, x3, y1, newest, oldest, 9, 11, 10, 12, 14, 13)
#define MYC_TURN_2(x0, x2, x3, y1, newest, oldest) MYC_PIXEL(x0, x2, x3, y1, newest, oldest, 10, 9, 11, 13, 12, 14)
#define MYC_SUMS(body) body(0) body(1) body(2) body(3) body(4) body(5) body(6) body(7) body(8)
#define MYC_GET(sum) "vmovups 32*" #sum "(%%rsi), %%ymm" #sum "\n\t"
#define MYC_PUT(sum) "vmovups %%ymm" #sum ", 32*" #sum "(%%rsi)\n\t"
#define MYC_AT(field) [field] "i"(offsetof(DepthwiseSums, field))

#define MYC_ROWS(x0, x2, x3, y1) \
  asm volatile( \
      "movq " MYC_X(sums) ", %%rsi\n\t" MYC_SUMS(MYC_GET) \
      "movq " MYC_X(row) ", %%rdi\n\tmovq " MYC_X(x) ", %%r8\n\tleaq (%%r8, %%rdi), %%r9\n\t" \
      "leaq (%%r8, %%rdi, 2), %%r10\n\tleaq (%%r9, %%rdi, 2), %%r11\n\t" \
      "movq " MYC_X(y) ", %%rbx\n\tleaq (%%rbx, %%rdi), %%rcx\n\t" \
      "movq " MYC_X(step) ", %%rdx\n\tmovq " MYC_X(entry) ", %%rdi\n\tmovq " MYC_X(ahead) ", %%r13\n\t" \
      "xorl %%eax, %%eax\n" \
      "1:\n\tmovq %%rax, %%r12\n\tsubq %%rdx, %%r12\n\tleaq (%%rax, %%r13), %%r14\n\t" \
      "movq " MYC_X(rounds) ", %%rsi\n\tcmpq $1, %%rdi\n\tje 2f\n\tja 3f\n\t" \
      MYC_LOAD(rbx, r12, 9) y1(MYC_LOAD(rcx, r12, 12)) MYC_TURN_2(x0, x2, x3, y1, MYC_YES, MYC_NO) \
      "testq %%rsi, %%rsi\n\tjz 7f\n\tjmp 4f\n" \
      "2:\n\t" MYC_LOAD(rbx, r12, 11) y1(MYC_LOAD(rcx, r12, 14)) MYC_TURN_1(x0, x2, x3, y1, MYC_YES, MYC_NO) \
      "jmp 6f\n" \
      "3:\n\t" MYC_LOAD(rbx, r12, 10) y1(MYC_LOAD(rcx, r12, 13)) MYC_TURN_0(x0, x2, x3, y1, MYC_YES, MYC_NO) \
      "jmp 5f\n" \
      "\t.p2align 5\n" \
      "4:\n\t" MYC_TURN_0(x0, x2, x3, y1, MYC_YES, MYC_YES) \
      "5:\n\t" MYC_TURN_1(x0, x2, x3, y1, MYC_YES, MYC_YES) \
      "6:\n\t" MYC_TURN_2(x0, x2, x3, y1, MYC_YES, MYC_YES) \
      "decq %%rsi\n\tjnz 4b\n" \
      "7:\n\t" MYC_TURN_0(x0, x2, x3, y1, MYC_NO, MYC_YES) \
      "addq " MYC_X(row) ", %%rax\n\tdecq " MYC_X(pairs) "\n\tjnz 1b\n\t" \
      "movq " MYC_X(sums) ", %%rsi\n\t" MYC_SUMS(MYC_PUT) \
      : \
      : [call] "r"(&call), MYC_AT(x), MYC_AT(y), MYC_AT(sums), MYC_AT(step), MYC_AT(row), MYC_AT(ahead), \
        MYC_AT(rounds), MYC_AT(entry), MYC_AT(pairs) \
      : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "memory", "cc", \
        "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", \
        "xmm13", "xmm14", "xmm15")

// Adds to the sums; `call` is changed.
inline __attribute__((noinline)) void add_depthwise_rows(DepthwiseUnder under, DepthwiseSums& call) {
  switch (under) {
    case DepthwiseUnder::four:
      MYC_ROWS(MYC_YES, MYC_YES, MYC_YES, MYC_YES);
      break;
    case DepthwiseUnder::last_three:
      MYC_ROWS(MYC_NO, MYC_YES, MYC_YES, MYC_YES);
      break;
    case DepthwiseUnder::first_three:
      MYC_ROWS(MYC_YES, MYC_YES, MYC_NO, MYC_YES);
      break;
    case DepthwiseUnder::three_single:
      MYC_ROWS(MYC_YES, MYC_YES, MYC_NO, MYC_NO);
      break;
    case DepthwiseUnder::last_two_single:
      MYC_ROWS(MYC_NO, MYC_YES, MYC_NO, MYC_NO);
      break;
    case DepthwiseUnder::first_two_single:
      MYC_ROWS(MYC_YES, MYC_NO, MYC_NO, MYC_NO);
      break;
  }
}

// One row of dy after another, any strides: pixels are operands in memory of the multiply-adds.
struct DepthwiseStrided {
  const float *x, *y;              // x: the column of the first whole window in the first row of taps
  float* sums;                     // 9 vectors
  int64_t step, row;               // bytes between pixels, rows of x
  int64_t x_step, x_rows;          // bytes of x from position to position, from row of dy to row of dy
  int64_t x_ahead, y_ahead;        // bytes from a pixel to that which is fetched meanwhile
  int64_t first, positions, last;  // 1 with a position whose first (last) column is outside; those in between
  int64_t rows;                    // of dy
};

// The rows of taps inside of x.
enum class DepthwiseTaps { all, last_two, first_two };

#undef MYC_FMA
#undef MYC_AT
#define MYC_AT(field) [field] "i"(offsetof(DepthwiseStrided, field))
#define MYC_FMA(at, sum) "vfmadd231ps (%%" at "), %%ymm9, %%ymm" #sum "\n\t"
#define MYC_TAPS(first, last, x, a, b, c) \
  first(MYC_FMA(x, a)) MYC_FMA(x ", %%rdx", b) last(MYC_FMA(x ", %%rdx, 2", c)) \
  "prefetcht0 (%%" x ", %%r12)\n\tprefetcht0 (%%" x ", %%r13)\n\taddq %%rcx, %%" x "\n\t"
#define MYC_POSITION(x0, x2, first, last) \
  "vmovups (%%rbx), %%ymm9\n\tprefetcht0 (%%rbx, %%r14)\n\taddq %%rdx, %%rbx\n\t" \
  x0(MYC_TAPS(first, last, "r8", 0, 1, 2)) MYC_TAPS(first, last, "r9", 3, 4, 5) \
  x2(MYC_TAPS(first, last, "r10", 6, 7, 8))
#define MYC_STRIDED(x0, x2) \
  asm volatile( \
      "movq " MYC_X(sums) ", %%rsi\n\t" MYC_SUMS(MYC_GET) \
      "movq " MYC_X(x) ", %%rsi\n\tmovq " MYC_X(y) ", %%rbx\n\tmovq " MYC_X(row) ", %%rdi\n\t" \
      "movq " MYC_X(step) ", %%rdx\n\tmovq " MYC_X(x_step) ", %%rcx\n\tmovq " MYC_X(x_ahead) ", %%r12\n\t" \
      "leaq (%%r12, %%rdx), %%r13\n\tmovq " MYC_X(y_ahead) ", %%r14\n" \
      "1:\n\tmovq %%rsi, %%r8\n\tleaq (%%rsi, %%rdi), %%r9\n\tleaq (%%rsi, %%rdi, 2), %%r10\n\t" \
      "addq " MYC_X(x_rows) ", %%rsi\n\tmovq " MYC_X(positions) ", %%rax\n\t" \
      "cmpq $0, " MYC_X(first) "\n\tje 2f\n\t" \
      "subq %%rcx, %%r8\n\tsubq %%rcx, %%r9\n\tsubq %%rcx, %%r10\n\t" MYC_POSITION(x0, x2, MYC_NO, MYC_YES) \
      "2:\n\ttestq %%rax, %%rax\n\tjz 4f\n\t.p2align 5\n" \
      "3:\n\t" MYC_POSITION(x0, x2, MYC_YES, MYC_YES) "decq %%rax\n\tjnz 3b\n" \
      "4:\n\tcmpq $0, " MYC_X(last) "\n\tje 5f\n\t" MYC_POSITION(x0, x2, MYC_YES, MYC_NO) \
      "5:\n\tdecq " MYC_X(rows) "\n\tjnz 1b\n\t" \
      "movq " MYC_X(sums) ", %%rsi\n\t" MYC_SUMS(MYC_PUT) \
      : \
      : [call] "r"(&call), MYC_AT(x), MYC_AT(y), MYC_AT(sums), MYC_AT(step), MYC_AT(row), MYC_AT(x_step), \
        MYC_AT(x_rows), MYC_AT(x_ahead), MYC_AT(y_ahead), MYC_AT(first), MYC_AT(positions), MYC_AT(last), MYC_AT(rows) \
      : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r12", "r13", "r14", "memory", "cc", \
        "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9")

// Adds to the sums; `call` is changed.
inline __attribute__((noinline)) void add_depthwise_strided(DepthwiseTaps taps, DepthwiseStrided& call) {
  if (taps == DepthwiseTaps::all) {
    MYC_STRIDED(MYC_YES, MYC_YES);
  } else if (taps == DepthwiseTaps::last_two) {
    MYC_STRIDED(MYC_NO, MYC_YES);
  } else {
    MYC_STRIDED(MYC_YES, MYC_NO);
  }
}

#undef MYC_X
#undef MYC_YES
#undef MYC_NO
#undef MYC_FMA
#undef MYC_LOAD
#undef MYC_TAPS_0
#undef MYC_TAPS_1
#undef MYC_TAPS_2
#undef MYC_PIXEL
#undef MYC_TURN_0
#undef MYC_TURN_1
#undef MYC_TURN_2
#undef MYC_SUMS
#undef MYC_GET
#undef MYC_PUT
#undef MYC_AT
#undef MYC_ROWS
#undef MYC_TAPS
#undef MYC_POSITION
#undef MYC_STRIDED

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_CONV_LAST_DEPTHWISE_WEIGHT_AVX2_H_
