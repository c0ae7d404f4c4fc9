#include "kernels.h"

#include <algorithm>
#include <cstdlib>

#include "kernel_tables.h"

namespace mycelia::lite {

namespace {

bool takes(const std::string& wanted, const std::vector<int32_t>& dtypes) {
  if (wanted == "*") return true;
  std::vector<std::string> each;
  for (size_t begin = 0; begin <= wanted.size();) {
    const size_t end = std::min(wanted.find(',', begin), wanted.size());
    each.push_back(wanted.substr(begin, end - begin));
    begin = end + 1;
  }
  for (size_t i = 0; i < dtypes.size(); ++i) {
    if (dtypes[i] < 0) continue;
    if (each.size() > 1 && i >= each.size()) return false;
    if (each[each.size() == 1 ? 0 : i] != dtype_name(dtypes[i])) return false;
  }
  return true;
}

}  // namespace

const char* dtype_name(int32_t dtype) {
  static const char* const names[] = {"bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64", "c64", "c128"};
  return names[dtype];
}

Kernels::Kernels() {
  const char* wanted = std::getenv("MYCELIA_ISA");
  for (const KernelTable* table = kKernelTables; table->isa; ++table) {
    const std::string isa = table->isa;
    if (!isa.empty()) {
      if (!table->runs() || (!isa_ && wanted && *wanted && wanted != isa)) continue;
      if (!isa_) isa_ = table->isa;
    }
    for (const myc_kernel* kernel = table->kernels; kernel->op; ++kernel) by_op_[kernel->op].push_back(kernel);
  }
}

const Kernels& kernels() {
  static const Kernels found;
  return found;
}

const myc_kernel* Kernels::entry(const std::string& op, const std::vector<int32_t>& dtypes) const {
  const auto found = by_op_.find(op);
  if (found == by_op_.end()) return nullptr;
  for (const myc_kernel* kernel : found->second) {
    if (!takes(kernel->dtypes, dtypes)) continue;
    ask_for_kernel(op, kernel->dtypes);
    return kernel;
  }
  return nullptr;
}

}  // namespace mycelia::lite
