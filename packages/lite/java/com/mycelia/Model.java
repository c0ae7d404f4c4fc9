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
    return Native.modelBuild(handle, path, modelType, context == null ? 0 : context.getHandle());
  }

  public boolean build(MappedByteBuffer data, int modelType, MSContext context) {
    return Native.modelBuildBuffer(handle, data, modelType, context == null ? 0 : context.getHandle());
  }

  public boolean resize(List<MSTensor> inputs, int[][] shapes) {
    return Native.modelResize(handle, MSTensor.handles(inputs), shapes);
  }

  /** Runs on what the inputs hold. */
  public boolean predict() {
    return Native.modelPredict(handle);
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

  public void free() {
    Native.modelDestroy(handle);
    handle = 0;
  }

  private static MSTensor named(List<MSTensor> tensors, String name) {
    for (MSTensor tensor : tensors) if (name.equals(tensor.tensorName())) return tensor;
    return null;
  }
}
