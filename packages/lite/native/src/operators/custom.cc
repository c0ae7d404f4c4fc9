// Custom nodes: which function lowers a type, and how attributes are read.
#include "custom.h"

#include <cstring>

namespace mycelia::lite {

using namespace schema;

OPERATOR(Custom) {
  const std::string type(p.node().attributes.text(kCustom_type));
  if (p.user_operator(type)) return;
#define LITE_CUSTOM(name) \
  if (type == #name) return lower_custom_##name(p);
#include "custom.def"
#undef LITE_CUSTOM
  if (!lower_training(p, type) && !lower_elementwise(p, type)) p.fail(kOperatorNotFound, "Custom nodes of type '" + type + "' are unknown");
}

namespace {

// Whether the node at work has the attribute.
bool has_bytes(Planner& p, const char* name, Span<uint8_t>* bytes) {
  const TableSpan all = p.node().attributes.tables(kCustom_attr);
  for (uint32_t i = 0; i < all.size(); ++i) {
    const Table attribute = all[i];
    if (!attribute || attribute.text(kAttribute_name) != name) continue;
    *bytes = attribute.span<uint8_t>(kAttribute_data);
    return true;
  }
  return false;
}

Span<uint8_t> bytes_of(Planner& p, const char* name) {
  if (Span<uint8_t> bytes; has_bytes(p, name, &bytes)) return bytes;
  p.fail(kOperatorAttribute, std::string("the attribute '") + name + "' is missing");
  return {};
}

}  // namespace

std::vector<int64_t> custom_ints(Planner& p, const char* name) {
  const Span<uint8_t> bytes = bytes_of(p, name);
  if (bytes.size % 8 || bytes.size > 8 * MYC_MAX_INTS) {
    p.fail(kOperatorAttribute, std::string("the attribute '") + name + "' has " + std::to_string(bytes.size) + " bytes");
    return {};
  }
  std::vector<int64_t> found(bytes.size / 8);
  if (!found.empty()) std::memcpy(found.data(), bytes.data, bytes.size);
  return found;
}

std::vector<int64_t> custom_ints(Planner& p, const char* name, size_t count, int64_t least, int64_t most) {
  std::vector<int64_t> found = custom_ints(p, name);
  bool fine = p.ok() && found.size() == count;
  for (const int64_t n : found) fine = fine && least <= n && n <= most;
  if (!fine) p.fail(kOperatorAttribute, std::string("the attribute '") + name + "' does not fit");
  found.resize(count, least);
  return found;
}

int64_t custom_int(Planner& p, const char* name, int64_t least, int64_t most) { return custom_ints(p, name, 1, least, most)[0]; }

std::string custom_text(Planner& p, const char* name) {
  Span<uint8_t> bytes;
  return has_bytes(p, name, &bytes) ? std::string(reinterpret_cast<const char*>(bytes.data), bytes.size) : std::string();
}

double custom_real(Planner& p, const char* name) {
  const Span<uint8_t> bytes = bytes_of(p, name);
  double value = 0;
  if (bytes.size == 8) std::memcpy(&value, bytes.data, 8);
  else p.fail(kOperatorAttribute, std::string("the attribute '") + name + "' has " + std::to_string(bytes.size) + " bytes");
  return value;
}

}  // namespace mycelia::lite
