// The steps of a fused_map with their functions and operands found, before the first tile.  For fused.cc alone.
#ifndef MYCELIA_FUSED_BINDINGS_H_
#define MYCELIA_FUSED_BINDINGS_H_

#include "elementwise/fused_tiles.h"

namespace mycelia::MYC_ISA {
namespace {

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

}  // namespace
}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_FUSED_BINDINGS_H_
