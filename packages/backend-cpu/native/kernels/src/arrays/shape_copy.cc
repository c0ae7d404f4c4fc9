// The copy engine behind shape_copy.h: merging of axes, and the choice by the size of elements.
#include "arrays/copy_elements.h"

namespace mycelia::MYC_ISA {

// Drops axes of extent 1 and merges neighbours; false if there is nothing to copy.
static bool simplify(CopyPlan* p) {
  int r = 0;
  for (int d = 0; d < p->rank; ++d) {
    const int64_t n = p->n[d], from = p->from[d], to = p->to[d];
    if (n == 0) return false;
    if (n == 1) continue;
    if (r > 0 && p->from[r - 1] == from * n && p->to[r - 1] == to * n) {
      p->n[r - 1] *= n, p->from[r - 1] = from, p->to[r - 1] = to;
    } else {
      p->n[r] = n, p->from[r] = from, p->to[r] = to;
      ++r;
    }
  }
  p->rank = r;
  return true;
}

static int32_t copy_as(const myc_call* call, const void* x, void* y, int64_t bytes, const CopyPlan& plan) {
  switch (bytes) {
    case 1: return MYC_PART(copy_bytes)(call, x, y, &plan);
    case 2: return MYC_PART(copy_pairs)(call, x, y, &plan);
    case 4: return copy_elements(call, static_cast<const uint32_t*>(x), static_cast<uint32_t*>(y), plan), MYC_OK;
    case 8:
    case 16: return MYC_PART(copy_wide)(call, x, y, bytes, &plan);
    default: return MYC_E_UNSUPPORTED;
  }
}

// A copy of `plan` between elements of `bytes` bytes.  A short innermost run is moved as one wider element, so that
// e.g. pairs of floats are transposed as 8-byte elements.
int32_t copy(const myc_call* call, const void* x, void* y, int64_t bytes, CopyPlan plan) {
  if (!simplify(&plan)) return MYC_OK;
  const int last = plan.rank - 1;
  if (plan.rank > 1 && plan.from[last] == 1 && plan.to[last] == 1) {
    const int64_t run = plan.n[last];
    bool fits = run * bytes <= 16 && !(run & (run - 1));
    fits = fits && !((reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % (run * bytes));
    for (int d = 0; fits && d < last; ++d) fits = plan.from[d] % run == 0 && plan.to[d] % run == 0;
    if (fits) {
      CopyPlan wide = plan;
      for (int d = 0; d < last; ++d) wide.from[d] /= run, wide.to[d] /= run;
      wide.rank = last;
      const int32_t code = copy_as(call, x, y, run * bytes, wide);
      if (code != MYC_E_UNSUPPORTED) return code;  // else that size is left out
    }
  }
  return copy_as(call, x, y, bytes, plan);
}

}  // namespace mycelia::MYC_ISA
