// The messages of event files, walked where they lie: MindSpore's and TensorBoard's.
#pragma once
#include <cstdint>
#include <string_view>

#include "function_ref.h"

namespace mycelia::insight {

// What a value is; the numbers are those of `kinds.py`.
enum class Kind : uint8_t {
  kScalar, kImage, kHistogram, kTensor, kLandscape, kGraph, kExplain,                        // data files
  kTrainLineage, kEvaluationLineage, kDatasetGraph, kUserDefined,                            // lineage files
  kAudio, kText, kParameters, kOther,                                                        // TensorBoard's own
};

constexpr int kKinds = static_cast<int>(Kind::kOther) + 1;

enum class Dialect : uint8_t { kUnknown, kMindSpore, kTensorBoard };

struct Found {
  Kind kind;
  std::string_view tag;      // empty for graphs and lineage
  int64_t step;
  double wall_time;          // seconds since 1970
  float value;               // of a scalar
  std::string_view payload;  // the message of what is no scalar, a part of the event
};

// Plugin of a TensorBoard tag, told with its first value only.
using PluginOf = FunctionRef<std::string_view(std::string_view tag, std::string_view told)>;
using Each = FunctionRef<void(const Found&)>;

// Calls `each` for every value of an event. False: it is no such message. The first record tells the dialect, which stays.
bool walk_event(std::string_view event, Dialect* dialect, PluginOf plugin_of, Each each);

}  // namespace mycelia::insight
