// Weight gradient of a convolution with the channels last: dw[o][i][tap] = sum over positions of x[position, tap][i]
// * dy[position][o].
//
// Positions are taken in blocks of whole output rows.  A block of dy is copied into panels [position][kTileColumns]
// and the rows of x that it meets into panels [pixel][kTileRows], padded with zeros and split by the stride, so that
// every tap reads the same panel at another offset.  A register tile is the outer product of one channel panel and
// one output panel for one tap, summed over the block.  Few input channels: the taps of a row and the channels lie
// side by side in memory, so they make the tile's rows together.
// Cost: 2 n positions O (I / group) taps flops.  The sum over positions is cut into parts by the shape alone and every
// tile of a part has one owner: the result does not depend on the number of threads.
#include "convolution/channels_last/sum.h"
#include "convolution/conv_shape.h"
#include "gemm/gemm.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int64_t kBlock = 256;      // positions of a block: a panel of dy stays in L1 (16 KB on AVX2)
constexpr int64_t kPartFloats = 1 << 16;  // results up to this size are summed in several parts
constexpr int64_t kParts = 8;
constexpr int64_t kFewChannels = 4;  // up to here taps and channels make the rows together

// Output rows side by side in one image.
struct Band {
  int64_t image, begin, end;
};

struct Plan {
  int64_t n, group, channels, outputs;  // channels and outputs of a group
  int64_t in[2], out[2], kernel[2], dilation[2], pad[2];
  int64_t step[2];    // input pixels between pixels that are packed
  int64_t stride[2];  // packed pixels between positions
  bool merged;
  // Blocks: `images` whole images, or one of `bands` of an image.
  int64_t images, bands, blocks;
  // Packed x: a pixel row is `phases` pieces of `columns` pixels; sizes in floats.
  int64_t phases, columns, pixel, row, advance, x_panels, x_panel;
  int64_t rows_of_x, taps;  // of the tile: rows over all panels, taps that are not rows
  int64_t y_panels, y_panel;

  int64_t c() const { return channels * group; }
  int64_t o() const { return outputs * group; }
  int64_t k() const { return channels * kernel[0] * kernel[1]; }  // elements of dw for an output
  int64_t rows_packed(int64_t rows) const { return (rows - 1) * stride[0] + (kernel[0] - 1) * dilation[0] + 1; }
  int64_t sums() const { return x_panels * taps * kTileRows * kTileColumns; }  // for one output panel
  int64_t tap(int64_t t) const {
    if (merged) return t * dilation[0] * row;
    const int64_t x = t % kernel[1] * dilation[1];
    return t / kernel[1] * dilation[0] * row + (x % stride[1] * columns + x / stride[1]) * pixel;
  }
  // Pieces of block b, in order.
  int64_t pieces(int64_t b) const { return bands > 1 ? 1 : min(images, n - b * images); }
  Band piece(int64_t b, int64_t i) const {
    if (bands > 1) return {b / bands, out[0] * (b % bands) / bands, out[0] * (b % bands + 1) / bands};
    return {b * images + i, 0, out[0]};
  }
};

Plan make_plan(const ConvLast& s) {
  Plan p = {};
  p.n = s.n, p.group = s.group, p.channels = s.group_c(), p.outputs = s.group_o();
  for (int d = 0; d < 2; ++d) {
    p.in[d] = s.in[d], p.out[d] = s.out[d], p.kernel[d] = s.kernel[d];
    p.dilation[d] = s.dilation[d], p.pad[d] = s.pad[d];
    const bool one = s.kernel[d] == 1;  // pixels that the stride skips are not packed
    p.step[d] = one ? s.stride[d] : 1, p.stride[d] = one ? 1 : s.stride[d];
  }
  const int64_t plane = s.out[0] * s.out[1];
  p.images = max(int64_t{1}, kBlock / plane);
  p.bands = plane <= kBlock ? 1 : ceil_div(s.out[0], max(int64_t{1}, kBlock / s.out[1]));
  p.blocks = p.bands > 1 ? s.n * p.bands : ceil_div(s.n, p.images);
  const int64_t most_rows = p.bands > 1 ? ceil_div(s.out[0], p.bands) : s.out[0];
  const int64_t pieces = p.bands > 1 ? 1 : min(p.images, s.n);

  const int64_t width = (s.out[1] - 1) * p.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
  p.merged = p.channels <= kFewChannels && s.dilation[1] == 1;
  if (p.merged) {
    p.phases = 1, p.columns = width, p.pixel = p.channels, p.row = width * p.pixel;
    p.advance = p.stride[1] * p.pixel;
    p.rows_of_x = p.channels * s.kernel[1], p.taps = s.kernel[0];
  } else {
    // One pixel between the phases takes what the copy of a pixel writes too much.
    p.phases = p.stride[1], p.columns = ceil_div(width, p.stride[1]) + (p.stride[1] > 1);
    p.pixel = p.advance = kTileRows, p.row = p.phases * p.columns * p.pixel;
    p.rows_of_x = p.channels, p.taps = s.taps();
  }
  p.x_panels = RowPanels(p.rows_of_x).count;
  p.x_panel = panel_stride(pieces * p.rows_packed(most_rows) * p.row + kCopies * kLanes);
  p.y_panels = ceil_div(p.outputs, int64_t{kTileColumns});
  p.y_panel = panel_stride(pieces * most_rows * s.out[1] * kTileColumns);
  return p;
}

// ---- packing ----

// One pixel's channels into their panels; `to` is the pixel's place in the first panel.  Each copy may write into the
// next pixel, which is written later.  `room`: floats that may be read.
inline void pack_pixel(const RowPanels& panels, const float* from, int64_t room, float* to, int64_t panel) {
  int64_t i = 0;
  for (; i < panels.count && panels.begin(i) + kCopies * kLanes <= room; ++i) {
    const float* a = from + panels.begin(i);
    for (int v = 0; v < kCopies; ++v) store(to + i * panel + v * kLanes, load(a + v * kLanes));
  }
  for (; i < panels.count; ++i)  // the end of the tensor
    for (int64_t e = 0; e < panels.height(i); ++e) to[i * panel + e] = from[panels.begin(i) + e];
}

// Rows [begin, end) of an image as positions see them; `begins`: where each panel's channels begin.
void pack_x(const Plan& p, const float* x, int64_t g, const Band& rows, const int64_t* begins, float* to) {
  const int64_t c = p.c(), height = p.rows_packed(rows.end - rows.begin);
  const float* end = x + p.n * p.in[0] * p.in[1] * c;
  const int64_t width = p.columns - (p.phases > 1);
  const int64_t safe = p.x_panels ? begins[p.x_panels - 1] + kCopies * kLanes : 0;  // floats a whole copy reads
  for (int64_t r = 0; r < height; ++r, to += p.row) {
    const int64_t y = (rows.begin * p.stride[0] + r) * p.step[0] - p.pad[0];
    const bool inside = y >= 0 && y < p.in[0];
    const float* line = x + ((rows.image * p.in[0] + y) * p.in[1]) * c + g * p.channels;
    if (p.merged) {
      float* at = to;
      for (int64_t q = 0; q < p.columns; ++q, at += p.channels) {
        const int64_t e = q * p.step[1] - p.pad[1];
        const bool hit = inside && e >= 0 && e < p.in[1];
        for (int64_t i = 0; i < p.channels; ++i) at[i] = hit ? line[e * c + i] : 0.0f;
      }
      continue;
    }
    for (int64_t f = 0; f < p.phases; ++f) {
      float* at = to + f * p.columns * p.pixel;
      for (int64_t q = 0; q < width; ++q, at += p.pixel) {
        const int64_t e = (q * p.phases + f) * p.step[1] - p.pad[1];
        if (!inside || e < 0 || e >= p.in[1]) {
          for (int64_t i = 0; i < p.x_panels; ++i)
            for (int v = 0; v < kTileRows; ++v) at[i * p.x_panel + v] = 0.0f;
          continue;
        }
        const float* from = line + e * c;
        if (end - from >= safe) {
          for (int64_t i = 0; i < p.x_panels; ++i)
            for (int v = 0; v < kCopies; ++v)
              store(at + i * p.x_panel + v * kLanes, load(from + begins[i] + v * kLanes));
        } else {
          pack_pixel(RowPanels(p.rows_of_x), from, end - from, at, p.x_panel);
        }
      }
    }
  }
}

// Output channels [first, first + outputs) of `positions` positions side by side.
void pack_y(const Plan& p, const float* dy, int64_t positions, int64_t outputs, float* to) {
  const int64_t o = p.o(), whole = outputs / kTileColumns, rest = outputs % kTileColumns;
  for (int64_t q = 0; q < positions; ++q, dy += o, to += kTileColumns) {
    for (int64_t i = 0; i < whole; ++i)
      for (int v = 0; v < kTileVectors; ++v)
        store(to + i * p.y_panel + v * kLanes, load(dy + i * kTileColumns + v * kLanes));
    if (rest)
      for (int v = 0; v < kTileVectors; ++v)
        store(to + whole * p.y_panel + v * kLanes,
              load_partial(dy + whole * kTileColumns + v * kLanes, clamp<int64_t>(rest - v * kLanes, 0, kLanes)));
  }
}

// dw[o][q] for the outputs of a panel from `parts` sums; row_of[q]: place of row q in a sum.
void finish(const Plan& p, const float* sums, int64_t parts, int64_t distance, const int64_t* row_of,
            int64_t outputs, float* dw) {
  store_turned(p.k(), outputs, dw, p.k(), [=](int64_t q, int64_t o) {
    const float* from = sums + row_of[q] + o;
    f32v sum = load(from);
    for (int64_t i = 1; i < parts; ++i) sum += load(from + i * distance);
    return sum;
  });
}

int32_t tiles_weight_grad(const myc_call* call, const ConvLast& s, const float* x, const float* dy, float* dw) {
  const int64_t positions = s.out[0] * s.out[1];
  if (s.o == 0 || s.c == 0) return MYC_OK;
  if (s.n == 0 || positions == 0) {
    memset(dw, 0, s.o * s.group_c() * s.taps() * sizeof(float));
    return MYC_OK;
  }
  const Plan p = make_plan(s);
  const RowPanels panels(p.rows_of_x);
  const int64_t all_sums = p.group * p.y_panels * p.sums();
  const int64_t parts = all_sums <= kPartFloats ? clamp(p.blocks / 4, int64_t{1}, kParts) : 1;
  const bool direct = p.blocks == 1;  // sums of a panel go to dw at once
  // Ranges of output panels are cut for the threads only: x is packed once for each.
  const int64_t threads = max_workers(call), wanted = ceil_div(2 * threads, parts * p.group);
  const int64_t ranges = threads > 1 ? clamp(wanted, int64_t{1}, p.y_panels) : 1;
  const int64_t panels_each = ceil_div(p.y_panels, ranges);

  Scratch scratch(call);
  const int64_t workers = threads, x_floats = (p.merged ? 1 : p.x_panels) * p.x_panel,
                y_floats = panels_each * p.y_panel, own = x_floats + y_floats + (direct ? p.sums() : 0);
  float* buffers = scratch.take<float>(workers * own);
  float* sums = direct ? nullptr : scratch.take<float>(parts * all_sums);
  const int64_t most_runs = p.bands > 1 ? ceil_div(s.out[0], p.bands) : min(p.images, s.n) * s.out[0];
  int64_t* runs = scratch.take<int64_t>(most_runs);
  int64_t* row_of = scratch.take<int64_t>(p.k());
  int64_t* begins = scratch.take<int64_t>(p.x_panels);
  if (!buffers || (!direct && !sums) || !runs || !row_of || !begins) return MYC_E_MEMORY;

  for (int64_t i = 0; i < p.x_panels; ++i) begins[i] = panels.begin(i);
  for (int64_t i = 0, panel = 0; i < p.rows_of_x; ++i) {
    if (i == panels.begin(panel + 1)) ++panel;
    for (int64_t t = 0; t < p.taps; ++t) {
      const int64_t q = p.merged ? (i % p.channels * p.kernel[0] + t) * p.kernel[1] + i / p.channels : i * p.taps + t;
      row_of[q] = ((panel * p.taps + t) * kTileRows + i - panels.begin(panel)) * kTileColumns;
    }
  }
  // Runs of a block: all blocks have the same, the last ones fewer.
  const int64_t piece_rows = p.bands > 1 ? most_runs : s.out[0];
  for (int64_t i = 0; i < most_runs; ++i)
    runs[i] = (i / piece_rows * p.rows_packed(piece_rows) + i % piece_rows * p.stride[0]) * p.row;

  const auto run = [&](int64_t task, float* xs, float* ys, float* panel_sums) {
    const int64_t range = task % ranges, part = task / ranges % parts, g = task / ranges / parts;
    const int64_t first = range * panels_each, last = min(p.y_panels, first + panels_each);
    if (first >= last) return;
    const int64_t from = first * kTileColumns, outputs = min(p.outputs, last * kTileColumns) - from;
    const int64_t begin = p.blocks * part / parts, stop = p.blocks * (part + 1) / parts;
    for (int64_t b = begin; b < stop; ++b) {
      int64_t rows = 0;
      for (int64_t i = 0; i < p.pieces(b); ++i) {
        const Band piece = p.piece(b, i);
        const int64_t height = piece.end - piece.begin;
        pack_x(p, x, g, piece, begins, xs + i * p.rows_packed(piece_rows) * p.row);
        pack_y(p, dy + ((piece.image * s.out[0] + piece.begin) * s.out[1]) * s.o + g * p.outputs + from,
               height * s.out[1], outputs, ys + i * piece_rows * s.out[1] * kTileColumns);
        rows += height;
      }
      for (int64_t panel = first; panel < last; ++panel) {
        float* c = direct ? panel_sums : sums + (part * p.group * p.y_panels + g * p.y_panels + panel) * p.sums();
        const float* y = ys + (panel - first) * p.y_panel;
        const bool narrow = p.outputs - panel * kTileColumns <= kLanes;
        for (int64_t i = 0; i < p.x_panels; ++i) {
          const int64_t height = panels.height(i);
          const SumTile tile = narrow ? sum_tile_of<1>(height) : sum_tile_of<kTileVectors>(height);
          const float* a = xs + (p.merged ? begins[i] : i * p.x_panel);
          for (int64_t t = 0; t < p.taps; ++t)
            tile(a + p.tap(t), runs, rows, s.out[1], p.advance, y, c + (i * p.taps + t) * kTileRows * kTileColumns,
                 b > begin);
        }
        if (parts == 1 && b + 1 == stop) {
          const int64_t at = panel * kTileColumns;
          finish(p, c, 1, 0, row_of, min<int64_t>(kTileColumns, p.outputs - at), dw + (g * p.outputs + at) * p.k());
        }
      }
    }
  };
  const int64_t tasks = p.group * parts * ranges;
  const int64_t task_work = 8 * s.n * positions * p.outputs * p.k() / (parts * ranges);
  parallel_for_worker(call, tasks, kMinParallelWork / (task_work + 1) + 1,
                      [&](int64_t begin, int64_t end, int32_t worker) {
                        float* buffer = buffers + worker * own;
                        for (int64_t i = begin; i < end; ++i)
                          run(i, buffer, buffer + x_floats, buffer + x_floats + y_floats);
                      });
  if (parts > 1) {
    parallel_rows(call, p.group * p.y_panels, p.sums() * parts * 4, [&](int64_t i) {
      const int64_t g = i / p.y_panels, at = i % p.y_panels * kTileColumns;
      finish(p, sums + i * p.sums(), parts, all_sums, row_of, min<int64_t>(kTileColumns, p.outputs - at),
             dw + (g * p.outputs + at) * p.k());
    });
  }
  return MYC_OK;
}

// Both ways multiply zeros around x.
void restore_border(const myc_call* call, const ConvLast& s, const float* x, const float* dy, float* dw) {
  const auto layout = [](const int64_t (&size)[2], int64_t channels) {
    return ConvLayout{size[0] * size[1] * channels, 1, channels};
  };
  ConvShape shape = {s.n, s.c, s.o, s.group, {1}, {1}, {1}, {1}, {1}, {0}};
  for (int d = 0; d < 2; ++d) {
    shape.in[1 + d] = s.in[d], shape.out[1 + d] = s.out[d], shape.kernel[1 + d] = s.kernel[d];
    shape.stride[1 + d] = s.stride[d], shape.dilation[1 + d] = s.dilation[d], shape.pad[1 + d] = s.pad[d];
  }
  conv_restore_border(call, ConvResult::weight_grad, shape, layout(s.in, s.c), layout(s.out, s.o), x, dy, nullptr, dw);
}

}  // namespace

KERNEL_FN(conv_last_weight_grad, f32) {
  const auto& a = attrs<myc_conv_last_weight_grad_attrs>(call);
  const myc_tensor &x = input(call, 0), &dy = input(call, 1);
  const auto entry = [](const myc_ints& list, int i) { return list.v[list.n == 1 ? 0 : i]; };
  ConvLast s = {x.shape[0], x.shape[3], dy.shape[3], a.group, {}, {}, {}, {}, {}, {}, dy.shape[3]};
  for (int d = 0; d < 2; ++d) {
    s.in[d] = x.shape[1 + d], s.out[d] = dy.shape[1 + d], s.kernel[d] = entry(a.kernel, d);
    s.stride[d] = entry(a.stride, d), s.pad[d] = entry(a.pad, d), s.dilation[d] = entry(a.dilation, d);
  }
  bool pointwise = s.group == 1;  // every position of x meets the same one of dy: one product of matrices
  for (int d = 0; d < 2; ++d) pointwise = pointwise && s.kernel[d] == 1 && s.stride[d] == 1 && s.in[d] == s.out[d];
  if (pointwise)
    return gemm(call->ctx, true, false, s.o, s.c, s.n * s.in[0] * s.in[1], in<float>(call, 1), s.o, in<float>(call, 0),
                s.c, out<float>(call), s.c);
  const bool depthwise = s.group > 1 && s.group == s.c && s.group == s.o;
  const float *images = in<float>(call, 0), *gradient = in<float>(call, 1);
  float* dw = out<float>(call);
  int32_t status = MYC_OK;
  bool done = false;
  if (a.algorithm == 1 && !depthwise && winograd_weight_grad_pays(s))
    status = winograd_weight_grad(call, s, images, gradient, dw, done);
  if (status != MYC_OK || done) return status;
  status = depthwise ? conv_last_depthwise_weight_grad(call, s, images, gradient, dw)
                     : tiles_weight_grad(call, s, images, gradient, dw);
  if (status == MYC_OK) restore_border(call, s, images, gradient, dw);
  return status;
}

}  // namespace mycelia::MYC_ISA
