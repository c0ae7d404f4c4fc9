// The inner loops of products for AVX2, in assembly. A compiler spills sums when it unrolls them, and without
// unrolling they take 25 instructions for 12 multiply-adds instead of 21: what tells when a second thread runs on
// the same core and takes half the slots of its front end.
#ifndef MYCELIA_GEMM_STEPS_AVX2_H_
#define MYCELIA_GEMM_STEPS_AVX2_H_

#include "simd/vec.h"

namespace mycelia::MYC_ISA {

// A(i, k) = row[i][first / 4 + k], B in a panel of 16 columns; `fetch_step` bytes are fetched ahead a k.
struct RowSteps {
  const float* row[6];
  const float* b;
  int64_t count;  // of k
  const char* fetch;
  int64_t fetch_step;
  int64_t first;  // bytes
};

// A(i, k) = a[i + k * a_step / 4], B in a panel of 16 columns.
struct OuterSteps {
  const float* a;
  int64_t a_step;  // bytes
  const float* b;
  int64_t count;  // of k
};

#define MYC_B(u) "vmovups 64*" #u "(%%rbx), %%ymm12\n\tvmovups 64*" #u "+32(%%rbx), %%ymm13\n\t"
#define MYC_ROW(a, with, i) \
  "vbroadcastss " a ", %%" with "\n\t" \
  "vfmadd231ps %%" with ", %%ymm12, %[s" #i "0]\n\t" \
  "vfmadd231ps %%" with ", %%ymm13, %[s" #i "1]\n\t"

// Rows in six registers, one index.
#define MYC_AT(u, row) "4*" #u "(%%" row ", %%rax)"
#define MYC_ROWS_4(u) \
  MYC_B(u) \
  MYC_ROW(MYC_AT(u, "r8"), "ymm14", 0) MYC_ROW(MYC_AT(u, "r9"), "ymm15", 1) \
  MYC_ROW(MYC_AT(u, "r10"), "ymm14", 2) MYC_ROW(MYC_AT(u, "r11"), "ymm15", 3)
#define MYC_ROWS_5(u) MYC_ROWS_4(u) MYC_ROW(MYC_AT(u, "r12"), "ymm14", 4)
#define MYC_ROWS_6(u) MYC_ROWS_5(u) MYC_ROW(MYC_AT(u, "r13"), "ymm15", 5)
#define MYC_ROW_STEPS(step) \
  "movq (%[x]), %%r8\n\tmovq 8(%[x]), %%r9\n\tmovq 16(%[x]), %%r10\n\tmovq 24(%[x]), %%r11\n\t" \
  "movq 32(%[x]), %%r12\n\tmovq 40(%[x]), %%r13\n\tmovq 48(%[x]), %%rbx\n\tmovq 56(%[x]), %%rcx\n\t" \
  "movq 64(%[x]), %%rdi\n\tmovq 72(%[x]), %%rdx\n\tmovq 80(%[x]), %%rax\n\t" \
  "subq $4, %%rcx\n\tjs 2f\n\t.p2align 6\n1:\n\t" \
  "prefetcht0 (%%rdi)\n\tprefetcht0 (%%rdi, %%rdx, 2)\n\tleaq (%%rdi, %%rdx, 4), %%rdi\n\t" \
  step(0) step(1) step(2) step(3) \
  "addq $16, %%rax\n\taddq $256, %%rbx\n\tsubq $4, %%rcx\n\tjns 1b\n2:\n\taddq $4, %%rcx\n\tjz 4f\n3:\n\t" \
  step(0) \
  "addq $4, %%rax\n\taddq $64, %%rbx\n\tdecq %%rcx\n\tjnz 3b\n4:\n\t"

// Elements side by side: the address of one k, of the three behind it by its step and three times that.
#define MYC_OUTER_4(u, at) \
  MYC_B(u) \
  MYC_ROW("0" at, "ymm14", 0) MYC_ROW("4" at, "ymm15", 1) MYC_ROW("8" at, "ymm14", 2) MYC_ROW("12" at, "ymm15", 3)
#define MYC_OUTER_5(u, at) MYC_OUTER_4(u, at) MYC_ROW("16" at, "ymm14", 4)
#define MYC_OUTER_6(u, at) MYC_OUTER_5(u, at) MYC_ROW("20" at, "ymm15", 5)
#define MYC_OUTER_STEPS(step) \
  "movq (%[x]), %%r8\n\tmovq 8(%[x]), %%r9\n\tmovq 16(%[x]), %%rbx\n\tmovq 24(%[x]), %%rcx\n\t" \
  "leaq (%%r9, %%r9, 2), %%r10\n\tsubq $4, %%rcx\n\tjs 2f\n\t.p2align 6\n1:\n\t" \
  step(0, "(%%r8)") step(1, "(%%r8, %%r9)") step(2, "(%%r8, %%r9, 2)") step(3, "(%%r8, %%r10)") \
  "leaq (%%r8, %%r9, 4), %%r8\n\taddq $256, %%rbx\n\tsubq $4, %%rcx\n\tjns 1b\n2:\n\taddq $4, %%rcx\n\t" \
  "jz 4f\n3:\n\t" step(0, "(%%r8)") \
  "addq %%r9, %%r8\n\taddq $64, %%rbx\n\tdecq %%rcx\n\tjnz 3b\n4:\n\t"

#define MYC_CHANGED "rbx", "rcx", "r8", "r9", "r10", "xmm12", "xmm13", "xmm14", "xmm15", "memory", "cc"
#define MYC_SUM(i) [s##i##0] "+x"(s[i][0]), [s##i##1] "+x"(s[i][1])
#define MYC_SUMS_4 MYC_SUM(0), MYC_SUM(1), MYC_SUM(2), MYC_SUM(3)
#define MYC_SUMS_5 MYC_SUMS_4, MYC_SUM(4)
#define MYC_SUMS_6 MYC_SUMS_5, MYC_SUM(5)

// s[i][v] += sum over k of A(i, k) B(k, v) for 4, 5 or 6 rows and two vectors.
#define MYC_ADD_STEPS(rows) \
  MYC_INLINE void add_steps(const RowSteps& x, f32v (&s)[rows][2]) { \
    asm(MYC_ROW_STEPS(MYC_ROWS_##rows) \
        : MYC_SUMS_##rows \
        : [x] "r"(&x) \
        : "rax", "rdx", "rdi", "r11", "r12", "r13", MYC_CHANGED); \
  } \
  MYC_INLINE void add_steps(const OuterSteps& x, f32v (&s)[rows][2]) { \
    asm(MYC_OUTER_STEPS(MYC_OUTER_##rows) : MYC_SUMS_##rows : [x] "r"(&x) : MYC_CHANGED); \
  }
MYC_ADD_STEPS(4)
MYC_ADD_STEPS(5)
MYC_ADD_STEPS(6)

#undef MYC_B
#undef MYC_ROW
#undef MYC_AT
#undef MYC_ROWS_4
#undef MYC_ROWS_5
#undef MYC_ROWS_6
#undef MYC_ROW_STEPS
#undef MYC_OUTER_4
#undef MYC_OUTER_5
#undef MYC_OUTER_6
#undef MYC_OUTER_STEPS
#undef MYC_CHANGED
#undef MYC_SUM
#undef MYC_SUMS_4
#undef MYC_SUMS_5
#undef MYC_SUMS_6
#undef MYC_ADD_STEPS

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_GEMM_STEPS_AVX2_H_
