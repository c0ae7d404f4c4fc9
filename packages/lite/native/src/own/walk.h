// Operands that broadcast, read along a result.
#ifndef MYCELIA_LITE_OWN_WALK_H_
#define MYCELIA_LITE_OWN_WALK_H_

#include "own.h"

namespace mycelia::lite {

// How a tensor is read along the result: `inner` elements at a time, one after the other or one for all.
struct Walk {
  Walk(const myc_tensor& x, const myc_tensor& y) : data(static_cast<const uint8_t*>(x.data)), rank(y.rank) {
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      const int own = d - (rank - x.rank);
      const bool moves = own >= 0 && x.shape[own] != 1;
      size[d] = y.shape[d], step[d] = moves ? stride : 0;
      if (moves) stride *= x.shape[own];
    }
  }
  // How many of the last axes are read as one.
  int joined() const {
    int count = 0;
    int64_t whole = 1;
    bool moves = false;
    for (int d = rank - 1; d >= 0; whole *= size[d], ++count, --d) {
      if (size[d] == 1) continue;
      if (whole == 1) moves = step[d] != 0;
      else if (step[d] != (moves ? whole : 0)) break;
    }
    return count;
  }
  const uint8_t* row(int64_t number, int axes) const {
    int64_t at = 0;
    for (int d = axes - 1; d >= 0; --d) at += number % size[d] * step[d], number /= size[d];
    return data + at;
  }
  int64_t last(int axes) const {  // the step along those that are read as one
    for (int d = rank - 1; d >= axes; --d)
      if (size[d] != 1) return step[d] ? 1 : 0;
    return 0;
  }
  const uint8_t* data;
  int rank;
  int64_t size[MYC_MAX_RANK], step[MYC_MAX_RANK];
};

}  // namespace mycelia::lite

#endif
