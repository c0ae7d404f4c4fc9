/* Holds the outputs of each model against the golden ones of the project, and says how long it took. */
#include <string.h>

#include "board.h"
#include "data.h"
#include "model_handle.h"

static void say_number(uint32_t n)
{
    char text[11];
    char *at = text + 10;
    *at = 0;
    do *--at = (char)('0' + n % 10);
    while (n /= 10);
    say(at);
}

/* Whether an output is what the runtime answered. */
static int agrees(MSTensorHandle tensor, const void *expected, double tolerance)
{
    const int64_t elements = MSTensorGetElementNum(tensor);
    float most = 0.0f, scale = 1e-6f;
    int64_t i;
    if (MSTensorGetDataType(tensor) != kMSDataTypeNumberTypeFloat32)
        return memcmp(MSTensorGetData(tensor), expected, MSTensorGetDataSize(tensor)) == 0;
    for (i = 0; i < elements; i++) {
        const float x = ((const float *)MSTensorGetData(tensor))[i], y = ((const float *)expected)[i];
        const float far = x > y ? x - y : y - x, size = y < 0.0f ? -y : y;
        if (!(far <= most)) most = far;
        if (size > scale) scale = size;
    }
    return most <= (float)tolerance * scale;
}

static uint32_t check(const MicroData *data)
{
    MSTensorHandleArray inputs = MSModelGetInputs(*data->model), outputs;
    uint32_t counted;
    size_t i;
    if (MSModelSetWorkspace(*data->model, micro_workspace, sizeof(micro_workspace)) != kMSStatusSuccess) return 2;
    for (i = 0; i < inputs.handle_num; i++)
        memcpy(MSTensorGetMutableData(inputs.handle_list[i]), data->inputs[i], MSTensorGetDataSize(inputs.handle_list[i]));
    count_begin();
    if (MSModelPredict(*data->model, inputs, &outputs) != kMSStatusSuccess) return 3;
    counted = count();
    say(data->name);
    for (i = 0; i < outputs.handle_num; i++)
        if (!agrees(outputs.handle_list[i], data->outputs[i], data->tolerance)) {
            say(": FAILED\n");
            return 1;
        }
    say(": PASSED, ");
    say(unit);
    say(" ");
    say_number(counted);
    say("\n");
    return 0;
}

uint32_t check_models(void)
{
    uint32_t failed = 0;
    size_t m;
    for (m = 0; m < micro_data_count && !failed; m++) failed = check(&micro_data[m]);
    return failed;
}
