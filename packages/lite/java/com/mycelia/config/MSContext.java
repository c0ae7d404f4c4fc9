package com.mycelia.config;

import com.mycelia.Native;

/** How a model is to run; may be freed when it is built. Booleans tell success, {@code Model.lastError()} the reason. */
public class MSContext {
  private long handle;

  public boolean init(int threads, int bindMode) {
    return init(threads, bindMode, false);
  }

  public boolean init(int threads, int bindMode, boolean parallel) {
    free();
    handle = Native.contextCreate();
    if (handle != 0 && Native.contextInit(handle, threads, bindMode, parallel)) return true;
    free();
    return false;
  }

  public boolean init(int threads) {
    return init(threads, CpuBindMode.NO_BIND, false);
  }

  public boolean addDeviceInfo(int deviceType, boolean fp16) {
    return addDeviceInfo(deviceType, fp16, 3);
  }

  /** {@code frequency}: 1 to 4, of an NPU; the CPU does not look at it. */
  public boolean addDeviceInfo(int deviceType, boolean fp16, int frequency) {
    return Native.contextAddDevice(handle, deviceType, fp16, frequency);
  }

  public long getHandle() {
    return handle;
  }

  public void free() {
    Native.contextDestroy(handle);
    handle = 0;
  }
}
