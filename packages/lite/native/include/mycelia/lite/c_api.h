/* The C interface of the Lite runtime: C99, the one border under all bindings. Names are those of MindSpore Lite's C API.
 *
 * Every function that can fail returns an MSStatus; MSGetLastError says the reason in words. Handles that a model gives belong to
 * it. NULL handles are refused, not followed. Models are independent of one another but for the threads, which the process has
 * once: the number of the model that ran last holds. One model is used by one thread at a time.
 */
#ifndef MYCELIA_LITE_C_API_H_
#define MYCELIA_LITE_C_API_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define MS_API __declspec(dllexport)
#else
#define MS_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef void* MSModelHandle;
typedef void* MSTensorHandle;
typedef void* MSContextHandle;

typedef struct MSTensorHandleArray {
  size_t handle_num;
  MSTensorHandle* handle_list;
} MSTensorHandleArray;

#define MS_MAX_SHAPE_NUM 32
typedef struct MSShapeInfo {
  size_t shape_num;
  int64_t shape[MS_MAX_SHAPE_NUM];
} MSShapeInfo;

typedef enum MSStatus {
  kMSStatusSuccess = 0,
  kMSStatusLiteError = -1,
  kMSStatusLiteNullptr = -2,
  kMSStatusLiteParamInvalid = -3,
  kMSStatusLiteMemoryFailed = -6,
  kMSStatusLiteNotSupport = -7,
  kMSStatusLiteInputTensorError = -101,
  kMSStatusLiteGraphFileError = -200,
  kMSStatusLiteNotFindOp = -300,
  kMSStatusLiteInvalidOpAttr = -302,
  kMSStatusLiteOpExecuteFailure = -303,
  kMSStatusLiteInferError = -500,
  kMSStatusLiteInferInvalid = -501
} MSStatus;

typedef enum MSModelType { kMSModelTypeMindIR = 0, kMSModelTypeMindIRLite = 4, kMSModelTypeInvalid = -1 } MSModelType;

typedef enum MSDataType {
  kMSDataTypeUnknown = 0,
  kMSDataTypeNumberTypeBool = 30,
  kMSDataTypeNumberTypeInt8 = 32,
  kMSDataTypeNumberTypeInt16 = 33,
  kMSDataTypeNumberTypeInt32 = 34,
  kMSDataTypeNumberTypeInt64 = 35,
  kMSDataTypeNumberTypeUInt8 = 37,
  kMSDataTypeNumberTypeUInt16 = 38,
  kMSDataTypeNumberTypeUInt32 = 39,
  kMSDataTypeNumberTypeUInt64 = 40,
  kMSDataTypeNumberTypeFloat16 = 42,
  kMSDataTypeNumberTypeFloat32 = 43,
  kMSDataTypeNumberTypeFloat64 = 44
} MSDataType;

/* The reason why the last call of this thread failed; valid until the next one. */
MS_API const char* MSGetLastError(void);
/* The version of the library, and the instruction set that its kernels use here. */
MS_API const char* MSVersion(void);
MS_API const char* MSInstructionSet(void);

/* ---- context: may be destroyed once a model is built with it */
MS_API MSContextHandle MSContextCreate(void);
MS_API void MSContextDestroy(MSContextHandle* context);
/* Threads of a run, the caller's included: 1 or more. */
MS_API MSStatus MSContextSetThreadNum(MSContextHandle context, int32_t thread_num);
MS_API int32_t MSContextGetThreadNum(MSContextHandle context);

/* ---- model */
MS_API MSModelHandle MSModelCreate(void);
MS_API void MSModelDestroy(MSModelHandle* model);
/* `context` may be NULL: one thread. The data may be freed afterwards. */
MS_API MSStatus MSModelBuild(MSModelHandle model, const void* model_data, size_t data_size, MSModelType type, MSContextHandle context);
/* The file is mapped: it must not be changed while the model lives. */
MS_API MSStatus MSModelBuildFromFile(MSModelHandle model, const char* model_path, MSModelType type, MSContextHandle context);
/* The same for an encrypted file: AES-GCM, a key of 16, 24 or 32 bytes. The model is decrypted into memory. */
MS_API MSStatus MSModelBuildFromEncryptedFile(MSModelHandle model, const char* model_path, MSModelType type, MSContextHandle context,
                                              const void* key, size_t key_len, const char* dec_mode);
/* Other shapes of the inputs, in their order; after a failure the model is as it was. */
MS_API MSStatus MSModelResize(MSModelHandle model, MSTensorHandleArray inputs, const MSShapeInfo* shape_infos, size_t shape_info_num);
/* Inputs that are not the model's own are copied to them; `outputs` may be NULL. */
MS_API MSStatus MSModelPredict(MSModelHandle model, MSTensorHandleArray inputs, MSTensorHandleArray* outputs);
MS_API MSTensorHandleArray MSModelGetInputs(MSModelHandle model);
MS_API MSTensorHandleArray MSModelGetOutputs(MSModelHandle model);
MS_API MSTensorHandle MSModelGetInputByTensorName(MSModelHandle model, const char* tensor_name);
MS_API MSTensorHandle MSModelGetOutputByTensorName(MSModelHandle model, const char* tensor_name);

/* ---- tensor */
/* `data` is copied, or NULL: then all elements are zero. NULL is returned for a dtype or shape that cannot be. */
MS_API MSTensorHandle MSTensorCreate(const char* name, MSDataType type, const int64_t* shape, size_t shape_num, const void* data, size_t data_len);
MS_API void MSTensorDestroy(MSTensorHandle* tensor);
MS_API const char* MSTensorGetName(MSTensorHandle tensor);
MS_API MSDataType MSTensorGetDataType(MSTensorHandle tensor);
/* -1 for a size that is open until the model is resized. */
MS_API const int64_t* MSTensorGetShape(MSTensorHandle tensor, size_t* shape_num);
/* NULL for a tensor without memory: an input of open size, an output of a model that never ran. */
MS_API const void* MSTensorGetData(MSTensorHandle tensor);
MS_API void* MSTensorGetMutableData(MSTensorHandle tensor);
MS_API int64_t MSTensorGetElementNum(MSTensorHandle tensor);
MS_API size_t MSTensorGetDataSize(MSTensorHandle tensor);

/* ---- encryption */
/* AES-GCM, without further authenticated data: `nonce` has 12 bytes and is used once with a key; 16 bytes go to `tag`. */
MS_API MSStatus MSEncryptInPlace(const void* key, size_t key_len, const void* nonce, void* data, size_t data_size, void* tag);

#ifdef __cplusplus
}
#endif
#endif
