package com.mycelia.config;

/** Workers of a {@code ModelParallelRunner}, and how they run. */
public class RunnerConfig {
  private MSContext context;
  private int workers = 1;

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

  public long getContextHandle() {
    return context == null ? 0 : context.getHandle();
  }
}
