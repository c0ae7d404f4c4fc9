// Other devices: what they claim of a plan becomes steps of theirs, with copies at the borders; the CPU takes the rest.
#ifndef MYCELIA_LITE_DELEGATE_H_
#define MYCELIA_LITE_DELEGATE_H_

#include <memory>
#include <string>
#include <vector>

#include "mycelia/lite/c_api.h"

namespace mycelia::lite {

// A delegate of a context, destroyed with the last model that uses it.
struct Delegate {
  explicit Delegate(const MSDelegateCallbacks& given) : calls(given), name(given.name) {}
  ~Delegate() {
    if (calls.destroy) calls.destroy(calls.user);
  }
  Delegate(const Delegate&) = delete;
  Delegate& operator=(const Delegate&) = delete;

  const MSDelegateCallbacks calls;
  const std::string name;
};
using Delegates = std::vector<std::shared_ptr<Delegate>>;

}  // namespace mycelia::lite

#endif
