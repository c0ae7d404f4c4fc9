/* The boards of QEMU with a Cortex-M: start, text by semihosting, the processor's own clock. */
#include <string.h>

#include "board.h"

extern uint32_t stack_top, data_begin, data_end, data_stored, bss_begin, bss_end;

#define SYSTICK ((volatile uint32_t *)0xE000E010)
#define COPROCESSORS (*(volatile uint32_t *)0xE000ED88)
#define MOST_TICKS 0xFFFFFFu

const char unit[] = "ticks";

static void semihost(int32_t operation, const void *argument)
{
    register int32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

void say(const char *text)
{
    semihost(0x04, text);
}

static void end(uint32_t failed)
{
    const uint32_t reason[2] = {0x20026, failed};
    semihost(0x20, reason);
    for (;;) continue;
}

void count_begin(void)
{
    SYSTICK[1] = MOST_TICKS;
    SYSTICK[2] = 0;
    SYSTICK[0] = 5; /* counts down with the processor's clock */
}

uint32_t count(void)
{
    return MOST_TICKS - SYSTICK[2];
}

__attribute__((noinline)) static void start(void)
{
    memcpy(&data_begin, &data_stored, (size_t)((uint8_t *)&data_end - (uint8_t *)&data_begin));
    memset(&bss_begin, 0, (size_t)((uint8_t *)&bss_end - (uint8_t *)&bss_begin));
    end(check_models());
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
