// Contexts and devices.
#include "../delegate.h"
#include "border.h"

using namespace mycelia::lite;

namespace {

std::mutex guard;  // held by who reads or changes a context or a device description

template <class Set>
MSStatus change(MSContextHandle handle, const Set& set) {
  const auto context = find<Options>(handle);
  if (!context) return refused(kNullPointer, "the context is NULL or was freed");
  return guarded([&] {
    const std::lock_guard<std::mutex> lock(guard);
    return set(*context);
  });
}

template <class T, class Get>
T ask(MSContextHandle handle, T otherwise, const Get& get) {
  const auto context = find<Options>(handle);
  if (!context) return refused(kNullPointer, "the context is NULL or was freed"), otherwise;
  const std::lock_guard<std::mutex> lock(guard);
  return get(*context);
}

template <class Set>
MSStatus change_device(MSDeviceInfoHandle handle, const Set& set) {
  const auto device = find<Device>(handle);
  if (!device) return refused(kNullPointer, "the device description is NULL or was freed");
  return guarded([&] {
    const std::lock_guard<std::mutex> lock(guard);
    return set(*device);
  });
}

template <class T, class Get>
T ask_device(MSDeviceInfoHandle handle, T otherwise, const Get& get) {
  const auto device = find<Device>(handle);
  if (!device) return refused(kNullPointer, "the device description is NULL or was freed"), otherwise;
  const std::lock_guard<std::mutex> lock(guard);
  return get(*device);
}

Status at_least_one(const char* name, int32_t number) {
  return number < 1 ? Status(kParameterInvalid, message({name, " must be at least 1, but got ", number})) : Status();
}

}  // namespace

namespace mycelia::lite {

Status options_of(MSContextHandle handle, const std::shared_ptr<const Config>& config, Options* options) {
  const auto context = find<Options>(handle);
  if (handle && !context) return {kNullPointer, "the context was freed"};
  if (context) {
    const std::lock_guard<std::mutex> lock(guard);
    *options = *context;
  }
  options->config = config;
  return {};
}

}  // namespace mycelia::lite

MSContextHandle MSContextCreate(void) {
  void* made = nullptr;
  guarded([&] { return made = publish(std::make_shared<Options>()), Status(); });
  return made;
}
void MSContextDestroy(MSContextHandle* context) {
  if (!context) return;
  withdraw<Options>(*context);
  *context = nullptr;
}

MSStatus MSContextSetThreadNum(MSContextHandle context, int32_t thread_num) {
  return change(context, [&](Options& options) {
    Status status = at_least_one("thread_num", thread_num);
    if (status) options.threads = thread_num;
    return status;
  });
}
int32_t MSContextGetThreadNum(MSContextHandle context) {
  return ask(context, 0, [](const Options& options) { return options.threads; });
}

MSStatus MSContextSetThreadAffinityMode(MSContextHandle context, int mode) {
  return change(context, [&](Options& options) {
    if (mode < 0 || mode > 2) return Status(kParameterInvalid, message({"thread_affinity_mode must be 0, 1 or 2, but got ", mode}));
    options.affinity = mode;
    options.cores_for = cores_by_speed;
    return Status();
  });
}
int MSContextGetThreadAffinityMode(MSContextHandle context) {
  return ask(context, 0, [](const Options& options) { return static_cast<int>(options.affinity); });
}

MSStatus MSContextSetThreadAffinityCoreList(MSContextHandle context, const int32_t* core_list, size_t core_num) {
  return change(context, [&](Options& options) {
    if (core_num && !core_list) return Status(kNullPointer, "core_list is NULL");
    for (size_t i = 0; i < core_num; ++i)
      if (core_list[i] < 0) return Status(kParameterInvalid, message({"thread_affinity_core_list names core ", core_list[i]}));
    options.cores.assign(core_list, core_list + core_num);
    options.cores_for = cores_by_speed;
    return Status();
  });
}
const int32_t* MSContextGetThreadAffinityCoreList(MSContextHandle context, size_t* core_num) {
  if (core_num) *core_num = 0;
  return ask(context, static_cast<const int32_t*>(nullptr), [&](const Options& options) {
    if (core_num) *core_num = options.cores.size();
    return options.cores.data();
  });
}

MSStatus MSContextSetEnableParallel(MSContextHandle context, bool is_parallel) {
  return change(context, [&](Options& options) { return options.parallel = is_parallel, options.lanes_for = make_lanes, Status(); });
}
bool MSContextGetEnableParallel(MSContextHandle context) {
  return ask(context, false, [](const Options& options) { return options.parallel; });
}

MSStatus MSContextSetInterOpParallelNum(MSContextHandle context, int32_t parallel_num) {
  return change(context, [&](Options& options) {
    Status status = at_least_one("inter_op_parallel_num", parallel_num);
    if (status) options.inter_op = parallel_num, options.lanes_for = make_lanes;
    return status;
  });
}
int32_t MSContextGetInterOpParallelNum(MSContextHandle context) {
  return ask(context, 0, [](const Options& options) { return options.inter_op; });
}

MSStatus MSContextSetSharedThreadPool(MSContextHandle context, bool is_shared) {
  return change(context, [&](Options& options) { return options.shared_pool = is_shared, Status(); });
}

MSStatus MSContextAddDelegate(MSContextHandle context, const MSDelegateCallbacks* delegate) {
  return change(context, [&](Options& options) {
    if (!delegate || !delegate->name || !delegate->build) return Status(kNullPointer, "the delegate, its name or its build is NULL");
    options.delegates.push_back(std::make_shared<Delegate>(*delegate));
    return Status();
  });
}

MSStatus MSContextAddDeviceInfo(MSContextHandle context, MSDeviceInfoHandle device_info) {
  return change(context, [&](Options& options) {
    const auto device = find<Device>(device_info);
    if (!device) return Status(kNullPointer, "the device description is NULL or was freed");
    if (options.devices == 3) return Status(kParameterInvalid, "a context has at most 3 devices");
    ++options.devices;
    options.fp16 = options.fp16 || device->fp16;
    withdraw<Device>(device_info);
    return Status();
  });
}

MSDeviceInfoHandle MSDeviceInfoCreate(MSDeviceType device_type) {
  void* made = nullptr;
  guarded([&] {
    if (device_type != kMSDeviceTypeCPU)
      return Status(kNotSupported, message({"device type ", device_type, " is not there: the CPU (0) is; others come by delegates"}));
    return made = publish(std::make_shared<Device>()), Status();
  });
  return made;
}
void MSDeviceInfoDestroy(MSDeviceInfoHandle* device_info) {
  if (!device_info) return;
  withdraw<Device>(*device_info);
  *device_info = nullptr;
}
MSDeviceType MSDeviceInfoGetDeviceType(MSDeviceInfoHandle device_info) {
  return ask_device(device_info, kMSDeviceTypeInvalid, [](const Device& device) { return device.type; });
}
MSStatus MSDeviceInfoSetProvider(MSDeviceInfoHandle device_info, const char* provider) {
  return change_device(device_info, [&](Device& device) { return device.provider = provider ? provider : "", Status(); });
}
const char* MSDeviceInfoGetProvider(MSDeviceInfoHandle device_info) {
  return ask_device(device_info, static_cast<const char*>(nullptr), [](const Device& device) { return device.provider.c_str(); });
}
MSStatus MSDeviceInfoSetProviderDevice(MSDeviceInfoHandle device_info, const char* name) {
  return change_device(device_info, [&](Device& device) { return device.provider_device = name ? name : "", Status(); });
}
const char* MSDeviceInfoGetProviderDevice(MSDeviceInfoHandle device_info) {
  return ask_device(device_info, static_cast<const char*>(nullptr), [](const Device& device) { return device.provider_device.c_str(); });
}
MSStatus MSDeviceInfoSetEnableFP16(MSDeviceInfoHandle device_info, bool is_fp16) {
  return change_device(device_info, [&](Device& device) { return device.fp16 = is_fp16, Status(); });
}
bool MSDeviceInfoGetEnableFP16(MSDeviceInfoHandle device_info) {
  return ask_device(device_info, false, [](const Device& device) { return device.fp16; });
}
MSStatus MSDeviceInfoSetFrequency(MSDeviceInfoHandle device_info, int frequency) {
  return change_device(device_info, [&](Device& device) {
    if (frequency < 1 || frequency > 4) return Status(kParameterInvalid, message({"frequency must be 1 to 4, but got ", frequency}));
    return device.frequency = frequency, Status();
  });
}
int MSDeviceInfoGetFrequency(MSDeviceInfoHandle device_info) {
  return ask_device(device_info, -1, [](const Device& device) { return device.frequency; });
}
