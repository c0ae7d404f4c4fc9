// Module mycelia_serving._grpc: what Python calls. The interpreter's lock is held only to make and read objects.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstring>
#include <new>

#include "server.h"

namespace mycelia::serving {
namespace {

constexpr size_t kLarge = 1 << 20;  // bytes that are copied without the interpreter's lock

http2::Library library;
bool library_loaded = false;

struct PyServer {
  PyObject_HEAD
  Server* server;
};

PyObject* failed(const std::exception& e) {
  if (dynamic_cast<const std::bad_alloc*>(&e)) return PyErr_NoMemory();
  PyErr_SetString(PyExc_RuntimeError, e.what());
  return nullptr;
}

void copy(char* to, const char* from, size_t size) {
  if (size < kLarge) {
    std::memcpy(to, from, size);
    return;
  }
  Py_BEGIN_ALLOW_THREADS
  std::memcpy(to, from, size);
  Py_END_ALLOW_THREADS
}

PyObject* load(PyObject*, PyObject* args) {
  const char* path;
  if (!PyArg_ParseTuple(args, "s", &path)) return nullptr;
  std::string problem;
  if (!library_loaded) {
    problem = http2::load(path, &library);
    library_loaded = problem.empty();
  }
  return PyUnicode_FromStringAndSize(problem.data(), static_cast<Py_ssize_t>(problem.size()));
}

bool read_methods(PyObject* object, std::vector<Method>* methods) {
  PyObject* items = PySequence_Fast(object, "methods: a sequence of (path, streaming)");
  if (!items) return false;
  bool good = true;
  for (Py_ssize_t i = 0; good && i < PySequence_Fast_GET_SIZE(items); ++i) {
    const char* path;
    int streaming;
    PyObject* item = PySequence_Fast_GET_ITEM(items, i);
    good = PyTuple_Check(item) && PyArg_ParseTuple(item, "sp", &path, &streaming);
    if (good) methods->push_back({path, streaming != 0});
    else if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "methods: a sequence of (path, streaming)");
  }
  Py_DECREF(items);
  return good;
}

int server_init(PyServer* self, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"methods",   "message",     "buffered", "header_bytes", "header_count", "streams",
                                "calls",     "connections", "handshake_s", "stall_s",   "slowest",      "idle_s",
                                "control_rate", "control_burst", nullptr};
  PyObject* method_list;
  Limits l;
  unsigned long long message = l.message, buffered = l.buffered, header_bytes = l.header_bytes, header_count = l.header_count,
                     streams = l.streams, calls = l.calls, connections = l.connections;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$KKKKKKKdddddd", const_cast<char**>(names), &method_list, &message, &buffered,
                                   &header_bytes, &header_count, &streams, &calls, &connections, &l.handshake_s, &l.stall_s, &l.slowest, &l.idle_s,
                                   &l.control_rate, &l.control_burst))
    return -1;
  l.message = message;
  l.buffered = buffered;
  l.header_bytes = header_bytes;
  l.header_count = header_count;
  l.streams = streams;
  l.calls = calls;
  l.connections = connections;
  if (self->server || !library_loaded) {
    PyErr_SetString(PyExc_RuntimeError, self->server ? "a server is made once" : "load() comes first");
    return -1;
  }
  std::vector<Method> methods;
  if (!read_methods(method_list, &methods)) return -1;
  try {
    self->server = new Server(library, std::move(methods), l);
  } catch (const std::exception& e) {
    failed(e);
    return -1;
  }
  return 0;
}

void server_dealloc(PyServer* self) {
  Server* server = self->server;
  self->server = nullptr;
  delete server;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(reinterpret_cast<PyObject*>(self));
  Py_DECREF(type);
}

PyObject* server_listen(PyServer* self, PyObject* fd) {
  const long value = PyLong_AsLong(fd);
  if (value == -1 && PyErr_Occurred()) return nullptr;
  try {
    self->server->listen(static_cast<int>(value));
  } catch (const std::exception& e) {
    return failed(e);
  }
  Py_RETURN_NONE;
}

PyObject* bytes_of(const std::string& s) {
  PyObject* bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(s.size()));
  if (bytes) copy(PyBytes_AS_STRING(bytes), s.data(), s.size());
  return bytes;
}

PyObject* metadata_of(const Metadata& metadata) {
  PyObject* pairs = PyTuple_New(static_cast<Py_ssize_t>(metadata.size()));
  for (size_t i = 0; pairs && i < metadata.size(); ++i) {
    const auto& [name, value] = metadata[i];
    // Header names are ASCII by HTTP/2's rules; values are bytes, which Latin-1 keeps as they are.
    PyObject* pair = Py_BuildValue("(s#N)", name.data(), static_cast<Py_ssize_t>(name.size()),
                                   PyUnicode_DecodeLatin1(value.data(), static_cast<Py_ssize_t>(value.size()), nullptr));
    if (!pair) Py_CLEAR(pairs);
    else PyTuple_SET_ITEM(pairs, static_cast<Py_ssize_t>(i), pair);
  }
  return pairs;
}

PyObject* event_of(const Event& e) {
  const bool has_body = e.kind == Kind::kCall || e.kind == Kind::kMessage;
  PyObject* parts[] = {PyLong_FromLong(static_cast<int>(e.kind)),
                       PyLong_FromUnsignedLongLong(e.token),
                       PyLong_FromLong(e.method),
                       has_body ? bytes_of(e.body) : Py_NewRef(Py_None),
                       PyLong_FromLong(e.encoding),
                       metadata_of(e.metadata),
                       e.timeout < 0 ? Py_NewRef(Py_None) : PyFloat_FromDouble(e.timeout),
                       PyUnicode_FromStringAndSize(e.peer.data(), static_cast<Py_ssize_t>(e.peer.size()))};
  constexpr Py_ssize_t count = sizeof parts / sizeof *parts;
  PyObject* tuple = PyTuple_New(count);
  bool good = tuple != nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    good = good && parts[i];
    if (tuple) PyTuple_SET_ITEM(tuple, i, parts[i]);
    else Py_XDECREF(parts[i]);
  }
  if (!good) Py_CLEAR(tuple);
  return tuple;
}

PyObject* server_take(PyServer* self, PyObject* args) {
  double seconds = -1;
  if (!PyArg_ParseTuple(args, "|d", &seconds)) return nullptr;
  std::vector<Event> events;
  bool open = false;
  std::string problem;
  Py_BEGIN_ALLOW_THREADS
  try {
    open = self->server->take(&events, seconds);
  } catch (const std::exception& e) {
    problem = e.what();
  }
  Py_END_ALLOW_THREADS
  if (!problem.empty()) {
    PyErr_SetString(PyExc_RuntimeError, problem.c_str());
    return nullptr;
  }
  if (!open) Py_RETURN_NONE;
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(events.size()));
  size_t total = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    total += Server::cost(events[i]);
    PyObject* event = list ? event_of(events[i]) : nullptr;
    if (!event) Py_CLEAR(list);
    else PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), event);
    events[i].body = {};
  }
  self->server->taken(total);
  return list;
}

bool message_of(PyObject* object, std::string* body) {
  Py_buffer view;
  if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE)) return false;
  const size_t size = static_cast<size_t>(view.len);
  bool good = size <= UINT32_MAX;
  if (!good) PyErr_SetString(PyExc_ValueError, "a message has at most 4 GiB");
  try {
    if (good) body->resize(grpc::kPrefix + size);
  } catch (const std::exception& e) {
    failed(e);
    good = false;
  }
  if (good) {
    grpc::put_prefix(body->data(), size);
    copy(body->data() + grpc::kPrefix, static_cast<const char*>(view.buf), size);
  }
  PyBuffer_Release(&view);
  return good;
}

PyObject* answer(PyServer* self, PyObject* const* args, Py_ssize_t count, bool end) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "two arguments are needed: token, message");
    return nullptr;
  }
  Action action{PyLong_AsUnsignedLongLong(args[0]), true, end, {}, grpc::kOk, {}};
  if (PyErr_Occurred() || !message_of(args[1], &action.body)) return nullptr;
  self->server->send(std::move(action));
  Py_RETURN_NONE;
}

PyObject* server_reply(PyServer* self, PyObject* const* args, Py_ssize_t count) { return answer(self, args, count, true); }
PyObject* server_send(PyServer* self, PyObject* const* args, Py_ssize_t count) { return answer(self, args, count, false); }

PyObject* server_finish(PyServer* self, PyObject* args) {
  unsigned long long token;
  int status;
  const char* text = "";
  Py_ssize_t size = 0;
  if (!PyArg_ParseTuple(args, "Ki|s#", &token, &status, &text, &size)) return nullptr;
  self->server->send({token, false, true, {}, status, std::string(text, static_cast<size_t>(size))});
  Py_RETURN_NONE;
}

PyObject* server_stop(PyServer* self, PyObject* args) {
  double grace = 0;
  if (!PyArg_ParseTuple(args, "|d", &grace)) return nullptr;
  self->server->stop(grace);
  Py_RETURN_NONE;
}

PyObject* server_statistics(PyServer* self, PyObject*) {
  const Statistics& s = self->server->statistics;
  return Py_BuildValue("{sKsKsKsKsKsKsKsK}", "connections", s.connections.load(), "accepted", s.accepted.load(), "refused",
                       s.refused.load(), "calls", s.calls.load(), "open_calls", s.open_calls.load(), "bytes_in", s.bytes_in.load(),
                       "bytes_out", s.bytes_out.load(), "errors", s.errors.load());
}

template <class F>
PyCFunction as_function(F* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

PyMethodDef server_methods[] = {
    {"listen", as_function(server_listen), METH_O, "listen(fd): take over a listening, non-blocking socket; before the first take."},
    {"take", as_function(server_take), METH_VARARGS,
     "take(seconds=-1) -> [(kind, token, method, body, encoding, metadata, timeout, peer)]: serve until there is something; all that\n"
     "came, None at the end. One thread calls it again and again: between the calls nothing is read or sent."},
    {"reply", as_function(server_reply), METH_FASTCALL, "reply(token, message): answer a call and end it; from any thread."},
    {"send", as_function(server_send), METH_FASTCALL, "send(token, message): one message of a streaming method's answer."},
    {"finish", as_function(server_finish), METH_VARARGS, "finish(token, status, text=''): end a call with a status."},
    {"stop", as_function(server_stop), METH_VARARGS, "stop(grace_s=0): take nothing new; end when all is answered or the time is over."},
    {"statistics", as_function(server_statistics), METH_NOARGS, "Counters, by name."},
    {nullptr, nullptr, 0, nullptr}};

template <class F>
void* slot(F* f) {
  return reinterpret_cast<void*>(f);
}

PyType_Slot server_slots[] = {
    {Py_tp_doc, const_cast<char*>("Server(methods, *, message=..., ...): a gRPC server for (path, streaming) pairs; server.h has the limits.")},
    {Py_tp_new, slot(PyType_GenericNew)},
    {Py_tp_init, slot(server_init)},
    {Py_tp_dealloc, slot(server_dealloc)},
    {Py_tp_methods, server_methods},
    {0, nullptr}};

PyType_Spec server_spec = {"mycelia_serving._grpc.Server", sizeof(PyServer), 0, Py_TPFLAGS_DEFAULT, server_slots};

PyMethodDef module_methods[] = {
    {"load", load, METH_VARARGS, "load(path): load libnghttp2, once a process; '' or what is wrong with this one."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "mycelia_serving._grpc", "gRPC over HTTP/2 without TLS.", -1, module_methods,
                      nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace mycelia::serving

PyMODINIT_FUNC PyInit__grpc() {
  using namespace mycelia::serving;
  PyObject* m = PyModule_Create(&module);
  PyObject* type = m ? PyType_FromSpec(&server_spec) : nullptr;
  if (m && (!type || PyModule_AddObjectRef(m, "Server", type))) Py_CLEAR(m);
  Py_XDECREF(type);
  return m;
}
