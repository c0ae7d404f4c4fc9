/* The C ABI between the core and kernel libraries: C11, no dependency, no allocation, no exceptions.
 *
 * A kernel is a C function `int32_t kernel(const myc_call*)`. Eager dispatch, the graph executor, the Lite
 * runtime and generated Micro code all call the same functions. Tensors are always C-contiguous.
 */
#ifndef MYCELIA_ABI_H_
#define MYCELIA_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MYC_ABI_VERSION 1
#define MYC_MAX_RANK 8
#define MYC_MAX_INTS 16 /* longest list attribute: pads of a rank-8 tensor */

/* Element types. The order is part of the ABI. */
enum {
  MYC_BOOL = 0,
  MYC_I8 = 1,
  MYC_I16 = 2,
  MYC_I32 = 3,
  MYC_I64 = 4,
  MYC_U8 = 5,
  MYC_U16 = 6,
  MYC_U32 = 7,
  MYC_U64 = 8,
  MYC_F16 = 9,
  MYC_BF16 = 10,
  MYC_F32 = 11,
  MYC_F64 = 12,
  MYC_C64 = 13,
  MYC_C128 = 14,
  MYC_DTYPE_COUNT = 15
};

/* Results of a kernel. */
enum {
  MYC_OK = 0,
  MYC_E_UNSUPPORTED = 1, /* this case is not implemented: the caller falls back, nothing was written */
  MYC_E_ARGUMENT = 2,    /* bad value in a tensor, e.g. an index out of range; ctx->error says which */
  MYC_E_MEMORY = 3       /* scratch memory could not be had */
};

typedef struct myc_tensor {
  void* data;
  int64_t size; /* number of elements */
  int32_t dtype;
  int32_t rank;
  int64_t shape[MYC_MAX_RANK];
} myc_tensor;

/* What a kernel must not own: threads, scratch memory, the place for an error text. */
typedef struct myc_context myc_context;
struct myc_context {
  void* host;
  int32_t threads; /* upper bound of bodies that run at once; 1 = parallel_for runs inline */
  /* Bytes of scratch memory handed out; a kernel puts back the value it found when it is done with its scratch. */
  int64_t scratch_used;
  /* Runs body(arg, begin, end, worker) over disjoint ranges that cover [0, n), each at least `grain` long when possible.
   * worker < threads tells bodies that run at the same time apart, e.g. to give each its slice of scratch memory. */
  void (*parallel_for)(myc_context* ctx, int64_t n, int64_t grain,
                       void (*body)(void* arg, int64_t begin, int64_t end, int32_t worker), void* arg);
  /* 64-byte aligned memory, valid until the kernel returns; may be called several times; NULL when exhausted.
   * Only from the thread that called the kernel, not from bodies of parallel_for. */
  void* (*scratch)(myc_context* ctx, int64_t bytes);
  char error[256];
};

typedef struct myc_call {
  const myc_tensor* const* in; /* an optional input that was not given is NULL */
  myc_tensor* const* out;
  const void* attrs; /* points to myc_<op>_attrs of op_attrs.h */
  myc_context* ctx;
  int32_t n_in, n_out;
} myc_call;

typedef int32_t (*myc_kernel_fn)(const myc_call*);

/* Flags of a kernel. */
enum {
  MYC_INPLACE = 1 /* out[0] may be the memory of any input of the same shape and dtype */
};

typedef struct myc_kernel {
  const char* op;
  /* dtypes of the inputs: one name = all inputs have it ("f32"); "f32,i64" = one by one; "*" = any mix (the kernel
   * returns MYC_E_UNSUPPORTED for what it does not take). Names: bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64. */
  const char* dtypes;
  myc_kernel_fn fn;
  uint32_t flags;
} myc_kernel;

typedef struct myc_kernel_table {
  uint32_t abi_version;
  uint32_t count;
  const myc_kernel* kernels;
  const char* library; /* name for error messages */
  const char* isa;     /* variant in use: generic, avx2, avx512, neon */
  myc_context* (*context)(void);           /* the calling thread's context */
  void (*set_threads)(int32_t threads);
} myc_kernel_table;

#define MYC_KERNEL_TABLE_CAPSULE "mycelia.kernel_table"

#ifdef __cplusplus
}
#endif
#endif
