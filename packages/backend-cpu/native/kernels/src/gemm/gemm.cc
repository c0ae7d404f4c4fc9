// The matrix product: which way a product is computed, and the ways by blocks.
//
// Few rows: each panel of B is packed just before its only use.  Many rows: kDepth x kColumnsInBlock of B is packed once and
// shared by all row blocks and threads.
#include "gemm/gemm.h"

#include "gemm/blocks.h"
#include "gemm/outer.h"
#include "gemm/thin.h"

namespace mycelia::MYC_ISA {
namespace {

// Scratch of the drivers below, in floats.
int64_t few_rows_shared(const Product& g) { return should_pack_a(g) ? packed_a_size(g.m, g.k) : 0; }
int64_t few_rows_per_worker(const Product& g) { return part_depth(g) * kPanel * kPanelsAtOnce; }
int64_t many_rows_shared(const Product& g) {
  return part_depth(g) * round_up(min(g.n, kColumnsInBlock), kPanel);
}
int64_t many_rows_per_worker(const Product& g) {
  return should_pack_a(g) ? packed_a_size(kRowsInBlock, part_depth(g)) : 0;
}

int32_t multiply_few_rows(myc_context* ctx, const Product& g) {
  Scratch scratch(ctx);
  const int64_t own = few_rows_per_worker(g);
  float* panels = scratch.take<float>(own * max_workers(ctx));
  const bool pack = should_pack_a(g);
  float* packed_a = pack ? scratch.take<float>(few_rows_shared(g)) : nullptr;
  if (!panels || (pack && !packed_a)) return MYC_E_MEMORY;
  const int64_t padded = round_up(g.m, kBlockRows), depth = part_depth(g);
  if (pack) {
    for (int64_t p = 0; p < g.k; p += depth) {
      pack_blocks({g.a.at(0, p), g.a.row, g.a.column}, g.m, min(depth, g.k - p), packed_a + padded * p);
    }
  }
  const bool direct = is_direct(g);
  const Tiles tiles = cut(g.m, g.n, g.k, g.m, max_workers(ctx));
  parallel_for_worker(ctx, tiles.count(), 1, [&](int64_t begin, int64_t end, int32_t worker) {
    const int64_t j = begin * tiles.column_step, columns = min(g.n, end * tiles.column_step) - j;
    for (int64_t p = 0; p < g.k; p += depth) {
      pack_and_multiply(g, {0, g.m, j, columns, p, min(depth, g.k - p)}, pack ? packed_a + padded * p : nullptr, direct,
                        panels + own * worker);
    }
  });
  return MYC_OK;
}

int32_t multiply_many_rows(myc_context* ctx, const Product& g) {
  Scratch scratch(ctx);
  const bool pack = should_pack_a(g);
  const int64_t own = many_rows_per_worker(g);
  float* packed_b = scratch.take<float>(many_rows_shared(g));
  float* blocks = pack ? scratch.take<float>(own * max_workers(ctx)) : nullptr;
  if (!packed_b || (pack && !blocks)) return MYC_E_MEMORY;
  for (int64_t j = 0; j < g.n; j += kColumnsInBlock) {
    const int64_t columns = min(kColumnsInBlock, g.n - j);
    for (int64_t p = 0, depth; p < g.k; p += depth) {
      depth = min(part_depth(g), g.k - p);
      const int64_t stride = depth * kPanel;
      constexpr int64_t kGroup = kPanelsAtOnce * kPanel;
      parallel_for(ctx, ceil_div(columns, kGroup), 2, [&](int64_t begin, int64_t end) {
        pack_panels({g.b.at(p, j + begin * kGroup), g.b.row, g.b.column}, min(columns, end * kGroup) - begin * kGroup, depth,
                    packed_b + begin * kPanelsAtOnce * stride, stride);
      });
      const Tiles tiles = cut(g.m, columns, depth, kRowsInBlock, max_workers(ctx));
      parallel_for_worker(ctx, tiles.count(), 1, [&](int64_t begin, int64_t end, int32_t worker) {
        for (int64_t tile = begin; tile < end; ++tile) {
          const int64_t i = tile / tiles.columns * kRowsInBlock, q = tile % tiles.columns * tiles.column_step;
          const Part part = {i, min(kRowsInBlock, g.m - i), j + q, min(tiles.column_step, columns - q), p, depth};
          float* block = pack ? blocks + own * worker : nullptr;
          if (pack) pack_blocks({g.a.at(i, p), g.a.row, g.a.column}, part.m, depth, block);
          multiply_part(g, part, block, packed_b + q / kPanel * stride, stride);
        }
      });
    }
  }
  return MYC_OK;
}

// How a product is computed; see choose().
enum class Path { kRows, kRowDots, kColumns, kColumnDots, kDots, kLongK, kOuter, kFewRows, kManyRows };

constexpr int64_t kThin = 8, kThinInPlace = 4;  // rows that read a large matrix along and across its rows
constexpr int64_t kLargeFloats = 1 << 16;
constexpr int64_t kLongPart = kLanes == 16 ? 1024 : 4 * kDepth, kMostParts = 16, kFewTiles = 8;
constexpr int64_t kDotRows = 12;  // up to here packing a transposed B costs more than the horizontal sums

// Few elements of C, so that only k can be cut for the threads.  It is cut the same way for any number of them: results
// do not depend on it.
bool has_long_k(const Product& g) {
  return ceil_div(g.m, kRowsInBlock) * ceil_div(g.n, 2 * kPanel) < kFewTiles && g.k >= 2 * kLongPart &&
         g.m * g.n * g.k >= 2 * kSerialWork;
}

// The path of a product that none of the others suits.
Path block_path(const Product& g) { return is_outer(g) ? Path::kOuter : has_few_rows(g) ? Path::kFewRows : Path::kManyRows; }

Path choose(const Product& g) {
  if (g.m == 1) return g.b.row == 1 ? Path::kRowDots : Path::kRows;
  if (g.n == 1) return g.a.column == 1 ? Path::kColumnDots : Path::kColumns;
  // A thin operand against a large one: the large one is read once, where it is.
  if (g.m <= kThinInPlace && g.b.column == 1 && g.k * g.n >= kLargeFloats) return Path::kRows;
  if (g.n <= kThin && g.a.column == 1 && g.m * g.k >= kLargeFloats) return Path::kColumnDots;
  if (g.n <= kThinInPlace && g.a.row == 1 && g.m * g.k >= kLargeFloats) return Path::kColumns;
  if (g.m <= kDotRows && g.b.row == 1 && g.a.column == 1 && g.k >= 4 * kLanes) return Path::kDots;
  if (has_long_k(g)) return Path::kLongK;
  return block_path(g);
}

int32_t run(myc_context* ctx, const Product& g, Path path);

// A context for one thread that hands out memory given by the caller.
struct SerialContext {
  myc_context base = {};
  float* memory;

  explicit SerialContext(float* scratch) : memory(scratch) {
    base.host = this;
    base.threads = 1;
    base.scratch = [](myc_context* ctx, int64_t bytes) -> void* {
      void* at = reinterpret_cast<char*>(static_cast<SerialContext*>(ctx->host)->memory) + ctx->scratch_used;
      ctx->scratch_used += round_up(bytes, 64);
      return at;
    };
  }
};

// A product with a long k, cut into parts of `depth`; each is summed up in a C of its own of `size` floats.
struct LongK {
  int64_t depth, parts, size;
  Path path;  // of a part
  Product first;

  explicit LongK(const Product& g)
      : depth(ceil_div(g.k, min(kMostParts, round_up(ceil_div(g.k, kLongPart), 2)))),
        parts(ceil_div(g.k, depth)),
        size(round_up(g.m * g.n, 16)),
        path(block_path(g)),
        first(g) {
    first.k = depth;
  }
};

// Floats that run() takes on one thread.
int64_t serial_scratch(const Product& g, Path path) {
  switch (path) {
    case Path::kRows:
    case Path::kColumns:
      return round_up(g.m * g.n, 16);
    case Path::kRowDots:
      return round_up(g.k, 16);
    case Path::kColumnDots:
      return round_up(g.k * g.n, 16);
    case Path::kFewRows:
      return round_up(few_rows_per_worker(g), 16) + few_rows_shared(g);
    case Path::kOuter:
      return outer_per_worker(g);
    case Path::kManyRows:
      return round_up(many_rows_shared(g), 16) + many_rows_per_worker(g);
    case Path::kLongK: {
      const LongK cut(g);
      return cut.parts * cut.size + round_up(serial_scratch(cut.first, cut.path), 16);
    }
    default:
      return 0;
  }
}

// Few elements of C but a long k, as in weight gradients.
int32_t multiply_long_k(myc_context* ctx, const Product& g) {
  const LongK cut(g);
  const int64_t own = round_up(serial_scratch(cut.first, cut.path), 16);
  Scratch scratch(ctx);
  float* sums = scratch.take<float>(cut.parts * cut.size);
  float* memory = scratch.take<float>(max_workers(ctx) * own);
  if (!sums || !memory) return MYC_E_MEMORY;
  const Epilogue plain;
  parallel_for_worker(ctx, cut.parts, 1, [&](int64_t begin, int64_t end, int32_t worker) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t p = part * cut.depth;
      const Product own_part = {g.m, g.n, min(cut.depth, g.k - p), {g.a.at(0, p), g.a.row, g.a.column},
                                {g.b.at(p, 0), g.b.row, g.b.column}, sums + part * cut.size, g.n, &plain};
      SerialContext serial(memory + worker * own);
      run(&serial.base, own_part, cut.path);
    }
  });
  const Epilogue& e = *g.epilogue;
  const bool is_plain = e.scale == 1 && !e.row_bias && !e.column_bias && e.low == -INFINITY && e.high == INFINITY;
  for (int64_t i = 0; i < g.m; ++i) {
    float *sum = sums + i * g.n, *to = g.c + i * g.ldc;
    for (int64_t part = 1; part < cut.parts; ++part) {
      map(sum, sum + part * cut.size, sum, g.n, [](f32v x, f32v y) { return x + y; });
    }
    if (!is_plain) {
      for (int64_t j = 0; j < g.n; ++j) to[j] = finish(sum[j], to[j], e, i, j);
    } else if (e.accumulate) {
      map(sum, to, to, g.n, [](f32v x, f32v y) { return x + y; });
    } else {
      memcpy(to, sum, g.n * sizeof(float));
    }
  }
  return MYC_OK;
}

int32_t run(myc_context* ctx, const Product& g, Path path) {
  // Columns are rows of the transposed product: the biases change places.
  Epilogue turned = *g.epilogue;
  turned.row_bias = g.epilogue->column_bias;
  turned.column_bias = g.epilogue->row_bias;
  switch (path) {
    case Path::kRows:
      return multiply_rows(ctx, g.m, g.n, g.k, g.a.data, g.a.row, g.a.column, g.b.data, g.b.row, g.c, g.ldc, 1,
                           *g.epilogue);
    case Path::kColumns:
      return multiply_rows(ctx, g.n, g.m, g.k, g.b.data, g.b.column, g.b.row, g.a.data, g.a.column, g.c, 1, g.ldc,
                           turned);
    case Path::kRowDots:
      return multiply_rows_by_dots(ctx, 1, g.n, g.k, g.a.data, 0, g.a.column, g.b.data, g.b.column, g.c, g.ldc, 1,
                                   *g.epilogue);
    case Path::kColumnDots:
      return multiply_rows_by_dots(ctx, g.n, g.m, g.k, g.b.data, g.b.column, g.b.row, g.a.data, g.a.row, g.c, 1, g.ldc,
                                   turned);
    case Path::kDots:
      return multiply_rows_by_dots(ctx, g.m, g.n, g.k, g.a.data, g.a.row, 1, g.b.data, g.b.column, g.c, g.ldc, 1,
                                   *g.epilogue);
    case Path::kLongK:
      return multiply_long_k(ctx, g);
    case Path::kOuter:
      return multiply_outer(ctx, g);
    case Path::kFewRows:
      return multiply_few_rows(ctx, g);
    case Path::kManyRows:
      return multiply_many_rows(ctx, g);
  }
  return MYC_E_UNSUPPORTED;
}

Product make_product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                     const float* b, int64_t ldb, float* c, int64_t ldc, const Epilogue* epilogue) {
  return {m,
          n,
          k,
          transpose_a ? View{a, 1, lda} : View{a, lda, 1},
          transpose_b ? View{b, 1, ldb} : View{b, ldb, 1},
          c,
          ldc,
          epilogue};
}

void multiply_nothing(const Product& g) {
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) {
      float& to = g.c[i * g.ldc + j];
      to = finish(0.0f, to, *g.epilogue, i, j);
    }
  }
}

}  // namespace

int32_t gemm(myc_context* ctx, bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a,
             int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc, const Epilogue& epilogue) {
  const Product g = make_product(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, c, ldc, &epilogue);
  if (k == 0) multiply_nothing(g);
  if (m == 0 || n == 0 || k == 0) return MYC_OK;
  return run(ctx, g, choose(g));
}

int64_t gemm_scratch(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k) {
  // The leading dimensions may be larger than these: the path does not depend on them, packing A does.
  const Product g = make_product(transpose_a, transpose_b, m, n, k, nullptr, INT32_MAX, nullptr, INT32_MAX, nullptr, n,
                                 nullptr);
  return serial_scratch(g, choose(g));
}

void gemm_serial(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                 const float* b, int64_t ldb, float* c, int64_t ldc, const Epilogue& epilogue, float* scratch) {
  SerialContext serial(scratch);
  gemm(&serial.base, transpose_a, transpose_b, m, n, k, a, lda, b, ldb, c, ldc, epilogue);
}

int64_t packed_size(int64_t k, int64_t n) { return k * round_up(n, kPanel); }

void pack_b(bool transpose_b, int64_t k, int64_t n, const float* b, int64_t ldb, float* packed) {
  const View view = transpose_b ? View{b, 1, ldb} : View{b, ldb, 1};
  pack_panels(view, n, k, packed, k * kPanel);
}

void gemm_packed_part(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed,
                      int64_t packed_k, int64_t from, float* c, int64_t ldc, const Epilogue& epilogue) {
  const Product g = make_product(false, false, m, n, k, a, lda, packed, kPanel, c, ldc, &epilogue);
  if (k == 0) return multiply_nothing(g);
  for (int64_t i = 0; i < m; i += kRowsInBlock) {
    for (int64_t p = 0; p < k; p += kDepth) {
      multiply_part(g, {i, min(kRowsInBlock, m - i), 0, n, p, min(kDepth, k - p)}, nullptr,
                    packed + (from + p) * kPanel, packed_k * kPanel);
    }
  }
}

void gemm_packed(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed, float* c,
                 int64_t ldc, const Epilogue& epilogue) {
  gemm_packed_part(m, n, k, a, lda, packed, k, 0, c, ldc, epilogue);
}

}  // namespace mycelia::MYC_ISA
