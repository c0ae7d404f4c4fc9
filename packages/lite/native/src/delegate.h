// Other devices: what they claim of a plan becomes steps of theirs, with copies at the borders; the CPU takes the rest. And
// operators that a program computes itself: Custom nodes of types that it registered.
#ifndef MYCELIA_LITE_DELEGATE_H_
#define MYCELIA_LITE_DELEGATE_H_

#include <memory>
#include <string>
#include <vector>

#include "mycelia/abi.h"
#include "mycelia/lite/c_api.h"
#include "plan.h"

// A node as a program outside sees it. `data` of tensors points to constants alone.
struct MSDelegateNode {
  MSDelegateNode(const mycelia::lite::ModelFile& file, const mycelia::lite::FileNode& given);
  // The tensors, of the values by their places; absent ones have no type.
  void describe(const mycelia::lite::Plan& plan, const std::vector<int>& in, const std::vector<int>& out);

  const mycelia::lite::FileNode* node;
  std::string name, type, custom_type;
  std::vector<std::string> input_names, output_names;
  std::vector<MSDelegateTensor> inputs, outputs;
};

namespace mycelia::lite {

// A kernel from outside, which `run_outside` finds by the attributes of its step: the address of this.
struct OutsideKernel {
  MSDelegateKernel kernel{};
  std::string who;  // for messages
  std::vector<MSDelegateTensor> inputs, outputs;
  std::vector<std::string> names;  // of both, which the tensors point to
  std::shared_ptr<void> owner;  // what must live longer
  ~OutsideKernel() {
    if (kernel.destroy) kernel.destroy(kernel.user);
  }
};
int32_t run_outside(const myc_call* call);
std::vector<uint8_t> attributes_of(const OutsideKernel* kernel);
MSDelegateTensor described(const Value& value, const std::string& name);

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
