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

int main(int argc, char** argv) {
  (void)argc;
  MSDelegateCallbacks calls[2] = {{"none", NULL, refuse, gone}, {"all", NULL, take, gone}};
  for (int i = 0; i < 2; ++i) {
    MSContextHandle context = MSContextCreate();
    if (MSContextAddDelegate(context, &calls[i]) != kMSStatusSuccess) return 1;
    MSModelHandle model = MSModelCreate();
    MSStatus status = MSModelBuildFromFile(model, argv[1], kMSModelTypeMindIRLite, context);
    if (status == kMSStatusSuccess) {
      if (i == 0) return 2;
      status = MSModelPredict(model, MSModelGetInputs(model), NULL, NULL, NULL);
    }
    printf("%d %s\n", (int)status, MSGetLastError());
    MSContextDestroy(&context);
    MSModelDestroy(&model);
  }
  printf("%d\n", destroyed);
  return 0;
}
