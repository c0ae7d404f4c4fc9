/* What a board gives to the self-test. */
#ifndef BOARD_H_
#define BOARD_H_

#include <stdint.h>

void say(const char *text);
/* Starts a counter; then how far it went: of which unit `unit` says. */
void count_begin(void);
uint32_t count(void);
extern const char unit[];

/* Runs each model on the inputs of its self-test: 0 if the outputs are the golden ones. */
uint32_t check_models(void);

#endif
