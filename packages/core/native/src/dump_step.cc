// StepFiles: the files of a step of a data dump. Parts of a step are written by a thread of its own while the step goes on; it is there
// from the first of them to the end of the step.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "dump_batch.h"

namespace mycelia {
namespace {

// Batches on their way to a folder, in the order in which they came.
class Queue {
 public:
  explicit Queue(size_t most_waiting) : most_waiting_(most_waiting) {}
  ~Queue() { finish(); }  // with the interpreter's lock, since batches go with it

  DumpFolder* folder() { return &folder_; }

  // Without the interpreter's lock. True if the thread takes it, false if there is none; waits while too much waits for the disk.
  bool add(std::unique_ptr<Batch>* batch) {
    if (!start()) return false;
    std::unique_lock<std::mutex> lock(guard_);
    changed_.wait(lock, [&] { return waiting_.empty() || waiting_bytes_ + (*batch)->bytes() <= most_waiting_; });
    waiting_bytes_ += (*batch)->bytes();
    waiting_.push_back(std::move(*batch));
    changed_.notify_all();
    return true;
  }

  // Without the interpreter's lock: all that was added is written, or writing has failed; then `batch`, if one is given.
  void write(const Batch* batch) {
    {
      std::unique_lock<std::mutex> lock(guard_);
      changed_.wait(lock, [&] { return waiting_.empty(); });
    }
    if (batch && !error_) error_ = batch->write(&folder_, &firsts_);
  }

  // The batches that need their tensors no more.
  std::deque<std::unique_ptr<Batch>> take_written() {
    std::lock_guard<std::mutex> lock(guard_);
    return std::exchange(written_, {});
  }

  int error() {
    std::lock_guard<std::mutex> lock(guard_);
    return error_;
  }

  // The thread ends when all is written.
  void finish() {
    if (!thread_.joinable()) return;
    {
      std::lock_guard<std::mutex> lock(guard_);
      is_ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // A fork has no thread of its parent, and locks that nobody opens.
  bool is_of_parent() const { return thread_.joinable() && pid_ != getpid(); }

 private:
  bool start() {
    if (thread_.joinable()) return true;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);  // signals are for the threads that were there
    try {
      pid_ = getpid();
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread_.joinable();
  }

  void work() {
    std::unique_lock<std::mutex> lock(guard_);
    for (;;) {
      changed_.wait(lock, [&] { return is_ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const Batch& batch = *waiting_.front();
      if (!error_) {
        lock.unlock();
        const int error = batch.write(&folder_, &firsts_);
        lock.lock();
        error_ = error;
      }
      waiting_bytes_ -= batch.bytes();
      written_.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
      changed_.notify_all();
    }
  }

  const size_t most_waiting_;
  std::thread thread_;
  pid_t pid_ = 0;
  std::mutex guard_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Batch>> waiting_, written_;
  size_t waiting_bytes_ = 0;
  bool is_ending_ = false;
  int error_ = 0;

  // Of whoever writes: the thread, or who has waited for it.
  DumpFolder folder_;
  std::vector<std::string> firsts_;
};

struct StepFiles {
  PyObject_HEAD
  Queue* queue;  // NULL once it has ended
  Known* known;
  bool is_told;  // of the error
};

StepFiles* as_files(PyObject* o) { return reinterpret_cast<StepFiles*>(o); }

// OSError for what writing failed with, if it did.
bool tell(StepFiles* files, int error) {
  if (!error) return true;
  files->is_told = true;
  errno = error;
  PyErr_SetFromErrno(PyExc_OSError);
  return false;
}

bool is_usable(StepFiles* files) {
  if (!files->queue) {
    PyErr_SetString(PyExc_ValueError, "StepFiles: it has ended");
    return false;
  }
  if (!files->queue->is_of_parent()) return true;
  files->queue = nullptr;  // it stays as it is: its locks may be closed for ever
  files->is_told = true;
  OwnedRef told(Py_BuildValue("is", EPIPE, "the process that writes the step is the parent of this one"));
  if (told) PyErr_SetObject(PyExc_OSError, told.p);
  return false;
}

PyObject* files_new(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject* path;
  Py_ssize_t most_waiting;
  if (!PyArg_ParseTuple(args, "On:StepFiles", &path, &most_waiting)) return nullptr;
  OwnedRef encoded;
  if (path != Py_None && !PyUnicode_FSConverter(path, &encoded.p)) return nullptr;
  OwnedRef self(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  StepFiles* files = as_files(self.p);
  files->queue = new (std::nothrow) Queue(static_cast<size_t>(most_waiting < 0 ? 0 : most_waiting));
  files->known = new (std::nothrow) Known;
  if (!files->queue || !files->known) return PyErr_NoMemory();
  if (encoded) {
    errno = files->queue->folder()->open(PyBytes_AS_STRING(encoded.p));
    if (errno) return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
  }
  return self.take();
}

void files_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  StepFiles* files = as_files(self);
  if (files->queue && !files->queue->is_of_parent()) delete files->queue;
  delete files->known;
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* files_write(PyObject* self, PyObject* args) {
  StepFiles* files = as_files(self);
  PyObject *groups, *settings, *long_names;
  int at_once;
  Form form;
  if (!PyArg_ParseTuple(args, "O!O!O!p:write", &PyList_Type, &groups, &PyTuple_Type, &settings, &PyList_Type, &long_names, &at_once) ||
      !form.parse(settings) || !is_usable(files) || !tell(files, files->queue->error()))
    return nullptr;
  Queue* const queue = files->queue;
  const bool has_files = queue->folder()->is_open();
  queue->take_written();
  std::unique_ptr<Batch> batch(new (std::nothrow) Batch(form, has_files, files->known));
  if (!batch) return PyErr_NoMemory();
  OwnedRef rows(batch->describe(groups, long_names));
  if (!rows) return nullptr;
  if (!has_files) return rows.take();
  PyThreadState* state = PyEval_SaveThread();
  if (at_once || !queue->add(&batch)) queue->write(batch.get());
  PyEval_RestoreThread(state);
  return tell(files, queue->error()) ? rows.take() : nullptr;
}

PyObject* files_finish(PyObject* self, PyObject*) {
  StepFiles* files = as_files(self);
  if (!files->queue) Py_RETURN_NONE;
  if (!is_usable(files)) return nullptr;
  Queue* const queue = std::exchange(files->queue, nullptr);
  PyThreadState* state = PyEval_SaveThread();
  queue->finish();
  PyEval_RestoreThread(state);
  const int error = queue->error();
  delete queue;
  if (!files->is_told && !tell(files, error)) return nullptr;
  Py_RETURN_NONE;
}

PyMethodDef files_methods[] = {
    {"write", files_write, METH_VARARGS,
     "write(groups, settings, long_names, at_once): the tensors of groups (kind, name, stamp, inputs, outputs, ...) as files; their rows of\n"
     "statistic.csv, as bytes. (short, full) names come to long_names. Unless at_once, a thread writes the files meanwhile: nobody may\n"
     "write into the tensors until `finish`. OSError, also of what was to be written before, leaves what is whole."},
    {"finish", files_finish, METH_NOARGS, "finish(): wait until all is written. OSError if that failed and `write` has not told."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot files_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(files_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(files_dealloc)},
    {Py_tp_methods, files_methods},
    {Py_tp_doc, const_cast<char*>("StepFiles(path, most_waiting)\n\nThe files of tensors of a step of a data dump, in the folder `path`; None: no files, only rows.\n"
                                  "`most_waiting`: bytes of tensors that wait for the disk, beside those that are handed over last.")},
    {0, nullptr}};
PyType_Spec files_spec = {"mycelia.engine._C.StepFiles", sizeof(StepFiles), 0, Py_TPFLAGS_DEFAULT, files_slots};

}  // namespace

int init_dump_step(PyObject* module) {
  OwnedRef type(PyType_FromSpec(&files_spec));
  return type ? PyModule_AddObjectRef(module, "StepFiles", type.p) : -1;
}

}  // namespace mycelia
