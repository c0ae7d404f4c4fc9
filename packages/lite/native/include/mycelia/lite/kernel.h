// Operators, kernels and devices of a program's own, by MindSpore Lite's names. Header only, C++17.
//
// A Custom node of a type that the program registers: its shapes come from a KernelInterface, its results from a Kernel. For operators of
// the runtime a provider may have kernels, which models use whose context has a device with that provider. A Delegate claims runs of
// nodes. What is called must not throw.
#ifndef MYCELIA_LITE_KERNEL_H_
#define MYCELIA_LITE_KERNEL_H_

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "mycelia/lite/schema.h"
#include "mycelia/lite/tensor.h"

namespace mycelia {

class Context;

namespace schema {

// The attributes of a node; lives as long as its kernel.
class Primitive {
 public:
  explicit Primitive(const MSDelegateNode* node) : node_(node) {}
  std::string name() const { return MSDelegateNodeGetName(node_); }  // of the node
  std::string type() const { return MSDelegateNodeGetType(node_); }  // "Conv2DFusion", "Custom", ...
  // By their place in the table of the operator, `lite::schema::k<Table>_<field>`; `bytes` of an integer are 1, 4 or 8.
  int64_t GetInt(uint16_t field, size_t bytes = 8, int64_t absent = 0) const { return MSDelegateNodeGetInt(node_, field, bytes, absent); }
  float GetFloat(uint16_t field, float absent = 0) const { return MSDelegateNodeGetFloat(node_, field, absent); }
  std::vector<int64_t> GetInts(uint16_t field) const {
    std::vector<int64_t> values(MSDelegateNodeGetInts(node_, field, nullptr, 0));
    MSDelegateNodeGetInts(node_, field, values.data(), values.size());
    return values;
  }
  // Of a Custom node: its type, and attributes by name, as bytes or as the numbers that they hold; empty if there is none of the name.
  std::string custom_type() const { return MSDelegateNodeGetCustomType(node_); }
  bool HasAttr(const std::string& name) const {
    size_t bytes = 0;
    return MSDelegateNodeGetCustomAttribute(node_, name.c_str(), &bytes) != nullptr;
  }
  std::string GetAttr(const std::string& name) const {
    const std::vector<char> bytes = GetAttrs<char>(name);
    return {bytes.begin(), bytes.end()};
  }
  template <class T>
  std::vector<T> GetAttrs(const std::string& name) const {
    size_t bytes = 0;
    const void* const data = MSDelegateNodeGetCustomAttribute(node_, name.c_str(), &bytes);
    std::vector<T> values(bytes / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), data, values.size() * sizeof(T));
    return values;
  }

 private:
  const MSDelegateNode* node_;
};

}  // namespace schema

namespace kernel {

// What computes a node, or a run of nodes, with fixed shapes: it is made anew for others.
class Kernel {
 public:
  Kernel() = default;
  // `context` is null: it may be gone when a model runs.
  Kernel(std::vector<MSTensor> inputs, std::vector<MSTensor> outputs, const schema::Primitive* primitive, const Context* context)
      : inputs_(std::move(inputs)), outputs_(std::move(outputs)), primitive_(primitive), context_(context) {}
  virtual ~Kernel() = default;
  virtual int Prepare() { return kSuccess; }  // once, before it runs
  virtual int Execute() = 0;
  virtual int ReSize() { return kSuccess; }  // not called

  virtual void set_inputs(const std::vector<MSTensor>& inputs) { inputs_ = inputs; }
  virtual void set_outputs(const std::vector<MSTensor>& outputs) { outputs_ = outputs; }
  const std::vector<MSTensor>& inputs() const { return inputs_; }
  const std::vector<MSTensor>& outputs() const { return outputs_; }
  const schema::Primitive* primitive() const { return primitive_; }
  const Context* context() const { return context_; }
  std::string name() const { return name_; }
  void set_name(const std::string& name) { name_ = name; }

 protected:
  std::vector<MSTensor> inputs_, outputs_;  // while it runs: with the elements of the run; an input that is left out IsNull()
  const schema::Primitive* primitive_ = nullptr;
  const Context* context_ = nullptr;
  std::string name_;
};

// The shapes and types of an operator's results.
class KernelInterface {
 public:
  virtual ~KernelInterface() = default;
  // Sets them in `outputs`. Inputs have elements if they are constants.
  virtual Status Infer(std::vector<MSTensor>* inputs, std::vector<MSTensor>* outputs, const schema::Primitive* primitive) = 0;
};
using KernelInterfaceCreator = std::function<std::shared_ptr<KernelInterface>()>;

}  // namespace kernel

namespace detail {

inline std::vector<MSTensor> tensors_of(const MSDelegateTensor* given, size_t count) {
  std::vector<MSTensor> made;
  for (size_t i = 0; i < count; ++i) {
    const MSDelegateTensor& t = given[i];
    made.push_back(MSTensor::CreateRefTensor(t.name ? t.name : "", static_cast<DataType>(t.data_type), {t.shape, t.shape + t.shape_num}, t.data));
  }
  return made;
}
inline std::vector<MSTensor> inputs_of(const MSDelegateNode* node) {
  size_t count = 0;
  const MSDelegateTensor* const tensors = MSDelegateNodeGetInputs(node, &count);
  return tensors_of(tensors, count);
}
inline std::vector<MSTensor> outputs_of(const MSDelegateNode* node) {
  size_t count = 0;
  const MSDelegateTensor* const tensors = MSDelegateNodeGetOutputs(node, &count);
  return tensors_of(tensors, count);
}

// A kernel as the C interface calls it.
struct BoundKernel {
  std::unique_ptr<schema::Primitive> primitive;
  std::shared_ptr<kernel::Kernel> kernel;
  bool in_order;  // its tensors are those of a run, one for one; else they are found by name

  MSDelegateKernel calls() { return {this, Run, Destroy}; }
  static MSStatus Run(void* user, const MSDelegateTensor* inputs, size_t input_num, MSDelegateTensor* outputs, size_t output_num) {
    auto* const bound = static_cast<BoundKernel*>(user);
    if (bound->kernel->inputs().empty() && bound->kernel->outputs().empty()) {
      bound->kernel->set_inputs(tensors_of(inputs, input_num));
      bound->kernel->set_outputs(tensors_of(outputs, output_num));
      bound->in_order = true;
    }
    bound->Point(bound->kernel->inputs(), inputs, input_num);
    bound->Point(bound->kernel->outputs(), outputs, output_num);
    return static_cast<MSStatus>(bound->kernel->Execute());
  }
  static void Destroy(void* user) { delete static_cast<BoundKernel*>(user); }
  void Point(const std::vector<MSTensor>& tensors, const MSDelegateTensor* given, size_t count) const {
    for (size_t i = 0; i < tensors.size(); ++i)
      for (size_t k = in_order ? i : 0; k < (in_order ? i + 1 : count) && k < count; ++k)
        if (!tensors[i].IsNull() && (in_order || tensors[i].Name() == given[k].name)) MSTensorSetData(tensors[i].handle(), given[k].data);
  }
};

}  // namespace detail

// The nodes of a plan, in the order in which they run.
class DelegateModel {
 public:
  explicit DelegateModel(MSDelegateModel* model) : model_(model) {}
  size_t size() const { return MSDelegateModelGetNodeNum(model_); }
  const MSDelegateNode* node(size_t i) const { return MSDelegateModelGetNode(model_, i); }
  schema::Primitive GetPrimitive(size_t i) const { return schema::Primitive(node(i)); }
  std::string Name(size_t i) const { return MSDelegateNodeGetName(node(i)); }
  std::string Type(size_t i) const { return MSDelegateNodeGetType(node(i)); }
  // With elements if they are constants.
  std::vector<MSTensor> Inputs(size_t i) const { return detail::inputs_of(node(i)); }
  std::vector<MSTensor> Outputs(size_t i) const { return detail::outputs_of(node(i)); }
  bool IsTaken(size_t i) const { return MSDelegateModelIsTaken(model_, i); }
  // Claims nodes first, ..., first + count - 1. A kernel without tensors gets those at the border of the run; one that has tensors of
  // nodes finds in these what the run reads and makes.
  Status Replace(size_t first, size_t count, std::shared_ptr<kernel::Kernel> kernel, const std::string& why) {
    auto bound = std::make_unique<detail::BoundKernel>(detail::BoundKernel{nullptr, std::move(kernel), false});
    return Claim(first, count, std::move(bound), why);
  }
  Status Claim(size_t first, size_t count, std::unique_ptr<detail::BoundKernel> bound, const std::string& why) {
    const MSDelegateKernel calls = bound->calls();
    const Status status = MSDelegateModelReplace(model_, first, count, &calls, why.c_str());
    if (status) bound.release();  // the runtime's
    return status;
  }
  void Decline(size_t i, const std::string& why) { MSDelegateModelDecline(model_, i, why.c_str()); }

 private:
  MSDelegateModel* const model_;
};

// Another device. Build is called for every plan of a model.
class Delegate {
 public:
  explicit Delegate(std::string name) : name_(std::move(name)) {}
  virtual ~Delegate() = default;
  virtual Status Build(DelegateModel* model) = 0;
  const std::string& name() const { return name_; }

 private:
  const std::string name_;
};

namespace detail {

inline MSDelegateCallbacks calls_of(const std::shared_ptr<Delegate>& delegate) {
  using Kept = std::shared_ptr<Delegate>;
  return {delegate->name().c_str(), new Kept(delegate),
          [](void* user, MSDelegateModel* model) {
            DelegateModel nodes(model);
            return static_cast<MSStatus>((*static_cast<Kept*>(user))->Build(&nodes).StatusCode());
          },
          [](void* user) { delete static_cast<Kept*>(user); }};
}

}  // namespace detail

namespace registry {

// Makes the kernel of a node, null if it has none for it.
using CreateKernel = std::function<std::shared_ptr<kernel::Kernel>(const std::vector<MSTensor>& inputs, const std::vector<MSTensor>& outputs,
                                                                   const schema::Primitive* primitive, const Context* context)>;

// Kernels by device and provider, data type of the first input, and operator; one that is registered later comes first. A Custom node
// runs by any provider's kernel unless the context's device names a provider that has one.
class RegisterKernel {
 public:
  // `type`: lite::schema::kOp_<Operator>.
  static Status RegKernel(const std::string& arch, const std::string& provider, DataType data_type, int type, const CreateKernel& creator) {
    if (type <= 0 || type >= lite::schema::kOpCount) return {kLiteParamInvalid, "there is no operator " + std::to_string(type)};
    if (provider.empty()) return {kLiteParamInvalid, "kernels for operators of the runtime need a provider"};
    return Enter({arch, provider, data_type, lite::schema::op_name(type), creator});
  }
  static Status RegCustomKernel(const std::string& arch, const std::string& provider, DataType data_type, const std::string& type,
                                const CreateKernel& creator) {
    return Enter({arch, provider, data_type, "Custom " + type, creator});
  }
  // Empty names of a device or provider stand for any. Null if there is none.
  static CreateKernel GetCreator(const std::string& arch, const std::string& provider, DataType data_type, const std::string& type) {
    const std::lock_guard<std::mutex> lock(All().mutex);
    for (auto one = All().entries.rbegin(); one != All().entries.rend(); ++one)
      if ((arch.empty() || one->arch == arch) && (provider.empty() || one->provider == provider) && one->data_type == data_type && one->type == type)
        return one->creator;
    return nullptr;
  }
  // The kernels of a provider as a delegate; null for an empty name.
  static std::shared_ptr<Delegate> Provided(const std::string& provider, const std::string& arch) {
    return provider.empty() ? nullptr : std::make_shared<Provider>(provider, arch);
  }
  // What runs a node; `status` tells of a Prepare that fails.
  static std::unique_ptr<detail::BoundKernel> Make(const std::string& arch, const std::string& provider, const MSDelegateNode* node, Status* status) {
    auto bound = std::make_unique<detail::BoundKernel>();
    bound->primitive = std::make_unique<schema::Primitive>(node);
    std::vector<MSTensor> inputs = detail::inputs_of(node), outputs = detail::outputs_of(node);
    const MSTensor first = !inputs.empty() ? inputs[0] : outputs.empty() ? MSTensor() : outputs[0];
    const std::string type = bound->primitive->type() == "Custom" ? "Custom " + bound->primitive->custom_type() : bound->primitive->type();
    const CreateKernel creator = GetCreator(arch, provider, first.IsNull() ? DataType::kTypeUnknown : first.DataType(), type);
    bound->kernel = creator ? creator(inputs, outputs, bound->primitive.get(), nullptr) : nullptr;
    if (!bound->kernel) return nullptr;
    bound->kernel->set_inputs(inputs);  // whatever it was made with
    bound->kernel->set_outputs(outputs);
    bound->kernel->set_name(bound->primitive->name());
    if (const int code = bound->kernel->Prepare(); code != kSuccess)
      *status = Status(static_cast<StatusCode>(code), "the kernel of node '" + bound->kernel->name() + "' cannot be prepared");
    return bound;
  }

 private:
  struct Entry {
    std::string arch, provider;
    DataType data_type;
    std::string type;
    CreateKernel creator;
  };
  struct Entries {
    std::mutex mutex;
    std::vector<Entry> entries;
  };
  static Entries& All() {
    static Entries* const all = new Entries;  // models may run while the program ends
    return *all;
  }
  static Status Enter(Entry entry) {
    if (!entry.creator) return {kLiteNullptr, "the creator of the kernel is null"};
    const std::lock_guard<std::mutex> lock(All().mutex);
    All().entries.push_back(std::move(entry));
    return {};
  }

  class Provider : public Delegate {
   public:
    Provider(const std::string& provider, std::string arch) : Delegate(provider), arch_(std::move(arch)) {}
    Status Build(DelegateModel* model) override {
      for (size_t i = 0; i < model->size(); ++i) {
        Status status;
        auto kernel = model->IsTaken(i) ? nullptr : Make(arch_, name(), model->node(i), &status);
        if (!status) return status;
        if (kernel) status = model->Claim(i, 1, std::move(kernel), "registered");
        if (!status) model->Decline(i, status.ToString());
      }
      return {};
    }

   private:
    const std::string arch_;
  };
};

// Shapes of Custom nodes by type.
class RegisterKernelInterface {
 public:
  // Of several providers for a type the last one is asked. From now on models can have such nodes.
  static Status CustomReg(const std::string& provider, const std::string& type, const kernel::KernelInterfaceCreator& creator) {
    (void)provider;
    if (!creator) return {kLiteNullptr, "the creator of the interface is null"};
    const MSCustomOperator custom{new std::shared_ptr<kernel::KernelInterface>(creator()), Infer, Create,
                                  [](void* user) { delete static_cast<std::shared_ptr<kernel::KernelInterface>*>(user); }};
    return MSRegisterCustomOperator(type.c_str(), &custom);
  }

 private:
  static MSStatus Infer(void* user, const MSDelegateNode* node, MSDataType* types, MSShapeInfo* shapes, size_t output_num) {
    const schema::Primitive primitive(node);
    size_t count = 0;
    const MSDelegateTensor* const described = MSDelegateNodeGetOutputs(node, &count);
    std::vector<MSTensor> inputs = detail::inputs_of(node), outputs;
    const DataType first = inputs.empty() || inputs[0].IsNull() ? DataType::kNumberTypeFloat32 : inputs[0].DataType();
    for (size_t i = 0; i < output_num; ++i) outputs.push_back(MSTensor::CreateRefTensor(i < count ? described[i].name : "", first, {0}, nullptr));
    const Status status = (*static_cast<std::shared_ptr<kernel::KernelInterface>*>(user))->Infer(&inputs, &outputs, &primitive);
    if (!status) return static_cast<MSStatus>(status.StatusCode());
    if (outputs.size() != output_num) return kMSStatusLiteInferError;
    for (size_t i = 0; i < output_num; ++i) {
      const std::vector<int64_t> shape = outputs[i].Shape();
      types[i] = static_cast<MSDataType>(outputs[i].DataType());
      shapes[i].shape_num = shape.size();
      for (size_t d = 0; d < shape.size(); ++d) shapes[i].shape[d] = shape[d];
    }
    return kMSStatusSuccess;
  }
  static MSStatus Create(void*, const MSDelegateNode* node, MSDelegateKernel* kernel) {
    Status status;
    auto bound = RegisterKernel::Make("", "", node, &status);
    if (!bound) return kMSStatusLiteNotFindOp;
    if (!status) return static_cast<MSStatus>(status.StatusCode());
    bound->in_order = true;
    *kernel = bound.release()->calls();
    return kMSStatusSuccess;
  }
};

}  // namespace registry
}  // namespace mycelia

// At the start of the program; `arch`, `provider` and a custom `op_type` are words, not texts.
#define MYCELIA_LITE_JOINED(a, b) a##b
#define MYCELIA_LITE_UNIQUE(line) MYCELIA_LITE_JOINED(mycelia_lite_registered_, line)
#define REGISTER_KERNEL(arch, provider, data_type, op_type, creator) \
  [[maybe_unused]] static const bool MYCELIA_LITE_UNIQUE(__LINE__) = \
      mycelia::registry::RegisterKernel::RegKernel(#arch, #provider, data_type, op_type, creator).IsOk()
#define REGISTER_CUSTOM_KERNEL(arch, provider, data_type, op_type, creator) \
  [[maybe_unused]] static const bool MYCELIA_LITE_UNIQUE(__LINE__) = \
      mycelia::registry::RegisterKernel::RegCustomKernel(#arch, #provider, data_type, #op_type, creator).IsOk()
#define REGISTER_CUSTOM_KERNEL_INTERFACE(provider, op_type, creator) \
  [[maybe_unused]] static const bool MYCELIA_LITE_UNIQUE(__LINE__) = \
      mycelia::registry::RegisterKernelInterface::CustomReg(#provider, #op_type, creator).IsOk()

#endif
