/* What a host program sees of the CPU kernel library: the table of the best variant, and the thread pool's context. */
#ifndef MYCELIA_CPU_H_
#define MYCELIA_CPU_H_

#include "mycelia/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kernels of the variant `isa` (generic, avx2, avx512, neon), or of the fastest one that this processor runs when isa
 * is NULL or empty.  Returns NULL when the variant was not built or the processor lacks it; *chosen names the variant. */
const myc_kernel* myc_cpu_kernels(const char* isa, uint32_t* count, const char** chosen);

/* Does `rounds` rounds of multiply-adds in registers with the vectors of a variant, to measure the processor's peak.
 * Returns the number of floating-point operations, 0 when the variant is not available. */
double myc_cpu_multiply_adds(const char* isa, int64_t rounds);

/* The algorithms of a channels-last convolution, as the attribute of conv_pack and conv_last has them. */
enum { MYC_CONV_DIRECT = 0, MYC_CONV_WINOGRAD4 = 1, MYC_CONV_WINOGRAD6 = 2, MYC_CONV_DEPTHWISE = 3, MYC_CONV_WINOGRAD2 = 4, MYC_CONV_PLANES = 5 };
/* Estimated cycles of a convolution of images [n, height, width, depth] to `channels` by 3x3 windows of stride and dilation 1
 * in one group; pad: begins, then ends.  With `packs` the packing of the weights counts, too. */
double myc_cpu_conv_cycles(int32_t algorithm, const int64_t image[4], int64_t channels, const int64_t pad[4], int32_t packs);
/* The one with the fewest. */
int32_t myc_cpu_conv_algorithm(const int64_t image[4], int64_t channels, const int64_t pad[4], int32_t packs);

/* The algorithms of a product with packed weights, as the attribute of linear_pack and linear has them, and the one with the fewest
 * estimated cycles for `rows` x `depth` times `depth` x `columns`. Strassen's mixes columns: who asks accepts its errors. */
enum { MYC_PRODUCT_PLAIN = 0, MYC_PRODUCT_STRASSEN = 1 };
int32_t myc_cpu_product_algorithm(int64_t rows, int64_t columns, int64_t depth);

/* Whether rows of a 3x3 depthwise convolution with stride 2 that have `width` positions go in blocks of 4, rather than of 7. */
int32_t myc_cpu_depthwise_is_narrow(int64_t width);

/* Thread pool (library mycelia_threadpool): the calling thread's context, made on first use and kept. */
myc_context* myc_cpu_context(void);
/* Threads that a kernel may use, the caller included; 0 or less = as many as the process has cores. */
void myc_cpu_set_threads(int32_t threads);
int32_t myc_cpu_threads(void);
/* A pool beside the process's: worker i runs on cores[i % count] alone, count 0: wherever the system wants. Its threads start
 * when they are first needed. NULL: no memory. It must outlive every run on it. */
typedef struct myc_pool myc_pool;
myc_pool* myc_pool_create(const int32_t* cores, int32_t count);
void myc_pool_destroy(myc_pool* pool);
/* From now on kernels that the calling thread calls use this pool, NULL the process's, with at most so many threads, the caller
 * included; 0: as myc_cpu_set_threads says. */
void myc_cpu_use_pool(myc_pool* pool, int32_t threads);
/* Whether kernels divide their work alike for any number of threads, so that results do not depend on it. */
void myc_cpu_set_deterministic(int32_t on);

/* Both together: a complete table, filled on first use.  The variant is fixed by the first successful call.
 * NULL when `isa` is not available. */
const myc_kernel_table* myc_cpu_kernel_table(const char* isa);

#ifdef __cplusplus
}
#endif
#endif
