package com.mycelia.config;

/** Devices by MindSpore Lite's numbers; the CPU is there. */
public final class DeviceType {
  public static final int DT_CPU = 0;
  public static final int DT_GPU = 1;
  public static final int DT_NPU = 2;

  private DeviceType() {}
}
