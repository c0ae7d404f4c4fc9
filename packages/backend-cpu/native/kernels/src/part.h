// Parts of kernels: functions that lie alone in a file, so that a program which does not need them may link others by their
// names, which return MYC_E_UNSUPPORTED.
#ifndef MYCELIA_PART_H_
#define MYCELIA_PART_H_

#include "mycelia/kernels.h"

// KERNEL_PART(winograd)(arguments) { ... } defines, and with ; declares, what kernels call as MYC_PART(winograd)(arguments).
#define MYC_PART(name) MYC_PASTE(myc_cpu_, name, _, part, MYC_ISA_SUFFIX)
#define KERNEL_PART(name) extern "C" int32_t MYC_PART(name)

#endif
