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

// Names come from the file, which may hold any bytes: what is no UTF-8 becomes U+FFFD.
jstring string_of(JNIEnv* env, const char* given) {
  if (!given) return nullptr;
  std::vector<jchar> made;
  for (const auto* c = reinterpret_cast<const unsigned char*>(given); *c;) {
    const int more = *c < 0x80 ? 0 : *c >= 0xc2 && *c < 0xe0 ? 1 : *c >= 0xe0 && *c < 0xf0 ? 2 : *c >= 0xf0 && *c < 0xf5 ? 3 : -1;
    uint32_t code = more <= 0 ? *c : *c & (0x3f >> more);
    int read = 0;
    while (read < more && (c[read + 1] & 0xc0) == 0x80) code = code << 6 | (c[++read] & 0x3f);
    const bool fine = more >= 0 && read == more && !(more == 2 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) &&
                      !(more == 3 && (code < 0x10000 || code > 0x10ffff));
    if (!fine) code = 0xfffd;
    c += 1 + (fine ? read : 0);
    if (code < 0x10000) {
      made.push_back(static_cast<jchar>(code));
    } else {
      made.push_back(static_cast<jchar>(0xd800 + ((code - 0x10000) >> 10)));
      made.push_back(static_cast<jchar>(0xdc00 + ((code - 0x10000) & 0x3ff)));
    }
  }
  return env->NewString(made.data(), static_cast<jsize>(made.size()));
}

std::vector<jbyte> bytes_of(JNIEnv* env, jbyteArray given) {
  std::vector<jbyte> made(given ? static_cast<size_t>(env->GetArrayLength(given)) : 0);
  if (!made.empty()) env->GetByteArrayRegion(given, 0, static_cast<jsize>(made.size()), made.data());
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

// Calls of Java around each node, on the thread that runs the model.
struct CallBacks {
  JNIEnv* env;
  jclass natives;
  jobject before, after;

  bool call(jobject function, const MSTensorHandleArray& inputs, const MSTensorHandleArray& outputs, const MSCallBackParamC& node) const {
    if (env->PushLocalFrame(8)) return false;
    const jmethodID method = env->GetStaticMethodID(natives, "call", "(Lcom/mycelia/KernelCallBack;[J[JLjava/lang/String;Ljava/lang/String;)Z");
    jlongArray in = method ? numbers(env, inputs) : nullptr, out = in ? numbers(env, outputs) : nullptr;
    jstring name = out ? string_of(env, node.node_name) : nullptr, type = name ? string_of(env, node.node_type) : nullptr;
    const bool goes_on = type && env->CallStaticBooleanMethod(natives, method, function, in, out, name, type) == JNI_TRUE;
    const bool thrown = env->ExceptionCheck() == JNI_TRUE;  // it stays pending: Java gets it when the run has ended
    env->PopLocalFrame(nullptr);
    return goes_on && !thrown;
  }
  static bool Before(void* user, MSTensorHandleArray inputs, MSTensorHandleArray outputs, MSCallBackParamC node) {
    const auto* calls = static_cast<CallBacks*>(user);
    return calls->call(calls->before, inputs, outputs, node);
  }
  static bool After(void* user, MSTensorHandleArray inputs, MSTensorHandleArray outputs, MSCallBackParamC node) {
    const auto* calls = static_cast<CallBacks*>(user);
    return calls->call(calls->after, inputs, outputs, node);
  }
};

}  // namespace

NATIVE(jstring, lastError)(JNIEnv* env, jclass) { return string_of(env, MSGetLastError()); }

NATIVE(jlong, contextCreate)(JNIEnv*, jclass) { return number(MSContextCreate()); }
NATIVE(jboolean, contextInit)(JNIEnv*, jclass, jlong context, jint threads, jint bind_mode, jboolean parallel) {
  return fine(MSContextSetThreadNum(of(context), threads)) && fine(MSContextSetThreadAffinityMode(of(context), bind_mode)) &&
         fine(MSContextSetEnableParallel(of(context), parallel == JNI_TRUE));
}
NATIVE(jboolean, contextAddDevice)(JNIEnv*, jclass, jlong context, jint type, jboolean fp16, jint frequency) {
  MSDeviceInfoHandle device = MSDeviceInfoCreate(static_cast<MSDeviceType>(type));
  if (!device) return JNI_FALSE;
  MSDeviceInfoSetEnableFP16(device, fp16 == JNI_TRUE);
  MSStatus status = MSDeviceInfoSetFrequency(device, frequency);
  if (status == kMSStatusSuccess) status = MSContextAddDeviceInfo(of(context), device);
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
NATIVE(jboolean, modelBuildEncrypted)(JNIEnv* env, jclass, jlong model, jstring path, jint type, jlong context, jbyteArray key, jstring mode) {
  const std::vector<jbyte> bytes = bytes_of(env, key);
  return fine(MSModelBuildFromEncryptedFile(of(model), text(env, path).c_str(), static_cast<MSModelType>(type), of(context), bytes.data(), bytes.size(),
                                            text(env, mode).c_str()));
}
NATIVE(jboolean, modelBuildEncryptedBuffer)(JNIEnv* env, jclass, jlong model, jobject data, jint type, jlong context, jbyteArray key, jstring mode) {
  const std::vector<jbyte> bytes = bytes_of(env, key);
  const void* const sealed = data ? env->GetDirectBufferAddress(data) : nullptr;
  const jlong size = sealed ? env->GetDirectBufferCapacity(data) : 0;
  return fine(MSModelBuildEncrypted(of(model), sealed, static_cast<size_t>(size), static_cast<MSModelType>(type), of(context), bytes.data(), bytes.size(),
                                    text(env, mode).c_str()));
}
NATIVE(jboolean, modelUpdateConfig)(JNIEnv* env, jclass, jlong model, jstring section, jstring key, jstring value) {
  return fine(MSModelUpdateConfig(of(model), text(env, section).c_str(), text(env, key).c_str(), text(env, value).c_str()));
}
NATIVE(jboolean, modelPredict)(JNIEnv* env, jclass natives, jlong model, jobject before, jobject after) {
  CallBacks calls{env, natives, before, after};
  return fine(MSModelPredictObserved(of(model), MSModelGetInputs(of(model)), nullptr, before ? CallBacks::Before : nullptr,
                                     after ? CallBacks::After : nullptr, &calls));
}
NATIVE(jstring, modelInfo)(JNIEnv* env, jclass, jlong model, jstring key) { return string_of(env, MSModelGetInfo(of(model), text(env, key).c_str())); }
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
  const std::vector<jbyte> bytes = bytes_of(env, data);
  return number(MSTensorCreate(text(env, name).c_str(), static_cast<MSDataType>(type), dims.data(), dims.size(), data ? bytes.data() : nullptr, bytes.size()));
}
NATIVE(void, tensorDestroy)(JNIEnv*, jclass, jlong tensor) {
  MSTensorHandle handle = of(tensor);
  MSTensorDestroy(&handle);
}
NATIVE(jstring, tensorName)(JNIEnv* env, jclass, jlong tensor) {
  return string_of(env, MSTensorGetName(of(tensor)));
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
  const size_t bytes = MSTensorGetDataSize(of(tensor));
  if (bytes > 0x7fffffff) return nullptr;  // more than an array of Java holds
  const auto size = static_cast<jsize>(bytes);
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
NATIVE(jlongArray, runnerOutputs)(JNIEnv* env, jclass, jlong runner) { return numbers(env, MSRunnerGetOutputs(of(runner))); }
NATIVE(jboolean, runnerUpdateConfig)(JNIEnv* env, jclass, jlong runner, jstring section, jstring key, jstring value) {
  return fine(MSRunnerUpdateConfig(of(runner), text(env, section).c_str(), text(env, key).c_str(), text(env, value).c_str()));
}
NATIVE(jlongArray, runnerPredict)(JNIEnv* env, jclass, jlong runner, jlongArray inputs) {
  std::vector<MSTensorHandle> all = handles(env, inputs);
  size_t count = MSRunnerGetOutputs(of(runner)).handle_num;
  std::vector<MSTensorHandle> made(count);
  if (MSRunnerPredict(of(runner), {all.size(), all.data()}, made.data(), &count) != kMSStatusSuccess) return nullptr;
  return numbers(env, made.data(), count);
}
