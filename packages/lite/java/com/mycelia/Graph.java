package com.mycelia;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;

/** A file of a model, for {@link Model#build(Graph, com.mycelia.config.MSContext)}. */
public class Graph {
  MappedByteBuffer bytes;

  /** False if the file cannot be read. */
  public boolean load(String path) {
    try (RandomAccessFile file = new RandomAccessFile(path, "r")) {
      bytes = file.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, file.length());
      return true;
    } catch (IOException error) {
      return false;
    }
  }

  public void free() {
    bytes = null;
  }
}
