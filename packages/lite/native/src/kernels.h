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
  const myc_kernel* entry(const std::string& op, const std::vector<int32_t>& dtypes) const;
  myc_kernel_fn find(const std::string& op, const std::vector<int32_t>& dtypes) const {
    const myc_kernel* const found = entry(op, dtypes);
    return found ? found->fn : nullptr;
  }
  // The fastest variant that is used, the processor's or the one that the environment's MYCELIA_ISA names; null if there is none.
  const char* isa() const { return isa_; }

 private:
  std::map<std::string, std::vector<const myc_kernel*>> by_op_;
  const char* isa_ = nullptr;
};

const Kernels& kernels();
// For `mycelia-lite crop` (asked.cc): a model needs a kernel; a part of a kernel, one of kernel_parts.def, or of the runtime, one
// of features.def.
void ask_for_kernel(const std::string& op, const char* dtypes);
// Parts by the bytes of what an op moves that does not compute: of elements, and of short rows that go as one.
void ask_for_copies(const char* op, const std::vector<uint8_t>& attributes, int32_t dtype, const std::vector<int64_t>& shape);
void ask_for_part(const char* part);
// The kernels that models of this process asked for so far, "op dtypes", and parts, "part NAME"; one a line.
std::string asked_kernels();
const char* dtype_name(int32_t dtype);
// What a message about a missing operator or kernel ends with: a cropped library tells that it is one.
const char* not_here();

}  // namespace mycelia::lite

#endif
