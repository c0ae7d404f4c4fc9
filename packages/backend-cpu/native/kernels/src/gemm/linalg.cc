// Matrix products: adapters from the ops' tensors to gemm.  Cost: 2 m n k flops each.
#include "simd/half.h"
#include "gemm/gemm.h"
#include "mycelia/kernels.h"
#include "simd/vec.h"

namespace mycelia::MYC_ISA {
namespace {

// A stack of equal matrices [rows, columns] in the last two axes.
struct Matrices {
  const float* data;
  int64_t rows, columns;
  bool transposed;

  Matrices(const myc_tensor& t, bool transpose)
      : data(static_cast<const float*>(t.data)),
        rows(t.shape[t.rank - 2]),
        columns(t.shape[t.rank - 1]),
        transposed(transpose) {}
  int64_t inner_first() const { return transposed ? rows : columns; }   // k of a left operand
  int64_t outer_first() const { return transposed ? columns : rows; }   // m of a left operand
  int64_t outer_second() const { return transposed ? rows : columns; }  // n of a right operand
};

int64_t offset_of(int64_t batch, const myc_tensor& result, const myc_tensor& operand) {
  // The operand's matrix for the result's matrix number `batch`; axes of size 1 repeat.
  int64_t offset = 0, step = operand.shape[operand.rank - 2] * operand.shape[operand.rank - 1];
  for (int d = 3; d <= operand.rank; ++d) {
    const int64_t n = result.shape[result.rank - d], own = operand.shape[operand.rank - d];
    if (own != 1) offset += batch % n * step;
    batch /= n;
    step *= own;
  }
  return offset;
}

// Multiply-adds of one matrix above which its product is cut for the threads instead of the stack.
constexpr int64_t kLargeProduct = 1 << 23;

// `count` products of equal sizes; a(i), b(i) and c(i) are where the matrices of the i-th begin.
template <class A, class B, class C>
int32_t multiply_each(const myc_call* call, int64_t count, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                      int64_t lda, int64_t ldb, int64_t ldc, const A& a, const B& b, const C& c) {
  if (m * n * k >= kLargeProduct || max_workers(call) == 1) {
    for (int64_t i = 0; i < count; ++i) {
      const int32_t status = gemm(call->ctx, transpose_a, transpose_b, m, n, k, a(i), lda, b(i), ldb, c(i), ldc);
      if (status != MYC_OK) return status;
    }
    return MYC_OK;
  }
  const int64_t own = gemm_scratch(transpose_a, transpose_b, m, n, k);
  Scratch scratch(call);
  float* memory = scratch.take<float>(own * max_workers(call));
  if (!memory) return MYC_E_MEMORY;
  const int64_t grain = kMinParallelWork * 8 / (m * n * k + 1) + 1;
  parallel_for_worker(call, count, grain, [&](int64_t begin, int64_t end, int32_t worker) {
    for (int64_t i = begin; i < end; ++i)
      gemm_serial(transpose_a, transpose_b, m, n, k, a(i), lda, b(i), ldb, c(i), ldc, {}, memory + own * worker);
  });
  return MYC_OK;
}

// The matrices of heads, [batch, heads, rows, columns], or side by side as [batch, rows, heads, columns].
struct Heads {
  int64_t batch, heads, rows, columns, row_step, head_step;

  Heads(const myc_tensor& t, int64_t beside)
      : batch(t.shape[0]),
        heads(t.shape[beside ? 2 : 1]),
        rows(t.shape[beside ? 1 : 2]),
        columns(t.shape[3]),
        row_step(beside ? heads * columns : columns),
        head_step(beside ? columns : rows * columns) {}
  int64_t offset(int64_t i) const { return i / heads * heads * rows * columns + i % heads * head_step; }
};

// y = x + b for each row of y [rows, n], b constant along the row or one per column.
template <class T>
void add_bias(const T* x, const float* bias, T* y, int64_t n, bool per_column) {
  if (per_column) {
    map(x, bias, y, n, [](f32v a, f32v b) { return a + b; });
  } else {
    const f32v b = splat(*bias);
    map(x, y, n, [b](f32v a) { return a + b; });
  }
}

}  // namespace

KERNEL_FN(mat_mul, f32) {
  const auto& a = attrs<myc_mat_mul_attrs>(call);
  const Matrices x(input(call, 0), a.transpose_a), y(input(call, 1), a.transpose_b);
  return gemm(call->ctx, x.transposed, y.transposed, x.outer_first(), y.outer_second(), x.inner_first(), x.data, x.columns,
              y.data, y.columns, out<float>(call), y.outer_second());
}

KERNEL_FN(batch_matmul, f32) {
  const auto& a = attrs<myc_batch_matmul_attrs>(call);
  const Matrices x(input(call, 0), a.transpose_a), y(input(call, 1), a.transpose_b);
  const myc_tensor& result = output(call);
  const int64_t m = x.outer_first(), n = y.outer_second(), k = x.inner_first();
  if (result.size == 0) return MYC_OK;
  const int64_t count = extent(result, 0, result.rank - 2);
  float* c = out<float>(call);
  // One matrix on the right for all: the stack on the left is one tall matrix.
  if (input(call, 1).size == y.rows * y.columns && !x.transposed && input(call, 0).size == count * m * k) {
    return gemm(call->ctx, false, y.transposed, count * m, n, k, x.data, k, y.data, y.columns, c, n);
  }
  return multiply_each(
      call, count, x.transposed, y.transposed, m, n, k, x.columns, y.columns, n,
      [&](int64_t i) { return x.data + offset_of(i, result, input(call, 0)); },
      [&](int64_t i) { return y.data + offset_of(i, result, input(call, 1)); }, [&](int64_t i) { return c + i * m * n; });
}

KERNEL_FN(head_matmul, f32) {
  const auto& a = attrs<myc_head_matmul_attrs>(call);
  const Heads x(input(call, 0), a.x_beside), y(input(call, 1), a.y_beside), z(output(call), a.beside);
  if (output(call).size == 0) return MYC_OK;
  float* c = out<float>(call);
  return multiply_each(
      call, x.batch * x.heads, false, a.transpose_y, z.rows, z.columns, x.columns, x.row_step, y.row_step, z.row_step,
      [&](int64_t i) { return in<float>(call, 0) + x.offset(i); }, [&](int64_t i) { return in<float>(call, 1) + y.offset(i); },
      [&](int64_t i) { return c + z.offset(i); });
}

KERNEL_FN(dense, f32) {
  const myc_tensor &x = input(call, 0), &w = input(call, 1);
  const int64_t outputs = w.shape[0], inputs = w.shape[1];
  Epilogue epilogue;
  epilogue.column_bias = in<float>(call, 2);
  return gemm(call->ctx, false, true, extent(x, 0, x.rank - 1), outputs, inputs, in<float>(call, 0), inputs,
              in<float>(call, 1), inputs, out<float>(call), outputs, epilogue);
}

// Bytes: 8 per element, 4 of 16-bit floats.
KERNEL_FN(bias_add, f32) {
  const auto& a = attrs<myc_bias_add_attrs>(call);
  const myc_tensor& x = input(call, 0);
  const AxisView view = around_axis(x, a.data_format == 1 ? -1 : 1);  // 1: NHWC
  const bool per_column = view.inner == 1;
  const int64_t n = per_column ? view.n : view.inner;
  if (x.size == 0) return MYC_OK;
  return with_float_type(x.dtype, [&](auto type) {
    using T = decltype(type);
    const T* from = in<T>(call, 0);
    const float* bias = in<float>(call, 1);
    T* to = out<T>(call);
    parallel_rows(call, x.size / n, 8 * n, [&](int64_t r) {
      add_bias(from + r * n, per_column ? bias : bias + r % view.n, to + r * n, n, per_column);
    });
    return MYC_OK;
  });
}

}  // namespace mycelia::MYC_ISA
