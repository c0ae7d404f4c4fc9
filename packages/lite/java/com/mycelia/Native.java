package com.mycelia;

/** The functions of the C library ({@code mycelia/lite/c_api.h}) that the classes call; handles are numbers, 0 is none. */
public final class Native {
  static {
    System.loadLibrary("mycelia_lite_jni");
  }

  private Native() {}

  public static native String lastError();

  public static native long contextCreate();

  public static native boolean contextInit(long context, int threads, int bindMode, boolean parallel);

  public static native boolean contextAddDevice(long context, int deviceType, boolean fp16, int frequency);

  public static native void contextDestroy(long context);

  static native long modelCreate();

  static native void modelDestroy(long model);

  static native boolean modelBuild(long model, String path, int modelType, long context);

  static native boolean modelBuildBuffer(long model, java.nio.ByteBuffer data, int modelType, long context);

  static native boolean modelResize(long model, long[] inputs, int[][] shapes);

  static native boolean modelBuildEncrypted(long model, String path, int modelType, long context, byte[] key, String mode);

  static native boolean modelBuildEncryptedBuffer(long model, java.nio.ByteBuffer data, int modelType, long context, byte[] key, String mode);

  static native boolean modelUpdateConfig(long model, String section, String key, String value);

  static native boolean modelPredict(long model, KernelCallBack before, KernelCallBack after);

  static native String modelInfo(long model, String key);

  static native long[] modelInputs(long model);

  static native long[] modelOutputs(long model);

  static native long[] modelOutputsByNode(long model, String node);

  static native boolean modelUpdateWeights(long model, long[] weights);

  static native long tensorCreate(String name, int dataType, int[] shape, byte[] data);

  static native void tensorDestroy(long tensor);

  static native String tensorName(long tensor);

  static native int tensorDataType(long tensor);

  static native int[] tensorShape(long tensor);

  static native byte[] tensorData(long tensor);

  static native boolean tensorSetData(long tensor, byte[] data);

  static native long runnerCreate();

  static native void runnerDestroy(long runner);

  static native boolean runnerInit(long runner, String path, long context, int workers);

  static native long[] runnerInputs(long runner);

  static native long[] runnerOutputs(long runner);

  static native boolean runnerUpdateConfig(long runner, String section, String key, String value);

  static native long[] runnerPredict(long runner, long[] inputs);

  /** What the library calls around a node. */
  static boolean call(KernelCallBack function, long[] inputs, long[] outputs, String name, String type) {
    return function.call(MSTensor.list(inputs), MSTensor.list(outputs), name, type);
  }
}
