// fused_map: an interpreter that runs a program of elementwise steps and reductions (see ops/lowered/fused.py) tile
// by tile.  A tile is a run of the iteration space whose values lie in L1; each step is one loop over the
// tile. So memory is read once for each input and written once for each output, whatever the number of steps.
//
// The space is seen as rows of `length` elements. A tile is some whole rows, or a piece of one row when rows
// are long and nobody needs them whole. Tiles depend on the shapes alone: results have the same bits for any
// number of threads.
#include "elementwise/elementwise.h"
#include "elementwise/fused_steps.h"
#include "reductions/reduce_run.h"
#include "reductions/sums.h"

namespace mycelia::MYC_ISA {

namespace {

constexpr int64_t kTile = 1024;         // elements of a tile: 4 KB for each value, see docs/fusion.md
constexpr int64_t kLongRow = 256;       // from here on a row is a tile: what belongs to rows are numbers then
constexpr int64_t kColumnGroups = 16;   // groups of tiles that sum columns apart from each other
constexpr int64_t kStepWork = 8;        // work of a step on an element, see kMinParallelWork

struct Step {
  int64_t primitive, is_row_wide, to, operand[3];
};
struct Output {
  int64_t kind, kept, type;
};
enum Kind { kFull, kRow, kAll, kColumn };

// The program as it lies in the attribute.
struct Code {
  int64_t n_in, n_constants, n_buffers, n_out, row_axes, column_axes, n_steps;
  const int64_t* constants;
  const Output* outputs;
  const Step* steps;

  explicit Code(const int64_t* words) {
    n_in = words[0], n_constants = words[1], n_buffers = words[2], n_out = words[3];
    row_axes = words[4], column_axes = words[5], n_steps = words[6];
    constants = words + 7;
    outputs = reinterpret_cast<const Output*>(constants + n_constants);
    steps = reinterpret_cast<const Step*>(outputs + n_out);
  }
  int64_t first_buffer() const { return n_in + n_constants; }
  int64_t first_output() const { return first_buffer() + n_buffers; }
};
constexpr int kMaxValues =
    MYC_FUSED_MAX_INPUTS + MYC_FUSED_MAX_CONSTANTS + MYC_FUSED_MAX_BUFFERS + MYC_FUSED_MAX_OUTPUTS;

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

// A step with its operands found. `numbers`: operands that are one number in every tile.
struct Bound {
  StepFn run;
  int64_t primitive, to, operand[3];
  unsigned numbers;
  bool is_row_wide;
  bool is_single;  // full width, but its result is one number too
  bool fills;      // and an output wants it everywhere
};

struct Bindings {
  Bound steps[MYC_FUSED_MAX_STEPS];
  int64_t count;
};

// Whether step i + 1 rounds the result of step i in its place.
bool is_rounded_next(const Code& code, int64_t i) {
  if (i + 1 >= code.n_steps) return false;
  const Step &step = code.steps[i], &next = code.steps[i + 1];
  const bool rounds = next.primitive == MYC_FUSED_ROUND_F16 || next.primitive == MYC_FUSED_ROUND_BF16;
  return rounds && next.operand[0] == step.to && next.to == step.to && next.is_row_wide == step.is_row_wide;
}

// Whether step i rounds a buffer that only the next step reads, which rounds as well, to store 16 bits.
bool is_rounded_again(const Code& code, int64_t i) {
  const Step& step = code.steps[i];
  if (i + 1 >= code.n_steps || step.to < code.first_buffer() || step.to >= code.first_output()) return false;
  const Step& next = code.steps[i + 1];
  const int64_t store = step.primitive == MYC_FUSED_ROUND_F16 ? MYC_FUSED_STORE_F16 : MYC_FUSED_STORE_BF16;
  if (next.primitive != store || next.operand[0] != step.to || next.is_row_wide != step.is_row_wide) return false;
  for (int64_t j = i + 2; j < code.n_steps; ++j) {
    for (int k = 0; k < myc_fused_arity[code.steps[j].primitive]; ++k)
      if (code.steps[j].operand[k] == step.to) return false;
    if (code.steps[j].to == step.to) return true;
  }
  return true;
}

// Which values are one number in a tile is known before the first tile.
void bind(const myc_call* call, const Code& code, const Space& s, Bindings* b) {
  bool is_number[kMaxValues] = {};
  for (int k = 0; k < call->n_in; ++k)
    is_number[k] = s.way[k] == kNumber || (s.way[k] == kRun && s.stride[k][s.rank - 1] == 0);
  for (int64_t c = 0; c < code.n_constants; ++c) is_number[code.n_in + c] = true;
  b->count = 0;
  for (int64_t i = 0; i < code.n_steps; ++i) {
    const Step& step = code.steps[i];
    Bound& to = b->steps[b->count++];
    to = {step_function(step.primitive), step.primitive, step.to, {}, 0, step.is_row_wide != 0, false, false};
    for (int k = 0; k < myc_fused_arity[step.primitive]; ++k) {
      to.operand[k] = step.operand[k];
      if (is_number[step.operand[k]]) to.numbers |= 1u << k;
    }
    is_number[step.to] = false;
    const bool spreads = step.primitive == MYC_FUSED_SPREAD;
    if (spreads) to.run = step_function(MYC_FUSED_COPY);
    const unsigned all = (1u << myc_fused_arity[step.primitive]) - 1;
    const bool from_numbers = to.numbers == all || (spreads && s.tile_rows == 1);
    if (!to.is_row_wide && to.run && from_numbers) {
      to.is_single = true;
      to.fills = step.to >= code.first_output();
      is_number[step.to] = !to.fills;
      continue;
    }
    if (!to.run || spreads || !is_rounded_next(code, i)) continue;
    if (is_rounded_again(code, i + 1)) {
      ++i;
    } else if (const StepFn rounded = rounded_step_function(step.primitive, code.steps[i + 1].primitive)) {
      to.run = rounded, ++i;
    }
  }
}

template <class T>
void fill(T* y, int64_t n) {
  const T value = y[0];
  for (int64_t i = 1; i < n; ++i) y[i] = value;
}

// y[j] += the sum of x[r * width + j] over the rows of a tile.
void add_columns(const float* x, int64_t rows, int64_t width, float* y) {
  for (int64_t j = 0; j < width; j += kLanes) {
    const int64_t lanes = min(int64_t{kLanes}, width - j);
    f32v sum = {}, other = {};
    int64_t r = 0;
    for (; r + 2 <= rows; r += 2) {
      sum += load_lanes(x + r * width + j, lanes);
      other += load_lanes(x + (r + 1) * width + j, lanes);
    }
    if (r < rows) sum += load_lanes(x + r * width + j, lanes);
    store_lanes(y + j, load_lanes(y + j, lanes) + (sum + other), lanes);
  }
}

class Interpreter {
 public:
  Interpreter(const myc_call* call, const Code& code) : call_(call), code_(code) {}

  int32_t run() {
    merge_axes(call_, &space_);
    if (space_.size == 0) return run_empty();
    plan_tiles(call_, code_, &space_);
    bind(call_, code_, space_, &bindings_);
    for (int64_t c = 0; c < code_.n_constants; ++c) {
      const uint32_t bits = static_cast<uint32_t>(code_.constants[c]);
      memcpy(&constants_[c], &bits, sizeof(bits));
    }
    Scratch scratch(call_);
    if (!find_data(&scratch)) return MYC_E_MEMORY;
    int64_t n_all = 0, n_columns = 0;
    for (int64_t o = 0; o < code_.n_out; ++o) {
      slot_[o] = code_.outputs[o].kind == kAll ? n_all++ : code_.outputs[o].kind == kColumn ? n_columns++ : 0;
    }
    groups_ = n_columns > 0 ? min(kColumnGroups, ceil_div(space_.rows, space_.tile_rows)) : space_.tiles;
    block_ = round_up(space_.tile_length, 16);
    const int64_t blocks = code_.n_buffers + space_.stages, workers = max_workers(call_);
    float* const tiles = scratch.take<float>(max(int64_t{1}, workers * blocks * block_));
    double* const partial = n_all ? scratch.take<double>(n_all * space_.tiles) : nullptr;
    float* const sums = n_columns ? scratch.take<float>(n_columns * groups_ * space_.length) : nullptr;
    if (!tiles || (n_all && !partial) || (n_columns && !sums)) return MYC_E_MEMORY;
    partial_ = partial, sums_ = sums;
    const int64_t work = space_.size / groups_ * kStepWork * code_.n_steps;
    const int64_t grain = kMinParallelWork / (work + 1) + 1;
    parallel_for_worker(call_, groups_, grain, [&](int64_t begin, int64_t end, int32_t worker) {
      run_groups(begin, end, tiles + worker * blocks * block_);
    });
    finish();
    return MYC_OK;
  }

 private:
  // Where inputs are read. The first output may be the memory of one: every tile then reads it where it writes,
  // but for results of rows without the reduced axes, which broadcasting lines up with other axes; that input is
  // copied first.
  bool find_data(Scratch* scratch) {
    for (int k = 0; k < call_->n_in; ++k) {
      const myc_tensor& t = input(call_, k);
      data_[k] = t.data;
      const Output& first = code_.outputs[0];
      const bool moves = first.kind == kRow && first.kept != code_.row_axes && t.size > 1;
      if (!moves || t.data != output(call_, 0).data) continue;
      const int64_t bytes = t.size * item_size(t.dtype);
      char* const copy = scratch->take<char>(bytes);
      if (!copy) return false;
      memcpy(copy, t.data, bytes);
      data_[k] = copy;
    }
    return true;
  }

  // Tiles of groups [begin, end). Groups sum columns apart; without them a group is a tile.
  void run_groups(int64_t begin, int64_t end, float* memory) const {
    const Space& s = space_;
    const void* at[kMaxValues];
    for (int64_t c = 0; c < code_.n_constants; ++c) at[code_.n_in + c] = &constants_[c];
    for (int64_t i = 0; i < code_.n_buffers; ++i) at[code_.first_buffer() + i] = memory + i * block_;
    float* const stages = memory + code_.n_buffers * block_;
    for (int k = 0; k < call_->n_in; ++k) {
      at[k] = data_[k];
      if (s.way[k] != kPeriodic) continue;
      place_stage(k, 0, min(s.tile_length, s.size), stages);
      at[k] = stages + s.stage[k] * block_;
    }
    const int64_t row_tiles = s.tiles / s.pieces;
    for (int64_t g = begin; g < end; ++g) {
      if (sums_) {
        for (int64_t o = 0; o < code_.n_out; ++o)
          if (code_.outputs[o].kind == kColumn) memset(sums_of(o, g), 0, sizeof(float) * s.length);
        const int64_t first = g * row_tiles / groups_ * s.pieces;
        const int64_t last = (g + 1) * row_tiles / groups_ * s.pieces;
        for (int64_t t = first; t < last; ++t) run_tile(t, g, at, stages);
      } else {
        run_tile(g, g, at, stages);
      }
    }
  }

  void place_stage(int k, int64_t start, int64_t count, float* stages) const {
    float* const to = stages + space_.stage[k] * block_;
    if (input(call_, k).dtype == MYC_BOOL) {
      const uint8_t* const x = static_cast<const uint8_t*>(data_[k]);
      lay_out(space_, k, x, start, count, reinterpret_cast<uint8_t*>(to));
    } else if (item_size(input(call_, k).dtype) == 2) {
      const uint16_t* const x = static_cast<const uint16_t*>(data_[k]);
      lay_out(space_, k, x, start, count, reinterpret_cast<uint16_t*>(to));
    } else {
      lay_out(space_, k, static_cast<const float*>(data_[k]), start, count, to);
    }
  }

  float* sums_of(int64_t output, int64_t group) const {
    return sums_ + (slot_[output] * groups_ + group) * space_.length;
  }

  void run_tile(int64_t tile, int64_t group, const void** at, float* stages) const {
    const Space& s = space_;
    const int64_t row = tile / s.pieces * s.tile_rows, piece = tile % s.pieces * s.tile_length;
    const int64_t start = row * s.length + piece;
    const int64_t rows = min(s.tile_rows, s.rows - row);
    const int64_t n = s.pieces == 1 ? rows * s.length : min(s.tile_length, s.length - piece);
    for (int k = 0; k < call_->n_in; ++k) {
      const char* const base = static_cast<const char*>(data_[k]);
      const int64_t item = item_size(input(call_, k).dtype);
      if (s.way[k] == kFlat) {
        at[k] = base + start * item;
      } else if (s.way[k] == kByRow) {
        at[k] = base + row * item;
      } else if (s.way[k] == kRun) {
        int64_t offset = 0, rest = start;
        for (int d = s.rank - 1; d >= 0; --d) {
          offset += rest % s.shape[d] * s.stride[k][d];
          rest /= s.shape[d];
        }
        at[k] = base + offset * item;
      } else if (s.way[k] == kGathered) {
        place_stage(k, start, n, stages);
        at[k] = stages + s.stage[k] * block_;
      }
    }
    for (int64_t o = 0; o < code_.n_out; ++o) {
      const Output& out = code_.outputs[o];
      const myc_tensor& t = output(call_, static_cast<int>(o));
      const int64_t first = out.kind == kFull ? start : row;
      if (out.kind == kFull || out.kind == kRow)
        at[code_.first_output() + o] = static_cast<char*>(t.data) + first * item_size(t.dtype);
    }
    for (int64_t i = 0; i < bindings_.count; ++i) {
      const Bound& step = bindings_.steps[i];
      const void* const operand[3] = {at[step.operand[0]], at[step.operand[1]], at[step.operand[2]]};
      void* const to = const_cast<void*>(at[step.to]);
      if (step.is_single) {
        step.run(operand, 0, to, 1);
        if (step.fills && step.primitive == MYC_FUSED_STORE_BOOL) {
          fill(static_cast<uint8_t*>(to), n);
        } else if (step.fills && (step.primitive == MYC_FUSED_STORE_F16 || step.primitive == MYC_FUSED_STORE_BF16)) {
          fill(static_cast<uint16_t*>(to), n);
        } else if (step.fills) {
          fill(static_cast<int32_t*>(to), n);
        }
      } else if (step.primitive == MYC_FUSED_SPREAD) {
        const float* const from = static_cast<const float*>(operand[0]);
        float* const y = static_cast<float*>(to);
        for (int64_t r = 0; r < rows; ++r) {
          const f32v value = splat(from[r]);
          int64_t j = r * s.length;
          const int64_t end = j + s.length;
          for (; j + kLanes <= end; j += kLanes) store(y + j, value);
          for (; j < end; ++j) y[j] = from[r];
        }
      } else if (step.run) {
        step.run(operand, step.numbers, to, step.is_row_wide ? rows : n);
      } else {
        reduce(step, operand, to, tile, group, rows, n, piece);
      }
    }
  }

  // Each row of a tile to y[row].
  template <class Op>
  void reduce_rows(const float* x, int64_t rows, float* y) const {
    for (int64_t r = 0; r < rows; ++r) {
      y[r] = reduce_short_run<Op, Identity>(x + r * space_.length, space_.length);
    }
  }

  void reduce(const Bound& step, const void* const* operand, void* to, int64_t tile, int64_t group,
              int64_t rows, int64_t n, int64_t piece) const {
    const Space& s = space_;
    const float* const x = static_cast<const float*>(operand[0]);
    const bool is_number = step.numbers & 1;
    float* const y = static_cast<float*>(to);
    const int64_t slot = step.to - code_.first_output();
    switch (step.primitive) {
      case MYC_FUSED_SUM_ROW:
        if (!is_number) return reduce_rows<SumOp>(x, rows, y);
        for (int64_t r = 0; r < rows; ++r) y[r] = *x * static_cast<float>(s.length);
        return;
      case MYC_FUSED_MAX_ROW:
      case MYC_FUSED_MIN_ROW:
        if (!is_number && step.primitive == MYC_FUSED_MAX_ROW) return reduce_rows<MaxOp>(x, rows, y);
        if (!is_number) return reduce_rows<MinOp>(x, rows, y);
        for (int64_t r = 0; r < rows; ++r) y[r] = *x;
        return;
      case MYC_FUSED_SUM_ALL: {
        const double sum = is_number ? static_cast<double>(*x) * n : reduce_run<SumOp, Identity>(x, n);
        partial_[slot_[slot] * s.tiles + tile] = sum;
        return;
      }
      default: {  // MYC_FUSED_SUM_COLUMNS
        float* const sums = sums_of(slot, group) + piece;
        if (is_number) {
          const f32v value = splat(*x * static_cast<float>(rows));
          map(sums, sums, n / rows, [=](f32v v) { return v + value; });
        } else {
          add_columns(x, rows, n / rows, sums);
        }
      }
    }
  }

  // The divisor of a reduction over everything or of columns: a constant of the program.
  float divisor_of(int64_t output) const {
    for (int64_t i = 0; i < code_.n_steps; ++i) {
      const Step& step = code_.steps[i];
      if (step.to == code_.first_output() + output) return constants_[step.operand[1] - code_.n_in];
    }
    return 1.0f;
  }

  void finish() const {
    const Space& s = space_;
    for (int64_t o = 0; o < code_.n_out; ++o) {
      float* const y = out<float>(call_, static_cast<int>(o));
      if (code_.outputs[o].kind == kAll) {
        double total = 0;
        for (int64_t t = 0; t < s.tiles; ++t) total += partial_[slot_[o] * s.tiles + t];
        *y = static_cast<float>(total) / divisor_of(o);
      } else if (code_.outputs[o].kind == kColumn) {
        const float divisor = divisor_of(o);
        memcpy(y, sums_of(o, 0), sizeof(float) * s.length);
        for (int64_t g = 1; g < groups_; ++g) {
          map(y, sums_of(o, g), y, s.length, [](f32v a, f32v b) { return a + b; });
        }
        if (divisor != 1.0f) map(y, y, s.length, [=](f32v v) { return v / divisor; });
      }
    }
  }

  // Nothing to go through: what is left is reductions of nothing.
  int32_t run_empty() const {
    for (int64_t o = 0; o < code_.n_out; ++o)
      if (output(call_, static_cast<int>(o)).size > 0) return MYC_E_UNSUPPORTED;
    return MYC_OK;
  }

  const myc_call* call_;
  const Code& code_;
  Space space_;
  Bindings bindings_;
  const void* data_[MYC_FUSED_MAX_INPUTS];
  float constants_[MYC_FUSED_MAX_CONSTANTS];
  int64_t slot_[MYC_FUSED_MAX_OUTPUTS];
  int64_t groups_ = 0, block_ = 0;
  double* partial_ = nullptr;
  float* sums_ = nullptr;
};

}  // namespace

KERNEL_FN(fused_map, any) {
  const Code code(attrs<myc_fused_map_attrs>(call).code);
  if (code.n_in > MYC_FUSED_MAX_INPUTS || call->n_in != code.n_in || code.n_out > MYC_FUSED_MAX_OUTPUTS ||
      code.n_constants > MYC_FUSED_MAX_CONSTANTS || code.n_buffers > MYC_FUSED_MAX_BUFFERS ||
      code.n_steps > MYC_FUSED_MAX_STEPS) {
    return MYC_E_UNSUPPORTED;
  }
  Interpreter interpreter(call, code);
  return interpreter.run();
}

}  // namespace mycelia::MYC_ISA
