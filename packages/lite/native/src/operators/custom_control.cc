// Custom nodes about what is known only when the model runs.
#include "custom.h"

namespace mycelia::lite {

CUSTOM(require) {  // x, if a condition is true, for which alone the model was made
  const int x = p.input(0);
  const std::vector<int64_t> condition = p.integers(p.input(1), "the condition");
  if (!p.ok()) return;
  if (condition.size() != 1 || condition[0] != 1) {
    const std::string reason = custom_text(p, "reason");
    p.fail(kInferFailed, "what the model was converted for does not hold for these inputs" + (reason.empty() ? reason : ": " + reason));
  }
  p.set_output(0, p.view(x, p.type(x).shape));
}

}  // namespace mycelia::lite
