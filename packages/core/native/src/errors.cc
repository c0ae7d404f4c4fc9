// Errors raised by C code get their stable code, subject and the user's line from mycelia.engine.base.errors.
#include "core.h"

namespace mycelia {

// Only a plain builtin exception is replaced: a static type. What Python code raised with a class of its own is left.
void place_error(PyObject* subject) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (!type) return;
  PyErr_NormalizeException(&type, &value, &trace);
  if (value && !PyType_HasFeature(Py_TYPE(value), Py_TPFLAGS_HEAPTYPE)) {
    OwnedRef errors(PyImport_ImportModule("mycelia.engine.base.errors"));
    OwnedRef made(errors ? PyObject_CallMethod(errors.p, "about", "OO", subject, value) : nullptr);
    if (made && made.p != value) {
      Py_INCREF(Py_TYPE(made.p));
      Py_SETREF(type, reinterpret_cast<PyObject*>(Py_TYPE(made.p)));
      Py_SETREF(value, made.take());
    }
    PyErr_Clear();  // no module errors (the interpreter is ending): the plain error stays
  }
  PyErr_Restore(type, value, trace);
}

void place_error(const char* subject) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  OwnedRef text(PyUnicode_FromString(subject));
  PyErr_Restore(type, value, trace);
  if (text) place_error(text.p);
}

}  // namespace mycelia
