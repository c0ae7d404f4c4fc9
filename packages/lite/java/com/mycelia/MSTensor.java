package com.mycelia;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Named elements of one type: an input or output of a model, or made by hand. */
public class MSTensor {
  final long handle;

  MSTensor(long handle) {
    this.handle = handle;
  }

  /** A new tensor with a copy of the data, which is zeros if null; null if type, shape or size cannot be. */
  public static MSTensor createTensor(String name, int dataType, int[] shape, ByteBuffer data) {
    byte[] bytes = data == null ? null : bytes(data);
    long made = Native.tensorCreate(name, dataType, shape, bytes);
    return made == 0 ? null : new MSTensor(made);
  }

  public String tensorName() {
    return Native.tensorName(handle);
  }

  public int getDataType() {
    return Native.tensorDataType(handle);
  }

  /** -1 for a size that is open until the model is resized. */
  public int[] getShape() {
    return Native.tensorShape(handle);
  }

  public int elementsNum() {
    int count = 1;
    for (int size : getShape()) count = size < 0 || count < 0 ? -1 : count * size;
    return count;
  }

  public long size() {
    byte[] data = getByteData();
    return data == null ? 0 : data.length;
  }

  /** A copy of the elements; null for a tensor without elements to read, such as an output before its model ran. */
  public byte[] getByteData() {
    return Native.tensorData(handle);
  }

  public float[] getFloatData() {
    byte[] data = getByteData();
    if (data == null) return null;
    float[] made = new float[data.length / 4];
    ByteBuffer.wrap(data).order(ByteOrder.nativeOrder()).asFloatBuffer().get(made);
    return made;
  }

  public int[] getIntData() {
    byte[] data = getByteData();
    if (data == null) return null;
    int[] made = new int[data.length / 4];
    ByteBuffer.wrap(data).order(ByteOrder.nativeOrder()).asIntBuffer().get(made);
    return made;
  }

  public long[] getLongData() {
    byte[] data = getByteData();
    if (data == null) return null;
    long[] made = new long[data.length / 8];
    ByteBuffer.wrap(data).order(ByteOrder.nativeOrder()).asLongBuffer().get(made);
    return made;
  }

  /** False if the size is not that of the tensor. */
  public boolean setData(byte[] data) {
    return Native.tensorSetData(handle, data);
  }

  public boolean setData(float[] data) {
    ByteBuffer bytes = ByteBuffer.allocate(data.length * 4).order(ByteOrder.nativeOrder());
    bytes.asFloatBuffer().put(data);
    return setData(bytes.array());
  }

  public boolean setData(ByteBuffer data) {
    return setData(bytes(data));
  }

  /** Frees a tensor that was made by hand or by a runner; a model's own stay. */
  public void free() {
    Native.tensorDestroy(handle);
  }

  private static byte[] bytes(ByteBuffer data) {
    ByteBuffer all = data.duplicate();
    all.rewind();
    byte[] made = new byte[all.remaining()];
    all.get(made);
    return made;
  }

  static java.util.List<MSTensor> list(long[] handles) {
    java.util.List<MSTensor> made = new java.util.ArrayList<>();
    if (handles != null) for (long handle : handles) made.add(new MSTensor(handle));
    return made;
  }

  static long[] handles(java.util.List<MSTensor> tensors) {
    long[] made = new long[tensors.size()];
    for (int i = 0; i < made.length; ++i) made[i] = tensors.get(i).handle;
    return made;
  }
}
