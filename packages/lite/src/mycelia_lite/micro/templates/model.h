/* What stands behind handles. */
#ifndef MICRO_MODEL_H_
#define MICRO_MODEL_H_

#include "micro_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct MicroTensor {
    const char *name;
    const int64_t *shape;
    const void *constant; /* NULL: it lies in the workspace */
    size_t place, bytes;
    int64_t elements;
    size_t rank;
    MSDataType type;
} MicroTensor;

struct MSTensor {
    const MicroTensor *about;
    uint8_t *const *arena; /* of its model */
};

typedef struct MicroModel {
    size_t workspace_size;
    size_t input_count, output_count;
    void (*begin)(uint8_t *arena); /* NULL: it keeps no variables */
    int32_t (*run)(uint8_t *arena); /* 0: it met nothing that it cannot compute with */
} MicroModel;

struct MSModel {
    const MicroModel *about;
    MSTensorHandle *tensors; /* inputs, then outputs */
    uint8_t **arena;
};

#ifdef __cplusplus
}
#endif

#endif
