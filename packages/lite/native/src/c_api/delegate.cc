// What delegates and registered operators ask of the nodes that they are offered.
#include "../delegate.h"

#include "../schema.h"
#include "border.h"

using namespace mycelia::lite;

namespace {

std::shared_ptr<MSDelegateModel> offered(const MSDelegateModel* handle) {
  auto model = find<MSDelegateModel>(const_cast<MSDelegateModel*>(handle));
  if (!model) refused(kNullPointer, "the delegate's model is NULL, or its build is over");
  return model;
}
std::shared_ptr<MSDelegateNode> offered(const MSDelegateNode* handle) {
  auto node = find<MSDelegateNode>(const_cast<MSDelegateNode*>(handle));
  if (!node) refused(kNullPointer, "the node is NULL, or nothing is left that claimed it");
  return node;
}

// Whether there is node i.
bool has(const MSDelegateModel& model, size_t i) {
  if (i < model.nodes.size()) return true;
  refused(kParameterInvalid, "there is no node " + std::to_string(i) + ": the plan has " + std::to_string(model.nodes.size()));
  return false;
}

// What `get` finds in the node's attributes, `absent` if that is not what the field holds. A fault stays here.
template <class T, class Get>
T attribute(const MSDelegateNode* handle, uint16_t field, T absent, const Get& get) {
  const auto node = offered(handle);
  if (!node) return absent;
  Reader own = node->node->attributes.reader();
  const T found = get(node->node->attributes.with(&own));
  if (own.ok()) return found;
  refused(kParameterInvalid, "field " + std::to_string(field) + " of node '" + node->name + "' is not of that kind");
  return absent;
}

}  // namespace

size_t MSDelegateModelGetNodeNum(const MSDelegateModel* handle) {
  const auto model = offered(handle);
  return model ? model->nodes.size() : 0;
}
const MSDelegateNode* MSDelegateModelGetNode(const MSDelegateModel* handle, size_t i) {
  const auto model = offered(handle);
  return model && has(*model, i) ? model->nodes[i].handle() : nullptr;
}
MSStatus MSDelegateModelReplace(MSDelegateModel* handle, size_t first, size_t count, const MSDelegateKernel* kernel, const char* why) {
  const auto model = offered(handle);
  if (!model) return kMSStatusLiteNullptr;
  return guarded([&] {
    if (!kernel || !kernel->run) return Status(kNullPointer, "the kernel or its run is NULL");
    const size_t nodes = model->nodes.size();
    if (!count || first >= nodes || count > nodes - first)
      return Status(kParameterInvalid, std::to_string(count) + " nodes from " + std::to_string(first) + " on are not within the " + std::to_string(nodes) + " that there are");
    for (size_t n = first; n < first + count; ++n)
      if (model->taken[n]) return Status(kParameterInvalid, "node '" + model->nodes[n]->name + "' is taken already");
    if (Status status = model->check(first, count); !status) return status;
    for (size_t n = first; n < first + count; ++n) model->taken[n] = true, model->reasons[n] = why ? why : "";
    model->claims.push_back({first, count, *kernel});
    return Status();
  });
}
void MSDelegateModelDecline(MSDelegateModel* handle, size_t i, const char* why) {
  const auto model = offered(handle);
  if (model && has(*model, i)) model->reasons[i] = why ? why : "";
}
bool MSDelegateModelIsTaken(const MSDelegateModel* handle, size_t i) {
  const auto model = offered(handle);
  return model && has(*model, i) && model->taken[i];
}

const char* MSDelegateNodeGetName(const MSDelegateNode* handle) {
  const auto node = offered(handle);
  return node ? node->name.c_str() : "";
}
const char* MSDelegateNodeGetType(const MSDelegateNode* handle) {
  const auto node = offered(handle);
  return node ? node->type.c_str() : "";
}
const MSDelegateTensor* MSDelegateNodeGetInputs(const MSDelegateNode* handle, size_t* num) {
  const auto node = offered(handle);
  if (num) *num = node ? node->inputs.size() : 0;
  return node ? node->inputs.data() : nullptr;
}
const MSDelegateTensor* MSDelegateNodeGetOutputs(const MSDelegateNode* handle, size_t* num) {
  const auto node = offered(handle);
  if (num) *num = node ? node->outputs.size() : 0;
  return node ? node->outputs.data() : nullptr;
}
int64_t MSDelegateNodeGetInt(const MSDelegateNode* handle, uint16_t field, size_t bytes, int64_t absent) {
  return attribute(handle, field, absent, [&](const Table& table) -> int64_t {
    switch (bytes) {
      case 1: return table.get<int8_t>(field, static_cast<int8_t>(absent));
      case 4: return table.get<int32_t>(field, static_cast<int32_t>(absent));
      case 8: return table.get<int64_t>(field, absent);
      default: return refused(kParameterInvalid, "an integer has 1, 4 or 8 bytes, but not " + std::to_string(bytes)), absent;
    }
  });
}
float MSDelegateNodeGetFloat(const MSDelegateNode* handle, uint16_t field, float absent) {
  return attribute(handle, field, absent, [&](const Table& table) { return table.get<float>(field, absent); });
}
size_t MSDelegateNodeGetInts(const MSDelegateNode* handle, uint16_t field, int64_t* values, size_t most) {
  return attribute(handle, field, size_t{0}, [&](const Table& table) -> size_t {
    const auto span = table.span<int64_t>(field);
    for (size_t i = 0; i < span.size && i < most && values; ++i) values[i] = span[static_cast<uint32_t>(i)];
    return span.size;
  });
}
const char* MSDelegateNodeGetCustomType(const MSDelegateNode* handle) {
  const auto node = offered(handle);
  return node ? node->custom_type.c_str() : "";
}
const void* MSDelegateNodeGetCustomAttribute(const MSDelegateNode* handle, const char* name, size_t* bytes) {
  if (bytes) *bytes = 0;
  const auto node = offered(handle);
  if (!node || !name || node->node->kind != schema::kOp_Custom) return nullptr;
  return attribute(handle, schema::kCustom_attr, static_cast<const void*>(nullptr), [&](const Table& table) -> const void* {
    const TableSpan all = table.tables(schema::kCustom_attr);
    for (uint32_t i = 0; i < all.size(); ++i) {
      const Table one = all[i];
      if (!one || one.text(schema::kAttribute_name) != name) continue;
      const auto data = one.span<uint8_t>(schema::kAttribute_data);
      if (bytes) *bytes = data.size;
      return data.data;
    }
    return nullptr;
  });
}
