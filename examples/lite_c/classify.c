/* Classifies one picture with a .ms model: `classify MODEL.ms PICTURE.f32`, the picture as the model takes it, float32
 * [1, channels, height, width]. Prints the class and its score. C99. */
#include <stdio.h>

#include "mycelia/lite/c_api.h"

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, MSGetLastError());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: classify MODEL.ms PICTURE.f32\n");
    return 2;
  }
  MSContextHandle context = MSContextCreate();
  MSContextSetThreadNum(context, 2);
  MSModelHandle model = MSModelCreate();
  const MSStatus built = MSModelBuildFromFile(model, argv[1], kMSModelTypeMindIRLite, context);
  MSContextDestroy(&context); /* not needed any more */
  if (built != kMSStatusSuccess) return failed(argv[1]);

  MSTensorHandleArray inputs = MSModelGetInputs(model);
  if (MSTensorGetElementNum(inputs.handle_list[0]) < 0) { /* an open batch */
    size_t rank = 0;
    const int64_t* sizes = MSTensorGetShape(inputs.handle_list[0], &rank);
    MSShapeInfo shape = {rank, {0}};
    for (size_t i = 0; i < rank; ++i) shape.shape[i] = sizes[i] < 0 ? 1 : sizes[i];
    if (MSModelResize(model, inputs, &shape, 1) != kMSStatusSuccess) return failed("resize");
  }
  void* const pixels = MSTensorGetMutableData(inputs.handle_list[0]);
  const size_t bytes = MSTensorGetDataSize(inputs.handle_list[0]);
  FILE* const picture = fopen(argv[2], "rb");
  if (!picture || !pixels || fread(pixels, 1, bytes, picture) != bytes) {
    fprintf(stderr, "%s has not the %lu bytes of a picture\n", argv[2], (unsigned long)bytes);
    return 1;
  }
  fclose(picture);

  MSTensorHandleArray outputs;
  if (MSModelPredict(model, inputs, &outputs, NULL, NULL) != kMSStatusSuccess) return failed("predict");
  const float* const scores = MSTensorGetData(outputs.handle_list[0]);
  const int64_t classes = MSTensorGetElementNum(outputs.handle_list[0]);
  int64_t best = 0;
  for (int64_t i = 1; i < classes; ++i)
    if (scores[i] > scores[best]) best = i;
  printf("%ld %.6f\n", (long)best, (double)scores[best]);
  MSModelDestroy(&model);
  return 0;
}
