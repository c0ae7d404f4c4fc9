// Words of the page of the machine.
import { topic } from ".";

export const systemTexts = topic(
  {
    none: "This run has no values of its machine. SummaryCollector records them every five seconds, unless collect_system is False.",
    parts: { cpu: "Processors", memory: "Memory", disk: "Disk", network: "Network", gpu: "GPU", other: "Other" },
  },
  {
    none: "该训练没有记录系统资源。SummaryCollector 每五秒记录一次，除非 collect_system 为 False。",
    parts: { cpu: "处理器", memory: "内存", disk: "磁盘", network: "网络", gpu: "GPU", other: "其他" },
  },
);
