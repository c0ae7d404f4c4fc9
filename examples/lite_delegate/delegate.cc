// A second device in a program of its own: it takes elementwise additions and products of equal shapes, and activations without
// parameters, with memory that is not the host's. `delegate MODEL.ms INPUT.f32` prints where each node runs, then the outputs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "mycelia/lite/model.h"

namespace {

using mycelia::MSTensor;
using mycelia::Status;

// What stands for another memory: only copies reach it.
using Device = std::map<std::string, std::vector<float>>;

void copy_in(const MSTensor& t, Device* memory) {
  const auto data = static_cast<const float*>(t.Data().get());
  (*memory)[t.Name()].assign(data, data + t.ElementNum());
}

struct Operation {
  std::string type;
  std::vector<std::string> inputs;
  std::string output;
  size_t count;
};

class Chain : public mycelia::kernel::Kernel {
 public:
  Chain(std::vector<Operation> operations, Device constants) : operations_(std::move(operations)), memory_(std::move(constants)) {}

  int Execute() override {  // between the tensors at the border of the run
    for (const MSTensor& t : inputs()) copy_in(t, &memory_);
    for (const Operation& op : operations_) {
      const std::vector<float>& a = memory_[op.inputs[0]];
      std::vector<float> made(op.count);
      for (size_t i = 0; i < op.count; ++i) {
        const float b = op.inputs.size() > 1 ? memory_[op.inputs[1]][i] : 0;
        made[i] = op.type == "AddFusion" ? a[i] + b : op.type == "MulFusion" ? a[i] * b : std::tanh(a[i]);
      }
      memory_[op.output] = std::move(made);
    }
    for (MSTensor t : outputs()) std::memcpy(t.MutableData(), memory_[t.Name()].data(), t.DataSize());
    return mycelia::kSuccess;
  }

 private:
  const std::vector<Operation> operations_;
  Device memory_;
};

class ChainDevice : public mycelia::Delegate {
 public:
  ChainDevice() : Delegate("chain") {}

  Status Build(mycelia::DelegateModel* model) override {
    for (size_t first = 0; first < model->size();) {
      size_t count = 0;
      while (first + count < model->size() && supports(model, first + count)) ++count;
      if (count && !claim(model, first, count)) {
        for (size_t i = first; i < first + count; ++i) model->Decline(i, "its results cannot be taken over");
      }
      first += std::max<size_t>(count, 1);
    }
    return mycelia::kSuccess;
  }

 private:
  static bool supports(mycelia::DelegateModel* model, size_t i) {
    namespace schema = mycelia::lite::schema;
    const mycelia::schema::Primitive node = model->GetPrimitive(i);
    const std::string type = node.type();
    const std::vector<MSTensor> inputs = model->Inputs(i);
    std::string why;
    if (model->IsTaken(i)) return false;
    if (type == "Activation") {
      if (node.GetInt(schema::kActivation_activation_type, 1) != schema::kActivationType_TANH) why = "only tanh";
    } else if (type != "AddFusion" && type != "MulFusion") {
      why = "no such operator";
    } else if (node.GetInt(type == "AddFusion" ? schema::kAddFusion_activation_type : schema::kMulFusion_activation_type, 1) != 0) {
      why = "no fused activations";
    } else if (inputs.size() != 2 || inputs[0].Shape() != inputs[1].Shape()) {
      why = "shapes differ";
    }
    for (const MSTensor& t : inputs)
      if (t.DataType() != mycelia::DataType::kNumberTypeFloat32) why = "only float32";
    if (why.empty()) return true;
    model->Decline(i, why);
    return false;
  }

  static Status claim(mycelia::DelegateModel* model, size_t first, size_t count) {
    std::vector<Operation> operations;
    Device constants;
    for (size_t i = first; i < first + count; ++i) {
      Operation op{model->Type(i), {}, model->Outputs(i)[0].Name(), static_cast<size_t>(model->Outputs(i)[0].ElementNum())};
      for (const MSTensor& t : model->Inputs(i)) {
        op.inputs.push_back(t.Name());
        if (t.Data()) copy_in(t, &constants);
      }
      operations.push_back(std::move(op));
    }
    return model->Replace(first, count, std::make_shared<Chain>(std::move(operations), std::move(constants)), "element by element");
  }
};

int failed(const mycelia::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: delegate MODEL.ms INPUT.f32\n");
    return 2;
  }
  mycelia::Model model;
  {
    auto context = std::make_shared<mycelia::Context>();  // may go once the model is built
    if (auto status = context->SetDelegate(std::make_shared<ChainDevice>()); !status) return failed(status);
    if (auto status = model.Build(argv[1], mycelia::kMindIR_Lite, context); !status) return failed(status);
  }
  std::printf("%s", model.GetModelInfo("partition").c_str());
  mycelia::MSTensor input = model.GetInputs()[0];
  std::FILE* const file = std::fopen(argv[2], "rb");
  if (!file || std::fread(input.MutableData(), 1, input.DataSize(), file) != input.DataSize()) {
    std::fprintf(stderr, "%s has not the %zu bytes of the input\n", argv[2], input.DataSize());
    return 1;
  }
  std::fclose(file);
  std::vector<mycelia::MSTensor> outputs;
  if (auto status = model.Predict({input}, &outputs); !status) return failed(status);
  for (const mycelia::MSTensor& output : outputs) {
    const auto values = static_cast<const float*>(output.Data().get());
    for (int64_t i = 0; i < output.ElementNum(); ++i) std::printf("%.9g ", static_cast<double>(values[i]));
    std::printf("\n");
  }
  return 0;
}
