// Compiled for AVX2, see CMakeLists.txt; empty elsewhere.
#if defined(__AVX2__)
#define MYCELIA_LOOPS loops_avx2
#include "loops.inc"
#endif
