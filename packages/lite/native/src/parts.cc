// Parts of a result that are written where they lie in it, so that the step that would copy them together goes:
// * of a Concat along the first axis that has more than one place: whatever makes them writes them there;
// * of a Concat of the channels: convolutions on packed weights write into wider pixels.
#include <string_view>

#include "kernels.h"
#include "mycelia/cpu.h"
#include "mycelia/op_attrs.h"
#include "plan.h"

namespace mycelia::lite {

namespace {

constexpr int64_t kAlignment = 64;  // of parts that any kernel may write
constexpr int kResidual = 3;  // among the inputs of conv_last

// Whether the step can write pixels that are a part of wider ones.
bool writes_wider_pixels(const Step& step) {
  if (step.op != std::string_view("conv_last") || step.inputs[kResidual] >= 0) return false;
  return reinterpret_cast<const myc_conv_last_attrs*>(step.attributes.data())->algorithm != MYC_CONV_DEPTHWISE;
}

}  // namespace

void Planner::write_parts_in_place() {
  std::vector<Step>& steps = plan_.steps;
  const std::vector<bool> kept = needed_later();
  std::vector<int> readers = readers_of_memory(), maker(plan_.values.size(), -1);

  // Whether all parts of a concatenation can be written into `whole`.
  const auto fits = [&](const Step& concat, int whole, size_t axis) {
    const Type& type = plan_.values[whole].type;
    bool first = true;
    for (size_t d = 0; d < axis; ++d) first = first && type.shape[d] == 1;
    int64_t at = 0;
    for (const int i : concat.inputs) {
      const Value& part = plan_.values[i];
      if (maker[i] < 0 || part.root != i || part.outside || kept[i] || readers[i] != 1) return false;
      if (!(first && at % kAlignment == 0) && !(axis + 1 == type.shape.size() && writes_wider_pixels(steps[maker[i]]))) return false;
      at += element_count(part.type.shape) * item_bytes(type.dtype);
    }
    return true;
  };
  size_t left = 0;
  for (size_t s = 0; s < steps.size(); ++s) {
    Step& step = steps[s];
    if (step.op == std::string_view("concat") && step.kernel) {
      const int whole = step.outputs[0];
      const size_t axis = static_cast<size_t>(reinterpret_cast<const myc_concat_attrs*>(step.attributes.data())->axis);
      if (fits(step, whole, axis)) {
        ask_for_part("parts");
        const Type type = plan_.values[whole].type;
        int64_t inner = item_bytes(type.dtype), at = 0;
        for (size_t d = axis + 1; d < type.shape.size(); ++d) inner *= type.shape[d];
        for (const int i : step.inputs) {
          Value& part = plan_.values[i];
          part.root = whole;
          part.offset = at * inner;
          at += part.type.shape[axis];
          if (axis + 1 == type.shape.size() && writes_wider_pixels(steps[maker[i]])) part.type.shape[axis] = type.shape[axis];
        }
        continue;
      }
    }
    for (int o : step.outputs) maker[o] = static_cast<int>(left);
    if (left != s) std::swap(steps[left], step);
    ++left;
  }
  steps.resize(left);
}

}  // namespace mycelia::lite
