// The kernels of the CPU backend that this runtime links, for the processor that it runs on.
#ifndef MYCELIA_LITE_KERNELS_H_
#define MYCELIA_LITE_KERNELS_H_

#include <map>
#include <string>
#include <vector>

#include "mycelia/abi.h"

namespace mycelia::lite {

class Kernels {
 public:
  Kernels();
  // The kernel of an op for inputs of these dtypes (-1: absent), null if there is none.
  myc_kernel_fn find(const std::string& op, const std::vector<int32_t>& dtypes) const;
  // The fastest variant that is used, the processor's or the one that the environment's MYCELIA_ISA names; null if there is none.
  const char* isa() const { return isa_; }

 private:
  std::map<std::string, std::vector<const myc_kernel*>> by_op_;
  const char* isa_ = nullptr;
};

const Kernels& kernels();
// Tells that a model needs a part of a kernel, one of kernel_parts.def.
void ask_for_part(const char* part);
// The kernels that models of this process asked for so far, "op dtypes", and parts, "part NAME"; one a line.
std::string asked_kernels();
const char* dtype_name(int32_t dtype);

}  // namespace mycelia::lite

#endif
