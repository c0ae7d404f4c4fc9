// Which algorithm computes a channels-last convolution with 3x3 windows of stride 1, or a product with constant weights, by an
// estimate of its cycles on one core. Compiled once: the constants were fitted to the kernels with AVX2, weights from memory, as they come in a network.
//
// A measurement would choose now this, now that one where two are close: results would differ from run to run.
#include <initializer_list>
#include <limits>

#include "mycelia/cpu.h"

namespace {

constexpr int64_t kPanel = 16;  // output channels computed together
constexpr int64_t kVector = 8;  // channels transformed together
constexpr double kStream = 16;  // cycles in which 64 bytes of weights, a panel's at one k, come from memory

struct Image {
  int64_t n, size[2], depth, pad[4];  // pad: begins, then ends
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// Windows' elements along an axis, of all outputs, without those on padding.
int64_t taps(const Image& x, int d) {
  const int64_t begin = x.pad[d], end = x.pad[2 + d], out = x.size[d] + begin + end - 2;
  int64_t sum = 0;
  for (int64_t t = 0; t < 3; ++t) sum += most(0, least(out, x.size[d] + begin - t) - most(0, begin - t));
  return sum;
}

double direct(const Image& x, int64_t channels) {
  const double rows = x.n * static_cast<double>(taps(x, 0)) * taps(x, 1) / 9, stepped = 1.1 * rows;
  // A panel and element of k takes a cycle a pixel and a bit, or as long as its weights need.
  return 9.0 * ceil_div(channels, kPanel) * x.depth * (stepped > kStream ? stepped : kStream);
}

// F(m x m) multiplies 16 / (9 * 4) (m = 2), 36 / (9 * 16) (m = 4) or 64 / (9 * 36) (m = 6) as often as the direct form, but reads
// 1.8, 4 or 7.1 times its weights, transforms tiles and computes whole ones.  `transforms`: cycles for a vector of channels of a tile.
double winograd(int64_t m, double transforms, const Image& x, int64_t channels) {
  const int64_t rows = x.size[0] + x.pad[0] + x.pad[2] - 2, columns = x.size[1] + x.pad[1] + x.pad[3] - 2;
  const double tiles = static_cast<double>(x.n) * ceil_div(rows, m) * ceil_div(columns, m), stepped = 1.15 * tiles;
  const double products = (m + 2) * (m + 2) * ceil_div(channels, kPanel) * x.depth * (stepped > kStream ? stepped : kStream);
  return products + tiles * (ceil_div(x.depth, kVector) + ceil_div(channels, kVector)) * transforms;
}

constexpr int64_t kTileRows = 6, kDepth = 512;  // rows, and of k, that are multiplied at once
constexpr double kTile = 40;                     // cycles between two tiles of kTileRows x kPanel
constexpr double kPart = 300;                    // cycles to begin with a panel of weights, and rows that are in a block at most:
constexpr int64_t kBlockRows = 72;
constexpr double kCombine = 3.75, kSum = 2.5;    // cycles for an element of a quarter of the result, and of the operand
constexpr double kCaution = 0.95;                // Strassen's product rounds worse and needs more memory: so much less it must take

double plain_product(int64_t rows, int64_t columns, int64_t depth) {
  // A panel and element of k takes a cycle a row, or as long as its weights need.
  const double tiles = static_cast<double>(ceil_div(rows, kTileRows)) * ceil_div(depth, kDepth);
  return ceil_div(columns, kPanel) * (depth * (rows > kStream ? rows : kStream) + tiles * kTile);
}

// One level multiplies 7/8 as often, but sums quarters of the operand and of the products, reads 7/4 of the weights, and works on
// half the sizes, for which the fixed costs count twice.
double strassen_product(int64_t rows, int64_t columns, int64_t depth) {
  rows = ceil_div(rows, 2), columns /= 2, depth /= 2;
  const double parts = static_cast<double>(ceil_div(columns, kPanel)) * ceil_div(rows, kBlockRows);
  return 7 * (plain_product(rows, columns, depth) + parts * kPart) + rows * (columns * kCombine + depth * kSum);
}

}  // namespace

extern "C" int32_t myc_cpu_product_algorithm(int64_t rows, int64_t columns, int64_t depth) {
  if (rows < 2 || columns < 2 || depth < 2 || columns % 2 || depth % 2) return MYC_PRODUCT_PLAIN;
  const bool pays = strassen_product(rows, columns, depth) < kCaution * plain_product(rows, columns, depth);
  return pays ? MYC_PRODUCT_STRASSEN : MYC_PRODUCT_PLAIN;
}

extern "C" double myc_cpu_conv_cycles(int32_t algorithm, const int64_t image[4], int64_t channels, const int64_t pad[4], int32_t packs) {
  const Image x = {image[0], {image[1], image[2]}, image[3], {pad[0], pad[1], pad[2], pad[3]}};
  const double pairs = packs ? static_cast<double>(x.depth) * channels : 0;  // of channels whose weights are packed
  switch (algorithm) {
    case MYC_CONV_DIRECT: return direct(x, channels) + pairs * 9 * 1.1;
    case MYC_CONV_WINOGRAD2: return winograd(2, 100, x, channels) + pairs * 16 * 1.7;
    case MYC_CONV_WINOGRAD4: return winograd(4, 300, x, channels) + pairs * 36 * 1.7;
    case MYC_CONV_WINOGRAD6: return 1.1 * winograd(6, 900, x, channels) + pairs * 64 * 1.7;  // rounds worse: it must win clearly
    default: return std::numeric_limits<double>::infinity();
  }
}

extern "C" int32_t myc_cpu_depthwise_is_narrow(int64_t width) {
  const auto computed = [&](int64_t block) { return ceil_div(width, block) * block; };
  return width < 7 || 8 * computed(4) < 7 * computed(7);
}

extern "C" int32_t myc_cpu_conv_algorithm(const int64_t image[4], int64_t channels, const int64_t pad[4], int32_t packs) {
  int32_t best = MYC_CONV_DIRECT;
  for (int32_t each : {MYC_CONV_WINOGRAD2, MYC_CONV_WINOGRAD4, MYC_CONV_WINOGRAD6})
    if (myc_cpu_conv_cycles(each, image, channels, pad, packs) < myc_cpu_conv_cycles(best, image, channels, pad, packs)) best = each;
  return best;
}
