// Steps that work element by element, done together: block after block of their common shape goes through all of them, so
// that what is between stays in the first-level cache.
#ifndef MYCELIA_LITE_CHAIN_H_
#define MYCELIA_LITE_CHAIN_H_

#include <cstdint>
#include <vector>

#include "plan.h"

namespace mycelia::lite {

class Chain {
 public:
  // Members in their order, the last of which makes the result; all of them make values of its shape.
  Chain(const std::vector<Value>& values, const std::vector<const Step*>& members);

  // The values that it reads.
  const std::vector<int>& inputs() const { return inputs_; }
  int32_t run(const myc_call* call) const;

 private:
  // A tensor of the members as a block of it: an input, or what a member makes.
  struct Part {
    myc_tensor block{};  // without data
    bool is_along = false;  // it goes on from piece to piece along the axis that is cut
    bool is_spread = false;  // the same for all blocks: written out once, as large as a block of the result
    std::vector<int64_t> strides;  // in bytes, of the axes up to the one that is cut; 0 where it is repeated
    int64_t place = -1;  // in the memory of a worker, or of what is spread; -1: it is an input's or the result's
  };
  struct Member {
    myc_kernel_fn kernel;
    std::vector<uint8_t> attributes;
    std::vector<int> operands;  // parts
    int made;
  };
  struct Run;

  void cut(const Type& result, bool needs_rows);
  Part part_of(const Type& type) const;
  void place_parts();

  std::vector<int> inputs_;
  std::vector<Part> parts_;  // first those of the inputs
  std::vector<Member> members_;
  std::vector<int64_t> shape_;  // of the result
  int axis_ = 0;  // that is cut: those before are gone through, those behind are whole
  int64_t piece_ = 1, pieces_ = 1, blocks_ = 1;  // elements of a piece of the axis, pieces of it, blocks of all
  int64_t own_bytes_ = 0, spread_bytes_ = 0;  // of memory for each worker, and for all
  myc_kernel_fn spread_ = nullptr;  // broadcast_to
};

}  // namespace mycelia::lite

#endif
