// Devices with memory of their own: their memory is counted here, everything else is asked of their Backend object.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core.h"

namespace mycelia {

bool other_devices = false;

namespace {

struct Device {
  PyObject* backend;  // kept for ever: memory of it may outlive everything else
  PyObject* name;
  int64_t live_bytes = 0, peak_bytes = 0, allocations = 0;
};

std::vector<Device> devices(1);  // [kHost] stands for the host, whose memory storage.cc counts

PyObject* host_view(const void* data, int64_t bytes, int flags) {
  return PyMemoryView_FromMemory(static_cast<char*>(const_cast<void*>(data)), static_cast<Py_ssize_t>(bytes), flags);
}

bool done(PyObject* result) {
  Py_XDECREF(result);
  return result != nullptr;
}

bool from_host(int32_t device, void* to, const void* from, int64_t bytes) {
  OwnedRef address(PyLong_FromVoidPtr(to)), source(host_view(from, bytes, PyBUF_READ));
  return address && source && done(PyObject_CallMethod(devices[device].backend, "copy_from_host", "OO", address.p, source.p));
}

bool to_host(int32_t device, void* to, const void* from, int64_t bytes) {
  OwnedRef address(PyLong_FromVoidPtr(const_cast<void*>(from))), target(host_view(to, bytes, PyBUF_WRITE));
  return address && target && done(PyObject_CallMethod(devices[device].backend, "copy_to_host", "OO", target.p, address.p));
}

bool within(int32_t device, void* to, const void* from, int64_t bytes) {
  OwnedRef target(PyLong_FromVoidPtr(to)), source(PyLong_FromVoidPtr(const_cast<void*>(from)));
  return target && source &&
         done(PyObject_CallMethod(devices[device].backend, "copy", "OOL", target.p, source.p, static_cast<long long>(bytes)));
}

}  // namespace

bool is_device(int64_t number) {
  if (number >= 0 && number < static_cast<int64_t>(devices.size())) return true;
  PyErr_Format(PyExc_ValueError, "there is no device %lld", static_cast<long long>(number));
  return false;
}

Storage* device_alloc(int32_t device, int64_t bytes) {
  if (device == kHost) return storage_alloc(bytes);
  Device& d = devices[device];
  const int64_t size = std::max<int64_t>(bytes, 1);  // every tensor has an address
  if (size > storage_limit() - d.live_bytes) {
    PyErr_Format(PyExc_MemoryError,
                 "out of memory on %U: a tensor of %lld bytes was asked for, %lld bytes are in use, and the setting "
                 "max_device_memory allows %lld bytes",
                 d.name, static_cast<long long>(bytes), static_cast<long long>(d.live_bytes), static_cast<long long>(storage_limit()));
    return nullptr;
  }
  OwnedRef address(PyObject_CallMethod(d.backend, "allocate", "L", static_cast<long long>(size)));
  if (!address) return nullptr;
  void* data = PyLong_AsVoidPtr(address.p);
  if (!data) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_MemoryError, "out of memory on %U: it has no %lld bytes", d.name, static_cast<long long>(size));
    return nullptr;
  }
  Storage* s = static_cast<Storage*>(std::malloc(sizeof(Storage)));
  if (!s) {
    PyErr_NoMemory();
    return nullptr;
  }
  *s = Storage{1, 0, size, static_cast<char*>(data), kOfDevice, device, nullptr, next_stamp()};
  Device& now = devices[device];  // the backend may have run any code
  now.live_bytes += size;
  now.peak_bytes = std::max(now.peak_bytes, now.live_bytes);
  ++now.allocations;
  return s;
}

void device_free(Storage* s) {
  PyObject *type, *value, *traceback;  // memory is let go at any time, while an error is on its way too
  PyErr_Fetch(&type, &value, &traceback);
  devices[s->device].live_bytes -= s->bytes;
  OwnedRef address(PyLong_FromVoidPtr(s->data));
  PyObject* backend = devices[s->device].backend;
  if (!address || !done(PyObject_CallMethod(backend, "free", "OL", address.p, static_cast<long long>(s->bytes)))) PyErr_WriteUnraisable(backend);
  PyErr_Restore(type, value, traceback);
}

bool copy_bytes(void* to, int32_t to_device, const void* from, int32_t from_device, int64_t bytes) {
  if (bytes == 0) return true;
  if (to_device == kHost && from_device == kHost) {
    std::memmove(to, from, static_cast<size_t>(bytes));
    return true;
  }
  if (from_device == kHost) return from_host(to_device, to, from, bytes);
  if (to_device == kHost) return to_host(from_device, to, from, bytes);
  if (to_device == from_device) return within(to_device, to, from, bytes);
  std::vector<char> between(static_cast<size_t>(bytes));
  return to_host(from_device, between.data(), from, bytes) && from_host(to_device, to, between.data(), bytes);
}

PyObject* device_name(int32_t device) { return device == kHost ? PyUnicode_FromString("CPU") : Py_NewRef(devices[device].name); }

namespace {

PyObject* add_device(PyObject*, PyObject* args) {
  PyObject *name, *backend;
  if (!PyArg_ParseTuple(args, "UO", &name, &backend)) return nullptr;
  if (devices.size() >= static_cast<size_t>(kMaxDevices)) {
    PyErr_Format(PyExc_RuntimeError, "at most %d devices have memory of their own", kMaxDevices - 1);
    return nullptr;
  }
  Device d{};
  d.backend = Py_NewRef(backend);
  d.name = Py_NewRef(name);
  devices.push_back(d);
  other_devices = true;
  return PyLong_FromSize_t(devices.size() - 1);
}

bool read_device(PyObject* number, int32_t* device) {
  const long long value = PyLong_AsLongLong(number);
  if ((value == -1 && PyErr_Occurred()) || !is_device(value)) return false;
  *device = static_cast<int32_t>(value);
  return true;
}

PyObject* device_statistics(PyObject*, PyObject* number) {
  int32_t device;
  if (!read_device(number, &device)) return nullptr;
  if (device == kHost) return storage_statistics();
  const Device& d = devices[device];
  return Py_BuildValue("{sLsLsL}", "live_bytes", static_cast<long long>(d.live_bytes), "peak_bytes", static_cast<long long>(d.peak_bytes),
                       "system_allocations", static_cast<long long>(d.allocations));
}

PyObject* reset_device_peak(PyObject*, PyObject* number) {
  int32_t device;
  if (!read_device(number, &device)) return nullptr;
  if (device == kHost) storage_reset_peaks(true, false);
  else devices[device].peak_bytes = devices[device].live_bytes;
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"add_device", add_device, METH_VARARGS, "add_device(name, backend): the number of a device with memory of its own; 0 is the host."},
    {"device_statistics", device_statistics, METH_O, "device_statistics(device): bytes that tensors hold there, and the most they held."},
    {"reset_device_peak", reset_device_peak, METH_O, "reset_device_peak(device): the most starts anew from now."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int init_device(PyObject* module) { return PyModule_AddFunctions(module, functions); }

Tensor* tensor_on(Tensor* t, int32_t device) {
  if (t->storage->device == device) {
    Py_INCREF(t);
    return t;
  }
  Tensor* made = tensor_empty(t->t.dtype, t->t.rank, t->t.shape, device);
  if (made && !copy_bytes(made->t.data, device, t->t.data, t->storage->device, t->t.size * kItemSize[t->t.dtype])) Py_CLEAR(made);
  return made;
}

Tensor* tensor_brought(Tensor* t, int32_t device) {
  Tensor* there = tensor_on(t, device);
  if (!there || there == t) return there;
  Storage* old = t->storage;
  if (old->exports > 0 || old->bin == kForeign) return there;  // others may read and write the memory as this tensor's
  t->storage = there->storage;
  retain(t->storage);
  t->t.data = there->t.data;
  release(old);
  Py_DECREF(there);
  Py_INCREF(t);
  return t;
}

}  // namespace mycelia
