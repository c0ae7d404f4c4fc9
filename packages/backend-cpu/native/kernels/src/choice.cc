// Which algorithm computes a channels-last convolution with 3x3 windows of stride 1, by an estimate of its cycles on one core.
// Compiled once: the constants were fitted to the kernels with AVX2, weights from memory, as they come in a network.
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

// F(m x m) multiplies 36 / (9 * 16) (m = 4) or 64 / (9 * 36) (m = 6) as often as the direct form, but reads 4 or 7.1 times its
// weights, transforms tiles and computes whole ones.  `transforms`: cycles for a vector of channels of a tile.
double winograd(int64_t m, double transforms, const Image& x, int64_t channels) {
  const int64_t rows = x.size[0] + x.pad[0] + x.pad[2] - 2, columns = x.size[1] + x.pad[1] + x.pad[3] - 2;
  const double tiles = static_cast<double>(x.n) * ceil_div(rows, m) * ceil_div(columns, m), stepped = 1.15 * tiles;
  const double products = (m + 2) * (m + 2) * ceil_div(channels, kPanel) * x.depth * (stepped > kStream ? stepped : kStream);
  return products + tiles * (ceil_div(x.depth, kVector) + ceil_div(channels, kVector)) * transforms;
}

}  // namespace

extern "C" double myc_cpu_conv_cycles(int32_t algorithm, const int64_t image[4], int64_t channels, const int64_t pad[4], int32_t packs) {
  const Image x = {image[0], {image[1], image[2]}, image[3], {pad[0], pad[1], pad[2], pad[3]}};
  const double pairs = packs ? static_cast<double>(x.depth) * channels : 0;  // of channels whose weights are packed
  switch (algorithm) {
    case MYC_CONV_DIRECT: return direct(x, channels) + pairs * 9 * 1.1;
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
  for (int32_t each : {MYC_CONV_WINOGRAD4, MYC_CONV_WINOGRAD6})
    if (myc_cpu_conv_cycles(each, image, channels, pad, packs) < myc_cpu_conv_cycles(best, image, channels, pad, packs)) best = each;
  return best;
}
