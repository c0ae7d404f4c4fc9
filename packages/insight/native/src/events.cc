#include "events.h"

#include "wire.h"

namespace mycelia::insight {
namespace {

constexpr uint32_t kBodies = 16;  // numbers of the fields that an event may have

// A one-element tensor of TensorFlow's as a number; false if it is none.
bool number_of(std::string_view tensor, float* value) {
  Fields fields(tensor);
  Field f;
  uint64_t dtype = 1;
  std::string_view content;
  bool found = false;
  while (fields.next(&f)) {
    if (f.is(1, 0)) dtype = f.number_value;
    else if (f.is(4, 2)) content = f.bytes;
    else if (f.is(5, 5)) *value = f.as_float(), found = true;
    else if (f.is(5, 2) && f.bytes.size() >= 4) found = true, std::memcpy(value, f.bytes.data(), 4);
    else if (f.is(6, 1)) *value = static_cast<float>(f.as_double()), found = true;
    else if (f.is(6, 2) && f.bytes.size() >= 8) {
      double wide;
      std::memcpy(&wide, f.bytes.data(), 8);
      *value = static_cast<float>(wide), found = true;
    } else if ((f.number() == 7 || f.number() == 10) && f.type() == 0) {
      *value = static_cast<float>(static_cast<int64_t>(f.number_value)), found = true;
    }
  }
  if (!fields.ok()) return false;
  if (found) return true;
  if (dtype == 1 && content.size() == 4) return std::memcpy(value, content.data(), 4), true;
  if (dtype == 2 && content.size() == 8) {
    double wide;
    std::memcpy(&wide, content.data(), 8);
    return *value = static_cast<float>(wide), true;
  }
  return false;
}

// Summary.Value of MindSpore.
bool walk_value(std::string_view message, Found found, Each each) {
  Fields fields(message);
  Field f;
  bool any = false;
  while (fields.next(&f)) {
    if (f.is(1, 2)) found.tag = f.bytes;
    else if (f.is(3, 5)) found.kind = Kind::kScalar, found.value = f.as_float(), any = true;
    else if (f.type() == 2 && (f.number() == 4 || f.number() == 8 || f.number() == 9 || f.number() == 10)) {
      found.kind = f.number() == 4 ? Kind::kImage : f.number() == 8 ? Kind::kTensor : f.number() == 9 ? Kind::kHistogram : Kind::kLandscape;
      found.payload = f.bytes, any = true;
    }
  }
  if (fields.ok() && any) each(found);
  return fields.ok();
}

// SummaryMetadata.plugin_data.plugin_name.
std::string_view plugin_name(std::string_view metadata) {
  Fields fields(metadata);
  for (Field f; fields.next(&f);) {
    if (!f.is(1, 2)) continue;
    Fields inner(f.bytes);
    for (Field g; inner.next(&g);)
      if (g.is(1, 2)) return g.bytes;
  }
  return {};
}

// Summary.Value of TensorBoard.
bool walk_tensorboard_value(std::string_view message, Found found, PluginOf plugin_of, Each each) {
  Fields fields(message);
  std::string_view tensor = message.substr(0, 0), told;  // a place in the message, also where there is no tensor
  bool any = false, has_tensor = false;
  for (Field f; fields.next(&f);) {
    if (f.is(1, 2)) found.tag = f.bytes;
    else if (f.is(2, 5)) found.kind = Kind::kScalar, found.value = f.as_float(), any = true;
    else if (f.type() == 2 && (f.number() == 4 || f.number() == 5 || f.number() == 6)) {
      found.kind = f.number() == 4 ? Kind::kImage : f.number() == 5 ? Kind::kHistogram : Kind::kAudio;
      found.payload = f.bytes, any = true;
    } else if (f.is(8, 2)) tensor = f.bytes, has_tensor = true;
    else if (f.is(9, 2)) told = plugin_name(f.bytes);
  }
  if (!fields.ok()) return false;
  if (any) each(found);
  // Parameters of an experiment stand in the metadata; some writers add no tensor.
  if (any || (!has_tensor && told != "hparams")) return true;
  const std::string_view plugin = plugin_of(found.tag, told);
  found.payload = tensor;
  if (plugin == "scalars") {
    found.kind = Kind::kScalar;
    if (!number_of(tensor, &found.value)) return false;
  } else if (plugin == "images") found.kind = Kind::kImage;
  else if (plugin == "histograms") found.kind = Kind::kHistogram;
  else if (plugin == "audio") found.kind = Kind::kAudio;
  else if (plugin == "text") found.kind = Kind::kText;
  else if (plugin == "hparams") found.kind = Kind::kParameters, found.payload = message;
  else found.kind = plugin.empty() ? Kind::kTensor : Kind::kOther;
  each(found);
  return true;
}

}  // namespace

bool walk_event(std::string_view event, Dialect* dialect, PluginOf plugin_of, Each each) {
  Found found = {Kind::kOther, {}, 0, 0, 0, {}};
  struct {
    const char* data;
    size_t size;
  } body[kBodies];   // not cleared: that would take longer than all else
  uint32_t has = 0;  // a bit for each of them
  std::string_view version;
  Fields fields(event);
  for (Field f; fields.next(&f);) {
    if (f.is(1, 1)) found.wall_time = f.as_double();
    else if (f.is(2, 0)) found.step = static_cast<int64_t>(f.number_value);
    else if (f.is(3, 2)) version = f.bytes;
    else if (f.number() < kBodies && f.type() == 2) body[f.number()] = {f.bytes.data(), f.bytes.size()}, has |= 1u << f.number();
  }
  if (!fields.ok()) return false;
  if (!version.empty()) *dialect = version.substr(0, 6) == "brain." ? Dialect::kTensorBoard : Dialect::kMindSpore;
  const auto has_body = [&](int number) { return has >> number & 1; };
  const auto body_of = [&](int number) { return std::string_view(body[number].data, body[number].size); };
  const auto give = [&](Kind kind, int number) {
    if (!has_body(number)) return;
    found.kind = kind, found.payload = body_of(number);
    each(found);
  };
  if (has_body(5)) {
    Fields summary(body_of(5));
    for (Field f; summary.next(&f);) {
      if (!f.is(1, 2)) continue;
      const bool right = *dialect == Dialect::kTensorBoard ? walk_tensorboard_value(f.bytes, found, plugin_of, each)
                                                           : walk_value(f.bytes, found, each);
      if (!right) return false;
    }
    if (!summary.ok()) return false;
  }
  give(Kind::kGraph, 4);
  if (*dialect == Dialect::kTensorBoard) return true;
  // A file of lineage has no version in front.
  give(*dialect == Dialect::kMindSpore ? Kind::kExplain : Kind::kTrainLineage, 6);
  give(Kind::kEvaluationLineage, 7);
  give(Kind::kDatasetGraph, 9);
  give(Kind::kUserDefined, 10);
  return true;
}

}  // namespace mycelia::insight
