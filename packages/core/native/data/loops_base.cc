#define MYCELIA_LOOPS loops_base
#include "loops.inc"
