// Every path of gemm against sums in double precision: odd sizes, transposes, padding, epilogues, threads, packed B.
#include "gemm/gemm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

using namespace mycelia::MYC_ISA;

namespace {

uint32_t state = 1;
uint32_t random_bits() {  // xorshift, Marsaglia 2003
  state ^= state << 13, state ^= state >> 17, state ^= state << 5;
  return state;
}
float random_float() { return static_cast<float>(random_bits() % 2001) * 1e-3f - 1; }
int64_t one_of(const int64_t* values, int count) { return values[random_bits() % count]; }

float* filled(int64_t count) {
  float* p = static_cast<float*>(aligned_alloc(64, round_up(count * 4 + 4, 64)));
  for (int64_t i = 0; i < count; ++i) p[i] = random_float();
  return p;
}

// A context whose "threads" run one after the other, the last range first.
struct Host {
  myc_context base = {};
  char* memory = static_cast<char*>(aligned_alloc(64, 64 << 20));

  explicit Host(int32_t threads) {
    base.host = this;
    base.threads = threads;
    base.scratch = [](myc_context* ctx, int64_t bytes) -> void* {
      void* at = static_cast<Host*>(ctx->host)->memory + ctx->scratch_used;
      ctx->scratch_used += round_up(bytes, 64);
      return ctx->scratch_used <= (64 << 20) ? at : nullptr;
    };
    base.parallel_for = [](myc_context* ctx, int64_t n, int64_t grain, void (*body)(void*, int64_t, int64_t, int32_t),
                           void* arg) {
      const int64_t step = max(grain, ceil_div(n, ctx->threads));
      for (int64_t i = ceil_div(n, step) - 1; i >= 0; --i) {
        body(arg, i * step, min(n, (i + 1) * step), static_cast<int32_t>(i % ctx->threads));
      }
    };
  }
  ~Host() { free(memory); }
};

enum Form { kThreads, kSerial, kPacked };

bool check(Host& host, Form form, bool ta, bool tb, int64_t m, int64_t n, int64_t k, int64_t padding, Epilogue e, bool rows,
           bool columns) {
  const int64_t lda = (ta ? m : k) + padding, ldb = (tb ? k : n) + padding, ldc = n + padding;
  float *a = filled((ta ? k : m) * lda), *b = filled((tb ? n : k) * ldb), *c = filled(m * ldc), *old = filled(m * ldc);
  float *row_bias = filled(m), *column_bias = filled(n);
  for (int64_t i = 0; i < m * ldc; ++i) old[i] = c[i];
  if (rows) e.row_bias = row_bias;
  if (columns) e.column_bias = column_bias;
  bool good = true;
  if (form == kThreads) {
    good = gemm(&host.base, ta, tb, m, n, k, a, lda, b, ldb, c, ldc, e) == MYC_OK && host.base.scratch_used == 0;
  } else if (form == kSerial) {
    const int64_t size = gemm_scratch(ta, tb, m, n, k);
    float* scratch = filled(size);
    scratch[size] = 12345;  // must survive
    gemm_serial(ta, tb, m, n, k, a, lda, b, ldb, c, ldc, e, scratch);
    good = scratch[size] == 12345;
    free(scratch);
  } else {
    float* packed = filled(packed_size(k, n));
    pack_b(tb, k, n, b, ldb, packed);
    gemm_packed(m, n, k, a, lda, packed, c, ldc, e);
    free(packed);
  }
  for (int64_t i = 0; i < m && good; ++i) {
    for (int64_t j = 0; j < ldc && good; ++j) {
      double want = old[i * ldc + j];
      if (j < n) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += static_cast<double>(ta ? a[p * lda + i] : a[i * lda + p]) * (tb ? b[j * ldb + p] : b[p * ldb + j]);
        }
        want = sum * e.scale + (e.accumulate ? want : 0) + (rows ? row_bias[i] : 0) + (columns ? column_bias[j] : 0);
        want = want < e.low ? e.low : want > e.high ? e.high : want;
      }
      const double got = c[i * ldc + j];
      if (fabs(got - want) > 1e-5 * (1 + sqrt(static_cast<double>(k)))) {
        printf("form %d ta %d tb %d m %d n %d k %d padding %d at (%d, %d): %g, expected %g\n", form, ta, tb, (int)m, (int)n,
               (int)k, (int)padding, (int)i, (int)j, got, want);
        good = false;
      }
    }
  }
  free(a), free(b), free(c), free(old), free(row_bias), free(column_bias);
  return good;
}

}  // namespace

int main() {
  const int64_t sizes[] = {0, 1, 2, 3, 5, 6, 7, 11, 12, 13, 16, 17, 31, 33, 49, 64, 97, 127, 211};
  const int64_t widths[] = {15, 17, 31, 32, 49, 96, 145};
  const int64_t paddings[] = {0, 0, 1, 5, 600};
  int failed = 0;
  for (int32_t threads = 1; threads <= 3; ++threads) {
    Host host(threads);
    for (int round = 0; round < 600; ++round) {
      int64_t m = one_of(sizes, 19), n = one_of(sizes, 19), k = one_of(sizes, 19);
      if (round % 40 == 0) k = 1000 + random_bits() % 2000;
      if (round % 50 == 1) n = 2100;
      if (round % 60 == 2) m = 500;
      Epilogue e;
      e.scale = random_bits() % 2 ? 0.5f : 1.0f;
      e.accumulate = random_bits() % 2;
      if (random_bits() % 3 == 0) e.low = 0;
      if (random_bits() % 3 == 0) e.high = 1.5f;
      const Form form = static_cast<Form>(random_bits() % 3);
      const bool ta = form != kPacked && random_bits() % 2, tb = random_bits() % 2;
      failed += !check(host, form, ta, tb, m, n, k, one_of(paddings, 5), e, random_bits() % 2, random_bits() % 2);
    }
    // Every height of a tile, and widths around one of 16 and 32 lanes: A in place and, its rows far apart, packed.
    for (int64_t m = 1; m <= 26; ++m) {
      for (const int64_t n : widths) {
        const int64_t k = 1 + random_bits() % 70;
        Epilogue plain;
        plain.accumulate = random_bits() % 2;
        failed += !check(host, kThreads, m % 2, n % 3 == 0, m, n, k, m % 3 == 0 ? 600 : 0, plain, false, random_bits() % 2);
      }
    }
    for (int t = 0; t < 4; ++t) failed += !check(host, kThreads, t & 1, t & 2, 31, 40, 9000 + t, 0, {}, true, true);
  }
  return failed > 100 ? 100 : failed;
}
