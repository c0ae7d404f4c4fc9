// sort and topk along an axis, stable, NaN as the largest value.
//
// Values become unsigned keys whose order is the wanted one (descending: inverted), so that one radix sort and one
// heap serve all dtypes.  Cost of sort: up to 4 (8 for 64-bit) counting passes over 8 (16) bytes an element; passes in
// which all keys agree are skipped.  Cost of topk: one comparison an element, and k log k.
#include "mycelia/kernels.h"

namespace mycelia::MYC_ISA {

// Keys in ascending order of the values; all NaN are one key above infinity, -0 and 0 one key.
static uint32_t key_of(float x) {
  if (x != x) return UINT32_MAX;
  x += 0.0f;
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
static uint64_t key_of(double x) {
  if (x != x) return UINT64_MAX;
  x += 0.0;
  uint64_t bits;
  memcpy(&bits, &x, 8);
  return bits >> 63 ? ~bits : bits | 0x8000000000000000u;
}
static uint32_t key_of(int32_t x) { return static_cast<uint32_t>(x) ^ 0x80000000u; }
static uint64_t key_of(int64_t x) { return static_cast<uint64_t>(x) ^ 0x8000000000000000u; }

template <class K>
struct Entry {
  K key;
  int32_t place;
};

// Rows of the axis, wherever its elements lie.
struct Lines {
  AxisView v;
  int64_t count() const { return v.outer * v.inner; }
  int64_t start(int64_t line, int64_t length) const { return line / v.inner * length * v.inner + line % v.inner; }
};

template <class K>
static void insertion_sort(Entry<K>* e, int64_t n) {
  for (int64_t i = 1; i < n; ++i) {
    const Entry<K> x = e[i];
    int64_t j = i;
    for (; j > 0 && x.key < e[j - 1].key; --j) e[j] = e[j - 1];
    e[j] = x;
  }
}

// Least significant digit first, 8 bits a pass; the digits of all passes are counted together, since counting one alone
// waits for the count before it.  The result is in the returned one of the two buffers.
template <class K>
static Entry<K>* radix_sort(Entry<K>* e, Entry<K>* other, int64_t n) {
  if (n <= 48) {  // below this length counting costs more than comparing
    insertion_sort(e, n);
    return e;
  }
  constexpr int kDigits = sizeof(K);
  K varying = 0;  // bits in which keys differ
  int32_t counts[kDigits][256] = {};
  for (int64_t i = 0; i < n; ++i) {
    varying |= e[i].key ^ e[0].key;
#pragma GCC unroll 8
    for (int d = 0; d < kDigits; ++d) ++counts[d][e[i].key >> 8 * d & 255];
  }
  for (int digit = 0; digit < kDigits; ++digit) {
    const unsigned shift = 8 * digit;
    int32_t(&count)[256] = counts[digit];
    if ((varying >> shift & 255) == 0) continue;
    int32_t position = 0;
    for (int d = 0; d < 256; ++d) {
      const int32_t size = count[d];
      count[d] = position;
      position += size;
    }
    for (int64_t i = 0; i < n; ++i) other[count[e[i].key >> shift & 255]++] = e[i];
    Entry<K>* swap = e;
    e = other, other = swap;
  }
  return e;
}

template <class T>
static int32_t sort_lines(const myc_call* call, int64_t axis, bool descending) {
  typedef decltype(key_of(T())) K;
  const T* x = in<T>(call);
  T* y = out<T>(call);
  int32_t* places = out<int32_t>(call, 1);
  const Lines lines{around_axis(input(call), axis)};
  const int64_t n = lines.v.n, step = lines.v.inner;
  if (input(call).size == 0) return MYC_OK;
  if (n > INT32_MAX) return MYC_E_UNSUPPORTED;
  Scratch scratch(call);
  Entry<K>* memory = scratch.take<Entry<K>>(2 * n * max_workers(call));
  if (memory == nullptr) return MYC_E_MEMORY;
  const K flip = descending ? ~K{0} : K{0};
  parallel_for_worker(call, lines.count(), kMinParallelWork / (n * 64) + 1, [&](int64_t begin, int64_t end, int32_t w) {
    Entry<K>* e = memory + 2 * n * w;
    for (int64_t line = begin; line < end; ++line) {
      const int64_t at = lines.start(line, n);
      for (int64_t i = 0; i < n; ++i) e[i] = {static_cast<K>(key_of(x[at + i * step]) ^ flip), static_cast<int32_t>(i)};
      const Entry<K>* sorted = radix_sort(e, e + n, n);
      for (int64_t i = 0; i < n; ++i) {
        y[at + i * step] = x[at + sorted[i].place * step];
        places[at + i * step] = sorted[i].place;
      }
    }
  });
  return MYC_OK;
}

#define SORT(T, name)                                          \
  KERNEL_FN(sort, name) {                                      \
    const auto& a = attrs<myc_sort_attrs>(call);               \
    return sort_lines<T>(call, a.axis, a.descending != 0);     \
  }
SORT(float, f32)
SORT(double, f64)
SORT(int32_t, i32)
SORT(int64_t, i64)

template <class K>
MYC_INLINE bool before(const Entry<K>& a, const Entry<K>& b) {
  return a.key < b.key || (a.key == b.key && a.place < b.place);
}

// Restores the heap (worst entry at the root) below `i`.
template <class K>
static void sift_down(Entry<K>* heap, int64_t k, int64_t i) {
  const Entry<K> x = heap[i];
  for (int64_t child = 2 * i + 1; child < k; child = 2 * i + 1) {
    if (child + 1 < k && before(heap[child], heap[child + 1])) ++child;
    if (!before(x, heap[child])) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = x;
}

template <class T>
static int32_t topk_lines(const myc_call* call, int64_t axis, int64_t k, bool largest) {
  typedef decltype(key_of(T())) K;
  const T* x = in<T>(call);
  T* y = out<T>(call);
  int32_t* places = out<int32_t>(call, 1);
  const Lines lines{around_axis(input(call), axis)};
  const int64_t n = lines.v.n, step = lines.v.inner;
  if (output(call).size == 0) return MYC_OK;
  if (n > INT32_MAX) return MYC_E_UNSUPPORTED;
  const bool whole = k * 8 > n;  // so many are wanted that sorting everything is cheaper than a heap
  const int64_t length = whole ? n : k;
  Scratch scratch(call);
  Entry<K>* memory = scratch.take<Entry<K>>((whole ? 2 * n : k) * max_workers(call));
  if (memory == nullptr) return MYC_E_MEMORY;
  const K flip = largest ? ~K{0} : K{0};
  parallel_for_worker(call, lines.count(), kMinParallelWork / (n * 8) + 1, [&](int64_t begin, int64_t end, int32_t w) {
    Entry<K>* e = memory + (whole ? 2 * n : k) * w;
    for (int64_t line = begin; line < end; ++line) {
      const int64_t from = lines.start(line, n), to = lines.start(line, k);
      const auto entry = [&](int64_t i) -> Entry<K> {
        return {static_cast<K>(key_of(x[from + i * step]) ^ flip), static_cast<int32_t>(i)};
      };
      for (int64_t i = 0; i < length; ++i) e[i] = entry(i);
      if (!whole) {
        for (int64_t i = k / 2 - 1; i >= 0; --i) sift_down(e, k, i);
        for (int64_t i = k; i < n; ++i) {
          const Entry<K> candidate = entry(i);
          if (candidate.key >= e[0].key) continue;  // an equal one stands behind
          e[0] = candidate;
          sift_down(e, k, 0);
        }
        for (int64_t last = k - 1; last > 0; --last) {  // heap sort: the worst goes to the end
          const Entry<K> worst = e[0];
          e[0] = e[last], e[last] = worst;
          sift_down(e, last, 0);
        }
      }
      const Entry<K>* sorted = whole ? radix_sort(e, e + n, n) : e;
      for (int64_t i = 0; i < k; ++i) {
        y[to + i * step] = x[from + sorted[i].place * step];
        places[to + i * step] = sorted[i].place;
      }
    }
  });
  return MYC_OK;
}

#define TOPK(T, name)                                                \
  KERNEL_FN(topk, name) {                                            \
    const auto& a = attrs<myc_topk_attrs>(call);                     \
    return topk_lines<T>(call, a.axis, a.k, a.largest != 0);         \
  }
TOPK(float, f32)
TOPK(double, f64)
TOPK(int32_t, i32)
TOPK(int64_t, i64)

}  // namespace mycelia::MYC_ISA
