// Direct channels-last convolution: a matrix product whose rows are pixels, read in place. Compiled once: the loops are those
// of an instruction set.
//
// Pixels near the border miss some taps.  Within a block of pixels those that see the same taps are computed
// together, so no padding is ever read or multiplied.  The taps of one kernel row and all their channels are
// one run along k; where channels are planes, those of one kernel row and channel are.
// Flops: 2 n out_h out_w taps c o / group, less the padding.  Bytes: x, y once; w once a block of pixels.
#include "convolution/channels_last/conv_last.h"

namespace mycelia {

using namespace MYC_ISA;

namespace {

// Of k at once: a panel just fits the first-level cache. AVX-512 reads panels from the second-level cache as fast as it
// needs them, and does better with fewer visits to the result.
int64_t depth_at_once(const TileLoops& loops) { return loops.lanes == 16 ? 1024 : 512; }
constexpr int64_t kBlockFloats = 40 * 1024;  // of A in a block, to stay in the second-level cache
constexpr int64_t kMostPixels = 384;

// What one dimension offers its outputs.  Output j lies at out0 + j * out_step; tap i < taps brings it input
// j * in_step + offset0 + i * offset_step, multiplied by the pack's tap tap0 + i * tap_step.
struct Axis {
  int64_t outputs, out0, out_step;
  int64_t in_step, in_size;
  int64_t taps, tap0, tap_step, offset0, offset_step;
};

// Taps [begin, end) of an axis, all inside of the input.
struct Taps {
  int32_t begin, end;
  bool operator==(const Taps& other) const { return begin == other.begin && end == other.end; }
};

Taps taps_inside(const Axis& axis, int64_t j) {
  const int64_t first = j * axis.in_step + axis.offset0, room = axis.in_size - first;
  const int64_t begin = first >= 0 ? 0 : min(axis.taps, ceil_div(-first, axis.offset_step));
  const int64_t end = room <= 0 ? 0 : min(axis.taps, ceil_div(room, axis.offset_step));
  return begin < end ? Taps{static_cast<int32_t>(begin), static_cast<int32_t>(end)} : Taps{0, 0};
}

// Outputs of an axis by the taps they see: output j is of class of[j], whose taps are taps[of[j]] and whose
// outputs end at end[of[j]].
struct Classes {
  Taps* taps;
  int32_t *of, *end;
  int64_t count;

  bool make(Scratch& scratch, const Axis& axis) {
    taps = scratch.take<Taps>(axis.outputs);
    of = scratch.take<int32_t>(axis.outputs);
    end = scratch.take<int32_t>(axis.outputs);
    if (!taps || !of || !end) return false;
    count = 0;
    for (int64_t j = 0; j < axis.outputs; ++j) {
      const Taps now = taps_inside(axis, j);
      if (count == 0 || !(now == taps[count - 1])) taps[count++] = now;
      of[j] = static_cast<int32_t>(count - 1);
      end[of[j]] = static_cast<int32_t>(j + 1);
    }
    return true;
  }
};

// One product: a convolution, or the part of an input gradient with one remainder of the position by the
// stride.
struct Product {
  const TileLoops* loops;
  int64_t n, group, depth, columns;  // depth and columns: input and output channels of a group
  int64_t planes;  // of an image of x, each with `depth` channels last
  Axis axis[2];
  int64_t out[2];     // extents of y
  int64_t y_pixel;    // floats between its pixels
  int64_t kernel[2];  // of the pack
  const float* x;
  const float* packed;
  ConvEpilogue e;
  float* y;

  Classes classes[2];
  int64_t k_total, k_block;
  int64_t pixels, block_pixels;
  int64_t shares;  // of a block's pixels, for threads
  bool joined;     // the taps of a kernel row are one run
  bool is_matrix;  // pixels are rows of x, one behind the other

  int64_t x_channels() const { return depth * group; }
  int64_t plane() const { return axis[0].in_size * axis[1].in_size * x_channels(); }
  int64_t panel_stride() const { return planes * kernel[0] * kernel[1] * depth * kPackedColumns; }
  int64_t group_stride() const { return ceil_div(columns, kPackedColumns) * panel_stride(); }
  bool all_taps() const { return axis[0].taps == kernel[0] && axis[1].taps == kernel[1]; }
  int64_t most_runs() const { return planes * axis[0].taps * (joined ? 1 : axis[1].taps); }
};

// Pixels of one class within a block.
struct Part {
  int64_t begin, end;
  Taps y, x;

  // What is in one of `shares`.
  Part share(int64_t part, int64_t at, int64_t shares) const {
    const int64_t count = end - begin, cuts = clamp(count / kCutRows, int64_t{1}, shares);
    const int64_t cut = (at + shares - part % shares) % shares;  // small parts go to one share each
    if (cuts == shares) return {begin + count * at / cuts, begin + count * (at + 1) / cuts, y, x};
    if (cut >= cuts) return {begin, begin, y, x};
    return {begin + count * cut / cuts, begin + count * (cut + 1) / cuts, y, x};
  }
};

// A worker's view of one block of pixels.
struct Block {
  int64_t* a;      // floats from x to the pixel at offset 0
  int64_t* c;      // floats from y
  int32_t* start;  // per class, for sorting
  Part* parts;
  Run* runs;
  int64_t part_count;

  static int64_t bytes(const Product& p) {
    const int64_t classes = p.classes[0].count * p.classes[1].count;
    const int64_t parts = min(classes, p.block_pixels);
    return round_up(p.block_pixels * 16 + round_up(classes + 1, 2) * 4 +
                        parts * static_cast<int64_t>(sizeof(Part)) +
                        p.most_runs() * static_cast<int64_t>(sizeof(Run)),
                    64);
  }
  Block(const Product& p, char* memory) {
    const int64_t classes = p.classes[0].count * p.classes[1].count;
    a = reinterpret_cast<int64_t*>(memory);
    c = a + p.block_pixels;
    parts = reinterpret_cast<Part*>(c + p.block_pixels);
    runs = reinterpret_cast<Run*>(parts + min(classes, p.block_pixels));
    start = reinterpret_cast<int32_t*>(runs + p.most_runs());
  }

  // Sorts pixels [begin, end) by class.
  void fill(const Product& p, int64_t begin, int64_t end) {
    const Axis &rows = p.axis[0], &cols = p.axis[1];
    const int64_t wide = p.classes[1].count, classes = p.classes[0].count * wide;
    // body(image, row, first column, columns, class) for each stretch of pixels of one line and class.
    const auto each_stretch = [&](const auto& body) __attribute__((always_inline)) {
      const int64_t line = begin / cols.outputs;
      int64_t image = line / rows.outputs, row = line % rows.outputs, col = begin % cols.outputs;
      for (int64_t left = end - begin; left > 0;) {
        const int32_t kind = p.classes[1].of[col];
        const int64_t count = min(left, p.classes[1].end[kind] - col);
        body(image, row, col, count, p.classes[0].of[row] * wide + kind);
        left -= count, col += count;
        if (col < cols.outputs) continue;
        col = 0;
        if (++row == rows.outputs) row = 0, ++image;
      }
    };
    for (int64_t k = 0; k <= classes; ++k) start[k] = 0;
    each_stretch([&](int64_t, int64_t, int64_t, int64_t count, int64_t kind) {
      start[kind + 1] += static_cast<int32_t>(count);
    });
    part_count = 0;
    for (int64_t k = 0; k < classes; ++k) {
      const int64_t from = start[k], to = from + start[k + 1];
      start[k + 1] = static_cast<int32_t>(to);
      if (from == to) continue;
      parts[part_count++] = {from, to, p.classes[0].taps[k / wide], p.classes[1].taps[k % wide]};
    }
    const int64_t a_step = cols.in_step * p.x_channels(), c_step = cols.out_step * p.y_pixel;
    each_stretch([&](int64_t image, int64_t row, int64_t col, int64_t count, int64_t kind) {
      int64_t a_at =
          image * p.planes * p.plane() + (row * rows.in_step * cols.in_size + col * cols.in_step) * p.x_channels();
      int64_t c_at = ((image * p.out[0] + rows.out0 + row * rows.out_step) * p.out[1] + cols.out0 +
                      col * cols.out_step) *
                     p.y_pixel;
      int64_t *a_to = a + start[kind], *c_to = c + start[kind];
      for (int64_t i = 0; i < count; ++i, a_at += a_step, c_at += c_step) a_to[i] = a_at, c_to[i] = c_at;
      start[kind] += static_cast<int32_t>(count);
    });
  }

  // The part of k in [k0, k1) for one class; k counts the product's taps, plane by plane and kernel row by kernel row,
  // times depth.
  int64_t runs_of(const Product& p, const Part& part, int64_t k0, int64_t k1) {
    const Axis &rows = p.axis[0], &cols = p.axis[1];
    int64_t count = 0;
    const int64_t wide = p.joined ? part.x.end - part.x.begin : 1;
    for (int64_t plane = 0; plane < p.planes; ++plane) {
      for (int64_t i = part.y.begin; i < part.y.end; ++i) {
        for (int64_t j = part.x.begin; j < part.x.end; j += wide) {
          const int64_t k = ((plane * rows.taps + i) * cols.taps + j) * p.depth;
          const int64_t low = max(k, k0), high = min(k + wide * p.depth, k1);
          if (low >= high) continue;
          const int64_t row = rows.offset0 + i * rows.offset_step, col = cols.offset0 + j * cols.offset_step;
          const int64_t tap = (plane * p.kernel[0] + rows.tap0 + i * rows.tap_step) * p.kernel[1] + cols.tap0 + j * cols.tap_step;
          runs[count++] = {plane * p.plane() + (row * cols.in_size + col) * p.x_channels() + low - k, tap * p.depth + low - k,
                           high - low};
        }
      }
    }
    return count;
  }

  // Keeps the pixels of one share.
  void keep(int64_t at, int64_t shares) {
    int64_t kept = 0;
    for (int64_t i = 0; i < part_count; ++i) {
      const Part part = parts[i].share(i, at, shares);
      if (part.begin < part.end) parts[kept++] = part;
    }
    part_count = kept;
  }

  // Column blocks [begin, end), counted through all groups.
  void multiply(const Product& p, int64_t begin, int64_t end) {
    const int64_t blocks = p.loops->blocks(p.columns);
    int64_t pixels = 0;
    for (int64_t i = 0; i < part_count; ++i) pixels += parts[i].end - parts[i].begin;
    for (int64_t k0 = 0; k0 < p.k_total; k0 += p.k_block) {
      const int64_t k1 = min(p.k_total, k0 + p.k_block);
      const bool last = k1 == p.k_total;
      for (int64_t q = begin, at_once; q < end; q += at_once) {
        const int64_t g = q / blocks, block = q % blocks, column = g * p.columns + block * p.loops->columns;
        at_once = k1 - k0 == p.k_total ? p.loops->blocks_at_once(block, min(blocks, block + end - q), p.k_total, p.columns) : 1;
        const PackedBlock b =
            p.loops->block(p.packed + g * p.group_stride(), p.panel_stride(), block, p.columns, at_once);
        // Weights of the next column block, or of the first one at the next depth, come while this one is
        // computed.
        Ahead ahead = {b.b, 0};
        if (p.all_taps()) {
          const int64_t next = q + at_once < end ? q + at_once : begin,
                        depth = q + at_once < end ? k0 : min(k1, p.k_total - 1);
          const PackedBlock then = p.loops->block(p.packed + next / blocks * p.group_stride(), p.panel_stride(),
                                                 next % blocks, p.columns);
          ahead.at = then.b + depth * kPackedColumns;
        }
        const Finish f = {k0 > 0, last && p.e.bias ? p.e.bias + column : nullptr,
                          last && p.e.residual ? p.e.residual + column : nullptr,
                          last ? p.e.activation : Activation::none};
        for (int64_t i = 0; i < part_count; ++i) {
          const Part& part = parts[i];
          const int64_t count = part.end - part.begin, run_count = runs_of(p, part, k0, k1);
          const RowList rows = {p.x + g * p.depth, p.y + column, a + part.begin, c + part.begin, 0, 0};
          const bool again = q == begin && q + at_once >= end && k1 - k0 == p.k_total;  // all weights are in the cache
          if (p.all_taps() && !again) ahead.floats = (k1 - k0) * (k1 - k0 == p.k_total ? p.loops->columns : kPackedColumns) * at_once * count / pixels;
          if (q == begin && p.is_matrix && k1 - k0 == p.k_total) {  // first the pixels come, a tile before they are used
            ahead = {rows.a + rows.a_row[0] + p.loops->rows * p.k_total, count * p.k_total};
          }
          p.loops->multiply(count, rows, runs, run_count, b, f, ahead);
          ahead.at += ahead.floats;
        }
      }
    }
  }
};

constexpr int64_t kFewPixels = 24;  // of a share, for which weights come into the cache
constexpr int64_t kWeightsEach = 6;  // weights that all threads read cost as much as this part of them from another's cache

int32_t multiply(const myc_call* call, Product& p) {
  p.pixels = p.n * p.axis[0].outputs * p.axis[1].outputs;
  if (p.pixels == 0 || p.columns == 0) return MYC_OK;
  Scratch scratch(call);
  for (int d = 0; d < 2; ++d) {
    if (!p.classes[d].make(scratch, p.axis[d])) return MYC_E_MEMORY;
  }
  p.joined = p.group == 1 && p.axis[1].tap_step == 1 && p.axis[1].offset_step == 1;
  p.k_total =
      max<int64_t>(1, p.planes * p.axis[0].taps * p.axis[1].taps * p.depth);  // 1: no taps, but the epilogue must run
  p.is_matrix = p.group == 1 && p.planes == 1;
  for (const Axis& axis : p.axis) {
    p.is_matrix &= axis.taps == 1 && axis.offset0 == 0 && axis.in_step == 1 && axis.outputs == axis.in_size;
  }
  p.k_block = ceil_div(p.k_total, ceil_div(p.k_total, depth_at_once(*p.loops)));
  const int64_t most = clamp(kBlockFloats / p.k_block, 8 * p.loops->rows, kMostPixels);
  p.block_pixels = round_up(ceil_div(p.pixels, ceil_div(p.pixels, most)), p.loops->rows);
  const int64_t pixel_blocks = ceil_div(p.pixels, p.block_pixels);
  // Threads share the pixels, as most other kernels do, so that each has in its cache what it made before; not where
  // the weights, which all of them read then, are more than what would go from cache to cache.
  const int64_t workers = max_workers(call), inputs = p.n * p.planes * p.axis[0].in_size * p.axis[1].in_size;
  p.shares = 1;
  if (p.k_total * p.columns < kWeightsEach * (inputs * p.depth + p.pixels * p.columns / 2))
    p.shares = clamp(p.block_pixels / kFewPixels, int64_t{1}, ceil_div(workers, pixel_blocks));
  const int64_t column_blocks = p.loops->blocks(p.columns) * p.group;
  const int64_t bytes = Block::bytes(p);
  char* memory = scratch.take<char>(bytes * workers);
  if (!memory) return MYC_E_MEMORY;
  // A unit of work is one column block of one share of a block of pixels; about 20 us of one core make a piece.
  const int64_t work = p.block_pixels * p.k_total * p.loops->columns / p.shares;
  parallel_for_worker(call, pixel_blocks * p.shares * column_blocks, (int64_t{1} << 20) / (work + 1) + 1,
                      [&](int64_t begin, int64_t end, int32_t worker) {
                        Block block(p, memory + worker * bytes);
                        while (begin < end) {
                          const int64_t share = begin / column_blocks, column = begin % column_blocks;
                          const int64_t pixel = share / p.shares * p.block_pixels;
                          const int64_t count = min(end - begin, column_blocks - column);
                          block.fill(p, pixel, min(p.pixels, pixel + p.block_pixels));
                          if (p.shares > 1) block.keep(share % p.shares, p.shares);
                          block.multiply(p, column, column + count);
                          begin += count;
                        }
                      });
  return MYC_OK;
}

int64_t gcd(int64_t a, int64_t b) { return b == 0 ? a : gcd(b, a % b); }

// Position i of x gets dy[o] w[t] wherever i + pad = o stride + t dilation.  Positions with one remainder r
// of i by the stride share their taps: those with t dilation = r + pad (mod stride), every stride /
// gcd(stride, dilation)-th.  From one such tap down to the next o rises by dilation / gcd, so it is a
// convolution of dy with stride 1.
Axis gradient_axis(const ConvLast& s, int d, int64_t r) {
  const int64_t stride = s.stride[d], dilation = s.dilation[d], common = gcd(stride, dilation);
  const int64_t every = stride / common, reach = r + s.pad[d];
  int64_t first = 0;
  while (first < every && (reach - first * dilation) % stride != 0) ++first;
  Axis axis = {ceil_div(s.in[d] - r, stride), r, stride, 1, s.out[d], 0, 0, every, 0, dilation / common};
  if (first < every && first < s.kernel[d]) {
    axis.taps = (s.kernel[d] - 1 - first) / every + 1;
    const int64_t highest = first + (axis.taps - 1) * every;
    axis.tap0 = s.kernel[d] - 1 - highest;  // the pack's taps are flipped
    axis.offset0 = (reach - highest * dilation) / stride;
  }
  return axis;
}

int32_t multiply(const myc_call* call, const TileLoops& loops, const ConvLast& s, int64_t planes, const float* x, const float* packed,
                 const ConvEpilogue& e, float* y) {
  Product p = {};
  p.loops = &loops;
  p.n = s.n, p.group = s.group, p.planes = planes, p.depth = s.group_c() / planes, p.columns = s.group_o(), p.y_pixel = s.y_pixel;
  for (int d = 0; d < 2; ++d) {
    p.axis[d] = {s.out[d], 0, 1, s.stride[d], s.in[d], s.kernel[d], 0, 1, -s.pad[d], s.dilation[d]};
    p.out[d] = s.out[d], p.kernel[d] = s.kernel[d];
  }
  p.x = x, p.packed = packed, p.e = e, p.y = y;
  return multiply(call, p);
}

}  // namespace

int32_t conv_last_direct(const myc_call* call, const TileLoops& loops, const ConvLast& s, const float* x, const float* packed,
                         const ConvEpilogue& e, float* y) {
  return multiply(call, loops, s, 1, x, packed, e, y);
}

int32_t conv_last_planes(const myc_call* call, const TileLoops& loops, const ConvLast& s, const float* x, const float* packed,
                         const ConvEpilogue& e, float* y) {
  return multiply(call, loops, s, max<int64_t>(s.c, 1), x, packed, e, y);
}

int32_t conv_last_direct_part(const myc_call* call, const TileLoops& loops, const ConvLast& s, const ConvPart& part, const float* x,
                              const float* packed, const ConvEpilogue& e, float* y) {
  Product p = {};
  p.loops = &loops;
  p.n = 1, p.group = s.group, p.planes = 1, p.depth = s.group_c(), p.columns = s.group_o(), p.y_pixel = s.y_pixel;
  for (int d = 0; d < 2; ++d) {
    p.axis[d] = {part.size[d], part.begin[d], 1, s.stride[d], s.in[d], s.kernel[d], 0, 1,
                 part.begin[d] * s.stride[d] - s.pad[d], s.dilation[d]};
    p.out[d] = s.out[d], p.kernel[d] = s.kernel[d];
  }
  const int64_t results = part.image * s.out[0] * s.out[1] * s.y_pixel;
  p.x = x + part.image * s.in[0] * s.in[1] * s.c, p.packed = packed, p.e = e, p.y = y + results;
  if (e.residual) p.e.residual = e.residual + results;
  return multiply(call, p);
}

int32_t conv_last_direct_input_grad(const myc_call* call, const TileLoops& loops, const ConvLast& s, const float* dy,
                                    const float* packed, float* dx) {
  for (int64_t r = 0; r < min(s.stride[0], s.in[0]); ++r) {
    for (int64_t q = 0; q < min(s.stride[1], s.in[1]); ++q) {
      Product p = {};
      p.loops = &loops;
      p.n = s.n, p.group = s.group, p.planes = 1, p.depth = s.group_o(), p.columns = s.group_c(), p.y_pixel = s.c;
      p.axis[0] = gradient_axis(s, 0, r), p.axis[1] = gradient_axis(s, 1, q);
      for (int d = 0; d < 2; ++d) p.out[d] = s.in[d], p.kernel[d] = s.kernel[d];
      p.x = dy, p.packed = packed, p.y = dx;
      const int32_t status = multiply(call, p);
      if (status != MYC_OK) return status;
    }
  }
  return MYC_OK;
}

}  // namespace mycelia
