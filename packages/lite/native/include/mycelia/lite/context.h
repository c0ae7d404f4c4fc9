// How models of the Lite runtime are to run, in C++.
#ifndef MYCELIA_LITE_CONTEXT_H_
#define MYCELIA_LITE_CONTEXT_H_

#include <memory>
#include <string>
#include <vector>

#include "mycelia/lite/kernel.h"

namespace mycelia {

// A device that a model may run on.
class DeviceInfoContext {
 public:
  virtual ~DeviceInfoContext() = default;
  virtual MSDeviceType GetDeviceType() const = 0;
  void SetProvider(const std::string& provider) { provider_ = provider; }
  const std::string& GetProvider() const { return provider_; }
  void SetProviderDevice(const std::string& device) { provider_device_ = device; }
  const std::string& GetProviderDevice() const { return provider_device_; }

 private:
  std::string provider_, provider_device_;
};

class CPUDeviceInfo : public DeviceInfoContext {
 public:
  MSDeviceType GetDeviceType() const override { return kMSDeviceTypeCPU; }
  // Arithmetic of 16 bits where processor and kernels have it; Model::GetModelInfo("precision") says what came of it.
  void SetEnableFP16(bool is_fp16) { fp16_ = is_fp16; }
  bool GetEnableFP16() const { return fp16_; }

 private:
  bool fp16_ = false;
};

// Devices that are not there but by delegates: a model that asks for one is not built (kLiteNotSupport).
class GPUDeviceInfo : public DeviceInfoContext {
 public:
  MSDeviceType GetDeviceType() const override { return kMSDeviceTypeGPU; }
  void SetDeviceID(uint32_t device_id) { device_id_ = device_id; }
  uint32_t GetDeviceID() const { return device_id_; }
  void SetEnableFP16(bool is_fp16) { fp16_ = is_fp16; }
  bool GetEnableFP16() const { return fp16_; }

 private:
  uint32_t device_id_ = 0;
  bool fp16_ = false;
};

class KirinNPUDeviceInfo : public DeviceInfoContext {
 public:
  MSDeviceType GetDeviceType() const override { return kMSDeviceTypeKirinNPU; }
  void SetEnableFP16(bool is_fp16) { fp16_ = is_fp16; }
  bool GetEnableFP16() const { return fp16_; }
  void SetFrequency(int frequency) { frequency_ = frequency; }
  int GetFrequency() const { return frequency_; }

 private:
  bool fp16_ = false;
  int frequency_ = 3;
};

class AscendDeviceInfo : public DeviceInfoContext {
 public:
  MSDeviceType GetDeviceType() const override { return kMSDeviceTypeInvalid; }
  void SetDeviceID(uint32_t device_id) { device_id_ = device_id; }
  uint32_t GetDeviceID() const { return device_id_; }

 private:
  uint32_t device_id_ = 0;
};

enum DelegateMode { kNoDelegate = 0, kCoreML = 1, kNNAPI = 2 };

// How a model is to run. It may be dropped when the model is built.
class Context {
 public:
  Context() : handle_(MSContextCreate()) {}
  ~Context() { MSContextDestroy(&handle_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  Status SetThreadNum(int32_t thread_num) { return MSContextSetThreadNum(handle_, thread_num); }
  int32_t GetThreadNum() const { return MSContextGetThreadNum(handle_); }
  Status SetInterOpParallelNum(int32_t parallel_num) { return MSContextSetInterOpParallelNum(handle_, parallel_num); }
  int32_t GetInterOpParallelNum() const { return MSContextGetInterOpParallelNum(handle_); }
  Status SetThreadAffinity(int mode) { return MSContextSetThreadAffinityMode(handle_, mode); }
  int GetThreadAffinityMode() const { return MSContextGetThreadAffinityMode(handle_); }
  Status SetThreadAffinity(const std::vector<int32_t>& core_list) {
    return MSContextSetThreadAffinityCoreList(handle_, core_list.data(), core_list.size());
  }
  std::vector<int32_t> GetThreadAffinityCoreList() const {
    size_t count = 0;
    const int32_t* cores = MSContextGetThreadAffinityCoreList(handle_, &count);
    return {cores, cores + count};
  }
  Status SetEnableParallel(bool is_parallel) { return MSContextSetEnableParallel(handle_, is_parallel); }
  bool GetEnableParallel() const { return MSContextGetEnableParallel(handle_); }
  Status SetSharedThreadPool(bool is_shared) { return MSContextSetSharedThreadPool(handle_, is_shared); }
  // Devices in order of preference, three at most; read when a model is built. A device with a provider uses the kernels that are
  // registered for it, and those of the runtime for the rest.
  std::vector<std::shared_ptr<DeviceInfoContext>>& MutableDeviceInfo() { return devices_; }
  // The runtime has no delegate built in.
  Status SetBuiltInDelegate(DelegateMode mode) {
    return mode == kNoDelegate ? Status() : Status(kLiteNotSupport, "SetBuiltInDelegate: neither CoreML nor NNAPI is there");
  }
  // Adds a delegate behind those that were set before.
  Status SetDelegate(const std::shared_ptr<Delegate>& delegate) {
    const MSDelegateCallbacks calls = detail::calls_of(delegate);
    return MSContextAddDelegate(handle_, &calls);
  }

  // For a call that builds: the handle, with the devices described. One context serves any number of models.
  Status Prepare(MSContextHandle* handle) {
    for (; described_ < devices_.size(); ++described_) {
      MSDeviceInfoHandle device = MSDeviceInfoCreate(devices_[described_]->GetDeviceType());
      if (!device) return kMSStatusLiteNotSupport;
      if (const auto* cpu = dynamic_cast<const CPUDeviceInfo*>(devices_[described_].get())) MSDeviceInfoSetEnableFP16(device, cpu->GetEnableFP16());
      MSDeviceInfoSetProvider(device, devices_[described_]->GetProvider().c_str());
      MSDeviceInfoSetProviderDevice(device, devices_[described_]->GetProviderDevice().c_str());
      const Status status = MSContextAddDeviceInfo(handle_, device);
      MSDeviceInfoDestroy(&device);
      if (!status) return status;
      const auto provided = registry::RegisterKernel::Provided(devices_[described_]->GetProvider(), devices_[described_]->GetProviderDevice());
      if (Status set = provided ? SetDelegate(provided) : Status(); !set) return set;
    }
    *handle = handle_;
    return {};
  }

 private:
  MSContextHandle handle_;
  std::vector<std::shared_ptr<DeviceInfoContext>> devices_;
  size_t described_ = 0;
};

}  // namespace mycelia

#endif
