package com.mycelia;

import java.util.List;

/** What is called around a node of a model that runs. */
public interface KernelCallBack {
  /** Tensors hold for the call; false ends the run. */
  boolean call(List<MSTensor> inputs, List<MSTensor> outputs, String nodeName, String nodeType);
}
