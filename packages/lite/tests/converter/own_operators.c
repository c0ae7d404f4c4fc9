/* An operator of the program's own in C: `own MODEL.ms`, a model with a Custom node of the type Swish on [open, 5]. The exit status tells
 * which expectation failed. */
#include <stdio.h>
#include <string.h>
#include "mycelia/lite/c_api.h"

static int kernels = 0, operators = 0, runs = 0;

static MSStatus infer(void* user, const MSDelegateNode* node, MSDataType* types, MSShapeInfo* shapes, size_t count) {
  size_t inputs = 0, bytes = 0;
  const MSDelegateTensor* x = MSDelegateNodeGetInputs(node, &inputs);
  if (*(int*)user != 42 || inputs != 1 || count != 1 || x->data) return kMSStatusLiteInferError;
  if (strcmp(MSDelegateNodeGetCustomType(node), "Swish") || strcmp(MSDelegateNodeGetType(node), "Custom")) return kMSStatusLiteInferError;
  if (!MSDelegateNodeGetCustomAttribute(node, "beta", &bytes) || bytes != 8) return kMSStatusLiteInferError;
  if (MSDelegateNodeGetCustomAttribute(node, "none", &bytes) || bytes) return kMSStatusLiteInferError;
  types[0] = x->data_type;
  shapes[0].shape_num = x->shape_num;
  for (size_t i = 0; i < x->shape_num; ++i) shapes[0].shape[i] = x->shape[i];
  return kMSStatusSuccess;
}
static MSStatus run(void* user, const MSDelegateTensor* in, size_t n, MSDelegateTensor* out, size_t m) {
  (void)user;
  if (n != 1 || m != 1 || in->data_size != out->data_size) return kMSStatusLiteError;
  memset(out->data, 0, out->data_size);
  ++runs;
  return kMSStatusSuccess;
}
static void kernel_gone(void* user) { (void)user; --kernels; }
static MSStatus create(void* user, const MSDelegateNode* node, MSDelegateKernel* kernel) {
  (void)user; (void)node;
  MSDelegateKernel made = {NULL, run, kernel_gone};
  *kernel = made;
  ++kernels;
  return kMSStatusSuccess;
}
static void operator_gone(void* user) { (void)user; --operators; }

#define EXPECT(number, what) if (!(what)) return number

int main(int argc, char** argv) {
  (void)argc;
  int answer = 42;
  MSCustomOperator custom = {&answer, infer, create, operator_gone}, bad = {NULL, NULL, create, NULL};
  EXPECT(1, MSRegisterCustomOperator(NULL, &custom) == kMSStatusLiteNullptr);
  EXPECT(2, MSRegisterCustomOperator("Swish", &bad) == kMSStatusLiteNullptr);
  for (int i = 0; i < 2; ++i) { /* the second takes the place of the first */
    EXPECT(3, MSRegisterCustomOperator("Swish", &custom) == kMSStatusSuccess);
    EXPECT(4, ++operators == 1);
  }
  MSModelHandle models[2];
  for (int i = 0; i < 2; ++i) {
    models[i] = MSModelCreate();
    EXPECT(5, MSModelBuildFromFile(models[i], argv[1], kMSModelTypeMindIRLite, NULL) == kMSStatusSuccess);
    MSShapeInfo shape = {2, {2 + i, 5}};
    EXPECT(6, MSModelResize(models[i], MSModelGetInputs(models[i]), &shape, 1) == kMSStatusSuccess);
    float* x = MSTensorGetMutableData(MSModelGetInputs(models[i]).handle_list[0]);
    for (int k = 0; k < 5 * (2 + i); ++k) x[k] = (float)k;
  }
  EXPECT(7, kernels == 2);
  EXPECT(8, MSRegisterCustomOperator("Swish", NULL) == kMSStatusSuccess);
  EXPECT(9, operators == 1);
  for (int i = 0; i < 2; ++i) {
    MSTensorHandleArray outputs;
    EXPECT(10, MSModelPredict(models[i], MSModelGetInputs(models[i]), &outputs, NULL, NULL) == kMSStatusSuccess);
    const float* y = MSTensorGetData(outputs.handle_list[0]);
    EXPECT(11, runs == i + 1 && y[7] == 7.5f); /* sigmoid(0) + x */
  }
  MSModelHandle late = MSModelCreate();
  MSModelBuildFromFile(late, argv[1], kMSModelTypeMindIRLite, NULL);
  MSShapeInfo shape = {2, {1, 5}};
  EXPECT(12, MSModelResize(late, MSModelGetInputs(late), &shape, 1) == kMSStatusLiteNotFindOp);
  MSModelDestroy(&late);
  MSModelDestroy(&models[0]);
  EXPECT(13, operators == 1 && kernels == 1);
  MSModelDestroy(&models[1]);
  EXPECT(14, operators == 0 && kernels == 0);
  printf("all is freed\n");
  return 0;
}
