/* Models as plain C: the names of MindSpore Lite's C API, without a heap. Handles are those of the generated models. */
#ifndef MICRO_API_H_
#define MICRO_API_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum MSStatus {
    kMSStatusSuccess = 0,
    kMSStatusLiteError = -1,
    kMSStatusLiteNullptr = -2,
    kMSStatusLiteParamInvalid = -3,
    kMSStatusLiteMemoryFailed = -6,
    kMSStatusLiteNotSupport = -7,
    kMSStatusLiteInputTensorError = -101
} MSStatus;

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

typedef struct MSModel *MSModelHandle;
typedef struct MSTensor *MSTensorHandle;

typedef struct MSTensorHandleArray {
    size_t handle_num;
    MSTensorHandle *handle_list;
} MSTensorHandleArray;

/* How much memory a model computes in. */
size_t MSModelCalcWorkspaceSize(MSModelHandle model);
/* Gives the model that memory, aligned for 8 bytes, and begins its variables. Inputs and outputs lie in it: inputs are written before
 * each run, outputs hold until the next one. Models that run one at a time may have the same memory, unless they keep variables. */
MSStatus MSModelSetWorkspace(MSModelHandle model, void *workspace, size_t workspace_size);
MSTensorHandleArray MSModelGetInputs(MSModelHandle model);
MSTensorHandleArray MSModelGetOutputs(MSModelHandle model);
/* NULL if there is none of the name. */
MSTensorHandle MSModelGetInputByTensorName(MSModelHandle model, const char *tensor_name);
MSTensorHandle MSModelGetOutputByTensorName(MSModelHandle model, const char *tensor_name);
/* Computes the outputs, which `outputs` gets unless it is NULL. Needs the workspace. kMSStatusLiteParamInvalid: inputs led to a place outside
 * of a tensor. */
MSStatus MSModelPredict(MSModelHandle model, const MSTensorHandleArray inputs, MSTensorHandleArray *outputs);

const char *MSTensorGetName(MSTensorHandle tensor);
MSDataType MSTensorGetDataType(MSTensorHandle tensor);
const int64_t *MSTensorGetShape(MSTensorHandle tensor, size_t *shape_num);
int64_t MSTensorGetElementNum(MSTensorHandle tensor);
size_t MSTensorGetDataSize(MSTensorHandle tensor);
/* NULL before the model has its workspace. An output that is a constant must not be written. */
const void *MSTensorGetData(MSTensorHandle tensor);
void *MSTensorGetMutableData(MSTensorHandle tensor);

#ifdef __cplusplus
}
#endif

#endif
