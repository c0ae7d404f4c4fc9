// An exception that nobody catches, such as one that a delegate throws, ends the process; the C++ library, of which the
// shared library has its own copy, would print its type first, and has 40 KB for taking such names apart.
#include <cstdlib>

namespace __gnu_cxx {
[[noreturn]] __attribute__((visibility("hidden"))) void __verbose_terminate_handler() { std::abort(); }
}  // namespace __gnu_cxx
