/* Counts what lives on the heap, by hooks of the address sanitizer's allocator, which the process brings. */
#include <stddef.h>

int __sanitizer_install_malloc_and_free_hooks(void (*made)(const volatile void *, size_t), void (*gone)(const volatile void *));
size_t __sanitizer_get_allocated_size(const volatile void *block);

static _Atomic long long live, most;

static void made(const volatile void *block, size_t bytes) {
  (void)block;
  const long long now = live += (long long)bytes;
  long long seen = most;
  while (now > seen && !__atomic_compare_exchange_n((long long *)&most, &seen, now, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
}

static void gone(const volatile void *block) {
  if (block) live -= (long long)__sanitizer_get_allocated_size(block);
}

/* Begins to count. 0: it cannot. */
int allocations_watch(void) { return __sanitizer_install_malloc_and_free_hooks(made, gone); }

/* From here on the most bytes at once are counted anew; those that live now. */
long long allocations_begin(void) { return most = live; }

/* The most bytes that lived at once since then. */
long long allocations_most(void) { return most; }
