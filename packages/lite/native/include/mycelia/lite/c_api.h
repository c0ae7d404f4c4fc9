/* The C interface of the Lite runtime: C99, the one border under all bindings. Names are those of MindSpore Lite's C API.
 *
 * Every function that can fail returns an MSStatus; MSGetLastError says the reason in words. Handles that a model gives belong to
 * it. Handles that are NULL, freed or of another kind are refused, not followed; pointers into what one stands for hold until that
 * is changed or freed. Models are independent of one another and may run at the same time; one model runs once at a time: a second
 * call meanwhile is refused with kMSStatusLiteReentrantError. Callbacks and delegates may call back; what would wait for itself is
 * refused in the same way.
 */
#ifndef MYCELIA_LITE_C_API_H_
#define MYCELIA_LITE_C_API_H_

#include <stdbool.h>
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

/* In C++, too, an enum has every value that a caller may pass by mistake. */
#ifdef __cplusplus
#define MS_ENUM : int
#else
#define MS_ENUM
#endif

typedef void* MSModelHandle;
typedef void* MSTensorHandle;
typedef void* MSContextHandle;
typedef void* MSDeviceInfoHandle;
typedef void* MSRunnerHandle;

typedef struct MSTensorHandleArray {
  size_t handle_num;
  MSTensorHandle* handle_list;
} MSTensorHandleArray;

#define MS_MAX_SHAPE_NUM 32
typedef struct MSShapeInfo {
  size_t shape_num;
  int64_t shape[MS_MAX_SHAPE_NUM];
} MSShapeInfo;

typedef enum MSStatus MS_ENUM {
  kMSStatusSuccess = 0,
  kMSStatusLiteError = -1,
  kMSStatusLiteNullptr = -2,
  kMSStatusLiteParamInvalid = -3,
  kMSStatusLiteMemoryFailed = -6,
  kMSStatusLiteNotSupport = -7,
  kMSStatusLiteInputTensorError = -101,
  kMSStatusLiteReentrantError = -102,
  kMSStatusLiteGraphFileError = -200,
  kMSStatusLiteNotFindOp = -300,
  kMSStatusLiteInvalidOpAttr = -302,
  kMSStatusLiteOpExecuteFailure = -303,
  kMSStatusLiteInferError = -500,
  kMSStatusLiteInferInvalid = -501
} MSStatus;

typedef enum MSModelType MS_ENUM { kMSModelTypeMindIR = 0, kMSModelTypeMindIRLite = 4, kMSModelTypeInvalid = -1 } MSModelType;

typedef enum MSDataType MS_ENUM {
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

typedef enum MSFormat MS_ENUM {
  kMSFormatNCHW = 0, kMSFormatNHWC = 1, kMSFormatNHWC4 = 2, kMSFormatHWKC = 3, kMSFormatHWCK = 4, kMSFormatKCHW = 5, kMSFormatCKHW = 6,
  kMSFormatKHWC = 7, kMSFormatCHWK = 8, kMSFormatHW = 9, kMSFormatHW4 = 10, kMSFormatNC = 11, kMSFormatNC4 = 12, kMSFormatNC4HW4 = 13,
  kMSFormatNCDHW = 15, kMSFormatNWC = 16, kMSFormatNCW = 17, kMSFormatNC8HW8 = 18
} MSFormat;

typedef enum MSDeviceType MS_ENUM { kMSDeviceTypeCPU = 0, kMSDeviceTypeGPU = 1, kMSDeviceTypeKirinNPU = 2, kMSDeviceTypeInvalid = 100 } MSDeviceType;

typedef struct MSQuantParam {
  double scale;
  int32_t zero_point;
  int32_t bit_num;
} MSQuantParam;

/* A node that is about to run or has run. */
typedef struct MSCallBackParamC {
  const char* node_name;
  const char* node_type;
} MSCallBackParamC;
/* Handles and names hold for the call; false ends the run with an error. Nodes that are otherwise computed together run apart. */
typedef bool (*MSKernelCallBackC)(const MSTensorHandleArray inputs, const MSTensorHandleArray outputs, const MSCallBackParamC node);
typedef bool (*MSNodeCallBack)(void* user, MSTensorHandleArray inputs, MSTensorHandleArray outputs, MSCallBackParamC node);

/* What a node took in the runs of MSModelProfile; the names belong to the model. Nodes that are computed together with a later one
 * have no calls: their time is that one's. */
typedef struct MSNodeProfile {
  const char* node_name;
  const char* node_type;
  double milliseconds; /* of all runs */
  size_t calls;
} MSNodeProfile;

/* The reason why the last call of this thread failed; valid until the next one. */
MS_API const char* MSGetLastError(void);
/* The version of the library, and the instruction set that its kernels use here. */
MS_API const char* MSVersion(void);
MS_API const char* MSInstructionSet(void);
/* The kernels that models of this process asked for so far, "op dtypes" and a line feed each; valid until the thread's next call. */
MS_API const char* MSKernelsInUse(void);

/* ---- context: may be destroyed once a model is built with it */
MS_API MSContextHandle MSContextCreate(void);
MS_API void MSContextDestroy(MSContextHandle* context);
/* Threads of a run, the caller's included: 1 or more. */
MS_API MSStatus MSContextSetThreadNum(MSContextHandle context, int32_t thread_num);
MS_API int32_t MSContextGetThreadNum(MSContextHandle context);
/* 0 none, 1 fast cores first, 2 slow cores first; on Linux. Threads of a pool that models share are not bound. */
MS_API MSStatus MSContextSetThreadAffinityMode(MSContextHandle context, int mode);
MS_API int MSContextGetThreadAffinityMode(MSContextHandle context);
/* Thread i runs on core_list[i % core_num]; wins over the mode. The caller's thread is bound while the model runs. */
MS_API MSStatus MSContextSetThreadAffinityCoreList(MSContextHandle context, const int32_t* core_list, size_t core_num);
/* The list belongs to the context. */
MS_API const int32_t* MSContextGetThreadAffinityCoreList(MSContextHandle context, size_t* core_num);
/* Whether nodes that do not depend on one another run at the same time, two unless the number says otherwise. */
MS_API MSStatus MSContextSetEnableParallel(MSContextHandle context, bool is_parallel);
MS_API bool MSContextGetEnableParallel(MSContextHandle context);
/* How many nodes may run at the same time; they share the threads. */
MS_API MSStatus MSContextSetInterOpParallelNum(MSContextHandle context, int32_t parallel_num);
MS_API int32_t MSContextGetInterOpParallelNum(MSContextHandle context);
/* Whether the threads are those of all models that share them; else each model has its own. */
MS_API MSStatus MSContextSetSharedThreadPool(MSContextHandle context, bool is_shared);
/* Devices in order of preference, three at most; the context takes the description. */
MS_API MSStatus MSContextAddDeviceInfo(MSContextHandle context, MSDeviceInfoHandle device_info);

/* ---- device: the CPU; others come by delegates */
MS_API MSDeviceInfoHandle MSDeviceInfoCreate(MSDeviceType device_type);
MS_API void MSDeviceInfoDestroy(MSDeviceInfoHandle* device_info);
MS_API MSDeviceType MSDeviceInfoGetDeviceType(MSDeviceInfoHandle device_info);
MS_API MSStatus MSDeviceInfoSetProvider(MSDeviceInfoHandle device_info, const char* provider);
MS_API const char* MSDeviceInfoGetProvider(MSDeviceInfoHandle device_info);
MS_API MSStatus MSDeviceInfoSetProviderDevice(MSDeviceInfoHandle device_info, const char* device);
MS_API const char* MSDeviceInfoGetProviderDevice(MSDeviceInfoHandle device_info);
/* Arithmetic of 16 bits where the processor and its kernels have it, else of 32; MSModelGetInfo(model, "precision") says which. */
MS_API MSStatus MSDeviceInfoSetEnableFP16(MSDeviceInfoHandle device_info, bool is_fp16);
MS_API bool MSDeviceInfoGetEnableFP16(MSDeviceInfoHandle device_info);
/* 1 to 4, of an NPU; the CPU does not look at it. */
MS_API MSStatus MSDeviceInfoSetFrequency(MSDeviceInfoHandle device_info, int frequency);
MS_API int MSDeviceInfoGetFrequency(MSDeviceInfoHandle device_info);

/* ---- model */
MS_API MSModelHandle MSModelCreate(void);
/* One that runs ends when its run has ended. */
MS_API void MSModelDestroy(MSModelHandle* model);
/* Before it is built: sections [execution_plan] NODE=data_type:float16|float32 and [common] enable_pre_inference=true|false. */
MS_API MSStatus MSModelLoadConfig(MSModelHandle model, const char* config_path);
MS_API MSStatus MSModelUpdateConfig(MSModelHandle model, const char* section, const char* key, const char* value);
/* `context` may be NULL: one thread. The data may be freed afterwards. */
MS_API MSStatus MSModelBuild(MSModelHandle model, const void* model_data, size_t data_size, MSModelType type, MSContextHandle context);
/* The file is mapped: it must not be changed while the model lives. */
MS_API MSStatus MSModelBuildFromFile(MSModelHandle model, const char* model_path, MSModelType type, MSContextHandle context);
/* The same for an encrypted file: AES-GCM, a key of 16, 24 or 32 bytes. The model is decrypted into memory. */
MS_API MSStatus MSModelBuildFromEncryptedFile(MSModelHandle model, const char* model_path, MSModelType type, MSContextHandle context,
                                              const void* key, size_t key_len, const char* dec_mode);
/* The same for an encrypted model in memory. */
MS_API MSStatus MSModelBuildEncrypted(MSModelHandle model, const void* model_data, size_t data_size, MSModelType type, MSContextHandle context,
                                      const void* key, size_t key_len, const char* dec_mode);
/* From the file that another model was built of: they share weights and packed constants. */
MS_API MSStatus MSModelBuildFromModel(MSModelHandle model, MSModelHandle other, MSContextHandle context);
/* Before `model` is built: it and `other` compute in the same memory, as large as the larger one needs. They run one at a time: a call
 * waits for the other thread's, and is refused in a callback of the other one's run. More models join by further calls. */
MS_API MSStatus MSModelShareWorkspace(MSModelHandle model, MSModelHandle other);
/* Other shapes of the inputs, in their order; after a failure the model is as it was. */
MS_API MSStatus MSModelResize(MSModelHandle model, MSTensorHandleArray inputs, const MSShapeInfo* shape_infos, size_t shape_info_num);
/* Inputs that are not the model's own are copied to them; `outputs` and the callbacks may be NULL. */
MS_API MSStatus MSModelPredict(MSModelHandle model, MSTensorHandleArray inputs, MSTensorHandleArray* outputs, MSKernelCallBackC before,
                               MSKernelCallBackC after);
/* The same with callbacks that get a pointer of the caller's. */
MS_API MSStatus MSModelPredictObserved(MSModelHandle model, MSTensorHandleArray inputs, MSTensorHandleArray* outputs, MSNodeCallBack before,
                                       MSNodeCallBack after, void* user);
/* The same on what the model's own inputs hold, without callbacks. */
MS_API MSStatus MSModelRun(MSModelHandle model);
MS_API MSTensorHandleArray MSModelGetInputs(MSModelHandle model);
MS_API MSTensorHandleArray MSModelGetOutputs(MSModelHandle model);
MS_API MSTensorHandle MSModelGetInputByTensorName(MSModelHandle model, const char* tensor_name);
MS_API MSTensorHandle MSModelGetOutputByTensorName(MSModelHandle model, const char* tensor_name);
/* What a node computes, inside of the model too: they are kept from the next run on. No handles: there is no such node. */
MS_API MSTensorHandleArray MSModelGetOutputsByNodeName(MSModelHandle model, const char* node_name);
/* Other elements for weights, found by the tensors' names; after a failure the model is as it was. */
MS_API MSStatus MSModelUpdateWeights(MSModelHandle model, MSTensorHandleArray weights);

/* ---- training: a model that was converted as a training step. It answers first, as any other model; while it trains, a run is a step:
 * its outputs are the losses. A callback that ends a step leaves variables as far as they were updated. */
typedef enum MSQuantizationType MS_ENUM { kMSNO_QUANT = 0, kMSWEIGHT_QUANT = 1, kMSFULL_QUANT = 2, kMSUNKNOWN_QUANT_TYPE = 0xff } MSQuantizationType;
MS_API MSStatus MSModelSetTrainMode(MSModelHandle model, bool train);
MS_API bool MSModelGetTrainMode(MSModelHandle model);
/* A step, or an answer, on what the inputs hold; the callbacks may be NULL. */
MS_API MSStatus MSRunStep(MSModelHandle model, MSKernelCallBackC before, MSKernelCallBackC after);
/* The same with callbacks that get a pointer of the caller's. */
MS_API MSStatus MSRunStepObserved(MSModelHandle model, MSNodeCallBack before, MSNodeCallBack after, void* user);
/* kMSStatusLiteNotSupport: the rate follows a schedule of the model. A rate that cannot be told is NaN. */
MS_API MSStatus MSModelSetLearningRate(MSModelHandle model, float learning_rate);
MS_API float MSModelGetLearningRate(MSModelHandle model);
/* Gradients of so many small steps are added before the optimizer's step, whose rate is `lr`, below 0: the present one divided by their
 * number; `momentum` below 0: the present one. 1 ends that, and brings back rate and momentum. */
MS_API MSStatus MSModelSetupVirtualBatch(MSModelHandle model, int32_t virtual_batch_multiplier, float lr, float momentum);
/* Tensors whose memory is the variables' own, by their names: weights and statistics; weights that are trained; the optimizer's states.
 * What is written to them is used by the next run; MSModelUpdateWeights checks names and types. */
MS_API MSTensorHandleArray MSModelGetWeights(MSModelHandle model);
MS_API MSTensorHandleArray MSModelGetTrainableParams(MSModelHandle model);
MS_API MSTensorHandleArray MSModelGetOptimizerParams(MSModelHandle model);
/* What the optimizer gets for each weight, under the weight's name; kept from the next step on. */
MS_API MSTensorHandleArray MSModelGetGradients(MSModelHandle model);
/* The optimizer's step with these gradients, one for each weight. */
MS_API MSStatus MSModelApplyGradients(MSModelHandle model, MSTensorHandleArray gradients);
/* A file to train on, with all that resuming needs, or one for inference alone. Whoever opens the path finds the file from before or the
 * new one, whole. Quantization: mycelia-lite convert --fmk=MSLITE on the file for inference; here kMSNO_QUANT alone. `output_names`: NULL, or
 * all outputs. */
MS_API MSStatus MSExportModel(MSModelHandle model, MSModelType type, const char* model_file, MSQuantizationType quantization, bool inference_only,
                              const char* const* output_names, size_t output_num);
/* The same in memory, which MSFreeBuffer frees. */
MS_API MSStatus MSExportModelBuffer(MSModelHandle model, MSModelType type, char** data, size_t* data_size, MSQuantizationType quantization,
                                    bool inference_only, const char* const* output_names, size_t output_num);
MS_API void MSFreeBuffer(char* data);

/* A fact about a built model, NULL for an unknown key: "precision", "isa", "arena_bytes", "workspace_bytes", "weight_bytes", "packed_bytes",
 * "partition". The text belongs to the model until the next call. */
MS_API const char* MSModelGetInfo(MSModelHandle model, const char* key);
/* Whether models of a type run on a device. */
MS_API bool MSModelCheckSupport(MSDeviceType device, MSModelType type);
/* Runs the model warm_up and then loops times on what its inputs hold; milliseconds of each loop, by the clock. */
MS_API MSStatus MSModelTimeRuns(MSModelHandle model, size_t warm_up, size_t loops, double* milliseconds);
/* Runs it loops times. *node_num: places in `nodes`, which may be NULL, before; the number of nodes after. */
MS_API MSStatus MSModelProfile(MSModelHandle model, size_t loops, MSNodeProfile* nodes, size_t* node_num);

/* ---- the plan of a model for other processors, as generators of code read it: steps in the order in which they run. */
typedef struct MSProgramValue {
  MSDataType data_type;
  const int64_t* shape;
  size_t shape_num;
  const void* data; /* of a constant, else NULL */
  size_t data_size;
  int32_t root; /* the value whose memory this one shares; itself if it has its own */
  int64_t offset; /* bytes from the beginning of that memory */
} MSProgramValue;
typedef struct MSProgramStep {
  const char* op; /* "copy" copies the input */
  const char* node_name;
  const char* node_type;
  const void* attributes; /* myc_<op>_attrs of mycelia/op_attrs.h, or the runtime's own */
  size_t attribute_size;
  const int32_t* inputs; /* values; -1: absent */
  size_t input_num;
  const int32_t* outputs;
  size_t output_num;
} MSProgramStep;
typedef struct MSProgram {
  const MSProgramValue* values;
  size_t value_num;
  const MSProgramStep* steps;
  size_t step_num;
  const int32_t* inputs; /* of the model, then its variables */
  size_t input_num;
  const int32_t* outputs; /* of the model, then what variables hold in the next run */
  size_t output_num;
  const void* const* states; /* what the variables hold in the first run */
  size_t state_num;
} MSProgram;
/* Weights have their own order: of convolutions [O, kh, kw, I / group], of products [O, I]. The program belongs to the model until the next
 * call. kMSStatusLiteNotSupport: what runs depends on data. */
MS_API MSStatus MSModelGetProgram(MSModelHandle model, MSProgram* program);

/* ---- delegates: other devices. Of each plan a delegate claims runs of nodes and the CPU takes the rest. Memory is the host's: what
 * has memory of its own copies in `run`. MSModelGetInfo(model, "partition") says which node is where and why. */
typedef struct MSDelegateModel MSDelegateModel; /* the nodes of a plan, in the order in which they run */
typedef struct MSDelegateNode MSDelegateNode;

typedef struct MSDelegateTensor {
  const char* name;
  MSDataType data_type;
  const int64_t* shape;
  size_t shape_num;
  void* data; /* while building: of constants alone */
  size_t data_size;
} MSDelegateTensor;

/* What runs a run of nodes. Inputs: what it reads of others, without constants; outputs: what others read of it. */
typedef struct MSDelegateKernel {
  void* user;
  MSStatus (*run)(void* user, const MSDelegateTensor* inputs, size_t input_num, MSDelegateTensor* outputs, size_t output_num);
  void (*destroy)(void* user); /* or NULL */
} MSDelegateKernel;

typedef struct MSDelegateCallbacks {
  const char* name; /* of the device */
  void* user;
  MSStatus (*build)(void* user, MSDelegateModel* model); /* for every plan, such as that of other shapes */
  void (*destroy)(void* user); /* or NULL; when no context and no model needs it any more */
} MSDelegateCallbacks;

/* Delegates in order of preference. */
MS_API MSStatus MSContextAddDelegate(MSContextHandle context, const MSDelegateCallbacks* delegate);
MS_API size_t MSDelegateModelGetNodeNum(const MSDelegateModel* model);
MS_API const MSDelegateNode* MSDelegateModelGetNode(const MSDelegateModel* model, size_t i);
/* Whether a delegate that is preferred has the node. */
MS_API bool MSDelegateModelIsTaken(const MSDelegateModel* model, size_t i);
/* Claims nodes first, ..., first + count - 1. The kernel is the runtime's from then on; after a failure it is not. */
MS_API MSStatus MSDelegateModelReplace(MSDelegateModel* model, size_t first, size_t count, const MSDelegateKernel* kernel, const char* why);
/* Says why a node is left to others. Nodes live as long as the kernels that claim some, their tensors while the plan is built. */
MS_API void MSDelegateModelDecline(MSDelegateModel* model, size_t i, const char* why);
MS_API const char* MSDelegateNodeGetName(const MSDelegateNode* node);
MS_API const char* MSDelegateNodeGetType(const MSDelegateNode* node);
MS_API const MSDelegateTensor* MSDelegateNodeGetInputs(const MSDelegateNode* node, size_t* num);
MS_API const MSDelegateTensor* MSDelegateNodeGetOutputs(const MSDelegateNode* node, size_t* num);
/* Of a Custom node: its type ("" of another), and the bytes of an attribute, which belong to the model; NULL if it has none of the name. */
MS_API const char* MSDelegateNodeGetCustomType(const MSDelegateNode* node);
MS_API const void* MSDelegateNodeGetCustomAttribute(const MSDelegateNode* node, const char* name, size_t* bytes);
/* Attributes by their place in the table of the operator (mycelia/lite/schema.h): an integer of 1, 4 or 8 bytes, a float, integers;
 * the last one returns how many there are. */
MS_API int64_t MSDelegateNodeGetInt(const MSDelegateNode* node, uint16_t field, size_t bytes, int64_t absent);
MS_API float MSDelegateNodeGetFloat(const MSDelegateNode* node, uint16_t field, float absent);
MS_API size_t MSDelegateNodeGetInts(const MSDelegateNode* node, uint16_t field, int64_t* values, size_t most);

/* ---- operators of the program: Custom nodes of a type that it computes itself, in all models of the process. */
typedef struct MSCustomOperator {
  void* user;
  /* Data types and shapes of the node's outputs, whose tensors have names alone so far; called for every plan. */
  MSStatus (*infer)(void* user, const MSDelegateNode* node, MSDataType* types, MSShapeInfo* shapes, size_t output_num);
  /* What runs the node with these shapes: inputs and outputs are those of the node in order, constants included; `data` of an input
   * that is left out is NULL. The node lives as long as the kernel, which is the runtime's if this succeeds. Kernels of one plan run
   * one after the other unless nodes run at the same time; those of other models may run meanwhile. */
  MSStatus (*create)(void* user, const MSDelegateNode* node, MSDelegateKernel* kernel);
  void (*destroy)(void* user); /* or NULL; when it is registered no more and no model needs it; not at the end of the program */
} MSCustomOperator;
/* For models that are built from now on; in place of what the type was before, an operator of the runtime included. NULL: as it was at
 * the start. */
MS_API MSStatus MSRegisterCustomOperator(const char* type, const MSCustomOperator* custom);

/* ---- runner: one model for many threads; its workers share weights and packed constants */
MS_API MSRunnerHandle MSRunnerCreate(void);
MS_API void MSRunnerDestroy(MSRunnerHandle* runner);
MS_API MSStatus MSRunnerUpdateConfig(MSRunnerHandle runner, const char* section, const char* key, const char* value);
/* `context` may be NULL; its threads are those of each worker. */
MS_API MSStatus MSRunnerInit(MSRunnerHandle runner, const char* model_path, MSContextHandle context, int32_t workers_num);
/* Descriptions, without elements; they belong to the runner. */
MS_API MSTensorHandleArray MSRunnerGetInputs(MSRunnerHandle runner);
MS_API MSTensorHandleArray MSRunnerGetOutputs(MSRunnerHandle runner);
/* Called by any number of threads; waits for a free worker. Shapes may differ from call to call where the file leaves them open.
 * *output_num: places in `outputs` before, tensors after, which are the caller's to destroy. */
MS_API MSStatus MSRunnerPredict(MSRunnerHandle runner, MSTensorHandleArray inputs, MSTensorHandle* outputs, size_t* output_num);

/* ---- tensor */
/* `data` is copied, or NULL: then all elements are zero. NULL is returned for a dtype or shape that cannot be. */
MS_API MSTensorHandle MSTensorCreate(const char* name, MSDataType type, const int64_t* shape, size_t shape_num, const void* data, size_t data_len);
/* A tensor without memory of its own: it refers to `data`, which must stay, or to nothing if that is NULL. MSTensorSetData lets it refer
 * to others; with another type or shape it refers to nothing. */
MS_API MSTensorHandle MSTensorCreateReference(const char* name, MSDataType type, const int64_t* shape, size_t shape_num, void* data);
MS_API void MSTensorDestroy(MSTensorHandle* tensor);
/* A tensor of its own with a copy of the elements. */
MS_API MSTensorHandle MSTensorClone(MSTensorHandle tensor);
/* Name, type and shape of a model's tensors are the model's: setting them is refused. A tensor of the caller's that gets another
 * type or shape has zeros. */
MS_API MSStatus MSTensorSetName(MSTensorHandle tensor, const char* name);
MS_API const char* MSTensorGetName(MSTensorHandle tensor);
MS_API MSStatus MSTensorSetDataType(MSTensorHandle tensor, MSDataType type);
MS_API MSDataType MSTensorGetDataType(MSTensorHandle tensor);
MS_API MSStatus MSTensorSetShape(MSTensorHandle tensor, const int64_t* shape, size_t shape_num);
/* -1 for a size that is open until the model is resized. */
MS_API const int64_t* MSTensorGetShape(MSTensorHandle tensor, size_t* shape_num);
MS_API MSStatus MSTensorSetFormat(MSTensorHandle tensor, MSFormat format);
MS_API MSFormat MSTensorGetFormat(MSTensorHandle tensor);
/* What the integers of a quantized input or output stand for, (q - zero_point) * scale: one of all elements as a rule. At most so
 * many are written to `params`, which may be NULL; returns how many there are, 0 for a tensor of plain numbers. */
MS_API size_t MSTensorGetQuantParams(MSTensorHandle tensor, MSQuantParam* params, size_t most);
/* Memory of the caller's with MSTensorGetDataSize bytes that is used in place until it is replaced, NULL: the tensor's own again.
 * A resize gives inputs and outputs of a model their own memory. */
MS_API MSStatus MSTensorSetData(MSTensorHandle tensor, void* data);
/* NULL for a tensor without elements to read: an input of open size, an output before its model ran. */
MS_API const void* MSTensorGetData(MSTensorHandle tensor);
MS_API void* MSTensorGetMutableData(MSTensorHandle tensor);
/* -1 while a size is open. */
MS_API int64_t MSTensorGetElementNum(MSTensorHandle tensor);
MS_API size_t MSTensorGetDataSize(MSTensorHandle tensor);

/* ---- encryption */
/* AES-GCM, without further authenticated data: `nonce` has 12 bytes and is used once with a key; 16 bytes go to `tag`. */
MS_API MSStatus MSEncryptInPlace(const void* key, size_t key_len, const void* nonce, void* data, size_t data_size, void* tag);

#ifdef __cplusplus
}
#endif
#endif
