/* What a Cortex-M board needs to run the self-test of a project, and to tell its result by semihosting. */
#include <stdint.h>
#include <string.h>

#include "data.h"
#include "model_handle.h"

extern uint32_t stack_top, data_begin, data_end, data_stored, bss_begin, bss_end;

#define SYSTICK ((volatile uint32_t *)0xE000E010)
#define COPROCESSORS (*(volatile uint32_t *)0xE000ED88)
#define MOST_TICKS 0xFFFFFFu

static void semihost(int32_t operation, const void *argument)
{
    register int32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void say(const char *text)
{
    semihost(0x04, text);
}

static void say_number(uint32_t n)
{
    char text[11];
    char *at = text + 10;
    *at = 0;
    do *--at = (char)('0' + n % 10);
    while (n /= 10);
    say(at);
}

static void end(uint32_t failed)
{
    const uint32_t reason[2] = {0x20026, failed};
    semihost(0x20, reason);
    for (;;) continue;
}

/* Whether an output is what the runtime answered. */
static int agrees(MSTensorHandle tensor, const void *expected, double tolerance)
{
    const int64_t count = MSTensorGetElementNum(tensor);
    float most = 0.0f, scale = 1e-6f;
    int64_t i;
    if (MSTensorGetDataType(tensor) != kMSDataTypeNumberTypeFloat32)
        return memcmp(MSTensorGetData(tensor), expected, MSTensorGetDataSize(tensor)) == 0;
    for (i = 0; i < count; i++) {
        const float x = ((const float *)MSTensorGetData(tensor))[i], y = ((const float *)expected)[i];
        const float far = x > y ? x - y : y - x, size = y < 0.0f ? -y : y;
        if (!(far <= most)) most = far;
        if (size > scale) scale = size;
    }
    return most <= (float)tolerance * scale;
}

static void check(const MicroData *data)
{
    MSTensorHandleArray inputs = MSModelGetInputs(*data->model), outputs;
    uint32_t ticks;
    size_t i;
    if (MSModelSetWorkspace(*data->model, micro_workspace, sizeof(micro_workspace)) != kMSStatusSuccess) end(2);
    for (i = 0; i < inputs.handle_num; i++)
        memcpy(MSTensorGetMutableData(inputs.handle_list[i]), data->inputs[i], MSTensorGetDataSize(inputs.handle_list[i]));
    SYSTICK[1] = MOST_TICKS;
    SYSTICK[2] = 0;
    SYSTICK[0] = 5; /* counts down with the processor's clock */
    if (MSModelPredict(*data->model, inputs, &outputs) != kMSStatusSuccess) end(3);
    ticks = MOST_TICKS - SYSTICK[2];
    for (i = 0; i < outputs.handle_num; i++)
        if (!agrees(outputs.handle_list[i], data->outputs[i], data->tolerance)) {
            say(data->name);
            say(": FAILED\n");
            end(1);
        }
    say(data->name);
    say(": PASSED, ticks ");
    say_number(ticks);
    say("\n");
}

__attribute__((noinline)) static void start(void)
{
    size_t m;
    memcpy(&data_begin, &data_stored, (size_t)((uint8_t *)&data_end - (uint8_t *)&data_begin));
    memset(&bss_begin, 0, (size_t)((uint8_t *)&bss_end - (uint8_t *)&bss_begin));
    for (m = 0; m < micro_data_count; m++) check(&micro_data[m]);
    end(0);
}

/* Functions may use the unit for floats from their first instruction on: it is switched on before one is called. */
static void reset(void)
{
    COPROCESSORS |= 0xFu << 20;
    __asm__ volatile("dsb\n\tisb");
    start();
}

static void fault(void)
{
    say("fault\n");
    end(4);
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &stack_top, (const void *)reset, (const void *)fault, (const void *)fault, (const void *)fault, (const void *)fault,
    (const void *)fault,
};
