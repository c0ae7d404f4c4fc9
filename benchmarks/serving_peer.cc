// A server of gRPC's C++ library and onnxruntime, for LeNet and a 2 x 2 addition; serving_servers.py compiles this.
//   serving_peer ONNXRUNTIME FOLDER PORT LARGEST_BATCH
// ONNXRUNTIME is the library, FOLDER has lenet.onnx and add.onnx. One thread takes requests from one completion queue and
// computes: with 1 each request by itself, else all that wait, at most so many a run.
#include <dlfcn.h>
#include <grpcpp/grpcpp.h>
#include <onnxruntime_c_api.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "serving_peer.grpc.pb.h"

namespace {

constexpr int kListening = 128;  // calls of each model that may begin before the loop comes round
const OrtApi* ort = nullptr;

void check(OrtStatus* status) {
  if (status == nullptr) return;
  const std::string message = ort->GetErrorMessage(status);
  ort->ReleaseStatus(status);
  throw std::runtime_error(message);
}

class Model;

// One request on its way: listens, waits for its run, answers.
struct Call {
  explicit Call(Model& model) : model(model) {}
  virtual ~Call() = default;
  virtual void listen_anew() const = 0;

  Model& model;
  grpc::ServerContext context;
  bench::Tensors request, reply;
  grpc::ServerAsyncResponseWriter<bench::Tensors> writer{&context};
  bool answered = false;
};

// An ONNX file with float32 inputs and one float32 output, all with an open first dimension.
class Model {
 public:
  Model(const OrtEnv* environment, const std::string& path) {
    OrtSessionOptions* options = nullptr;
    check(ort->CreateSessionOptions(&options));
    check(ort->SetIntraOpNumThreads(options, 1));
    check(ort->SetInterOpNumThreads(options, 1));
    check(ort->CreateSession(environment, path.c_str(), options, &session_));
    ort->ReleaseSessionOptions(options);
    check(ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &place_));
    OrtAllocator* allocator = nullptr;
    check(ort->GetAllocatorWithDefaultOptions(&allocator));
    size_t count = 0;
    check(ort->SessionGetInputCount(session_, &count));
    names_.resize(count);
    for (size_t i = 0; i < count; ++i) check(ort->SessionGetInputName(session_, i, allocator, &names_[i]));
    check(ort->SessionGetOutputName(session_, 0, allocator, &result_));
  }

  // Answers the calls by one run.
  void answer(Call* const* calls, size_t count) {
    try {
      run(calls, count);
      for (size_t k = 0; k < count; ++k) calls[k]->writer.Finish(calls[k]->reply, grpc::Status::OK, calls[k]);
    } catch (const std::exception& error) {
      const grpc::Status status(grpc::StatusCode::INVALID_ARGUMENT, error.what());
      for (size_t k = 0; k < count; ++k) calls[k]->writer.FinishWithError(status, calls[k]);
    }
  }

  std::vector<Call*> waiting;

 private:
  using Value = std::unique_ptr<OrtValue, decltype(OrtApi::ReleaseValue)>;

  void run(Call* const* calls, size_t count) {
    std::vector<std::string> joined(count > 1 ? names_.size() : 0);
    std::vector<Value> held;
    std::vector<const OrtValue*> inputs;
    std::vector<int64_t> rows(count);
    for (size_t i = 0; i < names_.size(); ++i) {
      std::vector<int64_t> shape;
      for (size_t k = 0; k < count; ++k) {
        const auto& request = calls[k]->request;
        if (static_cast<size_t>(request.tensors_size()) != names_.size() || request.tensors(i).shape().empty()) {
          throw std::invalid_argument("expected " + std::to_string(names_.size()) + " tensors with a batch dimension");
        }
        const auto& tensor = request.tensors(i);
        rows[k] = tensor.shape(0);
        if (k == 0) {
          shape.assign(tensor.shape().begin(), tensor.shape().end());
        } else {
          shape[0] += rows[k];
        }
        if (count > 1) joined[i] += tensor.data();
      }
      // A request alone is read where the message has it.
      const std::string& data = count > 1 ? joined[i] : calls[0]->request.tensors(i).data();
      OrtValue* value = nullptr;
      check(ort->CreateTensorWithDataAsOrtValue(place_, const_cast<char*>(data.data()), data.size(), shape.data(),
                                                shape.size(), ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
      held.emplace_back(value, ort->ReleaseValue);
      inputs.push_back(value);
    }
    OrtValue* made = nullptr;
    check(ort->Run(session_, nullptr, names_.data(), inputs.data(), inputs.size(), &result_, 1, &made));
    const Value result(made, ort->ReleaseValue);
    distribute(result.get(), rows, calls);
  }

  // Each call's rows of the result into its reply.
  void distribute(OrtValue* result, const std::vector<int64_t>& rows, Call* const* calls) const {
    OrtTensorTypeAndShapeInfo* info = nullptr;
    check(ort->GetTensorTypeAndShape(result, &info));
    size_t rank = 0;
    check(ort->GetDimensionsCount(info, &rank));
    std::vector<int64_t> shape(rank);
    check(ort->GetDimensions(info, shape.data(), rank));
    ort->ReleaseTensorTypeAndShapeInfo(info);
    size_t bytes = sizeof(float);  // of a row
    for (size_t d = 1; d < rank; ++d) bytes *= static_cast<size_t>(shape[d]);
    void* found = nullptr;
    check(ort->GetTensorMutableData(result, &found));
    const char* from = static_cast<const char*>(found);
    for (size_t k = 0; k < rows.size(); ++k) {
      auto* tensor = calls[k]->reply.add_tensors();
      shape[0] = rows[k];
      tensor->mutable_shape()->Add(shape.begin(), shape.end());
      tensor->set_data(from, rows[k] * bytes);
      from += rows[k] * bytes;
    }
  }

  OrtSession* session_ = nullptr;
  OrtMemoryInfo* place_ = nullptr;
  std::vector<char*> names_;
  char* result_ = nullptr;
};

template <class Service>
struct CallOf final : Call {
  CallOf(Service& service, Model& model, grpc::ServerCompletionQueue& queue)
      : Call(model), service(service), queue(queue) {
    service.RequestPredict(&context, &request, &writer, &queue, &queue, static_cast<Call*>(this));
  }
  void listen_anew() const override { new CallOf(service, model, queue); }

  Service& service;
  grpc::ServerCompletionQueue& queue;
};

// An event of the queue: a new request waits for its run; one that was answered is over.
void take(void* tag, bool good) {
  auto* call = static_cast<Call*>(tag);
  if (!good || call->answered) {
    delete call;
    return;
  }
  call->answered = true;
  call->listen_anew();
  call->model.waiting.push_back(call);
}

[[noreturn]] void serve(grpc::ServerCompletionQueue& queue, const std::vector<Model*>& models, size_t largest) {
  const gpr_timespec at_once = gpr_time_0(GPR_CLOCK_MONOTONIC);
  for (;;) {
    void* tag = nullptr;
    bool good = false;
    if (!queue.Next(&tag, &good)) throw std::runtime_error("the completion queue has ended");
    take(tag, good);
    if (largest > 1) {
      while (queue.AsyncNext(&tag, &good, at_once) == grpc::CompletionQueue::GOT_EVENT) take(tag, good);
    }
    for (Model* model : models) {
      const auto& waiting = model->waiting;
      for (size_t from = 0; from < waiting.size(); from += largest) {
        model->answer(&waiting[from], std::min(largest, waiting.size() - from));
      }
      model->waiting.clear();
    }
  }
}

void main_of(const std::string& library, const std::string& folder, const std::string& port, size_t largest) {
  void* loaded = dlopen(library.c_str(), RTLD_NOW);
  if (loaded == nullptr) throw std::runtime_error(dlerror());
  auto* base = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(loaded, "OrtGetApiBase"));
  ort = base != nullptr ? base()->GetApi(ORT_API_VERSION) : nullptr;
  if (ort == nullptr) throw std::runtime_error(library + " is older than the header that this was compiled with");
  OrtEnv* environment = nullptr;
  check(ort->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "bench", &environment));

  bench::lenet::AsyncService lenet_service;
  bench::add::AsyncService add_service;
  Model lenet(environment, folder + "/lenet.onnx"), add(environment, folder + "/add.onnx");
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + port, grpc::InsecureServerCredentials());
  builder.RegisterService(&lenet_service);
  builder.RegisterService(&add_service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  if (server == nullptr) throw std::runtime_error("port " + port + " is taken");
  for (int i = 0; i < kListening; ++i) {
    new CallOf(lenet_service, lenet, *queue);
    new CallOf(add_service, add, *queue);
  }
  serve(*queue, {&lenet, &add}, largest);
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) {
    std::cerr << "usage: serving_peer ONNXRUNTIME FOLDER PORT LARGEST_BATCH\n";
    return 2;
  }
  try {
    main_of(words[1], words[2], words[3], std::stoul(words[4]));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
