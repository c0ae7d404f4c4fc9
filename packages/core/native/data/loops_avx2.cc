// Compiled for AVX2 where there is such a machine, see CMakeLists.txt.
#if defined(MYCELIA_DATA_AVX2)
#define MYCELIA_LOOPS loops_avx2
#include "loops.inc"
#endif
