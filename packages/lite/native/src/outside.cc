// Weights in files beside the model.
#include <cstdlib>

#include "kernels.h"
#include "model_bytes.h"

namespace mycelia::lite {

namespace {

// The path without links and dots, empty if there is no such file.
std::string resolved(const std::string& path) {
  char* const found = realpath(path.c_str(), nullptr);
  const std::string made = found ? found : "";
  free(found);
  return made;
}

}  // namespace

Status OutsideFiles::find(std::string_view location, int64_t offset, int64_t length, const uint8_t** data, uint64_t* bytes) {
  ask_for_part("outside");
  const std::string name(location);
  if (folder_.empty()) return {kNotSupported, "lie in the file '" + name + "': such a model is loaded from its file, not from memory"};
  auto found = files_.find(location);
  if (found == files_.end()) {
    const std::string root = resolved(folder_), path = resolved(folder_ + "/" + name);
    if (name.empty() || name.find('\0') != std::string::npos || name[0] == '/') return {kGraphInvalid, "lie at '" + name + "', which is no name in the model's folder"};
    if (path.empty()) return {kGraphInvalid, "lie in the file '" + name + "', which is not beside the model"};
    if (path.compare(0, root.size(), root) != 0 || (root != "/" && path[root.size()] != '/'))
      return {kGraphInvalid, "lie at '" + name + "', which is not inside of the model's folder"};
    auto file = std::make_unique<ModelBytes>();
    if (Status status = file->map(path); !status) return status;
    found = files_.emplace(name, std::move(file)).first;
  }
  const uint64_t size = found->second->size();
  if (offset < 0 || length < -1 || static_cast<uint64_t>(offset) > size || (length >= 0 && static_cast<uint64_t>(length) > size - static_cast<uint64_t>(offset)))
    return {kGraphInvalid, "lie at " + std::to_string(offset) + ", " + std::to_string(length) + " bytes, in the file '" + name + "', which has " + std::to_string(size)};
  *bytes = length < 0 ? size - static_cast<uint64_t>(offset) : static_cast<uint64_t>(length);
  *data = found->second->data() + offset;
  return {};
}

}  // namespace mycelia::lite
