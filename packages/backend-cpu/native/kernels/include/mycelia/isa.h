// Whether the processor runs the kernels of a variant: for those who choose among them, here and in the Lite runtime.
#ifndef MYCELIA_ISA_H_
#define MYCELIA_ISA_H_

#if defined(__x86_64__) || defined(_M_X64)
#include <cpuid.h>
#include <stdint.h>
#endif

namespace mycelia {

inline bool has_any() { return true; }  // generic code, and NEON, which every 64-bit ARM has

#if defined(__x86_64__) || defined(_M_X64)
// Bits of CPUID's leaves 1 (ecx) and 7 (ebx), and of XCR0: which registers the system saves. Asked for here, since the
// compiler's own function brings 4 KB of tables of processors.
inline bool has_features(uint32_t basic, uint32_t extended, uint32_t saved) {
  constexpr uint32_t kSaves = 1u << 27;  // OSXSAVE
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & (basic | kSaves)) != (basic | kSaves)) return false;
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & saved) == saved && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & extended) == extended;
}
inline bool has_avx2() {  // with FMA and F16C
  return has_features(1u << 12 | 1u << 29, 1u << 5, 0x06);
}
inline bool has_avx512() {  // F, DQ, BW and VL
  return has_avx2() && has_features(0, 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31, 0xe6);
}
#endif

}  // namespace mycelia

#endif
