/* The board `virt` of QEMU with a RISC-V: start, text by semihosting, the counter of instructions. */
#include <string.h>

#include "board.h"

extern uint8_t bss_begin, bss_end;

const char unit[] = "instructions";

/* The three instructions that say so lie together on a page. */
__attribute__((noinline, aligned(64))) static uintptr_t semihost(uintptr_t operation, const void *argument)
{
    register uintptr_t a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = argument;
    __asm__ volatile(
        ".option push\n\t.option norvc\n\t"
        "slli zero, zero, 0x1f\n\tebreak\n\tsrai zero, zero, 7\n\t"
        ".option pop"
        : "+r"(a0)
        : "r"(a1)
        : "memory");
    return a0;
}

void say(const char *text)
{
    semihost(0x04, text);
}

static uint32_t instructions(void)
{
    uintptr_t now;
    __asm__ volatile("csrr %0, minstret" : "=r"(now));
    return (uint32_t)now;
}

static uint32_t begun;

void count_begin(void)
{
    begun = instructions();
}

uint32_t count(void)
{
    return instructions() - begun;
}

__attribute__((noinline, used)) static void start(void)
{
    memset(&bss_begin, 0, (size_t)(&bss_end - &bss_begin));
    const uintptr_t reason[2] = {0x20026, check_models()};
    semihost(0x20, reason);
    for (;;) continue;
}

/* The unit for floats is switched on, the stack set, before C begins; a trap says so. */
__attribute__((naked, section(".start"), used)) void _start(void)
{
    __asm__ volatile(
        ".option push\n\t.option norelax\n\tla gp, __global_pointer$\n\t.option pop\n\t"
        "la sp, stack_top\n\t"
        "la t0, trap\n\tcsrw mtvec, t0\n\t"
        "li t0, 0x2000\n\tcsrs mstatus, t0\n\t"
        "j start");
}

__attribute__((used, aligned(4))) static void trap(void)
{
    const uintptr_t reason[2] = {0x20026, 4};
    say("fault\n");
    semihost(0x20, reason);
    for (;;) continue;
}
