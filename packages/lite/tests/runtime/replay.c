/* Runs a model on given inputs: replay MODEL INPUTS OUTPUTS, raw elements of all tensors one after the other. */
#include <stdio.h>
#include <stdlib.h>

#include "mycelia/lite/c_api.h"

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, MSGetLastError());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 4) return failed("three arguments are needed");
  MSModelHandle model = MSModelCreate();
  if (MSModelBuildFromFile(model, argv[1], kMSModelTypeMindIRLite, NULL) != kMSStatusSuccess) return failed("build");
  MSTensorHandleArray inputs = MSModelGetInputs(model), outputs;
  FILE* in = fopen(argv[2], "rb");
  for (size_t i = 0; i < inputs.handle_num; ++i) {
    const size_t bytes = MSTensorGetDataSize(inputs.handle_list[i]);
    if (fread(MSTensorGetMutableData(inputs.handle_list[i]), 1, bytes, in) != bytes) return failed("inputs");
  }
  fclose(in);
  if (MSModelPredict(model, inputs, &outputs, NULL, NULL) != kMSStatusSuccess) return failed("predict");
  FILE* out = fopen(argv[3], "wb");
  for (size_t i = 0; i < outputs.handle_num; ++i)
    fwrite(MSTensorGetData(outputs.handle_list[i]), 1, MSTensorGetDataSize(outputs.handle_list[i]), out);
  fclose(out);
  printf("%s\n", MSInstructionSet());
  MSModelDestroy(&model);
  return 0;
}
