#include "model.h"

#include <string.h>

size_t MSModelCalcWorkspaceSize(MSModelHandle model)
{
    return model ? model->about->workspace_size : 0;
}

MSStatus MSModelSetWorkspace(MSModelHandle model, void *workspace, size_t workspace_size)
{
    if (!model || !workspace) return kMSStatusLiteNullptr;
    if (workspace_size < model->about->workspace_size || (uintptr_t)workspace % 8 != 0) return kMSStatusLiteParamInvalid;
    *model->arena = (uint8_t *)workspace;
    if (model->about->begin) model->about->begin(*model->arena);
    return kMSStatusSuccess;
}

static MSTensorHandleArray part(MSModelHandle model, int outputs)
{
    MSTensorHandleArray array = {0, 0};
    if (!model) return array;
    array.handle_num = outputs ? model->about->output_count : model->about->input_count;
    array.handle_list = model->tensors + (outputs ? model->about->input_count : 0);
    return array;
}

MSTensorHandleArray MSModelGetInputs(MSModelHandle model)
{
    return part(model, 0);
}

MSTensorHandleArray MSModelGetOutputs(MSModelHandle model)
{
    return part(model, 1);
}

static MSTensorHandle named(MSTensorHandleArray array, const char *name)
{
    size_t i;
    for (i = 0; name && i < array.handle_num; i++)
        if (strcmp(array.handle_list[i]->about->name, name) == 0) return array.handle_list[i];
    return 0;
}

MSTensorHandle MSModelGetInputByTensorName(MSModelHandle model, const char *tensor_name)
{
    return named(part(model, 0), tensor_name);
}

MSTensorHandle MSModelGetOutputByTensorName(MSModelHandle model, const char *tensor_name)
{
    return named(part(model, 1), tensor_name);
}

MSStatus MSModelPredict(MSModelHandle model, const MSTensorHandleArray inputs, MSTensorHandleArray *outputs)
{
    size_t i;
    if (!model) return kMSStatusLiteNullptr;
    if (!*model->arena) return kMSStatusLiteMemoryFailed;
    if (inputs.handle_num != model->about->input_count) return kMSStatusLiteInputTensorError;
    for (i = 0; i < inputs.handle_num; i++)
        if (inputs.handle_list[i] != model->tensors[i]) return kMSStatusLiteInputTensorError;
    if (model->about->run(*model->arena) != 0) return kMSStatusLiteParamInvalid;
    if (outputs) *outputs = part(model, 1);
    return kMSStatusSuccess;
}

const char *MSTensorGetName(MSTensorHandle tensor)
{
    return tensor ? tensor->about->name : 0;
}

MSDataType MSTensorGetDataType(MSTensorHandle tensor)
{
    return tensor ? tensor->about->type : kMSDataTypeUnknown;
}

const int64_t *MSTensorGetShape(MSTensorHandle tensor, size_t *shape_num)
{
    if (shape_num) *shape_num = tensor ? tensor->about->rank : 0;
    return tensor ? tensor->about->shape : 0;
}

int64_t MSTensorGetElementNum(MSTensorHandle tensor)
{
    return tensor ? tensor->about->elements : 0;
}

size_t MSTensorGetDataSize(MSTensorHandle tensor)
{
    return tensor ? tensor->about->bytes : 0;
}

const void *MSTensorGetData(MSTensorHandle tensor)
{
    if (!tensor) return 0;
    if (tensor->about->constant) return tensor->about->constant;
    return *tensor->arena ? *tensor->arena + tensor->about->place : 0;
}

void *MSTensorGetMutableData(MSTensorHandle tensor)
{
    return (void *)(uintptr_t)MSTensorGetData(tensor);
}
