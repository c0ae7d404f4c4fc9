package com.mycelia.config;

import java.util.LinkedHashMap;
import java.util.Map;

/** Workers of a {@code ModelParallelRunner}, and how they run. */
public class RunnerConfig {
  private MSContext context;
  private int workers = 1;
  private final Map<String, Map<String, String>> sections = new LinkedHashMap<>();

  public boolean init(MSContext given) {
    context = given;
    return true;
  }

  public void setWorkersNum(int count) {
    workers = count;
  }

  public int getWorkersNum() {
    return workers;
  }

  /** Settings of the workers, as in a section of a configuration file. */
  public void setConfigInfo(String section, Map<String, String> config) {
    sections.put(section, config);
  }

  public Map<String, Map<String, String>> getConfigInfo() {
    return sections;
  }

  public long getContextHandle() {
    return context == null ? 0 : context.getHandle();
  }
}
