// com.mycelia.Native over the C interface.
#include <jni.h>

#include <cstring>
#include <string>
#include <vector>

#include "mycelia/lite/c_api.h"

#define NATIVE(result, name) extern "C" JNIEXPORT result JNICALL Java_com_mycelia_Native_##name

namespace {

void* of(jlong handle) { return reinterpret_cast<void*>(static_cast<uintptr_t>(handle)); }
jlong number(const void* handle) { return static_cast<jlong>(reinterpret_cast<uintptr_t>(handle)); }
jboolean fine(MSStatus status) { return status == kMSStatusSuccess ? JNI_TRUE : JNI_FALSE; }

std::string text(JNIEnv* env, jstring given) {
  if (!given) return "";
  const char* const bytes = env->GetStringUTFChars(given, nullptr);
  std::string made = bytes ? bytes : "";
  if (bytes) env->ReleaseStringUTFChars(given, bytes);
  return made;
}

jlongArray numbers(JNIEnv* env, const MSTensorHandle* handles, size_t count) {
  jlongArray made = env->NewLongArray(static_cast<jsize>(count));
  std::vector<jlong> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = number(handles[i]);
  if (made) env->SetLongArrayRegion(made, 0, static_cast<jsize>(count), all.data());
  return made;
}
jlongArray numbers(JNIEnv* env, const MSTensorHandleArray& array) { return numbers(env, array.handle_list, array.handle_num); }

std::vector<MSTensorHandle> handles(JNIEnv* env, jlongArray given) {
  std::vector<jlong> all(given ? static_cast<size_t>(env->GetArrayLength(given)) : 0);
  if (!all.empty()) env->GetLongArrayRegion(given, 0, static_cast<jsize>(all.size()), all.data());
  std::vector<MSTensorHandle> made;
  for (jlong handle : all) made.push_back(of(handle));
  return made;
}

std::vector<int64_t> sizes(JNIEnv* env, jintArray given) {
  std::vector<jint> all(given ? static_cast<size_t>(env->GetArrayLength(given)) : 0);
  if (!all.empty()) env->GetIntArrayRegion(given, 0, static_cast<jsize>(all.size()), all.data());
  return {all.begin(), all.end()};
}

}  // namespace

NATIVE(jstring, lastError)(JNIEnv* env, jclass) { return env->NewStringUTF(MSGetLastError()); }

NATIVE(jlong, contextCreate)(JNIEnv*, jclass) { return number(MSContextCreate()); }
NATIVE(jboolean, contextInit)(JNIEnv*, jclass, jlong context, jint threads, jint bind_mode, jboolean parallel) {
  return fine(MSContextSetThreadNum(of(context), threads)) && fine(MSContextSetThreadAffinityMode(of(context), bind_mode)) &&
         fine(MSContextSetEnableParallel(of(context), parallel == JNI_TRUE));
}
NATIVE(jboolean, contextAddDevice)(JNIEnv*, jclass, jlong context, jint type, jboolean fp16) {
  MSDeviceInfoHandle device = MSDeviceInfoCreate(static_cast<MSDeviceType>(type));
  if (!device) return JNI_FALSE;
  MSDeviceInfoSetEnableFP16(device, fp16 == JNI_TRUE);
  const MSStatus status = MSContextAddDeviceInfo(of(context), device);
  MSDeviceInfoDestroy(&device);
  return fine(status);
}
NATIVE(void, contextDestroy)(JNIEnv*, jclass, jlong context) {
  MSContextHandle handle = of(context);
  MSContextDestroy(&handle);
}

NATIVE(jlong, modelCreate)(JNIEnv*, jclass) { return number(MSModelCreate()); }
NATIVE(void, modelDestroy)(JNIEnv*, jclass, jlong model) {
  MSModelHandle handle = of(model);
  MSModelDestroy(&handle);
}
NATIVE(jboolean, modelBuild)(JNIEnv* env, jclass, jlong model, jstring path, jint type, jlong context) {
  return fine(MSModelBuildFromFile(of(model), text(env, path).c_str(), static_cast<MSModelType>(type), of(context)));
}
NATIVE(jboolean, modelBuildBuffer)(JNIEnv* env, jclass, jlong model, jobject data, jint type, jlong context) {
  const void* const bytes = data ? env->GetDirectBufferAddress(data) : nullptr;
  const jlong size = bytes ? env->GetDirectBufferCapacity(data) : 0;
  return fine(MSModelBuild(of(model), bytes, static_cast<size_t>(size), static_cast<MSModelType>(type), of(context)));
}
NATIVE(jboolean, modelResize)(JNIEnv* env, jclass, jlong model, jlongArray inputs, jobjectArray shapes) {
  std::vector<MSTensorHandle> all = handles(env, inputs);
  std::vector<MSShapeInfo> infos(shapes ? static_cast<size_t>(env->GetArrayLength(shapes)) : 0);
  for (size_t i = 0; i < infos.size(); ++i) {
    const auto row = static_cast<jintArray>(env->GetObjectArrayElement(shapes, static_cast<jsize>(i)));
    const std::vector<int64_t> shape = sizes(env, row);
    infos[i].shape_num = shape.size();
    for (size_t d = 0; d < shape.size() && d < MS_MAX_SHAPE_NUM; ++d) infos[i].shape[d] = shape[d];
  }
  const MSShapeInfo none{};
  return fine(MSModelResize(of(model), {all.size(), all.data()}, infos.empty() ? &none : infos.data(), infos.size()));
}
NATIVE(jboolean, modelPredict)(JNIEnv*, jclass, jlong model) {
  return fine(MSModelPredict(of(model), MSModelGetInputs(of(model)), nullptr, nullptr, nullptr));
}
NATIVE(jlongArray, modelInputs)(JNIEnv* env, jclass, jlong model) { return numbers(env, MSModelGetInputs(of(model))); }
NATIVE(jlongArray, modelOutputs)(JNIEnv* env, jclass, jlong model) { return numbers(env, MSModelGetOutputs(of(model))); }
NATIVE(jlongArray, modelOutputsByNode)(JNIEnv* env, jclass, jlong model, jstring node) {
  return numbers(env, MSModelGetOutputsByNodeName(of(model), text(env, node).c_str()));
}
NATIVE(jboolean, modelUpdateWeights)(JNIEnv* env, jclass, jlong model, jlongArray weights) {
  std::vector<MSTensorHandle> all = handles(env, weights);
  return fine(MSModelUpdateWeights(of(model), {all.size(), all.data()}));
}

NATIVE(jlong, tensorCreate)(JNIEnv* env, jclass, jstring name, jint type, jintArray shape, jbyteArray data) {
  const std::vector<int64_t> dims = sizes(env, shape);
  std::vector<jbyte> bytes(data ? static_cast<size_t>(env->GetArrayLength(data)) : 0);
  if (!bytes.empty()) env->GetByteArrayRegion(data, 0, static_cast<jsize>(bytes.size()), bytes.data());
  return number(MSTensorCreate(text(env, name).c_str(), static_cast<MSDataType>(type), dims.data(), dims.size(), data ? bytes.data() : nullptr, bytes.size()));
}
NATIVE(void, tensorDestroy)(JNIEnv*, jclass, jlong tensor) {
  MSTensorHandle handle = of(tensor);
  MSTensorDestroy(&handle);
}
NATIVE(jstring, tensorName)(JNIEnv* env, jclass, jlong tensor) {
  const char* const name = MSTensorGetName(of(tensor));
  return name ? env->NewStringUTF(name) : nullptr;
}
NATIVE(jint, tensorDataType)(JNIEnv*, jclass, jlong tensor) { return MSTensorGetDataType(of(tensor)); }
NATIVE(jintArray, tensorShape)(JNIEnv* env, jclass, jlong tensor) {
  size_t count = 0;
  const int64_t* const shape = MSTensorGetShape(of(tensor), &count);
  const std::vector<jint> all(shape, shape + count);
  jintArray made = env->NewIntArray(static_cast<jsize>(count));
  if (made) env->SetIntArrayRegion(made, 0, static_cast<jsize>(count), all.data());
  return made;
}
NATIVE(jbyteArray, tensorData)(JNIEnv* env, jclass, jlong tensor) {
  const void* const data = MSTensorGetData(of(tensor));
  if (!data) return nullptr;
  const jsize size = static_cast<jsize>(MSTensorGetDataSize(of(tensor)));
  jbyteArray made = env->NewByteArray(size);
  if (made) env->SetByteArrayRegion(made, 0, size, static_cast<const jbyte*>(data));
  return made;
}
NATIVE(jboolean, tensorSetData)(JNIEnv* env, jclass, jlong tensor, jbyteArray data) {
  void* const own = MSTensorGetMutableData(of(tensor));
  const jsize size = data ? env->GetArrayLength(data) : 0;
  if (!own || static_cast<size_t>(size) != MSTensorGetDataSize(of(tensor))) return JNI_FALSE;
  env->GetByteArrayRegion(data, 0, size, static_cast<jbyte*>(own));
  return JNI_TRUE;
}

NATIVE(jlong, runnerCreate)(JNIEnv*, jclass) { return number(MSRunnerCreate()); }
NATIVE(void, runnerDestroy)(JNIEnv*, jclass, jlong runner) {
  MSRunnerHandle handle = of(runner);
  MSRunnerDestroy(&handle);
}
NATIVE(jboolean, runnerInit)(JNIEnv* env, jclass, jlong runner, jstring path, jlong context, jint workers) {
  return fine(MSRunnerInit(of(runner), text(env, path).c_str(), of(context), workers));
}
NATIVE(jlongArray, runnerInputs)(JNIEnv* env, jclass, jlong runner) { return numbers(env, MSRunnerGetInputs(of(runner))); }
NATIVE(jlongArray, runnerPredict)(JNIEnv* env, jclass, jlong runner, jlongArray inputs) {
  std::vector<MSTensorHandle> all = handles(env, inputs);
  size_t count = MSRunnerGetOutputs(of(runner)).handle_num;
  std::vector<MSTensorHandle> made(count);
  if (MSRunnerPredict(of(runner), {all.size(), all.data()}, made.data(), &count) != kMSStatusSuccess) return nullptr;
  return numbers(env, made.data(), count);
}
