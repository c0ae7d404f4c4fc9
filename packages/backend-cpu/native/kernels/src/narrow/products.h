// Products of 16-bit floats where memory is what they wait for: one of m, n, k is small.  The largest matrix is widened
// piece by piece (or rounded, if it is the result) while the product runs on the piece before it leaves the cache.
// Products of three large sides widen whole matrices, which their arithmetic outweighs.  How a product is cut depends on
// its shape alone.
#ifndef MYCELIA_NARROW_PRODUCTS_H_
#define MYCELIA_NARROW_PRODUCTS_H_

#include "narrow/blocks.h"

namespace mycelia::MYC_ISA {

constexpr int64_t kThinSide = 64;              // up to here memory decides
constexpr int64_t kPieceFloats = 1 << 14;      // of what is cut: 64 KB, of L2
constexpr int64_t kPieceStep = 64;             // columns of a piece: whole tiles and cache lines
constexpr int64_t kPieceRows = 128;            // rows, at least: the other matrix is packed for each piece
constexpr int64_t kProductScratch = 1 << 19;   // bytes that a product may take for itself
constexpr int64_t kMostOfStack = 1 << 15;      // elements of a matrix in a stack that goes matrix by matrix

// C [m, n] = A B, the operands as they lie: transposed ones have k first (A) or last (B).
struct NarrowProduct {
  bool transpose_a, transpose_b;
  int64_t m, n, k;
};

// Columns [first, first + count) of rows of `width`, from 16 bits.
inline void widen_columns(const myc_tensor& t, int64_t rows, int64_t width, int64_t first, int64_t count, float* to) {
  const char* from = static_cast<const char*>(t.data) + 2 * first;
  for (int64_t r = 0; r < rows; ++r) widen_any(t.dtype, from + 2 * r * width, to + r * count, count);
}

inline myc_tensor wide_matrix(float* data, int64_t rows, int64_t columns) {
  myc_tensor t = {};
  t.data = data, t.dtype = MYC_F32, t.rank = 2;
  t.shape[0] = rows, t.shape[1] = columns, t.size = rows * columns;
  return t;
}

// By rows of A and C, or by columns of B and C; `each` of them at a time.
inline int32_t run_pieces(const myc_call* call, myc_kernel_fn fn, const NarrowProduct& p, bool by_rows, int64_t each) {
  const myc_tensor &a = input(call, 0), &b = input(call, 1), &c = output(call);
  const myc_tensor& fixed = by_rows ? b : a;
  const myc_tensor& cut = by_rows ? a : b;
  const bool contiguous = by_rows ? !p.transpose_a : p.transpose_b;
  const int64_t all = by_rows ? p.m : p.n, other = by_rows ? p.n : p.m;
  Scratch scratch(call);
  float* wide = scratch.take<float>(fixed.size);
  float* bias = has_input(call, 2) ? scratch.take<float>(p.n) : nullptr;
  const int64_t piece = round_up(each * p.k, int64_t{16}), result = round_up(each * other, int64_t{16});
  const int64_t share = (piece + result) * int64_t{sizeof(float)} + kProductScratch;
  const int32_t workers = max_workers(call);
  char* memory = scratch.take<char>(workers * share);
  int32_t* failed = scratch.take<int32_t>(workers);
  if (!wide || !memory || !failed || (has_input(call, 2) && !bias)) return MYC_E_MEMORY;
  for (int32_t w = 0; w < workers; ++w) failed[w] = MYC_OK;
  widen_any(fixed.dtype, fixed.data, wide, fixed.size);
  if (bias) widen_any(input(call, 2).dtype, input(call, 2).data, bias, p.n);
  const int64_t grain = kMinParallelWork / (each * (p.k + other) * 8) + 1;
  parallel_for_worker(call, ceil_div(all, each), grain, [&](int64_t begin, int64_t end, int32_t worker) {
    char* own = memory + worker * share;
    float *part = reinterpret_cast<float*>(own), *sums = part + piece;
    BlockContext context(own + (piece + result) * int64_t{sizeof(float)}, kProductScratch);
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * each, count = min(each, all - first);
      if (contiguous) widen_any(cut.dtype, static_cast<const char*>(cut.data) + 2 * first * p.k, part, count * p.k);
      else widen_columns(cut, p.k, all, first, count, part);
      const myc_tensor piece_type = contiguous ? wide_matrix(part, count, p.k) : wide_matrix(part, p.k, count);
      const bool flipped = by_rows ? p.transpose_b : p.transpose_a;
      const int64_t height = by_rows == flipped ? other : p.k;  // of the fixed matrix as it lies
      const myc_tensor fixed_type = wide_matrix(wide, height, fixed.size / height);
      myc_tensor bias_type = bias ? input(call, 2) : myc_tensor{};
      if (bias) bias_type.dtype = MYC_F32, bias_type.data = bias;
      if (bias && !by_rows) bias_type.data = bias + first, bias_type.shape[0] = bias_type.size = count;
      myc_tensor out_type = by_rows ? wide_matrix(sums, count, p.n) : wide_matrix(sums, p.m, count);
      const myc_tensor* ins[3] = {by_rows ? &piece_type : &fixed_type, by_rows ? &fixed_type : &piece_type,
                                  bias ? &bias_type : nullptr};
      myc_tensor* outs[1] = {&out_type};
      const myc_call inner = {ins, outs, call->attrs, &context.base, call->n_in, 1};
      failed[worker] = fn(&inner);
      if (failed[worker] != MYC_OK) return;
      char* to = static_cast<char*>(c.data);
      if (by_rows) {
        narrow_any(c.dtype, sums, to + 2 * first * p.n, count * p.n);
      } else {
        for (int64_t i = 0; i < p.m; ++i) narrow_any(c.dtype, sums + i * count, to + 2 * (i * p.n + first), count);
      }
    }
  });
  for (int32_t w = 0; w < workers; ++w)
    if (failed[w] != MYC_OK) return failed[w];
  return MYC_OK;
}

// A stack of small products, some at a time.
inline int32_t run_stack(const myc_call* call, myc_kernel_fn fn) {
  const myc_tensor& c = output(call);
  const int lead = c.rank - 2;
  const int64_t count = extent(c, 0, lead);
  Operand operands[3];
  int64_t most = 1;
  for (int i = 0; i < 3; ++i) {
    Operand& o = operands[i];
    o.t = i < 2 ? call->in[i] : call->out[0];
    o.result = i == 2, o.cut = true, o.lead = lead, o.ones = 0;
    if (o.t->rank != c.rank || extent(*o.t, 0, lead) != count) return MYC_E_UNSUPPORTED;
    o.part = o.t->size / count;
    most = max(most, o.part);
  }
  if (most > kMostOfStack) return MYC_E_UNSUPPORTED;
  return run_blocks(call, fn, operands, count, max(kPieceFloats / most, int64_t{1}), 16 * most, kProductScratch);
}

// mat_mul, dense or batch_matmul.
inline int32_t run_product(const myc_call* call, myc_kernel_fn fn, const char* op) {
  const myc_tensor &a = input(call, 0), &b = input(call, 1), &c = output(call);
  if (!is_16_bits(a.dtype) || !is_16_bits(b.dtype) || !is_16_bits(c.dtype) || c.size == 0 || a.size == 0)
    return run_whole(call, fn);
  if (has_input(call, 2) && !is_16_bits(input(call, 2).dtype)) return run_whole(call, fn);
  int32_t rc = MYC_E_UNSUPPORTED;
  if (same_text(op, "batch_matmul")) {
    if (c.rank > 2 && c.size > c.shape[c.rank - 2] * c.shape[c.rank - 1]) rc = run_stack(call, fn);
  } else {
    NarrowProduct p = {false, true, 0, 0, 0};  // dense: x [..., k], w [n, k]
    if (same_text(op, "mat_mul")) {
      const auto& flags = attrs<myc_mat_mul_attrs>(call);
      p.transpose_a = flags.transpose_a, p.transpose_b = flags.transpose_b;
    }
    p.n = c.shape[c.rank - 1], p.m = c.size / p.n, p.k = a.size / p.m;
    const int64_t most = max(max(p.m * p.k, p.k * p.n), p.m * p.n);
    bool by_rows = true, thin = false;
    if (most == p.m * p.k) thin = p.n <= kThinSide;
    else if (most == p.k * p.n) by_rows = false, thin = p.m <= kThinSide;
    else by_rows = p.m >= p.n, thin = p.k <= kThinSide;
    const int64_t part = p.k + (by_rows ? p.n : p.m);
    const int64_t unit = by_rows ? kPieceRows : kPieceStep;
    const int64_t each = max(kPieceFloats / part / unit, int64_t{1}) * unit;
    if (thin && (by_rows ? p.m : p.n) >= 2 * each) rc = run_pieces(call, fn, p, by_rows, each);
  }
  return rc == MYC_E_MEMORY || rc == MYC_E_UNSUPPORTED ? run_whole(call, fn) : rc;
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_NARROW_PRODUCTS_H_
