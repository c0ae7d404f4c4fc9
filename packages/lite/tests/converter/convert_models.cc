// `convert MODEL.mindir FOLDER`: conversions by mycelia::Converter; prints what each ended with.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mycelia/lite/converter.h"

using mycelia::Converter;
using mycelia::Model;
using mycelia::Status;

static void told(const char* what, const Status& status) {
  std::printf("%s: %d %s\n", what, static_cast<int>(status.StatusCode()), status.ToString().substr(0, 100).c_str());
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string source = argv[1], folder = argv[2];
  {
    Converter converter(mycelia::converter::kFmkTypeMs, source, folder + "/half");
    converter.SetWeightFp16(true);
    converter.SetInputShape({{"x", {2, 1, 32, 32}}});
    converter.SetConfigInfo("registry", {{"fusion_blacklists", "ConvActivationFusion"}});
    told("file", converter.Convert());
    Model model;
    if (!model.Build(folder + "/half.ms") || model.GetInputs()[0].Shape() != std::vector<int64_t>{2, 1, 32, 32}) return 3;
  }
  {
    Converter converter(mycelia::converter::kFmkTypeMs, source);
    told("no output", converter.Convert());
    converter.SetNoFusion(true);
    size_t size = 0;
    Status status;
    void* const bytes = converter.Convert(&size, &status);
    told("memory", status);
    Model model;
    if (!bytes || !model.Build(bytes, size)) return 4;
    std::free(bytes);
    if (!converter.GetNoFusion() || converter.GetWeightFp16()) return 5;
  }
  Converter converter(mycelia::converter::kFmkTypeMs, source, folder + "/wrong");
  converter.SetInputDataType(mycelia::DataType::kNumberTypeFloat64);
  told("type", converter.Convert());
  setenv("PATH", "/nowhere", 1);
  told("no command", converter.Convert());
  return 0;
}
