// What models asked for, for `mycelia-lite crop`.
#include <cstring>
#include <mutex>
#include <set>

#include "kernels.h"
#include "model_file.h"
#include "mycelia/op_attrs.h"

namespace mycelia::lite {

namespace {

struct Asked {
  std::mutex mutex;
  std::set<std::string> kernels;
};
Asked& asked() {
  static Asked all;
  return all;
}

void ask(const std::string& what) {
  Asked& all = asked();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.kernels.insert(what);
}

}  // namespace

void ask_for_kernel(const std::string& op, const char* dtypes) { ask(op + " " + dtypes); }

void ask_for_part(const char* part) { ask(std::string("part ") + part); }

void ask_for_copies(const char* op, const std::vector<uint8_t>& attributes, int32_t dtype, const std::vector<int64_t>& shape) {
  if (!std::strcmp(op, "cast")) return;
  const int64_t bytes = item_bytes(dtype);
  if (bytes == 1) ask_for_part("copy_bytes");
  if (bytes == 2) ask_for_part("copy_pairs");
  if (bytes < 8 && !std::strcmp(op, "transpose")) {
    // Rows stay rows if the last axis that has places stays the last; they go as one if they have 2, 4, ... of at most 16 bytes.
    const auto& turn = *reinterpret_cast<const myc_transpose_attrs*>(attributes.data());
    int from = -1, to = -1;
    for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
      if (shape[d] != 1) from = d;
      if (shape[turn.dims.v[d]] != 1) to = static_cast<int>(turn.dims.v[d]);
    }
    if (from != to || from < 0 || shape[from] * bytes > 16 || (shape[from] & (shape[from] - 1))) return;
  }
  ask_for_part("copy_wide");
}

const char* not_here() { return ""; }

std::string asked_kernels() {
  Asked& all = asked();
  const std::lock_guard<std::mutex> lock(all.mutex);
  std::string text;
  for (const std::string& kernel : all.kernels) text += kernel + "\n";
  return text;
}

}  // namespace mycelia::lite
