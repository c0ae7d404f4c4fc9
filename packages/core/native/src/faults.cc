// The native stack of a fault, written to a file before whoever handled the signal until then goes on.
#include <Python.h>

#include "core.h"

#if defined(__has_include)
#if __has_include(<execinfo.h>) && __has_include(<unistd.h>)
#define MYCELIA_HAS_BACKTRACE 1
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>
#endif
#endif

namespace mycelia {

#ifdef MYCELIA_HAS_BACKTRACE

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int kCount = sizeof(kSignals) / sizeof(kSignals[0]);
constexpr int kFrames = 64;

int file = -1;  // where stacks go; -1 while nobody listens
struct sigaction before[kCount];

// Runs in the thread that failed, maybe on the alternate stack: it allocates nothing and takes no locks.
void write_stack(int number) {
  static const char kHead[] = "Native stack, the innermost call first:\n";
  void* frames[kFrames];
  const int count = backtrace(frames, kFrames);
  if (write(file, kHead, sizeof(kHead) - 1) >= 0) {
    backtrace_symbols_fd(frames + 1, count - 1, file);  // without this function
    if (write(file, "\n", 1) < 0) file = -1;
  }
  for (int i = 0; i < kCount; ++i) {
    if (kSignals[i] == number) sigaction(number, &before[i], nullptr);
  }
  raise(number);  // it is blocked here, and comes to the handler before when this one returns
}

}  // namespace

PyObject* watch_faults(PyObject*, PyObject* arg) {
  const long descriptor = PyLong_AsLong(arg);
  if (descriptor == -1 && PyErr_Occurred()) return nullptr;
  if (file < 0) {
    void* frames[2];
    backtrace(frames, 2);  // loads the unwinder, which a handler must not
    file = static_cast<int>(descriptor);
    struct sigaction action = {};
    action.sa_handler = write_stack;
    action.sa_flags = SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < kCount; ++i) sigaction(kSignals[i], &action, &before[i]);
  }
  Py_RETURN_TRUE;
}

PyObject* forget_faults(PyObject*, PyObject*) {
  if (file >= 0) {
    for (int i = 0; i < kCount; ++i) sigaction(kSignals[i], &before[i], nullptr);
    file = -1;
  }
  Py_RETURN_NONE;
}

#else

PyObject* watch_faults(PyObject*, PyObject*) { Py_RETURN_FALSE; }
PyObject* forget_faults(PyObject*, PyObject*) { Py_RETURN_NONE; }

#endif

}  // namespace mycelia
