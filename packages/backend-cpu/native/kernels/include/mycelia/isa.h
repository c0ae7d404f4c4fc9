// Whether the processor runs the kernels of a variant: for those who choose among them, here and in the Lite runtime.
#ifndef MYCELIA_ISA_H_
#define MYCELIA_ISA_H_

namespace mycelia {

inline bool has_any() { return true; }  // generic code, and NEON, which every 64-bit ARM has

#if defined(__x86_64__) || defined(_M_X64)
inline bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}
inline bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

}  // namespace mycelia

#endif
