// Where exceptions end. Nothing is thrown across the border: what the runtime can meet is a lack of memory or of threads, and
// code from outside may throw anything. The library that `mycelia-lite crop` cuts down is built without exceptions: there, what
// would be thrown ends the program. Memory of models, tensors and weights is asked for without them in any case.
#ifndef MYCELIA_LITE_EXCEPTIONS_H_
#define MYCELIA_LITE_EXCEPTIONS_H_

#include <exception>
#include <new>

#include "status.h"

namespace mycelia::lite {

// What `body` returns, or `failed` of a status if it throws.
template <class Body, class Failed>
auto caught(const Body& body, const Failed& failed) {
#ifdef __cpp_exceptions
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return failed(Status(kMemory, "out of memory"));
  } catch (const std::exception& error) {
    return failed(Status(kError, error.what()));
  }
#else
  (void)failed;
  return body();
#endif
}

// What `call` returns, `thrown` if it throws: code from outside may be written in C++.
template <class Call, class T>
T without_throwing(const Call& call, T thrown) {
#ifdef __cpp_exceptions
  try {
    return call();
  } catch (...) {
    return thrown;
  }
#else
  (void)thrown;
  return call();
#endif
}

}  // namespace mycelia::lite

#endif
