// An operator of the program's own, and a kernel of its own for an operator of the runtime: `swish MODEL.ms [PROVIDER]` runs a model
// with Custom nodes of the type Swish, x / (1 + exp(-beta x)), on ones and prints the outputs. With the provider "Loud" the sigmoids of
// the model are computed here, too.
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "mycelia/lite/model.h"

namespace {

using mycelia::DataType;
using mycelia::MSTensor;
using mycelia::Status;
namespace schema = mycelia::lite::schema;

class SwishShapes : public mycelia::kernel::KernelInterface {
 public:
  Status Infer(std::vector<MSTensor>* inputs, std::vector<MSTensor>* outputs, const mycelia::schema::Primitive* primitive) override {
    if (inputs->size() != 1 || outputs->size() != 1 || primitive->GetAttrs<double>("beta").size() != 1) return mycelia::kLiteInvalidOpAttr;
    (*outputs)[0].SetDataType((*inputs)[0].DataType());
    return (*outputs)[0].SetShape((*inputs)[0].Shape());
  }
};

class Swish : public mycelia::kernel::Kernel {
 public:
  using Kernel::Kernel;
  int Prepare() override {
    beta_ = static_cast<float>(primitive()->GetAttrs<double>("beta")[0]);
    return mycelia::kSuccess;
  }
  int Execute() override {
    const auto* x = static_cast<const float*>(inputs_[0].Data().get());
    auto* y = static_cast<float*>(outputs_[0].MutableData());
    for (int64_t i = 0; i < outputs_[0].ElementNum(); ++i) y[i] = x[i] / (1 + std::exp(-beta_ * x[i]));
    return mycelia::kSuccess;
  }

 private:
  float beta_ = 1;
};

class Sigmoid : public mycelia::kernel::Kernel {
 public:
  using Kernel::Kernel;
  int Execute() override {
    std::printf("%s is computed here\n", name().c_str());
    const auto* x = static_cast<const float*>(inputs_[0].Data().get());
    auto* y = static_cast<float*>(outputs_[0].MutableData());
    for (int64_t i = 0; i < outputs_[0].ElementNum(); ++i) y[i] = 1 / (1 + std::exp(-x[i]));
    return mycelia::kSuccess;
  }
};

std::shared_ptr<mycelia::kernel::KernelInterface> swish_shapes() { return std::make_shared<SwishShapes>(); }

std::shared_ptr<mycelia::kernel::Kernel> swish(const std::vector<MSTensor>& inputs, const std::vector<MSTensor>& outputs,
                                               const mycelia::schema::Primitive* primitive, const mycelia::Context* context) {
  return std::make_shared<Swish>(inputs, outputs, primitive, context);
}

std::shared_ptr<mycelia::kernel::Kernel> sigmoid(const std::vector<MSTensor>& inputs, const std::vector<MSTensor>& outputs,
                                                 const mycelia::schema::Primitive* primitive, const mycelia::Context* context) {
  if (primitive->GetInt(schema::kActivation_activation_type, 1) != schema::kActivationType_SIGMOID) return nullptr;  // the runtime's
  return std::make_shared<Sigmoid>(inputs, outputs, primitive, context);
}

REGISTER_CUSTOM_KERNEL_INTERFACE(Loud, Swish, swish_shapes);
REGISTER_CUSTOM_KERNEL(CPU, Loud, DataType::kNumberTypeFloat32, Swish, swish);
REGISTER_KERNEL(CPU, Loud, DataType::kNumberTypeFloat32, schema::kOp_Activation, sigmoid);

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: swish MODEL.ms [PROVIDER]\n");
    return 2;
  }
  auto context = std::make_shared<mycelia::Context>();
  auto cpu = std::make_shared<mycelia::CPUDeviceInfo>();
  if (argc > 2) cpu->SetProvider(argv[2]);
  context->MutableDeviceInfo().push_back(cpu);
  mycelia::Model model;
  Status status = model.Build(argv[1], mycelia::kMindIR_Lite, context);
  std::vector<MSTensor> outputs;
  if (status) {
    for (MSTensor& input : model.GetInputs()) {
      auto* const values = static_cast<float*>(input.MutableData());
      for (int64_t i = 0; values && i < input.ElementNum(); ++i) values[i] = 1;
    }
    status = model.Predict(model.GetInputs(), &outputs);
  }
  if (!status) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  for (const MSTensor& output : outputs) {
    const auto values = static_cast<const float*>(output.Data().get());
    for (int64_t i = 0; i < output.ElementNum(); ++i) std::printf("%.9g ", static_cast<double>(values[i]));
    std::printf("\n");
  }
  return 0;
}
