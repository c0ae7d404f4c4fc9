package com.mycelia;

import com.mycelia.config.RunnerConfig;
import java.util.List;
import java.util.Map;

/** One model for many threads: its workers share weights and packed constants. */
public class ModelParallelRunner {
  private long handle = Native.runnerCreate();

  public boolean init(String path, RunnerConfig config) {
    if (config != null)
      for (Map.Entry<String, Map<String, String>> section : config.getConfigInfo().entrySet())
        for (Map.Entry<String, String> entry : section.getValue().entrySet())
          if (!Native.runnerUpdateConfig(handle, section.getKey(), entry.getKey(), entry.getValue())) return false;
    return Native.runnerInit(handle, path, config == null ? 0 : config.getContextHandle(), config == null ? 1 : config.getWorkersNum());
  }

  public boolean init(String path) {
    return init(path, null);
  }

  /** Descriptions, without elements. */
  public List<MSTensor> getInputs() {
    return MSTensor.list(Native.runnerInputs(handle));
  }

  public List<MSTensor> getOutputs() {
    return MSTensor.list(Native.runnerOutputs(handle));
  }

  /** Called by any thread; the outputs are added, and are the caller's to free. */
  public boolean predict(List<MSTensor> inputs, List<MSTensor> outputs) {
    long[] made = Native.runnerPredict(handle, MSTensor.handles(inputs));
    outputs.addAll(MSTensor.list(made));
    return made != null;
  }

  public void free() {
    Native.runnerDestroy(handle);
    handle = 0;
  }
}
