// The program of a fused_map as its attribute holds it, see ops/lowered/fused.py.  For fused.cc alone.
#ifndef MYCELIA_FUSED_PROGRAM_H_
#define MYCELIA_FUSED_PROGRAM_H_

#include "elementwise/fused_steps.h"

namespace mycelia::MYC_ISA {
namespace {

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

}  // namespace
}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_FUSED_PROGRAM_H_
