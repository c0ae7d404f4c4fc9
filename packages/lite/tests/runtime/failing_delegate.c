/* Delegates that fail: `failing MODEL.ms` prints what the runtime says, and how many of their objects it freed. */
#include <stdio.h>
#include <string.h>
#include "mycelia/lite/c_api.h"

static int destroyed = 0;
static MSStatus refuse(void* user, MSDelegateModel* model) { (void)user; (void)model; return kMSStatusLiteNotSupport; }
static MSStatus fail(void* user, const MSDelegateTensor* in, size_t n, MSDelegateTensor* out, size_t m) {
  (void)user; (void)in; (void)n; (void)out; (void)m;
  return kMSStatusLiteError;
}
static void kernel_gone(void* user) { (void)user; destroyed += 10; }
static void gone(void* user) { (void)user; ++destroyed; }
static MSStatus take(void* user, MSDelegateModel* model) {
  (void)user;
  MSDelegateKernel kernel = {NULL, fail, kernel_gone};
  if (MSDelegateModelReplace(model, 0, 1000, &kernel, "") == kMSStatusSuccess) return kMSStatusLiteError;
  if (MSDelegateModelReplace(model, 0, 0, &kernel, "") == kMSStatusSuccess) return kMSStatusLiteError;
  if (MSDelegateModelReplace(model, 0, MSDelegateModelGetNodeNum(model), &kernel, "all") != kMSStatusSuccess) return kMSStatusLiteError;
  return MSDelegateModelReplace(model, 0, 1, &kernel, "again") == kMSStatusSuccess ? kMSStatusLiteError : kMSStatusSuccess;
}
/* Reads every field as what it is not, of every node, and takes none. */
static MSStatus look(void* user, MSDelegateModel* model) {
  int64_t values[4];
  size_t i;
  uint16_t field;
  (void)user;
  for (i = 0; i < MSDelegateModelGetNodeNum(model); ++i) {
    for (field = 0; field < 200; ++field) {
      MSDelegateNodeGetInts(MSDelegateModelGetNode(model, i), field, values, 4);
      MSDelegateNodeGetInt(MSDelegateModelGetNode(model, i), field, 8, 0);
    }
  }
  return kMSStatusSuccess;
}
/* Says that its result has another shape. */
static MSStatus reshape(void* user, const MSDelegateTensor* in, size_t n, MSDelegateTensor* out, size_t m) {
  (void)user; (void)in; (void)n; (void)m;
  out[0].shape_num = 7;
  return kMSStatusSuccess;
}
static MSStatus take_and_reshape(void* user, MSDelegateModel* model) {
  MSDelegateKernel kernel = {NULL, reshape, kernel_gone};
  (void)user;
  return MSDelegateModelReplace(model, 0, MSDelegateModelGetNodeNum(model), &kernel, "all");
}

int main(int argc, char** argv) {
  (void)argc;
  MSDelegateCallbacks calls[4] = {{"none", NULL, refuse, gone}, {"all", NULL, take, gone}, {"look", NULL, look, gone}, {"shape", NULL, take_and_reshape, gone}};
  for (int i = 0; i < 4; ++i) {
    MSContextHandle context = MSContextCreate();
    if (MSContextAddDelegate(context, &calls[i]) != kMSStatusSuccess) return 1;
    MSModelHandle model = MSModelCreate();
    MSStatus status = MSModelBuildFromFile(model, argv[1], kMSModelTypeMindIRLite, context);
    if (status == kMSStatusSuccess) {
      if (i == 0) return 2;
      status = MSModelPredict(model, MSModelGetInputs(model), NULL, NULL, NULL);
    }
    if (status == kMSStatusSuccess) printf("%.9g\n", ((const float*)MSTensorGetData(MSModelGetOutputs(model).handle_list[0]))[0]);
    else printf("%d %s\n", (int)status, MSGetLastError());
    MSContextDestroy(&context);
    MSModelDestroy(&model);
  }
  printf("%d\n", destroyed);
  return 0;
}
