// The kernels that are linked, by instruction set.
#ifndef MYCELIA_LITE_KERNEL_TABLES_H_
#define MYCELIA_LITE_KERNEL_TABLES_H_

#include "mycelia/abi.h"

namespace mycelia::lite {

struct KernelTable {
  const char* isa;  // "" for plain code that serves all processors; null behind the last table
  bool (*runs)();  // whether the processor has these instructions
  const myc_kernel* kernels;  // up to one without an op
};

// Fastest first; what a table does not have is looked for in the next.
extern const KernelTable kKernelTables[];

}  // namespace mycelia::lite

#endif
