/* Runs each model on the inputs of data.c and compares its outputs with those there: exit status 0 if they agree. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data.h"
#include "model_handle.h"

/* The farthest of `count` elements of an output from what is expected, by the largest of these; infinite where one of the two is NaN. */
static double departure(MSDataType type, const void *found, const void *expected, int64_t count)
{
    double most = 0.0, scale = 1e-6;
    int64_t i;
    for (i = 0; i < count; i++) {
        double x, y;
        switch (type) {
            case kMSDataTypeNumberTypeFloat32: x = ((const float *)found)[i], y = ((const float *)expected)[i]; break;
            case kMSDataTypeNumberTypeFloat64: x = ((const double *)found)[i], y = ((const double *)expected)[i]; break;
            case kMSDataTypeNumberTypeInt64: x = (double)((const int64_t *)found)[i], y = (double)((const int64_t *)expected)[i]; break;
            case kMSDataTypeNumberTypeInt32: x = ((const int32_t *)found)[i], y = ((const int32_t *)expected)[i]; break;
            case kMSDataTypeNumberTypeUInt64: x = (double)((const uint64_t *)found)[i], y = (double)((const uint64_t *)expected)[i]; break;
            case kMSDataTypeNumberTypeUInt32: x = ((const uint32_t *)found)[i], y = ((const uint32_t *)expected)[i]; break;
            case kMSDataTypeNumberTypeFloat16: /* which is moved alone: its bits are the same */
            case kMSDataTypeNumberTypeUInt16: x = ((const uint16_t *)found)[i], y = ((const uint16_t *)expected)[i]; break;
            case kMSDataTypeNumberTypeInt16: x = ((const int16_t *)found)[i], y = ((const int16_t *)expected)[i]; break;
            case kMSDataTypeNumberTypeInt8: x = ((const int8_t *)found)[i], y = ((const int8_t *)expected)[i]; break;
            default: x = ((const uint8_t *)found)[i], y = ((const uint8_t *)expected)[i]; break;
        }
        if ((x != x) != (y != y)) return INFINITY;
        if (fabs(y) > scale && isfinite(y)) scale = fabs(y);
        if (x != y && fabs(x - y) > most) most = fabs(x - y);
    }
    return most / scale;
}

int main(int argc, char **argv)
{
    size_t m, i, r;
    int failed = 0;
    long runs = 1;
    const char *digit = argc > 1 ? argv[1] : "";
    for (runs = *digit ? 0 : 1; *digit >= '0' && *digit <= '9'; digit++) runs = runs * 10 + (*digit - '0');
    for (m = 0; m < micro_data_count; m++) {
        const MicroData *data = &micro_data[m];
        MSTensorHandleArray inputs = MSModelGetInputs(*data->model), outputs;
        if (MSModelSetWorkspace(*data->model, micro_workspace, sizeof(micro_workspace)) != kMSStatusSuccess) return 2;
        for (r = 0; r < (size_t)runs; r++) {
            for (i = 0; i < inputs.handle_num; i++)
                memcpy(MSTensorGetMutableData(inputs.handle_list[i]), data->inputs[i], MSTensorGetDataSize(inputs.handle_list[i]));
            if (MSModelPredict(*data->model, inputs, &outputs) != kMSStatusSuccess) return 3;
            for (i = 0; r == 0 && i < outputs.handle_num; i++) {
                const MSTensorHandle tensor = outputs.handle_list[i];
                const double far = departure(MSTensorGetDataType(tensor), MSTensorGetData(tensor), data->outputs[i], MSTensorGetElementNum(tensor));
                const int fine = far <= data->tolerance;
                printf("%s: %s departs by %.3g: %s\n", data->name, MSTensorGetName(tensor), far, fine ? "PASSED" : "FAILED");
                failed |= !fine;
            }
        }
    }
    return failed;
}
