// Sequences: parts of them backwards, and recurrent layers that other kernels do not have.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "../model_file.h"
#include "own.h"

namespace mycelia::lite {

// x with the first `lengths[b]` elements along an axis turned round in each slice b of another axis.
int32_t own_reverse_sequence_any(const myc_call* call) {
  const myc_tensor& x = *call->in[0];
  const ReverseAttributes& a = attrs<ReverseAttributes>(call);
  const int64_t *lengths = in<int64_t>(call, 1), n = x.shape[a.along];
  for (int64_t b = 0; b < x.shape[a.batch]; ++b) {
    if (lengths[b] >= 0 && lengths[b] <= n) continue;
    std::snprintf(call->ctx->error, sizeof(call->ctx->error), "a length of %lld of %lld elements", static_cast<long long>(lengths[b]), static_cast<long long>(n));
    return MYC_E_ARGUMENT;
  }
  const int last = static_cast<int>(std::max(a.along, a.batch));
  int64_t inner = item_bytes(x.dtype), rows = 1, strides[MYC_MAX_RANK];
  for (int d = last; d >= 0; --d) strides[d] = rows, rows *= x.shape[d];
  for (int d = last + 1; d < x.rank; ++d) inner *= x.shape[d];
  const uint8_t* from = static_cast<const uint8_t*>(x.data);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t at = row / strides[a.along] % n, length = lengths[row / strides[a.batch] % x.shape[a.batch]];
    const int64_t other = at < length ? row + (length - 1 - 2 * at) * strides[a.along] : row;
    std::memcpy(out<uint8_t>(call) + row * inner, from + other * inner, static_cast<size_t>(inner));
  }
  return MYC_OK;
}

// A GRU whose reset gate is in front of the product: x W + b [T, B, 3 H], weights [3 H, H] and bias [3 H] of the state, h0 [B, H];
// gates in the order update, reset, new.
int32_t own_gru_before_f32(const myc_call* call) {
  const myc_tensor& x = *call->in[0];
  const int64_t steps = x.shape[0], batch = x.shape[1], hidden = call->in[1]->shape[1];
  const float *weights = in<float>(call, 1), *bias = in<float>(call, 2), *first = in<float>(call, 3);
  std::vector<float> memory(static_cast<size_t>(3 * hidden));
  for (int64_t b = 0; b < batch; ++b) {
    float *update = memory.data(), *reset = update + hidden, *gated = reset + hidden, *state = out<float>(call, 1) + b * hidden;
    std::copy(first + b * hidden, first + (b + 1) * hidden, state);
    for (int64_t t = 0; t < steps; ++t) {
      const float* gates = in<float>(call, 0) + (t * batch + b) * 3 * hidden;
      const auto product = [&](const float* of, int64_t row) {
        float sum = bias[row];
        for (int64_t k = 0; k < hidden; ++k) sum += weights[row * hidden + k] * of[k];
        return gates[row] + sum;
      };
      const auto sigmoid = [](float v) { return 1 / (1 + std::exp(-v)); };
      for (int64_t i = 0; i < hidden; ++i) update[i] = sigmoid(product(state, i)), reset[i] = sigmoid(product(state, hidden + i));
      for (int64_t i = 0; i < hidden; ++i) gated[i] = state[i] * reset[i];
      float* result = out<float>(call) + (t * batch + b) * hidden;
      for (int64_t i = 0; i < hidden; ++i) result[i] = update[i] * state[i] + (1 - update[i]) * std::tanh(product(gated, 2 * hidden + i));
      std::copy(result, result + hidden, state);
    }
  }
  return MYC_OK;
}

}  // namespace mycelia::lite
