// Products of matrices of float64 and integers, determinants.
#include <cmath>
#include <vector>

#include "own.h"

namespace mycelia::lite {

namespace {

// The product of the last two axes; the others are broadcast. Sums of integers wrap around.
template <class T, class Sum>
int32_t product(const myc_call* call) {
  const auto& a = attrs<myc_mat_mul_attrs>(call);
  const myc_tensor &x = *call->in[0], &w = *call->in[1], &y = *call->out[0];
  const int64_t rows = y.shape[y.rank - 2], columns = y.shape[y.rank - 1];
  const int64_t depth = x.shape[x.rank - (a.transpose_a ? 2 : 1)];
  int64_t batches = 1;
  for (int d = 0; d < y.rank - 2; ++d) batches *= y.shape[d];
  const auto matrix_of = [&](const myc_tensor& t, int64_t batch) {  // number of the matrix of an operand
    int64_t at = 0, stride = 1;
    for (int d = y.rank - 3; d >= 0; --d) {
      const int64_t place = batch % y.shape[d];
      batch /= y.shape[d];
      const int own = d - (y.rank - t.rank);
      if (own < 0) continue;
      if (t.shape[own] != 1) at += place * stride;
      stride *= t.shape[own];
    }
    return at;
  };
  for_each(call, batches * rows, 65536 / (depth * columns + 1) + 1, [&](int64_t row) {
    const int64_t batch = row / rows, i = row % rows;
    const T* p = in<T>(call, 0) + matrix_of(x, batch) * rows * depth + (a.transpose_a ? i : i * depth);
    const T* q = in<T>(call, 1) + matrix_of(w, batch) * depth * columns;
    const int64_t step_p = a.transpose_a ? rows : 1;
    std::vector<Sum> sums(static_cast<size_t>(columns));
    for (int64_t k = 0; k < depth; ++k) {
      const Sum factor = static_cast<Sum>(p[k * step_p]);
      const T* other = q + (a.transpose_b ? k : k * columns);
      const int64_t step_q = a.transpose_b ? depth : 1;
      for (int64_t j = 0; j < columns; ++j) sums[j] += factor * static_cast<Sum>(other[j * step_q]);
    }
    for (int64_t j = 0; j < columns; ++j) out<T>(call)[row * columns + j] = static_cast<T>(sums[j]);
  });
  return MYC_OK;
}

// By elimination with the largest pivots.
template <class T>
int32_t determinant(const myc_call* call) {
  const myc_tensor& x = *call->in[0];
  const int64_t n = x.shape[x.rank - 1];
  for_each(call, call->out[0]->size, 1, [&](int64_t batch) {
    const T* given = in<T>(call, 0) + batch * n * n;
    std::vector<double> m(given, given + n * n);
    double det = 1;
    for (int64_t k = 0; k < n; ++k) {
      int64_t pivot = k;
      for (int64_t i = k + 1; i < n; ++i)
        if (std::fabs(m[i * n + k]) > std::fabs(m[pivot * n + k])) pivot = i;
      if (pivot != k) {
        for (int64_t j = 0; j < n; ++j) std::swap(m[k * n + j], m[pivot * n + j]);
        det = -det;
      }
      det *= m[k * n + k];
      if (m[k * n + k] == 0) break;
      for (int64_t i = k + 1; i < n; ++i) {
        const double factor = m[i * n + k] / m[k * n + k];
        for (int64_t j = k; j < n; ++j) m[i * n + j] -= factor * m[k * n + j];
      }
    }
    out<T>(call)[batch] = static_cast<T>(det);
  });
  return MYC_OK;
}

}  // namespace

int32_t own_mat_mul_f64(const myc_call* call) { return product<double, double>(call); }
int32_t own_mat_mul_i32(const myc_call* call) { return product<int32_t, uint32_t>(call); }
int32_t own_mat_mul_i64(const myc_call* call) { return product<int64_t, uint64_t>(call); }
int32_t own_batch_matmul_f64(const myc_call* call) { return product<double, double>(call); }
int32_t own_batch_matmul_i32(const myc_call* call) { return product<int32_t, uint32_t>(call); }
int32_t own_batch_matmul_i64(const myc_call* call) { return product<int64_t, uint64_t>(call); }
int32_t own_det_f32(const myc_call* call) { return determinant<float>(call); }
int32_t own_det_f64(const myc_call* call) { return determinant<double>(call); }

}  // namespace mycelia::lite
