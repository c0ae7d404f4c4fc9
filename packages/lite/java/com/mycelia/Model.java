package com.mycelia;

import com.mycelia.config.MSContext;
import java.nio.MappedByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** A .ms file that can be run. Booleans tell success, {@link #lastError} the reason of a failure. */
public class Model {
  public static final int MINDIR = 0;
  public static final int MINDIR_LITE = 4;

  private long handle = Native.modelCreate();

  /** Why the last call of this thread failed. */
  public static String lastError() {
    return Native.lastError();
  }

  public boolean build(String path, int modelType, MSContext context) {
    return Native.modelBuild(handle, path, modelType, handle(context));
  }

  public boolean build(MappedByteBuffer data, int modelType, MSContext context) {
    return Native.modelBuildBuffer(handle, data, modelType, handle(context));
  }

  public boolean build(Graph graph, MSContext context) {
    return build(graph.bytes, MINDIR_LITE, context);
  }

  /** An encrypted file; the key has 16, 24 or 32 bytes, the mode is AES-GCM. */
  public boolean build(String path, int modelType, MSContext context, byte[] key, String mode) {
    return Native.modelBuildEncrypted(handle, path, modelType, handle(context), key, mode);
  }

  /** The same of a file in memory. */
  public boolean build(MappedByteBuffer data, int modelType, MSContext context, byte[] key, String mode) {
    return Native.modelBuildEncryptedBuffer(handle, data, modelType, handle(context), key, mode);
  }

  /** A setting before the model is built, as in a section of a configuration file. */
  public boolean updateConfig(String section, String key, String value) {
    return Native.modelUpdateConfig(handle, section, key, value);
  }

  public boolean resize(List<MSTensor> inputs, int[][] shapes) {
    return Native.modelResize(handle, MSTensor.handles(inputs), shapes);
  }

  /** Runs on what the inputs hold. */
  public boolean predict() {
    return predict(null, null);
  }

  /** The same with calls before and after each node, or null; what they throw ends the run and is thrown here. */
  public boolean predict(KernelCallBack before, KernelCallBack after) {
    return Native.modelPredict(handle, before, after);
  }

  public List<MSTensor> getInputs() {
    return MSTensor.list(Native.modelInputs(handle));
  }

  public List<MSTensor> getOutputs() {
    return MSTensor.list(Native.modelOutputs(handle));
  }

  /** Null if there is none of this name. */
  public MSTensor getInputsByTensorName(String name) {
    return named(getInputs(), name);
  }

  public MSTensor getOutputByTensorName(String name) {
    return named(getOutputs(), name);
  }

  /** What a node computes, kept from the next run on; empty if there is no such node. */
  public List<MSTensor> getOutputsByNodeName(String name) {
    return MSTensor.list(Native.modelOutputsByNode(handle, name));
  }

  public List<String> getOutputTensorNames() {
    List<String> names = new ArrayList<>();
    for (MSTensor tensor : getOutputs()) names.add(tensor.tensorName());
    return names;
  }

  /** Other elements for weights, found by the tensors' names. */
  public boolean updateFeatureMaps(List<MSTensor> weights) {
    return Native.modelUpdateWeights(handle, MSTensor.handles(weights));
  }

  /** A fact about the built model, such as "precision" or "arena_bytes"; null for another key. */
  public String getModelInfo(String key) {
    return Native.modelInfo(handle, key);
  }

  public void free() {
    Native.modelDestroy(handle);
    handle = 0;
  }

  private static long handle(MSContext context) {
    return context == null ? 0 : context.getHandle();
  }

  private static MSTensor named(List<MSTensor> tensors, String name) {
    for (MSTensor tensor : tensors) if (name.equals(tensor.tensorName())) return tensor;
    return null;
  }
}
