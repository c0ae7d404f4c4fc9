// Classifies images with a .ms model: `classify MODEL.ms IMAGES.f32`, the second a file of float32 numbers, one image
// [1, channels, height, width] after the other as the model takes them. Prints the class of each.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "mycelia/lite/model.h"

using mycelia::Model;
using mycelia::MSTensor;
using mycelia::Status;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: classify MODEL.ms IMAGES.f32\n");
    return 2;
  }
  Model model;
  Status status = model.Build(argv[1]);
  if (status && model.GetInputs()[0].ElementNum() < 0) {  // an open batch: one image at a time
    std::vector<int64_t> shape = model.GetInputs()[0].Shape();
    shape[0] = 1;
    status = model.Resize(model.GetInputs(), {shape});
  }
  if (!status) {
    std::fprintf(stderr, "%s: %s\n", argv[1], status.ToString().c_str());
    return 1;
  }
  std::FILE* images = std::fopen(argv[2], "rb");
  if (!images) {
    std::perror(argv[2]);
    return 1;
  }
  MSTensor input = model.GetInputs()[0];
  const int64_t count = input.Shape()[0];
  while (std::fread(input.MutableData(), 1, input.DataSize(), images) == input.DataSize()) {
    std::vector<MSTensor> outputs;
    status = model.Predict({input}, &outputs);
    if (!status) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 1;
    }
    const auto scores = static_cast<const float*>(outputs[0].Data().get());
    const int64_t classes = outputs[0].ElementNum() / count;
    for (int64_t i = 0; i < count; ++i) {
      const float* row = scores + i * classes;
      std::printf("%d\n", static_cast<int>(std::max_element(row, row + classes) - row));
    }
  }
  std::fclose(images);
  return 0;
}
