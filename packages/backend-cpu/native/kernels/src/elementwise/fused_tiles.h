// The iteration space of fused_map, seen as rows of `length` elements, and how it is cut into tiles: a tile is some whole
// rows, or a piece of one row when rows are long and nobody needs them whole.  Tiles depend on the shapes alone: results
// have the same bits for any number of threads.  For fused.cc alone.
#ifndef MYCELIA_FUSED_TILES_H_
#define MYCELIA_FUSED_TILES_H_

#include "elementwise/fused_program.h"

namespace mycelia::MYC_ISA {
namespace {

constexpr int64_t kTile = 1024;         // elements of a tile: 4 KB for each value, see docs/fusion.md
constexpr int64_t kLongRow = 256;       // from here on a row is a tile: what belongs to rows are numbers then

// How an input reaches a tile.
enum Way {
  kFlat,      // as large as the space: a pointer that moves on
  kNumber,    // one element
  kByRow,     // one element for each row, read by steps of a row's width
  kRun,       // a tile lies within one run of the broadcast: a pointer, or one number
  kPeriodic,  // a tile is whole periods: laid out once
  kGathered   // laid out for each tile
};

struct Space {
  int64_t size, length, rows;          // elements, elements of a row, rows
  int64_t tile_rows, tile_length;      // rows of a tile, or 1 and the elements of a piece of a row
  int64_t pieces;                      // of a row
  int64_t tiles;
  int rank;                            // axes that are left when neighbours are merged
  int64_t shape[MYC_MAX_RANK];
  int64_t stride[MYC_FUSED_MAX_INPUTS][MYC_MAX_RANK];
  Way way[MYC_FUSED_MAX_INPUTS];
  int64_t stage[MYC_FUSED_MAX_INPUTS];  // number of the tile-sized block of a laid out input
  int64_t stages;
};

// Copies elements [start, start + count) of the broadcast of x.
template <class T>
void lay_out(const Space& s, int k, const T* x, int64_t start, int64_t count, T* to) {
  int64_t index[MYC_MAX_RANK], offset = 0, rest = start;
  for (int d = s.rank - 1; d >= 0; --d) {
    index[d] = rest % s.shape[d];
    rest /= s.shape[d];
    offset += index[d] * s.stride[k][d];
  }
  const int last = s.rank - 1;
  const int64_t step = s.stride[k][last];
  for (int64_t done = 0; done < count;) {
    const int64_t n = min(s.shape[last] - index[last], count - done);
    if (step == 1) {
      for (int64_t i = 0; i < n; ++i) to[done + i] = x[offset + i];
    } else {
      const T value = x[offset];
      for (int64_t i = 0; i < n; ++i) to[done + i] = value;
    }
    done += n;
    offset -= index[last] * step;
    index[last] = 0;
    for (int d = last - 1; d >= 0; --d) {
      offset += s.stride[k][d];
      if (++index[d] < s.shape[d]) break;
      offset -= s.shape[d] * s.stride[k][d];
      index[d] = 0;
    }
  }
}

// Merges neighbouring axes on which all inputs agree; fills size, rank, shape and stride.
void merge_axes(const myc_call* call, Space* s) {
  int rank = 0;
  for (int i = 0; i < call->n_in; ++i) rank = max(rank, static_cast<int>(input(call, i).rank));
  int64_t running[MYC_FUSED_MAX_INPUTS], reversed_shape[MYC_MAX_RANK];
  int64_t reversed[MYC_FUSED_MAX_INPUTS][MYC_MAX_RANK];
  for (int i = 0; i < call->n_in; ++i) running[i] = 1;
  int merged_rank = 0;
  for (int back = 1; back <= rank; ++back) {
    int64_t n = 1, stride[MYC_FUSED_MAX_INPUTS];
    for (int i = 0; i < call->n_in; ++i) {
      const myc_tensor& t = input(call, i);
      const int64_t own = t.rank >= back ? t.shape[t.rank - back] : 1;
      stride[i] = own == 1 ? 0 : running[i];
      running[i] *= own;
      if (own != 1) n = own;
    }
    if (n == 1) continue;
    bool merge = merged_rank > 0;
    for (int i = 0; merge && i < call->n_in; ++i)
      merge = stride[i] == reversed[i][merged_rank - 1] * reversed_shape[merged_rank - 1];
    if (merge) {
      reversed_shape[merged_rank - 1] *= n;
      continue;
    }
    for (int i = 0; i < call->n_in; ++i) reversed[i][merged_rank] = stride[i];
    reversed_shape[merged_rank++] = n;
  }
  if (merged_rank == 0) {
    reversed_shape[0] = 1;
    for (int i = 0; i < call->n_in; ++i) reversed[i][0] = 0;
    merged_rank = 1;
  }
  s->rank = merged_rank;
  s->size = 1;
  for (int d = 0; d < merged_rank; ++d) {
    s->shape[d] = reversed_shape[merged_rank - 1 - d];
    s->size *= s->shape[d];
    for (int i = 0; i < call->n_in; ++i) s->stride[i][d] = reversed[i][merged_rank - 1 - d];
  }
}

// Elements of the trailing `axes` axes of the space.
int64_t trailing(const myc_call* call, int64_t axes) {
  int64_t n = 1;
  for (int64_t back = 1; back <= axes; ++back) {
    int64_t own = 1;
    for (int i = 0; i < call->n_in; ++i) {
      const myc_tensor& t = input(call, i);
      if (t.rank >= back && t.shape[t.rank - back] != 1) own = t.shape[t.rank - back];
    }
    n *= own;
  }
  return n;
}

int64_t common_multiple(int64_t a, int64_t b) {
  int64_t x = a, y = b;
  while (y != 0) {
    const int64_t rest = x % y;
    x = y, y = rest;
  }
  return a / x * b;
}

// Rows after which input k repeats, or 0.
int64_t period_in_rows(const Space& s, int k) {
  int first = 0;
  while (first < s.rank && s.stride[k][first] == 0) ++first;
  int64_t period = 1;
  for (int d = first; d < s.rank; ++d) period *= s.shape[d];
  return first > 0 && period % s.length == 0 ? period / s.length : 0;
}

// Chooses tiles and the way of each input.
void plan_tiles(const myc_call* call, const Code& code, Space* s) {
  const bool whole_rows = code.row_axes > 0;
  const int64_t inner = s->shape[s->rank - 1];
  s->length = whole_rows               ? trailing(call, code.row_axes)
              : code.column_axes > 0 ? trailing(call, code.column_axes)
                                       : inner;
  s->rows = s->length > 0 ? s->size / s->length : 0;
  bool row_wide[MYC_FUSED_MAX_INPUTS] = {};
  for (int64_t i = 0; i < code.n_steps; ++i) {
    const Step& step = code.steps[i];
    const bool reads_rows = step.is_row_wide || step.primitive == MYC_FUSED_SPREAD;
    for (int k = 0; reads_rows && k < myc_fused_arity[step.primitive]; ++k)
      if (step.operand[k] < code.n_in) row_wide[step.operand[k]] = true;
  }
  if (s->length > kTile && !whole_rows) {
    s->tile_rows = 1;
    s->pieces = ceil_div(s->length, kTile);
    s->tile_length = round_up(ceil_div(s->length, s->pieces), 16);
    s->pieces = ceil_div(s->length, s->tile_length);
  } else {
    const bool is_long = whole_rows && s->length >= kLongRow;
    s->tile_rows = is_long ? 1 : max(int64_t{1}, kTile / max(s->length, int64_t{1}));
    int64_t common = 1;
    for (int k = 0; k < call->n_in; ++k) {
      const int64_t rows = input(call, k).size == s->size ? 0 : period_in_rows(*s, k);
      if (rows > 0 && rows <= s->tile_rows && common_multiple(common, rows) <= s->tile_rows)
        common = common_multiple(common, rows);
    }
    s->tile_rows = s->tile_rows / common * common;
    s->pieces = 1;
    s->tile_length = s->tile_rows * s->length;
  }
  s->tiles = ceil_div(s->rows, s->tile_rows) * s->pieces;
  s->stages = 0;
  for (int k = 0; k < call->n_in; ++k) {
    const int64_t size = input(call, k).size;
    if (row_wide[k]) {
      s->way[k] = size == 1 ? kNumber : kByRow;
    } else if (size == 1) {
      s->way[k] = kNumber;
    } else if (size == s->size) {
      s->way[k] = kFlat;
    } else if (s->tile_rows == 1 && inner % s->length == 0) {
      s->way[k] = kRun;
    } else {
      const int64_t rows = period_in_rows(*s, k);
      s->way[k] = rows > 0 && s->pieces == 1 && s->tile_rows % rows == 0 ? kPeriodic : kGathered;
      s->stage[k] = s->stages++;
    }
  }
}

}  // namespace
}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_FUSED_TILES_H_
