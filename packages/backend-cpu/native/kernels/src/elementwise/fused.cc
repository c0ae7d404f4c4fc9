// fused_map: an interpreter that runs a program of elementwise steps and reductions (see ops/lowered/fused.py) tile
// by tile.  A tile is a run of the iteration space whose values lie in L1; each step is one loop over the
// tile. So memory is read once for each input and written once for each output, whatever the number of steps.
#include "elementwise/elementwise.h"
#include "elementwise/fused_bindings.h"
#include "reductions/reduce_run.h"
#include "reductions/sums.h"

namespace mycelia::MYC_ISA {

namespace {

constexpr int64_t kColumnGroups = 16;   // groups of tiles that sum columns apart from each other
constexpr int64_t kStepWork = 8;        // work of a step on an element, see kMinParallelWork

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
